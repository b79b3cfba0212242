//! Callbacks that monitor one score: early stopping, saving the best model, lowering the learning rate.

use super::callback::{Callback, Flow};
use super::checkpoint::Checkpoint;
use super::history::Epoch;
use super::trainer::Trainer;
use crate::layer::NamedVariables;
use std::collections::BTreeMap;
use std::path::PathBuf;
use taut_autodiff::Variable;
use taut_core::{Error, ErrorKind, Result};

/// A score, whether higher or lower is better, and the best value so far.
#[derive(Clone, Debug)]
struct MonitoredScore {
    score: String,
    highest: bool,
    min_delta: f64,
    best: Option<f64>,
    /// The number of epochs since the best one.
    since: usize,
}

impl MonitoredScore {
    fn new(score: &str, highest: bool) -> MonitoredScore {
        MonitoredScore { score: score.to_owned(), highest, min_delta: 0.0, best: None, since: 0 }
    }

    /// Whether this epoch is the best so far. NaN is never an improvement.
    fn improves(&mut self, epoch: &Epoch) -> Result<bool> {
        let value = epoch.score(&self.score).ok_or_else(|| {
            let known: Vec<&str> = epoch.scores.iter().map(|(name, _)| name.as_str()).collect();
            Error::value(format!("the epoch has no score '{}'", self.score))
                .help(format!("use one of {}", known.join(", ")))
        })?;
        let gain = |best: f64| if self.highest { value - best } else { best - value };
        let improves = !value.is_nan() && self.best.is_none_or(|best| gain(best) > self.min_delta);
        if improves {
            (self.best, self.since) = (Some(value), 0);
        } else {
            self.since += 1;
        }
        Ok(improves)
    }

    fn state(&self) -> String {
        let best = self.best.map_or("-".to_owned(), |best| format!("{:016x}", best.to_bits()));
        format!("{best} {}", self.since)
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let parse = || {
            let (best, since) = state.split_once(' ')?;
            let best = match best {
                "-" => None,
                bits => Some(f64::from_bits(u64::from_str_radix(bits, 16).ok()?)),
            };
            Some((best, since.parse().ok()?))
        };
        (self.best, self.since) = parse().ok_or_else(|| {
            Error::new(ErrorKind::Format, format!("the state of the callback cannot be parsed: '{state}'"))
        })?;
        Ok(())
    }
}

/// The state of these callbacks is that of their [`MonitoredScore`].
macro_rules! state_of_the_monitor {
    () => {
        fn state(&self) -> Option<String> {
            Some(self.monitor.state())
        }

        fn restore(&mut self, state: &str) -> Result<()> {
            self.monitor.restore(state)
        }
    };
}

/// Stops training when a score has not improved for `patience` epochs.
#[derive(Debug)]
pub struct EarlyStopping {
    monitor: MonitoredScore,
    patience: usize,
    restore_best: bool,
    /// The model's variables at the best epoch.
    best: Vec<(String, Variable)>,
}

impl EarlyStopping {
    fn new(score: &str, highest: bool) -> EarlyStopping {
        EarlyStopping {
            monitor: MonitoredScore::new(score, highest),
            patience: 1,
            restore_best: false,
            best: Vec::new(),
        }
    }

    /// Lower scores are better, as for `val_loss`.
    pub fn lowest(score: &str) -> EarlyStopping {
        EarlyStopping::new(score, false)
    }

    /// Higher scores are better, as for `val_accuracy`.
    pub fn highest(score: &str) -> EarlyStopping {
        EarlyStopping::new(score, true)
    }

    /// The number of epochs without improvement to wait for. Default: 1.
    #[must_use]
    pub fn patience(mut self, epochs: usize) -> EarlyStopping {
        self.patience = epochs;
        self
    }

    /// The least change of a score that counts as an improvement. Default: 0.
    #[must_use]
    pub fn min_delta(mut self, delta: f64) -> EarlyStopping {
        self.monitor.min_delta = delta;
        self
    }

    /// Restores the model's variables of the best epoch at the end. Keeps a copy of them for that.
    #[must_use]
    pub fn restore_best(mut self) -> EarlyStopping {
        self.restore_best = true;
        self
    }

