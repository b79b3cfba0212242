//! `filter` and `take_while`: some of the elements. To pass over elements, both have to look at them.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::{Input, Run};
use crate::stages::at_element;
use std::sync::Arc;
use taut_core::Result;

struct Filter<T, F> {
    input: Dataset<T>,
    keeps: Arc<F>,
    /// Whether the first refusal is the end.
    ends: bool,
}

struct FilterCursor<T, F> {
    input: Input<T>,
    keeps: Arc<F>,
    ends: bool,
    next: u64,
    ended: bool,
}

impl<T: Item> Dataset<T> {
    /// The elements for which `keeps` says true.
    pub fn filter(&self, keeps: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Dataset<T> {
        Dataset::new(Filter { input: self.clone(), keeps: Arc::new(keeps), ends: false })
    }

    /// The elements up to the first for which `keeps` says false.
    pub fn take_while(&self, keeps: impl Fn(&T) -> Result<bool> + Send + Sync + 'static) -> Dataset<T> {
        Dataset::new(Filter { input: self.clone(), keeps: Arc::new(keeps), ends: true })
    }
}

impl<T: Item, F: Fn(&T) -> Result<bool> + Send + Sync + 'static> Stage<T> for Filter<T, F> {
    fn name(&self) -> &'static str {
        if self.ends { "take_while" } else { "filter" }
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(FilterCursor {
            input,
            keeps: self.keeps.clone(),
            ends: self.ends,
            next: 0,
            ended: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().some()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: Item, F: Fn(&T) -> Result<bool> + Send + Sync> Cursor<T> for FilterCursor<T, F> {
    fn next(&mut self) -> Result<Option<T>> {
        while !self.ended {
            let index = self.next;
            self.next += 1;
            let Some(element) = self.input.next()? else {
                break;
            };
            if (self.keeps)(&element).map_err(|error| at_element(error, index))? {
                return Ok(Some(element));
            }
            self.ended = self.ends;
        }
        Ok(None)
    }
}
