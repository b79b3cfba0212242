//! One-hot encoding.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::elementwise::check_fits;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Outputs, Scalar, Shape, Tensor, apply, normalize_axis};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct OneHot {
    depth: usize,
    on: Scalar,
    off: Scalar,
    axis: isize,
    dtype: DType,
}

impl OneHot {
    fn axis(&self, rank: usize) -> Result<usize> {
        normalize_axis(self.axis, rank + 1)
    }
}

impl Op for OneHot {
    fn name(&self) -> &'static str {
        "one_hot"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if !dtype.is_integer() {
            return Err(Error::dtype(format!("indices must be integers, got {dtype}"))
                .help("cast them to an integer dtype"));
        }
        check_fits(self.on, self.dtype)?;
        check_fits(self.off, self.dtype)?;
        let shape: Shape = shape.clone().with_inserted(self.axis(shape.rank())?, self.depth);
        Ok(Spec { dtype: self.dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let indices = inputs[0].view();
        let axis = self.axis(indices.shape().len())?;
        let bytes = |scalar: Scalar| scalar.to_bytes(self.dtype);
        index::one_hot(indices, axis, &bytes(self.on), &bytes(self.off), outputs[0].reborrow());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let axis = self.axis(call.shape(0).rank())? as isize + 1;
        call.apply_as_is(&OneHot { axis, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let OneHot { depth, on, off, axis, .. } = self;
        format!("depth={depth}, on_value={on}, off_value={off}, axis={axis}")
    }
}

impl RowRule for OneHot {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = call.classes[0].axis()?.axis;
        let own = self.axis(call.inputs[0].shape.rank()).ok()?;
        call.independent(&[Some(rows)], &[Some(rows + usize::from(own <= rows))])
    }
}

/// One-hot encoding: a new axis of size `depth` with `on_value` at each index and `off_value` elsewhere.
///
/// An index outside `[0, depth)` gives `off_value` everywhere. Not differentiable.
///
/// ```
/// use taut_core::{DType, Tensor, ops::creation::one_hot};
/// let indices = Tensor::from_slice(&[2, 0], [2])?;
/// assert_eq!(one_hot(&indices, 3, 1, 0, -1, DType::U8)?.to_vec::<u8>()?, [0, 0, 1, 1, 0, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn one_hot(
    indices: impl Into<Tensor>,
    depth: usize,
    on_value: impl Into<Scalar>,
    off_value: impl Into<Scalar>,
    axis: isize,
    dtype: DType,
) -> Result<Tensor> {
    apply(&OneHot { depth, on: on_value.into(), off: off_value.into(), axis, dtype }, [indices.into()])
}

fn args(indices: ArgValue, depth: i64, values: [ArgValue; 2], axis: i64, dtype: DType) -> Vec<ArgValue> {
    let [on, off] = values;
    vec![indices, ArgValue::Int(depth), on, off, ArgValue::Int(axis), ArgValue::DType(dtype)]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "one_hot",
    &[
        Param::tensor("indices"),
        Param::new("depth", ParamKind::Int),
        Param::optional("on_value", ParamKind::Scalar, "1"),
        Param::optional("off_value", ParamKind::Scalar, "0"),
        Param::optional("axis", ParamKind::Int, "-1"),
        Param::optional("dtype", ParamKind::DType, "float32"),
    ],
    |a| {
        let (on, off) = (a.scalar_or(2)?.unwrap_or(1.into()), a.scalar_or(3)?.unwrap_or(0.into()));
        let (axis, dtype) = (a.int_or(4)?.unwrap_or(-1) as isize, a.dtype_or(5)?.unwrap_or(DType::F32));
        one(one_hot(a.tensor(0)?, a.size(1)?, on, off, axis, dtype))
    },
    Reference::Numpy(
        "np.moveaxis(np.where(indices[..., None] == np.arange(depth), on_value, off_value), -1, axis).astype(dtype)",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::EVERY {
            let one_zero = [ArgValue::Int(1), ArgValue::Int(0)];
            list.push(args(of(DType::I32, &[5], &[0.0, 2.0, -1.0, 1.0, 3.0]), 3, one_zero, -1, dtype));
        }
        for &dtype in dtypes::INTEGERS {
            let values = || [ArgValue::Float(2.5), ArgValue::Float(-1.0)];
            for (shape, depth, axis) in
                [(&[][..], 3, 0), (&[2, 3], 4, 0), (&[2, 3], 4, 1), (&[2, 3], 1, -1), (&[2, 0, 2], 3, -2), (&[2], 0, 0)]
            {
                list.push(args(ramp(dtype, shape, 0.0, 4.0), depth, values(), axis, DType::F32));
            }
        }
        list
    }),
)
.refuses(|| {
    let indices = || of(DType::I32, &[2], &[0.0, 1.0]);
    let values = |on| [ArgValue::Int(on), ArgValue::Int(0)];
    let f32 = DType::F32;
    let axis = "axis must be in [-2, 2), got 2";
    vec![
        InvalidArgs::new(args(ramp(f32, &[2], 0.0, 1.0), 2, values(1), -1, f32), ErrorKind::DType, "indices must be integers, got float32"),
        InvalidArgs::new(args(indices(), 2, values(1), 2, f32), ErrorKind::Axis, axis),
        InvalidArgs::new(args(indices(), -2, values(1), -1, f32), ErrorKind::Shape, "dimension must be >= 0, got -2"),
        InvalidArgs::new(args(indices(), i64::MAX, values(1), -1, f32), ErrorKind::Shape, "more elements than memory"),
        InvalidArgs::new(args(indices(), 2, values(256), -1, DType::U8), ErrorKind::Value, "256 does not fit uint8"),
    ]
})];
