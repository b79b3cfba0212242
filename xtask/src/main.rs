//! The project's tasks: `cargo xtask test | check | bench | docs | features | sanitize | differential | fuzz | soak`.

mod bench;
mod browser;
mod fuzz;
mod python;
mod shell;
mod tidy;

use clap::{Parser, Subcommand, ValueEnum};
use shell::{Result, cargo, root, section};
use std::path::Path;
use std::process::ExitCode;

/// What tests and lints enable in addition to the default features, so that all code is compiled once and checked.
const ALL_FEATURES: &str = "taut/ndarray,taut/arrow";

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The tasks of the project")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every test: Rust, documentation, the book, examples, the report page in a browser, conformance with NumPy, Python
    Test,
    /// Checks formatting, lints, documentation, and the rules of xtask/src/tidy.rs
    Check {
        /// Formats the code instead of reporting what is not formatted
        #[arg(long)]
        fix: bool,
        /// Runs one part only
        #[arg(long)]
        only: Option<Part>,
    },
    /// Measures the engine beside the limits of the machine, or tapes, functions, loops and memory budgets beside other engines
    Bench {
        /// `engine` (the default), `tape`, `function`, `control`, `budget`, `distribute`, `files` or `peers`, then a part of the names of the rows to measure
        #[arg(num_args = 0..=2, value_names = ["SUITE", "FILTER"])]
        words: Vec<String>,
    },
    /// Builds the API documentation and the book
    Docs,
    /// Checks `taut` with no feature and with each feature by itself
    Features,
    /// Runs the tests of the crates that have `unsafe` under the address sanitizer
    Sanitize,
    /// Compares the Python package with TensorFlow, which is installed into an environment of its own, and counts its names
    Differential,
    /// Calls the Python package with random arguments, random graphs and mutated files: nothing may crash, panic or leak
    Fuzz {
        /// How many inputs of each kind
        #[arg(long, default_value_t = 2000)]
        inputs: u32,
        /// The first seed
        #[arg(long, default_value_t = 0)]
        seed: u32,
    },
    /// Repeats training, pipelines, checkpoints and tracing: memory must not grow. Kills a process that saves: nothing is lost
    Soak {
        /// How many rounds
        #[arg(long, default_value_t = 200)]
        rounds: u32,
    },
}

