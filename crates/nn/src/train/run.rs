//! The training loop: epochs and steps.

use super::callback::{Callback, Flow, Step};
use super::history::{Epoch, History};
use super::parts::Batch;
use super::state::EpochProgress;
use super::trainer::{Every, Trainer};
use std::time::Instant;
use taut_core::{Error, Result};
use taut_data::{Dataset, Iter, Position};
use taut_memory::Location;

impl Trainer {
    /// Trains until `epochs` epochs are complete, including those before a resume.
    #[track_caller]
    pub fn fit(&mut self, data: &Dataset<Batch>, epochs: usize) -> Result<&History> {
        let at = Location::caller();
        let mut callbacks = std::mem::take(&mut self.callbacks);
        self.is_running = true;
        let trained = self.run(data, epochs, &mut callbacks);
        // Every callback's `end` runs, also after an error of another one.
        let ended = callbacks.iter_mut().map(|callback| callback.end(self)).fold(Ok(()), Result::and);
        (self.callbacks, self.is_running) = (callbacks, false);
        trained.and(ended).map_err(|error| error.at(at))?;
        Ok(&self.state.history)
    }

    /// Rejects invalid settings before the first step.
    fn check(&self) -> Result<()> {
        match self.checkpoints {
            Some((_, Every::Steps(0))) => {
                return Err(Error::value("Every::Steps must be >= 1, got 0"));
            }
            Some((_, Every::Epochs(0))) => {
                return Err(Error::value("Every::Epochs must be >= 1, got 0"));
            }
            _ => {}
        }
        if self.steps_per_epoch == Some(0) {
            return Err(Error::value("steps_per_epoch must be >= 1, got 0"));
        }
        for (name, metric) in &self.parts.metrics {
            // A metric may fail before its first update; a result that exists must be one number.
            if let (Err(_), Ok(result)) = (metric.value(), metric.result())
                && result.len() != 1
            {
                let message =
                    format!("a score must be one number, got {} from the metric '{name}'", result.spec());
                let help = "average it, or update and read it in a callback";
                return Err(Error::shape(message).help(help));
            }
        }
        Ok(())
    }

    #[track_caller]
    fn run(
        &mut self,
        data: &Dataset<Batch>,
        epochs: usize,
        callbacks: &mut [Box<dyn Callback>],
    ) -> Result<()> {
        self.check()?;
        callbacks.iter_mut().try_for_each(|callback| callback.begin(self))?;
        self.restore(callbacks)?;
        self.agree_on_callbacks(!callbacks.is_empty())?;
        let mut saved = true;
        // With `steps_per_epoch`, the iterator continues from one epoch to the next.
        let mut batches = None;
        while self.state.epochs < epochs {
            let complete = self.state.epochs;
            let mut flow = self.epoch(data, &mut batches, callbacks)?;
            if self.state.epochs == complete {
                saved = false;
                break;
            }
            for callback in callbacks.iter_mut() {
                let last = self.state.history.epochs.last().expect("an epoch was just made");
                if callback.epoch(self, last)? == Flow::Stop {
                    flow = Flow::Stop;
                }
            }
            flow = self.agree_on_flow(flow)?;
            saved = self.save_if(callbacks, |every| match every {
                Every::Epochs(count) => self.state.epochs.is_multiple_of(count),
                Every::Steps(_) => true,
            })?;
            if flow == Flow::Stop {
                break;
            }
        }
        if !saved {
            self.save_if(callbacks, |_| true)?;
        }
        Ok(())
    }

