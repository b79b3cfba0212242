//! Elements of datasets.

use std::any::Any;
use taut_autodiff::Nest;
use taut_autodiff::nest::Leaf;
pub(crate) use taut_autodiff::nest::tensors;
use taut_core::{DType, Error, Layout, Result, Scalar, Shape, Tensor};
use taut_strings::{StringLeaf, StringTensor};

/// An element of a dataset: a tensor, or a tuple, list or map of tensors and plain values.
pub trait DatasetElement: Nest<Owned = Self> + Clone + Send + Sync + 'static {}

impl<T: Nest<Owned = T> + Clone + Send + Sync + 'static> DatasetElement for T {}

/// A tensor of an element.
pub(crate) enum Column<'a> {
    Numbers(&'a Tensor),
    Strings(StringTensor),
}

impl Column<'_> {
    fn shape(&self) -> &Shape {
        match self {
            Column::Numbers(tensor) => tensor.shape(),
            Column::Strings(strings) => strings.shape(),
        }
    }

    fn description(&self) -> String {
        match self {
            Column::Numbers(tensor) => tensor.spec().to_string(),
            Column::Strings(strings) => format!("string{}", strings.shape()),
        }
    }

    fn is_traced(&self) -> bool {
        match self {
            Column::Numbers(tensor) => tensor.is_traced(),
            Column::Strings(strings) => strings.is_traced(),
        }
    }
}

/// The tensors of an element, in order. A string tensor, which has two parts, is one of them.
pub(crate) fn columns<T: DatasetElement>(item: &T) -> Vec<Column<'_>> {
    let (mut found, mut parts) = (Vec::new(), None);
    item.leaves(&mut |leaf| match leaf {
        Leaf::Value(value) if (value as &dyn Any).is::<StringLeaf>() => parts = Some(None),
        Leaf::Tensor(tensor) => match parts.take() {
            None => found.push(Column::Numbers(tensor)),
            Some(None) => parts = Some(Some(tensor)),
            Some(Some(ends)) => {
                let strings = StringTensor::from_valid_parts(Tensor::clone(ends), tensor.clone());
                found.push(Column::Strings(strings));
            }
        },
        _ => {}
    });
    found
}

/// The element with these tensors in place of its own.
pub(crate) fn rebuilt<T: DatasetElement>(item: &T, columns: Vec<AnyTensor>) -> T {
    let mut tensors = Vec::with_capacity(columns.len());
    for column in columns {
        match column {
            AnyTensor::Numbers(tensor) => tensors.push(tensor),
            AnyTensor::Strings(strings) => tensors.extend(strings.parts().map(Tensor::clone)),
        }
    }
    item.rebuild(&mut tensors.into_iter())
}

/// A tensor of numbers or of strings: a column of a table.
#[derive(Clone, Debug)]
pub enum AnyTensor {
    /// Numbers.
    Numbers(Tensor),
    /// Strings.
    Strings(StringTensor),
}

impl AnyTensor {
    /// The tensor of numbers; an error if these are strings.
    pub fn numbers(&self) -> Result<&Tensor> {
        match self {
            AnyTensor::Numbers(tensor) => Ok(tensor),
            AnyTensor::Strings(strings) => {
                Err(Error::dtype(format!("expected numbers, got string{}", strings.shape())))
            }
        }
    }

    /// The tensor of strings; an error if these are numbers.
    pub fn strings(&self) -> Result<&StringTensor> {
        match self {
            AnyTensor::Strings(strings) => Ok(strings),
            AnyTensor::Numbers(tensor) => {
                Err(Error::dtype(format!("expected strings, got {}", tensor.spec())))
            }
        }
    }
}

impl Nest for AnyTensor {
    type Owned = AnyTensor;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        match self {
            AnyTensor::Numbers(tensor) => tensor.leaves(visit),
            AnyTensor::Strings(strings) => strings.leaves(visit),
        }
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> AnyTensor {
        match self {
            AnyTensor::Numbers(tensor) => AnyTensor::Numbers(tensor.rebuild(tensors)),
            AnyTensor::Strings(strings) => AnyTensor::Strings(strings.rebuild(tensors)),
        }
    }
}

/// What a tensor in a buffer takes beside its elements, in bytes: its handle, its slot, and the rounding of a small block. Measured
/// with a buffer of a million scalars; a buffer of scalars would otherwise take fifty times its size.
pub(crate) const HANDLE_BYTES: usize = 400;

/// The bytes of an element in a buffer: those of its tensors and of their handles. A view counts its own elements, not its base.
pub(crate) fn bytes<T: DatasetElement>(item: &T) -> usize {
    let mut sum = 0;
    item.leaves(&mut |leaf| {
        if let Leaf::Tensor(tensor) = leaf {
            // Elements repeated by a stride of zero count once.
            sum += HANDLE_BYTES + tensor.span().map_or(0, |span| span.len().min(tensor.spec().bytes()));
        }
    });
    sum
}

