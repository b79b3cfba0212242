//! What is folded: the arithmetic of each reduction, one element at a time.

use crate::dtype::{Bool, Element, bf16, f16, single_from_f16};
use crate::math::{exp, log};
use crate::simd::Level;
use bytemuck::Pod;
use std::marker::PhantomData;

/// A number that accumulators are made of.
pub(crate) trait Value: Pod + PartialOrd + Send + Sync {
    /// What added to `x` gives exactly `x`: for floats it is -0.0, which keeps the sign of a zero.
    const NOTHING: Self;
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    const HIGHEST: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! integer_value {
    ($($t:ty),*) => {$(
        impl Value for $t {
            const NOTHING: $t = 0;
            const ZERO: $t = 0;
            const ONE: $t = 1;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;
            #[inline(always)]
            fn plus(self, other: $t) -> $t { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: $t) -> $t { self.wrapping_mul(other) }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }
    )*};
}
integer_value!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! float_value {
    ($($t:ty),*) => {$(
        impl Value for $t {
            const NOTHING: $t = -0.0;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const HIGHEST: $t = <$t>::INFINITY;
            #[inline(always)]
            fn plus(self, other: $t) -> $t { self + other }
            #[inline(always)]
            fn times(self, other: $t) -> $t { self * other }
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
        }
    )*};
}
float_value!(f32, f64);

/// The larger of two values, or the NaN among them.
#[inline(always)]
pub(crate) fn larger<V: Value>(a: V, b: V) -> V {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller of two values, or the NaN among them.
#[inline(always)]
pub(crate) fn smaller<V: Value>(a: V, b: V) -> V {
    if a < b || a.is_nan() { a } else { b }
}

/// The larger of two values, of which `a` is a number: a NaN is ignored.
#[inline(always)]
fn larger_number<V: Value>(a: V, b: V) -> V {
    if b > a { b } else { a }
}

/// The smaller of two values, of which `a` is a number: a NaN is ignored.
#[inline(always)]
fn smaller_number<V: Value>(a: V, b: V) -> V {
    if b < a { b } else { a }
}

/// An element that can be compared: through `f32` for the half types, as 0 or 1 for `Bool`.
pub(crate) trait Ordered: Element {
    type Value: Value;
    fn value(self) -> Self::Value;
    fn restore(value: Self::Value) -> Self;
}

/// An element that can be added and multiplied.
pub(crate) trait Number: Ordered {
    /// Holds the sum of a few dozen elements: as narrow as that allows, so that a vector holds many.
    type Leaf: Value;
    /// Holds any sum, and is what sums of this type are returned as (but for the half types).
    type Total: Value;
    /// Holds a sum that is added to one element at a time, and so needs more digits.
    type Running: Value;
    type Out: Element;
    fn leaf(self) -> Self::Leaf;
    fn widen(leaf: Self::Leaf) -> Self::Total;
    fn finish(total: Self::Total) -> Self::Out;
    fn running(self) -> Self::Running;
    fn from_running(running: Self::Running) -> Self::Out;
}

/// A floating-point element, whose sums are of its own type.
pub(crate) trait Float: Number<Total = <Self as Ordered>::Value, Out = Self> {
    /// `exp(x - y)`.
    fn exp_distance(x: Self::Total, y: Self::Total) -> Self::Total;
    /// What to subtract before taking exponentials of numbers up to `largest`.
    fn shift(largest: Self::Total) -> Self::Total;
    /// `log(total) + shift`.
    fn log_shifted(total: Self::Total, shift: Self::Total) -> Self::Total;
    /// Exact.
    fn double(self) -> f64;
    fn mean(total: Self::Total, count: usize) -> Self::Total;
}

macro_rules! ordered {
    ($($t:ty => $v:ty, |$x:ident| $value:expr, |$y:ident| $restore:expr;)*) => {$(
        impl Ordered for $t {
            type Value = $v;
            #[inline(always)]
            fn value(self) -> $v { let $x = self; $value }
            #[inline(always)]
            fn restore($y: $v) -> $t { $restore }
        }
    )*};
}
ordered! {
    Bool => u8, |x| x.get() as u8, |v| Bool::from(v != 0);
    u8 => u8, |x| x, |v| v;
    u16 => u16, |x| x, |v| v;
    u32 => u32, |x| x, |v| v;
    u64 => u64, |x| x, |v| v;
    i8 => i8, |x| x, |v| v;
    i16 => i16, |x| x, |v| v;
    i32 => i32, |x| x, |v| v;
    i64 => i64, |x| x, |v| v;
    f16 => f32, |x| single_from_f16(x), |v| f16::from_f32(v);
    bf16 => f32, |x| single_from_bf16(x), |v| bf16::from_f32(v);
    f32 => f32, |x| x, |v| v;
    f64 => f64, |x| x, |v| v;
}

macro_rules! number {
    ($($t:ty => $leaf:ty, $total:ty, $running:ty, $out:ty;)*) => {$(
        impl Number for $t {
            type Leaf = $leaf;
            type Total = $total;
            type Running = $running;
            type Out = $out;
            #[inline(always)]
            fn leaf(self) -> $leaf { self.value() as $leaf }
            #[inline(always)]
            fn widen(leaf: $leaf) -> $total { leaf as $total }
            #[inline(always)]
            fn finish(total: $total) -> $out { <$out>::restore(total) }
            #[inline(always)]
            fn running(self) -> $running { self.value() as $running }
            #[inline(always)]
            fn from_running(running: $running) -> $out { <$out>::restore(running as $total) }
        }
    )*};
}
number! {
    Bool => u16, i64, i64, i64;
    u8 => u16, u64, u64, u64;
    u16 => u32, u64, u64, u64;
    u32 => u64, u64, u64, u64;
    u64 => u64, u64, u64, u64;
    i8 => i16, i64, i64, i64;
    i16 => i32, i64, i64, i64;
    i32 => i64, i64, i64, i64;
    i64 => i64, i64, i64, i64;
    f16 => f32, f32, f64, f16;
    bf16 => f32, f32, f64, bf16;
    f32 => f32, f32, f64, f32;
    f64 => f64, f64, f64, f64;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            #[inline(always)]
            fn exp_distance(x: Self::Total, y: Self::Total) -> Self::Total {
                exp(x - y)
            }
            #[inline(always)]
            fn shift(largest: Self::Total) -> Self::Total {
                // An infinite shift would make NaN of infinities; unshifted they come out right, and so does NaN.
                if largest.is_finite() { largest } else { 0.0 }
            }
            #[inline(always)]
            fn log_shifted(total: Self::Total, shift: Self::Total) -> Self::Total {
                log(total) + shift
            }
            #[inline(always)]
            fn double(self) -> f64 { self.value() as f64 }
            #[inline(always)]
            fn mean(total: Self::Total, count: usize) -> Self::Total { total / count as Self::Total }
        }
    )*};
}
float!(f16, bf16, f32, f64);

