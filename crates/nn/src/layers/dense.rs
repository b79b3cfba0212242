//! Every output from every input.

use super::Activation;
use super::builder::{Activated, Build, Builder, Make, Weighted, Weights, expect, shaped, some, work};
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// `activation(x @ kernel + bias)` over the last axis.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, initializers::Initializer, layers::Dense};
/// let layer = Dense::new(3, 2).kernel_initializer(Initializer::Ones).build()?;
/// assert_eq!(layer.call(&ones([1, 3], DType::F32)?, Mode::Infer)?.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Dense {
    kernel: Variable,
    bias: Option<Variable>,
    activation: Activation,
    at: Location,
}

/// What can be said about a [`Dense`].
#[derive(Clone, Debug)]
pub struct Options {
    inputs: usize,
    units: usize,
    weights: Weights,
}

impl Dense {
    /// A layer for inputs of this many features, with this many units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> Builder<Dense> {
        Builder::new(Options { inputs, units, weights: Weights::default() }, Location::caller())
    }
}

impl Build for Dense {
    const NAME: &'static str = "Dense";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<Dense> {
        let Options { inputs, units, weights } = options;
        some(&[("inputs", *inputs), ("units", *units)])?;
        Ok(Dense {
            kernel: make.variable("kernel", [*inputs, *units], weights.kernel_initializer)?,
            bias: make.bias(*units, weights)?,
            activation: weights.activation,
            at: make.at,
        })
    }
}

impl Weighted for Dense {
    fn weights(options: &mut Options) -> &mut Weights {
        &mut options.weights
    }
}

impl Activated for Dense {}

impl Layer for Dense {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Dense::NAME, self.at, x, || {
            let (inputs, units) = (self.kernel.shape()[0], self.kernel.shape()[1]);
            let fits = x.rank() > 1 && x.shape().last() == Some(&inputs);
            expect(x, self.kernel.dtype(), fits, || format!("[batch, .., {inputs}]"))?;
            // One product of matrices: as a stack of them, the kernel's gradient would be a stack, too.
            let rows: usize = x.shape()[..x.rank() - 1].iter().product();
            let flat = if x.rank() == 2 { x.clone() } else { shaped(x, &[rows, inputs])? };
            let mut y = matmul(flat, &self.kernel)?;
            if let Some(bias) = &self.bias {
                y = add(y, bias)?;
            }
            let y = self.activation.apply(y)?;
            if x.rank() == 2 { Ok(y) } else { shaped(y, &x.shape().clone().with(x.rank() - 1, units)) }
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
