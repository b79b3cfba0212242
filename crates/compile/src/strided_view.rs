//! Strided views: a value as a base and a layout. Every chain of views is reduced to one.

use smallvec::SmallVec;
use std::fmt::Write;
use taut_core::graph::ValueId;
use taut_core::{DType, Error, Graph, Kernel, Layout, Op, Result, Shape, Spec, Specs, Strides, ViewOp};

/// A view of a base.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StridedView {
    /// A value that is not a view, and so is in row-major order.
    pub(crate) base: ValueId,
    /// The type that the bytes are read as.
    pub(crate) dtype: DType,
    /// The layout of the elements in the base.
    pub(crate) layout: Layout,
}

impl StridedView {
    /// The view that is the base itself.
    pub(crate) fn whole(base: ValueId, spec: &Spec) -> StridedView {
        StridedView { base, dtype: spec.dtype, layout: Layout::contiguous(spec.shape.clone()) }
    }

    /// Whether it is the base itself.
    pub(crate) fn is_whole(&self, graph: &Graph) -> bool {
        let spec = graph.spec(self.base);
        spec.dtype == self.dtype && self.layout == Layout::contiguous(spec.shape.clone())
    }

    /// Whether it is the base itself, broadcast to a shape.
    pub(crate) fn is_broadcast(&self, graph: &Graph) -> bool {
        let spec = graph.spec(self.base);
        let whole = Layout::contiguous(spec.shape.clone());
        spec.dtype == self.dtype
            && (self.layout == whole
                || whole.broadcast(&self.layout.shape).is_ok_and(|layout| normal(layout) == self.layout))
    }

    /// Whether all elements are the same element of the base.
    pub(crate) fn is_uniform(&self) -> bool {
        self.layout.shape.iter().zip(&self.layout.strides).all(|(&dim, &stride)| dim == 1 || stride == 0)
    }

    /// The same base with another layout.
    pub(crate) fn with(&self, layout: Layout) -> StridedView {
        StridedView { base: self.base, dtype: self.dtype, layout: normal(layout) }
    }

    pub(crate) fn broadcast(&self, shape: &Shape) -> Result<StridedView> {
        if self.layout.shape == *shape {
            Ok(self.clone())
        } else {
            Ok(self.with(self.layout.broadcast(shape)?))
        }
    }

    /// These axes only; the others at index 0.
    pub(crate) fn only(&self, axes: &[usize]) -> StridedView {
        self.with(self.layout.permute(axes))
    }
}

/// The layout with row-major strides on the axes whose strides have no effect, so that equivalent layouts compare equal.
pub(crate) fn normal(mut layout: Layout) -> Layout {
    if layout.shape.is_empty() {
        return Layout::contiguous(layout.shape);
    }
    let mut next = 1;
    for (&dim, stride) in layout.shape.iter().zip(&mut layout.strides).rev() {
        if dim == 1 {
            *stride = next;
        }
        next *= dim as isize;
    }
    layout
}

/// For each axis of a layout of size > 1, the axis of the base that it is; `None` unless the layout is a permutation of
/// the base's axes, up to axes of size 1.
pub(crate) fn axes_in(base: &Shape, layout: &Layout) -> Option<SmallVec<[usize; 8]>> {
    let strides = base.strides();
    let long = |shape: &Shape| shape.iter().filter(|&&dim| dim != 1).count();
    if layout.offset != 0 || long(base) != long(&layout.shape) || base.is_empty() {
        return None;
    }
    // In row-major order, the strides of the axes of size > 1 are all different.
    let find = |dim: usize, stride: isize| {
        (0..base.rank()).find(|&axis| base[axis] == dim && strides[axis] == stride && dim != 1)
    };
    (layout.shape.iter().zip(&layout.strides))
        .filter(|&(&dim, _)| dim != 1)
        .map(|(&dim, &stride)| find(dim, stride))
        .collect()
}

/// The composition of two layouts: `outer` indexes the elements of `inner` in row-major order. `None` if strides cannot
/// express it.
pub(crate) fn compose(inner: &Layout, outer: &Layout) -> Option<Layout> {
    let rows = inner.shape.strides();
    let axis = |dim: usize, stride: isize| {
        (0..rows.len()).find(|&axis| inner.shape[axis] == dim && rows[axis] == stride)
    };
    let strides = (outer.shape.iter().zip(&outer.strides)).map(|(&dim, &stride)| match stride {
        _ if dim == 1 => Some(0),
        0 => Some(0),
        _ => axis(dim, stride).map(|axis| inner.strides[axis]),
    });
    let strides = strides.collect::<Option<Strides>>().filter(|_| outer.offset == 0)?;
    Some(normal(Layout { shape: outer.shape.clone(), strides, offset: inner.offset }))
}

