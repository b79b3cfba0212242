//! `prefetch`: elements made ahead, while the consumer works.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::Run;
use crate::room::Room;
use crate::stages::background::Ahead;
use std::sync::Arc;
use taut_core::Result;
use taut_memory::Location;

struct Prefetch<T> {
    input: Dataset<T>,
    room: Room,
}

impl<T: Item> Dataset<T> {
    /// Makes elements ahead, on a thread of its own, as many as there is room for.
    ///
    /// Room in [`Bytes`](taut_memory::Bytes) is kept before an element is made, by the sizes of those before it. One that turns out larger, so that
    /// there is no room for it, is held nevertheless: it cannot be unmade.
    #[track_caller]
    pub fn prefetch(&self, room: impl Into<Room>) -> Result<Dataset<T>> {
        let at = Location::caller();
        let room = room.into().checked("a prefetch").map_err(|error| error.at(at))?;
        Ok(Dataset::new(Prefetch { input: self.clone(), room }))
    }
}

impl<T: Item> Stage<T> for Prefetch<T> {
    fn name(&self) -> &'static str {
        "prefetch"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(Ahead::new(
            input,
            Arc::new(|_, element: T| Ok(element)),
            1,
            self.room,
            run.meter.clone(),
        )))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}
