//! Values as parts of others: a base, and the layout through which it is seen. What chains of views come down to.

use smallvec::SmallVec;
use std::fmt::Write;
use taut_core::graph::ValueId;
use taut_core::{DType, Error, Graph, Kernel, Layout, Op, Result, Shape, Spec, Specs, Strides, ViewOp};

/// A value as its base shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// A value that is no view, and so lies in row-major order.
    pub(crate) base: ValueId,
    /// The type that the bytes are taken for.
    pub(crate) dtype: DType,
    /// Where the elements lie in the base.
    pub(crate) layout: Layout,
}

impl Seen {
    /// The base itself.
    pub(crate) fn whole(base: ValueId, spec: &Spec) -> Seen {
        Seen { base, dtype: spec.dtype, layout: Layout::contiguous(spec.shape.clone()) }
    }

    /// Whether it is the base itself.
    pub(crate) fn is_whole(&self, graph: &Graph) -> bool {
        let spec = graph.spec(self.base);
        spec.dtype == self.dtype && self.layout == Layout::contiguous(spec.shape.clone())
    }

    /// Whether it is the base itself, repeated as broadcasting repeats it.
    pub(crate) fn is_broadcast(&self, graph: &Graph) -> bool {
        let spec = graph.spec(self.base);
        let whole = Layout::contiguous(spec.shape.clone());
        spec.dtype == self.dtype
            && (self.layout == whole
                || whole.broadcast(&self.layout.shape).is_ok_and(|layout| normal(layout) == self.layout))
    }

    /// Whether every element is the same one.
    pub(crate) fn is_uniform(&self) -> bool {
        self.layout.shape.iter().zip(&self.layout.strides).all(|(&dim, &stride)| dim == 1 || stride == 0)
    }

    /// Through another layout.
    pub(crate) fn with(&self, layout: Layout) -> Seen {
        Seen { base: self.base, dtype: self.dtype, layout: normal(layout) }
    }

    pub(crate) fn broadcast(&self, shape: &Shape) -> Result<Seen> {
        if self.layout.shape == *shape {
            Ok(self.clone())
        } else {
            Ok(self.with(self.layout.broadcast(shape)?))
        }
    }

    /// With these axes only, the others at their first place.
    pub(crate) fn only(&self, axes: &[usize]) -> Seen {
        self.with(self.layout.permute(axes))
    }
}

/// The layout with the strides that do not matter as row-major order has them, so that equal layouts compare equal.
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

/// For each axis of a layout that is longer than one, the axis of its base that it is; `None` unless the layout is the
/// base with its axes in another order, and with or without axes of size one.
pub(crate) fn axes_in(base: &Shape, layout: &Layout) -> Option<SmallVec<[usize; 8]>> {
    let strides = base.strides();
    let long = |shape: &Shape| shape.iter().filter(|&&dim| dim != 1).count();
    if layout.offset != 0 || long(base) != long(&layout.shape) || base.is_empty() {
        return None;
    }
    // The strides of a row-major base are all different where its axes are longer than one.
    let find = |dim: usize, stride: isize| {
        (0..base.rank()).find(|&axis| base[axis] == dim && strides[axis] == stride && dim != 1)
    };
    (layout.shape.iter().zip(&layout.strides))
        .filter(|&(&dim, _)| dim != 1)
        .map(|(&dim, &stride)| find(dim, stride))
        .collect()
}

/// A layout of something in row-major order, where that is itself seen through a layout; `None` if strides cannot say it.
pub(crate) fn through(inner: &Layout, outer: &Layout) -> Option<Layout> {
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

/// Whether a layout shows every element of a base of this length once, in whatever order.
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

/// A view of its whole, contiguous input through any layout.
#[derive(Clone, Debug)]
pub(crate) struct LayoutView {
    from: Spec,
    dtype: DType,
    layout: Layout,
    kind: Kind,
}

/// What is special about a view: some can be taken of inputs that are not contiguous, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reshape,
    Broadcast,
    Other,
}

impl LayoutView {
    pub(crate) fn new(from: Spec, seen: &Seen) -> LayoutView {
        let (layout, whole) = (seen.layout.clone(), Layout::contiguous(from.shape.clone()));
        let kind = if seen.dtype != from.dtype {
            Kind::Other
        } else if whole
            .reshape(&layout.shape)
            .is_some_and(|reshaped| from.shape.len() == layout.shape.len() && normal(reshaped) == layout)
        {
            Kind::Reshape
        } else if whole.broadcast(&layout.shape).is_ok_and(|broadcast| normal(broadcast) == layout) {
            Kind::Broadcast
        } else {
            Kind::Other
        };
        LayoutView { from, dtype: seen.dtype, layout, kind }
    }

    /// A value repeated to a shape.
    pub(crate) fn broadcast(from: Spec, shape: &Shape) -> Result<LayoutView> {
        let layout = normal(Layout::contiguous(from.shape.clone()).broadcast(shape)?);
        Ok(LayoutView { dtype: from.dtype, from, layout, kind: Kind::Broadcast })
    }
}

impl Op for LayoutView {
    fn name(&self) -> &'static str {
        "view"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if *inputs[0] != self.from {
            return Err(Error::shape(format!("a view of {}, not of {}", self.from, inputs[0])));
        }
        Ok(Spec { dtype: self.dtype, shape: self.layout.shape.clone() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn attributes(&self) -> String {
        let Layout { strides, offset, .. } = &self.layout;
        match self.kind {
            Kind::Reshape => return "reshape".into(),
            Kind::Broadcast => return "broadcast".into(),
            Kind::Other => {}
        }
        // A string takes all that is written to it.
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
            Kind::Reshape => return input.reshape(&self.layout.shape),
            Kind::Broadcast => return input.broadcast(&self.layout.shape).ok(),
            Kind::Other => {}
        }
        let first = input.offset * dtype.size();
        if !input.is_contiguous() || !first.is_multiple_of(self.dtype.size()) {
            return None;
        }
        Some(Layout { offset: first / self.dtype.size() + self.layout.offset, ..self.layout.clone() })
    }
}

/// The strides of a result that has some axes of a computation, and others of size one or repeated.
pub(crate) fn spread_over(shape: &Shape, kept: &[usize], strides: &Strides) -> Layout {
    let mut all = Strides::from_elem(0, shape.rank());
    for (&axis, &stride) in kept.iter().zip(strides) {
        all[axis] = stride;
    }
    normal(Layout { shape: shape.clone(), strides: all, offset: 0 })
}
