//! A loop whose values have rows of a batch: a recurrent layer.
//!
//! The classes of the body's inputs follow from those of the loop's; the states' are a fixed point. A state that starts the same
//! for all parts may have rows after a step, and one that starts at zero may become a sum over parts.

use super::definition::LoopOp;
use super::signature::BodyInput;
use crate::parts::{Classes, Cuts, NodeClass, PartTrace, ValueClass, classify_body, missing};
use std::sync::Arc;
use taut_core::graph::{Origin, ValueId};
use taut_core::rows::{RowAxis, RowCall, RowClass, RowPart, RowRule, RowSplit};
use taut_core::{Graph, Op, Result, Spec, Tensor, apply_at, trace, with_source_location};

/// The body of a loop that computes a part of a batch.
struct BodyRows {
    /// The classes of the body's inputs.
    inputs: Vec<RowClass>,
    classes: Classes,
    cuts: Cuts,
}

/// The class of one row of a slice or stack: without the axis of the steps.
fn of_step(class: RowClass) -> Option<RowClass> {
    match class {
        RowClass::Rows(RowAxis { axis, per_row }) => {
            Some(RowClass::Rows(RowAxis { axis: axis.checked_sub(1)?, per_row }))
        }
        RowClass::PackedRows { .. } => None,
        class => Some(class),
    }
}

/// The class of a slice or stack whose rows have this class.
fn of_all_steps(class: RowClass) -> RowClass {
    match class {
        RowClass::Rows(RowAxis { axis, per_row }) => RowClass::Rows(RowAxis { axis: axis + 1, per_row }),
        class => class,
    }
}

impl BodyRows {
    /// The classes of a body, given those of the loop's inputs.
    fn find(op: &LoopOp, classes: &[RowClass], zeros: &[bool], rows: usize) -> Option<BodyRows> {
        let signature = op.signature();
        let graph = op.body.graph();
        let (mut inputs, mut is_zero) = (Vec::new(), Vec::new());
        for position in 0..graph.inputs.len() {
            let kind = signature.body_inputs.kind(position);
            let source = signature.inputs.source(kind);
            let class = source.map_or(RowClass::Same, |source| classes[source]);
            inputs.push(if matches!(kind, BodyInput::Slice(_)) { of_step(class)? } else { class });
            // A guess: a sum over parts that starts at zero. It is checked below, when the state's class is known.
            let guess = matches!(kind, BodyInput::State(_)) && class == RowClass::Same;
            is_zero.push(guess && source.is_some_and(|source| zeros[source]));
        }
        let may_be_sum = is_zero.clone();
        // Every round but the last changes the class of an input, or drops the guesses.
        for _ in 0..2 * graph.inputs.len() + 2 {
            let classes = classify_body(graph, &inputs, &is_zero, rows)?;
            let mut cuts = Cuts::default();
            cuts.add_all(graph, &classes, rows, |i| matches!(classes.nodes[i], NodeClass::Part(_)));
            // Rows that parts cannot cut may be those of a state whose class was not known yet.
            let changed = update_states(op, &classes, &mut inputs, &may_be_sum)?
                || update_cut_inputs(graph, &cuts, &mut inputs)?;
            if changed {
                is_zero.iter_mut().zip(&inputs).for_each(|(zero, class)| *zero &= *class == RowClass::Same);
            } else if is_zero.contains(&true) {
                is_zero.fill(false);
            } else {
                return Some(BodyRows { inputs, classes, cuts });
            }
        }
        None
    }

    /// The class of an output of the body.
    fn output(&self, graph: &Graph, output: usize) -> Option<RowClass> {
        match self.classes.class(graph.outputs[output]) {
            ValueClass::Part(RowClass::PackedRows { .. }) | ValueClass::After => None,
            ValueClass::Part(class) => Some(class),
        }
    }

    /// The body for so many rows of the whole batch's.
    fn trace(&self, graph: &Graph, rows: (usize, usize)) -> Result<Graph> {
        let specs = graph.inputs.iter().zip(&self.inputs).map(|(&id, class)| match class {
            RowClass::Rows(axis) => axis.resize(graph.spec(id), rows.0),
            _ => graph.spec(id).clone(),
        });
        let specs: Vec<Spec> = specs.collect();
        let traced = trace(&specs, |inputs| {
            let mut before: Vec<Option<Tensor>> = vec![None; graph.values.len()];
            for (value, known) in graph.values.iter().zip(&mut before) {
                *known = match &value.origin {
                    Origin::Input(i) => (self.inputs[*i] == RowClass::Same).then(|| inputs[*i].clone()),
                    Origin::Constant(tensor) => Some(tensor.clone()),
                    Origin::Node { .. } => None,
                };
            }
            self.compute_before(graph, &mut before)?;
            let mut part = PartTrace::new((graph, &self.classes, &self.cuts), rows, None, &before);
            for ((&id, class), input) in graph.inputs.iter().zip(&self.inputs).zip(inputs) {
                part.values[id.index()] = (*class != RowClass::Same).then(|| input.clone());
            }
            for (i, node) in graph.nodes.iter().enumerate() {
                if let NodeClass::Part(split) = &self.classes.nodes[i] {
                    let outputs = with_source_location(None, node.at, || part.call(node, split))?;
                    part.set(node, outputs);
                }
            }
            let output = |&id: &ValueId| match &part.values[id.index()] {
                Some(value) => Ok(value.clone()),
                None => before[id.index()].clone().ok_or_else(missing),
            };
            graph.outputs.iter().map(output).collect()
        })?;
        Ok(traced.graph)
    }

