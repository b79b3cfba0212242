//! The names in the last column of the glossary exist in the code.

use super::{Source, read};
use crate::shell::Result;
use std::path::Path;

const PAGE: &str = "docs/src/glossary.md";

pub fn check(rust: &[Source]) -> Result<Vec<String>> {
    let page = read(Path::new(PAGE))?;
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| term"));
    let columns = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
    let names = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    let missing = names.filter(|name| {
        let last = name.rsplit("::").next().unwrap_or(name);
        let code = rust.iter().filter(|source| source.name.starts_with("crates/"));
        !code.flat_map(|source| source.text.lines()).any(|line| declares(line.trim_start(), last))
    });
    Ok(missing.map(|name| format!("{PAGE}: `{name}` is not in the code")).collect())
}

/// Whether a line declares a name: an item, a field or a variant.
fn declares(line: &str, name: &str) -> bool {
    let Some(at) = line.find(name) else { return false };
    let (before, after) = (&line[..at], &line[at + name.len()..]);
    let item = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "mod "];
    let visibility = ["", "pub ", "pub(crate) ", "pub(super) "];
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return false;
    }
    item.iter().any(|item| before.ends_with(item))
        || (visibility.contains(&before)
            && [":", ",", " {", "(", " ="].iter().any(|end| after.starts_with(end)))
}
