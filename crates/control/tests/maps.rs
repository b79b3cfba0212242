//! Maps: the same as element by element, for any chunks.

use taut_autodiff::GradientTape;
use taut_control::{Loops, cond, fori_loop, map_fn, scan, vectorized_map, while_loop};
use taut_core::ops::binary::{add, less, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::index::sort;
use taut_core::ops::random::{Generator, normal};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{slice, stack};
use taut_core::ops::unary::{sin, tanh};
use taut_core::{DType, ErrorKind, Index, Result, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::{ramp, values};

/// `body` of each row, one by one.
fn rows(body: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let each = (0..x.shape()[0]).map(|i| body(&slice(x, &[Index::At(i as isize)])?));
    stack(&each.collect::<Result<Vec<_>>>()?, 0)
}

fn gradients(run: &dyn Fn() -> Result<Tensor>, of: &[&Tensor]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let tape = GradientTape::new();
    tape.watch(of);
    let y = run().unwrap();
    let loss = sum(mul(&y, &y).unwrap(), None, false).unwrap();
    let found = tape.gradient(&loss, of).unwrap();
    (values(&y), found.into_iter().map(|g| g.map_or(Vec::new(), |g| values(&g.dense().unwrap()))).collect())
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()))
}

/// Checks a body of a row of 3 and a matrix `w` for many numbers of elements and sizes of chunks.
fn check(body: &(dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Sync)) {
    let w = ramp(&[3, 3]);
    for count in [1, 2, 7, 12] {
        let x = ramp(&[count, 3]);
        let want = gradients(&|| rows(&|x| body(x, &w), &x), &[&x, &w]);
        let same = |got: (Vec<f64>, Vec<Vec<f64>>), what: &str| {
            assert!(close(&got.0, &want.0), "{what}, {count}: {:?} for {:?}", got.0, want.0);
            for (got, want) in got.1.iter().zip(&want.1) {
                let unconnected = want.is_empty() && got.iter().all(|g| *g == 0.0);
                assert!(unconnected || close(got, want), "{what}, {count}: gradient {got:?} for {want:?}");
            }
        };
        same(gradients(&|| map_fn(|x| body(&x, &w), x.clone()), &[&x, &w]), "map_fn");
        same(gradients(&|| vectorized_map(|x| body(&x, &w), x.clone()), &[&x, &w]), "vectorized_map");
        for chunk in [1, 3, 4, 5, 100] {
            let loops = Loops::new().parallel_iterations(chunk);
            same(
                gradients(&|| loops.map_fn(|x| body(&x, &w), x.clone()), &[&x, &w]),
                &format!("chunks of {chunk}"),
            );
        }
        let loops = Loops::new().memory_budget(2000);
        same(gradients(&|| loops.map_fn(|x| body(&x, &w), x.clone()), &[&x, &w]), "memory budget");
    }
}

#[test]
fn plain_bodies() {
    let _ledger = ledger_check();
    check(&|x, w| tanh(matmul(x.expand(0)?, w)?));
    check(&|x, w| add(sum(x, None, false)?, sum(w, None, false)?));
    check(&|x, _| sin(x));
}

#[test]
fn bodies_with_ops_without_a_vmap_rule_and_bodies_with_loops() {
    let _ledger = ledger_check();
    check(&|x, w| {
        let y = fori_loop(0..3, |_, y: Tensor| sin(matmul(y, w)?), x.expand(0)?)?;
        mul(y, x)
    });
    check(&|x, w| {
        // The element is the number of steps.
        let start = (Tensor::scalar(0.0f64)?, x.clone());
        let total = sum(mul(x, x)?, None, false)?;
        let (_, y) = while_loop(
            |(i, _)| less(i, &total),
            |(i, y)| Ok(((i + 0.5)?, tanh(add(y, sum(w, None, false)?)?)?)),
            start,
        )?;
        Ok(y)
    });
    check(&|x, w| cond(less(sum(x, None, false)?, 0.0)?, || sin(x), || mul(x, sum(w, None, false)?)));
    check(&|x, w| {
        let (last, all) = scan(
            |s: Tensor, x: Tensor| {
                let s = sin(add(s, &x)?)?;
                Ok((s.clone(), mul(&s, &x)?))
            },
            sum(w, None, false)?,
            x.clone(),
        )?;
        add(all, last)
    });
    check(&|x, _| sort(x, -1, false));
    check(&|x, w| map_fn(|e: Tensor| mul(&e, sum(mul(w, &e)?, None, false)?), x.clone()));
}

#[test]
fn no_elements_give_empty_results() {
    let _ledger = ledger_check();
    let x = ramp(&[0, 3]);
    let f = |x: Tensor| Ok((sin(&x)?, sum(&x, None, false)?));
    for (a, b) in [map_fn(f, x.clone()).unwrap(), vectorized_map(f, x).unwrap()] {
        assert_eq!(
            (a.spec().to_string(), b.spec().to_string()),
            ("float64[0, 3]".into(), "float64[0]".into())
        );
    }
}

#[test]
fn every_element_draws_its_own_random_numbers() {
    let _ledger = ledger_check();
    let x = ramp(&[50]);
    let draw = |chunk: usize| {
        let generator = Generator::from_seed(3);
        let loops = Loops::new().parallel_iterations(chunk);
        let y = loops.map_fn(|x| add(generator.normal([2], 0.0, 1.0, DType::F64)?, x), x.clone()).unwrap();
        values(&y)
    };
    let all = draw(50);
    assert_eq!(all, draw(7), "chunks make no difference");
    let noise: Vec<f64> = all.iter().enumerate().map(|(i, y)| y - values(&x)[i / 2]).collect();
    let mut sorted = noise.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    assert_eq!(sorted.len(), 100, "all different");
    drop(normal([1], 0.0, 1.0, DType::F64).unwrap());
}

#[test]
fn budgets_that_are_too_small_are_rejected() {
    let _ledger = ledger_check();
    let (x, w) = (ramp(&[4, 3]), ramp(&[3, 3]));
    let body = |x: Tensor| matmul(sin(x.expand(0)?)?, &w);
    let error = Loops::new().memory_budget(1).map_fn(body, x.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(error.to_string().contains("memory_budget must be at least"), "{error}");
    assert_eq!(error.location().unwrap().file(), file!());
    let error = Loops::new().parallel_iterations(0).map_fn(body, x).unwrap_err();
    assert!(error.to_string().contains("parallel_iterations must be >= 1, got 0"), "{error}");
}

trait Expand {
    fn expand(&self, axis: isize) -> Result<Tensor>;
}

impl Expand for Tensor {
    fn expand(&self, axis: isize) -> Result<Tensor> {
        taut_core::ops::shape::expand_dims(self, axis)
    }
}
