//! Elementwise ops: they differ only in the kernel's code and in the dtype they compute in.

use crate::apply::{Outputs, apply};
use crate::error::{Error, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::reduce::sum;
use crate::ops::shape::reshape_to;
use crate::ops::unary::{cast, conj};
use crate::promote::{common_dtype, float_of, promote, promote_scalar};
use crate::scalar::{Operand, Scalar};
use crate::shape::Shape;
use crate::tensor::Tensor;
pub use taut_kernels::elementwise::Code;
use taut_kernels::elementwise::{self as kernels, Binary, Unary};
use taut_kernels::{Arg, DType, ViewMut};
use taut_memory::Location;

/// An elementwise op. Ops are values of this type, not types of their own.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    /// Its name.
    pub name: &'static str,
    /// The function it computes.
    pub code: Code,
    /// The dtype it computes in.
    pub types: ComputeDType,
    /// Its gradient, if it is differentiable.
    pub gradient: Option<ElementwiseGradient>,
}

/// The gradient of an elementwise op.
#[derive(Clone, Copy, Debug)]
pub struct ElementwiseGradient {
    /// The values it saves for backward, as [`Differentiable::saves`].
    pub saves: fn(Set) -> Saves,
    /// The residual computed in the forward pass, as [`Differentiable::residual`].
    pub residual: Option<fn(&VjpCall<'_>) -> Result<Tensor>>,
    /// The gradient with respect to one input, in the output's shape; the op then sums over the broadcast axes.
    pub partial: ElementwiseVjp,
}

/// The function from the output's gradient to an input's.
#[derive(Clone, Copy, Debug)]
pub enum ElementwiseVjp {
    /// Called with the input's position.
    PerInput(fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>),
    /// Called with the `alpha` of a unary op.
    WithAlpha(fn(&VjpCall<'_>, Tensor, f64) -> Result<Tensor>),
}

/// The dtype an elementwise op computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeDType {
    /// The promoted dtype of its inputs.
    Same,
    /// The promoted dtype if it is a float, else `float32`.
    Float,
}

impl Elementwise {
    /// An op of one tensor, without a gradient.
    pub const fn unary(name: &'static str, code: Unary, types: ComputeDType) -> Elementwise {
        Elementwise::new(name, Code::Unary(code), types)
    }

    /// An op of two tensors, without a gradient.
    pub const fn binary(name: &'static str, code: Binary, types: ComputeDType) -> Elementwise {
        Elementwise::new(name, Code::Binary(code), types)
    }

    /// An op without a gradient.
    pub const fn new(name: &'static str, code: Code, types: ComputeDType) -> Elementwise {
        Elementwise { name, code, types, gradient: None }
    }

    /// The op with its gradient: the values it saves, and `partial(call, output_gradient, input_position)`, the gradient
    /// with respect to that input.
    #[must_use]
    pub const fn grad(
        mut self,
        saves: fn(Set) -> Saves,
        partial: fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>,
    ) -> Elementwise {
        self.gradient =
            Some(ElementwiseGradient { saves, residual: None, partial: ElementwiseVjp::PerInput(partial) });
        self
    }

