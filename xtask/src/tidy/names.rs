//! A public type's name is declared once in the library.

use super::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The command and the extension module are not imported by other crates; the latter has Python's names.
const EXEMPT: &[&str] = &["cli", "python"];

/// Names that are declared in two files.
const KNOWN: &[&str] = &[
    // Of tensors, and of convolutions.
    "Layout",
    // Keras has both a loss and a metric of this name.
    "MeanAbsoluteError",
    "MeanSquaredError",
    // One of the two is compiled: for processors with a code generator, and for others.
    "MachineCode",
];

const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub fn check(rust: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in rust {
        let Some(path) = source.name.strip_prefix("crates/") else { continue };
        let (folder, rest) = path.split_once('/').unwrap_or((path, ""));
        if EXEMPT.contains(&folder) || !rest.starts_with("src/") || is_test(rest) {
            continue;
        }
        for name in source.text.lines().filter_map(declared) {
            files.entry(name).or_default().insert(path);
        }
    }
    let repeated = files.iter().filter(|(name, files)| files.len() > 1 && !KNOWN.contains(name));
    let message = |(name, files): (&&str, &BTreeSet<&str>)| {
        let files: Vec<&str> = files.iter().copied().collect();
        format!("public type {name} is declared in {}", files.join(", "))
    };
    let gone = KNOWN.iter().filter(|name| files.get(*name).is_none_or(|files| files.len() < 2));
    let gone = gone.map(|name| format!("public type {name} is declared once: remove it from KNOWN"));
    repeated.map(message).chain(gone).collect()
}

fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.split('/').any(|part| part == "tests")
}

/// The name of the public type that a line declares, also inside a module or a macro. Associated types are not `pub`.
fn declared(line: &str) -> Option<&str> {
    let (kind, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (KINDS.contains(&kind) && end > 0).then(|| &rest[..end])
}
