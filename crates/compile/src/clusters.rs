//! Which elementwise nodes become one kernel.
//!
//! Nodes are met from the last to the first, so that a producer joins those who read it: what only a gradient needs is
//! then computed where the gradient is, not kept from where its operand was made. A cluster never has a path that leaves
//! it and comes back, nor two clusters a path into each other both ways: [`Reach`] knows.

use crate::reach::{Reach, Slots};
use crate::uses::{base, last_uses};
use smallvec::SmallVec;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Shape, Spec};
use taut_kernels::elementwise::{Binary, Code, Unary};
use taut_kernels::reduce::Reduce;

/// The most operands and outputs of a kernel: more do not fit the sets of positions that others keep of them.
pub(crate) const MOST_OPERANDS: usize = 60;
/// The most steps of a kernel.
const MOST_STEPS: usize = 64;
/// How many other nodes away something may be computed without asking what that keeps alive.
const WINDOW: usize = 16;
/// Up to this many bytes, one kernel less is worth more than memory.
const SMALL: usize = 4096;
/// The most kernels that compute the same thing again.
const MOST_COPIES: usize = 4;

/// What a node is to fusion.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Elements(Code),
    Fold(Reduce, SmallVec<[bool; 8]>),
    Other,
}

/// Nodes that become one.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The elementwise nodes.
    pub(crate) members: Vec<usize>,
    /// The reduction at the end.
    pub(crate) fold: Option<usize>,
    /// Its last node.
    pub(crate) last: usize,
    /// Its slots, none if it does not grow any more.
    slots: Slots,
    inputs: SmallVec<[ValueId; 8]>,
    outputs: usize,
    /// Nodes outside that read its outputs.
    readers: Vec<usize>,
}

/// What [`Clusters::find`] found.
pub(crate) struct Clusters<'a> {
    graph: &'a Graph,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) list: Vec<Cluster>,
    /// The clusters that a node is in: none, one, or several that compute it again each.
    pub(crate) homes: Vec<SmallVec<[usize; 1]>>,
    /// The nodes that read each value, and whether it is returned.
    pub(crate) readers: Vec<SmallVec<[usize; 2]>>,
    pub(crate) returned: Vec<bool>,
    /// The last node that needs each value or a view of it.
    last_use: Vec<usize>,
    reach: Reach,
}

