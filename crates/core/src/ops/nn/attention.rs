//! Attention.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::batching::merge;
use crate::ops::binary::{add, equal, logical_and, mul, sub, where_};
use crate::ops::contract::matmul_with;
use crate::ops::creation::{ones, tril};
use crate::ops::elementwise::sum_to;
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{broadcast_to, expand_dims, reshape_to};
use crate::ops::unary::{cast, exp};
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply_at,
    apply_many,
};
use taut_kernels::norm::statistics_dtype;
use taut_kernels::{Arg, ViewMut, attention as kernel};
use taut_memory::Location;

/// Inputs: queries, keys, values and perhaps a mask. Outputs: the result, and the log-sum-exp of every row of scores.
#[derive(Clone, Debug)]
struct Attention {
    causal: bool,
    scale: Option<f64>,
}

impl Attention {
    /// What scores are multiplied by, for vectors of this length.
    fn scale(&self, depth: usize) -> f64 {
        self.scale.unwrap_or_else(|| 1.0 / (depth.max(1) as f64).sqrt())
    }

    /// What every query makes of every key, `[b, h, n, m]`: the softmax of the scores, made again from their
    /// log-sum-exp.
    fn probabilities(&self, call: &VjpCall<'_>, q: &Tensor, k: &Tensor) -> Result<Tensor> {
        let (&[b, h, n, d], m) = (&dims(call, 0), call.input_shape(1)[2]);
        let scores = matmul_with(mul(q, self.scale(d))?, k, false, true)?;
        let mut scores = reshape_to(scores, &[b, h, n, m].into())?;
        let mask = if call.inputs.len() > 3 { Some(call.input(3)?) } else { None };
        let bools = mask.filter(|mask| mask.dtype() == DType::Bool);
        if let (Some(mask), None) = (mask, bools) {
            scores = add(scores, mask)?;
        }
        let triangle = if self.causal { Some(tril(ones([n, m], DType::Bool)?, 0)?) } else { None };
        let seen = match (bools.cloned(), triangle) {
            (Some(mask), Some(triangle)) => Some(logical_and(mask, triangle)?),
            (mask, triangle) => mask.or(triangle),
        };
        if let Some(seen) = seen {
            scores = where_(seen, scores, f64::NEG_INFINITY)?;
        }
        // A query that sees nothing has no probabilities, not undefined ones.
        let lse = call.output(1)?;
        let lse = where_(equal(lse, f64::NEG_INFINITY)?, f64::INFINITY, lse)?;
        exp(sub(scores, expand_dims(lse, -1)?)?)
    }
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = inputs[0].dtype;
        if !dtype.is_float() {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"));
        }
        if let Some(other) = inputs[1..3].iter().find(|spec| spec.dtype != dtype) {
            return Err(Error::dtype(format!("types {dtype} and {} differ", other.dtype)));
        }
        let (&[b, h, n, d], &[kb, g, m, depth], &[vb, vg, vm, e]) =
            (&inputs[0].shape[..], &inputs[1].shape[..], &inputs[2].shape[..])
        else {
            return Err(
                Error::shape("queries, keys and values have rank 4").help("[batch, heads, length, depth]")
            );
        };
        if (kb, vb) != (b, b) || (vg, vm) != (g, m) || depth != d {
            return Err(Error::shape(format!(
                "queries {}, keys {} and values {} do not go together",
                inputs[0].shape, inputs[1].shape, inputs[2].shape
            ))
            .help("[b, h, n, d], [b, g, m, d] and [b, g, m, e] do"));
        }
        if g == 0 || !h.is_multiple_of(g) {
            return Err(Error::shape(format!("{h} query heads do not share {g} key heads evenly")));
        }
        if let Some(mask) = inputs.get(3) {
            if mask.dtype != DType::Bool && mask.dtype != dtype {
                return Err(Error::dtype(format!("a mask of type {} is not supported", mask.dtype))
                    .help(format!("bool and {dtype} are")));
            }
            Layout::contiguous(mask.shape.clone()).broadcast(&Shape::from([b, h, n, m]))?;
        }
        if self.scale.is_some_and(|scale| !scale.is_finite()) {
            return Err(Error::value("the scale must be a finite number"));
        }
        let lse = Spec::new(statistics_dtype(dtype), [b, h, n]);
        Ok(Specs::from_iter([Spec::new(dtype, [b, h, n, e]), lse]))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        kernel::attention_scratch(inputs[0].dtype, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape)
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (q, k, v) = (inputs[0].view(), inputs[1].view(), inputs[2].view());
        let [out, lse] = outputs else { return Err(Error::new(ErrorKind::Graph, "two outputs")) };
        let shape = [q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]];
        let mut strides = [0; 4];
        let mask = inputs.get(3).map(Arg::view);
        if let Some(mask) = &mask {
            let added = 4 - mask.shape().len();
            for (i, (&dim, &stride)) in mask.shape().iter().zip(mask.strides()).enumerate() {
                strides[added + i] = if dim == shape[added + i] { stride } else { 0 };
            }
        }
        let mask = mask.map(|mask| mask.with_layout(&shape, &strides));
        let scale = self.scale(q.shape()[3]);
        kernel::attention(q, k, v, mask, self.causal, scale, out.reborrow(), lse.reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let mut inputs = (0..3).map(|i| call.merged(i)).collect::<Result<Vec<_>>>()?;
        if let Some(mask) = call.inputs.get(3) {
            let shape = call.shape(3);
            inputs.push(if !call.mapped[3] && (shape.rank() < 4 || shape[0] == 1) {
                mask.clone()
            } else {
                // A mask of every set, for each element of the batch.
                let mask = if call.mapped[3] { call.ranked(3, 4)? } else { call.spread(3)? };
                let whole = mask.shape().clone().with(1, call.shape(0)[0]);
                merge(broadcast_to(mask, whole)?)?
            });
        }
        call.parted(apply_many(self, inputs)?)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let (&[b, h, n, d], &[.., m, e]) = (&inputs[0].shape[..], &inputs[2].shape[..]) else {
            return Cost::default();
        };
        let bytes = inputs.iter().map(|s| s.bytes()).chain(outputs.iter().map(Spec::bytes)).sum::<usize>();
        let scores = b as u64 * h as u64 * n as u64 * m as u64;
        Cost { flops: 2 * scores * (d + e) as u64, bytes: bytes as u64 }
    }

    fn attributes(&self) -> String {
        let causal = if self.causal { "causal" } else { "" };
        match self.scale {
            None => causal.into(),
            Some(scale) if self.causal => format!("causal, scale={scale}"),
            Some(scale) => format!("scale={scale}"),
        }
    }
}

