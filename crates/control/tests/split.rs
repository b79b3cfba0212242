//! Steps that compute their batch in parts: the same results as at once, in less memory, planned to the byte.

use taut_autodiff::GradientTape;
use taut_control::recurrent::lstm;
use taut_control::scan;
use taut_control::split::{MixedRows, SplitProof};
use taut_core::graph::Origin;
use taut_core::ops::binary::{add, div, equal, maximum, mul, sub};
use taut_core::ops::contract::{conv2d, matmul, matmul_with, max_pool};
use taut_core::ops::creation::{full, ones};
use taut_core::ops::index::{gather, pack_bits};
use taut_core::ops::nn::{
    attention, dropout, embedding_lookup, group_norm, layer_norm, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
};
use taut_core::ops::random::{stateless_normal, stateless_permutation};
use taut_core::ops::reduce::{argmax, max, mean, sum};
use taut_core::ops::shape::{broadcast_to, reshape, slice, transpose};
use taut_core::ops::unary::{cast, check_numerics, gelu, relu, sqrt, square, tanh};
use taut_core::{DType, Effects, Graph, Op, Result, Spec, Specs, Tensor, apply, s, trace};
use taut_exec::{Executable, ExecutableOptions, RunInput};
use taut_kernels::{Arg, ViewMut, elementwise};
use taut_memory::live_bytes;
use taut_plan::PlanRequest;
use taut_testing::{assert_same_bits, close, exclusive, measured, values};

/// A step: its graph, the inputs that hold the batch, and pairs of an output and the input that it updates.
struct Step {
    graph: Graph,
    batch: Vec<usize>,
    updates: Vec<(usize, usize)>,
    inputs: Vec<Tensor>,
}

impl Step {
    /// Traces a step on these inputs, of which the first `batch` have the rows.
    fn new(
        inputs: Vec<Tensor>,
        batch: usize,
        updates: &[(usize, usize)],
        body: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Step {
        let specs: Vec<Spec> = inputs.iter().map(|input| input.spec().clone()).collect();
        let graph = trace(&specs, body).unwrap().graph;
        Step { graph, batch: (0..batch).collect(), updates: updates.to_vec(), inputs }
    }

    fn proof(&self) -> SplitProof {
        SplitProof::new(&self.graph, &self.batch)
            .unwrap_or_else(|refusal| panic!("{refusal}\n{}", self.graph))
    }

    /// The results of a compiled run and its peak; the plan must have the same peak.
    fn run(&self, graph: &Graph) -> (Vec<Vec<f64>>, usize) {
        let request = PlanRequest { updates: self.updates.clone(), ..PlanRequest::default() };
        let options = ExecutableOptions { poison_dead_memory: true, ..ExecutableOptions::default() };
        let executable = Executable::compile(graph, options, &request).unwrap();
        let mut inputs: Vec<Tensor> = self.inputs.iter().map(|input| input.copy().unwrap()).collect();
        let is_updated = |i: usize| self.updates.iter().any(|&(_, input)| input == i);
        let mut bound: Vec<RunInput<'_>> = (inputs.iter_mut().enumerate())
            .map(|(i, input)| if is_updated(i) { RunInput::Updated(input) } else { RunInput::Read(input) })
            .collect();
        let (outputs, peak) = measured(|| executable.run(&mut bound).unwrap());
        assert_eq!(peak, executable.program().peak_bytes(), "{}", executable.program());
        drop(bound);
        let mut outputs = outputs.into_iter();
        let result = |output: usize| match self.updates.iter().find(|update| update.0 == output) {
            Some(&(_, input)) => values(&inputs[input]),
            None => values(&outputs.next().unwrap()),
        };
        ((0..graph.outputs.len()).map(result).collect(), peak)
    }

    /// Checks that the step computes the same in these numbers of parts; returns the peaks, that of the whole batch first.
    fn check(&self, parts: &[usize], tolerance: f64) -> Vec<usize> {
        let (want, peak) = self.run(&self.graph);
        let (proof, mut peaks) = (self.proof(), vec![peak]);
        for &parts in parts {
            let split = proof.split(parts).unwrap();
            split.verify().unwrap();
            assert!(body(&split).is_some(), "no loop over parts:\n{split}");
            let specs =
                |graph: &Graph, ids: &[_]| ids.iter().map(|&id| graph.spec(id).clone()).collect::<Vec<_>>();
            assert_eq!(specs(&split, &split.inputs), specs(&self.graph, &self.graph.inputs));
            assert_eq!(specs(&split, &split.outputs), specs(&self.graph, &self.graph.outputs));
            let (got, peak) = self.run(&split);
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(close(got, want, tolerance), "output {i} in {parts} parts: {got:?}, want {want:?}");
            }
            peaks.push(peak);
        }
        peaks
    }

