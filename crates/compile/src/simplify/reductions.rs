//! Reductions: repeated elements are reduced once, and axes of size 1 are not reduced.

use super::{KnownValue, Simplifier};
use crate::strided_view::{LayoutView, StridedView, axes_in, compose, expand_axes, is_bijective};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::ops::{ReduceAxes, Reduction, ReductionCode};
use taut_core::{DType, Form, Layout, Op, Result, Shape, Spec, Strides};
use taut_kernels::elementwise::{Binary, Code, Unary};
use taut_kernels::reduce::Reduce;
use taut_memory::Location;

/// Per axis, whether it is reduced.
type AxisMask = SmallVec<[bool; 8]>;

impl Simplifier<'_> {
    /// The simplified reduction of a value.
    pub(super) fn simplify_reduction(
        &mut self,
        node: &Node,
        code: Reduce,
        mask: &[bool],
        x: &StridedView,
        spec: &Spec,
    ) -> Result<StridedView> {
        let Layout { shape, strides, .. } = &x.layout;
        if shape.is_empty() || spec.shape.is_empty() {
            return Ok(self.reduce_call(node, code, mask, x, spec));
        }
        // A product of repeated factors is a power, which rounds differently.
        let repeats = |axis: usize| strides[axis] == 0 && (!mask[axis] || code != Reduce::Prod);
        let kept: SmallVec<[usize; 8]> =
            (0..shape.rank()).filter(|&axis| shape[axis] != 1 && !repeats(axis)).collect();
        if kept.len() == shape.rank() && x.is_whole(&self.new.graph) {
            let both = self.merge_reductions(node, code, mask, x);
            return Ok(both.unwrap_or_else(|| self.reduce_call(node, code, mask, x, spec)));
        }
        let times = (0..shape.rank())
            .filter(|axis| mask[*axis] && !kept.contains(axis))
            .map(|axis| shape[axis])
            .product();
        let inner = x.only(&kept);
        let inner_mask: AxisMask = kept.iter().map(|&axis| mask[axis]).collect();
        let made = if inner_mask.contains(&true) {
            self.reduce_dense(node, code, &inner_mask, &inner, spec.dtype)
        } else {
            self.reduce_single(code, inner, spec.dtype, node.at)?
        };
        let made = self.scale_by_copies(code, made, times, node.at)?;
        // The axes that remain, and their positions in the result.
        let remaining: SmallVec<[usize; 8]> = (0..shape.rank()).filter(|&axis| !mask[axis]).collect();
        let places: SmallVec<[usize; 8]> = (remaining.iter().enumerate())
            .filter(|(_, axis)| kept.contains(axis))
            .map(|(place, _)| place)
            .collect();
        let layout = expand_axes(&spec.shape, &places, &made.layout.strides);
        Ok(made.with(Layout { offset: made.layout.offset, ..layout }))
    }

    /// The reduction of a view without axes of size 1 and without repeated axes.
    fn reduce_dense(
        &mut self,
        node: &Node,
        code: Reduce,
        mask: &[bool],
        x: &StridedView,
        dtype: DType,
    ) -> StridedView {
        let base = self.new.graph.spec(x.base).clone();
        let spec = |shape: Shape| Spec { dtype, shape };
        if base.dtype == x.dtype
            && let Some(axes) = axes_in(&base.shape, &x.layout)
        {
            // The base is in row-major order, and is reduced faster than a view of it. Its axes of size 1 are reduced too.
            let mut base_mask: AxisMask = base.shape.iter().map(|&dim| dim == 1).collect();
            for (&axis, &marked) in axes.iter().zip(mask) {
                base_mask[axis] = marked;
            }
            let kept: Shape = unmarked(&base.shape, &base_mask);
            let strides = kept.strides();
            let whole = StridedView::whole(x.base, &base);
            let both = self.merge_reductions(node, code, &base_mask, &whole);
            let made = both.unwrap_or_else(|| self.reduce_call(node, code, &base_mask, &whole, &spec(kept)));
            let place = |axis: usize| base_mask[..axis].iter().filter(|&&marked| !marked).count();
            let (mut shape, mut order) = (Vec::new(), Strides::new());
            for (&axis, _) in axes.iter().zip(mask).filter(|&(_, &marked)| !marked) {
                shape.push(base.shape[axis]);
                order.push(strides[place(axis)]);
            }
            if !made.is_whole(&self.new.graph) {
                // The result is a folded constant, and already a view itself.
                let axes: SmallVec<[usize; 8]> =
                    (axes.iter().zip(mask)).filter(|&(_, &marked)| !marked).map(|(&a, _)| place(a)).collect();
                return made.only(&axes);
            }
            return made.with(Layout { shape: shape.into(), strides: order, offset: 0 });
        }
        if mask.iter().all(|&marked| marked)
            && base.dtype == x.dtype
            && is_bijective(base.shape.len(), &x.layout)
        {
            let all: AxisMask = SmallVec::from_elem(true, base.shape.rank());
            return self.reduce_call(
                node,
                code,
                &all,
                &StridedView::whole(x.base, &base),
                &spec(Shape::scalar()),
            );
        }
        self.reduce_call(node, code, mask, x, &spec(unmarked(&x.layout.shape, mask)))
    }

    /// The reduction itself: folded, or called.
    fn reduce_call(
        &mut self,
        node: &Node,
        code: Reduce,
        mask: &[bool],
        x: &StridedView,
        spec: &Spec,
    ) -> StridedView {
        let axes: SmallVec<[isize; 4]> =
            (0..mask.len()).filter(|&axis| mask[axis]).map(|axis| axis as isize).collect();
        let op: Arc<dyn Op> = Arc::new(Reduction {
            name: node.op.name(),
            code: ReductionCode::Reduce(code),
            over: ReduceAxes(if axes.len() == mask.len() { None } else { Some(axes) }),
            gradient: None,
        });
        if let Some(view) = self.fold_constants(&op, std::slice::from_ref(x), spec, node.at) {
            return view;
        }
        let id = self.materialize(x, node.at);
        let id = self.new.call(op, [id].into_iter().collect(), spec.clone().into(), node.at)[0];
        StridedView::whole(id, spec)
    }

    /// A reduction of a reduction of the same kind that has no other reader: both at once. A mean of means is the mean, as
    /// all of them have the same number of elements.
    fn merge_reductions(
        &mut self,
        node: &Node,
        code: Reduce,
        mask: &[bool],
        x: &StridedView,
    ) -> Option<StridedView> {
        use Reduce::*;
        if !matches!(code, Sum | Prod | Mean | Max | Min | Any | All | LogSumExp)
            || !self.read_once(node.inputs[0])
        {
            return None;
        }
        let maker = self.new.producer(x.base)?;
        let &[input] = &maker.inputs[..] else { return None };
        let Form::Reduce { code: before, axes } = maker.op.form(&[self.new.graph.spec(input)]) else {
            return None;
        };
        if before != code || self.new.graph.spec(input).shape.is_empty() {
            return None;
        }
        let mut outer = mask.iter();
        let all: AxisMask = axes.iter().map(|&marked| marked || outer.next() == Some(&true)).collect();
        let spec =
            Spec::new(self.new.graph.spec(x.base).dtype, unmarked(&self.new.graph.spec(input).shape, &all));
        let source = self.view_of(input);
        Some(self.reduce_call(node, code, &all, &source, &spec))
    }

    /// Whether a value of the old graph, and each value that it is a view of, is read once.
    fn read_once(&self, mut id: ValueId) -> bool {
        loop {
            if self.uses[id.index()] != 1 {
                return false;
            }
            match self.old.values[id.index()].origin {
                Origin::Node { node, .. } if self.old.nodes[node].op.kernel().is_view() => {
                    id = self.old.nodes[node].inputs[0];
                }
                _ => return true,
            }
        }
    }

    /// The reduction of one element.
    fn reduce_single(
        &mut self,
        code: Reduce,
        x: StridedView,
        dtype: DType,
        at: Location,
    ) -> Result<StridedView> {
        use Reduce::*;
        match code {
            Sum | Prod | Mean | Max | Min | Any | All | LogSumExp => self.cast(x, dtype, at),
            CountNonzero => {
                let nonzero = self.cast(x, DType::Bool, at)?;
                self.cast(nonzero, dtype, at)
            }
            SumSquares => self.elementwise("square", Code::Unary(Unary::Square), &[x], dtype, at),
        }
    }

    /// The reduction of this many copies, from the reduction of one.
    ///
    /// A product rounds once, where the sum of the copies would round at each step: its error is smaller.
    fn scale_by_copies(
        &mut self,
        code: Reduce,
        x: StridedView,
        times: usize,
        at: Location,
    ) -> Result<StridedView> {
        use Reduce::*;
        let (dtype, shape) = (x.dtype, x.layout.shape.clone());
        match code {
            _ if times == 1 => Ok(x),
            Sum | CountNonzero | SumSquares => {
                // The number of copies may not be representable in 16-bit floats.
                let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
                let count = self.scalar_constant(times as u64, wide)?.broadcast(&shape)?;
                let x = self.cast(x, wide, at)?;
                let made = self.elementwise("multiply", Code::Binary(Binary::Mul), &[x, count], wide, at)?;
                self.cast(made, dtype, at)
            }
            LogSumExp => {
                let shift = self.scalar_constant((times as f64).ln(), dtype)?.broadcast(&shape)?;
                self.elementwise("add", Code::Binary(Binary::Add), &[x, shift], dtype, at)
            }
            Prod | Mean | Max | Min | Any | All => Ok(x),
        }
    }

    /// The reduction of a repeated value from its source, so that the repeated value is not computed; `None` if strides
    /// cannot express it.
    pub(super) fn reduce_repeated(
        &mut self,
        node: &Node,
        input: &KnownValue,
        code: Reduce,
        mask: &[bool],
        spec: &Spec,
    ) -> Result<Option<StridedView>> {
        let Some(repeated) = input.repeated.clone() else { return Ok(None) };
        let shape = &input.view.layout.shape;
        let Some(apart) = split_mask(shape, &repeated.layout.shape, mask) else { return Ok(None) };
        let Some(layout) = compose(&repeated.source.layout, &repeated.layout) else { return Ok(None) };
        if shape.is_empty() {
            return Ok(None);
        }
        let view = repeated.source.with(layout);
        let kept = Spec { dtype: spec.dtype, shape: unmarked(&repeated.layout.shape, &apart) };
        let made = self.simplify_reduction(node, code, &apart, &view, &kept)?;
        if let Some(layout) = made.layout.reshape(&spec.shape) {
            return Ok(Some(made.with(layout)));
        }
        // The result still repeats, in an order that strides cannot express: it is copied, which is less than the input.
        let id = self.materialize(&made, node.at);
        let whole =
            StridedView { base: id, dtype: spec.dtype, layout: Layout::contiguous(spec.shape.clone()) };
        let op = Arc::new(LayoutView::new(kept, &whole));
        let id = self.new.call(op, [id].into_iter().collect(), spec.clone().into(), node.at)[0];
        Ok(Some(StridedView::whole(id, spec)))
    }
}

/// The axes that remain.
fn unmarked(shape: &Shape, mask: &[bool]) -> Shape {
    shape.iter().zip(mask).filter(|&(_, &marked)| !marked).map(|(&dim, _)| dim).collect()
}

/// The mask of `shape` for another shape, each of whose axes is a factor of one of `shape`'s.
fn split_mask(shape: &Shape, apart: &Shape, mask: &[bool]) -> Option<AxisMask> {
    let mut found = AxisMask::new();
    let mut parts = apart.iter();
    for (&dim, &marked) in shape.iter().zip(mask) {
        let mut have = 1;
        while have != dim {
            have *= parts.next()?;
            found.push(marked);
            if have > dim {
                return None;
            }
        }
    }
    // The remaining axes have size 1, and reducing them changes nothing.
    parts.all(|&dim| dim == 1).then(|| {
        found.resize(apart.rank(), true);
        found
    })
}
