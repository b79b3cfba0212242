//! Positions among the inputs or outputs of an op or a graph.

use std::ops::Range;

/// A run of consecutive positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    len: usize,
}

impl Span {
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The position of the `i`-th value.
    pub(crate) fn at(self, i: usize) -> usize {
        debug_assert!(i < self.len, "value {i} of {}", self.len);
        self.start + i
    }

    /// The position of an optional value.
    pub(crate) fn first(self) -> Option<usize> {
        (self.len > 0).then_some(self.start)
    }

    pub(crate) fn positions(self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// Which value of the span is at this position.
    pub(crate) fn index_of(self, position: usize) -> Option<usize> {
        position.checked_sub(self.start).filter(|&i| i < self.len)
    }

    /// The values of the span in a list of all.
    pub(crate) fn of<T>(self, all: &[T]) -> &[T] {
        &all[self.positions()]
    }
}

/// Lays out spans one after the other.
#[derive(Default)]
pub(crate) struct SpanLayout {
    end: usize,
}

impl SpanLayout {
    /// The next `len` positions.
    pub(crate) fn next(&mut self, len: usize) -> Span {
        let span = Span { start: self.end, len };
        self.end += len;
        span
    }
}
