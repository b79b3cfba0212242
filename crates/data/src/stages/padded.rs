//! `padded_batch`: pads elements of different shapes and stacks them.

use crate::dataset::Dataset;
use crate::element::{self, AnyTensor, DatasetElement, is_element};
use crate::stages::at_element;
use crate::stages::batch::{Collate, Leaves, leaves};
use std::collections::BTreeMap;
use taut_core::{Error, ErrorKind, Result, Scalar, Shape, Spec, Tensor};
use taut_memory::{Category, Location, list_of, list_with_capacity};
use taut_strings::StringTensor;

/// How elements are padded to one shape. By default each dimension becomes that of the largest element of the batch, with
/// zeros at the end.
///
/// The tensors of an element are numbered from 0, in order.
///
/// ```
/// use taut_data::BatchPadding;
/// // The first tensor to 8 columns and as many rows as needed, with -1.
/// let padding = BatchPadding::default().shape(0, [None, Some(8)]).value(0, -1);
/// # let _ = padding;
/// ```
#[derive(Clone, Debug, Default)]
pub struct BatchPadding {
    shapes: BTreeMap<usize, Vec<Option<usize>>>,
    values: BTreeMap<usize, Scalar>,
    strings: BTreeMap<usize, Vec<u8>>,
    drop_remainder: bool,
}

impl BatchPadding {
    /// The shape that tensor `index` of each element is padded to; `None` is the largest dimension in the batch.
    #[must_use]
    pub fn shape(mut self, index: usize, shape: impl Into<Vec<Option<usize>>>) -> BatchPadding {
        self.shapes.insert(index, shape.into());
        self
    }

    /// The padding value of tensor `index` of each element: it must be representable in its type.
    #[must_use]
    pub fn value(mut self, index: usize, value: impl Into<Scalar>) -> BatchPadding {
        self.values.insert(index, value.into());
        self
    }

    /// The padding value of string tensor `index` of each element; by default, the empty string.
    #[must_use]
    pub fn string(mut self, index: usize, value: impl Into<Vec<u8>>) -> BatchPadding {
        self.strings.insert(index, value.into());
        self
    }

    /// Drops a smaller batch at the end.
    #[must_use]
    pub fn drop_remainder(mut self) -> BatchPadding {
        self.drop_remainder = true;
        self
    }
}

impl<T: DatasetElement> Dataset<T> {
    /// Stacks every `size` elements, each padded to a common shape.
    ///
    /// ```
    /// use taut_core::ops::creation::ones;
    /// use taut_core::DType;
    /// use taut_data::{Dataset, BatchPadding};
    /// let ragged = Dataset::range(1..4).map(|n| ones([n.item::<i64>()? as usize], DType::U8));
    /// let batch = ragged.padded_batch(3, BatchPadding::default())?.iter()?.next().unwrap()?;
    /// assert_eq!(batch.to_vec::<u8>()?, [1, 0, 0, 1, 1, 0, 1, 1, 1]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn padded_batch(&self, size: usize, padding: BatchPadding) -> Result<Dataset<T>> {
        let exact = padding.drop_remainder;
        self.grouped("padded_batch", size, exact, padding)
    }
}

impl<T: DatasetElement> Collate<T> for BatchPadding {
    fn collate(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        let columns = leaves(items, first, at)?;
        let named = self.shapes.keys().chain(self.values.keys()).chain(self.strings.keys());
        if let Some(unknown) = named.filter(|&&index| index >= columns.len()).min() {
            let message = format!("a padded tensor must be in [0, {}), got {unknown}", columns.len());
            return Err(Error::value(message).at(at));
        }
        let mut padded = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            let target = |shapes: &[&Shape]| self.target(index, shapes, first).map_err(|error| error.at(at));
            padded.push(match column {
                Leaves::Numbers(rows) => {
                    let target = target(&rows.iter().map(|row| row.shape()).collect::<Vec<_>>())?;
                    if self.strings.contains_key(&index) {
                        let message =
                            format!("the padding value of a tensor of {} must be a number", rows[0].dtype());
                        return Err(Error::dtype(message).at(at));
                    }
                    AnyTensor::Numbers(self.pad(index, rows, &target, at)?)
                }
                Leaves::Strings(rows) => {
                    let target = target(&rows.iter().map(StringTensor::shape).collect::<Vec<_>>())?;
                    if self.values.contains_key(&index) {
                        let message = "the padding value of a tensor of strings must be a string";
                        return Err(Error::dtype(message).at(at));
                    }
                    let value = self.strings.get(&index).map_or(&[][..], |value| value);
                    let rows: Vec<&StringTensor> = list_of(rows)?;
                    AnyTensor::Strings(
                        taut_strings::pad_stack(&rows, &target, value).map_err(|error| error.at(at))?,
                    )
                }
            });
        }
        Ok(element::rebuilt(&items[0], padded))
    }
}

