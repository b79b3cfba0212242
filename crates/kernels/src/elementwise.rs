//! Elementwise kernels: one contiguous tile loop per operation and type, driven over any layout.
//!
//! A [`Unary`] or [`Binary`] code and a [`DType`] name a *tile function* ([`unary_tile`], [`binary_tile`],
//! [`cast_tile`], [`select_tile`]): a vectorised loop over contiguous elements. [`unary`], [`binary`], [`select`],
//! [`clip`] and [`cast`] run it over strided and broadcast views, in place or not, with threads if there is enough to
//! do. Half-precision types are computed in `f32`, a tile at a time.

mod binary;
mod cast;
mod complex;
mod half;
mod scalar;
#[cfg(test)]
mod tests;
mod unary;

pub use binary::{Binary, BinaryTile, binary_tile};
pub use cast::{CastTile, cast_tile};
pub use unary::{LaneValue, Unary, UnaryTile, unary_tile};

pub use crate::strided::{copy, fill};

use crate::dtype::{Bool, DType, Element};
use crate::multiversion;
use crate::simd::Level;
use crate::strided::{TILE, for_tiles};
use crate::view::{Arg, View, ViewMut};
use bytemuck::{cast_slice, cast_slice_mut};

/// What is computed of the elements at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// A function of one element.
    Unary(Unary),
    /// A function of two elements of one type.
    Binary(Binary),
    /// The second or the third element, as the first one, a boolean, says.
    Select,
    /// The first element, kept between the second and the third.
    Clip,
    /// The element as another type.
    Cast(DType),
    /// The element itself.
    Copy,
}

impl Code {
    /// How many operands it has.
    pub fn operands(self) -> usize {
        match self {
            Code::Unary(_) | Code::Cast(_) | Code::Copy => 1,
            Code::Binary(_) => 2,
            Code::Select | Code::Clip => 3,
        }
    }

    /// About how many arithmetic operations one element takes, by what its vector code does: for comparing costs.
    pub fn flops(self) -> u64 {
        match self {
            Code::Unary(code) => code.flops(),
            Code::Binary(code) => code.flops(),
            Code::Clip => 2,
            Code::Select | Code::Cast(_) | Code::Copy => 1,
        }
    }

    /// The type of the result for operands of these types, or `None` if there is no such operation.
    pub fn result(self, operands: &[DType]) -> Option<DType> {
        match (self, operands) {
            (Code::Unary(code), [x]) => code.result(*x),
            (Code::Binary(code), [a, b]) if a == b => code.result(*a),
            (Code::Select, [DType::Bool, a, b]) if a == b => Some(*a),
            (Code::Clip, [x, low, high]) if x == low && x == high && *x != DType::Bool => Some(*x),
            (Code::Cast(to), [_]) => Some(to),
            (Code::Copy, [x]) => Some(*x),
            _ => None,
        }
    }
}

/// The type of an operand; one that is in place has the output's.
#[inline]
fn dtype_of(arg: &Arg<'_>, out: &ViewMut<'_>) -> DType {
    match arg {
        Arg::View(view) => view.dtype(),
        Arg::InPlace(_) => out.dtype(),
    }
}

/// `out = code(x)`, element by element.
///
/// # Panics
/// If the shapes differ, or `out` does not have the type that [`Unary::result`] names.
#[inline]
pub fn unary(code: Unary, x: Arg<'_>, out: ViewMut<'_>) {
    let dtype = dtype_of(&x, &out);
    assert_eq!(code.result(dtype), Some(out.dtype()), "the output's type");
    let tile = unary_tile(code, dtype);
    for_tiles([x], out, |[x], out| tile.call(x, out));
}

/// `out = code(a, b)`, element by element. The operands have one type, and the output's shape.
///
/// # Panics
/// If shapes or the operands' types differ, or `out` does not have the type that [`Binary::result`] names.
#[inline]
pub fn binary(code: Binary, a: Arg<'_>, b: Arg<'_>, out: ViewMut<'_>) {
    let dtype = dtype_of(&a, &out);
    assert_eq!(dtype, dtype_of(&b, &out), "operands of one type");
    assert_eq!(code.result(dtype), Some(out.dtype()), "the output's type");
    let tile = binary_tile(code, dtype);
    for_tiles([a, b], out, |[a, b], out| tile.call(a, b, out));
}

