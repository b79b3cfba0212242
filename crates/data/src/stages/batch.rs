//! `batch`: stacks consecutive elements along a new first axis.

use crate::counters::{StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, AnyTensor, Column, DatasetElement};
use crate::stages::at_element;
use taut_core::{Error, ErrorKind, Result, Shape, Spec, Tensor, source_location};
use taut_kernels::{ViewMut, elementwise};
use taut_memory::{Category, Location, list_of, list_with_capacity};
use taut_strings::StringTensor;

/// Combines several elements into one; `first` is the index of the first of them.
pub(crate) trait Collate<T>: Send + Sync + 'static {
    /// Whether it stacks elements of equal shapes, as a source may do by itself ([`Cursor::try_stack`]).
    const STACKS: bool = false;

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
    /// Elements to skip before the next batch, after one that the memory did not suffice for.
    owed: u64,
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

    /// As [`Dataset::batch`] or, if it is `exact`, as [`Dataset::batch_exact`], for elements that have parts other than tensors: where
    /// `join` returns a result for the elements of a batch, that is the batch.
    #[track_caller]
    pub fn batch_with(
        &self,
        size: usize,
        exact: bool,
        join: impl Fn(&[T]) -> Option<Result<T>> + Send + Sync + 'static,
    ) -> Result<Dataset<T>> {
        self.grouped(if exact { "batch_exact" } else { "batch" }, size, exact, StackOr(join))
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
            owed: 0,
            items: Vec::new(),
        }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| groups(count, self.size as u64, self.exact))
    }
}

fn groups(count: u64, size: u64, exact: bool) -> u64 {
    if exact { count / size } else { count.div_ceil(size) }
}

impl<T: DatasetElement, J: Collate<T>> BatchCursor<T, J> {
    /// Skips the rest of a batch that the memory did not suffice for.
    fn skip_rest(&mut self) -> Result<()> {
        let owed = std::mem::take(&mut self.owed);
        self.read += if owed > 0 { self.input.skip(owed)? } else { 0 };
        Ok(())
    }

    /// Ends a batch after `found` elements, for which the memory did not suffice. What is left of it is skipped before the next one:
    /// it may be endless.
    #[cold]
    fn without_memory(&mut self, found: usize, error: Error) -> Error {
        self.items = Vec::new();
        self.read += found as u64;
        self.owed = (self.size - found) as u64;
        error
    }
}

impl<T: DatasetElement, J: Collate<T>> Cursor<T> for BatchCursor<T, J> {
    fn next(&mut self) -> Result<Option<T>> {
        self.skip_rest()?;
        if J::STACKS
            && let Some((found, stacked)) = self.input.try_stack(self.size)
        {
            self.read += found as u64;
            let is_whole = found == self.size || found > 0 && !self.exact;
            return if is_whole || self.input.is_stopped() { stacked.map(Some) } else { Ok(None) };
        }
        let (first, mut failed) = (self.read, None);
        self.items.clear();
        // All elements of the batch are read, even after an error: a batch covers the same indices in any case.
        let mut found = 0;
        while found < self.size {
            if self.items.try_reserve(1).is_err() {
                let error =
                    Error::new(ErrorKind::OutOfMemory, format!("no memory for more than {found} elements"));
                return Err(self.without_memory(found, error.at(self.at)));
            }
            self.input.expect(self.size - found);
            match self.input.next() {
                Ok(None) => break,
                Ok(Some(item)) => self.items.push(item),
                Err(error) if self.input.is_stopped() => return Err(error),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    return Err(self.without_memory(found + 1, error));
                }
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
        self.skip_rest()?;
        let size = self.size as u64;
        let skipped = self.input.skip(count.saturating_mul(size))?;
        self.read += skipped;
        Ok(Some(groups(skipped, size, self.exact)))
    }
}

/// Stacks elements of equal shapes.
struct Stack;

impl<T: DatasetElement> Collate<T> for Stack {
    const STACKS: bool = true;

