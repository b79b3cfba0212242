//! Who looks on while a model is trained, and may interfere.

use super::history::Epoch;
use super::trainer::Trainer;
use crate::layer::Names;
use taut_core::Result;

/// Whether training goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    Continue,
    /// It ends after this step or epoch.
    Stop,
}

/// One step that was just made.
#[derive(Clone, Debug)]
pub struct Step {
    /// The epoch it belongs to, from 1.
    pub epoch: usize,
    /// Its number in the epoch, from 1.
    pub number: usize,
    /// How many there will be in the epoch, if that is known.
    pub of: Option<usize>,
    /// How many samples it saw.
    pub samples: usize,
    /// Its loss.
    pub loss: f64,
}

/// Looks on while a [`Trainer`] works. What it remembers can be part of the checkpoints, so that a run that was
/// interrupted ends as one that was not.
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

    /// When training ends, also if an error ended it.
    fn end(&mut self, trainer: &Trainer) -> Result<()> {
        let _ = trainer;
        Ok(())
    }

    /// What it remembers, in words, for the checkpoint.
    fn state(&self) -> Option<String> {
        None
    }

    /// Goes on from what [`Callback::state`] said.
    fn restore(&mut self, state: &str) -> Result<()> {
        let _ = state;
        Ok(())
    }

    /// Variables that it keeps for the model, which are part of the checkpoint, too. Called after [`Callback::begin`].
    fn variables(&self, names: &mut Names) {
        let _ = names;
    }
}
