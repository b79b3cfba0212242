//! Datasets: where elements come from, what is done to them on the way, and how far one got.
//!
//! A [`Dataset`] describes a pipeline and does nothing. [`Dataset::iter`] runs it: elements come one by one, and only as fast
//! as they are asked for.
//!
//! ```
//! use taut_core::Tensor;
//! use taut_data::Dataset;
//!
//! let images = Tensor::from_vec((0..24).collect::<Vec<i32>>(), [6, 2, 2])?;
//! let labels = Tensor::from_vec(vec![0i64, 1, 0, 1, 0, 1], [6])?;
//! let batches = Dataset::from_tensor_slices((images, labels))?.shuffle(6)?.batch(4)?.prefetch(2)?;
//! for batch in batches.iter()? {
//!     let (images, labels) = batch?;
//!     assert_eq!(images.shape()[0], labels.shape()[0]);
//! }
//! # Ok::<(), taut_core::Error>(())
//! ```
//!
//! # Where one is
//! All stages are deterministic: they depend on the data, on seeds and on the number of the epoch, never on global state
//! or on threads. So a [`Position`] is two numbers, the epoch and how many elements were delivered, and
//! [`Dataset::iter_from`] goes on from it with the same elements to the bit. Functions given to `map`, `filter` and generators must be
//! deterministic, too, for that to hold.
//!
//! # Errors
//! An error in an element takes the place of that element: the iterator gives it to the caller, says which element it was,
//! and can go on after it.

mod dataset;
mod draft;
mod draws;
mod item;
mod iter;
mod meter;
mod report;
mod room;
mod sources;
mod stages;

pub use dataset::{Cardinality, Dataset};
pub use draft::Draft;
pub use item::Item;
pub use iter::{Iter, Position};
pub use report::{Held, Report, StageReport};
pub use room::Room;
pub use sources::{Csv, ImageFolder, Split, digits, fashion_mnist, load_idx, read_idx};
#[cfg(feature = "arrow")]
pub use sources::{load_arrow, load_parquet};
pub use stages::{Cache, Padding, Shuffle, Window};
