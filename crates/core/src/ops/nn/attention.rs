//! Scaled dot-product attention.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{mul, sub};
use crate::ops::creation::zeros;
use crate::ops::draw::{check_key, check_position, read_key, read_position};
use crate::ops::elementwise::sum_to;
use crate::ops::nn::attention_gradient::{AttentionGradient, Scores};
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{broadcast_to, expand_dims};
use crate::ops::unary::cast;
use crate::ops::vmap::merge_leading_axes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply_at,
    apply_many,
};
use std::sync::Arc;
use taut_kernels::attention::AttentionDropout;
use taut_kernels::norm::statistics_dtype;
use taut_kernels::{Arg, View, ViewMut, attention as kernel};
use taut_memory::Location;

/// Inputs: queries, keys, values, and the optional ones. Outputs: the result, and the logsumexp of each row of scores.
///
/// The optional inputs, here and in the gradient, come after the others: a mask; for dropout a key, and the position of the first
/// probability among those that the key determines, if it is not 0.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    pub(super) causal: bool,
    pub(super) scale: Option<f64>,
    pub(super) masked: bool,
    /// The probability of a weight to be dropped.
    pub(super) dropout: Option<f64>,
}

/// The number of inputs before the optional ones.
const REQUIRED: usize = 3;

impl Attention {
    /// The mask among the optional inputs.
    pub(super) fn mask<'a, T>(&self, optional: &'a [T]) -> Option<&'a T> {
        optional.first().filter(|_| self.masked)
    }

    /// The key, and the position if it is given, among the optional inputs.
    fn draws<'a, T>(&self, optional: &'a [T]) -> &'a [T] {
        optional.get(usize::from(self.masked)..).unwrap_or_default()
    }

    /// The dropout of the kernels, read from the optional inputs.
    pub(super) fn kernel_dropout(&self, optional: &[Arg<'_>]) -> Option<AttentionDropout> {
        let draws = self.draws(optional);
        let (rate, key) = (self.dropout?, draws.first()?);
        Some(AttentionDropout { rate, key: read_key(key.view()), first: read_position(draws.get(1)) })
    }

    /// The key of a call that is differentiated, whose optional inputs start at `first`.
    pub(super) fn saved_key<'a>(&self, call: &'a VjpCall<'_>, first: usize) -> Result<Option<&'a Tensor>> {
        let key = first + usize::from(self.masked);
        if self.dropout.is_none() {
            return Ok(None);
        }
        if call.inputs.len() > key + 1 {
            return Err(Error::new(ErrorKind::Graph, "a part of a batch has no gradient of its own"));
        }
        call.input(key).map(Some)
    }

    /// The factor of the scores, for vectors of length `depth`.
    pub(super) fn scale(&self, depth: usize) -> f64 {
        self.scale.unwrap_or_else(|| 1.0 / (depth.max(1) as f64).sqrt())
    }

    /// Rejects queries, keys, values and optional inputs that do not fit together.
    pub(super) fn check(&self, inputs: &[&Spec; 3], optional: &[&Spec]) -> Result<()> {
        let dtype = inputs[0].dtype;
        if !dtype.is_float() {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"));
        }
        if let Some(other) = inputs[1..].iter().find(|spec| spec.dtype != dtype) {
            return Err(Error::dtype(format!(
                "q, k and v must have the same dtype, got {dtype} and {}",
                other.dtype
            )));
        }
        let (&[b, h, n, d], &[kb, g, m, depth], &[vb, vg, vm, _]) =
            (&inputs[0].shape[..], &inputs[1].shape[..], &inputs[2].shape[..])
        else {
            return Err(Error::shape("q, k and v must have rank 4: [batch, heads, length, depth]"));
        };
        if (kb, vb) != (b, b) || (vg, vm) != (g, m) || depth != d {
            return Err(Error::shape(format!(
                "q, k and v must have shapes [b, h, n, d], [b, g, m, d] and [b, g, m, e], got {}, {} and {}",
                inputs[0].shape, inputs[1].shape, inputs[2].shape
            )));
        }
        if g == 0 || !h.is_multiple_of(g) {
            let message =
                format!("the number of query heads must be divisible by that of key heads, got {h} and {g}");
            return Err(Error::shape(message));
        }
        if let Some(rate) = self.dropout {
            let draws = self.draws(optional);
            let key = draws.first().ok_or_else(|| Error::value("dropout needs a key"))?;
            check_key(key)?;
            check_position(draws.get(1))?;
            if !(0.0..1.0).contains(&rate) {
                return Err(Error::value(format!("rate must be in [0, 1), got {rate}")));
            }
        }
        if let Some(mask) = self.mask(optional) {
            if mask.dtype != DType::Bool && mask.dtype != dtype {
                return Err(Error::dtype(format!("mask must be bool or {dtype}, got {}", mask.dtype)));
            }
            Layout::contiguous(mask.shape.clone()).broadcast(&Shape::from([b, h, n, m]))?;
        }
        if let Some(scale) = self.scale.filter(|scale| !scale.is_finite()) {
            return Err(Error::value(format!("scale must be finite, got {scale}")));
        }
        Ok(())
    }

    pub(super) fn text(&self) -> String {
        let causal = self.causal.then(|| "causal".to_owned());
        let scale = self.scale.map(|scale| format!("scale={scale}"));
        let dropout = self.dropout.map(|rate| format!("dropout={rate}"));
        [causal, scale, dropout].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The inputs of one call for all examples. There is none with dropout: the same weights are dropped in every example.
    pub(super) fn merged_inputs(&self, call: &VmapCall<'_>, required: usize) -> Result<Option<Vec<Tensor>>> {
        if self.dropout.is_some() { Ok(None) } else { merged_inputs(call, required).map(Some) }
    }

    /// The split of a call whose rows are examples. The mask has a first axis for them, or is broadcast to all.
    pub(super) fn split_examples(&self, call: &RowCall<'_>, required: usize) -> Option<RowSplit> {
        let (_, rows) = call.first_rows()?;
        let optional = &call.inputs[required..];
        if rows.axis != 0 || self.draws(optional).len() > usize::from(self.dropout.is_some()) {
            return None;
        }
        let by_example = |mask: &&Spec| (mask.shape.rank() == 4 && mask.shape[0] != 1).then_some(0);
        let mut inputs = vec![Some(0); required];
        inputs.extend(self.mask(optional).map(by_example));
        inputs.extend(self.dropout.map(|_| None));
        let split = call.independent(&inputs, &vec![Some(0); call.outputs.len()])?;
        // The weights of an example, all of which the key determines.
        let weights =
            rows.per_row * call.inputs[0].shape[1] * call.inputs[0].shape[2] * call.inputs[1].shape[2];
        Some(RowSplit { positions: self.dropout.map(|_| weights), ..split })
    }
}

/// Calls `work` with the mask broadcast to the scores `[b, h, n, m]` of these queries and keys.
pub(super) fn with_mask<R>(
    [q, k]: [View<'_>; 2],
    mask: Option<&Arg<'_>>,
    work: impl FnOnce(Option<View<'_>>) -> R,
) -> R {
    let Some(mask) = mask.map(Arg::view) else { return work(None) };
    let shape = [q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]];
    let mut strides = [0; 4];
    let added = 4 - mask.shape().len();
    for (i, (&dim, &stride)) in mask.shape().iter().zip(mask.strides()).enumerate() {
        strides[added + i] = if dim == shape[added + i] { stride } else { 0 };
    }
    work(Some(mask.with_layout(&shape, &strides)))
}

/// The inputs of one call for all examples, of which the one at `mask`, if there is one, is the mask.
fn merged_inputs(call: &VmapCall<'_>, mask: usize) -> Result<Vec<Tensor>> {
    let mut inputs = (0..mask).map(|i| call.merged_input(i)).collect::<Result<Vec<_>>>()?;
    if let Some(tensor) = call.inputs.get(mask) {
        let shape = call.shape(mask);
        inputs.push(if !call.mapped[mask] && (shape.rank() < 4 || shape[0] == 1) {
            tensor.clone()
        } else {
            // One mask per example, repeated for each element of the batch.
            let own =
                if call.mapped[mask] { call.input_of_rank(mask, 4)? } else { call.batched_input(mask)? };
            let whole = own.shape().clone().with(1, call.shape(0)[0]);
            merge_leading_axes(broadcast_to(own, whole)?)?
        });
    }
    Ok(inputs)
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        self.check(&[inputs[0], inputs[1], inputs[2]], &inputs[REQUIRED..])?;
        let Spec { dtype, shape } = inputs[0];
        let lse = Spec::new(statistics_dtype(*dtype), &shape[..3]);
        Ok(Specs::from_iter([Spec::new(*dtype, shape.clone().with(3, inputs[2].shape[3])), lse]))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        kernel::attention_scratch(inputs[0].dtype, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape)
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (q, k, v) = (inputs[0].view(), inputs[1].view(), inputs[2].view());
        let [out, lse] = outputs else { return Err(Error::new(ErrorKind::Graph, "expected 2 outputs")) };
        let (optional, scale) = (&inputs[REQUIRED..], self.scale(q.shape()[3]));
        let dropout = self.kernel_dropout(optional);
        with_mask([q, k], self.mask(optional), |mask| {
            let (out, lse) = (out.reborrow(), lse.reborrow());
            kernel::attention(q, k, v, mask, self.causal, scale, dropout, out, lse, scratch);
        });
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        match self.merged_inputs(call, REQUIRED)? {
            Some(inputs) => call.split_outputs(apply_many(self, inputs)?),
            None => Ok(None),
        }
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let (&[b, h, n, d], &[.., m, e]) = (&inputs[0].shape[..], &inputs[2].shape[..]) else {
            return Cost::default();
        };
        let scores = b as u64 * h as u64 * n as u64 * m as u64;
        Cost { flops: 2 * scores * (d + e) as u64, bytes: Cost::traffic(inputs, outputs) }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        self.text()
    }
}

impl RowRule for Attention {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        self.split_examples(call, REQUIRED)
    }

    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.clone()))
    }
}

