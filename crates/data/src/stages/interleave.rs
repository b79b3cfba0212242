//! `interleave` and `flat_map`: a dataset per element, interleaved or one after the other.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::at_element;
use crate::stages::map::MappedElement;
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
    run: StageRun,
    input: StageInput<T>,
    f: Arc<F>,
    epoch: u64,
    repetition: u64,
    /// The datasets of the cycle; `None` once one has ended.
    open: Vec<Option<StageInput<U>>>,
    cycle: usize,
    turn: usize,
    block: usize,
    /// Elements delivered in this turn.
    delivered: usize,
    next: u64,
    ended: bool,
}

impl<T: DatasetElement> Dataset<T> {
    /// Maps each element to a dataset, and concatenates these.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let counts = Dataset::range(1..4).flat_map(|n| Ok(Dataset::range(0..n.item()?)));
    /// let all: Result<Vec<i64>, _> = counts.iter()?.map(|x| x?.item::<i64>()).collect();
    /// assert_eq!(all?, [0, 0, 1, 0, 1, 2]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn flat_map<U: DatasetElement>(
        &self,
        f: impl Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static,
    ) -> Dataset<U> {
        Dataset::new(Interleave { name: "flat_map", input: self.clone(), f: Arc::new(f), cycle: 1, block: 1 })
    }

    /// Maps each element to a dataset, and interleaves them: `cycle_length` datasets at a time return `block_length` elements
    /// each in turn.
    #[track_caller]
    pub fn interleave<U: DatasetElement>(
        &self,
        cycle_length: usize,
        block_length: usize,
        f: impl Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static,
    ) -> Result<Dataset<U>> {
        if cycle_length == 0 || block_length == 0 {
            let message =
                format!("cycle_length and block_length must be >= 1, got {cycle_length} and {block_length}");
            return Err(Error::value(message).at(Location::caller()));
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

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<Dataset<U>> + Send + Sync + 'static> Stage<U>
    for Interleave<T, F>
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        let repetition = run.counters.repetition(epoch);
        Ok(Box::new(InterleaveCursor {
            run: run.clone(),
            repetition,
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

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().subset()
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<Dataset<U>>> InterleaveCursor<T, U, F> {
    /// Moves on to the next dataset of the cycle.
    fn end_turn(&mut self) {
        self.delivered = 0;
        self.turn += 1;
        let turns = if self.ended { self.open.len() } else { self.cycle };
        if self.turn >= turns {
            self.turn = 0;
        }
    }

    /// Opens a dataset for this turn, if the input has one.
    fn open(&mut self) -> Result<()> {
        // An error counts as an element of the input, too.
        let index = self.next;
        self.next += 1;
        let Some(element) = self.input.next()? else {
            self.ended = true;
            return Ok(());
        };
        let begin = |dataset| self.run.start_aside(&dataset, index, self.epoch);
        let number = MappedElement { repetition: self.repetition, index, opened: self.run.opened() };
        let begun =
            number.compute(|| (self.f)(element)).and_then(begin).map_err(|error| at_element(error, index));
        let begun = Some(begun?);
        if self.turn < self.open.len() {
            self.open[self.turn] = begun;
        } else {
            self.open.push(begun);
        }
        Ok(())
    }
}

impl<T: DatasetElement, U: DatasetElement, F: Fn(T) -> Result<Dataset<U>> + Send + Sync> Cursor<U>
    for InterleaveCursor<T, U, F>
{
    fn next(&mut self) -> Result<Option<U>> {
        loop {
            let turn = self.turn;
            match self.open.get_mut(turn).and_then(Option::as_mut).map(StageInput::next) {
                Some(next) => match next {
                    Ok(None) => {
                        self.open[turn] = None;
                        self.end_turn();
                    }
                    next => {
                        self.delivered += 1;
                        if self.delivered == self.block {
                            self.end_turn();
                        }
                        return next;
                    }
                },
                None if !self.ended => self.open()?,
                None if self.open.iter().any(Option::is_some) => self.end_turn(),
                None => return Ok(None),
            }
        }
    }
}
