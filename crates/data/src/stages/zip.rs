//! `zip`, `enumerate` and `concatenate`: sequences put together.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::{Input, Run};
use crate::stages::source::number;
use taut_core::{Result, Tensor};
use taut_memory::Location;

struct Zip<A, B>(Dataset<A>, Dataset<B>);

struct ZipCursor<A, B>(Input<A>, Input<B>);

struct Enumerate<T> {
    input: Dataset<T>,
    start: i64,
    at: Location,
}

struct EnumerateCursor<T> {
    input: Input<T>,
    next: i64,
    at: Location,
}

struct Concatenate<T>(Dataset<T>, Dataset<T>);

struct ConcatenateCursor<T> {
    input: Input<T>,
    /// What comes after, until it is begun.
    then: Option<(Run, Dataset<T>, u64)>,
}

impl<T: Item> Dataset<T> {
    /// Pairs with the elements of another dataset; the shorter one ends it.
    pub fn zip<U: Item>(&self, other: &Dataset<U>) -> Dataset<(T, U)> {
        Dataset::new(Zip(self.clone(), other.clone()))
    }

    /// Each element with its number, counted from `start`: an `int64` tensor without dimensions.
    #[track_caller]
    pub fn enumerate(&self, start: i64) -> Dataset<(Tensor, T)> {
        Dataset::new(Enumerate { input: self.clone(), start, at: Location::caller() })
    }

    /// The elements of this dataset, then those of another.
    pub fn concatenate(&self, other: &Dataset<T>) -> Dataset<T> {
        Dataset::new(Concatenate(self.clone(), other.clone()))
    }
}

impl<A: Item, B: Item> Stage<(A, B)> for Zip<A, B> {
    fn name(&self) -> &'static str {
        "zip"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<(A, B)>>> {
        Ok(Box::new(ZipCursor(run.start(&self.0, epoch)?, run.start(&self.1, epoch)?)))
    }

    fn cardinality(&self) -> Cardinality {
        self.0.cardinality().min(self.1.cardinality())
    }

    fn bytes_each(&self) -> Option<usize> {
        Some(self.0.stage.bytes_each()? + self.1.stage.bytes_each()?)
    }
}

impl<A: Item, B: Item> Cursor<(A, B)> for ZipCursor<A, B> {
    fn next(&mut self) -> Result<Option<(A, B)>> {
        // Both advance, whatever one of them says: they stay side by side.
        let (a, b) = (self.0.next(), self.1.next());
        match (a, b) {
            (Ok(None), _) | (_, Ok(None)) => Ok(None),
            (a, b) => Ok(a?.zip(b?)),
        }
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        Ok(Some(self.0.skip(count)?.min(self.1.skip(count)?)))
    }
}

impl<T: Item> Stage<(Tensor, T)> for Enumerate<T> {
    fn name(&self) -> &'static str {
        "enumerate"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<(Tensor, T)>>> {
        Ok(Box::new(EnumerateCursor { input: run.start(&self.input, epoch)?, next: self.start, at: self.at }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn bytes_each(&self) -> Option<usize> {
        Some(self.input.stage.bytes_each()? + size_of::<i64>())
    }
}

impl<T: Item> Cursor<(Tensor, T)> for EnumerateCursor<T> {
    fn next(&mut self) -> Result<Option<(Tensor, T)>> {
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        let Some(element) = self.input.next()? else {
            return Ok(None);
        };
        Ok(Some((number(index, self.at)?, element)))
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let passed = self.input.skip(count)?;
        self.next = self.next.wrapping_add_unsigned(passed);
        Ok(Some(passed))
    }
}

impl<T: Item> Stage<T> for Concatenate<T> {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let then = Some((run.clone(), self.1.clone(), epoch));
        Ok(Box::new(ConcatenateCursor { input: run.start(&self.0, epoch)?, then }))
    }

    fn cardinality(&self) -> Cardinality {
        self.0.cardinality().plus(self.1.cardinality())
    }

    fn bytes_each(&self) -> Option<usize> {
        let bytes = self.0.stage.bytes_each()?;
        (self.1.stage.bytes_each()? == bytes).then_some(bytes)
    }
}

impl<T: Item> ConcatenateCursor<T> {
    /// Goes on with the second dataset. False if that was done before.
    fn turn(&mut self) -> Result<bool> {
        let Some((run, second, epoch)) = self.then.take() else {
            return Ok(false);
        };
        self.input = run.start(&second, epoch)?;
        Ok(true)
    }
}

impl<T: Item> Cursor<T> for ConcatenateCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self.input.next() {
            Ok(None) if self.turn()? => self.input.next(),
            next => next,
        }
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let mut passed = self.input.skip(count)?;
        if passed < count && self.turn()? {
            passed += self.input.skip(count - passed)?;
        }
        Ok(Some(passed))
    }
}
