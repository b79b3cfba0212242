//! Checkpointed parts of a function that is differentiated by a tape outside of it.

use taut_autodiff::{DenseGradient, GradientTape, Variable, checkpoint};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::dropout;
use taut_core::ops::random;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{exp, sin, tanh};
use taut_core::{DType, Result, Tensor};
use taut_function::{Function, function};
use taut_memory::testing::ledger_check;

const SIDE: usize = 16;

/// A part with several intermediate values; it captures a tensor of the trace, reads a variable and draws random numbers.
fn piece(x: &Tensor, captured: &Tensor, scale: &Variable) -> Result<Tensor> {
    let inner = exp(sin(mul(x, captured)?)?)?;
    dropout(tanh(mul(inner, scale)?)?, 0.3, random::next_key()?)
}

fn net(scale: &Variable, again: bool) -> Function<(Tensor, Tensor), Tensor> {
    let scale = scale.clone();
    function(move |(x, w): &(Tensor, Tensor)| {
        let captured = add(w, 0.5)?;
        let mut x = x.clone();
        for _ in 0..4 {
            let product = matmul(&x, w)?;
            x = if again {
                let (captured, scale) = (captured.clone(), scale.clone());
                checkpoint([&product], move |inputs| Ok(vec![piece(&inputs[0], &captured, &scale)?]))?
                    .swap_remove(0)
            } else {
                piece(&product, &captured, &scale)?
            };
        }
        sum(x, None, false)
    })
}

#[test]
fn less_is_saved_and_gradients_are_the_same() {
    let _ledger = ledger_check();
    let x = random::normal([SIDE, SIDE], 0.0, 1.0, DType::F64).unwrap();
    let w = random::normal([SIDE, SIDE], 0.0, 0.2, DType::F64).unwrap();
    let scale = Variable::new(Tensor::scalar(0.7f64).unwrap()).unwrap();
    let run = |again: bool| {
        let net = net(&scale, again);
        random::set_seed(11);
        let tape = GradientTape::new();
        tape.watch(&(&x, &w));
        let y = net.call((&x, &w)).unwrap();
        let held = tape.bytes_held();
        let (dx, dw, ds) = tape.gradient(&y, &(&x, &w, &scale)).unwrap();
        let all = [dx.dense(), dw.dense(), ds.dense()].map(|g| g.unwrap().to_vec::<f64>().unwrap());
        (held, y.item::<f64>().unwrap(), all)
    };
    let ((all_held, y, gradients), (less_held, again, recomputed)) = (run(false), run(true));
    assert_eq!(y, again);
    for (a, b) in gradients.iter().flatten().zip(recomputed.iter().flatten()) {
        assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a} {b}");
    }
    // Per part: its input and the factors of the products; none of the intermediate values.
    let matrix = SIDE * SIDE * 8;
    assert!(less_held <= 10 * matrix + 1024, "{less_held} of {all_held}");
    assert!(all_held >= less_held + 8 * matrix, "{less_held} of {all_held}");
}