    /// What is the same for all parts.
    fn compute_before(&self, graph: &Graph, before: &mut [Option<Tensor>]) -> Result<()> {
        for (i, node) in graph.nodes.iter().enumerate() {
            if !matches!(self.classes.nodes[i], NodeClass::Before) {
                continue;
            }
            let inputs = node.inputs.iter().map(|id| before[id.index()].clone().ok_or_else(missing));
            let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
            let outputs = apply_at(&*node.op, &mut inputs, node.at)?;
            for (id, output) in node.outputs.iter().zip(outputs) {
                before[id.index()] = Some(output);
            }
        }
        Ok(())
    }
}

/// Gives states the class that they have after a step; returns whether one changed. `None` if a state cannot keep its class.
fn update_states(
    op: &LoopOp,
    classes: &Classes,
    inputs: &mut [RowClass],
    may_be_sum: &[bool],
) -> Option<bool> {
    let (signature, graph) = (op.signature(), op.body.graph());
    let mut changed = false;
    for k in 0..op.arity.states {
        let position = signature.body_inputs.states.at(k);
        let after = classes.class(graph.outputs[signature.body_outputs.states.at(k)]);
        let ValueClass::Part(after) = after else { return None };
        inputs[position] = match (inputs[position], after) {
            (before, after) if before == after => continue,
            (RowClass::Same, RowClass::Rows(_)) => after,
            (RowClass::Same, RowClass::PartialSum) if may_be_sum[position] => after,
            _ => return None,
        };
        changed = true;
    }
    Some(changed)
}

/// Gives inputs rows where the body needs rows of them; returns whether one changed. `None` if it needs rows of another value that
/// parts cannot compute.
fn update_cut_inputs(graph: &Graph, cuts: &Cuts, inputs: &mut [RowClass]) -> Option<bool> {
    let mut changed = false;
    for cut in &cuts.0 {
        match &cut.computed {
            Some((_, split)) if split.positions.is_some() => return None,
            Some(_) => {}
            None => {
                let Origin::Input(position) = graph.values[cut.value.index()].origin else { return None };
                inputs[position] = RowClass::Rows(cut.axis);
                changed = true;
            }
        }
    }
    Some(changed)
}

impl RowRule for LoopOp {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if !self.steps.is_fixed()
            || self.condition.is_some()
            || self.checkpoints.is_some()
            || call.wanted.is_some()
        {
            return None;
        }
        let body = BodyRows::find(self, call.classes, call.zeros, call.rows)?;
        let (signature, graph) = (self.signature(), self.body.graph());
        let mut split = call.linear()?;
        for (position, &class) in body.inputs.iter().enumerate() {
            let kind = signature.body_inputs.kind(position);
            let Some(source) = signature.inputs.source(kind) else { continue };
            let class = if matches!(kind, BodyInput::Slice(_)) { of_all_steps(class) } else { class };
            split.inputs[source] = match class {
                RowClass::Rows(axis) => call.rows_of(source, axis)?,
                // Zero is a sum over parts, too.
                RowClass::PartialSum => call.is_partial_sum(source).then_some(class)?,
                class => (class == call.classes[source]).then_some(class)?,
            };
        }
        for k in 0..self.arity.states {
            let class = body.output(graph, signature.body_outputs.states.at(k))?;
            split.outputs[signature.outputs.states.at(k)] = class;
        }
        for k in 0..self.arity.stacks {
            let class = body.output(graph, signature.body_outputs.stacks.at(k))?;
            split.outputs[signature.outputs.stack(k)] = of_all_steps(class);
        }
        // A value that is the same for all parts must be known before them, and this loop runs for each part.
        let is_known = |class: &RowClass| *class == RowClass::Same;
        (!split.outputs.iter().any(is_known)).then_some(split)
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        // The classes of the split are a fixed point already: zeros that became sums are sums here.
        let zeros = vec![false; part.split.inputs.len()];
        let body = BodyRows::find(self, &part.split.inputs, &zeros, part.whole_rows)?;
        let graph = body.trace(self.body.graph(), (part.rows, part.whole_rows)).ok()?;
        Some(Arc::new(self.without_gradient().with_body(graph)))
    }
}
