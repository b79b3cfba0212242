//! The state of the counter-based random numbers.

use crate::array::wrap;
use crate::call::call;
use pyo3::prelude::*;

/// Sets the seed and resets the counter.
#[pyfunction]
pub fn set_seed(seed: u64) {
    taut::random::set_seed(seed);
}

/// The state: (seed, counter).
#[pyfunction]
pub fn random_state() -> (u64, u64) {
    taut::random::state()
}

/// Sets the state: (seed, counter).
#[pyfunction]
pub fn set_random_state(state: (u64, u64)) {
    taut::random::set_state(state);
}

/// A fresh key; inside a traced function, a fresh key at each call.
#[pyfunction]
pub fn next_key(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    wrap(py, call(py, 0, taut::random::next_key)?)
}
