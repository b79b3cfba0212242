//! What the examples share: how much they do, a text to read, and how to write one.

use taut::{Result, Tensor, Trainer, random, s};

/// Whether little is enough: the tests say so.
pub fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

/// A text of some length, as lowercase letters, digits and a few signs: pages of the book.
pub fn text() -> Vec<u8> {
    let pages = [
        include_str!("../docs/src/first-steps.md"),
        include_str!("../docs/src/tensors.md"),
        include_str!("../docs/src/gradients.md"),
        include_str!("../docs/src/functions.md"),
        include_str!("../docs/src/control-flow.md"),
    ];
    let known = |byte: &u8| SIGNS.contains(byte);
    let mut text: Vec<u8> = pages.concat().to_lowercase().into_bytes().into_iter().filter(known).collect();
    text.dedup_by(|next, last| *next == b' ' && *last == b' ');
    text
}

/// The signs of [`text`], in the order of their numbers.
pub const SIGNS: &[u8] = b"\n abcdefghijklmnopqrstuvwxyz0123456789.,:;()`=&?|-";

/// The number of each sign.
pub fn encode(text: &[u8]) -> Vec<i64> {
    text.iter().filter_map(|byte| SIGNS.iter().position(|sign| sign == byte)).map(|at| at as i64).collect()
}

/// Goes on from a few signs, each drawn as the model finds them likely after those before it, of which it looks at `length`.
pub fn write(trainer: &Trainer, length: usize) -> Result<String> {
    let mut written = encode(b"the memory of ");
    for _ in 0..if is_quick() { 10 } else { 200 } {
        let seen = &written[written.len().saturating_sub(length)..];
        let logits = trainer.predict(&Tensor::from_slice(seen, [1, seen.len()])?)?;
        let last = (taut::slice(&logits, &s![.., -1])? / 0.6)?;
        written.push(random::categorical(last, 1)?.to_vec::<i64>()?[0]);
    }
    Ok(decode(&written))
}

/// The signs of these numbers.
fn decode(numbers: &[i64]) -> String {
    numbers.iter().map(|&number| char::from(SIGNS[number as usize])).collect()
}