impl BatchPadding {
    /// The shape that all tensors of a column are padded to.
    fn target(&self, index: usize, shapes: &[&Shape], first: u64) -> Result<Shape> {
        let rank = shapes[0].rank();
        let open = vec![None; rank];
        let wanted = self.shapes.get(&index).unwrap_or(&open);
        let mut target: Vec<usize> = wanted.iter().map(|dim| dim.unwrap_or(0)).collect();
        for (i, shape) in shapes.iter().enumerate() {
            let invalid = |message: String| Err(at_element(Error::shape(message), first + i as u64));
            if shape.rank() != wanted.len() {
                return invalid(format!("its rank must be {}, got shape {shape}", wanted.len()));
            }
            for (axis, &dim) in shape.iter().enumerate() {
                match wanted[axis] {
                    Some(most) if dim > most => {
                        // As in TensorFlow: elements of other sizes than the program states are bad data.
                        let message = format!("its dimension {axis} must be <= {most}, got shape {shape}");
                        return Err(at_element(Error::new(ErrorKind::Format, message), first + i as u64));
                    }
                    Some(_) => {}
                    None => target[axis] = target[axis].max(dim),
                }
            }
        }
        Ok(target.into())
    }

    fn pad(&self, index: usize, column: &[&Tensor], target: &Shape, at: Location) -> Result<Tensor> {
        let dtype = column[0].dtype();
        let value = self.values.get(&index).copied().unwrap_or(Scalar::from(0));
        if !is_element(value, dtype) {
            let value = value.to_f64();
            return Err(Error::value(format!(
                "the padding value must be representable in {dtype}, got {value}"
            ))
            .at(at));
        }
        let value = value.to_bytes(dtype);
        let mut rows = list_with_capacity(column.len())?;
        for tensor in column {
            rows.push(if tensor.is_contiguous() { Tensor::clone(tensor) } else { tensor.copy()? });
        }
        let each = Spec::new(dtype, target.clone());
        if target.checked_len().and_then(|len| len.checked_mul(dtype.size())).is_none() {
            return Err(Error::shape(format!("the size of shape {target} exceeds the address space")).at(at));
        }
        let all = Spec::new(dtype, target.clone().with_inserted(0, rows.len()));
        Tensor::build(all, Category::Dataset, at, |out| {
            let bytes = each.bytes();
            out.bytes().chunks_exact_mut(value.len()).for_each(|element| element.copy_from_slice(&value));
            if bytes == 0 {
                return;
            }
            for (row, out) in rows.iter().zip(out.bytes().chunks_exact_mut(bytes)) {
                copy_block(row.span().unwrap_or(&[]), row.shape(), out, target);
            }
        })
    }
}

/// Copies a block into the low corner of a larger one, both in row-major order.
fn copy_block(from: &[u8], from_shape: &[usize], to: &mut [u8], to_shape: &[usize]) {
    if from.is_empty() {
        return;
    }
    if from_shape.len() < 2 || from_shape[1..] == to_shape[1..] {
        return to[..from.len()].copy_from_slice(from);
    }
    let (from_row, to_row) = (from.len() / from_shape[0], to.len() / to_shape[0]);
    for (from, to) in from.chunks_exact(from_row).zip(to.chunks_exact_mut(to_row)) {
        copy_block(from, &from_shape[1..], to, &to_shape[1..]);
    }
}
