//! Cumulative sums, products, extremes and log-sum-exps along one dimension.
//!
//! Running values are kept wider than the result where that is free (sums of floats in `f64`), and always run in
//! order, so a result never depends on the number of threads.

use crate::dtype::{Complex, DType, Element};
use crate::reduce::complex::ComplexElement;
use crate::reduce::fold::{Float, Number, Ordered, Value, larger, smaller};
use crate::reduce::plan::{Dim, MAX_DIMS, arrange, offsets, runs};
use crate::reduce::shared::{PerOutput, Shared};
use crate::reduce::total;
use crate::simd::Level;
use crate::view::{View, ViewMut};
use crate::{dispatch, multiversion, pool};
use std::marker::PhantomData;

#[cfg(test)]
mod tests;

/// The kind of scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scan {
    /// The sum so far; integers wrap. Starts from 0.
    Sum,
    /// The product so far; integers wrap. Starts from 1.
    Prod,
    /// The largest so far, or NaN after one. Starts from the lowest value of the type, which is -∞ for floats.
    Max,
    /// The smallest so far, or NaN after one. Starts from the highest value of the type, which is ∞ for floats.
    Min,
    /// The logarithm of the sum of exponentials so far, without intermediate overflow. Starts from -∞.
    LogSumExp,
}

impl Scan {
    /// The element type of the result for elements of type `dtype`, or `None` if there is no such scan.
    ///
    /// ```
    /// use taut_kernels::{DType, scan::Scan};
    /// assert_eq!(Scan::Sum.result(DType::Bool), Some(DType::I64));
    /// assert_eq!(Scan::Max.result(DType::U8), Some(DType::U8));
    /// assert_eq!(Scan::LogSumExp.result(DType::U8), None);
    /// ```
    pub const fn result(self, dtype: DType) -> Option<DType> {
        match self {
            Scan::Sum | Scan::Prod => Some(total(dtype)),
            _ if dtype.is_complex() => None,
            Scan::Max | Scan::Min => Some(dtype),
            Scan::LogSumExp => {
                if dtype.is_float() {
                    Some(dtype)
                } else {
                    None
                }
            }
        }
    }
}

/// Writes to each position of `out` the scan of the elements of `x` up to it along `axis`.
///
/// With `exclusive`, up to but without the one at the position, so that the first is the value it starts from. With
/// `reverse`, from the end of the dimension to its beginning.
///
/// # Panics
/// If `out` has another shape than `x` or not the type of the result, or if there is no such axis.
pub fn scan(code: Scan, x: View<'_>, axis: usize, exclusive: bool, reverse: bool, mut out: ViewMut<'_>) {
    assert_eq!(code.result(x.dtype()), Some(out.dtype()), "{code:?} of {}", x.dtype());
    assert_eq!(x.shape(), out.shape(), "a scan keeps the shape");
    assert!(axis < x.shape().len(), "axis {axis} of {:?}", x.shape());
    if x.dtype().is_complex() && code == Scan::Sum {
        let (shape, strides) = x.part_layout();
        return scan(code, x.parts(&shape, &strides), axis, exclusive, reverse, out.parts(&shape));
    }
    let mut dims = [Dim::default(); 8];
    let mut many;
    let dims = if x.shape().len() <= dims.len() {
        &mut dims[..]
    } else {
        many = [Dim::default(); MAX_DIMS];
        &mut many[..]
    };
    let walk = Walk::new(x, axis, exclusive, reverse, dims);
    match code {
        Scan::Sum => dispatch!(x.dtype(), T in all => walk.run::<RunningSum<T>>(x, out)),
        Scan::Prod if x.dtype().is_complex() => {
            dispatch!(x.dtype(), T in complex => walk.run::<RunningComplexProduct<T>>(x, out));
        }
        Scan::Prod => dispatch!(x.dtype(), T in all => walk.run::<RunningProduct<T>>(x, out)),
        Scan::Max => dispatch!(x.dtype(), T in all => walk.run::<RunningMax<T>>(x, out)),
        Scan::Min => dispatch!(x.dtype(), T in all => walk.run::<RunningMin<T>>(x, out)),
        Scan::LogSumExp => dispatch!(x.dtype(), T in floats => walk.run::<RunningLogSumExp<T>>(x, out)),
    }
}

