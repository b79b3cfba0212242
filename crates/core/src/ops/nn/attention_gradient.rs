//! The gradients of attention with respect to queries, keys and values.

use super::attention::{Attention, with_mask};
use super::layer_norm::plus;
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, equal, logical_and, mul, sub, where_};
use crate::ops::contract::matmul_with;
use crate::ops::creation::{ones, tril};
use crate::ops::elementwise::sum_to;
use crate::ops::random::stateless_bernoulli;
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{expand_dims, reshape_to};
use crate::ops::unary::{cast, exp, neg};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply_at, apply_many};
use std::sync::Arc;
use taut_kernels::attention::{AttentionCall, attention_gradient as kernel, attention_gradient_scratch};
use taut_kernels::norm::statistics_dtype;
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// The inputs of the op by position; the optional ones come after them, the mask first.
const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const G: usize = 3;
const LSE: usize = 4;
const DELTA: usize = 5;
const MASK: usize = 6;

/// Inputs: queries, keys, values, the cotangent of the output, logsumexp and mean cotangent per row, and the optional ones of
/// [`Attention`]. Outputs: the gradients that are wanted, of queries, keys and values.
#[derive(Clone, Debug)]
pub(super) struct AttentionGradient {
    pub(super) attention: Attention,
    pub(super) wanted: [bool; 3],
}

impl AttentionGradient {
    /// The gradients of queries, keys and values; `None` for those that are not wanted.
    #[track_caller]
    pub(super) fn call(&self, mut inputs: Vec<Tensor>) -> Result<[Option<Tensor>; 3]> {
        if self.wanted == [false; 3] {
            return Ok([None, None, None]);
        }
        let mut found = apply_at(self, &mut inputs, Location::caller())?.into_iter();
        Ok(self.wanted.map(|wanted| if wanted { found.next() } else { None }))
    }

    /// The cotangents of the gradients of queries, keys and values, in the type of the statistics.
    fn cotangents(&self, call: &mut VjpCall<'_>) -> Result<[Option<Tensor>; 3]> {
        let wide = statistics_dtype(call.inputs[Q].spec.dtype);
        let mut cotangents = [None, None, None];
        let wanted = (0..3).filter(|&i| self.wanted[i]);
        for (output, i) in wanted.enumerate() {
            cotangents[i] = call.take_gradient(output).map(|cotangent| cast(cotangent, wide)).transpose()?;
        }
        Ok(cotangents)
    }

    /// The probabilities, recomputed from the inputs.
    fn scores(&self, call: &VjpCall<'_>) -> Result<Scores> {
        let mask = if self.attention.masked { Some(call.input(MASK)?) } else { None };
        let key = self.attention.saved_key(call, MASK)?;
        Scores::new(&self.attention, [call.input(Q)?, call.input(K)?], mask, key, call.input(LSE)?)
    }
}

