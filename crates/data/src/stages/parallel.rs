//! `map_parallel`: a function of each element, on several threads.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::Run;
use crate::room::Room;
use crate::stages::at_element;
use crate::stages::background::Ahead;
use std::sync::Arc;
use taut_core::{Error, Result};
use taut_memory::Location;

/// Elements that may be there per worker, in the making or made: enough that small ones do not wake a thread each.
const PER_WORKER: usize = 8;

/// More threads than any machine has a use for.
const MOST_WORKERS: usize = 1024;

struct MapParallel<T, F> {
    input: Dataset<T>,
    workers: usize,
    f: Arc<F>,
}

impl<T: Item> Dataset<T> {
    /// As [`Dataset::map`], on `workers` threads. Elements come in their order all the same.
    ///
    /// At most eight elements per worker are there ahead of the consumer. An error of `f` takes the place of its element; so does a
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
    pub fn map_parallel<U: Item>(
        &self,
        workers: usize,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Result<Dataset<U>> {
        if workers == 0 || workers > MOST_WORKERS {
            let message = format!("a map on {workers} threads");
            let help = format!("1 to {MOST_WORKERS}; map does it without threads");
            return Err(Error::value(message).help(help).at(Location::caller()));
        }
        Ok(Dataset::new(MapParallel { input: self.clone(), workers, f: Arc::new(f) }))
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<U> + Send + Sync + 'static> Stage<U> for MapParallel<T, F> {
    fn name(&self) -> &'static str {
        "map_parallel"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        let (input, f) = (run.start(&self.input, epoch)?, self.f.clone());
        let work = Arc::new(move |number, element| f(element).map_err(|error| at_element(error, number)));
        let room = Room::Elements(self.workers.saturating_mul(PER_WORKER));
        Ok(Box::new(Ahead::new(input, work, self.workers, room, run.meter.clone())))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}
