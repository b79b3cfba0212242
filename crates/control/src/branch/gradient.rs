//! The gradient of a branch op: a branch op over the gradients of the branches.

use super::definition::{BackwardBranch, BranchGradient, BranchOp, branch_body};
use crate::vjp::{is_backward_recorded, or_zeros, saved_inputs};
use std::sync::Arc;
use taut_autodiff::joint::{InputGradient, JointGraph, JointRequest, SavedFrom, SplitGraph};
use taut_core::{
    Error, ErrorKind, Gradient, Gradients, Graph, Result, Saves, Set, Spec, Tensor, VjpCall, apply_many,
    record, trace,
};

/// The form of a branch op that saves what the gradients of the wanted captures need.
pub(super) fn forward_with_residuals(op: &BranchOp, wanted: Set) -> Result<BranchOp> {
    let visible = op.outputs.len();
    let active_outputs: Vec<usize> = (0..visible).filter(|&i| op.outputs[i].dtype.is_inexact()).collect();
    let is_active =
        |i: usize| wanted.has(BranchOp::capture_input(i)) && op.capture_spec(i).dtype.is_inexact();
    let active: Vec<bool> = (0..op.captures()).map(is_active).collect();
    let mut forward = op.clone();
    let mut branches: Vec<BackwardBranch> = Vec::new();
    for n in 0..op.branches.len() {
        branches.push(add_residuals(&mut forward, n, &active, &active_outputs, visible)?);
    }
    let (mut saved_captures, mut saved_outputs) = (vec![false; op.captures()], Vec::new());
    for residual in branches.iter().flat_map(|branch| &branch.residuals) {
        match *residual {
            SavedFrom::Input(i) => saved_captures[i] = true,
            SavedFrom::Output(i) if saved_outputs.contains(&i) => {}
            SavedFrom::Output(i) => saved_outputs.push(i),
        }
    }
    let marked = |marks: &[bool]| (0..marks.len()).filter(|&i| marks[i]).collect();
    let (active_captures, saved_captures) = (marked(&active), marked(&saved_captures));
    forward.gradient = Some(Arc::new(BranchGradient {
        visible,
        active_outputs,
        active_captures,
        saved_captures,
        saved_outputs,
        branches,
    }));
    Ok(forward)
}

/// Adds residuals to the outputs of one branch; returns its gradient.
fn add_residuals(
    forward: &mut BranchOp,
    n: usize,
    active_captures: &[bool],
    active_outputs: &[usize],
    visible: usize,
) -> Result<BackwardBranch> {
    let updated = forward.updated();
    let BranchOp { branches, positions, outputs, .. } = forward;
    let (branch, positions) = (&mut branches[n], &mut positions[n]);
    let own: Vec<usize> = (0..positions.len()).filter(|&i| active_outputs.contains(&positions[i])).collect();
    let request = JointRequest { wanted: active_captures, differentiated: &own, summed: &[], dense: true };
    let joint = JointGraph::new(branch.graph(), &request)?;
    let SplitGraph { forward: graph, backward, saved } = joint.split(positions.len())?;
    let mut residuals = saved.clone();
    // Only one branch runs: residuals of one spec share an output.
    for &id in &graph.outputs[positions.len()..] {
        let spec = graph.spec(id);
        let shared = (visible..outputs.len()).find(|i| outputs[*i] == *spec && !positions.contains(i));
        positions.push(shared.unwrap_or_else(|| {
            outputs.push(spec.clone());
            outputs.len() - 1
        }));
    }
    for residual in &mut residuals {
        if let SavedFrom::Output(i) = residual {
            *i = positions[*i];
        }
    }
    let active_outputs = own.iter().map(|&i| positions[i]).collect();
    let plain = std::mem::replace(branch, Arc::new(branch_body(graph, updated)));
    Ok(BackwardBranch {
        branch: plain,
        differentiated: own,
        backward,
        input_gradients: joint.input_gradients,
        saved,
        residuals,
        active_outputs,
    })
}

/// What a call of a branch op saves.
pub(super) fn saves(op: &BranchOp) -> Saves {
    let Some(gradient) = &op.gradient else {
        return Saves { inputs: Set::ALL, ..Saves::NOTHING };
    };
    let outputs = gradient.saved_outputs.iter().fold(Set::NONE, |set, &i| set.with(i));
    let captures = gradient.saved_captures.iter().map(|&i| BranchOp::capture_input(i));
    let inputs = captures.fold(Set::of([0]), Set::with);
    // If the backward pass is recorded as well, the forward pass is computed again from the inputs.
    let inputs = if record::has_single_use_recorder() { inputs } else { Set::ALL };
    Saves { inputs, outputs, ..Saves::NOTHING }
}

/// The gradients of the inputs.
pub(super) fn vjp(op: &BranchOp, call: &mut VjpCall<'_>) -> Result<Gradients> {
    let take_gradients = |call: &mut VjpCall<'_>, visible: usize| -> Vec<Option<Tensor>> {
        (0..visible).map(|output| call.take_gradient(output)).collect()
    };
    if let Some(gradient) = op.gradient.as_ref().filter(|_| !is_backward_recorded(call)) {
        let given = take_gradients(call, gradient.visible);
        let sums = take_sums(call, gradient);
        let input = |i: usize| call.input(i).cloned();
        let output = |i: usize| call.output(i).cloned();
        return apply_backward(op, gradient, (&input, &output), (given, sums));
    }
    let mut forward = forward_with_residuals(op, call.wanted)?;
    let Some(gradient) = forward.gradient.take() else { return Ok(Gradients::new()) };
    let inputs = saved_inputs(call)?;
    let outputs = apply_many(&forward, inputs.clone())?;
    let given = take_gradients(call, gradient.visible);
    let sums = take_sums(call, &gradient);
    let input = |i: usize| Ok(inputs[i].clone());
    let output = |i: usize| Ok(outputs[i].clone());
    apply_backward(&forward, &gradient, (&input, &output), (given, sums))
}

