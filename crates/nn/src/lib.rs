//! What models are made of and trained with.

mod activation;
pub mod initializers;
pub mod layer;
pub mod layers;
pub mod losses;
pub mod metrics;
pub mod optimizers;
pub mod schedules;
pub mod train;

pub use layer::{Layer, Mode, Names};
pub use train::{Checkpoint, Trainer};
