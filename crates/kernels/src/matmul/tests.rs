use super::*;
use crate::pool::tests::with_threads;
use crate::{Bool, DType, View, ViewMut};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

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
            check_gemm::<T>(m, k, n, [kind / 6, kind % 6, kind * 5 / 6 % 6], kind % 2 == 0);
        }
    }
    check_gemm::<T>(130, 300, 140, [0, 0, 0], false);
    check_gemm::<T>(3, 300, 5, [0, 1, 0], true);
    check_gemm::<T>(1, 600, 7, [0, 1, 0], true);
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
fn a_matrix_beyond_its_slice_panics() {
    let _ = Mat::new(&[0f32; 5], 0, 2, 3, 3, 1);
}

#[test]
#[should_panic(expected = "matrix outside its buffer")]
fn a_matrix_before_its_slice_panics() {
    let _ = Mat::new(&[0f32; 5], 1, 2, 2, -2, 1);
}

#[test]
#[should_panic(expected = "matrix outside its buffer")]
fn an_overflowing_matrix_panics() {
    let _ = Mat::new(&[0f32; 5], 0, usize::MAX / 2, 3, isize::MAX / 2, 1);
}

/// A stack of matrices: its elements, and how they lie.
struct Stack<T> {
    data: Vec<T>,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl<T: Element> Stack<T> {
    /// Matrices of layout `kind`; along dimensions marked in `broadcast` all are the same one. Places between and
    /// around elements hold `gap`.
    fn new(
        values: &Values,
        kind: usize,
        batch: &[usize],
        broadcast: usize,
        rows: usize,
        cols: usize,
        gap: T,
    ) -> Self {
        let (len, offset, rs, cs) = layout(kind, rows, cols);
        let mut shape = vec![0; batch.len() + 2];
        let mut strides = vec![0; batch.len() + 2];
        let mut total = len;
        for i in (0..batch.len()).rev() {
            shape[i] = batch[i];
            if broadcast >> i & 1 == 0 {
                strides[i] = total as isize;
                total *= batch[i];
            }
        }
        shape[batch.len()..].copy_from_slice(&[rows, cols]);
        strides[batch.len()..].copy_from_slice(&[rs, cs]);
        let mut stack = Stack { data: vec![gap; total], offset, shape, strides };
        for i in 0..stack.len() {
            let at = stack.at(i);
            stack.data[at] = values.fill::<T>(1)[0];
        }
        stack
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Where the element with this row-major number is.
    fn at(&self, mut i: usize) -> usize {
        let mut at = self.offset as isize;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += (i % dim) as isize * stride;
            i /= dim;
        }
        at as usize
    }

    fn get(&self, i: usize) -> T {
        self.data[self.at(i)]
    }

    fn view(&self) -> View<'_> {
        View::new(T::DTYPE, bytemuck::cast_slice(&self.data), self.offset, &self.shape, &self.strides)
    }
}

fn product<T: Element>(a: &Stack<T>, b: &Stack<T>) -> Vec<T> {
    let rank = a.shape.len();
    let mut shape = a.shape.clone();
    shape[rank - 1] = b.shape[rank - 1];
    let mut out = vec![T::from_f64(77.0); shape.iter().product()];
    matmul(a.view(), b.view(), ViewMut::new(T::DTYPE, bytemuck::cast_slice_mut(&mut out), &shape));
    out
}

/// The same in f64, by the definition.
fn reference<T: Element>(a: &Stack<T>, b: &Stack<T>) -> Vec<f64> {
    let rank = a.shape.len();
    let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
    let batch: usize = a.shape[..rank - 2].iter().product();
    let mut out = Vec::new();
    for at in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let term = |p| a.get((at * m + i) * k + p).to_f64() * b.get((at * k + p) * n + j).to_f64();
                out.push((0..k).map(term).sum());
            }
        }
    }
    out
}

#[derive(Clone, Debug)]
struct Case {
    batch: Vec<usize>,
    broadcast: (usize, usize),
    kinds: (usize, usize),
    m: usize,
    k: usize,
    n: usize,
}

impl Case {
    fn operands<T: Element>(&self) -> (Stack<T>, Stack<T>) {
        let values = Values::new((self.m + self.k * 64 + self.n * 4096) as u64);
        let gap = T::from_f64(f64::NAN);
        let a = Stack::new(&values, self.kinds.0, &self.batch, self.broadcast.0, self.m, self.k, gap);
        let b = Stack::new(&values, self.kinds.1, &self.batch, self.broadcast.1, self.k, self.n, gap);
        (a, b)
    }

