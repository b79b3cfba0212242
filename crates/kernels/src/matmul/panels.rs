//! Products whose right operand is packed into panels as wide as a tile of sums.
//!
//! The packed product of the `gemm` crates is as fast where both operands are row-major. It is slower where the right one is
//! transposed (`A Bᵀ`, the gradient of a dense layer's input), because it packs it element by element, and where the left one is
//! (`Aᵀ B`, the gradient of the layer's weights), because it waits for memory while it packs. Here, the left operand is read in
//! place, or copied in strips if its columns are far apart. What is read next is fetched into the second-level cache during the sums.
//!
//! A sum is taken over [`DEPTH`] products at a time, in registers and in the order of the depth, and then added to the element. So results do not depend on
//! the vectors.

use super::mat::{Mat, MatMut};
use super::transposing::{BLOCK, TransposeBlock};
use crate::lanes::{LaneElement, Lanes, VectorWork, tile_width};
use crate::simd;
use std::mem::MaybeUninit;

/// Rows of the right operand that are packed at a time.
pub(super) const DEPTH: usize = 256;
/// Bytes of the panels that are packed at a time, which stay in the second-level cache.
const PANELS: usize = 256 << 10;
/// Rows of the left operand that are copied at a time: a multiple of the rows of every tile, and whole cache lines.
const STRIP: usize = 48;
/// Rows for which the panels must be used to repay packing them.
const FEWEST_ROWS: usize = 48;
/// The least depth and the fewest columns.
const SMALLEST: usize = 32;
/// The least depth for which a product with a transposed left operand is computed here.
const DEEP: usize = 1024;
/// Bytes of the smallest pages. Lines that are further apart share so few sets of the second-level cache that those fetched ahead
/// would replace each other.
const PAGE: usize = 4096;

/// Whether a product is computed here: by its shape, its strides and the machine, as results must not depend on more.
pub(super) fn applies<S>(a: &Mat<'_, S>, b: &Mat<'_, S>, c: &MatMut<'_, S>) -> bool {
    let is_near = |stride: isize| stride.unsigned_abs().saturating_mul(size_of::<S>()) <= PAGE;
    let is_weight_gradient =
        a.row_stride == 1 && is_near(a.col_stride) && is_near(b.row_stride) && a.cols >= DEEP;
    (b.col_stride != 1 || is_weight_gradient)
        && c.col_stride == 1
        && c.rows >= FEWEST_ROWS
        && c.cols >= SMALLEST
        && a.cols >= SMALLEST
        && simd::fuses_multiply_add()
}

/// `c = a @ b`, or `c += a @ b`, with 352 KiB of stack for the panels and a strip.
///
/// # Safety
/// The processor must have the instructions of `transpose`, which packs a right operand that is transposed.
#[inline(never)]
#[allow(clippy::large_stack_arrays, reason = "every thread has it, and kernels do not allocate")]
pub(super) unsafe fn gemm<S: LaneElement>(
    a: Mat<'_, S>,
    b: Mat<'_, S>,
    c: MatMut<'_, S>,
    accumulate: bool,
    transpose: Option<TransposeBlock<S>>,
) {
    assert!(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "shapes of a matrix product");
    // Here, and not where they are used: that is compiled for several tiles, each of which would have its own.
    let mut panels = [const { MaybeUninit::<Line>::uninit() }; PANELS / LINE];
    let mut strip = [const { MaybeUninit::<Line>::uninit() }; STRIP * DEPTH * 8 / LINE];
    let (panels, strip) = (&mut panels[..], &mut strip[..]);
    S::vectorize(Product { width: tile_width::<S>(b.cols), a, b, c, panels, strip, accumulate, transpose });
}

/// A product, the width of its panels, and memory for them and a strip.
struct Product<'a, S> {
    a: Mat<'a, S>,
    b: Mat<'a, S>,
    c: MatMut<'a, S>,
    width: usize,
    panels: &'a mut [MaybeUninit<Line>],
    strip: &'a mut [MaybeUninit<Line>],
    accumulate: bool,
    /// The processor has its instructions.
    transpose: Option<TransposeBlock<S>>,
}

