//! The stages of pipelines, a file for each kind; each file has the methods that make them.

mod background;
mod batch;
mod cache;
mod filter;
mod interleave;
mod map;
mod padded;
mod parallel;
mod prefetch;
mod repeat;
mod sample;
mod shuffle;
mod source;
mod take;
mod unbatch;
mod window;
mod zip;

pub use cache::Cache;
pub use padded::Padding;
pub use shuffle::Shuffle;
pub(crate) use source::{Indexed, number};
pub use window::Window;

use taut_core::Error;

/// Says which element it was.
#[cold]
pub(crate) fn at_element(error: Error, index: u64) -> Error {
    error.about(format_args!("element {index}"))
}