#[inline(always)]
fn single_from_bf16(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

/// One reduction: how elements enter an accumulator and how accumulators meet.
///
/// `merge` need not be associative in floating point: the order in which it is applied depends on the number of
/// elements and their layout alone.
pub(crate) trait Fold: Copy + Sync {
    type In: Element;
    /// Takes in at most [`STEPS`] elements before it is widened.
    type Leaf: Pod;
    type Acc: Pod + Send + Sync;
    /// The input that all steps of one output share, such as its mean.
    type Context: Copy + Sync;
    const LEAF: Self::Leaf;
    /// `merge(START, x)` is `x`.
    const START: Self::Acc;
    /// The result of no elements.
    const EMPTY: Self::Acc;
    /// The highest level at which the loop along rows gets faster.
    const ROWS: Level = Level::Avx2;
    /// The highest level at which the loop down columns gets faster.
    const COLUMNS: Level = Level::Avx2;
    fn step(leaf: Self::Leaf, x: Self::In, context: Self::Context) -> Self::Leaf;
    fn widen(leaf: Self::Leaf) -> Self::Acc;
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// How many elements a [`Fold::Leaf`] must be able to take in.
pub(crate) const STEPS: usize = 17;

/// A reduction without state, named by its type.
macro_rules! folds {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name<T>(PhantomData<fn(T)>);
        impl<T> $name<T> {
            pub(crate) const NEW: Self = $name(PhantomData);
        }
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self { *self }
        }
        impl<T> Copy for $name<T> {}
    )*};
}
folds! {
    Sum;
    Product;
    Largest;
    Smallest;
    /// The largest number, regardless of NaN.
    LargestNumber;
    /// The smallest number, regardless of NaN.
    SmallestNumber;
    /// The sum of squares, without regard to overflow.
    Squares;
    /// How many elements are not zero. The context masks the bits that count: not the sign of a float.
    Nonzero;
    /// A sum in `f64` for every type.
    WideSum;
    /// The sum of squared distances from the context, in `f64`.
    Spread;
    /// The sum of exponentials of the distances from the context.
    Exponentials;
}

impl<T: Number> Fold for Sum<T> {
    type In = T;
    type Leaf = T::Leaf;
    type Acc = T::Total;
    type Context = ();
    const LEAF: T::Leaf = T::Leaf::NOTHING;
    const START: T::Total = T::Total::NOTHING;
    const EMPTY: T::Total = T::Total::ZERO;
    #[inline(always)]
    fn step(leaf: T::Leaf, x: T, (): ()) -> T::Leaf {
        leaf.plus(x.leaf())
    }
    #[inline(always)]
    fn widen(leaf: T::Leaf) -> T::Total {
        T::widen(leaf)
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.plus(b)
    }
}

