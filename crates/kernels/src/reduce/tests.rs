mod computed;

use super::*;
use crate::dtype::{bf16, f16};
use crate::simd;

/// A view over its own buffer.
pub(crate) struct Case {
    pub(crate) dtype: DType,
    words: Vec<u64>,
    offset: usize,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
}

/// Small, fast and good enough to pick test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Uniform in [-1, 1).
    fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 52) as f64 - 1.0
    }
}

impl Case {
    pub(crate) fn from<T: Element>(values: &[T], shape: &[usize]) -> Case {
        let strides = contiguous(shape);
        let mut words = vec![0u64; (size_of_val(values)).div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size_of_val(values)]
            .copy_from_slice(bytemuck::cast_slice(values));
        Case { dtype: T::DTYPE, words, offset: 0, shape: shape.to_vec(), strides }
    }

    /// Random values in a random layout: permuted, stepped, reversed, broadcast.
    pub(crate) fn random(random: &mut Random, dtype: DType, shape: &[usize]) -> Case {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if random.below(2) == 0 {
            for i in (1..order.len()).rev() {
                order.swap(i, random.below(i + 1));
            }
        }
        let (mut strides, mut span, mut offset) = (vec![0isize; shape.len()], 1usize, random.below(3));
        for &d in order.iter().rev() {
            if random.below(10) == 0 {
                continue;
            }
            let step = if random.below(5) == 0 { 2 } else { 1 };
            strides[d] = (span * step) as isize;
            if random.below(5) == 0 {
                offset += shape[d].saturating_sub(1) * span * step;
                strides[d] = -strides[d];
            }
            span *= shape[d].max(1) * step;
        }
        let len = span + offset + 1;
        let mut words = vec![0u64; (len * dtype.size()).div_ceil(8)];
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut words);
        dispatch!(dtype, T in all => {
            for v in &mut bytemuck::cast_slice_mut::<u8, T>(bytes)[..len] {
                *v = T::from_f64(if dtype.is_float() { random.unit() * 2.0 } else { (random.unit() * 5.0).round().abs() });
                if dtype.is_signed_integer() && random.below(2) == 0 {
                    *v = T::from_f64(-v.to_f64());
                }
            }
        });
        Case { dtype, words, offset, shape: shape.to_vec(), strides }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(self.dtype, bytemuck::cast_slice(&self.words), self.offset, &self.shape, &self.strides)
    }

    /// Every element in row-major order, as `f64`.
    pub(crate) fn values(&self) -> Vec<f64> {
        let len: usize = self.shape.iter().product();
        (0..len)
            .map(|i| {
                let at = self.offset as isize
                    + index(i, &self.shape)
                        .iter()
                        .zip(&self.strides)
                        .map(|(&i, &s)| i as isize * s)
                        .sum::<isize>();
                dispatch!(self.dtype, T in all => self.view().data::<T>()[at as usize].to_f64())
            })
            .collect()
    }

    /// The values that meet in each output, in row-major order of both.
    fn groups(&self, axes: &[bool]) -> Vec<Vec<f64>> {
        let kept = kept(&self.shape, axes);
        let mut groups = vec![Vec::new(); kept.iter().product()];
        for (i, value) in self.values().into_iter().enumerate() {
            let mut at = 0;
            for (d, i) in index(i, &self.shape).into_iter().enumerate() {
                if !axes[d] {
                    at = at * self.shape[d] + i;
                }
            }
            groups[at].push(value);
        }
        groups
    }

    fn reduce<O: Element>(&self, code: Reduce, axes: &[bool]) -> Vec<O> {
        assert_eq!(code.result(self.dtype), Some(O::DTYPE), "{code:?} of {}", self.dtype);
        let shape = kept(&self.shape, axes);
        run_both(&shape, reduce_scratch(&self.shape, axes), |out, scratch| {
            reduce(code, self.view(), axes, out, scratch);
        })
    }

    fn var<O: Element>(&self, axes: &[bool], correction: f64) -> Vec<O> {
        let shape = kept(&self.shape, axes);
        run_both(&shape, reduce_scratch(&self.shape, axes), |out, scratch| {
            var(self.view(), axes, correction, out, scratch);
        })
    }

    fn arg(&self, max: bool, axis: usize) -> Vec<i64> {
        let axes: Vec<bool> = (0..self.shape.len()).map(|d| d == axis).collect();
        let shape = kept(&self.shape, &axes);
        run_both(&shape, 0, |out, _| arg_extreme(max, self.view(), axis, out))
    }
}

