//! What models are made of and trained with.

pub mod layer;

pub use layer::{Layer, Mode, Names};
