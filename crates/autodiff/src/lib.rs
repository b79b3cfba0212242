//! Automatic differentiation that saves only what gradients need.
//!
//! A [`GradientTape`] records the ops that its thread applies to watched values, saves of each call exactly what
//! [`saves`](taut_core::Differentiable::saves) declares, and runs the backward pass with [`vjp`](taut_core::Differentiable::vjp).
//! Everything else here builds on those two: custom gradients and rematerialisation are ops with their own rule, forward mode
//! applies the rule twice, and the gradient of a graph applies the rules while tracing.

mod arguments;
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
mod parts;
mod record;
mod structure;
mod tape;
mod uses;
mod variable;

pub use arguments::{VariableArguments, VariableArgumentsGuard, bind_by_identity, is_bound_by_identity};
pub use checkpoint::{Recomputed, checkpoint, optimization_barrier, recompute_grad};
pub use custom::{GradientRule, custom_gradient};
pub use explain::{NoGradientReason, TapeExplanation, TapeRow};
pub use forward::{ForwardAccumulator, hvp, jvp};
pub use graph::{gradient_graph, gradients, gradients_with, gradients_with_stops};
pub use nest::{Nest, StaticValue};
pub use numerics::{disable_check_numerics, enable_check_numerics};
pub use structure::{DenseGradient, GradientSource, Structure};
pub use tape::{GradientRequest, GradientTape, TapeOptions, Unconnected};
pub use variable::{BlockingHook, Variable, VariableBuilder, VariableGuard, set_blocking_hook};

pub use taut_core::{Gradient, IndexedSlices};
