//! `take`, `skip` and `shard`: subsequences by index.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use taut_core::{Error, Result};
use taut_memory::Location;

/// Every `step`-th element from index `first` on, at most `most` of them.
struct Subsequence<T> {
    name: &'static str,
    input: Dataset<T>,
    first: u64,
    step: u64,
    most: u64,
}

struct SubsequenceCursor<T> {
    input: StageInput<T>,
    /// Elements of the input to skip before the next one.
    before: u64,
    step: u64,
    left: u64,
}

impl<T: DatasetElement> Dataset<T> {
    /// The first `count` elements.
    pub fn take(&self, count: u64) -> Dataset<T> {
        Dataset::new(Subsequence { name: "take", input: self.clone(), first: 0, step: 1, most: count })
    }

    /// All but the first `count` elements, which are not computed where that is possible.
    pub fn skip(&self, count: u64) -> Dataset<T> {
        Dataset::new(Subsequence { name: "skip", input: self.clone(), first: count, step: 1, most: u64::MAX })
    }

    /// Shard `index` of `shards`: the elements whose index modulo `shards` is `index`.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let second: Result<Vec<i64>, _> = Dataset::range(0..8).shard(3, 1)?.iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(second?, [1, 4, 7]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn shard(&self, shards: u64, index: u64) -> Result<Dataset<T>> {
        if index >= shards {
            let message = format!("index must be in [0, {shards}), got {index}");
            return Err(Error::value(message).at(Location::caller()));
        }
        Ok(Dataset::new(Subsequence {
            name: "shard",
            input: self.clone(),
            first: index,
            step: shards,
            most: u64::MAX,
        }))
    }
}

impl<T: DatasetElement> Stage<T> for Subsequence<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(SubsequenceCursor { input, before: self.first, step: self.step, left: self.most }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Known(count) => {
                Cardinality::Known(count.saturating_sub(self.first).div_ceil(self.step).min(self.most))
            }
            Cardinality::Infinite if self.most < u64::MAX => Cardinality::Known(self.most),
            _ if self.most == 0 => Cardinality::Known(0),
            other => other,
        }
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement> Cursor<T> for SubsequenceCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        if self.left == 0 {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.before, self.step - 1);
        let left = std::mem::take(&mut self.left) - 1;
        if self.input.skip(before)? < before {
            return Ok(None);
        }
        let next = self.input.next();
        if !matches!(next, Ok(None)) {
            self.left = left;
        }
        next
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let count = count.min(self.left);
        if count == 0 {
            return Ok(Some(0));
        }
        let span = (count - 1).saturating_mul(self.step).saturating_add(self.before).saturating_add(1);
        let skipped = self.input.skip(span)?;
        let found = (skipped.saturating_sub(self.before)).div_ceil(self.step);
        self.left = if skipped < span { 0 } else { self.left - count };
        self.before = self.step - 1;
        Ok(Some(found))
    }
}
