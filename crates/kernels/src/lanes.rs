//! Vectors of the processor, for sums that must stay in registers.
//!
//! Elsewhere, kernels are scalar Rust that the compiler vectorises. It keeps arrays of sums in memory once they are larger than about a
//! hundred elements, which makes such loops twenty times as slow; vectors stay in registers.

use crate::simd;
use pulp::{Simd, WithSimd};
use std::ops::Add;

/// The most elements of the vectors that are written together.
pub(crate) const MOST_ELEMENTS: usize = widest_tile::<f32>();

/// A type of sums that the processor has vectors of.
pub(crate) trait LaneElement: Copy + Add<Output = Self> {
    const ZERO: Self;
    /// Runs work with the widest vectors of the level in force.
    fn vectorize<W: VectorWork<Self>>(work: W);
}

/// Work that is compiled for every width of vectors.
pub(crate) trait VectorWork<S> {
    /// Does the work. It must be `#[inline(always)]`, as what it calls, to be compiled for the instructions of `A`.
    fn run<A: Lanes<S>>(self, simd: A);
}

/// Vectors of a type.
pub(crate) trait Lanes<S>: Simd {
    type Vector: Copy;
    /// The number of elements of a vector.
    const COUNT: usize = size_of::<Self::Vector>() / size_of::<S>();
    fn splat(self, x: S) -> Self::Vector;
    /// `a * b + c`, rounded once.
    fn fused(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;

    /// The vector that begins at `from`.
    ///
    /// # Safety
    /// Its elements must be there to read.
    #[inline(always)]
    unsafe fn read(self, from: *const S) -> Self::Vector {
        // SAFETY: guaranteed by the caller.
        unsafe { from.cast::<Self::Vector>().read_unaligned() }
    }

    /// Writes the first elements of vectors that follow each other, or adds them to what is there.
    #[inline(always)]
    fn write_or_add<const C: usize>(self, vectors: &[Self::Vector; C], to: &mut [S], add: bool)
    where
        S: LaneElement,
    {
        if !add {
            return self.write(vectors, to);
        }
        let mut elements = [S::ZERO; MOST_ELEMENTS];
        self.write(vectors, &mut elements[..C * Self::COUNT]);
        for (to, x) in to.iter_mut().zip(&elements) {
            *to = *to + *x;
        }
    }

    /// Writes the first elements of vectors that follow each other.
    #[inline(always)]
    fn write<const C: usize>(self, vectors: &[Self::Vector; C], to: &mut [S])
    where
        S: LaneElement,
    {
        let mut elements = [S::ZERO; MOST_ELEMENTS];
        let whole = to.len() == C * Self::COUNT;
        let start = if whole { to.as_mut_ptr() } else { elements.as_mut_ptr() };
        assert!(
            to.len() <= C * Self::COUNT && C * Self::COUNT <= MOST_ELEMENTS,
            "more elements than vectors have"
        );
        for (i, vector) in vectors.iter().enumerate() {
            // SAFETY: as many elements as `C` vectors have are there, as just checked.
            unsafe { start.add(i * Self::COUNT).cast::<Self::Vector>().write_unaligned(*vector) };
        }
        if !whole {
            to.copy_from_slice(&elements[..to.len()]);
        }
    }
}

macro_rules! lanes {
    ($($t:ty, $vector:ident, $splat:ident, $fused:ident);*) => {$(
        impl<A: Simd> Lanes<$t> for A {
            type Vector = A::$vector;
            #[inline(always)]
            fn splat(self, x: $t) -> A::$vector { self.$splat(x) }
            #[inline(always)]
            fn fused(self, a: A::$vector, b: A::$vector, c: A::$vector) -> A::$vector { self.$fused(a, b, c) }
        }

        impl LaneElement for $t {
            const ZERO: $t = 0.0;
            fn vectorize<W: VectorWork<$t>>(work: W) {
                struct Run<W>(W);
                impl<W: VectorWork<$t>> WithSimd for Run<W> {
                    type Output = ();
                    #[inline(always)]
                    fn with_simd<A: Simd>(self, simd: A) { self.0.run(simd); }
                }
                vectorize(Run(work));
            }
        }
    )*};
}
lanes!(f32, f32s, splat_f32s, mul_add_f32s; f64, f64s, splat_f64s, mul_add_f64s);

/// Runs work with the widest vectors of the level in force. Where vectors have no fused multiply-add, it is a function call.
#[cfg(target_arch = "x86_64")]
fn vectorize<Op: WithSimd>(op: Op) -> Op::Output {
    use pulp::x86::{V3, V4};
    if simd::level() == simd::Level::Avx512
        && let Some(wide) = V4::try_new()
    {
        Simd::vectorize(wide, op)
    } else if let Some(narrow) = V3::try_new() {
        Simd::vectorize(narrow, op)
    } else {
        Simd::vectorize(pulp::Scalar::new(), op)
    }
}

/// Runs work with the vectors of the machine.
#[cfg(not(target_arch = "x86_64"))]
fn vectorize<Op: WithSimd>(op: Op) -> Op::Output {
    pulp::Arch::new().dispatch(op)
}

/// Elements in the widest row of a tile of sums.
pub(crate) const fn widest_tile<S>() -> usize {
    128 / size_of::<S>()
}

/// Elements in a row of a tile of sums with so many columns: 64 bytes, or twice as many if there are columns and registers for them.
pub(crate) fn tile_width<S>(columns: usize) -> usize {
    let (most, half) = (widest_tile::<S>(), widest_tile::<S>() / 2);
    if simd::level() == simd::Level::Avx512 && columns > half { most } else { half }
}
