//! Loops and branches under several tapes: a further recorder does not change values or gradients.

use std::sync::Arc;
use taut::memory::testing::ledger_check;
use taut::{
    DenseGradient, GradientTape, LoopReport, Loops, Result, TapeOptions, Tensor, Variable, add,
    check_numerics, checkpoint, cond, div, fori_loop, function, less, matmul, mul, random, sin, sum, tanh,
    while_loop,
};
use taut_testing::{assert_close, values};

fn matrix(n: usize, seed: usize) -> Tensor {
    let values: Vec<f64> = (0..n * n).map(|i| ((i * 7 + seed) % 11) as f64 / 11.0 - 0.4).collect();
    Tensor::from_vec(values, [n, n]).unwrap()
}

#[test]
fn a_tensor_may_be_a_state_and_a_capture() {
    let _ledger = ledger_check();
    let w = matrix(3, 3);
    let second = |loops: Loops| {
        let f = function(move |w: &Tensor| {
            let tape = GradientTape::new();
            tape.watch(w);
            let y = loops.fori_loop(0..12, |_, x| tanh(matmul(x, w)?), w.clone())?;
            tape.gradient(&sum(y, None, false)?, w)?.dense()
        });
        let tape = GradientTape::new();
        tape.watch(&w);
        let g = f.call(&w).unwrap();
        let total = sum(mul(&g, &g).unwrap(), None, false).unwrap();
        values(&tape.gradient(&total, &w).unwrap().dense().unwrap())
    };
    assert_close(&second(Loops::new().grad_budget(400)), &second(Loops::new()), 1e-10);
}

#[test]
fn the_same_value_tracked_and_detached_is_two_captures() {
    let _ledger = ledger_check();
    let v = Variable::new(Tensor::scalar(0.5f64).unwrap()).unwrap();
    let gradient = |looped: bool, frozen_first: bool| {
        let frozen = v.read();
        let tape = GradientTape::new();
        let body = |x: Tensor| {
            let own = v.read();
            if frozen_first { add(mul(&x, &frozen)?, &own) } else { mul(add(&x, &own)?, &frozen) }
        };
        let start = Tensor::scalar(1.0f64).unwrap();
        let y = if looped {
            fori_loop(0..3, |_, x| body(x), start)
        } else {
            body(body(body(start).unwrap()).unwrap())
        };
        tape.gradient(&y.unwrap(), &v).unwrap().dense().unwrap().item::<f64>().unwrap()
    };
    for frozen_first in [true, false] {
        assert_eq!(gradient(true, frozen_first), gradient(false, frozen_first));
    }
}

#[test]
fn a_number_that_a_body_captures_can_be_watched_later() {
    let _ledger = ledger_check();
    let (x, c) = (Tensor::scalar(3.0f64).unwrap(), Tensor::scalar(2.0f64).unwrap());
    let own = c.clone();
    let f = function(move |x: &Tensor| {
        let y = fori_loop(0..2, |_, x| mul(x, &own), x.clone())?;
        cond(less(&y, 0.0)?, || Ok(y.clone()), || mul(&y, &own))
    });
    f.call(&x).unwrap();
    let tape = GradientTape::new();
    tape.watch(&c);
    let y = f.call(&x).unwrap();
    assert_eq!(tape.gradient(&y, &c).unwrap().dense().unwrap().item::<f64>().unwrap(), 3.0 * 3.0 * 4.0);
}

