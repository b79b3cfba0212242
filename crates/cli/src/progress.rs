//! The progress bar of a training run.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;
use taut::memory::{self, Bytes};
use taut::train::{Callback, Epoch, Flow, Step};
use taut::{Result, Trainer};

/// Shows loss, scores, speed and memory after every step, and prints a line for every epoch.
pub struct Progress {
    bar: ProgressBar,
    epochs: usize,
    /// The start of this epoch, and the number of its samples so far.
    clock: Instant,
    samples: usize,
}

impl Progress {
    pub fn new(epochs: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Progress { bar, epochs, clock: Instant::now(), samples: 0 }
    }

    fn speed(&self) -> String {
        let speed = self.samples as f64 / self.clock.elapsed().as_secs_f64().max(1e-9);
        format!("{} samples/s", HumanCount(speed as u64))
    }
}

/// `loss 0.1234  accuracy 0.9700`
fn words(scores: &[(String, f64)]) -> String {
    scores.iter().map(|(name, value)| format!("{name} {value:.4}")).collect::<Vec<_>>().join("  ")
}

impl Callback for Progress {
    fn step(&mut self, trainer: &Trainer, step: &Step) -> Result<Flow> {
        if self.samples == 0 {
            let template = "  {prefix} [{bar:24}] {pos}/{len}  {msg}";
            let style = ProgressStyle::with_template(template).map(|style| style.progress_chars("=> "));
            self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar.set_prefix(format!("epoch {:2}/{}", step.epoch, self.epochs));
            self.bar.reset();
            self.bar.set_length(step.of.unwrap_or(0) as u64);
        }
        self.samples += step.samples;
        // Scores are computed only when they are shown.
        self.bar.set_position(step.number as u64);
        if !self.bar.is_hidden() {
            let mut scores = vec![("loss".to_owned(), trainer.mean_loss())];
            scores.extend(trainer.scores()?);
            let (live, peak) = (Bytes(memory::live_bytes()), Bytes(memory::peak_bytes()));
            let message = format!("{}  {}  live {live}  peak {peak}", words(&scores), self.speed());
            self.bar.set_message(message);
        }
        Ok(Flow::Continue)
    }

    fn epoch(&mut self, _trainer: &Trainer, epoch: &Epoch) -> Result<Flow> {
        let line = format!(
            "  epoch {:2}/{}  {}  {}  peak {}",
            epoch.number,
            self.epochs,
            words(&epoch.scores),
            self.speed(),
            Bytes(memory::peak_bytes())
        );
        if std::io::stderr().is_terminal() {
            self.bar.println(line);
        } else {
            println!("{line}");
        }
        (self.clock, self.samples) = (Instant::now(), 0);
        Ok(Flow::Continue)
    }

    fn end(&mut self, _trainer: &Trainer) -> Result<()> {
        self.bar.finish_and_clear();
        Ok(())
    }
}
