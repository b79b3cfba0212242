//! Checkpoint files, written atomically.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{BufWriter, IntoInnerError};
use std::path::Path;
use taut_autodiff::Variable;
use taut_core::io::{load_safetensors, write_safetensors, write_safetensors_by};
use taut_core::{Error, ErrorKind, Result, Shape, Spec, Tensor};
use taut_data::AtomicFile;
use taut_distribute::{Group, gather_shards};
use taut_memory::Location;

/// Bytes of the write buffer.
const BLOCK: usize = 1 << 18;
/// The most mismatches that an error lists; the rest are counted.
const LISTED: usize = 8;

/// A set of named variables that is saved to one safetensors file and loaded from it.
///
/// A file is written under a temporary name in the same folder, synced, and then renamed: a process that is killed while saving
/// leaves the old file or the new one, never a truncated one.
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
    /// A checkpoint without variables.
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

    /// Writes the variables' values, and metadata.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>, metadata: &BTreeMap<String, String>) -> Result<()> {
        self.save_with(path.as_ref(), &[], metadata)
    }

    /// As [`Checkpoint::save`], with additional tensors.
    #[track_caller]
    pub(super) fn save_with(
        &self,
        path: &Path,
        more: &[(String, Tensor)],
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let at = Location::caller();
        let save = || {
            let mut file = BufWriter::with_capacity(BLOCK, AtomicFile::create(path)?);
            let values = self.variables.iter().map(|(name, variable)| (name, variable.value()));
            let more = more.iter().map(|(name, tensor)| (name, tensor.clone()));
            write_safetensors(&mut file, values.chain(more), metadata)?;
            file.into_inner().map_err(IntoInnerError::into_error)?.finish()
        };
        save().map_err(|error: Error| error.about(path.display()).at(at))
    }

    /// As [`Checkpoint::save_with`], with shards gathered one at a time: every rank of `group` calls it, and rank 0 writes the file. The
    /// names of shards come with the shapes of the whole.
    pub(super) fn save_gathered(
        &self,
        path: &Path,
        more: &[(String, Tensor)],
        metadata: &BTreeMap<String, String>,
        shards: &BTreeMap<String, Shape>,
        group: &Group,
    ) -> Result<()> {
        let own = self.variables.iter().map(|(name, variable)| {
            let shape = shards.get(name).unwrap_or(variable.shape()).clone();
            (name.as_str(), Spec::new(variable.dtype(), shape))
        });
        let specs = own.chain(more.iter().map(|(name, tensor)| (name.as_str(), tensor.spec().clone())));
        let specs: Vec<(&str, Spec)> = specs.collect();
        let value = |i: usize| match self.variables.get(i) {
            Some((name, variable)) => match shards.get(name) {
                Some(shape) => gather_shards(variable.value(), shape.clone(), group),
                None => Ok(variable.value()),
            },
            None => Ok(more[i - self.variables.len()].1.clone()),
        };
        if group.rank() > 0 {
            // Takes part in gathering what rank 0 writes.
            return write_safetensors_by(std::io::sink(), specs, metadata, value);
        }
        let mut file = BufWriter::with_capacity(BLOCK, AtomicFile::create(path)?);
        write_safetensors_by(&mut file, specs, metadata, value)?;
        file.into_inner().map_err(IntoInnerError::into_error)?.finish()
    }

    /// Reads the variables' values and returns the metadata. The file must hold exactly these variables, with these dtypes and
    /// shapes; otherwise no variable changes and the error lists what differs.
    #[track_caller]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<BTreeMap<String, String>> {
        let (path, at) = (path.as_ref(), Location::caller());
        let read = || {
            let file = load_safetensors(path)?;
            self.assign(&file.tensors).map_err(|error| error.about(path.display()))?;
            Ok(file.metadata)
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Reads only the variables whose names begin with `part` and a dot, or all if `part` is empty: for example the weights of a
    /// checkpoint without the state of its training. It is an error if there is no such variable.
    #[track_caller]
    pub fn load_part(&self, part: &str, path: impl AsRef<Path>) -> Result<()> {
        let (path, at) = (path.as_ref(), Location::caller());
        let prefix = prefix(part);
        let selected = self.variables.iter().filter(|(name, _)| name.starts_with(&prefix)).cloned();
        let selected = Checkpoint { variables: selected.collect() };
        if selected.variables.is_empty() {
            let known: BTreeSet<&str> =
                self.variables.iter().filter_map(|(name, _)| Some(name.split_once('.')?.0)).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::value(format!("no variable has a name that begins with '{part}.'"))
                .help(format!("use one of {known}"))
                .at(at));
        }
        let read = || {
            let mut file = load_safetensors(path)?;
            file.tensors.retain(|(name, _)| name.starts_with(&prefix));
            selected.assign(&file.tensors).map_err(|error| error.about(path.display()))
        };
        read().map_err(|error: Error| error.at(at))
    }

    /// Assigns these values to the variables, after checking that all of them match.
    #[track_caller]
    pub(super) fn assign(&self, values: &[(String, Tensor)]) -> Result<()> {
        let given: BTreeMap<&str, &Tensor> =
            values.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let (mut problems, mut pairs, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (name, variable) in &self.variables {
            known.insert(name.as_str());
            match given.get(name.as_str()) {
                None => problems
                    .push((ErrorKind::Value, format!("'{name}' {} is not in the file", variable.spec()))),
                Some(tensor) if tensor.spec() != variable.spec() => {
                    let found = (kind(variable.spec(), tensor.spec()), tensor.spec());
                    let message = format!("'{name}' must be {}, got {}", variable.spec(), found.1);
                    problems.push((found.0, message));
                }
                Some(&tensor) => pairs.push((variable, tensor)),
            }
        }
        for (name, tensor) in given.iter().filter(|(name, _)| !known.contains(**name)) {
            problems.push((
                ErrorKind::Value,
                format!("'{name}' {} is not a variable of the model", tensor.spec()),
            ));
        }
        let Some((kind, _)) = problems.first() else {
            for (variable, tensor) in pairs {
                variable.assign(tensor)?;
            }
            return Ok(());
        };
        let mut message = format!("{} of {} variables do not match the file", problems.len(), known.len());
        for (_, problem) in problems.iter().take(LISTED) {
            message.push_str("\n    ");
            message.push_str(problem);
        }
        if problems.len() > LISTED {
            let _ = write!(message, "\n    and {} more", problems.len() - LISTED);
        }
        Err(Error::new(*kind, message)
            .help("build the model, optimizer and metrics with the settings of the run that wrote the file"))
    }
}

/// The prefix of the names of a part's variables.
fn prefix(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!("{part}.") }
}

fn kind(a: &Spec, b: &Spec) -> ErrorKind {
    if a.dtype == b.dtype { ErrorKind::Shape } else { ErrorKind::DType }
}