impl<S: LaneElement> VectorWork<S> for Product<'_, S> {
    #[inline(always)]
    fn run<A: Lanes<S>>(self, simd: A) {
        // Rows of a tile: as many sums as there are registers for.
        match self.width / A::COUNT {
            1 => multiply::<S, A, 8, 1>(simd, self),
            2 if size_of::<A::Vector>() == 64 => multiply::<S, A, 8, 2>(simd, self),
            2 => multiply::<S, A, 6, 2>(simd, self),
            4 => multiply::<S, A, 6, 4>(simd, self),
            8 => multiply::<S, A, 1, 8>(simd, self),
            _ => multiply::<S, A, 1, 16>(simd, self),
        }
    }
}

/// Whether the left operand is copied in strips: if its columns are a page or more apart, its elements share few sets of the caches.
#[inline(always)]
fn is_copied<S>(a: &Mat<'_, S>) -> bool {
    a.col_stride.unsigned_abs().saturating_mul(size_of::<S>()) >= PAGE
}

/// Aligns panels.
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Bytes of a cache line.
const LINE: usize = 64;

/// Elements of a column that are copied together where columns are contiguous: a cache line of `f32`.
const RUN: usize = 16;

#[inline(always)]
fn multiply<S: LaneElement, A: Lanes<S>, const R: usize, const C: usize>(simd: A, product: Product<'_, S>) {
    let Product { a, b, mut c, width, panels: panel_memory, strip: strip_memory, accumulate, transpose } =
        product;
    assert!(width == C * A::COUNT && c.col_stride == 1, "panels for other vectors");
    let most = PANELS / size_of::<S>() / DEPTH;
    let is_copied = is_copied(&a);
    let strip_rows = if is_copied { STRIP } else { a.rows };
    for col in (0..b.cols).step_by(most) {
        let cols = col..b.cols.min(col + most);
        for top in (0..b.rows).step_by(DEPTH) {
            let depth = top..b.rows.min(top + DEPTH);
            // Nothing is fetched of a transposed right operand, which is packed at once.
            let below = if b.col_stride == 1 { depth.end..b.rows.min(depth.end + DEPTH) } else { 0..0 };
            let panels = pack::<S, A, C>(simd, b.block(depth.clone(), cols.clone()), panel_memory, transpose);
            let mut next_panels = Ahead::new(b.block(below.clone(), cols.clone()));
            for row in (0..a.rows).step_by(strip_rows) {
                let rows = row..a.rows.min(row + strip_rows);
                let next = rows.end..a.rows.min(rows.end + strip_rows);
                let mut next_strip = Ahead::new(if next.is_empty() {
                    a.block(0..a.rows.min(strip_rows), below.clone())
                } else {
                    a.block(next, depth.clone())
                });
                let mut a = a.block(rows.clone(), depth.clone());
                if is_copied {
                    a = copy(simd, a, strip_memory);
                }
                let c = c.reborrow().block(rows, cols.clone());
                let ahead = [&mut next_panels, &mut next_strip];
                strip_times_panels::<S, A, R, C>(simd, a, panels, c, accumulate || top > 0, ahead);
            }
        }
    }
}

/// The cache lines of a matrix that is read soon.
struct Ahead {
    start: *const u8,
    /// Lines of a contiguous run, and how many of them were fetched.
    lines: usize,
    fetched: usize,
    /// Runs to be fetched, and the distance between them in bytes.
    runs: usize,
    stride: isize,
}

impl Ahead {
    #[inline(always)]
    fn new<S>(next: Mat<'_, S>) -> Ahead {
        let next = if next.col_stride == 1 { next } else { next.transposed() };
        let before = next.start as usize % LINE;
        Ahead {
            start: next.start.cast::<u8>().wrapping_sub(before),
            lines: (before + next.cols * size_of::<S>()).div_ceil(LINE),
            fetched: 0,
            runs: if next.col_stride == 1 && next.cols > 0 { next.rows } else { 0 },
            stride: next.row_stride.wrapping_mul(size_of::<S>() as isize),
        }
    }

