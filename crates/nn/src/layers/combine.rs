//! Layers that combine other layers.

use super::builder::{LayerBuilder, in_layer};
use super::recurrent::Recurrent;
use crate::{Layer, Mode, NamedVariables};
use std::fmt;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::shape::{concat, reverse};
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// How the results of both directions are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeMode {
    /// Concatenation along the last axis.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Ave,
}

/// A recurrent layer that runs in both directions.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, layers::{Bidirectional, GRU, MergeMode}};
/// let layer = Bidirectional::new(GRU::new(8, 16), MergeMode::Concat)?;
/// assert_eq!(layer.call(&ones([2, 5, 8], DType::F32)?, Mode::Infer)?.shape()[..], [2, 32]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Bidirectional<L> {
    forward: L,
    backward: L,
    merge: MergeMode,
    at: Location,
}

impl<L: Recurrent> Bidirectional<L> {
    /// Two layers with these options; the second runs in the opposite direction.
    #[track_caller]
    pub fn new(layer: LayerBuilder<L>, merge: MergeMode) -> Result<Bidirectional<L>> {
        let backwards = !layer.options.go_backwards;
        let (forward, backward) = (layer.clone().build()?, layer.go_backwards(backwards).build()?);
        Ok(Bidirectional { forward, backward, merge, at: Location::caller() })
    }
}

impl<L: Recurrent> Layer for Bidirectional<L> {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let (forward, backward) = (self.forward.call(x, mode)?, self.backward.call(x, mode)?);
        in_layer("Bidirectional", self.at, x, || {
            let backward =
                if self.backward.returns_sequences() { reverse(backward, &[1])? } else { backward };
            match self.merge {
                MergeMode::Concat => concat(&[forward, backward], -1),
                MergeMode::Sum => add(forward, backward),
                MergeMode::Mul => mul(forward, backward),
                MergeMode::Ave => mul(add(forward, backward)?, 0.5),
            }
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add_layer("forward_layer", &self.forward);
        names.add_layer("backward_layer", &self.backward);
    }
}

/// A residual connection: `x + layer(x)`.
pub struct Residual {
    layer: Box<dyn Layer>,
    projection: Option<Box<dyn Layer>>,
    at: Location,
}

impl Residual {
    /// A residual connection around this layer, whose output has the input's shape.
    #[track_caller]
    pub fn new(layer: impl Layer) -> Residual {
        Residual { layer: Box::new(layer), projection: None, at: Location::caller() }
    }

    /// Adds the output of a projection instead of the input: `projection(x) + layer(x)`.
    #[must_use]
    pub fn projection(self, projection: impl Layer) -> Residual {
        Residual { projection: Some(Box::new(projection)), ..self }
    }
}

impl Layer for Residual {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let shortcut = match &self.projection {
            None => x.clone(),
            Some(projection) => projection.call(x, mode)?,
        };
        let y = self.layer.call(x, mode)?;
        in_layer("Residual", self.at, x, || {
            if shortcut.spec() == y.spec() {
                return add(shortcut, y);
            }
            let message = format!(
                "the outputs of both branches must have the same shape, got {} and {}",
                y.spec(),
                shortcut.spec()
            );
            Err(taut_core::Error::shape(message)
                .help("set a projection that maps the input to the output's shape"))
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add_layer("layer", &self.layer);
        self.projection.iter().for_each(|projection| names.add_layer("projection", projection));
    }
}

impl fmt::Debug for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Residual{}", if self.projection.is_some() { " with a projection" } else { "" })
    }
}
