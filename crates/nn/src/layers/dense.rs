//! Fully connected layers.

use super::Activation;
use super::builder::{
    Build, HasActivation, HasWeights, LayerBuilder, VariableFactory, WeightOptions, check_input, in_layer,
    require_nonzero, reshape_to,
};
use crate::{Layer, Mode, NamedVariables};
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

/// The options of a [`Dense`].
#[derive(Clone, Debug)]
pub struct DenseOptions {
    inputs: usize,
    units: usize,
    weights: WeightOptions,
}

impl Dense {
    /// A layer for inputs of `inputs` features, with `units` units.
    #[track_caller]
    pub fn new(inputs: usize, units: usize) -> LayerBuilder<Dense> {
        LayerBuilder::new(
            DenseOptions { inputs, units, weights: WeightOptions::default() },
            Location::caller(),
        )
    }
}

impl Build for Dense {
    const NAME: &'static str = "Dense";
    type Options = DenseOptions;

    fn build(options: &DenseOptions, factory: &VariableFactory) -> Result<Dense> {
        let DenseOptions { inputs, units, weights } = options;
        require_nonzero(&[("inputs", *inputs), ("units", *units)])?;
        Ok(Dense {
            kernel: factory.variable("kernel", [*inputs, *units], weights.kernel_initializer)?,
            bias: factory.bias(*units, weights)?,
            activation: weights.activation,
            at: factory.at,
        })
    }
}

impl HasWeights for Dense {
    fn weights(options: &mut DenseOptions) -> &mut WeightOptions {
        &mut options.weights
    }
}

impl HasActivation for Dense {}

impl Layer for Dense {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Dense::NAME, self.at, x, || {
            let (inputs, units) = (self.kernel.shape()[0], self.kernel.shape()[1]);
            let fits = x.rank() > 1 && x.shape().last() == Some(&inputs);
            check_input(x, self.kernel.dtype(), fits, || format!("[batch, .., {inputs}]"))?;
            // One matrix product, not a batched one: the kernel's gradient would be batched, too, before it is summed.
            let rows: usize = x.shape()[..x.rank() - 1].iter().product();
            let flat = if x.rank() == 2 { x.clone() } else { reshape_to(x, &[rows, inputs])? };
            let mut y = matmul(flat, &self.kernel)?;
            if let Some(bias) = &self.bias {
                y = add(y, bias)?;
            }
            let y = self.activation.apply(y)?;
            if x.rank() == 2 { Ok(y) } else { reshape_to(y, &x.shape().clone().with(x.rank() - 1, units)) }
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
