//! `window`: lists of neighbouring elements.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, DatasetElement};
use std::collections::VecDeque;
use taut_core::{Error, ErrorKind, Result};
use taut_memory::Location;

/// The size, shift and stride of windows. A plain number is a size, with an equal shift and a stride of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    size: usize,
    shift: usize,
    stride: usize,
    drop_remainder: bool,
}

impl Window {
    /// Disjoint windows of `size` consecutive elements.
    pub fn new(size: usize) -> Window {
        Window { size, shift: size, stride: 1, drop_remainder: false }
    }

    /// The distance between the starts of consecutive windows.
    #[must_use]
    pub fn shift(self, shift: usize) -> Window {
        Window { shift, ..self }
    }

    /// The distance between the elements of a window.
    #[must_use]
    pub fn stride(self, stride: usize) -> Window {
        Window { stride, ..self }
    }

    /// Drops smaller windows at the end.
    #[must_use]
    pub fn drop_remainder(self) -> Window {
        Window { drop_remainder: true, ..self }
    }

    /// The number of input elements from its first element to its last.
    fn span(&self) -> usize {
        (self.size - 1) * self.stride + 1
    }

    /// How many windows start within `count` elements.
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
    input: StageInput<T>,
    how: Window,
    /// The elements read so far, from the first of the next window on.
    ahead: VecDeque<Result<T>>,
    ended: bool,
    /// The elements to skip before the next window, after one that the memory did not suffice for.
    owed: u64,
}

impl<T: DatasetElement> Dataset<T> {
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
        let Window { size, shift, stride, .. } = how;
        let message = if size == 0 || shift == 0 || stride == 0 {
            format!("size, shift and stride must be >= 1, got {size}, {shift} and {stride}")
        } else if size.checked_mul(stride).is_none() {
            format!("size * stride must be less than 2^{}, got {size} * {stride}", usize::BITS)
        } else {
            return Ok(Dataset::new(Windows { input: self.clone(), how }));
        };
        Err(Error::value(message).at(Location::caller()))
    }
}

impl<T: DatasetElement> Stage<Vec<T>> for Windows<T> {
    fn name(&self) -> &'static str {
        "window"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<Vec<T>>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(WindowCursor { input, how: self.how, ahead: VecDeque::new(), ended: false, owed: 0 }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| self.how.windows(count))
    }
}

#[cold]
fn no_memory(elements: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("no memory for a list of {elements} elements")).about("window")
}

impl<T: DatasetElement> WindowCursor<T> {
    /// Reads ahead, up to the last element of the next window.
    fn fill(&mut self) -> Result<()> {
        let owed = std::mem::take(&mut self.owed);
        self.advance(owed)?;
        while !self.ended && self.ahead.len() < self.how.span() {
            if self.ahead.try_reserve(1).is_err() {
                self.owed = self.how.shift as u64;
                return Err(no_memory(self.ahead.len()));
            }
            match self.input.next().transpose() {
                Some(Err(error)) if self.input.is_stopped() => return Err(error),
                // Without memory there would be an error for each further element.
                Some(Err(error)) if error.kind() == ErrorKind::OutOfMemory => {
                    self.ahead.push_back(Err(element::copy_error(&error)));
                    self.owed = self.how.shift as u64;
                    return Err(error);
                }
                Some(item) => self.ahead.push_back(item),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// The elements of the next window: each, or an error, may be in several windows.
    fn copied(&self) -> Result<Vec<T>> {
        let mut window = Vec::new();
        let count = self.ahead.len().div_ceil(self.how.stride).min(self.how.size);
        window.try_reserve_exact(count).map_err(|_| no_memory(count))?;
        for element in self.ahead.iter().step_by(self.how.stride).take(self.how.size) {
            window.push(element.as_ref().map_err(element::copy_error)?.clone());
        }
        Ok(window)
    }

    /// Skips elements of the input. Returns how many there were.
    fn advance(&mut self, count: u64) -> Result<u64> {
        let read = count.min(self.ahead.len() as u64);
        self.ahead.drain(..read as usize);
        let rest = count - read;
        let skipped = if self.ended { 0 } else { self.input.skip(rest)? };
        self.ended |= skipped < rest;
        Ok(read + skipped)
    }
}

impl<T: DatasetElement> Cursor<Vec<T>> for WindowCursor<T> {
    fn next(&mut self) -> Result<Option<Vec<T>>> {
        self.fill()?;
        if self.how.windows(self.ahead.len() as u64) == 0 {
            return Ok(None);
        }
        let window = self.copied();
        self.advance(self.how.shift as u64)?;
        window.map(Some)
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let owed = std::mem::take(&mut self.owed);
        self.advance(owed)?;
        // Up to the last of the windows, which is then read: it may be too short to be one.
        let distance = (count - 1).saturating_mul(self.how.shift as u64);
        let skipped = self.advance(distance)?;
        if skipped < distance {
            return Ok(Some(self.how.windows(skipped)));
        }
        self.fill()?;
        let available = skipped.saturating_add(self.ahead.len() as u64);
        let found = self.how.windows(available).min(count);
        self.advance(self.how.shift as u64)?;
        Ok(Some(found))
    }
}
