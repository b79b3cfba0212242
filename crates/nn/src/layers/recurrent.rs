//! Layers that go through sequences, step by step.

use super::Activation;
use super::builder::{Activated, Build, Builder, Make, Weighted, Weights, expect, shaped, some, work};
use crate::initializers::Initializer;
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_control::Loops;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::{concat, reverse, swapaxes, unstack};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// What can be said about a recurrent layer.
#[derive(Clone, Debug)]
pub struct Options {
    inputs: usize,
    units: usize,
    weights: Weights,
    recurrent_initializer: Initializer,
    return_sequences: bool,
    pub(super) go_backwards: bool,
    unit_forget_bias: bool,
    loops: Loops,
}

impl Options {
    fn new(inputs: usize, units: usize, activation: Activation) -> Options {
        Options {
            inputs,
            units,
            weights: Weights { activation, ..Weights::default() },
            recurrent_initializer: Initializer::Orthogonal { gain: 1.0 },
            return_sequences: false,
            go_backwards: false,
            unit_forget_bias: true,
            loops: Loops::new(),
        }
    }
}

/// A layer that goes through sequences `[batch, steps, features]`.
pub trait Recurrent: Layer + Build<Options = Options> {
    /// Whether it gives what it puts out at every step.
    fn returns_sequences(&self) -> bool;
}

impl<L: Recurrent> Builder<L> {
    /// Whether it gives what it puts out at every step, `[batch, steps, units]`, and not at the last one only.
    pub fn return_sequences(mut self, on: bool) -> Builder<L> {
        self.options.return_sequences = on;
        self
    }

    /// Whether it begins at the end. What it puts out at every step is then in that order, too.
    pub fn go_backwards(mut self, on: bool) -> Builder<L> {
        self.options.go_backwards = on;
        self
    }

    /// The most bytes of states that the gradient may keep: the others are computed again, as few times as possible. Without
    /// a budget, what the gradient needs of every step is kept.
    pub fn grad_budget(mut self, bytes: usize) -> Builder<L> {
        self.options.loops = self.options.loops.grad_budget(bytes);
        self
    }

    /// What the kernel of the state is to begin with: orthogonal, unless it is said here.
    pub fn recurrent_initializer(mut self, initializer: Initializer) -> Builder<L> {
        self.options.recurrent_initializer = initializer;
        self
    }
}

/// What recurrent layers have in common.
#[derive(Debug)]
struct Core {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Option<Variable>,
    return_sequences: bool,
    go_backwards: bool,
    loops: Loops,
    at: Location,
}

impl Core {
    /// A layer of this many gates, with a bias of this many rows.
    fn new(
        options: &Options,
        gates: usize,
        bias: impl FnOnce() -> Result<Variable>,
        make: &Make,
    ) -> Result<Core> {
        let Options { inputs, units, weights, recurrent_initializer, .. } = options;
        some(&[("inputs", *inputs), ("units", *units)])?;
        let columns = gates.checked_mul(*units).ok_or_else(|| {
            Error::shape(format!(
                "{gates} gates of {units} units have more elements than memory has addresses"
            ))
        })?;
        let recurrent = [*units, columns];
        Ok(Core {
            kernel: make.variable("kernel", [*inputs, columns], weights.kernel_initializer)?,
            recurrent_kernel: make.variable("recurrent_kernel", recurrent, *recurrent_initializer)?,
            bias: weights.bias.then(bias).transpose()?,
            return_sequences: options.return_sequences,
            go_backwards: options.go_backwards,
            loops: options.loops.clone(),
            at: make.at,
        })
    }

    fn units(&self) -> usize {
        self.recurrent_kernel.shape()[0]
    }

    fn dtype(&self) -> DType {
        self.kernel.dtype()
    }

    /// The input with its steps first, in the order in which they come.
    fn steps(&self, x: &Tensor) -> Result<Tensor> {
        let inputs = self.kernel.shape()[0];
        let fits = x.rank() == 3 && x.shape()[2] == inputs;
        expect(x, self.dtype(), fits, || format!("[batch, steps, {inputs}]"))?;
        let steps = swapaxes(x, 0, 1)?;
        if self.go_backwards { reverse(steps, &[0]) } else { Ok(steps) }
    }

    /// The state to begin with: this one, or zeros.
    fn state(&self, given: Option<&Tensor>, x: &Tensor) -> Result<Tensor> {
        let shape = [x.shape()[0], self.units()];
        match given {
            None => zeros(shape, self.dtype()),
            Some(state) if state.shape()[..] == shape && state.dtype() == self.dtype() => Ok(state.clone()),
            Some(state) => {
                let (dtype, [batch, units]) = (self.dtype(), shape);
                let message = format!("the state is {dtype}[{batch}, {units}], not {}", state.spec());
                Err(Error::shape(message))
            }
        }
    }

    /// What the layer gives: what was put out at every step, or at the last.
    fn result(&self, all: Tensor, last: &Tensor) -> Result<Tensor> {
        if self.return_sequences { swapaxes(all, 0, 1) } else { Ok(last.clone()) }
    }

    /// The bias, or zeros in its place.
    fn bias(&self, shape: &[usize]) -> Result<Tensor> {
        self.bias.as_ref().map_or_else(|| zeros(shape, self.dtype()), |bias| Ok(bias.read()))
    }

