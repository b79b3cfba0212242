//! Normalization by channel: group norm, batch norm and moments.

use super::layer_norm::{NormGradient, check_epsilon, check_parameter, float_dtype, norm_cost, norm_saves};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, mul, sub};
use crate::ops::reduce::{mean, sum, var};
use crate::ops::reduction::ReduceAxes;
use crate::ops::sample::{dtypes, invalid_axes, ramp, reductions};
use crate::ops::shape::{broadcast_to, reshape_to};
use crate::ops::unary::{cast, neg, rsqrt};
use crate::ops::vmap::{
    batched_size, merge_batch_into_axis, merge_leading_axes, single_output, split_batch_from_axis,
};
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

/// `(x - mean) * rstd * scale + offset` per channel. Inputs: `x`, `mean`, `rstd`, then scale and offset if given.
#[derive(Clone, Debug)]
struct Normalize {
    axis: isize,
    scaled: bool,
    shifted: bool,
}

impl Op for Normalize {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs[0])?;
        let channels = [inputs[0].shape[inputs[0].shape.axis(self.axis)?]];
        for (i, parameter) in inputs[1..].iter().enumerate() {
            check_parameter(parameter, if i < 2 { statistics_dtype(dtype) } else { dtype }, &channels)?;
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (mean, rstd) = (inputs[1].view(), inputs[2].view());
        let gamma = self.scaled.then(|| inputs[3].view());
        let beta = self.shifted.then(|| inputs[3 + usize::from(self.scaled)].view());
        let axis = crate::normalize_axis(self.axis, outputs[0].shape().len())?;
        norm::normalize_apply(inputs[0], axis, mean, rstd, gamma, beta, outputs[0].reborrow());
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !call.mapped[1..].contains(&true) {
            return call.apply_as_is(&Normalize { axis: call.axis(self.axis)?, ..self.clone() });
        }
        let (axis, inputs) = call.merged_into_axis(self.axis)?;
        let op = Normalize { axis: axis as isize, ..self.clone() };
        single_output(split_batch_from_axis(apply_many(&op, inputs)?.swap_remove(0), axis, 1, call.size))
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        norm_cost(inputs, outputs)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for Normalize {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let channels = call.inputs[0].shape.axis(self.axis).ok()?;
        call.independent_axis(|axis| axis != channels)
    }
}

impl Differentiable for Normalize {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        let scale = if self.scaled { Saves::inputs([3]) } else { Saves::NOTHING };
        let mut saves = Saves::NOTHING;
        if wanted.has(0) || wanted.has(1) {
            saves = saves.and(Saves::inputs([2])).and(scale);
        }
        if wanted.has(2) {
            saves = saves.and(Saves::inputs([0, 1])).and(scale);
        }
        if self.scaled && wanted.has(3) {
            saves = saves.and(Saves::inputs([0, 1, 2]));
        }
        Some(saves)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, call.inputs.len());
        let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
        let dtype = g.dtype();
        let wide = statistics_dtype(dtype);
        let shape = g.shape().clone();
        let axis = shape.axis(self.axis)?;
        let channels = Shape::from(vec![1; shape.rank()]).with(axis, shape[axis]);
        let others: Vec<isize> = (0..shape.rank()).filter(|&i| i != axis).map(|i| i as isize).collect();
        let scaled = |x: Tensor| if self.scaled { mul(x, cast(call.input(3)?, wide)?) } else { Ok(x) };
        let g = cast(g, wide)?;
        let offset = 3 + usize::from(self.scaled);
        let wants_offset = self.shifted && call.wants(offset);
        if wants_offset || call.wants(1) {
            let total = sum(&g, others.as_slice(), false)?;
            if wants_offset {
                gradients[offset] = Some(cast(&total, dtype)?.into());
            }
            if call.wants(1) {
                gradients[1] = Some(neg(mul(total, scaled(call.input(2)?.clone())?)?)?.into());
            }
        }
        let wants_scale = self.scaled && call.wants(3);
        if wants_scale || call.wants(2) {
            let centred = sub(call.input(0)?, reshape_to(call.input(1)?, &channels)?)?;
            let total = sum(mul(centred, &g)?, others.as_slice(), false)?;
            if call.wants(2) {
                gradients[2] = Some(scaled(total.clone())?.into());
            }
            if wants_scale {
                gradients[3] = Some(cast(mul(total, call.input(2)?)?, dtype)?.into());
            }
        }
        if call.wants(0) {
            let factor = reshape_to(scaled(call.input(2)?.clone())?, &channels)?;
            gradients[0] = Some(cast(mul(g, factor)?, dtype)?.into());
        }
        Ok(gradients)
    }
}

