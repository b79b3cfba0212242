//! The string tensor.

use crate::builder::StringBuilder;
use std::any::Any;
use std::fmt;
use taut_autodiff::Nest;
use taut_autodiff::nest::{Leaf, Static};
use taut_core::{DType, Error, Layout, Result, Shape, Spec, Strides, Tensor};
use taut_memory::Location;

/// An n-dimensional array of byte strings. Clones share memory.
///
/// ```
/// use taut_strings::StringTensor;
/// let names = StringTensor::from_values(["ada", "grace"], [2])?;
/// assert_eq!(names.shape()[..], [2]);
/// assert_eq!(names.row(1)?.to_vec()?, [b"grace".to_vec()]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StringTensor {
    /// `int64`, contiguous, of the shape of the tensor: where each string ends, in row-major order. Arrow's offsets without
    /// the first one.
    ends: Tensor,
    /// `uint8`: the bytes from the start of the first string to the end of the last. So the first string starts at the last
    /// end minus the length, which lets rows share both buffers.
    bytes: Tensor,
}

/// The strings of a tensor as slices.
#[derive(Clone, Copy)]
pub struct StringValues<'a> {
    ends: &'a [i64],
    bytes: &'a [u8],
    base: i64,
}

impl<'a> StringValues<'a> {
    /// The number of strings.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `index` in row-major order; empty beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let start = if index == 0 { self.base } else { self.ends.get(index - 1).copied().unwrap_or(0) };
        let end = self.ends.get(index).copied().unwrap_or(0);
        self.bytes.get((start - self.base) as usize..(end - self.base) as usize).unwrap_or(&[])
    }

    /// All strings in row-major order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let values = *self;
        (0..values.len()).map(move |index| values.get(index))
    }

    /// The number of bytes of all strings.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

impl StringTensor {
    /// A tensor of these strings, in row-major order.
    #[track_caller]
    pub fn from_values<S: AsRef<[u8]>>(
        values: impl IntoIterator<Item = S>,
        shape: impl Into<Shape>,
    ) -> Result<StringTensor> {
        let mut builder = StringBuilder::new(0, 0);
        for value in values {
            builder.push(value.as_ref())?;
        }
        builder.finish(shape)
    }

    /// A scalar.
    #[track_caller]
    pub fn scalar(value: impl AsRef<[u8]>) -> Result<StringTensor> {
        StringTensor::from_values([value], Shape::scalar())
    }

    /// The tensor whose strings end at `ends` (`int64`, of the tensor's shape) in `bytes` (`uint8`, one axis). `bytes` goes
    /// from the start of the first string to the end of the last: Arrow's `LargeBinary`, without its first offset.
    pub fn from_parts(ends: Tensor, bytes: Tensor) -> Result<StringTensor> {
        if ends.dtype() != DType::I64 || bytes.dtype() != DType::U8 || bytes.rank() != 1 {
            let (a, b) = (ends.spec(), bytes.spec());
            return Err(Error::dtype(format!("expected int64 ends and uint8[n] bytes, got {a} and {b}")));
        }
        let made = StringTensor { ends: contiguous(ends)?, bytes: contiguous(bytes)? };
        let values = made.values()?;
        let first = values.base;
        let is_valid = values.ends.is_sorted()
            && values.ends.first().map_or(made.bytes.is_empty(), |&end| end >= first && first >= 0);
        if !is_valid {
            return Err(Error::value("ends must not decrease, and must lie within the bytes"));
        }
        Ok(made)
    }

    /// As [`StringTensor::from_parts`] for parts that come from a string tensor, and are not checked again. Invalid parts make
    /// strings that are empty.
    pub fn from_valid_parts(ends: Tensor, bytes: Tensor) -> StringTensor {
        StringTensor { ends, bytes }
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        self.ends.shape()
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.ends.rank()
    }

    /// The bytes of both buffers that it uses.
    pub fn byte_len(&self) -> usize {
        self.ends.spec().bytes() + self.bytes.len()
    }

    /// The tensors it is made of: ends and bytes.
    pub fn parts(&self) -> [&Tensor; 2] {
        [&self.ends, &self.bytes]
    }

    /// Whether it is part of a graph being traced, and has no value.
    pub fn is_traced(&self) -> bool {
        self.ends.is_traced() || self.bytes.is_traced()
    }

    /// A number that no other string tensor has while this one exists.
    pub fn identity(&self) -> usize {
        self.ends.identity()
    }

