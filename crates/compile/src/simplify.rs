//! Simplification, in one walk over the nodes:
//!
//! - *constant folding*: calls of constants are evaluated (`constant_folding.rs`);
//! - *algebraic rewrites*: ops that return an operand unchanged are dropped (`algebra.rs`);
//! - *views*: each value of the old graph is a [`StridedView`] of a base. Views become layouts, and a node again only where
//!   an op reads them. Elementwise ops and reductions compute repeated elements once (`elementwise.rs`, `reductions.rs`);
//! - *common-subexpression elimination*: equal calls become one (`Rewriter::call`).
//!
//! Every rewrite is exact, except those of sums, whose terms are added in another order. Some rewrites keep two versions of
//! a value, of which one is read: the dead ones are eliminated at the end.

mod algebra;
mod constant_folding;
mod elementwise;
mod reductions;

use crate::dead_code::eliminate_dead_code;
use crate::rewrite::{NodeInputs, NodeOutputs, Rewriter};
use crate::strided_view::{LayoutView, StridedView, compose, normal};
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
        simplifier.simplify_node(number)?;
    }
    Ok(eliminate_dead_code(&simplifier.finish()?))
}

/// What is known of a value of the old graph.
#[derive(Clone)]
struct KnownValue {
    view: StridedView,
    repeated: Option<Arc<RepeatedValue>>,
}

/// A value that repeats the elements of another in an order that strides cannot express: in row-major order, its elements
/// are those of a layout of another shape.
struct RepeatedValue {
    /// The value whose elements are repeated.
    source: StridedView,
    /// The layout of the repetition, over the source in row-major order.
    layout: Layout,
}

