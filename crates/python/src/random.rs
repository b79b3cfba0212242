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

/// The most random keys that a function takes for one element from the stream of its dataset.
const KEYS_PER_ELEMENT: u64 = 1 << 20;

/// Runs the function of a stage. With a seed, its random numbers depend on the element and on how often the dataset was repeated,
/// so that they are the same in every run of the pipeline.
pub fn with_seed<R>(seed: Option<u64>, work: impl FnOnce() -> R) -> R {
    match (seed, taut::data::MappedElement::current()) {
        (Some(seed), Some(element)) => {
            let stream = seed ^ element.repetition.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let first = element.index.wrapping_mul(KEYS_PER_ELEMENT);
            taut::random::with_key_stream(stream, first, work)
        }
        _ => work(),
    }
}
