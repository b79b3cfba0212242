//! Gradients of graphs: the gradient rules, applied while tracing.

use crate::backward::backward;
use crate::record::{Record, TapeEntry};
use crate::tape::{GradientTape, ones};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{GraphValue, Origin, ValueId, current, tensor_of, value_of};
use taut_core::record::{RecordSlot, without_recording};
use taut_core::{
    Error, ErrorKind, Gradient, Graph, Result, SavedValue, Set, Spec, Tensor, VjpCall, trace,
    with_source_location,
};
use taut_memory::Location;

/// The gradients of `ys` (summed) with respect to `xs`, inside a trace: the graph traced so far is differentiated, with or
/// without a tape. `None` where `ys` does not depend on an `x`.
///
/// Outside a trace, use a [`GradientTape`]: without one, no history is recorded.
#[track_caller]
pub fn gradients(
    ys: impl IntoIterator<Item = impl Into<Tensor>>,
    xs: impl IntoIterator<Item = impl Into<Tensor>>,
) -> Result<Vec<Option<Gradient>>> {
    gradients_with(ys, xs, None)
}

/// As [`gradients`], with the gradient of each `y`; ones where it is `None`.
#[track_caller]
pub fn gradients_with(
    ys: impl IntoIterator<Item = impl Into<Tensor>>,
    xs: impl IntoIterator<Item = impl Into<Tensor>>,
    output_gradients: Option<&[Option<Tensor>]>,
) -> Result<Vec<Option<Gradient>>> {
    gradients_with_stops(ys, xs, output_gradients, &[])
}

/// As [`gradients_with`], with the tensors in `stops` as constants: no gradient flows through the ops that computed them.
#[track_caller]
pub fn gradients_with_stops(
    ys: impl IntoIterator<Item = impl Into<Tensor>>,
    xs: impl IntoIterator<Item = impl Into<Tensor>>,
    output_gradients: Option<&[Option<Tensor>]>,
    stops: &[Tensor],
) -> Result<Vec<Option<Gradient>>> {
    let at = Location::caller();
    let ys: Vec<Tensor> = ys.into_iter().map(Into::into).collect();
    let xs: Vec<Tensor> = xs.into_iter().map(Into::into).collect();
    let Some(graph) = current() else {
        let error = Error::new(ErrorKind::Graph, "gradients() must be called inside a trace");
        return Err(error.help("use a GradientTape").at(at));
    };
    let none = vec![None; ys.len()];
    let given = output_gradients.unwrap_or(&none);
    let fits =
        |(y, seed): (&Tensor, &Option<Tensor>)| seed.as_ref().is_none_or(|seed| seed.spec() == y.spec());
    if given.len() != ys.len() || !ys.iter().zip(given).all(fits) {
        let message = format!(
            "expected an output gradient per result, {}, each of its result's spec, got {}",
            ys.len(),
            given.len()
        );
        return Err(Error::shape(message).at(at));
    }
    with_source_location(None, at, || differentiate(&graph, &ys, given, &xs, stops, at))
        .map_err(|error| error.at(at))
}

