//! MPI, opened at run time.
//!
//! No MPI is linked: [`world`] looks for a library that is loaded already (mpi4py), then for the one that the launcher belongs to, in
//! the Python environment and in the system, and opens it. One build runs on the standard ABI of MPI 5, on MPICH (and Intel MPI) and
//! on Open MPI. `TAUT_MPI` names a library to use instead.
//!
//! Only messages between two ranks are used; sums are made here, in an order of our own. See [`tree_sum`](crate::tree_sum).

#[cfg(unix)]
mod library;
#[cfg(unix)]
mod messages;
mod search;

use crate::group::Group;
use std::sync::{Mutex, PoisonError};
use taut_core::{Error, ErrorKind, Result};

/// The group of all processes that `mpiexec` started; a group of one if there is no launcher. MPI is opened at the first call.
pub fn world() -> Result<Group> {
    static WORLD: Mutex<Option<Group>> = Mutex::new(None);
    let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(group) = &*world {
        return Ok(group.clone());
    }
    let group = open()?;
    share_cores();
    *world = Some(group.clone());
    Ok(group)
}

/// Divides the cores among the ranks of this machine, unless the launcher has bound ranks to cores or the user has chosen.
fn share_cores() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let local = ["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"].into_iter().find_map(number).unwrap_or(1);
    if local < 2 || std::env::var_os("TAUT_THREADS").is_some() {
        return;
    }
    let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let is_bound = search::online_cores().is_some_and(|all| usable < all);
    if !is_bound {
        taut_kernels::pool::set_threads((usable / local).max(1));
    }
}

#[cfg(unix)]
fn open() -> Result<Group> {
    match search::open()? {
        Some(library) => Group::of(messages::Mpi::start(library)?),
        None => Group::of(crate::Threads::of(1).remove(0)),
    }
}

#[cfg(not(unix))]
fn open() -> Result<Group> {
    match search::launcher() {
        Some(_) => Err(missing("MPI is supported on Linux and macOS")),
        None => Group::of(crate::Threads::of(1).remove(0)),
    }
}

/// Runs a program on every rank, as `main` does: `work` gets the group of all ranks. If it fails on one rank, the error is printed with
/// the rank's number, and all ranks end.
///
/// ```no_run
/// fn main() -> taut_core::Result<()> {
///     taut_distribute::mpi::run(|group| {
///         println!("rank {} of {}", group.rank(), group.size());
///         Ok(())
///     })
/// }
/// ```
#[track_caller]
pub fn run<R>(work: impl FnOnce(&Group) -> Result<R>) -> Result<R> {
    let group = world()?;
    // A panic must end the other ranks, too: they would wait for this one.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&group)));
    let outcome = match outcome {
        Ok(outcome) => outcome.and_then(|value| group.finish().map(|()| value)),
        Err(_) => group.abort(101),
    };
    if group.size() > 1
        && let Err(error) = &outcome
    {
        eprintln!("rank {} of {}: {error}", group.rank(), group.size());
        group.abort(1);
    }
    outcome
}

/// The error for a launcher without a library.
#[cold]
fn missing(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message).help(
        "install MPICH with `pip install 'taut[mpi]'` (or `pip install mpich`, `apt install mpich`), or name a library in TAUT_MPI",
    )
}
