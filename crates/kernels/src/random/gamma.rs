//! Gamma numbers, by Marsaglia and Tsang's rejection (2000).

use super::Key;
use super::continuous::{normal_pair_double, unit};
use super::philox::Stream;
use crate::index::CHUNK;
use crate::index::runs::Runs;
use crate::math::{exp, log};
use crate::{Element, View, ViewMut, dispatch, pool};

/// Draws from the gamma distribution with shape `alpha[i]` (floats, of `out`'s shape and type) and this rate. A shape
/// that is not positive gives NaN.
pub fn gamma(key: Key, first: u64, alpha: View<'_>, rate: f64, mut out: ViewMut<'_>) {
    assert_eq!(alpha.shape(), out.shape(), "a shape parameter per element");
    assert_eq!(alpha.dtype(), out.dtype(), "a result of another type");
    let runs = Runs::of(&alpha);
    dispatch!(alpha.dtype(), T in floats => {
        let data = alpha.data::<T>();
        // Some fifty nanoseconds an element: shared out early.
        pool::for_each_mut(out.slice::<T>(), CHUNK / 32, |start, out| {
            runs.read(data, 0, start, out);
            for (i, value) in (start as u64..).zip(out) {
                let mut stream = Stream::new(key, first + i);
                *value = T::from_f64(draw(&mut stream, value.to_f64()) / rate);
            }
        });
    });
}

/// One gamma number of this shape and rate one.
fn draw(stream: &mut Stream, alpha: f64) -> f64 {
    if alpha.is_nan() || alpha <= 0.0 {
        return f64::NAN;
    }
    if alpha.is_infinite() {
        return alpha;
    }
    if alpha < 1.0 {
        // A gamma of shape alpha + 1 times u^(1 / alpha) has shape alpha.
        let [word, _] = stream.next();
        let log = log(open(word)) / alpha;
        return above_one(stream, alpha + 1.0) * exp(log);
    }
    above_one(stream, alpha)
}

/// A number in `(0, 1)`.
fn open(word: u64) -> f64 {
    unit(word) + 0.5 / 9007199254740992.0
}

fn above_one(stream: &mut Stream, alpha: f64) -> f64 {
    let d = alpha - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let [a, b] = stream.next();
        let (x, _) = normal_pair_double(a, b);
        let [word, _] = stream.next();
        let t = c.mul_add(x, 1.0);
        let v = t * t * t;
        // The logarithm is the test; below, for v at most zero, there is nothing to accept.
        if v > 0.0 && log(open(word)) < 0.5 * x * x + d * (1.0 - v + log(v)) {
            return d * v;
        }
    }
}