/// Whether two elements have the same structure: equal names, counts, and plain values; any tensors.
pub(crate) fn is_alike<T: DatasetElement>(a: &T, b: &T) -> bool {
    let mut parts = Vec::new();
    a.leaves(&mut |leaf| parts.push(leaf));
    let (mut alike, mut at) = (true, 0);
    b.leaves(&mut |leaf| {
        alike &= match (parts.get(at), leaf) {
            (Some(Leaf::Tensor(_)), Leaf::Tensor(_)) => true,
            (Some(Leaf::Variable(a)), Leaf::Variable(b))
            | (Some(Leaf::BoundVariable(a)), Leaf::BoundVariable(b)) => a.id() == b.id(),
            (Some(Leaf::Value(a)), Leaf::Value(b)) => a.same(b as &dyn Any),
            (Some(Leaf::Parts(a)), Leaf::Parts(b)) => *a == b,
            (Some(Leaf::Name(a)), Leaf::Name(b)) => *a == b,
            _ => false,
        };
        at += 1;
    });
    alike && at == parts.len()
}

/// Row `row` of a tensor, without copying: the same memory under another layout.
pub(crate) fn row(tensor: &Tensor, row: usize) -> Result<Tensor> {
    let mut layout: Layout = tensor.layout();
    // Offsets count from the lowest element in memory, which is not the first one if strides are negative.
    let reach = layout.shape.iter().zip(&layout.strides);
    let below: isize =
        reach.filter(|(_, stride)| **stride < 0).map(|(&dim, &stride)| (1 - dim as isize) * stride).sum();
    let stride = layout.strides.remove(0);
    layout.shape = layout.shape.without(0);
    layout.offset = if tensor.is_empty() { 0 } else { (below + row as isize * stride) as usize };
    tensor.with_layout(tensor.dtype(), &layout)
}

/// The number of rows of all tensors of an element: their common first dimension.
pub(crate) fn rows<T: DatasetElement>(item: &T) -> Result<usize> {
    let all = columns(item);
    let Some(first) = all.first() else {
        return Err(Error::shape("expected at least one tensor to slice into rows, got none"));
    };
    for column in &all {
        if column.is_traced() {
            let message =
                format!("expected a tensor with values, got {}, which is being traced", column.description());
            return Err(Error::new(taut_core::ErrorKind::Graph, message));
        }
        if column.shape().rank() == 0 {
            return Err(Error::shape(format!("expected rank >= 1, got {}", column.description()))
                .help("rows are along the first axis; from_tensors makes one element of the tensor"));
        }
        if column.shape()[0] != first.shape()[0] {
            let (a, b) = (first.shape(), column.shape());
            return Err(Error::shape(format!("the first dimensions must be equal, got shapes {a} and {b}")));
        }
    }
    Ok(first.shape()[0])
}

/// The element of row `index` of each tensor of `item`.
pub(crate) fn row_of<T: DatasetElement>(item: &T, index: usize) -> Result<T> {
    let row_of_column = |column: Column<'_>| match column {
        Column::Numbers(tensor) => row(tensor, index).map(AnyTensor::Numbers),
        Column::Strings(strings) => strings.row(index).map(AnyTensor::Strings),
    };
    let made: Result<Vec<AnyTensor>> = columns(item).into_iter().map(row_of_column).collect();
    Ok(rebuilt(item, made?))
}

/// Whether all rows of an element's tensors have the same number of bytes: strings do not.
pub(crate) fn has_uniform_rows<T: DatasetElement>(item: &T) -> bool {
    columns(item).iter().all(|column| matches!(column, Column::Numbers(_)))
}

/// Whether a value is representable in this type: integers allow no fraction, no NaN and nothing beyond their range,
/// booleans allow 0 and 1, floats allow every number.
pub(crate) fn is_element(value: Scalar, dtype: DType) -> bool {
    if dtype == DType::Bool {
        return [0.0, 1.0].contains(&value.to_f64());
    }
    let Scalar::Float(float) = value else {
        return value.fits(dtype);
    };
    // A float out of range, or NaN, does not survive the conversion to an integer and back.
    let whole = float as i128;
    let integer =
        || i64::try_from(whole).map(Scalar::Int).or_else(|_| u64::try_from(whole).map(Scalar::Uint));
    dtype.is_float() || whole as f64 == float && integer().is_ok_and(|value| value.fits(dtype))
}

/// A copy of an error, for an element that is returned more than once.
pub(crate) fn copy_error(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    let copy = if let Some(op) = error.op() { copy.in_op(op, error.inputs()) } else { copy };
    if let Some(line) = error.location() { copy.at(line) } else { copy }
}

#[cfg(test)]
mod tests {
    use super::is_element;
    use taut_core::{DType, Scalar};

    #[test]
    fn representable_values() {
        let cases = [
            (Scalar::Float(2.0), DType::I32, true),
            (Scalar::Float(2.5), DType::I32, false),
            (Scalar::Float(f64::NAN), DType::I64, false),
            (Scalar::Float(f64::INFINITY), DType::U64, false),
            (Scalar::Float(-1.0), DType::U8, false),
            (Scalar::Float(256.0), DType::U8, false),
            (Scalar::Float(2f64.powi(63)), DType::I64, false),
            (Scalar::Float(2f64.powi(63)), DType::U64, true),
            (Scalar::Float(-2f64.powi(63)), DType::I64, true),
            (Scalar::Float(f64::NAN), DType::F16, true),
            (Scalar::Int(300), DType::I8, false),
            (Scalar::Int(1), DType::Bool, true),
            (Scalar::Float(0.5), DType::Bool, false),
            (Scalar::Bool(true), DType::I64, true),
        ];
        for (value, dtype, holds) in cases {
            assert_eq!(is_element(value, dtype), holds, "{value:?} as {dtype}");
        }
    }
}
