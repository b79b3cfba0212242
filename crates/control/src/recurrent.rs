//! Recurrent layers over time: a scan whose step is one product and one pass over the gates.

use crate::loops::Loops;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::shape::{reshape, slice};
use taut_core::ops::unary::{sigmoid, tanh};
use taut_core::{Error, Index, Result, Tensor};

impl Loops {
    /// A long short-term memory over time. See [`lstm`].
    #[track_caller]
    pub fn lstm(
        &self,
        x: &Tensor,
        state: (Tensor, Tensor),
        kernel: &Tensor,
        recurrent_kernel: &Tensor,
        bias: &Tensor,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let units = units("lstm", x, kernel, recurrent_kernel, 4)?;
        let inputs = inputs(x, kernel, bias)?;
        let step = |(h, c): (Tensor, Tensor), input: Tensor| {
            let gates = add(matmul(h, recurrent_kernel)?, input)?;
            let gate = |n: usize| columns(&gates, n, units);
            let (input, forget, output) = (sigmoid(gate(0)?)?, sigmoid(gate(1)?)?, sigmoid(gate(3)?)?);
            let c = add(mul(forget, c)?, mul(input, tanh(gate(2)?)?)?)?;
            let h = mul(output, tanh(&c)?)?;
            Ok(((h.clone(), c), h))
        };
        let (state, all) = self.scan(step, state, inputs)?;
        Ok((all, state))
    }

    /// A gated recurrent unit over time. See [`gru`].
    #[track_caller]
    pub fn gru(
        &self,
        x: &Tensor,
        state: Tensor,
        kernel: &Tensor,
        recurrent_kernel: &Tensor,
        bias: (&Tensor, &Tensor),
    ) -> Result<(Tensor, Tensor)> {
        let units = units("gru", x, kernel, recurrent_kernel, 3)?;
        let inputs = inputs(x, kernel, bias.0)?;
        let step = |h: Tensor, input: Tensor| {
            let inner = add(matmul(&h, recurrent_kernel)?, bias.1)?;
            let part = |of: &Tensor, n: usize| columns(of, n, units);
            let update = sigmoid(add(part(&input, 0)?, part(&inner, 0)?)?)?;
            let reset = sigmoid(add(part(&input, 1)?, part(&inner, 1)?)?)?;
            let candidate = tanh(add(part(&input, 2)?, mul(reset, part(&inner, 2)?)?)?)?;
            // update * h + (1 - update) * candidate
            let h = add(&candidate, mul(update, sub(&h, &candidate)?)?)?;
            Ok((h.clone(), h))
        };
        let (state, all) = self.scan(step, state, inputs)?;
        Ok((all, state))
    }
}

/// A long short-term memory over time: what it puts out at each step, and its last state.
///
/// `x` is `[steps, batch, features]`, the state two times `[batch, units]` (what it put out, and its memory), the kernel
/// `[features, 4 units]`, the recurrent one `[units, 4 units]`, the bias `[4 units]`: for the input gate, the forget gate, the candidate
/// and the output gate.
///
/// The products with `x` are one product for all steps; a step is one product and one pass over the gates.
///
/// ```
/// use taut_control::recurrent::lstm;
/// use taut_core::{DType, ops::{creation::{ones, zeros}, random::uniform}};
/// let (x, zero) = (ones([5, 2, 3], DType::F32)?, zeros([2, 4], DType::F32)?);
/// let kernel = |rows| uniform([rows, 16], -0.5, 0.5, DType::F32);
/// let bias = zeros([16], DType::F32)?;
/// let (all, (last, _)) = lstm(&x, (zero.clone(), zero), &kernel(3)?, &kernel(4)?, &bias)?;
/// assert_eq!((all.shape(), last.shape()), (&[5, 2, 4].into(), &[2, 4].into()));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn lstm(
    x: &Tensor,
    state: (Tensor, Tensor),
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: &Tensor,
) -> Result<(Tensor, (Tensor, Tensor))> {
    Loops::new().lstm(x, state, kernel, recurrent_kernel, bias)
}

/// A gated recurrent unit over time: what it puts out at each step, and its last state.
///
/// `x` is `[steps, batch, features]`, the state `[batch, units]`, the kernel `[features, 3 units]`, the recurrent one
/// `[units, 3 units]`, the two biases (of the input, and of the state) `[3 units]`: for the update gate, the reset gate and the
/// candidate. The reset gate is applied after the product with the state.
#[track_caller]
pub fn gru(
    x: &Tensor,
    state: Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: (&Tensor, &Tensor),
) -> Result<(Tensor, Tensor)> {
    Loops::new().gru(x, state, kernel, recurrent_kernel, bias)
}

/// The number of units, if the kernels are those of that many gates.
#[track_caller]
fn units(
    op: &'static str,
    x: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    gates: usize,
) -> Result<usize> {
    let at = std::panic::Location::caller();
    let fits = match (&x.shape()[..], &kernel.shape()[..], &recurrent_kernel.shape()[..]) {
        ([_, _, features], [rows, columns], [units, more]) => {
            features == rows && columns == more && *columns == gates * units
        }
        _ => false,
    };
    if fits {
        return Ok(recurrent_kernel.shape()[0]);
    }
    let message = format!(
        "x is [steps, batch, features], the kernel [features, {gates} units] and the recurrent kernel [units, {gates} units]"
    );
    Err(Error::shape(message).in_op(op, [x.spec(), kernel.spec(), recurrent_kernel.spec()]).at(at))
}

/// What the inputs of all steps add to the gates.
fn inputs(x: &Tensor, kernel: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (steps, batch) = (x.shape()[0] as isize, x.shape()[1] as isize);
    let (features, gates) = (kernel.shape()[0] as isize, kernel.shape()[1] as isize);
    let flat = add(matmul(reshape(x, &[steps * batch, features])?, kernel)?, bias)?;
    reshape(flat, &[steps, batch, gates])
}

/// The columns of one gate.
fn columns(gates: &Tensor, gate: usize, units: usize) -> Result<Tensor> {
    let first = (gate * units) as isize;
    slice(gates, &[Index::from(..), Index::from(first..first + units as isize)])
}
