//! Uniform, normal and exponential numbers.

use super::philox::{LANES, Words, join_all};
use super::{Draw, Key, fill};
use crate::dtype::{bf16, f16};
use crate::math::{Real, double, log};
use crate::{DType, Element, ViewMut};
use half::slice::HalfFloatSliceExt;

const TWO_POW_24: f32 = 16777216.0;
const TWO_POW_53: f64 = 9007199254740992.0;

/// A half-precision type: drawn in single precision, rounded, and kept within its bounds.
trait Half: Element + PartialOrd {
    fn round(values: &[f32; 32], out: &mut [Self; 32]);
}

impl Half for f16 {
    #[inline(always)]
    fn round(values: &[f32; 32], out: &mut [f16; 32]) {
        out.convert_from_f32_slice(values);
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn round(values: &[f32; 32], out: &mut [bf16; 32]) {
        out.convert_from_f32_slice(values);
    }
}

struct Rounded<D, H> {
    single: D,
    least: H,
    most: H,
}

impl<H: Half, D: Draw<f32, 32>> Draw<H, 32> for Rounded<D, H> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [H; 32] {
        let mut out = [self.least; 32];
        H::round(&self.single.draw(words), &mut out);
        for value in &mut out {
            *value = if *value > self.most { self.most } else { *value };
            *value = if *value < self.least { self.least } else { *value };
        }
        out
    }
}

/// The largest value below `x`.
fn below<T: Element>(x: T) -> T {
    // Stepping by the bits of the type: away from zero for negative values, toward it for positive ones.
    crate::dispatch!(T::DTYPE, F in floats => {
        let x: F = bytemuck::cast_slice::<T, F>(&[x])[0];
        let bits = x.to_bits();
        let down = match x.to_f64() {
            0.0 => (-F::from_f64(0.0)).to_bits() + 1,
            v if v > 0.0 => bits - 1,
            _ => bits + 1,
        };
        bytemuck::cast_slice::<F, T>(&[F::from_bits(down)])[0]
    })
}

/// `low + u (high - low)` for `u` in `[0, 1)`.
#[derive(Clone, Copy)]
struct Uniform<F> {
    low: F,
    span: F,
    most: F,
    /// Two where the span itself would overflow and everything is computed at half the size.
    scale: F,
}

macro_rules! uniform_of {
    ($($t:ty),*) => {$(
        impl Uniform<$t> {
            fn new(low: $t, high: $t) -> Uniform<$t> {
                let most = if low < high { below(high) } else { low };
                if (high - low).is_finite() {
                    Uniform { low, span: high - low, most, scale: 1.0 }
                } else {
                    Uniform { low: low / 2.0, span: high / 2.0 - low / 2.0, most, scale: 2.0 }
                }
            }

            #[inline(always)]
            fn place(&self, u: $t) -> $t {
                let value = u.mul_add(self.span, self.low) * self.scale;
                if value > self.most { self.most } else { value }
            }
        }
    )*};
}
uniform_of!(f32, f64);

impl Draw<f32, 32> for Uniform<f32> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [f32; 32] {
        let mut out = [0.0; 32];
        for (part, words) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(words) {
            for (value, &word) in part.iter_mut().zip(words) {
                *value = self.place((word >> 8) as i32 as f32 / TWO_POW_24);
            }
        }
        out
    }
}

impl Draw<f64, 16> for Uniform<f64> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [f64; 16] {
        let mut out = [0.0; 16];
        for (part, words) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(&join_all(words)) {
            for (value, &word) in part.iter_mut().zip(words) {
                *value = self.place(unit(word));
            }
        }
        out
    }
}

/// A number in `[0, 1)` from the top 53 bits.
#[inline(always)]
pub(super) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / TWO_POW_53
}

/// Draws from `[low, high)`, whose ends are first rounded to the output's type; `high` itself never comes. Steps are
/// 2^-24 (2^-53 in double precision) of the interval.
pub fn uniform(key: Key, first: u64, low: f64, high: f64, mut out: ViewMut<'_>) {
    match out.dtype() {
        DType::F64 => fill(key, first, &Uniform::<f64>::new(low, high), out.slice()),
        DType::F32 => fill(key, first, &Uniform::<f32>::new(low as f32, high as f32), out.slice()),
        DType::F16 => uniform_half::<f16>(key, first, low, high, &mut out),
        DType::BF16 => uniform_half::<bf16>(key, first, low, high, &mut out),
        other => panic!("no uniform {other}"),
    }
}

