//! Files that are whole at every moment.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use taut_core::{Error, ErrorKind, Result};

/// A file that is written beside its place, under another name, and put there once it is whole: who is killed while writing
/// leaves what was there before, or what is new, never a part of it.
///
/// Dropped before that, it is removed. What a process that was killed left is removed by whoever writes to the same place next.
///
/// ```
/// use std::io::Write;
/// use taut_data::Draft;
/// # let folder = std::env::temp_dir().join(format!("taut-draft-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let place = folder.join("notes.txt");
/// let mut draft = Draft::create(&place)?;
/// draft.write_all(b"all of it")?;
/// assert!(!place.exists());
/// draft.finish()?;
/// assert_eq!(std::fs::read(&place)?, b"all of it");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Draft {
    /// Its lock says that somebody still cares for it.
    file: File,
    path: PathBuf,
    place: PathBuf,
    finished: bool,
}

impl Draft {
    /// Begins a file that is to be at `place`.
    pub fn create(place: &Path) -> Result<Draft> {
        let name = place.file_name().ok_or_else(|| Error::value("this is not the name of a file"))?;
        sweep(folder_of(place), name);
        let path = folder_of(place).join(draft_name(name));
        let file = File::create_new(&path)?;
        let draft = Draft { file, path, place: place.to_owned(), finished: false };
        draft.file.try_lock().map_err(|_| Error::new(ErrorKind::Io, "it is being written already"))?;
        Ok(draft)
    }

    /// Where it is until it is finished.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in its place, once it is on the disk.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.place)?;
        self.finished = true;
        // The new name is on the disk once its folder is. Not every file system can do that, and the file is whole anyway.
        File::open(folder_of(&self.place)).and_then(|folder| folder.sync_all()).ok();
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.finished {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn folder_of(place: &Path) -> &Path {
    match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name that no other writer uses.
fn draft_name(name: &OsStr) -> OsString {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}-{}.draft", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
    draft
}

/// Removes drafts of this file that were left by writers who are gone: nobody holds their lock.
fn sweep(folder: &Path, name: &OsStr) {
    let (start, end) = (format!(".{}.", name.to_string_lossy()), ".draft");
    let Ok(entries) = fs::read_dir(folder) else { return };
    let drafts = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&start) && name.ends_with(end)
    });
    for draft in drafts.map(|entry| entry.path()).collect::<Vec<PathBuf>>() {
        if File::open(&draft).is_ok_and(|file| file.try_lock().is_ok()) {
            fs::remove_file(draft).ok();
        }
    }
}
