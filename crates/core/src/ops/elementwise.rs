//! Element by element: ops that differ only in a kernel's code and in which types they take.

use crate::apply::{Outputs, apply};
use crate::error::{Error, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::reduce::sum;
use crate::ops::shape::reshape_to;
use crate::ops::unary::cast;
use crate::promote::{float_of, promote, promote_scalar};
use crate::scalar::{Operand, Scalar};
use crate::shape::Shape;
use crate::tensor::Tensor;
pub use taut_kernels::elementwise::Code;
use taut_kernels::elementwise::{self as kernels, Binary, Unary};
use taut_kernels::{Arg, DType, ViewMut};
use taut_memory::Location;

/// An op that works element by element. It is data: a new one needs no new type.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub code: Code,
    /// What it computes in.
    pub types: Types,
    /// Its derivative, if it has one.
    pub derivative: Option<Derivative>,
}

/// The derivative of an elementwise op.
#[derive(Clone, Copy, Debug)]
pub struct Derivative {
    /// What it keeps of a call, as [`Differentiable::saves`].
    pub saves: fn(Set) -> Saves,
    /// The further value it keeps, as [`Differentiable::residual`].
    pub residual: Option<fn(&VjpCall<'_>) -> Result<Tensor>>,
    /// The gradient of one input, from that of the output and in its shape; the op sums it to the input's own.
    pub partial: Partial,
}

/// How an elementwise op makes the gradient of an input from that of the output.
#[derive(Clone, Copy, Debug)]
pub enum Partial {
    /// From the call and the input's position.
    Of(fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>),
    /// From the call and the `alpha` of an op of one tensor.
    Alpha(fn(&VjpCall<'_>, Tensor, f64) -> Result<Tensor>),
}

/// What an elementwise op computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// The type its inputs meet in.
    Same,
    /// That type if it is a floating-point type, else the one NumPy's mathematical functions choose.
    Float,
    /// That type if it is a floating-point type, else `float64`, as NumPy divides.
    Quotient,
}

impl Elementwise {
    /// An op of one tensor.
    pub const fn unary(name: &'static str, code: Unary, types: Types) -> Elementwise {
        Elementwise::new(name, Code::Unary(code), types)
    }

    /// An op of two tensors.
    pub const fn binary(name: &'static str, code: Binary, types: Types) -> Elementwise {
        Elementwise::new(name, Code::Binary(code), types)
    }

    /// An op.
    pub const fn new(name: &'static str, code: Code, types: Types) -> Elementwise {
        Elementwise { name, code, types, derivative: None }
    }

    /// The op with its derivative: what it keeps, and the gradient of an input (its position is the last argument)
    /// from that of the output.
    #[must_use]
    pub const fn grad(
        mut self,
        saves: fn(Set) -> Saves,
        partial: fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>,
    ) -> Elementwise {
        self.derivative = Some(Derivative { saves, residual: None, partial: Partial::Of(partial) });
        self
    }

