//! String tensors: n-dimensional arrays of byte strings, and functions of them.
//!
//! A [`StringTensor`] has two buffers, both on the ledger: the bytes of all strings one after the other, and the offset at
//! which each string ends. It never changes; clones and rows share memory. Strings are bytes, not text: functions that read
//! characters say which encoding they expect.
//!
//! ```
//! use taut_strings::{StringTensor, split, upper};
//!
//! let lines = StringTensor::from_values(["to be", "or not to be"], [2])?;
//! assert_eq!(upper(&lines, false)?.to_vec()?, [b"TO BE".to_vec(), b"OR NOT TO BE".to_vec()]);
//! let (words, row_splits) = split(&lines, b"", None)?;
//! assert_eq!(words.len(), 6);
//! assert_eq!(row_splits.to_vec::<i64>()?, [0, 2, 6]);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod builder;
mod case;
mod compare;
mod hash;
mod moves;
mod numbers;
#[cfg(feature = "regex")]
mod regex;
#[cfg(feature = "regex")]
mod script;
mod table;
mod tensor;
mod text;
mod unicode;

pub use builder::StringBuilder;
pub use case::{lower, strip, upper};
pub use compare::{Comparison, compare, unique};
pub use hash::{fingerprint64, fingerprints, hash_bucket_murmur, hash_bucket_strong, hash_buckets};
pub use moves::{concat, pad_stack, stack, take};
pub use numbers::{NumberFormat, as_string, hexadecimal_float, to_number};
#[cfg(feature = "regex")]
pub use regex::{Regex, regex_full_match, regex_replace};
#[cfg(feature = "regex")]
pub use script::unicode_script;
pub use table::StringTable;
pub use tensor::{StringLeaf, StringTensor, StringValues};
pub use text::{Unit, bytes_split, join, join_rows, length, ngrams, split, substr};
pub use unicode::{Encoding, OnInvalid, decode, encode, unicode_split};
