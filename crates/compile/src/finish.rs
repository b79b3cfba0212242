//! Lets a product end in what is computed of it: a bias is added and an activation taken while a block of the product is in
//! the caches, by one node.
//!
//! Nothing lives longer for it. Where all that the ending reads is there when the product is made, the product's place is
//! that of its result; where not, the product waits, if its operands are no larger than itself.

use crate::Options;
use crate::clusters::MOST_OPERANDS;
use crate::fuse::{Draft, Outcome};
use crate::fused::{Ending, Fused};
use crate::rewrite::{Inputs, Rewriter};
use crate::uses::{base, last_uses};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Kernel, Op, Result, Spec};

pub(crate) fn finish(outcome: Outcome, options: Options) -> Result<Graph> {
    let Outcome { graph, fused } = outcome;
    let joints = Joints::find(&graph, fused, options)?;
    if joints.is_empty() {
        return Ok(graph);
    }
    let mut places: Vec<Place<'_>> = graph.nodes.iter().map(|_| Place::Own).collect();
    for joint in &joints {
        places[joint.product] = Place::Empty;
        places[joint.ending] = Place::Empty;
    }
    for joint in &joints {
        places[joint.place] = Place::Joint(joint);
    }
    let mut new = Rewriter::new(&graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, place) in graph.nodes.iter().zip(places) {
        let (op, inputs, node) = match place {
            Place::Own => (node.op.clone(), node.inputs.clone(), node),
            Place::Joint(joint) => {
                let inputs = graph.nodes[joint.product].inputs.iter().chain(&joint.operands);
                (joint.op.clone(), inputs.copied().collect(), &graph.nodes[joint.ending])
            }
            Place::Empty => continue,
        };
        let inputs = inputs.iter().map(|&id| new.copied(&graph, &mut map, id)).collect();
        let specs = node.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let made = new.push(op, inputs, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(made) {
            map[old.index()] = Some(new);
        }
    }
    let outputs = graph.outputs.iter().map(|&id| new.copied(&graph, &mut map, id)).collect();
    Ok(new.finish(outputs))
}

/// What stands where a node stood.
enum Place<'a> {
    Own,
    Joint(&'a Joint),
    Empty,
}

/// Two nodes that become one.
struct Joint {
    product: usize,
    ending: usize,
    /// That of the two where it stands.
    place: usize,
    op: Arc<dyn Op>,
    /// What the ending reads beside the product.
    operands: Inputs,
}

struct Joints<'a> {
    graph: &'a Graph,
    options: Options,
    /// How many nodes and results use each value.
    uses: Vec<usize>,
    /// The last node that needs each value or a view of it.
    last_use: Vec<usize>,
}

impl<'a> Joints<'a> {
    fn find(graph: &'a Graph, fused: Vec<(usize, Arc<Fused>)>, options: Options) -> Result<Vec<Joint>> {
        let joints = Joints::new(graph, options);
        let mut fused = fused.into_iter().peekable();
        let mut found = Vec::new();
        for number in 0..graph.nodes.len() {
            let fused = fused.next_if(|(node, _)| *node == number).map(|(_, fused)| fused);
            found.extend(joints.at(number, fused)?);
        }
        Ok(found)
    }

    fn new(graph: &'a Graph, options: Options) -> Joints<'a> {
        let mut uses = vec![0; graph.values.len()];
        graph.outputs.iter().for_each(|id| uses[id.index()] += 1);
        for node in &graph.nodes {
            for (i, id) in node.inputs.iter().enumerate() {
                uses[id.index()] += usize::from(!node.inputs[..i].contains(id));
            }
        }
        Joints { graph, options, uses, last_use: last_uses(graph) }
    }

    /// What an elementwise node, which `fused` is if it was made of several, becomes with a product that it reads.
    fn at(&self, ending: usize, fused: Option<Arc<Fused>>) -> Result<Option<Joint>> {
        let node = &self.graph.nodes[ending];
        if node.op.kernel() != Kernel::Elementwise || node.outputs.len() != 1 {
            return Ok(None);
        }
        let spec = self.graph.spec(node.outputs[0]);
        let products = node.inputs.iter().filter_map(|&id| Some((self.product(id, spec)?, id)));
        let Some((product, id)) = products.max_by_key(|&(node, _)| node) else { return Ok(None) };
        let (fused, mut operands) = match fused {
            Some(fused) => (fused, node.inputs.clone()),
            None => match self.alone(node)? {
                Some(alone) => alone,
                None => return Ok(None),
            },
        };
        let Some(position) = operands.iter().position(|&operand| operand == id) else { return Ok(None) };
        operands.remove(position);
        let Some(place) = self.place(product, ending, &operands) else { return Ok(None) };
        let op = self.graph.nodes[product].op.then(Arc::new(Ending::new(fused, position)));
        Ok(op.map(|op| Joint { product, ending, place, op, operands }))
    }

    /// The node that makes a value for one other alone, if it is a product of this spec.
    fn product(&self, id: ValueId, spec: &Spec) -> Option<usize> {
        let Origin::Node { node: number, .. } = self.graph.values[id.index()].origin else { return None };
        let node = &self.graph.nodes[number];
        let fits = self.uses[id.index()] == 1
            && node.outputs.len() == 1
            && node.op.kernel() == Kernel::Contract
            && self.graph.spec(id) == spec;
        fits.then_some(number)
    }

    /// A node that was not fused with another, as if it had been, and what it reads.
    fn alone(&self, node: &Node) -> Result<Option<(Arc<Fused>, Inputs)>> {
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| self.graph.spec(id)).collect();
        let Form::Elements(code) = node.op.form(&specs) else { return Ok(None) };
        let mut draft = Draft::default();
        let part = draft.step(self.graph, node, code)?;
        let (program, operands) = draft.program(self.graph, vec![0])?;
        let shape = self.graph.spec(node.outputs[0]).shape.clone();
        let fused = Fused::new(program, vec![part], shape, None, self.options);
        Ok(Some((Arc::new(fused), operands.into_iter().collect())))
    }

    /// Where a product and its ending can be one node that keeps no more alive than the two.
    fn place(&self, product: usize, ending: usize, operands: &[ValueId]) -> Option<usize> {
        let graph = self.graph;
        let node = &graph.nodes[product];
        let bytes = graph.spec(graph.nodes[ending].outputs[0]).bytes();
        // The result may be the new value of an input that it is computed of, and is then best written over the old one. A
        // product would destroy that first.
        let overwrites = |id: ValueId| {
            let base = &graph.values[base(self.graph, id).index()];
            matches!(base.origin, Origin::Input(_)) && base.spec.bytes() == bytes
        };
        if node.inputs.len() + operands.len() >= MOST_OPERANDS
            || operands.iter().any(|&id| graph.spec(id).bytes() > bytes || overwrites(id))
        {
            return None;
        }
        let made_by = |id: ValueId| match graph.values[id.index()].origin {
            Origin::Node { node, .. } => Some(node),
            _ => None,
        };
        if operands.iter().all(|&id| made_by(id).is_none_or(|node| node < product)) {
            return Some(product);
        }
        let mut bases: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|&id| base(self.graph, id)).collect();
        bases.sort_unstable_by_key(|id| id.index());
        bases.dedup();
        let dying = bases.iter().filter(|&&id| made_by(id).is_some() && self.last_use[id.index()] < ending);
        let kept: usize = dying.map(|&id| graph.spec(id).bytes()).sum();
        (kept <= bytes).then_some(ending)
    }
}
