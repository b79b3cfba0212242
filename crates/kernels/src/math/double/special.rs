//! The error function and its relatives, and the logarithm of the gamma function.

use super::{sin_bounded, tan_bounded};
use crate::math::error::{erf_near, erfc_positive};
use crate::math::{log, poly};
use std::f64::consts::PI;

/// `erfinv(x) / x` in `w - 3.125`, for `w = -ln(1 - x^2)` up to 6.25.
const ERFINV_CENTRE: [f64; 26] = [
    1.6536545626831027,
    0.2401581824255883,
    -0.0060336708714269,
    -0.0007407025341543207,
    0.00018673420802005065,
    -1.3882523394982413e-05,
    -1.365469176333713e-06,
    4.234788183313875e-07,
    -2.9070390827355158e-08,
    -4.112661680373401e-09,
    1.0512231164987542e-09,
    -5.414240020909657e-11,
    -1.2978709355394873e-11,
    2.630316651291941e-12,
    -8.074255346542453e-14,
    -3.997312211931224e-14,
    6.525103923760211e-15,
    -4.648926297530011e-17,
    -1.2255951002835812e-16,
    1.6225919139272555e-17,
    6.348429446418407e-19,
    -3.9350088790538757e-19,
    1.8927525036958176e-20,
    4.916736540745888e-21,
    -3.4116435663382605e-22,
    -2.82870600922172e-23,
];

/// The same in `sqrt(w) - 3.25`, for `w` up to 16.
const ERFINV_OUTER: [f64; 20] = [
    3.0838856104922208,
    1.0052589676941657,
    0.005370914553571207,
    -0.003751208508263837,
    0.0024914420970029156,
    -0.0016882755342264501,
    0.0009532893633808234,
    -0.00035503783115488856,
    2.403126011155123e-05,
    6.828725107801997e-05,
    -4.731899886983415e-05,
    1.2464423855332429e-05,
    2.9257701613184353e-06,
    -3.984054665219891e-06,
    1.4986472965754977e-06,
    -3.029827323641534e-08,
    -2.712887035777197e-07,
    1.33967190487752e-07,
    6.770038621837306e-10,
    -1.619533709578522e-08,
];

/// The same in `sqrt(w) - 5.1`, for the rest.
const ERFINV_TAIL: [f64; 20] = [
    4.950934853078874,
    1.010266564502291,
    -0.00019885886862210014,
    -0.00018651301730084966,
    6.680006839579647e-05,
    -1.716263280285209e-05,
    3.889938546321752e-06,
    -8.310731325074378e-07,
    1.7913396555523515e-07,
    -4.542781613236867e-08,
    1.6546506771291718e-08,
    -8.158559544889092e-09,
    4.281513454045212e-09,
    -2.0423483081767184e-09,
    8.14691123275734e-10,
    -2.735270806832863e-10,
    7.964623043256065e-11,
    -5.760012865867955e-12,
    -1.1806077834675411e-11,
    4.25120788067797e-12,
];

/// `lgamma(1 + t) / t` for `|t| <= 1/2`.
const LGAMMA_1: [f64; 28] = [
    -0.5772156649015329,
    0.8224670334241133,
    -0.4006856343865408,
    0.2705808084277562,
    -0.20738555102624365,
    0.16955717700039277,
    -0.14404989701567922,
    0.12550966940880856,
    -0.11133425282248766,
    0.10009945818821975,
    -0.09095442892195943,
    0.08335392780408482,
    -0.07692413112142689,
    0.07142965172665117,
    -0.06678399717305901,
    0.06256143265273487,
    -0.05772723219059952,
    0.054870805230805474,
    -0.059905685147435016,
    0.05511406006697165,
    -0.014301123843518981,
    0.019917261399649066,
    -0.1454818462594835,
    0.12521481663774256,
    0.15357606970254517,
    -0.12880309005568727,
    -0.22514876739213233,
    0.20596812217614122,
];

/// `lgamma(2 + t) / t` for `|t| <= 1/2`.
const LGAMMA_2: [f64; 19] = [
    0.42278433509846713,
    0.32246703342411326,
    -0.06735230105319831,
    0.020580808427780567,
    -0.007385551028649593,
    0.002890510331023789,
    -0.0011927539127625985,
    0.0005096695156744871,
    -0.0002231547350910902,
    9.945767006249147e-05,
    -4.4926531867726595e-05,
    2.0505617117517773e-05,
    -9.43723246694967e-06,
    4.384591157763295e-06,
    -2.0497686634227357e-06,
    9.203110098174768e-07,
    -4.2001713551754026e-07,
    2.784982912612794e-07,
    -1.4331451575708885e-07,
];

/// The correction to Stirling's formula, times `x`, in `1 / x^2`, for `x >= 8`.
const STIRLING: [f64; 8] = [
    0.08333333333333333,
    -0.0027777777777776786,
    0.0007936507935157013,
    -0.0005952380249474431,
    0.0008417328033744818,
    -0.001914991792132343,
    0.006209338242716388,
    -0.020877742708820753,
];

