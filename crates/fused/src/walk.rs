//! Iteration over strided inputs: those that are neither contiguous nor periodic.

use smallvec::{SmallVec, smallvec};

/// A shape and the strides of the inputs, with as few dimensions as possible.
pub(crate) struct Walk {
    shape: SmallVec<[usize; 6]>,
    /// The strides of all inputs in the first dimension, then in the second, and so on.
    strides: SmallVec<[isize; 24]>,
    inputs: usize,
}

impl Walk {
    /// Drops dimensions of size one and merges neighbours that are contiguous to each other in every input.
    pub(crate) fn new(shape: &[usize], strides: &[&[isize]]) -> Walk {
        let inputs = strides.len();
        let mut walk = Walk { shape: SmallVec::new(), strides: SmallVec::new(), inputs };
        for (d, &dim) in shape.iter().enumerate().filter(|(_, dim)| **dim != 1) {
            let here = strides.iter().map(|strides| strides[d]);
            let last = walk.strides.len().saturating_sub(inputs);
            let mut pairs = walk.strides[last..].iter().zip(here.clone());
            if !walk.shape.is_empty() && pairs.all(|(before, here)| *before == here * dim as isize) {
                *walk.shape.last_mut().expect("a dimension to merge with") *= dim;
                walk.strides.truncate(last);
            } else {
                walk.shape.push(dim);
            }
            walk.strides.extend(here);
        }
        if walk.shape.is_empty() {
            walk.shape.push(1);
            walk.strides.resize(inputs, 0);
        }
        walk
    }

    /// Elements in a row: the innermost dimension.
    #[inline]
    pub(crate) fn row(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    #[inline]
    fn stride(&self, d: usize, input: usize) -> isize {
        self.strides[d * self.inputs + input]
    }

    /// The stride of an input within a row.
    #[inline]
    pub(crate) fn inner(&self, input: usize) -> isize {
        self.stride(self.shape.len() - 1, input)
    }

    /// Whether an input's stride within a row is larger than that from one row to the next.
    pub(crate) fn across(&self, input: usize) -> bool {
        let rank = self.shape.len();
        let inner = self.inner(input).unsigned_abs();
        rank > 1 && (1..inner).contains(&self.stride(rank - 2, input).unsigned_abs())
    }
}

/// A position in a [`Walk`].
pub(crate) struct Cursor<'a> {
    walk: &'a Walk,
    index: SmallVec<[usize; 6]>,
    /// The inputs' offsets in elements.
    pub(crate) offsets: SmallVec<[isize; 8]>,
}

impl<'a> Cursor<'a> {
    /// The position of the element with linear index `at`, for inputs that start at `starts`.
    pub(crate) fn new(walk: &'a Walk, at: usize, starts: &[isize]) -> Cursor<'a> {
        let index = smallvec![0; walk.shape.len()];
        let mut cursor = Cursor { walk, index, offsets: starts.into() };
        let mut rest = at;
        for d in (0..walk.shape.len()).rev() {
            cursor.index[d] = rest % walk.shape[d];
            rest /= walk.shape[d];
            let steps = cursor.index[d] as isize;
            for (input, offset) in cursor.offsets.iter_mut().enumerate() {
                *offset += steps * walk.stride(d, input);
            }
        }
        cursor
    }

    /// Elements left in the row.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.walk.row() - self.index[self.index.len() - 1]
    }

    /// Moves on by `n` elements, at most to the start of the next row.
    #[inline]
    pub(crate) fn advance(&mut self, n: usize) {
        let walk = self.walk;
        let mut d = self.index.len() - 1;
        self.index[d] += n;
        for (input, offset) in self.offsets.iter_mut().enumerate() {
            *offset += n as isize * walk.stride(d, input);
        }
        while self.index[d] == walk.shape[d] && d > 0 {
            self.index[d] = 0;
            self.index[d - 1] += 1;
            for (input, offset) in self.offsets.iter_mut().enumerate() {
                *offset += walk.stride(d - 1, input) - walk.shape[d] as isize * walk.stride(d, input);
            }
            d -= 1;
        }
    }
}
