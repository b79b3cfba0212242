//! Import cycles between the modules of a crate.
//!
//! The modules of a crate are a tree. An import from one module to another is an edge between the two children of their
//! common parent that contain them; an import between a module and one it contains is none. The children of every module
//! should form a directed acyclic graph.

use super::{CRATES, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that must have no cycle.
const ACYCLIC: &[&str] = &["cli", "compile", "control", "fused", "profile"];

/// A module by its path from the crate's root.
type Path = Vec<String>;

/// Modules that import each other.
type Cycle = Vec<String>;

pub fn check(rust: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut counts = Vec::new();
    for name in CRATES {
        let cycles = Tree::new(name, rust).cycles();
        let modules: usize = cycles.iter().map(Vec::len).sum();
        counts.push(format!("{name} {} ({modules} modules)", cycles.len()));
        if ACYCLIC.contains(name) {
            violations.extend(
                cycles
                    .iter()
                    .map(|cycle| format!("crates/{name}: import cycle between {}", cycle.join(", "))),
            );
        }
    }
    println!("import cycles: {}", counts.join(", "));
    violations
}

/// The modules of a crate and their imports.
struct Tree {
    modules: BTreeMap<Path, Module>,
}

#[derive(Default)]
struct Module {
    /// Paths that the module imports or names, from the crate's root.
    imports: BTreeSet<Path>,
    /// Names that the module exports from elsewhere, and where those are from.
    exports: BTreeMap<String, Path>,
}

impl Tree {
    fn new(name: &str, rust: &[Source]) -> Tree {
        let folder = format!("crates/{name}/src/");
        let files = rust.iter().filter_map(|source| Some((source.name.strip_prefix(&folder)?, source)));
        let files = files.filter(|(file, _)| !is_test(file));
        let paths: Vec<(Path, &Source)> = files.map(|(file, source)| (module_path(file), source)).collect();
        let modules = paths.into_iter().map(|(path, source)| {
            let module = Module::read(&path, &source.text);
            (path, module)
        });
        Tree { modules: modules.collect() }
    }

    /// The module that a path leads to, through exports.
    fn resolve(&self, path: &[String], depth: usize) -> Option<Path> {
        let longest = (0..=path.len()).rev().find(|&end| self.modules.contains_key(&path[..end]))?;
        let (module, rest) = path.split_at(longest);
        if let (Some(first), true) = (rest.first(), depth < 8)
            && let Some(target) = self.modules[module].exports.get(first)
            && target.as_slice() != path
        {
            let target: Path = target.iter().chain(&rest[1..]).cloned().collect();
            return self.resolve(&target, depth + 1);
        }
        Some(module.to_vec())
    }

    fn cycles(&self) -> Vec<Cycle> {
        // The edges between the children of each module.
        let mut edges: BTreeMap<Path, BTreeSet<(String, String)>> = BTreeMap::new();
        for (from, module) in &self.modules {
            for to in module.imports.iter().filter_map(|import| self.resolve(import, 0)) {
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                    edges.entry(from[..common].to_vec()).or_default().insert((a.clone(), b.clone()));
                }
            }
        }
        let mut cycles = Vec::new();
        for (parent, edges) in edges {
            for cycle in components(&edges) {
                let name = |child: &String| [&parent[..], std::slice::from_ref(child)].concat().join("::");
                cycles.push(cycle.iter().map(name).collect());
            }
        }
        cycles
    }
}

fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.split('/').any(|part| part == "tests")
}

/// The path of the module in a file: `a/b.rs` is `a::b`, `lib.rs` is the root.
fn module_path(file: &str) -> Path {
    let stem = file.trim_end_matches(".rs");
    let parts = stem.split('/').filter(|part| !["lib", "main", "mod"].contains(part));
    parts.map(str::to_owned).collect()
}

impl Module {
    fn read(path: &Path, text: &str) -> Module {
        let code = code(text);
        let mut module = Module::default();
        for (statement, is_export) in uses(&code) {
            for (target, name) in expand(&statement) {
                let Some(target) = absolute(path, &target) else { continue };
                if is_export {
                    module.exports.insert(name, target);
                } else {
                    module.imports.insert(target);
                }
            }
        }
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                let end = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
                let words = code[at..].split_at(end.unwrap_or(code.len() - at)).0;
                let target: Vec<String> =
                    words.split("::").filter(|w| !w.is_empty()).map(str::to_owned).collect();
                module.imports.extend(absolute(path, &target));
            }
        }
        module
    }
}

/// The code of a file without comments and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The `use` statements of some code without `use` and the semicolon, and whether each is an export.
fn uses(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = code[line..at].trim();
        if !["", "pub", "pub(crate)", "pub(super)"].contains(&before) {
            continue;
        }
        let rest = &code[at + 4..];
        let statement: String =
            rest.split(';').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        found.push((statement, !before.is_empty()));
    }
    found
}

/// The paths of a `use` tree and the names that they get.
fn expand(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let prefix = &tree[..open];
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        return split(inner).iter().flat_map(|part| expand(&format!("{prefix}{part}"))).collect();
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
    let mut words: Vec<String> =
        path.split("::").map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect();
    if words.last().is_some_and(|word| word == "self" && words.len() > 1) {
        words.pop();
    }
    let name = name.map_or_else(|| words.last().cloned().unwrap_or_default(), str::to_owned);
    vec![(words, name)]
}

/// The parts between the commas of a list, of which some are inside braces.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("at least one part").push(c);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A path from the crate's root, if it leads into the crate.
fn absolute(module: &Path, target: &[String]) -> Option<Path> {
    let (first, rest) = target.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let mut base = module.clone();
            base.pop();
            let mut rest = rest;
            while let [first, more @ ..] = rest
                && first == "super"
            {
                base.pop();
                rest = more;
            }
            Some([&base, rest].concat())
        }
        // A child module by its name, as exports have it.
        _ => Some([module, target].concat()),
    }
}

/// The strongly connected components with more than one node.
fn components(edges: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let nodes: BTreeSet<&String> = edges.iter().flat_map(|(a, b)| [a, b]).collect();
    let reach = |start: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(node) = todo.pop() {
            for (_, next) in edges.iter().filter(|(from, _)| *from == node) {
                if seen.insert(next.clone()) {
                    todo.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        nodes.iter().map(|node| (*node, reach(node))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for node in &nodes {
        let cycle: Vec<String> = nodes
            .iter()
            .filter(|other| reached[*node].contains(**other) && reached[**other].contains(*node))
            .map(|other| (*other).clone())
            .collect();
        if cycle.len() > 1 && !found.contains(&cycle) {
            found.push(cycle);
        }
    }
    found
}