    fn refusal(&self) -> MixedRows {
        SplitProof::new(&self.graph, &self.batch).err().expect("the batch must not be split")
    }
}

/// The body of the loop over parts.
fn body(graph: &Graph) -> Option<&Graph> {
    let node = graph.nodes.iter().find(|node| node.op.name() == "micro_batches")?;
    Some(node.op.subgraphs()?.graphs()[0].1)
}

/// Irregular numbers in [-1, 1).
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 1009) as f32 / 504.5 - 1.0;
    Tensor::from_vec((0..count).map(value).collect::<Vec<f32>>(), shape).unwrap()
}

fn integers(shape: &[usize], limit: usize) -> Tensor {
    let count: usize = shape.iter().product();
    Tensor::from_vec((0..count).map(|i| ((i * 31 + 7) % limit) as i32).collect::<Vec<i32>>(), shape).unwrap()
}

fn key(seed: u64) -> Tensor {
    Tensor::from_slice(&[seed, 5], [2]).unwrap()
}

/// The loss and the gradients of these weights.
fn gradients(weights: &[Tensor], loss: impl FnOnce() -> Result<Tensor>) -> Result<(Tensor, Vec<Tensor>)> {
    let tape = GradientTape::new();
    let weights = weights.to_vec();
    tape.watch(&weights);
    let loss = loss()?;
    let found = tape.gradient(&loss, &weights)?;
    let dense = found.into_iter().map(|gradient| gradient.expect("every weight has a gradient").dense());
    Ok((loss, dense.collect::<Result<_>>()?))
}

/// Loss, accuracy and new weights of a step of gradient descent, with clipping by the global norm and weight decay.
fn mlp(batch: usize) -> Step {
    let inputs = vec![
        numbers(&[batch, 12], 1),
        integers(&[batch], 5),
        numbers(&[12, 16], 2),
        numbers(&[16], 3),
        numbers(&[16, 5], 4),
        numbers(&[5], 5),
    ];
    Step::new(inputs, 2, &[(2, 2), (3, 3), (4, 4), (5, 5)], |t| {
        let (x, labels, w) = (&t[0], &t[1], &t[2..]);
        let mut accuracy = None;
        let (loss, gradients) = gradients(w, || {
            let h = relu(add(matmul(x, &w[0])?, &w[1])?)?;
            let logits = add(matmul(h, &w[2])?, &w[3])?;
            let hits = equal(argmax(&logits, 1)?, cast(labels, DType::I64)?)?;
            accuracy = Some(mean(cast(hits, DType::F32)?, None, false)?);
            let loss = mean(sparse_softmax_cross_entropy_with_logits(labels, logits)?, None, false)?;
            add(loss, mul(sum(square(&w[0])?, None, false)?, 1e-3)?)
        })?;
        let squares = gradients.iter().map(|g| sum(square(g)?, None, false)).collect::<Result<Vec<_>>>()?;
        let norm = squares.into_iter().reduce(|a, b| add(a, b).unwrap()).unwrap();
        let scale = div(0.5, maximum(sqrt(norm)?, 0.5)?)?;
        let mut outputs = vec![loss, accuracy.unwrap()];
        for (w, g) in w.iter().zip(&gradients) {
            outputs.push(sub(w, mul(mul(g, &scale)?, 0.1)?)?);
        }
        Ok(outputs)
    })
}

