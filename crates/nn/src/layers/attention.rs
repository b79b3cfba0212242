//! Attention.

use super::builder::{Build, Builder, Make, Weighted, Weights, expect, shaped, some, work};
use super::dropout::{check_rate, dropped};
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::binary::{add, logical_and, mul, where_};
use taut_core::ops::contract::{matmul, matmul_with};
use taut_core::ops::creation::{ones, tril};
use taut_core::ops::nn::{attention, softmax};
use taut_core::ops::shape::{expand_dims, transpose};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// What can be said about a [`MultiHeadAttention`].
#[derive(Clone, Debug)]
pub struct Options {
    inputs: usize,
    memory: usize,
    heads: usize,
    key_dim: usize,
    value_dim: usize,
    outputs: usize,
    causal: bool,
    dropout: f64,
    weights: Weights,
}

/// Every position of a sequence looks at the positions of another one, or of its own, in several ways at once.
///
/// As a layer, a sequence looks at itself; [`attend`](MultiHeadAttention::attend) takes queries, keys and values apart. The
/// kernels of queries, keys and values are `[inputs, heads, size]`, that of the result `[heads, size, outputs]`. A position that sees
/// nothing gets zeros from every head.
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

/// A product with a kernel of three axes.
#[derive(Debug)]
struct Projection {
    kernel: Variable,
    bias: Option<Variable>,
}

impl MultiHeadAttention {
    /// A layer for sequences of this many features, with this many heads whose queries and keys have this size.
    #[track_caller]
    pub fn new(inputs: usize, heads: usize, key_dim: usize) -> Builder<MultiHeadAttention> {
        let options = Options {
            inputs,
            memory: inputs,
            heads,
            key_dim,
            value_dim: key_dim,
            outputs: inputs,
            causal: false,
            dropout: 0.0,
            weights: Weights::default(),
        };
        Builder::new(options, Location::caller())
    }

    /// What `query` finds in `value` by `key`, `[batch, length, features]` each. A mask says which keys a query sees (true: it
    /// does): `[batch, queries, keys]`, `[queries, keys]`, or one per head, `[batch, heads, queries, keys]`. With `causal`, query `i` sees keys up to
    /// `i` only.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
        mode: Mode,
    ) -> Result<Tensor> {
        work(MultiHeadAttention::NAME, self.at, query, || {
            for (x, projection) in [(query, &self.query), (key, &self.key), (value, &self.value)] {
                let features = projection.kernel.shape()[0];
                let fits = x.rank() == 3 && x.shape()[2] == features;
                expect(x, self.query.kernel.dtype(), fits, || format!("[batch, length, {features}]"))?;
            }
            let mask = match mask {
                Some(mask) if mask.dtype() != DType::Bool => {
                    return Err(Error::dtype(format!("a mask {} is not of booleans", mask.spec())));
                }
                Some(mask) if mask.rank() == 3 => Some(expand_dims(mask, 1)?),
                mask => mask.cloned(),
            };
            let [q, k, v] = [self.query.heads(query)?, self.key.heads(key)?, self.value.heads(value)?];
            let found = if mode.is_training() && self.dropout > 0.0 {
                self.dropping(q, k, v, mask, causal, mode)?
            } else {
                attention(q, k, v, mask.as_ref(), causal, None)?
            };
            self.output.merged(&found)
        })
    }

    /// Attention of which some of the weights are dropped.
    fn dropping(
        &self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Option<Tensor>,
        causal: bool,
        mode: Mode,
    ) -> Result<Tensor> {
        let (n, m, depth) = (q.shape()[2], k.shape()[2], q.shape()[3]);
        let scores = matmul_with(mul(q, 1.0 / (depth as f64).sqrt())?, k, false, true)?;
        let triangle = if causal { Some(tril(ones([n, m], DType::Bool)?, 0)?) } else { None };
        let seen = match (mask, triangle) {
            (Some(mask), Some(triangle)) => Some(logical_and(mask, triangle)?),
            (mask, triangle) => mask.or(triangle),
        };
        let weights = match seen {
            None => softmax(scores, -1)?,
            // Where nothing is seen, the weights are zero, and not those of numbers that are all equally small.
            Some(seen) => where_(&seen, softmax(where_(&seen, scores, -1e9)?, -1)?, 0.0)?,
        };
        matmul(dropped(&weights, self.dropout, mode)?, v)
    }
}

