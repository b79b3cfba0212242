//! Sources in memory: tensors, ranges of numbers, generators.

use crate::counters::StageRun;
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, DatasetElement};
use crate::stages::at_element;
use std::ops::Range;
use std::sync::Arc;
use taut_core::{Error, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Category, Location};

/// A source with random access.
pub(crate) struct Indexed<F> {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) bytes_each: Option<usize>,
    pub(crate) get: Arc<F>,
}

struct IndexedCursor<F> {
    next: u64,
    count: u64,
    get: Arc<F>,
}

impl<T: DatasetElement, F: Fn(u64) -> Result<T> + Send + Sync + 'static> Stage<T> for Indexed<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, _run: &StageRun, _epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        Ok(Box::new(IndexedCursor { next: 0, count: self.count, get: self.get.clone() }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        Vec::new()
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.count)
    }

    fn bytes_each(&self) -> Option<usize> {
        self.bytes_each
    }
}

impl<T: DatasetElement, F: Fn(u64) -> Result<T> + Send + Sync> Cursor<T> for IndexedCursor<F> {
    fn next(&mut self) -> Result<Option<T>> {
        if self.next == self.count {
            return Ok(None);
        }
        let index = self.next;
        self.next += 1;
        (self.get)(index).map(Some).map_err(|error| at_element(error, index))
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let skipped = count.min(self.count - self.next);
        self.next += skipped;
        Ok(Some(skipped))
    }
}

impl<T: DatasetElement> Dataset<T> {
    /// The rows of tensors: element `i` is row `i` of each tensor of `tensors`. Rows are views and not copied.
    ///
    /// ```
    /// use taut_core::Tensor;
    /// use taut_data::Dataset;
    /// let table = Tensor::new([[1, 2], [3, 4], [5, 6]])?;
    /// let rows: Result<Vec<Tensor>, _> = Dataset::from_tensor_slices(table.clone())?.iter()?.collect();
    /// assert_eq!(rows?[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn from_tensor_slices(tensors: T) -> Result<Dataset<T>> {
        let at = source_location(Location::caller());
        let count = element::rows(&tensors).map_err(|error| error.at(at))? as u64;
        let bytes_each = if count == 0 || !element::has_uniform_rows(&tensors) {
            None
        } else {
            element::row_of(&tensors, 0).ok().map(|row| element::bytes(&row))
        };
        let get = Arc::new(move |index: u64| element::row_of(&tensors, index as usize));
        Ok(Dataset::new(Indexed { name: "from_tensor_slices", count, bytes_each, get }))
    }

    /// A single element: these tensors.
    pub fn from_tensors(tensors: T) -> Dataset<T> {
        let bytes_each = Some(element::bytes(&tensors));
        let get = Arc::new(move |_| Ok(tensors.clone()));
        Dataset::new(Indexed { name: "from_tensors", count: 1, bytes_each, get })
    }

    /// The elements of an iterator, which `make` creates for each epoch.
    ///
    /// For positions to be valid, the iterator must return the same elements each time; resuming runs it from the start.
    ///
    /// ```
    /// use taut_core::Tensor;
    /// use taut_data::Dataset;
    /// let powers = Dataset::from_generator(|| (0..4).map(|i| Tensor::scalar(2.0f32.powi(i))));
    /// let values: Result<Vec<f32>, _> = powers.iter()?.map(|x| x?.item::<f32>()).collect();
    /// assert_eq!(values?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn from_generator<I>(make: impl Fn() -> I + Send + Sync + 'static) -> Dataset<T>
    where
        I: Iterator<Item = Result<T>> + Send + 'static,
    {
        Dataset::new(Generator { make })
    }
}

impl Dataset<Tensor> {
    /// The integers of a range, as `int64` scalars.
    #[track_caller]
    pub fn range(range: Range<i64>) -> Dataset<Tensor> {
        let at = source_location(Location::caller());
        let count = (i128::from(range.end) - i128::from(range.start)).max(0) as u64;
        numbers(range.start, 1, count, at)
    }

    /// The integers from `start` up to, not including, `stop`, with this step.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let down: Result<Vec<i64>, _> = Dataset::range_by(5, 0, -2)?.iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(down?, [5, 3, 1]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn range_by(start: i64, stop: i64, step: i64) -> Result<Dataset<Tensor>> {
        let at = source_location(Location::caller());
        if step == 0 {
            return Err(Error::value("step must not be 0").at(at));
        }
        let (distance, forward) = (stop.abs_diff(start), stop > start);
        let count = if forward == (step > 0) { distance.div_ceil(step.unsigned_abs()) } else { 0 };
        Ok(numbers(start, step, count, at))
    }
}

fn numbers(start: i64, step: i64, count: u64, at: Location) -> Dataset<Tensor> {
    let get = Arc::new(move |index: u64| {
        number(
            i64::try_from(i128::from(start) + i128::from(index) * i128::from(step)).unwrap_or(i64::MAX),
            at,
        )
    });
    Dataset::new(Indexed {
        name: "range",
        count,
        bytes_each: Some(element::HANDLE_BYTES + size_of::<i64>()),
        get,
    })
}

/// An `int64` scalar.
pub(crate) fn number(value: i64, at: Location) -> Result<Tensor> {
    Tensor::build(Spec::new(taut_core::DType::I64, Shape::scalar()), Category::Dataset, at, |out| {
        out.slice::<i64>()[0] = value;
    })
}

struct Generator<F> {
    make: F,
}

struct GeneratorCursor<I> {
    iterator: I,
    next: u64,
    ended: bool,
}

impl<T: DatasetElement, I: Iterator<Item = Result<T>> + Send + 'static, F: Fn() -> I + Send + Sync> Stage<T>
    for Generator<F>
{
    fn name(&self) -> &'static str {
        "from_generator"
    }

    fn start(&self, _run: &StageRun, _epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        Ok(Box::new(GeneratorCursor { iterator: (self.make)(), next: 0, ended: false }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        Vec::new()
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

impl<T: DatasetElement, I: Iterator<Item = Result<T>> + Send> Cursor<T> for GeneratorCursor<I> {
    fn next(&mut self) -> Result<Option<T>> {
        if self.ended {
            return Ok(None);
        }
        let next = self.iterator.next();
        self.ended = next.is_none();
        let index = self.next;
        self.next += 1;
        next.transpose().map_err(|error| at_element(error, index))
    }
}