impl Op for AttentionGradient {
    fn name(&self) -> &'static str {
        "attention_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        self.attention.check(&[inputs[Q], inputs[K], inputs[V]], &inputs[MASK..])?;
        let Spec { dtype, shape } = inputs[Q];
        let rows = Spec::new(statistics_dtype(*dtype), &shape[..3]);
        let result = Spec::new(*dtype, shape.clone().with(3, inputs[V].shape[3]));
        for (name, position, spec) in [("g", G, &result), ("lse", LSE, &rows), ("delta", DELTA, &rows)] {
            let given = inputs[position];
            if given.dtype != spec.dtype {
                return Err(Error::dtype(format!("{name} must be {}, got {}", spec.dtype, given.dtype)));
            }
            if given.shape != spec.shape {
                return Err(Error::shape(format!(
                    "{name} must have shape {}, got {}",
                    spec.shape, given.shape
                )));
            }
        }
        Ok((0..3).filter(|&i| self.wanted[i]).map(|i| inputs[i].clone()).collect())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        attention_gradient_scratch(inputs[Q].dtype, &inputs[Q].shape, &inputs[K].shape, &inputs[V].shape)
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        if outputs.len() != self.wanted.iter().filter(|&&wanted| wanted).count() {
            return Err(Error::new(ErrorKind::Graph, "expected an output per wanted gradient"));
        }
        let [q, k, v, g, lse, delta] = [Q, K, V, G, LSE, DELTA].map(|i| inputs[i].view());
        let (causal, scale) = (self.attention.causal, self.attention.scale(q.shape()[3]));
        let mut outputs = outputs.iter_mut();
        let outputs =
            self.wanted.map(|wanted| if wanted { outputs.next().map(ViewMut::reborrow) } else { None });
        let optional = &inputs[MASK..];
        let dropout = self.attention.kernel_dropout(optional);
        with_mask([q, k], self.attention.mask(optional), |mask| {
            kernel(&AttentionCall { q, k, v, mask, causal, scale, dropout, g, lse, delta }, outputs, scratch);
        });
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        match self.attention.merged_inputs(call, MASK)? {
            Some(inputs) => call.split_outputs(apply_many(self, inputs)?),
            None => Ok(None),
        }
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let (&[b, h, n, d], &[.., m, e]) = (&inputs[Q].shape[..], &inputs[V].shape[..]) else {
            return Cost::default();
        };
        let scores = b as u64 * h as u64 * n as u64 * m as u64;
        // Two products make the tile of scores and of their gradients, and one each gradient.
        let [dq, dk, dv] = self.wanted.map(u64::from);
        let (d, e) = (d as u64, e as u64);
        let products = d + e * dq.max(dk) + d * (dq + dk) + e * dv;
        Cost { flops: 2 * scores * products, bytes: Cost::traffic(inputs, outputs) }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let of: Vec<&str> = (0..3).filter(|&i| self.wanted[i]).map(|i| ["q", "k", "v"][i]).collect();
        let of = format!("of=[{}]", of.join(", "));
        let text = self.attention.text();
        if text.is_empty() { of } else { format!("{of}, {text}") }
    }
}

impl RowRule for AttentionGradient {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        self.attention.split_examples(call, MASK)
    }

    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.clone()))
    }
}

/// The probabilities of attention, and products with matrices like them. Everything is of the type of the statistics.
pub(super) struct Scores {
    /// `[b, h, n, m]`, recomputed from queries, keys and logsumexp.
    pub(super) probabilities: Tensor,
    /// Batch, key heads, and the rows of the query heads that share one: they are stacked, so that keys are not copied and
    /// products sum over the heads.
    groups: [usize; 3],
    /// Which weights dropout keeps, and the factor of those.
    kept: Option<(Tensor, f64)>,
}

impl Scores {
    pub(super) fn new(
        attention: &Attention,
        [q, k]: [&Tensor; 2],
        mask: Option<&Tensor>,
        key: Option<&Tensor>,
        lse: &Tensor,
    ) -> Result<Scores> {
        let (&[b, h, n, d], &[_, g, m, _]) = (&q.shape()[..], &k.shape()[..]) else {
            return Err(Error::new(ErrorKind::Graph, "expected queries and keys of rank 4"));
        };
        let groups = [b, g, h / g * n];
        let wide = statistics_dtype(q.dtype());
        let scaled = mul(cast(q, wide)?, attention.scale(d))?;
        let stacked = reshape_to(scaled, &[b, g, groups[2], d].into())?;
        let scores = matmul_with(stacked, cast(k, wide)?, false, true)?;
        let mut scores = reshape_to(scores, &[b, h, n, m].into())?;
        let bools = mask.filter(|mask| mask.dtype() == DType::Bool);
        if let (Some(mask), None) = (mask, bools) {
            scores = add(scores, mask)?;
        }
        let triangle = if attention.causal { Some(tril(ones([n, m], DType::Bool)?, 0)?) } else { None };
        let visible = match (bools.cloned(), triangle) {
            (Some(mask), Some(triangle)) => Some(logical_and(mask, triangle)?),
            (mask, triangle) => mask.or(triangle),
        };
        if let Some(visible) = visible {
            scores = where_(visible, scores, f64::NEG_INFINITY)?;
        }
        // A query with every key masked has probabilities 0, not NaN.
        let lse = where_(equal(lse, f64::NEG_INFINITY)?, f64::INFINITY, lse)?;
        let probabilities = exp(sub(scores, expand_dims(lse, -1)?)?)?;
        let kept = match (attention.dropout, key) {
            (Some(rate), Some(key)) => {
                let kept = stateless_bernoulli(key, probabilities.shape(), 1.0 - rate)?;
                Some((kept, 1.0 / (1.0 - rate)))
            }
            _ => None,
        };
        Ok(Scores { probabilities, groups, kept })
    }

