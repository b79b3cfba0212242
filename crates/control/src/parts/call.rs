//! Calls for one part of a batch.

use super::classify::{Classes, NodeClass};
use super::cut::Cuts;
use super::part_op::{part_op, producer};
use taut_core::graph::{Node, ValueId};
use taut_core::ops::binary::mul;
use taut_core::rows::{RowAxis, RowClass, RowSplit};
use taut_core::{Error, ErrorKind, Form, Graph, Result, Spec, Tensor, apply_at, with_source_location};

#[cold]
pub(crate) fn missing() -> Error {
    Error::new(ErrorKind::Graph, "a value of a split graph is read before it is computed")
}

/// The computation of one part.
pub(crate) struct PartTrace<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) classes: &'a Classes,
    /// The rows of values that are the same for all parts.
    pub(crate) cuts: &'a Cuts,
    /// The number of rows of the whole batch.
    pub(crate) whole_rows: usize,
    /// The number of rows of the part.
    pub(crate) rows: usize,
    /// The first of its rows: an `int64`. Only random numbers depend on it.
    pub(crate) first_row: Option<Tensor>,
    /// The values that are computed before all parts.
    pub(crate) before: &'a [Option<Tensor>],
    /// The values of the part.
    pub(crate) values: Vec<Option<Tensor>>,
    /// The rows that `cuts` lists, where they are known.
    pub(crate) cut_values: Vec<Option<Tensor>>,
}

impl<'a> PartTrace<'a> {
    pub(crate) fn new(
        (graph, classes, cuts): (&'a Graph, &'a Classes, &'a Cuts),
        (rows, whole_rows): (usize, usize),
        first_row: Option<Tensor>,
        before: &'a [Option<Tensor>],
    ) -> PartTrace<'a> {
        let (values, cut_values) = (vec![None; graph.values.len()], vec![None; cuts.0.len()]);
        PartTrace { graph, classes, cuts, whole_rows, rows, first_row, before, values, cut_values }
    }

    /// The value of a node's outputs.
    pub(crate) fn set(&mut self, node: &Node, outputs: Vec<Tensor>) {
        for (id, output) in node.outputs.iter().zip(outputs) {
            self.values[id.index()] = Some(output);
        }
    }

    /// Calls a node's op with a sum in place of its first input, which is zero.
    pub(crate) fn call_adding_to(
        &mut self,
        sum: &Tensor,
        node: &Node,
        split: &RowSplit,
    ) -> Result<Vec<Tensor>> {
        let first = node.inputs[0].index();
        self.values[first] = Some(sum.clone());
        let outputs = self.call(node, split);
        self.values[first] = None;
        outputs
    }

    /// Calls a node's op for the part.
    pub(crate) fn call(&mut self, node: &Node, split: &RowSplit) -> Result<Vec<Tensor>> {
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
            let first_row = self.first_row.as_ref().ok_or_else(missing)?;
            inputs.push(mul(first_row, elements as i64)?);
        }
        let op = part_op(self.graph, node, split, (self.rows, self.whole_rows));
        let op = op.ok_or_else(|| {
            let message =
                format!("{} has no form for {} of {} rows", node.op.name(), self.rows, self.whole_rows);
            Error::new(ErrorKind::Graph, message).at(node.at)
        })?;
        let outputs = apply_at(&*op, &mut inputs, node.at)?;
        if !split.is_mean {
            return Ok(outputs.into_vec());
        }
        let weight = self.rows as f64 / self.whole_rows as f64;
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
        let position = self.cuts.position(id, axis).ok_or_else(missing)?;
        if let Some(known) = &self.cut_values[position] {
            return Ok(known.clone());
        }
        let (i, split) = self.cuts.0[position].computed.as_ref().ok_or_else(missing)?;
        let node = &self.graph.nodes[*i];
        let rows = with_source_location(None, node.at, || self.call(node, split))?.swap_remove(0);
        self.cut_values[position] = Some(rows.clone());
        Ok(rows)
    }

    /// A value that is the same for all parts. Views and constants of one number are made inside of the loop, where they take no
    /// memory; other values are captured.
    pub(crate) fn same(&mut self, id: ValueId) -> Result<Tensor> {
        if let Some((i, node)) = producer(self.graph, id)
            && matches!(self.classes.nodes[i], NodeClass::Before)
            && !self.classes.is_whole(i)
            && is_free(self.graph, node)
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
fn is_free(graph: &Graph, node: &Node) -> bool {
    let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
    match node.op.form(&inputs) {
        Form::Uniform(_) => true,
        Form::OptimizationBarrier => false,
        _ => node.op.kernel().is_view(),
    }
}
