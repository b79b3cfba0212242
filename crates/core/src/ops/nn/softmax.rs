//! Softmax and its logarithm.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{mul, sub};
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, invalid_unary, of, ramp};
use crate::ops::unary::exp;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply, normalize_axis};
use taut_kernels::{Arg, ViewMut, norm};

#[derive(Clone, Debug)]
struct Softmax {
    axis: isize,
    log: bool,
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if !dtype.is_float() {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"));
        }
        shape.axis(self.axis)?;
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let out = outputs[0].reborrow();
        let axis = normalize_axis(self.axis, out.shape().len())?;
        let kernel = if self.log { norm::log_softmax } else { norm::softmax };
        kernel(inputs[0], axis, out);
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let bytes = inputs[0].bytes() + outputs[0].bytes();
        // A maximum, an exponential, a sum and a quotient per element.
        Cost { flops: 4 * outputs[0].shape.len() as u64, bytes: bytes as u64 }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Softmax { axis: call.axis(self.axis)?, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for Softmax {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let own = call.inputs[0].shape.axis(self.axis).ok()?;
        call.independent_axis(|axis| axis != own)
    }
}

impl Differentiable for Softmax {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::OUTPUT)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let y = call.output(0)?;
            if self.log {
                let total = sum(&g, self.axis, true)?;
                return sub(g, mul(exp(y)?, total)?);
            }
            let mean = sum(mul(&g, y)?, self.axis, true)?;
            mul(sub(g, mean)?, y)
        })
    }
}

/// Softmax along an axis, `exp(x) / sum(exp(x))`, computed without overflow.
///
/// ```
/// use taut_core::{Tensor, ops::nn::softmax};
/// let x = Tensor::from_slice(&[1000.0f32, 1000.0], [2])?;
/// assert_eq!(softmax(&x, -1)?.to_vec::<f32>()?, [0.5, 0.5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn softmax(logits: impl Into<Tensor>, axis: isize) -> Result<Tensor> {
    apply(&Softmax { axis, log: false }, [logits.into()])
}

/// The logarithm of the softmax along an axis, `x - logsumexp(x)`, computed without underflow.
#[track_caller]
pub fn log_softmax(logits: impl Into<Tensor>, axis: isize) -> Result<Tensor> {
    apply(&Softmax { axis, log: true }, [logits.into()])
}

const PARAMS: &[Param] = &[Param::tensor("logits"), Param::optional("axis", ParamKind::Int, "-1")];

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], i64); 7] =
        [(&[5], -1), (&[1], 0), (&[2, 3], 1), (&[2, 3], 0), (&[2, 3, 4], -2), (&[2, 0, 3], 1), (&[0, 3], -1)];
    let with = |dtype| cases.map(|(shape, axis)| vec![ramp(dtype, shape, -9.0, 9.0), ArgValue::Int(axis)]);
    let mut samples: Vec<_> = dtypes::FLOATS.iter().flat_map(|&dtype| with(dtype)).collect();
    for &dtype in dtypes::WIDE {
        let values = [1e4, 1e4, -1e4, f64::NEG_INFINITY, 0.0, 0.0, f64::NAN, 0.0, 1.0];
        samples.push(vec![of(dtype, &[3, 3], &values), ArgValue::Int(-1)]);
    }
    samples
}

fn invalid() -> Vec<InvalidArgs> {
    let mut bad = invalid_unary(&[DType::I32, DType::Bool]);
    let with = |shape: &[usize], axis| vec![ramp(DType::F32, shape, 0.0, 1.0), ArgValue::Int(axis)];
    bad.push(InvalidArgs::new(with(&[2, 3], 2), ErrorKind::Axis, "axis must be in [-2, 2), got 2"));
    bad.push(InvalidArgs::new(with(&[2, 3], -3), ErrorKind::Axis, "got -3"));
    bad.push(InvalidArgs::new(with(&[], -1), ErrorKind::Axis, "a scalar has no axes"));
    bad
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "softmax",
        PARAMS,
        |a| one(softmax(a.tensor(0)?, a.int_or(1)?.unwrap_or(-1) as isize)),
        Reference::Numpy(
            "[x := logits.astype(np.float64), e := np.exp(x - np.max(x, axis, keepdims=True, initial=-1e300)), \
             (e / np.sum(e, axis, keepdims=True)).astype(logits.dtype)][-1]",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "log_softmax",
        PARAMS,
        |a| one(log_softmax(a.tensor(0)?, a.int_or(1)?.unwrap_or(-1) as isize)),
        Reference::Numpy(
            "[x := logits.astype(np.float64), z := x - np.max(x, axis, keepdims=True, initial=-1e300), \
             (z - np.log(np.sum(np.exp(z), axis, keepdims=True))).astype(logits.dtype)][-1]",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
];