    fn variables(&self, names: &mut Names) {
        names.add("kernel", &self.kernel);
        names.add("recurrent_kernel", &self.recurrent_kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

/// `state = activation(x @ kernel + state @ recurrent_kernel + bias)` at every step.
#[derive(Debug)]
pub struct SimpleRNN {
    core: Core,
    activation: Activation,
}

impl SimpleRNN {
    /// A layer for steps of this many features, with this many units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> Builder<SimpleRNN> {
        Builder::new(Options::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// What the layer gives, and its last state, `[batch, units]`; it begins with this one, or with zeros.
    pub fn run(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let core = &self.core;
        work(SimpleRNN::NAME, core.at, x, || {
            let (steps, state) = (core.steps(x)?, core.state(state, x)?);
            let (count, batch, features) = (steps.shape()[0], steps.shape()[1], steps.shape()[2]);
            let flat = shaped(steps, &[count * batch, features])?;
            let inputs = add(matmul(flat, &core.kernel)?, core.bias(&[core.units()])?)?;
            let inputs = shaped(inputs, &[count, batch, core.units()])?;
            let recurrent = core.recurrent_kernel.read();
            let step = |state: Tensor, input: Tensor| {
                let state = self.activation.apply(add(matmul(state, &recurrent)?, input)?)?;
                Ok((state.clone(), state))
            };
            let (last, all) = core.loops.scan(step, state, inputs)?;
            Ok((core.result(all, &last)?, last))
        })
    }
}

impl Build for SimpleRNN {
    const NAME: &'static str = "SimpleRNN";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<SimpleRNN> {
        let bias = || make.variable("bias", [options.units], options.weights.bias_initializer);
        Ok(SimpleRNN { core: Core::new(options, 1, bias, make)?, activation: options.weights.activation })
    }
}

impl Activated for SimpleRNN {}

/// A long short-term memory: a state and a memory, and gates that say what goes in and out.
///
/// The kernels have columns for the input gate, the forget gate, the candidate and the output gate, in this order.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, layers::LSTM};
/// let layer = LSTM::new(8, 16).return_sequences(true).build()?;
/// assert_eq!(layer.call(&ones([2, 5, 8], DType::F32)?, Mode::Infer)?.shape()[..], [2, 5, 16]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct LSTM {
    core: Core,
}

impl LSTM {
    /// A layer for steps of this many features, with this many units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> Builder<LSTM> {
        Builder::new(Options::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// What the layer gives, and its last state and memory, `[batch, units]`; it begins with these, or with zeros.
    pub fn run(&self, x: &Tensor, state: Option<(&Tensor, &Tensor)>) -> Result<(Tensor, (Tensor, Tensor))> {
        let core = &self.core;
        work(LSTM::NAME, core.at, x, || {
            let steps = core.steps(x)?;
            let state = (core.state(state.map(|s| s.0), x)?, core.state(state.map(|s| s.1), x)?);
            let (kernel, recurrent) = (core.kernel.read(), core.recurrent_kernel.read());
            let bias = core.bias(&[4 * core.units()])?;
            let (all, last) = core.loops.lstm(&steps, state, &kernel, &recurrent, &bias)?;
            Ok((core.result(all, &last.0)?, last))
        })
    }
}

impl Builder<LSTM> {
    /// Whether the forget gate's bias begins with ones, so that it forgets little. It does, unless it is said here.
    pub fn unit_forget_bias(mut self, on: bool) -> Builder<LSTM> {
        self.options.unit_forget_bias = on;
        self
    }
}

impl Build for LSTM {
    const NAME: &'static str = "LSTM";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<LSTM> {
        let (units, initializer) = (options.units, options.weights.bias_initializer);
        let bias = || {
            if !options.unit_forget_bias {
                return make.variable("bias", [4 * units], initializer);
            }
            let part = |gates: usize, initializer: Initializer| initializer.make([gates * units], make.dtype);
            let parts = [part(1, initializer)?, part(1, Initializer::Ones)?, part(2, initializer)?];
            Variable::builder().name("bias").build(concat(&parts, 0)?)
        };
        Ok(LSTM { core: Core::new(options, 4, bias, make)? })
    }
}

/// A gated recurrent unit: a state, and gates that say how much of it stays.
///
/// The kernels have columns for the update gate, the reset gate and the candidate, in this order; the bias has a row for the
/// input and one for the state. The reset gate is applied after the product with the state (`reset_after`).
#[derive(Debug)]
pub struct GRU {
    core: Core,
}

impl GRU {
    /// A layer for steps of this many features, with this many units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> Builder<GRU> {
        Builder::new(Options::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// What the layer gives, and its last state, `[batch, units]`; it begins with this one, or with zeros.
    pub fn run(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let core = &self.core;
        work(GRU::NAME, core.at, x, || {
            let (steps, state) = (core.steps(x)?, core.state(state, x)?);
            let (kernel, recurrent) = (core.kernel.read(), core.recurrent_kernel.read());
            let bias = unstack(core.bias(&[2, 3 * core.units()])?, 0)?;
            let (all, last) = core.loops.gru(&steps, state, &kernel, &recurrent, (&bias[0], &bias[1]))?;
            Ok((core.result(all, &last)?, last))
        })
    }
}

impl Build for GRU {
    const NAME: &'static str = "GRU";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<GRU> {
        let bias = || make.variable("bias", [2, 3 * options.units], options.weights.bias_initializer);
        Ok(GRU { core: Core::new(options, 3, bias, make)? })
    }
}

macro_rules! recurrent {
    ($($layer:ident)*) => {$(
        impl Weighted for $layer {
            fn weights(options: &mut Options) -> &mut Weights {
                &mut options.weights
            }
        }

        impl Recurrent for $layer {
            fn returns_sequences(&self) -> bool {
                self.core.return_sequences
            }
        }

        impl Layer for $layer {
            fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
                Ok(self.run(x, None)?.0)
            }

            fn variables(&self, names: &mut Names) {
                self.core.variables(names);
            }
        }
    )*};
}

recurrent!(SimpleRNN LSTM GRU);
