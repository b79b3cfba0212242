//! Products whose right operand is packed into panels as wide as a tile of sums, and whose left operand is read in place.
//!
//! The packed product of the `gemm` crates is as fast where the right operand is row-major. It is slower where that operand is
//! transposed (`A Bᵀ`, the gradient of a dense layer's input), because it packs it element by element.
//!
//! A sum is taken over [`DEPTH`] products at a time, in registers and in the order of the depth, and then added to the element. So results do not depend on
//! the vectors.

use super::mat::{Mat, MatMut};
use crate::conv::real::Sum;
use crate::lanes::{Lanes, tile_width, vectorize};
use crate::simd;
use pulp::{Simd, WithSimd};
use std::mem::MaybeUninit;

/// Rows of the right operand that are packed at a time.
pub(super) const DEPTH: usize = 256;
/// Bytes of the panels that are packed at a time, which stay in the second-level cache.
const PANELS: usize = 256 << 10;
/// Rows for which the panels must be used to repay packing them.
const FEWEST_ROWS: usize = 48;
/// The least depth and the fewest columns.
const SMALLEST: usize = 32;

/// Whether a product is computed here: by its shape, its strides and the machine, as results must not depend on more.
pub(super) fn applies<S>(a: &Mat<'_, S>, b: &Mat<'_, S>, c: &MatMut<'_, S>) -> bool {
    b.col_stride != 1
        && c.col_stride == 1
        && c.rows >= FEWEST_ROWS
        && c.cols >= SMALLEST
        && a.cols >= SMALLEST
        && simd::fuses_multiply_add()
}

/// A type of sums whose tiles have a size for each kind of vectors.
pub(crate) trait PanelTiles: Sized {
    fn multiply(product: Product<'_, Self>);
}

/// Rows times panels.
pub(crate) struct Product<'a, S> {
    a: Mat<'a, S>,
    /// Panels of `width` columns, one after the other: a row of `width` elements per row of the right operand.
    panels: &'a [S],
    width: usize,
    c: MatMut<'a, S>,
    accumulate: bool,
}

macro_rules! tiles {
    ($($t:ty),*) => {$(
        impl PanelTiles for $t {
            fn multiply(product: Product<'_, $t>) {
                vectorize(product);
            }
        }

        impl WithSimd for Product<'_, $t> {
            type Output = ();
            #[inline(always)]
            fn with_simd<A: Simd>(self, simd: A) {
                // Rows of a tile: as many sums as there are registers for.
                match self.width / <A as Lanes<$t>>::COUNT {
                    1 => rows::<$t, A, 8, 1>(simd, self),
                    2 if size_of::<<A as Lanes<$t>>::Vector>() == 64 => rows::<$t, A, 8, 2>(simd, self),
                    2 => rows::<$t, A, 6, 2>(simd, self),
                    4 => rows::<$t, A, 6, 4>(simd, self),
                    8 => rows::<$t, A, 1, 8>(simd, self),
                    _ => rows::<$t, A, 1, 16>(simd, self),
                }
            }
        }
    )*};
}
tiles!(f32, f64);

/// `c = a @ b`, or `c += a @ b`, with 256 KiB of stack for the panels.
#[inline(never)]
#[allow(clippy::large_stack_arrays, reason = "every thread has it, and kernels do not allocate")]
pub(super) fn gemm<S: Sum + PanelTiles>(
    a: Mat<'_, S>,
    b: Mat<'_, S>,
    mut c: MatMut<'_, S>,
    accumulate: bool,
) {
    let mut bytes = [const { MaybeUninit::<Line>::uninit() }; PANELS / size_of::<Line>()];
    let width = tile_width::<S>(b.cols);
    let most = PANELS / size_of::<S>() / DEPTH;
    for col in (0..b.cols).step_by(most) {
        let cols = most.min(b.cols - col);
        for top in (0..b.rows).step_by(DEPTH) {
            let depth = DEPTH.min(b.rows - top);
            let panels = pack(b.block(top..top + depth, col..col + cols), width, &mut bytes);
            S::multiply(Product {
                a: a.block(0..a.rows, top..top + depth),
                panels,
                width,
                c: c.reborrow().block(0..a.rows, col..col + cols),
                accumulate: accumulate || top > 0,
            });
        }
    }
}

