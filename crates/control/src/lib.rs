//! Loops, branches and maps: ops that hold graphs.

mod batch;
pub mod schedule;
