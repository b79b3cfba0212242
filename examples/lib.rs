//! Shared by the examples: the `--quick` option, temporary folders, a text to train on, and sampling from a language model.

use std::path::{Path, PathBuf};
use taut::{Result, Tensor, Trainer, random, s};

/// Whether the example was started with `--quick`, as the tests do: less data, fewer epochs.
pub fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

/// A folder for the files of an example, which is removed when it is dropped.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder.
    pub fn new() -> Result<TemporaryFolder> {
        let path = std::env::temp_dir().join(format!("taut-example-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(TemporaryFolder(path))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Pages of the book as training text, reduced to the characters of [`VOCABULARY`].
pub fn text() -> Vec<u8> {
    let pages = [
        include_str!("../docs/src/first-steps.md"),
        include_str!("../docs/src/tensors.md"),
        include_str!("../docs/src/gradients.md"),
        include_str!("../docs/src/functions.md"),
        include_str!("../docs/src/control-flow.md"),
    ];
    let known = |byte: &u8| VOCABULARY.contains(byte);
    let mut text: Vec<u8> = pages.concat().to_lowercase().into_bytes().into_iter().filter(known).collect();
    text.dedup_by(|next, last| *next == b' ' && *last == b' ');
    text
}

/// The characters of [`text`]; a character's token is its index.
pub const VOCABULARY: &[u8] = b"\n abcdefghijklmnopqrstuvwxyz0123456789.,:;()`=&?|-";

/// The tokens of a text.
pub fn encode(text: &[u8]) -> Vec<i64> {
    text.iter()
        .filter_map(|byte| VOCABULARY.iter().position(|character| character == byte))
        .map(|at| at as i64)
        .collect()
}

/// Continues a prompt: samples token after token from the model, with a context of `length` tokens and temperature 0.6.
pub fn generate(trainer: &Trainer, length: usize) -> Result<String> {
    let mut tokens = encode(b"the memory of ");
    for _ in 0..if is_quick() { 10 } else { 200 } {
        let context = &tokens[tokens.len().saturating_sub(length)..];
        let logits = trainer.predict(&Tensor::from_slice(context, [1, context.len()])?)?;
        let last = (taut::slice(&logits, &s![.., -1])? / 0.6)?;
        tokens.push(random::categorical(last, 1)?.to_vec::<i64>()?[0]);
    }
    Ok(decode(&tokens))
}

/// The text of these tokens.
fn decode(tokens: &[i64]) -> String {
    tokens.iter().map(|&token| char::from(VOCABULARY[token as usize])).collect()
}
