//! Parts of a batch: the class of every value of a graph that computes its batch in parts, and the calls of one part.

mod call;
mod classify;
mod cut;
mod part_op;
mod refusal;

pub(crate) use call::{PartTrace, missing};
pub(crate) use classify::{Classes, NodeClass, ValueClass, classify, classify_body};
pub(crate) use cut::Cuts;
pub use refusal::MixedRows;
