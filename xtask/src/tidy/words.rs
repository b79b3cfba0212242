//! Words and names that are not used: the field has better ones. This file is not checked.
//!
//! Four lists, because most of these words are also ordinary English or ordinary identifiers somewhere: phrases are looked for
//! in all text, identifiers as whole words, declarations only where an item gets the name, and file names in paths. Some former names cannot be
//! told from ordinary ones and are in no list: `batch`, `load`, `height`, `spare`, `outside`, `over`, `through`, `Shape`, `Barrier`.

use super::{Source, sources};
use crate::shell::Result;

const PATTERNS: &[&str] = &["*.rs", "*.py", "*.pyi", "*.md", "*.js", "*.html", "*.toml", "*.yml"];

/// Phrases, in any case, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("nobody", "say what holds: `unused`, `not shared`, `no reader`"),
    ("somebody", "name the holder: the caller, another thread, a tensor"),
    ("anybody", "name the holder: the caller, another thread, a tensor"),
    ("everybody", "name them: all callers, every thread"),
    ("whoever", "name the caller or the type"),
    ("those who", "name them: tapes, recorders, callers, threads"),
    ("who follow", "recorded by, tracked by"),
    ("who follows", "recorded by, tracked by"),
    ("people see", "side effects"),
    ("people are told", "a warning is issued"),
    ("people were told", "a warning was issued"),
    ("the way back", "the backward pass"),
    ("way back from", "the backward pass, the gradient of"),
    ("walk back", "the backward pass"),
    ("makes no sense", "is invalid; say what must hold and what was given"),
    ("make no sense", "are invalid; say what must hold and what was given"),
    ("counts nothing", "must be >= 0"),
    ("hold no channels", "must be >= 1"),
    ("a number has no", "expected rank >= 1, got a scalar"),
    ("have no order", "must be >= 0"),
    ("are the most", "exceeds the maximum of"),
    ("room for nothing", "must be >= 1"),
    ("at least, not", "must be >= .., got .."),
    ("up to, and never", "[low, high)"),
    ("counted rather than drawn", "counter-based"),
    ("in every way that is possible", "name the algorithm"),
    ("unless it is said here", "Default: .."),
    ("lies behind", "is reachable from"),
    ("gives up", "say what happens: returns, fails, stops after"),
    ("whose job", "say what it does"),
    ("in people's words", "as users write it"),
    ("rooms", "crates, modules"),
];

/// Identifiers, and what to use instead.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("on_behalf", "with_source_location"),
    ("for_itself", "without_source_location"),
    ("lines_matter", "needs_source_location"),
    ("ask_at_times", "set_interrupt_check"),
    ("wait_within", "set_blocking_hook"),
    ("is_same_to_all", "same_value_and_links"),
    ("is_own", "is_uniquely_owned"),
    ("is_seen", "has_side_effects"),
    ("is_data", "is_pure, cse_key"),
    ("with_bodies", "map_subgraphs"),
    ("measure_lives", "live_ranges"),
    ("take_turns", "swap_buffers"),
    ("hollow", "strip_values"),
    ("stand_in", "placeholder"),
    ("careless", "atomic: false"),
    ("NONSENSE", "POISON"),
    ("graves", "deferred drops"),
    ("burying", "deferred drops"),
    ("matmul_then", "matmul_with_epilogue"),
    ("Rewind", "CheckpointedBackward"),
    ("Anew", "optimization_barrier"),
    ("Followed", "TrackedValue"),
    ("Op::then", "fuse_epilogue"),
    ("Op::keeping", "forward_with_residuals"),
    ("Op::trimmed", "prune_outputs"),
    ("Tensor::over", "from_buffer"),
    ("Tensor::through", "with_layout"),
    ("Tensor::lent", "borrowed"),
];

