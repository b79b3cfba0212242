//! The description of a pipeline, and the traits of its stages.

use crate::counters::{PipelineCounters, StagePlace, StageRun};
use crate::element::DatasetElement;
use crate::iter::{Iter, Position};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_core::Result;

/// The number of elements, as far as it is known without computing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Exactly this many.
    Known(u64),
    /// Infinitely many.
    Infinite,
    /// Unknown until the pipeline has run.
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

    /// Applies a function to a known number.
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

    /// The cardinality of an unknown subset: known only if it is 0.
    pub(crate) fn subset(self) -> Cardinality {
        match self {
            Cardinality::Known(0) => self,
            _ => Cardinality::Unknown,
        }
    }

    /// The cardinality of one after the other.
    pub(crate) fn plus(self, other: Cardinality) -> Cardinality {
        use Cardinality::*;
        match (self, other) {
            (Known(a), Known(b)) => Known(a.saturating_add(b)),
            (Infinite, _) | (_, Infinite) => Infinite,
            _ => Unknown,
        }
    }
}

/// A stage of a pipeline.
///
/// Invariant: the sequence of elements that a cursor returns depends on the stage, its place in the pipeline and the epoch alone.
pub(crate) trait Stage<T>: Send + Sync {
    /// The name used in reports: that of the method which adds the stage.
    fn name(&self) -> &'static str;

    /// A cursor before the first element. Work begins with the first call of `next`.
    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>>;

    /// The number of elements.
    fn cardinality(&self) -> Cardinality;

    /// The datasets that it reads, in the order in which it starts them; those that its function makes are not known.
    fn inputs(&self) -> Vec<&dyn PipelineStage>;

    /// Whether it draws another order in each epoch.
    fn draws_order(&self) -> bool {
        false
    }

    /// The bytes of every element, if they are all equal and known in advance.
    fn bytes_each(&self) -> Option<usize> {
        None
    }
}

/// A stage of a pipeline, whatever its elements are.
pub(crate) trait PipelineStage {
    /// As [`Dataset::id`].
    fn id(&self) -> u64;

    /// As [`Stage::inputs`].
    fn inputs(&self) -> Vec<&dyn PipelineStage>;

    /// As [`Stage::draws_order`].
    fn draws_order(&self) -> bool;
}

impl<T> PipelineStage for Dataset<T> {
    fn id(&self) -> u64 {
        self.id
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        self.stage.inputs()
    }

    fn draws_order(&self) -> bool {
        self.stage.draws_order()
    }
}

/// A running stage.
///
/// Invariant: each call of `next` that does not return the end advances by one index, for an error as for an element; and
/// `try_skip` counts elements and errors alike.
pub(crate) trait Cursor<T>: Send {
    /// The next element, or `None` at the end, repeatedly.
    fn next(&mut self) -> Result<Option<T>>;

    /// Skips the next `count` elements without computing them, and returns how many there were before the end. `None`, with
    /// nothing skipped, if they have to be computed.
    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let _ = count;
        Ok(None)
    }

    /// Announces that the consumer takes this many elements next, and cannot use fewer. If none is ready, a stage with threads wakes the
    /// consumer for several at once.
    fn expect(&mut self, count: usize) {
        let _ = count;
    }

    /// The next elements, `count` or as many as there are before the end, stacked along a new first axis: how many, and the
    /// stack, or the first of their errors. `None`, with nothing read, if the stage has no faster way than one by one.
    fn try_stack(&mut self, count: usize) -> Option<(usize, Result<T>)> {
        let _ = count;
        None
    }
}

/// A sequence of elements, and how each of them is computed. Clones share the pipeline.
///
/// Elements are tensors, or tuples, lists and maps of them. Names and results of the methods are TensorFlow's; each method
/// documents its differences.
#[must_use = "a dataset does nothing until it is iterated over"]
pub struct Dataset<T> {
    pub(crate) stage: Arc<dyn Stage<T>>,
    /// Identifies the stage within a pipeline.
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

/// The id of the next dataset.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// An id that is above those of all datasets so far.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.load(Ordering::Relaxed)
}

impl<T: DatasetElement> Dataset<T> {
    pub(crate) fn new(stage: impl Stage<T> + 'static) -> Dataset<T> {
        Dataset { stage: Arc::new(stage), id: NEXT_ID.fetch_add(1, Ordering::Relaxed) }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The number of elements, without computing them.
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

    /// Runs the pipeline from a position, with the elements that a run from the start of that epoch would return from there
    /// on.
    ///
    /// Elements before the position are skipped without computing them where possible: sources seek, `map` does not call its
    /// function, `shuffle` replays its draws on indices and computes only the elements that are still in its buffer.
    /// `filter`, `take_while`, generators, `flat_map` and `interleave` compute them again, and so does a `shuffle` after
    /// them, or one with a buffer size in bytes whose elements have sizes that are not known in advance. A position beyond
    /// the end is the end.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let numbers = Dataset::range(0..100).shuffle(10)?;
    /// let mut straight = numbers.iter()?;
    /// straight.by_ref().take(60).count();
    /// let position = straight.position().to_string(); // goes into a file
    ///
    /// let rest = |iter: taut_data::Iter<taut_core::Tensor>| iter.map(|x| x?.item::<i64>()).collect::<Result<Vec<_>, _>>();
    /// let resumed = numbers.iter_from(&position.parse()?)?;
    /// assert_eq!(rest(resumed)?, rest(straight)?);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn iter_from(&self, position: &Position) -> Result<Iter<T>> {
        let pipeline = Arc::new(PipelineCounters::of_run(self));
        let mut input = StageRun::begin(self, &pipeline, None, StagePlace::default(), position.epoch)?;
        if position.delivered > 0 {
            input.skip(position.delivered)?;
        }
        Ok(Iter::new(input, pipeline, position.clone()))
    }

    /// Reduces all elements to one value, starting with `initial`.
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