/// Runs with and without scratch, at the baseline level and at the best: the same bits each time.
pub(crate) fn run_both<O: Element>(
    shape: &[usize],
    scratch: usize,
    run: impl Fn(ViewMut<'_>, &mut [u8]),
) -> Vec<O> {
    let len = shape.iter().product();
    let mut words = vec![0u64; scratch.div_ceil(8)];
    let mut once = |level, scratch: bool| {
        simd::restrict(level);
        let mut out = vec![O::from_f64(7.0); len];
        let scratch = if scratch { bytemuck::cast_slice_mut(&mut words) } else { &mut [][..] };
        run(ViewMut::new(O::DTYPE, bytemuck::cast_slice_mut(&mut out), shape), scratch);
        out
    };
    let serial = once(simd::Level::Baseline, false);
    let parallel = once(simd::Level::Avx512, true);
    assert!(bytes(&serial) == bytes(&parallel), "{serial:?} is not {parallel:?}");
    parallel
}

fn bytes<T: Element>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

fn kept(shape: &[usize], axes: &[bool]) -> Vec<usize> {
    shape.iter().zip(axes).filter(|(_, reduced)| !**reduced).map(|(&n, _)| n).collect()
}

fn contiguous(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect()
}

fn index(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        at[d] = i % shape[d];
        i /= shape[d];
    }
    at
}

fn shapes(random: &mut Random) -> Vec<Vec<usize>> {
    let mut shapes =
        vec![vec![], vec![1], vec![5], vec![130], vec![3, 4], vec![2, 0, 3], vec![1, 1, 1], vec![70, 3]];
    shapes.extend([vec![3, 40, 5], vec![2, 3, 4, 5], vec![20, 17], vec![2, 2, 2, 2, 2, 2, 2, 2, 2, 2]]);
    shapes.push((0..=random.below(4)).map(|_| 1 + random.below(12)).collect());
    shapes
}

/// Calls `check` on views of every type, in several shapes and layouts, with several sets of axes.
pub(crate) fn each_case(seed: u64, mut check: impl FnMut(&Case, &[bool])) {
    let mut random = Random(seed);
    for dtype in DType::REAL {
        for shape in shapes(&mut random) {
            for _ in 0..3 {
                let case = Case::random(&mut random, dtype, &shape);
                let axes: Vec<bool> = shape.iter().map(|_| random.below(2) == 0).collect();
                check(&case, &axes);
            }
            let case = Case::random(&mut random, dtype, &shape);
            check(&case, &vec![true; shape.len()]);
        }
    }
}

/// Half an ulp of the result, and a rounding of the accumulator for every level of the tree; absolute below the
/// smallest normal number.
fn tolerance(dtype: DType, scale: f64) -> f64 {
    let (result, accumulator, least) = match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-24), 2f64.powi(-25)),
        DType::BF16 => (2f64.powi(-8), 2f64.powi(-24), 1e-37),
        DType::F32 => (2f64.powi(-24), 2f64.powi(-24), 1e-37),
        _ => (2f64.powi(-53), 2f64.powi(-53), 1e-300),
    };
    scale * (result + 20.0 * accumulator) + least
}

/// Whether `got` is `want`, computed from terms whose magnitudes add up to `scale`. What is too large for the type must
/// be infinite.
pub(crate) fn near<T: Element>(got: T, want: f64, scale: f64) -> bool {
    let (got, rounded) = (got.to_f64(), T::from_f64(want).to_f64());
    got == rounded || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance(T::DTYPE, scale)
}