impl Differentiable for Attention {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        // The probabilities are recomputed from queries, keys and mask; their gradient needs the values.
        let probabilities = Saves::inputs([0, 1, REQUIRED, REQUIRED + 1]).and(Saves::outputs([1]));
        let rest = Saves::inputs([2]).and(Saves::OUTPUT);
        let only_values = !(wanted.has(0) || wanted.has(1) || wanted.has(REQUIRED));
        Some(if only_values { probabilities } else { probabilities.and(rest) })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (g, g_lse) = (call.take_gradient(0), call.take_gradient(1));
        let mut gradients = Gradients::from_elem(None, call.inputs.len());
        let wanted = [0, 1, 2].map(|i| call.wants(i));
        let (dtype, wide) = (call.inputs[0].spec.dtype, statistics_dtype(call.inputs[0].spec.dtype));
        let (q, k, lse) = (call.input(0)?, call.input(1)?, call.output(1)?);
        // The softmax gradient is p * (g @ vᵀ - delta), where delta is the mean of g @ vᵀ in a row, sum(g * out). With dropout,
        // g @ vᵀ is dropped like p, and the mean is the same sum.
        let by_scores = wanted[0] || wanted[1] || call.wants(REQUIRED);
        let delta = match &g {
            Some(g) if by_scores => sum(mul(cast(g, wide)?, call.output(0)?)?, -1, false)?,
            _ => zeros(lse.shape().clone(), wide)?,
        };
        let delta = if let Some(g_lse) = g_lse { sub(delta, g_lse)? } else { delta };
        let g = g.map_or_else(|| zeros(call.output_shape(0).clone(), dtype), Ok)?;
        let mask = if self.masked { Some(call.input(REQUIRED)?) } else { None };
        let key = self.saved_key(call, REQUIRED)?;
        if mask.is_some() && call.wants(REQUIRED) {
            // As large as the scores, or summed from them: they exist anyway.
            let scores = Scores::new(self, [q, k], mask, key, lse)?;
            let from_values = scores.outer(&cast(&g, wide)?, &cast(call.input(2)?, wide)?)?;
            let from_values = scores.dropped(&from_values)?;
            let ds = mul(&scores.probabilities, sub(from_values, expand_dims(&delta, -1)?)?)?;
            gradients[REQUIRED] = Some(cast(sum_to(ds, call.input_shape(REQUIRED))?, dtype)?.into());
        }
        // For the gradient of the values, which is all that is wanted then, any values do.
        let v = if by_scores { call.input(2)?.clone() } else { zeros(call.input_shape(2).clone(), dtype)? };
        let op = AttentionGradient { attention: self.clone(), wanted };
        let inputs = [q.clone(), k.clone(), v, g, lse.clone(), delta];
        let found = op.call(inputs.into_iter().chain(mask.cloned()).chain(key.cloned()).collect())?;
        for (gradient, found) in gradients.iter_mut().zip(found) {
            *gradient = found.map(Into::into);
        }
        Ok(gradients)
    }
}

