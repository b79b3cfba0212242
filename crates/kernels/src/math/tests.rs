//! Every function against an independent reference, over its whole range.

mod wide;

use super::{Real, double, pow, single};
use crate::dtype::DType;
use crate::elementwise::{Binary, Unary, binary_tile, unary_tile};
use bytemuck::{bytes_of, cast_slice_mut};
use wide::Wide;

/// Reproducible random bits.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in `[low, high)`.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The error of `got` in units of the last place of an `f32` near `want`.
fn ulps_single(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == nearest {
        return 0.5;
    }
    let exponent = (nearest.abs().min(f32::MAX).to_bits() >> 23).max(1) as i32;
    (got.clamp(-f32::MAX, f32::MAX) as f64 - want).abs().min(1e30) / 2f64.powi(exponent - 150)
}

/// Checks `f` on every `step`-th bit pattern of an `f32`.
fn check_single(name: &str, bound: f64, step: u32, f: impl Fn(f32) -> f32, reference: impl Fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    let mut bits = 0u32;
    let edges =
        [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-45, f32::MAX, f32::MIN];
    let mut visit = |x: f32| {
        let error = ulps_single(f(x), reference(x as f64));
        if error > worst.0 {
            worst = (error, x);
        }
    };
    edges.into_iter().for_each(&mut visit);
    loop {
        visit(f32::from_bits(bits));
        match bits.checked_add(step) {
            Some(next) => bits = next,
            None => break,
        }
    }
    let (error, x) = worst;
    assert!(error <= bound, "{name}({x:e}) = {:e}, not {:e}: {error} ulp", f(x), reference(x as f64));
}

