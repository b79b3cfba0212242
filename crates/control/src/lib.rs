//! Loops, branches and maps: ops that hold graphs.

mod batch;
mod body;
mod branch;
mod build;
mod cond;
mod gradient;
mod grow;
mod hoist;
mod looping;
mod loops;
mod many;
mod map;
pub mod recurrent;
mod report;
mod rewind;
mod schedule;
mod structure;
mod trim;

pub use cond::{Case, cond, switch_case};
pub use loops::{Loops, foldl, foldr, fori_loop, scan, while_loop};
pub use map::{map_fn, vectorized_map};
pub use report::LoopReport;
