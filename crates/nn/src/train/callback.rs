//! Callbacks of the training loop.

use super::history::Epoch;
use super::trainer::Trainer;
use crate::layer::NamedVariables;
use taut_core::Result;

/// Whether training continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Training continues.
    Continue,
    /// Training ends after this step or epoch.
    Stop,
}

/// The training step that has just run.
#[derive(Clone, Debug)]
pub struct Step {
    /// The epoch it belongs to, from 1.
    pub epoch: usize,
    /// Its number in the epoch, from 1.
    pub number: usize,
    /// The number of steps of the epoch, if it is known.
    pub of: Option<usize>,
    /// The number of samples in its batch.
    pub samples: usize,
    /// Its loss.
    pub loss: f64,
}

/// Is called by a [`Trainer`] while it trains. Its state can be part of the checkpoints, so that a resumed run ends like an
/// uninterrupted one.
pub trait Callback: Send {
    /// Before the first step.
    fn begin(&mut self, trainer: &Trainer) -> Result<()> {
        let _ = trainer;
        Ok(())
    }

    /// After each step.
    fn step(&mut self, trainer: &Trainer, step: &Step) -> Result<Flow> {
        let _ = (trainer, step);
        Ok(Flow::Continue)
    }

    /// After each epoch, with its scores.
    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        let _ = (trainer, epoch);
        Ok(Flow::Continue)
    }

    /// When training ends, also after an error.
    fn end(&mut self, trainer: &Trainer) -> Result<()> {
        let _ = trainer;
        Ok(())
    }

    /// Its state as text, for the checkpoint.
    fn state(&self) -> Option<String> {
        None
    }

    /// Restores the state that [`Callback::state`] returned.
    fn restore(&mut self, state: &str) -> Result<()> {
        let _ = state;
        Ok(())
    }

    /// Variables that are part of the checkpoint, too. Called after [`Callback::begin`].
    fn variables(&self, names: &mut NamedVariables) {
        let _ = names;
    }
}
