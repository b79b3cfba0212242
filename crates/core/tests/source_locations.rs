//! Errors and allocations of composed functions are attributed to the line that calls the function.

use std::collections::HashMap;
use taut_core::ops::binary::logaddexp;
use taut_core::ops::contract::{
    ConvOptions, avg_pool, conv2d, conv2d_filter_gradient, conv2d_input_gradient, depthwise_conv2d, einsum,
    max_pool, tensordot,
};
use taut_core::ops::creation::one_hot;
use taut_core::ops::index::{bincount, boolean_mask, segment_sum, unique};
use taut_core::ops::linalg::{lstsq, solve, triangular_solve};
use taut_core::ops::nn::{
    batch_norm, dropout, group_norm, moments, sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits,
};
use taut_core::ops::random::stateless_shuffle;
use taut_core::ops::reduce::{clip_by_global_norm, clip_by_norm, global_norm, l2_normalize, norm, std};
use taut_core::ops::shape::{repeat, split, stack, unstack};
use taut_core::ops::unary::cast;
use taut_core::ops::{ArgValue, Args, table};
use taut_core::{DType, Error, ErrorKind, Gradient, IndexedSlices, Result, Spec, Tensor, trace};
use taut_memory::Location;
use taut_memory::testing::{allocations_on_thread, fail_nth, ledger_check};

fn place(at: Location) -> (String, u32) {
    (at.file().into(), at.line())
}

#[track_caller]
fn assert_here(error: &Error, what: &str) {
    let here = (file!().to_string(), Location::caller().line());
    assert_eq!(error.location().map(place), Some(here), "{what}:\n{error}");
}

/// A call with an invalid argument fails with its line, which is the caller's.
#[track_caller]
fn wrong<T>(call: impl FnOnce() -> Result<T>) {
    let error = call().err().expect("the argument is wrong");
    assert_ne!(error.kind(), ErrorKind::OutOfMemory);
    assert_here(&error, "a wrong argument");
}

/// All allocations and ops of a call are attributed to its line, which is the caller's, whichever allocation fails.
#[track_caller]
fn right<T>(inputs: &[&Tensor], call: impl Fn(&[Tensor]) -> Result<T>) {
    let inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
    let before = allocations_on_thread();
    drop(call(&inputs).unwrap());
    let allocations = allocations_on_thread() - before;
    for n in 0..allocations {
        let fault = fail_nth(n);
        let error = call(&inputs).err().expect("an allocation fails");
        drop(fault);
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert_here(&error, &format!("allocation {n} of {allocations}"));
    }
    let specs: Vec<Spec> = inputs.iter().map(|input| input.spec().clone()).collect();
    let traced = trace(&specs, |symbols| {
        call(symbols)?;
        Ok(Vec::new())
    });
    match traced {
        Ok(traced) => {
            let here = (file!().to_string(), Location::caller().line());
            assert!(!traced.graph.nodes.is_empty());
            for node in &traced.graph.nodes {
                assert_eq!(place(node.at), here, "{}", node.op.name());
            }
        }
        // Its result depends on values, which a trace does not have.
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::DynamicShape);
            assert_here(&error, "the attempt to read data");
        }
    }
}

/// 0.5, 1.5, 2.5, ..
fn floats<const N: usize>(shape: [usize; N]) -> Tensor {
    let data: Vec<f32> = (0..shape.iter().product()).map(|i| i as f32 + 0.5).collect();
    Tensor::from_vec(data, shape).unwrap()
}

fn ints<const N: usize>(values: [i32; N]) -> Tensor {
    Tensor::from_slice(&values, [N]).unwrap()
}

#[test]
fn norms_and_deviations() {
    let _ledger = ledger_check();
    let (x, i) = (floats([2, 3]), ints([1, 2, 3]));
    let strided = taut_core::ops::shape::transpose(&x, None).unwrap();
    wrong(|| std(&x, 2, 0.0, false));
    right(&[&x], |t| std(&t[0], 1, 0.0, true));
    right(&[&i], |t| std(&t[0], None, 1.0, false));
    for ord in [2.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, 0.0, 3.0] {
        wrong(|| norm(&x, ord, -3, false));
        right(&[&strided], |t| norm(&t[0], ord, 1, false));
        right(&[&i], |t| norm(&t[0], ord, None, true));
    }
    wrong(|| l2_normalize(&x, 2, 1e-6));
    right(&[&x], |t| l2_normalize(&t[0], 1, 1e-6));
    wrong(|| clip_by_norm(&x, 0.0, None));
    wrong(|| clip_by_norm(&x, 1.0, 5));
    right(&[&x], |t| clip_by_norm(&t[0], 1.0, None));
    wrong(|| global_norm(&[]));
    right(&[&x, &strided], |t| global_norm(t));
    wrong(|| clip_by_global_norm(&[], 1.0));
    wrong(|| clip_by_global_norm(std::slice::from_ref(&x), -1.0));
    right(&[&x, &strided], |t| clip_by_global_norm(t, 1.0));
}

