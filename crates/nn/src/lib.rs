//! What models are made of and trained with.

pub mod layer;
pub mod optimizers;
pub mod schedules;

pub use layer::{Layer, Mode, Names};
