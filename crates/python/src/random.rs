//! The counter behind random numbers.

use crate::array::wrap;
use crate::call::call;
use pyo3::prelude::*;

/// Begins the random numbers anew.
#[pyfunction]
pub fn set_seed(seed: u64) {
    taut::random::set_seed(seed);
}

/// Where the random numbers are: (seed, counter).
#[pyfunction]
pub fn random_state() -> (u64, u64) {
    taut::random::state()
}

/// Goes on with random numbers from there.
#[pyfunction]
pub fn set_random_state(state: (u64, u64)) {
    taut::random::set_state(state);
}

/// A key that no draw had before; inside a traced function, another one in each call.
#[pyfunction]
pub fn next_key(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    wrap(py, call(py, 0, taut::random::next_key)?)
}
