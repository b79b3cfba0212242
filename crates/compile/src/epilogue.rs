//! Lets a product end in what is computed of it: a bias is added and an activation taken while a block of the product is in
//! the caches, by one node.
//!
//! Nothing lives longer for it. Where all that the epilogue reads is there when the product is made, the product's place is
//! that of its result; where not, the product waits, if its operands are no larger than itself.

use crate::CompileOptions;
use crate::clusters::MOST_OPERANDS;
use crate::fuse::{Draft, Outcome};
use crate::fused::{Fused, FusedEpilogue};
use crate::rewrite::{Inputs, Rewriter};
use crate::uses::{base, last_uses};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Kernel, Op, Result, Spec};

pub(crate) fn fuse_epilogues(outcome: Outcome, options: CompileOptions) -> Result<Graph> {
    let Outcome { graph, fused } = outcome;
    let fusions = Fusions::find(&graph, fused, options)?;
    if fusions.is_empty() {
        return Ok(graph);
    }
    let mut places: Vec<Place<'_>> = graph.nodes.iter().map(|_| Place::Own).collect();
    for fusion in &fusions {
        places[fusion.product] = Place::Empty;
        places[fusion.epilogue] = Place::Empty;
    }
    for fusion in &fusions {
        places[fusion.place] = Place::Fusion(fusion);
    }
    let mut new = Rewriter::new(&graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, place) in graph.nodes.iter().zip(places) {
        let (op, inputs, node) = match place {
            Place::Own => (node.op.clone(), node.inputs.clone(), node),
            Place::Fusion(fusion) => {
                let inputs = graph.nodes[fusion.product].inputs.iter().chain(&fusion.operands);
                (fusion.op.clone(), inputs.copied().collect(), &graph.nodes[fusion.epilogue])
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
    Fusion(&'a Fusion),
    Empty,
}

/// Two nodes that become one.
struct Fusion {
    product: usize,
    epilogue: usize,
    /// That of the two where it stands.
    place: usize,
    op: Arc<dyn Op>,
    /// What the epilogue reads beside the product.
    operands: Inputs,
}

struct Fusions<'a> {
    graph: &'a Graph,
    options: CompileOptions,
    /// How many nodes and results use each value.
    uses: Vec<usize>,
    /// The last node that needs each value or a view of it.
    last_use: Vec<usize>,
}

impl<'a> Fusions<'a> {
    fn find(
        graph: &'a Graph,
        fused: Vec<(usize, Arc<Fused>)>,
        options: CompileOptions,
    ) -> Result<Vec<Fusion>> {
        let fusions = Fusions::new(graph, options);
        let mut fused = fused.into_iter().peekable();
        let mut found = Vec::new();
        for number in 0..graph.nodes.len() {
            let fused = fused.next_if(|(node, _)| *node == number).map(|(_, fused)| fused);
            found.extend(fusions.at(number, fused)?);
        }
        Ok(found)
    }

    fn new(graph: &'a Graph, options: CompileOptions) -> Fusions<'a> {
        let mut uses = vec![0; graph.values.len()];
        graph.outputs.iter().for_each(|id| uses[id.index()] += 1);
        for node in &graph.nodes {
            for (i, id) in node.inputs.iter().enumerate() {
                uses[id.index()] += usize::from(!node.inputs[..i].contains(id));
            }
        }
        Fusions { graph, options, uses, last_use: last_uses(graph) }
    }

    /// What an elementwise node, which `fused` is if it was made of several, becomes with a product that it reads.
    fn at(&self, epilogue: usize, fused: Option<Arc<Fused>>) -> Result<Option<Fusion>> {
        let node = &self.graph.nodes[epilogue];
        if !matches!(node.op.kernel(), Kernel::Elementwise) || node.outputs.len() != 1 {
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
        let Some(place) = self.place(product, epilogue, &operands) else { return Ok(None) };
        let specs = self.input_specs(&self.graph.nodes[product]);
        let Form::Product(fusible) = self.graph.nodes[product].op.form(&specs) else { return Ok(None) };
        let op = fusible.fuse_epilogue(Arc::new(FusedEpilogue::new(fused, position)));
        Ok(Some(Fusion { product, epilogue, place, op, operands }))
    }

    /// The node that makes a value for one other alone, if it is a product of this spec.
    fn product(&self, id: ValueId, spec: &Spec) -> Option<usize> {
        let Origin::Node { node: number, .. } = self.graph.values[id.index()].origin else { return None };
        let node = &self.graph.nodes[number];
        let fits = self.uses[id.index()] == 1
            && node.outputs.len() == 1
            && matches!(node.op.kernel(), Kernel::Contract)
            && self.graph.spec(id) == spec;
        fits.then_some(number)
    }

    fn input_specs(&self, node: &Node) -> SmallVec<[&'a Spec; 3]> {
        node.inputs.iter().map(|&id| self.graph.spec(id)).collect()
    }

    /// A node that was not fused with another, as if it had been, and what it reads.
    fn alone(&self, node: &Node) -> Result<Option<(Arc<Fused>, Inputs)>> {
        let specs = self.input_specs(node);
        let Form::Elements(code) = node.op.form(&specs) else { return Ok(None) };
        let mut draft = Draft::default();
        let part = draft.step(self.graph, node, code)?;
        let (program, operands) = draft.program(self.graph, vec![0])?;
        let shape = self.graph.spec(node.outputs[0]).shape.clone();
        let fused = Fused::new(program, vec![part], shape, None, self.options);
        Ok(Some((Arc::new(fused), operands.into_iter().collect())))
    }

    /// Where a product and its epilogue can be one node that keeps no more alive than the two.
    fn place(&self, product: usize, epilogue: usize, operands: &[ValueId]) -> Option<usize> {
        let graph = self.graph;
        let node = &graph.nodes[product];
        let bytes = graph.spec(graph.nodes[epilogue].outputs[0]).bytes();
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
        let dying = bases.iter().filter(|&&id| made_by(id).is_some() && self.last_use[id.index()] < epilogue);
        let kept: usize = dying.map(|&id| graph.spec(id).bytes()).sum();
        (kept <= bytes).then_some(epilogue)
    }
}
