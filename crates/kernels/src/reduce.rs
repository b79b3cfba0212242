//! Reductions: sums, products, extremes, counts and the like over any set of dimensions of any strided view.
//!
//! Sums of floats are accurate: elements go through many accumulators, and these through a tree, so the rounding
//! error grows with the logarithm of the number of elements. The half types are accumulated in `f32`. A result
//! depends on the values, the shape and the memory layout; never on the number of threads or the instruction set.

mod arg;
pub(crate) mod complex;
pub(crate) mod fold;
mod kernel;
pub(crate) mod plan;
mod run;
pub(crate) mod shared;
#[cfg(test)]
pub(crate) mod tests;

pub use arg::arg_extreme;

use crate::dtype::{Bool, DType, Element};
use crate::view::{View, ViewMut};
use crate::{denormals, dispatch};
use fold::*;
use kernel::{Lanes, lanes};
use plan::{Dim, MAX_DIMS, Plan};
use run::{Data, Once, Source, Twice, drive};

/// The reduction of the elements along the reduced dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Their sum; integers wrap. 0 for no elements.
    Sum,
    /// Their product; integers wrap. 1 for no elements.
    Prod,
    /// Their arithmetic mean. NaN for no elements.
    Mean,
    /// The largest, or NaN if there is one. Needs an element.
    Max,
    /// The smallest, or NaN if there is one. Needs an element.
    Min,
    /// Whether one is not zero. NaN is not zero.
    Any,
    /// Whether none is zero.
    All,
    /// How many are not zero.
    CountNonzero,
    /// The logarithm of the sum of their exponentials, without intermediate overflow. -∞ for no elements.
    LogSumExp,
    /// The sum of their squares, which overflows where a square does.
    SumSquares,
}

impl Reduce {
    /// The element type of the result for elements of type `dtype`, or `None` if there is no such reduction.
    ///
    /// ```
    /// use taut_kernels::{DType, reduce::Reduce};
    /// assert_eq!(Reduce::Sum.result(DType::I8), Some(DType::I64));
    /// assert_eq!(Reduce::Max.result(DType::I8), Some(DType::I8));
    /// assert_eq!(Reduce::Mean.result(DType::I8), None);
    /// ```
    pub const fn result(self, dtype: DType) -> Option<DType> {
        match self {
            Reduce::Sum | Reduce::Prod | Reduce::Mean if dtype.is_complex() => Some(dtype),
            _ if dtype.is_complex() => None,
            Reduce::Sum | Reduce::Prod => Some(total(dtype)),
            Reduce::Max | Reduce::Min => Some(dtype),
            Reduce::Any | Reduce::All => Some(DType::Bool),
            Reduce::CountNonzero => Some(DType::I64),
            Reduce::Mean | Reduce::LogSumExp | Reduce::SumSquares => {
                if dtype.is_float() {
                    Some(dtype)
                } else {
                    None
                }
            }
        }
    }
}

/// The type of a sum or product: floats and complex numbers stay, integers become the 64-bit integer of their sign.
pub(crate) const fn total(dtype: DType) -> DType {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
        DType::Bool | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DType::I64,
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C64 | DType::C128 => dtype,
    }
}

/// The bytes of scratch with which [`reduce`] and [`var`] of `shape` use every thread, for any strides: never
/// more than 256 KiB, and 0 where no scratch is needed.
pub fn reduce_scratch(shape: &[usize], axes: &[bool]) -> usize {
    let (mut count, mut outputs) = (1, 1);
    for (&n, &reduced) in shape.iter().zip(axes) {
        if reduced {
            count *= n;
        } else {
            outputs *= n;
        }
    }
    run::scratch_bytes(count, outputs)
}

/// Reduces the dimensions of `x` that are marked in `axes` into `out`, which has the others.
///
/// `scratch` is [`reduce_scratch`] bytes, aligned to 64. With less the result is the same, but some shapes take one
/// thread only.
///
/// # Panics
/// If the shape or type of `out` is not that of the result, or on the maximum or minimum of no elements.
pub fn reduce(code: Reduce, x: View<'_>, axes: &[bool], out: ViewMut<'_>, scratch: &mut [u8]) {
    assert_eq!(code.result(x.dtype()), Some(out.dtype()), "{code:?} of {}", x.dtype());
    assert_eq!(x.shape().len(), axes.len(), "one mark per dimension");
    check_kept(x.shape(), |d| axes[d], out.shape());
    if x.dtype().is_complex() {
        return complex::reduce(code, x, axes, out, scratch);
    }
    let mut dims = [Dim::default(); 8];
    if x.shape().len() <= dims.len() {
        run_code(code, Input::View(x), &plan(x, axes, &mut dims), out, scratch);
    } else {
        run_code(code, Input::View(x), &plan(x, axes, &mut [Dim::default(); MAX_DIMS]), out, scratch);
    }
}