fn uniform_half<H: Half>(key: Key, first: u64, low: f64, high: f64, out: &mut ViewMut<'_>) {
    let (low, high) = (H::from_f64(low), H::from_f64(high));
    let single = Uniform::<f32>::new(low.to_f64() as f32, high.to_f64() as f32);
    let most = if low < high { below(high) } else { low };
    fill(key, first, &Rounded { single, least: low, most }, out.slice());
}

/// `mean + z deviation` for standard normal `z`.
#[derive(Clone, Copy)]
struct Normal<F> {
    mean: F,
    deviation: F,
}

/// Sine and cosine for `|x| <= pi/4`, within 2 ulp: their series.
#[inline(always)]
fn sin_cos_near(x: f32) -> (f32, f32) {
    let z = x * x;
    let sin = z.mul_add(1.0 / 362880.0, -1.0 / 5040.0).mul_add(z, 1.0 / 120.0).mul_add(z, -1.0 / 6.0);
    let cos = z.mul_add(1.0 / 40320.0, -1.0 / 720.0).mul_add(z, 1.0 / 24.0).mul_add(z, -0.5);
    ((x * z).mul_add(sin, x), z.mul_add(cos, 1.0))
}

/// Two independent standard normals from two words (Box and Muller). The radius uses 39 bits, the angle 24: the
/// tails reach 7.4 standard deviations.
#[inline(always)]
fn normal_pair(a: u32, b: u32) -> (f32, f32) {
    const TWO_POW_31: f32 = 2147483648.0;
    // The low bits of b matter only where a is small, which is where the tails are made.
    let fine = ((b & 0xff) as i32 as f32 + 0.5) / 256.0;
    let u = ((a >> 1) as i32 as f32 + fine) / TWO_POW_31;
    let radius = (-2.0 * log(u)).sqrt();
    // The angle is a quarter turn times 0..4 (bits 30, 31) plus one within an eighth turn of zero.
    let near = ((b >> 8 & 0x3f_ffff) as i32 - 0x20_0000) as f32 + 0.5;
    let (sin, cos) = sin_cos_near(near * (std::f32::consts::FRAC_PI_2 / 4194304.0));
    let (x, y) = if b & 1 << 30 == 0 { (cos, sin) } else { (sin, cos) };
    // Quarter turns 0..4 are (c, s), (-s, c), (-c, -s), (s, -c).
    let sign_x = (b ^ b << 1) & 1 << 31;
    let sign_y = b & 1 << 31;
    let signed = |v: f32, sign: u32| f32::from_bits(v.to_bits() ^ sign);
    (radius * signed(x, sign_x), radius * signed(y, sign_y))
}

/// As [`normal_pair`] in double precision, from two 64-bit words: 64 bits of radius, tails to 9.4.
#[inline(always)]
pub(super) fn normal_pair_double(a: u64, b: u64) -> (f64, f64) {
    const TWO_POW_52: f64 = 4503599627370496.0;
    // A 52-bit integer as a float: the bits of 2^52 plus the integer.
    let exact = |v: u64| f64::from_bits(v | 0x4330_0000_0000_0000) - TWO_POW_52;
    let fine = (exact(a & 0xfff) + 0.5) / 4096.0;
    let u = (exact(a >> 12) + fine) / TWO_POW_52;
    let radius = (-2.0 * log(u)).sqrt();
    let near = exact((b >> 10) & ((1 << 52) - 1)) - TWO_POW_52 / 2.0 + 0.5;
    let angle = near * (std::f64::consts::FRAC_PI_2 / TWO_POW_52);
    let (sin, cos) = (Real::sin_bounded(angle), Real::cos_bounded(angle));
    let (x, y) = if b & 1 << 62 == 0 { (cos, sin) } else { (sin, cos) };
    let sign_x = (b ^ b << 1) & 1 << 63;
    let sign_y = b & 1 << 63;
    let signed = |v: f64, sign: u64| f64::from_bits(v.to_bits() ^ sign);
    (radius * signed(x, sign_x), radius * signed(y, sign_y))
}

impl Draw<f32, 32> for Normal<f32> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [f32; 32] {
        let mut out = [[0.0; LANES]; 4];
        for pair in [0, 2] {
            for l in 0..LANES {
                let (x, y) = normal_pair(words[pair][l], words[pair + 1][l]);
                out[pair][l] = x.mul_add(self.deviation, self.mean);
                out[pair + 1][l] = y.mul_add(self.deviation, self.mean);
            }
        }
        bytemuck::cast(out)
    }
}

