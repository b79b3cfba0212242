//! The Bernoulli distribution.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::draw::{
    Distribution, KEY, check_key, check_position, draw, invalid_keys, key, read_key, read_position, shapes,
};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{DType, Shape, Tensor, apply};
use std::sync::Arc;
use taut_kernels::{Arg, ViewMut, random};

/// Samples from the Bernoulli distribution: booleans that are true with probability `p`. A function of the key.
///
/// ```
/// use taut_core::{Tensor, ops::random::stateless_bernoulli};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// assert_eq!(stateless_bernoulli(&key, [2], 1.0)?.to_vec::<bool>()?, [true, true]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_bernoulli(key: impl Into<Tensor>, shape: impl Into<Shape>, p: f64) -> Result<Tensor> {
    draw("stateless_bernoulli", key.into(), Spec::new(DType::Bool, shape), Distribution::Bernoulli { p })
}

#[derive(Clone, Debug)]
struct BernoulliEach;

impl Op for BernoulliEach {
    fn name(&self) -> &'static str {
        "stateless_bernoulli_each"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_key(inputs[0])?;
        check_position(inputs.get(2))?;
        let Spec { dtype, shape } = inputs[1];
        if !dtype.is_float() {
            return Err(
                Error::dtype(format!("probabilities must be floats, got {dtype}")).help("cast them first")
            );
        }
        Ok(Spec { dtype: DType::Bool, shape: shape.clone() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let first = read_position(inputs.get(2));
        random::bernoulli_each(read_key(inputs[0].view()), first, inputs[1].view(), outputs[0].reborrow());
        Ok(())
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for BernoulliEach {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = call.classes[1].axis().filter(|_| call.is_same(0))?;
        call.positional(rows)
    }

    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.clone()))
    }
}

/// Samples from Bernoulli distributions with one probability per element. Probabilities below 0 and NaN count as 0, above
/// 1 as 1. A function of the key.
#[track_caller]
pub fn stateless_bernoulli_each(key: impl Into<Tensor>, probabilities: impl Into<Tensor>) -> Result<Tensor> {
    apply(&BernoulliEach, [key.into(), probabilities.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "stateless_bernoulli",
        &[KEY, Param::new("shape", ParamKind::Ints), Param::optional("p", ParamKind::Float, "0.5")],
        |a| one(stateless_bernoulli(a.tensor(0)?, a.shape(1)?, a.float_or(2)?.unwrap_or(0.5))),
        Reference::Property(
            "out.shape == shape and out.dtype == bool and (out.size == 0 or \
             abs(out.mean() - p) <= 5 * np.sqrt(p * (1 - p) / out.size))",
        ),
        Samples::List(|| {
            let with = |p| shapes().map(|shape| vec![key(5.0), shape, ArgValue::Float(p)]);
            [0.0, 0.3, 0.5, 1.0].into_iter().flat_map(with).collect()
        }),
    )
    .refuses(|| {
        let bad = |p: f64, message| {
            InvalidArgs::new(
                vec![key(1.0), ArgValue::Ints(vec![2]), ArgValue::Float(p)],
                ErrorKind::Value,
                message,
            )
        };
        let mut list = invalid_keys(&[ArgValue::Ints(vec![2])]);
        list.push(bad(1.5, "probability must be in [0, 1], got 1.5"));
        list.push(bad(-0.1, "probability must be in [0, 1], got -0.1"));
        list.push(bad(f64::NAN, "probability must be in [0, 1], got NaN"));
        list
    }),
    OpEntry::new(
        "stateless_bernoulli_each",
        &[KEY, Param::tensor("probabilities")],
        |a| one(stateless_bernoulli_each(a.tensor(0)?, a.tensor(1)?)),
        Reference::Property(
            "out.shape == probabilities.shape and out.dtype == bool and np.all(out[probabilities >= 1]) and \
             not np.any(out[~(probabilities > 0)]) and (out.size < 1000 or \
             abs(out.mean() - probabilities.mean(dtype=float)) < 2.5 / np.sqrt(out.size))",
        ),
        Samples::List(|| {
            let mut list = Vec::new();
            for &dtype in dtypes::FLOATS {
                for shape in [&[][..], &[0], &[1], &[2, 3, 4], &[40, 50]] {
                    list.push(vec![key(2.0), ramp(dtype, shape, 0.0, 1.0)]);
                }
                let edges = [0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY];
                list.push(vec![key(2.0), of(dtype, &[6], &edges)]);
            }
            list
        }),
    )
    .refuses(|| {
        let mut list = invalid_keys(&[ramp(DType::F32, &[2], 0.0, 1.0)]);
        let integers = vec![key(1.0), ramp(DType::I32, &[2], 0.0, 1.0)];
        list.push(InvalidArgs::new(integers, ErrorKind::DType, "probabilities must be floats, got int32"));
        list
    }),
];
