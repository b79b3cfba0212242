//! Runs planned programs: one arena, no allocation per step, every value where the plan puts it.
//!
//! An [`Executable`] is a graph that was compiled and planned. Functions run it on tensors ([`Executable::run`]), in
//! arenas that it keeps between runs; ops that hold graphs, such as loops, run it in memory that they were given
//! ([`Executable::run_in`]).
//!
//! ```
//! use taut_core::{DType, Spec, Tensor, trace};
//! use taut_exec::{Executable, ExecutableOptions, RunInput};
//! use taut_plan::PlanRequest;
//!
//! let graph = trace(&[Spec::new(DType::F32, [1000])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?]))?.graph;
//! let executable = Executable::compile(&graph, ExecutableOptions::default(), &PlanRequest::default())?;
//! let program = executable.program();
//! assert_eq!((program.peak_bytes(), program.arena_bytes()), (4000, 0)); // all of it in the output's own memory
//! let x = Tensor::from_vec(vec![3.0f32; 1000], [1000])?;
//! let y = executable.run(&mut [RunInput::Read(&x)])?;
//! assert_eq!(y[0].to_vec::<f32>()?[7], 7.0);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod bind;
mod executable;
mod observe;
mod results;
mod step;

pub use bind::{BorrowedInput, RunInput};
pub use executable::{Executable, ExecutableOptions, RunOutputs};
pub use observe::{StepObserver, observe};
pub use taut_core::interrupt::{InterruptCheck, set_interrupt_check};
