//! Callbacks that watch one score: to stop, to keep the best model, to lower the learning rate.

use super::callback::{Callback, Flow};
use super::checkpoint::Checkpoint;
use super::history::Epoch;
use super::trainer::Trainer;
use crate::layer::Names;
use std::collections::BTreeMap;
use std::path::PathBuf;
use taut_autodiff::Variable;
use taut_core::{Error, ErrorKind, Result};

/// A score, and which of its values is better.
#[derive(Clone, Debug)]
struct Watch {
    score: String,
    highest: bool,
    min_delta: f64,
    best: Option<f64>,
    /// Epochs since the best one.
    since: usize,
}

impl Watch {
    fn new(score: &str, highest: bool) -> Watch {
        Watch { score: score.to_owned(), highest, min_delta: 0.0, best: None, since: 0 }
    }

    /// Whether this epoch is the best so far. A NaN is never better than anything.
    fn improves(&mut self, epoch: &Epoch) -> Result<bool> {
        let value = epoch.score(&self.score).ok_or_else(|| {
            let known: Vec<&str> = epoch.scores.iter().map(|(name, _)| name.as_str()).collect();
            Error::value(format!("there is no score '{}'", self.score))
                .help(format!("there are {}", known.join(", ")))
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
            Error::new(ErrorKind::Format, format!("'{state}' is not what a callback remembers"))
        })?;
        Ok(())
    }
}

/// What callbacks with a [`Watch`] remember is what it does.
macro_rules! remember_the_watch {
    () => {
        fn state(&self) -> Option<String> {
            Some(self.watch.state())
        }

        fn restore(&mut self, state: &str) -> Result<()> {
            self.watch.restore(state)
        }
    };
}

/// Ends training when a score has not become better for some epochs.
#[derive(Debug)]
pub struct EarlyStopping {
    watch: Watch,
    patience: usize,
    restore_best: bool,
    /// The model's variables at the best epoch.
    best: Vec<(String, Variable)>,
}

impl EarlyStopping {
    fn new(score: &str, highest: bool) -> EarlyStopping {
        EarlyStopping {
            watch: Watch::new(score, highest),
            patience: 1,
            restore_best: false,
            best: Vec::new(),
        }
    }

    /// A score that is to become low: `val_loss`.
    pub fn lowest(score: &str) -> EarlyStopping {
        EarlyStopping::new(score, false)
    }

    /// A score that is to become high: `val_accuracy`.
    pub fn highest(score: &str) -> EarlyStopping {
        EarlyStopping::new(score, true)
    }

    /// How many epochs without a better one are too many: 1 if nothing is said.
    #[must_use]
    pub fn patience(mut self, epochs: usize) -> EarlyStopping {
        self.patience = epochs;
        self
    }

    /// By how much a score must be better to count.
    #[must_use]
    pub fn min_delta(mut self, delta: f64) -> EarlyStopping {
        self.watch.min_delta = delta;
        self
    }

    /// Leaves the model as it was after its best epoch. A copy of its variables is kept for that.
    #[must_use]
    pub fn restore_best(mut self) -> EarlyStopping {
        self.restore_best = true;
        self
    }

    fn keep(&self, trainer: &Trainer) -> Result<()> {
        let now = trainer.model().named().into_iter();
        now.zip(&self.best).try_for_each(|((_, now), (_, best))| best.assign(now.value()))
    }
}

impl Callback for EarlyStopping {
    fn begin(&mut self, trainer: &Trainer) -> Result<()> {
        if self.restore_best && self.best.is_empty() {
            let copy = |(name, variable): (String, Variable)| {
                Ok((name, Variable::builder().trainable(false).build(variable.value())?))
            };
            self.best = trainer.model().named().into_iter().map(copy).collect::<Result<_>>()?;
        }
        Ok(())
    }

    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        if self.watch.improves(epoch)? {
            self.keep(trainer)?;
        }
        Ok(if self.watch.since >= self.patience.max(1) { Flow::Stop } else { Flow::Continue })
    }

    fn end(&mut self, trainer: &Trainer) -> Result<()> {
        if self.restore_best && self.watch.best.is_some() {
            let now = trainer.model().named().into_iter();
            now.zip(&self.best).try_for_each(|((_, now), (_, best))| now.assign(best.value()))?;
        }
        Ok(())
    }

    remember_the_watch!();

    fn variables(&self, names: &mut Names) {
        self.best.iter().for_each(|(name, variable)| names.add(name, variable));
    }
}

/// Writes the model's variables to a file whenever a score is the best so far.
#[derive(Debug)]
pub struct SaveBest {
    watch: Watch,
    path: PathBuf,
}

impl SaveBest {
    /// At the lowest value of this score.
    pub fn lowest(score: &str, path: impl Into<PathBuf>) -> SaveBest {
        SaveBest { watch: Watch::new(score, false), path: path.into() }
    }

    /// At the highest value of this score.
    pub fn highest(score: &str, path: impl Into<PathBuf>) -> SaveBest {
        SaveBest { watch: Watch::new(score, true), path: path.into() }
    }
}

impl Callback for SaveBest {
    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        if self.watch.improves(epoch)? {
            let score = epoch.score(&self.watch.score).unwrap_or_default().to_string();
            let words = BTreeMap::from([(self.watch.score.clone(), score)]);
            Checkpoint::new().with("model", trainer.model().named()).save(&self.path, &words)?;
        }
        Ok(Flow::Continue)
    }

    remember_the_watch!();
}

/// Multiplies the learning rate by a factor when a score has not become better for some epochs.
#[derive(Debug)]
pub struct ReduceRate {
    watch: Watch,
    factor: f64,
    patience: usize,
    least: f64,
}

impl ReduceRate {
    fn new(score: &str, highest: bool, factor: f64) -> ReduceRate {
        ReduceRate { watch: Watch::new(score, highest), factor, patience: 1, least: 0.0 }
    }

    /// By `factor`, when a score that is to become low does not.
    pub fn lowest(score: &str, factor: f64) -> ReduceRate {
        ReduceRate::new(score, false, factor)
    }

    /// By `factor`, when a score that is to become high does not.
    pub fn highest(score: &str, factor: f64) -> ReduceRate {
        ReduceRate::new(score, true, factor)
    }

    /// How many epochs without a better one are too many: 1 if nothing is said.
    #[must_use]
    pub fn patience(mut self, epochs: usize) -> ReduceRate {
        self.patience = epochs;
        self
    }

    /// The lowest rate.
    #[must_use]
    pub fn least(mut self, rate: f64) -> ReduceRate {
        self.least = rate;
        self
    }
}

impl Callback for ReduceRate {
    fn epoch(&mut self, trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        self.watch.improves(epoch)?;
        if self.watch.since >= self.patience.max(1) {
            let rate = trainer.optimizer().rate()?;
            trainer.optimizer().set_rate((rate * self.factor).max(self.least).min(rate))?;
            self.watch.since = 0;
        }
        Ok(Flow::Continue)
    }

    remember_the_watch!();
}
