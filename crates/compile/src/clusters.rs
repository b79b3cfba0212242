//! Clusters of elementwise nodes: each becomes one kernel.
//!
//! Nodes are visited from the last to the first, so that a producer joins its readers: a value that only the backward pass
//! reads is then computed there, and not kept from the forward pass. The fused graph must stay acyclic: no path may leave a
//! cluster and enter it again, and no two clusters may reach each other. [`Reachability`] decides that.

use crate::liveness::last_uses;
use crate::reachability::{Reachability, SlotSet};
use smallvec::SmallVec;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Kernel, Shape, Spec};
use taut_kernels::elementwise::{Binary, Code, Unary};
use taut_kernels::reduce::Reduce;

/// The most operands and outputs of a kernel: sets of their positions are 64-bit words.
pub(crate) const MAX_OPERANDS: usize = 60;
/// The most steps of a kernel.
const MAX_STEPS: usize = 64;
/// The distance in nodes up to which a computation may move without a check of what that keeps alive.
pub(crate) const WINDOW: usize = 16;
/// Up to this many bytes, one kernel less is worth more than memory.
pub(crate) const SMALL: usize = 4096;
/// The most clusters that recompute one node.
const MAX_COPIES: usize = 4;

/// How a node takes part in fusion.
#[derive(Clone, Debug)]
pub(crate) enum FusionRole {
    Elementwise(Code),
    /// The axes that are reduced are marked.
    Reduction(Reduce, SmallVec<[bool; 8]>),
    /// It is not fused.
    Other,
}

/// Nodes that become one node.
#[derive(Debug)]
pub(crate) struct FusionCluster {
    /// The elementwise nodes.
    pub(crate) members: Vec<usize>,
    /// The reduction at the end.
    pub(crate) reduction: Option<usize>,
    /// The last node of the cluster.
    pub(crate) last: usize,
    /// Its slots in [`Reachability`]; 0 if it no longer grows.
    slots: SlotSet,
    inputs: SmallVec<[ValueId; 8]>,
    outputs: usize,
    /// Nodes outside that read its outputs.
    readers: Vec<usize>,
}

/// The clusters of a graph.
pub(crate) struct FusionClusters<'a> {
    graph: &'a Graph,
    pub(crate) roles: Vec<FusionRole>,
    pub(crate) list: Vec<FusionCluster>,
    /// Per node, its clusters: none, one, or several that each recompute it.
    pub(crate) clusters_of: Vec<SmallVec<[usize; 1]>>,
    /// Per value, the nodes that read it.
    pub(crate) readers: Vec<SmallVec<[usize; 2]>>,
    /// Per value, whether it is returned.
    pub(crate) returned: Vec<bool>,
    /// The last node that needs each value or a view of it.
    last_use: Vec<usize>,
    reachability: Reachability,
}

