//! Functions stay short.

use super::Source;

/// Folders and the most lines of a function in them.
const MAX_LINES: &[(&str, usize)] = &[("crates/control/src/", 60)];

pub fn check(rust: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for source in rust {
        let Some((_, most)) = MAX_LINES.iter().find(|(folder, _)| source.name.starts_with(folder)) else {
            continue;
        };
        for (name, line, length) in functions(&source.text) {
            if length > *most {
                violations.push(format!(
                    "{}:{line}: function {name} has {length} lines, the limit is {most}",
                    source.name
                ));
            }
        }
    }
    violations
}

/// The functions of a formatted file: name, first line, number of lines.
fn functions(text: &str) -> Vec<(&str, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        // rustfmt puts the closing brace at the indentation of the function; a declaration ends with a semicolon.
        let closing = format!("{:indent$}}}", "");
        let end = lines[i..].iter().position(|l| **l == closing);
        let declaration = lines[i..].iter().position(|l| l.trim_end().ends_with(';'));
        let first_brace = lines[i..].iter().position(|l| l.trim_end().ends_with('{'));
        if let (Some(end), Some(brace)) = (end, first_brace)
            && declaration.is_none_or(|declaration| brace < declaration)
            && brace <= end
        {
            found.push((name, i + 1, end + 1));
        }
    }
    found
}

/// The name of the function that a line begins to declare.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "unsafe "] {
        words = words.strip_prefix(word).unwrap_or(words);
    }
    let rest = words.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}
