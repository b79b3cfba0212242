//! The stages of pipelines: one file per stage, with the methods of [`Dataset`](crate::Dataset) that add it.

mod assert_cardinality;
mod background;
mod batch;
mod cache;
mod filter;
mod ignore_errors;
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

pub use background::{WorkerStartHook, set_worker_start_hook};
pub use cache::Cache;
pub use map::MappedElement;
pub use padded::BatchPadding;
pub use sample::Sampling;
pub use shuffle::Shuffle;
pub(crate) use source::{Indexed, number};
pub use window::Window;

use taut_core::Error;

/// Adds the index of the element to an error.
#[cold]
pub(crate) fn at_element(error: Error, index: u64) -> Error {
    error.about(format_args!("element {index}"))
}
