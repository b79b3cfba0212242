//! Scattering of slices to coordinates.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{div, equal, maximum, where_};
use crate::ops::creation::{range, zeros};
use crate::ops::index::{gather_nd, keep_bits, pack_bits, unpack_bits};
use crate::ops::indices::{check_coordinates, check_integers, prepend_batch_coordinate, update_cost};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{concat, reshape_to, slice};
use crate::ops::unary::{cast, neg};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::shape::Shape;
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply, s};
use taut_kernels::index::{self, Scatter};
use taut_kernels::{Arg, ViewMut, bits, elementwise};

/// Combines updates into a tensor at coordinate vectors.
#[derive(Clone, Debug)]
pub struct TensorScatter {
    /// How an update combines with the present value.
    pub code: Scatter,
}

impl TensorScatter {
    /// The gradient of the updates: the output's gradient at their coordinates, zero for updates that were overwritten.
    fn update_gradient(&self, call: &VjpCall<'_>, g: &Tensor) -> Result<Tensor> {
        let indices = call.input(1)?;
        let taken = gather_nd(g, indices, 0)?;
        match self.code {
            Scatter::Sub => neg(taken),
            // A single update is the last one.
            Scatter::Update if indices.shape()[..indices.rank() - 1].iter().product::<usize>() == 1 => {
                Ok(taken)
            }
            Scatter::Update => {
                let last = last_updates(indices, call.input_shape(0))?;
                let ones = vec![1; taken.rank() - last.rank()];
                let last = reshape_to(&last, &last.shape().iter().copied().chain(ones).collect())?;
                where_(last, taken, 0.0)
            }
            _ => Ok(taken),
        }
    }

    /// The gradients of max and min. All values equal to the extremum share its gradient.
    fn extremum_gradients(call: &VjpCall<'_>, g: Tensor) -> Result<Gradients> {
        let (indices, bytes) = (call.input(1)?, bits::bytes(call.input_shape(0).len()) as isize);
        let tensor_mask = slice(call.residual()?, &s![..bytes])?;
        let update_mask = slice(call.residual()?, &s![bytes..])?;
        let wide = taut_kernels::norm::statistics_dtype(g.dtype());
        let count = tensor_scatter_add(
            cast(unpack_bits(&tensor_mask, call.input_shape(0).clone())?, wide)?,
            indices,
            cast(unpack_bits(&update_mask, call.input_shape(2).clone())?, wide)?,
        )?;
        let dtype = g.dtype();
        let share = div(g, cast(maximum(count, 1.0)?, dtype)?)?;
        let mut gradients = Gradients::from_elem(None, 3);
        if call.wants(2) {
            gradients[2] = Some(keep_bits(gather_nd(&share, indices, 0)?, update_mask, false)?.into());
        }
        if call.wants(0) {
            gradients[0] = Some(keep_bits(share, tensor_mask, false)?.into());
        }
        Ok(gradients)
    }
}

/// Whether each update is the last one at its coordinates in a tensor of this shape.
fn last_updates(indices: &Tensor, shape: &Shape) -> Result<Tensor> {
    let (heads, k) =
        (indices.shape().clone().without(indices.rank() - 1), indices.shape()[indices.rank() - 1]);
    let order = reshape_to(range(0, heads.len() as i64, 1, DType::I64)?, &heads)?;
    let last = tensor_scatter_update(zeros(&shape[..k], DType::I64)?, indices, &order)?;
    equal(gather_nd(last, indices, 0)?, order)
}