    fn keep(&self, trainer: &Trainer) -> Result<()> {
        let now = trainer.model().named_variables().into_iter();
        now.zip(&self.best).try_for_each(|((_, now), (_, best))| best.assign(now.value()))
    }
}

impl Callback for EarlyStopping {
    fn begin(&mut self, trainer: &Trainer) -> Result<()> {
        if self.restore_best && self.best.is_empty() {
            let copy = |(name, variable): (String, Variable)| {
                Ok((name, Variable::builder().trainable(false).build(variable.value())?))
            };
            self.best = trainer.model().named_variables().into_iter().map(copy).collect::<Result<_>>()?;
        }
        Ok(())
    }

    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        if self.monitor.improves(epoch)? {
            self.keep(trainer)?;
        }
        Ok(if self.monitor.since >= self.patience.max(1) { Flow::Stop } else { Flow::Continue })
    }

    fn end(&mut self, trainer: &Trainer) -> Result<()> {
        if self.restore_best && self.monitor.best.is_some() {
            let now = trainer.model().named_variables().into_iter();
            now.zip(&self.best).try_for_each(|((_, now), (_, best))| now.assign(best.value()))?;
        }
        Ok(())
    }

    state_of_the_monitor!();

    fn variables(&self, names: &mut NamedVariables) {
        self.best.iter().for_each(|(name, variable)| names.add(name, variable));
    }
}

/// Writes the model's variables to a file whenever a score is the best so far.
#[derive(Debug)]
pub struct SaveBest {
    monitor: MonitoredScore,
    path: PathBuf,
}

impl SaveBest {
    /// Lower scores are better.
    pub fn lowest(score: &str, path: impl Into<PathBuf>) -> SaveBest {
        SaveBest { monitor: MonitoredScore::new(score, false), path: path.into() }
    }

    /// Higher scores are better.
    pub fn highest(score: &str, path: impl Into<PathBuf>) -> SaveBest {
        SaveBest { monitor: MonitoredScore::new(score, true), path: path.into() }
    }
}

impl Callback for SaveBest {
    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        if self.monitor.improves(epoch)? {
            let score = epoch.score(&self.monitor.score).unwrap_or_default().to_string();
            let metadata = BTreeMap::from([(self.monitor.score.clone(), score)]);
            Checkpoint::new().with("model", trainer.model().named_variables()).save(&self.path, &metadata)?;
        }
        Ok(Flow::Continue)
    }

    state_of_the_monitor!();
}

/// Multiplies the learning rate by a factor when a score has not improved for `patience` epochs.
#[derive(Debug)]
pub struct ReduceRate {
    monitor: MonitoredScore,
    factor: f64,
    patience: usize,
    min_rate: f64,
}

impl ReduceRate {
    fn new(score: &str, highest: bool, factor: f64) -> ReduceRate {
        ReduceRate { monitor: MonitoredScore::new(score, highest), factor, patience: 1, min_rate: 0.0 }
    }

    /// Lower scores are better.
    pub fn lowest(score: &str, factor: f64) -> ReduceRate {
        ReduceRate::new(score, false, factor)
    }

    /// Higher scores are better.
    pub fn highest(score: &str, factor: f64) -> ReduceRate {
        ReduceRate::new(score, true, factor)
    }

    /// The number of epochs without improvement to wait for. Default: 1.
    #[must_use]
    pub fn patience(mut self, epochs: usize) -> ReduceRate {
        self.patience = epochs;
        self
    }

    /// The minimum learning rate. Default: 0.
    #[must_use]
    pub fn min_rate(mut self, rate: f64) -> ReduceRate {
        self.min_rate = rate;
        self
    }
}

impl Callback for ReduceRate {
    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        self.monitor.improves(epoch)?;
        if self.monitor.since >= self.patience.max(1) {
            let rate = trainer.optimizer().rate()?;
            trainer.optimizer().set_rate((rate * self.factor).max(self.min_rate).min(rate))?;
            self.monitor.since = 0;
        }
        Ok(Flow::Continue)
    }

    state_of_the_monitor!();
}
