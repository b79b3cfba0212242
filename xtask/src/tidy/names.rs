//! Public types have names that are unique across the crates of the library.

use super::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The command and the extension module are not imported by other crates; the latter has Python's names.
const EXEMPT: &[&str] = &["cli", "python"];

/// Names that are declared twice. The list only gets shorter.
const KNOWN: &[&str] = &["Layout"];

const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub fn check(rust: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in rust {
        let Some(path) = source.name.strip_prefix("crates/") else { continue };
        let (folder, rest) = path.split_once('/').unwrap_or((path, ""));
        if EXEMPT.contains(&folder) || !rest.starts_with("src/") || rest.ends_with("tests.rs") {
            continue;
        }
        for name in source.text.lines().filter_map(declared) {
            crates.entry(name).or_default().insert(folder);
        }
    }
    let repeated = crates.into_iter().filter(|(name, crates)| crates.len() > 1 && !KNOWN.contains(name));
    let message = |(name, crates): (&str, BTreeSet<&str>)| {
        let crates: Vec<&str> = crates.into_iter().collect();
        format!("public type {name} is declared in the crates {}", crates.join(", "))
    };
    repeated.map(message).collect()
}

/// The name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    KINDS.contains(&kind).then(|| &rest[..end])
}
