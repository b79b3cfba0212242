//! Regular expressions with RE2's syntax.

use crate::builder::StringBuilder;
use crate::tensor::StringTensor;
use regex::bytes::{Match, Regex as Engine, RegexBuilder};
use std::fmt::Write as _;
use taut_core::{Bool, DType, Error, Result, Spec, Tensor, source_location};
use taut_memory::{Category, Location};

/// The largest compiled expression, in bytes.
const SIZE_LIMIT: usize = 10 << 20;

/// A compiled regular expression. The syntax is RE2's: `\d`, `\w`, `\s` and `\b` are those of ASCII.
#[derive(Clone, Debug)]
pub struct Regex(Engine);

impl Regex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Regex> {
        let translated = translate(pattern);
        let compiled = RegexBuilder::new(&translated).size_limit(SIZE_LIMIT).build();
        compiled.map(Regex).map_err(|error| Error::value(format!("invalid pattern {pattern:?}: {error}")))
    }

    /// Compiles a pattern that has to match whole strings.
    pub fn whole(pattern: &str) -> Result<Regex> {
        Regex::new(pattern)?;
        Regex::new(&format!(r"\A(?:{pattern})\z"))
    }
}

/// Rewrites RE2's syntax where this engine means something else by it.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(next) = chars.next() else {
                    out.push('\\');
                    break;
                };
                match (next, in_class) {
                    ('d', true) => out.push_str("0-9"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('s', true) => out.push_str(r"\t\n\x0C\r "),
                    ('D', true) => out.push_str("[^0-9]"),
                    ('W', true) => out.push_str("[^0-9A-Za-z_]"),
                    ('S', true) => out.push_str(r"[^\t\n\x0C\r ]"),
                    ('d', false) => out.push_str("[0-9]"),
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('s', false) => out.push_str(r"[\t\n\x0C\r ]"),
                    ('D', false) => out.push_str("[^0-9]"),
                    ('W', false) => out.push_str("[^0-9A-Za-z_]"),
                    ('S', false) => out.push_str(r"[^\t\n\x0C\r ]"),
                    ('b', false) => out.push_str(r"(?-u:\b)"),
                    ('B', false) => out.push_str(r"(?-u:\B)"),
                    ('C', false) => out.push_str("(?s-u:.)"),
                    ('Q', _) => quote(&mut chars, &mut out),
                    // RE2 accepts a backslash before any punctuation.
                    (next, _) if next.is_ascii_punctuation() => {
                        let _ = write!(out, "\\x{{{:x}}}", next as u32);
                    }
                    (next, _) => {
                        out.push('\\');
                        out.push(next);
                    }
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // A bracket that comes first is a member.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            // Nested classes and set operators are this engine's own.
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && chars.peek() == Some(&'-') => out.push_str(r"\-"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            c => out.push(c),
        }
    }
    out
}

/// The text up to `\E`, literally.
fn quote(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut literal = String::new();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next_if_eq(&'E').is_some() {
            break;
        }
        literal.push(c);
    }
    out.push_str(&regex::escape(&literal));
}

/// Whether each string matches the expression as a whole (see [`Regex::whole`]), as `bool`.
#[track_caller]
pub fn regex_full_match(x: &StringTensor, regex: &Regex) -> Result<Tensor> {
    let (values, at) = (x.values()?, source_location(Location::caller()));
    Tensor::build(Spec::new(DType::Bool, x.shape().clone()), Category::Tensor, at, |out| {
        for (out, value) in out.slice::<Bool>().iter_mut().zip(values.iter()) {
            *out = regex.0.is_match(value).into();
        }
    })
}

/// Replaces every match, or the first one. In `rewrite`, `\1` to `\9` are groups of the match and `\0` is all of it.
#[track_caller]
pub fn regex_replace(x: &StringTensor, regex: &Regex, rewrite: &[u8], global: bool) -> Result<StringTensor> {
    let parts = rewrite_parts(rewrite, regex.0.captures_len())?;
    let literal = match &parts[..] {
        [] => Some(&b""[..]),
        [RewritePart::Literal(text)] => Some(&text[..]),
        _ => None,
    };
    let values = x.values()?;
    let mut out = StringBuilder::new(values.len(), values.byte_len());
    let most = if global { usize::MAX } else { 1 };
    for value in values.iter() {
        let mut last = 0;
        if let Some(literal) = literal {
            let matches = regex.0.find_iter(value).filter(|found| !splits_char(value, found));
            for found in matches.take(most) {
                out.append(&value[last..found.start()])?;
                out.append(literal)?;
                last = found.end();
            }
        } else {
            let matches = regex.0.captures_iter(value).filter_map(|groups| {
                let found = groups.get(0)?;
                (!splits_char(value, &found)).then_some((groups, found))
            });
            for (groups, found) in matches.take(most) {
                out.append(&value[last..found.start()])?;
                for part in &parts {
                    match part {
                        RewritePart::Literal(text) => out.append(text)?,
                        RewritePart::Group(group) => {
                            out.append(groups.get(*group).map_or(&b""[..], |found| found.as_bytes()))?;
                        }
                    }
                }
                last = found.end();
            }
        }
        out.append(&value[last..])?;
        out.end()?;
    }
    out.finish(x.shape().clone())
}

/// Whether a match is empty and lies between the bytes of one character. RE2 finds empty matches between characters only.
fn splits_char(value: &[u8], found: &Match<'_>) -> bool {
    let at = found.start();
    if !found.is_empty() || value.get(at).is_none_or(|byte| byte & 0xc0 != 0x80) {
        return false;
    }
    // A character has at most four bytes.
    (at.saturating_sub(3)..at).any(|start| {
        let end = value.len().min(start + 4);
        let text = value[start..end].utf8_chunks().next().map_or("", |chunk| chunk.valid());
        text.chars().next().is_some_and(|first| start + first.len_utf8() > at)
    })
}

enum RewritePart {
    Literal(Vec<u8>),
    Group(usize),
}

fn rewrite_parts(rewrite: &[u8], groups: usize) -> Result<Vec<RewritePart>> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut bytes = rewrite.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            literal.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'\\') => literal.push(b'\\'),
            Some(digit @ b'0'..=b'9') => {
                let group = usize::from(digit - b'0');
                if group >= groups {
                    let message =
                        format!("rewrite must refer to groups in [0, {}], got \\{group}", groups - 1);
                    return Err(Error::value(message));
                }
                if !literal.is_empty() {
                    parts.push(RewritePart::Literal(std::mem::take(&mut literal)));
                }
                parts.push(RewritePart::Group(group));
            }
            _ => return Err(Error::value(r"rewrite must have a digit or a backslash after each backslash")),
        }
    }
    if !literal.is_empty() {
        parts.push(RewritePart::Literal(literal));
    }
    Ok(parts)
}
