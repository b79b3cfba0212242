//! The rules that lints cannot see.

use crate::shell::{Outcome, root, tracked_files};
use std::fs;
use std::path::Path;

/// The rooms in the order data flows: a crate depends only on those before it.
const ROOMS: &[&str] = &[
    "memory", "kernels", "fused", "core", "autodiff", "compile", "plan", "exec", "control", "function",
    "profile", "data", "nn", "taut", "cli", "python",
];
/// Rooms that depend on nobody.
const GROUND: &[&str] = &["memory", "kernels"];
/// Where `unsafe` is allowed.
const UNSAFE: &[&str] = &["crates/memory/", "crates/kernels/", "crates/fused/", "crates/python/"];
/// Lines in a file before it is asking to be two.
const LONGEST: usize = 600;
/// A longer file says why in a comment that starts like this.
const REASON: &str = "// Long because ";

/// Checks all rules and reports every breach.
pub fn check() -> Outcome {
    let mut breaches = Vec::new();
    let mut unsafe_blocks = 0;
    for path in tracked_files("*.rs")? {
        let name = path.to_string_lossy().replace('\\', "/");
        let text = read(&path)?;
        breaches.extend(length(&name, &text));
        breaches.extend(tests_check_the_ledger(&name, &text));
        breaches.extend(ops_name_the_caller(&name, &text));
        breaches.extend(core_does_not_know_ops(&name, &text));
        let count = unsafe_count(&text);
        unsafe_blocks += count;
        if count > 0 && !UNSAFE.iter().any(|allowed| name.starts_with(allowed)) {
            breaches.push(format!("{name}: unsafe outside {}", UNSAFE.join(", ")));
        }
    }
    for room in ROOMS {
        breaches.extend(direction(room)?);
    }
    breaches.extend(unknown_rooms()?);
    breaches.extend(ops_outside_the_table()?);
    breaches.extend(dead_links()?);
    if !breaches.is_empty() {
        return Err(format!("{} breaches:\n  {}", breaches.len(), breaches.join("\n  ")));
    }
    println!("tidy; {unsafe_blocks} unsafe blocks, all in {}", UNSAFE.join(" and "));
    Ok(())
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(root().join(path)).map_err(|e| format!("{} cannot be read: {e}", path.display()))
}

fn length(name: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LONGEST && !text.contains(REASON))
        .then(|| format!("{name}: {lines} lines; split it, or say `{REASON}…`"))
}

/// Blocks, functions and impls; not the word in comments.
fn unsafe_count(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let starts = ["unsafe {", "unsafe fn ", "unsafe impl", "unsafe trait"];
    // Quoted words are this file's own, and other programs'.
    code.filter(|line| starts.iter().any(|s| line.contains(s) && !line.contains(&format!("\"{s}")))).count()
}

/// Every test that can hold tensors checks that it gave all bytes back.
fn tests_check_the_ledger(name: &str, text: &str) -> Vec<String> {
    let holds_tensors = ["crates/core/", "crates/taut/"].iter().any(|room| name.starts_with(room));
    if !holds_tensors {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]");
    let unchecked = tests.filter(|&(i, _)| {
        let indent = lines[i].len() - lines[i].trim_start().len();
        let end = (i..lines.len()).find(|&j| lines[j].starts_with(&format!("{:indent$}}}", "")));
        let body = &lines[i..end.unwrap_or(lines.len())];
        !body.iter().any(|line| line.contains("ledger_check()") || line.contains("every_row("))
    });
    unchecked.map(|(i, _)| format!("{name}:{}: a test without ledger_check()", i + 1)).collect()
}

/// A call that can fail names the caller's line, which takes `#[track_caller]` all the way up.
fn ops_name_the_caller(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("crates/core/src/ops/") || name.matches('/').count() < 5 {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut breaches = Vec::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub fn ")) {
        let above = lines[..i].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("///"));
        let signature = lines[i..].iter().take_while(|l| !l.starts_with('}')).take(12);
        let fails = signature.clone().any(|l| l.contains("-> Result<"));
        if fails && !above.clone().any(|l| l.contains("track_caller")) {
            breaches.push(format!("{name}:{}: {line} without #[track_caller]", i + 1));
        }
    }
    breaches
}

/// Tensors, graphs and the choke point know no concrete op; only operators do.
fn core_does_not_know_ops(name: &str, text: &str) -> Option<String> {
    let inner = name.strip_prefix("crates/core/src/")?;
    let may = inner.starts_with("ops")
        || ["operators.rs", "lib.rs"].contains(&inner)
        || inner.ends_with("tests.rs");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let knows = code.lines().any(|line| line.contains("crate::ops") && !line.trim_start().starts_with("//"));
    (!may && knows).then(|| format!("{name}: only ops/ and operators.rs may use crate::ops"))
}

/// A crate's dependencies within the project come before it.
fn direction(room: &str) -> Outcome<Vec<String>> {
    let manifest = read(Path::new(&format!("crates/{room}/Cargo.toml")))?;
    let place = if GROUND.contains(&room) { 0 } else { ROOMS.iter().position(|r| *r == room).unwrap_or(0) };
    let earlier = &ROOMS[..place];
    // Tests may use what is built on top of a room.
    let manifest = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    let used = ROOMS.iter().filter(|other| manifest.contains(&format!("taut-{other}.")));
    let wrong = used.filter(|other| !earlier.contains(other));
    Ok(wrong.map(|other| format!("crates/{room} must not depend on {other}")).collect())
}

fn unknown_rooms() -> Outcome<Vec<String>> {
    let folders = fs::read_dir(root().join("crates")).map_err(|e| e.to_string())?;
    let names = folders.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let unknown = names.filter(|name| !ROOMS.contains(&name.as_str()));
    Ok(unknown.map(|name| format!("crates/{name} has no place in xtask's list of rooms")).collect())
}

/// A file beside the ops that the table does not name would be compiled by nobody.
fn ops_outside_the_table() -> Outcome<Vec<String>> {
    let table = read(Path::new("crates/core/src/ops.rs"))?;
    let mut breaches = Vec::new();
    for path in tracked_files("crates/core/src/ops/*/*.rs")? {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let group =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let row = table.split(';').find(|row| row.contains(&format!("{group}:")));
        let listed = row.is_some_and(|row| row.split_whitespace().any(|word| word == file));
        if !listed {
            breaches.push(format!("{}: not in the table of ops.rs", path.display()));
        }
    }
    Ok(breaches)
}

/// Links between the project's own documents lead somewhere.
fn dead_links() -> Outcome<Vec<String>> {
    let mut dead = Vec::new();
    for path in tracked_files("*.md")? {
        let text = read(&path)?;
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            let folder = root().join(&path).parent().map(Path::to_path_buf).unwrap_or_default();
            if !outside && !folder.join(target).exists() {
                dead.push(format!("{}: link to {target}, which is not there", path.display()));
            }
        }
    }
    Ok(dead)
}
