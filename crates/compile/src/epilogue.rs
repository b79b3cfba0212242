//! Epilogue fusion: a product and the elementwise node that reads it become one node. A bias is added and an activation
//! applied while a block of the product is in the caches.
//!
//! No live range becomes longer in total. If all operands of the epilogue are computed before the product, the fused node
//! takes the product's position; otherwise it takes the epilogue's, if the operands of the product that it keeps alive are
//! no larger than the product.

use crate::CompileOptions;
use crate::clusters::{MAX_OPERANDS, WINDOW};
use crate::context::PassContext;
use crate::fuse::FusedProgramBuilder;
use crate::fused::{Fused, FusedEpilogue};
use crate::liveness::last_uses;
use crate::rewrite::{NodeInputs, Rewriter};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Kernel, Op, Result, Spec};
use taut_kernels::elementwise::{Binary, Code};

/// Up to this many bytes, copying a summand costs less than an epilogue, which is called for each row of each block of the product.
const COPIED: usize = 256 << 10;

pub(crate) fn fuse_epilogue(graph: Cow<'_, Graph>, context: &mut PassContext) -> Result<Graph> {
    let fused = std::mem::take(&mut context.fused_nodes);
    let fusions = EpilogueFinder::find(&graph, fused, context.options)?;
    if fusions.is_empty() {
        return Ok(graph.into_owned());
    }
    let mut replacements: Vec<Replacement<'_>> = graph.nodes.iter().map(|_| Replacement::Keep).collect();
    for fusion in &fusions {
        replacements[fusion.product] = Replacement::Remove;
        replacements[fusion.epilogue] = Replacement::Remove;
    }
    for fusion in &fusions {
        replacements[fusion.position] = Replacement::Fused(fusion);
    }
    let mut new = Rewriter::new(&graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, replacement) in graph.nodes.iter().zip(replacements) {
        let (op, inputs, node) = match replacement {
            Replacement::Keep => (node.op.clone(), node.inputs.clone(), node),
            Replacement::Fused(fusion) => {
                let inputs = graph.nodes[fusion.product].inputs.iter().chain(&fusion.operands);
                (fusion.op.clone(), inputs.copied().collect(), &graph.nodes[fusion.epilogue])
            }
            Replacement::Remove => continue,
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

/// What takes the position of a node.
enum Replacement<'a> {
    /// The node itself.
    Keep,
    Fused(&'a EpilogueFusion),
    Remove,
}

/// A product and its epilogue, which become one node.
struct EpilogueFusion {
    product: usize,
    epilogue: usize,
    /// The position of the fused node: that of the product or that of the epilogue.
    position: usize,
    op: Arc<dyn Op>,
    /// What the epilogue reads beside the product.
    operands: NodeInputs,
}

struct EpilogueFinder<'a> {
    graph: &'a Graph,
    options: CompileOptions,
    /// How many nodes read each value, plus one if it is returned.
    uses: Vec<usize>,
    /// The last node that needs each value or a view of it.
    last_use: Vec<usize>,
}

impl<'a> EpilogueFinder<'a> {
    fn find(
        graph: &'a Graph,
        fused: Vec<(usize, Arc<Fused>)>,
        options: CompileOptions,
    ) -> Result<Vec<EpilogueFusion>> {
        let finder = EpilogueFinder::new(graph, options);
        let mut fused = fused.into_iter().peekable();
        let mut found = Vec::new();
        for number in 0..graph.nodes.len() {
            let fused = fused.next_if(|(node, _)| *node == number).map(|(_, fused)| fused);
            found.extend(finder.at(number, fused)?);
        }
        Ok(found)
    }

    fn new(graph: &'a Graph, options: CompileOptions) -> EpilogueFinder<'a> {
        let mut uses = vec![0; graph.values.len()];
        graph.outputs.iter().for_each(|id| uses[id.index()] += 1);
        for node in &graph.nodes {
            for (i, id) in node.inputs.iter().enumerate() {
                uses[id.index()] += usize::from(!node.inputs[..i].contains(id));
            }
        }
        EpilogueFinder { graph, options, uses, last_use: last_uses(graph) }
    }

    /// The fusion of an elementwise node with a product that it reads. `fused` is its op if it was fused from several.
    fn at(&self, epilogue: usize, fused: Option<Arc<Fused>>) -> Result<Option<EpilogueFusion>> {
        let node = &self.graph.nodes[epilogue];
        if !matches!(node.op.kernel(), Kernel::Elementwise) || node.outputs.len() != 1 {
            return Ok(None);
        }
        let spec = self.graph.spec(node.outputs[0]);
        let products = node.inputs.iter().filter_map(|&id| Some((self.product(id, spec)?, id)));
        let Some((product, id)) = products.max_by_key(|&(node, _)| node) else { return Ok(None) };
        if let Some(accumulation) = self.accumulation(product, id, epilogue) {
            return Ok(Some(accumulation));
        }
        let (fused, mut operands) = match fused {
            Some(fused) => (fused, node.inputs.clone()),
            None => match self.fuse_single(node)? {
                Some(single) => single,
                None => return Ok(None),
            },
        };
        let Some(position) = operands.iter().position(|&operand| operand == id) else { return Ok(None) };
        operands.remove(position);
        let Some(at) = self.position(product, epilogue, &operands) else { return Ok(None) };
        let specs = self.input_specs(&self.graph.nodes[product]);
        let Form::Product(fusible) = self.graph.nodes[product].op.form(&specs) else { return Ok(None) };
        let op = fusible.fuse_epilogue(Arc::new(FusedEpilogue::new(fused, position)));
        Ok(Some(EpilogueFusion { product, epilogue, position: at, op, operands }))
    }

    /// The fusion of a product with its addition to a value that nothing else reads: an input, such as the sum of a loop, or the sum of
    /// earlier products. It is computed in place, without memory for the product.
    fn accumulation(&self, product: usize, id: ValueId, addition: usize) -> Option<EpilogueFusion> {
        let (graph, node) = (self.graph, &self.graph.nodes[addition]);
        let [a, b] = node.inputs[..] else { return None };
        let sum = if a == id { b } else { a };
        let form = node.op.form(&self.input_specs(node));
        let is_sum = matches!(form, Form::Elementwise(Code::Binary(Binary::Add)))
            && graph.spec(sum) == graph.spec(id)
            && self.uses[sum.index()] == 1;
        if !is_sum || a == b {
            return None;
        }
        let position = self.accumulation_position(sum, product, addition)?;
        let specs = self.input_specs(&graph.nodes[product]);
        let Form::Product(fusible) = graph.nodes[product].op.form(&specs) else { return None };
        let op = fusible.fuse_accumulation(&specs)?;
        let operands = std::iter::once(sum).collect();
        Some(EpilogueFusion { product, epilogue: addition, position, op, operands })
    }

    /// The position at which a product can be added to a value: an input, or one that is computed before the product. A view is copied
    /// first, and may be made after the product.
    fn accumulation_position(&self, sum: ValueId, product: usize, addition: usize) -> Option<usize> {
        match self.graph.values[sum.index()].origin {
            Origin::Input(_) => Some(product),
            Origin::Node { node, .. } if self.graph.base(sum) == sum => (node < product).then_some(product),
            Origin::Node { node, .. } => {
                let is_small = self.graph.spec(sum).bytes() <= COPIED && addition - product <= WINDOW;
                is_small.then_some(if node < product { product } else { addition })
            }
            Origin::Constant(_) => None,
        }
    }

    /// The node that computes a value, if it is a product of this spec and the value has a single use.
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

    /// A single elementwise node as a fused op, and what it reads.
    fn fuse_single(&self, node: &Node) -> Result<Option<(Arc<Fused>, NodeInputs)>> {
        let specs = self.input_specs(node);
        let Form::Elementwise(code) = node.op.form(&specs) else { return Ok(None) };
        let mut builder = FusedProgramBuilder::default();
        let call = builder.step(self.graph, node, code)?;
        let (program, operands) = builder.program(self.graph, vec![0])?;
        let shape = self.graph.spec(node.outputs[0]).shape.clone();
        let fused = Fused::new(program, vec![call], shape, None, self.options);
        Ok(Some((Arc::new(fused), operands.into_iter().collect())))
    }

    /// The position at which a product and its epilogue can be one node that keeps no more bytes alive than the two.
    fn position(&self, product: usize, epilogue: usize, operands: &[ValueId]) -> Option<usize> {
        let graph = self.graph;
        let node = &graph.nodes[product];
        let bytes = graph.spec(graph.nodes[epilogue].outputs[0]).bytes();
        // The result may be the new value of an input that the epilogue reads, and is then best computed in place of it.
        // The product would overwrite the old value before the epilogue reads it.
        let overwrites = |id: ValueId| {
            let base = &graph.values[self.graph.base(id).index()];
            matches!(base.origin, Origin::Input(_)) && base.spec.bytes() == bytes
        };
        if node.inputs.len() + operands.len() >= MAX_OPERANDS
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
        let mut bases: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|&id| self.graph.base(id)).collect();
        bases.sort_unstable_by_key(|id| id.index());
        bases.dedup();
        let dying = bases.iter().filter(|&&id| made_by(id).is_some() && self.last_use[id.index()] < epilogue);
        let kept: usize = dying.map(|&id| graph.spec(id).bytes()).sum();
        (kept <= bytes).then_some(epilogue)
    }
}
