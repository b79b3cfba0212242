//! Products of stacks of matrices, by all threads.

use super::mat::{Mat, MatMut};
use super::{GemmElement, gemm};
use crate::{DType, View, ViewMut, dispatch, pool};
use std::ops::Range;

/// `out = a @ b`, matrix by matrix: `a` is `[..., m, k]`, `b` is `[..., k, n]`, `out` is `[..., m, n]`, with the same
/// leading dimensions (broadcast by strides of zero). Any strides; no operand is copied whole. A depth of zero
/// gives zeros. Half precisions are summed in `f32` and rounded once; integers wrap.
///
/// # Panics
/// If shapes or types do not agree, or the type is `bool`.
///
/// ```
/// use taut_kernels::{DType, View, ViewMut, matmul::matmul};
///
/// let (a, b, mut c) = ([1f32, 2.0, 3.0, 4.0], [5f32, 6.0], [0f32; 2]);
/// let a = View::new(DType::F32, bytemuck::cast_slice(&a), 0, &[2, 2], &[2, 1]);
/// let b = View::new(DType::F32, bytemuck::cast_slice(&b), 0, &[2, 1], &[1, 1]);
/// matmul(a, b, ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut c), &[2, 1]));
/// assert_eq!(c, [17.0, 39.0]);
/// ```
pub fn matmul(a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    multiply(a, b, out, false, None);
}

/// As [`matmul`], and adds to what `out` holds: `out += a @ b`.
///
/// If [`adds_after_sum`], the result of two matrices has the bits of an addition after the product.
///
/// # Panics
/// As [`matmul`].
///
/// ```
/// use taut_kernels::{DType, View, ViewMut, matmul::matmul_accumulate};
///
/// let (a, b, mut c) = ([1f32, 2.0, 3.0, 4.0], [5f32, 6.0], [100f32, 200.0]);
/// let a = View::new(DType::F32, bytemuck::cast_slice(&a), 0, &[2, 2], &[2, 1]);
/// let b = View::new(DType::F32, bytemuck::cast_slice(&b), 0, &[2, 1], &[1, 1]);
/// matmul_accumulate(a, b, ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut c), &[2, 1]));
/// assert_eq!(c, [117.0, 239.0]);
/// ```
pub fn matmul_accumulate(a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    multiply(a, b, out, true, None);
}

/// Whether [`matmul_accumulate`] of an `m` x `k` and a `k` x `n` matrix adds finished sums to `out`: then it equals an addition after
/// [`matmul`] bit for bit. Outer products and products with a vector are added one by one, deep ones in several parts, and half
/// precisions are rounded once.
pub fn adds_after_sum(dtype: DType, [m, k, n]: [usize; 3]) -> bool {
    let (rows, cols) = block_shape(1, m, n, k);
    let has_vector = m.min(n) < 2 || m % rows == 1 || n % cols == 1;
    matches!(dtype, DType::F32 | DType::F64) && (3..=MAX_DEPTH_OF_ONE_SUM).contains(&k) && !has_vector
}

/// The depth up to which no kernel splits a sum: panels do beyond it, the `gemm` crates beyond 512.
const MAX_DEPTH_OF_ONE_SUM: usize = super::panels::DEPTH;

/// As [`matmul`], and applies `epilogue` once to every element of the product while it is in cache: to a contiguous run of
/// finished sums at a time, with the number of the run's first element in `out`, on the thread that computed it.
///
/// # Panics
/// As [`matmul`].
///
/// ```
/// use taut_kernels::{DType, View, ViewMut, matmul::matmul_with_epilogue};
///
/// let (a, b, mut c) = ([1f32, 2.0], [3f32, -4.0], [0f32; 4]);
/// let a = View::new(DType::F32, bytemuck::cast_slice(&a), 0, &[2, 1], &[1, 1]);
/// let b = View::new(DType::F32, bytemuck::cast_slice(&b), 0, &[1, 2], &[2, 1]);
/// let relu = |_first: usize, run: &mut [u8]| {
///     bytemuck::cast_slice_mut(run).iter_mut().for_each(|x: &mut f32| *x = x.max(0.0));
/// };
/// matmul_with_epilogue(a, b, ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut c), &[2, 2]), &relu);
/// assert_eq!(c, [3.0, 0.0, 6.0, 0.0]);
/// ```
pub fn matmul_with_epilogue(
    a: View<'_>,
    b: View<'_>,
    out: ViewMut<'_>,
    epilogue: &(dyn Fn(usize, &mut [u8]) + Sync),
) {
    multiply(a, b, out, false, Some(epilogue));
}