impl Op for TensorScatter {
    fn name(&self) -> &'static str {
        match self.code {
            Scatter::Update => "tensor_scatter_update",
            Scatter::Add => "tensor_scatter_add",
            Scatter::Sub => "tensor_scatter_sub",
            Scatter::Max => "tensor_scatter_max",
            Scatter::Min => "tensor_scatter_min",
            Scatter::Mul => "tensor_scatter_mul",
        }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let &[tensor, indices, updates] = inputs else {
            let message = format!("expected 3 inputs (tensor, indices, updates), got {}", inputs.len());
            return Err(Error::value(message));
        };
        check_integers("indices", indices)?;
        if updates.dtype != tensor.dtype {
            let message =
                format!("updates must have the dtype of the tensor, {}, got {}", tensor.dtype, updates.dtype);
            return Err(Error::dtype(message).help("cast one of them"));
        }
        if tensor.dtype == DType::Bool && self.code != Scatter::Update {
            return Err(Error::dtype("bool is not supported").help("use tensor_scatter_update for booleans"));
        }
        let is_sum = matches!(self.code, Scatter::Update | Scatter::Add | Scatter::Sub);
        if tensor.dtype.is_complex() && !is_sum {
            return Err(Error::dtype(format!("{} is not supported", tensor.dtype)));
        }
        let k = check_coordinates(&tensor.shape, &indices.shape, 0)?;
        let heads = &indices.shape[..indices.shape.rank() - 1];
        let wanted: Shape = [heads, &tensor.shape[k..]].into_iter().flatten().copied().collect();
        if updates.shape != wanted {
            let (indices, shape) = (&indices.shape, &tensor.shape);
            let message = format!(
                "updates must have shape {wanted} for indices {indices} into shape {shape}, got {}",
                updates.shape
            );
            return Err(Error::shape(message));
        }
        Ok(tensor.clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        if let Arg::View(tensor) = inputs[0] {
            elementwise::copy(tensor, outputs[0].reborrow());
        }
        Ok(index::scatter_nd(self.code, outputs[0].reborrow(), inputs[1].view(), inputs[2].view())?)
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn cost(&self, inputs: &[&Spec], _outputs: &[Spec]) -> Cost {
        update_cost(inputs[1], inputs[2])
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        // The index of the example becomes the first coordinate.
        let inputs = [
            call.batched_input(0)?,
            prepend_batch_coordinate(call.batched_input(1)?)?,
            call.batched_input(2)?,
        ];
        single_output(apply(self, inputs))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for TensorScatter {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let adds = matches!(self.code, Scatter::Add | Scatter::Sub);
        if !adds || !call.is_partial_sum(0) {
            return None;
        }
        let Some((_, rows)) = call.first_rows() else {
            return (call.is_same(1) && call.is_partial_sum(2)).then(|| call.linear())?;
        };
        // Every row adds its own updates, to a sum or to zero.
        if rows.axis + 1 >= call.inputs[1].shape.rank() {
            return None;
        }
        let mut split = RowSplit { adds_to_first: call.zeros[0], ..call.linear()? };
        for input in [1, 2] {
            split.inputs[input] = call.rows_of(input, rows)?;
        }
        Some(split)
    }
}

impl Differentiable for TensorScatter {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        match self.code {
            Scatter::Update | Scatter::Add | Scatter::Sub => Some(Saves::inputs([1])),
            Scatter::Max | Scatter::Min => Some(Saves::inputs([1]).and(Saves::residual_of([0, 1, 2]))),
            Scatter::Mul => None,
        }
    }

    /// For max and min: the masks of the tensor's elements and of the updates that equal the output.
    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        let (tensor, indices, updates, output) =
            (call.input(0)?, call.input(1)?, call.input(2)?, call.output(0)?);
        let tensor_mask = pack_bits(equal(tensor, output)?)?;
        let update_mask = pack_bits(equal(updates, gather_nd(output, indices, 0)?)?)?;
        concat(&[tensor_mask, update_mask], 0).map(Some)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(g) = call.take_gradient(0) else { return Ok(Gradients::new()) };
        if matches!(self.code, Scatter::Max | Scatter::Min) {
            return TensorScatter::extremum_gradients(call, g);
        }
        let mut gradients = Gradients::from_elem(None, 3);
        if call.wants(2) {
            gradients[2] = Some(self.update_gradient(call, &g)?.into());
        }
        if call.wants(0) {
            gradients[0] = Some(match self.code {
                Scatter::Update => {
                    let zeros = zeros(call.input_shape(2).clone(), g.dtype())?;
                    tensor_scatter_update(g, call.input(1)?, zeros)?.into()
                }
                _ => g.into(),
            });
        }
        Ok(gradients)
    }
}

#[track_caller]
fn scatter(
    code: Scatter,
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    apply(&TensorScatter { code }, [tensor.into(), indices.into(), updates.into()])
}

/// Scatters `updates` into zeros of this shape, at the coordinate vectors on the last axis of `indices`. Updates at equal
/// coordinates add up.
#[track_caller]
pub fn scatter_nd(
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
    shape: impl Into<Shape>,
) -> Result<Tensor> {
    let updates = updates.into();
    scatter(Scatter::Add, zeros(shape, updates.dtype())?, indices, updates)
}

