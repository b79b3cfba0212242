//! The file of spilled values.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{Read, Result as IoResult, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_core::{Error, Result};

/// A path that lives until the process ends, kept once: so a budget that names a folder can be copied.
pub(crate) fn static_path(path: &Path) -> &'static Path {
    static KNOWN: Mutex<Vec<&'static Path>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().copied().find(|other| *other == path).unwrap_or_else(|| {
        let path: &'static Path = Box::leak(path.into());
        known.push(path);
        path
    })
}

/// A file that values are written to. Concurrent runs have ranges of their own.
#[derive(Debug)]
pub(crate) struct SpillFile(Mutex<SpillState>);

#[derive(Debug)]
struct SpillState {
    file: File,
    end: u64,
    /// Ranges that are not in use: where they begin, and their bytes.
    free: Vec<(u64, u64)>,
}

impl SpillFile {
    /// Creates the file. Its name is removed at once: it is gone with the process, however that ends.
    pub(crate) fn new(folder: &Path) -> Result<Arc<SpillFile>> {
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".taut-spill-{}-{number}", std::process::id()));
        let created = || -> IoResult<File> {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            remove_file(&path)?;
            Ok(file)
        };
        let file = created().map_err(|error| {
            let message =
                format!("the folder of a memory budget must be writable, got {}: {error}", folder.display());
            Error::value(message).help("give spill_to an existing folder on a local disk")
        })?;
        Ok(Arc::new(SpillFile(Mutex::new(SpillState { file, end: 0, free: Vec::new() }))))
    }

    fn state(&self) -> MutexGuard<'_, SpillState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a value, and returns where it begins.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<u64> {
        let mut state = self.state();
        let len = bytes.len() as u64;
        let start = match state.free.iter().position(|&(_, free)| free == len) {
            Some(found) => state.free.swap_remove(found).0,
            None => {
                state.end += len;
                state.end - len
            }
        };
        let written = state.file.seek(SeekFrom::Start(start)).and_then(|_| state.file.write_all(bytes));
        written.map_err(|error| {
            state.free.push((start, len));
            Error::value(format!("{len} bytes cannot be written to the spill file: {error}"))
                .help("free some space on the disk, or raise the memory budget")
        })?;
        Ok(start)
    }

    /// Reads a value that was written, and frees its range.
    pub(super) fn read(&self, start: u64, bytes: &mut [u8]) -> Result<()> {
        let mut state = self.state();
        state.free.push((start, bytes.len() as u64));
        let read = state.file.seek(SeekFrom::Start(start)).and_then(|_| state.file.read_exact(bytes));
        read.map_err(|error| Error::value(format!("the spill file cannot be read: {error}")))
    }
}
