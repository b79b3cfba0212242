//! `batch`: stacks consecutive elements along a new first axis.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::element::{self, DatasetElement};
use crate::stages::at_element;
use taut_core::{Error, Result, Spec, Tensor, source_location};
use taut_kernels::{ViewMut, elementwise};
use taut_memory::{Category, Location};

/// Combines several elements into one; `first` is the index of the first of them.
pub(crate) trait Collate<T>: Send + Sync + 'static {
    fn collate(&self, items: &[T], first: u64, at: Location) -> Result<T>;
}

/// Groups of `size` consecutive elements.
pub(crate) struct Batch<T, J> {
    pub(crate) name: &'static str,
    pub(crate) input: Dataset<T>,
    pub(crate) size: usize,
    /// Whether a smaller group at the end is dropped.
    pub(crate) exact: bool,
    pub(crate) collate: std::sync::Arc<J>,
    pub(crate) at: Location,
}

struct BatchCursor<T, J> {
    input: StageInput<T>,
    size: usize,
    exact: bool,
    collate: std::sync::Arc<J>,
    at: Location,
    /// Elements of the input read or skipped.
    read: u64,
    items: Vec<T>,
}

impl<T: DatasetElement> Dataset<T> {
    /// Stacks every `size` elements along a new first axis; the last batch may be smaller.
    ///
    /// Rows are copied once, directly into the batch's memory. All elements of a batch must have the same shapes: see
    /// [`Dataset::padded_batch`]. An error in an element replaces the whole batch.
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
        collate: impl Collate<T>,
    ) -> Result<Dataset<T>> {
        let at = source_location(Location::caller());
        if size == 0 {
            return Err(Error::value("batch_size must be >= 1, got 0").at(at));
        }
        Ok(Dataset::new(Batch { name, input: self.clone(), size, exact, collate: collate.into(), at }))
    }
}

impl<T: DatasetElement, J: Collate<T>> Stage<T> for Batch<T, J> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, run: &StageRun, epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        Ok(Box::new(BatchCursor {
            input: run.start(&self.input, epoch)?,
            size: self.size,
            exact: self.exact,
            collate: self.collate.clone(),
            at: self.at,
            read: 0,
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

impl<T: DatasetElement, J: Collate<T>> Cursor<T> for BatchCursor<T, J> {
    fn next(&mut self) -> Result<Option<T>> {
        let (first, mut failed) = (self.read, None);
        self.items.clear();
        // All elements of the batch are read, even after an error: a batch covers the same indices in any case.
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
        self.read += found as u64;
        if found == 0 || self.exact && found < self.size {
            self.items.clear();
            return Ok(None);
        }
        let collated = match failed {
            Some(error) => Err(error),
            None => self.collate.collate(&self.items, first, self.at),
        };
        self.items.clear();
        collated.map(Some)
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let size = self.size as u64;
        let skipped = self.input.skip(count.saturating_mul(size))?;
        self.read += skipped;
        Ok(Some(groups(skipped, size, self.exact)))
    }
}

/// Stacks elements of equal shapes.
struct Stack;

impl<T: DatasetElement> Collate<T> for Stack {
    fn collate(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        let leaves = leaves(items, first, at)?;
        let mut stacked = Vec::with_capacity(leaves.len());
        for column in leaves {
            stacked.push(stack(&column, first, at)?);
        }
        Ok(items[0].rebuild(&mut stacked.into_iter()))
    }
}

/// The tensors of several elements, by position: all first ones, all second ones. Elements of different structure are an
/// error.
pub(crate) fn leaves<T: DatasetElement>(items: &[T], first: u64, at: Location) -> Result<Vec<Vec<&Tensor>>> {
    let mut columns: Vec<Vec<&Tensor>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 && !element::is_alike(&items[0], item) {
            let message =
                format!("its structure and plain values must equal those of element {first} of its batch");
            return Err(at_element(Error::value(message).at(at), first + i as u64));
        }
        let tensors = element::tensors(item);
        if i == 0 {
            columns = tensors.iter().map(|_| Vec::with_capacity(items.len())).collect();
        }
        for (column, tensor) in columns.iter_mut().zip(tensors) {
            if tensor.dtype() != column.first().map_or(tensor.dtype(), |first| first.dtype()) {
                let (expected, got) = (column[0].spec(), tensor.spec());
                let message = format!("its type must be that of element {first}, {expected}, got {got}");
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
        let (expected, got) = (&spec.shape, rows[i].shape());
        let message = format!("its shape must be that of element {first}, {expected}, got {got}");
        let help = "padded_batch pads elements of different shapes";
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
