//! `interleave` and `flat_map`: datasets made of elements.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::{Input, Run};
use crate::stages::at_element;
use std::sync::Arc;
use taut_core::{Error, Result};
use taut_memory::Location;

struct Interleave<T, F> {
    name: &'static str,
    input: Dataset<T>,
    f: Arc<F>,
    cycle: usize,
    block: usize,
}

struct InterleaveCursor<T, U, F> {
    run: Run,
    input: Input<T>,
    f: Arc<F>,
    epoch: u64,
    /// The datasets that take turns, up to the last that was ever opened.
    open: Vec<Option<Input<U>>>,
    cycle: usize,
    turn: usize,
    block: usize,
    /// Elements of this turn that were delivered.
    delivered: usize,
    next: u64,
    ended: bool,
}

impl<T: Item> Dataset<T> {
    /// Makes a dataset of each element, and gives the elements of all of them, one dataset after the other.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let counts = Dataset::range(1..4).flat_map(|n| Ok(Dataset::range(0..n.item()?)));
    /// let all: Result<Vec<i64>, _> = counts.iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(all?, [0, 0, 1, 0, 1, 2]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn flat_map<U: Item>(
        &self,
        f: impl Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static,
    ) -> Dataset<U> {
        Dataset::new(Interleave { name: "flat_map", input: self.clone(), f: Arc::new(f), cycle: 1, block: 1 })
    }

    /// Makes a dataset of each element; `cycle_length` of them at a time take turns with `block_length` elements each.
    #[track_caller]
    pub fn interleave<U: Item>(
        &self,
        cycle_length: usize,
        block_length: usize,
        f: impl Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static,
    ) -> Result<Dataset<U>> {
        if cycle_length == 0 || block_length == 0 {
            let message = format!("{cycle_length} datasets taking turns with {block_length} elements");
            return Err(Error::value(message).help("both are one at least").at(Location::caller()));
        }
        let (input, f) = (self.clone(), Arc::new(f));
        Ok(Dataset::new(Interleave {
            name: "interleave",
            input,
            f,
            cycle: cycle_length,
            block: block_length,
        }))
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static> Stage<U> for Interleave<T, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        Ok(Box::new(InterleaveCursor {
            run: run.clone(),
            input: run.start(&self.input, epoch)?,
            f: self.f.clone(),
            epoch,
            open: Vec::new(),
            cycle: self.cycle,
            turn: 0,
            block: self.block,
            delivered: 0,
            next: 0,
            ended: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().some()
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<Dataset<U>>> InterleaveCursor<T, U, F> {
    fn pass(&mut self) {
        self.delivered = 0;
        self.turn += 1;
        let turns = if self.ended { self.open.len() } else { self.cycle };
        if self.turn >= turns {
            self.turn = 0;
        }
    }

    /// Opens a dataset for this turn, if there is one.
    fn open(&mut self) -> Result<()> {
        // An error takes a place of the input, too.
        let index = self.next;
        self.next += 1;
        let Some(element) = self.input.next()? else {
            self.ended = true;
            return Ok(());
        };
        let begin = |dataset| self.run.start_aside(&dataset, self.epoch);
        let begun = (self.f)(element).and_then(begin).map_err(|error| at_element(error, index));
        let begun = Some(begun?);
        if self.turn < self.open.len() {
            self.open[self.turn] = begun;
        } else {
            self.open.push(begun);
        }
        Ok(())
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<Dataset<U>> + Send + Sync> Cursor<U> for InterleaveCursor<T, U, F> {
    fn next(&mut self) -> Result<Option<U>> {
        loop {
            let turn = self.turn;
            match self.open.get_mut(turn).and_then(Option::as_mut).map(Input::next) {
                Some(next) => match next {
                    Ok(None) => {
                        self.open[turn] = None;
                        self.pass();
                    }
                    next => {
                        self.delivered += 1;
                        if self.delivered == self.block {
                            self.pass();
                        }
                        return next;
                    }
                },
                None if !self.ended => self.open()?,
                None if self.open.iter().any(Option::is_some) => self.pass(),
                None => return Ok(None),
            }
        }
    }
}