/// Computes elements on demand: `compute(first, out)` fills `out`, which is aligned to the element's size, with those from
/// number `first` on, in row-major order. It may be called for the same element more than once.
pub type Computed<'a> = &'a (dyn Fn(usize, &mut [u8]) + Sync);

/// [`reduce`] of `shape` elements of type `dtype` that are computed a few at a time and are never stored together.
/// The result is that of reducing them from contiguous memory, to the last bit.
///
/// # Panics
/// As [`reduce`].
pub fn reduce_computed(
    code: Reduce,
    dtype: DType,
    shape: &[usize],
    compute: Computed<'_>,
    axes: &[bool],
    out: ViewMut<'_>,
    scratch: &mut [u8],
) {
    assert_eq!(code.result(dtype), Some(out.dtype()), "{code:?} of {dtype}");
    assert_eq!(shape.len(), axes.len(), "one mark per dimension");
    check_kept(shape, |d| axes[d], out.shape());
    let stride = |d: usize| shape[d + 1..].iter().product::<usize>() as isize;
    let mut dims = [Dim::default(); MAX_DIMS];
    let plan = Plan::new(0, shape, stride, |d| axes[d], false, &mut dims);
    run_code(code, Input::Computed(dtype, compute), &plan, out, scratch);
}

/// The variance over the dimensions of `x` that are marked in `axes`: the sum of squared distances from the mean,
/// divided by the number of elements less `correction`. Distances are taken and summed in `f64`.
///
/// A divisor below zero counts as zero. `scratch` is as for [`reduce`].
///
/// # Panics
/// If the shape or type of `out` is not that of the result, or if the elements are not floats.
pub fn var(x: View<'_>, axes: &[bool], correction: f64, out: ViewMut<'_>, scratch: &mut [u8]) {
    assert_eq!(x.dtype(), out.dtype(), "a variance has the type of its elements");
    assert_eq!(x.shape().len(), axes.len(), "one mark per dimension");
    check_kept(x.shape(), |d| axes[d], out.shape());
    let mut dims = [Dim::default(); 8];
    if x.shape().len() <= dims.len() {
        run_var(x, &plan(x, axes, &mut dims), correction, out, scratch);
    } else {
        run_var(x, &plan(x, axes, &mut [Dim::default(); MAX_DIMS]), correction, out, scratch);
    }
}

fn check_kept(shape: &[usize], reduces: impl Fn(usize) -> bool, out: &[usize]) {
    let mut kept = out.iter();
    let matches = shape.iter().enumerate().all(|(d, n)| reduces(d) || kept.next() == Some(n));
    assert!(matches && kept.next().is_none(), "no reduction of {shape:?} gives {out:?}");
}

fn plan<'a>(x: View<'_>, axes: &[bool], dims: &'a mut [Dim]) -> Plan<'a> {
    Plan::new(x.offset(), x.shape(), |d| x.strides()[d], |d| axes[d], false, dims)
}

/// The elements that are reduced.
#[derive(Clone, Copy)]
enum Input<'a> {
    View(View<'a>),
    Computed(DType, Computed<'a>),
}

impl<'a> Input<'a> {
    fn dtype(&self) -> DType {
        match self {
            Input::View(view) => view.dtype(),
            Input::Computed(dtype, _) => *dtype,
        }
    }

    fn data<T: Element>(&self) -> Data<'a, T> {
        match self {
            Input::View(view) => Data::Memory(view.data()),
            Input::Computed(_, compute) => Data::Computed(*compute),
        }
    }
}