    /// Fetches the next line into the second-level cache.
    #[inline(always)]
    fn fetch(&mut self) {
        if self.runs == 0 {
            return;
        }
        prefetch(self.start.wrapping_add(self.fetched * LINE));
        self.fetched += 1;
        if self.fetched >= self.lines {
            self.fetched = 0;
            self.runs -= 1;
            self.start = self.start.wrapping_offset(self.stride);
        }
    }
}

/// Fetches the cache line of an address, which need not be there, into the second-level cache.
#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it accesses no memory that a program can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Writes the panels of `b`, one after the other, each with a row of `C` vectors per row of `b`; columns beyond the last are zeros.
/// The processor must have the instructions of `transpose`.
#[inline(always)]
fn pack<'a, S: LaneElement, A: Lanes<S>, const C: usize>(
    simd: A,
    b: Mat<'_, S>,
    to: &'a mut [MaybeUninit<Line>],
    transpose: Option<TransposeBlock<S>>,
) -> &'a [S] {
    let width = C * A::COUNT;
    let len = b.cols.next_multiple_of(width) * b.rows;
    assert!(len * size_of::<S>() <= size_of_val(to), "panels larger than their memory");
    let start = to.as_mut_ptr().cast::<S>();
    // SAFETY: row 0 of a column below that multiple of `width` is within `len`.
    let column = |col: usize| unsafe { start.add(col / width * b.rows * width + col % width) };
    for col in b.cols..b.cols.next_multiple_of(width) {
        // SAFETY: `width` elements lie between the rows of a panel.
        (0..b.rows).for_each(|row| unsafe { column(col).add(row * width).write(S::ZERO) });
    }
    if b.col_stride == 1 {
        // Row by row, as memory is read fastest.
        let whole = b.cols / width * width;
        for row in 0..b.rows {
            for col in (0..whole).step_by(width) {
                // SAFETY: `C` vectors of a contiguous row of `b`, to a row of a panel, of which `len` counts as many.
                unsafe { copy_vectors::<S, A, C>(simd, b.at(row, col), column(col).add(row * width)) };
            }
            for col in whole..b.cols {
                // SAFETY: element (row, col) of `b`, and its place in the panel.
                unsafe { column(col).add(row * width).write(*b.at(row, col)) };
            }
        }
    } else {
        let blocks = transpose.filter(|_| b.row_stride == 1 && width.is_multiple_of(BLOCK));
        // Blocks are transposed in registers, the rest element by element.
        let (whole_rows, whole_cols) = match blocks {
            Some(_) => (b.rows / BLOCK * BLOCK, b.cols / BLOCK * BLOCK),
            None => (0, 0),
        };
        if let Some(transpose) = blocks {
            for col in (0..whole_cols).step_by(BLOCK) {
                for row in (0..whole_rows).step_by(BLOCK) {
                    // SAFETY: a block of `b` and its place in one panel, whose width is a multiple of it; the instructions are there.
                    unsafe { transpose(b.at(row, col), b.col_stride, column(col).add(row * width), width) };
                }
            }
        }
        for top in (0..b.rows).step_by(RUN) {
            let rows = top..b.rows.min(top + RUN);
            for col in 0..b.cols {
                let first =
                    if col < whole_cols { whole_rows.clamp(rows.start, rows.end) } else { rows.start };
                let (from, to) = (b.at(0, col), column(col));
                for row in first..rows.end {
                    // SAFETY: element (row, col) of `b`, and its place in the panel.
                    unsafe { to.add(row * width).write(*from.offset(row as isize * b.row_stride)) };
                }
            }
        }
    }
    // SAFETY: all of these elements were just written.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// Copies `C` vectors.
///
/// # Safety
/// They must be there to read and to write.
#[inline(always)]
unsafe fn copy_vectors<S: LaneElement, A: Lanes<S>, const C: usize>(simd: A, from: *const S, to: *mut S) {
    for i in 0..C {
        // SAFETY: guaranteed by the caller.
        unsafe {
            to.add(i * A::COUNT).cast::<A::Vector>().write_unaligned(simd.read(from.add(i * A::COUNT)));
        };
    }
}

