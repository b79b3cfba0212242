//! The state of the counter-based random numbers.

use crate::array::wrap;
use crate::call::call;
use pyo3::prelude::*;
use taut::random::KeyStream;

/// Sets the seed and resets the counter.
#[pyfunction]
pub fn set_seed(seed: u64) {
    taut::random::set_seed(seed);
}

/// Removes the seed: the global generator gets one from the operating system.
#[pyfunction]
pub fn forget_seed() {
    taut::random::forget_seed();
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

/// A key of the calls with this seed, where no global seed was set; inside a traced function, one of them at each call.
#[pyfunction]
pub fn next_key_of_seed(py: Python<'_>, seed: i128) -> PyResult<Bound<'_, PyAny>> {
    let (high, low) = ((seed >> 64) as u64, seed as u64);
    wrap(py, call(py, 0, || taut::random::next_key_of_seed(low ^ high.rotate_left(17)))?)
}

/// A fresh key; inside a traced function, a fresh key at each call.
#[pyfunction]
pub fn next_key(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    wrap(py, call(py, 0, taut::random::next_key)?)
}

/// The most random keys that a function takes for one element from the stream of its dataset.
const KEYS_PER_ELEMENT: u64 = 1 << 20;

/// Runs the function of a stage. The random numbers of calls with a seed of their own, and with a seed of the stage those of
/// all calls, depend on the element and on how often the dataset was repeated, so that they are the same in every run of the pipeline.
pub fn with_seed<R>(seed: Option<u64>, work: impl FnOnce() -> R) -> R {
    let Some(element) = taut::data::MappedElement::current() else {
        return work();
    };
    let run = element.repetition.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ element.opened;
    let stream = KeyStream { seed, run, next: element.index.wrapping_mul(KEYS_PER_ELEMENT) };
    taut::random::with_key_stream(stream, work)
}
