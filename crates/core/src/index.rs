//! Positions and ranges for slicing.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// One item of a slicing expression. [`s!`](crate::s) writes a whole expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// One position; the axis is removed. A negative one counts from the end.
    At(isize),
    /// `start:end:step` as in Python.
    Range {
        /// First position, or the axis's beginning.
        start: Option<isize>,
        /// Position after the last, or the axis's end.
        end: Option<isize>,
        /// Distance between positions; negative runs backwards.
        step: isize,
    },
    /// All axes that the other items do not index.
    Ellipsis,
    /// A new axis of size one.
    NewAxis,
}

impl Index {
    /// Takes every `step`-th element of a range. A single position, an ellipsis or a new axis has no step and stays as it is.
    ///
    /// ```
    /// # use taut_core::Index;
    /// let backwards = Index::from(..).by(-1);
    /// # assert_eq!(backwards, Index::Range { start: None, end: None, step: -1 });
    /// ```
    #[must_use]
    pub fn by(self, step: isize) -> Index {
        match self {
            Index::Range { start, end, .. } => Index::Range { start, end, step },
            other => other,
        }
    }

    pub(crate) fn consumes_axis(&self) -> bool {
        matches!(self, Index::At(_) | Index::Range { .. })
    }
}

/// All axes that the other items do not index, in [`s!`](crate::s).
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

/// A new axis of size one, in [`s!`](crate::s).
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

impl From<Ellipsis> for Index {
    fn from(_: Ellipsis) -> Index {
        Index::Ellipsis
    }
}

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Index {
        Index::NewAxis
    }
}

impl From<isize> for Index {
    fn from(position: isize) -> Index {
        Index::At(position)
    }
}

impl From<Range<isize>> for Index {
    fn from(range: Range<isize>) -> Index {
        Index::Range { start: Some(range.start), end: Some(range.end), step: 1 }
    }
}

impl From<RangeInclusive<isize>> for Index {
    fn from(range: RangeInclusive<isize>) -> Index {
        // `0..=-1` ends at the axis's end, which no exclusive end can name.
        let end = range.end().checked_add(1).filter(|&end| end != 0);
        Index::Range { start: Some(*range.start()), end, step: 1 }
    }
}

impl From<RangeFrom<isize>> for Index {
    fn from(range: RangeFrom<isize>) -> Index {
        Index::Range { start: Some(range.start), end: None, step: 1 }
    }
}

impl From<RangeTo<isize>> for Index {
    fn from(range: RangeTo<isize>) -> Index {
        Index::Range { start: None, end: Some(range.end), step: 1 }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::Range { start: None, end: None, step: 1 }
    }
}

/// A slicing expression: positions, ranges, [`Ellipsis`] and [`NewAxis`], as in NumPy.
///
/// ```
/// use taut_core::{Ellipsis, Index, NewAxis, s};
/// let every_second_from_the_end = s![Ellipsis, NewAxis, 1..3, Index::from(..).by(-2)];
/// assert_eq!(every_second_from_the_end.len(), 4);
/// ```
#[macro_export]
macro_rules! s {
    ($($index:expr),* $(,)?) => { [$($crate::Index::from($index)),*] };
}
