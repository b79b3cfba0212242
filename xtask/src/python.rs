//! A Python environment of the project's own, under `target/`.

use crate::shell::{Outcome, command, root};
use std::fs;
use std::path::PathBuf;

/// The interpreter of an environment that has these packages; made on first use.
pub fn environment(packages: &[&str]) -> Outcome<PathBuf> {
    let home = root().join("target/venv");
    let python = if cfg!(windows) { home.join("Scripts/python.exe") } else { home.join("bin/python") };
    let stamp = home.join("installed");
    let wanted = packages.join("\n");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    println!("making a Python environment in target/venv: {}", packages.join(", "));
    let system = if cfg!(windows) { "python" } else { "python3" };
    command(system).args(["-m", "venv", "--clear"]).arg(&home).run()?;
    command(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(packages)
        .run()?;
    fs::write(&stamp, wanted).map_err(|e| format!("{} cannot be written: {e}", stamp.display()))?;
    Ok(python)
}
