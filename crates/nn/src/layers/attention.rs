//! Multi-head attention.

use super::builder::{
    Build, HasWeights, LayerBuilder, VariableFactory, WeightOptions, check_input, in_layer, require_nonzero,
    reshape_to,
};
use super::dropout::check_rate;
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::{attention, attention_with_dropout};
use taut_core::ops::random::next_key;
use taut_core::ops::shape::{expand_dims, transpose};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// The options of a [`MultiHeadAttention`].
#[derive(Clone, Debug)]
pub struct AttentionOptions {
    inputs: usize,
    memory: usize,
    heads: usize,
    key_dim: usize,
    value_dim: usize,
    outputs: usize,
    causal: bool,
    dropout: f64,
    weights: WeightOptions,
}

/// Multi-head attention.
///
/// As a layer it is self-attention; [`attend`](MultiHeadAttention::attend) takes queries, keys and values separately. The
/// kernels of queries, keys and values are `[inputs, heads, size]`, that of the output `[heads, size, outputs]`. A query whose keys
/// are all masked gets zeros from every head.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, layers::MultiHeadAttention};
/// let layer = MultiHeadAttention::new(32, 4, 8).causal(true).build()?;
/// assert_eq!(layer.call(&ones([2, 10, 32], DType::F32)?, Mode::Infer)?.shape()[..], [2, 10, 32]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct MultiHeadAttention {
    query: Projection,
    key: Projection,
    value: Projection,
    output: Projection,
    causal: bool,
    dropout: f64,
    at: Location,
}

/// A matrix product with a kernel of three axes.
#[derive(Debug)]
struct Projection {
    kernel: Variable,
    bias: Option<Variable>,
}

impl MultiHeadAttention {
    /// A layer for sequences of `inputs` features, with `heads` heads whose queries and keys have size `key_dim`.
    #[track_caller]
    pub fn new(inputs: usize, heads: usize, key_dim: usize) -> LayerBuilder<MultiHeadAttention> {
        let options = AttentionOptions {
            inputs,
            memory: inputs,
            heads,
            key_dim,
            value_dim: key_dim,
            outputs: inputs,
            causal: false,
            dropout: 0.0,
            weights: WeightOptions::default(),
        };
        LayerBuilder::new(options, Location::caller())
    }

    /// Attention of `query` over `key` and `value`, `[batch, length, features]` each. The mask is true where a query attends to a key:
    /// `[batch, queries, keys]`, `[queries, keys]`, or one per head, `[batch, heads, queries, keys]`. With `causal`, query `i` attends to keys
    /// `0..=i`.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        mode: Mode,
    ) -> Result<Tensor> {
        in_layer(MultiHeadAttention::NAME, self.at, query, || {
            for (x, projection) in [(query, &self.query), (key, &self.key), (value, &self.value)] {
                let features = projection.kernel.shape()[0];
                let fits = x.rank() == 3 && x.shape()[2] == features;
                check_input(x, self.query.kernel.dtype(), fits, || format!("[batch, length, {features}]"))?;
            }
            let mask = match mask {
                Some(mask) if mask.dtype() != DType::Bool => {
                    return Err(Error::dtype(format!("mask must be bool, got {}", mask.spec())));
                }
                Some(mask) if mask.rank() == 3 => Some(expand_dims(mask, 1)?),
                mask => mask.cloned(),
            };
            let q = self.query.split_heads(query)?;
            let (k, v) = (self.key.split_heads(key)?, self.value.split_heads(value)?);
            let attended = if mode.is_training() && self.dropout > 0.0 {
                attention_with_dropout(q, k, v, self.dropout, next_key()?, mask.as_ref(), causal, None)?
            } else {
                attention(q, k, v, mask.as_ref(), causal, None)?
            };
            self.output.merge_heads(&attended)
        })
    }
}

impl Projection {
    fn new(
        factory: &VariableFactory,
        kernel: [usize; 3],
        bias: &[usize],
        weights: &WeightOptions,
    ) -> Result<Projection> {
        let kernel = factory.variable("kernel", kernel, weights.kernel_initializer)?;
        let bias =
            weights.bias.then(|| factory.variable("bias", bias, weights.bias_initializer)).transpose()?;
        Ok(Projection { kernel, bias })
    }

