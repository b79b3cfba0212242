//! The body of the loop over parts.

use super::SplitProof;
use super::classify::NodeClass;
use super::cut::part_op;
use super::placement::producer;
use taut_core::graph::{Node, ValueId};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::shape::moveaxis;
use taut_core::ops::unary::cast;
use taut_core::rows::{RowAxis, RowClass, RowSplit};
use taut_core::{Error, ErrorKind, Form, Result, Spec, Tensor, apply_at, with_source_location};

/// The spec of a part of a value with the row axis in front, as loops slice and stack it.
pub(super) fn slice_spec(spec: &Spec, axis: RowAxis, rows: usize) -> Spec {
    let rest = spec.shape.clone().without(axis.axis);
    Spec { dtype: spec.dtype, shape: rest.with_inserted(0, rows * axis.per_row) }
}

/// A part with its row axis in front, and back in its place.
pub(super) fn to_front(x: Tensor, axis: RowAxis) -> Result<Tensor> {
    if axis.axis == 0 { Ok(x) } else { moveaxis(x, &[axis.axis as isize], &[0]) }
}

pub(super) fn from_front(x: Tensor, axis: RowAxis) -> Result<Tensor> {
    if axis.axis == 0 { Ok(x) } else { moveaxis(x, &[0], &[axis.axis as isize]) }
}

#[cold]
pub(super) fn missing() -> Error {
    Error::new(ErrorKind::Graph, "a value of a split graph is read before it is computed")
}

/// The computation of one part.
pub(super) struct PartTrace<'a> {
    pub(super) proof: &'a SplitProof,
    /// The number of rows of the part.
    pub(super) rows: usize,
    /// The first of its rows: an `int64`.
    pub(super) first_row: Tensor,
    /// The values that are computed before all parts.
    pub(super) before: &'a [Option<Tensor>],
    /// The values of the part.
    pub(super) values: Vec<Option<Tensor>>,
    /// The rows of values that are the same for all parts, as the proof lists them.
    pub(super) cuts: Vec<Option<Tensor>>,
}

impl PartTrace<'_> {
    /// Computes the part; returns the sums, with those of this part added, and the rows that are needed later.
    pub(super) fn run(&mut self, sums: &[Tensor]) -> Result<Vec<Tensor>> {
        let SplitProof { graph, classes, placement, .. } = self.proof;
        for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| placement.in_body[i]) {
            let NodeClass::Part(split) = &classes.nodes[i] else { return Err(missing()) };
            let sum = placement.adds.iter().find(|(adding, _)| *adding == i).map(|&(_, sum)| &sums[sum]);
            let outputs = with_source_location(None, node.at, || match sum {
                None => self.call(node, split),
                Some(sum) => self.call_adding_to(sum, node, split),
            })?;
            for (id, output) in node.outputs.iter().zip(outputs) {
                self.values[id.index()] = Some(output);
            }
        }
        let mut results = Vec::new();
        for (k, (id, sum)) in placement.sums.iter().zip(sums).enumerate() {
            let part = self.values[id.index()].clone().ok_or_else(missing)?;
            let is_added = placement.adds.iter().any(|&(_, sum)| sum == k);
            results.push(if is_added { part } else { add(sum.clone(), cast(part, sum.dtype())?)? });
        }
        for &(id, axis) in &placement.stacks {
            results.push(to_front(self.values[id.index()].clone().ok_or_else(missing)?, axis)?);
        }
        Ok(results)
    }

    /// Calls a node's op with a sum in place of its first input, which is zero.
    fn call_adding_to(&mut self, sum: &Tensor, node: &Node, split: &RowSplit) -> Result<Vec<Tensor>> {
        let first = node.inputs[0].index();
        self.values[first] = Some(sum.clone());
        let outputs = self.call(node, split);
        self.values[first] = None;
        outputs
    }

    /// Calls a node's op for the part.
    fn call(&mut self, node: &Node, split: &RowSplit) -> Result<Vec<Tensor>> {
        let mut inputs = Vec::new();
        for (i, (&id, &class)) in node.inputs.iter().zip(&split.inputs).enumerate() {
            match self.input(id, class) {
                Ok(input) => inputs.push(input),
                // Further inputs of a view only order it, and need not be values of the part.
                Err(_) if i > 0 && node.op.kernel().is_view() => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(elements) = split.positions {
            inputs.push(mul(&self.first_row, elements as i64)?);
        }
        let op = part_op(&self.proof.graph, node, split, self.rows);
        let op = op.ok_or_else(|| {
            let message =
                format!("{} has no form for {} of {} rows", node.op.name(), self.rows, self.proof.rows);
            Error::new(ErrorKind::Graph, message).at(node.at)
        })?;
        let outputs = apply_at(&*op, &mut inputs, node.at)?;
        if !split.is_mean {
            return Ok(outputs.into_vec());
        }
        let weight = self.rows as f64 / self.proof.rows as f64;
        outputs.into_iter().map(|mean| mul(mean, weight)).collect()
    }

    /// An input of this class.
    fn input(&mut self, id: ValueId, class: RowClass) -> Result<Tensor> {
        match (&self.values[id.index()], class) {
            (Some(value), _) => Ok(value.clone()),
            (None, RowClass::Rows(axis)) => self.cut(id, axis),
            (None, _) => self.same(id),
        }
    }

    /// The rows of a value that is the same for all parts.
    fn cut(&mut self, id: ValueId, axis: RowAxis) -> Result<Tensor> {
        let proof = self.proof;
        let position = proof.placement.cuts.position(id, axis).ok_or_else(missing)?;
        if let Some(known) = &self.cuts[position] {
            return Ok(known.clone());
        }
        let (i, split) = proof.placement.cuts.0[position].computed.as_ref().ok_or_else(missing)?;
        let node = &proof.graph.nodes[*i];
        let rows = with_source_location(None, node.at, || self.call(node, split))?.swap_remove(0);
        self.cuts[position] = Some(rows.clone());
        Ok(rows)
    }

    /// A value that is the same for all parts. Views and constants of one number are made inside of the loop, where they take no
    /// memory; other values are captured.
    fn same(&mut self, id: ValueId) -> Result<Tensor> {
        let proof = self.proof;
        if let Some((i, node)) = producer(&proof.graph, id)
            && matches!(proof.classes.nodes[i], NodeClass::Before)
            && !proof.placement.whole[i]
            && is_free(&proof.graph, node)
        {
            let mut inputs = Vec::new();
            for &input in node.inputs.iter().take(1) {
                inputs.push(self.same(input)?);
            }
            let outputs = apply_at(&*node.op, &mut inputs, node.at)?;
            return outputs.into_iter().next().ok_or_else(missing);
        }
        self.before[id.index()].clone().ok_or_else(missing)
    }
}

/// Whether a call needs no memory once it is compiled.
fn is_free(graph: &taut_core::Graph, node: &Node) -> bool {
    let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
    match node.op.form(&inputs) {
        Form::Uniform(_) => true,
        Form::OptimizationBarrier => false,
        _ => node.op.kernel().is_view(),
    }
}
