//! The graph that computes its batch in parts.

use super::micro_batch::{compute_part, from_front, slice_spec, to_front};
use super::placement::{PlacedGraph, read_inputs, sum_dtype};
use crate::context::body_options;
use crate::loops::{LoopOp, StepCount};
use crate::parts::{NodeClass, PartTrace, ValueClass, missing};
use crate::specs::index_spec;
use taut_core::graph::{Node, Origin, Traced, ValueId, trace_body, value_of};
use taut_core::ops::binary::mul;
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::{concat, reshape, slice};
use taut_core::ops::unary::cast;
use taut_core::rows::RowAxis;
use taut_core::{
    DType, Graph, Index, Location, Result, Shape, Spec, Tensor, apply_at, trace, with_source_location,
};

/// Consecutive parts of equal size.
#[derive(Clone, Copy)]
struct Parts {
    first_row: usize,
    count: usize,
    /// The rows of one part.
    rows: usize,
}

pub(super) fn build(placed: &PlacedGraph, parts: usize) -> Result<Graph> {
    let rows = placed.rows.div_ceil(parts);
    let even = Parts { first_row: 0, count: placed.rows / rows, rows };
    let done = even.count * rows;
    let rest = (done < placed.rows).then_some(Parts { first_row: done, count: 1, rows: placed.rows - done });
    let specs: Vec<Spec> = placed.graph.inputs.iter().map(|&id| placed.graph.spec(id).clone()).collect();
    let traced = trace(&specs, |inputs| {
        let mut whole = WholeTrace::new(placed, inputs);
        whole.compute_before()?;
        let mut sums = whole.zero_sums()?;
        let mut rows = vec![Vec::new(); placed.placement.stacks.len()];
        for parts in [Some(even), rest].into_iter().flatten() {
            let stacks = whole.run_parts(parts, &mut sums)?;
            rows.iter_mut().zip(stacks).for_each(|(rows, stack)| rows.push(stack));
        }
        whole.take_results(sums, rows)?;
        whole.compute_after()?;
        placed.graph.outputs.iter().map(|&id| whole.value(id)).collect()
    })?;
    // Without what only whole batches need.
    let Graph { inputs, outputs, .. } = &traced.graph;
    traced.graph.part_with_checks(inputs, outputs)
}

/// The computation around the loop over parts.
struct WholeTrace<'a> {
    placed: &'a PlacedGraph,
    values: Vec<Option<Tensor>>,
}

