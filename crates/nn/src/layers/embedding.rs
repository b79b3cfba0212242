//! Embedding tables.

use super::builder::{Build, LayerBuilder, VariableFactory, in_layer, require_nonzero};
use crate::initializers::Initializer;
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::nn::embedding_lookup;
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// A table of vectors; ids in the input select rows. An id outside the table is an error.
///
/// The gradient of the table is sparse: it holds only the selected rows.
///
/// ```
/// use taut_core::Tensor;
/// use taut_nn::{Layer, Mode, layers::Embedding};
/// let layer = Embedding::new(1000, 16).build()?;
/// let words = Tensor::new([[3i32, 14, 15], [9, 2, 6]])?;
/// assert_eq!(layer.call(&words, Mode::Infer)?.shape()[..], [2, 3, 16]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Embedding {
    embeddings: Variable,
    at: Location,
}

/// The options of an [`Embedding`].
#[derive(Clone, Debug)]
pub struct EmbeddingOptions {
    rows: usize,
    units: usize,
    initializer: Initializer,
}

impl Embedding {
    /// A table of `rows` rows of `units` elements.
    #[track_caller]
    pub fn new(rows: usize, units: usize) -> LayerBuilder<Embedding> {
        let initializer = Initializer::RandomUniform { low: -0.05, high: 0.05 };
        LayerBuilder::new(EmbeddingOptions { rows, units, initializer }, Location::caller())
    }

    /// The table.
    pub fn embeddings(&self) -> &Variable {
        &self.embeddings
    }
}

impl LayerBuilder<Embedding> {
    /// How the table is initialised. Default: uniform on [-0.05, 0.05).
    pub fn embeddings_initializer(mut self, initializer: Initializer) -> LayerBuilder<Embedding> {
        self.options.initializer = initializer;
        self
    }
}

impl Build for Embedding {
    const NAME: &'static str = "Embedding";
    type Options = EmbeddingOptions;

    fn build(options: &EmbeddingOptions, factory: &VariableFactory) -> Result<Embedding> {
        let &EmbeddingOptions { rows, units, initializer } = options;
        require_nonzero(&[("rows", rows), ("units", units)])?;
        Ok(Embedding {
            embeddings: factory.variable("embeddings", [rows, units], initializer)?,
            at: factory.at,
        })
    }
}

impl Layer for Embedding {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Embedding::NAME, self.at, x, || embedding_lookup(&self.embeddings, x))
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("embeddings", &self.embeddings);
    }
}
