//! Every function against an independent reference, over its whole range.

mod wide;

use super::{double, single};
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

/// A standard library function: its own error is below one unit.
fn std_reference(f: impl Fn(f64) -> f64) -> impl Fn(f64) -> Wide {
    move |x| Wide::from(f(x))
}

const FINE: u32 = 16_381;
const COARSE: u32 = 65_537;

#[test]
fn exponentials_single() {
    check_single("exp", 1.0, FINE, single::exp, f64::exp);
    check_single("expm1", 2.0, FINE, single::expm1, f64::exp_m1);
    check_single("sinh", 0.51, FINE, single::sinh, f64::sinh);
    check_single("cosh", 0.51, FINE, single::cosh, f64::cosh);
    check_single("tanh", 3.0, FINE, single::tanh, f64::tanh);
}

#[test]
fn logarithms_single() {
    check_single("log", 1.0, FINE, single::log, f64::ln);
    check_single("log1p", 2.0, FINE, single::log1p, f64::ln_1p);
    check_single("log2", 0.51, FINE, single::log2, f64::log2);
    check_single("asinh", 0.51, FINE, single::asinh, |x| if x == 0.0 { x } else { x.asinh() });
    check_single("acosh", 0.51, FINE, single::acosh, f64::acosh);
    check_single("atanh", 0.51, FINE, single::atanh, |x| if x == 0.0 { x } else { x.atanh() });
}

#[test]
fn roots_single() {
    check_single("sqrt", 0.5, FINE, single::sqrt, f64::sqrt);
    check_single("rsqrt", 2.0, FINE, single::rsqrt, |x| 1.0 / x.sqrt());
}

#[test]
fn trigonometry_single() {
    check_single("sin", 2.0, FINE, single::sin, f64::sin);
    check_single("cos", 2.0, FINE, single::cos, f64::cos);
    check_single("tan", 0.51, FINE, single::tan, f64::tan);
    check_single("asin", 0.51, FINE, single::asin, f64::asin);
    check_single("acos", 0.51, FINE, single::acos, f64::acos);
    check_single("atan", 0.51, FINE, single::atan, f64::atan);
}

#[test]
fn activations_single() {
    let sigmoid = |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    check_single("sigmoid", 3.0, FINE, single::sigmoid, sigmoid);
    check_single("softplus", 3.0, FINE, single::softplus, |x| {
        if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
    });
    check_single("silu", 3.0, FINE, single::silu, |x| if x < -1e4 { -0.0 } else { x * sigmoid(x) });
    check_single("gelu_tanh", 4.0, FINE, single::gelu_tanh, |x| {
        if x < -1e4 {
            -0.0
        } else {
            x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * x * (1.0 + 0.044715 * x * x))
        }
    });
    check_single("gelu", 4.0, COARSE, single::gelu, |x| wide::gelu(x).hi);
}

#[test]
fn special_single() {
    check_single("erf", 3.0, COARSE, single::erf, |x| wide::erf(x).hi);
    check_single("erfc", 0.51, COARSE, single::erfc, |x| wide::erfc(x).hi);
    check_single("erfinv", 0.51, COARSE, single::erfinv, |x| {
        let y = double::erfinv(x);
        y - wide::erfinv_error(x, y)
    });
    check_single(
        "lgamma",
        0.51,
        COARSE,
        |x| if x < 0.0 { 0.0 } else { single::lgamma(x) },
        |x| {
            if x < 0.0 { 0.0 } else { wide::lgamma(x).hi }
        },
    );
    check_single(
        "digamma",
        0.51,
        COARSE,
        |x| if x < 0.0 { 0.0 } else { single::digamma(x) },
        |x| {
            if x < 0.0 { 0.0 } else { wide::digamma(x).hi }
        },
    );
}

const COMMON: [(f64, f64); 3] = [(-2.0, 2.0), (-40.0, 40.0), (-750.0, 750.0)];

#[test]
fn exponentials_double() {
    check_double("exp", 1.0, 20_000, &COMMON, double::exp, std_reference(f64::exp));
    check_double("expm1", 2.0, 20_000, &COMMON, double::expm1, std_reference(f64::exp_m1));
    check_double("sinh", 3.0, 20_000, &COMMON, double::sinh, std_reference(f64::sinh));
    check_double("cosh", 2.0, 20_000, &COMMON, double::cosh, std_reference(f64::cosh));
    check_double("tanh", 3.0, 20_000, &COMMON, double::tanh, std_reference(f64::tanh));
}

#[test]
fn logarithms_double() {
    check_double("log", 1.0, 20_000, &[(0.5, 2.0), (0.0, 100.0)], double::log, std_reference(f64::ln));
    check_double(
        "log1p",
        2.0,
        20_000,
        &[(-1.0, 2.0), (0.0, 100.0)],
        double::log1p,
        std_reference(f64::ln_1p),
    );
    check_double("log2", 2.0, 20_000, &[(0.5, 2.0), (0.0, 100.0)], double::log2, std_reference(f64::log2));
    check_double("asinh", 3.0, 4_000, &COMMON, double::asinh, wide::asinh);
    check_double("acosh", 3.0, 4_000, &[(1.0, 2.0), (1.0, 100.0)], double::acosh, wide::acosh);
    check_double("atanh", 3.0, 4_000, &[(-1.0, 1.0)], double::atanh, wide::atanh);
}

#[test]
fn roots_double() {
    check_double("sqrt", 0.5, 20_000, &[(0.0, 100.0)], double::sqrt, |x| Wide::from(x).sqrt());
    check_double("rsqrt", 2.0, 20_000, &[(0.0, 100.0)], double::rsqrt, |x| {
        if x > 0.0 && x < f64::INFINITY {
            Wide::from(1.0) / Wide::from(x).sqrt()
        } else {
            Wide::from(1.0 / x.sqrt())
        }
    });
}

