//! Dense linear algebra on batches of matrices, through `faer`: `f32`, `f64` and `complex128`; general eigenvalues and logarithms
//! of `complex128` alone.
//!
//! Inputs are views `[..., rows, columns]` with any strides; the leading dimensions are the batch, and every output
//! has the same batch. Each function has a `*_scratch` companion that returns the bytes of workspace it needs;
//! the workspace does not grow with the batch. Beyond it, `faer` keeps one packing buffer of fixed size per thread
//! for its matrix products.
//!
//! Everything runs on the calling thread, entry after entry, so results are reproducible to the bit. An entry
//! with NaN or infinity gives NaN or an error, never a panic.

mod eig;
mod factor;
mod least_squares;
mod logarithm;
mod solve;
#[cfg(test)]
mod tests;
mod work;

pub use eig::{eig, eig_scratch};
pub use factor::{SvdVectors, eigh, eigh_scratch, qr, qr_scratch, svd, svd_scratch};
pub use least_squares::{lstsq, lstsq_scratch};
pub use logarithm::{logm, logm_scratch};
pub use solve::{
    cholesky, cholesky_scratch, det, det_scratch, inv, inv_scratch, slogdet, slogdet_scratch, solve,
    solve_scratch, triangular_solve, triangular_solve_scratch,
};

use std::fmt;

/// Why a factorisation failed, and for which entry of the batch (row-major over the leading dimensions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinalgError {
    /// The matrix has no inverse to working precision.
    Singular {
        /// The entry of the batch.
        batch: usize,
    },
    /// The matrix is not positive definite.
    NotPositiveDefinite {
        /// The entry of the batch.
        batch: usize,
    },
    /// The iteration did not converge, or the matrix holds NaN or infinity.
    NoConvergence {
        /// The entry of the batch.
        batch: usize,
    },
}

impl fmt::Display for LinalgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (batch, what) = match self {
            LinalgError::Singular { batch } => (batch, "is singular"),
            LinalgError::NotPositiveDefinite { batch } => (batch, "is not positive definite"),
            LinalgError::NoConvergence { batch } => {
                (batch, "did not converge (does it hold NaN or infinity?)")
            }
        };
        write!(f, "matrix {batch} of the batch {what}")
    }
}

impl std::error::Error for LinalgError {}