#[test]
fn a_dense_network_has_the_same_updates_in_parts() {
    let _turn = exclusive();
    let before = live_bytes();
    for (batch, parts) in [(12, &[2, 3, 4, 12][..]), (10, &[3, 4, 7]), (2, &[2])] {
        mlp(batch).check(parts, 1e-5);
    }
    assert_eq!(live_bytes(), before);
}

#[test]
fn the_peak_falls_with_the_number_of_parts() {
    let _turn = exclusive();
    let peaks = mlp(512).check(&[2, 4, 8, 16], 1e-4);
    assert!(peaks.windows(2).all(|pair| pair[1] < pair[0]), "{peaks:?}");
    assert!(peaks[4] * 4 < peaks[0], "{peaks:?}");
}

#[test]
fn adam_updates_its_slots_after_the_loop() {
    let _turn = exclusive();
    let (w, zeros) = (numbers(&[6, 3], 2), || full([6, 3], 0.0, DType::F32).unwrap());
    let inputs = vec![numbers(&[8, 6], 1), numbers(&[8, 3], 7), w, zeros(), zeros()];
    let step = Step::new(inputs, 2, &[(1, 2), (2, 3), (3, 4)], |t| {
        let w = &t[2];
        let (loss, g) =
            gradients(&t[2..3], || mean(square(sub(tanh(matmul(&t[0], w)?)?, &t[1])?)?, None, false))?;
        let m = add(mul(&t[3], 0.9)?, mul(&g[0], 0.1)?)?;
        let v = add(mul(&t[4], 0.999)?, mul(square(&g[0])?, 0.001)?)?;
        let new = sub(w, mul(div(&m, add(sqrt(&v)?, 1e-8)?)?, 0.01)?)?;
        Ok(vec![loss, new, m, v])
    });
    step.check(&[2, 3, 8], 1e-5);
    let split = step.proof().split(2).unwrap();
    let names: Vec<&str> = body(&split).unwrap().nodes.iter().map(|node| node.op.name()).collect();
    assert!(!names.contains(&"sqrt"), "{names:?}");
}

const VOCABULARY: usize = 11;
const WIDTH: usize = 8;

/// A decoder with one block, dropout, tied embeddings and a mean over the tokens that a mask selects.
fn transformer(batch: usize, length: usize) -> Step {
    let mask: Vec<f32> = (0..batch * length).map(|i| f32::from(u8::from(i % 7 != 2 && i % 5 != 0))).collect();
    let inputs = vec![
        integers(&[batch, length], VOCABULARY),
        integers(&[batch, length], VOCABULARY - 1),
        Tensor::from_vec(mask, [batch, length]).unwrap(),
        key(1),
        key(2),
        numbers(&[VOCABULARY, WIDTH], 1),
        numbers(&[length, WIDTH], 2),
        numbers(&[WIDTH], 3),
        numbers(&[WIDTH], 4),
        numbers(&[WIDTH, 3 * WIDTH], 5),
        numbers(&[WIDTH, 4 * WIDTH], 6),
        numbers(&[4 * WIDTH, WIDTH], 7),
    ];
    let updates: Vec<(usize, usize)> = (5..12).map(|input| (input - 4, input)).collect();
    Step::new(inputs, 3, &updates, |t| {
        let (words, next, mask, w) = (&t[0], &t[1], &t[2], &t[5..]);
        let (loss, gradients) = gradients(w, || {
            let h = add(embedding_lookup(&w[0], words)?, &w[1])?;
            let h = dropout(reshape(h, &[-1, WIDTH as isize])?, 0.25, &t[3])?;
            let normed = layer_norm(&h, Some(&w[2]), Some(&w[3]), 1, 1e-5)?;
            let shape = [batch, length, 3, 2, WIDTH / 2].map(|size| size as isize);
            let qkv = transpose(reshape(matmul(normed, &w[4])?, &shape)?, &[2, 0, 3, 1, 4][..])?;
            let [q, k, v] = [0, 1, 2].map(|part| slice(&qkv, &s![part]));
            let seen = transpose(attention(q?, k?, v?, None, true, None)?, &[0, 2, 1, 3][..])?;
            let h = add(h, reshape(seen, &[-1, WIDTH as isize])?)?;
            let up = dropout(gelu(matmul(&h, &w[5])?, true)?, 0.5, &t[4])?;
            let h = add(h, matmul(up, &w[6])?)?;
            let logits = matmul_with(h, &w[0], false, true)?;
            let losses = sparse_softmax_cross_entropy_with_logits(reshape(next, &[-1])?, logits)?;
            let losses = mul(losses, reshape(mask, &[-1])?)?;
            div(sum(losses, None, false)?, sum(mask, None, false)?)
        })?;
        let mut outputs = vec![loss];
        for (w, g) in w.iter().zip(&gradients) {
            outputs.push(sub(w, mul(g, 0.1)?)?);
        }
        Ok(outputs)
    })
}

