//! Branches: one of several graphs runs.

mod cond;
mod definition;
mod gradient;
mod op;
mod prune;
mod vmap;

pub use cond::{Case, cond, switch_case};
