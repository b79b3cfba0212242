//! Running other programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a task; errors are messages for the terminal.
pub type Result<T = ()> = std::result::Result<T, String>;

/// The project's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the project")
}

/// Prints the heading of the next part of a task.
pub fn section(name: &str) {
    println!("\n== {name}");
}

/// A program to run in the project's folder.
pub struct Program(Command);

/// A program by name or path.
pub fn command(program: impl AsRef<OsStr>) -> Program {
    let mut command = Command::new(program);
    command.current_dir(root());
    Program(command)
}

/// The cargo that runs this task.
pub fn cargo(args: &[&str]) -> Program {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(args)
}

/// An example that `cargo test` has built. `cargo run` would build the package again, with a different set of features.
pub fn example(name: &str) -> Program {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    command(target.join("debug/examples").join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

impl Program {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Program {
        self.0.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Program {
        self.0.args(args);
        self
    }

    /// Sets a variable of the program's environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Program {
        self.0.env(name, value);
        self
    }

    /// Runs it; its output goes to the terminal.
    pub fn run(mut self) -> Result {
        let name = self.name();
        let status = self.0.status().map_err(|e| format!("{name} could not be started: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
    }

    /// Runs it and returns its standard output.
    pub fn output(mut self) -> Result<String> {
        let name = self.name();
        let output = self.0.output().map_err(|e| format!("{name} could not be started: {e}"))?;
        if !output.status.success() {
            return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        String::from_utf8(output.stdout).map_err(|e| format!("{name} printed text that is not UTF-8: {e}"))
    }

    fn name(&self) -> String {
        let program = Path::new(self.0.get_program()).file_name().unwrap_or_default().to_string_lossy();
        match self.0.get_args().next() {
            Some(first) => format!("{program} {}", first.to_string_lossy()),
            None => program.into_owned(),
        }
    }
}

/// The project's files whose names match.
pub fn tracked_files(pattern: &str) -> Result<Vec<PathBuf>> {
    let listed =
        command("git").args(["ls-files", "--cached", "--others", "--exclude-standard", pattern]).output()?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| root().join(path).exists()).collect())
}

/// The triple that the toolchain compiles for.
pub fn host_triple() -> Result<String> {
    let version = command("rustc").arg("-vV").output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not name its host")?.to_owned())
}
