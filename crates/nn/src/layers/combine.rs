//! Layers made of layers.

use super::builder::{Builder, work};
use super::recurrent::Recurrent;
use crate::{Layer, Mode, Names};
use std::fmt;
use taut_core::ops::binary::{add, mul};
use taut_core::ops::shape::{concat, reverse};
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// What becomes of the results of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// One behind the other, in the last axis.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Ave,
}

/// A recurrent layer in both directions.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, layers::{Bidirectional, GRU, Merge}};
/// let layer = Bidirectional::new(GRU::new(8, 16), Merge::Concat)?;
/// assert_eq!(layer.call(&ones([2, 5, 8], DType::F32)?, Mode::Infer)?.shape()[..], [2, 32]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Bidirectional<L> {
    forward: L,
    backward: L,
    merge: Merge,
    at: Location,
}

impl<L: Recurrent> Bidirectional<L> {
    /// Two such layers, of which the second goes the other way.
    #[track_caller]
    pub fn new(layer: Builder<L>, merge: Merge) -> Result<Bidirectional<L>> {
        let back = !layer.options.go_backwards;
        let (forward, backward) = (layer.clone().build()?, layer.go_backwards(back).build()?);
        Ok(Bidirectional { forward, backward, merge, at: Location::caller() })
    }
}

impl<L: Recurrent> Layer for Bidirectional<L> {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let (forward, backward) = (self.forward.call(x, mode)?, self.backward.call(x, mode)?);
        work("Bidirectional", self.at, x, || {
            let backward =
                if self.backward.returns_sequences() { reverse(backward, &[1])? } else { backward };
            match self.merge {
                Merge::Concat => concat(&[forward, backward], -1),
                Merge::Sum => add(forward, backward),
                Merge::Mul => mul(forward, backward),
                Merge::Ave => mul(add(forward, backward)?, 0.5),
            }
        })
    }

    fn variables(&self, names: &mut Names) {
        names.inside("forward_layer", &self.forward);
        names.inside("backward_layer", &self.backward);
    }
}

/// What a layer makes of the input, and the input itself: `x + layer(x)`.
pub struct Residual {
    layer: Box<dyn Layer>,
    projection: Option<Box<dyn Layer>>,
    at: Location,
}

impl Residual {
    /// Around this layer, whose result has the input's shape.
    #[track_caller]
    pub fn new(layer: impl Layer) -> Residual {
        Residual { layer: Box::new(layer), projection: None, at: Location::caller() }
    }

    /// With another layer in place of the input itself: `projection(x) + layer(x)`.
    #[must_use]
    pub fn projection(self, projection: impl Layer) -> Residual {
        Residual { projection: Some(Box::new(projection)), ..self }
    }
}

impl Layer for Residual {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let beside = match &self.projection {
            None => x.clone(),
            Some(projection) => projection.call(x, mode)?,
        };
        let y = self.layer.call(x, mode)?;
        work("Residual", self.at, x, || {
            if beside.spec() == y.spec() {
                return add(beside, y);
            }
            let message = format!("the layer makes {}, which does not add to {}", y.spec(), beside.spec());
            Err(taut_core::Error::shape(message).help("a projection can change the shape of what is added"))
        })
    }

    fn variables(&self, names: &mut Names) {
        names.inside("layer", &self.layer);
        self.projection.iter().for_each(|projection| names.inside("projection", projection));
    }
}

impl fmt::Debug for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Residual{}", if self.projection.is_some() { " with a projection" } else { "" })
    }
}
