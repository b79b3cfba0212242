//! Normalization over the last axes: layer norm and RMS norm.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, mul, sub};
use crate::ops::elementwise::sum_to;
use crate::ops::reduce::mean;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{broadcast_to, reshape_to};
use crate::ops::unary::{cast, neg};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply_at, apply_many,
};
use taut_kernels::norm::{self, statistics_dtype};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// Inputs: `x`, then scale and offset if given. Outputs: the result, then per row the mean (if centred) and the reciprocal
/// standard deviation, saved for backward.
#[derive(Clone, Debug)]
struct RowNorm {
    axes: usize,
    epsilon: f64,
    scaled: bool,
    shifted: bool,
    centred: bool,
}

impl Op for RowNorm {
    fn name(&self) -> &'static str {
        if self.centred { "layer_norm" } else { "rms_norm" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (dtype, shape) = (float_dtype(inputs[0])?, &inputs[0].shape);
        if self.axes == 0 || self.axes > shape.rank() {
            let message =
                format!("axes, the number of last axes, must be in [1, {}], got {}", shape.rank(), self.axes);
            return Err(Error::new(ErrorKind::Axis, message));
        }
        check_epsilon(self.epsilon)?;
        let (lead, row) = shape.split_at(shape.rank() - self.axes);
        for parameter in &inputs[1..] {
            check_parameter(parameter, dtype, row)?;
        }
        let statistics = Spec::new(statistics_dtype(dtype), lead);
        let mut outputs = Specs::from(inputs[0].clone());
        outputs.extend(vec![statistics; if self.centred { 2 } else { 1 }]);
        Ok(outputs)
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let gamma = self.scaled.then(|| inputs[1].view());
        let beta = self.shifted.then(|| inputs[1 + usize::from(self.scaled)].view());
        match outputs {
            [out, mean, rstd] => norm::layer_norm(
                inputs[0],
                self.axes,
                gamma,
                beta,
                self.epsilon,
                out.reborrow(),
                Some(mean.reborrow()),
                Some(rstd.reborrow()),
            ),
            [out, rstd] => {
                let rstd = Some(rstd.reborrow());
                norm::rms_norm(inputs[0], self.axes, gamma, self.epsilon, out.reborrow(), rstd);
            }
            _ => return Err(Error::new(ErrorKind::Graph, "expected 2 or 3 outputs")),
        }
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
            return call.apply_as_is(self);
        }
        // The kernel takes one scale and one offset. Per-example ones are applied after it, before rounding.
        let (dtype, rank) = (call.inputs[0].dtype(), call.shape(0).rank());
        let wide = statistics_dtype(dtype);
        let op = RowNorm { scaled: false, shifted: false, ..self.clone() };
        let mut outputs = apply_many(&op, vec![cast(&call.inputs[0], wide)?])?;
        let mut rows = outputs[0].clone();
        if self.scaled {
            rows = mul(rows, call.input_of_rank(1, rank)?)?;
        }
        if self.shifted {
            rows = add(rows, call.input_of_rank(1 + usize::from(self.scaled), rank)?)?;
        }
        outputs[0] = cast(rows, dtype)?;
        if !call.mapped[0] {
            for statistic in &mut outputs[1..] {
                *statistic = broadcast_to(&*statistic, call.batched_shape(statistic.shape()))?;
            }
        }
        Ok(Some(outputs))
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        norm_cost(inputs, outputs)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axes={}, epsilon={}", self.axes, self.epsilon)
    }
}

impl RowRule for RowNorm {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        call.independent_axis(|axis| axis + self.axes < call.inputs[0].shape.rank())
    }
}

impl Differentiable for RowNorm {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(norm_saves(wanted, self.scaled, if self.centred { Set::of([1, 2]) } else { Set::of([1]) }))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let shape = call.input_shape(0).clone();
        let lead = shape.rank() - self.axes;
        let norm = NormGradient {
            statistics: (0..shape.rank()).map(|i| if i < lead { shape[i] } else { 1 }).collect(),
            parameters: shape[lead..].into(),
            over: (lead as isize..shape.rank() as isize).collect(),
            shape,
            scaled: self.scaled,
            shifted: self.shifted,
            centred: self.centred,
        };
        norm.vjp(call)
    }
}

