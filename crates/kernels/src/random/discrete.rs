//! Random bits, integers, Bernoulli and categorical samples, and permutations.

use super::continuous::unit;
use super::philox::{LANES, Words, block, join, join_all};
use super::{Draw, Key, fill, fill_part};
use crate::index::CHUNK;
use crate::index::runs::Runs;
use crate::math::exp;
use crate::{Bool, DType, Element, View, ViewMut, dispatch, multiversion, pool};

struct Bits;

impl Draw<u32, 32> for Bits {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [u32; 32] {
        bytemuck::cast(*words)
    }
}

impl Draw<u64, 16> for Bits {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [u64; 16] {
        bytemuck::cast(join_all(words))
    }
}

/// Fills an output of `u32` or `u64` with random bits.
pub fn random_bits(key: Key, first: u64, mut out: ViewMut<'_>) {
    match out.dtype() {
        DType::U32 => fill(key, first, &Bits, out.slice::<u32>()),
        DType::U64 => fill(key, first, &Bits, out.slice::<u64>()),
        other => panic!("random bits are uint32 or uint64, not {other}"),
    }
}

/// `low` plus a number below `span`, for types of at most 32 bits.
struct Narrow<T> {
    low: T,
    span: u64,
}

/// The same for 64 bits; a span of zero stands for 2^64.
struct Wide<T> {
    low: T,
    span: u64,
}

/// Draws integers from `low..high`: the top of the product of the span and random bits twice as wide as the type
/// (64, or 128 for 64-bit types). No number is more likely than another by more than one part in 2^32 (2^64).
///
/// # Panics
/// If the range is empty or reaches beyond the type.
pub fn integers(key: Key, first: u64, low: i128, high: i128, mut out: ViewMut<'_>) {
    assert!(low < high, "an empty range");
    dispatch!(out.dtype(), T in integers => {
        let start = T::try_from(low).expect("a range beyond the type");
        T::try_from(high - 1).expect("a range beyond the type");
        if size_of::<T>() == 8 {
            fill(key, first, &Wide { low: start, span: (high - low) as u64 }, out.slice::<T>());
        } else {
            fill(key, first, &Narrow { low: start, span: (high - low) as u64 }, out.slice::<T>());
        }
    });
}

macro_rules! integer_draws {
    ($($t:ty),*) => {$(
        impl Draw<$t, 16> for Narrow<$t> {
            #[inline(always)]
            fn draw(&self, words: &Words) -> [$t; 16] {
                let mut out = [[0; LANES]; 2];
                for half in 0..2 {
                    for l in 0..LANES {
                        let (low, high) = (words[2 * half][l] as u64, words[2 * half + 1][l] as u64);
                        let above = (high * self.span + (low * self.span >> 32)) >> 32;
                        out[half][l] = self.low.wrapping_add(above as $t);
                    }
                }
                bytemuck::cast(out)
            }
        }

        impl Draw<$t, 8> for Wide<$t> {
            #[inline(always)]
            fn draw(&self, words: &Words) -> [$t; 8] {
                let [low, high] = join_all(words);
                let mut out = [0; LANES];
                for l in 0..LANES {
                    let above = if self.span == 0 { high[l] } else { top_of_product(low[l], high[l], self.span) };
                    out[l] = self.low.wrapping_add(above as $t);
                }
                out
            }
        }
    )*};
}
integer_draws!(u8, u16, u32, u64, i8, i16, i32, i64);

/// `(high 2^64 + low) span / 2^128`.
#[inline(always)]
fn top_of_product(low: u64, high: u64, span: u64) -> u64 {
    let carry = (low as u128 * span as u128) >> 64;
    ((high as u128 * span as u128 + carry) >> 64) as u64
}

/// True where 32 random bits are below a threshold.
struct Below(u64);

impl Draw<Bool, 32> for Below {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [Bool; 32] {
        let narrow: [u32; 32] = bytemuck::cast(*words);
        let mut out = [Bool::FALSE; 32];
        for (value, &word) in out.iter_mut().zip(&narrow) {
            *value = Bool(((word as u64) < self.0) as u8);
        }
        out
    }
}

const TWO_POW_32: f64 = 4294967296.0;

/// Of 2^32 equally likely words, how many mean true.
#[inline(always)]
fn threshold(probability: f64) -> u64 {
    (probability.clamp(0.0, 1.0) * TWO_POW_32).round() as u64
}

/// Bernoulli samples: true with this probability (to the nearest 2^-32; for 0 and NaN never, for 1 always).
pub fn bernoulli(key: Key, first: u64, probability: f64, mut out: ViewMut<'_>) {
    fill(key, first, &Below(threshold(probability)), out.slice::<Bool>());
}

/// As [`bernoulli`], on this thread.
pub(crate) fn bernoulli_part(key: Key, first: u64, probability: f64, out: &mut [Bool]) {
    fill_part(key, first, &Below(threshold(probability)), out);
}

