//! Knows a graph's memory before it runs: where every value lies, and how many bytes that takes.
//!
//! [`Program::plan`] makes a program of a graph: views become layouts, calls get the order that needs least and overwrite
//! what nobody reads any more, updates stay in the memory of what they update, and what is left is packed into one
//! arena. It never looks at data. [`Program::explain_peak`] says of every byte why it is there.
//!
//! A step of training or inference that is known before it runs tells of every buffer when it is first and last used.
//! [`pack`] gives each an offset in one arena, so that buffers that are alive together never share a byte, in as few
//! bytes as it can, and says how far that may be from the fewest possible.
//!
//! ```
//! use taut_plan::{Buffer, Effort, pack, verify};
//!
//! // Three buffers; the first is gone when the third appears.
//! let buffers = [Buffer::new(100, 0, 2), Buffer::new(40, 1, 4), Buffer::new(60, 2, 5)];
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
//! **The load.** At every instant, the buffers alive then need at least the sum of their sizes. The largest such sum is
//! the lower bound. Alignments that all buffers share are counted in: sizes are rounded up to their common divisor.
//!
//! **Greedy orders.** Buffers are placed one by one, at the lowest offset where they fit or in the tightest gap, in six
//! orders with two tie-breaks each: by start, by end, by the fullest instant of their life, by area, size and length. The
//! first packing that reaches the load is the answer; the steps of real models nearly always end here. In the order of
//! time, n buffers of which at most a are alive at once cost O(n·a), in the other orders O(n²); with many buffers, orders
//! that would take more than a few milliseconds wait until the effort allows them.
//!
//! **Parts.** Where no buffer is alive across an instant, what is before and after it shares nothing. Each such part is
//! packed alone, and only parts that are above the goal are worked on.
//!
//! **Search.** For a part and a goal in bytes, the search asks whether the part fits. Time is cut into *sections*, the
//! instants at which the set of live buffers is not contained in another's; nothing else matters for overlap.
//! The search fills the arena from below: it takes a section where nothing lower can come any more, and tries one buffer
//! at the lowest offset it can have. If that fails, the buffer is known to lie on top of another that is not placed
//! yet, which lifts it. Packings in which nothing can sink are enough, so this misses none that matters. In every
//! section, the lowest offset that is still possible and what is left to place must fit below the goal; this is what
//! ends most branches. Each failure names the sections that caused it, and choices that touch none of them are skipped
//! on the way back; so parts that fall apart during the search never wait for one another. Sections that fail often are
//! taken first. The search restarts with other preferences: long, large or crowded buffers first, with a little noise.
//! A decision costs O(o + s), with o the buffers that overlap the one that is placed and s the sections they span; the
//! number of decisions has no useful bound, which is why [`Effort`] exists. Memory is at most
//! n²/4 bytes for a part of n buffers; beyond 10,000 of them in one part, the greedy orders are all there is.
//!
//! **Goals.** The first goal is the load itself, then others between it and the best packing so far, by halving; then
//! all again with more work each. A goal that is proven impossible lifts the lower end. More effort only continues
//! this sequence, so it never gives a worse packing.
//!
//! Effort is counted in steps, not in seconds, and nothing depends on addresses, threads or clocks: the same buffers
//! give the same packing on every machine.

mod bits;
mod diff;
mod explain;
mod greedy;
mod improve;
mod lower;
mod order;
mod packing;
mod parts;
mod place;
mod print;
mod program;
mod request;
mod restarts;
mod search;
mod shape;
mod table;
mod uses;
mod verify;

pub use diff::{PlanChange, PlanDiff};
pub use explain::{AliveReason, PeakExplanation, PeakRow};
pub use improve::{pack, pack_within};
pub use packing::{Buffer, Effort, FoundBy, PackError, Packing};
pub use program::{Access, Home, Program, ProgramInput, Step, StepInput, StepOutput, Storage};
pub use request::{InputRequest, PlanRequest};
pub use table::{BufferRow, Table, Written};
pub use verify::{PackingFlaw, verify};