#[test]
fn statistics_and_losses() {
    let _ledger = ledger_check();
    let (x, row, key) = (floats([2, 4]), floats([4]), Tensor::from_slice(&[1u64, 2], [2]).unwrap());
    let half = cast(&x, DType::F16).unwrap();
    wrong(|| moments(&x, 2, false));
    right(&[&half], |t| moments(&t[0], 0, true));
    right(&[&half], |t| moments(&t[0], 0, false));
    right(&[&x], |t| moments(&t[0], None, true));
    wrong(|| batch_norm(&x, &row, &row, None, None, -1.0, -1));
    wrong(|| batch_norm(&x, &row, &row, None, Some(&x), 0.1, -1));
    right(&[&half, &row], |t| batch_norm(&t[0], &t[1], &t[1], None, None, 0.1, 1));
    wrong(|| group_norm(&x, None, None, 3, -1, 0.1));
    right(&[&x, &row], |t| group_norm(&t[0], Some(&t[1]), None, 2, -1, 0.1));
    wrong(|| dropout(&x, 1.5, &key));
    right(&[&x, &key], |t| dropout(&t[0], 0.5, &t[1]));
    wrong(|| stateless_shuffle(&row, &x));
    right(&[&key, &x], |t| stateless_shuffle(&t[0], &t[1]));

    let classes = cast(ints([1, 3]), DType::U8).unwrap();
    wrong(|| softmax_cross_entropy_with_logits(&row, &x));
    right(&[&x, &half], |t| softmax_cross_entropy_with_logits(&t[0], &t[1]));
    wrong(|| sparse_softmax_cross_entropy_with_logits(&x, &x));
    wrong(|| sparse_softmax_cross_entropy_with_logits(ints([0, 4]), &x));
    right(&[&classes, &x], |t| sparse_softmax_cross_entropy_with_logits(&t[0], &t[1]));
    wrong(|| sigmoid_cross_entropy_with_logits(&row, &x));
    wrong(|| sigmoid_cross_entropy_with_logits(ints([1]), ints([1])));
    right(&[&half, &half], |t| sigmoid_cross_entropy_with_logits(&t[0], &t[1]));
}

#[test]
fn convolution_and_pooling() {
    let _ledger = ledger_check();
    let (x, filters, y) = (floats([1, 3, 3, 2]), floats([2, 2, 2, 1]), floats([1, 2, 2, 1]));
    let (wide, options) = (cast(&filters, DType::F64).unwrap(), ConvOptions::default());
    let grouped = ConvOptions { groups: 2, ..ConvOptions::default() };
    wrong(|| conv2d(&x, &filters, &[1], "ROUND"));
    wrong(|| conv2d(&x, floats([2, 2, 3, 1]), &[1], "SAME"));
    wrong(|| conv2d(&x, floats([2, 2, 1]), &[1], "SAME"));
    right(&[&x, &wide], |t| conv2d(&t[0], &t[1], &[1], "SAME"));
    right(&[&wide, &x], |t| conv2d(&t[1], &t[0], &[2], "VALID"));
    wrong(|| conv2d_input_gradient([1, 3, 3, 2], &filters, &y, &[1], "ROUND"));
    wrong(|| conv2d_input_gradient([1, 3, 3, 2], &filters, &x, &[1], "VALID"));
    right(&[&wide, &y], |t| conv2d_input_gradient([1, 3, 3, 2], &t[0], &t[1], &[1], "VALID"));
    wrong(|| conv2d_filter_gradient(&x, [2, 2, 2, 1], &y, &[1], "ROUND"));
    wrong(|| conv2d_filter_gradient(&x, [2, 2, 2, 1], &x, &[1], "VALID"));
    right(&[&x, &y], |t| conv2d_filter_gradient(&t[0], [2, 2, 2, 1], &t[1], &[1], "VALID"));
    wrong(|| depthwise_conv2d(&x, floats([2, 2, 2]), &options));
    wrong(|| depthwise_conv2d(&x, &filters, &grouped));
    wrong(|| depthwise_conv2d(&x, floats([2, 2, 3, 1]), &options));
    right(&[&x, &wide], |t| depthwise_conv2d(&t[0], &t[1], &options));
    wrong(|| max_pool(&x, &[2], &[1], "ROUND"));
    wrong(|| max_pool(&x, &[5, 5], &[1], "VALID"));
    right(&[&x], |t| max_pool(&t[0], &[2, 2], &[1], "SAME"));
    wrong(|| avg_pool(&x, &[2], &[1], "ROUND"));
    wrong(|| avg_pool(&x, &[5, 5], &[1], "VALID"));
    right(&[&x], |t| avg_pool(&t[0], &[2, 2], &[1], "SAME"));
}