/// A value that runs along a dimension.
trait Running: Copy + Sync {
    type In: Element;
    type Acc: Copy;
    type Out: Element;
    /// The initial accumulator.
    const START: Self::Acc;
    /// The output before the first element. Not `START`, which is -0.0 for sums: the empty sum is 0.0.
    const EMPTY: Self::Acc;
    fn step(acc: Self::Acc, x: Self::In) -> Self::Acc;
    fn out(acc: Self::Acc) -> Self::Out;
}

macro_rules! running {
    ($name:ident<$t:ident: $bound:ident>, $acc:ty => $out:ty, $start:expr, $empty:expr,
     |$a:ident, $x:ident| $step:expr, $output:expr) => {
        struct $name<T>(PhantomData<fn(T)>);
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<$t: $bound> Running for $name<$t> {
            type In = $t;
            type Acc = $acc;
            type Out = $out;
            const START: $acc = $start;
            const EMPTY: $acc = $empty;
            #[inline(always)]
            fn step($a: $acc, $x: $t) -> $acc {
                $step
            }
            #[inline(always)]
            fn out(acc: $acc) -> $out {
                $output(acc)
            }
        }
    };
}
running!(RunningSum<T: Number>, T::Running => T::Out, T::Running::NOTHING, T::Running::ZERO,
         |acc, x| acc.plus(x.running()), T::from_running);
running!(RunningProduct<T: Number>, T::Total => T::Out, T::Total::ONE, T::Total::ONE,
         |acc, x| acc.times(T::widen(x.leaf())), T::finish);
running!(RunningComplexProduct<T: ComplexElement>, Complex<f64> => T, Complex::ONE, Complex::ONE,
         |acc, x| acc * x.wide(), T::narrow);
running!(RunningMax<T: Ordered>, T::Value => T, T::Value::LOWEST, T::Value::LOWEST, |acc, x| larger(acc, x.value()), T::restore);
running!(RunningMin<T: Ordered>, T::Value => T, T::Value::HIGHEST, T::Value::HIGHEST, |acc, x| smaller(acc, x.value()), T::restore);
running!(RunningLogSumExp<T: Float>, Exponentials => T, Exponentials::NONE, Exponentials::NONE,
         |acc, x| acc.with(x.double()), |acc: Exponentials| T::from_f64(acc.log()));

/// A sum of exponentials, as a multiple of the largest one.
#[derive(Clone, Copy)]
struct Exponentials {
    largest: f64,
    multiple: f64,
}

impl Exponentials {
    const NONE: Exponentials = Exponentials { largest: f64::NEG_INFINITY, multiple: 0.0 };

    #[inline(always)]
    fn with(self, x: f64) -> Exponentials {
        let largest = larger(self.largest, x);
        let shift = f64::shift(largest);
        let multiple = self.multiple * f64::exp_distance(self.largest, shift) + f64::exp_distance(x, shift);
        Exponentials { largest, multiple }
    }

    #[inline(always)]
    fn log(self) -> f64 {
        f64::log_shifted(self.multiple, f64::shift(self.largest))
    }
}

/// Lines are shared between threads from this many elements on.
const PARALLEL: usize = 32 * 1024;
/// How many neighbouring lines run side by side.
const WIDE: usize = 256;

/// The dimensions before and after the scanned one, and that one.
struct Walk<'a> {
    base: usize,
    before: &'a [Dim],
    after: &'a [Dim],
    line: Dim,
    lines: usize,
    exclusive: bool,
    reverse: bool,
}

