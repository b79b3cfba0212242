//! Recurrent layers.

use super::Activation;
use super::builder::{
    Build, HasActivation, HasWeights, LayerBuilder, VariableFactory, WeightOptions, check_input, in_layer,
    require_nonzero, reshape_to,
};
use crate::initializers::Initializer;
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_control::Loops;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::{concat, reverse, swapaxes, unstack};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// The options of a recurrent layer.
#[derive(Clone, Debug)]
pub struct RecurrentOptions {
    inputs: usize,
    units: usize,
    weights: WeightOptions,
    recurrent_initializer: Initializer,
    return_sequences: bool,
    pub(super) go_backwards: bool,
    unit_forget_bias: bool,
    loops: Loops,
}

impl RecurrentOptions {
    fn new(inputs: usize, units: usize, activation: Activation) -> RecurrentOptions {
        RecurrentOptions {
            inputs,
            units,
            weights: WeightOptions { activation, ..WeightOptions::default() },
            recurrent_initializer: Initializer::Orthogonal { gain: 1.0 },
            return_sequences: false,
            go_backwards: false,
            unit_forget_bias: true,
            loops: Loops::new(),
        }
    }
}

/// A recurrent layer over sequences `[batch, steps, features]`.
pub trait Recurrent: Layer + Build<Options = RecurrentOptions> {
    /// Whether the output has one element per step.
    fn returns_sequences(&self) -> bool;
}

impl<L: Recurrent> LayerBuilder<L> {
    /// Whether the output has every step, `[batch, steps, units]`, or only the last one. Default: false.
    pub fn return_sequences(mut self, on: bool) -> LayerBuilder<L> {
        self.options.return_sequences = on;
        self
    }

    /// Whether the sequence is processed from its end; outputs are then in that order, too. Default: false.
    pub fn go_backwards(mut self, on: bool) -> LayerBuilder<L> {
        self.options.go_backwards = on;
        self
    }

    /// The most bytes of states that may be saved for the backward pass; the others are recomputed from checkpoints, as few times as
    /// possible. Without a budget, every step is saved.
    pub fn grad_budget(mut self, bytes: usize) -> LayerBuilder<L> {
        self.options.loops = self.options.loops.grad_budget(bytes);
        self
    }

    /// How the recurrent kernel is initialised. Default: orthogonal.
    pub fn recurrent_initializer(mut self, initializer: Initializer) -> LayerBuilder<L> {
        self.options.recurrent_initializer = initializer;
        self
    }
}

/// Weights and options that all recurrent layers have.
#[derive(Debug)]
struct RecurrentCore {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Option<Variable>,
    return_sequences: bool,
    go_backwards: bool,
    loops: Loops,
    at: Location,
}

impl RecurrentCore {
    /// A layer of `gates` gates, with this bias.
    fn new(
        options: &RecurrentOptions,
        gates: usize,
        bias: impl FnOnce() -> Result<Variable>,
        factory: &VariableFactory,
    ) -> Result<RecurrentCore> {
        let RecurrentOptions { inputs, units, weights, recurrent_initializer, .. } = options;
        require_nonzero(&[("inputs", *inputs), ("units", *units)])?;
        let columns = gates.checked_mul(*units).ok_or_else(|| {
            Error::shape(format!(
                "the number of elements of {gates} gates of {units} units exceeds the address space"
            ))
        })?;
        let recurrent = [*units, columns];
        Ok(RecurrentCore {
            kernel: factory.variable("kernel", [*inputs, columns], weights.kernel_initializer)?,
            recurrent_kernel: factory.variable("recurrent_kernel", recurrent, *recurrent_initializer)?,
            bias: weights.bias.then(bias).transpose()?,
            return_sequences: options.return_sequences,
            go_backwards: options.go_backwards,
            loops: options.loops.clone(),
            at: factory.at,
        })
    }

    fn units(&self) -> usize {
        self.recurrent_kernel.shape()[0]
    }

    fn dtype(&self) -> DType {
        self.kernel.dtype()
    }

    /// The input with the step axis first, in the order in which steps are processed.
    fn steps(&self, x: &Tensor) -> Result<Tensor> {
        let inputs = self.kernel.shape()[0];
        let fits = x.rank() == 3 && x.shape()[2] == inputs;
        check_input(x, self.dtype(), fits, || format!("[batch, steps, {inputs}]"))?;
        let steps = swapaxes(x, 0, 1)?;
        if self.go_backwards { reverse(steps, &[0]) } else { Ok(steps) }
    }

    /// The initial state: the given one, or zeros.
    fn state(&self, given: Option<&Tensor>, x: &Tensor) -> Result<Tensor> {
        let shape = [x.shape()[0], self.units()];
        match given {
            None => zeros(shape, self.dtype()),
            Some(state) if state.shape()[..] == shape && state.dtype() == self.dtype() => Ok(state.clone()),
            Some(state) => {
                let (dtype, [batch, units]) = (self.dtype(), shape);
                let message = format!("the state must be {dtype}[{batch}, {units}], got {}", state.spec());
                Err(Error::shape(message))
            }
        }
    }

    /// The layer's result: the outputs of every step, or of the last.
    fn result(&self, all: Tensor, last: &Tensor) -> Result<Tensor> {
        if self.return_sequences { swapaxes(all, 0, 1) } else { Ok(last.clone()) }
    }

