//! `take`, `skip` and `shard`: parts of a sequence, by number.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::{Input, Run};
use taut_core::{Error, Result};
use taut_memory::Location;

/// Every `step`-th place from `first` on, `most` of them.
struct Part<T> {
    name: &'static str,
    input: Dataset<T>,
    first: u64,
    step: u64,
    most: u64,
}

struct PartCursor<T> {
    input: Input<T>,
    /// Places of the input to pass over before the next one.
    before: u64,
    step: u64,
    left: u64,
}

impl<T: Item> Dataset<T> {
    /// The first `count` elements.
    pub fn take(&self, count: u64) -> Dataset<T> {
        Dataset::new(Part { name: "take", input: self.clone(), first: 0, step: 1, most: count })
    }

    /// All but the first `count` elements. What is passed over is not made, where that can be done.
    pub fn skip(&self, count: u64) -> Dataset<T> {
        Dataset::new(Part { name: "skip", input: self.clone(), first: count, step: 1, most: u64::MAX })
    }

    /// One of `shards` equal parts: the elements whose number leaves the remainder `index`.
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
            let message = format!("there is no shard {index} of {shards}");
            return Err(Error::value(message).help("shards are numbered from 0").at(Location::caller()));
        }
        Ok(Dataset::new(Part {
            name: "shard",
            input: self.clone(),
            first: index,
            step: shards,
            most: u64::MAX,
        }))
    }
}

impl<T: Item> Stage<T> for Part<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(PartCursor { input, before: self.first, step: self.step, left: self.most }))
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

impl<T: Item> Cursor<T> for PartCursor<T> {
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

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let wanted = count.min(self.left);
        if wanted == 0 {
            return Ok(Some(0));
        }
        let places = (wanted - 1).saturating_mul(self.step).saturating_add(self.before).saturating_add(1);
        let passed = self.input.skip(places)?;
        let found = (passed.saturating_sub(self.before)).div_ceil(self.step);
        self.left = if passed < places { 0 } else { self.left - wanted };
        self.before = self.step - 1;
        Ok(Some(found))
    }
}