/// Mean and variance of each channel in one pass over the data.
#[derive(Clone, Debug)]
struct Moments {
    axis: usize,
}

impl Op for Moments {
    fn name(&self) -> &'static str {
        "moments"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs[0])?;
        let axis = inputs[0].shape.axis(self.axis as isize)?;
        let statistics = Spec::new(statistics_dtype(dtype), [inputs[0].shape[axis]]);
        Ok(Specs::from_iter([statistics.clone(), statistics]))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let [mean, variance] = outputs else {
            return Err(Error::new(ErrorKind::Graph, "expected 2 outputs"));
        };
        norm::moments(inputs[0].view(), self.axis, mean.reborrow(), variance.reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        // Every example has its own statistics: its channels become separate channels.
        call.split_outputs(apply_many(
            self,
            vec![merge_batch_into_axis(call.inputs[0].clone(), self.axis, 1)?],
        )?)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        norm_cost(inputs, outputs)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl Differentiable for Moments {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::INPUT.and(Saves::OUTPUT))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let shape = call.input_shape(0);
        let channels = Shape::from(vec![1; shape.rank()]).with(self.axis, shape[self.axis]);
        let share = shape[self.axis].max(1) as f64 / shape.len().max(1) as f64;
        let of = |g: Option<Tensor>, share: f64| g.map(|g| mul(reshape_to(g, &channels)?, share)).transpose();
        let (g_mean, g_variance) = (call.take_gradient(0), call.take_gradient(1));
        let (g_mean, g_variance) = (of(g_mean, share)?, of(g_variance, 2.0 * share)?);
        let x = match (g_variance, g_mean) {
            (Some(g), g_mean) => {
                let centred = sub(call.input(0)?, reshape_to(call.output(0)?, &channels)?)?;
                let x = mul(centred, g)?;
                if let Some(g) = g_mean { add(x, g)? } else { x }
            }
            (None, Some(g)) => broadcast_to(g, call.input_shape(0).clone())?,
            (None, None) => return Ok(Gradients::new()),
        };
        Ok(Gradients::from_elem(Some(cast(x, call.inputs[0].spec.dtype)?.into()), 1))
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

/// Batch normalization with given statistics: `(x - mean) / sqrt(variance + epsilon) * scale + offset` per channel.
///
/// `axis` is the channel axis; `offset` and `scale` are optional.
#[track_caller]
pub fn batch_norm(
    x: impl Into<Tensor>,
    mean: impl Into<Tensor>,
    variance: impl Into<Tensor>,
    offset: Option<&Tensor>,
    scale: Option<&Tensor>,
    epsilon: f64,
    axis: isize,
) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    check_epsilon(epsilon).map_err(|e| e.in_op("batch_norm", [x.spec()]).at(at))?;
    let statistics = statistics_dtype(x.dtype());
    let rstd = rsqrt(add(cast(variance, statistics)?, epsilon)?)?;
    let op = Normalize { axis, scaled: scale.is_some(), shifted: offset.is_some() };
    let mut inputs = vec![x, cast(mean, statistics)?, rstd];
    inputs.extend([scale, offset].into_iter().flatten().cloned());
    Ok(apply_at(&op, &mut inputs, at)?.swap_remove(0))
}

/// The mean and the population variance over axes; over all axes if `axes` is `None`.
#[track_caller]
pub fn moments(
    x: impl Into<Tensor>,
    axes: impl Into<ReduceAxes>,
    keepdims: bool,
) -> Result<(Tensor, Tensor)> {
    let (x, axes, at) = (x.into(), axes.into(), Location::caller());
    let marks = axes.marks(x.shape()).map_err(|e| e.in_op("moments", [x.spec()]).at(at))?;
    let mut kept = (0..x.rank()).filter(|&axis| !marks[axis]);
    let channel = kept.next().filter(|_| kept.next().is_none() && x.dtype().is_float() && x.rank() > 1);
    let Some(axis) = channel else {
        return Ok((mean(&x, axes.clone(), keepdims)?, var(&x, axes, 0.0, keepdims)?));
    };
    let dtype = x.dtype();
    let channels = Shape::from(vec![1; x.rank()]).with(axis, x.shape()[axis]);
    let outputs = apply_many(&Moments { axis }, vec![x])?;
    let (mean, variance) = (cast(&outputs[0], dtype)?, cast(&outputs[1], dtype)?);
    if !keepdims {
        return Ok((mean, variance));
    }
    Ok((reshape_to(mean, &channels)?, reshape_to(variance, &channels)?))
}

