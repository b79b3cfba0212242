//! Counter-based random numbers.
//!
//! Every value is a function of ([`Key`], index of the element): Philox4x32 with ten rounds turns a counter into
//! 128 random bits. Threads, chunks and vector width change nothing, and any part of a sequence can be drawn again:
//! `first` is the index of the output's first element.
//!
//! How counters become elements: eight counters are drawn side by side, and element `i` of a group reads lane `i % 8`.
//! A group gives 32 elements of 32 bits, 16 of 64 or 8 of 128. Where the number of draws is itself random
//! ([`gamma`]), each element has a generator of its own, keyed by the bits drawn at its index.

mod continuous;
mod discrete;
mod gamma;
mod philox;

pub use continuous::{exponential, normal, truncated_normal, uniform};
pub(crate) use discrete::bernoulli_part;
pub use discrete::{
    bernoulli, bernoulli_each, categorical, categorical_scratch, integers, permutation, random_bits,
};
pub use gamma::gamma;

use crate::index::CHUNK;
use crate::{Element, multiversion, pool};
use philox::{Words, group};

/// Names a sequence of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What the user chose.
    pub seed: u64,
    /// Which of the program's random operations this is.
    pub op: u64,
}

/// Makes `N` elements of a group of random words.
trait Draw<T, const N: usize>: Sync {
    fn draw(&self, words: &Words) -> [T; N];
}

/// Fills `out` with the elements from number `first` on.
fn fill<T: Element, const N: usize, D: Draw<T, N>>(key: Key, first: u64, draw: &D, out: &mut [T]) {
    pool::for_each_mut(out, CHUNK, |start, out| fill_part(key, first + start as u64, draw, out));
}

/// As [`fill`], on this thread.
fn fill_part<T: Element, const N: usize, D: Draw<T, N>>(key: Key, first: u64, draw: &D, out: &mut [T]) {
    let (number, skip) = (first / N as u64, (first % N as u64) as usize);
    if skip == 0 {
        return fill_groups(key, number, draw, out);
    }
    // The rest of a group that began before `first`. Apart from the loop over whole groups, whose code it would slow down.
    let mut head = [T::zeroed(); N];
    fill_groups(key, number, draw, &mut head);
    let n = (N - skip).min(out.len());
    let (begin, rest) = out.split_at_mut(n);
    begin.copy_from_slice(&head[skip..skip + n]);
    fill_groups(key, number + 1, draw, rest);
}

multiversion! {
    /// Fills `out` with the elements of the groups from `number` on.
    fn fill_groups[T: Element, const N: usize, D: Draw<T, N>](key: Key, number: u64, draw: &D, out: &mut [T]) {
        let mut number = number;
        let (whole, tail) = out.as_chunks_mut::<N>();
        for part in whole {
            *part = draw.draw(&group(key, number));
            number += 1;
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&draw.draw(&group(key, number))[..tail.len()]);
        }
    }
}

#[cfg(test)]
mod tests;
