//! Shapes, strides and axes.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Sizes of the dimensions. Up to four need no heap.
#[derive(Default, Eq)]
pub struct Shape(SmallVec<[usize; 4]>);

/// Distance between neighbours along each dimension, in elements; zero repeats, negative runs backwards.
pub type Strides = SmallVec<[isize; 4]>;

/// A list of axes, a permutation, …
pub type Axes = SmallVec<[usize; 4]>;

impl Shape {
    /// The shape of a single number.
    pub fn scalar() -> Shape {
        Shape(SmallVec::new())
    }

    /// The maximum rank of a tensor.
    pub const MAX_RANK: usize = 64;

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many elements, or `None` if no tensor can have this shape: more elements than memory has addresses, or more
    /// than [`Shape::MAX_RANK`] dimensions.
    #[inline]
    pub fn checked_len(&self) -> Option<usize> {
        if self.rank() > Shape::MAX_RANK {
            return None;
        }
        let mut len = 1usize;
        let mut empty = false;
        for &dim in &self.0 {
            // A zero dimension makes the product zero, even if the others overflow.
            empty |= dim == 0;
            len = len.checked_mul(dim.max(1))?;
        }
        (len <= isize::MAX as usize / 8).then_some(if empty { 0 } else { len })
    }

    /// How many elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().product()
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.contains(&0)
    }

    /// Row-major strides.
    #[inline]
    pub fn strides(&self) -> Strides {
        // A few stores per case: a loop here would cost a measurable part of every small op.
        let size = |dim: usize| dim.max(1) as isize;
        let (few, rank) = match *self.0 {
            [] => ([0; 4], 0),
            [_] => ([1, 0, 0, 0], 1),
            [_, b] => ([size(b), 1, 0, 0], 2),
            [_, b, c] => ([size(b) * size(c), size(c), 1, 0], 3),
            [_, b, c, d] => ([size(b) * size(c) * size(d), size(c) * size(d), size(d), 1], 4),
            _ => return self.long_strides(),
        };
        Strides::from_buf_and_len(few, rank)
    }

    fn long_strides(&self) -> Strides {
        let mut strides = Strides::from_elem(1, self.rank());
        let mut next = 1isize;
        for (stride, &dim) in strides.iter_mut().zip(&self.0).rev() {
            *stride = next;
            next *= dim.max(1) as isize;
        }
        strides
    }

    /// The shape that both broadcast to, as NumPy does it.
    ///
    /// ```
    /// # use taut_core::Shape;
    /// let shape = Shape::from([4, 1]).broadcast(&Shape::from([3])).unwrap();
    /// assert_eq!(*shape, [4, 3]);
    /// ```
    #[inline]
    pub fn broadcast(&self, other: &Shape) -> Result<Shape> {
        if self == other {
            return Ok(self.clone());
        }
        let rank = self.rank().max(other.rank());
        let mut out = Shape(SmallVec::from_elem(1, rank));
        for (i, dim) in out.0.iter_mut().enumerate() {
            let a = (i + self.rank()).checked_sub(rank).map_or(1, |i| self[i]);
            let b = (i + other.rank()).checked_sub(rank).map_or(1, |i| other[i]);
            *dim = match (a, b) {
                _ if a == b => a,
                (1, _) => b,
                (_, 1) => a,
                _ => return Err(broadcast_error(self, other, i, a, b)),
            };
        }
        Ok(out)
    }

    /// Turns an axis that may count from the end into one that counts from the start.
    #[inline]
    pub fn axis(&self, axis: isize) -> Result<usize> {
        normalize_axis(axis, self.rank())
    }

    /// As [`Shape::axis`] for several axes: sorted, and each at most once.
    pub fn axes(&self, axes: &[isize]) -> Result<Axes> {
        let mut out = Axes::new();
        for &axis in axes {
            let axis = self.axis(axis)?;
            if out.contains(&axis) {
                return Err(Error::new(ErrorKind::Axis, format!("axes must be distinct, got {axis} twice")));
            }
            out.push(axis);
        }
        out.sort_unstable();
        Ok(out)
    }

    /// The shape with one more dimension.
    #[must_use]
    pub fn with_inserted(mut self, axis: usize, dim: usize) -> Shape {
        self.0.insert(axis, dim);
        self
    }

    /// The shape without one dimension.
    #[must_use]
    pub fn without(mut self, axis: usize) -> Shape {
        self.0.remove(axis);
        self
    }

    /// The shape with one dimension changed.
    #[must_use]
    pub fn with(mut self, axis: usize, dim: usize) -> Shape {
        self.0[axis] = dim;
        self
    }
}

