//! Functions that are traced once per signature, compiled, planned, and then run as one executable.
//!
//! [`function`] makes a [`Function`] of a closure. A call looks up a trace with the signature of its arguments, or makes
//! one: the closure runs once on tensors without values, the passes of [`taut_compile`] simplify the graph,
//! [`taut_plan`] places every value, and from then on a [`taut_exec::Executable`] runs it. Variables are used by
//! reference, and updated in their own memory. Under a tape, a call is one recorded op with a backward executable of its own.

mod budget;
mod cache;
mod call;
mod call_op;
mod concrete;
mod first_trace;
mod forward_backward;
mod function;
mod op_by_op;
mod options;
mod report;
mod signature;
mod tensor_spec;
mod tracing;

pub use budget::{FrontierRow, MemoryBudget, MemoryFrontier};
pub use function::{Function, OnRetrace, function};
pub use report::{FunctionTrace, TraceReason};
pub use signature::SignatureChange;
pub use tensor_spec::TensorSpec;
