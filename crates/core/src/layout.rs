//! Layouts: where a tensor's elements lie in its buffer. Views are computed from layouts, without copies.

use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::shape::{Shape, Strides};

/// Shape, strides and the position of the first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Sizes of the dimensions.
    pub shape: Shape,
    /// Distance between neighbours along each dimension, in elements.
    pub strides: Strides,
    /// Position of the first element, in elements from the start of the buffer.
    pub offset: usize,
}

impl Layout {
    /// Row-major order from the start of the buffer.
    #[inline]
    pub fn contiguous(shape: Shape) -> Layout {
        Layout { strides: shape.strides(), shape, offset: 0 }
    }

    /// Whether the elements lie one after the other in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides)
    }

    /// Dimensions in another order. `permutation` holds each axis once.
    #[must_use]
    pub fn permute(&self, permutation: &[usize]) -> Layout {
        Layout {
            shape: permutation.iter().map(|&axis| self.shape[axis]).collect(),
            strides: permutation.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// Repeats dimensions of size one, and adds leading ones, to reach `shape`.
    pub fn broadcast(&self, shape: &Shape) -> Result<Layout> {
        let mismatch = || {
            Error::shape(format!("shape {} does not broadcast to {shape}", self.shape))
                .help("dimensions must be equal or 1, counted from the last one")
        };
        let added = shape.rank().checked_sub(self.shape.rank()).ok_or_else(mismatch)?;
        let mut strides = Strides::from_elem(0, shape.rank());
        for (i, (&dim, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match (dim, shape[added + i]) {
                (a, b) if a == b => strides[added + i] = stride,
                (1, _) => {}
                _ => return Err(mismatch()),
            }
        }
        Ok(Layout { shape: shape.clone(), strides, offset: self.offset })
    }

    /// The same elements in the same order under another shape, if strides can express it.
    pub fn reshape(&self, shape: &Shape) -> Option<Layout> {
        // Without elements any strides will do.
        if self.shape.is_empty() || self.is_contiguous() {
            return Some(Layout { strides: shape.strides(), shape: shape.clone(), offset: self.offset });
        }
        // Match runs of old dimensions with runs of new ones of the same size; a run of old dimensions can be
        // split differently only if it is evenly spaced.
        let old: Vec<(usize, isize)> = (self.shape.iter().copied().zip(self.strides.iter().copied()))
            .filter(|&(dim, _)| dim != 1)
            .collect();
        let mut strides = Strides::from_elem(1, shape.rank());
        let (mut at, mut axis) = (0, 0);
        while at < old.len() {
            let (mut have, mut want) = (old[at].0, 1);
            let (start, first) = (at, axis);
            at += 1;
            while have != want || axis == first {
                if want < have || axis == first {
                    want *= *shape.get(axis)?;
                    axis += 1;
                } else {
                    if old[at - 1].1 != old[at].1 * old[at].0 as isize {
                        return None;
                    }
                    have *= old[at].0;
                    at += 1;
                }
            }
            debug_assert!(start < at);
            let mut stride = old[at - 1].1;
            for axis in (first..axis).rev() {
                strides[axis] = stride;
                stride *= shape[axis] as isize;
            }
        }
        Some(Layout { shape: shape.clone(), strides, offset: self.offset })
    }

    /// Adds a dimension of size one before `axis` (`axis` may be the rank).
    #[must_use]
    pub fn insert_axis(&self, axis: usize) -> Layout {
        let mut out = self.clone();
        out.shape = out.shape.with_inserted(axis, 1);
        out.strides.insert(axis, 0);
        out
    }

    /// Removes a dimension of size one.
    #[must_use]
    pub fn remove_axis(&self, axis: usize) -> Layout {
        let mut out = self.clone();
        out.shape = out.shape.without(axis);
        out.strides.remove(axis);
        out
    }

    /// Every `step`-th element of one axis, `len` of them, from `start`; a negative step runs backwards. The
    /// range must lie inside the axis.
    #[must_use]
    pub fn range(&self, axis: usize, start: usize, len: usize, step: isize) -> Layout {
        let mut out = self.clone();
        if len > 0 {
            out.offset = (out.offset as isize + start as isize * out.strides[axis]) as usize;
        }
        // A step beyond the axis reaches one element at most and needs no stride, which might overflow.
        if len > 1 {
            out.strides[axis] *= step;
        }
        out.shape = out.shape.with(axis, len);
        out
    }

    /// The diagonal of the last two axes, as the last axis.
    #[must_use]
    pub fn diagonal(&self, offset: isize) -> Layout {
        let rank = self.shape.rank();
        let (rows, columns) = (self.shape[rank - 2], self.shape[rank - 1]);
        let (top, left) = (offset.min(0).unsigned_abs(), offset.max(0) as usize);
        let len = rows.saturating_sub(top).min(columns.saturating_sub(left));
        let mut out = self.remove_axis(rank - 1);
        out.shape = out.shape.with(rank - 2, len);
        out.strides[rank - 2] = self.strides[rank - 2] + self.strides[rank - 1];
        if len > 0 {
            let shift = top as isize * self.strides[rank - 2] + left as isize * self.strides[rank - 1];
            out.offset = (out.offset as isize + shift) as usize;
        }
        out
    }

    /// NumPy's basic indexing: positions, ranges with steps, an ellipsis, new axes.
    pub fn slice(&self, indices: &[Index]) -> Result<Layout> {
        let consumed = indices.iter().filter(|i| i.consumes_axis()).count();
        let rank = self.shape.rank();
        if consumed > rank {
            return Err(Error::index(format!(
                "expected at most {rank} indices, one per axis, got {consumed}"
            )));
        }
        if indices.iter().filter(|i| matches!(i, Index::Ellipsis)).count() > 1 {
            return Err(Error::index("expected at most one ellipsis, got more"));
        }
        let mut out = self.clone();
        let mut axis = 0;
        for index in indices {
            match *index {
                Index::Ellipsis => axis += rank - consumed,
                Index::NewAxis => {
                    out = out.insert_axis(axis);
                    axis += 1;
                }
                Index::At(position) => {
                    let dim = out.shape[axis];
                    let from_start =
                        if position < 0 { position.wrapping_add(dim as isize) } else { position };
                    if from_start < 0 || from_start as usize >= dim {
                        return Err(Error::index(format!(
                            "index must be in [-{dim}, {dim}) on axis {axis}, got {position}"
                        )));
                    }
                    out = out.range(axis, from_start as usize, 1, 1).remove_axis(axis);
                }
                Index::Range { start, end, step } => {
                    let (start, len) = resolve_range(start, end, step, out.shape[axis])?;
                    out = out.range(axis, start, len, step);
                    axis += 1;
                }
            }
        }
        Ok(out)
    }
}

/// Python's slice rules: the first position and the number of elements. Ends beyond the axis are clamped to it.
fn resolve_range(
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
    dim: usize,
) -> Result<(usize, usize)> {
    if step == 0 {
        return Err(Error::new(ErrorKind::Index, "a slice step must not be 0"));
    }
    let dim = dim as isize;
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let place = |at: isize| (if at < 0 { at.saturating_add(dim) } else { at }).clamp(low, high);
    let start = start.map_or(if step > 0 { low } else { high }, place);
    let end = end.map_or(if step > 0 { high } else { low }, place);
    let distance = if step > 0 { end - start } else { start - end };
    let len = if distance > 0 { (distance as usize).div_ceil(step.unsigned_abs()) } else { 0 };
    Ok((start.max(0) as usize, len))
}

/// Whether elements with these strides lie one after the other in row-major order.
#[inline]
pub(crate) fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1isize;
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        if dim != 1 && stride != expected {
            return false;
        }
        expected *= dim as isize;
    }
    true
}