/// Scaled dot-product attention, `softmax(scale * q @ transpose(k) + mask) @ v`, without materializing the scores.
///
/// `q` is `[b, h, n, d]`, `k` `[b, g, m, d]` and `v` `[b, g, m, e]`; each of the `g` key heads serves `h / g` consecutive
/// query heads (grouped-query attention). The mask broadcasts to `[b, h, n, m]`: booleans, true where a query attends to a
/// key, or numbers that are added to the scores. With `causal`, query `i` attends to keys `0..=i` only. A query with every
/// key masked gives zeros. `scale` defaults to `1 / sqrt(d)`. Differentiable in `q`, `k`, `v` and a mask of numbers.
///
/// ```
/// use taut_core::{Tensor, ops::nn::attention};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 2, 1])?;
/// assert_eq!(attention(&x, &x, &x, None, true, None)?.to_vec::<f32>()?[0], 1.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn attention(
    q: impl Into<Tensor>,
    k: impl Into<Tensor>,
    v: impl Into<Tensor>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<Tensor> {
    Ok(attention_with_lse(q, k, v, mask, causal, scale)?.0)
}

/// As [`attention`]; also returns the logsumexp of each row of scores, `[b, h, n]`.
#[track_caller]
pub fn attention_with_lse(
    q: impl Into<Tensor>,
    k: impl Into<Tensor>,
    v: impl Into<Tensor>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<(Tensor, Tensor)> {
    let op = Attention { causal, scale, masked: mask.is_some(), dropout: None };
    let mut inputs = vec![q.into(), k.into(), v.into()];
    inputs.extend(mask.cloned());
    let mut outputs = apply_at(&op, &mut inputs, Location::caller())?;
    let out = outputs.swap_remove(0);
    Ok((out, outputs.swap_remove(0)))
}

/// Shapes of queries, keys and values, whether the mask is boolean and its shape, causal, scale.
type Case<'a> = ([&'a [usize]; 3], Option<(bool, &'a [usize])>, bool, Option<f64>);

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [Case<'_>; 8] = [
        ([&[1, 1, 2, 3], &[1, 1, 4, 3], &[1, 1, 4, 2]], None, false, None),
        ([&[2, 4, 3, 2], &[2, 2, 3, 2], &[2, 2, 3, 5]], None, true, Some(0.7)),
        ([&[2, 2, 3, 4], &[2, 2, 5, 4], &[2, 2, 5, 4]], Some((true, &[3, 5])), false, None),
        ([&[2, 2, 3, 4], &[2, 1, 5, 4], &[2, 1, 5, 4]], Some((false, &[2, 1, 1, 5])), false, None),
        ([&[1, 1, 2, 3], &[1, 1, 1, 3], &[1, 1, 1, 3]], Some((true, &[2, 1])), true, None),
        ([&[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3]], None, false, None),
        ([&[1, 1, 0, 3], &[1, 1, 2, 3], &[1, 1, 2, 3]], None, false, None),
        ([&[1, 1, 2, 3], &[1, 1, 0, 3], &[1, 1, 0, 2]], None, false, None),
    ];
    let with = |dtype, (shapes, mask, causal, scale): Case<'_>| {
        let mut args: Vec<_> = shapes.iter().map(|shape| ramp(dtype, shape, -2.0, 2.0)).collect();
        args.push(match mask {
            None => ArgValue::None,
            Some((true, shape)) => ramp(DType::Bool, shape, 0.0, 1.0),
            Some((false, shape)) => ramp(dtype, shape, -1.0, 1.0),
        });
        args.extend([ArgValue::Bool(causal), scale.map_or(ArgValue::None, ArgValue::Float)]);
        args
    };
    dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
}

