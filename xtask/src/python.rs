//! The Python environment of the tests, under `target/`.

use crate::shell::{Result, command, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The packages that the tests and the lints need.
const PACKAGES: &[&str] = &[
    "numpy>=2.1,<3",
    "scipy>=1.14,<2",
    "ml_dtypes>=0.5",
    "pytest>=8,<10",
    "hypothesis>=6,<7",
    "diastatic-malt>=2.15.3",
    "keras>=3.15,<3.16",
    "pandas>=2.2,<4",
    "pyarrow>=18",
    "mypy>=2.4,<3",
    "ruff>=0.17,<0.18",
];

/// The interpreter of an environment with these packages, which is made on first use.
pub fn environment() -> Result<PathBuf> {
    environment_of("target/venv", PACKAGES)
}

/// What TensorFlow's answers and the exchange of files need. TensorBoard, which opens event files, imports `pkg_resources`, which
/// setuptools has until version 80.
const TENSORFLOW: &[&str] =
    &["tensorflow>=2.21,<2.22", "pandas>=2.2,<4", "tensorboard>=2.20,<3", "setuptools<81"];

/// The interpreter of an environment with TensorFlow, for its answers.
pub fn tensorflow() -> Result<PathBuf> {
    environment_of("target/tensorflow", TENSORFLOW)
}

fn environment_of(folder: &str, packages: &[&str]) -> Result<PathBuf> {
    let home = root().join(folder);
    let python = if cfg!(windows) { home.join("Scripts/python.exe") } else { home.join("bin/python") };
    let stamp = home.join("installed");
    let wanted = packages.join("\n");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    println!("creating a Python environment in {folder}: {}", packages.join(", "));
    let system = if cfg!(windows) { "python" } else { "python3" };
    command(system).args(["-m", "venv", "--clear"]).arg(&home).run()?;
    pip(&python).args(packages).run()?;
    fs::write(&stamp, wanted).map_err(|e| format!("{} cannot be written: {e}", stamp.display()))?;
    Ok(python)
}

/// The features of the package in the tests, with which it is built from the crates of the Rust tests.
pub const FEATURES: &str = "taut/ndarray,taut/arrow,tests";

/// Builds the package and installs it into the environment, with the profile and the features of the Rust tests, so that
/// nothing is compiled twice.
pub fn install(python: &Path) -> Result {
    pip(python)
        .args(["--no-deps", "--force-reinstall", "."])
        .env("MATURIN_PEP517_ARGS", format!("--profile dev --features {FEATURES}"))
        .run()
}

/// The interpreter of an environment with a release build of the package and Keras, for measurements.
pub fn release_environment() -> Result<PathBuf> {
    let python =
        environment_of("target/bench-python", &["numpy>=2.1,<3", "ml_dtypes>=0.5", "keras>=3.15,<3.16"])?;
    pip(&python).args(["--no-deps", "--force-reinstall", "."]).run()?;
    Ok(python)
}

/// The MPI libraries that the tests use, by the names of their packages. Each has an environment of its own: they overwrite each
/// other's `mpiexec`.
#[cfg(unix)]
const MPI: [(&str, &str); 2] = [("target/mpi/mpich", "mpich>=5,<6"), ("target/mpi/openmpi", "openmpi>=5,<6")];

/// The folders of environments with one MPI and mpi4py each, which are made on first use, as a search path.
#[cfg(unix)]
pub fn mpi_environments() -> Result<String> {
    let mut homes = Vec::new();
    for (folder, package) in MPI {
        environment_of(folder, &[package, "mpi4py>=4.1,<5"])?;
        homes.push(root().join(folder).to_string_lossy().into_owned());
    }
    Ok(homes.join(":"))
}

/// MPI is tested on Unix.
#[cfg(not(unix))]
pub fn mpi_environments() -> Result<String> {
    Ok(String::new())
}

/// Formatting, lints and types of the Python code; the settings are in `pyproject.toml`. Formats instead if `fix` is set.
pub fn lint(python: &Path, fix: bool) -> Result {
    let folders = ["python"];
    let format: &[&str] = if fix { &["format", "--quiet"] } else { &["format", "--quiet", "--check"] };
    command(python).args(["-m", "ruff"]).args(format).args(folders).run()?;
    let check: &[&str] = if fix { &["check", "--quiet", "--fix"] } else { &["check", "--quiet"] };
    command(python).args(["-m", "ruff"]).args(check).args(folders).run()?;
    command(python).args(["-m", "mypy"]).run()
}

fn pip(python: &Path) -> crate::shell::Program {
    command(python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
}