/// A copy of a strip with columns that are contiguous and follow each other.
#[inline(always)]
fn copy<'a, S: LaneElement, A: Lanes<S>>(
    simd: A,
    a: Mat<'_, S>,
    to: &'a mut [MaybeUninit<Line>],
) -> Mat<'a, S> {
    assert!(a.rows <= STRIP && STRIP * a.cols * size_of::<S>() <= size_of_val(to), "a strip");
    let start = to.as_mut_ptr().cast::<S>();
    let whole = if a.row_stride == 1 { a.rows / A::COUNT * A::COUNT } else { 0 };
    for col in 0..a.cols {
        // SAFETY: column `col` of the copy is inside of its memory, as just checked.
        let to = unsafe { start.add(col * STRIP) };
        for row in (0..whole).step_by(A::COUNT) {
            // SAFETY: a vector of a contiguous column of `a`.
            unsafe { copy_vectors::<S, A, 1>(simd, a.at(row, col), to.add(row)) };
        }
        for row in whole..a.rows {
            // SAFETY: element (row, col) of `a`, and its place in the copy.
            unsafe { to.add(row).write(*a.at(row, col)) };
        }
    }
    // SAFETY: all of these elements were just written.
    unsafe { Mat::from_start(start, a.rows, a.cols, 1, STRIP as isize) }
}