fn differentiate(
    graph: &Graph,
    ys: &[Tensor],
    given: &[Option<Tensor>],
    xs: &[Tensor],
    stops: &[Tensor],
    at: Location,
) -> Result<Vec<Option<Gradient>>> {
    // One entry per value (for inputs and constants), then one per node.
    let leaves = graph.values.len();
    let slot = |value: ValueId| match graph.values[value.index()].origin {
        Origin::Node { node, output } => RecordSlot { entry: (leaves + node) as u32, output: output as u32 },
        Origin::Input(_) | Origin::Constant(_) => RecordSlot { entry: value.0, output: 0 },
    };
    let constant = |tensor: &Tensor| {
        let same =
            |value: &GraphValue| matches!(&value.origin, Origin::Constant(other) if other.is_same(tensor));
        graph.values.iter().position(same).map(|i| ValueId(i as u32))
    };
    let slot_of = |tensor: &Tensor| {
        let value = if tensor.is_traced() { value_of(tensor) } else { constant(tensor) };
        value.filter(|_| tensor.dtype().is_inexact()).map(slot)
    };
    let targets: Vec<Option<RecordSlot>> = ys.iter().map(slot_of).collect();
    let stopped: Vec<usize> = stops.iter().filter_map(|stop| node_of(graph, stop)).collect();
    let needed = needed(graph, &targets, leaves);
    let sources: Vec<Option<RecordSlot>> = xs.iter().map(slot_of).collect();

    let mut depends = vec![false; leaves + graph.nodes.len()];
    sources.iter().flatten().for_each(|source| depends[source.entry as usize] = true);
    let mut entries: Vec<Option<Arc<TapeEntry>>> = Vec::new();
    for value in &graph.values {
        entries.push(Some(Arc::new(TapeEntry::leaf(value.spec.clone(), at))));
    }
    for (i, node) in graph.nodes.iter().enumerate() {
        let tracked = |id: ValueId| graph.spec(id).dtype.is_inexact() && depends[slot(id).entry as usize];
        let wanted = (node.inputs.iter().enumerate())
            .filter(|&(_, &id)| tracked(id))
            .fold(Set::NONE, |set, (i, _)| set.with(i));
        let rule = node.op.gradient().filter(|_| !wanted.is_empty() && needed[i] && !stopped.contains(&i));
        let Some((rule, saves)) = rule.and_then(|rule| Some((rule, rule.saves(wanted)?))) else {
            // No gradient flows through it, but it may be a source.
            let spec = graph.spec(node.outputs[0]).clone();
            entries.push(depends[leaves + i].then(|| Arc::new(TapeEntry::leaf(spec, node.at))));
            continue;
        };
        depends[leaves + i] = true;
        let saved = |save: bool, id: ValueId| SavedValue {
            spec: graph.spec(id).clone(),
            value: if save { tensor_of(id) } else { None },
        };
        let all_saved = |saves: Set, ids: &[ValueId]| -> SmallVec<[SavedValue; 2]> {
            ids.iter().enumerate().map(|(i, &id)| saved(saves.has(i), id)).collect()
        };
        let residual = if saves.residual {
            let (inputs, mut outputs) = (
                all_saved(saves.inputs.union(saves.reads), &node.inputs),
                all_saved(Set::ALL, &node.outputs),
            );
            let call = VjpCall {
                inputs: &inputs,
                outputs: &mut outputs,
                residual: None,
                wanted,
                gradients: SmallVec::new(),
                sums: SmallVec::new(),
            };
            without_recording(|| rule.residual(&call))?
        } else {
            None
        };
        entries.push(Some(Arc::new(TapeEntry {
            op: Some(node.op.clone()),
            at: node.at,
            inputs: all_saved(saves.inputs, &node.inputs),
            sources: (node.inputs.iter().enumerate())
                .map(|(i, &id)| wanted.has(i).then(|| slot(id)))
                .collect(),
            outputs: all_saved(saves.outputs, &node.outputs).into_iter().collect(),
            residual,
            wanted,
            serial: i as u64,
        })));
    }
    let mut seeds = Vec::new();
    for ((y, given), slot) in ys.iter().zip(given).zip(targets) {
        if let Some(slot) = slot {
            seeds.push((slot, given.clone().map_or_else(|| ones(y.spec()), Ok)?));
        }
    }
    // No tensor links to this record: dependencies are those of the graph.
    backward(&Arc::new(Record::new(false, true)), entries, seeds, &sources)
}

/// The node that computes a tensor.
fn node_of(graph: &Graph, tensor: &Tensor) -> Option<usize> {
    let value = if tensor.is_traced() { value_of(tensor) } else { None }?;
    match graph.values[value.index()].origin {
        Origin::Node { node, .. } => Some(node),
        Origin::Input(_) | Origin::Constant(_) => None,
    }
}

/// Per node, whether a target depends on it.
fn needed(graph: &Graph, targets: &[Option<RecordSlot>], leaves: usize) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes.len()];
    for target in targets.iter().flatten().filter_map(|slot| (slot.entry as usize).checked_sub(leaves)) {
        needed[target] = true;
    }
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        if needed[i] {
            for id in &node.inputs {
                if let Origin::Node { node, .. } = graph.values[id.index()].origin {
                    needed[node] = true;
                }
            }
        }
    }
    needed
}

/// The graph that computes what `graph` computes and, after its outputs, the gradients of those outputs (summed) with
/// respect to the inputs at these positions; zeros where there is none.
#[track_caller]
pub fn gradient_graph(graph: &Graph, inputs: &[usize]) -> Result<Graph> {
    let at = Location::caller();
    if let Some(bad) = inputs.iter().find(|&&i| i >= graph.inputs.len()) {
        let message = format!("an input position must be below {}, got {bad}", graph.inputs.len());
        return Err(Error::value(message).at(at));
    }
    let specs: Vec<Spec> = graph.inputs.iter().map(|&id| graph.spec(id).clone()).collect();
    let traced = trace(&specs, |arguments| {
        let tape = GradientTape::new();
        let sources: Vec<Tensor> = inputs.iter().map(|&i| arguments[i].clone()).collect();
        tape.watch(&sources);
        let mut results = graph.run(arguments)?;
        let gradients = tape.gradient(&results, &sources)?;
        for (gradient, source) in gradients.into_iter().zip(&sources) {
            results.push(match gradient {
                Some(gradient) => gradient.dense()?,
                None => crate::custom::zeros(source.spec())?,
            });
        }
        Ok(results)
    })?;
    Ok(traced.graph)
}