    /// As [`Elementwise::grad`], with a residual computed in the forward pass from the outputs and the inputs that `saves`
    /// declares as read.
    #[must_use]
    pub const fn grad_with(
        mut self,
        saves: fn(Set) -> Saves,
        residual: fn(&VjpCall<'_>) -> Result<Tensor>,
        partial: fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>,
    ) -> Elementwise {
        self.gradient = Some(ElementwiseGradient {
            saves,
            residual: Some(residual),
            partial: ElementwiseVjp::PerInput(partial),
        });
        self
    }

    /// The parameter `alpha` of the unary ops that have one.
    fn alpha(&self) -> Option<f64> {
        match self.code {
            Code::Unary(Unary::LeakyRelu(alpha) | Unary::Elu(alpha)) => Some(alpha),
            _ => None,
        }
    }

    /// The gradient with respect to input `i`, summed to its shape.
    fn partial(
        &self,
        rule: ElementwiseGradient,
        call: &VjpCall<'_>,
        gradient: Tensor,
        i: usize,
    ) -> Result<Tensor> {
        let partial = |gradient| match rule.partial {
            ElementwiseVjp::PerInput(partial) => partial(call, gradient, i),
            ElementwiseVjp::WithAlpha(partial) => partial(call, gradient, self.alpha().unwrap_or_default()),
        };
        let is_join = matches!(self.code, Code::Binary(Binary::Complex));
        let partial = if is_join { partial(gradient) } else { holomorphic(gradient, partial) };
        sum_to(partial?, call.input_shape(i))
    }

    /// The dtype it computes in when its inputs are promoted to `dtype`.
    #[inline]
    fn compute_dtype(&self, dtype: DType) -> DType {
        match self.types {
            ComputeDType::Float => float_of(dtype),
            ComputeDType::Same => dtype,
        }
    }

    /// Converts an operand to an input; `promoted` is the common dtype of all operands.
    #[track_caller]
    pub(super) fn input(&self, operand: Operand, promoted: DType) -> Result<Tensor> {
        let dtype = self.compute_dtype(promoted);
        match operand {
            Operand::Tensor(tensor) => cast(tensor, dtype),
            Operand::Scalar(scalar) if !scalar.fits(dtype) => Err(self.does_not_fit(scalar, dtype)),
            Operand::Scalar(scalar) => Tensor::constant(scalar, dtype),
        }
    }

    #[cold]
    #[track_caller]
    fn does_not_fit(&self, scalar: Scalar, dtype: DType) -> Error {
        Error::value(format!("scalar {scalar} does not fit {dtype}, the dtype of the other operand"))
            .help("cast the tensor to a wider dtype first")
            .in_op(self.name, [])
            .at(Location::caller())
    }
}

impl Op for Elementwise {
    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let first = inputs[0];
        let (result, shape) = match self.code {
            Code::Unary(code) => (code.result(first.dtype), first.shape.clone()),
            Code::Binary(code) => {
                let dtype = shared_dtype(inputs)?;
                (code.result(dtype), first.shape.broadcast(&inputs[1].shape)?)
            }
            Code::Select => {
                if first.dtype != DType::Bool {
                    return Err(Error::dtype(format!("condition must be bool, got {}", first.dtype))
                        .help("use a comparison, or cast it to bool"));
                }
                (Some(shared_dtype(&inputs[1..])?), broadcast_all(inputs)?)
            }
            Code::Clip => {
                let dtype = shared_dtype(inputs)?;
                let ordered = dtype != DType::Bool && !dtype.is_complex();
                (ordered.then_some(dtype), broadcast_all(inputs)?)
            }
            Code::Cast(to) => (Some(to), first.shape.clone()),
            Code::Copy => (Some(first.dtype), first.shape.clone()),
        };
        let dtype = result.ok_or_else(|| unsupported(first.dtype))?;
        Ok(Spec { dtype, shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Elementwise
    }

    #[inline]
    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let out = outputs[0].reborrow();
        match self.code {
            Code::Unary(code) => kernels::unary(code, inputs[0], out),
            Code::Binary(code) => kernels::binary(code, inputs[0], inputs[1], out),
            Code::Select => kernels::select(inputs[0], inputs[1], inputs[2], out),
            Code::Clip => kernels::clip(inputs[0], inputs[1].view(), inputs[2].view(), out),
            Code::Cast(_) => kernels::cast(inputs[0].view(), out),
            Code::Copy => kernels::copy(inputs[0].view(), out),
        }
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        match self.code {
            Code::Unary(_) | Code::Clip => &[0],
            Code::Binary(_) => &[0, 1],
            Code::Select => &[1, 2],
            Code::Cast(_) | Code::Copy => &[],
        }
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let elements = outputs.iter().map(|spec| spec.shape.len() as u64).sum::<u64>();
        Cost { flops: elements.saturating_mul(self.code.flops()), bytes: Cost::traffic(inputs, outputs) }
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        // Fused kernels have no complex numbers.
        let makes_complex = match self.code {
            Code::Binary(Binary::Complex) => true,
            Code::Cast(to) => to.is_complex(),
            _ => false,
        };
        if makes_complex || inputs.iter().any(|input| input.dtype.is_complex()) {
            return Form::Opaque;
        }
        Form::Elementwise(self.code)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_broadcast(self)
    }

