//! Moving matrices between strided batches, `faer`'s column-major workspace and row-major outputs.

use crate::denormals::KeepDenormals;
use crate::dtype::Complex;
use crate::view::View;
use crate::{DType, Element};
use faer::dyn_stack::{MemStack, StackReq};
use faer::traits::ComplexField;
use faer::{MatMut, MatRef};
use std::mem::MaybeUninit;

/// The element types `faer` computes with.
pub(super) trait Scalar: Element + ComplexField<Real: Element> {
    /// The smallest difference at one.
    const EPSILON: f64;
    /// Elements between the reciprocal of this and this can be squared and summed without overflow or underflow.
    const TAME: f64;
    /// The largest power of two whose reciprocal is normal.
    const LIMIT: f64;

    /// Real and imaginary part.
    fn parts(self) -> Complex<f64>;

    /// The element with these parts; a real type ignores the imaginary part.
    fn from_parts(parts: Complex<f64>) -> Self;

    /// The absolute value.
    fn modulus(self) -> f64 {
        let Complex { re, im } = self.parts();
        if im == 0.0 { re.abs() } else { re.hypot(im) }
    }

    fn is_finite(self) -> bool {
        let Complex { re, im } = self.parts();
        re.is_finite() && im.is_finite()
    }
}

macro_rules! scalar {
    ($T:ty, $epsilon:expr, $tame:expr, $limit:expr, $parts:expr, $from:expr) => {
        impl Scalar for $T {
            const EPSILON: f64 = $epsilon;
            const TAME: f64 = $tame;
            const LIMIT: f64 = $limit;

            fn parts(self) -> Complex<f64> {
                $parts(self)
            }

            fn from_parts(parts: Complex<f64>) -> Self {
                $from(parts)
            }
        }
    };
}

const TAME_DOUBLE: f64 = (1u128 << 120) as f64;
const LIMIT_DOUBLE: f64 = f64::MAX / (2.0 - f64::EPSILON) / 2.0;

scalar!(
    f32,
    f32::EPSILON as f64,
    (1u64 << 40) as f64,
    (1u128 << 126) as f64,
    |x| Complex { re: f64::from(x), im: 0.0 },
    |z: Complex<f64>| z.re as f32
);
scalar!(f64, f64::EPSILON, TAME_DOUBLE, LIMIT_DOUBLE, |re| Complex { re, im: 0.0 }, |z: Complex<f64>| z.re);
scalar!(Complex<f64>, f64::EPSILON, TAME_DOUBLE, LIMIT_DOUBLE, |z| z, |z| z);

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
///
/// While it lives, arithmetic keeps denormal numbers: `faer` computes the reciprocal of a complex number with parts up to 1 by
/// way of one, and would get 0 where denormal numbers are zeros.
pub(super) struct Matrices<'a, T> {
    data: &'a [T],
    view: View<'a>,
    _mode: KeepDenormals,
}

impl<'a, T: Scalar> Matrices<'a, T> {
    pub(super) fn new(view: View<'a>) -> Matrices<'a, T> {
        assert_eq!(view.dtype(), T::DTYPE, "one type for all matrices");
        Matrices { data: view.data(), view, _mode: KeepDenormals::new() }
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
                finite &= value.is_finite();
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
pub(super) fn fill_identity<T: Scalar>(mut to: MatMut<'_, T>) {
    fill(to.as_mut(), T::from_f64(0.0));
    for i in 0..to.nrows().min(to.ncols()) {
        to[(i, i)] = T::from_f64(1.0);
    }
}

/// Divides a finite matrix by a power of two that brings its largest element near one, and returns that power: one,
/// unless squares of elements would overflow or vanish.
pub(super) fn scale_to_unit<T: Scalar>(mut matrix: MatMut<'_, T>) -> f64 {
    let mut largest = 0.0f64;
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            let Complex { re, im } = matrix[(i, j)].parts();
            largest = largest.max(re.abs()).max(im.abs());
        }
    }
    if largest == 0.0 || (1.0 / T::TAME..=T::TAME).contains(&largest) {
        return 1.0;
    }
    let power = largest.log2().floor().exp2().clamp(1.0 / T::LIMIT, T::LIMIT);
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            matrix[(i, j)] = T::from_parts(matrix[(i, j)].parts() / power);
        }
    }
    power
}

/// Multiplies by the power that [`scale_to_unit`] divided by.
pub(super) fn unscale<T: Scalar>(values: &mut [T], power: f64) {
    if power != 1.0 {
        for value in values {
            *value = T::from_parts(value.parts() * power);
        }
    }
}

/// Conjugates every element.
pub(super) fn conjugate<T: Scalar>(mut matrix: MatMut<'_, T>) {
    if T::IS_REAL {
        return;
    }
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            matrix[(i, j)] = T::from_parts(matrix[(i, j)].parts().conj());
        }
    }
}

/// Drops the imaginary parts of the diagonal, which a Hermitian matrix does not have.
pub(super) fn take_real_diagonal<T: Scalar>(mut matrix: MatMut<'_, T>) {
    for i in 0..matrix.nrows() {
        matrix[(i, i)] = T::from_f64(matrix[(i, i)].parts().re);
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