    /// A matrix like the probabilities after dropout, which is linear and its own transpose.
    pub(super) fn dropped(&self, x: &Tensor) -> Result<Tensor> {
        match &self.kept {
            Some((kept, factor)) => where_(kept, mul(x, *factor)?, 0.0),
            None => Ok(x.clone()),
        }
    }

    fn grouped(&self, x: &Tensor) -> Result<Tensor> {
        let [b, g, rows] = self.groups;
        reshape_to(x, &[b, g, rows, x.shape()[3]].into())
    }

    /// `x @ yᵀ`, `[b, h, n, m]`, of rows of queries and rows of keys.
    pub(super) fn outer(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        reshape_to(matmul_with(self.grouped(x)?, y, false, true)?, self.probabilities.shape())
    }

    /// `s @ y`, a row per query, of a matrix like the scores and rows of keys.
    fn per_query(&self, s: &Tensor, y: &Tensor) -> Result<Tensor> {
        let shape = s.shape().clone().with(3, y.shape()[3]);
        reshape_to(matmul_with(self.grouped(s)?, y, false, false)?, &shape)
    }

    /// `sᵀ @ x`, a row per key, of a matrix like the scores and rows of queries.
    fn per_key(&self, s: &Tensor, x: &Tensor) -> Result<Tensor> {
        matmul_with(self.grouped(s)?, self.grouped(x)?, true, false)
    }
}

impl Differentiable for AttentionGradient {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([Q, K, V, G, LSE, DELTA, MASK, MASK + 1]))
    }

    /// The op computes, with `p` the probabilities, `r = dropped(g @ vᵀ) - delta` and `ds = scale * p * r`: `dq = ds @ k`,
    /// `dk = dsᵀ @ q`, `dv = dropped(p)ᵀ @ g`. The rule differentiates these, with matrices as large as the scores.
    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let wide = statistics_dtype(call.inputs[Q].spec.dtype);
        let scale = self.attention.scale(call.input_shape(Q)[3]);
        let [of_dq, of_dk, of_dv] = self.cotangents(call)?;
        let scores = self.scores(call)?;
        let p = &scores.probabilities;
        let [q, k, v, g] = [Q, K, V, G].map(|i| call.input(i).and_then(|x| cast(x, wide)));
        let (q, k, v, g) = (q?, k?, v?, g?);
        let r = sub(scores.dropped(&scores.outer(&g, &v)?)?, expand_dims(call.input(DELTA)?, -1)?)?;
        let ds = mul(mul(p, &r)?, scale)?;
        // The cotangents of p * r, of the probabilities, of the scores, and of g @ vᵀ.
        let of_products = plus(
            of_dq.as_ref().map(|c| scores.outer(c, &k)).transpose()?,
            of_dk.as_ref().map(|c| scores.outer(&q, c)).transpose()?,
        )?;
        let of_products = of_products.map(|c| mul(c, scale)).transpose()?;
        let of_p = plus(
            of_dv.as_ref().map(|c| scores.dropped(&scores.outer(&g, c)?)).transpose()?,
            of_products.as_ref().map(|c| mul(c, &r)).transpose()?,
        )?;
        let of_r = of_products.map(|c| mul(c, p)).transpose()?;
        let of_scores = of_p.map(|c| mul(c, p)).transpose()?;
        let of_outer = of_r.as_ref().map(|c| scores.dropped(c)).transpose()?;

        let mut gradients = Gradients::from_elem(None, call.inputs.len());
        let mut set = |input: usize, [a, b]: [Result<Option<Tensor>>; 2]| -> Result<()> {
            if let Some(sum) = plus(a?, b?)? {
                gradients[input] = Some(cast(sum, call.inputs[input].spec.dtype)?.into());
            }
            Ok(())
        };
        let scaled = of_scores.as_ref().map(|c| mul(c, scale)).transpose()?;
        if call.wants(Q) {
            let direct = of_dk.as_ref().map(|c| scores.per_query(&ds, c)).transpose();
            set(Q, [direct, scaled.as_ref().map(|c| scores.per_query(c, &k)).transpose()])?;
        }
        if call.wants(K) {
            let direct = of_dq.as_ref().map(|c| scores.per_key(&ds, c)).transpose();
            set(K, [direct, scaled.as_ref().map(|c| scores.per_key(c, &q)).transpose()])?;
        }
        if call.wants(V) {
            set(V, [Ok(None), of_outer.as_ref().map(|c| scores.per_key(c, &g)).transpose()])?;
        }
        if call.wants(G) {
            let direct = of_dv.as_ref().map(|c| scores.per_query(&scores.dropped(p)?, c)).transpose();
            set(G, [direct, of_outer.as_ref().map(|c| scores.per_query(c, &v)).transpose()])?;
        }
        let row_sum = |c: &Tensor| neg(sum(c, -1, false)?);
        if call.wants(LSE) {
            set(LSE, [Ok(None), of_scores.as_ref().map(row_sum).transpose()])?;
        }
        if call.wants(DELTA) {
            set(DELTA, [Ok(None), of_r.as_ref().map(row_sum).transpose()])?;
        }
        if self.attention.masked && call.wants(MASK) {
            let shape = call.input_shape(MASK);
            set(MASK, [Ok(None), of_scores.map(|c| sum_to(c, shape)).transpose()])?;
        }
        Ok(gradients)
    }
}

