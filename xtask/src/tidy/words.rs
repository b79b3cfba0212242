//! Words and names that are not used: the field has better ones. This file is not checked.

use super::{Source, sources};
use crate::shell::Result;

const PATTERNS: &[&str] = &["*.rs", "*.py", "*.pyi", "*.md", "*.js", "*.html"];

/// Where the rule applies.
const FOLDERS: &[&str] = &["examples/", "tests/", "xtask/", "docs/src/promises.md", "docs/src/stability.md"];

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
    ("the way back", "the backward pass"),
    ("on the way back", "in the backward pass"),
    ("walk back", "the backward pass"),
    ("makes no sense", "is invalid; say what must hold and what was given"),
    ("make no sense", "are invalid; say what must hold and what was given"),
    ("counts nothing", "must be >= 0"),
    ("lies behind", "is reachable from"),
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
    ("with_bodies", "map_subgraphs"),
    ("measure_lives", "live_ranges"),
    ("take_turns", "swap_buffers"),
    ("hollow", "strip_values"),
    ("stand_in", "placeholder"),
    ("careless", "atomic: false"),
    ("NONSENSE", "POISON"),
    ("graves", "deferred drops"),
    ("burying", "deferred drops"),
];

pub fn check() -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for pattern in PATTERNS {
        for source in sources(pattern)? {
            let covered = FOLDERS.iter().any(|folder| source.name.starts_with(folder));
            if covered && !source.name.ends_with("xtask/src/tidy/words.rs") {
                violations.extend(found(&source));
            }
        }
    }
    Ok(violations)
}

fn found(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let lower = line.to_lowercase();
        let phrases = PHRASES.iter().filter(|(phrase, _)| has_word(&lower, phrase));
        let identifiers = IDENTIFIERS.iter().filter(|(name, _)| has_word(line, name));
        for (word, instead) in phrases.chain(identifiers) {
            violations.push(format!("{}:{}: `{word}`; instead: {instead}", source.name, number + 1));
        }
    }
    violations
}

/// Whether a text contains a word or phrase that is not a part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(start, _)| {
        !is_part(text[..start].chars().next_back()) && !is_part(text[start + word.len()..].chars().next())
    })
}
