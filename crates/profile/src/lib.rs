//! What happened when: memory and time of a piece of work, op by op, and the page that shows it.
//!
//! [`record`] runs a piece of work and returns a [`Timeline`] of it: every buffer from when to when, with its category, op
//! and line; every op call and every step of a planned program; and what was planned against what was measured.
//! [`Report`] writes it into one HTML file that needs nothing else.
//!
//! ```
//! use taut_core::{DType, ops::creation::ones, ops::unary::exp};
//! use taut_profile::{Report, mark, record};
//!
//! let (result, timeline) = record(|| {
//!     let x = ones([256, 256], DType::F32)?;
//!     mark("made");
//!     exp(&x)
//! })?;
//! let peak = timeline.peak();
//! assert_eq!(peak.bytes - timeline.live_at_start(), 2 * 256 * 256 * 4);
//! let alive = timeline.alive_at(peak.at);
//! assert_eq!(alive.iter().map(|row| row.bytes).sum::<usize>(), peak.bytes);
//! println!("{}", alive[0]); // 256.0 KiB  tensor          ones at src/main.rs:5: ...
//!
//! let page = Report::new("exp").timeline(&timeline).to_html();
//! assert!(page.starts_with("<!doctype html>"));
//! # drop(result?);
//! # Ok::<(), taut_core::Error>(())
//! ```
//!
//! # What it costs
//! With no profiler at work, a call reads one word more, in the same instruction that looks for tapes, and a buffer's drop another. With one,
//! everything that happens is written down, which takes time; results and the ledger's numbers are the same.

mod outline;
mod profiler;
mod recorder;
mod recording;
mod report;
mod timeline;

pub use profiler::{DEFAULT_CAPACITY, Profiler, is_recording, mark, record};
pub use recording::Dropped;
pub use report::Report;
pub use timeline::{Alive, Call, Gap, Kind, Mark, OpTime, Peak, Planned, Sample, Timeline};
