//! Benchmarks, alone and beside other engines.

use crate::shell::{Result, cargo, command, root, section};
use std::ffi::OsString;

const SUITES: [&str; 8] = ["engine", "tape", "function", "control", "budget", "distribute", "files", "peers"];

/// `[engine|tape|function|control|budget|distribute|files|peers] [filter]`; a filter alone applies to the suite `engine`.
pub fn run(words: &[String]) -> Result {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => rows("engine", ""),
        [suite] if SUITES.contains(&suite) => measure(suite, ""),
        [suite, filter] if SUITES.contains(&suite) => measure(suite, filter),
        [filter] => rows("engine", filter),
        [suite, ..] => Err(format!("suite must be one of {}, got {suite}", SUITES.join(", "))),
    }
}

fn measure(suite: &str, filter: &str) -> Result {
    match suite {
        "tape" => tape(filter),
        "function" => function(filter),
        "control" => control(filter),
        "budget" => budget(filter),
        "distribute" => distribute(),
        "files" => files(filter),
        "peers" => everything(filter),
        _ => rows(suite, filter),
    }
}

/// Several processes, beside DDP of the torch that `PEERS_TORCH_PYTHON` names: the tables of the book's page on several processes.
fn distribute() -> Result {
    let python = crate::python::release_environment()?;
    let script = command(python).arg(root().join("benches/distribute.py"));
    let mut script = script.env("TAUT_TEST_MPI", &crate::python::mpi_environments()?);
    let engine = Engine { variable: "PEERS_TORCH_PYTHON", package: "torch", peers: &[] };
    if let Some(torch) = engine.interpreter() {
        script = script.env(engine.variable, &torch);
    }
    script.arg("--book").arg(root().join("docs/src/distribute.md")).run()
}

/// Elements per second from files, beside TensorFlow. The whole table goes into the book.
fn files(filter: &str) -> Result {
    let mut bench = command(package_interpreter()?).arg(root().join("benches/files.py"));
    if !filter.is_empty() {
        bench = bench.args(["--only", filter]);
    }
    match std::env::var_os("PEERS_TF_PYTHON") {
        Some(peer) => {
            bench = bench.arg("--peer").arg(peer).args(["--rounds", "5"]);
            if filter.is_empty() {
                bench = bench.arg("--book").arg(root().join("docs/src/text-and-files.md"));
            }
        }
        None => println!("skipped tensorflow: PEERS_TF_PYTHON can name an interpreter that has it"),
    }
    bench.run()
}

/// An interpreter that has a release build of the package: the one that `PEERS_TAUTPY_PYTHON` names, or one that is made here.
fn package_interpreter() -> Result<OsString> {
    match std::env::var_os("PEERS_TAUTPY_PYTHON") {
        Some(python) => Ok(python),
        None => Ok(crate::python::release_environment()?.into()),
    }
}

/// The rows of one of the project's own benches.
fn rows(bench: &str, filter: &str) -> Result {
    cargo(&["bench", "--quiet", "--package", "taut", "--bench", bench, "--", filter]).run()
}

/// The rows of the tape, then the same work in the other engines that are installed.
fn tape(filter: &str) -> Result {
    section("Taut");
    rows("tape", filter)?;
    section("Beside candle and burn");
    rivals(filter)?;
    section("Beside TensorFlow and PyTorch");
    if "tape_step".contains(filter) || "classic step".contains(filter) {
        let engines = [
            Engine { variable: "PEERS_TF_PYTHON", package: "tensorflow", peers: &["tf_eager"] },
            Engine { variable: "PEERS_TORCH_PYTHON", package: "torch", peers: &["torch_eager"] },
        ];
        peers(None, &engines, &["taut_rust"], &["tape_step"], &[])
    } else {
        println!("skipped: only the classic step is compared, and its name does not contain \"{filter}\"");
        Ok(())
    }
}

/// Traced functions, then the same work in the other engines that are installed, in one table.
fn function(filter: &str) -> Result {
    section("Taut");
    rows("function", filter)?;
    section("Beside TensorFlow, PyTorch and JAX");
    let workloads = ["chain", "dense_forward", "train_step_small", "mlp_step", "retrace"];
    let engines = [
        Engine {
            variable: "PEERS_TF_PYTHON",
            package: "tensorflow",
            peers: &["tf_function", "tf_rawadam", "tf_xla"],
        },
        Engine { variable: "PEERS_TORCH_PYTHON", package: "torch", peers: &["torch_eager", "torch_compile"] },
        Engine { variable: "PEERS_JAX_PYTHON", package: "jax", peers: &["jax_jit"] },
    ];
    beside(&engines, &["taut_rust"], &workloads, filter)
}

/// Loops, branches and maps, then the same work in the other engines that are installed, in one table.
fn control(filter: &str) -> Result {
    section("Taut");
    rows("control", filter)?;
    section("Beside TensorFlow, PyTorch and JAX");
    let engines = [
        Engine {
            variable: "PEERS_TF_PYTHON",
            package: "tensorflow",
            peers: &["tf_function", "tf_xla", "tf_recompute", "tf_vectorized"],
        },
        Engine {
            variable: "PEERS_TORCH_PYTHON",
            package: "torch",
            peers: &["torch_eager", "torch_checkpoint", "torch_mmap_checkpoint", "torch_vmap"],
        },
        Engine {
            variable: "PEERS_JAX_PYTHON",
            package: "jax",
            peers: &["jax_jit", "jax_checkpoint", "jax_vmap"],
        },
    ];
    beside(&engines, &["taut"], &["power_loop", "power_loop_grad", "map_fn", "lstm_step"], filter)
}

