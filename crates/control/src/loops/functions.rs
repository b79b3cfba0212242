//! Loops with default options.

use super::options::Loops;
use std::ops::Range;
use taut_autodiff::nest::Nest;
use taut_core::{Result, Tensor};

/// Calls `body` on the states again and again, as long as `condition` holds; returns the last states.
///
/// Both are traced when it is called. For any number of steps, the loop needs the memory of its states and of one body, and
/// states are updated in place. Tensors that `body` captures do not change. The gradient saves of each step only what the
/// gradient of the body needs; see [`Loops`] for one that saves less.
///
/// ```
/// use taut_control::while_loop;
/// use taut_core::{Tensor, ops::binary::less};
/// let start = (Tensor::scalar(0i64)?, Tensor::scalar(1.0f32)?);
/// let (_, x) = while_loop(|(i, _)| less(i, 10i64), |(i, x)| Ok(((i + 1i64)?, (x * 2.0)?)), start)?;
/// assert_eq!(x.item::<f32>()?, 1024.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn while_loop<S: Nest<Owned = S>>(
    condition: impl Fn(&S) -> Result<Tensor>,
    body: impl Fn(S) -> Result<S>,
    states: S,
) -> Result<S> {
    Loops::new().while_loop(condition, body, states)
}

/// Calls `body` with each number of the range (an int64) and the states; returns the last states.
///
/// As [`while_loop`], with a known number of steps.
///
/// ```
/// use taut_control::fori_loop;
/// use taut_core::Tensor;
/// let sum = fori_loop(0..5, |i, sum| sum + i, Tensor::scalar(0i64)?)?;
/// assert_eq!(sum.item::<i64>()?, 10);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn fori_loop<S: Nest<Owned = S>>(
    range: Range<i64>,
    body: impl Fn(Tensor, S) -> Result<S>,
    states: S,
) -> Result<S> {
    Loops::new().fori_loop(range, body, states)
}

/// Visits the elements (slices along the first axis) in order, carrying a state; returns the last state, and the results of
/// `body` for each element, stacked.
///
/// ```
/// use taut_control::scan;
/// use taut_core::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let step = |sum: Tensor, x: Tensor| {
///     let sum = (sum + x)?;
///     Ok((sum.clone(), sum))
/// };
/// let (total, sums) = scan(step, Tensor::scalar(0.0f32)?, x)?;
/// assert_eq!((total.item::<f32>()?, sums.to_vec::<f32>()?), (6.0, vec![1.0, 3.0, 6.0]));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn scan<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(S, X) -> Result<(S, Y)>,
    state: S,
    elements: X,
) -> Result<(S, Y)> {
    Loops::new().scan(body, state, elements)
}

/// Visits the elements (slices along the first axis) from the first to the last, carrying a state; returns the last one.
#[track_caller]
pub fn foldl<S: Nest<Owned = S>, X: Nest<Owned = X>>(
    body: impl Fn(S, X) -> Result<S>,
    elements: X,
    state: S,
) -> Result<S> {
    Loops::new().foldl(body, elements, state)
}

/// Visits the elements (slices along the first axis) from the last to the first, carrying a state; returns the last one.
#[track_caller]
pub fn foldr<S: Nest<Owned = S>, X: Nest<Owned = X>>(
    body: impl Fn(S, X) -> Result<S>,
    elements: X,
    state: S,
) -> Result<S> {
    Loops::new().foldr(body, elements, state)
}
