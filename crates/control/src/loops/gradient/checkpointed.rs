//! The backward pass of a loop of which only checkpoints were kept: it recomputes the other states.

mod definition;
mod op;
mod run;
mod second_order;
mod signature;

pub(super) use definition::checkpointed_vjp;
