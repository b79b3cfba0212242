//! Rematerialisation: which values to evict and compute again, so that a step fits a memory budget at least added time.
//!
//! A training step keeps most of its forward values for the backward pass. Evicting some and computing them again later
//! lowers the peak and costs time. [`frontier()`] finds sequences of calls, some of them repeated, for all budgets at once:
//! with more bytes, the time falls. It works on an abstract [`Problem`] of steps and values and never looks at ops.
//!
//! ```
//! use taut_plan::remat::{Problem, RematEffort, RematStep, RematValue, Residence, frontier, peak};
//!
//! // A chain of eight values, each of 100 bytes, and a backward pass that reads them in reverse.
//! let value = |bytes| RematValue { bytes, residence: Residence::Arena };
//! let step = |reads: &[u32], writes: u32, cost| RematStep {
//!     reads: reads.to_vec(),
//!     writes: vec![writes],
//!     cost,
//!     scratch: 0,
//!     repeatable: true,
//!     prunable: false,
//!     in_place: Vec::new(),
//! };
//! let mut values: Vec<RematValue> = (0..8).map(|_| value(100)).collect();
//! let mut steps = vec![step(&[], 0, 1000)];
//! steps.extend((1..8).map(|i| step(&[i - 1], i, 1000)));
//! for i in (0..8).rev() {
//!     let gradient = values.len() as u32;
//!     let reads = if i == 7 { vec![i] } else { vec![i, gradient - 1] };
//!     values.push(value(8));
//!     steps.push(step(&reads, gradient, 2000));
//! }
//! let problem = Problem::new(values, steps, Vec::new())?;
//!
//! let order: Vec<u32> = (0..16).collect();
//! let effort = RematEffort::for_problem(&problem);
//! let front = frontier(&problem, &[order], effort, &mut |sequence| peak(&problem, sequence).bytes)?;
//! let plain = front.at(1000).ok_or("no plan")?;
//! let half = front.at(408).ok_or("no plan")?;
//! assert_eq!((plain.bytes, plain.cost), (808, 24_000));
//! assert!(half.bytes <= 408 && half.cost == 28_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! **Sequences.** The result is a list of steps in which a step may occur again. A step reads what was written last, and
//! a value is live from where it is written to its last read before it is written again; all else follows. [`verify`] checks
//! a sequence without trusting how it was found. Steps with side effects, updates of variables and steps that write
//! results run once. A step that reads a variable has a deadline: it may be repeated only before the variable's update.
//!
//! **Decoder.** An order of the steps, a goal in bytes and a score become a sequence that keeps the goal, or nothing. The
//! decoder walks the order with the set of resident values. It rematerialises missing operands before a step, recursively.
//! When bytes are missing, it evicts the value with the highest
//!
//! ```text
//! bytes^a · (distance to its next read)^b / (cost of rematerialising it from what is resident)^c
//! ```
//!
//! and retains the operands from which that value can be computed again: so checkpoints come about. Some forty choices of
//! a, b and c are tried, those first that were good for the previous goal. Where a value cannot be rematerialised for lack of
//! bytes, the decoder starts again and rematerialises it one step earlier. A walk costs O(n + e·s) for n steps, e
//! evictions and s values whose score has to be computed again.
//!
//! **Orders.** The decoder walks the orders it is given, and each of them after exchanging neighbours: two independent
//! steps change places if the pair then peaks lower, such as the gradient of a filter and that of its input.
//!
//! **Minimum cuts.** At the fullest instants of an order, every value that is read later is either kept or rematerialised
//! from operands that are kept or rematerialised in turn. With a price for a byte, the cheapest choice is a minimum cut.
//! The prices at which the choice changes give a ladder of kept sets. Each guides a decoder: kept values are evicted last, and
//! the operands of what is repeated are retained from the start. The score alone does not see that the input of an
//! activation should outlive its two outputs; the cut does.
//!
//! **Cleaning.** A repetition goes if its outputs are never read, or, the most expensive first, if the earlier value can stay
//! live within the goal. Then the weights of the best guides are perturbed and decoded again.
//!
//! **Exact search.** Problems with at most 24 values in the arena are solved by [`exact()`]: Dijkstra's algorithm over the
//! sets of resident values, for each order.
//!
//! **Ladder.** The smallest goal is found by bisection. Between it and the plain peak lie 24 goals in equal ratios, and
//! then some more where neighbouring points are furthest apart. Every sequence is packed, since offsets may need more bytes
//! than are live; if it exceeds its goal, the goal shrinks by the excess and is solved again. Points that another beats
//! in bytes and time are dropped. These points depend on the problem alone, so bytes and time are both monotone in the
//! budget: a larger budget has more points to choose from, and a point that is chosen only then did not fit before.
//!
//! **Certificates.** `cut(price) − price · room` is a lower bound on the cost of what any sequence of an order repeats, at
//! any instant and any price; each [`FrontierPoint`] has the largest. Bytes are bounded by the largest working set of a
//! single step.
//!
//! Effort is counted in units of work, not in seconds, and nothing depends on threads, clocks or addresses: the same
//! problem gives the same frontier on every machine.

mod clean;
mod cut;
mod decode;
mod evict;
mod exact;
mod exchange;
mod flow;
mod frontier;
mod ladder;
mod liveness;
mod order;
mod problem;
mod score;
mod search;
mod xorshift;

pub use cut::kept_sets;
pub use exact::{ExactOutcome, exact};
pub use frontier::{Frontier, FrontierPoint};
pub use ladder::{RematEffort, frontier};
pub use liveness::{Peak, SequenceFlaw, peak, total_load, verify};
pub use problem::{Problem, ProblemFlaw, RematStep, RematValue, Residence};
