//! Atomic writes of files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use taut_core::{Error, Result};

/// A file that is written under a temporary name in the same folder, and renamed to its path when it is complete. The path
/// always has the old contents or the new ones, even if the process is killed.
///
/// Dropped before that, the temporary file is removed. Those of killed processes are removed by the next write to the same
/// path.
///
/// ```
/// use std::io::Write;
/// use taut_data::AtomicFile;
/// # let folder = std::env::temp_dir().join(format!("taut-atomic-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("notes.txt");
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"all of it")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    /// Locked while it is written, so that other writers do not remove it.
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl AtomicFile {
    /// Begins a file that will be at `path`.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let name = path.file_name().ok_or_else(|| Error::value("the path must name a file"))?;
        remove_abandoned(folder_of(path), name);
        loop {
            let temporary = folder_of(path).join(temporary_name(name));
            let file = File::create_new(&temporary)?;
            let file = AtomicFile { file, temporary, path: path.to_owned(), finished: false };
            match file.file.lock() {
                // Where files cannot be locked, other writers remove none.
                Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error.into()),
                // Another writer may have found the file before it was locked, and removed it as abandoned.
                _ if file.temporary.try_exists()? => return Ok(file),
                _ => {}
            }
        }
    }

    /// The path of the temporary file.
    pub fn temporary_path(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file to disk, and renames it to its path.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.finished = true;
        // The rename is on disk once the folder is synced. Not every file system supports that; the file is complete anyway.
        File::open(folder_of(&self.path)).and_then(|folder| folder.sync_all()).ok();
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.finished {
            fs::remove_file(&self.temporary).ok();
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name that no other writer uses.
fn temporary_name(name: &OsStr) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    temporary
}

/// Removes temporary files of killed writers: those that are not locked.
fn remove_abandoned(folder: &Path, name: &OsStr) {
    let (start, end) = (format!(".{}.", name.to_string_lossy()), ".tmp");
    let Ok(entries) = fs::read_dir(folder) else { return };
    let temporaries = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&start) && name.ends_with(end)
    });
    for path in temporaries.map(|entry| entry.path()).collect::<Vec<PathBuf>>() {
        // Locked until it is removed: a writer that just created it waits for the lock, and then sees that it is gone.
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each writer removes abandoned files first, and must not take another's for one between its creation and its lock.
    #[test]
    fn concurrent_writers_of_one_path_all_succeed() {
        let _ledger = taut_memory::testing::ledger_check();
        let folder = std::env::temp_dir().join(format!("taut-writers-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x");
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let mut file = AtomicFile::create(path).unwrap();
                        file.write_all(&[writer; 100]).unwrap();
                        file.finish().unwrap();
                    }
                });
            }
        });
        let written = fs::read(&path).unwrap();
        assert!(written.len() == 100 && written.iter().all(|&byte| byte == written[0]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
