//! Strided matrices whose bounds were checked once, so that kernels may walk them by pointer.

use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::Range;

/// A read-only strided matrix.
#[derive(Debug)]
pub struct Mat<'a, T> {
    pub(super) start: *const T,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
    life: PhantomData<&'a [T]>,
}

impl<T> Clone for Mat<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mat<'_, T> {}

// SAFETY: a `Mat` is a shared borrow of a slice of `T`.
unsafe impl<T: Sync> Send for Mat<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mat<'_, T> {}

/// A strided matrix to write. Its elements are borrowed, not the gaps between them: blocks of one matrix can be
/// written by several threads.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    pub(super) start: *mut T,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: a `MatMut` is an exclusive borrow of its elements.
unsafe impl<T: Send> Send for MatMut<'_, T> {}
// SAFETY: through a shared `MatMut` elements can only be read, unless `share` is used, which has its own terms.
unsafe impl<T: Send + Sync> Sync for MatMut<'_, T> {}

/// Panics unless all elements of the matrix lie inside a buffer of `len` elements.
#[inline]
fn check(len: usize, offset: usize, rows: usize, cols: usize, row_stride: isize, col_stride: isize) {
    if rows == 0 || cols == 0 {
        return;
    }
    let inside = || {
        let row_reach = isize::try_from(rows - 1).ok()?.checked_mul(row_stride)?;
        let col_reach = isize::try_from(cols - 1).ok()?.checked_mul(col_stride)?;
        let first = isize::try_from(offset).ok()?;
        let low = first.checked_add(row_reach.min(0))?.checked_add(col_reach.min(0))?;
        let high = first.checked_add(row_reach.max(0))?.checked_add(col_reach.max(0))?;
        Some(low >= 0 && (high as usize) < len)
    };
    assert!(inside() == Some(true), "matrix outside its buffer");
}

impl<'a, T> Mat<'a, T> {
    /// A matrix whose element (0, 0) is `data[offset]`. Strides count elements and may be zero or negative.
    ///
    /// # Panics
    /// If an element of the matrix lies outside `data`.
    #[inline]
    pub fn new(
        data: &'a [T],
        offset: usize,
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
    ) -> Mat<'a, T> {
        check(data.len(), offset, rows, cols, row_stride, col_stride);
        let start = data.as_ptr().wrapping_add(offset);
        Mat { start, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// A matrix whose element (0, 0) is at `start`.
    ///
    /// # Safety
    /// Every element must be there to read, for as long as the result lives.
    #[inline]
    pub(super) unsafe fn from_start(
        start: *const T,
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
    ) -> Mat<'a, T> {
        Mat { start, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// A contiguous row-major matrix at the start of `data`.
    ///
    /// # Panics
    /// If `data` is too short.
    #[inline]
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Mat<'a, T> {
        Mat::new(data, 0, rows, cols, cols as isize, 1)
    }

    /// The same bits as elements of another type of that size and alignment.
    #[inline]
    pub(super) fn cast<U: Pod>(self) -> Mat<'a, U>
    where
        T: Pod,
    {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
        let Mat { start, rows, cols, row_stride, col_stride, .. } = self;
        Mat { start: start.cast(), rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// How many rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    #[inline(always)]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows become columns; nothing is copied.
    #[inline(always)]
    #[must_use]
    pub fn transposed(self) -> Mat<'a, T> {
        Mat {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The last row first; nothing is copied.
    #[inline(always)]
    pub(super) fn reversed_rows(self) -> Mat<'a, T> {
        Mat { start: self.at(self.rows.saturating_sub(1), 0), row_stride: -self.row_stride, ..self }
    }

    /// The part with these rows and columns.
    ///
    /// # Panics
    /// If a range reaches beyond the matrix.
    #[inline]
    #[must_use]
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> Mat<'a, T> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows outside the matrix");
        assert!(cols.start <= cols.end && cols.end <= self.cols, "columns outside the matrix");
        Mat { start: self.at(rows.start, cols.start), rows: rows.len(), cols: cols.len(), ..self }
    }

    /// The same matrix with unit strides along dimensions of size one, where a stride means nothing.
    #[inline(always)]
    pub(super) fn simplified(self) -> Mat<'a, T> {
        Mat {
            row_stride: if self.rows <= 1 { 1 } else { self.row_stride },
            col_stride: if self.cols <= 1 { 1 } else { self.col_stride },
            ..self
        }
    }

    /// Where an element is. Valid to read for a row and a column inside the matrix.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, col: usize) -> *const T {
        self.start.wrapping_offset(row as isize * self.row_stride + col as isize * self.col_stride)
    }
}

impl<T: Copy> Mat<'_, T> {
    /// One element.
    ///
    /// # Panics
    /// If it is outside the matrix.
    #[inline(always)]
    pub fn get(&self, row: usize, col: usize) -> T {
        assert!(row < self.rows && col < self.cols, "element outside the matrix");
        // SAFETY: `new` checked that every element of the matrix lies in the borrowed slice.
        unsafe { *self.at(row, col) }
    }

    /// A row, if its elements are contiguous.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> Option<&[T]> {
        assert!(row < self.rows, "row outside the matrix");
        // SAFETY: `new` checked that the row's elements lie in the borrowed slice, and they follow each other.
        (self.col_stride == 1).then(|| unsafe { std::slice::from_raw_parts(self.at(row, 0), self.cols) })
    }
}