/// The dtype of a float; other dtypes are not normalized.
pub(super) fn float_dtype(spec: &Spec) -> Result<DType> {
    let dtype = spec.dtype;
    if dtype.is_float() {
        return Ok(dtype);
    }
    Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"))
}

pub(super) fn norm_cost(inputs: &[&Spec], outputs: &[Spec]) -> Cost {
    Cost { flops: 7 * inputs[0].shape.len() as u64, bytes: Cost::traffic(inputs, outputs) }
}

/// The values saved for the gradient of a norm whose statistics are these outputs.
pub(super) fn norm_saves(wanted: Set, scaled: bool, statistics: Set) -> Saves {
    if !(wanted.has(0) || scaled && wanted.has(1)) {
        return Saves::NOTHING;
    }
    let saves = Saves { outputs: statistics, ..Saves::INPUT };
    if scaled && wanted.has(0) { saves.and(Saves::inputs([1])) } else { saves }
}

/// The gradient of a normalization with inputs `x`, then scale and offset if given, and outputs: the result, then the
/// means (if centred) and the reciprocal standard deviations.
pub(super) struct NormGradient {
    /// The shape of `x` in which the normalized dimensions are separate axes.
    pub(super) shape: Shape,
    /// The shape of the statistics that broadcasts to `shape`.
    pub(super) statistics: Shape,
    /// The shape of scale and offset that broadcasts to `shape`.
    pub(super) parameters: Shape,
    /// The normalized axes of `shape`.
    pub(super) over: Vec<isize>,
    pub(super) scaled: bool,
    pub(super) shifted: bool,
    pub(super) centred: bool,
}

impl NormGradient {
    pub(super) fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let last = 1 + usize::from(self.centred);
        // Without means, the reciprocal deviation is output 1.
        let (g, g_rstd, g_mean) = (call.take_gradient(0), call.take_gradient(last), call.take_gradient(1));
        let dtype = call.inputs[0].spec.dtype;
        let wide = statistics_dtype(dtype);
        let g = g.map(|g| cast(reshape_to(g, &self.shape)?, wide)).transpose()?;
        let mut gradients = Gradients::from_elem(None, call.inputs.len());
        let offset = 1 + usize::from(self.scaled);
        if let Some(g) = &g
            && self.shifted
            && call.wants(offset)
        {
            gradients[offset] = Some(self.parameter(call, offset, g.clone())?.into());
        }
        let wants_scale = self.scaled && call.wants(1);
        if !(call.wants(0) || wants_scale) {
            return Ok(gradients);
        }
        let statistic = |i| reshape_to(call.output(i)?, &self.statistics);
        let x = cast(reshape_to(call.input(0)?, &self.shape)?, wide)?;
        let rstd = statistic(last)?;
        let normal = mul(if self.centred { sub(x, statistic(1)?)? } else { x }, &rstd)?;
        if let Some(g) = &g
            && wants_scale
        {
            gradients[1] = Some(self.parameter(call, 1, mul(g, &normal)?)?.into());
        }
        if !call.wants(0) {
            return Ok(gradients);
        }
        let g = match g {
            Some(g) if self.scaled => Some(mul(g, reshape_to(call.input(1)?, &self.parameters)?)?),
            g => g,
        };
        let size = |shape: &Shape| shape.len().max(1) as f64;
        let share = size(&self.statistics) / size(&self.shape);
        let over = self.over.as_slice();
        // The contributions of a row's mean and deviation: a constant, and a multiple of the normalized row. Both
        // factors have one element per row and are combined before the full-size terms.
        let of_rstd = match &g {
            Some(g) => Some(mul(mean(mul(g, &normal)?, over, true)?, &rstd)?),
            None => None,
        };
        let given = g_rstd.map(|g| mul(mul(reshape_to(g, &self.statistics)?, share)?, mul(&rstd, &rstd)?));
        let of_rstd = plus(of_rstd, given.transpose()?)?;
        let of_mean = match &g {
            Some(g) if self.centred => Some(mul(mean(g, over, true)?, &rstd)?),
            _ => None,
        };
        let given = g_mean.map(|g| mul(reshape_to(g, &self.statistics)?, -share));
        let of_mean = plus(of_mean, given.transpose()?)?;
        let mut x = g.map(|g| mul(g, rstd)).transpose()?;
        x = match (x, of_rstd) {
            (Some(x), Some(part)) => Some(sub(x, mul(normal, part)?)?),
            (None, Some(part)) => Some(neg(mul(normal, part)?)?),
            (x, None) => x,
        };
        x = match (x, of_mean) {
            (Some(x), Some(part)) => Some(sub(x, part)?),
            (None, Some(part)) => Some(broadcast_to(neg(part)?, self.shape.clone())?),
            (x, None) => x,
        };
        if let Some(x) = x {
            gradients[0] = Some(cast(reshape_to(x, call.input_shape(0))?, dtype)?.into());
        }
        Ok(gradients)
    }

    /// The gradient of a parameter: `g` summed over the axes it was broadcast along.
    fn parameter(&self, call: &VjpCall<'_>, input: usize, g: Tensor) -> Result<Tensor> {
        let Spec { dtype, shape } = &call.inputs[input].spec;
        cast(reshape_to(sum_to(g, &self.parameters)?, shape)?, *dtype)
    }
}

