//! `prefetch`: computes elements ahead, while the consumer works.

use crate::buffer_size::BufferSize;
use crate::counters::StageRun;
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::background::BackgroundCursor;
use std::sync::Arc;
use taut_core::{Result, source_location};
use taut_memory::Location;

struct Prefetch<T> {
    input: Dataset<T>,
    buffer_size: BufferSize,
}

impl<T: DatasetElement> Dataset<T> {
    /// Computes up to `buffer_size` elements ahead, on a thread of its own.
    ///
    /// With a size in [`Bytes`](taut_memory::Bytes), space for an element is estimated from the sizes of those before it. An
    /// element that turns out larger is kept nevertheless, and the buffer may exceed its size by it.
    #[track_caller]
    pub fn prefetch(&self, buffer_size: impl Into<BufferSize>) -> Result<Dataset<T>> {
        let at = source_location(Location::caller());
        let buffer_size = buffer_size.into().checked("prefetch").map_err(|error| error.at(at))?;
        Ok(Dataset::new(Prefetch { input: self.clone(), buffer_size }))
    }
}

impl<T: DatasetElement> Stage<T> for Prefetch<T> {
    fn name(&self) -> &'static str {
        "prefetch"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(BackgroundCursor::new(
            input,
            Arc::new(|_, element: T| Ok(element)),
            1,
            self.buffer_size,
            run.counters.clone(),
        )))
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