#[test]
fn products_and_solutions() {
    let _ledger = ledger_check();
    let (a, cube, i) = (floats([2, 2]), floats([2, 3, 2]), ints([1, 2]));
    wrong(|| tensordot(&a, &cube, 3));
    wrong(|| tensordot(&a, &cube, (&[0][..], &[1][..])));
    right(&[&a, &cube], |t| tensordot(&t[0], &t[1], (&[0][..], &[2][..])));
    right(&[&i, &a], |t| tensordot(&t[0], &t[1], 1));
    wrong(|| einsum("ij,jk", std::slice::from_ref(&a)));
    wrong(|| einsum("iij->i", std::slice::from_ref(&cube)));
    // With and without a sum, and with an axis that occurs twice.
    for equation in ["ijk,lk->jil", "ijk,li->kjli", "iji,ik->j"] {
        right(&[&cube, &a], |t| einsum(equation, t));
    }
    for equation in ["iji->ji", "iji->j", "ijk->k", "ijk->kji", "...i->i..."] {
        right(&[&cube], |t| einsum(equation, t));
    }
    right(&[&i, &a], |t| einsum("i,ij->j", t));
    wrong(|| solve(&cube, &a));
    wrong(|| solve(Tensor::from_slice(&[1.0f32, 1.0, 1.0, 1.0], [2, 2]).unwrap(), &a));
    right(&[&a, &i], |t| solve(&t[0], &t[1]));
    right(&[&a, &a], |t| solve(&t[0], &t[1]));
    wrong(|| triangular_solve(&a, &cube, true, false, false));
    right(&[&a, &i], |t| triangular_solve(&t[0], &t[1], true, false, false));
    wrong(|| lstsq(&a, &i, -1.0));
    right(&[&a, &i], |t| lstsq(&t[0], &t[1], None));
}

#[test]
fn parts_and_indices() {
    let _ledger = ledger_check();
    let (x, i, mask) = (floats([2, 3]), ints([2, 0, 2]), Tensor::from_slice(&[true, false], [2]).unwrap());
    wrong(|| split(&x, 2, 1));
    wrong(|| split(&x, 2, 2));
    right(&[&x], |t| split(&t[0], [1, 2], 1));
    wrong(|| unstack(&x, 2));
    right(&[&x], |t| unstack(&t[0], 1));
    wrong(|| stack(&[x.clone(), i.clone()], 0));
    right(&[&x, &x], |t| stack(t, 1));
    wrong(|| repeat(&x, &[1, 2], 1));
    right(&[&x], |t| repeat(&t[0], &[2], None));
    right(&[&x], |t| repeat(&t[0], &[1, 0, 2], 1));
    wrong(|| one_hot(&x, 3, 1, 0, -1, DType::F32));
    right(&[&i], |t| one_hot(&t[0], 3, 1, 0, -1, DType::F32));
    right(&[&i], |t| unique(&t[0]));
    wrong(|| bincount(&x, None, 0));
    right(&[&i], |t| bincount(&t[0], None, 0));
    wrong(|| segment_sum(&x, ints([1, 0])));
    right(&[&x, &ints([0, 1])], |t| segment_sum(&t[0], &t[1]));
    wrong(|| boolean_mask(&x, &mask, 1));
    right(&[&x, &mask], |t| boolean_mask(&t[0], &t[1], 0));
    wrong(|| logaddexp(&x, floats([4])));
    right(&[&x, &i], |t| logaddexp(&t[0], &t[1]));
    right(&[&x], |t| logaddexp(&t[0], 0.5));
}

