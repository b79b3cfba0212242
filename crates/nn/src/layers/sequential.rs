//! One layer after the other.

use super::Activation;
use super::summary::{Row, Summary, kind_of, parameters};
use crate::{Layer, Mode, Names};
use std::any::TypeId;
use std::fmt;
use taut_core::{Result, Spec, Tensor, trace, with_source_location};
use taut_memory::Location;

/// Layers in a row: each takes what the one before it gives.
///
/// ```
/// use taut_core::{DType, Spec};
/// use taut_nn::{Layer, layers::{Activation, Dense, Sequential}};
/// let model = Sequential::new()
///     .with_named("hidden", Dense::new(64, 32).activation(Activation::Relu).build()?)
///     .with(Dense::new(32, 10).build()?);
/// let names: Vec<String> = model.named().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.kernel", "hidden.bias", "1.kernel", "1.bias"]);
/// println!("{}", model.summary(&Spec::new(DType::F32, [16, 64]))?);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    parts: Vec<Part>,
}

struct Part {
    name: String,
    kind: String,
    layer: Box<dyn Layer>,
    /// For what has no line of its own.
    at: Option<Location>,
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Adds a layer. Its name is its position: `0`, `1`, and so on.
    #[must_use]
    #[track_caller]
    pub fn with<L: Layer>(self, layer: L) -> Sequential {
        let name = self.parts.len().to_string();
        self.with_named(&name, layer)
    }

    /// Adds a layer with a name. A name that is taken gets a number: `block`, `block_1`, `block_2`.
    #[must_use]
    #[track_caller]
    pub fn with_named<L: Layer>(mut self, name: &str, layer: L) -> Sequential {
        let at = Location::caller();
        let taken = |name: &str| self.parts.iter().any(|part| part.name == name);
        let numbered = (1..).map(|i| format!("{name}_{i}"));
        let name = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name));
        self.parts.push(Part {
            name: name.unwrap_or_default(),
            kind: kind_of::<L>(),
            layer: Box::new(layer),
            at: (TypeId::of::<L>() == TypeId::of::<Activation>()).then_some(at),
        });
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// What each layer makes of an input of this type and shape, and how many parameters it has. Nothing is computed.
    #[track_caller]
    pub fn summary(&self, input: &Spec) -> Result<Summary> {
        let (at, mut rows) = (Location::caller(), Vec::with_capacity(self.parts.len()));
        trace(std::slice::from_ref(input), |inputs| {
            let mut x = inputs[0].clone();
            for part in &self.parts {
                x = part.call(&x, Mode::Infer)?;
                let (parameters, bytes) = parameters(&part.layer.named());
                rows.push(Row {
                    name: part.name.clone(),
                    kind: part.kind.clone(),
                    output: x.spec().clone(),
                    parameters,
                    bytes,
                });
            }
            Ok(vec![x])
        })
        .map_err(|error| error.at(at))?;
        Ok(Summary::new(rows, &self.named()))
    }
}

impl Part {
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
        self.parts.iter().try_fold(x.clone(), |x, part| part.call(&x, mode))
    }

    fn variables(&self, names: &mut Names) {
        self.parts.iter().for_each(|part| names.inside(&part.name, &part.layer));
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|part| (&part.name, &part.kind))).finish()
    }
}
