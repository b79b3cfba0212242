//! A running pipeline and its position.

use crate::item::Item;
use crate::meter::{Input, Meters};
use crate::report::Report;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;
use taut_core::{Error, ErrorKind, Result};

/// How far an iterator got: the epoch it was started with, and how many elements it delivered.
///
/// Written as `epoch:delivered`, so it can be kept beside the weights of a model.
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
    /// Places passed since the start of the epoch. An error that took the place of an element counts.
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
            Error::new(ErrorKind::Format, format!("{text:?} is not a position in a dataset"))
                .help("positions are two numbers, `epoch:delivered`")
        })?;
        Ok(Position { epoch, delivered })
    }
}

/// A running pipeline. Dropping it ends its threads.
pub struct Iter<T> {
    input: Input<T>,
    meters: Arc<Meters>,
    position: Position,
    started: Instant,
    ended: bool,
}

impl<T: Item> Iter<T> {
    pub(crate) fn new(input: Input<T>, meters: Arc<Meters>, position: Position) -> Iter<T> {
        Iter { input, meters, position, started: Instant::now(), ended: false }
    }

    /// Where it is: [`Dataset::iter_from`](crate::Dataset::iter_from) goes on from here.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// What each stage did so far, and where the pipeline waits.
    pub fn report(&self) -> Report {
        Report::new(&self.meters, self.started.elapsed())
    }
}

impl<T: Item> Iterator for Iter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        let next = self.input.next().transpose();
        match next {
            None => self.ended = true,
            Some(_) => self.position.delivered += 1,
        }
        next
    }
}

impl<T> Drop for Iter<T> {
    fn drop(&mut self) {
        self.meters.stop();
    }
}

impl<T> fmt::Debug for Iter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Iter(at {})", self.position)
    }
}