/// Aligns panels.
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Elements of a column that are copied together where columns are contiguous: a cache line of `f32`.
const RUN: usize = 16;

/// Writes the panels of `b`; columns beyond the last are zeros.
fn pack<'a, S: Sum>(b: Mat<'_, S>, width: usize, to: &'a mut [MaybeUninit<Line>]) -> &'a [S] {
    let len = b.cols.next_multiple_of(width) * b.rows;
    assert!(len * size_of::<S>() <= size_of_val(to), "panels larger than their memory");
    let start = to.as_mut_ptr().cast::<S>();
    // SAFETY: row 0 of a column below that multiple of `width` is within `len`.
    let column = |col: usize| unsafe { start.add(col / width * b.rows * width + col % width) };
    for col in b.cols..b.cols.next_multiple_of(width) {
        // SAFETY: `width` elements lie between the rows of a panel.
        (0..b.rows).for_each(|row| unsafe { column(col).add(row * width).write(<S as Sum>::ZERO) });
    }
    if b.col_stride == 1 {
        // Row by row, as memory is read fastest.
        for row in 0..b.rows {
            for col in (0..b.cols).step_by(width) {
                let count = width.min(b.cols - col);
                // SAFETY: `count` elements of a contiguous row of `b`, to a row of a panel, of which `len` counts as many.
                unsafe {
                    b.at(row, col).copy_to_nonoverlapping(column(col).add(row * width), count);
                }
            }
        }
    } else {
        for top in (0..b.rows).step_by(RUN) {
            let rows = RUN.min(b.rows - top);
            for col in 0..b.cols {
                let (from, to) = (b.at(top, col), column(col));
                for row in 0..rows {
                    // SAFETY: element (top + row, col) of `b`, and its place in the panel.
                    unsafe { to.add((top + row) * width).write(*from.offset(row as isize * b.row_stride)) };
                }
            }
        }
    }
    // SAFETY: all of these elements were just written.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// Computes tiles of `R` rows and `C` vectors; what is left has fewer rows.
#[inline(always)]
fn rows<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(simd: A, product: Product<'_, S>) {
    let Product { a, panels, width, mut c, accumulate } = product;
    assert!(
        width == C * A::COUNT && c.col_stride == 1 && a.rows == c.rows,
        "panels packed for other vectors"
    );
    assert_eq!(panels.len(), c.cols.next_multiple_of(width) * a.cols, "panels of another product");
    let mut row = 0;
    while row < a.rows {
        let left = a.rows - row;
        for (i, panel) in panels.chunks_exact(a.cols * width).enumerate() {
            let at = (row, i * width);
            match left {
                _ if left >= R => tile::<S, A, R, C>(simd, &a, panel, &mut c, at, accumulate),
                4.. => tile::<S, A, 4, C>(simd, &a, panel, &mut c, at, accumulate),
                2.. => tile::<S, A, 2, C>(simd, &a, panel, &mut c, at, accumulate),
                _ => tile::<S, A, 1, C>(simd, &a, panel, &mut c, at, accumulate),
            }
        }
        row += match left {
            _ if left >= R => R,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
    }
}

/// `R` rows of `c` and the columns of a panel.
#[inline(always)]
fn tile<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    a: &Mat<'_, S>,
    panel: &[S],
    c: &mut MatMut<'_, S>,
    (row, col): (usize, usize),
    accumulate: bool,
) {
    let width = C * A::COUNT;
    assert!(row + R <= a.rows && panel.len() == a.cols * width, "tile outside its matrices");
    let starts: [*const S; R] = std::array::from_fn(|i| a.at(row + i, 0));
    let mut sums = [[simd.splat(<S as Sum>::ZERO); C]; R];
    for (k, b) in panel.chunks_exact(width).enumerate() {
        // SAFETY: a row of the panel has `C` vectors.
        let b: [A::Vector; C] = std::array::from_fn(|j| unsafe { simd.read(b.as_ptr().add(j * A::COUNT)) });
        for i in 0..R {
            // SAFETY: element (row + i, k) of `a`, as there are `a.cols` rows in the panel.
            let x = simd.splat(unsafe { *starts[i].offset(k as isize * a.col_stride) });
            for j in 0..C {
                sums[i][j] = simd.fused(x, b[j], sums[i][j]);
            }
        }
    }
    let count = width.min(c.cols - col);
    for (i, sums) in sums.iter().enumerate() {
        let to = &mut c.row_mut(row + i).expect("contiguous rows")[col..col + count];
        simd.write_or_add(sums, to, accumulate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, restrict};

    /// Element (i, p) of the first operand, and (p, j) of the second one: small integers, so that sums are exact.
    fn left(i: usize, p: usize) -> f64 {
        ((i * 7 + p * 3) % 11) as f64 - 5.0
    }

    fn right(p: usize, j: usize) -> f64 {
        ((p * 5 + j * 2) % 13) as f64 - 6.0
    }

    /// The elements of a matrix, row by row or, if transposed, column by column.
    fn filled<S: Sum>(rows: usize, cols: usize, transposed: bool, at: fn(usize, usize) -> f64) -> Vec<S> {
        let index = |n: usize| if transposed { (n % rows, n / rows) } else { (n / cols, n % cols) };
        (0..rows * cols).map(|n| S::from_f64(at(index(n).0, index(n).1))).collect()
    }

    fn matrix<S>(data: &[S], rows: usize, cols: usize, transposed: bool) -> Mat<'_, S> {
        if transposed {
            Mat::row_major(data, cols, rows).transposed()
        } else {
            Mat::row_major(data, rows, cols)
        }
    }

    fn check<S: Sum + PanelTiles + PartialEq>(m: usize, n: usize, k: usize) {
        for (kind, accumulate) in (0..4).zip([false, true, false, true]) {
            let (a_transposed, b_transposed) = (kind & 1 == 1, kind & 2 == 2);
            let (a, b) = (filled::<S>(m, k, a_transposed, left), filled::<S>(k, n, b_transposed, right));
            let (a, b) = (matrix(&a, m, k, a_transposed), matrix(&b, k, n, b_transposed));
            // Columns beyond the product belong to others.
            let mut c = vec![S::from_f64(3.0); m * (n + 2)];
            gemm(a, b, MatMut::new(&mut c, 0, m, n, n as isize + 2, 1), accumulate);
            for (i, row) in c.chunks(n + 2).enumerate() {
                assert!(row[n..].iter().all(|x| x.to_f64() == 3.0));
                for (j, x) in row[..n].iter().enumerate() {
                    let sum: f64 = (0..k).map(|p| left(i, p) * right(p, j)).sum();
                    assert_eq!(
                        x.to_f64(),
                        sum + if accumulate { 3.0 } else { 0.0 },
                        "{m}x{k}x{n} ({i}, {j})"
                    );
                }
            }
        }
    }

    #[test]
    fn products_are_exact_for_any_layout_and_remainder() {
        for (m, n, k) in [(1, 1, 1), (3, 5, 2), (13, 33, 40), (48, 32, 32), (15, 300, 513), (50, 257, 256)] {
            check::<f32>(m, n, k);
            check::<f64>(m, n, k);
        }
    }

    #[test]
    fn vectors_of_any_width_round_alike() {
        let (m, n, k) = (52, 77, 600);
        let values = |len: usize| (0..len).map(|i| 1.0 / (i % 97 + 3) as f32).collect::<Vec<f32>>();
        let (a, b) = (values(m * k), values(k * n));
        let product = |level| {
            restrict(level);
            let mut c = vec![0f32; m * n];
            gemm(matrix(&a, m, k, true), matrix(&b, k, n, true), MatMut::row_major(&mut c, m, n), false);
            restrict(Level::Avx512);
            c
        };
        assert_eq!(product(Level::Avx2), product(Level::Avx512));
    }

    #[test]
    fn transposed_operands_come_here() {
        let data = vec![0f32; 1 << 20];
        let mut c = vec![0f32; 1 << 16];
        let mut takes = |m, n, k, a, b| {
            applies(&matrix(&data, m, k, a), &matrix(&data, k, n, b), &MatMut::row_major(&mut c, m, n))
        };
        let fused = simd::fuses_multiply_add();
        assert_eq!(takes(256, 256, 256, false, true), fused);
        assert!(!takes(256, 256, 256, false, false) && !takes(256, 256, 256, true, false));
        assert!(!takes(8, 256, 256, false, true));
    }
}
