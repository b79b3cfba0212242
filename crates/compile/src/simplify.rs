//! One walk that follows every value to where it comes from: through views, constants, and ops that change nothing.
//!
//! Each value of the old graph is known as a [`Seen`]: a base and a layout. Views vanish into layouts, and come back
//! only where an op reads them. Elementwise ops are computed once for what is repeated; reductions of what is repeated,
//! too. Every rewrite is exact but those of sums, whose terms are added in another order.

mod algebra;
mod constants;
mod elements;
mod folds;

use crate::rewrite::{Inputs, Made, Rewriter};
use crate::seen::{LayoutView, Seen, normal, through};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Form, Graph, Kernel, Layout, Result, Spec, Specs, ViewOp};
use taut_kernels::elementwise::Code;
use taut_memory::Location;

pub(crate) fn simplify(graph: &Graph) -> Result<Graph> {
    let mut simplifier = Simplifier::new(graph);
    for number in 0..graph.nodes.len() {
        simplifier.node(number)?;
    }
    simplifier.finish()
}

/// What is known of a value of the old graph.
#[derive(Clone)]
struct Known {
    seen: Seen,
    spread: Option<Arc<Spread>>,
}

/// A value that repeats the elements of another in a way that strides cannot say: row-major order through a layout of
/// other dimensions.
struct Spread {
    /// What is repeated.
    source: Seen,
    /// In what order, of the source in row-major order.
    layout: Layout,
}

struct Simplifier<'a> {
    old: &'a Graph,
    new: Rewriter,
    known: Vec<Option<Known>>,
    /// How often each value of the old graph is read or returned.
    uses: Vec<u32>,
    /// Whether a value of the old graph is returned.
    returned: Vec<bool>,
    /// What the values of the new graph that are views show.
    views: Vec<Option<Seen>>,
    /// The same, by the hash of what they show.
    view_ids: HashMap<u64, SmallVec<[ValueId; 1]>>,
}

impl<'a> Simplifier<'a> {
    fn new(old: &'a Graph) -> Simplifier<'a> {
        let (mut uses, mut returned) = (vec![0; old.values.len()], vec![false; old.values.len()]);
        for id in old.nodes.iter().flat_map(|node| &node.inputs).chain(&old.outputs) {
            uses[id.index()] += 1;
        }
        old.outputs.iter().for_each(|id| returned[id.index()] = true);
        let (new, known) = (Rewriter::new(old), vec![None; old.values.len()]);
        Simplifier { old, new, known, uses, returned, views: Vec::new(), view_ids: HashMap::new() }
    }

    fn finish(mut self) -> Result<Graph> {
        let outputs = self.old.outputs.clone();
        let mut ids = Vec::new();
        for id in outputs {
            let seen = self.get(id)?.seen;
            // A view of nothing that the user wrote down: the line does not matter.
            ids.push(self.id(&seen, self.line_of(id)));
        }
        Ok(self.new.finish(ids))
    }

    fn line_of(&self, id: ValueId) -> Location {
        match self.old.values[id.index()].origin {
            Origin::Node { node, .. } => self.old.nodes[node].at,
            _ => Location::caller(),
        }
    }

    /// What is known of a value of the old graph.
    fn get(&mut self, id: ValueId) -> Result<Known> {
        if let Some(known) = &self.known[id.index()] {
            return Ok(known.clone());
        }
        let seen = match &self.old.values[id.index()].origin {
            Origin::Constant(tensor) => self.constant(tensor)?,
            Origin::Input(input) => Seen::whole(self.new.graph.inputs[*input], self.old.spec(id)),
            Origin::Node { .. } => unreachable!("a verified graph makes a value before it is read"),
        };
        let known = Known { seen, spread: None };
        self.known[id.index()] = Some(known.clone());
        Ok(known)
    }

    fn set(&mut self, id: ValueId, seen: Seen) {
        self.known[id.index()] = Some(Known { seen, spread: None });
    }

    fn node(&mut self, number: usize) -> Result<()> {
        let old = self.old;
        let node = &old.nodes[number];
        let mut inputs: SmallVec<[Known; 3]> = SmallVec::new();
        for &id in &node.inputs {
            inputs.push(self.get(id)?);
        }
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| old.spec(id)).collect();
        let form = node.op.form(&specs);
        if let Kernel::View(op) = node.op.kernel()
            && !matches!(form, Form::OptimizationBarrier)
        {
            return self.view(node, op, &inputs[0]);
        }
        let seen: SmallVec<[Seen; 3]> = inputs.iter().map(|known| known.seen.clone()).collect();
        match form {
            Form::Elements(Code::Copy) if self.may_share(node.outputs[0], &seen[0]) => {
                self.known[node.outputs[0].index()] = Some(inputs[0].clone());
                Ok(())
            }
            Form::Elements(code) => {
                let spec = old.spec(node.outputs[0]);
                // Both ways, of which the one that nobody reads will go.
                let spread = self.spread_elements(node, code, &inputs, spec)?;
                let seen = self.elements(&node.op, code, &seen, spec, node.at)?;
                let known = Known { seen, spread };
                self.known[node.outputs[0].index()] = Some(known);
                Ok(())
            }
            Form::Fold { code, axes } => {
                let spec = old.spec(node.outputs[0]);
                let made = match self.spread_fold(node, &inputs[0], code, &axes, spec)? {
                    Some(seen) => seen,
                    None => self.fold(node, code, &axes, &seen[0], spec)?,
                };
                self.set(node.outputs[0], made);
                Ok(())
            }
            Form::Uniform(value) => {
                let Spec { dtype, shape } = old.spec(node.outputs[0]);
                let number = self.number(value, *dtype)?;
                let seen = number.broadcast(shape)?;
                self.set(node.outputs[0], seen);
                Ok(())
            }
            Form::Spread(layout) => self.spread(node, &seen[0], layout),
            Form::Opaque | Form::Product(_) | Form::OptimizationBarrier => {
                self.opaque(node, &seen);
                Ok(())
            }
        }
    }

