//! `padded_batch`: elements of several sizes as one.

use crate::dataset::Dataset;
use crate::item::{Item, is_element};
use crate::stages::at_element;
use crate::stages::batch::{Join, leaves};
use std::collections::BTreeMap;
use taut_core::{Error, Result, Scalar, Shape, Spec, Tensor};
use taut_memory::{Category, Location};

/// How elements are filled up to one shape. By default each dimension becomes that of the largest element of the batch, and
/// zeros are put at the end.
///
/// The tensors of an element are numbered from 0, front to back.
///
/// ```
/// use taut_data::Padding;
/// // The first tensor to 8 columns and as many rows as needed, with -1.
/// let padding = Padding::default().shape(0, [None, Some(8)]).value(0, -1);
/// # let _ = padding;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Padding {
    shapes: BTreeMap<usize, Vec<Option<usize>>>,
    values: BTreeMap<usize, Scalar>,
    drop_remainder: bool,
}

impl Padding {
    /// The shape that tensor `index` of each element becomes; `None` is the largest in the batch.
    #[must_use]
    pub fn shape(mut self, index: usize, shape: impl Into<Vec<Option<usize>>>) -> Padding {
        self.shapes.insert(index, shape.into());
        self
    }

    /// What tensor `index` of each element is filled up with: a value that its type can hold.
    #[must_use]
    pub fn value(mut self, index: usize, value: impl Into<Scalar>) -> Padding {
        self.values.insert(index, value.into());
        self
    }

    /// No smaller batch at the end.
    #[must_use]
    pub fn drop_remainder(mut self) -> Padding {
        self.drop_remainder = true;
        self
    }
}

impl<T: Item> Dataset<T> {
    /// Every `size` elements as one, each filled up to a common shape.
    ///
    /// ```
    /// use taut_core::ops::creation::ones;
    /// use taut_core::DType;
    /// use taut_data::{Dataset, Padding};
    /// let ragged = Dataset::range(1..4).map(|n| ones([n.item::<i64>()? as usize], DType::U8));
    /// let batch = ragged.padded_batch(3, Padding::default())?.iter()?.next().unwrap()?;
    /// assert_eq!(batch.to_vec::<u8>()?, [1, 0, 0, 1, 1, 0, 1, 1, 1]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn padded_batch(&self, size: usize, padding: Padding) -> Result<Dataset<T>> {
        let exact = padding.drop_remainder;
        self.grouped("padded_batch", size, exact, padding)
    }
}

impl<T: Item> Join<T> for Padding {
    fn join(&self, items: &[T], first: u64, at: Location) -> Result<T> {
        let columns = leaves(items, first, at)?;
        let named = self.shapes.keys().chain(self.values.keys());
        if let Some(unknown) = named.filter(|&&index| index >= columns.len()).min() {
            let message =
                format!("there is no tensor {unknown} to pad in elements of {} tensors", columns.len());
            return Err(Error::value(message).at(at));
        }
        let mut padded = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            let target = self.target(index, column, first).map_err(|error| error.at(at))?;
            padded.push(self.pad(index, column, &target, at)?);
        }
        Ok(items[0].rebuild(&mut padded.into_iter()))
    }
}

impl Padding {
    /// The shape that all tensors of a column become.
    fn target(&self, index: usize, column: &[&Tensor], first: u64) -> Result<Shape> {
        let rank = column[0].rank();
        let open = vec![None; rank];
        let wanted = self.shapes.get(&index).unwrap_or(&open);
        let mut target: Vec<usize> = wanted.iter().map(|dim| dim.unwrap_or(0)).collect();
        for (i, tensor) in column.iter().enumerate() {
            let shape = tensor.shape();
            let refuse = |what: String| Err(at_element(Error::shape(what), first + i as u64));
            if shape.rank() != wanted.len() {
                return refuse(format!(
                    "shape {shape} has not the {} dimensions that are padded",
                    wanted.len()
                ));
            }
            for (axis, &dim) in shape.iter().enumerate() {
                match wanted[axis] {
                    Some(most) if dim > most => {
                        return refuse(format!("shape {shape} is larger than {most} along axis {axis}"));
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
            return Err(Error::value(format!("{} does not fit into {dtype}", value.to_f64())).at(at));
        }
        let value = value.to_bytes(dtype);
        let mut rows = Vec::with_capacity(column.len());
        for tensor in column {
            rows.push(if tensor.is_contiguous() { Tensor::clone(tensor) } else { tensor.copy()? });
        }
        let each = Spec::new(dtype, target.clone());
        if target.checked_len().and_then(|len| len.checked_mul(dtype.size())).is_none() {
            return Err(
                Error::shape(format!("shape {target} has more elements than memory has addresses")).at(at)
            );
        }
        let all = Spec::new(dtype, target.clone().with_inserted(0, rows.len()));
        Tensor::build(all, Category::Dataset, at, |out| {
            let bytes = each.bytes();
            out.bytes().chunks_exact_mut(value.len()).for_each(|element| element.copy_from_slice(&value));
            if bytes == 0 {
                return;
            }
            for (row, out) in rows.iter().zip(out.bytes().chunks_exact_mut(bytes)) {
                place(row.span().unwrap_or(&[]), row.shape(), out, target);
            }
        })
    }
}

/// Puts a block into the low corner of a larger one, both in row-major order.
fn place(from: &[u8], from_shape: &[usize], to: &mut [u8], to_shape: &[usize]) {
    if from.is_empty() {
        return;
    }
    if from_shape.len() < 2 || from_shape[1..] == to_shape[1..] {
        return to[..from.len()].copy_from_slice(from);
    }
    let (from_row, to_row) = (from.len() / from_shape[0], to.len() / to_shape[0]);
    for (from, to) in from.chunks_exact(from_row).zip(to.chunks_exact_mut(to_row)) {
        place(from, &from_shape[1..], to, &to_shape[1..]);
    }
}