impl<'a> FusionClusters<'a> {
    pub(crate) fn find(graph: &'a Graph) -> FusionClusters<'a> {
        let mut clusters = FusionClusters::new(graph);
        for number in (0..graph.nodes.len()).rev() {
            match &clusters.roles[number] {
                FusionRole::Elementwise(_) => clusters.assign(number),
                FusionRole::Reduction(..) => clusters.open(number, true),
                FusionRole::Other => clusters.reachability.set(number, clusters.reachable(number)),
            }
        }
        clusters
    }

    fn new(graph: &'a Graph) -> FusionClusters<'a> {
        let mut readers = vec![SmallVec::new(); graph.values.len()];
        let mut returned = vec![false; graph.values.len()];
        graph.outputs.iter().for_each(|id| returned[id.index()] = true);
        for (number, node) in graph.nodes.iter().enumerate().rev() {
            for id in &node.inputs {
                let list: &mut SmallVec<[usize; 2]> = &mut readers[id.index()];
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
        FusionClusters {
            graph,
            roles: graph.nodes.iter().map(|node| role(graph, node)).collect(),
            list: Vec::new(),
            clusters_of: vec![SmallVec::new(); graph.nodes.len()],
            readers,
            returned,
            last_use: last_uses(graph),
            reachability: Reachability::new(graph.nodes.len()),
        }
    }

    /// The slots reachable from a node.
    fn reachable(&self, number: usize) -> SlotSet {
        let outputs = self.graph.nodes[number].outputs.iter();
        let readers = outputs.flat_map(|id| &self.readers[id.index()]);
        readers.fold(0, |slots, &reader| slots | self.reachability.from(reader))
    }

    /// The shape that a cluster runs over.
    pub(crate) fn shape(&self, cluster: &FusionCluster) -> &Shape {
        let node = &self.graph.nodes[cluster.last];
        let id = if cluster.reduction.is_some() { node.inputs[0] } else { node.outputs[0] };
        &self.graph.spec(id).shape
    }

    /// Opens a cluster with this node.
    fn open(&mut self, number: usize, is_reduction: bool) {
        let (slots, stopped) = self.reachability.open(self.reachable(number));
        if stopped != 0 {
            for cluster in self.list.iter_mut().filter(|cluster| cluster.slots & stopped != 0) {
                cluster.slots = 0;
            }
        }
        self.reachability.set(number, slots);
        let outputs = &self.graph.nodes[number].outputs;
        let readers = outputs.iter().flat_map(|id| &self.readers[id.index()]).copied().collect();
        self.clusters_of[number].push(self.list.len());
        self.list.push(FusionCluster {
            members: if is_reduction { Vec::new() } else { vec![number] },
            reduction: is_reduction.then_some(number),
            last: number,
            slots,
            inputs: self.operands(number).collect(),
            outputs: 1,
            readers,
        });
    }

    /// The values that a node reads as operands of the kernel: scalar constants become part of its program.
    fn operands(&self, number: usize) -> impl Iterator<Item = ValueId> + use<'a> {
        let graph = self.graph;
        graph.nodes[number].inputs.iter().copied().filter(move |&id| !is_number(graph, id))
    }

    /// Whether a value computed in a cluster is read outside it. A value that other clusters recompute is not.
    pub(crate) fn leaves(&self, id: ValueId, cluster: usize) -> bool {
        let Origin::Node { node, .. } = self.graph.values[id.index()].origin else { return false };
        let copied = self.clusters_of[node].len() > 1;
        !copied && (self.returned[id.index()] || !self.outside(&self.readers[id.index()], cluster).is_empty())
    }

    /// Whether a node adds a product to a value that nothing else reads: that can be computed in place, without memory for the product.
    fn is_accumulation(&self, number: usize) -> bool {
        if !matches!(self.roles[number], FusionRole::Elementwise(Code::Binary(Binary::Add))) {
            return false;
        }
        let node = &self.graph.nodes[number];
        let spec = self.graph.spec(node.outputs[0]);
        let has_no_other_reader = |id: &ValueId| {
            self.graph.spec(*id) == spec && self.readers[id.index()].len() == 1 && !self.returned[id.index()]
        };
        let is_product = |id: &ValueId| match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => matches!(self.graph.nodes[node].op.kernel(), Kernel::Contract),
            _ => false,
        };
        node.inputs.iter().all(has_no_other_reader) && node.inputs.iter().any(is_product)
    }

    /// Assigns an elementwise node to the clusters of its readers, or to one of its own.
    fn assign(&mut self, number: usize) {
        let output = self.graph.nodes[number].outputs[0];
        let shape = &self.graph.spec(output).shape;
        let readers = self.readers[output.index()].clone();
        // As one kernel, the additions of several products would keep all of them.
        if let [reader] = readers[..]
            && self.is_accumulation(reader)
            && self.is_accumulation(number)
        {
            self.open(number, false);
            return;
        }
        let mut near: SmallVec<[usize; 4]> = SmallVec::new();
        for &home in readers.iter().flat_map(|&reader| &self.clusters_of[reader]) {
            let cluster = &self.list[home];
            if cluster.slots != 0 && !near.contains(&home) && self.shape(cluster) == shape {
                near.push(home);
            }
        }
        if let [only] = near[..]
            && self.outside(&readers, only).is_empty()
            && !self.returned[output.index()]
        {
            if self.join(number, only) {
                return;
            }
        } else {
            let plain: SmallVec<[usize; 4]> =
                near.iter().copied().filter(|&home| self.list[home].reduction.is_none()).collect();
            if let Some((&first, others)) = plain.split_first() {
                for &other in others {
                    self.merge(first, other);
                }
            }
            near.retain(|&mut home| self.list[home].slots != 0);
            if near.len() > 1 && self.recompute_in(number, &readers, &near) {
                return;
            }
            // The latest first; the backward pass reads much of what the forward pass reads, too, and can be reached from there.
            if plain.iter().any(|&home| self.join(number, home)) {
                return;
            }
        }
        self.open(number, false);
    }

    /// The readers that are outside of a cluster, or in others as well.
    fn outside(&self, readers: &[usize], cluster: usize) -> SmallVec<[usize; 4]> {
        readers.iter().copied().filter(|&reader| self.clusters_of[reader][..] != [cluster]).collect()
    }

    /// The operands of a cluster if a node were in it.
    fn inputs_with(&self, number: usize, cluster: usize) -> SmallVec<[ValueId; 8]> {
        let output = self.graph.nodes[number].outputs[0];
        let mut inputs: SmallVec<[ValueId; 8]> =
            self.list[cluster].inputs.iter().copied().filter(|&id| id != output).collect();
        for id in self.operands(number) {
            if !inputs.contains(&id) {
                inputs.push(id);
            }
        }
        inputs
    }

    /// Adds a node to a cluster that reads it, if that makes no cycle, stays within the limits, and does not keep more
    /// bytes alive than it saves.
    fn join(&mut self, number: usize, home: usize) -> bool {
        let output = self.graph.nodes[number].outputs[0];
        let outside = self.outside(&self.readers[output.index()], home);
        let cluster = &self.list[home];
        let leaves = !outside.is_empty() || self.returned[output.index()];
        let reachable = outside.iter().fold(0, |slots, &reader| slots | self.reachability.from(reader));
        let inputs = self.inputs_with(number, home);
        let outputs = cluster.outputs + usize::from(leaves);
        if cluster.slots == 0
            || reachable & cluster.slots != 0
            || (leaves && cluster.reduction.is_some())
            || (self.runs_twice(cluster) && !self.is_cheap(number))
            || cluster.members.len() >= MAX_STEPS
            || inputs.len() + outputs > MAX_OPERANDS
        {
            return false;
        }
        // Its last outside reader comes before the cluster, which can then compute in place of it. Computed inside, it would
        // be live beside the results.
        let kept = self.returned[output.index()] || self.last_use[output.index()] > cluster.last;
        if leaves && !kept && self.graph.spec(output).bytes() > SMALL {
            return false;
        }
        let far = cluster.last - number > WINDOW + cluster.members.len();
        if far && (leaves || self.kept_alive(number, cluster.last) > self.graph.spec(output).bytes()) {
            return false;
        }
        self.reachability.extend(cluster.slots, reachable);
        self.reachability.set(number, cluster.slots);
        self.clusters_of[number].push(home);
        let cluster = &mut self.list[home];
        cluster.members.push(number);
        cluster.inputs = inputs;
        cluster.outputs = outputs;
        cluster.readers.extend(outside);
        true
    }

    /// Whether the kernel computes every element twice: logsumexp first computes the maximum.
    fn runs_twice(&self, cluster: &FusionCluster) -> bool {
        matches!(self.roles[cluster.last], FusionRole::Reduction(Reduce::LogSumExp, _))
    }

    fn is_cheap(&self, number: usize) -> bool {
        matches!(self.roles[number], FusionRole::Elementwise(code) if is_cheap(code))
    }

    /// The bytes of operands whose live ranges would be extended to `last`.
    fn kept_alive(&self, number: usize, last: usize) -> usize {
        let bases = self.graph.nodes[number].inputs.iter().map(|&id| self.graph.base(id));
        let dying = bases.filter(|id| self.last_use[id.index()] < last);
        dying.map(|id| self.graph.spec(id).bytes()).sum()
    }

    /// Merges two clusters, under the same conditions.
    fn merge(&mut self, a: usize, b: usize) -> bool {
        let (one, two) = (&self.list[a], &self.list[b]);
        let inside = |reader: usize| self.clusters_of[reader].iter().all(|&home| home == a || home == b);
        let leaves = |from: &FusionCluster| {
            let outside =
                from.readers.iter().filter(|&&reader| self.clusters_of[reader].is_empty() || !inside(reader));
            outside.fold(0, |slots, &reader| slots | self.reachability.from(reader))
        };
        let (after_one, after_two) = (leaves(one), leaves(two));
        let mut inputs = one.inputs.clone();
        inputs.extend(two.inputs.iter().copied().filter(|id| !one.inputs.contains(id)));
        if one.slots == 0
            || two.slots == 0
            || (after_one | after_two) & (one.slots | two.slots) != 0
            || one.members.len() + two.members.len() >= MAX_STEPS
            || inputs.len() + one.outputs + two.outputs > MAX_OPERANDS
            || one.last.abs_diff(two.last) > WINDOW + one.members.len().min(two.members.len())
        {
            return false;
        }
        let slots = one.slots | two.slots;
        self.reachability.extend(slots, after_one | after_two);
        let gone = std::mem::replace(
            &mut self.list[b],
            FusionCluster {
                members: Vec::new(),
                reduction: None,
                last: 0,
                slots: 0,
                inputs: SmallVec::new(),
                outputs: 0,
                readers: Vec::new(),
            },
        );
        let kept = &mut self.list[a];
        for &member in &gone.members {
            let clusters_of = &mut self.clusters_of[member];
            clusters_of.retain(|&mut home| home != b);
            if !clusters_of.contains(&a) {
                clusters_of.push(a);
                kept.members.push(member);
            }
        }
        kept.slots = slots;
        kept.last = kept.last.max(gone.last);
        kept.outputs += gone.outputs;
        kept.readers.extend(gone.readers);
        let clusters_of = &self.clusters_of;
        kept.readers.retain(|&reader| clusters_of[reader][..] != [a]);
        let made_inside = |id: ValueId| match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => clusters_of[node].contains(&a),
            _ => false,
        };
        inputs.retain(|id| !made_inside(*id));
        kept.inputs = inputs;
        true
    }

    /// Lets every cluster that reads a cheap node recompute it, so that its value need not be stored.
    fn recompute_in(&mut self, number: usize, readers: &[usize], clusters_of: &[usize]) -> bool {
        let output = self.graph.nodes[number].outputs[0];
        let shape = &self.graph.spec(output).shape;
        let mut large: SmallVec<[ValueId; 3]> = self.operands(number).map(|id| self.graph.base(id)).collect();
        large.retain(|id| self.graph.spec(*id).shape.len() >= shape.len());
        large.dedup();
        let covered = |reader: &usize| {
            !self.clusters_of[*reader].is_empty()
                && self.clusters_of[*reader].iter().all(|home| clusters_of.contains(home))
        };
        let last = clusters_of.iter().map(|&home| self.list[home].last).max().unwrap_or(0);
        if !self.is_cheap(number)
            || self.returned[output.index()]
            || clusters_of.is_empty()
            || clusters_of.len() > MAX_COPIES
            || large.len() > 1
            || !readers.iter().all(covered)
            || self.kept_alive(number, last) > self.graph.spec(output).bytes()
        {
            return false;
        }
        let inputs: SmallVec<[_; 4]> =
            clusters_of.iter().map(|&home| self.inputs_with(number, home)).collect();
        let fits = |(&home, inputs): (&usize, &SmallVec<[ValueId; 8]>)| {
            let cluster = &self.list[home];
            cluster.members.len() < MAX_STEPS && inputs.len() + cluster.outputs <= MAX_OPERANDS
        };
        if !clusters_of.iter().zip(&inputs).all(fits) {
            return false;
        }
        let mut slots = 0;
        for (&home, inputs) in clusters_of.iter().zip(inputs) {
            let cluster = &mut self.list[home];
            slots |= cluster.slots;
            cluster.members.push(number);
            cluster.inputs = inputs;
            self.clusters_of[number].push(home);
        }
        self.reachability.set(number, slots);
        true
    }
}

fn role(graph: &Graph, node: &Node) -> FusionRole {
    let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
    match node.op.form(&specs) {
        Form::Elementwise(code) => FusionRole::Elementwise(code),
        Form::Reduce { code, axes }
            if taut_fused::FusedKernel::reduces(code, specs[0].dtype) && !specs[0].shape.is_empty() =>
        {
            FusionRole::Reduction(code, axes)
        }
        _ => FusionRole::Other,
    }
}

/// Whether a value is a constant of one element.
pub(crate) fn is_number(graph: &Graph, id: ValueId) -> bool {
    matches!(&graph.values[id.index()].origin, Origin::Constant(tensor) if tensor.len() == 1)
}

/// Whether recomputing it costs no more than reading it from memory.
fn is_cheap(code: Code) -> bool {
    use Binary::*;
    match code {
        Code::Cast(_) | Code::Copy => true,
        Code::Unary(code) => {
            matches!(code, Unary::Neg | Unary::Abs | Unary::Square | Unary::Relu | Unary::LogicalNot)
        }
        Code::Binary(code) => matches!(
            code,
            Add | Sub
                | Mul
                | Maximum
                | Minimum
                | Eq
                | Ne
                | Lt
                | Le
                | Gt
                | Ge
                | LogicalAnd
                | LogicalOr
                | LogicalXor
        ),
        Code::Select | Code::Clip => false,
    }
}