    fn attributes(&self) -> String {
        self.alpha().map_or_else(String::new, |alpha| format!("alpha={alpha}"))
    }
}

impl Differentiable for Elementwise {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        self.gradient.map(|rule| (rule.saves)(wanted))
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        self.gradient.and_then(|rule| rule.residual).map(|residual| residual(call)).transpose()
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (Some(rule), Some(gradient)) = (self.gradient, call.take_gradient(0)) else {
            return Ok(Gradients::new());
        };
        let last = (0..call.inputs.len()).rev().find(|&i| call.wants(i));
        let mut gradient = Some(gradient);
        let mut gradients = Gradients::new();
        for i in 0..call.inputs.len() {
            // The last use of the gradient donates its buffer.
            let given = if Some(i) == last { gradient.take() } else { gradient.clone() };
            gradients.push(match given {
                Some(given) if call.wants(i) => Some(self.partial(rule, call, given, i)?.into()),
                _ => None,
            });
        }
        Ok(gradients)
    }
}

/// Applies a gradient rule to the gradient of an output. A rule multiplies it by the derivative, which is right for real numbers. The
/// gradient with respect to a complex number is `dL/dx + i dL/dy`, as in TensorFlow: the product with the conjugate of the derivative.
#[track_caller]
pub(super) fn holomorphic(gradient: Tensor, rule: impl FnOnce(Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if gradient.dtype().is_complex() { conj(rule(conj(gradient)?)?) } else { rule(gradient) }
}

/// Sums the gradient of a broadcast result over the broadcast axes, to the operand's shape.
#[track_caller]
pub(super) fn sum_to(gradient: Tensor, shape: &Shape) -> Result<Tensor> {
    if gradient.shape() == shape {
        return Ok(gradient);
    }
    let added = gradient.rank() - shape.rank();
    let repeated = |axis: &usize| *axis < added || shape[axis - added] != gradient.shape()[*axis];
    let axes: Vec<isize> = (0..gradient.rank()).filter(repeated).map(|axis| axis as isize).collect();
    let summed = sum(gradient, axes.as_slice(), false)?;
    if summed.shape() == shape { Ok(summed) } else { reshape_to(summed, shape) }
}

/// The common dtype of the inputs. Public functions convert their operands first; direct calls of `apply` may not.
#[inline]
fn shared_dtype(inputs: &[&Spec]) -> Result<DType> {
    let dtype = inputs[0].dtype;
    match inputs.iter().find(|input| input.dtype != dtype) {
        None => Ok(dtype),
        Some(other) => {
            Err(Error::dtype(format!("operands must have the same dtype, got {dtype} and {}", other.dtype))
                .help("cast one of them"))
        }
    }
}

fn broadcast_all(inputs: &[&Spec]) -> Result<Shape> {
    inputs[1..].iter().try_fold(inputs[0].shape.clone(), |shape, input| shape.broadcast(&input.shape))
}

#[cold]
fn unsupported(dtype: DType) -> Error {
    Error::dtype(format!("{dtype} is not supported")).help("cast to a supported dtype first")
}

/// An error if `dtype` cannot represent an integer scalar.
pub(super) fn check_fits(scalar: Scalar, dtype: DType) -> Result<()> {
    if scalar.fits(dtype) { Ok(()) } else { Err(Error::value(format!("{scalar} does not fit {dtype}"))) }
}

/// The common dtype of operands: the promoted dtype of the tensors, widened if a scalar is of a higher kind (an integer
/// tensor and a float scalar make floats).
#[track_caller]
pub(super) fn promoted_dtype(op: &Elementwise, operands: &[&Operand]) -> Result<DType> {
    let tensors = operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(tensor) => Some(tensor),
        Operand::Scalar(_) => None,
    });
    let scalars = operands.iter().filter_map(|operand| match operand {
        Operand::Scalar(scalar) => Some(*scalar),
        Operand::Tensor(_) => None,
    });
    if tensors.clone().next().is_some() {
        return Ok(scalars.fold(common_dtype(op.name, tensors)?, promote_scalar));
    }
    let mut dtypes = scalars.map(Scalar::default_dtype);
    let first = dtypes.next().unwrap_or(DType::F32);
    dtypes.try_fold(first, promote).map_err(|error| error.in_op(op.name, []))
}

/// Applies a unary elementwise op after converting the input to the dtype it computes in.
#[inline]
#[track_caller]
pub(super) fn unary(op: &Elementwise, x: Tensor) -> Result<Tensor> {
    let dtype = op.compute_dtype(x.dtype());
    apply(op, [cast(x, dtype)?])
}

/// Applies a binary elementwise op after promoting the operands to a common dtype.
#[inline]
#[track_caller]
pub(super) fn binary(op: &Elementwise, a: Operand, b: Operand) -> Result<Tensor> {
    let (a, b) = match (a, b) {
        (Operand::Tensor(a), Operand::Tensor(b))
            if a.dtype() == b.dtype() && op.compute_dtype(a.dtype()) == a.dtype() =>
        {
            (a, b)
        }
        (a, b) => {
            let dtype = promoted_dtype(op, &[&a, &b])?;
            (op.input(a, dtype)?, op.input(b, dtype)?)
        }
    };
    apply(op, [a, b])
}
