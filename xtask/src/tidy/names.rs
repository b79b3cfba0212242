//! Public types have names that are unique across the crates of the library.

use super::Source;
use std::collections::BTreeMap;

/// The command and the extension module are not imported by other crates; the latter has Python's names.
const EXEMPT: &[&str] = &["cli", "python"];

const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub fn check(rust: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in rust {
        let Some(path) = source.name.strip_prefix("crates/") else { continue };
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        if EXEMPT.contains(&name) || !rest.starts_with("src/") || rest.ends_with("tests.rs") {
            continue;
        }
        for name in source.text.lines().filter_map(declared) {
            files.entry(name).or_default().push(&source.name);
        }
    }
    let repeated = files.into_iter().filter(|(_, files)| files.len() > 1);
    repeated.map(|(name, files)| format!("public type {name} is declared in {}", files.join(", "))).collect()
}

/// The name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    KINDS.contains(&kind).then(|| &rest[..end])
}