impl Projection {
    fn new(make: &Make, kernel: [usize; 3], bias: &[usize], weights: &Weights) -> Result<Projection> {
        let kernel = make.variable("kernel", kernel, weights.kernel_initializer)?;
        let bias = weights.bias.then(|| make.variable("bias", bias, weights.bias_initializer)).transpose()?;
        Ok(Projection { kernel, bias })
    }

    /// `[batch, length, features]` as `[batch, heads, length, size]`.
    fn heads(&self, x: &Tensor) -> Result<Tensor> {
        let (&[features, heads, size], &[batch, length, _]) = (&dims(self.kernel.shape()), &dims(x.shape()));
        let kernel = shaped(&self.kernel, &[features, heads * size])?;
        let mut y = matmul(shaped(x, &[batch * length, features])?, kernel)?;
        if let Some(bias) = &self.bias {
            y = add(y, shaped(bias, &[heads * size])?)?;
        }
        transpose(shaped(y, &[batch, length, heads, size])?, &[0, 2, 1, 3][..])
    }

    /// `[batch, heads, length, size]` as `[batch, length, outputs]`.
    fn merged(&self, x: &Tensor) -> Result<Tensor> {
        let &[heads, size, outputs] = &dims(self.kernel.shape());
        let (batch, length) = (x.shape()[0], x.shape()[2]);
        let flat = shaped(transpose(x, &[0, 2, 1, 3][..])?, &[batch * length, heads * size])?;
        let mut y = matmul(flat, shaped(&self.kernel, &[heads * size, outputs])?)?;
        if let Some(bias) = &self.bias {
            y = add(y, bias)?;
        }
        shaped(y, &[batch, length, outputs])
    }
}

/// The dimensions of what has three.
fn dims(shape: &[usize]) -> [usize; 3] {
    [shape[0], shape[1], shape[2]]
}

impl Builder<MultiHeadAttention> {
    /// The size of a head's values. That of its keys, unless it is said here.
    pub fn value_dim(mut self, size: usize) -> Builder<MultiHeadAttention> {
        self.options.value_dim = size;
        self
    }

    /// The features of keys and values. As many as queries have, unless it is said here.
    pub fn memory(mut self, features: usize) -> Builder<MultiHeadAttention> {
        self.options.memory = features;
        self
    }

    /// The features of the result. As many as queries have, unless it is said here.
    pub fn outputs(mut self, features: usize) -> Builder<MultiHeadAttention> {
        self.options.outputs = features;
        self
    }

    /// Whether a sequence that looks at itself looks back only. It looks everywhere, unless it is said here.
    pub fn causal(mut self, on: bool) -> Builder<MultiHeadAttention> {
        self.options.causal = on;
        self
    }

    /// The share of attention that is dropped while training. None, unless it is said here.
    pub fn dropout(mut self, rate: f64) -> Builder<MultiHeadAttention> {
        self.options.dropout = rate;
        self
    }
}

impl Build for MultiHeadAttention {
    const NAME: &'static str = "MultiHeadAttention";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<MultiHeadAttention> {
        let Options { inputs, memory, heads, key_dim, value_dim, outputs, .. } = *options;
        let sizes = [("inputs", inputs), ("memory", memory), ("heads", heads), ("key_dim", key_dim)];
        some(&sizes)?;
        some(&[("value_dim", value_dim), ("outputs", outputs)])?;
        check_rate(options.dropout)?;
        let weights = &options.weights;
        let into_heads =
            |features, size| Projection::new(make, [features, heads, size], &[heads, size], weights);
        Ok(MultiHeadAttention {
            query: into_heads(inputs, key_dim)?,
            key: into_heads(memory, key_dim)?,
            value: into_heads(memory, value_dim)?,
            output: Projection::new(make, [heads, value_dim, outputs], &[outputs], weights)?,
            causal: options.causal,
            dropout: options.dropout,
            at: make.at,
        })
    }
}

impl Weighted for MultiHeadAttention {
    fn weights(options: &mut Options) -> &mut Weights {
        &mut options.weights
    }
}

impl Layer for MultiHeadAttention {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.attend(x, x, x, None, self.causal, mode)
    }

    fn variables(&self, names: &mut Names) {
        let parts = [&self.query, &self.key, &self.value, &self.output];
        for (name, part) in ["query", "key", "value", "attention_output"].into_iter().zip(parts) {
            names.add(&format!("{name}.kernel"), &part.kernel);
            part.bias.iter().for_each(|bias| names.add(&format!("{name}.bias"), bias));
        }
    }
}
