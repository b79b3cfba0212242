//! Elementwise ops: computed once for what is repeated, and in the order in which their operands lie.

use super::{Known, Simplifier, Spread};
use crate::rewrite::Inputs;
use crate::seen::{Seen, is_bijective, spread_over};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::Node;
use taut_core::ops::{Elementwise, Types};
use taut_core::{DType, Op, Result, Shape, Spec};
use taut_kernels::elementwise::Code;
use taut_memory::Location;

impl Simplifier<'_> {
    /// What an elementwise op makes of these operands, in few words.
    pub(super) fn elements(
        &mut self,
        op: &Arc<dyn Op>,
        code: Code,
        operands: &[Seen],
        spec: &Spec,
        at: Location,
    ) -> Result<Seen> {
        let operands: SmallVec<[Seen; 3]> =
            operands.iter().map(|seen| seen.broadcast(&spec.shape)).collect::<Result<_>>()?;
        if let Some(same) = self.unchanged(code, &operands, spec) {
            return Ok(same);
        }
        if let Code::Cast(to) = code
            && let Some(source) = self.cast_source(to, &operands[0])
        {
            return self.cast(source, to, at);
        }
        if spec.shape.is_empty() {
            return self.computed(op, &operands, spec, at);
        }
        let shape = &spec.shape;
        let repeated = |axis: usize| operands.iter().all(|seen| seen.layout.strides[axis] == 0);
        let small = |axis: usize| shape[axis] == 1 || repeated(axis);
        let graph = &self.new.graph;
        let bases = operands.iter().map(|seen| &graph.spec(seen.base).shape);
        let plain = operands.iter().all(|seen| seen.is_broadcast(graph))
            && bases.map(Clone::clone).reduce(|a, b| a.broadcast(&b).unwrap_or(a)).as_ref() == Some(shape);
        if plain && (0..shape.rank()).all(|axis| shape[axis] == 1 || !repeated(axis)) {
            return self.computed(op, &operands, spec, at);
        }
        let kept: SmallVec<[usize; 8]> = (0..shape.rank()).filter(|&axis| !small(axis)).collect();
        let operands: SmallVec<[Seen; 3]> = operands.iter().map(|seen| seen.only(&kept)).collect();
        let made = match self.in_base_order(op, &operands, spec.dtype, at)? {
            Some(made) => made,
            None => {
                let shape = kept.iter().map(|&axis| shape[axis]).collect();
                self.computed(op, &operands, &Spec { dtype: spec.dtype, shape }, at)?
            }
        };
        // What is computed may itself be known to repeat.
        Ok(made.with(taut_core::Layout {
            offset: made.layout.offset,
            ..spread_over(shape, &kept, &made.layout.strides)
        }))
    }

    /// Where all operands are seen in the same other order: computed in the order of their bases, and seen so.
    fn in_base_order(
        &mut self,
        op: &Arc<dyn Op>,
        operands: &[Seen],
        dtype: DType,
        at: Location,
    ) -> Result<Option<Seen>> {
        let graph = &self.new.graph;
        let Some(first) = operands.iter().find(|seen| !seen.is_uniform()) else { return Ok(None) };
        let shape = graph.spec(first.base).shape.clone();
        let long = |shape: &Shape| shape.iter().copied().filter(|&dim| dim != 1).collect::<Shape>();
        let in_order = first.layout.is_contiguous() && long(&shape) == first.layout.shape;
        let alike = |seen: &Seen| {
            let base = graph.spec(seen.base);
            seen.is_uniform()
                || (seen.layout == first.layout && base.shape == shape && base.dtype == seen.dtype)
        };
        if in_order || !is_bijective(shape.len(), &first.layout) || !operands.iter().all(alike) {
            return Ok(None);
        }
        let wholes: Result<SmallVec<[Seen; 3]>> = (operands.iter())
            .map(|seen| {
                if seen.is_uniform() {
                    seen.only(&[]).broadcast(&shape)
                } else {
                    Ok(Seen::whole(seen.base, graph.spec(seen.base)))
                }
            })
            .collect();
        let layout = first.layout.clone();
        let made = self.computed(op, &wholes?, &Spec { dtype, shape }, at)?;
        Ok(made.is_whole(&self.new.graph).then(|| made.with(layout)))
    }

    /// The op carried out on operands of the result's shape: ahead of time, or by a call.
    fn computed(&mut self, op: &Arc<dyn Op>, operands: &[Seen], spec: &Spec, at: Location) -> Result<Seen> {
        if let Some(seen) = self.evaluated(op, operands, spec, at) {
            return Ok(seen);
        }
        let ids: Inputs = (operands.iter())
            .map(|seen| if seen.is_broadcast(&self.new.graph) { seen.base } else { self.id(seen, at) })
            .collect();
        let inferred =
            op.infer(&ids.iter().map(|&id| self.new.graph.spec(id)).collect::<SmallVec<[&Spec; 3]>>())?;
        // Bases alone may be short of an axis that every one of them repeats.
        let (ids, specs) = if inferred[0] == *spec {
            (ids, inferred)
        } else {
            (operands.iter().map(|seen| self.id(seen, at)).collect(), spec.clone().into())
        };
        let id = self.new.call(op.clone(), ids, specs, at)[0];
        Ok(Seen::whole(id, spec))
    }

    /// A new elementwise op of operands of one shape.
    pub(super) fn elementwise(
        &mut self,
        name: &'static str,
        code: Code,
        operands: &[Seen],
        dtype: DType,
        at: Location,
    ) -> Result<Seen> {
        let op: Arc<dyn Op> = Arc::new(Elementwise::new(name, code, Types::Same));
        let spec = Spec { dtype, shape: operands[0].layout.shape.clone() };
        self.elements(&op, code, operands, &spec, at)
    }

    pub(super) fn cast(&mut self, x: Seen, to: DType, at: Location) -> Result<Seen> {
        if x.dtype == to {
            return Ok(x);
        }
        self.elementwise("cast", Code::Cast(to), &[x], to, at)
    }

    /// An op of one value that repeats another: what it makes repeats what the op makes of the other.
    pub(super) fn spread_elements(
        &mut self,
        node: &Node,
        code: Code,
        inputs: &[Known],
        spec: &Spec,
    ) -> Result<Option<Arc<Spread>>> {
        let repeats = |known: &Known| known.spread.clone().filter(|_| known.seen.layout.shape == spec.shape);
        let Some((at, spread)) = inputs.iter().enumerate().find_map(|(i, known)| Some((i, repeats(known)?)))
        else {
            return Ok(None);
        };
        let shape = spread.source.layout.shape.clone();
        let mut operands: SmallVec<[Seen; 3]> = SmallVec::new();
        for (i, known) in inputs.iter().enumerate() {
            operands.push(match known {
                _ if i == at => spread.source.clone(),
                known if known.seen.is_uniform() => known.seen.only(&[]).broadcast(&shape)?,
                _ => return Ok(None),
            });
        }
        let source = self.elements(&node.op, code, &operands, &Spec { dtype: spec.dtype, shape }, node.at)?;
        Ok(Some(Arc::new(Spread { source, layout: spread.layout.clone() })))
    }
}
