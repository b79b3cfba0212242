//! A vector for each of many things.

use super::builder::{Build, Builder, Make, some, work};
use crate::initializers::Initializer;
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::nn::embedding_lookup;
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// A table of vectors, of which the ids in the input pick rows. An id that is no row is an error.
///
/// The table's gradient holds the rows that were picked and no others.
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

/// What can be said about an [`Embedding`].
#[derive(Clone, Debug)]
pub struct Options {
    rows: usize,
    units: usize,
    initializer: Initializer,
}

impl Embedding {
    /// A table of this many rows, each of this many elements.
    #[track_caller]
    pub fn new(rows: usize, units: usize) -> Builder<Embedding> {
        let initializer = Initializer::RandomUniform { low: -0.05, high: 0.05 };
        Builder::new(Options { rows, units, initializer }, Location::caller())
    }

    /// The table.
    pub fn embeddings(&self) -> &Variable {
        &self.embeddings
    }
}

impl Builder<Embedding> {
    /// What the table is to begin with: uniform from -0.05 to 0.05, unless it is said here.
    pub fn embeddings_initializer(mut self, initializer: Initializer) -> Builder<Embedding> {
        self.options.initializer = initializer;
        self
    }
}

impl Build for Embedding {
    const NAME: &'static str = "Embedding";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<Embedding> {
        let &Options { rows, units, initializer } = options;
        some(&[("rows", rows), ("units", units)])?;
        Ok(Embedding { embeddings: make.variable("embeddings", [rows, units], initializer)?, at: make.at })
    }
}

impl Layer for Embedding {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Embedding::NAME, self.at, x, || embedding_lookup(&self.embeddings, x))
    }

    fn variables(&self, names: &mut Names) {
        names.add("embeddings", &self.embeddings);
    }
}
