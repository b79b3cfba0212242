use super::*;
use crate::Bool;
use crate::dtype::{bf16, f16};
use crate::reduce::tests::{Case, each_case, near, run_both};

fn run<O: Element>(case: &Case, code: Scan, axis: usize, exclusive: bool, reverse: bool) -> Vec<O> {
    assert_eq!(code.result(case.dtype), Some(O::DTYPE), "{code:?} of {}", case.dtype);
    run_both(&case.shape, 0, |out, _| scan(code, case.view(), axis, exclusive, reverse, out))
}

/// The scan by its definition: for each position, a fold over the values before it.
fn naive(
    case: &Case,
    axis: usize,
    exclusive: bool,
    reverse: bool,
    start: f64,
    fold: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let (values, n) = (case.values(), case.shape[axis]);
    let inner: usize = case.shape[axis + 1..].iter().product();
    (0..values.len())
        .map(|i| {
            let (at, first) = (i / inner % n, i - i / inner % n * inner);
            let up_to = if reverse { at + exclusive as usize..n } else { 0..at + !exclusive as usize };
            let mut acc = start;
            let mut take = |k: usize| acc = fold(acc, values[first + k * inner]);
            if reverse {
                up_to.rev().for_each(&mut take);
            } else {
                up_to.for_each(&mut take);
            }
            acc
        })
        .collect()
}

fn each_scan(seed: u64, mut check: impl FnMut(&Case, usize, bool, bool)) {
    let mut count = 0;
    each_case(seed, |case, _| {
        if !case.shape.is_empty() {
            count += 1;
            check(case, count % case.shape.len(), count / 2 % 2 == 0, count / 4 % 2 == 0);
        }
    });
}

#[test]
fn sums_and_products() {
    each_scan(21, |case, axis, exclusive, reverse| {
        let sums = naive(case, axis, exclusive, reverse, 0.0, |a, v| a + v);
        if case.dtype.is_float() {
            let magnitudes = naive(case, axis, exclusive, reverse, 0.0, |a, v| a + v.abs());
            let products = naive(case, axis, exclusive, reverse, 1.0, |a, v| a * v);
            dispatch!(case.dtype, T in floats => {
                let got = run::<T>(case, Scan::Sum, axis, exclusive, reverse);
                for ((got, want), scale) in got.into_iter().zip(&sums).zip(&magnitudes) {
                    assert!(near(got, *want, *scale), "{got} {want}");
                }
                let got = run::<T>(case, Scan::Prod, axis, exclusive, reverse);
                for (got, want) in got.into_iter().zip(&products) {
                    let scale = want.abs() * (case.shape[axis] as f64).max(1.0);
                    assert!(near(got, *want, scale), "{got} {want}");
                }
            });
            return;
        }
        let values = Wrapping(case, axis, exclusive, reverse);
        if case.dtype.is_unsigned_integer() {
            assert_eq!(
                run::<u64>(case, Scan::Sum, axis, exclusive, reverse),
                values.run(0, u64::wrapping_add)
            );
            assert_eq!(
                run::<u64>(case, Scan::Prod, axis, exclusive, reverse),
                values.run(1, u64::wrapping_mul)
            );
        } else {
            let signed = |values: Vec<u64>| values.into_iter().map(|v| v as i64).collect::<Vec<_>>();
            let got = run::<i64>(case, Scan::Sum, axis, exclusive, reverse);
            assert_eq!(got, signed(values.run(0, u64::wrapping_add)));
            let got = run::<i64>(case, Scan::Prod, axis, exclusive, reverse);
            assert_eq!(got, signed(values.run(1, u64::wrapping_mul)));
        }
    });
}

/// Integer scans modulo 2^64, in which wrapping is exact.
struct Wrapping<'a>(&'a Case, usize, bool, bool);

impl Wrapping<'_> {
    fn run(&self, start: u64, fold: impl Fn(u64, u64) -> u64) -> Vec<u64> {
        let &Wrapping(case, axis, exclusive, reverse) = self;
        let inner: usize = case.shape[axis + 1..].iter().product();
        let n = case.shape[axis];
        let values: Vec<u64> = case.values().into_iter().map(|v| v as i64 as u64).collect();
        let mut out = vec![start; values.len()];
        for first in (0..values.len()).filter(|i| (i / inner).is_multiple_of(n)) {
            let mut acc = start;
            for k in 0..n {
                let i = first + if reverse { n - 1 - k } else { k } * inner;
                let next = fold(acc, values[i]);
                out[i] = if exclusive { acc } else { next };
                acc = next;
            }
        }
        out
    }
}

