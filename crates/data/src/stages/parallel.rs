//! `map_parallel`: applies a function to each element, on several threads.

use crate::buffer_size::BufferSize;
use crate::counters::StageRun;
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::at_element;
use crate::stages::background::BackgroundCursor;
use crate::stages::map::MappedElement;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use taut_core::{Error, Result};
use taut_memory::Location;

/// The most elements per worker, finished or being computed: enough that small ones do not wake a thread each.
const PER_WORKER: usize = 8;

/// The most threads of a map.
const MAX_WORKERS: usize = 1024;

/// The most threads of a stage: four for each core, and at least 16, since some wait for files. More of them only take turns on the
/// cores, and each takes memory that the system may not have.
fn most_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).saturating_mul(4).max(16)
}

struct MapParallel<T, F> {
    input: Dataset<T>,
    workers: usize,
    f: Arc<F>,
}

impl<T: DatasetElement> Dataset<T> {
    /// As [`Dataset::map`], on `workers` threads. Elements keep their order.
    ///
    /// At most eight elements per worker are computed ahead of the consumer. An error of `f` replaces its element; so does a
    /// panic.
    ///
    /// ```
    /// use taut_core::ops::unary::square;
    /// use taut_data::Dataset;
    /// let squares = Dataset::range(0..4).map_parallel(2, square)?;
    /// let values: Result<Vec<i64>, _> = squares.iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(values?, [0, 1, 4, 9]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn map_parallel<U: DatasetElement>(
        &self,
        workers: usize,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Result<Dataset<U>> {
        if workers == 0 || workers > MAX_WORKERS {
            let message = format!("workers must be in [1, {MAX_WORKERS}], got {workers}");
            return Err(Error::value(message).help("`map` uses no threads").at(Location::caller()));
        }
        Ok(Dataset::new(MapParallel { input: self.clone(), workers, f: Arc::new(f) }))
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<U> + Send + Sync + 'static> Stage<U>
    for MapParallel<T, F>
{
    fn name(&self) -> &'static str {
        "map_parallel"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        let (input, f) = (run.start(&self.input, epoch)?, self.f.clone());
        let (repetition, opened) = (run.counters.repetition(epoch), run.opened());
        let work = Arc::new(move |index, element| {
            let computed = MappedElement { repetition, index, opened }.compute(|| f(element));
            computed.map_err(|error| at_element(error, index))
        });
        let count = self.input.cardinality().known().and_then(|count| usize::try_from(count).ok());
        let workers = count.map_or(self.workers, |count| self.workers.min(count.max(1))).min(most_threads());
        let buffer_size = BufferSize::Elements(workers.saturating_mul(PER_WORKER));
        Ok(Box::new(BackgroundCursor::new(input, work, workers, buffer_size, run.counters.clone())))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}
