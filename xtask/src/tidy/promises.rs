//! The page of promises links to every promise test.

use super::{read, sources};
use crate::shell::Result;
use std::path::Path;

const PAGE: &str = "docs/src/promises.md";

pub fn check() -> Result<Vec<String>> {
    let page = read(Path::new(PAGE))?;
    let tests = sources("tests/promises/test_*.py")?;
    let missing = tests.iter().filter(|test| !page.contains(&format!("({})", link(&test.name))));
    Ok(missing.map(|test| format!("{PAGE} has no link to {}", test.name)).collect())
}

/// A file of the project as the page links to it.
fn link(name: &str) -> String {
    format!("../../{name}")
}
