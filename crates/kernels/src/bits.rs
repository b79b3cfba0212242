//! Masks of one bit per element, and the search for NaN and infinity.
//!
//! Bit `i % 8` of byte `i / 8` belongs to element `i` in row-major order; the bits after the last element are zero.

use crate::dtype::{Bool, Complex, DType, Element};
use crate::view::{Arg, View, ViewMut};
use crate::{dispatch, multiversion, pool, strided};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of bits that one task works on.
const CHUNK: usize = 4096;

/// How many bytes the bits of `len` elements fill.
pub const fn bytes(len: usize) -> usize {
    len.div_ceil(8)
}

/// A bit per element: whether it is above zero; of booleans, whether it is true.
///
/// # Panics
/// If `out` does not have the length that [`bytes`] returns.
pub fn positive(x: View<'_>, out: &mut [u8]) {
    assert_eq!(out.len(), bytes(x.len()), "a bit per element");
    match x.dtype() {
        DType::F32 => pack(x, out, |part: &[f32], out| pack_f32(part, out)),
        DType::F64 => pack(x, out, |part: &[f64], out| pack_f64(part, out)),
        DType::Bool => pack(x, out, |part: &[Bool], out| pack_bool(part, out)),
        dtype => dispatch!(dtype, T in all => {
            pack(x, out, |part: &[T], out| pack_slice(part, out, |e| e.to_f64() > 0.0));
        }),
    }
}

/// Packs pieces of whole bytes; elements that are not contiguous are gathered first.
fn pack<T: Element>(x: View<'_>, out: &mut [u8], piece: impl Fn(&[T], &mut [u8]) + Sync) {
    let Some(elements) = x.contiguous::<T>() else {
        let mut gathered = [T::zeroed(); 8];
        let mut places = offsets(&x);
        for byte in out {
            let mut count = 0;
            for (slot, place) in gathered.iter_mut().zip(&mut places) {
                *slot = x.data::<T>()[place];
                count += 1;
            }
            piece(&gathered[..count], std::slice::from_mut(byte));
        }
        return;
    };
    pool::for_each_mut(out, CHUNK, |first, out| {
        let end = elements.len().min((first + out.len()) * 8);
        piece(&elements[first * 8..end], out);
    });
}

/// The offsets of a view's elements in its buffer, in row-major order.
fn offsets<'a>(x: &View<'a>) -> impl Iterator<Item = usize> + use<'a> {
    let (shape, strides, start) = (x.shape(), x.strides(), x.offset() as isize);
    (0..x.len()).map(move |mut i| {
        let mut at = start;
        for (&dim, &stride) in shape.iter().zip(strides).rev() {
            at += (i % dim) as isize * stride;
            i /= dim;
        }
        at as usize
    })
}

#[inline(always)]
fn pack_slice<T: Copy>(x: &[T], out: &mut [u8], test: impl Fn(T) -> bool) {
    let (eights, rest) = x.as_chunks::<8>();
    for (byte, eight) in out.iter_mut().zip(eights) {
        *byte = (0..8).fold(0, |bits, i| bits | (u8::from(test(eight[i])) << i));
    }
    if let Some(byte) = out.get_mut(eights.len()) {
        *byte = rest.iter().enumerate().fold(0, |bits, (i, &e)| bits | (u8::from(test(e)) << i));
    }
}

multiversion! {
    fn pack_f32(x: &[f32], out: &mut [u8]) { pack_slice(x, out, |e| e > 0.0) }
}
multiversion! {
    fn pack_f64(x: &[f64], out: &mut [u8]) { pack_slice(x, out, |e| e > 0.0) }
}
multiversion! {
    fn pack_bool(x: &[Bool], out: &mut [u8]) { pack_slice(x, out, Bool::get) }
}

/// The booleans that [`positive`] packed.
///
/// # Panics
/// If `bits` does not have the length that [`bytes`] returns.
pub fn unpack(bits: View<'_>, mut out: ViewMut<'_>) {
    let bits = &Bytes::new(bits, out.len());
    pool::for_each_mut(out.slice::<Bool>(), CHUNK * 8, |first, out| {
        for (i, element) in out.iter_mut().enumerate() {
            *element = Bool::from(bits.get((first + i) / 8) >> ((first + i) % 8) & 1 == 1);
        }
    });
}

/// The elements of `x` whose bit is set (or, `inverted`, is not), and zero for the others.
///
/// # Panics
/// If shapes, types or the number of bits disagree.
pub fn keep(x: Arg<'_>, bits: View<'_>, inverted: bool, mut out: ViewMut<'_>) {
    let bits = &Bytes::new(bits, out.len());
    if let Arg::View(x) = x {
        strided::copy(x, out.reborrow());
    }
    let flip = if inverted { 0xff } else { 0 };
    dispatch!(out.dtype(), T in sizes => {
        pool::for_each_mut(out.slice::<T>(), CHUNK * 8, |first, out| match bits.slice() {
            Some(bits) => clear(out, &bits[first / 8..], flip),
            None => {
                for (i, part) in out.chunks_mut(8).enumerate() {
                    clear(part, &[bits.get(first / 8 + i)], flip);
                }
            }
        });
    });
}

/// Bytes of bits, with any stride.
struct Bytes<'a> {
    data: &'a [u8],
    start: usize,
    stride: isize,
    len: usize,
}

impl<'a> Bytes<'a> {
    fn new(bits: View<'a>, elements: usize) -> Bytes<'a> {
        assert!(bits.shape() == [bytes(elements)], "a bit per element");
        Bytes { data: bits.data(), start: bits.offset(), stride: bits.strides()[0], len: bits.len() }
    }

    fn slice(&self) -> Option<&'a [u8]> {
        (self.stride == 1).then(|| &self.data[self.start..self.start + self.len])
    }

