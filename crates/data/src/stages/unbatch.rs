//! `unbatch`: the rows of each element.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, DatasetElement};
use crate::stages::at_element;
use std::sync::Arc;
use taut_core::{Result, source_location};
use taut_memory::Location;

/// The rows of an element that is made of other parts than tensors; `None` for other elements.
type Split<T> = Arc<dyn Fn(&T) -> Option<Result<Vec<T>>> + Send + Sync>;

struct Unbatch<T> {
    input: Dataset<T>,
    split: Split<T>,
    at: Location,
}

struct UnbatchCursor<T> {
    input: StageInput<T>,
    split: Split<T>,
    at: Location,
    /// The current element, its number of rows, and how many of them are read or skipped.
    current: Option<(Rows<T>, usize, usize)>,
    next: u64,
}

enum Rows<T> {
    /// Those of the tensors of an element.
    OfTensors(T),
    Split(Vec<T>),
}

impl<T: DatasetElement> Dataset<T> {
    /// The rows of each element, as views. The inverse of [`Dataset::batch`].
    #[track_caller]
    pub fn unbatch(&self) -> Dataset<T> {
        self.unbatch_with(|_| None)
    }

    /// As [`Dataset::unbatch`], for elements that have parts other than tensors: where `split` returns a result for an element, those
    /// are its rows.
    #[track_caller]
    pub fn unbatch_with(
        &self,
        split: impl Fn(&T) -> Option<Result<Vec<T>>> + Send + Sync + 'static,
    ) -> Dataset<T> {
        let at = source_location(Location::caller());
        Dataset::new(Unbatch { input: self.clone(), split: Arc::new(split), at })
    }
}

impl<T: DatasetElement> Stage<T> for Unbatch<T> {
    fn name(&self) -> &'static str {
        "unbatch"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(UnbatchCursor { input, split: self.split.clone(), at: self.at, current: None, next: 0 }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().subset()
    }
}

impl<T: DatasetElement> UnbatchCursor<T> {
    /// Makes an element with rows left the current one. False at the end.
    fn advance(&mut self) -> Result<bool> {
        while self.current.as_ref().is_none_or(|(_, rows, read)| read == rows) {
            self.current = None;
            // An error counts as an element of the input, too.
            let index = self.next;
            self.next += 1;
            let Some(element) = self.input.next()? else {
                return Ok(false);
            };
            let split = match (self.split)(&element) {
                Some(split) => split.map(|rows| (rows.len(), Rows::Split(rows))),
                None => element::rows(&element).map(|count| (count, Rows::OfTensors(element))),
            };
            let (count, rows) = split.map_err(|error| at_element(error.at(self.at), index))?;
            self.current = Some((rows, count, 0));
        }
        Ok(true)
    }
}

impl<T: DatasetElement> Cursor<T> for UnbatchCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        if !self.advance()? {
            return Ok(None);
        }
        let row = self.current.as_mut().map(|(rows, _, read)| {
            *read += 1;
            match rows {
                Rows::OfTensors(element) => element::row_of(element, *read - 1),
                Rows::Split(rows) => Ok(rows[*read - 1].clone()),
            }
        });
        row.transpose()
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let mut found = 0;
        while found < count {
            match self.advance() {
                Ok(false) => break,
                Err(error) if self.input.is_stopped() => return Err(error),
                // An error counts as one row.
                Err(_) => found += 1,
                Ok(true) => {
                    if let Some((_, rows, read)) = &mut self.current {
                        let step = (count - found).min((*rows - *read) as u64);
                        *read += step as usize;
                        found += step;
                    }
                }
            }
        }
        Ok(Some(found))
    }
}