    /// The strings.
    pub fn values(&self) -> Result<StringValues<'_>> {
        let ends = self.ends.view()?;
        let bytes = self.bytes.view()?;
        let not_contiguous = || Error::value("the parts of a string tensor must be contiguous");
        let ends = ends.contiguous::<i64>().ok_or_else(not_contiguous)?;
        let bytes = bytes.contiguous::<u8>().ok_or_else(not_contiguous)?;
        let base = ends.last().map_or(0, |last| last - bytes.len() as i64);
        Ok(StringValues { ends, bytes, base })
    }

    /// Copies of the strings, in row-major order.
    pub fn to_vec(&self) -> Result<Vec<Vec<u8>>> {
        Ok(self.values()?.iter().map(<[u8]>::to_vec).collect())
    }

    /// The only string.
    pub fn item(&self) -> Result<&[u8]> {
        if self.len() != 1 {
            return Err(Error::shape(format!("expected exactly one string, got shape {}", self.shape())));
        }
        Ok(self.values()?.get(0))
    }

    /// The same strings under another shape with as many elements, without copying.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<StringTensor> {
        let shape = shape.into();
        if shape.checked_len() != Some(self.len()) {
            let message = format!("shape {shape} must have as many elements as {}", self.shape());
            return Err(Error::shape(message).at(Location::caller()));
        }
        Ok(StringTensor { ends: view(&self.ends, 0, shape)?, bytes: self.bytes.clone() })
    }

    /// Row `index` along the first axis, without copying.
    #[track_caller]
    pub fn row(&self, index: usize) -> Result<StringTensor> {
        let Some(&rows) = self.shape().first() else {
            return Err(Error::shape("expected rank >= 1, got a scalar").at(Location::caller()));
        };
        if index >= rows {
            let message = format!("the row must be in [0, {rows}), got {index}");
            return Err(Error::index(message).at(Location::caller()));
        }
        let shape = self.shape().clone().without(0);
        let first = index * shape.len();
        self.range(first, shape)
    }

    /// The strings from `first` on, in row-major order, that fill a shape; without copying.
    pub(crate) fn range(&self, first: usize, shape: Shape) -> Result<StringTensor> {
        let values = self.values()?;
        let last = first + shape.len();
        let at = |index: usize| if index == 0 { 0 } else { (values.ends[index - 1] - values.base) as usize };
        let (start, end) = (at(first), at(last));
        let bytes = view(&self.bytes, start, Shape::from([end - start]))?;
        Ok(StringTensor { ends: view(&self.ends, first, shape)?, bytes })
    }
}

/// The elements of a contiguous tensor from `first` on, under a shape.
fn view(tensor: &Tensor, first: usize, shape: Shape) -> Result<Tensor> {
    let offset = if shape.is_empty() { 0 } else { first };
    let strides: Strides = shape.strides();
    tensor.with_layout(tensor.dtype(), &Layout { shape, strides, offset })
}

fn contiguous(tensor: Tensor) -> Result<Tensor> {
    if tensor.is_contiguous() { Ok(tensor) } else { tensor.copy() }
}

impl fmt::Debug for StringTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 16;
        write!(f, "string{}", self.shape())?;
        let Ok(values) = self.values() else { return Ok(()) };
        let shown: Vec<String> =
            values.iter().take(MOST).map(|value| format!("{:?}", String::from_utf8_lossy(value))).collect();
        let more = if values.len() > MOST { ", ..." } else { "" };
        write!(f, " [{}{more}]", shown.join(", "))
    }
}

/// Announces a string tensor in a structure: the next two tensors are its ends and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringLeaf;

impl Static for StringLeaf {
    fn same(&self, other: &dyn Any) -> bool {
        other.is::<StringLeaf>()
    }

    fn boxed(&self) -> Box<dyn Static> {
        Box::new(StringLeaf)
    }

    fn hash_value(&self) -> u64 {
        0x5354
    }
}

impl Nest for StringTensor {
    type Owned = StringTensor;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Value(&StringLeaf));
        visit(Leaf::Tensor(&self.ends));
        visit(Leaf::Tensor(&self.bytes));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> StringTensor {
        let ends = tensors.next().unwrap_or_else(|| self.ends.clone());
        let bytes = tensors.next().unwrap_or_else(|| self.bytes.clone());
        StringTensor { ends, bytes }
    }
}

/// The specs of the parts of an empty tensor of this shape.
pub(crate) fn ends_spec(shape: Shape) -> Spec {
    Spec::new(DType::I64, shape)
}