/// The epilogue, if there is one.
type EpilogueFn<'a> = Option<&'a (dyn Fn(usize, &mut [u8]) + Sync)>;

fn multiply(a: View<'_>, b: View<'_>, out: ViewMut<'_>, accumulate: bool, epilogue: EpilogueFn<'_>) {
    let dtype = out.dtype();
    assert!(a.dtype() == dtype && b.dtype() == dtype, "operands of one type");
    dispatch!(dtype, T in numbers => typed::<T>(a, b, out, accumulate, epilogue));
}

fn typed<T: GemmElement>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    accumulate: bool,
    epilogue: EpilogueFn<'_>,
) {
    let shape = out.shape();
    let rank = shape.len();
    assert!(rank >= 2 && a.shape().len() == rank && b.shape().len() == rank, "matrices of one rank");
    let lead = rank - 2;
    let (m, n, k) = (shape[lead], shape[lead + 1], b.shape()[lead]);
    assert!(a.shape()[..lead] == shape[..lead] && b.shape()[..lead] == shape[..lead], "one batch shape");
    assert!(a.shape()[lead..] == [m, k] && b.shape()[lead + 1] == n, "shapes of a matrix product");
    if out.is_empty() {
        return;
    }

    let stack = Stack { a, b, m, n, k, lead, accumulate };
    let batch = shape[..lead].iter().product::<usize>();
    match stack.folded_row_stride(batch) {
        Some(stride) if batch > 1 => {
            Stack { m: batch * m, ..stack }.run::<T>(1, stride, out.slice(), epilogue);
        }
        _ => stack.run::<T>(batch, a.strides()[lead], out.slice(), epilogue),
    }
}

struct Stack<'a> {
    a: View<'a>,
    b: View<'a>,
    m: usize,
    n: usize,
    k: usize,
    lead: usize,
    accumulate: bool,
}

impl Stack<'_> {
    /// The row stride under which `a`'s whole stack is one tall matrix, if there is one and `b` is the same for all: then
    /// one large product replaces many.
    fn folded_row_stride(&self, batch: usize) -> Option<isize> {
        let shape = self.a.shape();
        if batch == 1 || (0..self.lead).any(|i| shape[i] > 1 && self.b.strides()[i] != 0) {
            return None;
        }
        let mut folded: Option<(isize, usize)> = None;
        for (&dim, &stride) in shape[..=self.lead].iter().zip(self.a.strides()).rev() {
            match folded {
                _ if dim == 1 => {}
                None => folded = Some((stride, dim)),
                Some((row, count)) if stride == row * count as isize => folded = Some((row, count * dim)),
                Some(_) => return None,
            }
        }
        folded.map(|(row, _)| row)
    }

    /// Offsets of the matrices of `a` and `b` at a place in the stack.
    fn offsets(&self, mut place: usize) -> (usize, usize) {
        let (mut a, mut b) = (self.a.offset() as isize, self.b.offset() as isize);
        for i in (0..self.lead).rev() {
            let dim = self.a.shape()[i];
            let at = (place % dim) as isize;
            place /= dim;
            a += at * self.a.strides()[i];
            b += at * self.b.strides()[i];
        }
        (a as usize, b as usize)
    }

    fn run<T: GemmElement>(
        &self,
        batch: usize,
        a_row_stride: isize,
        out: &mut [T],
        epilogue: EpilogueFn<'_>,
    ) {
        let &Stack { m, n, k, lead, .. } = self;
        let (a_data, b_data) = (self.a.data::<T>(), self.b.data::<T>());
        let (a_col, b_row, b_col) =
            (self.a.strides()[lead + 1], self.b.strides()[lead], self.b.strides()[lead + 1]);
        let (rows, cols) = block_shape(batch, m, n, k);
        let (down, across) = (m.div_ceil(rows), n.div_ceil(cols));
        let group = (MIN_WORK / work(rows, cols, k)).max(1);
        let count = batch * down * across;
        let out = MatMut::row_major(out, batch * m, n);
        let compute = |range: Range<usize>| {
            for i in range {
                let (place, row, col) = (i / across / down, i / across % down * rows, i % across * cols);
                let (row_end, col_end) = ((row + rows).min(m), (col + cols).min(n));
                let (a_offset, b_offset) = self.offsets(place);
                // SAFETY: no two blocks have a row and a column in common.
                let mut c = unsafe { out.share() }.block(place * m + row..place * m + row_end, col..col_end);
                let a = Mat::new(a_data, a_offset, m, k, a_row_stride, a_col).block(row..row_end, 0..k);
                let b = Mat::new(b_data, b_offset, k, n, b_row, b_col).block(0..k, col..col_end);
                gemm(a, b, c.reborrow(), self.accumulate);
                if let Some(epilogue) = epilogue {
                    let first = (place * m + row) * n + col;
                    c.for_runs(|row, run| epilogue(first + row * n, bytemuck::cast_slice_mut(run)));
                }
            }
        };
        pool::for_each(count, group, compute);
    }
}