struct Simplifier<'a> {
    old: &'a Graph,
    new: Rewriter,
    known: Vec<Option<KnownValue>>,
    /// How often each value of the old graph is read or returned.
    uses: Vec<u32>,
    /// Whether a value of the old graph is returned.
    returned: Vec<bool>,
    /// Per value of the new graph, the view that it is, if it is one.
    views: Vec<Option<StridedView>>,
    /// The values that are views, by the hash of the view.
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
            let view = self.known_value(id)?.view;
            ids.push(self.materialize(&view, self.location_of(id)));
        }
        Ok(self.new.finish(ids))
    }

    fn location_of(&self, id: ValueId) -> Location {
        match self.old.values[id.index()].origin {
            Origin::Node { node, .. } => self.old.nodes[node].at,
            _ => Location::caller(),
        }
    }

    /// What is known of a value of the old graph.
    fn known_value(&mut self, id: ValueId) -> Result<KnownValue> {
        if let Some(known) = &self.known[id.index()] {
            return Ok(known.clone());
        }
        let view = match &self.old.values[id.index()].origin {
            Origin::Constant(tensor) => self.constant(tensor)?,
            Origin::Input(input) => StridedView::whole(self.new.graph.inputs[*input], self.old.spec(id)),
            Origin::Node { .. } => unreachable!("a verified graph computes a value before it is read"),
        };
        let known = KnownValue { view, repeated: None };
        self.known[id.index()] = Some(known.clone());
        Ok(known)
    }

    fn set_view(&mut self, id: ValueId, view: StridedView) {
        self.known[id.index()] = Some(KnownValue { view, repeated: None });
    }

    fn simplify_node(&mut self, number: usize) -> Result<()> {
        let old = self.old;
        let node = &old.nodes[number];
        let mut inputs: SmallVec<[KnownValue; 3]> = SmallVec::new();
        for &id in &node.inputs {
            inputs.push(self.known_value(id)?);
        }
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| old.spec(id)).collect();
        let form = node.op.form(&specs);
        if let Kernel::View(op) = node.op.kernel()
            && !matches!(form, Form::OptimizationBarrier)
        {
            return self.simplify_view(node, op, &inputs[0]);
        }
        let view: SmallVec<[StridedView; 3]> = inputs.iter().map(|known| known.view.clone()).collect();
        match form {
            Form::Elementwise(Code::Copy) if self.may_share(node.outputs[0], &view[0]) => {
                self.known[node.outputs[0].index()] = Some(inputs[0].clone());
                Ok(())
            }
            Form::Elementwise(code) => {
                let spec = old.spec(node.outputs[0]);
                // Both versions are computed; the one without readers is eliminated at the end.
                let repeated = self.repeated_elementwise(node, code, &inputs, spec)?;
                let view = self.simplify_elementwise(&node.op, code, &view, spec, node.at)?;
                let known = KnownValue { view, repeated };
                self.known[node.outputs[0].index()] = Some(known);
                Ok(())
            }
            Form::Reduce { code, axes } => {
                let spec = old.spec(node.outputs[0]);
                let made = match self.reduce_repeated(node, &inputs[0], code, &axes, spec)? {
                    Some(view) => view,
                    None => self.simplify_reduction(node, code, &axes, &view[0], spec)?,
                };
                self.set_view(node.outputs[0], made);
                Ok(())
            }
            Form::Uniform(value) => {
                let Spec { dtype, shape } = old.spec(node.outputs[0]);
                let number = self.scalar_constant(value, *dtype)?;
                let view = number.broadcast(shape)?;
                self.set_view(node.outputs[0], view);
                Ok(())
            }
            Form::Repeat(layout) => self.simplify_repeat(node, &view[0], layout),
            Form::Opaque | Form::Product(_) | Form::Composite(_) | Form::OptimizationBarrier => {
                self.keep_call(node, &view);
                Ok(())
            }
        }
    }

    /// Whether a copy may be replaced by its source. A returned value must not keep a larger tensor alive.
    fn may_share(&self, copy: ValueId, view: &StridedView) -> bool {
        let base = self.new.graph.spec(view.base).bytes();
        !self.returned[copy.index()] || base <= self.old.spec(copy).bytes()
    }

    /// A view of a view is a view, unless strides cannot express it: then the op is called.
    fn simplify_view(&mut self, node: &Node, op: &dyn ViewOp, known: &KnownValue) -> Result<()> {
        let (output, spec) = (node.outputs[0], self.old.spec(node.outputs[0]));
        let input = &known.view;
        let view = match op.view(input.dtype, &input.layout) {
            Some(layout) if layout == input.layout && spec.dtype == input.dtype => {
                self.known[output.index()] = Some(known.clone());
                return Ok(());
            }
            Some(layout) => StridedView { base: input.base, dtype: spec.dtype, layout: normal(layout) },
            None => {
                let mut inputs: NodeInputs = SmallVec::new();
                inputs.push(self.materialize(input, node.at));
                for &id in &node.inputs[1..] {
                    let view = self.known_value(id)?.view;
                    inputs.push(self.materialize(&view, node.at));
                }
                let id = self.new.call(node.op.clone(), inputs, spec.clone().into(), node.at)[0];
                StridedView::whole(id, spec)
            }
        };
        self.set_view(output, view);
        Ok(())
    }

    fn simplify_repeat(&mut self, node: &Node, source: &StridedView, layout: Layout) -> Result<()> {
        let (output, spec) = (node.outputs[0], self.old.spec(node.outputs[0]));
        if source.is_uniform() && !source.layout.shape.is_empty() {
            // A repeated single element is a broadcast.
            let view = source.only(&[]).broadcast(&spec.shape)?;
            self.set_view(output, view);
            return Ok(());
        }
        let view = compose(&source.layout, &layout).and_then(|layout| layout.reshape(&spec.shape));
        if let Some(layout) = view.filter(|_| !spec.shape.is_empty()) {
            self.set_view(output, source.with(layout));
            return Ok(());
        }
        self.keep_call(node, std::slice::from_ref(source));
        let repeated = Arc::new(RepeatedValue { source: source.clone(), layout });
        if let Some(known) = &mut self.known[output.index()] {
            known.repeated = Some(repeated);
        }
        Ok(())
    }

    /// Keeps a call whose op declares no form; its constants are folded.
    fn keep_call(&mut self, node: &Node, inputs: &[StridedView]) {
        let specs: Specs = node.outputs.iter().map(|&id| self.old.spec(id).clone()).collect();
        if let [spec] = &specs[..]
            && let Some(view) = self.fold_constants(&node.op, inputs, spec, node.at)
        {
            self.set_view(node.outputs[0], view);
            return;
        }
        let ids: NodeInputs = inputs.iter().map(|view| self.materialize(view, node.at)).collect();
        let made: NodeOutputs = self.new.call(node.op.clone(), ids, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(made) {
            self.set_view(old, StridedView::whole(new, self.old.spec(old)));
        }
    }

    /// The value of the new graph that is this view: the base, or a node that views it.
    fn materialize(&mut self, view: &StridedView, at: Location) -> ValueId {
        if view.is_whole(&self.new.graph) {
            return view.base;
        }
        let Layout { shape, strides, offset } = &view.layout;
        let mut hash = DefaultHasher::new();
        (view.base, view.dtype, shape, strides, offset).hash(&mut hash);
        let known = self.view_ids.entry(hash.finish()).or_default();
        if let Some(&id) = known.iter().find(|id| self.views[id.index()].as_ref() == Some(view)) {
            return id;
        }
        let from = self.new.graph.spec(view.base).clone();
        let spec = Spec { dtype: view.dtype, shape: shape.clone() };
        let op = Arc::new(LayoutView::new(from, view));
        let id = self.new.push(op, [view.base].into_iter().collect(), spec.into(), at)[0];
        known.push(id);
        self.views.resize(self.new.graph.values.len(), None);
        self.views[id.index()] = Some(view.clone());
        id
    }

    /// A value of the new graph as a view.
    fn view_of(&self, id: ValueId) -> StridedView {
        let view = self.views.get(id.index()).cloned().flatten();
        view.unwrap_or_else(|| StridedView::whole(id, self.new.graph.spec(id)))
    }
}
