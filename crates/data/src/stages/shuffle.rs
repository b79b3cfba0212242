//! `shuffle`: another order, drawn from a buffer.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::draws::Draws;
use crate::item::{self, Item};
use crate::meter::{Input, Meter, Run};
use crate::room::Room;
use std::sync::Arc;
use taut_core::{Error, Result};
use taut_memory::{Bytes, Location};

/// How a dataset is shuffled. A plain number or [`Bytes`] stand for a buffer of that room and the default seed.
///
/// The order depends on the seed and the epoch alone. The default seed is a fixed number, so that a program gives the same
/// results each time; give another one for another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    room: Room,
    seed: u64,
    each_epoch: bool,
}

impl Shuffle {
    /// A buffer of this room.
    pub fn new(room: impl Into<Room>) -> Shuffle {
        Shuffle { room: room.into(), seed: 0x7a07, each_epoch: true }
    }

    /// Another seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Shuffle {
        Shuffle { seed, ..self }
    }

    /// Whether each epoch has an order of its own, as by default, or all have the same (TensorFlow's
    /// `reshuffle_each_iteration`).
    #[must_use]
    pub fn each_epoch(self, each_epoch: bool) -> Shuffle {
        Shuffle { each_epoch, ..self }
    }
}

impl From<usize> for Shuffle {
    fn from(elements: usize) -> Shuffle {
        Shuffle::new(elements)
    }
}

impl From<Bytes> for Shuffle {
    fn from(bytes: Bytes) -> Shuffle {
        Shuffle::new(bytes)
    }
}

impl From<Room> for Shuffle {
    fn from(room: Room) -> Shuffle {
        Shuffle::new(room)
    }
}

struct Shuffled<T> {
    input: Dataset<T>,
    how: Shuffle,
}

/// A place of the buffer.
enum Slot<T> {
    /// What was in a place of the input, and its bytes.
    Here(Result<T>, usize),
    /// The number of a place of the input, to be fetched.
    Number(u64),
}

struct ShuffleCursor<T> {
    input: Input<T>,
    /// Places the input has, if that is known.
    count: Option<u64>,
    room: Room,
    draws: Draws,
    drawn: u64,
    slots: Vec<Slot<T>>,
    /// Bytes in the buffer.
    bytes: usize,
    /// What the next element is expected to take.
    expected: usize,
    /// Places of the input that went into the buffer.
    entered: u64,
    ended: bool,
    meter: Arc<Meter>,
}

impl<T: Item> Dataset<T> {
    /// Another order: a buffer is filled, each next element is drawn from it, and its place is filled again.
    ///
    /// A buffer as large as the dataset gives every order with equal probability. Each epoch has an order of its own. A buffer in
    /// [`Bytes`] holds as many elements as fit. An element larger than those before it, for which room is no longer left, is not
    /// held but delivered at once.
    ///
    /// ```
    /// use taut_data::{Dataset, Shuffle};
    /// use taut_memory::Bytes;
    /// let numbers = Dataset::range(0..1000);
    /// let shuffled = numbers.shuffle(1000)?;
    /// let other = numbers.shuffle(Shuffle::new(Bytes(4096)).seed(7))?;
    /// # let sum = |d: Dataset<_>| d.reduce(0, |sum, x: taut_core::Tensor| Ok(sum + x.item::<i64>()?));
    /// # assert_eq!((sum(shuffled)?, sum(other)?), (499500, 499500));
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn shuffle(&self, how: impl Into<Shuffle>) -> Result<Dataset<T>> {
        let (how, at) = (how.into(), Location::caller());
        how.room.checked("a shuffle").map_err(|error| error.at(at))?;
        Ok(Dataset::new(Shuffled { input: self.clone(), how }))
    }
}

