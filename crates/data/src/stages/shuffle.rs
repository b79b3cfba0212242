//! `shuffle`: a random order, drawn from a buffer.

use crate::buffer_size::BufferSize;
use crate::counters::{StageCounters, StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, DatasetElement};
use crate::random::RandomSequence;
use std::sync::Arc;
use taut_core::{Error, ErrorKind, Result, source_location};
use taut_memory::{Bytes, Location};

/// Options of a shuffle. A plain number or [`Bytes`] is a buffer of that size with the default seed.
///
/// The order depends on the seed and the epoch alone. The default seed is a fixed number, so that every run of a program has
/// the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    buffer_size: BufferSize,
    seed: u64,
    each_epoch: bool,
}

impl Shuffle {
    /// A buffer of this size.
    pub fn new(buffer_size: impl Into<BufferSize>) -> Shuffle {
        Shuffle { buffer_size: buffer_size.into(), seed: 0x7a07, each_epoch: true }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Shuffle {
        Shuffle { seed, ..self }
    }

    /// Whether each epoch has an order of its own, which is the default, or all have the same (TensorFlow's
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

impl From<BufferSize> for Shuffle {
    fn from(buffer_size: BufferSize) -> Shuffle {
        Shuffle::new(buffer_size)
    }
}

struct Shuffled<T> {
    input: Dataset<T>,
    how: Shuffle,
}

/// A slot of the buffer.
enum BufferSlot<T> {
    /// An element of the input, and its bytes.
    Loaded(Result<T>, usize),
    /// The index of an element of the input that is not read yet.
    Pending(u64),
}

struct ShuffleCursor<T> {
    input: StageInput<T>,
    /// The number of elements of the input, if it is known.
    count: Option<u64>,
    buffer_size: BufferSize,
    random: RandomSequence,
    drawn: u64,
    slots: Vec<BufferSlot<T>>,
    /// Bytes in the buffer.
    bytes: usize,
    /// Expected bytes of the next element.
    expected: usize,
    /// Elements of the input that were put into the buffer.
    entered: u64,
    ended: bool,
    counters: Arc<StageCounters>,
}

impl<T: DatasetElement> Dataset<T> {
    /// Shuffles: a buffer is filled, each next element is drawn from it at random, and its slot is filled again.
    ///
    /// A buffer as large as the dataset gives every order with equal probability. Each epoch has an order of its own. A buffer
    /// size in [`Bytes`] holds as many elements as fit. An element that no longer fits, because it is larger than those
    /// before it, is delivered at once.
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
        let (how, at) = (how.into(), source_location(Location::caller()));
        how.buffer_size.checked("shuffle").map_err(|error| error.at(at))?;
        Ok(Dataset::new(Shuffled { input: self.clone(), how }))
    }
}

impl<T: DatasetElement> Stage<T> for Shuffled<T> {
    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        // If all elements have one size, a size in bytes is a number of elements, and skipping needs no elements.
        let buffer_size = match (self.how.buffer_size, self.input.stage.bytes_each()) {
            (BufferSize::Bytes(most), Some(each)) if each > 0 => BufferSize::Elements((most / each).max(1)),
            (buffer_size, _) => buffer_size,
        };
        run.counters.buffer_counters(Some(self.how.buffer_size));
        Ok(Box::new(ShuffleCursor {
            input: run.start(&self.input, epoch)?,
            count: match self.input.cardinality() {
                Cardinality::Known(count) => Some(count),
                Cardinality::Infinite => Some(u64::MAX),
                Cardinality::Unknown => None,
            },
            buffer_size,
            random: RandomSequence::new(
                self.how.seed,
                if self.how.each_epoch { run.drawing_epoch(epoch) } else { 0 },
            ),
            drawn: 0,
            slots: Vec::new(),
            bytes: 0,
            expected: 0,
            entered: 0,
            ended: false,
            counters: run.counters.clone(),
        }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn draws_order(&self) -> bool {
        self.how.each_epoch
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement> ShuffleCursor<T> {
    /// Fills the buffer. Returns an element that does not fit.
    fn fill(&mut self) -> Option<Result<T>> {
        while !self.ended && self.buffer_size.has_space(self.slots.len(), self.bytes, self.expected) {
            let Some(item) = self.input.next().transpose() else {
                self.ended = true;
                break;
            };
            if self.input.is_stopped() {
                return Some(item);
            }
            self.entered += 1;
            if item.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory) {
                // A buffer of errors would take the memory that is left.
                return Some(item);
            }
            let bytes = item.as_ref().map_or(0, element::bytes);
            // Decays: one large element among small ones does not keep the buffer empty for long.
            self.expected = bytes.max(self.expected - self.expected / 8);
            if !self.buffer_size.has_space(self.slots.len(), self.bytes, bytes) {
                return Some(item);
            }
            if let Err(error) = room_for_one(&mut self.slots) {
                return Some(Err(error));
            }
            self.bytes += bytes;
            self.slots.push(BufferSlot::Loaded(item, bytes));
        }
        self.update_counters();
        None
    }

    fn update_counters(&self) {
        self.counters.buffer_counters(Some(self.buffer_size)).set(self.slots.len(), self.bytes);
    }

    /// Draws a slot of the buffer, which must not be empty.
    fn draw(&mut self) -> BufferSlot<T> {
        let index = self.random.below(self.drawn, self.slots.len());
        self.drawn += 1;
        let slot = self.slots.swap_remove(index);
        if let BufferSlot::Loaded(_, bytes) = &slot {
            self.bytes -= bytes;
        }
        slot
    }

    /// Reads the pending elements, and skips the others. `at` is the position of the input.
    fn load_pending(&mut self, mut at: u64) -> Result<()> {
        let numbers = self.slots.iter().enumerate().filter_map(|(i, slot)| match slot {
            BufferSlot::Pending(number) => Some((*number, i)),
            BufferSlot::Loaded(..) => None,
        });
        let mut numbers: Vec<(u64, usize)> = numbers.collect();
        numbers.sort_unstable();
        for (number, index) in numbers {
            self.input.skip(number - at)?;
            at = number + 1;
            let item = self.input.next().transpose().unwrap_or_else(|| {
                Err(Error::value(format!("the dataset ended before element {number}, below its cardinality")))
            });
            let bytes = item.as_ref().map_or(0, element::bytes);
            self.bytes += bytes;
            self.slots[index] = BufferSlot::Loaded(item, bytes);
        }
        self.input.skip(self.entered - at)?;
        self.update_counters();
        Ok(())
    }
}

/// Makes room for one more slot; an error if the system refuses the memory of a large buffer.
fn room_for_one<T>(slots: &mut Vec<T>) -> Result<()> {
    if slots.try_reserve(1).is_ok() {
        return Ok(());
    }
    let message = format!("no memory for more than {} elements", slots.len());
    Err(Error::new(ErrorKind::OutOfMemory, message).about("shuffle"))
}

impl<T: DatasetElement> Cursor<T> for ShuffleCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        if let Some(item) = self.fill() {
            return item.map(Some);
        }
        if self.slots.is_empty() {
            return Ok(None);
        }
        match self.draw() {
            BufferSlot::Loaded(item, _) => item.map(Some),
            BufferSlot::Pending(number) => Err(Error::value(format!("element {number} was not loaded"))),
        }
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let (BufferSize::Elements(most), Some(total)) = (self.buffer_size, self.count) else {
            return Ok(None);
        };
        let at = self.entered;
        let mut skipped = 0;
        while skipped < count {
            self.input.check_not_stopped()?;
            while self.slots.len() < most && self.entered < total {
                room_for_one(&mut self.slots)?;
                self.slots.push(BufferSlot::Pending(self.entered));
                self.entered += 1;
            }
            if self.slots.is_empty() {
                break;
            }
            self.draw();
            skipped += 1;
        }
        self.load_pending(at)?;
        Ok(Some(skipped))
    }
}
