//! The Python package is built from the crates of the Rust tests: with other features, they would be compiled twice.

use crate::shell::{Result, cargo};
use crate::{ALL_FEATURES, python};
use std::collections::BTreeSet;

/// A violation for every crate that the package needs with other features than the tests.
pub fn check() -> Result<Vec<String>> {
    let tests = crates(&["--workspace", "--edges", "normal,build,dev", "--features", ALL_FEATURES])?;
    let package =
        crates(&["--package", "taut-python", "--edges", "normal,build", "--features", python::FEATURES])?;
    let differing = package.difference(&tests).filter(|line| !line.starts_with("taut-python "));
    Ok(differing
        .map(|line| {
            format!(
                "crates/python/Cargo.toml: the feature `tests` must make the package use the crates of the tests, got {line}"
            )
        })
        .collect())
}

/// The crates of a build with their features, a line each.
fn crates(selection: &[&str]) -> Result<BTreeSet<String>> {
    let listed = cargo(&["tree", "--prefix", "none", "--format", "{p} with {f}"]).args(selection).output()?;
    Ok(listed.lines().map(|line| line.trim_end_matches(" (*)").replace(" (proc-macro)", "")).collect())
}
