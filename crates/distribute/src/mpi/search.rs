//! Which MPI library to open.

#[cfg(unix)]
use super::library::{Abi, Library};
use std::env;
#[cfg(unix)]
use std::path::{Path, PathBuf};
#[cfg(unix)]
use taut_core::Result;

/// The launcher that started this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launcher {
    /// Its name.
    pub(super) name: &'static str,
    /// The number of ranks that it started.
    pub(super) ranks: usize,
}

/// The launcher that started this process; `None` if it was started alone.
pub(super) fn launcher() -> Option<Launcher> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let known =
        [("Open MPI", "OMPI_COMM_WORLD_SIZE"), ("MPICH", "PMI_SIZE"), ("Slurm", "SLURM_STEP_NUM_TASKS")];
    known.into_iter().find_map(|(name, variable)| Some(Launcher { name, ranks: number(variable)? }))
}

/// The number of cores of this machine, if the system says.
pub(super) fn online_cores() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?)
    };
    text.trim().split(',').map(count).sum()
}

#[cfg(unix)]
const STANDARD: &[&str] = if cfg!(target_os = "macos") {
    &["libmpi_abi.1.dylib", "libmpi_abi.dylib"]
} else {
    &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"]
};
#[cfg(unix)]
const MPICH: &[&str] = if cfg!(target_os = "macos") { &["libmpi.12.dylib"] } else { &["libmpi.so.12"] };
#[cfg(unix)]
const OPEN_MPI: &[&str] = if cfg!(target_os = "macos") {
    &["libmpi.40.dylib", "libmpi.dylib"]
} else {
    &["libmpi.so.40", "libmpi.so"]
};

/// The library to use; `None` if the process was started alone and no library is there.
#[cfg(unix)]
pub(super) fn open() -> Result<Option<Library>> {
    let launcher = launcher();
    if let Some(path) = env::var_os("TAUT_MPI").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return Library::open(&path)
            .map(Some)
            .map_err(|error| error.about(format_args!("TAUT_MPI={}", path.display())));
    }
    // A second copy beside a library that is in use (by mpi4py) would not know of its ranks.
    let all = || [STANDARD, MPICH, OPEN_MPI].into_iter().flatten();
    let mut loaded: Vec<Library> = all().filter_map(|name| Library::loaded(Path::new(name))).collect();
    if let Some(in_use) = loaded.iter().position(Library::is_initialized) {
        return Ok(Some(loaded.swap_remove(in_use)));
    }
    let Some(launcher) = launcher else {
        // Alone: nothing needs MPI.
        return Ok(None);
    };
    let is_open_mpi = launcher.name == "Open MPI";
    // Each library knows its own launcher only.
    let fits = |library: &Library| launcher.name == "Slurm" || is_open_mpi == (library.abi == Abi::OpenMpi);
    if let Some(own) = loaded.iter().position(fits) {
        return Ok(Some(loaded.swap_remove(own)));
    }
    let order: [&[&str]; 3] =
        if is_open_mpi { [OPEN_MPI, STANDARD, MPICH] } else { [STANDARD, MPICH, OPEN_MPI] };
    let mut reasons = Vec::new();
    for folder in folders() {
        for name in order.into_iter().flatten() {
            let path = folder.join(name);
            if !folder.as_os_str().is_empty() && !path.exists() {
                continue;
            }
            match Library::open(&path) {
                Ok(library) if !fits(&library) => {
                    reasons.push(format!("{} is not a library of {}", path.display(), launcher.name));
                }
                Ok(library) => return Ok(Some(library)),
                Err(error) if path.exists() => reasons.push(error.message().to_owned()),
                Err(_) => {}
            }
        }
    }
    let mut message =
        format!("{} started {} ranks, but no MPI library of it was found", launcher.name, launcher.ranks);
    for reason in reasons {
        message.push_str("\n    ");
        message.push_str(&reason);
    }
    Err(super::missing(message))
}

/// Where libraries are: beside the Python environment, beside the launcher, and where the system looks (an empty path).
#[cfg(unix)]
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for variable in ["TAUT_PREFIX", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        folders.extend(env::var_os(variable).map(|prefix| Path::new(&prefix).join("lib")));
    }
    if let Some(path) = env::var_os("PATH") {
        let with_launcher = env::split_paths(&path).find(|folder| folder.join("mpiexec").exists());
        folders.extend(with_launcher.and_then(|folder| Some(folder.parent()?.join("lib"))));
    }
    folders.push(PathBuf::new());
    folders
}