#[test]
fn a_transformer_with_dropout_and_a_token_mean_has_the_same_updates_in_parts() {
    let _turn = exclusive();
    transformer(6, 5).check(&[2, 3, 4, 6], 2e-5);
    let peaks = transformer(32, 8).check(&[2, 4, 8], 2e-5);
    assert!(peaks.windows(2).all(|pair| pair[1] < pair[0]), "{peaks:?}");
}

#[test]
fn rows_of_a_table_are_added_to_the_sum_in_place() {
    let _turn = exclusive();
    let inputs = vec![integers(&[6, 3], 9), numbers(&[6, 3, 4], 1), numbers(&[1000, 4], 2)];
    let step = Step::new(inputs, 2, &[(1, 2)], |t| {
        let (loss, g) =
            gradients(&t[2..], || mean(square(sub(embedding_lookup(&t[2], &t[0])?, &t[1])?)?, None, false))?;
        Ok(vec![loss, sub(&t[2], mul(&g[0], 0.5)?)?])
    });
    let peaks = step.check(&[2, 3, 4], 1e-6);
    // One sum of the table's size, and parts that are small beside it.
    assert!(peaks[1] < 4 * 4 * 1000 * 3 / 2, "{peaks:?}");
}

#[test]
fn a_convolutional_network_has_the_same_gradients_in_parts() {
    let _turn = exclusive();
    let inputs = vec![
        numbers(&[5, 8, 8, 2], 1),
        numbers(&[5, 4], 2),
        numbers(&[3, 3, 2, 4], 3),
        numbers(&[4], 4),
        numbers(&[4], 5),
        numbers(&[36, 4], 6),
    ];
    let step = Step::new(inputs, 2, &[], |t| {
        let w = &t[2..];
        let (loss, mut outputs) = gradients(w, || {
            let h = conv2d(&t[0], &w[0], &[1, 1], "VALID")?;
            let h = group_norm(h, Some(&w[1]), Some(&w[2]), 2, -1, 1e-5)?;
            let h = max_pool(relu(h)?, &[2, 2], &[2, 2], "VALID")?;
            let logits = matmul(reshape(h, &[5, -1])?, &w[3])?;
            let losses = softmax_cross_entropy_with_logits(&t[1], logits)?;
            mean(losses, None, false)
        })?;
        outputs.push(loss);
        Ok(outputs)
    });
    step.check(&[2, 3, 5], 2e-5);
}