    fn get(&self, i: usize) -> u8 {
        self.data[self.start.wrapping_add_signed(i as isize * self.stride)]
    }
}

/// Bits of elements of one size.
trait Bits: Element {
    /// The same if `bit` is 1, zero if it is 0; without a branch, so that loops of it vectorise.
    fn keep(self, bit: u32) -> Self;
}

macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn keep(self, bit: u32) -> $t { self & (0 as $t).wrapping_sub(bit as $t) }
        }
    )*};
}
bits!(u8, u16, u32, u64);

impl Bits for Complex<f64> {
    #[inline(always)]
    fn keep(self, bit: u32) -> Complex<f64> {
        if bit == 0 { bytemuck::Zeroable::zeroed() } else { self }
    }
}

multiversion! {
    fn clear[T: Bits](out: &mut [T], bits: &[u8], flip: u8) {
        let (eights, rest) = out.as_chunks_mut::<8>();
        for (eight, byte) in eights.iter_mut().zip(bits) {
            let set = u32::from(byte ^ flip);
            for (i, element) in eight.iter_mut().enumerate() {
                *element = element.keep(set >> i & 1);
            }
        }
        if let Some(byte) = bits.get(eights.len()) {
            let set = u32::from(byte ^ flip);
            for (i, element) in rest.iter_mut().enumerate() {
                *element = element.keep(set >> i & 1);
            }
        }
    }
}

/// How many elements are NaN, and how many infinite; of complex ones, how many parts.
pub fn count_non_finite(x: View<'_>) -> (usize, usize) {
    if x.dtype().is_complex() {
        let (shape, strides) = x.part_layout();
        return count_non_finite(x.parts(&shape, &strides));
    }
    let (nans, infinities) = (AtomicUsize::new(0), AtomicUsize::new(0));
    dispatch!(x.dtype(), T in floats => {
        let count = |element: T| {
            let value = element.to_f64();
            if value.is_nan() {
                nans.fetch_add(1, Ordering::Relaxed);
            } else if value.is_infinite() {
                infinities.fetch_add(1, Ordering::Relaxed);
            }
        };
        match x.contiguous::<T>() {
            Some(elements) => pool::for_each(elements.len(), CHUNK * 8, |range| {
                // In the common case all elements are finite, and one vectorised pass shows it.
                let part = &elements[range];
                if !all_finite(part) {
                    part.iter().for_each(|&element| count(element));
                }
            }),
            None => offsets(&x).for_each(|place| count(x.data::<T>()[place])),
        }
    });
    (nans.into_inner(), infinities.into_inner())
}

multiversion! {
    fn all_finite[T: Element](x: &[T]) -> bool {
        let mut sums = [0.0f64; 8];
        let (eights, rest) = x.as_chunks::<8>();
        for eight in eights {
            for (sum, element) in sums.iter_mut().zip(eight) {
                *sum += element.to_f64() * 0.0;
            }
        }
        sums.iter().sum::<f64>() + rest.iter().map(|e| e.to_f64() * 0.0).sum::<f64>() == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(x: &'a [f32], shape: &'a [usize], strides: &'a [isize]) -> View<'a> {
        View::new(DType::F32, bytemuck::cast_slice(x), 0, shape, strides)
    }

    #[test]
    fn bits_are_in_row_major_order_for_all_strides() {
        for len in [0usize, 1, 7, 8, 9, 15, 16, 1000, 100_003] {
            let x: Vec<f32> = (0..len).map(|i| ((i * 7919) % 13) as f32 - 6.0).collect();
            let bytes = bytes(len);
            let mut bits = vec![0xffu8; bytes];
            positive(view(&x, &[len], &[1]), &mut bits);
            for i in 0..bytes * 8 {
                let expected = x.get(i).is_some_and(|&e| e > 0.0);
                assert_eq!(bits[i / 8] >> (i % 8) & 1 == 1, expected, "{i} of {len}");
            }
            let mut masked = vec![1f32; len];
            let out =
                ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut masked), std::slice::from_ref(&len));
            let packed = View::new(DType::U8, &bits, 0, std::slice::from_ref(&bytes), &[1]);
            keep(Arg::View(view(&x, &[len], &[1])), packed, true, out);
            assert!(masked.iter().zip(&x).all(|(&m, &e)| m == if e > 0.0 { 0.0 } else { e }));
            let mut bools = vec![7u8; len];
            unpack(packed, ViewMut::new(DType::Bool, &mut bools, &[len]));
            assert!(bools.iter().zip(&x).all(|(&b, &e)| b == u8::from(e > 0.0)));
        }
        let x: Vec<f32> = (0..15).map(|i| (i % 4) as f32 - 1.5).collect();
        let transposed: Vec<f32> = (0..15).map(|i| x[(i % 5) * 3 + i / 5]).collect();
        let (mut a, mut b) = ([0u8; 2], [0u8; 2]);
        positive(view(&x, &[3, 5], &[1, 3]), &mut a);
        positive(view(&transposed, &[15], &[1]), &mut b);
        assert_eq!(a, b);
    }

    #[test]
    fn every_nan_and_infinity_is_found() {
        let mut x = vec![1f32; 100_000];
        assert_eq!(count_non_finite(view(&x, &[100_000], &[1])), (0, 0));
        (x[3], x[99_999], x[50_000]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        assert_eq!(count_non_finite(view(&x, &[100_000], &[1])), (1, 2));
        assert_eq!(count_non_finite(view(&x, &[2], &[3])), (1, 0));
    }
}
