//! Discrete Fourier transforms along the last axis.

use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::mul;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::cast;
use crate::ops::{InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Outputs, Tensor, apply};
use std::fmt;
use std::sync::{Arc, OnceLock};
use taut_kernels::fft::{FftPlan, transform};
use taut_kernels::{Arg, ViewMut, elementwise};

#[derive(Clone)]
struct Fft {
    inverse: bool,
    /// Made at the first use, for the type and length of the input.
    plan: Arc<OnceLock<(DType, usize, FftPlan)>>,
}

impl fmt::Debug for Fft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fft {{ inverse: {} }}", self.inverse)
    }
}

impl Fft {
    fn plan(&self, dtype: DType, n: usize) -> Result<FftPlan> {
        match self.plan.get() {
            Some((own_dtype, own_n, plan)) if (*own_dtype, *own_n) == (dtype, n) => Ok(plan.clone()),
            _ => {
                let made = FftPlan::new(dtype, n, self.inverse).map_err(|_| no_memory(dtype, n))?;
                // One that is there is for another type or length, and stays.
                let _ = self.plan.set((dtype, n, made.clone()));
                Ok(made)
            }
        }
    }
}

#[cold]
fn no_memory(dtype: DType, n: usize) -> Error {
    let message = format!("no memory for the tables of a transform of {n} elements of {dtype}");
    Error::new(ErrorKind::OutOfMemory, message)
}

impl Op for Fft {
    fn name(&self) -> &'static str {
        if self.inverse { "ifft" } else { "fft" }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let spec = inputs[0];
        if !spec.dtype.is_complex() {
            return Err(
                Error::dtype(format!("{} is not supported", spec.dtype)).help("cast to a complex dtype")
            );
        }
        if spec.shape.rank() == 0 {
            return Err(Error::shape("expected rank >= 1, got a scalar"));
        }
        Ok(spec.clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let spec = inputs[0];
        match spec.shape.last() {
            // Without memory for a plan, `run` fails.
            Some(&n) if !spec.shape.is_empty() => {
                self.plan(spec.dtype, n).map_or(0, |plan| plan.scratch(spec.shape.len() / n))
            }
            _ => 0,
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let mut out = outputs[0].reborrow();
        if out.is_empty() {
            return Ok(());
        }
        let n = out.shape().last().copied().unwrap_or(1);
        let plan = self.plan(out.dtype(), n)?;
        if scratch.len() < plan.scratch(out.len() / n) {
            return Err(no_memory(out.dtype(), n));
        }
        if let Arg::View(x) = inputs[0] {
            elementwise::copy(x, out.reborrow());
        }
        transform(&plan, out, scratch);
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let n = inputs[0].shape.last().copied().unwrap_or(1).max(2) as u64;
        let flops = 5 * inputs[0].shape.len() as u64 * u64::from(n.ilog2());
        Cost { flops, bytes: Cost::traffic(inputs, outputs) }
    }

    fn makes_long_calls(&self) -> bool {
        true
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl RowRule for Fft {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let last = call.inputs[0].shape.rank() - 1;
        call.independent_axis(|axis| axis != last)
    }
}

impl Differentiable for Fft {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    /// The adjoint of the transform is its inverse, but for the factor of its length.
    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let n = call.input_shape(0).last().copied().unwrap_or(1) as f64;
            if self.inverse { mul(fft(g)?, 1.0 / n) } else { mul(ifft(g)?, n) }
        })
    }
}

#[track_caller]
fn along_last(x: Tensor, inverse: bool) -> Result<Tensor> {
    let dtype = if x.dtype().is_float() { x.dtype().complex() } else { x.dtype() };
    apply(&Fft { inverse, plan: Arc::default() }, [cast(x, dtype)?])
}

/// The discrete Fourier transform along the last axis, `y[k] = sum over j of x[j] exp(-2 pi i j k / n)`.
///
/// ```
/// use taut_core::{Complex, Tensor, ops::signal::fft};
/// let y = fft(Tensor::new([1.0f32, 2.0])?)?.to_vec::<Complex<f32>>()?;
/// assert_eq!((y[0].re, y[1].re), (3.0, -1.0));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn fft(x: impl Into<Tensor>) -> Result<Tensor> {
    along_last(x.into(), false)
}

/// The inverse of [`fft`]: `y[k] = sum over j of x[j] exp(2 pi i j k / n) / n`.
#[track_caller]
pub fn ifft(x: impl Into<Tensor>) -> Result<Tensor> {
    along_last(x.into(), true)
}

fn samples() -> Vec<Vec<crate::ops::ArgValue>> {
    let shapes: [&[usize]; 7] = [&[1], &[5], &[8], &[2, 6], &[2, 2, 7], &[2, 0], &[0, 3]];
    dtypes::COMPLEX
        .iter()
        .flat_map(|&dtype| shapes.map(|shape| vec![ramp(dtype, shape, -2.0, 3.0)]))
        .collect()
}

fn invalid() -> Vec<InvalidArgs> {
    vec![
        InvalidArgs::new(vec![ramp(DType::I32, &[2], 0.0, 1.0)], ErrorKind::DType, "int32 is not supported"),
        InvalidArgs::new(vec![ramp(DType::C64, &[], 0.0, 1.0)], ErrorKind::Shape, "expected rank >= 1"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "fft",
        Param::X,
        |a| one(fft(a.tensor(0)?)),
        Reference::Numpy("np.fft.fft(x).astype(x.dtype) if x.size else x"),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "ifft",
        Param::X,
        |a| one(ifft(a.tensor(0)?)),
        Reference::Numpy("np.fft.ifft(x).astype(x.dtype) if x.size else x"),
        Samples::List(samples),
    )
    .refuses(invalid),
];