fn invalid() -> Vec<InvalidArgs> {
    let args = |dtype, shapes: [&[usize]; 3], mask: ArgValue, scale: f64| {
        let mut args: Vec<_> = shapes.iter().map(|shape| ramp(dtype, shape, 0.0, 1.0)).collect();
        args.extend([mask, ArgValue::Bool(false), ArgValue::Float(scale)]);
        args
    };
    let good: [&[usize]; 3] = [&[1, 2, 3, 4], &[1, 2, 5, 4], &[1, 2, 5, 4]];
    let deep: [&[usize]; 3] = [&[1, 2, 3, 4], &[1, 2, 5, 3], &[1, 2, 5, 4]];
    let heads: [&[usize]; 3] = [&[1, 3, 3, 4], &[1, 2, 5, 4], &[1, 2, 5, 4]];
    let flat: [&[usize]; 3] = [&[3, 4], &[5, 4], &[5, 4]];
    let mask = |dtype, shape: &[usize]| ramp(dtype, shape, 0.0, 1.0);
    let (f, none) = (DType::F32, || ArgValue::None);
    vec![
        InvalidArgs::new(
            args(f, deep, none(), 1.0),
            ErrorKind::Shape,
            "must have shapes [b, h, n, d], [b, g, m, d] and [b, g, m, e], got [1, 2, 3, 4], [1, 2, 5, 3]",
        ),
        InvalidArgs::new(
            args(f, heads, none(), 1.0),
            ErrorKind::Shape,
            "divisible by that of key heads, got 3 and 2",
        ),
        InvalidArgs::new(args(f, flat, none(), 1.0), ErrorKind::Shape, "q, k and v must have rank 4"),
        InvalidArgs::new(
            args(f, good, mask(f, &[3, 4]), 1.0),
            ErrorKind::Shape,
            "does not broadcast to [1, 2, 3, 5]",
        ),
        InvalidArgs::new(
            args(f, good, mask(DType::I32, &[5]), 1.0),
            ErrorKind::DType,
            "mask must be bool or float32, got int32",
        ),
        InvalidArgs::new(args(f, good, none(), f64::NAN), ErrorKind::Value, "scale must be finite, got NaN"),
        InvalidArgs::new(args(DType::I32, good, none(), 1.0), ErrorKind::DType, "int32 is not supported"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "attention",
    &[
        Param::tensor("q"),
        Param::tensor("k"),
        Param::tensor("v"),
        Param::optional("mask", ParamKind::Tensor, "None"),
        Param::optional("causal", ParamKind::Bool, "False"),
        Param::optional("scale", ParamKind::Float, "None"),
    ],
    |a| {
        let (q, k, v, mask) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor_or(3)?);
        one(attention(q, k, v, mask.as_ref(), a.bool_or(4)?.unwrap_or(false), a.float_or(5)?))
    },
    Reference::Numpy(
        "[r := q.shape[1] // k.shape[1], kk := np.repeat(k.astype(np.float64), r, 1), \
         vv := np.repeat(v.astype(np.float64), r, 1), boolean := mask is not None and mask.dtype == bool, \
         s := q.astype(np.float64) @ np.swapaxes(kk, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale), \
         keep := np.ones(s.shape, bool) & (np.tri(*s.shape[-2:], dtype=bool) if causal else True) \
         & (mask if boolean else True), \
         s := np.where(keep, s + (0 if boolean or mask is None else mask), -np.inf), \
         e := np.where(keep, np.exp(s - np.max(s, -1, keepdims=True, initial=-1e30)), 0), \
         (e / np.maximum(np.sum(e, -1, keepdims=True), 1e-300) @ vv).astype(q.dtype)][-1]",
    ),
    Samples::List(samples),
)
.refuses(invalid)];