/// The sum of the gradients that there are.
pub(super) fn plus(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    match (a, b) {
        (Some(a), Some(b)) => add(a, b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

/// An error unless epsilon is finite and >= 0.
pub(super) fn check_epsilon(epsilon: f64) -> Result<()> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("epsilon must be finite and >= 0, got {epsilon}")))
}

/// An error unless a scale or an offset has this dtype and shape.
pub(super) fn check_parameter(parameter: &Spec, dtype: DType, shape: &[usize]) -> Result<()> {
    if parameter.dtype != dtype {
        return Err(Error::dtype(format!("parameters must be {dtype}, got {}", parameter.dtype)));
    }
    if parameter.shape != *shape {
        let wanted = Shape::from(shape);
        return Err(Error::shape(format!("parameters must have shape {wanted}, got {}", parameter.shape)));
    }
    Ok(())
}

/// Layer normalization: normalizes each row to mean 0 and standard deviation 1, then scales it by `gamma` and shifts it by
/// `beta`: `(x - mean) / sqrt(variance + epsilon) * gamma + beta`.
///
/// A row is the slice over the last `axes` axes; `gamma` and `beta` are optional and have its shape.
///
/// ```
/// use taut_core::{Tensor, ops::nn::layer_norm};
/// let x = Tensor::from_slice(&[1.0f64, 3.0, -2.0, -2.0], [2, 2])?;
/// assert_eq!(layer_norm(&x, None, None, 1, 1e-300)?.to_vec::<f64>()?, [-1.0, 1.0, 0.0, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn layer_norm(
    x: impl Into<Tensor>,
    gamma: Option<&Tensor>,
    beta: Option<&Tensor>,
    axes: usize,
    epsilon: f64,
) -> Result<Tensor> {
    let op = RowNorm { axes, epsilon, scaled: gamma.is_some(), shifted: beta.is_some(), centred: true };
    let mut inputs: Vec<Tensor> =
        [x.into()].into_iter().chain([gamma, beta].into_iter().flatten().cloned()).collect();
    Ok(apply_at(&op, &mut inputs, Location::caller())?.swap_remove(0))
}

/// RMS normalization: divides each row by its root mean square and scales it by `gamma`:
/// `x / sqrt(mean(x^2) + epsilon) * gamma`.
///
/// A row is the slice over the last `axes` axes; `gamma` is optional and has its shape.
#[track_caller]
pub fn rms_norm(x: impl Into<Tensor>, gamma: Option<&Tensor>, axes: usize, epsilon: f64) -> Result<Tensor> {
    let op = RowNorm { axes, epsilon, scaled: gamma.is_some(), shifted: false, centred: false };
    let mut inputs: Vec<Tensor> = [x.into()].into_iter().chain(gamma.cloned()).collect();
    Ok(apply_at(&op, &mut inputs, Location::caller())?.swap_remove(0))
}

/// Arguments: `x`, this many parameters, the number of axes, epsilon.
fn samples(parameters: usize) -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], usize, bool); 6] = [
        (&[5], 1, true),
        (&[3, 4], 1, true),
        (&[2, 3, 4], 2, true),
        (&[2, 3, 4], 1, false),
        (&[2, 2], 2, true),
        (&[0, 3], 1, true),
    ];
    let with = |dtype, (shape, axes, given): (&[usize], usize, bool)| {
        let row = &shape[shape.len() - axes..];
        let mut args = vec![ramp(dtype, shape, -3.0, 3.0)];
        for i in 0..parameters {
            let parameter = ramp(dtype, row, 0.5 - i as f64, 2.0);
            args.push(if given { parameter } else { ArgValue::None });
        }
        args.extend([ArgValue::Int(axes as i64), ArgValue::Float(1e-3)]);
        args
    };
    dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
}