    fn check<T: Element>(&self) {
        let (a, b) = self.operands::<T>();
        for (i, (got, expected)) in product(&a, &b).into_iter().zip(reference(&a, &b)).enumerate() {
            let off = (got.to_f64() - expected).abs();
            assert!(off <= tolerance(T::DTYPE, self.k, expected), "{} {self:?} at {i}: {got:?}", T::DTYPE);
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let size = || prop_oneof![4 => 0usize..6, 4 => 6usize..40, 1 => 40usize..100];
    let batch = proptest::collection::vec(0usize..4, 0..3);
    (batch, (0usize..4, 0usize..4), (0usize..6, 0usize..6), size(), size(), size())
        .prop_map(|(batch, broadcast, kinds, m, k, n)| Case { batch, broadcast, kinds, m, k, n })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matmul_f32_like_the_definition(case in cases()) {
        case.check::<f32>();
    }

    #[test]
    fn matmul_f64_like_the_definition(case in cases()) {
        case.check::<f64>();
    }

    #[test]
    fn matmul_f16_like_the_definition(case in cases()) {
        case.check::<f16>();
    }

    #[test]
    fn matmul_bf16_like_the_definition(case in cases()) {
        case.check::<bf16>();
    }
}

macro_rules! integer_tests {
    ($($name:ident: $t:ty),*) => {$(
        #[test]
        fn $name() {
            for (case, (m, k, n)) in
                [(1, 1, 1), (3, 5, 7), (8, 130, 9), (1, 200, 1), (7, 150, 70)].into_iter().enumerate()
            {
                let values = Values::new(case as u64 + 5);
                for kind in 0..6 {
                    let mut stacks = [(kind, m, k), ((kind + case) % 6, k, n)]
                        .map(|(kind, rows, cols)| Stack::<$t>::new(&values, kind, &[2], 0, rows, cols, 1));
                    for x in stacks.iter_mut().flat_map(|stack| stack.data.iter_mut()) {
                        *x = (values.next() << 11 ^ values.next()) as $t;
                    }
                    let [a, b] = stacks;
                    let got = product(&a, &b);
                    for i in 0..2 * m * n {
                        let (row, col) = (i / n, i % n);
                        let terms = (0..k).map(|p| {
                            a.get(row * k + p).wrapping_mul(b.get((row / m * k + p) * n + col))
                        });
                        assert_eq!(got[i], terms.fold(0, <$t>::wrapping_add), "{m}x{k}x{n} {kind} at {i}");
                    }
                }
            }
        }
    )*};
}
integer_tests!(
    matmul_u8: u8, matmul_u16: u16, matmul_u32: u32, matmul_u64: u64,
    matmul_i8: i8, matmul_i16: i16, matmul_i32: i32, matmul_i64: i64
);

#[test]
fn no_depth_gives_zeros() {
    fn check<T: Element>() {
        for kinds in [(0, 0), (1, 2), (3, 4)] {
            let case = Case { batch: vec![2], broadcast: (0, 1), kinds, m: 3, k: 0, n: 4 };
            let (a, b) = case.operands::<T>();
            assert!(product(&a, &b).into_iter().map(T::to_f64).eq([0.0; 24]));
        }
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
    check::<i8>();
    check::<u64>();
}

#[test]
fn results_do_not_depend_on_the_thread_count() {
    fn check<T: Element>(case: &Case) {
        let (a, b) = case.operands::<T>();
        let one = {
            let _turn = with_threads(1);
            product(&a, &b)
        };
        for threads in [2, 5] {
            let _turn = with_threads(threads);
            assert!(bytemuck::cast_slice::<T, u8>(&one) == bytemuck::cast_slice::<T, u8>(&product(&a, &b)));
        }
    }
    let shapes = [(200, 70, 260), (1, 100, 3000), (3000, 100, 1), (2000, 20, 9), (40, 20, 40)];
    for (m, k, n) in shapes {
        for kinds in [(0, 0), (2, 1)] {
            let batch = if m * n < 10_000 { vec![3] } else { vec![] };
            let case = Case { batch, broadcast: (0, 0), kinds, m, k, n };
            check::<f32>(&case);
            check::<f64>(&case);
            check::<bf16>(&case);
        }
    }
}

/// An operand that is contiguous along the depth is copied panel by panel. The sums are those of its transpose in memory, bit by
/// bit, also where a panel is not full or the depth has several parts.
#[test]
fn a_transposed_operand_gives_the_bits_of_its_copy() {
    fn check<T: GemmElement>(m: usize, k: usize, n: usize, accumulate: bool) {
        let values = Values::new((m + 10 * k + 100 * n) as u64);
        // Thirds, so that every sum is rounded.
        let third = |x: T| T::from_f64(x.to_f64() / 3.0);
        let a: Vec<T> = values.fill(m * k).into_iter().map(third).collect();
        let b: Vec<T> = values.fill(k * n).into_iter().map(third).collect();
        let copy: Vec<T> = (0..k * n).map(|i| b[i % n * k + i / n]).collect();
        let before: Vec<T> = values.fill(m * n);
        let (mut c, mut want) = (before.clone(), before);
        let a = Mat::row_major(&a, m, k);
        let transposed = Mat::row_major(&b, n, k).transposed();
        gemm(a, transposed, MatMut::row_major(&mut c, m, n), accumulate);
        gemm(a, Mat::row_major(&copy, k, n), MatMut::row_major(&mut want, m, n), accumulate);
        let bits = bytemuck::cast_slice::<T, u8>;
        assert!(bits(&c) == bits(&want), "{} {m}x{k}x{n}", T::DTYPE);
    }
    let sizes = [
        (32, 128),
        (32, 512),
        (64, 513),
        (64, 514),
        (64, 515),
        (64, 1030),
        (200, 513),
        (200, 1100),
        (300, 256),
        (20, 19),
        (9, 100),
    ];
    for (m, k) in sizes {
        for (n, accumulate) in [(128, false), (53, true), (49, false), (48, true), (40, true)] {
            check::<f32>(m, k, n, accumulate);
            check::<f64>(m, k, n, accumulate);
        }
    }
}

/// Where [`adds_after_sum`] says so, accumulation has the bits of an addition after the product.
#[test]
fn accumulation_equals_an_addition_after_the_product() {
    fn check<T: GemmElement>((m, k, n): (usize, usize, usize), kinds: (usize, usize), add: fn(T, T) -> T) {
        let case = Case { batch: vec![], broadcast: (0, 0), kinds, m, k, n };
        let (mut a, b) = case.operands::<T>();
        // Thirds, so that every sum is rounded.
        let third = |x: &mut T| *x = T::from_f64(x.to_f64() / 3.0);
        a.data.iter_mut().for_each(third);
        let mut before: Vec<T> = Values::new(5).fill::<T>(m * n);
        before.iter_mut().for_each(third);
        let want: Vec<T> = product(&a, &b).into_iter().zip(&before).map(|(x, &y)| add(x, y)).collect();
        let mut out = before;
        let shape = [m, n];
        let view = ViewMut::new(T::DTYPE, bytemuck::cast_slice_mut(&mut out), &shape);
        matmul_accumulate(a.view(), b.view(), view);
        let bits = bytemuck::cast_slice::<T, u8>;
        assert!(bits(&out) == bits(&want), "{} {m}x{k}x{n} {kinds:?}", T::DTYPE);
    }
    let sizes =
        [(128, 32, 512), (1, 3, 40), (40, 3, 1), (2, 300, 2), (17, 512, 33), (100, 512, 100), (8, 3, 8)];
    for size in sizes {
        let (m, k, n) = size;
        assert!(adds_after_sum(DType::F32, [m, k, n]) && adds_after_sum(DType::F64, [m, k, n]));
        for kinds in [(0, 0), (1, 0), (0, 1), (2, 1)] {
            check::<f32>(size, kinds, |x, y| x + y);
            check::<f64>(size, kinds, |x, y| x + y);
            check::<i32>(size, kinds, i32::wrapping_add);
        }
    }
    // Outer products, deep ones, vectors, and a block of 128 columns beside one of a single column.
    for size in [[8, 2, 8], [8, 513, 8], [1, 32, 8], [8, 32, 1], [64, 300, 385]] {
        assert!(!adds_after_sum(DType::F32, size) && !adds_after_sum(DType::F64, size), "{size:?}");
    }
    assert!(!adds_after_sum(DType::BF16, [8, 32, 8]) && !adds_after_sum(DType::F16, [8, 32, 8]));
}

/// A product whose elements are halved and get the remainder of their number by 13 added.
fn finished<T: Element>(a: &Stack<T>, b: &Stack<T>, runs: &AtomicUsize) -> Vec<T> {
    let rank = a.shape.len();
    let mut shape = a.shape.clone();
    shape[rank - 1] = b.shape[rank - 1];
    let mut out = vec![T::from_f64(77.0); shape.iter().product()];
    let out_view = ViewMut::new(T::DTYPE, bytemuck::cast_slice_mut(&mut out), &shape);
    matmul_with_epilogue(a.view(), b.view(), out_view, &|first, run| {
        runs.fetch_add(1, Ordering::Relaxed);
        epilogue::<T>(first, bytemuck::cast_slice_mut(run));
    });
    out
}

fn epilogue<T: Element>(first: usize, run: &mut [T]) {
    for (i, x) in run.iter_mut().enumerate() {
        *x = T::from_f64(x.to_f64() * 0.5 + ((first + i) % 13) as f64);
    }
}

#[test]
fn the_epilogue_runs_once_per_element() {
    fn check<T: Element>(case: &Case) {
        let (a, b) = case.operands::<T>();
        let mut expected = product(&a, &b);
        epilogue(0, &mut expected);
        for threads in [1, 2, 3] {
            let _turn = with_threads(threads);
            let got = finished(&a, &b, &AtomicUsize::new(0));
            assert!(
                bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&expected),
                "{case:?}"
            );
        }
    }
    let shapes = [
        (1, 1, 1),
        (7, 0, 5),
        (1, 9, 1030),
        (1030, 9, 1),
        (200, 70, 260),
        (131, 40, 600),
        (600, 3, 600),
        (40, 20, 40),
    ];
    for (m, k, n) in shapes {
        // One, several, and several that make one tall matrix.
        for (batch, broadcast) in [(vec![], (0, 0)), (vec![3], (0, 0)), (vec![2, 2], (0, 3))] {
            if batch.is_empty() || m * n < 100_000 {
                let case = Case { batch, broadcast, kinds: (0, 1), m, k, n };
                check::<f32>(&case);
                check::<f64>(&case);
                check::<bf16>(&case);
                check::<i32>(&case);
            }
        }
    }
}

#[test]
fn runs_are_blocks_where_these_are_contiguous() {
    let runs = |batch: &[usize], m, n| {
        let case = Case { batch: batch.to_vec(), broadcast: (0, 3), kinds: (0, 0), m, k: 4, n };
        let (a, b) = case.operands::<f32>();
        let runs = AtomicUsize::new(0);
        finished(&a, &b, &runs);
        runs.into_inner()
    };
    assert_eq!(runs(&[], 64, 64), 1);
    assert_eq!(runs(&[2, 2], 16, 16), 1);
    // Two blocks of columns: a run for each row of each.
    assert_eq!(runs(&[], 10, 600), 20);
    assert_eq!([runs(&[], 0, 5), runs(&[], 5, 0), runs(&[0], 5, 5)], [0; 3]);
}

#[test]
fn nan_and_infinity_propagate_as_in_the_definition() {
    fn check<T: Element>(m: usize, k: usize, n: usize, kinds: (usize, usize)) {
        let (mut a, mut b) = Case { batch: vec![], broadcast: (0, 0), kinds, m, k, n }.operands::<T>();
        let values = Values::new((m * k * n) as u64);
        for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
            let (at, from) = (a.at(values.below(m * k)), b.at(values.below(k * n)));
            a.data[at] = T::from_f64(special);
            b.data[from] = T::from_f64(-special);
        }
        for (got, expected) in product(&a, &b).into_iter().zip(reference(&a, &b)) {
            let got = got.to_f64();
            assert_eq!(got.is_nan(), expected.is_nan(), "{} {m}x{k}x{n} {kinds:?}", T::DTYPE);
            assert!(expected.is_finite() || got.is_nan() || got == expected);
        }
    }
    for kind in 0..36 {
        for (m, k, n) in [(5, 7, 10), (1, 20, 40), (40, 20, 1), (30, 40, 50), (1, 90, 1)] {
            check::<f32>(m, k, n, (kind / 6, kind % 6));
            check::<f64>(m, k, n, (kind / 6, kind % 6));
            check::<f16>(m, k, n, (kind / 6, kind % 6));
            check::<bf16>(m, k, n, (kind / 6, kind % 6));
        }
    }
}

#[test]
fn halves_widen_and_round_like_their_definition() {
    use super::half::Half;
    for bits in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(x.widen() == x.to_f32() || (x.is_nan() && x.widen().is_nan()));
        assert!(y.widen() == y.to_f32() || (y.is_nan() && y.widen().is_nan()));
    }
    let values = Values::new(3);
    for i in 0..100_000u64 {
        // The first ones are halfway between two neighbours.
        let x = f32::from_bits(if i < 65536 { (i << 16 | 0x8000) as u32 } else { values.next() as u32 });
        let (got, expected) = (<bf16 as Half>::narrow(x), bf16::from_f32(x));
        assert!(got == expected || (got.is_nan() && x.is_nan()), "{x}");
    }
}

#[test]
#[should_panic(expected = "no kernel for bool")]
fn booleans_have_no_product() {
    let case = Case { batch: vec![], broadcast: (0, 0), kinds: (0, 0), m: 1, k: 1, n: 1 };
    let (a, b) = case.operands::<Bool>();
    product(&a, &b);
}

#[test]
#[should_panic(expected = "shapes of a matrix product")]
fn shapes_must_agree() {
    let (a, _) = Case { batch: vec![], broadcast: (0, 0), kinds: (0, 0), m: 2, k: 3, n: 1 }.operands::<f32>();
    let (_, b) = Case { batch: vec![], broadcast: (0, 0), kinds: (0, 0), m: 2, k: 4, n: 5 }.operands::<f32>();
    product(&a, &b);
}
