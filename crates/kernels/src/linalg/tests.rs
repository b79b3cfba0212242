mod factors;

use super::work::Scalar;
use super::*;
use crate::DType;
use crate::view::{View, ViewMut};

/// A batch of matrices with any strides, and its entries read one by one.
#[derive(Clone)]
struct Batch<T> {
    data: Vec<T>,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl<T: Scalar> Batch<T> {
    fn new(shape: &[usize], values: &[f64]) -> Batch<T> {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i] as isize;
        }
        let data = values.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        assert_eq!(data.len(), shape.iter().product::<usize>());
        Batch { data, offset: 0, shape: shape.to_vec(), strides }
    }

    /// What an output may hold before it is written.
    fn stale(shape: &[usize]) -> Batch<T> {
        Batch::random(shape, 99)
    }

    fn zeros(shape: &[usize]) -> Batch<T> {
        Batch::new(shape, &vec![0.0; shape.iter().product()])
    }

    fn random(shape: &[usize], seed: u64) -> Batch<T> {
        Batch::new(shape, &random(shape.iter().product(), seed))
    }

    fn transposed(mut self) -> Batch<T> {
        let n = self.shape.len();
        self.shape.swap(n - 2, n - 1);
        self.strides.swap(n - 2, n - 1);
        self
    }

    /// Rows in reverse order.
    fn flipped(mut self) -> Batch<T> {
        let row = self.shape.len() - 2;
        self.offset = (self.offset as isize + (self.shape[row] as isize - 1) * self.strides[row]) as usize;
        self.strides[row] = -self.strides[row];
        self
    }

    fn view(&self) -> View<'_> {
        View::new(T::DTYPE, bytemuck::cast_slice(&self.data), self.offset, &self.shape, &self.strides)
    }

    fn out(&mut self) -> ViewMut<'_> {
        ViewMut::new(T::DTYPE, bytemuck::cast_slice_mut(&mut self.data), &self.shape)
    }

    fn at(&self, batch: usize) -> Matrix {
        let n = self.shape.len();
        let (rows, cols) = (self.shape[n - 2], self.shape[n - 1]);
        let mut start = self.offset as isize;
        let mut rest = batch;
        for axis in (0..n - 2).rev() {
            start += (rest % self.shape[axis]) as isize * self.strides[axis];
            rest /= self.shape[axis];
        }
        Matrix::from_fn(rows, cols, |i, j| {
            let at = start + i as isize * self.strides[n - 2] + j as isize * self.strides[n - 1];
            self.data[at as usize].to_f64()
        })
    }

    fn values(&self) -> Vec<f64> {
        self.data.iter().map(|v| v.to_f64()).collect()
    }
}

/// Plain `f64` matrices to check with.
#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> f64) -> Matrix {
        let data = (0..rows * cols).map(|i| f(i / cols.max(1), i % cols.max(1))).collect();
        Matrix { rows, cols, data }
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.data[i * self.cols + j]
    }

    fn transpose(&self) -> Matrix {
        Matrix::from_fn(self.cols, self.rows, |i, j| self.get(j, i))
    }

    fn times(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.cols, other.rows);
        Matrix::from_fn(self.rows, other.cols, |i, j| {
            (0..self.cols).map(|k| self.get(i, k) * other.get(k, j)).sum()
        })
    }

    fn norm(&self) -> f64 {
        self.data.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    fn assert_near(&self, other: &Matrix, tolerance: f64) {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        let gap = Matrix::from_fn(self.rows, self.cols, |i, j| self.get(i, j) - other.get(i, j)).norm();
        assert!(gap <= tolerance * (1.0 + other.norm()), "distance {gap}");
    }

    fn assert_orthonormal_columns(&self, tolerance: f64) {
        let identity = Matrix::from_fn(self.cols, self.cols, |i, j| f64::from(i == j));
        self.transpose().times(self).assert_near(&identity, tolerance);
    }
}

