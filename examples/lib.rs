//! What the examples share: how much they do, and a text to read.

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

/// The signs of these numbers.
pub fn decode(numbers: &[i64]) -> String {
    numbers.iter().map(|&number| char::from(SIGNS[number as usize])).collect()
}
