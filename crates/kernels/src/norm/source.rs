//! Where rows come from and where they go.

use super::float::{Stored, TILE};
use crate::Element;
use crate::view::{Arg, View};
use std::marker::PhantomData;
use std::ops::Range;

/// A kernel's input, read in row-major order whatever its strides.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a, T> {
    /// Already in the output.
    InPlace,
    /// One after the other.
    Slice(&'a [T]),
    /// Anything else.
    Strided(View<'a>),
}

impl<'a, T: Element> Source<'a, T> {
    pub(crate) fn new(view: View<'a>) -> Source<'a, T> {
        assert_eq!(view.dtype(), T::DTYPE, "an input of another type");
        view.contiguous().map_or(Source::Strided(view), Source::Slice)
    }

    pub(crate) fn of(arg: Arg<'a>) -> Source<'a, T> {
        match arg {
            Arg::InPlace(_) => Source::InPlace,
            Arg::View(view) => Source::new(view),
        }
    }

    /// The elements from `start` on that belong into `to`: where they are, or nothing if they are in `to` by now.
    #[inline(always)]
    pub(crate) fn prepare(&self, start: usize, to: &mut [T]) -> Option<&'a [T]> {
        match self {
            Source::InPlace => None,
            Source::Slice(slice) => Some(&slice[start..start + to.len()]),
            Source::Strided(view) => {
                gather(view, start, to);
                None
            }
        }
    }

    /// Element `at`.
    pub(crate) fn get(&self, at: usize) -> T {
        match self {
            Source::InPlace => unreachable!("only kernels with an output of this shape work in place"),
            Source::Slice(slice) => slice[at],
            Source::Strided(view) => {
                let mut one = [T::from_f64(0.0)];
                gather(view, at, &mut one);
                one[0]
            }
        }
    }

    /// `len` elements from `start` on, in `buffer` if they are not contiguous.
    #[inline(always)]
    pub(crate) fn tile<'s>(&'s self, start: usize, len: usize, buffer: &'s mut [T]) -> &'s [T] {
        match self {
            Source::InPlace => unreachable!("only kernels with an output of this shape work in place"),
            Source::Slice(slice) => &slice[start..start + len],
            Source::Strided(view) => {
                gather(view, start, &mut buffer[..len]);
                &buffer[..len]
            }
        }
    }
}

/// Copies elements `start..` of a view, counted in row-major order, into `to`.
#[inline(never)]
fn gather<T: Element>(view: &View<'_>, start: usize, to: &mut [T]) {
    let (shape, strides, data) = (view.shape(), view.strides(), view.data::<T>());
    let Some((&inner, outer)) = shape.split_last() else {
        to.fill(data[view.offset()]);
        return;
    };
    let stride = strides[outer.len()];
    let (mut at, mut done) = (start, 0);
    while done < to.len() {
        let (mut rest, column) = (at / inner, at % inner);
        let mut from = view.offset() as isize + column as isize * stride;
        for (&dim, &stride) in outer.iter().zip(strides).rev() {
            from += (rest % dim) as isize * stride;
            rest /= dim;
        }
        let run = (inner - column).min(to.len() - done);
        for (i, to) in to[done..done + run].iter_mut().enumerate() {
            *to = data[(from + i as isize * stride) as usize];
        }
        at += run;
        done += run;
    }
}

/// A tile of `from` (or of `to`, if the input is in place) in the computing type.
#[inline(always)]
pub(super) fn widened<'s, T: Stored>(
    from: Option<&'s [T]>,
    to: &[T],
    range: Range<usize>,
    buffer: &'s mut [T::Wide; TILE],
) -> &'s [T::Wide] {
    if let Some(wide) = from.and_then(|from| T::as_wide(&from[range.clone()])) {
        return wide;
    }
    let buffer = &mut buffer[..range.len()];
    T::widen(&from.unwrap_or(to)[range], buffer);
    buffer
}

/// The one element in the computing type.
#[inline(always)]
pub(super) fn widen_one<T: Stored>(x: T) -> T::Wide {
    T::Wide::from_f64(x.to_f64())
}

/// The ranges of at most a tile that cover `0..len`.
#[inline(always)]
pub(super) fn tiles(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(TILE).map(move |start| start..(start + TILE).min(len))
}

/// An output whose disjoint parts are written by several threads.
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the parts are exclusive borrows by the contract of `part`, which may go to other threads if `T: Send`.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(all: &'a mut [T]) -> Parts<'a, T> {
        Parts { start: all.as_mut_ptr(), len: all.len(), life: PhantomData }
    }

    /// The elements in `range`.
    ///
    /// # Safety
    /// No two parts that are alive at the same time may overlap.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "part outside the output");
        // SAFETY: in bounds by the assertion, unaliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