multiversion! {
    up_to(Level::Avx2)
    fn select_all[T: Element](condition: &[Bool], a: &[T], b: &[T], out: &mut [T]) {
        let n = out.len();
        let (condition, a, b) = (&condition[..n], &a[..n], &b[..n]);
        for i in 0..n {
            out[i] = if condition[i].get() { a[i] } else { b[i] };
        }
    }
}

/// A loop over contiguous elements that takes each from one of two operands.
#[derive(Clone, Copy, Debug)]
pub struct SelectTile(fn(&[u8], &[u8], &[u8], &mut [u8]));

impl SelectTile {
    /// Takes from `a` where `condition` is true, else from `b`, as many elements as `out` has room for; all slices are
    /// aligned for their type.
    ///
    /// # Panics
    /// If an operand has fewer elements.
    #[inline]
    pub fn call(&self, condition: &[u8], a: &[u8], b: &[u8], out: &mut [u8]) {
        (self.0)(condition, a, b, out);
    }
}

/// The tile loop that selects elements of this type.
pub fn select_tile(dtype: DType) -> SelectTile {
    fn erased<T: Element>(condition: &[u8], a: &[u8], b: &[u8], out: &mut [u8]) {
        select_all::<T>(cast_slice(condition), cast_slice(a), cast_slice(b), cast_slice_mut(out));
    }
    crate::dispatch!(dtype, T in sizes => SelectTile(erased::<T>))
}

/// `out = condition ? a : b`, element by element; `condition` is boolean, the others have one type.
///
/// # Panics
/// If shapes or types contradict each other.
pub fn select(condition: Arg<'_>, a: Arg<'_>, b: Arg<'_>, out: ViewMut<'_>) {
    let dtype = out.dtype();
    assert_eq!(dtype_of(&condition, &out), DType::Bool, "a boolean condition");
    assert!([&a, &b].into_iter().all(|x| dtype_of(x, &out) == dtype), "operands of the output's type");
    let tile = select_tile(dtype);
    for_tiles([condition, a, b], out, |[condition, a, b], out| tile.call(condition, a, b, out));
}

/// `out = min(max(x, low), high)`, element by element; NaN in any of them propagates.
///
/// # Panics
/// If shapes or types differ.
pub fn clip(x: Arg<'_>, low: View<'_>, high: View<'_>, out: ViewMut<'_>) {
    let dtype = out.dtype();
    assert!(dtype_of(&x, &out) == dtype && low.dtype() == dtype && high.dtype() == dtype, "one type");
    let (raise, lower) = (binary_tile(Binary::Maximum, dtype), binary_tile(Binary::Minimum, dtype));
    for_tiles([x, Arg::View(low), Arg::View(high)], out, |[x, low, high], out| {
        let mut raised = [0u64; TILE / 8];
        let bytes: &mut [u8] = cast_slice_mut(&mut raised);
        let step = bytes.len();
        for (at, out) in out.chunks_mut(step).enumerate() {
            let range = at * step..at * step + out.len();
            let raised = &mut bytes[..out.len()];
            raise.call(&x[range.clone()], &low[range.clone()], raised);
            lower.call(raised, &high[range], out);
        }
    });
}

/// Converts `x` to the type of `out`. Floats truncate toward zero and saturate on their way to integers (NaN becomes
/// zero), integers wrap, anything nonzero is true, and what goes to a half type is rounded to nearest even.
///
/// # Panics
/// If the shapes differ.
pub fn cast(x: View<'_>, out: ViewMut<'_>) {
    if x.dtype() == out.dtype() {
        return copy(x, out);
    }
    let tile = cast_tile(x.dtype(), out.dtype());
    for_tiles([Arg::View(x)], out, |[x], out| tile.call(x, out));
}
