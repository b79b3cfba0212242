//! Dropout.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::{mul, where_};
use crate::ops::draw::{check_key, check_position, read_key, read_position};
use crate::ops::random::stateless_bernoulli;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Scalar, Set, Tensor, VjpCall, apply};
use std::sync::Arc;
use taut_kernels::elementwise::{self, Binary};
use taut_kernels::random as kernel;
use taut_kernels::{Arg, View, ViewMut};

/// Inputs: `x`, a key, and the position of the first element if it is not 0. The mask is a function of the key and the element's position.
#[derive(Clone, Debug)]
struct Dropout {
    rate: f64,
}

impl Op for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = inputs[0].dtype;
        if !dtype.is_float() {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"));
        }
        check_key(inputs[1])?;
        check_position(inputs.get(2))?;
        if !(0.0..1.0).contains(&self.rate) {
            return Err(Error::value(format!("rate must be in [0, 1), got {}", self.rate)));
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let out = &mut outputs[0];
        let (dtype, shape) = (out.dtype(), out.shape());
        kernel::bernoulli(
            read_key(inputs[1].view()),
            read_position(inputs.get(2)),
            1.0 - self.rate,
            ViewMut::new(DType::Bool, scratch, shape),
        );
        let (scale, zero) =
            (Scalar::Float(1.0 / (1.0 - self.rate)).to_bytes(dtype), Scalar::Int(0).to_bytes(dtype));
        let (strides, flat) = (crate::Shape::from(shape).strides(), vec![0; shape.len()]);
        let constant = |bytes| Arg::View(View::new(dtype, bytes, 0, shape, &flat));
        elementwise::binary(Binary::Mul, inputs[0], constant(&scale), out.reborrow());
        let mask = Arg::View(View::new(DType::Bool, scratch, 0, shape, &strides));
        elementwise::select(mask, Arg::InPlace(0), constant(&zero), out.reborrow());
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        inputs[0].shape.len()
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if call.mapped[1] {
            return Ok(None);
        }
        // One key: the same positions are dropped in every example.
        let mask = stateless_bernoulli(&call.inputs[1], call.shape(0), 1.0 - self.rate)?;
        single_output(where_(mask, mul(&call.inputs[0], 1.0 / (1.0 - self.rate))?, 0.0))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("rate={}", self.rate)
    }
}

impl RowRule for Dropout {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = call.classes[0].axis().or(call.wanted).filter(|_| call.is_same(1))?;
        let mut split = call.positional(rows)?;
        split.inputs[0] = call.rows_of(0, rows)?;
        Some(split)
    }

    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.clone()))
    }
}

impl Differentiable for Dropout {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| dropout(g, self.rate, call.input(1)?))
    }
}

/// Dropout: sets elements to zero with probability `rate` and scales the others by `1 / (1 - rate)`, which preserves the
/// expectation. The mask is a function of the key (`uint64[2]`).
///
/// ```
/// use taut_core::{DType, Tensor, ops::{creation::ones, nn::dropout}};
/// let key = Tensor::from_slice(&[1u64, 2], [2])?;
/// let x = dropout(&ones([100], DType::F32)?, 0.5, &key)?.to_vec::<f32>()?;
/// assert!(x.iter().all(|&x| x == 0.0 || x == 2.0));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn dropout(x: impl Into<Tensor>, rate: f64, key: impl Into<Tensor>) -> Result<Tensor> {
    apply(&Dropout { rate }, [x.into(), key.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "dropout",
    &[Param::tensor("x"), Param::new("rate", ParamKind::Float), Param::tensor("key")],
    |a| one(dropout(a.tensor(0)?, a.float(1)?, a.tensor(2)?)),
    // Each element is dropped or scaled; at rate 0 none is dropped, and of many elements about the right fraction.
    Reference::Property(
        "[y := x.astype(np.float64) / (1 - rate), z := out.astype(np.float64), kept := np.mean(z != 0) if x.size else 1, \
         z.shape == x.shape and np.all((z == 0) | np.isclose(z, y, 1e-2)) and (rate > 0 or np.all(z == y)) \
         and (x.size < 500 or abs(kept - (1 - rate)) < 0.08)][-1]",
    ),
    Samples::List(|| {
        let cases: [(&[usize], f64); 6] =
            [(&[7], 0.5), (&[2, 3], 0.0), (&[], 0.9), (&[0, 2], 0.5), (&[2, 3, 4], 0.1), (&[10, 100], 0.3)];
        let key = |seed| of(DType::U64, &[2], &[seed, 7.0]);
        let with = |dtype, (shape, rate): (&[usize], f64)| {
            vec![ramp(dtype, shape, 0.5, 2.0), ArgValue::Float(rate), key(3.0)]
        };
        dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
    }),
)
.refuses(|| {
    let args = |dtype, rate, key: ArgValue| vec![ramp(dtype, &[3], 0.0, 1.0), ArgValue::Float(rate), key];
    let key = || of(DType::U64, &[2], &[1.0, 2.0]);
    let f = DType::F32;
    vec![
        InvalidArgs::new(args(f, 1.0, key()), ErrorKind::Value, "rate must be in [0, 1), got 1"),
        InvalidArgs::new(args(f, -0.1, key()), ErrorKind::Value, "rate must be in [0, 1), got -0.1"),
        InvalidArgs::new(args(f, f64::NAN, key()), ErrorKind::Value, "rate must be in [0, 1), got NaN"),
        InvalidArgs::new(args(DType::I32, 0.5, key()), ErrorKind::DType, "int32 is not supported"),
        InvalidArgs::new(args(f, 0.5, of(DType::I64, &[2], &[1.0, 2.0])), ErrorKind::DType, "key must be uint64, got int64"),
        InvalidArgs::new(args(f, 0.5, of(DType::U64, &[1], &[1.0])), ErrorKind::Shape, "key must have shape [2], got [1]"),
    ]
})];
