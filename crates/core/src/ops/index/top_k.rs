//! The k largest elements.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::indices::sum_along_axis;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply_many};
use taut_kernels::{Arg, ViewMut, sort};

#[derive(Clone, Debug)]
struct TopK {
    k: usize,
    sorted: bool,
}

impl Op for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let Some(&n) = shape.last() else {
            return Err(Error::new(ErrorKind::Axis, "expected rank >= 1, got a scalar"));
        };
        if self.k > n {
            return Err(Error::value(format!("k must be <= {n}, the size of the last axis, got {}", self.k)));
        }
        if u32::try_from(n).is_err() {
            return Err(
                Error::shape(format!("the last axis must have size < 2^32, got {n}")).help("use sort")
            );
        }
        let shape = shape.clone().with(shape.rank() - 1, self.k);
        Ok(Specs::from_iter([
            Spec { dtype: *dtype, shape: shape.clone() },
            Spec { dtype: DType::I64, shape },
        ]))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let [values, indices] = outputs else {
            return Err(Error::new(ErrorKind::Graph, format!("expected 2 outputs, got {}", outputs.len())));
        };
        sort::top_k(inputs[0].view(), self.k, self.sorted, values.reborrow(), indices.reborrow(), scratch);
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        sort::top_k_scratch(inputs[0].dtype, &inputs[0].shape, self.k)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("k={}{}", self.k, if self.sorted { ", sorted" } else { "" })
    }
}

impl RowRule for TopK {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        call.independent_axis(|axis| axis + 1 < call.inputs[0].shape.rank())
    }
}

impl Differentiable for TopK {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::outputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            sum_along_axis(g, call.output(1)?, shape.rank() - 1, shape)
        })
    }
}

/// The `k` largest elements along the last axis and their indices (`int64`), in descending order if `sorted`, otherwise
/// in no particular order. Of equal elements the one with the lower index comes first; NaN counts as the largest value.
///
/// ```
/// use taut_core::{Tensor, ops::index::top_k};
/// let (values, indices) = top_k(Tensor::from_slice(&[1.0f32, 9.0, 5.0], [3])?, 2, true)?;
/// assert_eq!(values.to_vec::<f32>()?, [9.0, 5.0]);
/// assert_eq!(indices.to_vec::<i64>()?, [1, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn top_k(x: impl Into<Tensor>, k: usize, sorted: bool) -> Result<(Tensor, Tensor)> {
    let outputs = apply_many(&TopK { k, sorted }, vec![x.into()])?;
    Ok((outputs[0].clone(), outputs[1].clone()))
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "top_k",
    &[
        Param::tensor("x"),
        Param::optional("k", ParamKind::Int, "1"),
        Param::optional("sorted", ParamKind::Bool, "True"),
    ],
    |a| {
        let k = a.int_or(1)?.unwrap_or(1);
        let k = usize::try_from(k).map_err(|_| Error::value(format!("k must be >= 0, got {k}")))?;
        let (values, indices) = top_k(a.tensor(0)?, k, a.bool_or(2)?.unwrap_or(true))?;
        Ok(vec![values, indices])
    },
    Reference::Numpy(
        "(lambda i: (np.take_along_axis(x, i, -1), i))(np.flip(x.shape[-1] - 1 - \
         np.argsort(np.flip(x, -1), -1, kind='stable'), -1)[..., :k])",
    ),
    Samples::List(|| {
        // Unsorted results have no defined order, except for a single element.
        let cases: [(&[usize], i64, bool); 8] = [
            (&[5], 3, true),
            (&[5], 1, false),
            (&[1], 1, true),
            (&[0], 0, true),
            (&[4, 6], 6, true),
            (&[2, 3, 50], 4, true),
            (&[2, 3], 0, true),
            (&[0, 3], 2, true),
        ];
        let mut list = Vec::new();
        for &dtype in dtypes::ALL {
            for (x, k, sorted) in cases {
                list.push(vec![ramp(dtype, x, -9.0, 9.0), ArgValue::Int(k), ArgValue::Bool(sorted)]);
            }
            if dtype.is_float() {
                let special = [1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0];
                list.push(vec![of(dtype, &[6], &special), ArgValue::Int(5), ArgValue::Bool(true)]);
            }
        }
        list
    }),
)
.refuses(|| {
    let bad = |x: &[usize], k, kind, message| {
        InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), ArgValue::Int(k)], kind, message)
    };
    vec![
        bad(&[2, 3], 4, ErrorKind::Value, "k must be <= 3, the size of the last axis, got 4"),
        bad(&[2, 3], -1, ErrorKind::Value, "k must be >= 0, got -1"),
        bad(&[], 1, ErrorKind::Axis, "expected rank >= 1, got a scalar"),
    ]
})];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsorted_results_are_the_same_set() {
        let _ledger = taut_memory::testing::ledger_check();
        let x: Vec<i32> = (0..101).map(|i| i * 37 % 101).collect();
        let (values, indices) = top_k(Tensor::from_slice(&x, [101]).unwrap(), 10, false).unwrap();
        let (mut values, indices) = (values.to_vec::<i32>().unwrap(), indices.to_vec::<i64>().unwrap());
        assert!(values.iter().zip(&indices).all(|(&value, &i)| x[i as usize] == value));
        values.sort_unstable();
        assert!(values.into_iter().eq(91..101));
    }
}
