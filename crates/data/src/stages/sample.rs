//! `sample_from`: several datasets, mixed by weights.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::draws::Draws;
use crate::item::Item;
use crate::meter::{Input, Run};
use taut_core::{Error, Result};
use taut_memory::Location;

struct Sample<T> {
    parts: Vec<(Dataset<T>, f64)>,
    seed: u64,
}

/// A dataset that takes part.
struct Part<T> {
    input: Input<T>,
    weight: f64,
    /// Places that are left, if that is known.
    left: Option<u64>,
    /// Places that were passed over and are still to be skipped.
    behind: u64,
}

struct SampleCursor<T> {
    parts: Vec<Part<T>>,
    draws: Draws,
    drawn: u64,
}

impl<T: Item> Dataset<T> {
    /// Elements of several datasets: which one the next comes from is drawn by their weights. One that has ended takes no more
    /// part; the last to end ends it. Each epoch is drawn anew, from the seed.
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
    pub fn sample_from(parts: &[(Dataset<T>, f64)], seed: u64) -> Result<Dataset<T>> {
        if let Some((_, weight)) = parts.iter().find(|(_, weight)| !(weight.is_finite() && *weight > 0.0)) {
            let message = format!("a dataset of weight {weight}");
            return Err(Error::value(message).help("weights are positive numbers").at(Location::caller()));
        }
        Ok(Dataset::new(Sample { parts: parts.to_vec(), seed }))
    }
}

impl<T: Item> Stage<T> for Sample<T> {
    fn name(&self) -> &'static str {
        "sample_from"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let part = |(dataset, weight): &(Dataset<T>, f64)| {
            let left = match dataset.cardinality() {
                Cardinality::Known(count) => Some(count),
                Cardinality::Infinite => Some(u64::MAX),
                Cardinality::Unknown => None,
            };
            Ok(Part { input: run.start(dataset, epoch)?, weight: *weight, left, behind: 0 })
        };
        let parts = self.parts.iter().map(part).collect::<Result<_>>()?;
        Ok(Box::new(SampleCursor { parts, draws: Draws::new(self.seed, epoch), drawn: 0 }))
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
    /// The place of the dataset that is drawn next.
    fn draw(&mut self) -> usize {
        let sum: f64 = self.parts.iter().map(|part| part.weight).sum();
        let mut rest = self.draws.unit(self.drawn) * sum;
        self.drawn += 1;
        let drawn = self.parts.iter().position(|part| {
            rest -= part.weight;
            rest < 0.0
        });
        // Rounding may leave a little: it is the last one's.
        drawn.unwrap_or(self.parts.len() - 1)
    }
}

impl<T: Item> Cursor<T> for SampleCursor<T> {
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

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        if self.parts.iter().any(|part| part.left.is_none()) {
            return Ok(None);
        }
        let mut passed = 0;
        while passed < count && !self.parts.is_empty() {
            self.parts[0].input.wanted()?;
            // Drawn on numbers; each dataset is then asked once to pass over its share.
            let index = self.draw();
            let part = &mut self.parts[index];
            match part.left {
                Some(0) => drop(self.parts.remove(index)),
                left => {
                    part.left = left.map(|left| left - 1);
                    part.behind += 1;
                    passed += 1;
                }
            }
        }
        for part in &mut self.parts {
            part.input.skip(std::mem::take(&mut part.behind))?;
        }
        Ok(Some(passed))
    }
}
