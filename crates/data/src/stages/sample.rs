//! `sample_from`: mixes several datasets at random, by weights.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::random::RandomSequence;
use taut_core::{Error, Result};
use taut_memory::Location;

struct Sample<T> {
    parts: Vec<(Dataset<T>, f64)>,
    how: Sampling,
}

/// Options of [`Dataset::sample_from`]. A plain number is a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    seed: u64,
    each_epoch: bool,
}

impl Sampling {
    /// Draws with this seed.
    pub fn new(seed: u64) -> Sampling {
        Sampling { seed, each_epoch: true }
    }

    /// Whether each epoch has draws of its own, which is the default, or all have the same (TensorFlow's
    /// `rerandomize_each_iteration`).
    #[must_use]
    pub fn each_epoch(self, each_epoch: bool) -> Sampling {
        Sampling { each_epoch, ..self }
    }
}

impl From<u64> for Sampling {
    fn from(seed: u64) -> Sampling {
        Sampling::new(seed)
    }
}

/// One of the mixed datasets.
struct WeightedInput<T> {
    input: StageInput<T>,
    weight: f64,
    /// Elements left, if their number is known.
    left: Option<u64>,
    /// Elements that were drawn while skipping, and are still to be skipped in the input.
    pending_skips: u64,
}

struct SampleCursor<T> {
    parts: Vec<WeightedInput<T>>,
    random: RandomSequence,
    drawn: u64,
}

impl<T: DatasetElement> Dataset<T> {
    /// Mixes several datasets: for each element, its dataset is drawn with probability proportional to the weights. A dataset
    /// that has ended is no longer drawn; the sequence ends with the last of them. Draws depend on the seed and the epoch.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let (small, large) = (Dataset::range(0..100).repeat(None), Dataset::range(1000..1100).repeat(None));
    /// let mixed = Dataset::sample_from(&[(small, 3.0), (large, 1.0)], 7)?.take(1000);
    /// let small = mixed.reduce(0, |count, x| Ok(count + i64::from(x.item::<i64>()? < 1000)))?;
    /// assert!((680..820).contains(&small));
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn sample_from(parts: &[(Dataset<T>, f64)], how: impl Into<Sampling>) -> Result<Dataset<T>> {
        if let Some((_, weight)) = parts.iter().find(|(_, weight)| !(weight.is_finite() && *weight > 0.0)) {
            let message = format!("weights must be positive and finite, got {weight}");
            return Err(Error::value(message).at(Location::caller()));
        }
        Ok(Dataset::new(Sample { parts: parts.to_vec(), how: how.into() }))
    }
}

impl<T: DatasetElement> Stage<T> for Sample<T> {
    fn name(&self) -> &'static str {
        "sample_from"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let part = |(number, (dataset, weight)): (usize, &(Dataset<T>, f64))| {
            let left = match dataset.cardinality() {
                Cardinality::Known(count) => Some(count),
                Cardinality::Infinite => Some(u64::MAX),
                Cardinality::Unknown => None,
            };
            let input = run.start_one(dataset, number, epoch)?;
            Ok(WeightedInput { input, weight: *weight, left, pending_skips: 0 })
        };
        let parts = self.parts.iter().enumerate().map(part).collect::<Result<_>>()?;
        let epoch = if self.how.each_epoch { run.drawing_epoch(epoch) } else { 0 };
        Ok(Box::new(SampleCursor { parts, random: RandomSequence::new(self.how.seed, epoch), drawn: 0 }))
    }

    fn draws_order(&self) -> bool {
        self.how.each_epoch
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        self.parts.iter().map(|(part, _)| part as &dyn PipelineStage).collect()
    }

    fn cardinality(&self) -> Cardinality {
        self.parts.iter().map(|(part, _)| part.cardinality()).fold(Cardinality::Known(0), Cardinality::plus)
    }

    fn bytes_each(&self) -> Option<usize> {
        let bytes = self.parts.first()?.0.stage.bytes_each();
        bytes.filter(|_| self.parts.iter().all(|(part, _)| part.stage.bytes_each() == bytes))
    }
}

impl<T> SampleCursor<T> {
    /// Draws the index of the next dataset.
    fn draw(&mut self) -> usize {
        let sum: f64 = self.parts.iter().map(|part| part.weight).sum();
        let mut rest = self.random.unit(self.drawn) * sum;
        self.drawn += 1;
        let drawn = self.parts.iter().position(|part| {
            rest -= part.weight;
            rest < 0.0
        });
        // Rounding may leave a small rest, which goes to the last one.
        drawn.unwrap_or(self.parts.len() - 1)
    }
}

impl<T: DatasetElement> Cursor<T> for SampleCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        while !self.parts.is_empty() {
            let index = self.draw();
            let part = &mut self.parts[index];
            match part.input.next() {
                Ok(None) => drop(self.parts.remove(index)),
                next => {
                    part.left = part.left.map(|left| left.saturating_sub(1));
                    return next;
                }
            }
        }
        Ok(None)
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        if self.parts.iter().any(|part| part.left.is_none()) {
            return Ok(None);
        }
        let mut skipped = 0;
        while skipped < count && !self.parts.is_empty() {
            self.parts[0].input.check_not_stopped()?;
            // Draw without computing elements; each dataset then skips its share at once.
            let index = self.draw();
            let part = &mut self.parts[index];
            match part.left {
                Some(0) => drop(self.parts.remove(index)),
                left => {
                    part.left = left.map(|left| left - 1);
                    part.pending_skips += 1;
                    skipped += 1;
                }
            }
        }
        for part in &mut self.parts {
            part.input.skip(std::mem::take(&mut part.pending_skips))?;
        }
        Ok(Some(skipped))
    }
}
