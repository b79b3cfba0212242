//! `window`: neighbours, as lists.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::{self, Item};
use crate::meter::{Input, Run};
use std::collections::VecDeque;
use taut_core::{Error, Result};
use taut_memory::Location;

/// Which elements a window has. A plain number is a window of that size, moved by its size each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    size: usize,
    shift: usize,
    stride: usize,
    drop_remainder: bool,
}

impl Window {
    /// Windows of `size` elements, one after the other.
    pub fn new(size: usize) -> Window {
        Window { size, shift: size, stride: 1, drop_remainder: false }
    }

    /// How far the next window begins after this one.
    #[must_use]
    pub fn shift(self, shift: usize) -> Window {
        Window { shift, ..self }
    }

    /// How far apart the elements of a window are.
    #[must_use]
    pub fn stride(self, stride: usize) -> Window {
        Window { stride, ..self }
    }

    /// No smaller windows at the end.
    #[must_use]
    pub fn drop_remainder(self) -> Window {
        Window { drop_remainder: true, ..self }
    }

    /// Places from its first element to its last.
    fn span(&self) -> usize {
        (self.size - 1) * self.stride + 1
    }

    /// How many windows begin in `count` places.
    fn windows(&self, count: u64) -> u64 {
        let shift = self.shift as u64;
        if self.drop_remainder {
            count.checked_sub(self.span() as u64).map_or(0, |rest| rest / shift + 1)
        } else {
            count.div_ceil(shift)
        }
    }
}

impl From<usize> for Window {
    fn from(size: usize) -> Window {
        Window::new(size)
    }
}

struct Windows<T> {
    input: Dataset<T>,
    how: Window,
}

struct WindowCursor<T> {
    input: Input<T>,
    how: Window,
    /// The places from the next window's first on, as far as they were read.
    ahead: VecDeque<Result<T>>,
    ended: bool,
}

impl<T: Item> Dataset<T> {
    /// Lists of neighbouring elements.
    ///
    /// ```
    /// use taut_data::{Dataset, Window};
    /// let pairs = Dataset::range(0..4).window(Window::new(2).shift(1).drop_remainder())?;
    /// let sums: Result<Vec<i64>, _> = pairs.iter()?.map(|pair| {
    ///     let pair = pair?;
    ///     Ok::<_, taut_core::Error>(pair[0].item::<i64>()? + pair[1].item::<i64>()?)
    /// }).collect();
    /// assert_eq!(sums?, [1, 3, 5]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn window(&self, how: impl Into<Window>) -> Result<Dataset<Vec<T>>> {
        let how = how.into();
        let fits = how.size.checked_mul(how.stride).is_some();
        if how.size == 0 || how.shift == 0 || how.stride == 0 || !fits {
            let message =
                format!("a window of size {}, shift {} and stride {}", how.size, how.shift, how.stride);
            return Err(Error::value(message).help("all three are one at least").at(Location::caller()));
        }
        Ok(Dataset::new(Windows { input: self.clone(), how }))
    }
}

impl<T: Item> Stage<Vec<T>> for Windows<T> {
    fn name(&self) -> &'static str {
        "window"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<Vec<T>>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(WindowCursor { input, how: self.how, ahead: VecDeque::new(), ended: false }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| self.how.windows(count))
    }
}

impl<T: Item> WindowCursor<T> {
    /// Reads ahead, up to the last place of the next window.
    fn fill(&mut self) -> Result<()> {
        while !self.ended && self.ahead.len() < self.how.span() {
            match self.input.next().transpose() {
                Some(Err(error)) if self.input.is_stopped() => return Err(error),
                Some(item) => self.ahead.push_back(item),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// Passes over places. Returns how many there were.
    fn advance(&mut self, count: u64) -> Result<u64> {
        let held = count.min(self.ahead.len() as u64);
        self.ahead.drain(..held as usize);
        let rest = count - held;
        let passed = if self.ended { 0 } else { self.input.skip(rest)? };
        self.ended |= passed < rest;
        Ok(held + passed)
    }
}

impl<T: Item> Cursor<Vec<T>> for WindowCursor<T> {
    fn next(&mut self) -> Result<Option<Vec<T>>> {
        self.fill()?;
        if self.how.windows(self.ahead.len() as u64) == 0 {
            return Ok(None);
        }
        let places = self.ahead.iter().step_by(self.how.stride).take(self.how.size);
        // An element is in several windows, and so is an error.
        let window = places
            .map(|place| match place {
                Ok(item) => Ok(item.clone()),
                Err(error) => Err(item::again(error)),
            })
            .collect();
        self.advance(self.how.shift as u64)?;
        Result::map(window, Some)
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        // Up to the last of them, which is then looked at: it may be too short to be one.
        let places = (count - 1).saturating_mul(self.how.shift as u64);
        let passed = self.advance(places)?;
        if passed < places {
            return Ok(Some(self.how.windows(passed)));
        }
        self.fill()?;
        let there = passed.saturating_add(self.ahead.len() as u64);
        let found = self.how.windows(there).min(count);
        self.advance(self.how.shift as u64)?;
        Ok(Some(found))
    }
}
