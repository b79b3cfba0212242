//! `batch`: consecutive elements as one, along a new first axis.

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::{self, Item};
use crate::meter::{Input, Run};
use crate::stages::at_element;
use taut_core::{Error, Result, Spec, Tensor};
use taut_kernels::{ViewMut, elementwise};
use taut_memory::{Category, Location};

/// Makes one element of several; `first` is the number of the first of them.
pub(crate) trait Join<T>: Send + Sync + 'static {
    fn join(&self, items: &[T], first: u64, at: Location) -> Result<T>;
}

/// Groups of `size` places.
pub(crate) struct Batch<T, J> {
    pub(crate) name: &'static str,
    pub(crate) input: Dataset<T>,
    pub(crate) size: usize,
    /// Whether a smaller group at the end is dropped.
    pub(crate) exact: bool,
    pub(crate) join: std::sync::Arc<J>,
    pub(crate) at: Location,
}

struct BatchCursor<T, J> {
    input: Input<T>,
    size: usize,
    exact: bool,
    join: std::sync::Arc<J>,
    at: Location,
    /// Places of the input passed.
    passed: u64,
    items: Vec<T>,
}

impl<T: Item> Dataset<T> {
    /// Every `size` elements as one, along a new first axis; the last may be smaller.
    ///
    /// Rows are copied once, straight into the batch's memory. All elements of a batch must have the same shapes: see
    /// [`Dataset::padded_batch`]. An error in an element takes the whole batch's place.
    ///
    /// ```
    /// use taut_data::Dataset;
    /// let sizes: Result<Vec<usize>, _> = Dataset::range(0..7).batch(3)?.iter()?.map(|x| Ok::<_, taut_core::Error>(x?.len())).collect();
    /// assert_eq!(sizes?, [3, 3, 1]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn batch(&self, size: usize) -> Result<Dataset<T>> {
        self.grouped("batch", size, false, Stack)
    }

    /// As [`Dataset::batch`], without a smaller batch at the end (TensorFlow's `drop_remainder`).
    #[track_caller]
    pub fn batch_exact(&self, size: usize) -> Result<Dataset<T>> {
        self.grouped("batch_exact", size, true, Stack)
    }

    #[track_caller]
    pub(crate) fn grouped(
        &self,
        name: &'static str,
        size: usize,
        exact: bool,
        join: impl Join<T>,
    ) -> Result<Dataset<T>> {
        let at = Location::caller();
        if size == 0 {
            return Err(Error::value("batches of no elements")
                .help("a batch has one element at least")
                .at(at));
        }
        Ok(Dataset::new(Batch { name, input: self.clone(), size, exact, join: join.into(), at }))
    }
}

impl<T: Item, J: Join<T>> Stage<T> for Batch<T, J> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &Run, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        Ok(Box::new(BatchCursor {
            input: run.start(&self.input, epoch)?,
            size: self.size,
            exact: self.exact,
            join: self.join.clone(),
            at: self.at,
            passed: 0,
            items: Vec::new(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| groups(count, self.size as u64, self.exact))
    }
}

fn groups(count: u64, size: u64, exact: bool) -> u64 {
    if exact { count / size } else { count.div_ceil(size) }
}

impl<T: Item, J: Join<T>> Cursor<T> for BatchCursor<T, J> {
    fn next(&mut self) -> Result<Option<T>> {
        let (first, mut failed) = (self.passed, None);
        self.items.clear();
        // All places of the batch are passed, also after an error: a batch covers the same places whatever is in them.
        let mut found = 0;
        while found < self.size {
            match self.input.next() {
                Ok(None) => break,
                Ok(Some(item)) => self.items.push(item),
                Err(error) if self.input.is_stopped() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
            found += 1;
        }
        self.passed += found as u64;
        if found == 0 || self.exact && found < self.size {
            self.items.clear();
            return Ok(None);
        }
        let joined = match failed {
            Some(error) => Err(error),
            None => self.join.join(&self.items, first, self.at),
        };
        self.items.clear();
        joined.map(Some)
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let size = self.size as u64;
        let passed = self.input.skip(count.saturating_mul(size))?;
        self.passed += passed;
        Ok(Some(groups(passed, size, self.exact)))
    }
}

/// Elements of equal shapes.
struct Stack;

impl<T: Item> Join<T> for Stack {
    fn join(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        let leaves = leaves(items, first, at)?;
        let mut stacked = Vec::with_capacity(leaves.len());
        for column in leaves {
            stacked.push(stack(&column, first, at)?);
        }
        Ok(items[0].rebuild(&mut stacked.into_iter()))
    }
}

/// The tensors of several elements, place by place: all first ones, all second ones. Refuses elements of different structure.
pub(crate) fn leaves<T: Item>(items: &[T], first: u64, at: Location) -> Result<Vec<Vec<&Tensor>>> {
    let mut columns: Vec<Vec<&Tensor>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 && !item::is_alike(&items[0], item) {
            let message = format!(
                "it is made of other parts, or other plain values, than element {first} of its batch"
            );
            return Err(at_element(Error::value(message).at(at), first + i as u64));
        }
        let tensors = item::tensors(item);
        if i == 0 {
            columns = tensors.iter().map(|_| Vec::with_capacity(items.len())).collect();
        }
        for (column, tensor) in columns.iter_mut().zip(tensors) {
            if tensor.dtype() != column.first().map_or(tensor.dtype(), |first| first.dtype()) {
                let message = format!(
                    "it is {}, and element {first} of its batch is {}",
                    tensor.spec(),
                    column[0].spec()
                );
                return Err(at_element(Error::dtype(message).at(at), first + i as u64));
            }
            column.push(tensor);
        }
    }
    Ok(columns)
}

fn stack(rows: &[&Tensor], first: u64, at: Location) -> Result<Tensor> {
    let spec = rows[0].spec();
    if let Some(i) = rows.iter().position(|row| row.shape() != &spec.shape) {
        let message =
            format!("it has shape {}, and element {first} of its batch has {}", rows[i].shape(), spec.shape);
        let help = "padded_batch makes batches of elements of several sizes";
        return Err(at_element(Error::shape(message).help(help).at(at), first + i as u64));
    }
    let views =
        rows.iter().map(|row| row.view()).collect::<Result<Vec<_>>>().map_err(|error| error.at(at))?;
    let shape = spec.shape.clone().with_inserted(0, rows.len());
    Tensor::build(Spec::new(spec.dtype, shape), Category::Dataset, at, |out| {
        let bytes = spec.bytes();
        if bytes == 0 {
            return;
        }
        for ((row, view), out) in rows.iter().zip(views).zip(out.bytes().chunks_exact_mut(bytes)) {
            match row.span() {
                Some(span) if row.is_contiguous() => out.copy_from_slice(span),
                _ => elementwise::copy(view, ViewMut::new(spec.dtype, out, &spec.shape)),
            }
        }
    })
}
