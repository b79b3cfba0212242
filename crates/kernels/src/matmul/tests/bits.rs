//! Results that must be equal bit for bit.

use super::*;

/// A packed operand that is contiguous along the depth is copied panel by panel. The sums are those of its transpose in memory, bit by
/// bit, also where a panel is not full or the depth has several parts.
#[test]
fn a_transposed_operand_gives_the_bits_of_its_copy() {
    fn check<T: GemmElement + packed::Packed>(m: usize, k: usize, n: usize, accumulate: bool) {
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
        packed::gemm(a, transposed, MatMut::row_major(&mut c, m, n), accumulate);
        packed::gemm(a, Mat::row_major(&copy, k, n), MatMut::row_major(&mut want, m, n), accumulate);
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
    fn check<T: GemmElement>([m, k, n]: [usize; 3], kinds: (usize, usize), add: fn(T, T) -> T) {
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
    for size in [[128, 32, 512], [2, 200, 2], [17, 256, 33], [100, 256, 100], [8, 3, 8]] {
        assert!(adds_after_sum(DType::F32, size) && adds_after_sum(DType::F64, size), "{size:?}");
        for kinds in [(0, 0), (1, 0), (0, 1), (2, 1)] {
            check::<f32>(size, kinds, |x, y| x + y);
            check::<f64>(size, kinds, |x, y| x + y);
            check::<i32>(size, kinds, i32::wrapping_add);
        }
    }
    // Outer products, deep ones, vectors, and a block of 128 columns beside one of a single column.
    for size in [[8, 2, 8], [8, 257, 8], [1, 32, 8], [8, 32, 1], [64, 200, 385]] {
        assert!(!adds_after_sum(DType::F32, size) && !adds_after_sum(DType::F64, size), "{size:?}");
    }
    assert!(!adds_after_sum(DType::BF16, [8, 32, 8]) && !adds_after_sum(DType::F16, [8, 32, 8]));
}