/// The gradient of a few loops and branches, with other tapes active in several ways.
#[test]
fn other_tapes_change_nothing() {
    let _ledger = ledger_check();
    let (x, w) = (Tensor::scalar(0.7f64).unwrap(), Tensor::scalar(1.1f64).unwrap());
    let step = |x: Tensor, w: &Tensor| sin(mul(x, w)?);
    let known =
        move |loops: &Loops, x: &Tensor, w: &Tensor| loops.fori_loop(0..20, |_, x| step(x, w), x.clone());
    let unknown = move |loops: &Loops, x: &Tensor, w: &Tensor| {
        let start = (Tensor::scalar(0i64)?, x.clone());
        let (_, y) =
            loops.while_loop(|(i, _)| less(i, 20i64), |(i, x)| Ok(((i + 1i64)?, step(x, w)?)), start)?;
        Ok(y)
    };
    let chosen = |_: &Loops, x: &Tensor, w: &Tensor| {
        let (own, other) = (x.clone(), w.clone());
        let f = function(move |x: &Tensor| {
            cond(less(x, 0.0)?, || Ok(x.clone()), || mul(sin(mul(x, &other)?)?, &own))
        });
        f.call(x)
    };
    let programs: [&dyn Fn(&Loops, &Tensor, &Tensor) -> Result<Tensor>; 3] = [&known, &unknown, &chosen];
    for program in programs {
        for loops in [Loops::new(), Loops::new().grad_budget(512)] {
            let plain = GradientTape::new();
            plain.watch(&[&x, &w]);
            let y = program(&loops, &x, &w).unwrap();
            let want =
                plain.gradient(&y, &[&x, &w]).unwrap().map(|g| g.dense().unwrap().item::<f64>().unwrap());

            // One that starts between the two passes.
            let tape = GradientTape::new();
            tape.watch(&[&x, &w]);
            let y = program(&loops, &x, &w).unwrap();
            let late = GradientTape::new();
            late.watch(&x);
            let got =
                tape.gradient(&y, &[&x, &w]).unwrap().map(|g| g.dense().unwrap().item::<f64>().unwrap());
            drop(late);
            assert_eq!(got, want);

            // One that watches nothing, and a persistent one.
            let _idle = GradientTape::new();
            let tape = GradientTape::with(TapeOptions { persistent: true, ..TapeOptions::default() });
            tape.watch(&[&x, &w]);
            let y = program(&loops, &x, &w).unwrap();
            for _ in 0..2 {
                let got =
                    tape.gradient(&y, &[&x, &w]).unwrap().map(|g| g.dense().unwrap().item::<f64>().unwrap());
                assert_close(&got, &want, 1e-10);
            }
        }
    }
}

#[test]
fn a_tape_that_tracks_nothing_needs_no_limit() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let _idle = GradientTape::new();
        let tape = GradientTape::new();
        tape.watch(x);
        let start = (Tensor::scalar(0i64)?, x.clone());
        let (_, y) = while_loop(|(i, _)| less(i, 3i64), |(i, x)| Ok(((i + 1i64)?, mul(&x, &x)?)), start)?;
        tape.gradient(&y, x)?.dense()
    });
    let x = Tensor::scalar(1.1f64).unwrap();
    assert_close(&values(&f.call(&x).unwrap()), &[8.0 * 1.1f64.powi(7)], 1e-10);
}

#[test]
fn checks_run_under_every_recorder() {
    let _ledger = ledger_check();
    let body = |x: &Tensor| {
        fori_loop(
            0..2,
            |_, x| {
                check_numerics(div(1.0, &x)?, "nothing to divide by")?;
                mul(x, 2.0)
            },
            x.clone(),
        )
    };
    let zero = Tensor::scalar(0.0f64).unwrap();
    assert!(body(&zero).is_err());
    let tape = GradientTape::new();
    tape.watch(&zero);
    assert!(body(&zero).is_err());
    assert!(function(move |x: &Tensor| body(x)).call(&zero).is_err());
}

#[test]
fn functions_that_are_first_called_in_a_body_have_no_share_of_its_budget() {
    let _ledger = ledger_check();
    let report = Arc::new(LoopReport::new());
    let own = Loops::new().report(&report);
    let f = Arc::new(function(move |x: &Tensor| own.fori_loop(0..50, |_, x| sin(x), x.clone())));
    let inner = f.clone();
    let x = Tensor::scalar(0.3f64).unwrap();
    Loops::new().grad_budget(512).fori_loop(0..2, |_, x| inner.call(&x), x.clone()).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = f.call(&x).unwrap();
    tape.gradient(&y, &x).unwrap().dense().unwrap();
    assert_eq!(report.recomputed(), 0);
}

#[test]
fn recomputed_code_in_a_body_draws_the_same_numbers() {
    let _ledger = ledger_check();
    let x = Tensor::scalar(2.0f64).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let noise = |x: &[Tensor]| Ok(vec![mul(&x[0], random::uniform([], 0.0, 1.0, taut::DType::F64)?)?]);
    let y = checkpoint([&x], noise).unwrap().remove(0);
    let drawn = y.item::<f64>().unwrap() / 2.0;
    let g = fori_loop(0..1, |_, _| tape.gradient(&y, &x)?.dense(), Tensor::scalar(0.0f64).unwrap()).unwrap();
    assert_close(&values(&g), &[drawn], 1e-10);
}