impl Draw<f64, 16> for Normal<f64> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [f64; 16] {
        let mut out = [[0.0; LANES]; 2];
        let [a, b] = join_all(words);
        for l in 0..LANES {
            let (x, y) = normal_pair_double(a[l], b[l]);
            out[0][l] = x.mul_add(self.deviation, self.mean);
            out[1][l] = y.mul_add(self.deviation, self.mean);
        }
        bytemuck::cast(out)
    }
}

/// Draws from the normal distribution.
pub fn normal(key: Key, first: u64, mean: f64, deviation: f64, mut out: ViewMut<'_>) {
    let single = Normal { mean: mean as f32, deviation: deviation as f32 };
    match out.dtype() {
        DType::F64 => fill(key, first, &Normal { mean, deviation }, out.slice()),
        DType::F32 => fill(key, first, &single, out.slice()),
        DType::F16 => {
            let draw = Rounded { single, least: f16::NEG_INFINITY, most: f16::INFINITY };
            fill(key, first, &draw, out.slice());
        }
        DType::BF16 => {
            let draw = Rounded { single, least: bf16::NEG_INFINITY, most: bf16::INFINITY };
            fill(key, first, &draw, out.slice());
        }
        other => panic!("no normal {other}"),
    }
}

/// Draws from the normal distribution cut off at two standard deviations, by inverting its distribution function.
/// Single and half precision take 32 random bits an element, double 64.
pub fn truncated_normal(key: Key, first: u64, mean: f64, deviation: f64, mut out: ViewMut<'_>) {
    match out.dtype() {
        DType::F64 => fill(key, first, &Truncated::<f64>::new(mean, deviation), out.slice()),
        DType::F32 => fill(key, first, &Truncated::<f32>::new(mean, deviation), out.slice()),
        DType::F16 => fill(key, first, &Truncated::<f16>::new(mean, deviation), out.slice()),
        DType::BF16 => fill(key, first, &Truncated::<bf16>::new(mean, deviation), out.slice()),
        other => panic!("no normal {other}"),
    }
}

struct Truncated<T> {
    mean: f64,
    deviation: f64,
    least: T,
    most: T,
}

impl<T: Element + PartialOrd> Truncated<T> {
    fn new(mean: f64, deviation: f64) -> Truncated<T> {
        let edge = 2.0 * deviation.abs();
        // Rounding to the type must not reach the cut.
        let inside = |bound: f64| {
            let rounded = T::from_f64(bound);
            if rounded.to_f64() >= bound && edge > 0.0 { below(rounded) } else { rounded }
        };
        let most = inside(mean + edge);
        let least = T::from_f64(-inside(edge - mean).to_f64());
        Truncated { mean, deviation, least, most }
    }

    /// The value where the distribution function is `(1 + p erf(sqrt 2)) / 2`, for `-1 < p < 1`.
    #[inline(always)]
    fn place(&self, p: f64) -> T {
        const COVERED: f64 = 0.9544997361036416;
        let z = std::f64::consts::SQRT_2 * double::erfinv(p * COVERED);
        let value = T::from_f64(z.mul_add(self.deviation, self.mean));
        let value = if value > self.most { self.most } else { value };
        if value < self.least { self.least } else { value }
    }
}

impl Draw<f64, 16> for Truncated<f64> {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [f64; 16] {
        let wide: [u64; 16] = bytemuck::cast(join_all(words));
        wide.map(|word| self.place(((word as i64 >> 11) as f64 + 0.5) * (2.0 / TWO_POW_53)))
    }
}

macro_rules! truncated {
    ($($t:ty),*) => {$(
        impl Draw<$t, 32> for Truncated<$t> {
            #[inline(always)]
            fn draw(&self, words: &Words) -> [$t; 32] {
                let narrow: [u32; 32] = bytemuck::cast(*words);
                narrow.map(|word| self.place((word as i32 as f64 + 0.5) / 2147483648.0))
            }
        }
    )*};
}
truncated!(f32, f16, bf16);

/// Standard exponentials, made in double precision for every type so that the small ones are not coarse.
struct Exponential {
    mean: f64,
}

impl<T: Element> Draw<T, 16> for Exponential {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [T; 16] {
        let mut out = [0.0; 16];
        let wide: [u64; 16] = bytemuck::cast(join_all(words));
        for (value, word) in out.iter_mut().zip(wide) {
            *value = -log(unit(word) + 0.5 / TWO_POW_53) * self.mean;
        }
        out.map(T::from_f64)
    }
}

/// Draws from the exponential distribution with this rate.
pub fn exponential(key: Key, first: u64, rate: f64, mut out: ViewMut<'_>) {
    let draw = Exponential { mean: 1.0 / rate };
    crate::dispatch!(out.dtype(), T in floats => fill(key, first, &draw, out.slice::<T>()));
}