impl<'a> Walk<'a> {
    fn new(x: View<'_>, axis: usize, exclusive: bool, reverse: bool, dims: &'a mut [Dim]) -> Walk<'a> {
        let (shape, strides) = (x.shape(), x.strides());
        let (mut head, mut out) = (dims.len(), 1isize);
        let mut split = head;
        let mut line = Dim::default();
        for d in (0..shape.len()).rev() {
            let dim = Dim { n: shape[d], x: strides[d], out };
            out *= dim.n as isize;
            if d == axis {
                line = dim;
                split = head;
            } else if dim.n != 1 && !x.is_empty() {
                head -= 1;
                dims[head] = dim;
            }
        }
        let lines = if x.is_empty() { 0 } else { x.len() / line.n };
        let (before, after) = dims.split_at_mut(split);
        let (before, after) = (arrange(&mut before[head..], false), arrange(after, false));
        Walk { base: x.offset(), before, after, line, lines, exclusive, reverse }
    }

    fn run<R: Running>(&self, x: View<'_>, mut out: ViewMut<'_>) {
        let (data, out) = (x.data::<R::In>(), out.slice::<R::Out>());
        if self.lines == 0 {
            return;
        }
        if self.line.out == 1 {
            self.run_rows::<R>(data, out);
        } else {
            self.run_columns::<R>(data, out);
        }
    }

    /// Each line is contiguous in the output: one line after the other.
    fn run_rows<R: Running>(&self, data: &[R::In], out: &mut [R::Out]) {
        let Dim { n, x: stride, .. } = self.line;
        let work = |at: usize, part: &mut [R::Out]| {
            for (i, line) in part.chunks_exact_mut(n).enumerate() {
                let first = self.base.wrapping_add_signed(offsets(self.before, at / n + i).0);
                let element = |k: usize| data[first.wrapping_add_signed(k as isize * stride)];
                self.run_line::<R>((0..n).map(element), line);
            }
        };
        let chunk = if out.len() < PARALLEL { out.len() } else { (PARALLEL / 2).div_ceil(n) * n };
        pool::for_each_mut(out, chunk, work);
    }

    fn run_line<R: Running>(
        &self,
        x: impl DoubleEndedIterator<Item = R::In> + ExactSizeIterator,
        line: &mut [R::Out],
    ) {
        if self.reverse {
            run_pairs::<R>(x.zip(line).rev(), self.exclusive);
        } else {
            run_pairs::<R>(x.zip(line), self.exclusive);
        }
    }

    /// Neighbours in the output belong to different lines: up to [`WIDE`] of them run side by side.
    fn run_columns<R: Running>(&self, data: &[R::In], out: &mut [R::Out]) {
        let Dim { n, x: stride, out: inner } = self.line;
        let inner = inner as usize;
        let tiles = inner.div_ceil(WIDE);
        let len = out.len();
        let shared = Shared::new(out);
        let work = |tile: usize| {
            let (outer, start) = (tile / tiles, tile % tiles * WIDE);
            let width = WIDE.min(inner - start);
            let first = self.base.wrapping_add_signed(offsets(self.before, outer).0);
            let (mut accs, mut room) = (PerOutput::new(), PerOutput::new());
            let accs = accs.filled(width, if self.exclusive { R::EMPTY } else { R::START });
            let room = room.filled(width, <R::In as bytemuck::Zeroable>::zeroed());
            for i in 0..n {
                let k = if self.reverse { n - 1 - i } else { i };
                // SAFETY: a tile is the only one with its columns of its `outer`, and visits each row once.
                let row = unsafe { shared.slice((outer * n + k) * inner + start, width) };
                let first = first.wrapping_add_signed(k as isize * stride);
                let mut done = 0;
                runs(self.after, start, width, &mut |offset, step, len| {
                    let first = first.wrapping_add_signed(offset);
                    let x = if step == 1 {
                        &data[first..first + len]
                    } else {
                        for (j, element) in room[..len].iter_mut().enumerate() {
                            *element = data[first.wrapping_add_signed(j as isize * step)];
                        }
                        &room[..len]
                    };
                    let (accs, row) = (&mut accs[done..done + len], &mut row[done..done + len]);
                    step_row(PhantomData::<R>, x, accs, row, self.exclusive);
                    done += len;
                });
            }
        };
        let all = self.lines / inner * tiles;
        let batch = if len < PARALLEL { all } else { (PARALLEL / 2 / (n * WIDE.min(inner))).max(1) };
        pool::for_each(all, batch, |tiles| tiles.for_each(work));
    }
}

#[inline(always)]
fn run_pairs<'a, R: Running<Out: 'a>>(pairs: impl Iterator<Item = (R::In, &'a mut R::Out)>, exclusive: bool) {
    if exclusive {
        let mut acc = R::EMPTY;
        for (x, out) in pairs {
            *out = R::out(acc);
            acc = R::step(acc, x);
        }
    } else {
        let mut acc = R::START;
        for (x, out) in pairs {
            acc = R::step(acc, x);
            *out = R::out(acc);
        }
    }
}

multiversion! {
    up_to(if R::In::DTYPE.is_float() { Level::Avx512 } else { Level::Avx2 })
    fn step_row[R: Running](
        _code: PhantomData<R>, x: &[R::In], accs: &mut [R::Acc], out: &mut [R::Out], exclusive: bool,
    ) {
        for ((acc, &x), out) in accs.iter_mut().zip(x).zip(out) {
            let next = R::step(*acc, x);
            *out = R::out(if exclusive { *acc } else { next });
            *acc = next;
        }
    }
}
