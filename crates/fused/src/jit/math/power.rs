//! Powers, of wide lanes; those of narrow ones are rounded from [`Vector::pow_short`].

use super::table;
use crate::jit::block::Arg;
use crate::jit::vector::{Relation, Rounding, Vector};
use std::f64::consts::LN_2;

impl Vector<'_> {
    /// The sum and what it lost.
    fn two_sum(&mut self, a: Arg, b: Arg) -> (Arg, Arg) {
        let sum = self.add(a, b);
        let back = self.sub(sum, a);
        let kept = self.sub(sum, back);
        let lost = self.sub(a, kept);
        let rest = self.sub(b, back);
        (sum, self.add(lost, rest))
    }

    /// The logarithm of a positive finite number as an unevaluated sum.
    fn log_pair(&mut self, x: Arg) -> (Arg, Arg) {
        let (e, m) = self.split_log_any(x);
        let (one, two) = (self.number(1.0), self.number(2.0));
        let f = self.sub(m, one);
        // s = f / (2 + f), with the remainder of the division; 2 + f may itself be rounded.
        let (below, below_low) = self.two_sum(two, f);
        let s = self.div(f, below);
        let rest = self.neg_mul_add(s, below, f);
        let lost = self.mul(s, below_low);
        let rest = self.sub(rest, lost);
        let s_low = self.div(rest, below);
        let twice = self.mul(two, s);
        let z = self.mul(s, s);
        let exact = self.mul_sub(s, s, z);
        let cross = self.mul(twice, s_low);
        let z_low = self.add(exact, cross);
        // c = 2/3 + z * tail, then the cube term s * z * c, each with its low part.
        let (third, third_low) = (self.number(0.6666666666666666), self.number(3.700743415417188e-17));
        let tail = self.poly(z, &[], &table::LOG_TAIL_DOUBLE);
        let tail = self.mul(z, tail);
        let c = self.add(third, tail);
        let kept = self.sub(c, third);
        let c_low = self.sub(tail, kept);
        let c_low = self.add(c_low, third_low);
        let q = self.mul(z, c);
        let q_low = self.product_low((z, z_low), (c, c_low), q);
        let cube = self.mul(s, q);
        let cube_low = self.product_low((s, s_low), (q, q_low), cube);
        let (unit, unit_low) = self.two_sum(twice, cube);
        let twice_low = self.mul(two, s_low);
        let rest = self.add(cube_low, twice_low);
        let unit_low = self.add(unit_low, rest);
        // e * ln 2 as a pair: the product of the high part is split exactly.
        let (ln2_hi, ln2_lo) = (self.number(LN_2), self.number(table::LN2_LO_DOUBLE));
        let big = self.mul(e, ln2_hi);
        let big_low = self.mul_sub(e, ln2_hi, big);
        let (sum, sum_low) = self.two_sum(big, unit);
        let rest = self.mul_add(e, ln2_lo, big_low);
        let rest = self.add(unit_low, rest);
        let low = self.add(sum_low, rest);
        let high = self.add(sum, low);
        let kept = self.sub(high, sum);
        (high, self.sub(low, kept))
    }

    /// What `product`, of the high parts, lacks.
    fn product_low(&mut self, (a, a_low): (Arg, Arg), (b, b_low): (Arg, Arg), product: Arg) -> Arg {
        let exact = self.mul_sub(a, b, product);
        let cross = self.mul(a_low, b);
        let cross = self.mul_add(a, b_low, cross);
        self.add(exact, cross)
    }

    /// `e^(hi + lo)` with `|lo|` tiny beside `hi`.
    fn exp_pair(&mut self, hi: Arg, lo: Arg) -> Arg {
        let bounded = self.clamped(hi, (-800.0, 720.0));
        let inside = self.compare(Relation::Equal, bounded, hi);
        let lo = self.and(inside, lo);
        let (sum, n) = self.whole_powers(bounded);
        let (ln2_hi, ln2_lo) = (self.number(LN_2), self.number(table::LN2_LO_DOUBLE));
        let r = self.neg_mul_add(n, ln2_hi, bounded);
        let low = self.neg_mul_add(n, ln2_lo, lo);
        let small = self.exp_near_zero(r);
        let p = self.corrected(small, low);
        let k = self.exponent(sum);
        self.scale(p, k)
    }

    /// `x` to the power `y`, of wide lanes.
    pub fn pow(&mut self, x: Arg, y: Arg) -> Arg {
        let base = self.ordinary(x);
        let (log, log_low) = self.log_pair(base);
        let bounded = self.clamped(y, (-1e20, 1e20));
        let high = self.mul(bounded, log);
        let exact = self.mul_sub(bounded, log, high);
        let rest = self.mul(bounded, log_low);
        let low = self.add(exact, rest);
        let size = self.exp_pair(high, low);
        self.power_edges(x, y, size)
    }

    /// [`Vector::pow`] of numbers that came from `f32`, good enough to round back to it.
    pub fn pow_short(&mut self, x: Arg, y: Arg) -> Arg {
        let base = self.ordinary(x);
        let log = self.log(base);
        let exponent = self.mul(y, log);
        let size = self.exp(exponent);
        self.power_edges(x, y, size)
    }

    /// `|x|`, or one where [`Vector::power_edges`] decides without the logarithm.
    fn ordinary(&mut self, x: Arg) -> Arg {
        let size = self.abs(x);
        let above = self.compare_to(Relation::Greater, size, 0.0);
        let finite = self.compare_to(Relation::Less, size, f64::INFINITY);
        let inside = self.and(above, finite);
        let one = self.number(1.0);
        self.select(inside, size, one)
    }

    /// The sign and the special cases of a power whose absolute value is `size` in the ordinary case.
    fn power_edges(&mut self, x: Arg, y: Arg, size: Arg) -> Arg {
        let (one, half, infinity) = (self.number(1.0), self.number(0.5), self.number(f64::INFINITY));
        let a = self.abs(x);
        let cut = self.round(y, Rounding::Zero);
        let whole = self.compare(Relation::Equal, cut, y);
        // A zero or infinite base, by the sign of the exponent.
        let large = self.compare(Relation::Greater, a, one);
        let positive = self.compare_to(Relation::Greater, y, 0.0);
        let vanishes = self.xor(large, positive);
        let edge = self.not_and(vanishes, infinity);
        let zero = self.compare_to(Relation::Equal, a, 0.0);
        let infinite = self.compare(Relation::Equal, a, infinity);
        let special = self.or(zero, infinite);
        let size = self.select(special, edge, size);
        let unit = self.compare(Relation::Equal, a, one);
        let size = self.select(unit, one, size);
        let halved = self.mul(half, y);
        let cut = self.round(halved, Rounding::Zero);
        let uneven = self.compare(Relation::Differ, cut, halved);
        let odd = self.and(whole, uneven);
        let sign = self.and(odd, x);
        let signed = self.with_sign(size, sign);
        let negative = self.compare_to(Relation::Less, x, 0.0);
        let finite = self.compare(Relation::Less, a, infinity);
        let outside = self.and(negative, finite);
        let outside = self.not_and(whole, outside);
        let nan = self.compare(Relation::Unordered, x, y);
        // All bits set is a NaN.
        let outside = self.or(outside, nan);
        let result = self.or(signed, outside);
        let nothing = self.compare_to(Relation::Equal, y, 0.0);
        let same = self.compare(Relation::Equal, x, one);
        let fixed = self.or(nothing, same);
        self.select(fixed, one, result)
    }
}
