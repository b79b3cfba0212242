//! Turns a function into planned programs: traced once per signature.
//!
//! [`function`] makes a [`Function`] of a closure. A call looks for a trace with the signature of its arguments, or makes
//! one: the closure runs once on tensors without values, the passes of [`taut_compile`] make the graph smaller,
//! [`taut_plan`] gives every byte its place, and from then on [`taut_exec`] runs the program. Variables are used by
//! reference, and updated in their own memory. Under a tape, a call is one entry with a backward program of its own.

mod cache;
mod compiled;
mod concrete;
mod function;
mod gradient;
mod report;
mod signature;

pub use function::{Function, OnRetrace, function};
pub use report::{Reason, Trace};
pub use signature::{SignatureChange, TensorSpec};
