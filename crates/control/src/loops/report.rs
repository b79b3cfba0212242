//! What the gradient of a loop kept, and what it recomputed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Filled in once the gradient of a loop was computed: what it kept and what it recomputed.
///
/// Pass it to [`Loops::report`](crate::Loops::report). If the gradient is computed several times, it describes the last.
#[derive(Debug, Default)]
pub struct LoopReport {
    slots: AtomicU64,
    slot_bytes: AtomicU64,
    steps: AtomicU64,
    predicted: AtomicU64,
    recomputed: AtomicU64,
}

impl LoopReport {
    /// An empty report.
    pub fn new() -> LoopReport {
        LoopReport::default()
    }

    pub(crate) fn record_forward(&self, slots: usize, slot_bytes: usize) {
        self.slots.store(slots as u64, Ordering::Relaxed);
        self.slot_bytes.store(slot_bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn record_backward(&self, steps: usize, predicted: u64, recomputed: u64) {
        self.steps.store(steps as u64, Ordering::Relaxed);
        self.predicted.store(predicted, Ordering::Relaxed);
        self.recomputed.store(recomputed, Ordering::Relaxed);
    }

    /// How many states the loop could keep, the first included.
    pub fn slots(&self) -> u64 {
        self.slots.load(Ordering::Relaxed)
    }

    /// The bytes of those states.
    pub fn bytes(&self) -> u64 {
        self.slots() * self.slot_bytes.load(Ordering::Relaxed)
    }

    /// How many steps the loop made.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The fewest steps that have to be recomputed with as many slots.
    pub fn predicted(&self) -> u64 {
        self.predicted.load(Ordering::Relaxed)
    }

    /// How many steps were recomputed.
    pub fn recomputed(&self) -> u64 {
        self.recomputed.load(Ordering::Relaxed)
    }
}

impl fmt::Display for LoopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slots, bytes, steps) = (self.slots(), self.bytes(), self.steps());
        let (predicted, recomputed) = (self.predicted(), self.recomputed());
        write!(f, "{steps} steps with {slots} states ({bytes} bytes) kept: ")?;
        write!(f, "{recomputed} steps recomputed, {predicted} at least")
    }
}
