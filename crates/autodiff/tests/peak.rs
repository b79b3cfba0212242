//! The peak memory of a backward pass, to the byte. The only test of its binary: the peak is the process's.

use taut_autodiff::{GradientTape, Variable};
use taut_core::DType;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::ones;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::relu;
use taut_memory::testing::ledger_check;
use taut_memory::{live_bytes, peak_bytes, reset_peak};

/// The peak of the backward pass by hand: a layer's gradients, and what later layers have left.
#[test]
fn the_peak_of_a_deep_backward_pass_is_the_formula() {
    let _ledger = ledger_check();
    let (layers, batch, width) = (64, 32, 64);
    let (activation, matrix, bits) = (batch * width * 4, width * width * 4, batch * width / 8);
    let weights: Vec<Variable> =
        (0..layers).map(|_| Variable::new(ones([width, width], DType::F32).unwrap()).unwrap()).collect();
    let input = ones([batch, width], DType::F32).unwrap();
    let threads = taut_kernels::pool::set_threads(1);
    let before = live_bytes();
    let tape = GradientTape::new();
    let mut x = input.clone();
    for w in &weights {
        x = relu(matmul(x, w).unwrap()).unwrap();
    }
    let loss = sum(x, None, false).unwrap();
    // The input of each layer but the first is kept (the first is the caller's own); the bits of every layer; the loss.
    let kept = (layers - 1) * activation + layers * bits;
    assert_eq!(live_bytes() - before, kept + 4);
    reset_peak();
    let gradients = tape.gradient(&loss, &weights).unwrap();
    let peak = peak_bytes() - before;
    // The bytes alive while layer `i` (of `layers`) is passed: inputs and bits of the layers up to it, the gradients of
    // the matrices after it, and in its own turn the gradient that comes in, the one that goes out and its matrix's.
    let passing = |i: usize| {
        let inputs = i * activation; // of layers 1..=i
        let below = (i + 1) * bits;
        let after = (layers - 1 - i) * matrix;
        let relu_done = inputs + below + after + activation; // the mask is applied in place
        let outgoing = if i == 0 { 0 } else { activation };
        // By now the layer's own bits are gone.
        let product = inputs + i * bits + after + activation + outgoing + matrix;
        relu_done.max(product)
    };
    let formula = (0..layers).map(passing).max().unwrap() + 4; // and the loss
    assert_eq!(peak, formula);
    drop(gradients);
    assert_eq!(live_bytes() - before, 4);
    taut_kernels::pool::set_threads(threads);
}
