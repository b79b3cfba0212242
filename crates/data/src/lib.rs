//! Datasets: input pipelines of sources and transforms, with positions that can be saved.
//!
//! A [`Dataset`] describes a pipeline and does nothing. [`Dataset::iter`] runs it: elements are computed one by one, on
//! demand.
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
//! # Positions
//! All stages are deterministic: they depend on the data, on seeds and on the epoch, never on global state or on threads. So
//! a [`Position`] is two numbers, the epoch and the number of elements delivered, and [`Dataset::iter_from`] resumes from it
//! with bitwise the same elements. This requires that functions passed to `map` and `filter`, and generators, are
//! deterministic.
//!
//! # Errors
//! An error in an element replaces that element: the iterator returns it with the index of the element, and can continue
//! after it.

mod atomic_file;
mod buffer_size;
mod counters;
mod dataset;
mod element;
mod iter;
mod random;
mod report;
mod sources;
mod stages;

pub use atomic_file::AtomicFile;
pub use buffer_size::BufferSize;
pub use dataset::{Cardinality, Dataset};
pub use element::{AnyTensor, DatasetElement};
pub use iter::{Iter, Position};
pub use report::{BufferUse, PipelineReport, StageReport};
pub use sources::{
    Compression, ExampleBuilder, FeatureSpec, FeatureValues, FileSet, ImageFolder, ParsedFeature, ParsedList,
    Split, TfRecordWriter, digits, fashion_mnist, fixed_length_records, load_idx, parse_examples,
    parse_sequence_examples, parse_tensor, read_idx, serialize_tensor, text_lines, tf_records,
};
#[cfg(feature = "csv")]
pub use sources::{Csv, CsvColumn, CsvFormat, csv_rows, decode_csv};
#[cfg(feature = "images")]
pub use sources::{
    ImageFormat, Taps, decode_gif, decode_image, encode_jpeg, encode_png, image_format, resample,
};
#[cfg(feature = "arrow")]
pub use sources::{load_arrow, load_parquet};
pub use stages::{
    BatchPadding, Cache, MappedElement, Sampling, Shuffle, Window, WorkerStartHook, set_worker_start_hook,
};
