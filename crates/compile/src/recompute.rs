//! Recomputation: a cheap value that is read in the forward pass, and again much later by a product of the backward pass, is
//! computed again for the later readers, if what it is computed from is live then anyway. Its memory is free in between.
//!
//! The gradient of an activation keeps the operand, and the gradient of the product that reads the activation keeps the
//! result: one of the two is enough. The same holds for a batch norm with its ReLU between two convolutions.

use crate::clusters::{SMALL, WINDOW, is_number};
use crate::dead_code::eliminate_dead_code;
use crate::rewrite::{NodeInputs, Rewriter};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Spec};

/// The fewest nodes between two readers of a value for which it is computed twice.
const MIN_GAP: usize = 2 * WINDOW;
/// The most nodes that compute one value again.
const MAX_NODES: usize = 16;
/// A value is computed again only if its later readers do at least this many times the work.
const MIN_READER_WORK: u64 = 4;
/// The work of reading or writing an element of memory, in operations.
const ELEMENT_TRAFFIC: u64 = 16;
/// Operands smaller than the value by this factor may be kept alive for its recomputation.
const SMALL_OPERAND: usize = 16;

pub(crate) fn recompute(graph: Cow<'_, Graph>) -> Graph {
    let recomputed = RecomputeFinder::new(&graph).find();
    if recomputed.is_empty() {
        return graph.into_owned();
    }
    eliminate_dead_code(&RecomputeRewriter::new(&graph, &recomputed).run())
}

/// A value that is computed twice.
struct Recomputed {
    /// The first reader of the second computation.
    from: usize,
    /// The elementwise nodes that compute it, in rising order.
    nodes: Vec<usize>,
}

struct RecomputeFinder<'a> {
    graph: &'a Graph,
    /// Per value that is no view, the nodes that read it or a view of it, in rising order.
    readers: Vec<SmallVec<[usize; 4]>>,
    /// Per value, whether it or a view of it is returned.
    returned: Vec<bool>,
    /// Per node, the bytes of values that are kept over more than [`MIN_GAP`] nodes while it runs.
    kept_bytes: Vec<usize>,
    /// Per value, whether a recomputation reads it: it stays live until then.
    pinned: Vec<bool>,
}