/// Bernoulli samples with one probability per element (floats, of `out`'s shape). If all are equal, the result is that of
/// [`bernoulli`].
pub fn bernoulli_each(key: Key, first: u64, probabilities: View<'_>, mut out: ViewMut<'_>) {
    assert_eq!(probabilities.shape(), out.shape(), "a probability per element");
    let runs = Runs::of(&probabilities);
    dispatch!(probabilities.dtype(), T in floats => {
        let data = probabilities.data::<T>();
        pool::for_each_mut(out.slice::<Bool>(), CHUNK, |start, out| {
            let mut words = [0u32; 64];
            let mut chances = [T::from_f64(0.0); 64];
            for (i, part) in out.chunks_mut(64).enumerate() {
                let n = part.len();
                fill_part(key, first + (start + 64 * i) as u64, &Bits, &mut words[..n]);
                runs.read(data, 0, start + 64 * i, &mut chances[..n]);
                for (value, (&word, &chance)) in part.iter_mut().zip(words.iter().zip(&chances)) {
                    *value = Bool::from((word as u64) < threshold(chance.to_f64()));
                }
            }
        });
    });
}

/// Bytes of scratch [`categorical`] needs for logits `[batch, classes]`.
pub fn categorical_scratch(classes: usize) -> usize {
    8 * classes
}

/// Draws classes by their unnormalised log-probabilities: `logits` is `[batch, classes]`, `out` `[batch, samples]` of
/// `i32` or `i64`. A logit of minus infinity is never drawn; one of plus infinity only shares with its like. A row with
/// NaN, or with minus infinity only, gives some valid class.
pub fn categorical(key: Key, first: u64, logits: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    let &[batch, classes] = logits.shape() else { panic!("logits are [batch, classes]") };
    let &[rows, samples] = out.shape() else { panic!("the output is [batch, samples]") };
    assert_eq!(batch, rows, "a row of samples per row of logits");
    if out.is_empty() {
        return;
    }
    assert!(classes > 0, "categorical needs at least one class");
    let sums = &mut bytemuck::cast_slice_mut::<u8, f64>(scratch)[..classes];
    let runs = Runs::of(&logits);
    for row in 0..batch {
        dispatch!(logits.dtype(), T in floats => cumulate(logits.data::<T>(), &runs, row * classes, sums));
        let sums = &*sums;
        let total = sums[classes - 1];
        let start = first + (row * samples) as u64;
        // Each sample looks for the first class whose cumulated weight exceeds its share of the total.
        let pick = |i: usize| {
            let index = start + i as u64;
            let [a, b, c, d] = block(key, index / 16 * 8 + index % 8);
            let word = if index % 16 < 8 { join(a, b) } else { join(c, d) };
            let share = unit(word) * total;
            sums.partition_point(|&sum| sum <= share).min(classes - 1)
        };
        match out.dtype() {
            DType::I32 => {
                let out = &mut out.slice::<i32>()[row * samples..(row + 1) * samples];
                pool::for_each_mut(out, CHUNK / 8, |at, out| {
                    (at..).zip(out).for_each(|(i, slot)| *slot = pick(i) as i32);
                });
            }
            DType::I64 => {
                let out = &mut out.slice::<i64>()[row * samples..(row + 1) * samples];
                pool::for_each_mut(out, CHUNK / 8, |at, out| {
                    (at..).zip(out).for_each(|(i, slot)| *slot = pick(i) as i64);
                });
            }
            other => panic!("classes are int32 or int64, not {other}"),
        }
    }
}

/// The running sums of the weights of one row of logits.
fn cumulate<T: Element>(data: &[T], runs: &Runs, start: usize, sums: &mut [f64]) {
    let mut at = 0;
    runs.for_each(start, sums.len(), |offset, stride, n| {
        for i in 0..n {
            sums[at] = data[(offset + i as isize * stride) as usize].to_f64();
            at += 1;
        }
    });
    let largest = sums.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    weigh(sums, largest);
    let mut sum = 0.0;
    for slot in sums {
        sum += *slot;
        *slot = sum;
    }
}

multiversion! {
    /// Turns logits into weights, one for the largest.
    fn weigh(logits: &mut [f64], largest: f64) {
        for slot in logits {
            // Equal to the largest is weight one even where the difference of infinities is not a number.
            let weight = exp(*slot - largest);
            *slot = if *slot == largest { 1.0 } else { weight };
        }
    }
}

/// Writes the numbers `0..n` in random order (`i32` or `i64`; Fisher and Yates, every order equally likely to one part
/// in 2^64 per step).
pub fn permutation(key: Key, mut out: ViewMut<'_>) {
    match out.dtype() {
        DType::I32 => {
            let out = out.slice::<i32>();
            (0..).zip(&mut *out).for_each(|(i, slot)| *slot = i);
            shuffle(key, out);
        }
        DType::I64 => {
            let out = out.slice::<i64>();
            (0..).zip(&mut *out).for_each(|(i, slot)| *slot = i);
            shuffle(key, out);
        }
        other => panic!("a permutation is int32 or int64, not {other}"),
    }
}

fn shuffle<T>(key: Key, out: &mut [T]) {
    let mut words = [0u64; 64];
    for start in (0..out.len()).step_by(64) {
        let n = 64.min(out.len() - start);
        fill_part(key, start as u64, &Bits, &mut words[..n]);
        for (i, &word) in (start..).zip(&words[..n]) {
            // Element i changes places with one of those up to itself.
            let other = ((word as u128 * (i as u128 + 1)) >> 64) as usize;
            out.swap(i, other);
        }
    }
}
