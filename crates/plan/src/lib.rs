//! The memory planner: plans the order and the memory of a graph before it runs.
//!
//! [`Program::plan`] lowers a graph to a program: views become layouts, calls get the order with the lowest peak and
//! overwrite operands after their last read, updates are written into the memory of the updated input, and all other
//! values are packed into one arena. It never reads data. [`Program::explain_peak`] explains every byte of the peak.
//!
//! [`PlanFrontier`] holds the plans of a graph for every memory budget: with fewer bytes, more calls are repeated ([`remat`]).
//!
//! A graph determines the live range of every buffer. [`pack`] gives each buffer an offset in one arena, so that buffers
//! with overlapping live ranges share no byte, in as few bytes as it can find, together with a lower bound.
//!
//! ```
//! use taut_plan::{LiveBuffer, Effort, pack, verify};
//!
//! // Three buffers; the live range of the first ends where that of the third starts.
//! let buffers = [LiveBuffer::new(100, 0, 2), LiveBuffer::new(40, 1, 4), LiveBuffer::new(60, 2, 5)];
//! let packing = pack(&buffers, Effort::default())?;
//! assert!(verify(&buffers, &packing).is_ok());
//! assert_eq!(packing.bytes, 140);
//! assert_eq!(packing.lower_bound, 140);
//! println!("{packing}");
//! # Ok::<(), taut_plan::PackError>(())
//! ```
//!
//! # How it works
//!
//! **Lower bound.** At every instant, the live buffers need at least the sum of their sizes. The largest such sum is the
//! lower bound. Sizes are first rounded up to the greatest common divisor of all alignments.
//!
//! **Greedy orders.** Buffers are placed one by one, at the lowest offset where they fit or in the tightest gap, in six
//! orders with two tie-breaks each: by start, by end, by the most bytes live at one instant of the live range, by area,
//! size and length. The first packing that reaches the lower bound is the answer; the steps of real models nearly always
//! end here. In the order of time, n buffers of which at most a are live at once cost O(n·a), in the other orders O(n²);
//! with many buffers, orders that would take more than a few milliseconds are postponed until the effort allows them.
//!
//! **Components.** The buffers are vertices of an interval graph, with an edge where live ranges overlap. Its connected
//! components share no instant. Each is packed separately, and only components above the goal are searched.
//!
//! **Search.** For a component and a goal in bytes, the search decides whether the component fits. Time is cut into
//! *sections*, the instants at which the set of live buffers is a subset of no other instant's (the maximal cliques);
//! they alone determine which buffers overlap. The search fills the arena from below: it selects a section whose lowest
//! possible offset is final, and tries one buffer at the lowest offset it can have. If that fails, the buffer must lie on
//! top of another that is not placed yet, which raises its lowest offset. Every packing can be turned into one in which no
//! buffer can move down, without growing, so the search only visits those and stays complete. In every section, the lowest
//! possible offset plus the bytes still to place must not exceed the goal; this bound prunes most branches. Each failure
//! names the sections that caused it, and backtracking jumps over decisions that touch none of them (conflict-directed
//! backjumping); so subproblems that become independent during the search do not multiply each other's work. Sections that
//! fail often are selected first. The search restarts with other rankings: long, large or much overlapped buffers first,
//! with a little noise. A decision costs O(o + s), with o the buffers that overlap the one placed and s the sections they
//! span; the number of decisions has no useful bound, which is why [`Effort`] exists. Memory is at most n²/4 bytes for a
//! component of n buffers; components of more than 10,000 buffers are packed by the greedy orders alone.
//!
//! **Goals.** The first goal is the lower bound, then bisection between it and the best packing so far; then all again
//! with more steps per goal. A goal that is proven impossible raises the lower end. More effort only continues this
//! sequence, so it never gives a worse packing.
//!
//! Effort is counted in steps, not in seconds, and no result depends on addresses, threads or clocks: the same buffers
//! give the same packing on every machine.

mod bits;
mod buffer_table;
mod cost;
mod diff;
mod explain;
mod frontier;
mod greedy;
mod improve;
mod interval_graph;
mod lower;
mod order;
mod packing;
mod placement;
mod print;
mod problem;
mod program;
pub mod remat;
mod request;
mod restarts;
mod search;
mod storage_uses;
mod subgraphs;
mod verify;

pub use buffer_table::{BufferRow, BufferTable, BufferWrite};
pub use diff::{PlanChange, PlanDiff};
pub use explain::{PeakExplanation, PeakRow, PeakRowKind};
pub use frontier::{PlanFrontier, PlanPoint, kept_values};
pub use improve::{pack, pack_within};
pub use packing::{Effort, FoundBy, LiveBuffer, PackError, Packing};
pub use program::{Access, Home, Program, ProgramInput, ProgramStep, StepInput, StepOutput, Storage};
pub use request::{InputRequest, PlanRequest};
pub use subgraphs::with_smaller_subgraphs;
pub use verify::{PackingFlaw, verify};
