//! Maps with default options.

use super::apply::vectorized;
use crate::loops::Loops;
use taut_autodiff::nest::Nest;
use taut_core::Result;
use taut_memory::Location;

/// Applies `body` to each element (slice along the first axis); returns the results, stacked.
///
/// The body is traced once and computed for many elements at once: as many as take 2 MiB, or as [`Loops`] says. For any number of
/// elements, a map holds one such chunk beside inputs and outputs; so does its gradient.
///
/// ```
/// use taut_control::map_fn;
/// use taut_core::{Tensor, ops::reduce::sum};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let sums = map_fn(|row| sum(row, None, false), x)?;
/// assert_eq!(sums.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn map_fn<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(X) -> Result<Y>,
    elements: X,
) -> Result<Y> {
    Loops::new().map_fn(body, elements)
}

/// As [`map_fn`], for all elements at once: as fast as a body written for all of them, and with the memory of that.
#[track_caller]
pub fn vectorized_map<X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(X) -> Result<Y>,
    elements: X,
) -> Result<Y> {
    let at = Location::caller();
    vectorized(&body, elements, at).map_err(|error| error.in_op("vectorized_map", []).at(at))
}
