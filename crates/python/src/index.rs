//! Subscripts `x[...]`: integers, slices, masks and arrays of indices.

use crate::array::Array;
use crate::call::call;
use crate::convert;
use crate::error::of_class;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use taut::graph::suspend_tracing;
use taut::{DType, Index, Shape, Tensor};

/// One entry of a subscript.
enum Subscript {
    /// An entry that strides can express.
    Strided(Index),
    /// One index that is a traced tensor.
    At(Tensor),
    /// Several indices along one axis.
    Many(Tensor),
    /// A mask over as many axes as it has.
    Mask(Tensor),
}

/// The part of a tensor that a subscript selects.
pub fn get(slf: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let (py, x) = (slf.py(), slf.get().read()?);
    let axes = key.cast_exact::<PyList>().ok().filter(|list| list.iter().all(|part| selects_one_axis(&part)));
    let listed = axes.is_some();
    let entries: Vec<Subscript> = match (key.cast::<PyTuple>(), axes) {
        (Ok(keys), _) => keys.iter().map(|key| subscript(&key)).collect::<PyResult<_>>()?,
        (_, Some(keys)) => keys.iter().map(|key| subscript(&key)).collect::<PyResult<_>>()?,
        _ => vec![subscript(key)?],
    };
    let plain: Vec<Index> = entries
        .iter()
        .map(|entry| match entry {
            Subscript::Strided(index) => *index,
            _ => Index::from(..),
        })
        .collect();
    // An ellipsis takes the remaining axes; a mask takes as many as it has.
    let used: usize = entries
        .iter()
        .map(|entry| match entry {
            Subscript::Strided(Index::Ellipsis | Index::NewAxis) => 0,
            Subscript::Mask(mask) => mask.rank(),
            _ => 1,
        })
        .sum();
    let rank = x.rank();
    if used > rank {
        let help = if listed {
            "\n  help: a list holds one index for each axis; tf.gather selects rows"
        } else {
            ""
        };
        let message = format!("too many indices: the tensor has rank {rank}, got {used}{help}");
        return Err(of_class(py, "InvalidIndexError", message));
    }
    let special = entries.iter().filter(|entry| !matches!(entry, Subscript::Strided(_))).count();
    if special == 0 {
        let is_static = taut_core::is_tracing() && convert::is_static(&x);
        return call(py, 0, || {
            if is_static { suspend_tracing(|| taut::slice(x, &plain)) } else { taut::slice(x, &plain) }
        });
    }
    // First the entries that strides can express, with the other axes whole; then the others from the last axis to the first, so
    // that earlier axes keep their numbers.
    let mut expanded = Vec::new();
    let mut at = Vec::new();
    let mut axis = 0isize;
    for (entry, plain) in entries.iter().zip(plain) {
        match entry {
            Subscript::Strided(Index::Ellipsis) => {
                expanded.extend((0..rank - used).map(|_| Index::from(..)));
                axis += (rank - used) as isize;
            }
            Subscript::Strided(Index::At(_)) => expanded.push(plain),
            Subscript::Strided(_) => {
                expanded.push(plain);
                axis += 1;
            }
            Subscript::Mask(mask) => {
                at.push((axis, entry));
                expanded.extend((0..mask.rank()).map(|_| Index::from(..)));
                axis += mask.rank() as isize;
            }
            _ => {
                at.push((axis, entry));
                expanded.push(plain);
                axis += 1;
            }
        }
    }
    let several = at.iter().filter(|(_, entry)| !matches!(entry, Subscript::At(_))).count() > 1;
    let first_axes: Option<Vec<&Tensor>> = (0..)
        .zip(&at)
        .map(|(place, (axis, entry))| match entry {
            Subscript::At(positions) | Subscript::Many(positions) if *axis == place => Some(positions),
            _ => None,
        })
        .collect();
    if several && first_axes.is_none() {
        return Err(PyIndexError::new_err(
            "several arrays of indices in a subscript must be those of the first axes, without masks: use tf.gather_nd instead",
        ));
    }
    let is_range =
        |entry: &Subscript| matches!(entry, Subscript::Strided(Index::Range { .. } | Index::Ellipsis));
    let only_ranges = entries.iter().all(|entry| is_range(entry) || matches!(entry, Subscript::At(_)));
    let sliced = |x: Tensor, indices: &[Index]| {
        if indices.iter().all(|index| *index == Index::from(..)) { Ok(x) } else { taut::slice(x, indices) }
    };
    call(py, x.spec().bytes(), || {
        if only_ranges {
            // Beside ranges, single positions come first: the gradient then adds to what they select, not to all of the range.
            let mut x = x;
            for &(axis, entry) in at.iter().rev() {
                let Subscript::At(position) = entry else { continue };
                x = taut::gather(x, widened(position)?, axis, 0)?;
                expanded.remove(axis as usize);
            }
            return sliced(x, &expanded);
        }
        let mut x = sliced(x, &expanded)?;
        if several && let Some(positions) = first_axes {
            return gather_points(x, &positions);
        }
        for (axis, entry) in at.into_iter().rev() {
            x = match entry {
                Subscript::At(position) => taut::gather(x, widened(position)?, axis, 0)?,
                Subscript::Many(positions) => taut::gather(x, widened(positions)?, axis, 0)?,
                // A single boolean selects all or nothing, along an axis of its own.
                Subscript::Mask(mask) if mask.rank() == 0 => {
                    taut::boolean_mask(taut::expand_dims(x, axis)?, taut::expand_dims(mask, 0)?, axis)?
                }
                Subscript::Mask(mask) => taut::boolean_mask(x, mask, axis)?,
                Subscript::Strided(_) => x,
            };
        }
        Ok(x)
    })
}

