//! Exponentials, logarithms and what is made of them: the kernels' functions, operation by operation, so that results
//! have the same bits.

use super::block::Arg;
use super::encode as x86;
use super::vector::{Relation, Vector};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

mod power;
mod tables;

use tables as table;

impl Vector<'_> {
    /// `c[0] + c[1] x + c[2] x^2 + …`, in the kernels' order.
    fn poly(&mut self, x: Arg, single: &[f32], double: &[f64]) -> Arg {
        let coefficients: Vec<Arg> = if self.wide {
            double.iter().map(|&c| self.number(c)).collect()
        } else {
            single.iter().map(|&c| self.number(c as f64)).collect()
        };
        let c = &coefficients[..];
        if c.len() < 6 {
            return self.horner(x, c, 0, 1);
        }
        let y = self.mul(x, x);
        if c.len() < 10 {
            let (even, odd) = (self.horner(y, c, 2, 2), self.horner(y, c, 1, 2));
            let sum = self.mul_add(even, x, odd);
            return self.mul_add(sum, x, c[0]);
        }
        let z = self.mul(y, y);
        let (second, first) = (self.horner(z, c, 2, 4), self.horner(z, c, 1, 4));
        let low = self.mul_add(second, x, first);
        let (fourth, third) = (self.horner(z, c, 4, 4), self.horner(z, c, 3, 4));
        let high = self.mul_add(fourth, x, third);
        let sum = self.mul_add(high, y, low);
        self.mul_add(sum, x, c[0])
    }

    fn horner(&mut self, x: Arg, c: &[Arg], first: usize, step: usize) -> Arg {
        let mut i = first + (c.len() - 1 - first) / step * step;
        let mut sum = c[i];
        while i > first {
            i -= step;
            sum = self.mul_add(sum, x, c[i]);
        }
        sum
    }

    /// The width of the fraction.
    fn fraction(&self) -> u8 {
        if self.wide { 52 } else { 23 }
    }

    fn clamped(&mut self, x: Arg, (low, high): (f64, f64)) -> Arg {
        let x = self.at_most(x, high);
        self.at_least(x, low)
    }

    /// Adding it rounds to an integer, which is then in the sum's low bits.
    fn rounder(&self) -> f64 {
        if self.wide { 6755399441055744.0 } else { 12582912.0 }
    }

    /// `e^x = (1 + small) * 2^(k - bias)`; returns `small` and `k`.
    fn split_exp(&mut self, x: Arg) -> (Arg, Arg) {
        // Beyond these the result has long been infinite or zero.
        let x = self.clamped(x, if self.wide { (-800.0, 720.0) } else { (-170.0, 90.0) });
        self.split_exp_near(x)
    }

    /// [`Vector::split_exp`] of what is known to be within its bounds.
    fn split_exp_near(&mut self, x: Arg) -> (Arg, Arg) {
        let (sum, n) = self.whole_powers(x);
        let (high, low) = (self.pick(table::LN2_HI, LN_2), self.pick(table::LN2_LO, table::LN2_LO_DOUBLE));
        let r = self.neg_mul_add(n, high, x);
        let r = self.neg_mul_add(n, low, r);
        let small = self.exp_near_zero(r);
        (small, self.exponent(sum))
    }

    /// `x / ln 2`, rounded, as the low bits of one number and as another.
    fn whole_powers(&mut self, x: Arg) -> (Arg, Arg) {
        let bias = if self.wide { 2048.0 } else { 256.0 };
        let rounder = self.number(self.rounder() + bias);
        let log2_e = self.pick(std::f32::consts::LOG2_E, LOG2_E);
        let sum = self.mul_add(x, log2_e, rounder);
        (sum, self.sub(sum, rounder))
    }

    /// The integer that [`Vector::whole_powers`] left in the low bits.
    fn exponent(&mut self, sum: Arg) -> Arg {
        let rounder = self.number(self.rounder());
        self.int_sub(sum, rounder)
    }

    /// `e^r - 1` for `|r| <= ln(2) / 2`.
    fn exp_near_zero(&mut self, r: Arg) -> Arg {
        let square = self.mul(r, r);
        let rest = self.poly(r, &table::EXP, &table::EXP_DOUBLE);
        self.mul_add(square, rest, r)
    }

    /// `2^(k - bias)` as a float, of which an exponent's own bias is a part.
    fn power_of_two(&mut self, k: Arg, bias: i64) -> Arg {
        let bias = self.integer(bias);
        let k = self.int_sub(k, bias);
        self.shift_left(k, self.fraction())
    }

    /// Two factors of `2^(k - bias)`, which may be no float itself.
    fn halves(&mut self, k: Arg) -> [Arg; 2] {
        let half = self.shift_right(k, 1);
        let rest = self.int_sub(k, half);
        [self.power_of_two(half, 1), self.power_of_two(rest, 1)]
    }

    fn mul_both(&mut self, p: Arg, [first, second]: [Arg; 2]) -> Arg {
        let product = self.mul(p, first);
        self.mul(product, second)
    }

    /// `p * 2^(k - bias)`, rounded once.
    fn scale(&mut self, p: Arg, k: Arg) -> Arg {
        let halves = self.halves(k);
        self.mul_both(p, halves)
    }

    fn one_plus(&mut self, x: Arg) -> Arg {
        let one = self.number(1.0);
        self.add(one, x)
    }

    pub fn exp(&mut self, x: Arg) -> Arg {
        let (small, k) = self.split_exp(x);
        let p = self.one_plus(small);
        self.scale(p, k)
    }

    /// `e^x - 1` where one power of two is enough, from `e^x` in parts.
    fn expm1_of(&mut self, (small, k): (Arg, Arg)) -> Arg {
        let power = self.power_of_two(k, if self.wide { 1025 } else { 129 });
        let one = self.number(1.0);
        let whole = self.sub(power, one);
        self.mul_add(power, small, whole)
    }

    pub fn expm1(&mut self, x: Arg) -> Arg {
        let large = self.exp(x);
        let near = self.clamped(x, (if self.wide { -40.0 } else { -18.0 }, 40.0));
        let parts = self.split_exp_near(near);
        let near = self.expm1_of(parts);
        let beyond = self.compare_to(Relation::Greater, x, 40.0);
        let result = self.select(beyond, large, near);
        self.keep_zero(x, result)
    }

    /// `x` where it is zero, so that its sign stays.
    fn keep_zero(&mut self, x: Arg, result: Arg) -> Arg {
        let zero = self.compare_to(Relation::Equal, x, 0.0);
        self.select(zero, x, result)
    }

    /// `x = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, for positive normal `x`.
    fn split_log(&mut self, x: Arg) -> (Arg, Arg) {
        if !self.wide {
            let low = self.integer(0x3f35_04f3);
            let e = self.int_sub(x, low);
            let e = self.block.one_with(x86::SHIFT_SIGNED_32, e, 23);
            let scale = self.shift_left(e, 23);
            let m = self.int_sub(x, scale);
            return (self.block.one(x86::I32_TO_F32, e), m);
        }
        // The exponent is biased so that an unsigned shift serves.
        let low = self.bits((2048 << 52) - 0x3fe6_a09e_667f_3bcd);
        let k = self.int_add(x, low);
        let k = self.shift_right(k, 52);
        let whole = self.number(4503599627370496.0);
        let e = self.or(k, whole);
        let bias = self.number(4503599627370496.0 + 2048.0);
        let e = self.sub(e, bias);
        let bias = self.integer(2048);
        let scale = self.int_sub(k, bias);
        let scale = self.shift_left(scale, 52);
        (e, self.int_sub(x, scale))
    }

    /// [`Vector::split_log`] for positive `x`, denormals included.
    fn split_log_any(&mut self, x: Arg) -> (Arg, Arg) {
        let least = self.pick(f32::MIN_POSITIVE, f64::MIN_POSITIVE);
        let denormal = self.compare(Relation::Less, x, least);
        let (one, scale) = (self.number(1.0), self.pick(33554432.0, 18014398509481984.0));
        let scale = self.select(denormal, scale, one);
        let scaled = self.mul(x, scale);
        let (e, m) = self.split_log(scaled);
        let shift = self.pick(25.0, 54.0);
        let shift = self.and(denormal, shift);
        (self.sub(e, shift), m)
    }

    /// `e ln 2 + ln(1 + f) + low`, for `1 + f` around one; no `low` is zero.
    fn join_log(&mut self, e: Arg, f: Arg, low: Option<Arg>) -> Arg {
        let (ln2_hi, ln2_lo) =
            (self.pick(table::LN2_HI, LN_2), self.pick(table::LN2_LO, table::LN2_LO_DOUBLE));
        let low = low.unwrap_or_else(|| self.number(0.0));
        let low = self.mul_add(e, ln2_lo, low);
        let half = self.number(0.5);
        let (half, tail) = if self.wide {
            let two = self.number(2.0);
            let below = self.add(two, f);
            let s = self.div(f, below);
            let z = self.mul(s, s);
            let half = self.mul(half, f);
            let half = self.mul(half, f);
            let rest = self.poly(z, &[], &table::LOG_DOUBLE);
            let rest = self.mul_add(z, rest, half);
            (half, self.mul_add(s, rest, low))
        } else {
            let z = self.mul(f, f);
            let half = self.mul(half, z);
            let cube = self.mul(f, z);
            let rest = self.poly(f, &table::LOG, &[]);
            (half, self.mul_add(cube, rest, low))
        };
        let small = self.sub(half, tail);
        let rest = self.sub(f, small);
        self.mul_add(e, ln2_hi, rest)
    }

    /// What a logarithm gives at the edges of its domain, else `result`.
    fn log_edges(&mut self, x: Arg, result: Arg) -> Arg {
        let below = self.compare_to(Relation::Less, x, 0.0);
        // All bits set is a NaN.
        let edge = self.or(x, below);
        let zero = self.compare_to(Relation::Equal, x, 0.0);
        let minus = self.number(f64::NEG_INFINITY);
        let edge = self.select(zero, minus, edge);
        let above = self.compare_to(Relation::Greater, x, 0.0);
        let finite = self.compare_to(Relation::Less, x, f64::INFINITY);
        let inside = self.and(above, finite);
        self.select(inside, result, edge)
    }

    pub fn log(&mut self, x: Arg) -> Arg {
        let (e, m) = self.split_log_any(x);
        let one = self.number(1.0);
        let f = self.sub(m, one);
        let result = self.join_log(e, f, None);
        self.log_edges(x, result)
    }

    pub fn log1p(&mut self, x: Arg) -> Arg {
        let one = self.number(1.0);
        let u = self.add(one, x);
        let back = self.sub(u, one);
        let lost = self.sub(u, back);
        let lost = self.sub(one, lost);
        let rest = self.sub(x, back);
        let lost = self.add(lost, rest);
        let (e, m) = self.split_log(u);
        let unit = self.compare_to(Relation::Equal, e, 0.0);
        let f = self.sub(m, one);
        let f = self.select(unit, x, f);
        let low = self.div(lost, u);
        let low = self.not_and(unit, low);
        let result = self.join_log(e, f, Some(low));
        let result = self.log_edges(u, result);
        self.keep_zero(x, result)
    }

    pub fn tanh(&mut self, x: Arg) -> Arg {
        let two = self.number(2.0);
        let size = self.abs(x);
        let size = self.at_most(size, if self.wide { 20.0 } else { 10.0 });
        let size = self.mul(two, size);
        let parts = self.split_exp_near(size);
        let t = self.expm1_of(parts);
        let below = self.add(t, two);
        let result = self.div(t, below);
        self.with_sign(result, x)
    }

    pub fn sigmoid(&mut self, x: Arg) -> Arg {
        let exponent = self.neg_abs(x);
        let e = self.exp(exponent);
        let negative = self.compare_to(Relation::Less, x, 0.0);
        let one = self.number(1.0);
        let above = self.select(negative, e, one);
        let below = self.add(one, e);
        self.div(above, below)
    }

    pub fn softplus(&mut self, x: Arg) -> Arg {
        let exponent = self.neg_abs(x);
        let e = self.exp(exponent);
        let low = self.log1p(e);
        let positive = self.compare_to(Relation::Greater, x, 0.0);
        let high = self.add(x, low);
        self.select(positive, high, low)
    }

    /// `x * sigmoid(hi + lo)`, without losing bits where the sigmoid is denormal; no `lo` is zero.
    fn gated(&mut self, x: Arg, hi: Arg, lo: Option<Arg>) -> Arg {
        let negative = self.compare_to(Relation::Less, hi, 0.0);
        let exponent = self.neg_abs(hi);
        let (small, k) = self.split_exp(exponent);
        let p = match lo {
            Some(lo) => {
                let opposite = self.neg(lo);
                let lo = self.select(negative, lo, opposite);
                self.corrected(small, lo)
            }
            None => self.one_plus(small),
        };
        let halves = self.halves(k);
        let e = self.mul_both(p, halves);
        let below = self.one_plus(e);
        let gate = self.reciprocal(below);
        // Large negative inputs have an exponential of zero; keep the product away from infinity.
        let least = self.at_least(x, if self.wide { -1000.0 } else { -200.0 });
        let low = self.mul(least, p);
        let low = self.mul(low, gate);
        let low = self.mul_both(low, halves);
        let high = self.mul(x, gate);
        self.select(negative, low, high)
    }

    pub fn silu(&mut self, x: Arg) -> Arg {
        self.gated(x, x, None)
    }

    pub fn gelu_tanh(&mut self, x: Arg) -> Arg {
        let (a, a_lo) =
            (self.pick(1.5957692, 1.5957691216057308), self.pick(-4.534068e-08, -9.96930880911092e-17));
        let (b, b_lo) =
            (self.pick(7.1354814e-02, 0.07135481627260025), self.pick(2.3988325e-09, -6.175149918155315e-19));
        let bound = if self.wide { 50.0 } else { 20.0 };
        let c = self.clamped(x, (-bound, bound));
        let square = self.mul(c, c);
        let square_lo = self.mul_sub(c, c, square);
        let t = self.mul(b, square);
        let exact = self.mul_sub(b, square, t);
        let rest = self.mul(b_lo, square);
        let rest = self.mul_add(b, square_lo, rest);
        let t_lo = self.add(exact, rest);
        let w = self.add(a, t);
        let back = self.sub(w, a);
        let lost = self.sub(w, back);
        let lost = self.sub(a, lost);
        let rest = self.sub(t, back);
        let lost = self.add(lost, rest);
        let rest = self.add(t_lo, a_lo);
        let w_lo = self.add(lost, rest);
        let v = self.mul(w, c);
        let exact = self.mul_sub(w, c, v);
        let rest = self.mul(w_lo, c);
        let v_lo = self.add(exact, rest);
        self.gated(x, v, Some(v_lo))
    }

    /// `1 + small + (1 + small) lo`: what `e^(… + lo)` has before its power of two.
    fn corrected(&mut self, small: Arg, lo: Arg) -> Arg {
        let factor = self.one_plus(small);
        let small = self.mul_add(factor, lo, small);
        self.one_plus(small)
    }

    /// `e^(x^2) erfc(x)` for `x` from 0 to 28, of wide lanes.
    fn scaled_erfc(&mut self, x: Arg) -> Arg {
        let (four, two, one) = (self.number(4.0), self.number(2.0), self.number(1.0));
        let (above, below) = (self.sub(x, four), self.add(x, four));
        let ratio = self.div(above, below);
        let value = self.poly(ratio, &[], &table::ERFCX_DOUBLE);
        let below = self.mul_add(two, x, one);
        self.div(value, below)
    }

    /// `erf(x)` for `|x| <= 1`.
    fn erf_near(&mut self, x: Arg) -> Arg {
        let square = self.mul(x, x);
        let ratio = self.poly(square, &table::ERF, &table::ERF_DOUBLE);
        self.mul(x, ratio)
    }

    pub fn erf(&mut self, x: Arg) -> Arg {
        let size = self.abs(x);
        let tail = if self.wide {
            let a = self.at_most(size, 28.0);
            let square = self.mul(a, a);
            let square_lo = self.mul_sub(a, a, square);
            let (exponent, lo) = (self.neg(square), self.neg(square_lo));
            let (small, k) = self.split_exp_near(exponent);
            let p = self.corrected(small, lo);
            let scaled = self.scaled_erfc(a);
            let product = self.mul(p, scaled);
            self.scale(product, k)
        } else {
            let a = self.at_most(size, 4.0);
            let exponent = self.poly(a, &table::ERF_TAIL, &[]);
            let exponent = self.neg(exponent);
            self.exp(exponent)
        };
        let one = self.number(1.0);
        let far = self.sub(one, tail);
        let far = self.with_sign(far, x);
        let near = self.erf_near(x);
        let beyond = self.compare_to(Relation::Greater, size, 1.0);
        self.select(beyond, far, near)
    }

    pub fn gelu(&mut self, x: Arg) -> Arg {
        let size = self.abs(x);
        let half = self.number(0.5);
        let near = if self.wide {
            let root = self.number(FRAC_1_SQRT_2);
            let scaled = self.mul(x, root);
            let erf = self.erf_near(scaled);
            self.mul_add(half, erf, half)
        } else {
            let square = self.mul(x, x);
            let ratio = self.poly(square, &table::NORMAL, &[]);
            self.mul_add(x, ratio, half)
        };
        let near = self.mul(x, near);
        // Where the tail times x has vanished.
        let b = self.at_most(size, if self.wide { 39.0 } else { 14.4 });
        let square = self.mul(b, b);
        let square_lo = self.mul_sub(b, b, square);
        let minus_half = self.number(-0.5);
        let (exponent, lo) = (self.mul(minus_half, square), self.mul(minus_half, square_lo));
        let (small, k) = self.split_exp_near(exponent);
        let p = self.corrected(small, lo);
        let product = if self.wide {
            let root = self.number(FRAC_1_SQRT_2);
            let scaled = self.mul(b, root);
            let scaled = self.scaled_erfc(scaled);
            let product = self.mul(half, b);
            let product = self.mul(product, p);
            self.mul(product, scaled)
        } else {
            let four = self.number(4.0);
            let (above, below) = (self.sub(b, four), self.add(b, four));
            let ratio = self.div(above, below);
            let ratio = self.poly(ratio, &table::NORMAL_TAIL, &[]);
            let above = self.mul(b, ratio);
            let (slope, one) = (self.number(1.5), self.number(1.0));
            let below = self.mul_add(slope, b, one);
            let ratio = self.div(above, below);
            self.mul(p, ratio)
        };
        let tail = self.scale(product, k);
        let negative = self.compare_to(Relation::Less, x, 0.0);
        let (low, high) = (self.neg(tail), self.sub(x, tail));
        let far = self.select(negative, low, high);
        let close = self.compare_to(Relation::Less, size, 0.75);
        self.select(close, near, far)
    }
}
