//! Training steps: each gradient is consumed as soon as it is computed, and the packing has no gap.

mod common;

use common::{check, exclusive};
use std::collections::HashSet;
use taut_autodiff::{DenseGradient, GradientTape, gradients};
use taut_core::graph::{ValueId, value_of};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::sparse_softmax_cross_entropy_with_logits;
use taut_core::ops::reduce::mean;
use taut_core::ops::sample;
use taut_core::ops::unary::{relu, sqrt};
use taut_core::{DType, Graph, Result, Spec, Tensor, trace};
use taut_memory::testing::ledger_check;
use taut_plan::{Home, PlanRequest, Program};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Descent,
    Adam,
}

/// A training step of a perceptron: inputs are the images, the labels, and per parameter its value and its optimizer state; outputs
/// are the loss and the new values of those.
struct Training {
    graph: Graph,
    specs: Vec<Spec>,
    gradients: HashSet<ValueId>,
    gradient_bytes: usize,
    request: PlanRequest,
}

fn training(batch: usize, sizes: &[usize], rule: Rule, by_tape: bool) -> Training {
    let mut specs = vec![Spec::new(DType::F32, [batch, sizes[0]]), Spec::new(DType::I32, [batch])];
    let copies = if rule == Rule::Adam { 3 } else { 1 };
    for pair in sizes.windows(2) {
        for spec in [Spec::new(DType::F32, [pair[0], pair[1]]), Spec::new(DType::F32, [pair[1]])] {
            specs.extend(std::iter::repeat_n(spec, copies));
        }
    }
    let (mut found, mut gradient_bytes) = (HashSet::new(), 0);
    let graph = trace(&specs, |inputs| {
        let (x, labels, state) = (&inputs[0], &inputs[1], &inputs[2..]);
        let parameters: Vec<Tensor> = state.iter().step_by(copies).cloned().collect();
        let tape = by_tape.then(GradientTape::new);
        if let Some(tape) = &tape {
            tape.watch(&parameters);
        }
        let mut h = x.clone();
        for (i, pair) in parameters.chunks(2).enumerate() {
            h = add(matmul(&h, &pair[0])?, &pair[1])?;
            if i + 2 < sizes.len() {
                h = relu(h)?;
            }
        }
        let loss = mean(sparse_softmax_cross_entropy_with_logits(labels, h)?, None, false)?;
        let grads = match tape {
            Some(tape) => tape.gradient(&loss, &parameters)?,
            None => gradients([&loss], &parameters)?,
        };
        let mut outputs = vec![loss];
        for (state, gradient) in state.chunks(copies).zip(grads) {
            let gradient = gradient.dense()?;
            found.insert(value_of(&gradient).unwrap());
            gradient_bytes += gradient.spec().bytes();
            outputs.extend(update(rule, state, &gradient)?);
        }
        Ok(outputs)
    })
    .unwrap()
    .graph;
    let updates = (1..graph.outputs.len()).map(|output| (output, output + 1)).collect();
    let request = PlanRequest { updates, ..PlanRequest::default() };
    Training { graph, specs, gradients: found, gradient_bytes, request }
}

fn update(rule: Rule, state: &[Tensor], gradient: &Tensor) -> Result<Vec<Tensor>> {
    if rule == Rule::Descent {
        return Ok(vec![sub(&state[0], mul(gradient, 0.1)?)?]);
    }
    let m = add(mul(&state[1], 0.9)?, mul(gradient, 0.1)?)?;
    let v = add(mul(&state[2], 0.999)?, mul(mul(gradient, gradient)?, 0.001)?)?;
    let step = div(mul(&m, 0.01)?, add(sqrt(&v)?, 1e-7)?)?;
    Ok(vec![sub(&state[0], step)?, m, v])
}

/// The most bytes of gradients that are alive at once.
fn gradients_alive(program: &Program, gradients: &HashSet<ValueId>) -> usize {
    let at = |step: usize| {
        let alive = program.storages.iter().filter(|s| s.start <= step && step < s.end);
        let alive = alive.filter(|s| matches!(s.home, Home::Arena(_)) && gradients.contains(&s.value));
        alive.map(|s| s.bytes).sum::<usize>()
    };
    (0..program.steps.len()).map(at).max().unwrap_or(0)
}

#[test]
fn a_training_step_computes_what_the_graph_computes() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    for (rule, by_tape) in [(Rule::Descent, true), (Rule::Adam, true), (Rule::Adam, false)] {
        let training = training(4, &[8, 16, 16, 3], rule, by_tape);
        let inputs: Vec<Tensor> = (training.specs.iter())
            .map(|spec| match spec.dtype {
                DType::F32 => sample::tensor(DType::F32, &spec.shape, 0.1, 1.0),
                _ => Tensor::from_slice(&[0i32, 2, 1, 2], [4]).unwrap(),
            })
            .collect();
        check(&training.graph, &inputs, &training.request);
    }
}

#[test]
fn gradients_are_never_all_alive() {
    let (_ledger, _exclusive) = (ledger_check(), exclusive());
    for rule in [Rule::Descent, Rule::Adam] {
        for by_tape in [false, true] {
            let training = training(128, &[784, 512, 512, 10], rule, by_tape);
            let program = Program::plan(&training.graph, &training.request).unwrap();
            program.verify().unwrap();
            assert!(program.packing_gap() == 0.0, "{}", program.packing);
            let largest = 784 * 512 * 4;
            let alive = gradients_alive(&program, &training.gradients);
            assert!(alive <= largest + 512 * 4, "{rule:?}: {alive} of {} bytes", training.gradient_bytes);
        }
    }
}
