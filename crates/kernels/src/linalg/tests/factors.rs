//! QR, singular values, eigenvalues and least squares.

use super::*;

/// Matrices of every kind of shape and rank, a batch of two each.
fn matrices<T: Scalar>() -> Vec<Batch<T>> {
    let mut all = Vec::new();
    for (m, n) in
        [(1, 1), (1, 4), (4, 1), (3, 3), (8, 5), (5, 8), (30, 30), (40, 17), (17, 40), (90, 6), (64, 64)]
    {
        all.push(Batch::random(&[2, m, n], (m * 100 + n) as u64));
        all.push(Batch::random(&[2, n, m], (m * 100 + n) as u64).transposed());
        all.push(Batch::random(&[2, m, n], 7).flipped());
        all.push(Batch::zeros(&[2, m, n]));
        for rank in [1, m.min(n) / 2] {
            let (left, right) =
                (Batch::<f64>::random(&[2, m, rank], 5), Batch::<f64>::random(&[2, rank, n], 6));
            let values: Vec<f64> = (0..2).flat_map(|b| left.at(b).times(&right.at(b)).data).collect();
            all.push(Batch::new(&[2, m, n], &values));
        }
    }
    all
}

fn check_qr<T: Scalar>() {
    for a in matrices::<T>() {
        let (m, n) = (a.shape[1], a.shape[2]);
        for full in [false, true] {
            let k = if full { m } else { m.min(n) };
            let (mut q, mut r) = (Batch::<T>::stale(&[2, m, k]), Batch::<T>::stale(&[2, k, n]));
            qr(a.view(), full, q.out(), r.out(), &mut scratch(qr_scratch(T::DTYPE, m, n, full)));
            for b in 0..2 {
                q.at(b).assert_orthonormal_columns(tolerance::<T>());
                q.at(b).times(&r.at(b)).assert_near(&a.at(b), tolerance::<T>());
                assert!((0..k).all(|i| (0..n.min(i)).all(|j| r.at(b).get(i, j) == 0.0)));
            }
        }
    }
}

#[test]
fn qr_multiplies_back() {
    check_qr::<f32>();
    check_qr::<f64>();
}

fn check_svd<T: Scalar>() {
    for a in matrices::<T>() {
        let (m, n) = (a.shape[1], a.shape[2]);
        let k = m.min(n);
        let mut only = Batch::<T>::stale(&[2, k]);
        let need = svd_scratch(T::DTYPE, m, n, SvdVectors::None);
        svd(a.view(), only.out(), None, &mut scratch(need)).unwrap();
        for (kind, left, right) in [(SvdVectors::Thin, k, k), (SvdVectors::Full, m, n)] {
            let (mut u, mut s, mut vh) = (
                Batch::<T>::stale(&[2, m, left]),
                Batch::<T>::stale(&[2, k]),
                Batch::<T>::stale(&[2, right, n]),
            );
            let need = svd_scratch(T::DTYPE, m, n, kind);
            svd(a.view(), s.out(), Some((u.out(), vh.out())), &mut scratch(need)).unwrap();
            for b in 0..2 {
                let values = &s.values()[b * k..][..k];
                assert!(values.windows(2).all(|w| w[0] >= w[1]) && values[k - 1] >= 0.0);
                for (with, without) in values.iter().zip(&only.values()[b * k..]) {
                    assert!((with - without).abs() <= tolerance::<T>() * (1.0 + values[0]));
                }
                u.at(b).assert_orthonormal_columns(tolerance::<T>());
                vh.at(b).transpose().assert_orthonormal_columns(tolerance::<T>());
                let sigma = Matrix::from_fn(left, right, |i, j| if i == j { values[i] } else { 0.0 });
                u.at(b).times(&sigma).times(&vh.at(b)).assert_near(&a.at(b), tolerance::<T>());
            }
        }
    }
}

#[test]
fn svd_multiplies_back() {
    check_svd::<f32>();
    check_svd::<f64>();
}

