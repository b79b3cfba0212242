//! A chain of layers.

use super::Activation;
use super::summary::{Summary, SummaryRow, layer_type_of, parameters};
use crate::{Layer, Mode, NamedVariables};
use std::any::TypeId;
use std::fmt;
use taut_core::{Result, Spec, Tensor, trace, with_source_location};
use taut_memory::Location;

/// A chain of layers: the output of each is the input of the next.
///
/// ```
/// use taut_core::{DType, Spec};
/// use taut_nn::{Layer, layers::{Activation, Dense, Sequential}};
/// let model = Sequential::new()
///     .with_named("hidden", Dense::new(64, 32).activation(Activation::Relu).build()?)
///     .with(Dense::new(32, 10).build()?);
/// let names: Vec<String> = model.named_variables().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.kernel", "hidden.bias", "1.kernel", "1.bias"]);
/// println!("{}", model.summary(&Spec::new(DType::F32, [16, 64]))?);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<NamedLayer>,
}

struct NamedLayer {
    name: String,
    layer_type: String,
    layer: Box<dyn Layer>,
    /// The source location of a layer that does not record one itself.
    at: Option<Location>,
}

impl Sequential {
    /// An empty chain.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Adds a layer. Its name is its position: `0`, `1`, and so on.
    #[must_use]
    #[track_caller]
    pub fn with<L: Layer>(self, layer: L) -> Sequential {
        let name = self.layers.len().to_string();
        self.with_named(&name, layer)
    }

    /// Adds a layer with a name. A name that is in use gets a suffix: `block`, `block_1`, `block_2`.
    #[must_use]
    #[track_caller]
    pub fn with_named<L: Layer>(mut self, name: &str, layer: L) -> Sequential {
        let at = Location::caller();
        let taken = |name: &str| self.layers.iter().any(|layer| layer.name == name);
        let numbered = (1..).map(|i| format!("{name}_{i}"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name));
        self.layers.push(NamedLayer {
            name: name.unwrap_or_default(),
            layer_type: layer_type_of::<L>(),
            layer: Box::new(layer),
            at: (TypeId::of::<L>() == TypeId::of::<Activation>()).then_some(at),
        });
        self
    }

    /// The number of layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The output spec and the number of parameters of each layer, for an input of this spec. Traces the layers; computes nothing.
    #[track_caller]
    pub fn summary(&self, input: &Spec) -> Result<Summary> {
        let (at, mut rows) = (Location::caller(), Vec::with_capacity(self.layers.len()));
        trace(std::slice::from_ref(input), |inputs| {
            let mut x = inputs[0].clone();
            for layer in &self.layers {
                x = layer.call(&x, Mode::Infer)?;
                let (parameters, bytes) = parameters(&layer.layer.named_variables());
                rows.push(SummaryRow {
                    name: layer.name.clone(),
                    layer_type: layer.layer_type.clone(),
                    output: x.spec().clone(),
                    parameters,
                    bytes,
                });
            }
            Ok(vec![x])
        })
        .map_err(|error| error.at(at))?;
        Ok(Summary::new(rows, &self.named_variables()))
    }
}

impl NamedLayer {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        match self.at {
            None => self.layer.call(x, mode),
            Some(at) => {
                with_source_location(None, at, || self.layer.call(x, mode)).map_err(|error| error.at(at))
            }
        }
    }
}

impl Layer for Sequential {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.call(&x, mode))
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.layers.iter().for_each(|layer| names.add_layer(&layer.name, &layer.layer));
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.layers.iter().map(|layer| (&layer.name, &layer.layer_type))).finish()
    }
}
