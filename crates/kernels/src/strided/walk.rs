//! The shape of a walk over several strided operands, and a position in it.

use bytemuck::Pod;

/// Dimensions longer than one that cannot be merged. More of them would mean outputs beyond any memory.
const MAX_RANK: usize = usize::BITS as usize;

/// The output's shape and the operands' strides, with as few dimensions as possible.
pub(super) struct Walk<const N: usize> {
    rank: usize,
    shape: [usize; MAX_RANK],
    strides: [[isize; MAX_RANK]; N],
}

impl<const N: usize> Walk<N> {
    /// Drops dimensions of one element and merges neighbours that every operand steps through evenly;
    /// `stride(i, d)` is operand `i`'s stride in dimension `d`.
    pub(super) fn new(shape: &[usize], stride: impl Fn(usize, usize) -> isize) -> Walk<N> {
        let mut walk = Walk { rank: 0, shape: [1; MAX_RANK], strides: [[0; MAX_RANK]; N] };
        for (d, &dim) in shape.iter().enumerate().filter(|(_, dim)| **dim != 1) {
            let even = walk.rank > 0
                && (0..N).all(|i| walk.strides[i][walk.rank - 1] == stride(i, d) * dim as isize);
            walk.rank += !even as usize;
            let at = walk.rank - 1;
            walk.shape[at] *= dim;
            for i in 0..N {
                walk.strides[i][at] = stride(i, d);
            }
        }
        walk.rank = walk.rank.max(1);
        walk
    }

    /// Elements in a row: the innermost dimension.
    #[inline]
    pub(super) fn row(&self) -> usize {
        self.shape[self.rank - 1]
    }

    /// The stride of operand `i` within a row.
    #[inline]
    pub(super) fn inner(&self, i: usize) -> isize {
        self.strides[i][self.rank - 1]
    }

    /// Whether operand `i` steps further within a row than from one row to the next.
    pub(super) fn across(&self, i: usize) -> bool {
        self.rank > 1
            && (1..self.inner(i).unsigned_abs()).contains(&self.strides[i][self.rank - 2].unsigned_abs())
    }
}

/// A position in a walk.
pub(super) struct Cursor<'a, const N: usize> {
    walk: &'a Walk<N>,
    index: [usize; MAX_RANK],
    /// Where the operands are, in elements.
    pub(super) offsets: [isize; N],
}

impl<'a, const N: usize> Cursor<'a, N> {
    /// The position of element number `at`, for operands that start at `starts`.
    pub(super) fn new(walk: &'a Walk<N>, at: usize, starts: [isize; N]) -> Self {
        let mut cursor = Cursor { walk, index: [0; MAX_RANK], offsets: starts };
        let mut rest = at;
        for d in (0..walk.rank).rev() {
            cursor.index[d] = rest % walk.shape[d];
            rest /= walk.shape[d];
            for i in 0..N {
                cursor.offsets[i] += cursor.index[d] as isize * walk.strides[i][d];
            }
        }
        cursor
    }

    /// Elements left in the row.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.walk.row() - self.index[self.walk.rank - 1]
    }

    /// Moves on by `n` elements, at most to the start of the next row.
    #[inline]
    pub(super) fn advance(&mut self, n: usize) {
        let walk = self.walk;
        let mut d = walk.rank - 1;
        self.index[d] += n;
        for i in 0..N {
            self.offsets[i] += n as isize * walk.strides[i][d];
        }
        while self.index[d] == walk.shape[d] && d > 0 {
            self.index[d] = 0;
            self.index[d - 1] += 1;
            for i in 0..N {
                self.offsets[i] += walk.strides[i][d - 1] - walk.shape[d] as isize * walk.strides[i][d];
            }
            d -= 1;
        }
    }
}

/// `out[k] = data[offset + k * stride]`.
///
/// # Panics
/// If an element lies outside `data`.
#[inline]
pub fn gather<T: Pod>(data: &[T], offset: isize, stride: isize, out: &mut [T]) {
    let Some(last) = out.len().checked_sub(1) else { return };
    let end = offset + last as isize * stride;
    let (low, high) = (offset.min(end) as usize, offset.max(end) as usize);
    let data = &data[low..=high];
    match stride {
        0 => out.fill(data[0]),
        1 => out.copy_from_slice(data),
        _ if stride > 0 => {
            let elements = data.iter().step_by(stride as usize);
            out.iter_mut().zip(elements).for_each(|(out, x)| *out = *x);
        }
        _ => {
            let elements = data.iter().rev().step_by(stride.unsigned_abs());
            out.iter_mut().zip(elements).for_each(|(out, x)| *out = *x);
        }
    }
}

/// `out[r * pitch + k] = data[offsets[r] + k * stride]` for `k < n`, column by column.
///
/// # Panics
/// If an element lies outside `data`, or a row outside `out`.
#[inline]
pub fn transpose<T: Pod>(
    data: &[T],
    offsets: &[isize],
    stride: isize,
    out: &mut [T],
    pitch: usize,
    n: usize,
) {
    let next_to_each_other = offsets.windows(2).all(|pair| pair[1] - pair[0] == 1);
    for k in 0..n {
        let at = k as isize * stride;
        if next_to_each_other {
            let column = &data[(offsets[0] + at) as usize..][..offsets.len()];
            for (r, x) in column.iter().enumerate() {
                out[r * pitch + k] = *x;
            }
        } else {
            for (r, offset) in offsets.iter().enumerate() {
                out[r * pitch + k] = data[(offset + at) as usize];
            }
        }
    }
}
