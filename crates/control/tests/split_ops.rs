//! The rows of every op, derived from the op table: in parts, joined or summed, an op computes what it computes at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use taut_autodiff::GradientTape;
use taut_control::split::SplitProof;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::moveaxis;
use taut_core::ops::unary::sin;
use taut_core::ops::{ArgValue, OpEntry};
use taut_core::{DType, Graph, Result, Spec, Tensor, trace};
use taut_testing::{assert_same_bits, close, every_row, values};

/// Samples per op: floats before integers, and those with most dimensions first, since shapes decide how rows are treated.
const SAMPLES: usize = 12;

fn tensors(args: &[ArgValue]) -> Vec<Tensor> {
    let mut found = Vec::new();
    ArgValue::with_tensors(args, &mut |tensor| {
        found.push(tensor.clone());
        tensor.clone()
    });
    found
}

/// Few samples in 32 bits, which have rows to split.
fn samples(entry: &OpEntry) -> Vec<Vec<ArgValue>> {
    let fits = |args: &Vec<ArgValue>| {
        let tensors = tensors(args);
        let is_plain = |t: &Tensor| !t.dtype().is_float() || t.dtype() == DType::F32;
        tensors.iter().any(|t| t.rank() > 0 && t.shape().iter().any(|&dim| dim > 1))
            && tensors.iter().all(|t| is_plain(t) && !t.shape().is_empty())
    };
    let mut samples: Vec<Vec<ArgValue>> = entry.samples.list().into_iter().filter(fits).collect();
    samples.sort_by_key(|args| {
        let tensors = tensors(args);
        let has_floats = tensors.iter().any(|t| t.dtype() == DType::F32);
        (!has_floats, std::cmp::Reverse(tensors.iter().map(Tensor::rank).max()))
    });
    samples.truncate(SAMPLES);
    samples
}

/// The graph of a call. The axis that holds rows is the first of the inputs in `moved`, and is moved to where the op expects
/// it. With `gradients`, the gradients of the floats among the inputs are further results.
fn graph(
    entry: &OpEntry,
    args: &[ArgValue],
    (axis, moved): (usize, &[usize]),
    gradients: bool,
) -> Result<(Graph, Vec<Tensor>)> {
    let mut inputs = tensors(args);
    for &i in moved {
        inputs[i] = moveaxis(&inputs[i], &[axis as isize], &[0])?.copy()?;
    }
    let specs: Vec<Spec> = inputs.iter().map(|input| input.spec().clone()).collect();
    let traced = trace(&specs, |inputs| {
        let tape = GradientTape::new();
        let floats: Vec<Tensor> = inputs.iter().filter(|t| t.dtype().is_float()).cloned().collect();
        if gradients {
            tape.watch(&floats);
        }
        let mut own = Vec::new();
        for (i, input) in inputs.iter().enumerate() {
            let is_moved = moved.contains(&i);
            own.push(if is_moved { moveaxis(input, &[0], &[axis as isize])? } else { input.clone() });
        }
        let mut own = own.into_iter();
        let args = ArgValue::with_tensors(args, &mut |_| own.next().unwrap());
        let mut results = entry.invoke(&args)?;
        if gradients {
            let floats_of = |t: &&Tensor| t.dtype().is_float();
            let targets = results.iter().filter(floats_of).map(|t| sum(sin(t)?, None, false));
            let targets = targets.collect::<Result<Vec<_>>>()?;
            for gradient in tape.gradient(&targets, &floats)?.into_iter().flatten() {
                results.push(gradient.dense()?);
            }
        }
        Ok(results)
    })?;
    Ok((traced.graph, inputs))
}

/// The names of the ops that parts compute.
fn body_ops(graph: &Graph) -> Vec<&'static str> {
    let loops = graph.nodes.iter().filter(|node| node.op.name() == "micro_batches");
    let bodies = loops.filter_map(|node| Some(node.op.subgraphs()?.graphs()[0].1));
    bodies.flat_map(|body| body.nodes.iter().map(|node| node.op.name())).collect()
}

