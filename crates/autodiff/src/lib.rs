//! Gradients that keep only what they need.
//!
//! A [`GradientTape`] follows the ops that its thread applies to what it watches, keeps of each call exactly what
//! [`Op::saves`](taut_core::Op::saves) declares, and walks back through [`Op::vjp`](taut_core::Op::vjp). Everything
//! else here is made of those two: custom gradients and recomputed ones are ops with a rule of their own, forward mode
//! is the rule applied twice, and the gradient of a graph is the rules applied while tracing.

mod backward;
mod checkpoint;
mod custom;
mod explain;
mod forward;
mod graph;
mod jacobian;
pub mod joint;
pub mod nest;
mod numerics;
mod record;
mod structure;
mod tape;
mod variable;

pub use checkpoint::{Recomputed, checkpoint, optimization_barrier, recompute_grad};
pub use custom::{GradientRule, custom_gradient};
pub use explain::{SavedReason, TapeExplanation, TapeRow};
pub use forward::{ForwardAccumulator, hvp, jvp};
pub use graph::{gradient_graph, gradients, gradients_with};
pub use nest::{Nest, StaticValue};
pub use numerics::{disable_check_numerics, enable_check_numerics};
pub use structure::{Dense, GradientSource, Structure};
pub use tape::{GradientRequest, GradientTape, TapeOptions, Unconnected};
pub use variable::{Variable, VariableBuilder, VariableGuard, Wait, set_blocking_hook};

pub use taut_core::{Gradient, IndexedSlices};