/// Names that no function, type or module has, and what to use instead.
const DECLARATIONS: &[(&str, &str)] = &[
    ("then", "fuse_epilogue"),
    ("Finish", "Epilogue"),
    ("Ending", "Epilogue"),
    ("keeping", "forward_with_residuals"),
    ("trimmed", "prune_outputs"),
    ("bodies", "subgraphs"),
    ("settle", "record_op, or say what is computed"),
    ("adopt", "link_outputs"),
    ("itself", "optimization_barrier"),
    ("Given", "Donated"),
    ("give", "donate, or say what is returned"),
    ("Seen", "StridedView"),
    ("Reach", "reachability"),
    ("crowd", "overlap_bytes"),
    ("Piece", "AliasSet"),
    ("slab", "checkpoint_buffer"),
    ("Slots", "checkpoint buffers"),
    ("Keeper", "say what it keeps"),
    ("see", "maybe_checkpoint"),
    ("doubled", "double_buffered"),
    ("ask", "host_callback, or say what is queried"),
    ("tell", "host_callback"),
    ("lifts", "captured_constants"),
    ("lent", "borrowed"),
];

/// Names that a public type does not have alone, because many types could: say which options, which state.
const GENERIC: &[&str] = &["Options", "State", "Place", "Part", "Kind", "Slot", "Kept", "Held", "Entry"];

/// File names, without the folder, and what to use instead.
const FILES: &[(&str, &str)] = &[
    ("looping.rs", "a folder per concept"),
    ("many.rs", "vmap/"),
    ("inside.py", "py_function.py"),
    ("initial.py", "initializers.py"),
    ("windows.py", "conv.py, pool.py"),
    ("counting.py", "say what is counted"),
    ("averages.py", "ema.py"),
    ("custom.py", "custom_gradient.py"),
];

pub fn check() -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for pattern in PATTERNS {
        for source in sources(pattern)? {
            if !source.name.ends_with("xtask/src/tidy/words.rs") {
                violations.extend(found(&source));
            }
        }
    }
    Ok(violations)
}

fn found(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    let file = source.name.rsplit('/').next().unwrap_or(&source.name);
    for (_, instead) in FILES.iter().filter(|(name, _)| *name == file) {
        violations.push(format!("{}: file name; instead: {instead}", source.name));
    }
    for (number, line) in source.text.lines().enumerate() {
        let lower = line.to_lowercase();
        let phrases = PHRASES.iter().filter(|(phrase, _)| has_word(&lower, phrase));
        let identifiers = IDENTIFIERS.iter().filter(|(name, _)| has_word(line, name));
        let declarations = DECLARATIONS.iter().filter(|(name, _)| declares(line, name));
        for (word, instead) in phrases.chain(identifiers).chain(declarations) {
            violations.push(format!("{}:{}: `{word}`; instead: {instead}", source.name, number + 1));
        }
        for name in GENERIC.iter().filter(|name| declares_public_type(line, name)) {
            violations.push(format!("{}:{}: type `{name}`; say which", source.name, number + 1));
        }
    }
    violations
}

/// Whether a line of Rust or Python declares a function, type or module of this name.
fn declares(line: &str, name: &str) -> bool {
    let keywords =
        ["fn", "struct", "enum", "trait", "union", "pub type", "mod", "macro_rules!", "def", "class"];
    let code = line.trim_start();
    !code.starts_with("//") && keywords.iter().any(|keyword| has_word(code, &format!("{keyword} {name}")))
}

/// Whether a line declares a type of this name that other modules can use.
fn declares_public_type(line: &str, name: &str) -> bool {
    let code = line.trim_start();
    let kinds = ["struct", "enum", "trait", "union", "type"];
    let in_rust =
        code.starts_with("pub") && kinds.iter().any(|kind| has_word(code, &format!("{kind} {name}")));
    in_rust || has_word(code, &format!("class {name}"))
}

/// Whether a text contains a word or phrase that is not a part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(start, _)| {
        !is_part(text[..start].chars().next_back()) && !is_part(text[start + word.len()..].chars().next())
    })
}