fn invalid(parameters: usize) -> Vec<InvalidArgs> {
    let args = |dtype, shape: &[usize], gamma: &[usize], axes, epsilon| {
        let mut args = vec![ramp(dtype, shape, 0.0, 1.0), ramp(dtype, gamma, 0.0, 1.0)];
        args.resize(parameters + 1, ArgValue::None);
        args.extend([ArgValue::Int(axes), ArgValue::Float(epsilon)]);
        args
    };
    let f = DType::F32;
    vec![
        InvalidArgs::new(
            args(f, &[2, 3], &[2], 1, 0.1),
            ErrorKind::Shape,
            "parameters must have shape [3], got [2]",
        ),
        InvalidArgs::new(args(f, &[2, 3], &[3], 0, 0.1), ErrorKind::Axis, "must be in [1, 2], got 0"),
        InvalidArgs::new(args(f, &[2, 3], &[3], 3, 0.1), ErrorKind::Axis, "must be in [1, 2], got 3"),
        InvalidArgs::new(args(f, &[2, 3], &[3], -1, 0.1), ErrorKind::Axis, "axes must be >= 1, got -1"),
        InvalidArgs::new(
            args(f, &[2, 3], &[3], 1, -0.1),
            ErrorKind::Value,
            "epsilon must be finite and >= 0, got -0.1",
        ),
        InvalidArgs::new(
            args(f, &[2, 3], &[3], 1, f64::NAN),
            ErrorKind::Value,
            "epsilon must be finite and >= 0, got NaN",
        ),
        InvalidArgs::new(args(DType::I32, &[2, 3], &[3], 1, 0.1), ErrorKind::DType, "int32 is not supported"),
    ]
}

fn axes(given: Option<i64>) -> Result<usize> {
    let given = given.unwrap_or(1);
    usize::try_from(given).map_err(|_| Error::new(ErrorKind::Axis, format!("axes must be >= 1, got {given}")))
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "layer_norm",
        &[
            Param::tensor("x"),
            Param::optional("gamma", ParamKind::Tensor, "None"),
            Param::optional("beta", ParamKind::Tensor, "None"),
            Param::optional("axes", ParamKind::Int, "1"),
            Param::optional("epsilon", ParamKind::Float, "1e-5"),
        ],
        |a| {
            let (gamma, beta) = (a.tensor_or(1)?, a.tensor_or(2)?);
            let epsilon = a.float_or(4)?.unwrap_or(1e-5);
            one(layer_norm(a.tensor(0)?, gamma.as_ref(), beta.as_ref(), axes(a.int_or(3)?)?, epsilon))
        },
        Reference::Numpy(
            "[z := x.astype(np.float64), over := tuple(range(-axes, 0)), m := np.mean(z, axis=over, keepdims=True), \
             v := np.mean((z - m) ** 2, axis=over, keepdims=True), \
             ((z - m) / np.sqrt(v + epsilon) * (1 if gamma is None else gamma) + (0 if beta is None else beta))\
             .astype(x.dtype)][-1]",
        ),
        Samples::List(|| samples(2)),
    )
    .refuses(|| invalid(2)),
    OpEntry::new(
        "rms_norm",
        &[
            Param::tensor("x"),
            Param::optional("gamma", ParamKind::Tensor, "None"),
            Param::optional("axes", ParamKind::Int, "1"),
            Param::optional("epsilon", ParamKind::Float, "1e-6"),
        ],
        |a| {
            let epsilon = a.float_or(3)?.unwrap_or(1e-6);
            one(rms_norm(a.tensor(0)?, a.tensor_or(1)?.as_ref(), axes(a.int_or(2)?)?, epsilon))
        },
        Reference::Numpy(
            "[z := x.astype(np.float64), over := tuple(range(-axes, 0)), \
             (z / np.sqrt(np.mean(z * z, axis=over, keepdims=True) + epsilon) * (1 if gamma is None else gamma))\
             .astype(x.dtype)][-1]",
        ),
        Samples::List(|| samples(1)),
    )
    .refuses(|| invalid(1)),
];
