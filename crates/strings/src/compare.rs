//! Comparisons and distinct values.

use crate::builder::StringBuilder;
use crate::tensor::StringTensor;
use std::collections::HashMap;
use taut_core::{Bool, DType, Error, ErrorKind, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Category, Location, list_with_capacity, reserve};

/// An order relation of two strings, byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
}

impl Comparison {
    #[inline]
    fn holds(self, a: &[u8], b: &[u8]) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterEqual => a >= b,
        }
    }
}

/// Compares strings elementwise, with NumPy's broadcasting.
#[track_caller]
pub fn compare(a: &StringTensor, b: &StringTensor, comparison: Comparison) -> Result<Tensor> {
    let at = source_location(Location::caller());
    let shape = broadcast(a.shape(), b.shape()).map_err(|error| error.at(at))?;
    let (x, y) = (a.values()?, b.values()?);
    let (i, j) = (Positions::new(a.shape(), &shape), Positions::new(b.shape(), &shape));
    Tensor::build(Spec::new(DType::Bool, shape), Category::Tensor, at, |out| {
        for ((out, i), j) in out.slice::<Bool>().iter_mut().zip(i).zip(j) {
            *out = comparison.holds(x.get(i), y.get(j)).into();
        }
    })
}

/// The shape that two shapes broadcast to.
pub(crate) fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    let rank = a.rank().max(b.rank());
    let dim =
        |shape: &Shape, axis: usize| (axis + shape.rank()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        dims.push(match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return Err(Error::shape(format!("shapes must broadcast, got {a} and {b}"))),
        });
    }
    Ok(dims.into())
}

/// For each element of a shape, in row-major order, the index of the element of a tensor that is broadcast to it.
pub(crate) struct Positions {
    dims: Vec<usize>,
    strides: Vec<usize>,
    counter: Vec<usize>,
    position: usize,
}

impl Positions {
    pub(crate) fn new(from: &Shape, to: &Shape) -> Positions {
        let missing = to.rank() - from.rank();
        let own = from.strides();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(axis) if from[axis] != 1 => own[axis] as usize,
            _ => 0,
        };
        let strides = (0..to.rank()).map(stride).collect();
        Positions { dims: to.to_vec(), strides, counter: vec![0; to.rank()], position: 0 }
    }
}

impl Iterator for Positions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let here = self.position;
        for axis in (0..self.dims.len()).rev() {
            self.counter[axis] += 1;
            self.position += self.strides[axis];
            if self.counter[axis] < self.dims[axis] {
                break;
            }
            self.position -= self.strides[axis] * self.dims[axis];
            self.counter[axis] = 0;
        }
        Some(here)
    }
}

/// The distinct strings of a vector in the order of their first occurrence; for each string, the index of its distinct one;
/// and how often each occurs. Both are `int64`.
#[track_caller]
pub fn unique(x: &StringTensor) -> Result<(StringTensor, Tensor, Tensor)> {
    let values = x.values()?;
    let mut found: HashMap<&[u8], i64> = HashMap::new();
    let no_memory =
        || Error::new(ErrorKind::OutOfMemory, format!("no memory for a table of {} strings", values.len()));
    let mut distinct = StringBuilder::new(0, 0);
    let (mut indices, mut counts): (Vec<i64>, Vec<i64>) = (list_with_capacity(values.len())?, Vec::new());
    for value in values.iter() {
        let next = counts.len() as i64;
        found.try_reserve(1).map_err(|_| no_memory())?;
        let index = *found.entry(value).or_insert(next);
        if index == next {
            distinct.push(value)?;
            reserve(&mut counts, 1)?;
            counts.push(0);
        }
        counts[index as usize] += 1;
        indices.push(index);
    }
    let (n, k) = (indices.len(), counts.len());
    Ok((distinct.finish_vector()?, Tensor::from_vec(indices, [n])?, Tensor::from_vec(counts, [k])?))
}
