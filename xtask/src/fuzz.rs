//! The targets of libFuzzer in `fuzz`, each with a fixed number of inputs.

use crate::Result;
use crate::shell::{self, Program, cargo, root, section};

/// The formats of files, as the example `mutated_files` names them.
fn formats() -> Result<Vec<String>> {
    let example = ["run", "--quiet", "--release", "--package", "taut-data", "--features", "arrow"];
    let corpus = root().join("fuzz/corpus");
    let written = cargo(&example).args(["--example", "mutated_files", "--", "--originals"]).arg(corpus);
    Ok(written.output()?.lines().map(str::to_owned).collect())
}

/// `cargo fuzz` with the options of a build. The coverage that guides inputs needs no sanitizer, and so no nightly compiler.
fn cargo_fuzz(task: &str) -> Program {
    let target = root().join("target/fuzz");
    let options = ["fuzz", task, "--fuzz-dir", "fuzz", "--sanitizer", "none", "--codegen-units", "16"];
    cargo(&options).arg("--target-dir").arg(target)
}

/// Runs every target with this many inputs.
pub fn run(inputs: u32) -> Result {
    section("Targets of libFuzzer");
    if shell::command("cargo").args(["fuzz", "--version"]).output().is_err() {
        println!("skipped: `cargo fuzz` is not installed (`cargo install cargo-fuzz`)");
        return Ok(());
    }
    let formats = formats()?;
    cargo_fuzz("build").run()?;
    for format in formats {
        section(&format!("Files: {format}"));
        let seeds = format!("fuzz/corpus/{format}");
        fuzzed("file", &[&seeds], inputs)?.env("TAUT_FUZZ_FORMAT", &format).run()?;
    }
    for (target, seeds) in
        [("checkpoint", &["fuzz/corpus/safetensors"][..]), ("strings", &[]), ("graph", &[])]
    {
        section(target);
        fuzzed(target, seeds, inputs)?.run()?;
    }
    Ok(())
}

/// A target with its first inputs. What it finds goes to an empty folder, so that the next run begins with the same inputs.
fn fuzzed(target: &str, seeds: &[&str], inputs: u32) -> Result<Program> {
    let found = root().join("target/fuzz/found");
    if found.exists() {
        std::fs::remove_dir_all(&found).map_err(|e| format!("{} cannot be removed: {e}", found.display()))?;
    }
    std::fs::create_dir_all(&found).map_err(|e| format!("{} cannot be created: {e}", found.display()))?;
    let limits = ["--", "-seed=1", &format!("-runs={inputs}"), "-rss_limit_mb=4096", "-timeout=60"];
    Ok(cargo_fuzz("run").arg(target).arg(found).args(seeds).args(limits))
}
