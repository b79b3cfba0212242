//! The profiler: memory and time of a piece of work, op by op, and an HTML page that shows them.
//!
//! [`record`] runs a closure and returns a [`Timeline`]: every buffer with its lifetime, category, op and source line;
//! every op call and every step of a planned program; and the planned peak beside the measured one. [`ProfileReport`]
//! writes it into one self-contained HTML file.
//!
//! ```
//! use taut_core::{DType, ops::creation::ones, ops::unary::exp};
//! use taut_profile::{ProfileReport, mark, record};
//!
//! let (result, timeline) = record(|| {
//!     let x = ones([256, 256], DType::F32)?;
//!     mark("made");
//!     exp(&x)
//! })?;
//! let peak = timeline.peak();
//! assert_eq!(peak.bytes - timeline.live_at_start(), 2 * 256 * 256 * 4);
//! let live = timeline.live_at(peak.at);
//! assert_eq!(live.iter().map(|row| row.bytes).sum::<usize>(), peak.bytes);
//! println!("{}", live[0]); // 256.0 KiB  tensor          ones at src/main.rs:5: ...
//!
//! let page = ProfileReport::new("exp").timeline(&timeline).to_html();
//! assert!(page.starts_with("<!doctype html>"));
//! # drop(result?);
//! # Ok::<(), taut_core::Error>(())
//! ```
//!
//! # Cost
//! Without an active profiler, a call reads one more bit of a word that it reads anyway, and the drop of a buffer reads one
//! word. With one, every event is recorded, which takes time; results and the ledger's numbers are the same.

mod plan_summary;
mod profiler;
mod recorder;
mod recording;
mod report;
mod timeline;

pub use profiler::{DEFAULT_CAPACITY, Profiler, is_recording, mark, record};
pub use recording::DroppedEvents;
pub use report::ProfileReport;
pub use timeline::{
    Gap, LiveRow, Mark, MemoryKind, MemoryPeak, MemorySample, OpTime, PlanComparison, TimedCall, Timeline,
};
