//! The iterator of a pipeline, and its position.

use crate::counters::{PipelineCounters, StageInput};
use crate::element::DatasetElement;
use crate::report::PipelineReport;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use taut_core::{Error, ErrorKind, Result};
use taut_memory::ReserveAllocator;

/// The position of an iterator: its epoch, and the number of elements delivered.
///
/// As text it is `epoch:delivered`, so that it can be saved in a checkpoint.
///
/// ```
/// use taut_data::Position;
/// let position: Position = "3:120".parse()?;
/// assert_eq!((position.epoch, position.delivered), (3, 120));
/// assert_eq!(position.to_string(), "3:120");
/// assert!("3:".parse::<Position>().is_err());
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// The epoch: shuffles draw another order in each.
    pub epoch: u64,
    /// Elements delivered since the start of the epoch, including errors that replaced an element.
    pub delivered: u64,
}

impl Position {
    /// The start of an epoch.
    pub fn start_of(epoch: u64) -> Position {
        Position { epoch, delivered: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.delivered)
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Position> {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parts = text.split_once(':').filter(|(epoch, delivered)| digits(epoch) && digits(delivered));
        let numbers =
            parts.and_then(|(epoch, delivered)| Some((epoch.parse().ok()?, delivered.parse().ok()?)));
        let (epoch, delivered) = numbers.ok_or_else(|| {
            Error::new(ErrorKind::Format, format!("a position must be `epoch:delivered`, got {text:?}"))
                .help("both are non-negative integers, as in `3:120`")
        })?;
        Ok(Position { epoch, delivered })
    }
}

/// The iterator of a running pipeline. Dropping it ends its threads.
pub struct Iter<T> {
    input: StageInput<T>,
    pipeline: Arc<PipelineCounters>,
    position: Position,
    started: Instant,
    ended: bool,
}

impl<T: DatasetElement> Iter<T> {
    pub(crate) fn new(input: StageInput<T>, pipeline: Arc<PipelineCounters>, position: Position) -> Iter<T> {
        Iter { input, pipeline, position, started: Instant::now(), ended: false }
    }

    /// The current position: [`Dataset::iter_from`](crate::Dataset::iter_from) resumes from it.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// Counters of each stage so far, and the bottleneck.
    pub fn report(&self) -> PipelineReport {
        PipelineReport::new(&self.pipeline, self.started.elapsed())
    }
}

impl<T: DatasetElement> Iterator for Iter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        // Rows and windows are views: they need no buffer whose allocation would tell.
        if let Err(error) = check_reserve() {
            self.ended = true;
            return Some(Err(error));
        }
        let next = self.input.next().transpose();
        match next {
            None => self.ended = true,
            Some(_) => self.position.delivered += 1,
        }
        next
    }
}

/// An error once the system refuses memory for further elements.
pub(crate) fn check_reserve() -> Result<()> {
    if !is_without_reserve() {
        return Ok(());
    }
    let message = "out of memory: the system refuses memory for further elements";
    Err(Error::new(ErrorKind::OutOfMemory, message).help("hold fewer elements at a time"))
}

/// Whether the program's allocator has a reserve for the moment at which the system refuses memory, and it is spent.
fn is_without_reserve() -> bool {
    static HAS_RESERVE: OnceLock<bool> = OnceLock::new();
    if !HAS_RESERVE.get_or_init(ReserveAllocator::is_filled) || ReserveAllocator::is_filled() {
        return false;
    }
    ReserveAllocator::fill();
    if !ReserveAllocator::is_filled() {
        // Blocks that are kept for reuse are memory, too.
        taut_memory::trim();
        ReserveAllocator::fill();
    }
    !ReserveAllocator::is_filled()
}

impl<T> Drop for Iter<T> {
    fn drop(&mut self) {
        self.pipeline.stop();
    }
}

impl<T> fmt::Debug for Iter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Iter(at {})", self.position)
    }
}
