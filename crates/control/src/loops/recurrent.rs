//! Recurrent layers over time: a scan whose step is one product and one pass over the gates.

use super::options::Loops;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::shape::{reshape, split};
use taut_core::ops::unary::{sigmoid, tanh};
use taut_core::{Error, Result, Tensor, with_source_location};
use taut_memory::Location;

impl Loops {
    /// Long short-term memory (LSTM) over time. See [`lstm`].
    #[track_caller]
    pub fn lstm(
        &self,
        x: &Tensor,
        state: (Tensor, Tensor),
        kernel: &Tensor,
        recurrent_kernel: &Tensor,
        bias: &Tensor,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let at = Location::caller();
        with_source_location(None, at, || self.scan_lstm(x, state, (kernel, recurrent_kernel, bias)))
            .map_err(|error| error.in_op("lstm", []).at(at))
    }

    fn scan_lstm(
        &self,
        x: &Tensor,
        state: (Tensor, Tensor),
        (kernel, recurrent_kernel, bias): (&Tensor, &Tensor, &Tensor),
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        check_kernels(x, kernel, recurrent_kernel, 4)?;
        // A budget is about memory: then the products with all of `x` are not kept.
        let by_step = self.grad_budget.is_some();
        let inputs = if by_step { x.clone() } else { input_products(x, kernel, bias)? };
        let step = |(h, c): (Tensor, Tensor), input: Tensor| {
            let input = if by_step { add(matmul(input, kernel)?, bias)? } else { input };
            let gates = add(matmul(h, recurrent_kernel)?, input)?;
            let gates = split(gates, 4, 1)?;
            let (input, forget, output) = (sigmoid(&gates[0])?, sigmoid(&gates[1])?, sigmoid(&gates[3])?);
            let c = add(mul(forget, c)?, mul(input, tanh(&gates[2])?)?)?;
            let h = mul(output, tanh(&c)?)?;
            Ok(((h.clone(), c), h))
        };
        let (state, all) = self.scan(step, state, inputs)?;
        Ok((all, state))
    }

    /// Gated recurrent unit (GRU) over time. See [`gru`].
    #[track_caller]
    pub fn gru(
        &self,
        x: &Tensor,
        state: Tensor,
        kernel: &Tensor,
        recurrent_kernel: &Tensor,
        bias: (&Tensor, &Tensor),
    ) -> Result<(Tensor, Tensor)> {
        let at = Location::caller();
        with_source_location(None, at, || self.scan_gru(x, state, (kernel, recurrent_kernel), bias))
            .map_err(|error| error.in_op("gru", []).at(at))
    }

    fn scan_gru(
        &self,
        x: &Tensor,
        state: Tensor,
        (kernel, recurrent_kernel): (&Tensor, &Tensor),
        bias: (&Tensor, &Tensor),
    ) -> Result<(Tensor, Tensor)> {
        check_kernels(x, kernel, recurrent_kernel, 3)?;
        let by_step = self.grad_budget.is_some();
        let inputs = if by_step { x.clone() } else { input_products(x, kernel, bias.0)? };
        let step = |h: Tensor, input: Tensor| {
            let input = if by_step { add(matmul(input, kernel)?, bias.0)? } else { input };
            let inner = add(matmul(&h, recurrent_kernel)?, bias.1)?;
            let (input, inner) = (split(input, 3, 1)?, split(inner, 3, 1)?);
            let update = sigmoid(add(&input[0], &inner[0])?)?;
            let reset = sigmoid(add(&input[1], &inner[1])?)?;
            let candidate = tanh(add(&input[2], mul(reset, &inner[2])?)?)?;
            // update * h + (1 - update) * candidate
            let h = add(&candidate, mul(update, sub(&h, &candidate)?)?)?;
            Ok((h.clone(), h))
        };
        let (state, all) = self.scan(step, state, inputs)?;
        Ok((all, state))
    }
}

/// Long short-term memory (LSTM) over time: returns the outputs of all steps, and the last state.
///
/// `x` is `[steps, batch, features]`, the state two times `[batch, units]` (hidden state and cell state), the kernel
/// `[features, 4 units]`, the recurrent one `[units, 4 units]`, the bias `[4 units]`: for the input gate, the forget gate, the candidate
/// and the output gate.
///
/// The products with `x` are one product for all steps; a step is one product and one pass over the gates. With a
/// [budget](Loops::grad_budget), `x` is multiplied step by step instead, which needs less memory.
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

/// Gated recurrent unit (GRU) over time: returns the outputs of all steps, and the last state.
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

/// Checks the shapes of `x` and of kernels for this many gates.
fn check_kernels(x: &Tensor, kernel: &Tensor, recurrent_kernel: &Tensor, gates: usize) -> Result<()> {
    let fits = match (&x.shape()[..], &kernel.shape()[..], &recurrent_kernel.shape()[..]) {
        ([_, _, features], [rows, columns], [units, more]) => {
            features == rows && columns == more && *columns == gates * units
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let message = format!(
        "x must be [steps, batch, features], the kernel [features, {gates} units] and the recurrent kernel [units, {gates} units]"
    );
    let (x, kernel, recurrent) = (x.spec(), kernel.spec(), recurrent_kernel.spec());
    Err(Error::shape(format!("{message}, got {x}, {kernel} and {recurrent}")))
}

/// The products of the inputs of all steps with the kernel, plus the bias.
fn input_products(x: &Tensor, kernel: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (steps, batch) = (x.shape()[0] as isize, x.shape()[1] as isize);
    let (features, gates) = (kernel.shape()[0] as isize, kernel.shape()[1] as isize);
    let flat = add(matmul(reshape(x, &[steps * batch, features])?, kernel)?, bias)?;
    reshape(flat, &[steps, batch, gates])
}
