//! `unbatch`: the rows of elements, one by one.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::{self, Item};
use crate::meter::{Input, Run};
use crate::stages::at_element;
use taut_core::Result;
use taut_memory::Location;

struct Unbatch<T> {
    input: Dataset<T>,
    at: Location,
}

struct UnbatchCursor<T> {
    input: Input<T>,
    at: Location,
    /// The element at hand, how many rows it has, and how many of them are passed.
    hand: Option<(T, usize, usize)>,
    next: u64,
}

impl<T: Item> Dataset<T> {
    /// The rows of each element, one by one, as views. Undoes [`Dataset::batch`].
    #[track_caller]
    pub fn unbatch(&self) -> Dataset<T> {
        Dataset::new(Unbatch { input: self.clone(), at: Location::caller() })
    }
}

impl<T: Item> Stage<T> for Unbatch<T> {
    fn name(&self) -> &'static str {
        "unbatch"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(UnbatchCursor { input, at: self.at, hand: None, next: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().some()
    }
}

impl<T: Item> UnbatchCursor<T> {
    /// Takes an element that has rows left. False at the end.
    fn reach(&mut self) -> Result<bool> {
        while self.hand.as_ref().is_none_or(|(_, rows, passed)| passed == rows) {
            self.hand = None;
            // An error takes a place of the input, too.
            let index = self.next;
            self.next += 1;
            let Some(element) = self.input.next()? else {
                return Ok(false);
            };
            let rows = item::rows(&element).map_err(|error| at_element(error.at(self.at), index))?;
            self.hand = Some((element, rows, 0));
        }
        Ok(true)
    }
}

impl<T: Item> Cursor<T> for UnbatchCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        if !self.reach()? {
            return Ok(None);
        }
        let row = self.hand.as_mut().map(|(element, _, passed)| {
            *passed += 1;
            item::row_of(element, *passed - 1)
        });
        row.transpose()
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let mut found = 0;
        while found < count {
            match self.reach() {
                Ok(false) => break,
                Err(error) if self.input.is_stopped() => return Err(error),
                // An element that is an error is one place.
                Err(_) => found += 1,
                Ok(true) => {
                    if let Some((_, rows, passed)) = &mut self.hand {
                        let step = (count - found).min((*rows - *passed) as u64);
                        *passed += step as usize;
                        found += step;
                    }
                }
            }
        }
        Ok(Some(found))
    }
}