#[test]
fn a_recurrent_network_has_the_same_gradients_in_parts() {
    let _turn = exclusive();
    let inputs = vec![
        numbers(&[6, 5, 3], 1),
        numbers(&[6, 4], 2),
        numbers(&[3, 4], 3),
        numbers(&[4, 4], 4),
        numbers(&[4], 5),
    ];
    let step = Step::new(inputs, 2, &[], |t| {
        let w = &t[2..];
        let (loss, mut outputs) = gradients(w, || {
            let start = full([6, 4], 0.0, DType::F32)?;
            let steps = transpose(&t[0], &[1, 0, 2][..])?;
            let cell = |h: Tensor, x: Tensor| {
                let h = tanh(add(add(matmul(x, &w[0])?, matmul(h, &w[1])?)?, &w[2])?)?;
                Ok((h.clone(), h))
            };
            let (last, all) = scan(cell, start, steps)?;
            let error = mean(square(sub(last, &t[1])?)?, None, false)?;
            add(error, mul(mean(square(all)?, None, false)?, 0.1)?)
        })?;
        outputs.push(loss);
        Ok(outputs)
    });
    step.check(&[2, 3, 4], 1e-5);
    let split = step.proof().split(2).unwrap();
    let loops = body(&split).unwrap().nodes.iter().filter(|node| node.op.subgraphs().is_some());
    assert_eq!(loops.count(), 2, "the forward loop and the backward loop are in the body:\n{split}");
}

/// A step of the loop reads a row of a table that all parts share, and needs only its part of that row.
#[test]
fn rows_that_a_loop_gathers_from_a_shared_table_are_cut() {
    let _turn = exclusive();
    let inputs = vec![numbers(&[6, 2], 1), numbers(&[4, 6, 2], 2), integers(&[3], 4)];
    let step = Step::new(inputs, 1, &[], |t| {
        let add_row = |h: Tensor, index: Tensor| Ok((add(h, gather(&t[1], index, 0, 0)?)?, ()));
        let (last, ()) = scan(add_row, t[0].clone(), t[2].clone())?;
        Ok(vec![tanh(last)?])
    });
    step.check(&[2, 3, 4], 1e-6);
}

#[test]
fn an_lstm_has_the_same_gradients_in_parts() {
    let _turn = exclusive();
    let inputs = vec![
        numbers(&[5, 4, 3], 1),
        numbers(&[5, 2], 2),
        numbers(&[3, 8], 3),
        numbers(&[2, 8], 4),
        numbers(&[8], 5),
    ];
    let step = Step::new(inputs, 2, &[], |t| {
        let w = &t[2..];
        let (loss, mut outputs) = gradients(w, || {
            let start = || full([5, 2], 0.0, DType::F32);
            let steps = transpose(&t[0], &[1, 0, 2][..])?;
            let (_, (last, _)) = lstm(&steps, (start()?, start()?), &w[0], &w[1], &w[2])?;
            mean(square(sub(last, &t[1])?)?, None, false)
        })?;
        outputs.push(loss);
        Ok(outputs)
    });
    step.check(&[2, 5], 1e-5);
}

#[test]
fn rows_have_the_same_random_numbers_in_any_part() {
    let _turn = exclusive();
    let step = Step::new(vec![numbers(&[7, 3], 1), key(3), key(4)], 1, &[], |t| {
        let noise = stateless_normal(&t[1], [7, 3], 0.0, 1.0, DType::F32)?;
        Ok(vec![dropout(&t[0], 0.5, &t[2])?, add(&t[0], noise)?])
    });
    let want: Vec<Vec<f64>> = step.graph.run(&step.inputs).unwrap().iter().map(values).collect();
    for parts in [2, 3, 7] {
        let split = step.proof().split(parts).unwrap();
        let (got, _) = step.run(&split);
        got.iter().zip(&want).for_each(|(got, want)| assert_same_bits(got, want));
        // A part draws its own numbers.
        let drawn: Vec<&Spec> = split
            .nodes
            .iter()
            .filter(|node| node.op.name().contains("normal"))
            .map(|node| split.spec(node.outputs[0]))
            .collect();
        assert!(drawn.is_empty(), "{split}");
    }
}

