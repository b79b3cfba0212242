//! The cross-entropy of a linear layer in chunks: the same numbers and gradients as by the matrix of logits, without its bytes.

use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::sparse_softmax_cross_entropy_with_logits;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::square;
use taut_core::{ErrorKind, Result, Tensor};
use taut_function::function;
use taut_nn::losses::linear_cross_entropy;
use taut_testing::{assert_close, exclusive, measured, ramp, values};

/// Rows of 24,000 bytes of logits: 87 fit into a chunk of 2 MiB.
const CLASSES: usize = 3000;
const INPUTS: usize = 3;

fn labels(rows: usize) -> Tensor {
    Tensor::from_vec((0..rows).map(|i| (i * 37 % CLASSES) as i32).collect::<Vec<_>>(), [rows]).unwrap()
}

/// The losses by all logits at once.
fn whole(features: &Tensor, kernel: &Tensor, bias: Option<&Tensor>, labels: &Tensor) -> Result<Tensor> {
    let mut logits = matmul(features, kernel)?;
    if let Some(bias) = bias {
        logits = add(logits, bias)?;
    }
    sparse_softmax_cross_entropy_with_logits(labels, logits)
}

type Losses = fn(&Tensor, &Tensor, Option<&Tensor>, &Tensor) -> Result<Tensor>;

/// The losses, and the gradients of the sum of their squares with respect to features, kernel and bias.
fn with_gradients(losses: Losses, inputs: &[Tensor; 3], labels: &Tensor) -> Result<Vec<Tensor>> {
    let tape = GradientTape::new();
    tape.watch(&inputs[..]);
    let found = losses(&inputs[0], &inputs[1], Some(&inputs[2]), labels)?;
    let total = sum(square(&found)?, None, false)?;
    let mut all = vec![found];
    for gradient in tape.gradient(&total, &inputs[..])? {
        all.push(gradient.dense()?);
    }
    Ok(all)
}

fn inputs(rows: usize) -> [Tensor; 3] {
    [ramp(&[rows, INPUTS]), ramp(&[INPUTS, CLASSES]), ramp(&[CLASSES])]
}

#[test]
fn losses_are_those_of_the_formula() {
    let _alone = exclusive();
    for rows in [1, 86, 87, 88, 174, 200] {
        let [features, kernel, _] = inputs(rows);
        let found = values(&linear_cross_entropy(&features, &kernel, None, &labels(rows)).unwrap());
        let (x, w) = (values(&features), values(&kernel));
        for row in 0..rows {
            let logit = |class: usize| -> f64 {
                (0..INPUTS).map(|i| x[row * INPUTS + i] * w[i * CLASSES + class]).sum()
            };
            let total: f64 = (0..CLASSES).map(|class| logit(class).exp()).sum();
            let want = total.ln() - logit(row * 37 % CLASSES);
            assert!(
                (found[row] - want).abs() < 1e-12 * want.abs(),
                "row {row} of {rows}: {} {want}",
                found[row]
            );
        }
    }
}

#[test]
fn gradients_are_those_of_the_whole() {
    let _alone = exclusive();
    for rows in [0, 1, 100, 174, 200] {
        let (inputs, labels) = (inputs(rows), labels(rows));
        let chunked = with_gradients(linear_cross_entropy, &inputs, &labels).unwrap();
        for (got, want) in chunked.iter().zip(with_gradients(whole, &inputs, &labels).unwrap()) {
            assert_close(&values(got), &values(&want), 1e-10);
        }
    }
}

#[test]
fn second_derivatives_are_those_of_the_whole() {
    let _alone = exclusive();
    let (inputs, labels) = (inputs(100), labels(100));
    let second = |losses: Losses| -> Result<Vec<Tensor>> {
        let tape = GradientTape::new();
        tape.watch(&inputs[..]);
        let first = with_gradients(losses, &inputs, &labels)?;
        let along = add(sum(mul(&first[1], 0.5)?, None, false)?, sum(square(&first[2])?, None, false)?)?;
        tape.gradient(&along, &inputs[..])?.into_iter().map(DenseGradient::dense).collect()
    };
    for (got, want) in second(linear_cross_entropy).unwrap().iter().zip(second(whole).unwrap()) {
        assert_close(&values(got), &values(&want), 1e-9);
    }
}

#[test]
fn a_step_holds_a_chunk_of_logits_and_is_planned_to_the_byte() {
    let _alone = exclusive();
    let rows = 1000;
    let (inputs, labels) = (inputs(rows), labels(rows));
    let step = function(|(x, w, y): &(Tensor, Tensor, Tensor)| {
        let tape = GradientTape::new();
        tape.watch(w);
        let loss = sum(linear_cross_entropy(x, w, None, y)?, None, false)?;
        tape.gradient(&loss, w)?.dense()
    });
    let arguments = (inputs[0].clone(), inputs[1].clone(), labels.clone());
    let planned = step.plan(&arguments).unwrap().peak_bytes();
    let (found, peak) = measured(|| step.call(&arguments).unwrap());
    assert_eq!(peak, planned);
    // The matrix of logits has 24 MB; a chunk has 2 MiB, and so has its gradient.
    assert!(planned < 8 << 20, "{planned} bytes");
    let eager = {
        let tape = GradientTape::new();
        tape.watch(&inputs[1]);
        let loss = sum(whole(&inputs[0], &inputs[1], None, &labels).unwrap(), None, false).unwrap();
        tape.gradient(&loss, &inputs[1]).unwrap().dense().unwrap()
    };
    assert_close(&values(&found), &values(&eager), 1e-10);
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let _alone = exclusive();
    let cases: [(&[usize], &[usize], usize, &str); 4] = [
        (&[2, 3], &[4, 5], 2, "features must have 4 inputs, as the kernel has, got 3"),
        (&[2, 3], &[3], 2, "kernel must have shape [inputs, classes], got [3]"),
        (&[], &[3, 5], 1, "features must have shape [.., inputs], got a scalar"),
        (&[2, 3], &[3, 5], 3, "labels must have shape [2]"),
    ];
    for (features, kernel, rows, message) in cases {
        let error = linear_cross_entropy(&ramp(features), &ramp(kernel), None, &labels(rows)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains(message), "{error}");
    }
}
