//! Variables in files that are whole at every moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use taut_autodiff::Variable;
use taut_core::io::{Safetensors, load_safetensors, write_safetensors};
use taut_core::{Error, ErrorKind, Result, Spec, Tensor};
use taut_memory::Line;

/// How much is written at once.
const BLOCK: usize = 1 << 18;
/// How many problems an error lists before it only counts them.
const LISTED: usize = 8;

/// A set of named variables that is saved to one safetensors file and loaded from it.
///
/// A file is written beside its place under another name, synced, and then renamed: whoever is killed while saving leaves
/// the old file or the new one, never a part of one.
///
/// ```
/// use std::collections::BTreeMap;
/// use taut_autodiff::Variable;
/// use taut_core::Tensor;
/// use taut_nn::Checkpoint;
/// # let folder = std::env::temp_dir().join(format!("taut-checkpoint-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("model.safetensors");
/// let weight = Variable::new(Tensor::new([1.0f32, 2.0])?)?;
/// let checkpoint = Checkpoint::new().with("model", [("weight", &weight)]);
/// checkpoint.save(&path, &BTreeMap::new())?;
///
/// weight.assign(Tensor::new([0.0f32, 0.0])?)?;
/// checkpoint.load(&path)?;
/// assert_eq!(weight.read().to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    variables: Vec<(String, Variable)>,
}

impl Checkpoint {
    /// A checkpoint of nothing yet.
    pub fn new() -> Checkpoint {
        Checkpoint::default()
    }

    /// Adds variables, whose names in the file begin with `part` and a dot; without a dot if `part` is empty.
    #[must_use]
    pub fn with<N: AsRef<str>, V: std::borrow::Borrow<Variable>>(
        mut self,
        part: &str,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Checkpoint {
        let dot = if part.is_empty() { "" } else { "." };
        let named = variables
            .into_iter()
            .map(|(name, variable)| (format!("{part}{dot}{}", name.as_ref()), variable.borrow().clone()));
        self.variables.extend(named);
        self
    }

    /// Names and variables, in order.
    pub fn variables(&self) -> &[(String, Variable)] {
        &self.variables
    }

    /// Writes the variables' values, and words about them.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>, words: &BTreeMap<String, String>) -> Result<()> {
        let (path, at) = (path.as_ref(), Line::caller());
        let save = |file: &mut dyn Write| {
            let values = self.variables.iter().map(|(name, variable)| (name, variable.value()));
            write_safetensors(file, values, words)
        };
        write_whole(path, save).map_err(|error| error.about(path.display()).at(at))
    }

    /// Reads the variables' values and returns the words. The file must hold just these variables, of these types and
    /// shapes; otherwise nothing is changed and the error names what differs.
    #[track_caller]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<BTreeMap<String, String>> {
        let (path, at) = (path.as_ref(), Line::caller());
        let read = || {
            let file = load_safetensors(path)?;
            self.take(&file, "").map_err(|error| error.about(path.display()))?;
            Ok(file.metadata)
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Reads the values of those of its variables whose names begin with `part` and a dot, and leaves the others alone,
    /// on both sides: the weights of a checkpoint without the state of its training, say.
    #[track_caller]
    pub fn load_part(&self, part: &str, path: impl AsRef<Path>) -> Result<()> {
        let (path, at) = (path.as_ref(), Line::caller());
        let read = || {
            let file = load_safetensors(path)?;
            self.take(&file, &format!("{part}.")).map_err(|error| error.about(path.display()))
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Assigns what a file holds, after all of it was found to fit.
    fn take(&self, file: &Safetensors, prefix: &str) -> Result<()> {
        let mine = self.variables.iter().filter(|(name, _)| name.starts_with(prefix));
        let theirs: BTreeMap<&str, &Tensor> = file
            .tensors
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let (mut problems, mut pairs, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (name, variable) in mine {
            known.insert(name.as_str());
            match theirs.get(name.as_str()) {
                None => problems.push((ErrorKind::Value, format!("'{name}' {} is missing", variable.spec()))),
                Some(tensor) if tensor.spec() != variable.spec() => {
                    let found = (kind(variable.spec(), tensor.spec()), tensor.spec());
                    let message = format!("'{name}' is {} here and {} there", variable.spec(), found.1);
                    problems.push((found.0, message));
                }
                Some(&tensor) => pairs.push((variable, tensor)),
            }
        }
        for (name, tensor) in theirs.iter().filter(|(name, _)| !known.contains(**name)) {
            problems.push((ErrorKind::Value, format!("'{name}' {} is not known here", tensor.spec())));
        }
        let Some((kind, _)) = problems.first() else {
            return pairs.into_iter().try_for_each(|(variable, tensor)| variable.assign(tensor));
        };
        let mut message = format!("{} of {} variables do not fit", problems.len(), known.len());
        for (_, problem) in problems.iter().take(LISTED) {
            message.push_str("\n    ");
            message.push_str(problem);
        }
        if problems.len() > LISTED {
            let _ = write!(message, "\n    and {} more", problems.len() - LISTED);
        }
        Err(Error::new(*kind, message).help("build the model as it was when the file was written"))
    }
}

fn kind(a: &Spec, b: &Spec) -> ErrorKind {
    if a.dtype == b.dtype { ErrorKind::Shape } else { ErrorKind::DType }
}

/// Writes a file under another name beside its place, syncs it, and puts it in its place. If anything goes wrong, what was
/// there before is still there, and nothing else.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let name = path.file_name().ok_or_else(|| Error::value("this is not the name of a file"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    sweep(folder, name);
    let draft = folder.join(draft_name(name));
    let result = fill(&draft, write).and_then(|file| {
        fs::rename(&draft, path)?;
        drop(file);
        // The new name is on the disk once its folder is. Not every file system can do that, and the file is whole anyway.
        File::open(folder).and_then(|folder| folder.sync_all()).ok();
        Ok(())
    });
    if result.is_err() {
        fs::remove_file(&draft).ok();
    }
    result
}

/// The draft, complete and on the disk. Its lock says that somebody still cares for it.
fn fill(draft: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<File> {
    let file = File::create(draft)?;
    file.try_lock().map_err(|_| Error::new(ErrorKind::Io, "it is being written already"))?;
    let mut writer = BufWriter::with_capacity(BLOCK, &file);
    write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    file.sync_all()?;
    Ok(file)
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