impl<'a> RecomputeFinder<'a> {
    fn new(graph: &'a Graph) -> RecomputeFinder<'a> {
        let mut readers: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); graph.values.len()];
        for (number, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.op.kernel().is_view()) {
            for &id in &node.inputs {
                let list = &mut readers[graph.base(id).index()];
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
        let mut returned = vec![false; graph.values.len()];
        graph.outputs.iter().for_each(|&id| returned[graph.base(id).index()] = true);
        let pinned = vec![false; graph.values.len()];
        let mut finder = RecomputeFinder { graph, readers, returned, kept_bytes: Vec::new(), pinned };
        finder.kept_bytes = finder.count_kept_bytes();
        finder
    }

    fn count_kept_bytes(&self) -> Vec<usize> {
        let mut change = vec![0isize; self.graph.nodes.len() + 1];
        for (number, node) in self.graph.nodes.iter().enumerate() {
            for &id in node.outputs.iter().filter(|_| !node.op.kernel().is_view()) {
                let end = self.readers[id.index()].last().copied().unwrap_or(number);
                if end - number > MIN_GAP {
                    let bytes = self.graph.spec(id).bytes() as isize;
                    change[number] += bytes;
                    change[end] -= bytes;
                }
            }
        }
        let sum = |kept: &mut isize, change: isize| {
            *kept += change;
            Some(*kept as usize)
        };
        change.into_iter().scan(0, sum).collect()
    }

    /// The values that are computed twice.
    fn find(mut self) -> HashMap<ValueId, Recomputed> {
        let mut found = HashMap::new();
        let peak = self.kept_bytes.iter().copied().max().unwrap_or(0);
        // From the last to the first, so that the operands of a recomputation are known before they are visited.
        for (number, node) in self.graph.nodes.iter().enumerate().rev() {
            if node.outputs.len() == 1
                && let Some(recomputed) = self.at(number, peak)
            {
                for &id in recomputed.nodes.iter().flat_map(|&node| &self.graph.nodes[node].inputs) {
                    self.pinned[self.graph.base(id).index()] = true;
                }
                found.insert(node.outputs[0], recomputed);
            }
        }
        found
    }

    /// How the value of a node is computed again, if that is worth it.
    fn at(&self, number: usize, peak: usize) -> Option<Recomputed> {
        let output = self.graph.nodes[number].outputs[0];
        let spec = self.graph.spec(output);
        let readers = &self.readers[output.index()];
        if !self.is_elementwise(number)
            || self.returned[output.index()]
            || self.pinned[output.index()]
            || spec.bytes() <= SMALL
        {
            return None;
        }
        let gap = readers.windows(2).max_by_key(|pair| pair[1] - pair[0])?;
        let (before, from) = (gap[0], gap[1]);
        let kept = self.kept_bytes[before..from].iter().copied().max().unwrap_or(0);
        if from - before <= MIN_GAP || kept < peak / 4 * 3 {
            return None;
        }
        let later = readers.iter().filter(|&&reader| reader >= from);
        let work = later.fold(0u64, |work, &reader| work.saturating_add(self.work(reader)));
        let nodes = self.nodes_from(number, from)?;
        (work >= MIN_READER_WORK.saturating_mul(self.work_again(&nodes, spec)))
            .then_some(Recomputed { from, nodes })
    }

    fn is_elementwise(&self, number: usize) -> bool {
        let node = &self.graph.nodes[number];
        matches!(node.op.form(&self.input_specs(node)), Form::Elementwise(_))
    }

    fn input_specs(&self, node: &Node) -> SmallVec<[&'a Spec; 3]> {
        node.inputs.iter().map(|&id| self.graph.spec(id)).collect()
    }

    fn work(&self, number: usize) -> u64 {
        let node = &self.graph.nodes[number];
        let outputs: SmallVec<[Spec; 2]> =
            node.outputs.iter().map(|&id| self.graph.spec(id).clone()).collect();
        node.op.cost(&self.input_specs(node), &outputs).flops
    }

    /// The work of these nodes as one fused kernel that computes a value of this spec.
    fn work_again(&self, nodes: &[usize], spec: &Spec) -> u64 {
        let flops: u64 = nodes.iter().map(|&node| self.work(node)).sum();
        let made: Vec<ValueId> = nodes.iter().map(|&node| self.graph.nodes[node].outputs[0]).collect();
        let inputs = nodes.iter().flat_map(|&node| &self.graph.nodes[node].inputs);
        let mut read: Vec<ValueId> = inputs.copied().filter(|id| !made.contains(id)).collect();
        read.sort_unstable_by_key(|id| id.index());
        read.dedup();
        let read = read.iter().filter(|&&id| self.graph.spec(id).shape.len() == spec.shape.len()).count();
        flops + ELEMENT_TRAFFIC * (read as u64 + 1) * spec.shape.len() as u64
    }

    /// The elementwise nodes that compute the value of a node from values that are live at the node `at`.
    fn nodes_from(&self, number: usize, at: usize) -> Option<Vec<usize>> {
        let bytes = self.graph.spec(self.graph.nodes[number].outputs[0]).bytes();
        let mut nodes = vec![number];
        let mut next = 0;
        while next < nodes.len() {
            for &id in &self.graph.nodes[nodes[next]].inputs {
                let is_small = self.graph.spec(self.graph.base(id)).bytes() <= bytes / SMALL_OPERAND;
                if is_number(self.graph, id) || is_small || self.is_live(self.graph.base(id), at) {
                    continue;
                }
                match self.graph.values[id.index()].origin {
                    Origin::Node { node, .. } if self.is_elementwise(node) => {
                        if !nodes.contains(&node) {
                            nodes.push(node);
                        }
                    }
                    _ => return None,
                }
            }
            next += 1;
            if nodes.len() > MAX_NODES {
                return None;
            }
        }
        nodes.sort_unstable();
        Some(nodes)
    }

    /// Whether a value that is no view is live at a node.
    fn is_live(&self, id: ValueId, at: usize) -> bool {
        let is_computed = matches!(self.graph.values[id.index()].origin, Origin::Node { .. });
        !is_computed
            || self.returned[id.index()]
            || self.readers[id.index()].last().is_some_and(|&last| last >= at)
    }
}

/// Builds the graph in which values are computed twice.
struct RecomputeRewriter<'a> {
    graph: &'a Graph,
    recomputed: &'a HashMap<ValueId, Recomputed>,
    new: Rewriter,
    map: Vec<Option<ValueId>>,
    /// Recomputed values and views of them, for the later readers.
    again: HashMap<ValueId, ValueId>,
}