#[test]
fn extremes() {
    each_scan(22, |case, axis, exclusive, reverse| {
        dispatch!(case.dtype, T in all => {
            // The values before the first one are the limits of the type, which a cast from infinity saturates to.
            let limit = |v: f64| T::from_f64(v).to_f64();
            let low = if T::DTYPE == DType::Bool { 0.0 } else { limit(f64::NEG_INFINITY) };
            let want = naive(case, axis, exclusive, reverse, low, f64::max);
            let got = run::<T>(case, Scan::Max, axis, exclusive, reverse);
            assert_eq!(got.into_iter().map(T::to_f64).collect::<Vec<_>>(), want);
            let want = naive(case, axis, exclusive, reverse, limit(f64::INFINITY), f64::min);
            let got = run::<T>(case, Scan::Min, axis, exclusive, reverse);
            assert_eq!(got.into_iter().map(T::to_f64).collect::<Vec<_>>(), want);
        });
    });
    let nan = Case::from(&[1.0f32, f32::NAN, 5.0], &[3]);
    let max = run::<f32>(&nan, Scan::Max, 0, false, false);
    assert!(max[0] == 1.0 && max[1].is_nan() && max[2].is_nan());
    let bytes = Case::from(&[Bool(3), Bool(0), Bool(9)], &[3]);
    assert_eq!(run::<i64>(&bytes, Scan::Sum, 0, false, false), [1, 1, 2]);
    assert_eq!(
        run::<Bool>(&bytes, Scan::Min, 0, true, false).iter().map(|v| v.0).collect::<Vec<_>>(),
        [1, 1, 0]
    );
}

#[test]
fn logarithms_of_sums_of_exponentials() {
    each_scan(23, |case, axis, exclusive, reverse| {
        if !case.dtype.is_float() {
            return;
        }
        let want = naive(case, axis, exclusive, reverse, 0.0, |a, v| a + v.exp());
        dispatch!(case.dtype, T in floats => {
            let got = run::<T>(case, Scan::LogSumExp, axis, exclusive, reverse);
            for (got, want) in got.into_iter().zip(&want) {
                let want = want.ln();
                assert!(near(got, want, 4.0 + want.abs()), "{got} {want}");
            }
        });
    });
    let inf = f64::INFINITY;
    let steep = Case::from(&[-inf, -inf, 1000.0, -1000.0, 1000.0, inf, 3.0, f64::NAN, 1.0], &[9]);
    let got = run::<f64>(&steep, Scan::LogSumExp, 0, false, false);
    assert_eq!(got[..4], [-inf, -inf, 1000.0, 1000.0]);
    assert!((got[4] - 1000.0 - 2f64.ln()).abs() < 1e-12);
    assert_eq!(got[5..7], [inf, inf]);
    assert!(got[7].is_nan() && got[8].is_nan());
}

#[test]
fn long_lines_in_both_directions() {
    // Sums of 1..=k are k(k+1)/2, exact in f64, and in f32 after the one rounding of the result.
    let n = 40_000;
    let values: Vec<f32> = (1..=n).map(|v| v as f32).collect();
    let want: Vec<f32> = (1..=n as u64).map(|k| (k * (k + 1) / 2) as f32).collect();
    assert_eq!(run::<f32>(&Case::from(&values, &[n]), Scan::Sum, 0, false, false), want);
    let columns: Vec<f32> = values.iter().flat_map(|&v| [v, 2.0 * v, -v]).collect();
    let want: Vec<f32> = want.iter().flat_map(|&v| [v, 2.0 * v, -v]).collect();
    assert_eq!(run::<f32>(&Case::from(&columns, &[n, 3]), Scan::Sum, 0, false, false), want);
    let wide: Vec<i32> = (0..300 * 700).map(|i| i / 700).collect();
    let want: Vec<i64> = (0..300 * 700)
        .map(|i| {
            let k = i64::from(i / 700);
            k * (k + 1) / 2
        })
        .collect();
    assert_eq!(run::<i64>(&Case::from(&wide, &[300, 700]), Scan::Sum, 0, false, false), want);
}

#[test]
fn small_types_run_in_wide_ones() {
    // In f16 alone 2048 + 1 is 2048; the running value must not be rounded.
    let ones = Case::from(&vec![f16::ONE; 4096], &[4096]);
    assert_eq!(run::<f16>(&ones, Scan::Sum, 0, false, false)[4095].to_f32(), 4096.0);
    let ones = Case::from(&vec![bf16::ONE; 512], &[512]);
    assert_eq!(run::<bf16>(&ones, Scan::Sum, 0, false, true)[0].to_f32(), 512.0);
    let signs = run::<f32>(&Case::from(&[-0.0f32, -0.0], &[2]), Scan::Sum, 0, false, false);
    assert!(signs.iter().all(|v| v.is_sign_negative()));
    let first = run::<f32>(&Case::from(&[1.0f32], &[1]), Scan::Sum, 0, true, false);
    assert_eq!(first[0].to_bits(), 0);
}