#[test]
fn sums_and_products_of_every_type() {
    each_case(1, |case, axes| {
        for (code, product) in [(Reduce::Sum, false), (Reduce::Prod, true)] {
            let groups = case.groups(axes);
            if case.dtype.is_float() {
                dispatch!(case.dtype, T in floats => {
                    for (got, group) in case.reduce::<T>(code, axes).into_iter().zip(&groups) {
                        let (want, scale) = if product {
                            let want: f64 = group.iter().product();
                            (want, want.abs() * group.len() as f64)
                        } else {
                            (group.iter().sum(), group.iter().map(|v| v.abs()).sum())
                        };
                        assert!(near(got, want, scale), "{got} {want}");
                    }
                });
                continue;
            }
            // Wrapping arithmetic is exact arithmetic modulo 2^64.
            let wants: Vec<u64> = groups
                .iter()
                .map(|group| {
                    group.iter().map(|&v| v as i128 as u64).fold(product as u64, |a, v| {
                        if product { a.wrapping_mul(v) } else { a.wrapping_add(v) }
                    })
                })
                .collect();
            let got: Vec<u64> = if case.dtype.is_unsigned_integer() {
                case.reduce::<u64>(code, axes)
            } else {
                case.reduce::<i64>(code, axes).into_iter().map(|v| v as u64).collect()
            };
            assert_eq!(got, wants, "{code:?} {}", case.dtype);
        }
    });
}

#[test]
fn means_and_squares() {
    each_case(2, |case, axes| {
        if !case.dtype.is_float() {
            assert_eq!(Reduce::Mean.result(case.dtype), None);
            return;
        }
        let groups = case.groups(axes);
        dispatch!(case.dtype, T in floats => {
            for (got, group) in case.reduce::<T>(Reduce::Mean, axes).into_iter().zip(&groups) {
                let n = group.len() as f64;
                let scale = group.iter().map(|v| v.abs()).sum::<f64>() / n;
                assert!(near(got, group.iter().sum::<f64>() / n, scale));
            }
            for (got, group) in case.reduce::<T>(Reduce::SumSquares, axes).into_iter().zip(&groups) {
                let want: f64 = group.iter().map(|v| v * v).sum();
                assert!(near(got, want, want), "{got} {want}");
            }
        });
    });
}

#[test]
fn extremes_and_their_positions() {
    each_case(3, |case, axes| {
        let groups = case.groups(axes);
        if groups.iter().all(|group| !group.is_empty()) {
            dispatch!(case.dtype, T in all => {
                for (code, pick) in [(Reduce::Max, f64::max as fn(f64, f64) -> f64), (Reduce::Min, f64::min)] {
                    for (got, group) in case.reduce::<T>(code, axes).into_iter().zip(&groups) {
                        assert_eq!(got.to_f64(), group.iter().copied().reduce(pick).unwrap());
                    }
                }
            });
        }
        for axis in (0..axes.len()).filter(|&axis| case.shape[axis] > 0) {
            let one: Vec<bool> = (0..axes.len()).map(|d| d == axis).collect();
            for max in [true, false] {
                for (got, group) in case.arg(max, axis).into_iter().zip(case.groups(&one)) {
                    let beats = |a: f64, b: f64| if max { a > b } else { a < b };
                    let want = (1..group.len())
                        .fold(0, |best, i| if beats(group[i], group[best]) { i } else { best });
                    assert_eq!(got, want as i64, "{group:?}");
                }
            }
        }
    });
}

#[test]
fn truth() {
    each_case(4, |case, axes| {
        let groups = case.groups(axes);
        for (got, group) in case.reduce::<Bool>(Reduce::Any, axes).into_iter().zip(&groups) {
            assert_eq!(got.get(), group.iter().any(|&v| v != 0.0));
        }
        for (got, group) in case.reduce::<Bool>(Reduce::All, axes).into_iter().zip(&groups) {
            assert_eq!(got.get(), group.iter().all(|&v| v != 0.0));
        }
        for (got, group) in case.reduce::<i64>(Reduce::CountNonzero, axes).into_iter().zip(&groups) {
            assert_eq!(got, group.iter().filter(|&&v| v != 0.0).count() as i64);
        }
    });
    let zeros = Case::from(&[0.0f32, -0.0, f32::NAN, 1e-45], &[4]);
    assert_eq!(zeros.reduce::<i64>(Reduce::CountNonzero, &[true]), [2]);
    // Any byte but zero is true, and true counts as one.
    let bytes = Case::from(&[Bool(2), Bool(255), Bool(0)], &[3]);
    assert_eq!(bytes.reduce::<i64>(Reduce::Sum, &[true]), [2]);
    assert_eq!(bytes.reduce::<i64>(Reduce::Prod, &[true]), [0]);
    assert_eq!(bytes.reduce::<Bool>(Reduce::Max, &[true])[0].0, 1);
    assert_eq!(bytes.arg(true, 0), [0]);
}