impl<'a> RecomputeRewriter<'a> {
    fn new(graph: &'a Graph, recomputed: &'a HashMap<ValueId, Recomputed>) -> RecomputeRewriter<'a> {
        let (new, map) = (Rewriter::new(graph), vec![None; graph.values.len()]);
        RecomputeRewriter { graph, recomputed, new, map, again: HashMap::new() }
    }

    fn run(mut self) -> Graph {
        let graph = self.graph;
        for (number, node) in graph.nodes.iter().enumerate() {
            let is_view = node.op.kernel().is_view();
            let mut inputs = NodeInputs::new();
            for &id in &node.inputs {
                let recomputed = self.recomputed.get(&graph.base(id));
                let again = !is_view && recomputed.is_some_and(|recomputed| number >= recomputed.from);
                inputs.push(if again { self.again(id) } else { self.copied(id) });
            }
            let made = self.push(node, inputs);
            for (&old, new) in node.outputs.iter().zip(made) {
                self.map[old.index()] = Some(new);
            }
        }
        let outputs = graph.outputs.iter().map(|&id| self.copied(id)).collect();
        self.new.finish(outputs)
    }

    fn copied(&mut self, id: ValueId) -> ValueId {
        self.new.copied(self.graph, &mut self.map, id)
    }

    fn push(&mut self, node: &Node, inputs: NodeInputs) -> SmallVec<[ValueId; 1]> {
        let specs = node.outputs.iter().map(|&id| self.graph.spec(id).clone()).collect();
        self.new.push(node.op.clone(), inputs, specs, node.at)
    }

    /// A recomputed value, or a view of one, for its later readers.
    fn again(&mut self, id: ValueId) -> ValueId {
        if let Some(&again) = self.again.get(&id) {
            return again;
        }
        let graph = self.graph;
        let again = match (self.recomputed.get(&id), &graph.values[id.index()].origin) {
            (Some(recomputed), _) => self.compute_again(id, recomputed),
            (None, &Origin::Node { node, .. }) => {
                let node = &graph.nodes[node];
                let viewed = self.again(node.inputs[0]);
                let rest = node.inputs[1..].iter().map(|&id| self.copied(id));
                let inputs = [viewed].into_iter().chain(rest).collect();
                self.push(node, inputs)[0]
            }
            (None, _) => self.copied(id),
        };
        self.again.insert(id, again);
        again
    }

    fn compute_again(&mut self, id: ValueId, recomputed: &Recomputed) -> ValueId {
        let graph = self.graph;
        let mut made: HashMap<ValueId, ValueId> = HashMap::new();
        for &number in &recomputed.nodes {
            let node = &graph.nodes[number];
            let input = |&id: &ValueId| made.get(&id).copied().unwrap_or_else(|| self.copied(id));
            let inputs = node.inputs.iter().map(input).collect();
            let new = self.push(node, inputs)[0];
            made.insert(node.outputs[0], new);
        }
        made[&id]
    }
}
