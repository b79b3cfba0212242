use super::*;
use crate::DType;
use std::cell::Cell;

/// A small generator of test values, so that failures repeat.
struct Values(Cell<u64>);

impl Values {
    fn new(seed: u64) -> Values {
        Values(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x >> 11
    }

    fn below(&self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Multiples of 1/64 in [-2, 2]: every float type holds them exactly.
    fn fill<T: Element>(&self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::from_f64((self.below(257) as f64 - 128.0) / 64.0)).collect()
    }
}

/// How far a correct sum of `k` such products, rounded to `dtype`, may be from the exact one.
fn tolerance(dtype: DType, k: usize, value: f64) -> f64 {
    let eps = |d| match d {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F64 => 2f64.powi(-53),
        _ => 2f64.powi(-24),
    };
    // Summation in f32 (or f64), then one rounding.
    let sum = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    4.0 * k as f64 * k as f64 * eps(sum) + value.abs() * eps(dtype)
}

/// Strides of a rows x cols matrix: row-major, transposed, with gaps, backwards, in turn.
fn layout(kind: usize, rows: usize, cols: usize) -> (usize, usize, isize, isize) {
    let (r, c) = (rows as isize, cols as isize);
    let len = rows * cols;
    match kind % 6 {
        0 => (len, 0, c, 1),
        1 => (len, 0, 1, r),
        2 => (2 * rows * (cols + 3), 1, 2 * (c + 3), 2),
        3 => (len, len.saturating_sub(1), -c, -1),
        4 => (len, len.saturating_sub(rows), 1, -r),
        _ => (len, len.saturating_sub(cols), -c, 1),
    }
}

fn check_gemm<T: GemmElement>(m: usize, k: usize, n: usize, kinds: [usize; 3], accumulate: bool) {
    let values = Values::new((m * 1000 + k * 100 + n * 10 + kinds[0] + kinds[1]) as u64);
    let (a_len, a_off, a_rs, a_cs) = layout(kinds[0], m, k);
    let (b_len, b_off, b_rs, b_cs) = layout(kinds[1], k, n);
    let (c_len, c_off, c_rs, c_cs) = layout(kinds[2], m, n);
    let a: Vec<T> = values.fill(a_len);
    let b: Vec<T> = values.fill(b_len);
    let before: Vec<T> = if accumulate { values.fill(c_len) } else { vec![T::from_f64(f64::NAN); c_len] };
    let mut c = before.clone();
    let at = |off: usize, rs: isize, cs: isize, i: usize, j: usize| {
        (off as isize + i as isize * rs + j as isize * cs) as usize
    };
    gemm(
        Mat::new(&a, a_off, m, k, a_rs, a_cs),
        Mat::new(&b, b_off, k, n, b_rs, b_cs),
        MatMut::new(&mut c, c_off, m, n, c_rs, c_cs),
        accumulate,
    );
    let mut touched = vec![false; c_len];
    for i in 0..m {
        for j in 0..n {
            let place = at(c_off, c_rs, c_cs, i, j);
            let start = if accumulate { before[place].to_f64() } else { 0.0 };
            let expected = (0..k).fold(start, |sum, p| {
                sum + a[at(a_off, a_rs, a_cs, i, p)].to_f64() * b[at(b_off, b_rs, b_cs, p, j)].to_f64()
            });
            let got = c[place].to_f64();
            assert!(
                (got - expected).abs() <= tolerance(T::DTYPE, k + 1, expected),
                "{} {m}x{k}x{n} {kinds:?} ({i}, {j}): {got} for {expected}",
                T::DTYPE
            );
            touched[place] = true;
        }
    }
    for (place, touched) in touched.into_iter().enumerate() {
        assert!(touched || bytemuck::bytes_of(&c[place]) == bytemuck::bytes_of(&before[place]));
    }
}

fn check_gemm_all<T: GemmElement>() {
    let sizes = [
        (1, 1, 1),
        (1, 7, 1),
        (2, 3, 2),
        (8, 8, 8),
        (1, 33, 17),
        (19, 40, 1),
        (5, 1, 9),
        (5, 2, 9),
        (16, 20, 3),
        (32, 60, 10),
        (10, 35, 34),
        (37, 29, 41),
    ];
    for (m, k, n) in sizes {
        for kind in 0..36 {
            check_gemm::<T>(m, k, n, [kind / 6, kind % 6, (kind / 6 + kind) % 6], kind % 2 == 0);
        }
    }
    check_gemm::<T>(130, 600, 140, [0, 0, 0], false);
    check_gemm::<T>(130, 600, 140, [1, 1, 0], true);
}

#[test]
fn gemm_f32() {
    check_gemm_all::<f32>();
}

#[test]
fn gemm_f64() {
    check_gemm_all::<f64>();
}

#[test]
fn gemm_f16() {
    check_gemm_all::<f16>();
}

#[test]
fn gemm_bf16() {
    check_gemm_all::<bf16>();
}

#[test]
fn gemm_without_depth_fills_zeros_or_keeps() {
    fn check<T: GemmElement>() {
        let mut c = vec![T::from_f64(3.0); 6];
        gemm(Mat::row_major(&[], 2, 0), Mat::row_major(&[], 0, 3), MatMut::row_major(&mut c, 2, 3), true);
        assert!(c.iter().all(|x| x.to_f64() == 3.0));
        gemm(Mat::row_major(&[], 2, 0), Mat::row_major(&[], 0, 3), MatMut::row_major(&mut c, 2, 3), false);
        assert!(c.iter().all(|x| x.to_f64() == 0.0));
        gemm(Mat::row_major(&[], 0, 4), Mat::row_major(&c, 4, 1), MatMut::row_major(&mut [], 0, 1), false);
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
}

#[test]
#[should_panic(expected = "matrix outside its buffer")]
fn a_matrix_beyond_its_slice_is_refused() {
    let _ = Mat::new(&[0f32; 5], 0, 2, 3, 3, 1);
}

#[test]
#[should_panic(expected = "matrix outside its buffer")]
fn a_matrix_before_its_slice_is_refused() {
    let _ = Mat::new(&[0f32; 5], 1, 2, 2, -2, 1);
}

#[test]
#[should_panic(expected = "matrix outside its buffer")]
fn an_overflowing_matrix_is_refused() {
    let _ = Mat::new(&[0f32; 5], 0, usize::MAX / 2, 3, isize::MAX / 2, 1);
}