#[test]
fn variances() {
    each_case(5, |case, axes| {
        if !case.dtype.is_float() {
            return;
        }
        dispatch!(case.dtype, T in floats => {
            for correction in [0.0, 1.0] {
                for (got, group) in case.var::<T>(axes, correction).into_iter().zip(case.groups(axes)) {
                    let n = group.len() as f64;
                    let mean = group.iter().sum::<f64>() / n;
                    let want = group.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - correction).max(0.0);
                    assert!(near(got, want, want.abs() + 1e-30), "{got} {want}");
                }
            }
        });
    });
    // The numbers 0..n have variance (n^2 - 1) / 12, however far they are from zero.
    let far: Vec<f32> = (0..1000).map(|i| 1e7 + i as f32).collect();
    assert_eq!(Case::from(&far, &[1000]).var::<f32>(&[true], 0.0), [999_999.0f32 / 12.0]);
    assert_eq!(Case::from(&[1.0f64, 2.0], &[2]).var::<f64>(&[true], 3.0), [f64::INFINITY]);
}

#[test]
fn logarithms_of_sums_of_exponentials() {
    each_case(6, |case, axes| {
        if !case.dtype.is_float() {
            return;
        }
        dispatch!(case.dtype, T in floats => {
            for (got, group) in case.reduce::<T>(Reduce::LogSumExp, axes).into_iter().zip(case.groups(axes)) {
                let want = group.iter().map(|v| v.exp()).sum::<f64>().ln();
                // The elements are in [-2, 2], so neither the shift nor the logarithm is larger than their number.
                let scale = 4.0 + want.abs();
                assert!(near(got, want, scale), "{got} {want}");
            }
        });
    });
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let of =
        |values: &[f32]| Case::from(values, &[values.len()]).reduce::<f32>(Reduce::LogSumExp, &[true])[0];
    assert_eq!(of(&[]), -inf);
    assert_eq!(of(&[-inf, -inf]), -inf);
    assert_eq!(of(&[-inf, 3.0, -inf]), 3.0);
    assert_eq!(of(&[1.0, inf, -inf]), inf);
    assert!(of(&[1.0, nan, inf]).is_nan());
    // Numbers whose exponentials overflow, or vanish: n equal ones give their value plus log(n).
    for value in [1e4, -1e4, 3e38] {
        let want = value as f64 + 1000f64.ln();
        assert!((of(&[value; 1000]) as f64 / want - 1.0).abs() < 1e-7);
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    let empty = Case::from::<f32>(&[], &[0, 2]);
    let axes = [true, false];
    let sum = empty.reduce::<f32>(Reduce::Sum, &axes);
    assert!(sum.iter().all(|v| v.to_bits() == 0), "{sum:?} must be two positive zeros");
    assert_eq!(empty.reduce::<f32>(Reduce::Prod, &axes), [1.0, 1.0]);
    assert!(empty.reduce::<f32>(Reduce::Mean, &axes).iter().all(|v| v.is_nan()));
    assert!(empty.var::<f32>(&axes, 0.0).iter().all(|v| v.is_nan()));
    assert_eq!(empty.reduce::<Bool>(Reduce::Any, &axes), [Bool::FALSE; 2]);
    assert_eq!(empty.reduce::<Bool>(Reduce::All, &axes), [Bool::TRUE; 2]);
    assert_eq!(empty.reduce::<f32>(Reduce::Max, &[false, true]), [0.0f32; 0]);
    assert_eq!(empty.reduce::<f32>(Reduce::Sum, &[false, true]), [0.0f32; 0]);
    let negative = Case::from(&[-0.0f64; 3], &[3]);
    assert!(negative.reduce::<f64>(Reduce::Sum, &[true])[0].is_sign_negative());
}

#[test]
#[should_panic(expected = "maximum of no elements")]
fn the_maximum_of_no_elements_panics() {
    Case::from::<i32>(&[], &[0]).reduce::<i32>(Reduce::Max, &[true]);
}

#[test]
fn nan_is_the_extreme_and_its_position_is_not() {
    for (n, at) in [(3, 1), (40, 39), (1000, 500), (1000, 0), (40_000, 30_001)] {
        let (largest, smallest) = ((at + n - 1) % n, (at + 1) % n);
        let mut values = vec![1.0f32; n];
        (values[largest], values[smallest], values[at]) = (2.0, -2.0, f32::NAN);
        for shape in [[1, n], [n, 1]] {
            let case = Case::from(&values, &shape);
            let axis = (shape[0] == 1) as usize;
            let axes = [axis == 0, axis == 1];
            assert!(case.reduce::<f32>(Reduce::Max, &axes)[0].is_nan());
            assert!(case.reduce::<f32>(Reduce::Min, &axes)[0].is_nan());
            assert_eq!(case.arg(true, axis), [largest as i64]);
            assert_eq!(case.arg(false, axis), [smallest as i64]);
        }
        // Three columns, of which the middle one has the NaN.
        let columns: Vec<f16> = values
            .iter()
            .flat_map(|&v| [f16::from_f32(2.0), f16::from_f32(v), f16::from_f32(-2.0)])
            .collect();
        let case = Case::from(&columns, &[n, 3]);
        let max = case.reduce::<f16>(Reduce::Max, &[true, false]);
        assert!(max[0].to_f32() == 2.0 && max[1].is_nan() && max[2].to_f32() == -2.0);
        assert_eq!(case.arg(true, 0), [0, largest as i64, 0]);
    }
    let only = Case::from(&[f32::NAN; 40], &[40]);
    assert_eq!((only.arg(true, 0), only.arg(false, 0)), (vec![0], vec![0]));
    let infinite = Case::from(&[f64::NEG_INFINITY; 9], &[9]);
    assert_eq!(infinite.reduce::<f64>(Reduce::Max, &[true]), [f64::NEG_INFINITY]);
    assert_eq!(infinite.arg(true, 0), [0]);
}

#[test]
fn long_sums_are_accurate() {
    let n = 10_000_000;
    let tenths = Case::from(&vec![0.1f32; n], &[n]);
    let want = n as f64 * 0.1f32 as f64;
    let got = tenths.reduce::<f32>(Reduce::Sum, &[true])[0] as f64;
    assert!((got / want - 1.0).abs() < 2e-7, "{got} {want}");
    let columns = Case { shape: vec![n / 5, 5], strides: vec![5, 1], ..tenths };
    for got in columns.reduce::<f32>(Reduce::Sum, &[true, false]) {
        assert!((got as f64 * 5.0 / want - 1.0).abs() < 5e-7, "{got}");
    }
    let strided = Case { shape: vec![n / 10], strides: vec![10], ..columns };
    let got = strided.reduce::<f32>(Reduce::Sum, &[true])[0] as f64;
    assert!((got * 10.0 / want - 1.0).abs() < 5e-7, "{got}");
}

#[test]
fn large_terms_that_cancel_leave_small_ones_exact() {
    // Pairs of ±2^40 a vector apart in the same lane, each beside a lane of ones: the ones must all survive.
    let n = 1 << 16;
    let values: Vec<f32> = (0..n)
        .map(|i| match (i % 64, (i / 64) % 2) {
            (0, 0) => 2f32.powi(40),
            (0, _) => -2f32.powi(40),
            _ => 1.0,
        })
        .collect();
    let want = (n - n / 64) as f32;
    assert_eq!(Case::from(&values, &[n]).reduce::<f32>(Reduce::Sum, &[true]), [want]);
    // Random signs over eight decades stay within a few roundings of the sum of magnitudes.
    let mut random = Random(11);
    let values: Vec<f32> =
        (0..300_000).map(|_| (random.unit() * 10f64.powi(random.below(8) as i32)) as f32).collect();
    let exact: f64 = values.iter().map(|&v| v as f64).sum();
    let scale: f64 = values.iter().map(|&v| v.abs() as f64).sum();
    for shape in [[300_000, 1], [1, 300_000]] {
        let got = Case::from(&values, &shape).reduce::<f32>(Reduce::Sum, &[true, true])[0] as f64;
        assert!((got - exact).abs() < 1e-7 * scale, "{got} {exact}");
    }
}

#[test]
fn large_arrays_in_every_direction() {
    // The sum of i mod 7 - 3 over whole periods is 0, so every sum is a partial period: small, exact, checkable.
    let value = |i: usize| (i % 7) as f64 - 3.0;
    for shape in [[1, 200_000], [3, 70_000], [600, 600], [2000, 129], [70_000, 3], [200_000, 1], [100, 1030]]
    {
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| value(i) as f32).collect();
        let case = Case::from(&values, &shape);
        for axes in [[true, true], [false, true], [true, false]] {
            let groups = case.groups(&axes);
            let want: Vec<f32> = groups.iter().map(|g| g.iter().sum::<f64>() as f32).collect();
            assert_eq!(case.reduce::<f32>(Reduce::Sum, &axes), want, "{shape:?} {axes:?}");
            let want: Vec<f32> =
                groups.iter().map(|g| g.iter().copied().fold(f64::MIN, f64::max) as f32).collect();
            assert_eq!(case.reduce::<f32>(Reduce::Max, &axes), want, "{shape:?} {axes:?}");
        }
        for axis in [0, 1] {
            let groups = case.groups(&[axis == 0, axis == 1]);
            let first = |g: &Vec<f64>| g.iter().position(|v| g.iter().all(|w| w >= v)).unwrap_or(0) as i64;
            if shape[axis] < 3000 {
                assert_eq!(case.arg(false, axis), groups.iter().map(first).collect::<Vec<_>>(), "{shape:?}");
            } else {
                // With three or more elements per residue the minimum -3 is found within the first seven.
                assert!(
                    case.arg(false, axis).iter().zip(&groups).all(|(&i, g)| i < 7 && g[i as usize] == -3.0)
                );
            }
        }
    }
}