fn check_eigh<T: Scalar>() {
    for n in [1, 2, 3, 10, 40, 70] {
        for (kind, a) in [positive::<T>(2, n, 3), Batch::random(&[2, n, n], 9), Batch::zeros(&[2, n, n])]
            .into_iter()
            .enumerate()
        {
            let (mut w, mut v) = (Batch::<T>::stale(&[2, n]), Batch::<T>::stale(&[2, n, n]));
            eigh(a.view(), w.out(), Some(v.out()), &mut scratch(eigh_scratch(T::DTYPE, n, true))).unwrap();
            let mut only = Batch::<T>::stale(&[2, n]);
            eigh(a.view(), only.out(), None, &mut scratch(eigh_scratch(T::DTYPE, n, false))).unwrap();
            for b in 0..2 {
                let values = &w.values()[b * n..][..n];
                assert!(values.windows(2).all(|p| p[0] <= p[1]), "ascending, {kind}");
                let scale = 1.0 + values[0].abs().max(values[n - 1].abs());
                for (with, without) in values.iter().zip(&only.values()[b * n..]) {
                    assert!((with - without).abs() <= tolerance::<T>() * scale);
                }
                let v = v.at(b);
                v.assert_orthonormal_columns(tolerance::<T>());
                let scaled = Matrix::from_fn(n, n, |i, j| v.get(i, j) * values[j]);
                scaled.times(&v.transpose()).assert_near(&symmetric_of_lower(&a.at(b)), tolerance::<T>());
            }
        }
    }
}

#[test]
fn eigh_multiplies_back() {
    check_eigh::<f32>();
    check_eigh::<f64>();
    let a = Batch::<f64>::new(&[2, 2], &[2.0, 0.0, 1.0, 2.0]);
    let mut w = Batch::<f64>::zeros(&[2]);
    eigh(a.view(), w.out(), None, &mut scratch(eigh_scratch(DType::F64, 2, false))).unwrap();
    assert!((w.data[0] - 1.0).abs() < 1e-15 && (w.data[1] - 3.0).abs() < 1e-15);
}

#[test]
fn singular_values_of_extreme_matrices() {
    for scale in [1e-300, 1e-160, 1e160, 1e300] {
        for n in [3, 30] {
            let a = Batch::<f64>::random(&[n, n], 3);
            let big = Batch::<f64>::new(&[n, n], &a.data.iter().map(|x| x * scale).collect::<Vec<_>>());
            let values = |a: &Batch<f64>| {
                let mut s = Batch::<f64>::zeros(&[n]);
                let need = svd_scratch(DType::F64, n, n, SvdVectors::None);
                svd(a.view(), s.out(), None, &mut scratch(need)).unwrap();
                s.data
            };
            let eigen = |a: &Batch<f64>| {
                let mut w = Batch::<f64>::zeros(&[n]);
                eigh(a.view(), w.out(), None, &mut scratch(eigh_scratch(DType::F64, n, false))).unwrap();
                w.data
            };
            for (plain, scaled) in [(values(&a), values(&big)), (eigen(&a), eigen(&big))] {
                let largest = plain.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                for (x, y) in plain.iter().zip(&scaled) {
                    assert!((x - y / scale).abs() <= 1e-13 * largest, "{x} {y} at {scale}");
                }
            }
        }
    }
}

#[test]
fn qr_and_least_squares_of_extreme_matrices() {
    for scale in [1e-300, 1e300] {
        let (m, n) = (20, 7);
        let a = Batch::<f64>::random(&[m, n], 3);
        let big = Batch::<f64>::new(&[m, n], &a.data.iter().map(|x| x * scale).collect::<Vec<_>>());
        let (mut q, mut r) = (Batch::<f64>::stale(&[m, n]), Batch::<f64>::stale(&[n, n]));
        qr(big.view(), false, q.out(), r.out(), &mut scratch(qr_scratch(DType::F64, m, n, false)));
        let r = Matrix::from_fn(n, n, |i, j| r.at(0).get(i, j) / scale);
        q.at(0).times(&r).assert_near(&a.at(0), 1e-14);
        let b = Batch::<f64>::random(&[m, 1], 4);
        let mut work = scratch(lstsq_scratch(DType::F64, m, n, 1));
        let (mut x, mut y) = (Batch::<f64>::stale(&[n, 1]), Batch::<f64>::stale(&[n, 1]));
        lstsq(a.view(), b.view(), None, x.out(), None, &mut work).unwrap();
        lstsq(big.view(), b.view(), None, y.out(), None, &mut work).unwrap();
        Matrix::from_fn(n, 1, |i, _| y.data[i] * scale).assert_near(&x.at(0), 1e-13);
    }
}

