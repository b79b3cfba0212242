//! Temporary folders.

use std::path::{Path, PathBuf};

/// An empty folder for one test, which is removed when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder. The name must be unique among the tests of a process.
    ///
    /// # Panics
    /// If the folder cannot be made.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("taut-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of the files in the folder, sorted.
    ///
    /// # Panics
    /// If the folder cannot be read.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
