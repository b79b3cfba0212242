//! The peaks of backward passes that work in parts. Every test of this binary holds the lock: the peak is the process's.

use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::DType;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::creation::ones;
use taut_core::ops::nn::{attention, attention_with_dropout};
use taut_core::ops::reduce::sum;
use taut_core::ops::sample;
use taut_core::ops::shape::slice;
use taut_core::{Shape, Tensor, s};
use taut_testing::{exclusive, measured, values};

/// The gradients of three slices and of the whole are all that exists: no padded copies.
#[test]
fn gradients_of_slices_are_not_padded() {
    let _alone = exclusive();
    let x = ones([3, 1000], DType::F32).unwrap();
    let weights: Vec<Tensor> = (0..3).map(|_| ones([1000], DType::F32).unwrap()).collect();
    let tape = GradientTape::new();
    tape.watch(&x);
    let product = |i: usize| mul(slice(&x, &s![i as isize]).unwrap(), &weights[i]).unwrap();
    let loss = sum(add(add(product(0), product(1)).unwrap(), product(2)).unwrap(), None, false).unwrap();
    let (found, peak) = measured(|| tape.gradient(&loss, &x).unwrap().dense().unwrap());
    assert_eq!(values(&found), vec![1.0; 3000]);
    // Three parts of 4000 bytes, the result, and numbers of rank 0. Padded to the whole, the parts alone would be 36000.
    assert!((24_000..24_100).contains(&peak), "{peak} bytes");
}

/// Beside the gradients, memory grows with the rows, not with the scores.
#[test]
fn the_gradient_of_attention_makes_no_matrix_of_scores() {
    let _alone = exclusive();
    let threads = taut_kernels::pool::set_threads(1);
    let (heads, d) = (2, 8);
    let peak = |n: usize| {
        let x = sample::tensor(DType::F32, &Shape::from([1, heads, n, d]), -1.0, 1.0);
        let tape = GradientTape::new();
        tape.watch(&x);
        let loss = sum(attention(&x, &x, &x, None, false, None).unwrap(), None, false).unwrap();
        measured(|| tape.gradient(&loss, &x).unwrap()).1
    };
    let (small, large) = (peak(256), peak(1024));
    taut_kernels::pool::set_threads(threads);
    // Two tiles of 64 queries by 128 keys, and per row: the gradients of queries, keys and values, and delta.
    let (tiles, row) = (2 * 64 * 128 * 4, heads * (3 * d + 1) * 4);
    assert!((tiles + 256 * row..tiles + 256 * row + 100).contains(&small), "{small} bytes");
    assert!((tiles + 1024 * row..tiles + 1024 * row + 100).contains(&large), "{large} bytes");
}

/// Beside the gradients, memory grows with the rows, not with the weights.
#[test]
fn attention_with_dropout_makes_no_matrix_of_weights() {
    let _alone = exclusive();
    let threads = taut_kernels::pool::set_threads(1);
    let (heads, d) = (2, 8);
    let key = Tensor::from_slice(&[11u64, 4], [2]).unwrap();
    let peak = |n: usize| {
        let x = sample::tensor(DType::F32, &Shape::from([1, heads, n, d]), -1.0, 1.0);
        let tape = GradientTape::new();
        tape.watch(&x);
        measured(|| {
            let out = attention_with_dropout(&x, &x, &x, 0.1, &key, None, false, None).unwrap();
            let loss = sum(out, None, false).unwrap();
            tape.gradient(&loss, &x).unwrap()
        })
        .1
    };
    let (small, large) = (peak(256), peak(1024));
    taut_kernels::pool::set_threads(threads);
    // Two tiles of 64 queries by 128 keys, and per row: the result, lse, the gradients of queries, keys and values, and delta.
    let (tiles, row) = (2 * 64 * 128 * 4, heads * (4 * d + 2) * 4);
    assert!((tiles + 256 * row..tiles + 256 * row + 200).contains(&small), "{small} bytes");
    assert!((tiles + 1024 * row..tiles + 1024 * row + 200).contains(&large), "{large} bytes");
}
