//! The rules that lints cannot express.

mod features;
mod functions;
mod glossary;
mod modules;
mod names;
mod ops;
mod promises;
mod words;

use crate::shell::{Result, root, tracked_files};
use std::fs;
use std::path::Path;

/// The crates in the order data flows: a crate depends only on crates before it.
const CRATES: &[&str] = &[
    "memory",
    "kernels",
    "fused",
    "core",
    "autodiff",
    "compile",
    "plan",
    "exec",
    "control",
    "function",
    "distribute",
    "profile",
    "strings",
    "data",
    "nn",
    "taut",
    "cli",
    "python",
    "testing",
];
/// Crates without dependencies on other crates of the project.
const INDEPENDENT: &[&str] = &["memory", "kernels"];
/// Where `unsafe` is allowed.
const UNSAFE: &[&str] = &[
    "crates/memory/",
    "crates/kernels/",
    "crates/fused/",
    "crates/distribute/src/mpi/",
    "crates/python/",
    "crates/testing/src/heap.rs",
];
/// The most lines of a file.
const MAX_FILE_LINES: usize = 600;
/// A longer file gives its reason in a comment that starts like this.
const REASON: &str = "// Long because ";

/// A file of the project.
struct Source {
    /// Its path from the project's folder, with slashes.
    name: String,
    text: String,
}

/// The project's files whose names match a pattern of `git ls-files`.
fn sources(pattern: &str) -> Result<Vec<Source>> {
    let read = |path: std::path::PathBuf| {
        let text = read(&path)?;
        Ok(Source { name: path.to_string_lossy().replace('\\', "/"), text })
    };
    tracked_files(pattern)?.into_iter().map(read).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(root().join(path)).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}

/// Checks every rule and reports all violations.
pub fn check() -> Result {
    let rust = sources("*.rs")?;
    let mut violations = Vec::new();
    for source in &rust {
        violations.extend(length(source));
        violations.extend(ledger_checks(source));
        violations.extend(unsafe_outside(source));
    }
    violations.extend(features::check()?);
    violations.extend(ops::check(&rust)?);
    violations.extend(names::check(&rust));
    violations.extend(functions::check(&rust));
    violations.extend(words::check()?);
    violations.extend(promises::check()?);
    violations.extend(glossary::check(&rust)?);
    for name in CRATES {
        violations.extend(dependencies(name)?);
    }
    violations.extend(unlisted_crates()?);
    violations.extend(dead_links()?);
    violations.extend(modules::check(&rust));
    if !violations.is_empty() {
        return Err(format!("{} violations:\n  {}", violations.len(), violations.join("\n  ")));
    }
    let blocks: usize = rust.iter().map(|source| unsafe_count(&source.text)).sum();
    println!("tidy; {blocks} unsafe blocks, all in {}", UNSAFE.join(", "));
    Ok(())
}

fn length(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    (lines > MAX_FILE_LINES && !source.text.contains(REASON)).then(|| {
        format!("{}: {lines} lines, the limit is {MAX_FILE_LINES}; split it, or say `{REASON}…`", source.name)
    })
}

/// Blocks, functions and impls; not the word in comments.
fn unsafe_count(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let starts = ["unsafe {", "unsafe fn ", "unsafe impl", "unsafe trait"];
    // A quoted word is not code: this file has some.
    code.filter(|line| starts.iter().any(|s| line.contains(s) && !line.contains(&format!("\"{s}")))).count()
}

fn unsafe_outside(source: &Source) -> Option<String> {
    let allowed = UNSAFE.iter().any(|folder| source.name.starts_with(folder));
    (!allowed && unsafe_count(&source.text) > 0)
        .then(|| format!("{}: unsafe outside {}", source.name, UNSAFE.join(", ")))
}

/// Every test that can hold tensors checks that it freed all bytes, itself or by a function of its file.
fn ledger_checks(source: &Source) -> Vec<String> {
    if !["crates/core/", "crates/taut/"].iter().any(|folder| source.name.starts_with(folder)) {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let body = |first: usize| {
        let indent = lines[first].len() - lines[first].trim_start().len();
        let end = (first..lines.len()).find(|&j| lines[j].starts_with(&format!("{:indent$}}}", "")));
        &lines[first..end.unwrap_or(lines.len())]
    };
    let calls = |first: usize, call: &str| body(first).iter().any(|line| line.contains(call));
    let functions = lines.iter().enumerate().filter_map(|(i, line)| Some((i, line.strip_prefix("fn ")?)));
    let helpers = functions.filter(|&(i, _)| calls(i, "ledger_check()"));
    let helpers: Vec<String> =
        helpers.filter_map(|(_, rest)| Some(format!("{}(", rest.split(['(', '<']).next()?))).collect();
    let is_checked = |i: usize| {
        let own = calls(i, "ledger_check()") || calls(i, "every_row(");
        // The first lines of a test have its own name.
        own || helpers.iter().any(|call| body(i).iter().skip(2).any(|line| line.contains(call.as_str())))
    };
    let tests = lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]");
    let unchecked = tests.filter(|&(i, _)| !is_checked(i));
    unchecked.map(|(i, _)| format!("{}:{}: a test without ledger_check()", source.name, i + 1)).collect()
}

/// A crate's dependencies within the project come before it in [`CRATES`].
fn dependencies(name: &str) -> Result<Vec<String>> {
    let manifest = read(Path::new(&format!("crates/{name}/Cargo.toml")))?;
    let index = CRATES.iter().position(|other| *other == name).unwrap_or(0);
    let allowed = if INDEPENDENT.contains(&name) { &[] } else { &CRATES[..index] };
    // Tests may use crates that depend on the one they test.
    let manifest = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    let used = CRATES.iter().filter(|other| {
        manifest.lines().any(|line| {
            line.starts_with(&format!("taut-{other}.")) || line.starts_with(&format!("taut-{other} "))
        })
    });
    let wrong = used.filter(|other| !allowed.contains(other));
    Ok(wrong.map(|other| format!("crates/{name} must not depend on {other}")).collect())
}

fn unlisted_crates() -> Result<Vec<String>> {
    let folders = fs::read_dir(root().join("crates")).map_err(|e| e.to_string())?;
    let names = folders.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let unlisted = names.filter(|name| !CRATES.contains(&name.as_str()));
    Ok(unlisted.map(|name| format!("crates/{name} is not in the list CRATES of xtask/src/tidy.rs")).collect())
}

/// Links between the project's own documents lead to files that exist.
fn dead_links() -> Result<Vec<String>> {
    let mut dead = Vec::new();
    for Source { name, text } in sources("*.md")? {
        let folder = root().join(&name).parent().map(Path::to_path_buf).unwrap_or_default();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let external = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !external && !folder.join(target).exists() {
                dead.push(format!("{name}: link to {target}, which does not exist"));
            }
        }
    }
    Ok(dead)
}