/// The error of `got` in units of the last place of an `f64` near `want`.
fn ulps_double(got: f64, want: Wide) -> f64 {
    if got.is_nan() || want.hi.is_nan() {
        return if got.is_nan() && want.hi.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == want.hi {
        return 0.5;
    }
    let exponent = ((want.hi.abs().min(f64::MAX).to_bits() >> 52) as i32).max(1);
    let difference = (got.clamp(f64::MIN, f64::MAX) - want.hi.clamp(f64::MIN, f64::MAX)) - want.lo;
    // Scaled away from the ends of the range: the smallest unit is not a normal number.
    let scale = if exponent < 1000 { 600 } else { 0 };
    difference.abs() * 2f64.powi(scale) / 2f64.powi(exponent - 1075 + scale)
}

/// Checks `f` on random bit patterns and on uniform samples of `ranges`.
fn check_double(
    name: &str,
    bound: f64,
    samples: usize,
    ranges: &[(f64, f64)],
    f: impl Fn(f64) -> f64,
    reference: impl Fn(f64) -> Wide,
) {
    let mut bits = Bits(0x9e37_79b9_7f4a_7c15);
    let mut worst = (0.0, 0.0);
    let mut visit = |x: f64| {
        let error = ulps_double(f(x), reference(x));
        if error > worst.0 {
            worst = (error, x);
        }
    };
    [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -5e-324, f64::MAX, f64::MIN]
        .into_iter()
        .for_each(&mut visit);
    for _ in 0..samples {
        visit(f64::from_bits(bits.next()));
        for (low, high) in ranges {
            visit(bits.between(*low, *high));
        }
    }
    let (error, x) = worst;
    assert!(error <= bound, "{name}({x:e}) = {:e}, not {:e}: {error} ulp", f(x), reference(x).hi);
}

const FINE: u32 = 16_381;
const COARSE: u32 = 65_537;

/// An independent implementation of a function.
enum Reference {
    /// Of the standard library, whose own error is below one unit.
    Std(fn(f64) -> f64),
    /// A formula in `f64` to compare `f32` with, and one with more bits to compare `f64` with.
    Both(fn(f64) -> f64, fn(f64) -> Wide),
    /// One with more bits, which is slow.
    Slow(fn(f64) -> Wide),
}

use Reference::{Both, Slow, Std};

impl Reference {
    /// The value to compare `f64` with.
    fn double(&self, x: f64) -> Wide {
        match self {
            Std(f) => Wide::from(f(x)),
            Both(_, f) | Slow(f) => f(x),
        }
    }
}

/// The bounds of a function's error in units in the last place, and the ranges to sample it in.
struct Accuracy {
    code: Unary,
    single: f64,
    double: f64,
    ranges: &'static [(f64, f64)],
    reference: Reference,
}

const COMMON: &[(f64, f64)] = &[(-2.0, 2.0), (-40.0, 40.0), (-750.0, 750.0)];
const UNIT: &[(f64, f64)] = &[(-1.0, 1.0)];

/// Every mathematical function whose bounds are relative over the whole range: `(code, bound of f32, bound of f64, …)`.
const ACCURACY: &[Accuracy] = {
    const fn row(
        code: Unary,
        single: f64,
        double: f64,
        ranges: &'static [(f64, f64)],
        reference: Reference,
    ) -> Accuracy {
        Accuracy { code, single, double, ranges, reference }
    }
    &[
        row(Unary::Exp, 1.0, 1.0, COMMON, Std(f64::exp)),
        row(Unary::Expm1, 2.0, 2.0, COMMON, Std(f64::exp_m1)),
        row(Unary::Sinh, 0.51, 3.0, COMMON, Std(f64::sinh)),
        row(Unary::Cosh, 0.51, 2.0, COMMON, Std(f64::cosh)),
        row(Unary::Tanh, 3.0, 3.0, COMMON, Std(f64::tanh)),
        row(Unary::Log, 1.0, 1.0, &[(0.5, 2.0), (0.0, 100.0)], Std(f64::ln)),
        row(Unary::Log1p, 2.0, 2.0, &[(-1.0, 2.0), (0.0, 100.0)], Std(f64::ln_1p)),
        row(Unary::Asinh, 0.51, 3.0, COMMON, Both(|x| keep_zero(x, x.asinh()), wide::asinh)),
        row(Unary::Acosh, 0.51, 3.0, &[(1.0, 2.0), (1.0, 100.0)], Both(f64::acosh, wide::acosh)),
        row(Unary::Atanh, 0.51, 3.0, UNIT, Both(|x| keep_zero(x, x.atanh()), wide::atanh)),
        row(Unary::Sqrt, 0.5, 0.5, &[(0.0, 100.0)], Std(f64::sqrt)),
        row(Unary::Rsqrt, 2.0, 2.0, &[(0.0, 100.0)], Both(|x| 1.0 / x.sqrt(), wide::rsqrt)),
        row(Unary::Sin, 2.0, 2.0, COMMON, Std(f64::sin)),
        row(Unary::Cos, 2.0, 2.0, COMMON, Std(f64::cos)),
        row(Unary::Tan, 0.51, 4.0, COMMON, Std(f64::tan)),
        row(Unary::Asin, 0.51, 2.0, UNIT, Std(f64::asin)),
        row(Unary::Acos, 0.51, 2.0, UNIT, Std(f64::acos)),
        row(Unary::Atan, 0.51, 2.0, COMMON, Std(f64::atan)),
        row(Unary::Sigmoid, 3.0, 3.0, COMMON, Both(sigmoid, wide::sigmoid)),
        row(Unary::Softplus, 3.0, 3.0, COMMON, Both(softplus, wide::softplus)),
        row(Unary::Silu, 3.0, 4.0, COMMON, Both(|x| gated(x, x), wide::silu)),
        row(Unary::GeluTanh, 4.0, 4.0, COMMON, Both(gelu_tanh, wide::gelu_tanh)),
        row(Unary::Gelu, 4.0, 4.0, COMMON, Slow(wide::gelu)),
        row(Unary::Erf, 3.0, 3.0, &[(-1.0, 1.0), (-6.0, 6.0)], Slow(wide::erf)),
        row(Unary::Erfc, 0.51, 4.0, &[(-1.0, 1.0), (-6.0, 28.0)], Slow(wide::erfc)),
    ]
};

/// The standard library's value is positive at minus zero.
fn keep_zero(x: f64, value: f64) -> f64 {
    if x == 0.0 { x } else { value }
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// `x * sigmoid(v)`, or the limit for very negative `x`.
fn gated(x: f64, v: f64) -> f64 {
    if x < -1e4 { -0.0 } else { x * sigmoid(v) }
}

fn gelu_tanh(x: f64) -> f64 {
    gated(x, 2.0 * (2.0 / std::f64::consts::PI).sqrt() * x * (1.0 + 0.044715 * x * x))
}

/// The value of a mathematical function; of those without a row above, as [`double`] computes it (they have their own
/// tests).
pub(crate) fn exact(code: Unary, x: f64) -> f64 {
    match code {
        Unary::Erfinv => double::erfinv(x),
        Unary::Lgamma => double::lgamma(x),
        Unary::Digamma => double::digamma(x),
        _ => {
            let row = ACCURACY.iter().find(|row| row.code == code);
            row.unwrap_or_else(|| panic!("no row of ACCURACY for {code:?}")).reference.double(x).hi
        }
    }
}

/// The kernel's result for one element.
fn of<T: Real>(code: Unary, x: T) -> T {
    let mut out = [T::ZERO];
    unary_tile(code, T::DTYPE).call(bytes_of(&x), cast_slice_mut(&mut out));
    out[0]
}

#[test]
fn single_precision_is_accurate() {
    for row in ACCURACY {
        let name = format!("{:?}", row.code);
        let f = |x| of(row.code, x);
        match row.reference {
            Std(reference) | Both(reference, _) => check_single(&name, row.single, FINE, f, reference),
            Slow(reference) => check_single(&name, row.single, COARSE, f, |x| reference(x).hi),
        }
    }
}

#[test]
fn double_precision_is_accurate() {
    for row in ACCURACY {
        let samples = if let Slow(_) = row.reference { 2_000 } else { 20_000 };
        let name = format!("{:?}", row.code);
        check_double(
            &name,
            row.double,
            samples,
            row.ranges,
            |x| of(row.code, x),
            |x| row.reference.double(x),
        );
    }
}

/// Where the remainder is small, reduction has lost the most bits.
#[test]
fn reduction_near_multiples_of_half_pi() {
    for x in
        [355.0, 22.0, 103993.0, std::f64::consts::PI, 1e15 * std::f64::consts::FRAC_PI_2, 2.0f64.powi(1000)]
    {
        assert!(ulps_double(double::sin(x), Wide::from(x.sin())) <= 2.0, "sin({x:e})");
        assert!(ulps_double(double::cos(x), Wide::from(x.cos())) <= 2.0, "cos({x:e})");
        assert!(ulps_double(double::tan(x), Wide::from(x.tan())) <= 4.0, "tan({x:e})");
    }
    // The double closest to a multiple of pi/2; its cosine is from a computation with 2000 bits.
    let closest: f64 = 6381956970095103.0 * 2f64.powi(797);
    assert!(ulps_double(double::cos(closest), Wide::from(-4.687165924254627611122583e-19)) <= 2.0);
}

/// The branch-free part and the general function must meet at the bound.
#[test]
fn bounded_agrees_up_to_the_bound() {
    for x in [double::TRIG_BOUND, -double::TRIG_BOUND, double::TRIG_BOUND * 0.999] {
        assert_eq!(double::sin(x).to_bits(), double::sin_bounded(x).to_bits());
        assert!(ulps_double(double::sin_bounded(x), Wide::from(x.sin())) <= 2.0);
        assert!(ulps_single(single::cos_bounded(x as f32), (x as f32 as f64).cos()) <= 2.0);
        assert!(ulps_single(double::tan_bounded(x as f32 as f64) as f32, (x as f32 as f64).tan()) <= 0.51);
    }
}

#[test]
fn angles_and_powers() {
    let atan2 = |y: f32, x: f32| {
        let mut out = [0f32];
        binary_tile(Binary::Atan2, DType::F32).call(bytes_of(&y), bytes_of(&x), cast_slice_mut(&mut out));
        out[0]
    };
    let mut bits = Bits(7);
    let edges = [0.0, 1.0, 2.0, 3.0, 0.5, 1e300, 5e-324, f64::INFINITY, f64::NAN];
    let edges: Vec<f64> = edges.into_iter().flat_map(|x| [x, -x]).collect();
    let mut pairs: Vec<(f64, f64)> = edges.iter().flat_map(|x| edges.iter().map(move |y| (*x, *y))).collect();
    for _ in 0..30_000 {
        pairs.push((f64::from_bits(bits.next()), f64::from_bits(bits.next())));
        pairs.push((bits.between(-1.0, 1.0), bits.between(-1.0, 1.0)));
        pairs.push((bits.between(0.0, 10.0), bits.between(-300.0, 300.0)));
        pairs.push((bits.between(0.999, 1.001), bits.between(-7e5, 7e5)));
        pairs.push((f64::from_bits(bits.next()), bits.between(-2.0, 2.0)));
    }
    for (x, y) in pairs {
        let error = ulps_double(pow(x, y), Wide::from(x.powf(y)));
        assert!(error <= 1.0, "pow({x:e}, {y:e}) = {:e}: {error} ulp", pow(x, y));
        let error = ulps_double(double::atan2(x, y), Wide::from(x.atan2(y)));
        assert!(error <= 3.0, "atan2({x:e}, {y:e}) = {:e}: {error} ulp", double::atan2(x, y));
        let (x, y) = (x as f32, y as f32);
        let error = ulps_single(pow(x, y), (x as f64).powf(y as f64));
        assert!(error <= 0.51, "f32 pow({x:e}, {y:e}) = {:e}: {error} ulp", pow(x, y));
        let error = ulps_single(atan2(x, y), (x as f64).atan2(y as f64));
        assert!(error <= 0.51, "f32 atan2({x:e}, {y:e}) = {:e}: {error} ulp", atan2(x, y));
    }
}

/// The gamma functions have zeros left of zero; there the bound is absolute, and has its own test.
#[test]
fn gamma_functions_are_accurate() {
    for (code, reference) in
        [(Unary::Lgamma, wide::lgamma as fn(f64) -> Wide), (Unary::Digamma, wide::digamma)]
    {
        let name = format!("{code:?}");
        let right = |x: f32| if x < 0.0 { 0.0 } else { of(code, x) };
        check_single(&name, 0.51, COARSE, right, |x| if x < 0.0 { 0.0 } else { reference(x).hi });
        let ranges = &[(0.0, 3.0), (0.0, 30.0)];
        check_double(&name, 4.0, 1_000, ranges, |x| of(code, x.abs()), |x| reference(x.abs()));
    }
}

#[test]
fn inverse_error_function_single() {
    check_single(
        "erfinv",
        0.51,
        COARSE,
        |x| of(Unary::Erfinv, x),
        |x| {
            let y = double::erfinv(x);
            y - wide::erfinv_error(x, y)
        },
    );
}

#[test]
fn inverse_error_function_double() {
    assert_eq!(double::erfinv(1.0), f64::INFINITY);
    assert_eq!(double::erfinv(-1.0), f64::NEG_INFINITY);
    assert!(double::erfinv(1.0 + f64::EPSILON).is_nan() && double::erfinv(f64::NAN).is_nan());
    assert!(double::erfinv(-0.0) == 0.0 && double::erfinv(-0.0).is_sign_negative());
    let mut bits = Bits(3);
    for k in 0..6_000 {
        let x = match k % 3 {
            0 => bits.between(-1.0, 1.0),
            1 => 1.0 - bits.between(0.0, 53.0).exp2() * f64::EPSILON / 2.0,
            _ => bits.between(-1.0, 1.0) * bits.between(-1000.0, 0.0).exp2(),
        };
        if x.abs() == 1.0 || x == 0.0 {
            continue;
        }
        let y = double::erfinv(x);
        let error = wide::erfinv_error(x, y).abs() / (y.abs() * f64::EPSILON / 2.0);
        assert!(error <= 4.0, "erfinv({x:e}) = {y:e}: {error} ulp");
    }
}

/// Left of zero both functions have zeros; there the bound is absolute.
#[test]
fn gamma_of_negative_numbers() {
    let mut bits = Bits(5);
    for _ in 0..2_000 {
        let x = bits.between(-40.0, 0.0);
        let size = wide::lgamma(-x).hi.abs().max(1.0);
        let want = wide::lgamma_reflected(x);
        let ulp = want.abs() * f64::EPSILON;
        assert!((double::lgamma(x) - want).abs() <= (1e-15 * size).max(4.0 * ulp), "lgamma({x})");
        let size = wide::digamma(1.0 - x).hi.abs().max(1.0);
        let want = wide::digamma_reflected(x);
        let ulp = want.abs() * f64::EPSILON;
        assert!((double::digamma(x) - want).abs() <= (1e-15 * size).max(4.0 * ulp), "digamma({x})");
    }
    for x in [0.0, -0.0, -1.0, -2.0, -100.0, -1e300] {
        assert_eq!(double::lgamma(x), f64::INFINITY);
        assert!(double::digamma(x).is_nan());
    }
    assert!(double::digamma(f64::NEG_INFINITY).is_nan());
    assert_eq!(double::lgamma(f64::NEG_INFINITY), f64::INFINITY);
}

/// Odd functions keep the sign of zero, and what is exact at zero stays so.
#[test]
fn zeros() {
    use Unary::*;
    let odd = [
        Expm1, Log1p, Sqrt, Sin, Tan, Asin, Atan, Sinh, Tanh, Asinh, Atanh, Erf, Erfinv, Silu, Gelu, GeluTanh,
    ];
    for code in odd {
        assert_eq!(
            (of(code, 0.0f64).to_bits(), of(code, -0.0f64).to_bits()),
            (0, 1 << 63),
            "{code:?} of f64"
        );
        assert_eq!(
            (of(code, 0.0f32).to_bits(), of(code, -0.0f32).to_bits()),
            (0, 1 << 31),
            "{code:?} of f32"
        );
    }
    for x in [0.0f64, -0.0] {
        assert_eq!([Exp, Cos, Cosh, Erfc].map(|code| of(code, x)), [1.0; 4]);
        assert_eq!((of(Sigmoid, x), of(Log, x)), (0.5, f64::NEG_INFINITY));
    }
    assert_eq!((double::lgamma(1.0).to_bits(), double::lgamma(2.0).to_bits()), (0, 0));
}
