//! Which values of a graph are spilled, and the graph that does so.

use super::file::SpillFile;
use super::op::{Load, Store, position_spec};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use taut_core::graph::{GraphValue, Node, Origin, ValueId};
use taut_core::{Graph, Result, Spec};

/// Smaller values are not worth a call of the system.
const LEAST_BYTES: usize = 4096;

/// The same graph, in which a share of the values that wait at its peak is written to a file and read back before the next read:
/// those that wait longest. Returns it with the bytes that are written; `None` if there are none.
pub(crate) fn with_spilled_values(
    graph: &Graph,
    file: &Arc<SpillFile>,
    share: f64,
) -> Result<Option<(Graph, usize)>> {
    let mut waits = waits_at_peak(graph);
    waits.sort_by_key(|wait| (std::cmp::Reverse(wait.next_read - wait.last_read), wait.value));
    let bytes = |wait: &Wait| graph.spec(wait.value).bytes();
    let most = (waits.iter().map(bytes).sum::<usize>() as f64 * share) as usize;
    let mut spilled = 0;
    waits.retain(|wait| {
        let fits = spilled + bytes(wait) <= most;
        spilled += if fits { bytes(wait) } else { 0 };
        fits
    });
    if waits.is_empty() {
        return Ok(None);
    }
    let graph = Rewrite::new(graph, file).apply(&waits);
    graph.verify()?;
    Ok(Some((graph, spilled)))
}

/// A value that nothing reads for some time.
struct Wait {
    value: ValueId,
    /// The nodes that read it, or a view of it, before and after.
    last_read: usize,
    next_read: usize,
}

/// The values that wait while most bytes are live.
fn waits_at_peak(graph: &Graph) -> Vec<Wait> {
    let reads = reads_of_values(graph);
    let peak = fullest_node(graph, &reads);
    let waits = reads.iter().enumerate().filter_map(|(value, reads)| {
        let value = ValueId(value as u32);
        let pair = reads.windows(2).find(|pair| pair[0] < peak && peak < pair[1])?;
        let is_large = graph.spec(value).bytes() >= LEAST_BYTES;
        is_large.then_some(Wait { value, last_read: pair[0], next_read: pair[1] })
    });
    waits.collect()
}

/// Per value that a node computes, that node and the nodes that read it or a view of it, ascending. Empty for views, inputs,
/// constants and outputs of the graph.
fn reads_of_values(graph: &Graph) -> Vec<Vec<usize>> {
    let mut reads: Vec<Vec<usize>> = vec![Vec::new(); graph.values.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        let is_view = node.op.kernel().is_view();
        for &output in node.outputs.iter().filter(|_| !is_view) {
            reads[output.index()].push(number);
        }
        for &input in node.inputs.iter().filter(|_| !is_view) {
            reads[graph.base(input).index()].push(number);
        }
    }
    let is_computed = |value: &GraphValue| matches!(value.origin, Origin::Node { .. });
    for (value, reads) in graph.values.iter().zip(&mut reads) {
        if !is_computed(value) {
            reads.clear();
        }
    }
    graph.outputs.iter().for_each(|&output| reads[graph.base(output).index()].clear());
    reads
}

/// The node at which most bytes are live, in the order of the graph.
fn fullest_node(graph: &Graph, reads: &[Vec<usize>]) -> usize {
    let mut change = vec![0i64; graph.nodes.len() + 1];
    for (value, reads) in reads.iter().enumerate() {
        if let [first, .., last] = reads[..] {
            let bytes = graph.values[value].spec.bytes() as i64;
            change[first] += bytes;
            change[last + 1] -= bytes;
        }
    }
    let mut live = 0;
    let loads = change.iter().map(|change| {
        live += change;
        live
    });
    loads.enumerate().max_by_key(|&(node, live)| (live, std::cmp::Reverse(node))).map_or(0, |(node, _)| node)
}

/// A graph under construction, with other nodes for the same values.
struct Rewrite<'a> {
    old: &'a Graph,
    file: &'a Arc<SpillFile>,
    values: Vec<GraphValue>,
    nodes: Vec<Node>,
    /// Values that were loaded, and views of them, by what they replace.
    loaded: HashMap<ValueId, ValueId>,
}

impl<'a> Rewrite<'a> {
    fn new(old: &'a Graph, file: &'a Arc<SpillFile>) -> Rewrite<'a> {
        let values = old.values.clone();
        Rewrite { old, file, values, nodes: Vec::new(), loaded: HashMap::new() }
    }

    fn apply(mut self, waits: &[Wait]) -> Graph {
        let mut positions = HashMap::new();
        for (number, node) in self.old.nodes.iter().enumerate() {
            for wait in waits.iter().filter(|wait| wait.next_read == number) {
                let spec = self.old.spec(wait.value).clone();
                let load = Node {
                    op: Arc::new(Load(self.file.clone(), spec.clone())),
                    inputs: [positions[&wait.value]].into_iter().collect(),
                    outputs: SmallVec::new(),
                    at: node.at,
                };
                let loaded = self.add(load, spec);
                self.loaded.insert(wait.value, loaded);
            }
            let inputs = node.inputs.iter().map(|&input| self.current(input)).collect();
            let node = Node { inputs, ..node.clone() };
            if node.op.kernel().is_view() && node.inputs != self.old.nodes[number].inputs {
                // A view of what was loaded already.
                self.loaded.extend(node.outputs.iter().map(|&output| (output, output)));
            }
            let at = node.at;
            self.push(node);
            for wait in waits.iter().filter(|wait| wait.last_read == number) {
                let store = Node {
                    op: Arc::new(Store(self.file.clone())),
                    inputs: [wait.value].into_iter().collect(),
                    outputs: SmallVec::new(),
                    at,
                };
                let position = self.add(store, position_spec());
                positions.insert(wait.value, position);
            }
        }
        let Graph { inputs, outputs, .. } = self.old.clone();
        Graph { values: self.values, nodes: self.nodes, inputs, outputs }
    }

    /// The value that is read in place of this one: itself, what was loaded, or the same view of that.
    fn current(&mut self, value: ValueId) -> ValueId {
        if let Some(&loaded) = self.loaded.get(&value) {
            return loaded;
        }
        let Origin::Node { node, .. } = self.old.values[value.index()].origin else { return value };
        let view = &self.old.nodes[node];
        if !view.op.kernel().is_view() || !self.loaded.contains_key(&self.old.base(value)) {
            return value;
        }
        let input = self.current(view.inputs[0]);
        let node = Node { inputs: [input].into_iter().collect(), outputs: SmallVec::new(), ..view.clone() };
        let again = self.add(node, self.old.spec(value).clone());
        self.loaded.insert(value, again);
        again
    }

    /// Adds a node with a new output.
    fn add(&mut self, mut node: Node, spec: Spec) -> ValueId {
        let value = ValueId(self.values.len() as u32);
        self.values.push(GraphValue { spec, origin: Origin::Node { node: 0, output: 0 } });
        node.outputs.push(value);
        self.push(node);
        value
    }

    fn push(&mut self, node: Node) {
        let number = self.nodes.len();
        for (output, value) in node.outputs.iter().enumerate() {
            self.values[value.index()].origin = Origin::Node { node: number, output };
        }
        self.nodes.push(node);
    }
}
