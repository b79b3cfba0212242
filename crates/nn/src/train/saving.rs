//! Checkpoints of a run, and resuming from one.

use super::callback::Callback;
use super::checkpoint::Checkpoint;
use super::distribution::Distribution;
use super::parts::variables_of;
use super::state::{PendingCallbacks, RunState};
use super::trainer::{Every, Trainer};
use crate::layer::NamedVariables;
use std::path::{Path, PathBuf};
use taut_core::io::load_safetensors;
use taut_core::ops::random;
use taut_core::{Error, Result};
use taut_memory::Location;

/// The prefix of the names of callbacks' variables.
const CALLBACKS: &str = "callback.";

/// Adds the variables of callbacks.
fn with_callbacks(mut all: Checkpoint, callbacks: &[Box<dyn Callback>]) -> Checkpoint {
    for (i, callback) in callbacks.iter().enumerate() {
        let mut names = NamedVariables::default();
        callback.variables(&mut names);
        all = all.with(&format!("{CALLBACKS}{i}"), names.into_vec());
    }
    all
}

impl Trainer {
    /// All variables of a checkpoint except those of callbacks.
    fn variables(&self) -> Checkpoint {
        let mut all = Checkpoint::new()
            .with("model", self.parts.model.named_variables())
            .with("optimizer", self.parts.optimizer.named_variables());
        for (i, (_, metric)) in self.parts.metrics.iter().enumerate() {
            all = all.with(&format!("metric.{i}"), variables_of(&**metric));
        }
        all
    }

    /// Writes a checkpoint if it is due. Returns whether the file is up to date.
    #[track_caller]
    pub(super) fn save_if(
        &self,
        callbacks: &[Box<dyn Callback>],
        due: impl FnOnce(Every) -> bool,
    ) -> Result<bool> {
        match &self.checkpoints {
            Some((path, every)) if due(*every) => {
                self.write(path, callbacks)?;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }

    #[track_caller]
    fn write(&self, path: &Path, callbacks: &[Box<dyn Callback>]) -> Result<()> {
        self.together(Distribution::check_intact)?;
        let mut state = self.state.clone();
        if let Some(resumed) = &self.resumed {
            // Nothing has run since the resume: callbacks have not taken their state yet.
            return self.save_shared(&self.variables(), path, &resumed.tensors, &state.to_metadata()?);
        }
        state.random = random::state();
        let states = callbacks.iter().enumerate().filter_map(|(i, callback)| Some((i, callback.state()?)));
        state.callbacks = states.collect();
        let all = with_callbacks(self.variables(), callbacks);
        self.save_shared(&all, path, &[], &state.to_metadata()?)
    }

    /// Writes the whole state of the run to a file, now. Callbacks cannot call this, because the state of the other callbacks is
    /// not accessible while they run.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.is_running {
            let message = "Trainer::save must be called outside of fit, got a call from a callback";
            let help = "use Trainer::checkpoint to save after steps or epochs, or Checkpoint to save the model's variables";
            return Err(Error::value(message).help(help).at(Location::caller()));
        }
        self.write(path.as_ref(), &self.callbacks)
    }

    /// Loads the state of the run from a checkpoint. [`Trainer::fit`] continues from there, with the same results, bit for bit, as an
    /// uninterrupted run.
    ///
    /// Model, optimizer, metrics and callbacks must be those of the saved run, so call this after they are set.
    #[track_caller]
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Result<Trainer> {
        let (path, at) = (path.into(), Location::caller());
        let with_path = |error: Error| error.about(path.display()).at(at);
        let file = load_safetensors(&path)?;
        let state = RunState::from_metadata(&file.metadata).map_err(with_path)?;
        state.check_settings(&self.state.settings).map_err(with_path)?;
        let (tensors, mut own): (Vec<_>, Vec<_>) =
            file.tensors.into_iter().partition(|(name, _)| name.starts_with(CALLBACKS));
        self.take_own_shards(&mut own).map_err(with_path)?;
        self.variables().assign(&own).map_err(with_path)?;
        self.state = state;
        self.resumed = Some(PendingCallbacks { path, tensors });
        Ok(self)
    }

    /// Restores callbacks, whose `begin` has run, and the random generator from a checkpoint.
    #[track_caller]
    pub(super) fn restore(&mut self, callbacks: &mut [Box<dyn Callback>]) -> Result<()> {
        let Some(PendingCallbacks { path, tensors }) = &self.resumed else {
            return Ok(());
        };
        let kept = with_callbacks(Checkpoint::new(), callbacks);
        kept.assign(tensors).map_err(|error| error.about(path.display()))?;
        for (i, callback) in callbacks.iter_mut().enumerate() {
            if let Some(state) = self.state.callbacks.get(&i) {
                callback.restore(state)?;
            }
        }
        random::set_state(self.state.random);
        self.resumed = None;
        Ok(())
    }
}
