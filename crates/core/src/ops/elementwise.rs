//! Element by element: ops that differ only in a kernel's code and in which types they take.

use crate::apply::apply;
use crate::error::{Error, Result};
use crate::op::{Kernel, Op, Spec, Specs};
use crate::ops::unary::cast;
use crate::promote::{float_of, promote, promote_scalar};
use crate::scalar::Operand;
use crate::tensor::Tensor;
use taut_kernels::elementwise::{self as kernels, Binary, Unary};
use taut_kernels::{Arg, DType, ViewMut};

/// An op that works element by element. It is data: a new one needs no new type.
#[derive(Clone, Copy, Debug)]
pub struct Elementwise {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub code: Code,
    /// What it computes in.
    pub types: Types,
}

/// What an elementwise op computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// A function of one element.
    Unary(Unary),
    /// A function of two elements.
    Binary(Binary),
}

/// What an elementwise op computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// The type its inputs meet in.
    Same,
    /// That type if it is a floating-point type, else the one NumPy's mathematical functions choose.
    Float,
}

impl Elementwise {
    /// An op of one tensor.
    pub const fn unary(name: &'static str, code: Unary, types: Types) -> Elementwise {
        Elementwise { name, code: Code::Unary(code), types }
    }

    /// An op of two tensors.
    pub const fn binary(name: &'static str, code: Binary, types: Types) -> Elementwise {
        Elementwise { name, code: Code::Binary(code), types }
    }

    #[inline]
    fn compute_dtype(&self, dtype: DType) -> DType {
        match self.types {
            Types::Same => dtype,
            Types::Float => float_of(dtype),
        }
    }
}

impl Op for Elementwise {
    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = inputs[0].dtype;
        let (result, shape) = match self.code {
            Code::Unary(code) => (code.result(dtype), inputs[0].shape.clone()),
            Code::Binary(code) => {
                if inputs[1].dtype != dtype {
                    return Err(Error::dtype(format!("types {dtype} and {} differ", inputs[1].dtype)));
                }
                (code.result(dtype), inputs[0].shape.broadcast(&inputs[1].shape)?)
            }
        };
        let dtype = result.ok_or_else(|| unsupported(dtype))?;
        Ok(Spec { dtype, shape }.into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::Elementwise
    }

    #[inline]
    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let out = outputs[0].reborrow();
        match self.code {
            Code::Unary(code) => kernels::unary(code, inputs[0], out),
            Code::Binary(code) => kernels::binary(code, inputs[0], inputs[1], out),
        }
        Ok(())
    }

    fn aliases(&self) -> &'static [usize] {
        match self.code {
            Code::Unary(_) => &[0],
            Code::Binary(_) => &[0, 1],
        }
    }

    fn attributes(&self) -> String {
        match self.code {
            Code::Unary(Unary::LeakyRelu(alpha) | Unary::Elu(alpha)) => format!("alpha={alpha}"),
            _ => String::new(),
        }
    }
}

#[cold]
fn unsupported(dtype: DType) -> Error {
    Error::dtype(format!("{dtype} is not supported")).help("cast to another type first")
}

/// Applies a unary elementwise op, converting the input to the type it computes in.
#[inline]
#[track_caller]
pub(super) fn unary(op: &Elementwise, x: Tensor) -> Result<Tensor> {
    let dtype = op.compute_dtype(x.dtype());
    if dtype == x.dtype() { apply(op, [x]) } else { apply(op, [cast(x, dtype)?]) }
}

/// Applies a binary elementwise op to operands that meet in one type.
#[inline]
#[track_caller]
pub(super) fn binary(op: &Elementwise, a: Operand, b: Operand) -> Result<Tensor> {
    let (a, b) = match (a, b) {
        (Operand::Tensor(a), Operand::Tensor(b)) if a.dtype() == b.dtype() => (a, b),
        (Operand::Tensor(a), Operand::Tensor(b)) => {
            let dtype = promote(a.dtype(), b.dtype());
            (cast(a, dtype)?, cast(b, dtype)?)
        }
        (Operand::Tensor(a), Operand::Scalar(b)) => {
            let dtype = promote_scalar(a.dtype(), b);
            (cast(a, dtype)?, Tensor::constant(b, dtype)?)
        }
        (Operand::Scalar(a), Operand::Tensor(b)) => {
            let dtype = promote_scalar(b.dtype(), a);
            (Tensor::constant(a, dtype)?, cast(b, dtype)?)
        }
        (Operand::Scalar(a), Operand::Scalar(b)) => {
            let dtype = promote(a.default_dtype(), b.default_dtype());
            (Tensor::constant(a, dtype)?, Tensor::constant(b, dtype)?)
        }
    };
    let dtype = op.compute_dtype(a.dtype());
    if dtype == a.dtype() { apply(op, [a, b]) } else { apply(op, [cast(a, dtype)?, cast(b, dtype)?]) }
}
