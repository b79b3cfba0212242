//! `assert_cardinality`: states how many elements there are.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use taut_core::{Error, Result};

struct AssertCardinality<T> {
    input: Dataset<T>,
    cardinality: Cardinality,
}

struct AssertCardinalityCursor<T> {
    input: StageInput<T>,
    cardinality: Cardinality,
    next: u64,
}

impl<T: DatasetElement> Dataset<T> {
    /// States the number of elements, which other stages then know. An iteration fails where it turns out to be another one.
    ///
    /// ```
    /// use taut_data::{Cardinality, Dataset};
    /// let even = Dataset::range(0..6).filter(|x| Ok(x.item::<i64>()? % 2 == 0));
    /// let known = even.assert_cardinality(Cardinality::Known(3));
    /// assert_eq!(known.cardinality(), Cardinality::Known(3));
    /// assert_eq!(known.iter()?.count(), 3);
    /// assert!(even.assert_cardinality(Cardinality::Known(2)).iter()?.any(|x| x.is_err()));
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn assert_cardinality(&self, cardinality: Cardinality) -> Dataset<T> {
        Dataset::new(AssertCardinality { input: self.clone(), cardinality })
    }
}

impl<T: DatasetElement> Stage<T> for AssertCardinality<T> {
    fn name(&self) -> &'static str {
        "assert_cardinality"
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let input = run.start(&self.input, epoch)?;
        Ok(Box::new(AssertCardinalityCursor { input, cardinality: self.cardinality, next: 0 }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T> AssertCardinalityCursor<T> {
    /// An error if the statement is false: at the end of the input, or beside one more element.
    fn check(&self, ended: bool) -> Result<()> {
        let found = self.next;
        let wrong = match self.cardinality {
            Cardinality::Known(count) => {
                if ended {
                    found < count
                } else {
                    found > count
                }
            }
            Cardinality::Infinite => ended,
            Cardinality::Unknown => false,
        };
        if !wrong {
            return Ok(());
        }
        let wanted = match self.cardinality {
            Cardinality::Known(count) => format!("{count} elements"),
            _ => "infinitely many elements".to_owned(),
        };
        let least = if ended { "" } else { "at least " };
        let message = format!("the dataset must have {wanted}, it has {least}{found}");
        Err(Error::value(message).about("assert_cardinality"))
    }
}

impl<T: DatasetElement> Cursor<T> for AssertCardinalityCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        let element = self.input.next()?;
        self.next += u64::from(element.is_some());
        self.check(element.is_none())?;
        Ok(element)
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let skipped = self.input.skip(count)?;
        self.next += skipped;
        self.check(skipped < count)?;
        Ok(Some(skipped))
    }
}
