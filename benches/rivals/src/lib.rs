//! The same training steps in Taut, candle and burn, from the same numbers.
//!
//! What each does that the others do not:
//!
//! - **Taut** keeps of each call only what its gradient needs (one bit per element for a `relu`), frees it during the
//!   backward pass, and updates variables in place. Its pool keeps freed blocks for the next step.
//! - **candle** keeps every result that leads to the loss until the graph is dropped, and runs the backward pass over
//!   the tensors themselves. Its `SGD` makes a new tensor and copies it into the variable.
//! - **burn** records an action per call and lets a backend write into a buffer that is not shared. Without modules
//!   it has no variables: an update makes a new leaf. A mistake panics; in the others it is an error to return. It runs
//!   here on `flex`, the backend that it recommends for CPUs, and on `ndarray`, which was that before.
//!
//! All run with their default number of threads, which is one per core.

pub mod burn_side;
pub mod candle_side;
pub mod data;
pub mod taut_side;

use data::{Classic, Deep, Mlp};
use std::error::Error;

/// What can go wrong in any engine.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One step; returns the loss. It can be called again and again, and trains if the workload does.
pub type Step = Box<dyn FnMut() -> Outcome<f32>>;

/// How fast the training step learns, in every engine.
pub const RATE: f64 = 0.01;

/// An engine, and its version of each workload.
pub struct Engine {
    pub name: &'static str,
    pub classic: fn(&Classic) -> Outcome<Step>,
    pub mlp: fn(&Mlp) -> Outcome<Step>,
    pub deep: fn(&Deep) -> Outcome<Step>,
}

/// Taut first: the others are compared with it.
pub const ENGINES: [Engine; 4] =
    [taut_side::ENGINE, candle_side::ENGINE, burn_side::FLEX, burn_side::NDARRAY];

/// A workload's name, and a step of it per engine.
pub struct Workload {
    pub name: &'static str,
    pub what: &'static str,
    steps: fn(&Engine) -> Outcome<Step>,
}

pub const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "classic step",
        what: "relu(x[32,784] @ w[784,10]), mean of squares, gradient",
        steps: |engine| (engine.classic)(&Classic::new()?),
    },
    Workload {
        name: "mlp step",
        what: "784-512-512-10 relu, batch 128, cross-entropy, gradients, SGD",
        steps: |engine| (engine.mlp)(&Mlp::new()?),
    },
    Workload {
        name: "deep mlp",
        what: "64 layers 256 wide, relu, batch 1024, mean of squares, gradients",
        steps: |engine| (engine.deep)(&Deep::new()?),
    },
];

impl Workload {
    /// A step per engine, warmed up. Refuses engines that do not agree on the first losses.
    pub fn steps(&self) -> Outcome<Vec<Step>> {
        let mut steps = Vec::new();
        let mut expected = Vec::new();
        for engine in &ENGINES {
            let mut step = (self.steps)(engine)?;
            let losses = (0..3).map(|_| step()).collect::<Outcome<Vec<f32>>>()?;
            if expected.is_empty() {
                expected.clone_from(&losses);
            }
            let agree = losses.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs());
            if !agree {
                let message =
                    format!("{}: {} has losses {losses:?}, taut {expected:?}", self.name, engine.name);
                return Err(message.into());
            }
            steps.push(step);
        }
        println!("{}: {}; losses agree: {expected:?}", self.name, self.what);
        Ok(steps)
    }
}

/// The workloads whose name contains the program's argument.
pub fn wanted() -> impl Iterator<Item = Workload> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    WORKLOADS.into_iter().filter(move |workload| workload.name.contains(&filter))
}