    /// Whether a copy can be the value itself. What is returned must not keep a larger tensor alive.
    fn may_share(&self, copy: ValueId, seen: &Seen) -> bool {
        let base = self.new.graph.spec(seen.base).bytes();
        !self.returned[copy.index()] || base <= self.old.spec(copy).bytes()
    }

    /// A view of a view is a view; unless strides cannot say it, and it is made of a copy.
    fn view(&mut self, node: &Node, op: &dyn ViewOp, known: &Known) -> Result<()> {
        let (output, spec) = (node.outputs[0], self.old.spec(node.outputs[0]));
        let input = &known.seen;
        let seen = match op.view(input.dtype, &input.layout) {
            Some(layout) if layout == input.layout && spec.dtype == input.dtype => {
                self.known[output.index()] = Some(known.clone());
                return Ok(());
            }
            Some(layout) => Seen { base: input.base, dtype: spec.dtype, layout: normal(layout) },
            None => {
                let mut inputs: Inputs = SmallVec::new();
                inputs.push(self.id(input, node.at));
                for &id in &node.inputs[1..] {
                    let seen = self.get(id)?.seen;
                    inputs.push(self.id(&seen, node.at));
                }
                let id = self.new.call(node.op.clone(), inputs, spec.clone().into(), node.at)[0];
                Seen::whole(id, spec)
            }
        };
        self.set(output, seen);
        Ok(())
    }

    fn spread(&mut self, node: &Node, source: &Seen, layout: Layout) -> Result<()> {
        let (output, spec) = (node.outputs[0], self.old.spec(node.outputs[0]));
        if source.is_uniform() && !source.layout.shape.is_empty() {
            // Of one element there is nothing but itself, however often.
            let seen = source.only(&[]).broadcast(&spec.shape)?;
            self.set(output, seen);
            return Ok(());
        }
        let seen = through(&source.layout, &layout).and_then(|layout| layout.reshape(&spec.shape));
        if let Some(layout) = seen.filter(|_| !spec.shape.is_empty()) {
            self.set(output, source.with(layout));
            return Ok(());
        }
        self.opaque(node, std::slice::from_ref(source));
        let spread = Arc::new(Spread { source: source.clone(), layout });
        if let Some(known) = &mut self.known[output.index()] {
            known.spread = Some(spread);
        }
        Ok(())
    }

    /// A call of which nothing is known.
    fn opaque(&mut self, node: &Node, inputs: &[Seen]) {
        let specs: Specs = node.outputs.iter().map(|&id| self.old.spec(id).clone()).collect();
        if let [spec] = &specs[..]
            && let Some(seen) = self.evaluated(&node.op, inputs, spec, node.at)
        {
            self.set(node.outputs[0], seen);
            return;
        }
        let ids: Inputs = inputs.iter().map(|seen| self.id(seen, node.at)).collect();
        let made: Made = self.new.call(node.op.clone(), ids, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(made) {
            self.set(old, Seen::whole(new, self.old.spec(old)));
        }
    }

    /// The number of what is seen in the new graph.
    fn id(&mut self, seen: &Seen, at: Location) -> ValueId {
        if seen.is_whole(&self.new.graph) {
            return seen.base;
        }
        let Layout { shape, strides, offset } = &seen.layout;
        let mut hash = DefaultHasher::new();
        (seen.base, seen.dtype, shape, strides, offset).hash(&mut hash);
        let known = self.view_ids.entry(hash.finish()).or_default();
        if let Some(&id) = known.iter().find(|id| self.views[id.index()].as_ref() == Some(seen)) {
            return id;
        }
        let from = self.new.graph.spec(seen.base).clone();
        let spec = Spec { dtype: seen.dtype, shape: shape.clone() };
        let op = Arc::new(LayoutView::new(from, seen));
        let id = self.new.push(op, [seen.base].into_iter().collect(), spec.into(), at)[0];
        known.push(id);
        self.views.resize(self.new.graph.values.len(), None);
        self.views[id.index()] = Some(seen.clone());
        id
    }

    /// What a value of the new graph shows.
    fn seen_of(&self, id: ValueId) -> Seen {
        let view = self.views.get(id.index()).cloned().flatten();
        view.unwrap_or_else(|| Seen::whole(id, self.new.graph.spec(id)))
    }
}