fn check_lstsq<T: Scalar>() {
    for a in matrices::<T>() {
        let (m, n) = (a.shape[1], a.shape[2]);
        let b = Batch::<T>::random(&[2, m, 3], 12);
        let mut x = Batch::<T>::stale(&[2, n, 3]);
        let mut ranks = [0i64; 2];
        let mut work = scratch(lstsq_scratch(T::DTYPE, m, n, 3));
        let rank_out = ViewMut::new(DType::I64, bytemuck::cast_slice_mut(&mut ranks), &[2]);
        lstsq(a.view(), b.view(), None, x.out(), Some(rank_out), &mut work).unwrap();
        let k = m.min(n);
        let mut vh = Batch::<T>::stale(&[2, k, n]);
        let (mut u, mut s) = (Batch::<T>::stale(&[2, m, k]), Batch::<T>::stale(&[2, k]));
        let need = svd_scratch(T::DTYPE, m, n, SvdVectors::Thin);
        svd(a.view(), s.out(), Some((u.out(), vh.out())), &mut scratch(need)).unwrap();
        for (e, &found) in ranks.iter().enumerate() {
            let values = &s.values()[e * k..][..k];
            let limit = T::EPSILON * m.max(n) as f64 * values[0];
            let rank = values.iter().filter(|&&v| v > limit).count();
            assert_eq!(found, rank as i64);
            let smallest = if rank > 0 { values[rank - 1] } else { 1.0 };
            let near = tolerance::<T>() * (1.0 + values[0] / smallest) / smallest.min(1.0);
            // x = V S⁺ Uᵀ b, the pseudo-inverse applied: it minimises the residual and is the shortest.
            let projected = u.at(e).transpose().times(&b.at(e));
            let filtered =
                Matrix::from_fn(k, 3, |i, j| if i < rank { projected.get(i, j) / values[i] } else { 0.0 });
            x.at(e).assert_near(&vh.at(e).transpose().times(&filtered), near);
        }
    }
}

#[test]
fn least_squares_is_the_pseudo_inverse() {
    check_lstsq::<f32>();
    check_lstsq::<f64>();
}

#[test]
fn rcond_cuts_small_singular_values() {
    let a = Batch::<f64>::new(&[2, 2], &[1.0, 0.0, 0.0, 1e-3]);
    let b = Batch::<f64>::new(&[2, 1], &[1.0, 1.0]);
    let mut work = scratch(lstsq_scratch(DType::F64, 2, 2, 1));
    let mut x = Batch::<f64>::zeros(&[2, 1]);
    lstsq(a.view(), b.view(), Some(1e-2), x.out(), None, &mut work).unwrap();
    assert!((x.data[0] - 1.0).abs() < 1e-14 && x.data[1].abs() < 1e-14);
    lstsq(a.view(), b.view(), None, x.out(), None, &mut work).unwrap();
    assert!((x.data[0] - 1.0).abs() < 1e-14 && (x.data[1] - 1e3).abs() < 1e-9);
}

/// Reciprocals of complex numbers whose parts are below 1 and whose absolute value is above it are computed by way of denormal numbers.
#[test]
fn complex_matrices_are_factorised_where_denormal_numbers_are_zeros() {
    use crate::denormals::FlushDenormals;
    use crate::dtype::Complex;

    let _mode = FlushDenormals::new();
    for n in [2usize, 3, 5, 9, 16] {
        let parts = random(2 * n * n, n as u64);
        let a: Vec<Complex<f64>> = parts.chunks(2).map(|p| Complex { re: p[0], im: p[1] }).collect();
        let at = |m: &[Complex<f64>], i: usize, j: usize| m[i * n + j];
        let strides = [n as isize, 1];
        let shape = [n, n];
        let view = View::new(DType::C128, bytemuck::cast_slice(&a), 0, &shape, &strides);
        let mut out = vec![Complex { re: 0.0, im: 0.0 }; n * n];
        let mut other = out.clone();
        let mut values = vec![0.0f64; n];
        svd(
            view,
            ViewMut::new(DType::F64, bytemuck::cast_slice_mut(&mut values), &[n]),
            Some((
                ViewMut::new(DType::C128, bytemuck::cast_slice_mut(&mut out), &[n, n]),
                ViewMut::new(DType::C128, bytemuck::cast_slice_mut(&mut other), &[n, n]),
            )),
            &mut scratch(svd_scratch(DType::C128, n, n, SvdVectors::Thin)),
        )
        .unwrap();
        for i in 0..n {
            for j in 0..n {
                let sum: Complex<f64> = (0..n).map(|k| at(&out, i, k) * values[k] * at(&other, k, j)).sum();
                assert!((sum - at(&a, i, j)).norm() < 1e-12, "{n}: {sum} for {}", at(&a, i, j));
            }
        }
    }
}