/// Replaces the slices of a tensor at the coordinate vectors on the last axis of `indices` by `updates`; of updates at
/// equal coordinates, the last one counts. A donated tensor is updated in place.
///
/// ```
/// use taut_core::{Tensor, ops::index::tensor_scatter_update};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// let (at, new) = (Tensor::from_slice(&[0, 1], [1, 2])?, Tensor::from_slice(&[9], [1])?);
/// assert_eq!(tensor_scatter_update(x, at, new)?.to_vec::<i32>()?, [1, 9, 3, 4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn tensor_scatter_update(
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    scatter(Scatter::Update, tensor, indices, updates)
}

/// Adds `updates` to the slices of a tensor at the coordinate vectors on the last axis of `indices`.
#[track_caller]
pub fn tensor_scatter_add(
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    scatter(Scatter::Add, tensor, indices, updates)
}

/// Subtracts `updates` from the slices of a tensor at the coordinate vectors on the last axis of `indices`.
#[track_caller]
pub fn tensor_scatter_sub(
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    scatter(Scatter::Sub, tensor, indices, updates)
}

/// The maximum of `updates` and the slices of a tensor at the coordinate vectors on the last axis of `indices`; NaN
/// propagates.
#[track_caller]
pub fn tensor_scatter_max(
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    scatter(Scatter::Max, tensor, indices, updates)
}

/// The minimum of `updates` and the slices of a tensor at the coordinate vectors on the last axis of `indices`; NaN
/// propagates.
#[track_caller]
pub fn tensor_scatter_min(
    tensor: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    updates: impl Into<Tensor>,
) -> Result<Tensor> {
    scatter(Scatter::Min, tensor, indices, updates)
}

/// Valid shapes of tensor, indices and updates, with an upper bound of the indices.
const CASES: [(&[usize], &[usize], &[usize], f64); 8] = [
    (&[5], &[3, 1], &[3], 5.0),
    (&[2], &[6, 1], &[6], 2.0),
    (&[3, 4], &[2, 1], &[2, 4], 3.0),
    (&[3, 4], &[2, 3, 2], &[2, 3], 3.0),
    (&[2, 3, 4], &[5, 2], &[5, 4], 2.0),
    (&[2, 3], &[0], &[2, 3], 1.0),
    (&[3], &[0, 1], &[0], 1.0),
    (&[2, 0], &[3, 1], &[3, 0], 2.0),
];

fn samples_of(dtypes: &[DType]) -> Vec<Vec<ArgValue>> {
    let with = |dtype, ids| {
        CASES.map(|(x, i, u, limit)| {
            vec![ramp(dtype, x, -9.0, 9.0), ramp(ids, i, 0.0, limit), ramp(dtype, u, 1.0, 8.0)]
        })
    };
    let mut list: Vec<_> = dtypes.iter().flat_map(|&dtype| with(dtype, DType::I32)).collect();
    list.extend(with(DType::F32, DType::U64));
    list
}

fn invalid() -> Vec<InvalidArgs> {
    let f32s = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let ids = |shape: &[usize]| ramp(DType::I64, shape, 0.0, 1.0);
    let bad = |x, i, u, kind, message| InvalidArgs::new(vec![x, i, u], kind, message);
    let doubles = ramp(DType::F64, &[1], 0.0, 1.0);
    let outside = |v: f64| of(DType::I32, &[1, 1], &[v]);
    vec![
        bad(f32s(&[3]), f32s(&[1, 1]), f32s(&[1]), ErrorKind::DType, "must be integers, got float32"),
        bad(
            f32s(&[3]),
            ids(&[1, 1]),
            doubles,
            ErrorKind::DType,
            "the dtype of the tensor, float32, got float64",
        ),
        bad(f32s(&[3]), outside(3.0), f32s(&[1]), ErrorKind::Index, "got 3 at position 0"),
        bad(f32s(&[3]), outside(-1.0), f32s(&[1]), ErrorKind::Index, "got -1 at position 0"),
        bad(
            f32s(&[3]),
            ids(&[]),
            f32s(&[]),
            ErrorKind::Shape,
            "rank >= 1 with coordinates on the last axis, got a scalar",
        ),
        bad(
            f32s(&[3]),
            ids(&[1, 2]),
            f32s(&[1]),
            ErrorKind::Shape,
            "at most 1 coordinates, one per axis, got 2",
        ),
        bad(
            f32s(&[3, 2]),
            ids(&[4, 1]),
            f32s(&[4]),
            ErrorKind::Shape,
            "updates must have shape [4, 2] for indices [4, 1] into shape [3, 2], got [4]",
        ),
    ]
}

