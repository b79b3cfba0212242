//! What the tests of Taut's crates share: short tensors, comparisons, the rows of the op table, the ledger, a counter of the
//! heap, folders.
//!
//! Helpers panic instead of returning errors: a test that cannot make its inputs has failed.

mod compare;
mod folder;
mod heap;
mod ledger;
mod rows;
mod tensors;

pub use compare::{assert_close, assert_same_bits, close, same_bits};
pub use folder::Folder;
pub use heap::HeapCounter;
pub use ledger::{exclusive, measured};
pub use rows::every_row;
pub use tensors::{bits, ramp, scalar, values, values_f32, vector, vector_f32};