fn run_code(code: Reduce, x: Input<'_>, plan: &Plan<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    let all = plan.count as i64;
    let empty = plan.count == 0 && plan.outputs > 0;
    match (code, x.dtype()) {
        (Reduce::Max, _) if empty => panic!("the maximum of no elements"),
        (Reduce::Min, _) if empty => panic!("the minimum of no elements"),
        (Reduce::Sum | Reduce::Prod, DType::Bool) | (Reduce::CountNonzero, _) => {
            let product = code == Reduce::Prod;
            count(x, plan, out, scratch, |n| if product { (n == all) as i64 } else { n });
        }
        (Reduce::Any | Reduce::All, _) | (Reduce::Max | Reduce::Min, DType::Bool) => {
            let least = if matches!(code, Reduce::Any | Reduce::Max) { 1 } else { all };
            count(x, plan, out, scratch, |n| Bool::from(n >= least));
        }
        (Reduce::Sum, dtype) if dtype.is_integer() => dispatch!(dtype, T in integers => {
            const L: usize = lanes::<<T as Number>::Leaf>();
            once(Sum::<T>::NEW, Lanes::<L>, (), T::finish, x, plan, out, scratch);
        }),
        (Reduce::Sum | Reduce::Mean, dtype) => dispatch!(dtype, T in floats => {
            const L: usize = lanes::<<T as Number>::Leaf>();
            let mean = code == Reduce::Mean;
            let finish = |sum| T::finish(if mean { T::mean(sum, plan.count) } else { sum });
            once(Sum::<T>::NEW, Lanes::<L>, (), finish, x, plan, out, scratch);
        }),
        (Reduce::Prod, dtype) => dispatch!(dtype, T in numbers => {
            const L: usize = lanes::<<T as Number>::Total>();
            once(Product::<T>::NEW, Lanes::<L>, (), T::finish, x, plan, out, scratch);
        }),
        (Reduce::Max, dtype) => dispatch!(dtype, T in numbers => {
            const L: usize = lanes::<<T as Ordered>::Value>();
            once(Largest::<T>::NEW, Lanes::<L>, (), T::restore, x, plan, out, scratch);
        }),
        (Reduce::Min, dtype) => dispatch!(dtype, T in numbers => {
            const L: usize = lanes::<<T as Ordered>::Value>();
            once(Smallest::<T>::NEW, Lanes::<L>, (), T::restore, x, plan, out, scratch);
        }),
        (Reduce::SumSquares, dtype) => dispatch!(dtype, T in floats => {
            const L: usize = lanes::<<T as Number>::Total>();
            once(Squares::<T>::NEW, Lanes::<L>, (), T::finish, x, plan, out, scratch);
        }),
        (Reduce::LogSumExp, dtype) => dispatch!(dtype, T in floats => {
            const L: usize = lanes::<<T as Number>::Total>();
            let program = Twice {
                first: Largest::<T>::NEW,
                second: Exponentials::<T>::NEW,
                lanes: Lanes::<L>,
                context: T::shift,
                finish: |shift, total| T::finish(T::log_shifted(total, shift)),
            };
            drive(&program, &Source { data: x.data(), plan }, out.slice(), scratch);
        }),
    }
}

fn once<F: Fold, O: Element, const L: usize>(
    fold: F,
    lanes: Lanes<L>,
    context: F::Context,
    finish: impl Fn(F::Acc) -> O + Sync,
    x: Input<'_>,
    plan: &Plan<'_>,
    mut out: ViewMut<'_>,
    scratch: &mut [u8],
) {
    let program = Once { fold, lanes, context, finish };
    drive(&program, &Source { data: x.data(), plan }, out.slice(), scratch);
}

/// Counts what is not zero by its bits, where -0.0 is zero too.
fn count<O: Element>(
    x: Input<'_>,
    plan: &Plan<'_>,
    out: ViewMut<'_>,
    scratch: &mut [u8],
    finish: impl Fn(i64) -> O + Sync,
) {
    // The bits that count: all but the sign of a float, and those of its exponent where denormal numbers are zeros.
    let mask = match x.dtype() {
        DType::F32 if denormals::are_flushed() => f32::INFINITY.to_bits().into(),
        DType::F64 if denormals::are_flushed() => f64::INFINITY.to_bits(),
        dtype => u64::MAX >> (64 - 8 * dtype.size() as u32 + dtype.is_float() as u32),
    };
    dispatch!(x.dtype(), T in words => {
        const L: usize = lanes::<T>();
        once(Nonzero::<T>::NEW, Lanes::<L>, mask as T, finish, x, plan, out, scratch);
    });
}

fn run_var(x: View<'_>, plan: &Plan<'_>, correction: f64, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    let n = plan.count as f64;
    let divisor = (n - correction).max(0.0);
    dispatch!(x.dtype(), T in floats => {
        const L: usize = lanes::<f64>();
        let program = Twice {
            first: WideSum::<T>::NEW,
            second: Spread::<T>::NEW,
            lanes: Lanes::<L>,
            context: |sum| sum / n,
            finish: |_mean, spread| T::from_f64(spread / divisor),
        };
        drive(&program, &Source { data: Data::Memory(x.data()), plan }, out.slice(), scratch);
    });
}
