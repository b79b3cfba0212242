//! Layers without variables.

use super::builder::{shaped, work};
use crate::{Layer, Mode};
use std::fmt;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// Every sample as one row: `[batch, ..]` becomes `[batch, features]`.
#[derive(Clone, Debug)]
pub struct Flatten {
    at: Location,
}

impl Flatten {
    /// The layer.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "a default has no line of its own")]
    pub fn new() -> Flatten {
        Flatten { at: Location::caller() }
    }
}

impl Layer for Flatten {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work("Flatten", self.at, x, || match x.shape().split_first() {
            None => Err(Error::shape("a number has no batch")),
            Some((&batch, rest)) => shaped(x, &[batch, rest.iter().product()]),
        })
    }
}

/// Every sample in another shape.
#[derive(Clone, Debug)]
pub struct Reshape {
    shape: Vec<isize>,
    at: Location,
}

impl Reshape {
    /// Samples of this shape; the batch is not part of it. One dimension may be -1: what is left.
    #[track_caller]
    pub fn new(shape: impl Into<Vec<isize>>) -> Reshape {
        Reshape { shape: shape.into(), at: Location::caller() }
    }
}

impl Layer for Reshape {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work("Reshape", self.at, x, || {
            let Some((&batch, sample)) = x.shape().split_first() else {
                return Err(Error::shape("a number has no batch"));
            };
            let refuse = || {
                let message = format!("built for samples that become {:?}, and got {}", self.shape, x.spec());
                Error::shape(message)
            };
            let have: usize = sample.iter().product();
            let mut known = self.shape.iter().filter(|&&dim| dim != -1).map(|&dim| usize::try_from(dim).ok());
            let known =
                known.try_fold(1usize, |product, dim| product.checked_mul(dim?)).ok_or_else(refuse)?;
            let rest = match self.shape.iter().filter(|&&dim| dim == -1).count() {
                0 => (known == have).then_some(1),
                1 => have.checked_rem(known).filter(|&left| left == 0).map(|_| have / known),
                _ => None,
            };
            let rest = rest.ok_or_else(refuse)?;
            let sizes = self.shape.iter().map(|&dim| if dim == -1 { rest } else { dim as usize });
            shaped(x, &[batch].into_iter().chain(sizes).collect::<Vec<_>>())
        })
    }
}

/// A function as a layer. It has no variables: a layer that has some is a struct of its own.
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
