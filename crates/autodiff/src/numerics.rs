//! Finding the op that made the first NaN.

use taut_core::set_checking_numerics;

/// Checks the results of every op on this thread for NaN and infinity from now on, in the forward and in the backward
/// pass alike. The first op that makes one is refused, with its name and the line that called it (or, backward, the line
/// whose gradient it is).
///
/// ```
/// use taut_autodiff::{disable_check_numerics, enable_check_numerics};
/// use taut_core::{Tensor, ops::unary::log};
/// enable_check_numerics();
/// let error = log(Tensor::scalar(-1.0f32)?).unwrap_err();
/// disable_check_numerics();
/// assert_eq!(error.op(), Some("log"));
/// # Ok::<(), taut_core::Error>(())
/// ```
pub fn enable_check_numerics() {
    set_checking_numerics(true);
}

/// Checks no longer.
pub fn disable_check_numerics() {
    set_checking_numerics(false);
}
