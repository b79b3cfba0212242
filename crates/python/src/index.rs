//! `x[...]`: positions, slices, masks and lists of positions.

use crate::array::Array;
use crate::call::call;
use crate::convert;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use taut::graph::suspend_tracing;
use taut::{DType, Index, Tensor};

/// What stands in one place of a slicing expression.
enum Place {
    Plain(Index),
    /// One position that is known only when it runs.
    At(Tensor),
    /// Many positions of one axis.
    Many(Tensor),
    /// Which elements of the axes that the mask has.
    Mask(Tensor),
}

/// The part of a tensor that a key names.
pub fn get(slf: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let (py, x) = (slf.py(), slf.get().read()?);
    let places: Vec<Place> = match key.cast::<PyTuple>() {
        Ok(keys) => keys.iter().map(|key| place(&key)).collect::<PyResult<_>>()?,
        Err(_) => vec![place(key)?],
    };
    let plain: Vec<Index> = places
        .iter()
        .map(|place| match place {
            Place::Plain(index) => *index,
            _ => Index::from(..),
        })
        .collect();
    // An ellipsis counts for the axes that are left over; a mask stands for as many as it has.
    let used: usize = places
        .iter()
        .map(|place| match place {
            Place::Plain(Index::Ellipsis | Index::NewAxis) => 0,
            Place::Mask(mask) => mask.rank(),
            _ => 1,
        })
        .sum();
    let rank = x.rank();
    if used > rank {
        let message = format!("{used} indices for a tensor of rank {rank}");
        return Err(PyIndexError::new_err(message));
    }
    let special = places.iter().filter(|place| !matches!(place, Place::Plain(_))).count();
    if special == 0 {
        let known = taut_core::is_tracing() && convert::is_known(&x);
        return call(py, 0, || {
            if known { suspend_tracing(|| taut::slice(x, &plain)) } else { taut::slice(x, &plain) }
        });
    }
    // First what strides can express, with whole axes where something else stands; then that, from the last axis to the first, so
    // that earlier axes keep their numbers.
    let mut expanded = Vec::new();
    let mut at = Vec::new();
    let mut axis = 0isize;
    for (place, plain) in places.iter().zip(plain) {
        match place {
            Place::Plain(Index::Ellipsis) => {
                expanded.extend((0..rank - used).map(|_| Index::from(..)));
                axis += (rank - used) as isize;
            }
            Place::Plain(Index::At(_)) => expanded.push(plain),
            Place::Plain(_) => {
                expanded.push(plain);
                axis += 1;
            }
            Place::Mask(mask) => {
                at.push((axis, place));
                expanded.extend((0..mask.rank()).map(|_| Index::from(..)));
                axis += mask.rank() as isize;
            }
            _ => {
                at.push((axis, place));
                expanded.push(plain);
                axis += 1;
            }
        }
    }
    if at.iter().filter(|(_, place)| !matches!(place, Place::At(_))).count() > 1 {
        return Err(PyIndexError::new_err(
            "several lists of positions in one index: use tf.gather_nd, which says how they go together",
        ));
    }
    call(py, x.spec().bytes(), || {
        let mut x = taut::slice(x, &expanded)?;
        for (axis, place) in at.into_iter().rev() {
            x = match place {
                Place::At(position) => taut::gather(x, wrapped(position)?, axis, 0)?,
                Place::Many(positions) => taut::gather(x, wrapped(positions)?, axis, 0)?,
                Place::Mask(mask) => taut::boolean_mask(x, mask, axis)?,
                Place::Plain(_) => x,
            };
        }
        Ok(x)
    })
}

/// Positions of at least 32 bits.
fn wrapped(positions: &Tensor) -> taut::Result<Tensor> {
    match positions.dtype() {
        DType::I32 | DType::I64 => Ok(positions.clone()),
        _ => taut::cast(positions, DType::I64),
    }
}

fn place(key: &Bound<'_, PyAny>) -> PyResult<Place> {
    if key.is_none() {
        return Ok(Place::Plain(Index::NewAxis));
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(Place::Plain(Index::Ellipsis));
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
        return Ok(Place::Plain(Index::Range { start, end, step }));
    }
    if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
        return Ok(Place::Plain(Index::At(key.extract::<isize>()?)));
    }
    let tensor = convert::tensor(key).map_err(|_| {
        let kind = key.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "a {kind} is no index; integers, slices, ..., None, masks and lists of positions are"
        ))
    })?;
    match (tensor.dtype(), tensor.rank()) {
        (DType::Bool, _) => Ok(Place::Mask(tensor)),
        (dtype, _) if !dtype.is_integer() => {
            Err(PyTypeError::new_err(format!("a {} is no index", tensor.spec())))
        }
        (_, 0) if !tensor.is_traced() => Ok(Place::Plain(Index::At(convert::int(key)? as isize))),
        (_, 0) => Ok(Place::At(tensor)),
        _ => Ok(Place::Many(tensor)),
    }
}
