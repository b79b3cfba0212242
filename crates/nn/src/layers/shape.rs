//! Layers that change shapes, and functions as layers.

use super::builder::{in_layer, reshape_to};
use crate::{Layer, Mode};
use std::fmt;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// Flattens every sample: `[batch, ..]` becomes `[batch, features]`.
#[derive(Clone, Debug)]
pub struct Flatten {
    at: Location,
}

impl Flatten {
    /// The layer.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "`new` records the caller's source location")]
    pub fn new() -> Flatten {
        Flatten { at: Location::caller() }
    }
}

impl Layer for Flatten {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer("Flatten", self.at, x, || match x.shape().split_first() {
            None => Err(Error::shape("expected rank >= 1, got a scalar")),
            Some((&batch, rest)) => reshape_to(x, &[batch, rest.iter().product()]),
        })
    }
}

/// Reshapes every sample.
#[derive(Clone, Debug)]
pub struct Reshape {
    shape: Vec<isize>,
    at: Location,
}

impl Reshape {
    /// Reshapes samples to `shape`, which leaves out the batch axis. One dimension may be -1: it is inferred.
    #[track_caller]
    pub fn new(shape: impl Into<Vec<isize>>) -> Reshape {
        Reshape { shape: shape.into(), at: Location::caller() }
    }
}

impl Layer for Reshape {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer("Reshape", self.at, x, || {
            let Some((&batch, sample)) = x.shape().split_first() else {
                return Err(Error::shape("expected rank >= 1, got a scalar"));
            };
            let refuse = || {
                let message =
                    format!("samples must have the elements of shape {:?}, got {}", self.shape, x.spec());
                Error::shape(message)
            };
            let elements: usize = sample.iter().product();
            let mut known = self.shape.iter().filter(|&&dim| dim != -1).map(|&dim| usize::try_from(dim).ok());
            let known =
                known.try_fold(1usize, |product, dim| product.checked_mul(dim?)).ok_or_else(refuse)?;
            let rest = match self.shape.iter().filter(|&&dim| dim == -1).count() {
                0 => (known == elements).then_some(1),
                1 => elements.checked_rem(known).filter(|&left| left == 0).map(|_| elements / known),
                _ => None,
            };
            let rest = rest.ok_or_else(refuse)?;
            let sizes = self.shape.iter().map(|&dim| if dim == -1 { rest } else { dim as usize });
            reshape_to(x, &[batch].into_iter().chain(sizes).collect::<Vec<_>>())
        })
    }
}

/// A function as a layer without variables. For a layer with variables, implement [`Layer`].
///
/// ```
/// use taut_core::{Tensor, ops::binary::mul};
/// use taut_nn::{Layer, Mode, layers::Lambda};
/// let layer = Lambda::new(|x| mul(x, 2.0));
/// assert_eq!(layer.call(&Tensor::new([3.0f32])?, Mode::Infer)?.to_vec::<f32>()?, [6.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub struct Lambda {
    function: Box<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>,
}

impl Lambda {
    /// A layer that calls this function.
    pub fn new(function: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Lambda {
        Lambda { function: Box::new(function) }
    }
}

impl Layer for Lambda {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        (self.function)(x)
    }
}

impl fmt::Debug for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lambda")
    }
}
