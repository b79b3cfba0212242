//! The description of a pipeline, and what its stages promise.

use crate::item::Item;
use crate::iter::{Iter, Position};
use crate::meter::{Meters, Run};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_core::Result;

/// How many elements there are, as far as that can be said without making them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Exactly as many.
    Known(u64),
    /// There is no end.
    Infinite,
    /// Only running it will tell.
    Unknown,
}

impl Cardinality {
    /// The number, if it is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Cardinality::Known(count) => Some(count),
            _ => None,
        }
    }

    /// Another number of elements for a known one.
    pub(crate) fn map(self, f: impl FnOnce(u64) -> u64) -> Cardinality {
        match self {
            Cardinality::Known(count) => Cardinality::Known(f(count)),
            other => other,
        }
    }

    /// The shorter of two.
    pub(crate) fn min(self, other: Cardinality) -> Cardinality {
        use Cardinality::*;
        match (self, other) {
            (Known(a), Known(b)) => Known(a.min(b)),
            (Infinite, other) | (other, Infinite) => other,
            (Known(0), _) | (_, Known(0)) => Known(0),
            _ => Unknown,
        }
    }

    /// Of a part that nobody can tell beforehand: nothing of nothing.
    pub(crate) fn some(self) -> Cardinality {
        match self {
            Cardinality::Known(0) => self,
            _ => Cardinality::Unknown,
        }
    }

    /// One after the other.
    pub(crate) fn plus(self, other: Cardinality) -> Cardinality {
        use Cardinality::*;
        match (self, other) {
            (Known(a), Known(b)) => Known(a.saturating_add(b)),
            (Infinite, _) => Infinite,
            (Known(_), Infinite) => Infinite,
            _ => Unknown,
        }
    }
}

/// A part of a pipeline.
///
/// What must stay true: the places a cursor gives depend on the stage and the epoch alone.
pub(crate) trait Stage<T>: Send + Sync {
    /// The name that reports use: the method's.
    fn name(&self) -> &'static str;

    /// A cursor before the first element. Work begins with the first call of `next`.
    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>>;

    /// How many elements there will be.
    fn cardinality(&self) -> Cardinality;

    /// The bytes of every element, if they are all the same and known beforehand.
    fn bytes_each(&self) -> Option<usize> {
        None
    }
}

/// A running stage.
///
/// What must stay true: each call of `next` that does not say the end takes one place, an error like an element; and
/// `jump` passes over places, whether there are elements or errors in them.
pub(crate) trait Cursor<T>: Send {
    /// What is in the next place, or `None` at the end, again and again.
    fn next(&mut self) -> Result<Option<T>>;

    /// Passes over the next `count` places without making what is in them, and returns how many there were before the end.
    /// `None`, and nothing is passed, if they have to be made.
    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let _ = count;
        Ok(None)
    }
}

/// A sequence of elements, and how each of them is made. Cloning shares.
///
/// Elements are tensors, or tuples, lists and maps of them. Methods are named as TensorFlow's, and results are as
/// TensorFlow's: see each of them for what is different.
#[must_use = "a dataset does nothing until it is iterated over"]
pub struct Dataset<T> {
    pub(crate) stage: Arc<dyn Stage<T>>,
    /// Tells the stages of a pipeline apart.
    id: u64,
}

impl<T> Clone for Dataset<T> {
    fn clone(&self) -> Dataset<T> {
        Dataset { stage: self.stage.clone(), id: self.id }
    }
}

impl<T> fmt::Debug for Dataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset(… → {}, {:?})", self.stage.name(), self.stage.cardinality())
    }
}

impl<T: Item> Dataset<T> {
    pub(crate) fn new(stage: impl Stage<T> + 'static) -> Dataset<T> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Dataset { stage: Arc::new(stage), id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// How many elements there are, without making them.
    ///
    /// ```
    /// use taut_data::{Cardinality, Dataset};
    /// let ten = Dataset::range(0..10);
    /// assert_eq!(ten.batch(3)?.cardinality(), Cardinality::Known(4));
    /// assert_eq!(ten.repeat(None).cardinality(), Cardinality::Infinite);
    /// assert_eq!(ten.filter(|x| Ok(x.item::<i64>()? > 3)).cardinality(), Cardinality::Unknown);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn cardinality(&self) -> Cardinality {
        self.stage.cardinality()
    }

    /// Runs the pipeline from the start of epoch 0.
    #[expect(
        clippy::iter_not_returning_iterator,
        reason = "files may be missing; the iterator is in the result"
    )]
    pub fn iter(&self) -> Result<Iter<T>> {
        self.iter_from(&Position::default())
    }

    /// Runs the pipeline from a position, with the elements that a run from the start of that epoch would have given from
    /// there on.
    ///
    /// What was delivered before is passed over where that can be done without making it: sources jump, `map` does not call its
    /// function, `shuffle` repeats its draws on numbers and fetches only what is still in its buffer. `filter`, `take_while`,
    /// generators, `flat_map` and `interleave` do their work again, and so does a `shuffle` behind them or one whose room is in bytes and
    /// whose elements have sizes that are not known beforehand. A position beyond the end is the end.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let numbers = Dataset::range(0..100).shuffle(10)?;
    /// let mut straight = numbers.iter()?;
    /// straight.by_ref().take(60).count();
    /// let place = straight.position().to_string(); // goes into a file
    ///
    /// let rest = |iter: taut_data::Iter<taut_core::Tensor>| iter.map(|x| x?.item::<i64>()).collect::<Result<Vec<_>, _>>();
    /// let resumed = numbers.iter_from(&place.parse()?)?;
    /// assert_eq!(rest(resumed)?, rest(straight)?);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn iter_from(&self, position: &Position) -> Result<Iter<T>> {
        let meters = Arc::new(Meters::default());
        let mut input = Run::begin(self, &meters, None, position.epoch)?;
        if position.delivered > 0 {
            input.skip(position.delivered)?;
        }
        Ok(Iter::new(input, meters, position.clone()))
    }

    /// Folds all elements into one value, beginning with `initial`.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let sum = Dataset::range(0..5).reduce(0, |sum, x| Ok(sum + x.item::<i64>()?))?;
    /// assert_eq!(sum, 10);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn reduce<S>(&self, initial: S, mut f: impl FnMut(S, T) -> Result<S>) -> Result<S> {
        self.iter()?.try_fold(initial, |state, element| f(state, element?))
    }
}