    /// Runs the rest of the current epoch.
    #[track_caller]
    fn epoch(
        &mut self,
        data: &Dataset<Batch>,
        continued: &mut Option<Iter<Batch>>,
        callbacks: &mut [Box<dyn Callback>],
    ) -> Result<Flow> {
        let (clock, before) = (Instant::now(), self.state.progress.seconds);
        let number = self.state.epochs + 1;
        let ranks = self.ranks() as u64;
        let of = self
            .steps_per_epoch
            .or_else(|| data.cardinality().known().map(|count| count.div_ceil(ranks) as usize));
        let mut batches = match continued.take() {
            Some(batches) => batches,
            None => self.position(data)?,
        };
        while self.steps_per_epoch.is_none_or(|steps| self.state.progress.steps < steps) {
            let made = self.state.progress.steps + 1;
            let name = |error: Error| error.about(format!("epoch {number}, step {made}"));
            let Some((samples, loss)) = self.next_step(data, &mut batches).map_err(name)? else {
                if self.steps_per_epoch.is_none() || self.is_empty(data, &batches)? {
                    break;
                }
                let next = Position::start_of(batches.position().epoch + 1);
                batches = self.iterate(data, &next)?;
                continue;
            };
            self.state.progress.add(samples, loss);
            self.state.progress.seconds = before + clock.elapsed().as_secs_f64();
            self.state.position = self.global_position(&batches.position()).to_string();
            let step = Step { epoch: number, number: made, of, samples, loss };
            let mut flow = Flow::Continue;
            for callback in callbacks.iter_mut() {
                if callback.step(self, &step)? == Flow::Stop {
                    flow = Flow::Stop;
                }
            }
            flow = self.agree_on_flow(flow)?;
            self.save_if(callbacks, |every| match every {
                Every::Steps(count) => self.state.steps().is_multiple_of(count),
                Every::Epochs(_) => false,
            })?;
            if flow == Flow::Stop {
                // The epoch is incomplete; the next call of `fit` continues it.
                return Ok(flow);
            }
        }
        if self.state.progress.steps == 0 {
            return Err(Error::value("the dataset must have at least one element, got none")
                .help("Dataset::report() prints how many elements each stage delivered"));
        }
        self.complete(clock, before, &batches.position())?;
        if self.steps_per_epoch.is_some() {
            *continued = Some(batches);
        }
        Ok(Flow::Continue)
    }

    /// The iterator at the position of the run.
    fn position(&mut self, data: &Dataset<Batch>) -> Result<Iter<Batch>> {
        let position = if self.state.position.is_empty() {
            Position::start_of(self.state.epochs as u64)
        } else {
            self.state.position.parse::<Position>()?
        };
        self.iterate(data, &position)
    }

    /// Runs the next step: its samples and its loss, or `None` if the data is at its end.
    #[track_caller]
    fn next_step(&self, data: &Dataset<Batch>, batches: &mut Iter<Batch>) -> Result<Option<(usize, f64)>> {
        let batch = batches.next().transpose()?;
        if let Some(distribution) = &self.parts.distribution {
            return self.next_step_together(distribution, data, batch);
        }
        let Some((x, y)) = batch else { return Ok(None) };
        let samples = x.shape().first().copied().unwrap_or(1);
        Ok(Some((samples, self.run_step(&x, &y)?)))
    }

    /// Records the scores of the epoch and starts the next one.
    #[track_caller]
    fn complete(&mut self, clock: Instant, before: f64, position: &Position) -> Result<()> {
        let now = self.state.progress;
        self.sum_metrics()?;
        let mut scores = vec![("loss".to_owned(), now.loss())];
        scores.extend(self.scores()?);
        self.reset()?;
        if let Some(data) = &self.validation {
            // The arenas of training and validation are released, so that they are not live at the same time.
            self.release();
            let validated = self.evaluate(data).map_err(|error| error.about("validation"))?;
            self.release();
            scores.extend(validated.into_iter().map(|(name, value)| (format!("val_{name}"), value)));
        }
        let seconds = before + clock.elapsed().as_secs_f64();
        let EpochProgress { steps, samples, .. } = now;
        let number = self.state.epochs + 1;
        self.state.history.epochs.push(Epoch { number, steps, samples, seconds, scores });
        self.state.epochs = number;
        self.state.progress = EpochProgress::default();
        // Finite data starts again with each epoch; with `steps_per_epoch` it continues.
        self.state.position = if self.steps_per_epoch.is_some() {
            self.global_position(position).to_string()
        } else {
            String::new()
        };
        Ok(())
    }
}