/// The inputs that are split together along an axis: one alone, or all that have the same size there.
fn row_inputs(inputs: &[Tensor], axis: usize) -> Vec<Vec<usize>> {
    let size = |i: usize| inputs[i].shape().get(axis).copied().filter(|&size| size > 1);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for first in (0..inputs.len()).filter(|&i| size(i).is_some()) {
        sets.push(vec![first]);
        sets.push((0..inputs.len()).filter(|&i| size(i) == size(first)).collect());
    }
    sets.sort();
    sets.dedup();
    sets
}

fn check(entry: &OpEntry, args: &[ArgValue], gradients: bool, used: &RefCell<BTreeSet<&'static str>>) {
    let inputs = tensors(args);
    for axis in 0..inputs.iter().map(Tensor::rank).max().unwrap_or(0) {
        for rows in row_inputs(&inputs, axis) {
            let (graph, inputs) = graph(entry, args, (axis, &rows), gradients).unwrap();
            let proof = match SplitProof::new(&graph, &rows) {
                Ok(proof) => proof,
                Err(refusal) => {
                    eprintln!("{} is not split along axis {axis} of {rows:?}: {refusal}", entry.name);
                    continue;
                }
            };
            let want: Vec<Vec<f64>> = graph.run(&inputs).unwrap().iter().map(values).collect();
            let mut parts = vec![2, proof.rows()];
            parts.dedup();
            for parts in parts {
                let split = proof.split(parts).unwrap();
                split.verify().unwrap();
                let got = split.run(&inputs).unwrap_or_else(|error| panic!("{args:?}: {error}\n{split}"));
                for (got, want) in got.iter().map(values).zip(&want) {
                    let what = || format!("rows of {rows:?} on axis {axis}, {parts} parts, {args:?}");
                    assert!(
                        close(&got, want, 2e-5),
                        "{}: got {got:?}, want {want:?}\n{graph}\n{split}",
                        what()
                    );
                    if entry.group() == "random" || entry.name == "dropout" {
                        assert_same_bits(&got, want);
                    }
                }
                used.borrow_mut().extend(body_ops(&split));
            }
        }
    }
}

fn check_table(gradients: bool) -> BTreeSet<&'static str> {
    let used = RefCell::new(BTreeSet::new());
    every_row(|entry| {
        if entry.has_data_dependent_shape {
            return;
        }
        for args in samples(entry) {
            check(entry, &args, gradients, &used);
        }
    });
    used.into_inner()
}

#[track_caller]
fn assert_used(used: &BTreeSet<&'static str>, names: &[&str]) {
    let missing: Vec<&&str> = names.iter().filter(|name| !used.contains(**name)).collect();
    let all_rows = std::env::var("TAUT_ROWS").is_ok();
    assert!(missing.is_empty() || all_rows, "no part computed {missing:?}, only {used:?}");
}

#[test]
fn ops_compute_in_parts_what_they_compute_at_once() {
    let used = check_table(false);
    let names = "add matmul conv max_pool avg_pool softmax layer_norm group_norm batch_norm attention \
        embedding_lookup gather gather_nd take_along_axis one_hot concat pad cumsum argmax tile repeat sort top_k tril \
        unsorted_segment_sum dropout stateless_categorical softmax_cross_entropy_with_logits \
        sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits sum mean max reshape transpose slice \
        broadcast_to expand_dims";
    assert_used(&used, &names.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn gradients_compute_in_parts_what_they_compute_at_once() {
    let used = check_table(true);
    let names = "attention_gradient conv_input_gradient conv_filter_gradient max_pool_scatter avg_pool_gradient \
        pack_bits keep_bits tensor_scatter_add add_along_axis subtract_along_axis";
    assert_used(&used, &names.split_whitespace().collect::<Vec<_>>());
}
