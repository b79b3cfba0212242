//! Checkpoints of a run, and going on from one.

use super::callback::Callback;
use super::checkpoint::Checkpoint;
use super::state::State;
use super::trainer::{Every, Trainer, variables_of};
use crate::layer::Names;
use std::path::{Path, PathBuf};
use taut_core::io::load_safetensors;
use taut_core::ops::random;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// What the names of callbacks' variables begin with.
const CALLBACKS: &str = "callback.";

/// What a checkpoint holds of callbacks. They can take it once they have begun.
pub(super) struct Resumed {
    path: PathBuf,
    tensors: Vec<(String, Tensor)>,
}

/// The variables that callbacks keep.
fn with_callbacks(mut all: Checkpoint, callbacks: &[Box<dyn Callback>]) -> Checkpoint {
    for (i, callback) in callbacks.iter().enumerate() {
        let mut names = Names::default();
        callback.variables(&mut names);
        all = all.with(&format!("{CALLBACKS}{i}"), names.into_found());
    }
    all
}

impl Trainer {
    /// All that a checkpoint holds, but for what callbacks keep.
    fn variables(&self) -> Checkpoint {
        let mut all = Checkpoint::new()
            .with("model", self.parts.model.named())
            .with("optimizer", self.parts.optimizer.named());
        for (i, (_, metric)) in self.parts.metrics.iter().enumerate() {
            all = all.with(&format!("metric.{i}"), variables_of(&**metric));
        }
        all
    }

    /// Writes a checkpoint if it is due. Whether there is nothing left to save.
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
        let mut state = self.state.clone();
        if let Some(resumed) = &self.resumed {
            // Nothing was done since: callbacks have not even been told.
            return self.variables().save_with(path, &resumed.tensors, &state.to_words()?);
        }
        state.random = random::state();
        let remembered =
            callbacks.iter().enumerate().filter_map(|(i, callback)| Some((i, callback.state()?)));
        state.callbacks = remembered.collect();
        with_callbacks(self.variables(), callbacks).save(path, &state.to_words()?)
    }

    /// Writes the whole state of the training to a file, now. Callbacks cannot do that: what the others remember is out of
    /// reach then.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.is_running {
            let message = "a callback cannot save the whole state of the training";
            let help =
                "Trainer::checkpoint does, after steps and epochs; Checkpoint saves the model's variables";
            return Err(Error::value(message).help(help).at(Location::caller()));
        }
        self.write(path.as_ref(), &self.callbacks)
    }

    /// Takes the state of the training from a checkpoint. [`Trainer::fit`] goes on from there: every later number will be the
    /// one that an uninterrupted run would have had.
    ///
    /// Model, optimizer, metrics and callbacks must be as they were, so this comes after they are given.
    #[track_caller]
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Result<Trainer> {
        let (path, at) = (path.into(), Location::caller());
        let told = |error: Error| error.about(path.display()).at(at);
        let file = load_safetensors(&path)?;
        let state = State::from_words(&file.metadata).map_err(told)?;
        state.agree(&self.state.settings).map_err(told)?;
        let (tensors, own): (Vec<_>, Vec<_>) =
            file.tensors.into_iter().partition(|(name, _)| name.starts_with(CALLBACKS));
        self.variables().take(&own).map_err(told)?;
        self.state = state;
        self.resumed = Some(Resumed { path, tensors });
        Ok(self)
    }

    /// Tells callbacks, which have begun, what a checkpoint says of them; from here on, random numbers are the run's.
    #[track_caller]
    pub(super) fn restore(&mut self, callbacks: &mut [Box<dyn Callback>]) -> Result<()> {
        let Some(Resumed { path, tensors }) = &self.resumed else {
            return Ok(());
        };
        let kept = with_callbacks(Checkpoint::new(), callbacks);
        kept.take(tensors).map_err(|error| error.about(path.display()))?;
        for (i, callback) in callbacks.iter_mut().enumerate() {
            if let Some(remembered) = self.state.callbacks.get(&i) {
                callback.restore(remembered)?;
            }
        }
        random::set_state(self.state.random);
        self.resumed = None;
        Ok(())
    }
}