/// The elements at points of the first axes, one list of coordinates for each axis. The lists are broadcast, as in NumPy.
fn gather_points(x: Tensor, positions: &[&Tensor]) -> taut::Result<Tensor> {
    let shape = positions.iter().try_fold(Shape::from([]), |shape, one| shape.broadcast(one.shape()))?;
    let points: Vec<Tensor> = positions
        .iter()
        .map(|&one| taut::broadcast_to(taut::cast(one, DType::I64)?, shape.clone()))
        .collect::<taut::Result<_>>()?;
    taut::gather_nd(x, taut::stack(&points, -1)?, 0)
}

/// Indices of at least 32 bits.
fn widened(positions: &Tensor) -> taut::Result<Tensor> {
    match positions.dtype() {
        DType::I32 | DType::I64 => Ok(positions.clone()),
        _ => taut::cast(positions, DType::I64),
    }
}

/// Whether it is an integer, a slice, `...`, None or a tensor of one integer: a list of these is read as a tuple of them, as in
/// TensorFlow. Other lists are masks or positions along one axis.
fn selects_one_axis(key: &Bound<'_, PyAny>) -> bool {
    let is_integer = || key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>();
    let is_scalar = || {
        key.cast::<Array>().is_ok_and(|array| {
            let spec = array.get().spec();
            spec.shape.rank() == 0 && spec.dtype.is_integer()
        })
    };
    key.is_none()
        || key.is_instance_of::<PyEllipsis>()
        || key.is_instance_of::<PySlice>()
        || is_integer()
        || is_scalar()
}

fn subscript(key: &Bound<'_, PyAny>) -> PyResult<Subscript> {
    if key.is_none() {
        return Ok(Subscript::Strided(Index::NewAxis));
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(Subscript::Strided(Index::Ellipsis));
    }
    if let Ok(slice) = key.cast::<PySlice>() {
        let py = key.py();
        let bound = |name: &Bound<'_, pyo3::types::PyString>| -> PyResult<Option<isize>> {
            let value = slice.getattr(name)?;
            if value.is_none() { Ok(None) } else { convert::int(&value).map(|value| Some(value as isize)) }
        };
        let start = bound(pyo3::intern!(py, "start"))?;
        let end = bound(pyo3::intern!(py, "stop"))?;
        let step = bound(pyo3::intern!(py, "step"))?.unwrap_or(1);
        return Ok(Subscript::Strided(Index::Range { start, end, step }));
    }
    if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
        return Ok(Subscript::Strided(Index::At(key.extract::<isize>()?)));
    }
    let tensor = convert::tensor(key).map_err(|_| {
        let kind = key.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "expected integers, slices, `...`, None, masks or arrays of indices as a subscript, got {kind}"
        ))
    })?;
    match (tensor.dtype(), tensor.rank()) {
        (DType::Bool, _) => Ok(Subscript::Mask(tensor)),
        (dtype, _) if !dtype.is_integer() => {
            Err(PyTypeError::new_err(format!("indices must be integers or booleans, got {}", tensor.spec())))
        }
        (_, 0) if !tensor.is_traced() => Ok(Subscript::Strided(Index::At(convert::int(key)? as isize))),
        (_, 0) => Ok(Subscript::At(tensor)),
        _ => Ok(Subscript::Many(tensor)),
    }
}
