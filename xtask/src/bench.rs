//! The measurements.

use crate::shell::{Outcome, cargo, command, root, step};
use std::ffi::OsString;

/// `[engine|tape] [filter]`; a filter alone is for the engine.
pub fn run(words: &[String]) -> Outcome {
    match words {
        [] => rows("engine", ""),
        [suite] if suite == "engine" => rows("engine", ""),
        [suite, filter] if suite == "engine" => rows("engine", filter),
        [suite] if suite == "tape" => tape(""),
        [suite, filter] if suite == "tape" => tape(filter),
        [filter] => rows("engine", filter),
        _ => Err(format!("the suites are engine and tape, not {}", words[0])),
    }
}

/// The rows of one of the project's own benches.
fn rows(bench: &str, filter: &str) -> Outcome {
    cargo(&["bench", "--quiet", "--package", "taut", "--bench", bench, "--", filter]).run()
}

/// The tape's own rows, then the same work in other engines, as far as they are there.
fn tape(filter: &str) -> Outcome {
    step("Taut");
    rows("tape", filter)?;
    step("Beside candle and burn");
    rivals(filter)?;
    step("Beside TensorFlow and PyTorch");
    if "tape_step".contains(filter) || "classic step".contains(filter) {
        peers()
    } else {
        println!("skipped: only the classic step is compared, and its name does not contain \"{filter}\"");
        Ok(())
    }
}

/// Time and memory of the engines in Rust. They are not part of the workspace, and not everybody can build them.
fn rivals(filter: &str) -> Outcome {
    let manifest = "benches/rivals/Cargo.toml";
    if let Err(why) = cargo(&["build", "--release", "--manifest-path", manifest]).run() {
        println!("skipped: benches/rivals cannot be built here ({why})");
        return Ok(());
    }
    for program in ["time", "memory"] {
        println!();
        cargo(&[
            "run",
            "--quiet",
            "--release",
            "--locked",
            "--manifest-path",
            manifest,
            "--bin",
            program,
            "--",
        ])
        .arg(filter)
        .run()?;
    }
    Ok(())
}

/// The classic step in Python's engines, where an interpreter has them.
fn peers() -> Outcome {
    let engines =
        [("PEERS_TF_PYTHON", "tensorflow", "tf_eager"), ("PEERS_TORCH_PYTHON", "torch", "torch_eager")];
    let mut found: Vec<(OsString, &str)> = Vec::new();
    for (variable, package, peer) in engines {
        let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
        // `find_spec` sees the package without the seconds that importing it takes.
        let there = format!("import sys, importlib.util as u; sys.exit(u.find_spec('{package}') is None)");
        match command(&python).args(["-c", &there]).output() {
            Ok(_) => found.push((python, peer)),
            Err(_) => println!("skipped {package}: {variable} can name an interpreter that has it"),
        }
    }
    let Some((python, _)) = found.first() else { return Ok(()) };
    command(python)
        .arg(root().join("benches/peers/run.py"))
        .args(["--workloads", "tape_step", "--peers", "taut_rust"])
        .args(found.iter().map(|(_, peer)| peer))
        .run()
}