impl<T: Number> Fold for Product<T> {
    type In = T;
    type Leaf = T::Total;
    type Acc = T::Total;
    type Context = ();
    const LEAF: T::Total = T::Total::ONE;
    const START: T::Total = T::Total::ONE;
    const EMPTY: T::Total = T::Total::ONE;
    // There are no vector multiplications of 64-bit integers before AVX-512.
    const ROWS: Level = if T::DTYPE.is_float() { Level::Avx2 } else { Level::Baseline };
    const COLUMNS: Level = Self::ROWS;
    #[inline(always)]
    fn step(leaf: T::Total, x: T, (): ()) -> T::Total {
        leaf.times(T::widen(x.leaf()))
    }
    #[inline(always)]
    fn widen(leaf: T::Total) -> T::Total {
        leaf
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.times(b)
    }
}

macro_rules! extreme {
    ($name:ident, $pick:ident, $start:ident) => {
        impl<T: Ordered> Fold for $name<T> {
            type In = T;
            type Leaf = T::Value;
            type Acc = T::Value;
            type Context = ();
            const LEAF: T::Value = T::Value::$start;
            const START: T::Value = T::Value::$start;
            const EMPTY: T::Value = T::Value::$start;
            // Masks make one selection of two comparisons; 64-bit integers cannot be compared well before.
            const COLUMNS: Level =
                if T::DTYPE.is_float() || T::DTYPE.size() == 8 { Level::Avx512 } else { Level::Avx2 };
            #[inline(always)]
            fn step(leaf: T::Value, x: T, (): ()) -> T::Value {
                $pick(leaf, x.value())
            }
            #[inline(always)]
            fn widen(leaf: T::Value) -> T::Value {
                leaf
            }
            #[inline(always)]
            fn merge(a: T::Value, b: T::Value) -> T::Value {
                $pick(a, b)
            }
        }
    };
}
extreme!(Largest, larger, LOWEST);
extreme!(Smallest, smaller, HIGHEST);
extreme!(LargestNumber, larger_number, LOWEST);
extreme!(SmallestNumber, smaller_number, HIGHEST);

impl<T: Float> Fold for Squares<T> {
    type In = T;
    type Leaf = T::Total;
    type Acc = T::Total;
    type Context = ();
    const LEAF: T::Total = T::Total::ZERO;
    const START: T::Total = T::Total::ZERO;
    const EMPTY: T::Total = T::Total::ZERO;
    #[inline(always)]
    fn step(leaf: T::Total, x: T, (): ()) -> T::Total {
        leaf.plus(x.value().times(x.value()))
    }
    #[inline(always)]
    fn widen(leaf: T::Total) -> T::Total {
        leaf
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.plus(b)
    }
}

macro_rules! nonzero {
    ($($t:ty),*) => {$(
        impl Fold for Nonzero<$t> {
            type In = $t;
            type Leaf = $t;
            type Acc = i64;
            type Context = $t;
            const LEAF: $t = 0;
            const START: i64 = 0;
            const EMPTY: i64 = 0;
            #[inline(always)]
            fn step(leaf: $t, x: $t, mask: $t) -> $t { leaf + (x & mask != 0) as $t }
            #[inline(always)]
            fn widen(leaf: $t) -> i64 { leaf as i64 }
            #[inline(always)]
            fn merge(a: i64, b: i64) -> i64 { a + b }
        }
    )*};
}
nonzero!(u8, u16, u32, u64);

macro_rules! wide_fold {
    ($name:ident, $context:ty, |$x:ident, $at:ident| $term:expr) => {
        impl<T: Float> Fold for $name<T> {
            type In = T;
            type Leaf = f64;
            type Acc = f64;
            type Context = $context;
            const LEAF: f64 = 0.0;
            const START: f64 = 0.0;
            const EMPTY: f64 = 0.0;
            const ROWS: Level = Level::Avx512;
            const COLUMNS: Level = Level::Avx512;
            #[inline(always)]
            fn step(leaf: f64, $x: T, $at: $context) -> f64 {
                leaf + $term
            }
            #[inline(always)]
            fn widen(leaf: f64) -> f64 {
                leaf
            }
            #[inline(always)]
            fn merge(a: f64, b: f64) -> f64 {
                a + b
            }
        }
    };
}
impl<T: Float> Fold for Exponentials<T> {
    type In = T;
    type Leaf = T::Total;
    type Acc = T::Total;
    type Context = T::Total;
    const LEAF: T::Total = T::Total::ZERO;
    const START: T::Total = T::Total::ZERO;
    const EMPTY: T::Total = T::Total::ZERO;
    const ROWS: Level = Level::Avx512;
    const COLUMNS: Level = Level::Avx512;
    #[inline(always)]
    fn step(leaf: T::Total, x: T, shift: T::Total) -> T::Total {
        leaf.plus(T::exp_distance(x.value(), shift))
    }
    #[inline(always)]
    fn widen(leaf: T::Total) -> T::Total {
        leaf
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.plus(b)
    }
}

wide_fold!(WideSum, (), |x, _none| x.double());
wide_fold!(Spread, f64, |x, mean| {
    let distance = x.double() - mean;
    distance * distance
});
