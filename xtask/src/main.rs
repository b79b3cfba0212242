//! The project's chores: `cargo xtask test | check | bench | docs | sanitize`.

mod bench;
mod browser;
mod python;
mod shell;
mod tidy;

use clap::{Parser, Subcommand};
use shell::{Outcome, cargo, root, step};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Taut's chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Runs every test: Rust, documentation, the book, the report page in a browser, conformance with NumPy, and Python
    Test,
    /// Formatting, lints, documentation warnings, and the rules that lints cannot see
    Check {
        /// Formats instead of complaining about formatting
        #[arg(long)]
        fix: bool,
    },
    /// Measures the engine against the machine's own limits, or tape and functions beside other engines
    Bench {
        /// `engine` (the suite if none is named), `tape` or `function`, then a part of the names of the rows to measure
        #[arg(num_args = 0..=2, value_names = ["SUITE", "FILTER"])]
        words: Vec<String>,
    },
    /// Builds the API documentation and the book
    Docs,
    /// Runs the tests of the crates that have `unsafe` under the address sanitizer
    Sanitize,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().chore {
        Chore::Test => test(),
        Chore::Check { fix } => check(fix),
        Chore::Bench { words } => bench::run(&words),
        Chore::Docs => docs(),
        Chore::Sanitize => sanitize(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Outcome {
    step("Rust tests, documentation examples and the book");
    cargo(&["test", "--workspace", "--features", "taut/ndarray,taut/arrow"]).run()?;
    examples()?;
    step("The report page in a browser");
    browser::test()?;
    step("Conformance with NumPy");
    let python = python::environment()?;
    let samples = root().join("target/conformance");
    shell::example("conformance").arg(&samples).run()?;
    shell::command(&python).arg(root().join("tests/conformance/check.py")).arg(&samples).run()?;
    step("The Python package");
    python::install(&python)?;
    shell::command(&python).args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).run()
}

/// Runs every example; those that take their time do less of the same.
fn examples() -> Outcome {
    let mut names: Vec<String> = shell::tracked_files("examples/*.rs")?
        .iter()
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    names.sort();
    for name in names {
        step(&format!("Example {name}"));
        shell::example(&name).arg("--quick").run()?;
    }
    Ok(())
}

fn check(fix: bool) -> Outcome {
    step("Formatting");
    let files = shell::tracked_files("*.rs")?;
    // By file: what the op table declares is inside a macro, where `cargo fmt` does not look.
    let mut rustfmt = shell::command("rustfmt").args(["--edition", "2024"]);
    if !fix {
        rustfmt = rustfmt.arg("--check");
    }
    rustfmt.args(files).run()?;
    step("Lints");
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "taut/ndarray,taut/arrow",
        "--",
        "-D",
        "warnings",
    ];
    cargo(&lint).run()?;
    step("Documentation");
    cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    step("Tidiness");
    tidy::check()
}

fn docs() -> Outcome {
    step("API documentation");
    cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()?;
    step("The book");
    let mdbook = root().join("target/tools/bin/mdbook");
    if !mdbook.exists() {
        println!("installing mdbook into target/tools (once, a few minutes)");
        cargo(&["install", "mdbook", "--version", "^0.5", "--locked", "--root"])
            .arg(root().join("target/tools"))
            .run()?;
    }
    shell::command(&mdbook).arg("build").arg(root().join("docs")).run()?;
    println!("open target/doc/taut/index.html and docs/book/index.html");
    Ok(())
}

fn sanitize() -> Outcome {
    // The sanitizer's switch is not stable yet, its runtime ships with every toolchain.
    let target = shell::host_triple()?;
    for package in ["taut-memory", "taut-kernels", "taut-fused"] {
        step(&format!("{package} under the address sanitizer"));
        cargo(&["test", "--package", package, "--lib", "--tests", "--target", &target, "--target-dir"])
            .arg(root().join("target/sanitize"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .run()?;
    }
    Ok(())
}