impl<'a> WholeTrace<'a> {
    fn new(placed: &'a PlacedGraph, inputs: &[Tensor]) -> WholeTrace<'a> {
        let origins = placed.graph.values.iter().map(|value| match &value.origin {
            Origin::Input(i) => Some(inputs[*i].clone()),
            Origin::Constant(tensor) => Some(tensor.clone()),
            Origin::Node { .. } => None,
        });
        WholeTrace { placed, values: origins.collect() }
    }

    fn value(&self, id: ValueId) -> Result<Tensor> {
        self.values[id.index()].clone().ok_or_else(missing)
    }

    /// Calls an op on the whole batch. Inputs that only order a view are left out where they are not known.
    fn call(&mut self, node: &Node) -> Result<()> {
        let read = read_inputs(node);
        let mut inputs = read.iter().map(|&id| self.value(id)).collect::<Result<Vec<_>>>()?;
        inputs.extend(node.inputs[read.len()..].iter().filter_map(|id| self.values[id.index()].clone()));
        let outputs = apply_at(&*node.op, &mut inputs, node.at)?;
        for (id, output) in node.outputs.iter().zip(outputs) {
            self.values[id.index()] = Some(output);
        }
        Ok(())
    }

    /// Computes what is the same for all parts, and the sums of inputs that rows depend on.
    fn compute_before(&mut self) -> Result<()> {
        let PlacedGraph { graph, classes, placement, .. } = self.placed;
        for (i, node) in graph.nodes.iter().enumerate() {
            // A view that is ordered after rows but has the same value for all parts.
            let same = |id: &ValueId| classes.class(*id) == ValueClass::SAME;
            let is_same = || !node.outputs.is_empty() && node.outputs.iter().all(same);
            let now = match classes.nodes[i] {
                NodeClass::Before => true,
                NodeClass::Part(_) => placement.whole[i] || is_same(),
                NodeClass::After => placement.whole[i],
                NodeClass::Unused => false,
            };
            if now {
                self.call(node)?;
            }
        }
        Ok(())
    }

    fn zero_sums(&self) -> Result<Vec<Tensor>> {
        let sums = self.placed.placement.sums.iter().map(|&id| {
            let Spec { dtype, shape } = self.placed.graph.spec(id);
            zeros(shape.clone(), sum_dtype(*dtype))
        });
        sums.collect()
    }

    /// The rows of a value in these parts, one part per row of the result.
    fn sliced(&self, id: ValueId, axis: RowAxis, parts: Parts) -> Result<Tensor> {
        let whole = to_front(self.value(id)?, axis)?;
        let position = |row: usize| (row * axis.per_row) as isize;
        let (start, end) = (position(parts.first_row), position(parts.first_row + parts.count * parts.rows));
        let range = if end - start == whole.shape()[0] as isize {
            whole
        } else {
            slice(whole, &[Index::Range { start: Some(start), end: Some(end), step: 1 }])?
        };
        let part = slice_spec(self.placed.graph.spec(id), axis, parts.rows);
        reshape(range, &dims(&part.shape.with_inserted(0, parts.count)))
    }

    /// Runs the loop over these parts: updates the sums, and returns the rows that are needed later, with the row axis in front.
    fn run_parts(&self, parts: Parts, sums: &mut Vec<Tensor>) -> Result<Vec<Tensor>> {
        let (placed, at) = (self.placed, self.location());
        with_source_location(None, at, || {
            let slices = self.slices();
            let (body, captures) = self.trace_part(parts, &slices, sums)?;
            let steps = StepCount::Fixed(parts.count);
            let op =
                LoopOp::new("micro_batches", (body, None), (sums.len(), slices.len()), steps, body_options());
            let mut inputs = std::mem::take(sums);
            for &(id, axis, _) in &slices {
                inputs.push(self.sliced(id, axis, parts)?);
            }
            inputs.extend(captures);
            let mut outputs = apply_at(&op, &mut inputs, at)?.into_vec();
            let stacks = outputs.split_off(placed.placement.sums.len());
            *sums = outputs;
            let join = |stack: Tensor| {
                let shape = stack.shape().clone();
                reshape(stack, &dims(&shape.clone().without(0).with(0, shape[0] * shape[1])))
            };
            stacks.into_iter().map(join).collect()
        })
    }

    /// What the loop reads a part of per step: values with their row axis, and the cut that they are, if they are not inputs.
    fn slices(&self) -> Vec<(ValueId, RowAxis, Option<usize>)> {
        let placement = &self.placed.placement;
        let inputs = placement.row_inputs.iter().map(|&id| (id, RowAxis { axis: 0, per_row: 1 }, None));
        let cuts = placement.cuts.0.iter().enumerate().filter(|(_, cut)| cut.computed.is_none());
        inputs.chain(cuts.map(|(i, cut)| (cut.value, cut.axis, Some(i)))).collect()
    }

    /// The body of the loop over these parts, and its captures.
    fn trace_part(
        &self,
        parts: Parts,
        slices: &[(ValueId, RowAxis, Option<usize>)],
        sums: &[Tensor],
    ) -> Result<(Graph, Vec<Tensor>)> {
        let placed = self.placed;
        let mut specs = vec![index_spec()];
        specs.extend(sums.iter().map(|sum| sum.spec().clone()));
        specs.extend(slices.iter().map(|&(id, axis, _)| slice_spec(placed.graph.spec(id), axis, parts.rows)));
        let (traced, ()) = trace_body(&specs, |inputs| {
            let first_row = match parts.first_row {
                0 => mul(&inputs[0], parts.rows as i64)?,
                first => Tensor::constant(first as i64, DType::I64)?,
            };
            let known = (&placed.graph, &placed.classes, &placed.placement.cuts);
            let mut part = PartTrace::new(known, (parts.rows, placed.rows), Some(first_row), &self.values);
            let (states, rows) = inputs[1..].split_at(sums.len());
            for (&(id, axis, cut), rows) in slices.iter().zip(rows) {
                let rows = Some(from_front(rows.clone(), axis)?);
                match cut {
                    None => part.values[id.index()] = rows,
                    Some(cut) => part.cut_values[cut] = rows,
                }
            }
            Ok((compute_part(placed, &mut part, states)?, ()))
        })?;
        Ok(with_constants(traced))
    }

    /// The line that the loop is attributed to: that of its first call.
    fn location(&self) -> Location {
        let PlacedGraph { graph, placement, .. } = self.placed;
        let first = (0..graph.nodes.len()).find(|&i| placement.in_body[i]);
        first.map_or_else(Location::caller, |i| graph.nodes[i].at)
    }

    /// The finished sums, and the rows of all parts.
    fn take_results(&mut self, sums: Vec<Tensor>, rows: Vec<Vec<Tensor>>) -> Result<()> {
        let PlacedGraph { graph, placement, .. } = self.placed;
        for (&id, sum) in placement.sums.iter().zip(sums) {
            self.values[id.index()] = Some(cast(sum, graph.spec(id).dtype)?);
        }
        for (&(id, axis), mut rows) in placement.stacks.iter().zip(rows) {
            let joined = if rows.len() == 1 { rows.swap_remove(0) } else { concat(&rows, 0)? };
            self.values[id.index()] = Some(from_front(joined, axis)?);
        }
        Ok(())
    }

    fn compute_after(&mut self) -> Result<()> {
        let PlacedGraph { graph, placement, .. } = self.placed;
        for (i, node) in graph.nodes.iter().enumerate() {
            if placement.after[i] && !placement.whole[i] {
                self.call(node)?;
            }
        }
        Ok(())
    }
}

/// The dimensions of a shape, as `reshape` takes them.
fn dims(shape: &Shape) -> Vec<isize> {
    shape.iter().map(|&dim| dim as isize).collect()
}

/// The body and its captures, without those that are constants of one number: the compiler folds and fuses them.
fn with_constants(traced: Traced) -> (Graph, Vec<Tensor>) {
    let Traced { mut graph, captures, .. } = traced;
    let own = graph.inputs.len() - captures.len();
    let ids = graph.inputs.split_off(own);
    let mut kept = Vec::new();
    for (id, tensor) in ids.into_iter().zip(captures) {
        graph.values[id.index()].origin = if tensor.rank() == 0 && value_of(&tensor).is_none() {
            Origin::Constant(tensor)
        } else {
            graph.inputs.push(id);
            kept.push(tensor);
            Origin::Input(graph.inputs.len() - 1)
        };
    }
    (graph, kept)
}