/// The gradients that other calls gave the active captures, each with the capture.
fn take_sums(call: &mut VjpCall<'_>, gradient: &BranchGradient) -> Vec<(usize, Tensor)> {
    let sum = |&i: &usize| call.take_sum(BranchOp::capture_input(i)).map(|sum| (i, sum));
    gradient.active_captures.iter().filter_map(sum).collect()
}

/// Finds an input or an output of the forward call.
type Values<'a> = &'a dyn Fn(usize) -> Result<Tensor>;

/// Applies the backward op: its captures are the saved captures, the saved outputs, the gradients of the active outputs, and the sums
/// of gradients that it adds to.
fn apply_backward(
    op: &BranchOp,
    gradient: &BranchGradient,
    (input, output): (Values<'_>, Values<'_>),
    (mut given, sums): (Vec<Option<Tensor>>, Vec<(usize, Tensor)>),
) -> Result<Gradients> {
    let mut arguments = vec![input(0)?];
    for &i in &gradient.saved_captures {
        arguments.push(input(BranchOp::capture_input(i))?);
    }
    for &i in &gradient.saved_outputs {
        arguments.push(output(i)?);
    }
    for &i in &gradient.active_outputs {
        arguments.push(or_zeros(given[i].take(), &op.outputs[i])?);
    }
    let (summed, sums): (Vec<usize>, Vec<Tensor>) = sums.into_iter().unzip();
    arguments.extend(sums);
    let specs: Vec<Spec> = arguments[1..].iter().map(|tensor| tensor.spec().clone()).collect();
    let graphs = gradient.branches.iter().map(|branch| gradient.backward_graph(op, branch, &specs, &summed));
    let graphs = graphs.collect::<Result<_>>()?;
    let backward = BranchOp::new("branch_gradient", graphs, op.options).with_updates(summed.len());
    let found = apply_many(&backward, arguments)?;
    let mut gradients: Gradients = (0..=op.captures()).map(|_| None).collect();
    for (i, found) in gradient.results(&summed).zip(found) {
        gradients[BranchOp::capture_input(i)] = Some(Gradient::Dense(found));
    }
    Ok(gradients)
}

impl BackwardBranch {
    /// The backward graph with the sums of these captures as further inputs, which it adds to, and which of its outputs is the
    /// gradient of each capture.
    fn with_sums(&self, active: &[usize], summed: &[usize]) -> Result<(Graph, Vec<InputGradient>)> {
        if summed.is_empty() {
            return Ok((self.backward.clone(), self.input_gradients.clone()));
        }
        let graph = self.branch.graph();
        let wanted: Vec<bool> = (0..graph.inputs.len()).map(|i| active.contains(&i)).collect();
        let differentiated = &self.differentiated;
        let joint =
            JointGraph::new(graph, &JointRequest { wanted: &wanted, differentiated, summed, dense: true })?;
        let split = joint.split(graph.outputs.len())?;
        // The forward pass has saved what the gradient without the sums reads: sums do not change that.
        if split.saved != self.saved {
            let message = "the gradient of a branch must read the saved values only";
            return Err(Error::new(ErrorKind::Graph, message));
        }
        Ok((split.backward, joint.input_gradients))
    }
}

impl BranchGradient {
    /// The captures whose gradients the backward op returns, in its order: first those with sums.
    fn results<'a>(&'a self, summed: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        let others = self.active_captures.iter().filter(|i| !summed.contains(i));
        summed.iter().chain(others).copied()
    }

    /// The gradient of one branch, as a graph from the captures of the backward op to the gradients of the active captures.
    fn backward_graph(
        &self,
        op: &BranchOp,
        branch: &BackwardBranch,
        specs: &[Spec],
        summed: &[usize],
    ) -> Result<Graph> {
        let (backward, input_gradients) = branch.with_sums(&self.active_captures, summed)?;
        let position = |list: &[usize], i: usize| list.iter().position(|&other| other == i).unwrap_or(0);
        let traced = record::without_recording(|| {
            trace(specs, |arguments| {
                let (captures, rest) = arguments.split_at(self.saved_captures.len());
                let (outputs, rest) = rest.split_at(self.saved_outputs.len());
                let (gradients, sums) = rest.split_at(self.active_outputs.len());
                let residuals = branch.residuals.iter().map(|residual| match *residual {
                    SavedFrom::Input(i) => captures[position(&self.saved_captures, i)].clone(),
                    SavedFrom::Output(i) => outputs[position(&self.saved_outputs, i)].clone(),
                });
                let active = branch.active_outputs.iter();
                let active = active.map(|&i| gradients[position(&self.active_outputs, i)].clone());
                let sums = sums.iter().cloned();
                let found = backward.run(&residuals.chain(active).chain(sums).collect::<Vec<Tensor>>())?;
                let gradient_of = |i: usize| match input_gradients[i] {
                    InputGradient::Dense(output) => Ok(found[output].clone()),
                    _ => or_zeros(None, op.capture_spec(i)),
                };
                self.results(summed).map(gradient_of).collect()
            })
        })?;
        Ok(traced.graph)
    }
}
