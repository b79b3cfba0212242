//! Group normalization: statistics per example and group of channels.

use super::layer_norm::{NormGradient, check_epsilon, check_parameter, float_dtype, norm_cost, norm_saves};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::vmap::{batched_size, merge_leading_axes, split_batch_from_axis};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply_at, apply_many,
};
use taut_kernels::norm::{self, statistics_dtype};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// Inputs: `x`, then scale and offset if given. Outputs: the result, and per example and group the mean and the reciprocal
/// standard deviation, saved for backward.
#[derive(Clone, Debug)]
struct GroupNorm {
    groups: usize,
    axis: isize,
    epsilon: f64,
    scaled: bool,
    shifted: bool,
}

impl Op for GroupNorm {
    fn name(&self) -> &'static str {
        "group_norm"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs[0])?;
        let shape = &inputs[0].shape;
        let axis = shape.axis(self.axis)?;
        if axis == 0 {
            return Err(Error::new(ErrorKind::Axis, "the channel axis must not be 0, the batch axis"));
        }
        if self.groups == 0 {
            return Err(Error::value("groups must be >= 1, got 0"));
        }
        if !shape[axis].is_multiple_of(self.groups) {
            return Err(Error::value(format!(
                "the number of channels must be divisible by groups, got {} channels and {} groups",
                shape[axis], self.groups
            )));
        }
        check_epsilon(self.epsilon)?;
        for parameter in &inputs[1..] {
            check_parameter(parameter, dtype, &[shape[axis]])?;
        }
        let statistics = Spec::new(statistics_dtype(dtype), [shape[0], self.groups]);
        Ok(Specs::from_iter([inputs[0].clone(), statistics.clone(), statistics]))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let gamma = self.scaled.then(|| inputs[1].view());
        let beta = self.shifted.then(|| inputs[1 + usize::from(self.scaled)].view());
        let [out, mean, rstd] = outputs else {
            return Err(Error::new(ErrorKind::Graph, "expected 3 outputs"));
        };
        let axis = crate::normalize_axis(self.axis, out.shape().len())?;
        norm::group_norm(
            inputs[0],
            axis,
            self.groups,
            gamma,
            beta,
            self.epsilon,
            out.reborrow(),
            Some(mean.reborrow()),
            Some(rstd.reborrow()),
        );
        Ok(())
    }

    fn aliases(&self, output: usize) -> &[usize] {
        if output == 0 { &[0] } else { &[] }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !call.mapped[1..].contains(&true) {
            let inputs = [merge_leading_axes(call.inputs[0].clone())?]
                .into_iter()
                .chain(call.inputs[1..].iter().cloned());
            return call.split_outputs(apply_many(self, inputs.collect())?);
        }
        let (axis, inputs) = call.merged_into_axis(self.axis)?;
        let op =
            GroupNorm { groups: batched_size(self.groups, call.size)?, axis: axis as isize, ..self.clone() };
        let outputs = apply_many(&op, inputs)?.into_iter().zip([axis, 1, 1]);
        outputs
            .map(|(output, axis)| split_batch_from_axis(output, axis, 1, call.size))
            .collect::<Result<_>>()
            .map(Some)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        norm_cost(inputs, outputs)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("groups={}, axis={}, epsilon={}", self.groups, self.axis, self.epsilon)
    }
}

impl RowRule for GroupNorm {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // The statistics are per example.
        call.independent_axis(|axis| axis == 0)
    }
}

impl Differentiable for GroupNorm {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(norm_saves(wanted, self.scaled, Set::of([1, 2])))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let shape = call.input_shape(0);
        let axis = shape.axis(self.axis)?;
        // The channel axis is split into groups and channels within a group.
        let per_group = shape[axis] / self.groups;
        let shape = shape.clone().with(axis, self.groups).with_inserted(axis + 1, per_group);
        let ones = Shape::from(vec![1; shape.rank()]);
        let norm = NormGradient {
            statistics: ones.clone().with(0, shape[0]).with(axis, self.groups),
            parameters: ones.with(axis, self.groups).with(axis + 1, per_group),
            over: (1..shape.rank()).filter(|&i| i != axis).map(|i| i as isize).collect(),
            shape,
            scaled: self.scaled,
            shifted: self.shifted,
            centred: true,
        };
        norm.vjp(call)
    }
}

/// Group normalization: normalizes each group of consecutive channels of each example to mean 0 and standard deviation 1,
/// then scales by `gamma` and shifts by `beta` per channel.
///
/// `axis` is the channel axis; `gamma` and `beta` are optional and have one element per channel.
///
/// ```
/// use taut_core::{Tensor, ops::nn::group_norm};
/// let x = Tensor::from_slice(&[1.0f64, 3.0, 10.0, 30.0], [1, 4])?;
/// assert_eq!(group_norm(&x, None, None, 2, -1, 1e-300)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn group_norm(
    x: impl Into<Tensor>,
    gamma: Option<&Tensor>,
    beta: Option<&Tensor>,
    groups: usize,
    axis: isize,
    epsilon: f64,
) -> Result<Tensor> {
    let op = GroupNorm { groups, axis, epsilon, scaled: gamma.is_some(), shifted: beta.is_some() };
    let mut inputs = vec![x.into()];
    inputs.extend([gamma, beta].into_iter().flatten().cloned());
    Ok(apply_at(&op, &mut inputs, Location::caller())?.swap_remove(0))
}

