//! Variables in files that are whole at every moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{BufWriter, IntoInnerError};
use std::path::Path;
use taut_autodiff::Variable;
use taut_core::io::{load_safetensors, write_safetensors};
use taut_core::{Error, ErrorKind, Result, Spec, Tensor};
use taut_data::AtomicFile;
use taut_memory::Location;

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
        let prefix = prefix(part);
        let named = variables
            .into_iter()
            .map(|(name, variable)| (format!("{prefix}{}", name.as_ref()), variable.borrow().clone()));
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
        self.save_with(path.as_ref(), &[], words)
    }

    /// As [`Checkpoint::save`], with these tensors beside the variables.
    #[track_caller]
    pub(super) fn save_with(
        &self,
        path: &Path,
        more: &[(String, Tensor)],
        words: &BTreeMap<String, String>,
    ) -> Result<()> {
        let at = Location::caller();
        let save = || {
            let mut file = BufWriter::with_capacity(BLOCK, AtomicFile::create(path)?);
            let values = self.variables.iter().map(|(name, variable)| (name, variable.value()));
            let more = more.iter().map(|(name, tensor)| (name, tensor.clone()));
            write_safetensors(&mut file, values.chain(more), words)?;
            file.into_inner().map_err(IntoInnerError::into_error)?.finish()
        };
        save().map_err(|error: Error| error.about(path.display()).at(at))
    }

    /// Reads the variables' values and returns the words. The file must hold just these variables, of these types and
    /// shapes; otherwise nothing is changed and the error names what differs.
    #[track_caller]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<BTreeMap<String, String>> {
        let (path, at) = (path.as_ref(), Location::caller());
        let read = || {
            let file = load_safetensors(path)?;
            self.take(&file.tensors).map_err(|error| error.about(path.display()))?;
            Ok(file.metadata)
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Reads the values of those of its variables whose names begin with `part` and a dot, or of all if `part` is empty, and
    /// leaves the others alone, on both sides: the weights of a checkpoint without the state of its training, say. That
    /// there is no such variable is an error.
    #[track_caller]
    pub fn load_part(&self, part: &str, path: impl AsRef<Path>) -> Result<()> {
        let (path, at) = (path.as_ref(), Location::caller());
        let prefix = prefix(part);
        let mine = self.variables.iter().filter(|(name, _)| name.starts_with(&prefix)).cloned();
        let mine = Checkpoint { variables: mine.collect() };
        if mine.variables.is_empty() {
            let known: BTreeSet<&str> =
                self.variables.iter().filter_map(|(name, _)| Some(name.split_once('.')?.0)).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::value(format!("there is no variable of a part '{part}' here"))
                .help(format!("parts are {known}"))
                .at(at));
        }
        let read = || {
            let mut file = load_safetensors(path)?;
            file.tensors.retain(|(name, _)| name.starts_with(&prefix));
            mine.take(&file.tensors).map_err(|error| error.about(path.display()))
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Assigns these values, after all of them were found to fit.
    #[track_caller]
    pub(super) fn take(&self, values: &[(String, Tensor)]) -> Result<()> {
        let theirs: BTreeMap<&str, &Tensor> =
            values.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let (mut problems, mut pairs, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (name, variable) in &self.variables {
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
            for (variable, tensor) in pairs {
                variable.assign(tensor)?;
            }
            return Ok(());
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

/// What the names of a part's variables begin with.
fn prefix(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!("{part}.") }
}

fn kind(a: &Spec, b: &Spec) -> ErrorKind {
    if a.dtype == b.dtype { ErrorKind::Shape } else { ErrorKind::DType }
}