fn random(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn scratch(bytes: usize) -> Vec<u8> {
    vec![0xff; bytes]
}

fn tolerance<T: Scalar>() -> f64 {
    T::EPSILON * 500.0
}

/// `b bᵀ + 1`, well conditioned and positive definite, with arbitrary values above the diagonal.
fn positive<T: Scalar>(batches: usize, n: usize, seed: u64) -> Batch<T> {
    let root = Batch::<f64>::random(&[batches, n, n], seed);
    let mut values = Vec::new();
    for b in 0..batches {
        let square = root.at(b).times(&root.at(b).transpose());
        for i in 0..n {
            for j in 0..n {
                values.push(if j > i { 99.0 } else { square.get(i, j) + f64::from(i == j) });
            }
        }
    }
    Batch::new(&[batches, n, n], &values)
}

fn symmetric_of_lower(a: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows, a.cols, |i, j| a.get(i.max(j), i.min(j)))
}

fn check_cholesky<T: Scalar>() {
    for n in [1, 2, 5, 33, 70] {
        let a = positive::<T>(3, n, n as u64);
        let mut l = Batch::<T>::stale(&[3, n, n]);
        cholesky(a.view(), l.out(), &mut scratch(cholesky_scratch(T::DTYPE, n))).unwrap();
        for b in 0..3 {
            let l = l.at(b);
            assert!((0..n).all(|i| l.get(i, i) > 0.0 && (i + 1..n).all(|j| l.get(i, j) == 0.0)));
            l.times(&l.transpose()).assert_near(&symmetric_of_lower(&a.at(b)), tolerance::<T>());
        }
    }
}

#[test]
fn cholesky_multiplies_back() {
    check_cholesky::<f32>();
    check_cholesky::<f64>();
}

#[test]
fn cholesky_names_the_entry_that_is_not_positive_definite() {
    for bad in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
        let a = Batch::<f64>::new(&[2, 2, 2], &[2.0, 0.0, 1.0, 2.0, 2.0, 0.0, 1.0, bad]);
        let mut out = Batch::<f64>::zeros(&[2, 2, 2]);
        let result = cholesky(a.view(), out.out(), &mut scratch(cholesky_scratch(DType::F64, 2)));
        assert_eq!(result, Err(LinalgError::NotPositiveDefinite { batch: 1 }), "{bad}");
    }
    assert_eq!(
        LinalgError::NotPositiveDefinite { batch: 1 }.to_string(),
        "matrix 1 of the batch is not positive definite"
    );
}

fn check_solve<T: Scalar>() {
    for (n, k) in [(1, 1), (2, 3), (5, 0), (7, 2), (40, 9)] {
        let inputs = [
            Batch::<T>::random(&[2, 2, n, n], 3),
            Batch::<T>::random(&[2, 2, n, n], 4).transposed(),
            Batch::<T>::random(&[2, 2, n, n], 5).flipped(),
        ];
        for a in inputs {
            let b = Batch::<T>::random(&[2, 2, k, n], 6).transposed();
            let mut x = Batch::<T>::stale(&[2, 2, n, k]);
            solve(a.view(), b.view(), x.out(), &mut scratch(solve_scratch(T::DTYPE, n, k))).unwrap();
            let mut inverse = Batch::<T>::stale(&[2, 2, n, n]);
            inv(a.view(), inverse.out(), &mut scratch(inv_scratch(T::DTYPE, n))).unwrap();
            for entry in 0..4 {
                let (a, x, b) = (a.at(entry), x.at(entry), b.at(entry));
                let near = tolerance::<T>() * (1.0 + x.norm()) * (1.0 + a.norm());
                a.times(&x).assert_near(&b, near);
                let inverse = inverse.at(entry);
                let identity = Matrix::from_fn(n, n, |i, j| f64::from(i == j));
                a.times(&inverse).assert_near(&identity, tolerance::<T>() * (1.0 + inverse.norm()));
            }
        }
    }
}