    /// `[batch, length, features]` as `[batch, heads, length, size]`.
    fn split_heads(&self, x: &Tensor) -> Result<Tensor> {
        let (&[features, heads, size], &[batch, length, _]) = (&dims(self.kernel.shape()), &dims(x.shape()));
        let kernel = reshape_to(&self.kernel, &[features, heads * size])?;
        let mut y = matmul(reshape_to(x, &[batch * length, features])?, kernel)?;
        if let Some(bias) = &self.bias {
            y = add(y, reshape_to(bias, &[heads * size])?)?;
        }
        transpose(reshape_to(y, &[batch, length, heads, size])?, &[0, 2, 1, 3][..])
    }

    /// `[batch, heads, length, size]` as `[batch, length, outputs]`.
    fn merge_heads(&self, x: &Tensor) -> Result<Tensor> {
        let &[heads, size, outputs] = &dims(self.kernel.shape());
        let (batch, length) = (x.shape()[0], x.shape()[2]);
        let flat = reshape_to(transpose(x, &[0, 2, 1, 3][..])?, &[batch * length, heads * size])?;
        let mut y = matmul(flat, reshape_to(&self.kernel, &[heads * size, outputs])?)?;
        if let Some(bias) = &self.bias {
            y = add(y, bias)?;
        }
        reshape_to(y, &[batch, length, outputs])
    }
}

/// The dimensions of a shape of rank 3.
fn dims(shape: &[usize]) -> [usize; 3] {
    [shape[0], shape[1], shape[2]]
}

impl LayerBuilder<MultiHeadAttention> {
    /// The size of a head's values. Default: `key_dim`.
    pub fn value_dim(mut self, size: usize) -> LayerBuilder<MultiHeadAttention> {
        self.options.value_dim = size;
        self
    }

    /// The number of features of keys and values. Default: that of queries.
    pub fn memory(mut self, features: usize) -> LayerBuilder<MultiHeadAttention> {
        self.options.memory = features;
        self
    }

    /// The number of features of the output. Default: that of queries.
    pub fn outputs(mut self, features: usize) -> LayerBuilder<MultiHeadAttention> {
        self.options.outputs = features;
        self
    }

    /// Whether self-attention is causal: a position attends only to itself and earlier ones. Default: false.
    pub fn causal(mut self, on: bool) -> LayerBuilder<MultiHeadAttention> {
        self.options.causal = on;
        self
    }

    /// The dropout rate of the attention weights while training. Default: 0.
    pub fn dropout(mut self, rate: f64) -> LayerBuilder<MultiHeadAttention> {
        self.options.dropout = rate;
        self
    }
}

impl Build for MultiHeadAttention {
    const NAME: &'static str = "MultiHeadAttention";
    type Options = AttentionOptions;

    fn build(options: &AttentionOptions, factory: &VariableFactory) -> Result<MultiHeadAttention> {
        let AttentionOptions { inputs, memory, heads, key_dim, value_dim, outputs, .. } = *options;
        let sizes = [("inputs", inputs), ("memory", memory), ("heads", heads), ("key_dim", key_dim)];
        require_nonzero(&sizes)?;
        require_nonzero(&[("value_dim", value_dim), ("outputs", outputs)])?;
        check_rate(options.dropout)?;
        let weights = &options.weights;
        let into_heads =
            |features, size| Projection::new(factory, [features, heads, size], &[heads, size], weights);
        Ok(MultiHeadAttention {
            query: into_heads(inputs, key_dim)?,
            key: into_heads(memory, key_dim)?,
            value: into_heads(memory, value_dim)?,
            output: Projection::new(factory, [heads, value_dim, outputs], &[outputs], weights)?,
            causal: options.causal,
            dropout: options.dropout,
            at: factory.at,
        })
    }
}

impl HasWeights for MultiHeadAttention {
    fn weights(options: &mut AttentionOptions) -> &mut WeightOptions {
        &mut options.weights
    }
}

impl Layer for MultiHeadAttention {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.attend(x, x, x, None, self.causal, mode)
    }

    fn variables(&self, names: &mut NamedVariables) {
        let parts = [&self.query, &self.key, &self.value, &self.output];
        for (name, part) in ["query", "key", "value", "attention_output"].into_iter().zip(parts) {
            names.add(&format!("{name}.kernel"), &part.kernel);
            part.bias.iter().for_each(|bias| names.add(&format!("{name}.bias"), bias));
        }
    }
}