impl Differentiable for Attention {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        // The probabilities are made again from queries, keys and mask; values are for their gradient.
        let probabilities = Saves::inputs([0, 1, 3]).and(Saves::outputs([1]));
        let rest = Saves::inputs([2]).and(Saves::OUTPUT);
        let only_values = !(wanted.has(0) || wanted.has(1) || wanted.has(3));
        Some(if only_values { probabilities } else { probabilities.and(rest) })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (g, g_lse) = (call.take_gradient(0), call.take_gradient(1));
        let dtype = call.inputs[0].spec.dtype;
        let (&[b, h, n, d], &[_, groups, m, e]) = (&dims(call, 0), &dims(call, 2));
        // Heads of queries that share keys stand below each other: they need no copies of the keys, and the gradients
        // of keys and values are sums over them by themselves.
        let rows = h / groups * n;
        let grouped = |x: &Tensor, depth| reshape_to(x, &[b, groups, rows, depth].into());
        let wide = statistics_dtype(dtype);
        let (q, k) = (grouped(&cast(call.input(0)?, wide)?, d)?, cast(call.input(1)?, wide)?);
        let g = g.map(|g| cast(g, wide)).transpose()?;
        let p = self.probabilities(call, &q, &k)?;
        let mut gradients = Gradients::from_elem(None, call.inputs.len());
        if let Some(g) = &g
            && call.wants(2)
        {
            let v = matmul_with(grouped(&p, m)?, grouped(g, e)?, true, false)?;
            gradients[2] = Some(cast(v, dtype)?.into());
        }
        if !(call.wants(0) || call.wants(1) || call.wants(3)) {
            return Ok(gradients);
        }
        // What comes from the values, less its mean, which every row of probabilities takes out.
        let mut scores = match g {
            None => None,
            Some(g) => {
                let mean = sum(mul(&g, call.output(0)?)?, -1, true)?;
                let from_values = matmul_with(grouped(&g, e)?, cast(call.input(2)?, wide)?, false, true)?;
                Some(sub(reshape_to(from_values, p.shape())?, mean)?)
            }
        };
        if let Some(g_lse) = g_lse {
            let g_lse = expand_dims(g_lse, -1)?;
            scores = Some(scores.map_or(Ok(g_lse.clone()), |scores| add(scores, &g_lse))?);
        }
        let Some(scores) = scores else { return Ok(gradients) };
        let scores = mul(p, scores)?;
        if call.wants(3) {
            gradients[3] = Some(cast(sum_to(scores.clone(), call.input_shape(3))?, dtype)?.into());
        }
        let (scores, scale) = (grouped(&scores, m)?, self.scale(d));
        if call.wants(0) {
            let q = mul(matmul_with(&scores, k, false, false)?, scale)?;
            gradients[0] = Some(cast(reshape_to(q, call.input_shape(0))?, dtype)?.into());
        }
        if call.wants(1) {
            gradients[1] = Some(cast(matmul_with(scores, mul(q, scale)?, true, false)?, dtype)?.into());
        }
        Ok(gradients)
    }
}