/// Whether a layout has every element of a base of this length exactly once, in any order.
pub(crate) fn is_bijective(len: usize, layout: &Layout) -> bool {
    let mut dims: SmallVec<[(isize, usize); 8]> = (layout.shape.iter().zip(&layout.strides))
        .filter(|&(&dim, _)| dim != 1)
        .map(|(&dim, &stride)| (stride, dim))
        .collect();
    dims.sort_unstable();
    let mut expected = 1isize;
    for (stride, dim) in dims {
        if stride != expected {
            return false;
        }
        expected *= dim as isize;
    }
    layout.offset == 0 && expected as usize == len
}

/// The op of a strided view of its whole, contiguous input.
#[derive(Clone, Debug)]
pub(crate) struct LayoutView {
    from: Spec,
    dtype: DType,
    layout: Layout,
    kind: ViewKind,
}

/// Reshapes and broadcasts are also possible of inputs that are not contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewKind {
    Reshape,
    Broadcast,
    Other,
}

impl LayoutView {
    pub(crate) fn new(from: Spec, view: &StridedView) -> LayoutView {
        let (layout, whole) = (view.layout.clone(), Layout::contiguous(from.shape.clone()));
        let kind = if view.dtype != from.dtype {
            ViewKind::Other
        } else if whole
            .reshape(&layout.shape)
            .is_some_and(|reshaped| from.shape.len() == layout.shape.len() && normal(reshaped) == layout)
        {
            ViewKind::Reshape
        } else if whole.broadcast(&layout.shape).is_ok_and(|broadcast| normal(broadcast) == layout) {
            ViewKind::Broadcast
        } else {
            ViewKind::Other
        };
        LayoutView { from, dtype: view.dtype, layout, kind }
    }

    /// A value broadcast to a shape.
    pub(crate) fn broadcast(from: Spec, shape: &Shape) -> Result<LayoutView> {
        let layout = normal(Layout::contiguous(from.shape.clone()).broadcast(shape)?);
        Ok(LayoutView { dtype: from.dtype, from, layout, kind: ViewKind::Broadcast })
    }
}

impl Op for LayoutView {
    fn name(&self) -> &'static str {
        "view"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if *inputs[0] != self.from {
            return Err(Error::shape(format!(
                "the input of the view must be {}, got {}",
                self.from, inputs[0]
            )));
        }
        Ok(Spec { dtype: self.dtype, shape: self.layout.shape.clone() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn attributes(&self) -> String {
        let Layout { strides, offset, .. } = &self.layout;
        match self.kind {
            ViewKind::Reshape => return "reshape".into(),
            ViewKind::Broadcast => return "broadcast".into(),
            ViewKind::Other => {}
        }
        // Writing to a string cannot fail.
        let mut text = format!("strides={:?}", strides.as_slice());
        if *offset != 0 {
            let _ = write!(text, ", offset={offset}");
        }
        if self.dtype != self.from.dtype {
            let _ = write!(text, ", as {}", self.dtype);
        }
        text
    }
}

impl ViewOp for LayoutView {
    fn view(&self, dtype: DType, input: &Layout) -> Option<Layout> {
        match self.kind {
            ViewKind::Reshape => return input.reshape(&self.layout.shape),
            ViewKind::Broadcast => return input.broadcast(&self.layout.shape).ok(),
            ViewKind::Other => {}
        }
        let first = input.offset * dtype.size();
        if !input.is_contiguous() || !first.is_multiple_of(self.dtype.size()) {
            return None;
        }
        Some(Layout { offset: first / self.dtype.size() + self.layout.offset, ..self.layout.clone() })
    }
}

/// The layout of a shape whose `kept` axes have these strides, and whose other axes are repeated (stride 0).
pub(crate) fn expand_axes(shape: &Shape, kept: &[usize], strides: &Strides) -> Layout {
    let mut all = Strides::from_elem(0, shape.rank());
    for (&axis, &stride) in kept.iter().zip(strides) {
        all[axis] = stride;
    }
    normal(Layout { shape: shape.clone(), strides: all, offset: 0 })
}
