//! Rules for the op table of `crates/core`.

use super::{Source, read};
use crate::shell::{Result, tracked_files};
use std::path::Path;

pub fn check(rust: &[Source]) -> Result<Vec<String>> {
    let mut violations: Vec<String> = rust.iter().flat_map(caller_locations).collect();
    violations.extend(rust.iter().filter_map(core_uses_ops));
    violations.extend(files_outside_the_table()?);
    Ok(violations)
}

/// An error names the caller's line, which takes `#[track_caller]` on every function up to the caller.
fn caller_locations(source: &Source) -> Vec<String> {
    if !source.name.starts_with("crates/core/src/ops/") || source.name.matches('/').count() < 5 {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let mut violations = Vec::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub fn ")) {
        let above = lines[..i].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("///"));
        let mut signature = lines[i..].iter().take_while(|l| !l.starts_with('}')).take(12);
        let fails = signature.any(|l| l.contains("-> Result<"));
        if fails && !above.clone().any(|l| l.contains("track_caller")) {
            violations.push(format!("{}:{}: {line} without #[track_caller]", source.name, i + 1));
        }
    }
    violations
}

/// Tensors, graphs and `apply` do not depend on concrete ops; only operators do.
fn core_uses_ops(source: &Source) -> Option<String> {
    let inner = source.name.strip_prefix("crates/core/src/")?;
    let allowed = inner.starts_with("ops")
        || ["operators.rs", "lib.rs"].contains(&inner)
        || inner.ends_with("tests.rs");
    let code = source.text.split("#[cfg(test)]").next().unwrap_or_default();
    let uses = code.lines().any(|line| line.contains("crate::ops") && !line.trim_start().starts_with("//"));
    (!allowed && uses).then(|| format!("{}: only ops/ and operators.rs may use crate::ops", source.name))
}

/// A file in `ops/` that the table does not list would not be compiled.
fn files_outside_the_table() -> Result<Vec<String>> {
    let table = read(Path::new("crates/core/src/ops.rs"))?;
    let mut violations = Vec::new();
    for path in tracked_files("crates/core/src/ops/*/*.rs")? {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let group =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let row = table.split(';').find(|row| row.contains(&format!("{group}:")));
        let listed = row.is_some_and(|row| row.split_whitespace().any(|word| word == file));
        if !listed {
            violations.push(format!("{}: not in the table of ops.rs", path.display()));
        }
    }
    Ok(violations)
}