    fn collate(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        let mut stacked = Vec::new();
        for column in leaves(items, first, at)? {
            stacked.push(match column {
                Leaves::Numbers(rows) => AnyTensor::Numbers(stack(&rows, first, at)?),
                Leaves::Strings(rows) => AnyTensor::Strings(stack_strings(&rows, first, at)?),
            });
        }
        Ok(element::rebuilt(&items[0], stacked))
    }
}

/// Combines elements with a function where that has a result, and stacks others.
struct StackOr<F>(F);

impl<T: DatasetElement, F> Collate<T> for StackOr<F>
where
    F: Fn(&[T]) -> Option<Result<T>> + Send + Sync + 'static,
{
    const STACKS: bool = true;

    fn collate(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        match (self.0)(items) {
            Some(joined) => joined.map_err(|error| error.at(at)),
            None => Stack.collate(items, first, at),
        }
    }
}

/// The tensors of several elements at one position.
pub(crate) enum Leaves<'a> {
    Numbers(Vec<&'a Tensor>),
    Strings(Vec<StringTensor>),
}

/// The tensors of several elements, by position: all first ones, all second ones. Elements of different structure are an
/// error.
pub(crate) fn leaves<T: DatasetElement>(items: &[T], first: u64, at: Location) -> Result<Vec<Leaves<'_>>> {
    let mut found: Vec<Leaves<'_>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let invalid = |error: Error| Err(at_element(error.at(at), first + i as u64));
        if i > 0 && !element::is_alike(&items[0], item) {
            let message =
                format!("its structure and plain values must equal those of element {first} of its batch");
            return invalid(Error::value(message));
        }
        for (place, column) in element::columns(item).into_iter().enumerate() {
            match (found.get_mut(place), column) {
                (None, Column::Numbers(tensor)) => {
                    let mut rows = list_with_capacity(items.len())?;
                    rows.push(tensor);
                    found.push(Leaves::Numbers(rows));
                }
                (None, Column::Strings(strings)) => {
                    let mut rows = list_with_capacity(items.len())?;
                    rows.push(strings);
                    found.push(Leaves::Strings(rows));
                }
                (Some(Leaves::Numbers(rows)), Column::Numbers(tensor)) => {
                    if tensor.dtype() != rows[0].dtype() {
                        let (expected, got) = (rows[0].spec(), tensor.spec());
                        let message =
                            format!("its type must be that of element {first}, {expected}, got {got}");
                        return invalid(Error::dtype(message));
                    }
                    rows.push(tensor);
                }
                (Some(Leaves::Strings(rows)), Column::Strings(strings)) => rows.push(strings),
                // `is_alike` has refused these.
                _ => return invalid(Error::dtype("expected strings or numbers in all elements")),
            }
        }
    }
    Ok(found)
}

fn stack_strings(rows: &[StringTensor], first: u64, at: Location) -> Result<StringTensor> {
    let shape = rows[0].shape();
    if let Some(i) = rows.iter().position(|row| row.shape() != shape) {
        return Err(unequal(shape, rows[i].shape(), first, i, at));
    }
    taut_strings::stack(&list_of(rows)?).map_err(|error| error.at(at))
}

#[cold]
fn unequal(expected: &Shape, got: &Shape, first: u64, i: usize, at: Location) -> Error {
    let message = format!("its shape must be that of element {first}, {expected}, got {got}");
    let help = "padded_batch pads elements of different shapes";
    at_element(Error::shape(message).help(help).at(at), first + i as u64)
}

fn stack(rows: &[&Tensor], first: u64, at: Location) -> Result<Tensor> {
    let spec = rows[0].spec();
    if let Some(i) = rows.iter().position(|row| row.shape() != &spec.shape) {
        return Err(unequal(&spec.shape, rows[i].shape(), first, i, at));
    }
    let mut views = list_with_capacity(rows.len())?;
    for row in rows {
        views.push(row.view().map_err(|error| error.at(at))?);
    }
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
