//! What models are made of and trained with.

pub mod layer;
pub mod train;

pub use layer::{Layer, Mode, Names};
pub use train::{Checkpoint, Trainer};
