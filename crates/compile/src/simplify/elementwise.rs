//! Elementwise ops: repeated elements are computed once, and in the memory order of the operands.

use super::{KnownValue, RepeatedValue, Simplifier};
use crate::rewrite::NodeInputs;
use crate::strided_view::{StridedView, expand_axes, is_bijective};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::Node;
use taut_core::ops::{ComputeDType, Elementwise};
use taut_core::{DType, Op, Result, Shape, Spec};
use taut_kernels::elementwise::Code;
use taut_memory::Location;

impl Simplifier<'_> {
    /// The simplified result of an elementwise op of these operands.
    pub(super) fn simplify_elementwise(
        &mut self,
        op: &Arc<dyn Op>,
        code: Code,
        operands: &[StridedView],
        spec: &Spec,
        at: Location,
    ) -> Result<StridedView> {
        let operands: SmallVec<[StridedView; 3]> =
            operands.iter().map(|view| view.broadcast(&spec.shape)).collect::<Result<_>>()?;
        if let Some(same) = self.identity_operand(code, &operands, spec) {
            return Ok(same);
        }
        if let Code::Cast(to) = code
            && let Some(source) = self.cast_source(to, &operands[0])
        {
            return self.cast(source, to, at);
        }
        if spec.shape.is_empty() {
            return self.apply(op, &operands, spec, at);
        }
        let shape = &spec.shape;
        let repeated = |axis: usize| operands.iter().all(|view| view.layout.strides[axis] == 0);
        let small = |axis: usize| shape[axis] == 1 || repeated(axis);
        let graph = &self.new.graph;
        let bases = operands.iter().map(|view| &graph.spec(view.base).shape);
        let plain = operands.iter().all(|view| view.is_broadcast(graph))
            && bases.map(Clone::clone).reduce(|a, b| a.broadcast(&b).unwrap_or(a)).as_ref() == Some(shape);
        if plain && (0..shape.rank()).all(|axis| shape[axis] == 1 || !repeated(axis)) {
            return self.apply(op, &operands, spec, at);
        }
        let kept: SmallVec<[usize; 8]> = (0..shape.rank()).filter(|&axis| !small(axis)).collect();
        let operands: SmallVec<[StridedView; 3]> = operands.iter().map(|view| view.only(&kept)).collect();
        let made = match self.in_base_order(op, &operands, spec.dtype, at)? {
            Some(made) => made,
            None => {
                let shape = kept.iter().map(|&axis| shape[axis]).collect();
                self.apply(op, &operands, &Spec { dtype: spec.dtype, shape }, at)?
            }
        };
        // The result may itself be a broadcast.
        Ok(made.with(taut_core::Layout {
            offset: made.layout.offset,
            ..expand_axes(shape, &kept, &made.layout.strides)
        }))
    }

    /// If all operands are the same permutation of their bases: computed in the order of the bases, and permuted after.
    fn in_base_order(
        &mut self,
        op: &Arc<dyn Op>,
        operands: &[StridedView],
        dtype: DType,
        at: Location,
    ) -> Result<Option<StridedView>> {
        let graph = &self.new.graph;
        let Some(first) = operands.iter().find(|view| !view.is_uniform()) else { return Ok(None) };
        let shape = graph.spec(first.base).shape.clone();
        let long = |shape: &Shape| shape.iter().copied().filter(|&dim| dim != 1).collect::<Shape>();
        let in_order = first.layout.is_contiguous() && long(&shape) == first.layout.shape;
        let alike = |view: &StridedView| {
            let base = graph.spec(view.base);
            view.is_uniform()
                || (view.layout == first.layout && base.shape == shape && base.dtype == view.dtype)
        };
        if in_order || !is_bijective(shape.len(), &first.layout) || !operands.iter().all(alike) {
            return Ok(None);
        }
        let wholes: Result<SmallVec<[StridedView; 3]>> = (operands.iter())
            .map(|view| {
                if view.is_uniform() {
                    view.only(&[]).broadcast(&shape)
                } else {
                    Ok(StridedView::whole(view.base, graph.spec(view.base)))
                }
            })
            .collect();
        let layout = first.layout.clone();
        let made = self.apply(op, &wholes?, &Spec { dtype, shape }, at)?;
        Ok(made.is_whole(&self.new.graph).then(|| made.with(layout)))
    }

    /// The op applied to operands of the result's shape: folded, or called.
    fn apply(
        &mut self,
        op: &Arc<dyn Op>,
        operands: &[StridedView],
        spec: &Spec,
        at: Location,
    ) -> Result<StridedView> {
        if let Some(view) = self.fold_constants(op, operands, spec, at) {
            return Ok(view);
        }
        let ids: NodeInputs = (operands.iter())
            .map(
                |view| {
                    if view.is_broadcast(&self.new.graph) { view.base } else { self.materialize(view, at) }
                },
            )
            .collect();
        let inferred =
            op.infer(&ids.iter().map(|&id| self.new.graph.spec(id)).collect::<SmallVec<[&Spec; 3]>>())?;
        // The bases may lack an axis that all of them repeat.
        let (ids, specs) = if inferred[0] == *spec {
            (ids, inferred)
        } else {
            (operands.iter().map(|view| self.materialize(view, at)).collect(), spec.clone().into())
        };
        let id = self.new.call(op.clone(), ids, specs, at)[0];
        Ok(StridedView::whole(id, spec))
    }

    /// A new elementwise op of operands of one shape.
    pub(super) fn elementwise(
        &mut self,
        name: &'static str,
        code: Code,
        operands: &[StridedView],
        dtype: DType,
        at: Location,
    ) -> Result<StridedView> {
        let op: Arc<dyn Op> = Arc::new(Elementwise::new(name, code, ComputeDType::Same));
        let spec = Spec { dtype, shape: operands[0].layout.shape.clone() };
        self.simplify_elementwise(&op, code, operands, &spec, at)
    }

    pub(super) fn cast(&mut self, x: StridedView, to: DType, at: Location) -> Result<StridedView> {
        if x.dtype == to {
            return Ok(x);
        }
        self.elementwise("cast", Code::Cast(to), &[x], to, at)
    }

    /// The op applied to a repeated value: the result repeats the op applied to its source.
    pub(super) fn repeated_elementwise(
        &mut self,
        node: &Node,
        code: Code,
        inputs: &[KnownValue],
        spec: &Spec,
    ) -> Result<Option<Arc<RepeatedValue>>> {
        let repeats =
            |known: &KnownValue| known.repeated.clone().filter(|_| known.view.layout.shape == spec.shape);
        let Some((at, repeated)) =
            inputs.iter().enumerate().find_map(|(i, known)| Some((i, repeats(known)?)))
        else {
            return Ok(None);
        };
        let shape = repeated.source.layout.shape.clone();
        let mut operands: SmallVec<[StridedView; 3]> = SmallVec::new();
        for (i, known) in inputs.iter().enumerate() {
            operands.push(match known {
                _ if i == at => repeated.source.clone(),
                known if known.view.is_uniform() => known.view.only(&[]).broadcast(&shape)?,
                _ => return Ok(None),
            });
        }
        let source = self.simplify_elementwise(
            &node.op,
            code,
            &operands,
            &Spec { dtype: spec.dtype, shape },
            node.at,
        )?;
        Ok(Some(Arc::new(RepeatedValue { source, layout: repeated.layout.clone() })))
    }
}
