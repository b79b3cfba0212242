//! `map`: applies a function to each element.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::at_element;
use std::cell::Cell;
use std::sync::Arc;
use taut_core::Result;

struct Map<T, F> {
    input: Dataset<T>,
    f: Arc<F>,
}

struct MapCursor<T, F> {
    input: StageInput<T>,
    f: Arc<F>,
    repetition: u64,
    opened: u64,
    next: u64,
}

/// Which element the function of a stage, such as [`Dataset::map`], computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedElement {
    /// How often the dataset was repeated before, in this run of the pipeline.
    pub repetition: u64,
    /// The index of the element.
    pub index: u64,
    /// A number for the dataset, if a function has made it (`flat_map`, `interleave`); 0 for one that is iterated over.
    pub opened: u64,
}

thread_local! {
    static MAPPED: Cell<Option<MappedElement>> = const { Cell::new(None) };
}

impl MappedElement {
    /// The element that is being computed on this thread.
    pub fn current() -> Option<MappedElement> {
        MAPPED.get()
    }

    /// Runs the function of a stage for this element.
    pub(crate) fn compute<R>(self, work: impl FnOnce() -> R) -> R {
        struct Restore(Option<MappedElement>);
        impl Drop for Restore {
            fn drop(&mut self) {
                MAPPED.set(self.0);
            }
        }
        let _restore = Restore(MAPPED.replace(Some(self)));
        work()
    }
}

impl<T: DatasetElement> Dataset<T> {
    /// Applies a function to each element. An error of `f` replaces the element, with its index.
    ///
    /// ```
    /// use taut_core::ops::binary::mul;
    /// use taut_data::Dataset;
    /// let doubled = Dataset::range(0..3).map(|x| mul(x, 2));
    /// assert_eq!(doubled.iter()?.last().unwrap()?.item::<i64>()?, 4);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn map<U: DatasetElement>(&self, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Dataset<U> {
        Dataset::new(Map { input: self.clone(), f: Arc::new(f) })
    }
}

impl<T: DatasetElement> Dataset<T> {
    /// Puts the tensors of each element into another structure. Unlike [`Dataset::map`], `f` must not change or read the tensors:
    /// a source that makes whole batches calls it with a batch.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let pairs = Dataset::range(0..3).map_structure(|x| (x.clone(), x));
    /// assert_eq!(pairs.batch(3)?.iter()?.next().unwrap()?.1.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn map_structure<U: DatasetElement>(&self, f: impl Fn(T) -> U + Send + Sync + 'static) -> Dataset<U> {
        Dataset::new(MapStructure { input: self.clone(), f: Arc::new(f) })
    }
}

struct MapStructure<T, F> {
    input: Dataset<T>,
    f: Arc<F>,
}

struct MapStructureCursor<T, F> {
    input: StageInput<T>,
    f: Arc<F>,
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> U + Send + Sync + 'static> Stage<U>
    for MapStructure<T, F>
{
    fn name(&self) -> &'static str {
        "map_structure"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        Ok(Box::new(MapStructureCursor { input: run.start(&self.input, epoch)?, f: self.f.clone() }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> U + Send + Sync> Cursor<U>
    for MapStructureCursor<T, F>
{
    fn next(&mut self) -> Result<Option<U>> {
        Ok(self.input.next()?.map(|element| (self.f)(element)))
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        self.input.skip(count).map(Some)
    }

    fn try_stack(&mut self, count: usize) -> Option<(usize, Result<U>)> {
        let (found, stacked) = self.input.try_stack(count)?;
        Some((found, stacked.map(|stacked| (self.f)(stacked))))
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<U> + Send + Sync + 'static> Stage<U>
    for Map<T, F>
{
    fn name(&self) -> &'static str {
        "map"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        let repetition = run.counters.repetition(epoch);
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(MapCursor { input, f: self.f.clone(), repetition, opened: run.opened(), next: 0 }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<U> + Send + Sync> Cursor<U>
    for MapCursor<T, F>
{
    fn next(&mut self) -> Result<Option<U>> {
        let index = self.next;
        self.next += 1;
        let Some(element) = self.input.next()? else {
            return Ok(None);
        };
        let number = MappedElement { repetition: self.repetition, index, opened: self.opened };
        number.compute(|| (self.f)(element)).map(Some).map_err(|error| at_element(error, index))
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let skipped = self.input.skip(count)?;
        self.next += skipped;
        Ok(Some(skipped))
    }
}