#[test]
fn integers_wrap_and_narrow_ones_do_not() {
    let full = Case::from(&vec![255u8; 100_000], &[100_000]);
    assert_eq!(full.reduce::<u64>(Reduce::Sum, &[true]), [25_500_000]);
    let low = Case::from(&vec![-128i8; 50_000], &[10_000, 5]);
    assert_eq!(low.reduce::<i64>(Reduce::Sum, &[true, false]), [-1_280_000; 5]);
    let wide = Case::from(&[u64::MAX, 2, u64::MAX - 5], &[3]);
    assert_eq!(wide.reduce::<u64>(Reduce::Sum, &[true]), [u64::MAX - 4]);
    assert_eq!(wide.reduce::<u64>(Reduce::Max, &[true]), [u64::MAX]);
    assert_eq!(wide.reduce::<u64>(Reduce::Prod, &[true]), [12]);
    let signed = Case::from(&[i64::MIN, -1, i64::MAX], &[3]);
    assert_eq!(signed.reduce::<i64>(Reduce::Min, &[true]), [i64::MIN]);
    assert_eq!(signed.reduce::<i64>(Reduce::Sum, &[true]), [-2]);
}

#[test]
fn halves_convert_exactly() {
    let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan());
    for bits in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(same(half.value(), half.to_f32()) && half.value().is_sign_negative() == (bits >> 15 == 1));
        assert!(same(brain.value(), brain.to_f32()));
    }
    let many = Case::from(&vec![f16::from_f32(0.25); 5000], &[5000]);
    assert_eq!(many.reduce::<f16>(Reduce::Sum, &[true])[0].to_f32(), 1250.0);
    let ones = Case::from(&vec![bf16::ONE; 1000], &[1000]);
    assert_eq!(ones.reduce::<bf16>(Reduce::Mean, &[true])[0].to_f32(), 1.0);
}

#[test]
fn more_dimensions_than_usual() {
    let mut shape = vec![1; 70];
    (shape[3], shape[40], shape[69]) = (2, 3, 4);
    let case = Case::from(&(0..24).map(|i| i as f64).collect::<Vec<_>>(), &shape);
    let axes: Vec<bool> = (0..70).map(|d| d != 40).collect();
    // Of the elements 12a + 4b + c, those with one b.
    assert_eq!(case.reduce::<f64>(Reduce::Sum, &axes), [60.0, 92.0, 124.0]);
    assert_eq!(case.var::<f64>(&[true; 70], 0.0), [575.0 / 12.0]);
    assert_eq!(case.arg(true, 69), [3; 6]);
}
