//! Constant tensors.

use crate::error::{ErrorKind, Result};
use crate::op::{Form, Op, Spec, Specs};
use crate::ops::elementwise::check_fits;
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowClass, RowPart, RowRule, RowSplit};
use crate::{DType, Scalar, Shape, Tensor, apply};
use std::sync::Arc;
use taut_kernels::{Arg, ViewMut, elementwise};

#[derive(Clone, Debug)]
struct Full {
    spec: Spec,
    value: Scalar,
}

impl Op for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        check_fits(self.value, self.spec.dtype)?;
        Ok(self.spec.clone().into())
    }

    fn run(&self, _inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        elementwise::fill(outputs[0].reborrow(), &self.value.to_bytes(self.spec.dtype));
        Ok(())
    }

    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        Form::Uniform(self.value)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("value={}", self.value)
    }
}

impl RowRule for Full {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        call.with_outputs([RowClass::Rows(call.wanted?)])
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Full { spec: part.outputs[0].clone(), value: self.value }))
    }
}

/// A tensor whose elements are all `value`.
///
/// ```
/// use taut_core::{DType, ops::creation::full};
/// assert_eq!(full([2], 7, DType::U8)?.to_vec::<u8>()?, [7, 7]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn full(shape: impl Into<Shape>, value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
    apply(&Full { spec: Spec::new(dtype, shape), value: value.into() }, [])
}

/// A tensor of zeros.
#[track_caller]
pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    full(shape, 0, dtype)
}

/// A tensor of ones.
#[track_caller]
pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    full(shape, 1, dtype)
}

fn shapes_and_dtypes() -> Vec<Vec<ArgValue>> {
    let with = |&dtype: &DType| {
        [vec![], vec![3], vec![2, 0], vec![2, 3]].map(|s| vec![ArgValue::Ints(s), ArgValue::DType(dtype)])
    };
    dtypes::EVERY.iter().flat_map(with).collect()
}

fn invalid_shapes() -> Vec<InvalidArgs> {
    let bad = |shape: &[i64], message| {
        InvalidArgs::new(
            vec![ArgValue::Ints(shape.to_vec()), ArgValue::DType(DType::F32)],
            ErrorKind::Shape,
            message,
        )
    };
    vec![
        bad(&[2, -1], "dimension must be >= 0, got -1"),
        bad(&[i64::MAX, i64::MAX], "more elements than memory has addresses"),
    ]
}

const SHAPE_DTYPE: &[Param] =
    &[Param::new("shape", ParamKind::Ints), Param::optional("dtype", ParamKind::DType, "float32")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "full",
        &[
            Param::new("shape", ParamKind::Ints),
            Param::new("value", ParamKind::Scalar),
            Param::new("dtype", ParamKind::DType),
        ],
        |a| one(full(a.shape(0)?, a.scalar(1)?, a.dtype(2)?)),
        Reference::Numpy("np.full(shape, value, dtype)"),
        Samples::List(|| {
            let value = |v: ArgValue, dtype| vec![ArgValue::Ints(vec![2, 3]), v, ArgValue::DType(dtype)];
            let mut list: Vec<_> =
                dtypes::EVERY.iter().map(|&dtype| value(ArgValue::Float(2.0), dtype)).collect();
            list.push(value(ArgValue::Int((1 << 53) + 1), DType::I64));
            list.push(value(ArgValue::Bool(true), DType::F32));
            list
        }),
    )
    .refuses(|| {
        let args = vec![ArgValue::Ints(vec![2]), ArgValue::Int(256), ArgValue::DType(DType::U8)];
        let mut bad = vec![InvalidArgs::new(args, ErrorKind::Value, "256 does not fit uint8")];
        for InvalidArgs { mut args, kind, message } in invalid_shapes() {
            args.insert(1, ArgValue::Int(1));
            bad.push(InvalidArgs::new(args, kind, message));
        }
        bad
    }),
    OpEntry::new(
        "zeros",
        SHAPE_DTYPE,
        |a| one(zeros(a.shape(0)?, a.dtype_or(1)?.unwrap_or(DType::F32))),
        Reference::Numpy("np.zeros(shape, dtype)"),
        Samples::List(shapes_and_dtypes),
    )
    .refuses(invalid_shapes),
    OpEntry::new(
        "ones",
        SHAPE_DTYPE,
        |a| one(ones(a.shape(0)?, a.dtype_or(1)?.unwrap_or(DType::F32))),
        Reference::Numpy("np.ones(shape, dtype)"),
        Samples::List(shapes_and_dtypes),
    )
    .refuses(invalid_shapes),
];