/// Computes tiles of `R` rows and `C` vectors; what is left has fewer rows.
#[inline(always)]
fn strip_times_panels<S: LaneElement, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    a: Mat<'_, S>,
    panels: &[S],
    mut c: MatMut<'_, S>,
    accumulate: bool,
    mut ahead: [&mut Ahead; 2],
) {
    let width = C * A::COUNT;
    assert!(a.rows == c.rows, "rows of a matrix product");
    assert_eq!(panels.len(), c.cols.next_multiple_of(width) * a.cols, "panels of another product");
    let mut row = 0;
    while row < a.rows {
        let left = a.rows - row;
        // Contiguous rows are fetched a tile ahead, contiguous columns a strip ahead.
        if a.col_stride == 1 {
            *ahead[1] = Ahead::new(a.block((row + R).min(a.rows)..(row + 2 * R).min(a.rows), 0..a.cols));
        }
        for (i, panel) in panels.chunks_exact(a.cols * width).enumerate() {
            let at = (row, i * width);
            match left {
                _ if left >= R => tile::<S, A, R, C>(simd, &a, panel, &mut c, at, accumulate, &mut ahead),
                4.. => tile::<S, A, 4, C>(simd, &a, panel, &mut c, at, accumulate, &mut ahead),
                2.. => tile::<S, A, 2, C>(simd, &a, panel, &mut c, at, accumulate, &mut ahead),
                _ => tile::<S, A, 1, C>(simd, &a, panel, &mut c, at, accumulate, &mut ahead),
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

/// The depth during which one line is fetched ahead of each operand: with the tiles of a strip, at least the lines of the next one.
const FETCH_EVERY: usize = 8;

/// `R` rows of `c` and the columns of a panel.
#[inline(always)]
fn tile<S: LaneElement, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    a: &Mat<'_, S>,
    panel: &[S],
    c: &mut MatMut<'_, S>,
    (row, col): (usize, usize),
    accumulate: bool,
    ahead: &mut [&mut Ahead; 2],
) {
    let width = C * A::COUNT;
    assert!(row + R <= a.rows && panel.len() == a.cols * width, "tile outside its matrices");
    let starts: [*const S; R] = std::array::from_fn(|i| a.at(row + i, 0));
    let mut sums = [[simd.splat(S::ZERO); C]; R];
    let mut offset = 0;
    for panel in panel.chunks(FETCH_EVERY * width) {
        ahead[0].fetch();
        ahead[1].fetch();
        for b in panel.chunks_exact(width) {
            // SAFETY: a row of the panel has `C` vectors.
            let b: [A::Vector; C] =
                std::array::from_fn(|j| unsafe { simd.read(b.as_ptr().add(j * A::COUNT)) });
            for i in 0..R {
                // SAFETY: an element of row `row + i` of `a`, of which there are as many as the panel has rows.
                let x = simd.splat(unsafe { *starts[i].offset(offset) });
                for j in 0..C {
                    sums[i][j] = simd.fused(x, b[j], sums[i][j]);
                }
            }
            offset += a.col_stride;
        }
    }
    // A copy: or else the compiler keeps the sums in memory during the loop, because they are indexed below.
    let sums = std::hint::black_box(sums);
    let count = width.min(c.cols - col);
    for (i, sums) in sums.iter().enumerate() {
        let to = &mut c.row_mut(row + i).expect("contiguous rows")[col..col + count];
        simd.write_or_add(sums, to, accumulate);
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::Packed;
    use super::*;
    use crate::Element;
    use crate::simd::{Level, restrict};

    /// Element (i, p) of the first operand, and (p, j) of the second one: small integers, so that sums are exact.
    fn left(i: usize, p: usize) -> f64 {
        ((i * 7 + p * 3) % 11) as f64 - 5.0
    }

    fn right(p: usize, j: usize) -> f64 {
        ((p * 5 + j * 2) % 13) as f64 - 6.0
    }

    /// The elements of a matrix, row by row or, if transposed, column by column.
    fn filled<S: Element>(rows: usize, cols: usize, transposed: bool, at: fn(usize, usize) -> f64) -> Vec<S> {
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

    fn check<S: Packed + LaneElement + PartialEq>(m: usize, n: usize, k: usize) {
        for (kind, accumulate) in (0..4).zip([false, true, false, true]) {
            let (a_transposed, b_transposed) = (kind & 1 == 1, kind & 2 == 2);
            let (a, b) = (filled::<S>(m, k, a_transposed, left), filled::<S>(k, n, b_transposed, right));
            let (a, b) = (matrix(&a, m, k, a_transposed), matrix(&b, k, n, b_transposed));
            // Columns beyond the product belong to others.
            let mut c = vec![S::from_f64(3.0); m * (n + 2)];
            let to = MatMut::new(&mut c, 0, m, n, n as isize + 2, 1);
            // SAFETY: `Packed::transpose_block` returns only what this processor has.
            unsafe { gemm(a, b, to, accumulate, S::transpose_block()) };
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
        // Transposed, its columns are more than a page apart: it is copied in strips, of which the last is smaller.
        check::<f32>(1100, 33, 300);
    }

    #[test]
    fn vectors_of_any_width_round_alike() {
        let (m, n, k) = (52, 77, 600);
        let values = |len: usize| (0..len).map(|i| 1.0 / (i % 97 + 3) as f32).collect::<Vec<f32>>();
        let (a, b) = (values(m * k), values(k * n));
        let product = |level| {
            restrict(level);
            let mut c = vec![0f32; m * n];
            let (a, b, to) =
                (matrix(&a, m, k, true), matrix(&b, k, n, true), MatMut::row_major(&mut c, m, n));
            // SAFETY: `Packed::transpose_block` returns only what this processor has.
            unsafe { gemm(a, b, to, false, f32::transpose_block()) };
            restrict(Level::Avx512);
            c
        };
        assert_eq!(product(Level::Avx2), product(Level::Avx512));
    }

    #[test]
    fn transposed_operands_come_here() {
        let data = vec![0f32; 1 << 21];
        let mut c = vec![0f32; 1 << 17];
        let mut takes = |m, n, k, a, b| {
            applies(&matrix(&data, m, k, a), &matrix(&data, k, n, b), &MatMut::row_major(&mut c, m, n))
        };
        let fused = simd::fuses_multiply_add();
        assert_eq!(takes(256, 256, 256, false, true), fused);
        assert!(!takes(256, 256, 256, false, false) && !takes(256, 256, 256, true, false));
        assert_eq!(takes(64, 64, 1024, true, false), fused);
        assert!(!takes(2048, 64, 1024, true, false) && !takes(64, 2048, 1024, true, false));
        assert!(!takes(8, 256, 256, false, true));
    }
}
