//! `ignore_errors`: the elements that are no errors. Errors are counted.

use crate::counters::{StageCounters, StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use taut_core::{Error, Result};

struct IgnoreErrors<T, F> {
    input: Dataset<T>,
    on_error: Arc<F>,
}

struct IgnoreErrorsCursor<T, F> {
    input: StageInput<T>,
    on_error: Arc<F>,
    counters: Arc<StageCounters>,
}

impl<T: DatasetElement> Dataset<T> {
    /// Leaves out elements that are errors. `on_error` is called with each of them; an error that it returns is not left out.
    /// How many were left out is in [`StageReport::ignored`](crate::StageReport::ignored).
    ///
    /// ```
    /// use taut_core::{Error, Tensor};
    /// use taut_data::Dataset;
    /// let odd = |x: Tensor| if x.item::<i64>()? % 2 == 1 { Ok(x) } else { Err(Error::value("even")) };
    /// let mut running = Dataset::range(0..6).map(odd).ignore_errors(|_| Ok(())).iter()?;
    /// assert_eq!(running.by_ref().count(), 3);
    /// assert_eq!(running.report().stage("ignore_errors").unwrap().ignored, 3);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn ignore_errors(
        &self,
        on_error: impl Fn(Error) -> Result<()> + Send + Sync + 'static,
    ) -> Dataset<T> {
        Dataset::new(IgnoreErrors { input: self.clone(), on_error: Arc::new(on_error) })
    }
}

impl<T: DatasetElement, F: Fn(Error) -> Result<()> + Send + Sync + 'static> Stage<T> for IgnoreErrors<T, F> {
    fn name(&self) -> &'static str {
        "ignore_errors"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let (input, counters) = (run.start(&self.input, epoch)?, run.counters.clone());
        Ok(Box::new(IgnoreErrorsCursor { input, on_error: self.on_error.clone(), counters }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().subset()
    }
}

impl<T: DatasetElement, F: Fn(Error) -> Result<()> + Send + Sync> Cursor<T> for IgnoreErrorsCursor<T, F> {
    fn next(&mut self) -> Result<Option<T>> {
        loop {
            match self.input.next() {
                // The iterator was dropped: every further call would return the same error.
                Err(error) if self.input.is_stopped() => return Err(error),
                Err(error) => {
                    (self.on_error)(error)?;
                    self.counters.ignored.fetch_add(1, Relaxed);
                }
                next => return next,
            }
        }
    }
}