/// The gradients of [`attention`](super::attention) with respect to `q`, `k` and `v`, given the gradient `g` of its result.
///
/// `lse` is the logsumexp of each row of scores, and `delta`, of the same shape, `sum(g * result, -1)` less the gradient of `lse`. Works
/// in tiles of queries and keys: memory beyond the results does not grow with their number.
#[track_caller]
pub fn attention_gradient(
    q: impl Into<Tensor>,
    k: impl Into<Tensor>,
    v: impl Into<Tensor>,
    g: impl Into<Tensor>,
    lse: impl Into<Tensor>,
    delta: impl Into<Tensor>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<[Tensor; 3]> {
    let mut inputs = vec![q.into(), k.into(), v.into(), g.into(), lse.into(), delta.into()];
    inputs.extend(mask.cloned());
    let op = AttentionGradient {
        attention: Attention { causal, scale, masked: mask.is_some(), dropout: None },
        wanted: [true; 3],
    };
    let outputs = apply_at(&op, &mut inputs, Location::caller())?;
    let wrong = |_| Error::new(ErrorKind::Graph, "expected 3 outputs");
    outputs.into_iter().collect::<Vec<_>>().try_into().map_err(wrong)
}

/// Shapes of queries, keys and values, whether the mask is boolean and its shape, causal, scale.
type Case<'a> = ([&'a [usize]; 3], Option<(bool, &'a [usize])>, bool, Option<f64>);

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [Case<'_>; 8] = [
        ([&[1, 1, 2, 3], &[1, 1, 4, 3], &[1, 1, 4, 2]], None, false, None),
        ([&[2, 4, 3, 2], &[2, 2, 3, 2], &[2, 2, 3, 3]], None, true, Some(0.7)),
        ([&[2, 2, 3, 2], &[2, 2, 5, 2], &[2, 2, 5, 2]], Some((true, &[3, 5])), false, None),
        ([&[2, 2, 3, 2], &[2, 1, 5, 2], &[2, 1, 5, 2]], Some((false, &[2, 1, 1, 5])), false, None),
        ([&[1, 1, 2, 3], &[1, 1, 1, 3], &[1, 1, 1, 3]], Some((true, &[2, 1])), true, None),
        ([&[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3]], None, false, None),
        ([&[1, 1, 0, 3], &[1, 1, 2, 3], &[1, 1, 2, 3]], None, false, None),
        ([&[1, 1, 2, 3], &[1, 1, 0, 3], &[1, 1, 0, 2]], None, false, None),
    ];
    let with = |dtype, (shapes, mask, causal, scale): Case<'_>| {
        let (q, wide) = (shapes[0], statistics_dtype(dtype));
        let result = [q[0], q[1], q[2], shapes[2][3]];
        let mut args: Vec<_> = shapes.iter().map(|shape| ramp(dtype, shape, -1.5, 1.5)).collect();
        args.extend([ramp(dtype, &result, -1.0, 2.0), ramp(wide, &q[..3], 0.5, 2.0)]);
        args.push(ramp(wide, &q[..3], -0.5, 0.5));
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
    let args = |g: (DType, &[usize]), lse: (DType, &[usize]), delta: &[usize]| {
        let shapes: [&[usize]; 3] = [&[1, 2, 3, 4], &[1, 2, 5, 4], &[1, 2, 5, 6]];
        let mut args: Vec<_> = shapes.iter().map(|shape| ramp(DType::F32, shape, 0.0, 1.0)).collect();
        args.extend([ramp(g.0, g.1, 0.0, 1.0), ramp(lse.0, lse.1, 0.0, 1.0)]);
        args.push(ramp(DType::F32, delta, 0.0, 1.0));
        args
    };
    let (f, rows) = (DType::F32, &[1, 2, 3][..]);
    let g: (DType, &[usize]) = (f, &[1, 2, 3, 6]);
    vec![
        InvalidArgs::new(
            args((f, &[1, 2, 3, 4]), (f, rows), rows),
            ErrorKind::Shape,
            "g must have shape [1, 2, 3, 6], got [1, 2, 3, 4]",
        ),
        InvalidArgs::new(
            args(g, (DType::F64, rows), rows),
            ErrorKind::DType,
            "lse must be float32, got float64",
        ),
        InvalidArgs::new(
            args(g, (f, rows), &[1, 2, 3, 1]),
            ErrorKind::Shape,
            "delta must have shape [1, 2, 3], got [1, 2, 3, 1]",
        ),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "attention_gradient",
    &[
        Param::tensor("q"),
        Param::tensor("k"),
        Param::tensor("v"),
        Param::tensor("g"),
        Param::tensor("lse"),
        Param::tensor("delta"),
        Param::optional("mask", ParamKind::Tensor, "None"),
        Param::optional("causal", ParamKind::Bool, "False"),
        Param::optional("scale", ParamKind::Float, "None"),
    ],
    |a| {
        let [q, k, v, g, lse, delta] = [Q, K, V, G, LSE, DELTA].map(|i| a.tensor(i));
        let mask = a.tensor_or(MASK)?;
        let (causal, scale) = (a.bool_or(7)?.unwrap_or(false), a.float_or(8)?);
        let found = attention_gradient(q?, k?, v?, g?, lse?, delta?, mask.as_ref(), causal, scale)?;
        Ok(found.to_vec())
    },
    Reference::Numpy(
        "[wide := np.float64, r := q.shape[1] // k.shape[1], c := q.shape[-1] ** -0.5 if scale is None else scale, \
         kk := np.repeat(k.astype(wide), r, 1), vv := np.repeat(v.astype(wide), r, 1), \
         qq := q.astype(wide), gg := g.astype(wide), boolean := mask is not None and mask.dtype == bool, \
         s := qq @ np.swapaxes(kk, -1, -2) * c + (0 if boolean or mask is None else mask), \
         keep := np.ones(s.shape, bool) & (np.tri(*s.shape[-2:], dtype=bool) if causal else True) \
         & (mask if boolean else True), \
         p := np.where(keep, np.exp(s - lse[..., None]), 0), \
         ds := c * p * (gg @ np.swapaxes(vv, -1, -2) - delta[..., None]), \
         grouped := (q.shape[0], k.shape[1], r, k.shape[2]), \
         ((ds @ kk).astype(q.dtype), \
         np.sum((np.swapaxes(ds, -1, -2) @ qq).reshape(*grouped, q.shape[3]), 2).astype(q.dtype), \
         np.sum((np.swapaxes(p, -1, -2) @ gg).reshape(*grouped, v.shape[3]), 2).astype(q.dtype))][-1]",
    ),
    Samples::List(samples),
)
.refuses(invalid)];