/// A part of `check`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Format,
    Lint,
    Doc,
    Python,
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Test => test(),
        Task::Check { fix, only } => check(fix, only),
        Task::Bench { words } => bench::run(&words),
        Task::Docs => docs(),
        Task::Features => features(),
        Task::Sanitize => sanitize(),
        Task::Differential => differential(),
        Task::Fuzz { inputs, seed } => {
            let options = ["--inputs", &inputs.to_string(), "--seed", &seed.to_string()];
            mutated_files(&options).and_then(|()| fuzz::run(inputs)).and_then(|()| tool("fuzz.py", &options))
        }
        Task::Soak { rounds } => {
            tool("soak.py", &["--rounds", &rounds.to_string()]).and_then(|()| tool("kills.py", &[]))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result {
    section("Rust tests, documentation examples and the book");
    cargo(&["test", "--workspace", "--features", ALL_FEATURES]).run()?;
    examples()?;
    section("The report page in a browser");
    browser::test()?;
    section("Conformance with NumPy");
    let python = python::environment()?;
    let samples = root().join("target/conformance");
    shell::example("conformance").arg(&samples).run()?;
    shell::command(&python).arg(root().join("tests/conformance/check.py")).arg(&samples).run()?;
    section("The Python package");
    python::install(&python)?;
    let pytest = shell::command(&python).args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.env("TAUT_TEST_MPI", &python::mpi_environments()?).run()?;
    python_examples(&python)
}

/// Runs every example in Rust, with `--quick`: less data, fewer epochs.
fn examples() -> Result {
    let mut names: Vec<String> = shell::tracked_files("examples/*.rs")?
        .iter()
        .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    names.sort();
    for name in names {
        section(&format!("Example {name}.rs"));
        shell::example(&name).arg("--quick").run()?;
    }
    Ok(())
}

/// Runs every example in Python, with `--quick`.
fn python_examples(python: &Path) -> Result {
    let mut files = shell::tracked_files("examples/python/[0-9]*.py")?;
    files.sort();
    for file in files {
        section(&format!("Example {}", file.display()));
        shell::command(python).arg(file).arg("--quick").run()?;
    }
    Ok(())
}

fn check(fix: bool, only: Option<Part>) -> Result {
    for part in [Part::Format, Part::Lint, Part::Doc, Part::Python, Part::Tidy] {
        if only.is_none_or(|only| only == part) {
            match part {
                Part::Format => format(fix)?,
                Part::Lint => lint()?,
                Part::Doc => api_documentation()?,
                Part::Python => {
                    section("Python: formatting, lints and types");
                    python::lint(&python::environment()?, fix)?;
                }
                Part::Tidy => {
                    section("Tidiness");
                    tidy::check()?;
                }
            }
        }
    }
    Ok(())
}

fn format(fix: bool) -> Result {
    section("Formatting");
    // File by file: the modules of the ops are declared inside a macro, where `cargo fmt` does not find them.
    let mut rustfmt = shell::command("rustfmt").args(["--edition", "2024"]);
    if !fix {
        rustfmt = rustfmt.arg("--check");
    }
    rustfmt.args(shell::tracked_files("*.rs")?).run()
}

fn lint() -> Result {
    section("Lints");
    let deny = ["--", "-D", "warnings"];
    cargo(&["clippy", "--workspace", "--all-targets", "--features", ALL_FEATURES]).args(deny).run()?;
    section("Lints of the demo, which is built without the default features");
    cargo(&["clippy", "--package", "taut-cli"]).args(deny).run()
}

fn features() -> Result {
    for feature in ["", "arrow", "csv", "fft", "images", "linalg", "ndarray", "npz"] {
        section(&format!("taut with {}", if feature.is_empty() { "no feature" } else { feature }));
        cargo(&["check", "--package", "taut", "--no-default-features", "--features", feature])
            .env("RUSTFLAGS", "-D warnings")
            .run()?;
    }
    Ok(())
}

fn api_documentation() -> Result {
    section("API documentation");
    cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()
}

fn docs() -> Result {
    api_documentation()?;
    section("The book");
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

fn sanitize() -> Result {
    // The option is unstable, but the runtime of the sanitizer ships with every toolchain.
    let target = shell::host_triple()?;
    for package in ["taut-memory", "taut-kernels", "taut-fused"] {
        section(&format!("{package} under the address sanitizer"));
        cargo(&["test", "--package", package, "--lib", "--tests", "--target", &target, "--target-dir"])
            .arg(root().join("target/sanitize"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .run()?;
    }
    Ok(())
}

/// TensorFlow's answers, and the comparison with them. Not part of the tests: it downloads TensorFlow.
fn differential() -> Result {
    let tools = root().join("python/tools");
    let answers = root().join("target/tensorflow/answers.pickle");
    section("TensorFlow's answers");
    let tensorflow = python::tensorflow()?;
    let module = ["-m", "differential"];
    shell::command(&tensorflow).args(module).arg("answers").arg(&answers).env("PYTHONPATH", &tools).run()?;
    section("The answers of the Python package");
    let python = python::environment()?;
    python::install(&python)?;
    shell::command(&python).args(module).arg("compare").arg(&answers).env("PYTHONPATH", &tools).run()?;
    section("Files of each, read by the other; event files in TensorBoard");
    let run = |engine: &Path, what: &str, writer: &str| {
        let folder = root().join("target/tensorflow/files").join(writer);
        shell::command(engine).args(module).arg(what).arg(folder).env("PYTHONPATH", &tools).run()
    };
    let written = root().join("target/tensorflow/files");
    if written.exists() {
        std::fs::remove_dir_all(&written)
            .map_err(|e| format!("{} cannot be removed: {e}", written.display()))?;
    }
    run(&tensorflow, "write", "tensorflow")?;
    run(&python, "write", "taut")?;
    run(&python, "read", "tensorflow")?;
    run(&tensorflow, "read", "taut")
}

/// Mutated files of every format, read in this profile's build of the library.
fn mutated_files(options: &[&str]) -> Result {
    section("Mutated files");
    let example = ["run", "--quiet", "--release", "--package", "taut-data", "--features", "arrow"];
    cargo(&example).args(["--example", "mutated_files", "--"]).args(options).run()
}

/// Runs a tool of the Python package, which is built and installed first.
fn tool(name: &str, arguments: &[&str]) -> Result {
    section(name);
    let python = python::environment()?;
    python::install(&python)?;
    shell::command(&python).arg(root().join("python/tools").join(name)).args(arguments).run()
}
