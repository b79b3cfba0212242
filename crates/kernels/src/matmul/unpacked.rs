//! Products that read their operands where they are: for shapes too small or too thin to repay packing.
//!
//! All of them sum over the whole depth in registers. `W` is the number of elements in 64 bytes: two vectors of
//! AVX2, one of AVX-512.

use super::mat::{Mat, MatMut};
use crate::simd::Level;
use crate::{Element, multiversion};
use std::array;

/// A number that can be multiplied and summed.
pub(super) trait Scalar: Element {
    const ZERO: Self;
    /// `self * x + sum`: fused for floats, wrapping for integers.
    fn times_plus(self, x: Self, sum: Self) -> Self;
    /// `self + x`, wrapping for integers.
    fn plus(self, x: Self) -> Self;
}

macro_rules! float_scalar {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn times_plus(self, x: $t, sum: $t) -> $t {
                self.mul_add(x, sum)
            }
            #[inline(always)]
            fn plus(self, x: $t) -> $t {
                self + x
            }
        }
    )*};
}
float_scalar!(f32, f64);

macro_rules! integer_scalar {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            const ZERO: $t = 0;
            #[inline(always)]
            fn times_plus(self, x: $t, sum: $t) -> $t {
                self.wrapping_mul(x).wrapping_add(sum)
            }
            #[inline(always)]
            fn plus(self, x: $t) -> $t {
                self.wrapping_add(x)
            }
        }
    )*};
}
integer_scalar!(u8, u16, u32, u64);

/// Names the width of a tile to the compiler.
#[derive(Clone, Copy)]
pub(super) struct Lanes<const W: usize>;

/// Calls `$tile::<T, R, W>` with `R` as the constant equal to `$rows`, 1 to 6.
macro_rules! with_rows {
    ($rows:expr, $tile:ident::<$T:ty, $W:ident>($($arg:expr),*)) => {
        match $rows {
            1 => $tile::<$T, 1, $W>($($arg),*),
            2 => $tile::<$T, 2, $W>($($arg),*),
            3 => $tile::<$T, 3, $W>($($arg),*),
            4 => $tile::<$T, 4, $W>($($arg),*),
            5 => $tile::<$T, 5, $W>($($arg),*),
            _ => $tile::<$T, 6, $W>($($arg),*),
        }
    };
}