fn invalid_arithmetic() -> Vec<InvalidArgs> {
    let mut list = invalid();
    let bools = |shape: &[usize]| ramp(DType::Bool, shape, 0.0, 1.0);
    let args = vec![bools(&[3]), ramp(DType::I64, &[1, 1], 0.0, 1.0), bools(&[1])];
    list.push(InvalidArgs::new(args, ErrorKind::DType, "bool is not supported"));
    list
}

const PARAMS: &[Param] = &[Param::tensor("tensor"), Param::tensor("indices"), Param::tensor("updates")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "scatter_nd",
        &[Param::tensor("indices"), Param::tensor("updates"), Param::new("shape", ParamKind::Ints)],
        |a| one(scatter_nd(a.tensor(0)?, a.tensor(1)?, a.shape(2)?)),
        Reference::Numpy(
            "(lambda t: (np.add.at(t, tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(np.zeros(shape, updates.dtype))",
        ),
        Samples::List(|| {
            let shape = |x: &[usize]| ArgValue::Ints(x.iter().map(|&dim| dim as i64).collect());
            let with = |dtype| {
                CASES.map(|(x, i, u, limit)| {
                    vec![ramp(DType::I64, i, 0.0, limit), ramp(dtype, u, -8.0, 8.0), shape(x)]
                })
            };
            dtypes::NUMBERS.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |i, u, shape: &[i64], kind, message| InvalidArgs::new(vec![i, u, ArgValue::Ints(shape.to_vec())], kind, message);
        let ids = |values: &[f64]| of(DType::I64, &[values.len(), 1], values);
        let f32s = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
        vec![
            bad(f32s(&[1, 1]), f32s(&[1]), &[3], ErrorKind::DType, "must be integers"),
            bad(ids(&[3.0]), f32s(&[1]), &[3], ErrorKind::Index, "got 3 at position 0"),
            bad(ids(&[1.0]), f32s(&[1]), &[-3], ErrorKind::Shape, "dimension must be >= 0, got -3"),
            bad(ids(&[1.0]), f32s(&[2]), &[3], ErrorKind::Shape, "updates must have shape [1] for indices [1, 1] into shape [3], got [2]"),
        ]
    }),
    OpEntry::new(
        "tensor_scatter_update",
        PARAMS,
        |a| one(tensor_scatter_update(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?)),
        Reference::Numpy(
            "(lambda t: (t.__setitem__(tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(tensor.copy())",
        ),
        Samples::List(|| samples_of(dtypes::EVERY)),
    )
    .refuses(invalid),
    OpEntry::new(
        "tensor_scatter_add",
        PARAMS,
        |a| one(tensor_scatter_add(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?)),
        Reference::Numpy(
            "(lambda t: (np.add.at(t, tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(tensor.copy())",
        ),
        Samples::List(|| samples_of(dtypes::ARITHMETIC)),
    )
    .refuses(invalid_arithmetic),
    OpEntry::new(
        "tensor_scatter_sub",
        PARAMS,
        |a| one(tensor_scatter_sub(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?)),
        Reference::Numpy(
            "(lambda t: (np.subtract.at(t, tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(tensor.copy())",
        ),
        Samples::List(|| samples_of(dtypes::ARITHMETIC)),
    )
    .refuses(invalid_arithmetic),
    OpEntry::new(
        "tensor_scatter_max",
        PARAMS,
        |a| one(tensor_scatter_max(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?)),
        Reference::Numpy(
            "(lambda t: (np.maximum.at(t, tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(tensor.copy())",
        ),
        Samples::List(|| samples_of(dtypes::NUMBERS)),
    )
    .refuses(invalid_arithmetic),
    OpEntry::new(
        "tensor_scatter_min",
        PARAMS,
        |a| one(tensor_scatter_min(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?)),
        Reference::Numpy(
            "(lambda t: (np.minimum.at(t, tuple(np.moveaxis(indices, -1, 0)), updates), t)[1])(tensor.copy())",
        ),
        Samples::List(|| samples_of(dtypes::NUMBERS)),
    )
    .refuses(invalid_arithmetic),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_donated_tensor_is_updated_in_place() {
        let _ledger = taut_memory::testing::ledger_check();
        let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap();
        let at = Tensor::from_slice(&[1i64], [1, 1]).unwrap();
        let add = Tensor::from_slice(&[10.0f32], [1]).unwrap();
        let before = taut_memory::testing::allocations_on_thread();
        let y = tensor_scatter_add(x, &at, &add).unwrap();
        assert_eq!(taut_memory::testing::allocations_on_thread(), before);
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 12.0, 3.0]);
    }
}