    /// The bias, or zeros if there is none.
    fn bias(&self, shape: &[usize]) -> Result<Tensor> {
        self.bias.as_ref().map_or_else(|| zeros(shape, self.dtype()), |bias| Ok(bias.read()))
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("kernel", &self.kernel);
        names.add("recurrent_kernel", &self.recurrent_kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

/// `state = activation(x @ kernel + state @ recurrent_kernel + bias)` at every step.
#[derive(Debug)]
pub struct SimpleRNN {
    core: RecurrentCore,
    activation: Activation,
}

impl SimpleRNN {
    /// A layer for steps of `inputs` features, with `units` units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> LayerBuilder<SimpleRNN> {
        LayerBuilder::new(RecurrentOptions::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// The result and the last state, `[batch, units]`. `state` is the initial state; zeros if there is none.
    pub fn run(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let core = &self.core;
        in_layer(SimpleRNN::NAME, core.at, x, || {
            let (steps, state) = (core.steps(x)?, core.state(state, x)?);
            let (count, batch, features) = (steps.shape()[0], steps.shape()[1], steps.shape()[2]);
            let flat = reshape_to(steps, &[count * batch, features])?;
            let inputs = add(matmul(flat, &core.kernel)?, core.bias(&[core.units()])?)?;
            let inputs = reshape_to(inputs, &[count, batch, core.units()])?;
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
    type Options = RecurrentOptions;

    fn build(options: &RecurrentOptions, factory: &VariableFactory) -> Result<SimpleRNN> {
        let bias = || factory.variable("bias", [options.units], options.weights.bias_initializer);
        Ok(SimpleRNN {
            core: RecurrentCore::new(options, 1, bias, factory)?,
            activation: options.weights.activation,
        })
    }
}

impl HasActivation for SimpleRNN {}

/// Long short-term memory (LSTM).
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
    core: RecurrentCore,
}

impl LSTM {
    /// A layer for steps of `inputs` features, with `units` units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> LayerBuilder<LSTM> {
        LayerBuilder::new(RecurrentOptions::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// The result, and the last hidden state and cell state, `[batch, units]`. `state` holds the initial ones; zeros if there are none.
    pub fn run(&self, x: &Tensor, state: Option<(&Tensor, &Tensor)>) -> Result<(Tensor, (Tensor, Tensor))> {
        let core = &self.core;
        in_layer(LSTM::NAME, core.at, x, || {
            let steps = core.steps(x)?;
            let state = (core.state(state.map(|s| s.0), x)?, core.state(state.map(|s| s.1), x)?);
            let (kernel, recurrent) = (core.kernel.read(), core.recurrent_kernel.read());
            let bias = core.bias(&[4 * core.units()])?;
            let (all, last) = core.loops.lstm(&steps, state, &kernel, &recurrent, &bias)?;
            Ok((core.result(all, &last.0)?, last))
        })
    }
}

impl LayerBuilder<LSTM> {
    /// Whether the forget gate's bias is initialised to ones. Default: true.
    pub fn unit_forget_bias(mut self, on: bool) -> LayerBuilder<LSTM> {
        self.options.unit_forget_bias = on;
        self
    }
}

impl Build for LSTM {
    const NAME: &'static str = "LSTM";
    type Options = RecurrentOptions;

    fn build(options: &RecurrentOptions, factory: &VariableFactory) -> Result<LSTM> {
        let (units, initializer) = (options.units, options.weights.bias_initializer);
        let bias = || {
            if !options.unit_forget_bias {
                return factory.variable("bias", [4 * units], initializer);
            }
            let part =
                |gates: usize, initializer: Initializer| initializer.make([gates * units], factory.dtype);
            let parts = [part(1, initializer)?, part(1, Initializer::Ones)?, part(2, initializer)?];
            Variable::builder().name("bias").build(concat(&parts, 0)?)
        };
        Ok(LSTM { core: RecurrentCore::new(options, 4, bias, factory)? })
    }
}

/// Gated recurrent unit (GRU).
///
/// The kernels have columns for the update gate, the reset gate and the candidate, in this order; the bias has a row for the
/// input and one for the state. The reset gate is applied after the product with the state (`reset_after`).
#[derive(Debug)]
pub struct GRU {
    core: RecurrentCore,
}

impl GRU {
    /// A layer for steps of `inputs` features, with `units` units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> LayerBuilder<GRU> {
        LayerBuilder::new(RecurrentOptions::new(inputs, units, Activation::Tanh), Location::caller())
    }

    /// The result and the last state, `[batch, units]`. `state` is the initial state; zeros if there is none.
    pub fn run(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let core = &self.core;
        in_layer(GRU::NAME, core.at, x, || {
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
    type Options = RecurrentOptions;

    fn build(options: &RecurrentOptions, factory: &VariableFactory) -> Result<GRU> {
        let bias = || factory.variable("bias", [2, 3 * options.units], options.weights.bias_initializer);
        Ok(GRU { core: RecurrentCore::new(options, 3, bias, factory)? })
    }
}

macro_rules! recurrent {
    ($($layer:ident)*) => {$(
        impl HasWeights for $layer {
            fn weights(options: &mut RecurrentOptions) -> &mut WeightOptions {
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

            fn variables(&self, names: &mut NamedVariables) {
                self.core.variables(names);
            }
        }
    )*};
}

recurrent!(SimpleRNN LSTM GRU);