/// Turns an axis that may count from the end into one that counts from the start of `rank` dimensions.
#[inline]
pub fn normalize_axis(axis: isize, rank: usize) -> Result<usize> {
    let shifted = if axis < 0 { axis.wrapping_add(rank as isize) } else { axis };
    if shifted >= 0 && (shifted as usize) < rank { Ok(shifted as usize) } else { Err(axis_error(axis, rank)) }
}

#[cold]
fn axis_error(axis: isize, rank: usize) -> Error {
    let message = match rank {
        0 => format!("a scalar has no axes, got axis {axis}"),
        _ => format!("axis must be in [-{rank}, {rank}), got {axis}"),
    };
    Error::new(ErrorKind::Axis, message)
}

#[cold]
fn broadcast_error(a: &Shape, b: &Shape, axis: usize, x: usize, y: usize) -> Error {
    Error::shape(format!("shapes {a} and {b} do not broadcast: dimension {axis} is {x} and {y}"))
        .help("dimensions must be equal, or one of them 1, counted from the last one")
}

impl Clone for Shape {
    /// By cases, like [`Shape::strides`].
    #[inline]
    fn clone(&self) -> Shape {
        Shape(match *self.0 {
            [] => SmallVec::from_buf_and_len([0; 4], 0),
            [a] => SmallVec::from_buf_and_len([a, 0, 0, 0], 1),
            [a, b] => SmallVec::from_buf_and_len([a, b, 0, 0], 2),
            [a, b, c] => SmallVec::from_buf_and_len([a, b, c, 0], 3),
            [a, b, c, d] => SmallVec::from_buf_and_len([a, b, c, d], 4),
            ref many => SmallVec::from_slice(many),
        })
    }
}

impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.rank() == other.rank() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<&[usize]> for Shape {
    #[inline]
    fn from(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    #[inline]
    fn from(dims: [usize; N]) -> Shape {
        Shape::from(&dims[..])
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Shape {
        Shape::from(&dims[..])
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(dims.into())
    }
}

impl From<&Vec<usize>> for Shape {
    fn from(dims: &Vec<usize>) -> Shape {
        Shape::from(&dims[..])
    }
}

impl From<usize> for Shape {
    fn from(dim: usize) -> Shape {
        Shape::from([dim])
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Shape {
        Shape::scalar()
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        **self == other[..]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_memory::testing::ledger_check;

    #[test]
    fn broadcast_follows_numpy() {
        let _ledger = ledger_check();
        let cases: [(&[usize], &[usize], Option<&[usize]>); 7] = [
            (&[], &[], Some(&[])),
            (&[3], &[], Some(&[3])),
            (&[2, 1], &[1, 3], Some(&[2, 3])),
            (&[0], &[1], Some(&[0])),
            (&[5, 1, 2], &[4, 1], Some(&[5, 4, 2])),
            (&[2], &[3], None),
            (&[0], &[2], None),
        ];
        for (a, b, want) in cases {
            let got = Shape::from(a).broadcast(&Shape::from(b)).ok();
            assert_eq!(got.as_deref(), want, "{a:?} {b:?}");
        }
    }

    #[test]
    fn strides_are_row_major() {
        let _ledger = ledger_check();
        for rank in 0..7 {
            let dims: Vec<usize> = (0..rank).map(|i| [3, 0, 2, 5, 1, 4][i]).collect();
            let want: Vec<isize> =
                (0..rank).map(|i| dims[i + 1..].iter().map(|&dim| dim.max(1) as isize).product()).collect();
            let shape = Shape::from(&dims);
            assert_eq!(shape.strides().to_vec(), want);
            assert_eq!(shape.clone(), shape);
            assert_eq!(*shape.clone(), dims[..]);
        }
    }

    #[test]
    fn sizes_that_overflow_are_seen() {
        let _ledger = ledger_check();
        assert_eq!(Shape::from([usize::MAX, 2]).checked_len(), None);
        assert_eq!(Shape::from([usize::MAX, 2, 0]).checked_len(), None);
        assert_eq!(Shape::from([0, 7]).checked_len(), Some(0));
        assert_eq!(Shape::scalar().checked_len(), Some(1));
    }

    #[test]
    fn axes_count_from_both_ends() {
        let _ledger = ledger_check();
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape.axis(-1).unwrap(), 2);
        assert_eq!(shape.axis(0).unwrap(), 0);
        assert!(shape.axis(3).is_err() && shape.axis(-4).is_err() && shape.axis(isize::MIN).is_err());
        assert_eq!(shape.axes(&[-1, 0]).unwrap().as_slice(), [0, 2]);
        assert!(shape.axes(&[0, -3]).is_err());
    }
}
