//! Random numbers in traced functions: the same as eager ones, call by call.

use std::sync::Arc;
use taut_autodiff::{DenseGradient, GradientTape, checkpoint};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::nn::dropout;
use taut_core::ops::random::Generator;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::tanh;
use taut_core::{DType, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_testing::values;

#[test]
fn calls_draw_what_eager_calls_draw() {
    let _ledger = ledger_check();
    let body = |generator: &Generator, x: &Tensor| -> Result<Tensor> {
        let noise = generator.normal([4], 0.0, 1.0, DType::F64)?;
        let more = generator.uniform([4], 0.0, 1.0, DType::F64)?;
        add(mul(x, noise)?, more)
    };
    let (eager, traced) = (Generator::from_seed(5), Arc::new(Generator::from_seed(5)));
    let inside = traced.clone();
    let f = function(move |x: &Tensor| body(&inside, x));
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [4]).unwrap();
    for _ in 0..4 {
        assert_eq!(values(&f.call(&x).unwrap()), values(&body(&eager, &x).unwrap()));
        assert_eq!(eager.state(), traced.state());
    }
    traced.set_seed(5);
    eager.set_seed(5);
    assert_eq!(
        values(&f.call(&x).unwrap()),
        values(&body(&eager, &x).unwrap()),
        "the seed is not fixed in the trace"
    );
}

#[test]
fn unused_draws_advance_the_generator_too() {
    let _ledger = ledger_check();
    let generator = Arc::new(Generator::from_seed(5));
    let inside = generator.clone();
    let f = function(move |x: &Tensor| {
        inside.normal([4], 0.0, 1.0, DType::F64)?;
        Ok(x.clone())
    });
    let x = Tensor::scalar(1.0f64).unwrap();
    f.call(&x).unwrap();
    f.call(&x).unwrap();
    assert_eq!(generator.state(), (5, 2));
}

#[test]
fn dropout_is_the_same_forward_and_backward_and_recomputed() {
    let _ledger = ledger_check();
    let generator = Arc::new(Generator::from_seed(11));
    let x = Generator::from_seed(1).normal([64], 0.0, 1.0, DType::F64).unwrap();
    let body = |generator: Arc<Generator>| {
        move |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let tape = GradientTape::new();
            tape.watch(x);
            let inside = generator.clone();
            let y = checkpoint([x], move |x| Ok(vec![tanh(dropout(&x[0], 0.5, inside.next_key()?)?)?]))?;
            let gradient = tape.gradient(&sum(&y[0], None, false)?, x)?.dense()?;
            Ok((y[0].clone(), gradient))
        }
    };
    let eager = body(Arc::new(Generator::from_seed(11)));
    let f = function(body(generator.clone()));
    for _ in 0..3 {
        let (y, gradient) = f.call(&x).unwrap();
        let (want_y, want_gradient) = eager(&x).unwrap();
        assert_eq!(values(&y), values(&want_y));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(values(&gradient).iter().zip(&values(&want_gradient)).all(close));
    }
    assert_eq!(generator.state(), (11, 3), "one key a call: the recomputed part takes none");
}

#[test]
fn a_function_inside_a_checkpoint_draws_the_same_again() {
    let _ledger = ledger_check();
    let x = Generator::from_seed(1).normal([64], 0.0, 1.0, DType::F64).unwrap();
    let slope = |traced_around: bool| {
        let generator = Arc::new(Generator::from_seed(3));
        let inside = generator.clone();
        let noisy = Arc::new(function(move |x: &Tensor| tanh(dropout(x, 0.5, inside.next_key()?)?)));
        let body = move |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let tape = GradientTape::new();
            tape.watch(x);
            let noisy = noisy.clone();
            let y = checkpoint([x], move |x| Ok(vec![noisy.call(&x[0])?]))?;
            let gradient = tape.gradient(&sum(&y[0], None, false)?, x)?.dense()?;
            Ok((y[0].clone(), gradient))
        };
        let results: Vec<(Tensor, Tensor)> = if traced_around {
            let f = function(body);
            (0..2).map(|_| f.call(&x).unwrap()).collect()
        } else {
            (0..2).map(|_| body(&x).unwrap()).collect()
        };
        assert_eq!(generator.state(), (3, 2));
        results
    };
    for ((y, gradient), (again, same)) in slope(false).into_iter().zip(slope(true)) {
        assert_eq!(values(&y), values(&again));
        for ((y, g), h) in values(&y).iter().zip(&values(&gradient)).zip(&values(&same)) {
            // Dropped elements are 0 and have no gradient; the others are doubled.
            let want = if *y == 0.0 { 0.0 } else { 2.0 * (1.0 - y * y) };
            assert!((g - want).abs() < 1e-12 && (h - want).abs() < 1e-12, "{y} {g} {h}");
        }
    }
}

#[test]
fn keys_can_be_returned() {
    let _ledger = ledger_check();
    let generator = Arc::new(Generator::from_seed(4));
    let inside = generator.clone();
    let f = function(move |(): &()| inside.next_key());
    assert_eq!(f.call(()).unwrap().to_vec::<u64>().unwrap(), [4, 0]);
    assert_eq!(f.call(()).unwrap().to_vec::<u64>().unwrap(), [4, 1]);
}
