//! The training loop, callbacks, and checkpoints.

mod callback;
mod checkpoint;
mod distribute;
mod distribution;
mod history;
mod numerics;
mod parts;
mod run;
mod saving;
mod state;
mod stop;
mod trainer;

pub use callback::{Callback, Flow, Step};
pub use checkpoint::Checkpoint;
pub(crate) use distribution::SMALL;
pub use history::{Epoch, History};
pub use stop::{EarlyStopping, ReduceRate, SaveBest};
pub use trainer::{Every, Trainer};