/// Training steps under memory budgets, beside engines in which recomputation is placed by hand or by a ratio, in one table.
fn budget(filter: &str) -> Result {
    section("The search for plans");
    rows("budget", "")?;
    section("Memory budgets, beside TensorFlow, PyTorch and JAX");
    let engines = [
        Engine {
            variable: "PEERS_TF_PYTHON",
            package: "tensorflow",
            peers: &["tf_function", "tf_recompute"],
        },
        Engine {
            variable: "PEERS_TORCH_PYTHON",
            package: "torch",
            peers: &["torch_eager", "torch_checkpoint", "torch_budget"],
        },
        Engine {
            variable: "PEERS_JAX_PYTHON",
            package: "jax",
            peers: &["jax_jit", "jax_remat", "jax_checkpoint"],
        },
    ];
    let taut = [
        "taut_rust",
        "taut_rust_checkpoint",
        "taut_rust_budget_50",
        "taut_rust_budget_30",
        "taut_rust_budget_10",
        "taut_rust_smallest",
    ];
    let workloads = ["deep_mlp_memory", "transformer_step", "convnet_step", "lstm_step"];
    beside(&engines, &taut, &workloads, filter)
}

/// Every workload as a program in Python, beside the other engines: the table of the book's page on speed.
fn everything(filter: &str) -> Result {
    let engines = [
        Engine {
            variable: "PEERS_TF_PYTHON",
            package: "tensorflow",
            peers: &["tf_eager", "tf_function", "tf_xla", "tf_keras", "tf_kerasrnn", "tf_slice", "tf_scan"],
        },
        Engine {
            variable: "PEERS_TORCH_PYTHON",
            package: "torch",
            peers: &["torch_eager", "torch_compile", "torch_keras"],
        },
        Engine { variable: "PEERS_JAX_PYTHON", package: "jax", peers: &["jax_jit", "jax_keras"] },
    ];
    let book = root().join("docs/src/speed.md");
    let options = ["--budget", "2", "--rounds", "2", "--quiet", "10", "--out", "target/peers.jsonl"];
    let mut options = options.to_vec();
    let listed = command("python3").arg("-c").arg(LIST_WORKLOADS).output()?;
    let wanted: Vec<&str> = listed.lines().filter(|name| name.contains(filter)).collect();
    if wanted.is_empty() {
        println!("skipped: no workload's name contains \"{filter}\"");
        return Ok(());
    }
    let taut = [
        "taut_rust",
        "tautpy_function",
        "tautpy_eager",
        "tautpy_keras",
        "tautpy_kerasrnn",
        "tautpy_slice",
        "tautpy_scan",
        "tautpy_unrolled",
    ];
    // A part of the rows is for the terminal.
    if filter.is_empty() {
        options.extend(["--book", book.to_str().ok_or("the path of the project must be UTF-8")?]);
    }
    peers(Some(package_interpreter()?), &engines, &taut, &wanted, &options)
}

/// Prints the names of the workloads. They are read rather than imported: that needs NumPy.
const LIST_WORKLOADS: &str = "import re; \
    print(*re.findall(r'Workload\\(\\s*\"(\\w+)\"', open('benches/peers/workloads.py').read()), sep='\\n')";

/// The workloads whose name contains the filter, in three rounds, as one table of ratios to `taut_rust`.
fn beside(engines: &[Engine], taut: &[&str], workloads: &[&str], filter: &str) -> Result {
    let wanted: Vec<&str> = workloads.iter().copied().filter(|name| name.contains(filter)).collect();
    if wanted.is_empty() {
        println!("skipped: no workload's name contains \"{filter}\"");
        return Ok(());
    }
    // Half of each workload's default time: three rounds take minutes, not an hour. Engines differ in how much other
    // processes slow them down, so each run waits up to ten seconds for an idle machine.
    let options = ["--budget", "2", "--quiet", "10", "--beside", "taut_rust"];
    peers(None, engines, taut, &wanted, &options)
}

/// Time and memory of the engines in Rust. They are not part of the workspace, and need a network connection to be built.
fn rivals(filter: &str) -> Result {
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

/// An engine with a Python package: the variable that names an interpreter with the package, and the peers to measure.
struct Engine {
    variable: &'static str,
    package: &'static str,
    peers: &'static [&'static str],
}

impl Engine {
    /// The interpreter that has the package; `None` if there is none, which is said.
    fn interpreter(&self) -> Option<OsString> {
        let Engine { variable, package, .. } = self;
        let python = std::env::var_os(variable).unwrap_or_else(|| "python3".into());
        // `find_spec` finds the package without importing it, which would take seconds.
        let there = format!("import sys, importlib.util as u; sys.exit(u.find_spec('{package}') is None)");
        match command(&python).args(["-c", &there]).output() {
            Ok(_) => Some(python),
            Err(_) => {
                println!("skipped {package}: {variable} can name an interpreter that has it");
                None
            }
        }
    }
}

/// The workloads in Taut and in the Python engines that are installed. The measuring script runs in the interpreter `script`, and so do
/// the peers of the package; without one, the script runs in that of the first engine.
fn peers(
    script: Option<OsString>,
    engines: &[Engine],
    taut: &[&str],
    workloads: &[&str],
    options: &[&str],
) -> Result {
    let mut found: Vec<(OsString, &Engine)> = Vec::new();
    for engine in engines {
        found.extend(engine.interpreter().map(|python| (python, engine)));
    }
    let Some(python) = script.as_ref().or(found.first().map(|(python, _)| python)) else { return Ok(()) };
    command(python)
        .arg(root().join("benches/peers/run.py"))
        .arg("--workloads")
        .args(workloads)
        .arg("--peers")
        .args(taut)
        .args(found.iter().flat_map(|(_, engine)| engine.peers))
        .args(options)
        .run()
}