#[test]
fn solve_and_inverse_satisfy_their_equations() {
    check_solve::<f32>();
    check_solve::<f64>();
}

#[test]
fn a_broadcast_matrix_is_solved_for_every_entry() {
    let mut a = Batch::<f64>::new(&[1, 2, 2], &[4.0, 1.0, 2.0, 3.0]);
    (a.shape[0], a.strides[0]) = (3, 0);
    let b = Batch::<f64>::random(&[3, 2, 1], 8);
    let mut x = Batch::<f64>::zeros(&[3, 2, 1]);
    solve(a.view(), b.view(), x.out(), &mut scratch(solve_scratch(DType::F64, 2, 1))).unwrap();
    for entry in 0..3 {
        a.at(entry).times(&x.at(entry)).assert_near(&b.at(entry), 1e-14);
    }
}

#[test]
fn singular_matrices_are_errors_with_determinant_zero() {
    let rank_one = |n: usize| Batch::<f64>::new(&[1, n, n], &vec![1.0; n * n]);
    let zeros = Batch::<f64>::zeros(&[1, 3, 3]);
    let repeated = Batch::<f64>::new(&[1, 3, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
    for a in [rank_one(2), rank_one(50), zeros, repeated] {
        let n = a.shape[1];
        let mut x = Batch::<f64>::zeros(&[1, n, 1]);
        let b = Batch::<f64>::random(&[1, n, 1], 1);
        let mut work = scratch(solve_scratch(DType::F64, n, n).max(inv_scratch(DType::F64, n)));
        let singular = Err(LinalgError::Singular { batch: 0 });
        assert_eq!(solve(a.view(), b.view(), x.out(), &mut work), singular);
        let mut inverse = Batch::<f64>::zeros(&[1, n, n]);
        assert_eq!(inv(a.view(), inverse.out(), &mut work), singular);
        let (mut d, mut sign, mut log) =
            (Batch::<f64>::zeros(&[1]), Batch::<f64>::zeros(&[1]), Batch::<f64>::zeros(&[1]));
        det(a.view(), d.out(), &mut work);
        assert_eq!(d.data, [0.0]);
        slogdet(a.view(), sign.out(), log.out(), &mut work);
        assert_eq!((sign.data[0], log.data[0]), (0.0, f64::NEG_INFINITY));
    }
}

fn det_of(a: &Batch<f64>) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let n = a.shape[a.shape.len() - 1];
    let batch = &a.shape[..a.shape.len() - 2];
    let mut work = scratch(det_scratch(DType::F64, n));
    let (mut d, mut sign, mut log) = (Batch::zeros(batch), Batch::zeros(batch), Batch::zeros(batch));
    det(a.view(), d.out(), &mut work);
    slogdet(a.view(), sign.out(), log.out(), &mut work);
    (d.data, sign.data, log.data)
}

/// By expansion along the first row.
fn cofactor_det(a: &Matrix) -> f64 {
    if a.rows == 0 {
        return 1.0;
    }
    (0..a.cols)
        .map(|c| {
            let minor =
                Matrix::from_fn(a.rows - 1, a.cols - 1, |i, j| a.get(i + 1, if j < c { j } else { j + 1 }));
            let sign = if c % 2 == 0 { 1.0 } else { -1.0 };
            sign * a.get(0, c) * cofactor_det(&minor)
        })
        .sum()
}

#[test]
fn determinants_match_cofactor_expansion() {
    for n in 0..=6 {
        let a = Batch::<f64>::random(&[5, n, n], n as u64 + 1);
        let (d, sign, log) = det_of(&a);
        for b in 0..5 {
            let expected = cofactor_det(&a.at(b));
            assert!((d[b] - expected).abs() < 1e-13, "{} {expected}", d[b]);
            assert_eq!(sign[b], expected.signum());
            assert!((log[b] - expected.abs().ln()).abs() < 1e-10);
        }
    }
}

#[test]
fn determinants_neither_overflow_nor_vanish_on_the_way() {
    let diagonal = |values: &[f64]| {
        let n = values.len();
        let matrix = Matrix::from_fn(n, n, |i, j| if i == j { values[i] } else { 0.0 });
        Batch::<f64>::new(&[n, n], &matrix.data)
    };
    let (d, sign, log) = det_of(&diagonal(&[1e200, -1e200, 1e-200, 1e-199]));
    assert!((d[0] / -10.0 - 1.0).abs() < 1e-14 && sign[0] == -1.0 && (log[0] - 10f64.ln()).abs() < 1e-12);
    assert_eq!(det_of(&diagonal(&[1e200, 1e200])).0, [f64::INFINITY]);
    assert_eq!(det_of(&diagonal(&[1e-200, 1e-200])).0, [0.0]);
    assert!((det_of(&diagonal(&[1e-160, 1e-160])).0[0] / 1e-320 - 1.0).abs() < 1e-3);
    let (d, sign, log) = det_of(&diagonal(&[1.0, f64::NAN]));
    assert!(d[0].is_nan() && sign[0].is_nan() && log[0].is_nan());
}

fn check_triangular<T: Scalar>() {
    for n in [1, 3, 20] {
        let mut a = Batch::<T>::random(&[2, n, n], 4);
        for b in 0..2 {
            for i in 0..n {
                a.data[(b * n + i) * n + i] = T::from_f64(2.0 + i as f64);
            }
        }
        let b = Batch::<T>::random(&[2, n, 3], 5);
        for flags in 0..8 {
            let (lower, unit, transpose) = (flags & 1 > 0, flags & 2 > 0, flags & 4 > 0);
            let mut x = Batch::<T>::stale(&[2, n, 3]);
            let mut work = scratch(triangular_solve_scratch(T::DTYPE, n));
            triangular_solve(a.view(), b.view(), lower, unit, transpose, x.out(), &mut work).unwrap();
            for entry in 0..2 {
                let full = a.at(entry);
                let triangle = Matrix::from_fn(n, n, |i, j| match (i == j, (j < i) == lower) {
                    (true, _) if unit => 1.0,
                    (true, _) | (_, true) => full.get(i, j),
                    _ => 0.0,
                });
                let triangle = if transpose { triangle.transpose() } else { triangle };
                let scale = 1.0 + x.at(entry).norm();
                triangle.times(&x.at(entry)).assert_near(&b.at(entry), tolerance::<T>() * scale);
            }
        }
    }
}

#[test]
fn triangular_solve_reads_one_triangle() {
    check_triangular::<f32>();
    check_triangular::<f64>();
    let a = Batch::<f64>::new(&[2, 2], &[1.0, 0.0, 5.0, 0.0]);
    let (b, mut x) = (Batch::<f64>::random(&[2, 1], 1), Batch::<f64>::zeros(&[2, 1]));
    let mut work = scratch(triangular_solve_scratch(DType::F64, 2));
    let result = triangular_solve(a.view(), b.view(), true, false, false, x.out(), &mut work);
    assert_eq!(result, Err(LinalgError::Singular { batch: 0 }));
    triangular_solve(a.view(), b.view(), true, true, false, x.out(), &mut work).unwrap();
}

#[test]
fn empty_matrices_have_empty_answers() {
    type B = Batch<f64>;
    for batch in [0, 2] {
        let a = B::zeros(&[batch, 0, 0]);
        cholesky(a.view(), B::zeros(&[batch, 0, 0]).out(), &mut scratch(cholesky_scratch(DType::F64, 0)))
            .unwrap();
        inv(a.view(), B::zeros(&[batch, 0, 0]).out(), &mut scratch(inv_scratch(DType::F64, 0))).unwrap();
        let (d, sign, log) = det_of(&a);
        assert_eq!((d, sign, log), (vec![1.0; batch], vec![1.0; batch], vec![0.0; batch]));
        let b = B::zeros(&[batch, 0, 4]);
        solve(
            a.view(),
            b.view(),
            B::zeros(&[batch, 0, 4]).out(),
            &mut scratch(solve_scratch(DType::F64, 0, 4)),
        )
        .unwrap();
        let mut w = B::zeros(&[batch, 0]);
        let mut v = B::zeros(&[batch, 0, 0]);
        eigh(a.view(), w.out(), Some(v.out()), &mut scratch(eigh_scratch(DType::F64, 0, true))).unwrap();
    }
    for (m, n) in [(0, 3), (3, 0), (0, 0)] {
        let a = B::zeros(&[2, m, n]);
        let (mut q, mut r) = (B::random(&[2, m, m], 1), B::zeros(&[2, m, n]));
        qr(a.view(), true, q.out(), r.out(), &mut scratch(qr_scratch(DType::F64, m, n, true)));
        let (mut u, mut s, mut vh) = (B::random(&[2, m, m], 1), B::zeros(&[2, 0]), B::random(&[2, n, n], 1));
        let mut work = scratch(svd_scratch(DType::F64, m, n, SvdVectors::Full));
        svd(a.view(), s.out(), Some((u.out(), vh.out())), &mut work).unwrap();
        for basis in [q.at(1), u.at(1), vh.at(1)] {
            let identity = Matrix::from_fn(basis.rows, basis.rows, |i, j| f64::from(i == j));
            basis.assert_near(&identity, 0.0);
        }
        let (b, mut x) = (B::random(&[2, m, 2], 1), B::random(&[2, n, 2], 1));
        let mut work = scratch(lstsq_scratch(DType::F64, m, n, 2));
        lstsq(a.view(), b.view(), None, x.out(), None, &mut work).unwrap();
        assert!(x.data.iter().all(|&v| v == 0.0));
    }
}

#[test]
fn nan_and_infinity_give_nan_or_an_error() {
    for n in [1, 3, 40] {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in [0, n * n / 2, n * n - 1] {
                let mut a = Batch::<f64>::random(&[n, n], 2);
                a.data[at] = bad;
                let (mut x, mut y) = (Batch::<f64>::zeros(&[n, n]), Batch::<f64>::zeros(&[n, n]));
                let b = Batch::<f64>::random(&[n, n], 3);
                qr(a.view(), false, x.out(), y.out(), &mut scratch(qr_scratch(DType::F64, n, n, false)));
                assert!(x.data.iter().chain(&y.data).all(|v| v.is_nan()));
                let mut work = scratch(lstsq_scratch(DType::F64, n, n, n));
                lstsq(a.view(), b.view(), None, x.out(), None, &mut work).unwrap();
                assert!(x.data.iter().all(|v| v.is_nan()));
                let failed = Err(LinalgError::NoConvergence { batch: 0 });
                let mut s = Batch::<f64>::zeros(&[n]);
                let mut work = scratch(svd_scratch(DType::F64, n, n, SvdVectors::Thin));
                assert_eq!(svd(a.view(), s.out(), Some((x.out(), y.out())), &mut work), failed);
                let lower = Batch::<f64> { data: a.data.clone(), ..a.clone() };
                let below = at / n >= at % n;
                let mut work = scratch(eigh_scratch(DType::F64, n, true));
                let result = eigh(lower.view(), s.out(), Some(x.out()), &mut work);
                assert_eq!(result, if below { failed } else { Ok(()) });
                // Direct methods carry the bad value along; they must only return.
                let _ = solve(a.view(), b.view(), x.out(), &mut scratch(solve_scratch(DType::F64, n, n)));
                let _ = inv(a.view(), x.out(), &mut scratch(inv_scratch(DType::F64, n)));
                let _ = cholesky(a.view(), x.out(), &mut scratch(cholesky_scratch(DType::F64, n)));
                det_of(&a);
            }
        }
    }
}
