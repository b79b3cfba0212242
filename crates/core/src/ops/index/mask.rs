//! Selection by a condition.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::TracingSuspension;
use crate::op::{Op, Spec, Specs};
use crate::ops::index::gather_dense;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::reshape;
use crate::ops::unary::cast;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor, apply};
use taut_kernels::denormals::FlushDenormals;
use taut_kernels::{Arg, ViewMut, index};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Nonzero {
    count: usize,
}

impl Op for Nonzero {
    fn name(&self) -> &'static str {
        "nonzero"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(Spec::new(DType::I64, [self.count, inputs[0].shape.rank()]).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::nonzero(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }

    fn attributes(&self) -> String {
        format!("count={}", self.count)
    }
}

/// The coordinates of the nonzero elements in row-major order: `int64` of shape `[count, rank]`. NaN counts as nonzero.
///
/// ```
/// use taut_core::{Tensor, ops::index::nonzero};
/// let x = Tensor::from_slice(&[0, 7, 7, 0], [2, 2])?;
/// assert_eq!(nonzero(&x)?.to_vec::<i64>()?, [0, 1, 1, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn nonzero(x: impl Into<Tensor>) -> Result<Tensor> {
    let (mut x, at) = (x.into(), Location::caller());
    if x.dtype().is_complex() {
        x = cast(x, DType::Bool)?;
    }
    let view = if x.is_traced() { Err(Error::dynamic_shape(x.spec())) } else { x.view() };
    let view = view.map_err(|error| error.in_op("nonzero", [x.spec()]).at(at))?;
    let count = {
        // As the kernel, for which denormal numbers are zeros.
        let _mode = FlushDenormals::new();
        index::count_nonzero(view)
    };
    apply(&Nonzero { count }, [x])
}

/// Selects the slices of a tensor where `mask` is true. The mask's shape equals the tensor's dimensions from `axis` on,
/// which become one axis.
#[track_caller]
pub fn boolean_mask(tensor: impl Into<Tensor>, mask: impl Into<Tensor>, axis: isize) -> Result<Tensor> {
    let (tensor, mask, at) = (tensor.into(), mask.into(), Location::caller());
    let axis = check_mask(&tensor, &mask, axis)
        .map_err(|error| error.in_op("boolean_mask", [tensor.spec(), mask.spec()]).at(at))?;
    // All dimensions are explicit: -1 cannot be inferred if there are no elements.
    let shape = tensor.shape();
    let merged = [&shape[..axis], &[mask.len()], &shape[axis + mask.rank()..]].concat();
    let merged: Vec<isize> = merged.into_iter().map(|dim| dim as isize).collect();
    // A mask whose value is known selects known positions, also while tracing.
    let suspended = (!mask.is_traced()).then(TracingSuspension::enter);
    let found = nonzero(reshape(&mask, &[mask.len() as isize])?)?;
    let indices = reshape(&found, &[found.len() as isize])?;
    drop(suspended);
    gather_dense(reshape(tensor, &merged)?, indices, axis as isize)
}

fn check_mask(tensor: &Tensor, mask: &Tensor, axis: isize) -> Result<usize> {
    if mask.dtype() != DType::Bool {
        let error = Error::dtype(format!("mask must be bool, got {}", mask.dtype()));
        return Err(error.help("use a comparison"));
    }
    if mask.rank() == 0 {
        return Err(Error::shape("mask must have rank >= 1, got a scalar"));
    }
    let axis = tensor.shape().axis(axis)?;
    if !tensor.shape()[axis..].starts_with(mask.shape()) {
        let (shape, mask) = (tensor.shape(), mask.shape());
        let message =
            format!("mask must have the dimensions of shape {shape} from axis {axis} on, got shape {mask}");
        return Err(Error::shape(message));
    }
    Ok(axis)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "nonzero",
        Param::X,
        |a| one(nonzero(a.tensor(0)?)),
        Reference::Numpy("np.argwhere(x)"),
        Samples::Unary(dtypes::EVERY, -2.0, 2.0),
    )
    .with_data_dependent_shape(),
    OpEntry::new(
        "boolean_mask",
        &[Param::tensor("tensor"), Param::tensor("mask"), Param::optional("axis", ParamKind::Int, "0")],
        |a| one(boolean_mask(a.tensor(0)?, a.tensor(1)?, a.int_or(2)?.unwrap_or(0) as isize)),
        Reference::Numpy("tensor[(slice(None),) * (axis % tensor.ndim) + (mask,)]"),
        Samples::List(|| {
            let cases: [(&[usize], &[usize], i64); 8] = [
                (&[5], &[5], 0),
                (&[1], &[1], -1),
                (&[0], &[0], 0),
                (&[3, 4], &[3], 0),
                (&[3, 4], &[4], 1),
                (&[3, 4], &[3, 4], 0),
                (&[2, 3, 4], &[3, 4], -2),
                (&[2, 0, 4], &[0], 1),
            ];
            let with = |dtype| {
                cases.map(|(x, mask, axis)| {
                    vec![ramp(dtype, x, -9.0, 9.0), ramp(DType::Bool, mask, 0.0, 1.0), ArgValue::Int(axis)]
                })
            };
            let mut list: Vec<_> = dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect();
            // Explicit masks: the generated boolean samples alternate.
            let x = || ramp(DType::F32, &[2, 2], -9.0, 9.0);
            let constant = |values: &[bool]| {
                ArgValue::Tensor(Tensor::from_slice(values, [values.len()]).expect("samples are small"))
            };
            list.push(vec![x(), constant(&[false, false]), ArgValue::Int(0)]);
            list.push(vec![x(), constant(&[true, true]), ArgValue::Int(1)]);
            list
        }),
    )
    .refuses(|| {
        let bad = |x: &[usize], mask: ArgValue, axis, kind, message| {
            InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), mask, ArgValue::Int(axis)], kind, message)
        };
        let mask = |shape: &[usize]| ramp(DType::Bool, shape, 0.0, 1.0);
        vec![
            bad(&[2], of(DType::U8, &[2], &[0.0, 1.0]), 0, ErrorKind::DType, "mask must be bool, got uint8"),
            bad(&[2], mask(&[]), 0, ErrorKind::Shape, "mask must have rank >= 1, got a scalar"),
            bad(
                &[2, 3],
                mask(&[3]),
                0,
                ErrorKind::Shape,
                "the dimensions of shape [2, 3] from axis 0 on, got shape [3]",
            ),
            bad(&[2], mask(&[2, 1]), 0, ErrorKind::Shape, "from axis 0 on, got shape [2, 1]"),
            bad(&[2], mask(&[2]), 1, ErrorKind::Axis, "got 1"),
        ]
    })
    .with_data_dependent_shape(),
];