/// `digamma(x) / (x - its root)` in `x - 3/2`, for `x` between 1 and 2.
const DIGAMMA_12: [f64; 22] = [
    0.951055876031833,
    -0.4236274212814606,
    0.24054248424077396,
    -0.1484049230538902,
    0.09498872445497708,
    -0.06192213327468678,
    0.04076083381057618,
    -0.026975796691557436,
    0.01790725248758472,
    -0.011908219413802051,
    0.007926943925353848,
    -0.0052799463195547115,
    0.0035190129743752053,
    -0.0023454203464332115,
    0.001556594677597269,
    -0.0010368440095612278,
    0.0007234529317614695,
    -0.0004847254934710821,
    0.0002269949704502483,
    -0.00014698447758416166,
    0.00025987569895370244,
    -0.0001765590873391525,
];

/// `(ln(x) - 1 / (2 x) - digamma(x)) x^2` in `1 / x^2`, for `x >= 8`.
const DIGAMMA_TAIL: [f64; 8] = [
    0.08333333333333333,
    -0.008333333333331734,
    0.003968253966070614,
    -0.004166665528604001,
    0.007575464852724691,
    -0.021051522313144697,
    0.0800447901788065,
    -0.2998160339075101,
];

/// The complementary error function, within 4 ulp.
#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    let tail = erfc_positive(a);
    let far = if x < 0.0 { 2.0 - tail } else { tail };
    if a < 0.5 { 1.0 - erf_near(x) } else { far }
}

/// The inverse error function, within 4 ulp.
#[inline(always)]
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    let w = -log((1.0 - a) * (1.0 + a));
    let root = w.sqrt();
    let ratio = if w < 16.0 { poly(root - 3.25, &ERFINV_OUTER) } else { poly(root - 5.1, &ERFINV_TAIL) };
    let ratio = if w < 6.25 { poly(w - 3.125, &ERFINV_CENTRE) } else { ratio };
    let result = if a == 1.0 { f64::INFINITY.copysign(x) } else { x * ratio };
    if a > 1.0 { f64::NAN } else { result }
}

/// The distance to the nearest integer, which is exact.
fn fraction(x: f64) -> f64 {
    x - x.round_ties_even()
}

/// The logarithm of the absolute value of the gamma function: within 4 ulp for `x > 0`, and for `x < 0` (where it has
/// zeros) within `1e-15 * max(1, |lgamma(|x|)|)`.
#[inline(always)]
pub fn lgamma(x: f64) -> f64 {
    let reflected = x < -0.5;
    let core = lgamma_right(if reflected { -x } else { x });
    if !reflected {
        return core;
    }
    let d = fraction(x);
    if d == 0.0 || x == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    -log(x.abs() * sin_bounded(PI * d).abs() / PI) - core
}

/// [`lgamma`] for `x >= -1/2`.
#[inline(always)]
fn lgamma_right(x: f64) -> f64 {
    // (ln(2 pi) - 1) / 2
    const HALF: f64 = 0.4189385332046728;
    if x < 0.5 {
        return x * poly(x, &LGAMMA_1) - log(x.abs());
    }
    if x < 1.5 {
        // Adding zero makes the zero at one positive.
        return (x - 1.0) * poly(x - 1.0, &LGAMMA_1) + 0.0;
    }
    if x < 8.0 {
        let (mut y, mut product) = (x, 1.0);
        while y > 2.5 {
            y -= 1.0;
            product *= y;
        }
        let near = (y - 2.0) * poly(y - 2.0, &LGAMMA_2);
        return if product == 1.0 { near } else { near + log(product) };
    }
    let inverse = 1.0 / x;
    (x - 0.5).mul_add(log(x) - 1.0, inverse.mul_add(poly(inverse * inverse, &STIRLING), HALF))
}

/// The derivative of [`lgamma`]: within 4 ulp for `x > 0`, and for `x < 0` (where it has a zero between any two poles)
/// within `1e-15 * max(1, |digamma(1 - x)|)` or 4 ulp, whichever is larger. NaN at the poles, zero included.
#[inline(always)]
pub fn digamma(x: f64) -> f64 {
    let reflected = x < 0.0;
    let core = digamma_right(if reflected { 1.0 - x } else { x });
    if !reflected {
        return core;
    }
    let d = fraction(x);
    if d == 0.0 || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    core - PI / tan_bounded(PI * d)
}

/// [`digamma`] for `x >= 0`.
#[inline(always)]
fn digamma_right(x: f64) -> f64 {
    const ROOT: f64 = 1.4616321449683622;
    const ROOT_LO: f64 = 9.549995429965697e-17;
    if x == 0.0 {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return x;
    }
    if x < 8.0 {
        // Walk to y between 1 and 2, and evaluate at t = y - 3/2.
        let (mut y, mut sum) = (x, 0.0);
        while y > 2.0 {
            y -= 1.0;
            sum += 1.0 / y;
        }
        let below = x < 1.0;
        let t = if below { x - 0.5 } else { y - 1.5 };
        let sum = if below { -1.0 / x } else { sum };
        return ((t - (ROOT - 1.5)) - ROOT_LO).mul_add(poly(t, &DIGAMMA_12), sum);
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    log(x) - 0.5f64.mul_add(inverse, square * poly(square, &DIGAMMA_TAIL))
}