const GAMMA: Param = Param::optional("gamma", ParamKind::Tensor, "None");
const BETA: Param = Param::optional("beta", ParamKind::Tensor, "None");

fn group_samples() -> Vec<Vec<ArgValue>> {
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

fn batch_samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], usize, i64, bool); 5] = [
        (&[3, 4], 4, -1, true),
        (&[2, 3, 2], 3, 1, true),
        (&[2, 3, 2, 5], 5, 3, false),
        (&[1, 1], 1, -1, true),
        (&[0, 3], 3, -1, true),
    ];
    let with = |dtype, (shape, channels, axis, given): (&[usize], usize, i64, bool)| {
        let parameter = |low, high| ramp(dtype, &[channels], low, high);
        let optional = |low| if given { parameter(low, 2.0) } else { ArgValue::None };
        vec![
            ramp(dtype, shape, -3.0, 3.0),
            parameter(-1.0, 1.0),
            parameter(0.5, 2.0),
            optional(-1.0),
            optional(0.5),
            ArgValue::Float(1e-3),
            ArgValue::Int(axis),
        ]
    };
    dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
}

fn invalid_group_norm() -> Vec<InvalidArgs> {
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

fn invalid_batch_norm() -> Vec<InvalidArgs> {
    let args = |dtype, mean: &[usize], epsilon, axis| {
        let parameter = |shape| ramp(DType::F32, shape, 0.5, 1.0);
        let x = ramp(dtype, &[2, 3], 0.0, 1.0);
        let none = || ArgValue::None;
        vec![
            x,
            parameter(mean),
            parameter(&[3]),
            none(),
            none(),
            ArgValue::Float(epsilon),
            ArgValue::Int(axis),
        ]
    };
    vec![
        InvalidArgs::new(args(DType::F32, &[2], 0.1, -1), ErrorKind::Shape, "must have shape [3], got [2]"),
        InvalidArgs::new(args(DType::F32, &[3], 0.1, 2), ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
        InvalidArgs::new(
            args(DType::F32, &[3], f64::INFINITY, 1),
            ErrorKind::Value,
            "epsilon must be finite and >= 0, got inf",
        ),
        InvalidArgs::new(args(DType::I32, &[3], 0.1, 1), ErrorKind::DType, "int32 is not supported"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
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
        Samples::List(group_samples),
    )
    .refuses(invalid_group_norm),
    OpEntry::new(
        "batch_norm",
        &[
            Param::tensor("x"),
            Param::tensor("mean"),
            Param::tensor("variance"),
            Param::optional("offset", ParamKind::Tensor, "None"),
            Param::optional("scale", ParamKind::Tensor, "None"),
            Param::optional("epsilon", ParamKind::Float, "1e-3"),
            Param::optional("axis", ParamKind::Int, "-1"),
        ],
        |a| {
            let (offset, scale) = (a.tensor_or(3)?, a.tensor_or(4)?);
            let (epsilon, axis) = (a.float_or(5)?.unwrap_or(1e-3), a.int_or(6)?.unwrap_or(-1) as isize);
            let (x, mean, variance) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
            one(batch_norm(x, mean, variance, offset.as_ref(), scale.as_ref(), epsilon, axis))
        },
        Reference::Numpy(
            "[z := np.moveaxis(x.astype(np.float64), axis, -1), \
             y := (z - mean) / np.sqrt(variance.astype(np.float64) + epsilon) * (1 if scale is None else scale) \
             + (0 if offset is None else offset), np.moveaxis(y, -1, axis).astype(x.dtype)][-1]",
        ),
        Samples::List(batch_samples),
    )
    .refuses(invalid_batch_norm),
    OpEntry::new(
        "moments",
        Param::REDUCTION,
        |a| {
            let (mean, variance) = moments(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))?;
            Ok(vec![mean, variance])
        },
        Reference::Numpy(
            "[z := x.astype(np.float64), d := x.dtype if x.dtype.kind == 'f' else np.float64, \
             (np.mean(z, axis=axes, keepdims=keepdims).astype(d), \
             np.var(z, axis=axes, keepdims=keepdims).astype(d))][-1]",
        ),
        Samples::List(|| reductions(&[DType::I32, DType::F16, DType::BF16, DType::F32, DType::F64], -3.0, 3.0)),
    )
    .refuses(invalid_axes),
];
