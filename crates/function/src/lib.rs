//! Turns a function into planned programs: traced once per signature.
mod nest;
mod signature;
pub use nest::{Leaf, Nest, Static, Value};
pub use signature::{Change, Signature, TensorSpec};
