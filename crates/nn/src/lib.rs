//! Layers, losses, metrics, optimizers, the trainer and checkpoints.

mod activation;
pub mod initializers;
pub mod layer;
pub mod layers;
pub mod losses;
pub mod metrics;
pub mod optimizers;
pub mod schedules;
pub mod train;

pub use layer::{Layer, Mode, NamedVariables};
pub use train::{Checkpoint, Trainer};
