//! Loops, branches and maps: ops that hold graphs.
//!
//! [`loops`](while_loop) carry states from step to step, [branches](cond) run one of several graphs, and
//! [maps](map_fn) vectorise a graph over many elements. Each is one op: it is applied, recorded, differentiated, planned
//! and printed like any other.
//!
//! Modules, from the bottom up; each uses only those above it:
//!
//! | module | what is in it |
//! |---|---|
//! | `span`, `specs`, `scratch`, `dependence`, `structure` | positions in argument lists, specs, scratch memory, reachability in graphs, nested structures |
//! | `body`, `runner` | a graph that an op runs again and again in memory that it was given |
//! | `captures`, `variables`, `hoist`, `context` | tracing a body: captured tensors, assigned variables, loop-invariant code, options of the trace around it |
//! | `vjp`, `vmap` | shared by gradients; a graph applied to a batch of inputs |
//! | `parts` | a graph applied to parts of a batch: classes of values, calls of one part |
//! | `loops` | the loop op, its gradient and its checkpoints; `while_loop`, `fori_loop`, `scan` |
//! | `branch` | the branch op; `cond`, `switch_case` |
//! | `map` | `map_fn`: a loop over chunks of a vectorised body |
//! | [`split`] | micro-batches: a graph that computes its batch in parts, in a loop |

mod body;
mod branch;
mod captures;
mod context;
mod dependence;
mod hoist;
mod loops;
mod map;
mod parts;
mod runner;
mod scratch;
mod span;
mod specs;
pub mod split;
mod structure;
mod variables;
mod vjp;
mod vmap;

pub use branch::{Case, cond, switch_case};
pub use context::FunctionContext;
pub use loops::recurrent;
pub use loops::{LoopReport, Loops, foldl, foldr, fori_loop, scan, while_loop};
pub use map::{map_fn, vectorized_map};