#[test]
fn values_of_the_batch_size_are_cut_into_rows() {
    let _turn = exclusive();
    let weights = numbers(&[6], 9);
    let step = Step::new(vec![numbers(&[6, 4], 1), numbers(&[4, 6], 2), key(1)], 1, &[], |t| {
        let constant = mul(&t[0], reshape(&weights, &[6, 1])?)?;
        let filled = add(&t[0], ones([6, 4], DType::F32)?)?;
        let repeated = mul(&t[0], broadcast_to(mul(sum(&t[1], None, false)?, 0.5)?, [6, 1])?)?;
        let transposed = sub(&t[0], transpose(&t[1], None)?)?;
        let order = stateless_permutation(&t[2], 6)?;
        let permuted = mul(&t[0], reshape(cast(order, DType::F32)?, &[6, 1])?)?;
        Ok(vec![constant, filled, repeated, transposed, permuted])
    });
    step.check(&[2, 3, 4, 6], 1e-6);
}

#[test]
fn results_with_rows_on_another_axis_are_joined() {
    let _turn = exclusive();
    let step = Step::new(vec![numbers(&[5, 2, 3], 1)], 1, &[], |t| {
        let moved = transpose(tanh(&t[0])?, &[1, 0, 2][..])?;
        let flat = reshape(&t[0], &[10, 3])?;
        Ok(vec![moved, square(flat)?])
    });
    step.check(&[2, 3, 5], 1e-6);
}

#[test]
fn sums_of_half_floats_are_kept_in_32_bits() {
    let _turn = exclusive();
    let x = cast(numbers(&[64, 3], 1), DType::F16).unwrap();
    let step = Step::new(vec![x], 1, &[], |t| Ok(vec![sum(square(&t[0])?, 0, false)?]));
    step.check(&[2, 64], 2e-3);
    let split = step.proof().split(64).unwrap();
    let body = body(&split).unwrap();
    assert_eq!(body.spec(body.outputs[0]).dtype, DType::F32);
}

#[test]
fn what_needs_all_rows_but_no_row_depends_on_comes_after_the_loop() {
    let _turn = exclusive();
    let step = Step::new(vec![numbers(&[6, 4], 1), numbers(&[4, 1], 2)], 1, &[], |t| {
        let scores = reshape(tanh(matmul(&t[0], &t[1])?)?, &[6])?;
        Ok(vec![max(&scores, None, false)?, mean(scores, None, false)?])
    });
    step.check(&[2, 4], 1e-6);
}

#[test]
fn checks_of_rows_run_in_every_part() {
    let _turn = exclusive();
    let mut step = Step::new(vec![numbers(&[6, 4], 1)], 1, &[], |t| {
        let x = check_numerics(square(&t[0])?, "squares")?;
        Ok(vec![sum(x, None, false)?])
    });
    step.check(&[3], 1e-5);
    let mut bad = values(&step.inputs[0]);
    bad[20] = f64::NAN;
    step.inputs[0] = cast(Tensor::from_vec(bad, [6, 4]).unwrap(), DType::F32).unwrap();
    let split = step.proof().split(3).unwrap();
    let error = split.run(&step.inputs).unwrap_err();
    assert!(error.to_string().contains("squares"), "{error}");
}

#[track_caller]
fn assert_names(refusal: &MixedRows, op: &str, line: u32) {
    let (name, at) = refusal.location().unwrap();
    assert_eq!((name, at.line()), (op, line), "{refusal}");
    assert!(refusal.to_string().contains(&format!("{op} at ")), "{refusal}");
}

