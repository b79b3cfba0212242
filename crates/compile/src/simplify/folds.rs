//! Reductions: what is repeated is reduced once, what has one element is not reduced at all.

use super::{Known, Simplifier};
use crate::seen::{LayoutView, Seen, axes_in, is_bijective, spread_over, through};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::ops::{Folding, Over, Reduction};
use taut_core::{DType, Form, Layout, Op, Result, Shape, Spec, Strides};
use taut_kernels::elementwise::{Binary, Code, Unary};
use taut_kernels::reduce::Reduce;
use taut_memory::Location;

/// A mark per axis.
type Marks = SmallVec<[bool; 8]>;

impl Simplifier<'_> {
    /// What a reduction makes of a value.
    pub(super) fn fold(
        &mut self,
        node: &Node,
        code: Reduce,
        marks: &[bool],
        x: &Seen,
        spec: &Spec,
    ) -> Result<Seen> {
        let Layout { shape, strides, .. } = &x.layout;
        if shape.is_empty() || spec.shape.is_empty() {
            return Ok(self.folded(node, code, marks, x, spec));
        }
        // A product of repeated factors is a power, which rounds in its own way.
        let repeats = |axis: usize| strides[axis] == 0 && (!marks[axis] || code != Reduce::Prod);
        let kept: SmallVec<[usize; 8]> =
            (0..shape.rank()).filter(|&axis| shape[axis] != 1 && !repeats(axis)).collect();
        if kept.len() == shape.rank() && x.is_whole(&self.new.graph) {
            let both = self.refold(node, code, marks, x);
            return Ok(both.unwrap_or_else(|| self.folded(node, code, marks, x, spec)));
        }
        let times = (0..shape.rank())
            .filter(|axis| marks[*axis] && !kept.contains(axis))
            .map(|axis| shape[axis])
            .product();
        let inner = x.only(&kept);
        let inner_marks: Marks = kept.iter().map(|&axis| marks[axis]).collect();
        let made = if inner_marks.contains(&true) {
            self.inner_fold(node, code, &inner_marks, &inner, spec.dtype)
        } else {
            self.single(code, inner, spec.dtype, node.at)?
        };
        let made = self.times(code, made, times, node.at)?;
        // The axes that remain, and where they are in the result.
        let remaining: SmallVec<[usize; 8]> = (0..shape.rank()).filter(|&axis| !marks[axis]).collect();
        let places: SmallVec<[usize; 8]> = (remaining.iter().enumerate())
            .filter(|(_, axis)| kept.contains(axis))
            .map(|(place, _)| place)
            .collect();
        let layout = spread_over(&spec.shape, &places, &made.layout.strides);
        Ok(made.with(Layout { offset: made.layout.offset, ..layout }))
    }

    /// A reduction of something without axes of size one and without repeated ones.
    fn inner_fold(&mut self, node: &Node, code: Reduce, marks: &[bool], x: &Seen, dtype: DType) -> Seen {
        let base = self.new.graph.spec(x.base).clone();
        let spec = |shape: Shape| Spec { dtype, shape };
        if base.dtype == x.dtype
            && let Some(axes) = axes_in(&base.shape, &x.layout)
        {
            // The base lies in row-major order, and is reduced faster than a view of it. Its axes of size one go, too.
            let mut base_marks: Marks = base.shape.iter().map(|&dim| dim == 1).collect();
            for (&axis, &mark) in axes.iter().zip(marks) {
                base_marks[axis] = mark;
            }
            let kept: Shape = unmarked(&base.shape, &base_marks);
            let strides = kept.strides();
            let whole = Seen::whole(x.base, &base);
            let both = self.refold(node, code, &base_marks, &whole);
            let made = both.unwrap_or_else(|| self.folded(node, code, &base_marks, &whole, &spec(kept)));
            let place = |axis: usize| base_marks[..axis].iter().filter(|&&mark| !mark).count();
            let (mut shape, mut order) = (Vec::new(), Strides::new());
            for (&axis, _) in axes.iter().zip(marks).filter(|&(_, &mark)| !mark) {
                shape.push(base.shape[axis]);
                order.push(strides[place(axis)]);
            }
            if !made.is_whole(&self.new.graph) {
                // Known ahead of time, and without dimensions or in base order: seen through what it already is.
                let axes: SmallVec<[usize; 8]> =
                    (axes.iter().zip(marks)).filter(|&(_, &mark)| !mark).map(|(&a, _)| place(a)).collect();
                return made.only(&axes);
            }
            return made.with(Layout { shape: shape.into(), strides: order, offset: 0 });
        }
        if marks.iter().all(|&mark| mark)
            && base.dtype == x.dtype
            && is_bijective(base.shape.len(), &x.layout)
        {
            let all: Marks = SmallVec::from_elem(true, base.shape.rank());
            return self.folded(node, code, &all, &Seen::whole(x.base, &base), &spec(Shape::scalar()));
        }
        self.folded(node, code, marks, x, &spec(unmarked(&x.layout.shape, marks)))
    }

    /// The reduction itself: ahead of time, or by a call.
    fn folded(&mut self, node: &Node, code: Reduce, marks: &[bool], x: &Seen, spec: &Spec) -> Seen {
        let axes: SmallVec<[isize; 4]> =
            (0..marks.len()).filter(|&axis| marks[axis]).map(|axis| axis as isize).collect();
        let op: Arc<dyn Op> = Arc::new(Reduction {
            name: node.op.name(),
            code: Folding::Fold(code),
            over: Over(if axes.len() == marks.len() { None } else { Some(axes) }),
            rule: None,
        });
        if let Some(seen) = self.evaluated(&op, std::slice::from_ref(x), spec, node.at) {
            return seen;
        }
        let id = self.id(x, node.at);
        let id = self.new.call(op, [id].into_iter().collect(), spec.clone().into(), node.at)[0];
        Seen::whole(id, spec)
    }

    /// A reduction of one that nobody else reads, of the same kind: both at once. A mean of means is the mean, as all of
    /// them have the same number of elements.
    fn refold(&mut self, node: &Node, code: Reduce, marks: &[bool], x: &Seen) -> Option<Seen> {
        use Reduce::*;
        if !matches!(code, Sum | Prod | Mean | Max | Min | Any | All | LogSumExp)
            || !self.read_once(node.inputs[0])
        {
            return None;
        }
        let maker = self.new.maker(x.base)?;
        let &[input] = &maker.inputs[..] else { return None };
        let Form::Fold { code: before, axes } = maker.op.form(&[self.new.graph.spec(input)]) else {
            return None;
        };
        if before != code || self.new.graph.spec(input).shape.is_empty() {
            return None;
        }
        let mut outer = marks.iter();
        let all: Marks = axes.iter().map(|&mark| mark || outer.next() == Some(&true)).collect();
        let spec =
            Spec::new(self.new.graph.spec(x.base).dtype, unmarked(&self.new.graph.spec(input).shape, &all));
        let source = self.seen_of(input);
        Some(self.folded(node, code, &all, &source, &spec))
    }

    /// Whether a value of the old graph and all that it is a view of are read once.
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

    /// A reduction of one element.
    fn single(&mut self, code: Reduce, x: Seen, dtype: DType, at: Location) -> Result<Seen> {
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

    /// The reduction of so many copies, from the reduction of one.
    ///
    /// A product rounds once where the sum of the copies would round in each of its steps: what it is off by is less.
    fn times(&mut self, code: Reduce, x: Seen, times: usize, at: Location) -> Result<Seen> {
        use Reduce::*;
        let (dtype, shape) = (x.dtype, x.layout.shape.clone());
        match code {
            _ if times == 1 => Ok(x),
            Sum | CountNonzero | SumSquares => {
                // Half types may not hold the number of copies.
                let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
                let count = self.number(times as u64, wide)?.broadcast(&shape)?;
                let x = self.cast(x, wide, at)?;
                let made = self.elementwise("multiply", Code::Binary(Binary::Mul), &[x, count], wide, at)?;
                self.cast(made, dtype, at)
            }
            LogSumExp => {
                let shift = self.number((times as f64).ln(), dtype)?.broadcast(&shape)?;
                self.elementwise("add", Code::Binary(Binary::Add), &[x, shift], dtype, at)
            }
            Prod | Mean | Max | Min | Any | All => Ok(x),
        }
    }

    /// A reduction of a value that repeats another, which then need not be made; `None` if that cannot be said.
    pub(super) fn spread_fold(
        &mut self,
        node: &Node,
        input: &Known,
        code: Reduce,
        marks: &[bool],
        spec: &Spec,
    ) -> Result<Option<Seen>> {
        let Some(spread) = input.spread.clone() else { return Ok(None) };
        let shape = &input.seen.layout.shape;
        let Some(apart) = marks_apart(shape, &spread.layout.shape, marks) else { return Ok(None) };
        let Some(layout) = through(&spread.source.layout, &spread.layout) else { return Ok(None) };
        if shape.is_empty() {
            return Ok(None);
        }
        let seen = spread.source.with(layout);
        let kept = Spec { dtype: spec.dtype, shape: unmarked(&spread.layout.shape, &apart) };
        let made = self.fold(node, code, &apart, &seen, &kept)?;
        if let Some(layout) = made.layout.reshape(&spec.shape) {
            return Ok(Some(made.with(layout)));
        }
        // The result itself still repeats, in a way that strides cannot say: it is copied, which is less than the input.
        let id = self.id(&made, node.at);
        let whole = Seen { base: id, dtype: spec.dtype, layout: Layout::contiguous(spec.shape.clone()) };
        let op = Arc::new(LayoutView::new(kept, &whole));
        let id = self.new.call(op, [id].into_iter().collect(), spec.clone().into(), node.at)[0];
        Ok(Some(Seen::whole(id, spec)))
    }
}

/// The axes that are not marked.
fn unmarked(shape: &Shape, marks: &[bool]) -> Shape {
    shape.iter().zip(marks).filter(|&(_, &mark)| !mark).map(|(&dim, _)| dim).collect()
}

/// The marks of `shape` on another shape, each of whose axes is part of one of `shape`'s.
fn marks_apart(shape: &Shape, apart: &Shape, marks: &[bool]) -> Option<Marks> {
    let mut found = Marks::new();
    let mut parts = apart.iter();
    for (&dim, &mark) in shape.iter().zip(marks) {
        let mut have = 1;
        while have != dim {
            have *= parts.next()?;
            found.push(mark);
            if have > dim {
                return None;
            }
        }
    }
    // What is left has size one, and folding it away changes nothing.
    parts.all(|&dim| dim == 1).then(|| {
        found.resize(apart.rank(), true);
        found
    })
}