impl<'a> Clusters<'a> {
    pub(crate) fn find(graph: &'a Graph) -> Clusters<'a> {
        let mut clusters = Clusters::new(graph);
        for number in (0..graph.nodes.len()).rev() {
            match &clusters.kinds[number] {
                Kind::Elements(_) => clusters.place(number),
                Kind::Fold(..) => clusters.open(number, true),
                Kind::Other => clusters.reach.set(number, clusters.behind(number)),
            }
        }
        clusters
    }

    fn new(graph: &'a Graph) -> Clusters<'a> {
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
        Clusters {
            graph,
            kinds: graph.nodes.iter().map(|node| kind(graph, node)).collect(),
            list: Vec::new(),
            homes: vec![SmallVec::new(); graph.nodes.len()],
            readers,
            returned,
            last_use: last_uses(graph),
            reach: Reach::new(graph.nodes.len()),
        }
    }

    /// The slots behind a node.
    fn behind(&self, number: usize) -> Slots {
        let outputs = self.graph.nodes[number].outputs.iter();
        let readers = outputs.flat_map(|id| &self.readers[id.index()]);
        readers.fold(0, |slots, &reader| slots | self.reach.from(reader))
    }

    /// The shape that a cluster runs over.
    pub(crate) fn shape(&self, cluster: &Cluster) -> &Shape {
        let node = &self.graph.nodes[cluster.last];
        let id = if cluster.fold.is_some() { node.inputs[0] } else { node.outputs[0] };
        &self.graph.spec(id).shape
    }

    /// A cluster of its own for a node.
    fn open(&mut self, number: usize, is_fold: bool) {
        let (slots, stopped) = self.reach.open(self.behind(number));
        if stopped != 0 {
            for cluster in self.list.iter_mut().filter(|cluster| cluster.slots & stopped != 0) {
                cluster.slots = 0;
            }
        }
        self.reach.set(number, slots);
        let outputs = &self.graph.nodes[number].outputs;
        let readers = outputs.iter().flat_map(|id| &self.readers[id.index()]).copied().collect();
        self.homes[number].push(self.list.len());
        self.list.push(Cluster {
            members: if is_fold { Vec::new() } else { vec![number] },
            fold: is_fold.then_some(number),
            last: number,
            slots,
            inputs: self.operands(number).collect(),
            outputs: 1,
            readers,
        });
    }

    /// What a node reads that is no constant of the program.
    fn operands(&self, number: usize) -> impl Iterator<Item = ValueId> + use<'a> {
        let graph = self.graph;
        graph.nodes[number].inputs.iter().copied().filter(move |&id| !is_number(graph, id))
    }

    /// Whether a value that a cluster makes is needed outside it. One that others compute for themselves is not.
    pub(crate) fn leaves(&self, id: ValueId, cluster: usize) -> bool {
        let Origin::Node { node, .. } = self.graph.values[id.index()].origin else { return false };
        let copied = self.homes[node].len() > 1;
        !copied && (self.returned[id.index()] || !self.outside(&self.readers[id.index()], cluster).is_empty())
    }

    /// Finds an elementwise node its cluster.
    fn place(&mut self, number: usize) {
        let output = self.graph.nodes[number].outputs[0];
        let shape = &self.graph.spec(output).shape;
        let readers = self.readers[output.index()].clone();
        let mut near: SmallVec<[usize; 4]> = SmallVec::new();
        for &home in readers.iter().flat_map(|&reader| &self.homes[reader]) {
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
                near.iter().copied().filter(|&home| self.list[home].fold.is_none()).collect();
            if let Some((&first, others)) = plain.split_first() {
                for &other in others {
                    self.merge(first, other);
                }
            }
            near.retain(|&mut home| self.list[home].slots != 0);
            if near.len() > 1 && self.copy_into(number, &readers, &near) {
                return;
            }
            if plain.first().is_some_and(|&first| self.join(number, first)) {
                return;
            }
        }
        self.open(number, false);
    }

    /// The readers that are not in a cluster, or not in it alone.
    fn outside(&self, readers: &[usize], cluster: usize) -> SmallVec<[usize; 4]> {
        readers.iter().copied().filter(|&reader| self.homes[reader][..] != [cluster]).collect()
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

    /// Puts a node into a cluster that reads it, if that makes no circle, stays within the limits, and does not keep more
    /// alive than it saves.
    fn join(&mut self, number: usize, home: usize) -> bool {
        let output = self.graph.nodes[number].outputs[0];
        let outside = self.outside(&self.readers[output.index()], home);
        let cluster = &self.list[home];
        let leaves = !outside.is_empty() || self.returned[output.index()];
        let behind = outside.iter().fold(0, |slots, &reader| slots | self.reach.from(reader));
        let inputs = self.inputs_with(number, home);
        let outputs = cluster.outputs + usize::from(leaves);
        if cluster.slots == 0
            || behind & cluster.slots != 0
            || (leaves && cluster.fold.is_some())
            || (self.runs_twice(cluster) && !self.is_cheap(number))
            || cluster.members.len() >= MOST_STEPS
            || inputs.len() + outputs > MOST_OPERANDS
        {
            return false;
        }
        // Others read it before the cluster, which could then overwrite it: inside, it would be there beside the results.
        let kept = self.returned[output.index()] || self.last_use[output.index()] > cluster.last;
        if leaves && !kept && self.graph.spec(output).bytes() > SMALL {
            return false;
        }
        let far = cluster.last - number > WINDOW + cluster.members.len();
        if far && (leaves || self.kept_alive(number, cluster.last) > self.graph.spec(output).bytes()) {
            return false;
        }
        self.reach.extend(cluster.slots, behind);
        self.reach.set(number, cluster.slots);
        self.homes[number].push(home);
        let cluster = &mut self.list[home];
        cluster.members.push(number);
        cluster.inputs = inputs;
        cluster.outputs = outputs;
        cluster.readers.extend(outside);
        true
    }

    /// Whether the kernel computes every element twice: the logarithm of a sum of exponentials looks for the largest first.
    fn runs_twice(&self, cluster: &Cluster) -> bool {
        matches!(self.kinds[cluster.last], Kind::Fold(Reduce::LogSumExp, _))
    }

    fn is_cheap(&self, number: usize) -> bool {
        matches!(self.kinds[number], Kind::Elements(code) if is_cheap(code))
    }

    /// The bytes of operands that would have to live until `last`, and would not otherwise.
    fn kept_alive(&self, number: usize, last: usize) -> usize {
        let bases = self.graph.nodes[number].inputs.iter().map(|&id| base(self.graph, id));
        let dying = bases.filter(|id| self.last_use[id.index()] < last);
        dying.map(|id| self.graph.spec(id).bytes()).sum()
    }

    /// Makes two clusters one, under the same conditions.
    fn merge(&mut self, a: usize, b: usize) -> bool {
        let (one, two) = (&self.list[a], &self.list[b]);
        let inside = |reader: usize| self.homes[reader].iter().all(|&home| home == a || home == b);
        let leaves = |from: &Cluster| {
            let outside =
                from.readers.iter().filter(|&&reader| self.homes[reader].is_empty() || !inside(reader));
            outside.fold(0, |slots, &reader| slots | self.reach.from(reader))
        };
        let (after_one, after_two) = (leaves(one), leaves(two));
        let mut inputs = one.inputs.clone();
        inputs.extend(two.inputs.iter().copied().filter(|id| !one.inputs.contains(id)));
        if one.slots == 0
            || two.slots == 0
            || (after_one | after_two) & (one.slots | two.slots) != 0
            || one.members.len() + two.members.len() >= MOST_STEPS
            || inputs.len() + one.outputs + two.outputs > MOST_OPERANDS
            || one.last.abs_diff(two.last) > WINDOW + one.members.len().min(two.members.len())
        {
            return false;
        }
        let slots = one.slots | two.slots;
        self.reach.extend(slots, after_one | after_two);
        let gone = std::mem::replace(
            &mut self.list[b],
            Cluster {
                members: Vec::new(),
                fold: None,
                last: 0,
                slots: 0,
                inputs: SmallVec::new(),
                outputs: 0,
                readers: Vec::new(),
            },
        );
        let kept = &mut self.list[a];
        for &member in &gone.members {
            let homes = &mut self.homes[member];
            homes.retain(|&mut home| home != b);
            if !homes.contains(&a) {
                homes.push(a);
                kept.members.push(member);
            }
        }
        kept.slots = slots;
        kept.last = kept.last.max(gone.last);
        kept.outputs += gone.outputs;
        kept.readers.extend(gone.readers);
        let homes = &self.homes;
        kept.readers.retain(|&reader| homes[reader][..] != [a]);
        let made_inside = |id: ValueId| match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => homes[node].contains(&a),
            _ => false,
        };
        inputs.retain(|id| !made_inside(*id));
        kept.inputs = inputs;
        true
    }

    /// Lets every cluster that reads a cheap node compute it again, where that means that it need not be kept.
    fn copy_into(&mut self, number: usize, readers: &[usize], homes: &[usize]) -> bool {
        let output = self.graph.nodes[number].outputs[0];
        let shape = &self.graph.spec(output).shape;
        let mut large: SmallVec<[ValueId; 3]> =
            self.operands(number).map(|id| base(self.graph, id)).collect();
        large.retain(|id| self.graph.spec(*id).shape.len() >= shape.len());
        large.dedup();
        let covered = |reader: &usize| {
            !self.homes[*reader].is_empty() && self.homes[*reader].iter().all(|home| homes.contains(home))
        };
        let last = homes.iter().map(|&home| self.list[home].last).max().unwrap_or(0);
        if !self.is_cheap(number)
            || self.returned[output.index()]
            || homes.is_empty()
            || homes.len() > MOST_COPIES
            || large.len() > 1
            || !readers.iter().all(covered)
            || self.kept_alive(number, last) > self.graph.spec(output).bytes()
        {
            return false;
        }
        let inputs: SmallVec<[_; 4]> = homes.iter().map(|&home| self.inputs_with(number, home)).collect();
        let fits = |(&home, inputs): (&usize, &SmallVec<[ValueId; 8]>)| {
            let cluster = &self.list[home];
            cluster.members.len() < MOST_STEPS && inputs.len() + cluster.outputs <= MOST_OPERANDS
        };
        if !homes.iter().zip(&inputs).all(fits) {
            return false;
        }
        let mut slots = 0;
        for (&home, inputs) in homes.iter().zip(inputs) {
            let cluster = &mut self.list[home];
            slots |= cluster.slots;
            cluster.members.push(number);
            cluster.inputs = inputs;
            self.homes[number].push(home);
        }
        self.reach.set(number, slots);
        true
    }
}

fn kind(graph: &Graph, node: &Node) -> Kind {
    let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
    match node.op.form(&specs) {
        Form::Elements(code) => Kind::Elements(code),
        Form::Fold { code, axes }
            if taut_fused::Kernel::folds(code, specs[0].dtype) && !specs[0].shape.is_empty() =>
        {
            Kind::Fold(code, axes)
        }
        _ => Kind::Other,
    }
}

/// Whether a value is one number, known ahead of time.
pub(crate) fn is_number(graph: &Graph, id: ValueId) -> bool {
    matches!(&graph.values[id.index()].origin, Origin::Constant(tensor) if tensor.len() == 1)
}

/// Whether computing it again costs no more than reading it.
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