    /// As [`Elementwise::grad`], where the derivative keeps one further value, made from the outputs and the inputs
    /// that `saves` says are read.
    #[must_use]
    pub const fn grad_with(
        mut self,
        saves: fn(Set) -> Saves,
        residual: fn(&VjpCall<'_>) -> Result<Tensor>,
        partial: fn(&VjpCall<'_>, Tensor, usize) -> Result<Tensor>,
    ) -> Elementwise {
        self.derivative = Some(Derivative { saves, residual: Some(residual), partial: Partial::Of(partial) });
        self
    }

    /// The number that some ops of one tensor have beside it.
    fn alpha(&self) -> Option<f64> {
        match self.code {
            Code::Unary(Unary::LeakyRelu(alpha) | Unary::Elu(alpha)) => Some(alpha),
            _ => None,
        }
    }

    /// The gradient of input `i`, from that of the output.
    fn partial(
        &self,
        derivative: Derivative,
        call: &VjpCall<'_>,
        gradient: Tensor,
        i: usize,
    ) -> Result<Tensor> {
        let partial = match derivative.partial {
            Partial::Of(partial) => partial(call, gradient, i),
            Partial::Alpha(partial) => partial(call, gradient, self.alpha().unwrap_or_default()),
        };
        sum_to(partial?, call.input_shape(i))
    }

    /// The type it computes in when its inputs meet in `dtype`.
    #[inline]
    fn compute_dtype(&self, dtype: DType) -> DType {
        match self.types {
            Types::Float => float_of(dtype),
            Types::Quotient if !dtype.is_float() => DType::F64,
            Types::Same | Types::Quotient => dtype,
        }
    }

    /// An operand as an input, where `meeting` is the type that all operands meet in.
    #[track_caller]
    pub(super) fn input(&self, operand: Operand, meeting: DType) -> Result<Tensor> {
        let dtype = self.compute_dtype(meeting);
        match operand {
            Operand::Tensor(tensor) => cast(tensor, dtype),
            Operand::Scalar(scalar) if !scalar.fits(meeting) => Err(self.does_not_fit(scalar, meeting)),
            Operand::Scalar(scalar) => Tensor::constant(scalar, dtype),
        }
    }

    #[cold]
    #[track_caller]
    fn does_not_fit(&self, scalar: Scalar, dtype: DType) -> Error {
        Error::value(format!("{scalar} does not fit {dtype}, the other operand's type"))
            .help("cast the tensor to a wider type first")
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
                    return Err(Error::dtype(format!("the condition is {}, not bool", first.dtype))
                        .help("compare it with something, or cast it to bool"));
                }
                (Some(shared_dtype(&inputs[1..])?), broadcast_all(inputs)?)
            }
            Code::Clip => {
                let dtype = shared_dtype(inputs)?;
                (Some(dtype).filter(|&dtype| dtype != DType::Bool), broadcast_all(inputs)?)
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

    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        Form::Elements(self.code)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.broadcast(self)
    }

    fn attributes(&self) -> String {
        self.alpha().map_or_else(String::new, |alpha| format!("alpha={alpha}"))
    }
}

impl Differentiable for Elementwise {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        self.derivative.map(|derivative| (derivative.saves)(wanted))
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        self.derivative.and_then(|derivative| derivative.residual).map(|residual| residual(call)).transpose()
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (Some(derivative), Some(gradient)) = (self.derivative, call.take_gradient(0)) else {
            return Ok(Gradients::new());
        };
        let last = (0..call.inputs.len()).rev().find(|&i| call.wants(i));
        let mut gradient = Some(gradient);
        let mut gradients = Gradients::new();
        for i in 0..call.inputs.len() {
            // The last one to use the gradient may have its memory.
            let given = if Some(i) == last { gradient.take() } else { gradient.clone() };
            gradients.push(match given {
                Some(given) if call.wants(i) => Some(self.partial(derivative, call, given, i)?.into()),
                _ => None,
            });
        }
        Ok(gradients)
    }
}

/// Sums a gradient of a broadcast result to the shape of what was broadcast.
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

/// The type that inputs have in common. Public functions convert before they apply; this is for those who do not.
#[inline]
fn shared_dtype(inputs: &[&Spec]) -> Result<DType> {
    let dtype = inputs[0].dtype;
    match inputs.iter().find(|input| input.dtype != dtype) {
        None => Ok(dtype),
        Some(other) => {
            Err(Error::dtype(format!("types {dtype} and {} differ", other.dtype)).help("cast one of them"))
        }
    }
}

fn broadcast_all(inputs: &[&Spec]) -> Result<Shape> {
    inputs[1..].iter().try_fold(inputs[0].shape.clone(), |shape, input| shape.broadcast(&input.shape))
}

#[cold]
fn unsupported(dtype: DType) -> Error {
    Error::dtype(format!("{dtype} is not supported")).help("cast to another type first")
}

/// Refuses an integer that is not one of `dtype`'s.
pub(super) fn must_fit(scalar: Scalar, dtype: DType) -> Result<()> {
    if scalar.fits(dtype) { Ok(()) } else { Err(Error::value(format!("{scalar} does not fit {dtype}"))) }
}

/// The type that operands meet in: that of the tensors, unless a number is of a kind they cannot hold.
pub(super) fn meeting_dtype(operands: &[&Operand]) -> DType {
    let tensors = operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(tensor) => Some(tensor.dtype()),
        Operand::Scalar(_) => None,
    });
    let scalars = operands.iter().filter_map(|operand| match operand {
        Operand::Scalar(scalar) => Some(*scalar),
        Operand::Tensor(_) => None,
    });
    match tensors.reduce(promote) {
        Some(dtype) => scalars.fold(dtype, promote_scalar),
        None => scalars.map(Scalar::default_dtype).reduce(promote).unwrap_or(DType::F32),
    }
}

/// Applies a unary elementwise op, converting the input to the type it computes in.
#[inline]
#[track_caller]
pub(super) fn unary(op: &Elementwise, x: Tensor) -> Result<Tensor> {
    let dtype = op.compute_dtype(x.dtype());
    apply(op, [cast(x, dtype)?])
}

/// Applies a binary elementwise op to operands that meet in one type.
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
            let dtype = meeting_dtype(&[&a, &b]);
            (op.input(a, dtype)?, op.input(b, dtype)?)
        }
    };
    apply(op, [a, b])
}
