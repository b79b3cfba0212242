//! Loops: values, gradients and what they save.

use std::sync::Arc;
use taut_autodiff::GradientTape;
use taut_control::{LoopReport, Loops, cond, foldl, foldr, fori_loop, scan, while_loop};
use taut_core::ops::binary::{add, less, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{sin, tanh};
use taut_core::{Result, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::{scalar, values, vector};

#[test]
fn a_while_runs_until_its_condition_fails() {
    let _ledger = ledger_check();
    let start = (Tensor::scalar(0i64).unwrap(), scalar(1.0));
    let (i, x) = while_loop(|(i, _)| less(i, 10i64), |(i, x)| Ok(((i + 1i64)?, (x * 2.0)?)), start).unwrap();
    assert_eq!((i.item::<i64>().unwrap(), x.item::<f64>().unwrap()), (10, 1024.0));
}

#[test]
fn states_can_be_swapped() {
    let _ledger = ledger_check();
    let (a, b) = fori_loop(
        0..10,
        |_, (a, b): (Tensor, Tensor)| Ok((b.clone(), add(a, b)?)),
        (scalar(0.0), scalar(1.0)),
    )
    .unwrap();
    assert_eq!((a.item::<f64>().unwrap(), b.item::<f64>().unwrap()), (55.0, 89.0));
}

#[test]
fn scans_and_folds() {
    let _ledger = ledger_check();
    let x = vector(&[1.0, 2.0, 3.0]);
    let step = |s: Tensor, x: Tensor| {
        let s = ((s * 2.0)? + x)?;
        Ok((s.clone(), s))
    };
    let (last, all) = scan(step, scalar(0.0), x.clone()).unwrap();
    assert_eq!((last.item::<f64>().unwrap(), values(&all)), (11.0, vec![1.0, 4.0, 11.0]));
    let fold = |s: Tensor, x: Tensor| (s * 2.0)? + x;
    assert_eq!(foldl(fold, x.clone(), scalar(0.0)).unwrap().item::<f64>().unwrap(), 11.0);
    assert_eq!(foldr(fold, x.clone(), scalar(0.0)).unwrap().item::<f64>().unwrap(), 17.0);
    let (last, all) = Loops::new().scan_reversed(step, scalar(0.0), x).unwrap();
    assert_eq!((last.item::<f64>().unwrap(), values(&all)), (17.0, vec![17.0, 8.0, 3.0]));
}

/// The value and the gradients for `x` and `w` of twelve steps of `x = sin(x * w) + i`, by hand and by a loop.
fn steps(
    x: &Tensor,
    w: &Tensor,
    run: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let tape = GradientTape::new();
    tape.watch(&[x, w]);
    let y = run(x, w).unwrap();
    let y = sum(mul(&y, &y).unwrap(), None, false).unwrap();
    let g = tape.gradient(&y, &[x, w]).unwrap();
    let dense = |g: &Option<taut_core::Gradient>| values(&g.clone().unwrap().dense().unwrap());
    (values(&y), dense(&g[0]), dense(&g[1]))
}

fn body(i: &Tensor, x: &Tensor, w: &Tensor) -> Result<Tensor> {
    add(sin(mul(x, w)?)?, mul(taut_core::ops::unary::cast(i, taut_core::DType::F64)?, 0.1)?)
}

#[test]
fn gradients_are_those_of_the_unrolled_steps() {
    let _ledger = ledger_check();
    let (x, w) = (vector(&[0.3, -0.7, 1.1]), vector(&[0.9, 1.3, -0.4]));
    let by_hand = steps(&x, &w, |x, w| {
        let mut x = x.clone();
        for i in 0..12 {
            x = body(&Tensor::scalar(i as i64)?, &x, w)?;
        }
        Ok(x)
    });
    let report = Arc::new(LoopReport::new());
    for budget in [None, Some(128), Some(192), Some(256), Some(1000), Some(10000)] {
        let loops = budget.map_or(Loops::new(), |budget| Loops::new().grad_budget(budget)).report(&report);
        let known = steps(&x, &w, |x, w| loops.fori_loop(0..12, |i, x| body(&i, &x, w), x.clone()));
        assert_eq!(by_hand, known, "{budget:?}");
        for loops in [loops.clone(), loops.clone().maximum_iterations(20)] {
            let unknown = steps(&x, &w, |x, w| {
                let start = (Tensor::scalar(0i64)?, x.clone());
                let (_, x) = loops.while_loop(
                    |(i, _)| less(i, 12i64),
                    |(i, x)| {
                        let y = body(&i, &x, w)?;
                        Ok(((i + 1i64)?, y))
                    },
                    start,
                )?;
                Ok(x)
            });
            assert_eq!(by_hand, unknown, "{budget:?}");
        }
    }
}

#[test]
fn power_loops() {
    let _ledger = ledger_check();
    let a = Tensor::from_slice(&[0.6f64, 0.8, -0.8, 0.6], [2, 2]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&a);
    let y = fori_loop(0..3, |_, x| matmul(x, &a), a.clone()).unwrap();
    let want = matmul(matmul(matmul(&a, &a).unwrap(), &a).unwrap(), &a).unwrap();
    assert_eq!(values(&y), values(&want));
    let g = tape.gradient(&sum(tanh(&y).unwrap(), None, false).unwrap(), &a).unwrap().unwrap();
    let g2 = tape_gradient_by_hand(&a);
    for (g, w) in values(&g.dense().unwrap()).iter().zip(&g2) {
        assert!((g - w).abs() < 1e-12);
    }
}

fn tape_gradient_by_hand(a: &Tensor) -> Vec<f64> {
    let tape = GradientTape::new();
    tape.watch(a);
    let y = matmul(matmul(matmul(a, a).unwrap(), a).unwrap(), a).unwrap();
    let y = sum(tanh(&y).unwrap(), None, false).unwrap();
    values(&tape.gradient(&y, a).unwrap().unwrap().dense().unwrap())
}

#[test]
fn conds_and_switches() {
    let _ledger = ledger_check();
    let x = scalar(-2.0);
    let y = cond(less(&x, 0.0).unwrap(), || -&x, || Ok(x.clone())).unwrap();
    assert_eq!(y.item::<f64>().unwrap(), 2.0);
}
