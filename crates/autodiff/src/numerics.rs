//! Checking every op for NaN and infinity.

use taut_core::set_checking_numerics;

/// Checks the results of every op on this thread for NaN and infinity from now on, in the forward and in the backward
/// pass. The first op whose result has one fails, with its name and the line that called it (in the backward pass, the line
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

/// Stops checking.
pub fn disable_check_numerics() {
    set_checking_numerics(false);
}
