//! `map`: a function of each element.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::Item;
use crate::meter::{Input, Run};
use crate::stages::at_element;
use std::sync::Arc;
use taut_core::Result;

struct Map<T, F> {
    input: Dataset<T>,
    f: Arc<F>,
}

struct MapCursor<T, F> {
    input: Input<T>,
    f: Arc<F>,
    next: u64,
}

impl<T: Item> Dataset<T> {
    /// A function of each element. An error of `f` takes the element's place, and names its number.
    ///
    /// ```
    /// use taut_core::ops::binary::mul;
    /// use taut_data::Dataset;
    /// let doubled = Dataset::range(0..3).map(|x| mul(x, 2));
    /// assert_eq!(doubled.iter()?.last().unwrap()?.item::<i64>()?, 4);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn map<U: Item>(&self, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Dataset<U> {
        Dataset::new(Map { input: self.clone(), f: Arc::new(f) })
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<U> + Send + Sync + 'static> Stage<U> for Map<T, F> {
    fn name(&self) -> &'static str {
        "map"
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<U>>> {
        Ok(Box::new(MapCursor { input: run.start(&self.input, epoch)?, f: self.f.clone(), next: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

impl<T: Item, U: Item, F: Fn(T) -> Result<U> + Send + Sync> Cursor<U> for MapCursor<T, F> {
    fn next(&mut self) -> Result<Option<U>> {
        let index = self.next;
        self.next += 1;
        let Some(element) = self.input.next()? else {
            return Ok(None);
        };
        (self.f)(element).map(Some).map_err(|error| at_element(error, index))
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let passed = self.input.skip(count)?;
        self.next += passed;
        Ok(Some(passed))
    }
}