/// The four dimensions of an input.
fn dims(call: &VjpCall<'_>, input: usize) -> [usize; 4] {
    let shape = call.input_shape(input);
    [shape[0], shape[1], shape[2], shape[3]]
}

/// `softmax(scale * q @ transpose(k) + mask) @ v`, without ever making the matrix of scores.
///
/// `q` is `[b, h, n, d]`, `k` `[b, g, m, d]` and `v` `[b, g, m, e]`, where each of the `g` heads of keys serves `h / g` neighbouring
/// heads of queries. The mask broadcasts to `[b, h, n, m]`: booleans, true where a query sees a key, or numbers that are
/// added to the scores. With `causal`, query `i` sees keys up to `i` only. A query that sees nothing gives zeros.
/// The scale is `1 / sqrt(d)` unless given.
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

/// As [`attention`], with the log-sum-exp of every row of scores, `[b, h, n]`.
#[track_caller]
pub fn attention_with_lse(
    q: impl Into<Tensor>,
    k: impl Into<Tensor>,
    v: impl Into<Tensor>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<(Tensor, Tensor)> {
    let mut inputs = vec![q.into(), k.into(), v.into()];
    inputs.extend(mask.cloned());
    let mut outputs = apply_at(&Attention { causal, scale }, &mut inputs, Location::caller())?;
    let out = outputs.swap_remove(0);
    Ok((out, outputs.swap_remove(0)))
}

/// Shapes of queries, keys and values, the mask's type and shape, causal, scale.
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

fn refuses() -> Vec<Bad> {
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
        Bad::new(args(f, deep, none(), 1.0), ErrorKind::Shape, "do not go together"),
        Bad::new(args(f, heads, none(), 1.0), ErrorKind::Shape, "3 query heads do not share 2 key heads"),
        Bad::new(args(f, flat, none(), 1.0), ErrorKind::Shape, "queries, keys and values have rank 4"),
        Bad::new(
            args(f, good, mask(f, &[3, 4]), 1.0),
            ErrorKind::Shape,
            "does not broadcast to [1, 2, 3, 5]",
        ),
        Bad::new(args(f, good, mask(DType::I32, &[5]), 1.0), ErrorKind::DType, "a mask of type int32"),
        Bad::new(args(f, good, none(), f64::NAN), ErrorKind::Value, "the scale must be a finite number"),
        Bad::new(args(DType::I32, good, none(), 1.0), ErrorKind::DType, "int32 is not supported"),
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
.refuses(refuses)];
