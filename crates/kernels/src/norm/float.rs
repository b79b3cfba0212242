//! From stored elements to the type they are computed in, and loops over lanes that LLVM turns into vectors.

use crate::dtype::{Element, bf16, f16};
use crate::math::{Real, exp};
use half::slice::HalfFloatSliceExt;

/// A float as it lies in memory.
pub(crate) trait Stored: Element {
    /// What it is computed in.
    type Wide: Real;

    /// Converts exactly.
    fn widen(from: &[Self], to: &mut [Self::Wide]);
    /// Rounds to nearest.
    fn narrow(from: &[Self::Wide], to: &mut [Self]);
    /// The elements themselves, if they need no conversion.
    fn as_wide(from: &[Self]) -> Option<&[Self::Wide]>;
    /// As [`Stored::as_wide`], to write.
    fn as_wide_mut(from: &mut [Self]) -> Option<&mut [Self::Wide]>;
}

macro_rules! wide {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            type Wide = $t;
            #[inline(always)]
            fn widen(from: &[$t], to: &mut [$t]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn narrow(from: &[$t], to: &mut [$t]) {
                to.copy_from_slice(from);
            }
            #[inline(always)]
            fn as_wide(from: &[$t]) -> Option<&[$t]> {
                Some(from)
            }
            #[inline(always)]
            fn as_wide_mut(from: &mut [$t]) -> Option<&mut [$t]> {
                Some(from)
            }
        }
    )*};
}
wide!(f32, f64);

macro_rules! half {
    ($t:ty) => {
        impl Stored for $t {
            type Wide = f32;
            #[inline(always)]
            fn widen(from: &[$t], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }
            #[inline(always)]
            fn narrow(from: &[f32], to: &mut [$t]) {
                to.convert_from_f32_slice(from);
            }
            #[inline(always)]
            fn as_wide(_: &[$t]) -> Option<&[f32]> {
                None
            }
            #[inline(always)]
            fn as_wide_mut(_: &mut [$t]) -> Option<&mut [f32]> {
                None
            }
        }
    };
}
half!(f16);
half!(bf16);

/// Independent accumulators of a row: enough to hide the latency of addition at the widest vectors.
pub(crate) const LANES: usize = 32;

/// Elements converted, or taken from strided memory, at a time.
pub(crate) const TILE: usize = 512;

/// Short for a constant of the computing type.
#[inline(always)]
pub(crate) fn real<W: Real>(value: f64) -> W {
    W::from_f64(value)
}

/// The larger; a NaN in `x` is passed over.
#[inline(always)]
pub(crate) fn larger<W: Real>(max: W, x: W) -> W {
    if x > max { x } else { max }
}

/// Folds the lanes by halves.
#[inline(always)]
pub(crate) fn join<W: Real>(mut lanes: [W; LANES], f: impl Fn(W, W) -> W) -> W {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// The largest element, negative infinity if there is none; NaN is passed over.
#[inline(always)]
pub(crate) fn max_of<W: Real>(x: &[W]) -> W {
    let mut lanes = [real::<W>(f64::NEG_INFINITY); LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], block[i]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, x);
    }
    join(lanes, larger)
}

/// The sum.
#[inline(always)]
pub(crate) fn sum_of<W: Real>(x: &[W]) -> W {
    let mut lanes = [real::<W>(0.0); LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = lanes[i] + block[i];
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = *lane + x;
    }
    join(lanes, |a, b| a + b)
}

/// The sums of `x - center` and of its square.
#[inline(always)]
pub(crate) fn centered_sums<W: Real>(x: &[W], center: W) -> (W, W) {
    let (mut first, mut second) = ([real::<W>(0.0); LANES], [real::<W>(0.0); LANES]);
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            let d = block[i] - center;
            first[i] = first[i] + d;
            second[i] = second[i] + d * d;
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        let d = x - center;
        first[i] = first[i] + d;
        second[i] = second[i] + d * d;
    }
    (join(first, |a, b| a + b), join(second, |a, b| a + b))
}

/// The sum of `e^(x - shift)`.
#[inline(always)]
pub(crate) fn exp_sum<W: Real>(x: &[W], shift: W) -> W {
    let mut lanes = [real::<W>(0.0); LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = lanes[i] + exp(block[i] - shift);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = *lane + exp(x - shift);
    }
    join(lanes, |a, b| a + b)
}

/// Writes `e^(x - shift)` and returns the sum of what it wrote.
#[inline(always)]
pub(crate) fn exp_into<W: Real>(x: &[W], shift: W, to: &mut [W]) -> W {
    let mut lanes = [real::<W>(0.0); LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<LANES>();
    for (block, to) in blocks.iter().zip(to_blocks) {
        for i in 0..LANES {
            let e = exp(block[i] - shift);
            to[i] = e;
            lanes[i] = lanes[i] + e;
        }
    }
    for ((lane, to), &x) in lanes.iter_mut().zip(to_rest).zip(rest) {
        *to = exp(x - shift);
        *lane = *lane + *to;
    }
    join(lanes, |a, b| a + b)
}

/// The running maximum and sum of exponentials of a row seen tile by tile.
#[derive(Clone, Copy)]
pub(crate) struct LogSumExp<W> {
    pub(crate) max: W,
    pub(crate) sum: f64,
}

impl<W: Real> LogSumExp<W> {
    /// `log(sum(e^x))`.
    #[inline(always)]
    pub(crate) fn value(self) -> W {
        // A row of negative infinities has no finite maximum to be relative to, and its sum is zero.
        if self.max == real(f64::NEG_INFINITY) && self.sum == 0.0 {
            return self.max;
        }
        real(self.max.to_f64() + self.sum.ln())
    }
}