#[test]
fn trigonometry_double() {
    check_double("sin", 2.0, 20_000, &COMMON, double::sin, std_reference(f64::sin));
    check_double("cos", 2.0, 20_000, &COMMON, double::cos, std_reference(f64::cos));
    check_double("tan", 4.0, 20_000, &COMMON, double::tan, std_reference(f64::tan));
    check_double("asin", 2.0, 20_000, &[(-1.0, 1.0)], double::asin, std_reference(f64::asin));
    check_double("acos", 2.0, 20_000, &[(-1.0, 1.0)], double::acos, std_reference(f64::acos));
    check_double("atan", 2.0, 20_000, &COMMON, double::atan, std_reference(f64::atan));
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
        assert!(ulps_single(single::tan_bounded(x as f32), (x as f32 as f64).tan()) <= 0.51);
    }
}

#[test]
fn angles_and_powers() {
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
        let error = ulps_double(double::pow(x, y), Wide::from(x.powf(y)));
        assert!(error <= 1.0, "pow({x:e}, {y:e}) = {:e}: {error} ulp", double::pow(x, y));
        let error = ulps_double(double::atan2(x, y), Wide::from(x.atan2(y)));
        assert!(error <= 3.0, "atan2({x:e}, {y:e}) = {:e}: {error} ulp", double::atan2(x, y));
        let (x, y) = (x as f32, y as f32);
        let error = ulps_single(single::pow(x, y), (x as f64).powf(y as f64));
        assert!(error <= 0.51, "f32 pow({x:e}, {y:e}) = {:e}: {error} ulp", single::pow(x, y));
        let error = ulps_single(single::atan2(x, y), (x as f64).atan2(y as f64));
        assert!(error <= 0.51, "f32 atan2({x:e}, {y:e}) = {:e}: {error} ulp", single::atan2(x, y));
    }
}

#[test]
fn activations_double() {
    check_double("sigmoid", 3.0, 4_000, &COMMON, double::sigmoid, wide::sigmoid);
    check_double("softplus", 3.0, 2_000, &COMMON, double::softplus, wide::softplus);
    check_double("silu", 4.0, 4_000, &COMMON, double::silu, wide::silu);
    check_double("gelu_tanh", 4.0, 4_000, &COMMON, double::gelu_tanh, wide::gelu_tanh);
    check_double("gelu", 4.0, 2_000, &COMMON, double::gelu, wide::gelu);
}

#[test]
fn special_double() {
    check_double("erf", 3.0, 2_000, &[(-1.0, 1.0), (-6.0, 6.0)], double::erf, wide::erf);
    check_double("erfc", 4.0, 2_000, &[(-1.0, 1.0), (-6.0, 28.0)], double::erfc, wide::erfc);
    check_double(
        "lgamma",
        4.0,
        1_000,
        &[(0.0, 3.0), (0.0, 30.0)],
        |x| double::lgamma(x.abs()),
        |x| wide::lgamma(x.abs()),
    );
    check_double(
        "digamma",
        4.0,
        1_000,
        &[(0.0, 3.0), (0.0, 30.0)],
        |x| double::digamma(x.abs()),
        |x| wide::digamma(x.abs()),
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
    for x in [-1.0, -2.0, -100.0, -1e300] {
        assert_eq!(double::lgamma(x), f64::INFINITY);
        assert!(double::digamma(x).is_nan());
    }
    assert_eq!(double::lgamma(0.0), f64::INFINITY);
    assert_eq!(double::digamma(0.0), f64::NEG_INFINITY);
    assert_eq!(double::digamma(-0.0), f64::INFINITY);
    assert!(double::digamma(f64::NEG_INFINITY).is_nan());
    assert_eq!(double::lgamma(f64::NEG_INFINITY), f64::INFINITY);
}

/// Odd functions keep the sign of zero, and what is exact at zero stays so.
#[test]
fn zeros() {
    let odd = [
        double::expm1,
        double::log1p,
        double::sqrt,
        double::sin,
        double::tan,
        double::asin,
        double::atan,
        double::sinh,
        double::tanh,
        double::asinh,
        double::atanh,
        double::erf,
        double::erfinv,
        double::silu,
        double::gelu,
        double::gelu_tanh,
    ];
    for (i, f) in odd.iter().enumerate() {
        assert_eq!((f(0.0).to_bits(), f(-0.0).to_bits()), (0, 1 << 63), "double function {i}");
    }
    let odd = [
        single::expm1,
        single::log1p,
        single::sqrt,
        single::sin,
        single::tan,
        single::asin,
        single::atan,
        single::sinh,
        single::tanh,
        single::asinh,
        single::atanh,
        single::erf,
        single::erfinv,
        single::silu,
        single::gelu,
        single::gelu_tanh,
    ];
    for (i, f) in odd.iter().enumerate() {
        assert_eq!((f(0.0).to_bits(), f(-0.0).to_bits()), (0, 1 << 31), "single function {i}");
    }
    for x in [0.0, -0.0] {
        assert_eq!((double::exp(x), double::cos(x), double::cosh(x), double::erfc(x)), (1.0, 1.0, 1.0, 1.0));
        assert_eq!((double::sigmoid(x), double::log(x)), (0.5, f64::NEG_INFINITY));
    }
    assert_eq!((double::lgamma(1.0).to_bits(), double::lgamma(2.0).to_bits()), (0, 0));
}