/// The least work of a chunk, in multiply-adds: about 3 µs, several times the cost of scheduling it.
const MIN_WORK: usize = 128 << 10;

/// The cost of a product in multiply-adds, including the writes of its elements.
fn work(m: usize, n: usize, k: usize) -> usize {
    m.saturating_mul(n).saturating_mul(k.max(8))
}

/// The shape of the blocks that each of `batch` products of m x k and k x n is cut into. It depends on the problem
/// alone, never on the number of threads.
///
/// Every block packs its operands again, so blocks are no smaller than it takes to occupy some threads: on one
/// thread, this cutting costs up to 5 % below 512x512x512, and nothing above. They are also no larger than 512x512, which
/// bounds the memory that packing takes. Rows are cut first: the epilogue of a block of whole rows is one call, not one per row.
/// Deep products read more than they write, and every block reads its operands again: their blocks are larger.
fn block_shape(batch: usize, m: usize, n: usize, k: usize) -> (usize, usize) {
    let work = work(m, n, k);
    let wanted = match work.saturating_mul(batch) >> 20 {
        0..64 => 4usize,
        64..512 => 8,
        _ => 16,
    };
    let fewest = if k >= DEEP { 192 } else { 96 };
    let (mut rows, mut cols, mut pieces) = (m, n, batch);
    loop {
        let enough = pieces >= wanted || work / (pieces / batch) < 2 * MIN_BLOCK;
        // Few rows cannot be split: then narrow blocks are better than one, if none is narrower still.
        let is_wide = cols >= 256 || rows < 96 && cols >= 128 && cols.is_multiple_of(64);
        let (split_cols, split_rows) =
            if enough { (cols > 512, rows > 512) } else { (is_wide && cols > rows, rows >= fewest) };
        if split_cols {
            cols = cols.div_ceil(2).next_multiple_of(64);
        } else if split_rows {
            rows = rows.div_ceil(2).next_multiple_of(2);
        } else {
            return (rows, cols);
        }
        pieces = batch * m.div_ceil(rows) * n.div_ceil(cols);
    }
}

/// The depth of a deep product.
const DEEP: usize = 1024;

/// The least work of a block, in multiply-adds.
const MIN_BLOCK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_few_and_bounded() {
        for (batch, m, n, k) in [
            (1, 1, 1, 1),
            (1, 1, 1_000_000, 8),
            (1, 1_000_000, 1, 8),
            (1, 100, 100, 100),
            (1, 512, 512, 512),
            (1, 4097, 4097, 4097),
            (1, 513, 300_000, 2),
            (64, 256, 256, 256),
            (1 << 40, 2, 2, 2),
        ] {
            let (rows, cols) = block_shape(batch, m, n, k);
            assert!((1..=512).contains(&rows) && (1..=512).contains(&cols));
            let one = rows >= m && cols >= n;
            assert!(one || work(rows, cols, k) >= MIN_BLOCK / 2 || rows > 250 || cols > 250);
            assert!(one || batch < 16 || m > 512 || n > 512);
        }
    }
}