multiversion! {
    /// `c (+)= a @ b` for a `b` whose rows are contiguous. Columns are the vector direction.
    up_to(if T::DTYPE.is_float() { Level::Avx512 } else { Level::Avx2 })
    pub(super) fn by_columns[T: Scalar, const W: usize](
        lanes: Lanes<W>, a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool,
    ) {
        let Lanes = lanes;
        assert!(b.col_stride == 1 && a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
        let mut c = c;
        let tiles = a.rows.div_ceil(6);
        for col in (0..b.cols).step_by(W) {
            let wide = readable_rows::<T, W>(&b, col);
            let mut row = 0;
            for tile in 0..tiles {
                // Heights as equal as can be: a short last tile would wait for its own sums.
                let rows = (a.rows - row).div_ceil(tiles - tile);
                with_rows!(rows, column_tile::<T, W>(&a, row, &b, col, wide, &mut c, accumulate));
                row += rows;
            }
        }
    }
}

/// How many of the first rows of `b` have `W` elements to read from column `col` on without leaving the span of
/// the matrix. What lies beyond the last column is read, and dropped.
#[inline(always)]
fn readable_rows<T, const W: usize>(b: &Mat<'_, T>, col: usize) -> usize {
    let beyond = (col + W).saturating_sub(b.cols);
    match b.row_stride {
        _ if beyond == 0 => b.rows,
        stride @ 1.. => b.rows.saturating_sub(beyond.div_ceil(stride as usize)),
        _ => 0,
    }
}

/// `R` rows and up to `W` columns of `c`.
#[inline(always)]
fn column_tile<T: Scalar, const R: usize, const W: usize>(
    a: &Mat<'_, T>,
    row: usize,
    b: &Mat<'_, T>,
    col: usize,
    wide: usize,
    c: &mut MatMut<'_, T>,
    accumulate: bool,
) {
    assert!(row + R <= a.rows && col < b.cols && wide <= b.rows && a.cols == b.rows);
    let cols = W.min(b.cols - col);
    let a_rows: [*const T; R] = array::from_fn(|i| a.at(row + i, 0));
    let mut sums = [[T::ZERO; W]; R];
    for p in 0..wide {
        // SAFETY: `readable_rows` counted the rows of which `W` elements lie in the slice behind `b`; column `p` of
        // the rows of `a` is there because `p < b.rows == a.cols`.
        unsafe { outer(&mut sums, a_rows, p as isize * a.col_stride, &*b.at(p, col).cast::<[T; W]>()) };
    }
    for p in wide..b.rows {
        let mut b_row = [T::ZERO; W];
        for (j, x) in b_row[..cols].iter_mut().enumerate() {
            *x = b.get(p, col + j);
        }
        // SAFETY: as above.
        unsafe { outer(&mut sums, a_rows, p as isize * a.col_stride, &b_row) };
    }
    for (i, sum) in sums.iter().enumerate() {
        write(c, row + i, col, sum, cols, accumulate);
    }
}

/// Adds the outer product of the elements at `rows + offset` and `b`.
///
/// # Safety
/// Those elements must be there to read.
// A closure would not do: only what is always inlined is compiled for the caller's instruction set.
#[inline(always)]
unsafe fn outer<T: Scalar, const R: usize, const W: usize>(
    sums: &mut [[T; W]; R],
    rows: [*const T; R],
    offset: isize,
    b: &[T; W],
) {
    for i in 0..R {
        // SAFETY: by the caller's word.
        let x = unsafe { *rows[i].offset(offset) };
        for j in 0..W {
            sums[i][j] = x.times_plus(b[j], sums[i][j]);
        }
    }
}

/// Writes, or adds, the first `count` of `values` to a row from column `col` on.
#[inline(always)]
fn write<T: Scalar, const W: usize>(
    c: &mut MatMut<'_, T>,
    row: usize,
    col: usize,
    values: &[T; W],
    count: usize,
    accumulate: bool,
) {
    assert!(row < c.rows && col + count <= c.cols && count <= W);
    if count == W && c.col_stride == 1 {
        // SAFETY: `W` elements of a contiguous row, all inside the matrix.
        let to = unsafe { &mut *c.at(row, col).cast::<[T; W]>() };
        if accumulate {
            for j in 0..W {
                to[j] = to[j].plus(values[j]);
            }
        } else {
            *to = *values;
        }
    } else {
        write_few(c, row, col, &values[..count], accumulate);
    }
}

/// The rest of [`write`], out of the way of the tiles.
#[inline(never)]
fn write_few<T: Scalar>(c: &mut MatMut<'_, T>, row: usize, col: usize, values: &[T], accumulate: bool) {
    if let (false, Some(to)) = (accumulate, c.row_mut(row)) {
        return to[col..col + values.len()].copy_from_slice(values);
    }
    for (j, &x) in values.iter().enumerate() {
        c.set(row, col + j, if accumulate { c.get(row, col + j).plus(x) } else { x });
    }
}

multiversion! {
    /// `c (+)= a @ b` for an `a` whose rows and a `b` whose columns are contiguous: dot products, with the depth as
    /// the vector direction.
    pub(super) fn by_depth[T: Scalar, const W: usize](
        lanes: Lanes<W>, a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool,
    ) {
        let Lanes = lanes;
        assert!(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
        let (mut c, b) = (c, b.transposed());
        let mut col = 0;
        while col < b.rows {
            let cols = if b.rows - col >= 2 { 2 } else { 1 };
            let mut row = 0;
            while row < a.rows {
                let left = a.rows - row;
                row += match cols {
                    2 if left >= 2 => depth_tile::<T, 2, 2, W>(&a, row, &b, col, &mut c, accumulate),
                    2 => depth_tile::<T, 1, 2, W>(&a, row, &b, col, &mut c, accumulate),
                    _ if left >= 4 => depth_tile::<T, 4, 1, W>(&a, row, &b, col, &mut c, accumulate),
                    _ => depth_tile::<T, 1, 1, W>(&a, row, &b, col, &mut c, accumulate),
                };
            }
            col += cols;
        }
    }
}

/// Dot products of `R` rows of `a` and `S` of `b`. Returns `R`.
#[inline(always)]
fn depth_tile<T: Scalar, const R: usize, const S: usize, const W: usize>(
    a: &Mat<'_, T>,
    row: usize,
    b: &Mat<'_, T>,
    col: usize,
    c: &mut MatMut<'_, T>,
    accumulate: bool,
) -> usize {
    assert!(a.col_stride == 1 && b.col_stride == 1 && a.cols == b.cols);
    assert!(row + R <= a.rows && col + S <= b.rows);
    let depth = a.cols;
    let a_rows: [*const T; R] = array::from_fn(|i| a.at(row + i, 0));
    let b_rows: [*const T; S] = array::from_fn(|j| b.at(col + j, 0));
    let mut sums = [[[T::ZERO; W]; S]; R];
    let whole = depth / W * W;
    for p in (0..whole).step_by(W) {
        for i in 0..R {
            for j in 0..S {
                // SAFETY: `W` elements of contiguous rows from `p` on; `p + W <= depth`.
                let (x, y) = unsafe { (&*a_rows[i].add(p).cast(), &*b_rows[j].add(p).cast()) };
                inner(&mut sums[i][j], x, y);
            }
        }
    }
    // Through memory: or else the compiler fits the loop's vectors to the way they are summed up, at half width.
    let sums = std::hint::black_box(sums);
    for i in 0..R {
        let mut values = [T::ZERO; S];
        for j in 0..S {
            values[j] = total(sums[i][j]);
            for p in whole..depth {
                // SAFETY: element `p < depth` of the same rows.
                let (x, y) = unsafe { (*a_rows[i].add(p), *b_rows[j].add(p)) };
                values[j] = x.times_plus(y, values[j]);
            }
        }
        write(c, row + i, col, &values, S, accumulate);
    }
    R
}

/// Adds products of `W` elements, lane by lane.
#[inline(always)]
fn inner<T: Scalar, const W: usize>(sums: &mut [T; W], x: &[T; W], y: &[T; W]) {
    for l in 0..W {
        sums[l] = x[l].times_plus(y[l], sums[l]);
    }
}

/// The sum, by halves.
#[inline(always)]
fn total<T: Scalar, const W: usize>(mut lanes: [T; W]) -> T {
    let mut half = W / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i].plus(lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

multiversion! {
    /// The dot product of two vectors of one length.
    pub(super) fn dot[T: Scalar, const W: usize](lanes: Lanes<W>, x: &[T], y: &[T]) -> T {
        let Lanes = lanes;
        assert_eq!(x.len(), y.len());
        // Four times `W` sums: enough to keep two multipliers busy while each sum waits for its last addition.
        let mut sums = [[T::ZERO; W]; 4];
        let (x_fours, x_rest) = x.as_chunks::<W>().0.as_chunks::<4>();
        let (y_fours, y_rest) = y.as_chunks::<W>().0.as_chunks::<4>();
        for (x, y) in x_fours.iter().zip(y_fours) {
            for i in 0..4 {
                inner(&mut sums[i], &x[i], &y[i]);
            }
        }
        for (i, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
            inner(&mut sums[i], x, y);
        }
        let mut sum = total(sums[0]).plus(total(sums[1])).plus(total(sums[2]).plus(total(sums[3])));
        for (&x, &y) in x.as_chunks::<W>().1.iter().zip(y.as_chunks::<W>().1) {
            sum = x.times_plus(y, sum);
        }
        sum
    }
}

/// Columns that [`row_times`] sums at a time: the sums stay in the first level cache, and a row of them is long
/// enough for the hardware prefetcher.
const SPAN: usize = 512;

multiversion! {
    /// `c (+)= x @ b` for one row `x` and a `b` whose rows are contiguous.
    pub(super) fn row_times[T: Scalar, const W: usize](
        lanes: Lanes<W>, x: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool,
    ) {
        let Lanes = lanes;
        assert!(b.col_stride == 1 && x.rows == 1 && c.rows == 1 && x.cols == b.rows && b.cols == c.cols);
        let mut c = c;
        for col in (0..b.cols).step_by(SPAN) {
            let cols = SPAN.min(b.cols - col);
            let part = b.block(0..b.rows, col..col + cols);
            let mut sums = [T::ZERO; SPAN];
            let mut p = 0;
            while p + 8 <= b.rows {
                add_rows::<T, 8, W>(&x, &part, p, &mut sums);
                p += 8;
            }
            while p < b.rows {
                add_rows::<T, 1, W>(&x, &part, p, &mut sums);
                p += 1;
            }
            for (i, sums) in sums[..cols].chunks(W).enumerate() {
                match sums.as_array::<W>() {
                    Some(sums) => write(&mut c, 0, col + i * W, sums, W, accumulate),
                    None => for (j, sum) in sums.iter().enumerate() {
                        write(&mut c, 0, col + i * W + j, &[*sum], 1, accumulate);
                    }
                }
            }
        }
    }
}

/// Adds `R` rows of `b`, each times its element of `x`.
#[inline(always)]
fn add_rows<T: Scalar, const R: usize, const W: usize>(
    x: &Mat<'_, T>,
    b: &Mat<'_, T>,
    p: usize,
    sums: &mut [T; SPAN],
) {
    assert!(b.col_stride == 1 && b.cols <= SPAN && p + R <= b.rows);
    let x: [T; R] = array::from_fn(|i| x.get(0, p + i));
    let rows: [*const T; R] = array::from_fn(|i| b.at(p + i, 0));
    let (chunks, rest) = sums[..b.cols].as_chunks_mut::<W>();
    let whole = chunks.len() * W;
    for (j, sums) in chunks.iter_mut().enumerate() {
        for i in 0..R {
            // SAFETY: `W` elements of a contiguous row, before column `whole <= b.cols`.
            inner(sums, &[x[i]; W], unsafe { &*rows[i].add(j * W).cast() });
        }
    }
    for (j, sum) in rest.iter_mut().enumerate() {
        for i in 0..R {
            // SAFETY: column `whole + j < b.cols` of a contiguous row.
            *sum = x[i].times_plus(unsafe { *rows[i].add(whole + j) }, *sum);
        }
    }
}
