//! `zip`, `enumerate` and `concatenate`: combinations of sequences.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{DatasetElement, HANDLE_BYTES};
use crate::stages::source::number;
use taut_core::{Result, Tensor, source_location};
use taut_memory::Location;

struct Zip<A, B>(Dataset<A>, Dataset<B>);

struct ZipCursor<A, B>(StageInput<A>, StageInput<B>);

struct Enumerate<T> {
    input: Dataset<T>,
    start: i64,
    at: Location,
}

struct EnumerateCursor<T> {
    input: StageInput<T>,
    next: i64,
    at: Location,
}

struct Concatenate<T>(Dataset<T>, Dataset<T>);

struct ConcatenateCursor<T> {
    input: StageInput<T>,
    /// The second dataset, until it is started.
    second: Option<(StageRun, Dataset<T>, u64)>,
}

impl<T: DatasetElement> Dataset<T> {
    /// Pairs of elements of this dataset and another one; the sequence ends with the shorter one.
    pub fn zip<U: DatasetElement>(&self, other: &Dataset<U>) -> Dataset<(T, U)> {
        Dataset::new(Zip(self.clone(), other.clone()))
    }

    /// Each element with its index plus `start`, an `int64` scalar.
    #[track_caller]
    pub fn enumerate(&self, start: i64) -> Dataset<(Tensor, T)> {
        Dataset::new(Enumerate { input: self.clone(), start, at: source_location(Location::caller()) })
    }

    /// The elements of this dataset, followed by those of another.
    pub fn concatenate(&self, other: &Dataset<T>) -> Dataset<T> {
        Dataset::new(Concatenate(self.clone(), other.clone()))
    }
}

impl<A: DatasetElement, B: DatasetElement> Stage<(A, B)> for Zip<A, B> {
    fn name(&self) -> &'static str {
        "zip"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<(A, B)>>> {
        Ok(Box::new(ZipCursor(run.start_one(&self.0, 0, epoch)?, run.start_one(&self.1, 1, epoch)?)))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.0, &self.1]
    }

    fn cardinality(&self) -> Cardinality {
        self.0.cardinality().min(self.1.cardinality())
    }

    fn bytes_each(&self) -> Option<usize> {
        Some(self.0.stage.bytes_each()? + self.1.stage.bytes_each()?)
    }
}

impl<A: DatasetElement, B: DatasetElement> Cursor<(A, B)> for ZipCursor<A, B> {
    fn next(&mut self) -> Result<Option<(A, B)>> {
        // Both advance, even if one of them fails, so that their indices stay equal.
        let (a, b) = (self.0.next(), self.1.next());
        match (a, b) {
            (Ok(None), _) | (_, Ok(None)) => Ok(None),
            (a, b) => Ok(a?.zip(b?)),
        }
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        Ok(Some(self.0.skip(count)?.min(self.1.skip(count)?)))
    }
}

impl<T: DatasetElement> Stage<(Tensor, T)> for Enumerate<T> {
    fn name(&self) -> &'static str {
        "enumerate"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<(Tensor, T)>>> {
        Ok(Box::new(EnumerateCursor { input: run.start(&self.input, epoch)?, next: self.start, at: self.at }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        Some(self.input.stage.bytes_each()? + HANDLE_BYTES + size_of::<i64>())
    }
}

impl<T: DatasetElement> Cursor<(Tensor, T)> for EnumerateCursor<T> {
    fn next(&mut self) -> Result<Option<(Tensor, T)>> {
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        let Some(element) = self.input.next()? else {
            return Ok(None);
        };
        Ok(Some((number(index, self.at)?, element)))
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let skipped = self.input.skip(count)?;
        self.next = self.next.wrapping_add_unsigned(skipped);
        Ok(Some(skipped))
    }
}

impl<T: DatasetElement> Stage<T> for Concatenate<T> {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let second = Some((run.clone(), self.1.clone(), epoch));
        Ok(Box::new(ConcatenateCursor { input: run.start_one(&self.0, 0, epoch)?, second }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.0, &self.1]
    }

    fn cardinality(&self) -> Cardinality {
        self.0.cardinality().plus(self.1.cardinality())
    }

    fn bytes_each(&self) -> Option<usize> {
        let bytes = self.0.stage.bytes_each()?;
        (self.1.stage.bytes_each()? == bytes).then_some(bytes)
    }
}

impl<T: DatasetElement> ConcatenateCursor<T> {
    /// Starts the second dataset. False if it was started before.
    fn start_second(&mut self) -> Result<bool> {
        let Some((run, second, epoch)) = self.second.take() else {
            return Ok(false);
        };
        self.input = run.start_one(&second, 1, epoch)?;
        Ok(true)
    }
}

impl<T: DatasetElement> Cursor<T> for ConcatenateCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self.input.next() {
            Ok(None) if self.start_second()? => self.input.next(),
            next => next,
        }
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let mut skipped = self.input.skip(count)?;
        if skipped < count && self.start_second()? {
            skipped += self.input.skip(count - skipped)?;
        }
        Ok(Some(skipped))
    }
}
