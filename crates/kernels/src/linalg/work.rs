//! Moving matrices between strided batches, `faer`'s column-major workspace and row-major outputs.

use crate::view::View;
use crate::{DType, Element};
use faer::dyn_stack::{MemStack, StackReq};
use faer::traits::RealField;
use faer::{MatMut, MatRef};
use std::mem::MaybeUninit;

/// The element types `faer` computes with.
pub(super) trait Real: Element + RealField {
    /// The smallest difference at one.
    const EPSILON: f64;
    /// Elements between the reciprocal of this and this can be squared and summed without overflow or underflow.
    const TAME: f64;
    /// The largest power of two whose reciprocal is normal.
    const LIMIT: f64;
}

impl Real for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    const TAME: f64 = (1u64 << 40) as f64;
    const LIMIT: f64 = (1u128 << 126) as f64;
}

impl Real for f64 {
    const EPSILON: f64 = f64::EPSILON;
    const TAME: f64 = (1u128 << 120) as f64;
    const LIMIT: f64 = f64::MAX / (2.0 - f64::EPSILON) / 2.0;
}

/// Splits `[..., rows, columns]` into the size of the batch, rows and columns.
///
/// # Panics
/// If there are fewer than two dimensions.
pub(super) fn dims(shape: &[usize]) -> (usize, usize, usize) {
    let [batch @ .., m, n] = shape else { panic!("a matrix has two dimensions") };
    (batch.iter().product(), *m, *n)
}

/// As [`dims`], for square matrices.
pub(super) fn square_dims(shape: &[usize]) -> (usize, usize) {
    let (batch, m, n) = dims(shape);
    assert_eq!(m, n, "a square matrix");
    (batch, n)
}

/// A strided batch of matrices.
pub(super) struct Matrices<'a, T> {
    data: &'a [T],
    view: View<'a>,
}

impl<'a, T: Element> Matrices<'a, T> {
    pub(super) fn new(view: View<'a>) -> Matrices<'a, T> {
        assert_eq!(view.dtype(), T::DTYPE, "one type for all matrices");
        Matrices { data: view.data(), view }
    }

    /// Writes entry `batch` into `to`, and returns whether all of it is finite.
    pub(super) fn load(&self, batch: usize, mut to: MatMut<'_, T>) -> bool {
        let (shape, strides) = (self.view.shape(), self.view.strides());
        let split = shape.len() - 2;
        let (mut start, mut rest) = (self.view.offset() as isize, batch);
        for (&dim, &stride) in shape[..split].iter().zip(&strides[..split]).rev() {
            start += (rest % dim) as isize * stride;
            rest /= dim;
        }
        let (row_stride, col_stride) = (strides[split], strides[split + 1]);
        let mut finite = true;
        for j in 0..to.ncols() {
            for i in 0..to.nrows() {
                let at = start + i as isize * row_stride + j as isize * col_stride;
                let value = self.data[at as usize];
                finite &= value.to_f64().is_finite();
                to[(i, j)] = value;
            }
        }
        finite
    }
}

/// Entry `batch` of a contiguous output, as a matrix.
pub(super) fn entry<T>(out: &mut [T], batch: usize, rows: usize, cols: usize) -> MatMut<'_, T> {
    let len = rows * cols;
    MatMut::from_row_major_slice_mut(&mut out[batch * len..][..len], rows, cols)
}

/// Copies `from` into `to`, both of any layout.
pub(super) fn copy<T: Copy>(from: MatRef<'_, T>, mut to: MatMut<'_, T>) {
    for i in 0..from.nrows() {
        for j in 0..from.ncols() {
            to[(i, j)] = from[(i, j)];
        }
    }
}

/// Fills a matrix of any layout.
pub(super) fn fill<T: Copy>(mut to: MatMut<'_, T>, value: T) {
    for i in 0..to.nrows() {
        for j in 0..to.ncols() {
            to[(i, j)] = value;
        }
    }
}

/// Writes the identity, also into a matrix that is not square.
pub(super) fn fill_identity<T: Real>(mut to: MatMut<'_, T>) {
    fill(to.as_mut(), T::from_f64(0.0));
    for i in 0..to.nrows().min(to.ncols()) {
        to[(i, i)] = T::from_f64(1.0);
    }
}

/// Divides a finite matrix by a power of two that brings its largest element near one, and returns that power: one,
/// unless squares of elements would overflow or vanish.
pub(super) fn scale_to_unit<T: Real>(mut matrix: MatMut<'_, T>) -> f64 {
    let mut largest = 0.0f64;
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            largest = largest.max(matrix[(i, j)].to_f64().abs());
        }
    }
    if largest == 0.0 || (1.0 / T::TAME..=T::TAME).contains(&largest) {
        return 1.0;
    }
    let power = largest.log2().floor().exp2().clamp(1.0 / T::LIMIT, T::LIMIT);
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            matrix[(i, j)] = T::from_f64(matrix[(i, j)].to_f64() / power);
        }
    }
    power
}

/// Multiplies by the power that [`scale_to_unit`] divided by.
pub(super) fn unscale<T: Real>(values: &mut [T], power: f64) {
    if power != 1.0 {
        for value in values {
            *value = T::from_f64(value.to_f64() * power);
        }
    }
}

/// The bytes a caller must provide for `need`, wherever they start.
pub(super) fn bytes(need: StackReq) -> usize {
    need.unaligned_bytes_required()
}

/// `faer`'s view of the scratch bytes.
pub(super) fn stack(scratch: &mut [u8]) -> &mut MemStack {
    let len = scratch.len();
    let start = scratch.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: same memory, same length, same borrow. The stack is used for arrays of floats and indices only,
    // which have no padding: whatever is written leaves every byte initialised.
    MemStack::new(unsafe { std::slice::from_raw_parts_mut(start, len) })
}

/// Panics unless `dtype` is the type of every view in the list.
pub(super) fn assert_dtype(dtype: DType, others: &[DType]) {
    assert!(others.iter().all(|&other| other == dtype), "one type for all matrices");
}
