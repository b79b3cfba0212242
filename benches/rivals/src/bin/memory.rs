//! The peak of a step beyond what was allocated before it, counted by the process's allocator. A separate program, so that
//! counting does not slow down `time`.

use peak_alloc::PeakAlloc;
use rivals::{ENGINES, Outcome, wanted};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn main() -> Outcome {
    for workload in wanted() {
        let mut steps = workload.steps()?;
        let mut peaks = Vec::new();
        for step in &mut steps {
            // Taut's pool is emptied first, so that the step that allocates a block is charged for it.
            taut::memory::trim();
            let before = HEAP.current_usage();
            HEAP.reset_peak_usage();
            step()?;
            let heap = HEAP.peak_usage() - before;
            peaks.push((heap + mapped()) as f64);
        }
        for (engine, peak) in ENGINES.iter().zip(&peaks) {
            let (taken, ratio) = (peak / 1024.0 / 1024.0, peak / peaks[0]);
            println!("    {:<16} {taken:8.2} MiB   {ratio:.2} x Taut's peak", engine.name);
        }
    }
    Ok(())
}

/// Bytes that Taut has mapped past the process's allocator, as it does with large blocks. It still has all of them: its
/// pool gives nothing back during a step. Of what it gives back now, the rest goes to the allocator.
fn mapped() -> usize {
    let before = HEAP.current_usage();
    let given_back = taut::memory::trim();
    given_back.saturating_sub(before.saturating_sub(HEAP.current_usage()))
}
