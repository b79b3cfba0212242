//! The categorical distribution.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::draw::{KEY, check_key, check_position, invalid_keys, key, read_key, read_position};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{DType, Tensor, apply};
use std::sync::Arc;
use taut_kernels::{Arg, ViewMut, random};

#[derive(Clone, Debug)]
struct Categorical {
    num_samples: usize,
}

impl Op for Categorical {
    fn name(&self) -> &'static str {
        "stateless_categorical"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_key(inputs[0])?;
        check_position(inputs.get(2))?;
        let Spec { dtype, shape } = inputs[1];
        if !dtype.is_float() {
            return Err(Error::dtype(format!("logits must be floats, got {dtype}")).help("cast them first"));
        }
        let &[batch, classes] = &shape[..] else {
            return Err(Error::shape(format!("logits must have shape [batch, classes], got {shape}")));
        };
        if classes == 0 && batch > 0 && self.num_samples > 0 {
            return Err(Error::shape(format!("logits must have at least one class, got shape {shape}")));
        }
        Ok(Spec::new(DType::I64, [batch, self.num_samples]).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let key = read_key(inputs[0].view());
        random::categorical(
            key,
            read_position(inputs.get(2)),
            inputs[1].view(),
            outputs[0].reborrow(),
            scratch,
        );
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        random::categorical_scratch(inputs[1].shape[1])
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("num_samples={}", self.num_samples)
    }
}

impl RowRule for Categorical {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = call.classes[1].axis().filter(|rows| call.is_same(0) && rows.axis == 0)?;
        call.positional(rows)
    }

    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.clone()))
    }
}

/// Samples from categorical distributions: class indices (`int64`) of shape `[batch, num_samples]`, given unnormalized
/// log-probabilities `logits` of shape `[batch, classes]`. A function of the key.
///
/// ```
/// use taut_core::{Tensor, ops::random::stateless_categorical};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let only_the_last = Tensor::from_slice(&[f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0], [1, 3])?;
/// assert_eq!(stateless_categorical(&key, &only_the_last, 2)?.to_vec::<i64>()?, [2, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_categorical(
    key: impl Into<Tensor>,
    logits: impl Into<Tensor>,
    num_samples: usize,
) -> Result<Tensor> {
    apply(&Categorical { num_samples }, [key.into(), logits.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "stateless_categorical",
    &[KEY, Param::tensor("logits"), Param::new("num_samples", ParamKind::Int)],
    |a| {
        let samples = a.int(2)?;
        let samples = usize::try_from(samples)
            .map_err(|_| Error::value(format!("num_samples must be >= 0, got {samples}")))?;
        one(stateless_categorical(a.tensor(0)?, a.tensor(1)?, samples))
    },
    // The frequency of each class is its softmax probability.
    Reference::Property(
        "out.shape == (logits.shape[0], num_samples) and out.dtype == np.int64 and np.all(out >= 0) and \
         np.all(out < logits.shape[1]) and (num_samples < 1000 or all(np.all(abs(np.bincount(o, \
         minlength=len(l)) / num_samples - np.exp(l) / np.exp(l).sum()) < 2.5 / np.sqrt(num_samples)) \
         for o, l in zip(out, logits.astype(float))))",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::FLOATS {
            for (shape, samples) in [([2, 3], 2000), ([1, 1], 3), ([0, 4], 2), ([3, 5], 0), ([3, 200], 4)] {
                list.push(vec![key(4.0), ramp(dtype, &shape, -2.0, 2.0), ArgValue::Int(samples)]);
            }
            let some = of(dtype, &[1, 3], &[0.0, f64::NEG_INFINITY, 1.0]);
            list.push(vec![key(4.0), some, ArgValue::Int(1000)]);
        }
        list
    }),
)
.refuses(|| {
    let bad = |logits, samples, kind, message| {
        InvalidArgs::new(vec![key(1.0), logits, ArgValue::Int(samples)], kind, message)
    };
    let logits = |dtype, shape: &[usize]| ramp(dtype, shape, 0.0, 1.0);
    let mut list = invalid_keys(&[logits(DType::F32, &[1, 2]), ArgValue::Int(1)]);
    list.push(bad(logits(DType::I32, &[1, 2]), 1, ErrorKind::DType, "logits must be floats, got int32"));
    list.push(bad(
        logits(DType::F32, &[2]),
        1,
        ErrorKind::Shape,
        "must have shape [batch, classes], got [2]",
    ));
    list.push(bad(
        logits(DType::F32, &[2, 0]),
        1,
        ErrorKind::Shape,
        "must have at least one class, got shape [2, 0]",
    ));
    list.push(bad(logits(DType::F32, &[2, 2]), -1, ErrorKind::Value, "num_samples must be >= 0, got -1"));
    list
})];