#[test]
fn refusals_name_the_op_and_the_line_that_mixes_rows() {
    let _turn = exclusive();
    let inputs = || vec![numbers(&[6, 4], 1), numbers(&[4, 4], 2)];
    let normed = Step::new(inputs(), 1, &[], |t| {
        let h = matmul(&t[0], &t[1])?;
        let mean = mean(&h, 0, true)?;
        Ok(vec![sub(h, mean)?])
    });
    assert_names(&normed.refusal(), "mean", line!() - 3);
    let scaled = Step::new(inputs(), 1, &[], |t| {
        let h = tanh(matmul(&t[0], &t[1])?)?;
        let most = max(&h, 0, false)?;
        Ok(vec![div(h, most)?])
    });
    assert_names(&scaled.refusal(), "max", line!() - 3);
    let pairs = Step::new(inputs(), 1, &[], |t| {
        let h = matmul(&t[0], &t[1])?;
        let similar = matmul_with(&h, &h, false, true)?;
        Ok(vec![matmul(similar, h)?])
    });
    assert_names(&pairs.refusal(), "matmul", line!() - 3);
    let sorted = Step::new(vec![numbers(&[64, 4], 1)], 1, &[], |t| {
        let h = matmul_with(&t[0], &t[0], false, true)?;
        Ok(vec![sum(tanh(h)?, None, false)?])
    });
    assert_names(&sorted.refusal(), "matmul", line!() - 3);
    let bits = Step::new(inputs(), 1, &[], |t| Ok(vec![pack_bits(tanh(&t[0])?)?]));
    assert_names(&bits.refusal(), "pack_bits", line!() - 1);
}

#[test]
fn a_graph_without_a_batch_is_refused() {
    let _turn = exclusive();
    let one = Step::new(vec![numbers(&[1, 4], 1)], 1, &[], |t| Ok(vec![tanh(&t[0])?]));
    assert_eq!(one.refusal(), MixedRows::NoBatch);
    let unread = Step::new(vec![numbers(&[6], 1), numbers(&[4], 2)], 1, &[], |t| Ok(vec![tanh(&t[1])?]));
    assert_eq!(unread.refusal(), MixedRows::NoRows);
    let step = mlp(6);
    for parts in [0, 1, 7] {
        let error = step.proof().split(parts).unwrap_err();
        assert!(error.to_string().contains("the number of parts must be in [2, 6]"), "{error}");
    }
}

/// An op that can be observed.
#[derive(Clone, Debug)]
struct Print;

impl Op for Print {
    fn name(&self) -> &'static str {
        "print"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        elementwise::copy(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }

    fn effects(&self) -> Effects {
        Effects::CHECK | Effects::ORDERED | Effects::NO_CSE
    }
}

#[test]
fn side_effects_on_rows_are_refused_and_on_sums_come_once() {
    let _turn = exclusive();
    let rows = Step::new(vec![numbers(&[6, 4], 1)], 1, &[], |t| {
        let shown = apply(&Print, [tanh(&t[0])?])?;
        Ok(vec![sum(shown, None, false)?])
    });
    assert_names(&rows.refusal(), "print", line!() - 3);
    let sums = Step::new(vec![numbers(&[6, 4], 1)], 1, &[], |t| {
        Ok(vec![apply(&Print, [sum(tanh(&t[0])?, None, false)?])?])
    });
    sums.check(&[3], 1e-6);
    let split = sums.proof().split(3).unwrap();
    assert_eq!(split.nodes.iter().filter(|node| node.op.name() == "print").count(), 1);
}

#[test]
fn weights_are_captured_and_not_copied() {
    let _turn = exclusive();
    let step = mlp(12);
    let split = step.proof().split(3).unwrap();
    let node = split.nodes.iter().find(|node| node.op.name() == "micro_batches").unwrap();
    for input in [2, 4] {
        let id = split.inputs[input];
        assert!(matches!(split.values[id.index()].origin, Origin::Input(_)));
        assert!(node.inputs.contains(&id), "weight {input} is not an input of the loop");
    }
}
