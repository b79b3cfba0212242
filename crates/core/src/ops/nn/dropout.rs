//! Dropout.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::batching::single;
use crate::ops::binary::{mul, where_};
use crate::ops::draw::{check_key, read_key};
use crate::ops::random::stateless_bernoulli;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Scalar, Set, Tensor, VjpCall, apply};
use taut_kernels::elementwise::{self, Binary};
use taut_kernels::random as kernel;
use taut_kernels::{Arg, View, ViewMut};

/// Inputs: `x` and a key. Which elements stay is a function of the key and the element's place.
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
        if !(0.0..1.0).contains(&self.rate) {
            return Err(Error::value(format!("a rate of {} does not lie between 0 and 1", self.rate))
                .help("0 drops nothing; 1 would drop everything"));
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let out = &mut outputs[0];
        let (dtype, shape) = (out.dtype(), out.shape());
        kernel::bernoulli(
            read_key(inputs[1].view()),
            0,
            1.0 - self.rate,
            ViewMut::new(DType::Bool, scratch, shape),
        );
        let (scale, zero) =
            (Scalar::Float(1.0 / (1.0 - self.rate)).to_bytes(dtype), Scalar::Int(0).to_bytes(dtype));
        let (strides, flat) = (crate::Shape::from(shape).strides(), vec![0; shape.len()]);
        let every = |bytes| Arg::View(View::new(dtype, bytes, 0, shape, &flat));
        elementwise::binary(Binary::Mul, inputs[0], every(&scale), out.reborrow());
        let stays = Arg::View(View::new(DType::Bool, scratch, 0, shape, &strides));
        elementwise::select(stays, Arg::InPlace(0), every(&zero), out.reborrow());
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
        // One key: the same places are dropped in every set.
        let stays = stateless_bernoulli(&call.inputs[1], call.shape(0), 1.0 - self.rate)?;
        single(where_(stays, mul(&call.inputs[0], 1.0 / (1.0 - self.rate))?, 0.0))
    }

    fn attributes(&self) -> String {
        format!("rate={}", self.rate)
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

/// Drops elements with probability `rate` and scales the others by `1 / (1 - rate)`, so that the expectation stays. The
/// key, two `uint64`, decides which: the same key drops the same elements.
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
    // Each element is dropped or scaled; nothing is dropped at rate 0, and about the right share of many.
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
        Bad::new(args(f, 1.0, key()), ErrorKind::Value, "a rate of 1 does not lie between 0 and 1"),
        Bad::new(args(f, -0.1, key()), ErrorKind::Value, "a rate of -0.1"),
        Bad::new(args(f, f64::NAN, key()), ErrorKind::Value, "a rate of NaN"),
        Bad::new(args(DType::I32, 0.5, key()), ErrorKind::DType, "int32 is not supported"),
        Bad::new(args(f, 0.5, of(DType::I64, &[2], &[1.0, 2.0])), ErrorKind::DType, "a key is of type uint64"),
        Bad::new(args(f, 0.5, of(DType::U64, &[1], &[1.0])), ErrorKind::Shape, "a key has shape [2], not [1]"),
    ]
})];