#[test]
fn gradients_dense_and_sparse() {
    let _ledger = ledger_check();
    let (x, i) = (floats([3, 2]), ints([2, 0, 2]));
    let long = cast(&i, DType::I64).unwrap();
    let rows = |t: &Tensor, i: &Tensor| IndexedSlices::new(t.clone(), i.clone(), [4, 2]).unwrap();
    let sparse = |t: &[Tensor]| Gradient::from(rows(&t[0], &t[1]));
    let dense = |t: &[Tensor]| Gradient::from(t[0].clone());
    let both = |t: &[Tensor]| vec![Some(sparse(t)), None, Some(dense(t))];
    wrong(|| IndexedSlices::new(x.clone(), i.clone(), [4, 3]));
    wrong(|| IndexedSlices::join(Vec::new()));
    right(&[&x, &i, &long], |t| IndexedSlices::join(vec![rows(&t[0], &t[1]), rows(&t[0], &t[2])]));
    right(&[&x, &i], |t| rows(&t[0], &t[1]).coalesce());
    right(&[&x, &i], |t| sparse(t).dense());
    right(&[&x, &i], |t| sparse(t).scale(0.5));
    right(&[&x], |t| dense(t).scale(0.5));
    wrong(|| Gradient::from(rows(&x, &i)).clip_by_value(1.0, 2.0));
    right(&[&x, &i], |t| sparse(t).clip_by_value(-1.0, 1.0));
    right(&[&x], |t| dense(t).clip_by_value(-1.0, 1.0));
    wrong(|| Gradient::from(x.clone()).clip_by_norm(0.0));
    right(&[&x], |t| dense(t).clip_by_norm(1.0));
    right(&[&x, &i], |t| Gradient::global_norm(&both(t)));
    wrong(|| Gradient::clip_by_global_norm(Vec::new(), f64::NAN));
    right(&[&x, &i], |t| Gradient::clip_by_global_norm(both(t), 1.0));
}

/// The same for every op of the table, where the caller is the table entry.
#[test]
fn every_op_of_the_table() {
    let _ledger = ledger_check();
    let mut rows: HashMap<&str, u32> = HashMap::new();
    let mut blamed = Vec::new();
    let mut check = |name: &str, at: Option<Location>| {
        let Some(at) = at else { return blamed.push(format!("{name}: no line")) };
        let first = *rows.entry(at.file()).or_insert_with(|| {
            let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), at.file());
            let source = std::fs::read_to_string(path).unwrap_or_default();
            source
                .lines()
                .position(|line| line.contains("OpEntry::new("))
                .map_or(u32::MAX, |line| line as u32)
        });
        if at.line() <= first {
            blamed.push(format!("{name}: {at}"));
        }
    };
    for entry in table() {
        let call = |args: &[ArgValue]| (entry.call)(&Args(args));
        for args in entry.samples.list() {
            let mut tensors = Vec::new();
            let _ = with_tensors(&args, &mut |tensor| {
                tensors.push(tensor.clone());
                tensor.clone()
            });
            let specs: Vec<Spec> = tensors.iter().map(|tensor| tensor.spec().clone()).collect();
            let traced = trace(&specs, |symbols| {
                let mut symbols = symbols.iter();
                call(&with_tensors(&args, &mut |_| symbols.next().unwrap().clone()))
            });
            match traced {
                Ok(traced) => traced.graph.nodes.iter().for_each(|node| check(entry.name, Some(node.at))),
                Err(error) => check(entry.name, error.location()),
            }
            if specs.iter().map(Spec::bytes).sum::<usize>() > 1000 {
                continue;
            }
            let before = allocations_on_thread();
            drop(call(&args).unwrap());
            for n in 0..allocations_on_thread() - before {
                let fault = fail_nth(n);
                let error = call(&args).expect_err("an allocation fails");
                drop(fault);
                check(entry.name, error.location());
            }
        }
        for bad in (entry.invalid_args)() {
            // An argument of the wrong kind is rejected by `invoke`, not by the function.
            let error = call(&bad.args).expect_err("the argument is wrong");
            if error.location().is_some() {
                check(entry.name, error.location());
            }
        }
    }
    blamed.sort();
    blamed.dedup();
    assert!(blamed.is_empty(), "not blamed on the caller:\n{}", blamed.join("\n"));
}

fn with_tensors(args: &[ArgValue], change: &mut impl FnMut(&Tensor) -> Tensor) -> Vec<ArgValue> {
    let mut changed = args.to_vec();
    for arg in &mut changed {
        match arg {
            ArgValue::Tensor(tensor) => *tensor = change(tensor),
            ArgValue::Tensors(tensors) => tensors.iter_mut().for_each(|tensor| *tensor = change(tensor)),
            _ => {}
        }
    }
    changed
}