impl<T: Item> Stage<T> for Shuffled<T> {
    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        // With elements of one size, room in bytes is room for so many elements: that can be repeated without making them.
        let room = match (self.how.room, self.input.stage.bytes_each()) {
            (Room::Bytes(most), Some(each)) if each > 0 => Room::Elements((most / each).max(1)),
            (room, _) => room,
        };
        run.meter.gauge(Some(self.how.room));
        Ok(Box::new(ShuffleCursor {
            input: run.start(&self.input, epoch)?,
            count: match self.input.cardinality() {
                Cardinality::Known(count) => Some(count),
                Cardinality::Infinite => Some(u64::MAX),
                Cardinality::Unknown => None,
            },
            room,
            draws: Draws::new(self.how.seed, if self.how.each_epoch { epoch } else { 0 }),
            drawn: 0,
            slots: Vec::new(),
            bytes: 0,
            expected: 0,
            entered: 0,
            ended: false,
            meter: run.meter.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: Item> ShuffleCursor<T> {
    /// Fills the buffer. Gives back an element for which there is no room.
    fn fill(&mut self) -> Option<Result<T>> {
        while !self.ended && self.room.takes(self.slots.len(), self.bytes, self.expected) {
            let Some(item) = self.input.next().transpose() else {
                self.ended = true;
                break;
            };
            if self.input.is_stopped() {
                return Some(item);
            }
            self.entered += 1;
            let bytes = item.as_ref().map_or(0, item::bytes);
            // Falls slowly: one large element among small ones does not keep the buffer empty for long.
            self.expected = bytes.max(self.expected - self.expected / 8);
            if !self.room.takes(self.slots.len(), self.bytes, bytes) {
                return Some(item);
            }
            self.bytes += bytes;
            self.slots.push(Slot::Here(item, bytes));
        }
        self.show();
        None
    }

    fn show(&self) {
        self.meter.gauge(Some(self.room)).set(self.slots.len(), self.bytes);
    }

    /// Draws a place of the buffer, which must not be empty.
    fn draw(&mut self) -> Slot<T> {
        let index = self.draws.below(self.drawn, self.slots.len());
        self.drawn += 1;
        let slot = self.slots.swap_remove(index);
        if let Slot::Here(_, bytes) = &slot {
            self.bytes -= bytes;
        }
        slot
    }

    /// Fetches the elements of which there are numbers, and passes over the others. `at` is where the input is.
    fn fetch(&mut self, mut at: u64) -> Result<()> {
        let numbers = self.slots.iter().enumerate().filter_map(|(i, slot)| match slot {
            Slot::Number(number) => Some((*number, i)),
            Slot::Here(..) => None,
        });
        let mut numbers: Vec<(u64, usize)> = numbers.collect();
        numbers.sort_unstable();
        for (number, index) in numbers {
            self.input.skip(number - at)?;
            at = number + 1;
            let item = self.input.next().transpose().unwrap_or_else(|| {
                Err(Error::value(format!("the dataset ends before element {number}, and said it would not")))
            });
            let bytes = item.as_ref().map_or(0, item::bytes);
            self.bytes += bytes;
            self.slots[index] = Slot::Here(item, bytes);
        }
        self.input.skip(self.entered - at)?;
        self.show();
        Ok(())
    }
}

impl<T: Item> Cursor<T> for ShuffleCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        if let Some(item) = self.fill() {
            return item.map(Some);
        }
        if self.slots.is_empty() {
            return Ok(None);
        }
        match self.draw() {
            Slot::Here(item, _) => item.map(Some),
            Slot::Number(number) => Err(Error::value(format!("element {number} was never fetched"))),
        }
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let (Room::Elements(most), Some(places)) = (self.room, self.count) else {
            return Ok(None);
        };
        let at = self.entered;
        let mut passed = 0;
        while passed < count {
            self.input.wanted()?;
            while self.slots.len() < most && self.entered < places {
                self.slots.push(Slot::Number(self.entered));
                self.entered += 1;
            }
            if self.slots.is_empty() {
                break;
            }
            self.draw();
            passed += 1;
        }
        self.fetch(at)?;
        Ok(Some(passed))
    }
}
