//! `repeat`: repeats a dataset, each time with another epoch.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use taut_core::Result;

struct Repeat<T> {
    input: Dataset<T>,
    times: Option<u64>,
}

struct RepeatCursor<T> {
    run: StageRun,
    dataset: Dataset<T>,
    input: Option<StageInput<T>>,
    epoch: u64,
    /// Repetitions left, including this one.
    left: Option<u64>,
    /// Whether this repetition has returned an element. An empty one ends `repeat(None)`, which would never return.
    found: bool,
}

impl<T: DatasetElement> Dataset<T> {
    /// Repeats the dataset `times` times, or infinitely often. Each repetition is another epoch: a `shuffle` before it draws
    /// another order. An empty repetition ends an infinite one; a counted one goes on with the next.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let twice: Result<Vec<i64>, _> = Dataset::range(0..2).repeat(2).iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(twice?, [0, 1, 0, 1]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn repeat(&self, times: impl Into<Option<u64>>) -> Dataset<T> {
        Dataset::new(Repeat { input: self.clone(), times: times.into() })
    }
}

impl<T: DatasetElement> Stage<T> for Repeat<T> {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        // If the whole pipeline is repeated, the epochs of different repetitions do not overlap.
        let epoch = epoch.wrapping_mul(self.times.unwrap_or(1));
        let input = if self.times == Some(0) { None } else { Some(run.start(&self.input, epoch)?) };
        let (run, dataset) = (run.clone(), self.input.clone());
        Ok(Box::new(RepeatCursor { run, dataset, input, epoch, left: self.times, found: false }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.times) {
            (_, Some(0)) | (Cardinality::Known(0), _) => Cardinality::Known(0),
            (Cardinality::Known(count), Some(times)) => Cardinality::Known(count.saturating_mul(times)),
            (_, None) => Cardinality::Infinite,
            (other, _) => other,
        }
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement> RepeatCursor<T> {
    /// Ends this repetition and `more` further ones, and begins the next. False if there is none.
    fn next_repetition(&mut self, more: u64) -> Result<bool> {
        self.input = None;
        let found = std::mem::take(&mut self.found);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1 + more);
        }
        if (!found && self.left.is_none()) || self.left == Some(0) {
            return Ok(false);
        }
        self.epoch = self.epoch.wrapping_add(1 + more);
        self.input = Some(self.run.start(&self.dataset, self.epoch)?);
        Ok(true)
    }
}

impl<T: DatasetElement> Cursor<T> for RepeatCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        while let Some(input) = &mut self.input {
            match input.next() {
                Ok(None) => self.next_repetition(0)?,
                next => {
                    self.found = true;
                    return next;
                }
            };
        }
        Ok(None)
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let mut skipped = 0;
        while let Some(input) = &mut self.input {
            let found = input.skip(count - skipped)?;
            skipped += found;
            self.found |= found > 0;
            if skipped == count {
                break;
            }
            // Whole epochs of a known length are skipped without starting them.
            let each = self.dataset.cardinality().known().filter(|&each| each > 0);
            let whole = each.map_or(0, |each| (count - skipped) / each);
            let whole = self.left.map_or(whole, |left| whole.min(left.saturating_sub(1)));
            skipped += whole * each.unwrap_or(0);
            self.next_repetition(whole)?;
        }
        Ok(Some(skipped))
    }
}
