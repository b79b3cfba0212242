//! Normalization by channel with statistics of the batch: batch norm and moments.

use super::layer_norm::{check_epsilon, check_parameter, float_dtype, norm_cost};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Decompose, Form, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, mul, sub};
use crate::ops::reduce::{mean, sum, var};
use crate::ops::reduction::ReduceAxes;
use crate::ops::sample::{dtypes, invalid_axes, ramp, reductions};
use crate::ops::shape::{broadcast_to, reshape_to};
use crate::ops::unary::{cast, neg, rsqrt};
use crate::ops::vmap::{merge_batch_into_axis, single_output, split_batch_from_axis};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply_at, apply_many,
};
use taut_kernels::norm::{self, statistics_dtype};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

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

    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        Form::Composite(self)
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

impl Decompose for Normalize {
    fn decompose(&self, inputs: &[Tensor]) -> Result<Outputs> {
        let (dtype, shape) = (inputs[0].dtype(), inputs[0].shape());
        let wide = statistics_dtype(dtype);
        let axis = shape.axis(self.axis)?;
        let channels = Shape::from(vec![1; shape.rank()]).with(axis, shape[axis]);
        let mut rest = inputs[3..].iter();
        let mut scale = inputs[2].clone();
        if self.scaled
            && let Some(gamma) = rest.next()
        {
            scale = mul(scale, cast(gamma, wide)?)?;
        }
        let centred = sub(cast(&inputs[0], wide)?, reshape_to(&inputs[1], &channels)?)?;
        let scaled = mul(centred, reshape_to(scale, &channels)?)?;
        // The kernel adds a term in either case, which turns -0 into 0.
        let out = match rest.next() {
            Some(beta) => add(scaled, reshape_to(cast(beta, wide)?, &channels)?)?,
            None => add(scaled, 0.0)?,
        };
        Ok(Outputs::from_iter([cast(out, dtype)?]))
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