const GAMMA: Param = Param::optional("gamma", ParamKind::Tensor, "None");
const BETA: Param = Param::optional("beta", ParamKind::Tensor, "None");

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], usize, i64, i64, bool); 6] = [
        (&[2, 4], 4, 2, -1, true),
        (&[2, 3, 6], 6, 3, 2, true),
        (&[2, 4, 2, 3], 4, 2, 1, true),
        (&[2, 4, 2, 3], 4, 1, 1, false),
        (&[1, 2, 2], 2, 2, -1, true),
        (&[0, 2, 4], 4, 2, -1, true),
    ];
    let with = |dtype, (shape, channels, groups, axis, given): (&[usize], usize, i64, i64, bool)| {
        let parameter = |low| if given { ramp(dtype, &[channels], low, 2.0) } else { ArgValue::None };
        let tail = [ArgValue::Int(groups), ArgValue::Int(axis), ArgValue::Float(1e-3)];
        [ramp(dtype, shape, -3.0, 3.0), parameter(0.5), parameter(-1.0)].into_iter().chain(tail).collect()
    };
    dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
}

fn invalid() -> Vec<InvalidArgs> {
    let args = |dtype, gamma: &[usize], groups, axis, epsilon| {
        let x = ramp(dtype, &[2, 3, 4], 0.0, 1.0);
        let gamma = ramp(dtype, gamma, 0.0, 1.0);
        vec![x, gamma, ArgValue::None, ArgValue::Int(groups), ArgValue::Int(axis), ArgValue::Float(epsilon)]
    };
    let f = DType::F32;
    vec![
        InvalidArgs::new(
            args(f, &[4], 3, -1, 0.1),
            ErrorKind::Value,
            "divisible by groups, got 4 channels and 3 groups",
        ),
        InvalidArgs::new(args(f, &[4], 0, -1, 0.1), ErrorKind::Value, "groups must be >= 1, got 0"),
        InvalidArgs::new(args(f, &[4], -1, -1, 0.1), ErrorKind::Value, "groups must be >= 1, got -1"),
        InvalidArgs::new(args(f, &[2], 1, 0, 0.1), ErrorKind::Axis, "the channel axis must not be 0"),
        InvalidArgs::new(args(f, &[4], 1, 3, 0.1), ErrorKind::Axis, "axis must be in [-3, 3), got 3"),
        InvalidArgs::new(
            args(f, &[3], 2, -1, 0.1),
            ErrorKind::Shape,
            "parameters must have shape [4], got [3]",
        ),
        InvalidArgs::new(
            args(f, &[4], 2, -1, -1.0),
            ErrorKind::Value,
            "epsilon must be finite and >= 0, got -1",
        ),
        InvalidArgs::new(args(DType::I32, &[4], 2, -1, 0.1), ErrorKind::DType, "int32 is not supported"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "group_norm",
    &[
        Param::tensor("x"),
        GAMMA,
        BETA,
        Param::new("groups", ParamKind::Int),
        Param::optional("axis", ParamKind::Int, "-1"),
        Param::optional("epsilon", ParamKind::Float, "1e-3"),
    ],
    |a| {
        let groups = a.int(3)?;
        let groups = usize::try_from(groups)
            .map_err(|_| Error::value(format!("groups must be >= 1, got {groups}")))?;
        let (axis, epsilon) = (a.int_or(4)?.unwrap_or(-1) as isize, a.float_or(5)?.unwrap_or(1e-3));
        one(group_norm(a.tensor(0)?, a.tensor_or(1)?.as_ref(), a.tensor_or(2)?.as_ref(), groups, axis, epsilon))
    },
    Reference::Numpy(
        "[z := np.moveaxis(x.astype(np.float64), axis, 1), n := z.shape[1] // groups, \
         parts := [z[:, i * n:(i + 1) * n] for i in range(groups)], over := tuple(range(1, x.ndim)), \
         y := np.concatenate([(p - p.mean(axis=over, keepdims=True)) / \
         np.sqrt(p.var(axis=over, keepdims=True) + epsilon) for p in parts], axis=1), \
         np.moveaxis(np.moveaxis(y, 1, -1) * (1 if gamma is None else gamma) + (0 if beta is None else beta), \
         -1, axis).astype(x.dtype)][-1]",
    ),
    Samples::List(samples),
)
.refuses(invalid)];