impl<'a, T> MatMut<'a, T> {
    /// A matrix whose element (0, 0) is `data[offset]`. Strides count elements; where they make elements
    /// coincide, the last write stays.
    ///
    /// # Panics
    /// If an element of the matrix lies outside `data`.
    #[inline]
    pub fn new(
        data: &'a mut [T],
        offset: usize,
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
    ) -> MatMut<'a, T> {
        check(data.len(), offset, rows, cols, row_stride, col_stride);
        let start = data.as_mut_ptr().wrapping_add(offset);
        MatMut { start, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// A contiguous row-major matrix at the start of `data`.
    ///
    /// # Panics
    /// If `data` is too short.
    #[inline]
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> MatMut<'a, T> {
        MatMut::new(data, 0, rows, cols, cols as isize, 1)
    }

    /// The same bits as elements of another type of that size and alignment.
    #[inline]
    pub(super) fn cast<U: Pod>(self) -> MatMut<'a, U>
    where
        T: Pod,
    {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
        let MatMut { start, rows, cols, row_stride, col_stride, .. } = self;
        MatMut { start: start.cast(), rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// How many rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    #[inline(always)]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows become columns; nothing is copied.
    #[inline(always)]
    #[must_use]
    pub fn transposed(self) -> MatMut<'a, T> {
        MatMut {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The last row first; nothing is copied.
    #[inline(always)]
    pub(super) fn reversed_rows(self) -> MatMut<'a, T> {
        MatMut { start: self.at(self.rows.saturating_sub(1), 0), row_stride: -self.row_stride, ..self }
    }

    /// The same matrix, borrowed for a shorter time.
    #[inline(always)]
    pub fn reborrow(&mut self) -> MatMut<'_, T> {
        MatMut { ..*self }
    }

    /// The same matrix once more, for threads that write different blocks of it.
    ///
    /// # Safety
    /// As long as the result lives, no element may be written through it that is read or written through another
    /// handle.
    #[inline(always)]
    pub(super) unsafe fn share(&self) -> MatMut<'_, T> {
        MatMut { ..*self }
    }

    /// The part with these rows and columns.
    ///
    /// # Panics
    /// If a range reaches beyond the matrix.
    #[inline]
    #[must_use]
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> MatMut<'a, T> {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows outside the matrix");
        assert!(cols.start <= cols.end && cols.end <= self.cols, "columns outside the matrix");
        MatMut { start: self.at(rows.start, cols.start), rows: rows.len(), cols: cols.len(), ..self }
    }

    /// Where an element is. Valid to write for a row and a column inside the matrix.
    #[inline(always)]
    pub(super) fn at(&self, row: usize, col: usize) -> *mut T {
        self.start.wrapping_offset(row as isize * self.row_stride + col as isize * self.col_stride)
    }
}

impl<T: Copy> MatMut<'_, T> {
    /// One element.
    ///
    /// # Panics
    /// If it is outside the matrix.
    #[inline(always)]
    pub fn get(&self, row: usize, col: usize) -> T {
        assert!(row < self.rows && col < self.cols, "element outside the matrix");
        // SAFETY: `new` checked that every element of the matrix lies in the borrowed slice.
        unsafe { *self.at(row, col) }
    }

    /// Writes one element.
    ///
    /// # Panics
    /// If it is outside the matrix.
    #[inline(always)]
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        assert!(row < self.rows && col < self.cols, "element outside the matrix");
        // SAFETY: as in `get`, and the borrow is exclusive.
        unsafe { *self.at(row, col) = value }
    }

    /// Writes `value` everywhere.
    pub(super) fn fill(&mut self, value: T) {
        for row in 0..self.rows {
            for col in 0..self.cols {
                self.set(row, col, value);
            }
        }
    }

    /// A row, if its elements are contiguous.
    #[inline(always)]
    pub(super) fn row_mut(&mut self, row: usize) -> Option<&mut [T]> {
        assert!(row < self.rows, "row outside the matrix");
        // SAFETY: `new` checked that the row's elements lie in the borrowed slice, and they follow each other.
        (self.col_stride == 1).then(|| unsafe { std::slice::from_raw_parts_mut(self.at(row, 0), self.cols) })
    }

    /// Visits all elements, rows of which are contiguous: row by row with its number, or in one run from row 0 on if rows
    /// follow each other.
    ///
    /// # Panics
    /// If rows are not contiguous.
    pub(super) fn for_runs(self, mut visit: impl FnMut(usize, &mut [T])) {
        let together = self.row_stride == self.cols as isize && self.col_stride == 1;
        let (rows, cols) = if together { (1, self.rows * self.cols) } else { (self.rows, self.cols) };
        let mut runs = MatMut { rows, cols, ..self };
        for row in 0..rows {
            visit(row, runs.row_mut(row).expect("contiguous rows"));
        }
    }
}
