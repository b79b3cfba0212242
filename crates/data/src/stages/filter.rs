//! `filter` and `take_while`: the elements that a predicate selects. Neither can skip elements without computing them.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::at_element;
use crate::stages::map::MappedElement;
use std::sync::Arc;
use taut_core::Result;

struct Filter<T, F> {
    input: Dataset<T>,
    keeps: Arc<F>,
    /// Whether the first element that is not kept ends the sequence.
    ends: bool,
}

struct FilterCursor<T, F> {
    input: StageInput<T>,
    keeps: Arc<F>,
    ends: bool,
    repetition: u64,
    opened: u64,
    next: u64,
    ended: bool,
}

impl<T: DatasetElement> Dataset<T> {
    /// The elements for which `keeps` returns true.
    pub fn filter(&self, keeps: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Dataset<T> {
        Dataset::new(Filter { input: self.clone(), keeps: Arc::new(keeps), ends: false })
    }

    /// The elements before the first for which `keeps` returns false.
    pub fn take_while(&self, keeps: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Dataset<T> {
        Dataset::new(Filter { input: self.clone(), keeps: Arc::new(keeps), ends: true })
    }
}

impl<T: DatasetElement, F: Fn(&T) -> Result<bool> + Send + Sync + 'static> Stage<T> for Filter<T, F> {
    fn name(&self) -> &'static str {
        if self.ends { "take_while" } else { "filter" }
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let repetition = run.counters.repetition(epoch);
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(FilterCursor {
            input,
            keeps: self.keeps.clone(),
            ends: self.ends,
            repetition,
            opened: run.opened(),
            next: 0,
            ended: false,
        }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().subset()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement, F: Fn(&T) -> Result<bool> + Send + Sync> Cursor<T> for FilterCursor<T, F> {
    fn next(&mut self) -> Result<Option<T>> {
        while !self.ended {
            let index = self.next;
            self.next += 1;
            let Some(element) = self.input.next()? else {
                break;
            };
            let number = MappedElement { repetition: self.repetition, index, opened: self.opened };
            if number.compute(|| (self.keeps)(&element)).map_err(|error| at_element(error, index))? {
                return Ok(Some(element));
            }
            self.ended = self.ends;
        }
        Ok(None)
    }
}
