//! Recurrent layers against their formulas, computed element by element.

use taut_autodiff::GradientTape;
use taut_control::Loops;
use taut_control::recurrent::{gru, lstm};
use taut_core::ops::binary::mul;
use taut_core::ops::reduce::sum;
use taut_core::{ErrorKind, Tensor};
use taut_memory::testing::ledger_check;

const STEPS: usize = 4;
const BATCH: usize = 2;
const FEATURES: usize = 3;
const UNITS: usize = 2;

fn ramp(shape: &[usize], seed: usize) -> (Tensor, Vec<f64>) {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| ((i * 29 + seed * 13 + 5) % 97) as f64 / 60.0 - 0.8).collect();
    (Tensor::from_slice(&values, shape.to_vec()).unwrap(), values)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x[row] @ kernel[:, column]`, for `rows` inner numbers.
fn product(x: &[f64], kernel: &[f64], columns: usize, column: usize) -> f64 {
    x.iter().enumerate().map(|(i, x)| x * kernel[i * columns + column]).sum()
}

fn close(got: &Tensor, want: &[f64]) {
    let got: Vec<f64> = got.to_vec().unwrap();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-12, "{got} for {want}");
    }
}

#[test]
fn lstm_matches_its_formulas() {
    let _ledger = ledger_check();
    let (x, xs) = ramp(&[STEPS, BATCH, FEATURES], 1);
    let (h, mut hs) = ramp(&[BATCH, UNITS], 2);
    let (c, mut cs) = ramp(&[BATCH, UNITS], 3);
    let (kernel, kernels) = ramp(&[FEATURES, 4 * UNITS], 4);
    let (recurrent, recurrents) = ramp(&[UNITS, 4 * UNITS], 5);
    let (bias, biases) = ramp(&[4 * UNITS], 6);
    let mut all = Vec::new();
    for t in 0..STEPS {
        let before = hs.clone();
        for b in 0..BATCH {
            let row = &xs[(t * BATCH + b) * FEATURES..][..FEATURES];
            let gate = |n: usize, u: usize| {
                let column = n * UNITS + u;
                product(row, &kernels, 4 * UNITS, column)
                    + product(&before[b * UNITS..][..UNITS], &recurrents, 4 * UNITS, column)
                    + biases[column]
            };
            for u in 0..UNITS {
                let (i, f, g, o) =
                    (sigmoid(gate(0, u)), sigmoid(gate(1, u)), gate(2, u).tanh(), sigmoid(gate(3, u)));
                cs[b * UNITS + u] = f * cs[b * UNITS + u] + i * g;
                hs[b * UNITS + u] = o * cs[b * UNITS + u].tanh();
            }
        }
        all.extend_from_slice(&hs);
    }
    for loops in [Loops::new(), Loops::new().grad_budget(300)] {
        let (out, (last, memory)) =
            loops.lstm(&x, (h.clone(), c.clone()), &kernel, &recurrent, &bias).unwrap();
        close(&out, &all);
        close(&last, &hs);
        close(&memory, &cs);
    }
    let gradients = |loops: Loops| {
        let tape = GradientTape::new();
        let sources = [&x, &h, &c, &kernel, &recurrent, &bias];
        tape.watch(&sources);
        let (out, _) = loops.lstm(&x, (h.clone(), c.clone()), &kernel, &recurrent, &bias).unwrap();
        let loss = sum(mul(&out, &out).unwrap(), None, false).unwrap();
        tape.gradient(&loss, &sources).unwrap().map(|g| g.unwrap().dense().unwrap().to_vec::<f64>().unwrap())
    };
    let (fast, sparing) = (gradients(Loops::new()), gradients(Loops::new().grad_budget(300)));
    for (fast, sparing) in fast.iter().zip(&sparing) {
        assert!(fast.iter().zip(sparing).all(|(a, b)| (a - b).abs() < 1e-12), "{fast:?} and {sparing:?}");
    }
    // Against finite differences of the loss.
    let loss = |kernel: &Tensor| {
        let (out, _) = lstm(&x, (h.clone(), c.clone()), kernel, &recurrent, &bias).unwrap();
        sum(mul(&out, &out).unwrap(), None, false).unwrap().item::<f64>().unwrap()
    };
    for i in 0..kernels.len() {
        let moved = |by: f64| {
            let mut values = kernels.clone();
            values[i] += by;
            loss(&Tensor::from_vec(values, [FEATURES, 4 * UNITS]).unwrap())
        };
        let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        assert!((slope - fast[3][i]).abs() < 1e-8, "{slope} for {}", fast[3][i]);
    }
}

#[test]
fn gru_matches_its_formulas() {
    let _ledger = ledger_check();
    let (x, xs) = ramp(&[STEPS, BATCH, FEATURES], 1);
    let (h, mut hs) = ramp(&[BATCH, UNITS], 2);
    let (kernel, kernels) = ramp(&[FEATURES, 3 * UNITS], 4);
    let (recurrent, recurrents) = ramp(&[UNITS, 3 * UNITS], 5);
    let ((bias, biases), (inner, inners)) = (ramp(&[3 * UNITS], 6), ramp(&[3 * UNITS], 7));
    let mut all = Vec::new();
    for t in 0..STEPS {
        let before = hs.clone();
        for b in 0..BATCH {
            let row = &xs[(t * BATCH + b) * FEATURES..][..FEATURES];
            let input =
                |n: usize, u: usize| product(row, &kernels, 3 * UNITS, n * UNITS + u) + biases[n * UNITS + u];
            let state = |n: usize, u: usize| {
                product(&before[b * UNITS..][..UNITS], &recurrents, 3 * UNITS, n * UNITS + u)
                    + inners[n * UNITS + u]
            };
            for u in 0..UNITS {
                let update = sigmoid(input(0, u) + state(0, u));
                let reset = sigmoid(input(1, u) + state(1, u));
                let candidate = (input(2, u) + reset * state(2, u)).tanh();
                hs[b * UNITS + u] = update * before[b * UNITS + u] + (1.0 - update) * candidate;
            }
        }
        all.extend_from_slice(&hs);
    }
    for loops in [Loops::new(), Loops::new().grad_budget(300)] {
        let (out, last) = loops.gru(&x, h.clone(), &kernel, &recurrent, (&bias, &inner)).unwrap();
        close(&out, &all);
        close(&last, &hs);
    }
}

#[test]
fn kernels_of_other_shapes_are_rejected() {
    let _ledger = ledger_check();
    let (x, _) = ramp(&[STEPS, BATCH, FEATURES], 1);
    let (h, _) = ramp(&[BATCH, UNITS], 2);
    let (kernel, _) = ramp(&[FEATURES, 3 * UNITS], 4);
    let (recurrent, _) = ramp(&[UNITS, 4 * UNITS], 5);
    let (bias, _) = ramp(&[4 * UNITS], 6);
    let error = lstm(&x, (h.clone(), h.clone()), &kernel, &recurrent, &bias).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("lstm")));
    assert_eq!(error.location().unwrap().file(), file!());
    let error = gru(&x, h, &kernel, &recurrent, (&bias, &bias)).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("gru")));
}
