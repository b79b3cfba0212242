//! The report of a running pipeline: times and buffers of its stages, and its bottleneck.

use crate::buffer_size::BufferSize;
use crate::counters::{PipelineCounters, StageCounters};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use taut_memory::Bytes;

/// The contents of a stage's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferUse {
    /// Its maximum size; a cache in memory has none.
    pub buffer_size: Option<BufferSize>,
    /// Elements in it now.
    pub elements: usize,
    /// Bytes of their tensors.
    pub bytes: usize,
    /// The most elements so far.
    pub most_elements: usize,
    /// The most bytes so far.
    pub most_bytes: usize,
}

/// Counters of one stage so far.
#[derive(Clone, Debug)]
pub struct StageReport {
    /// The method that adds the stage.
    pub name: &'static str,
    /// The index of the stage that reads its elements; `None` for the last one.
    pub consumer: Option<usize>,
    /// Elements delivered.
    pub elements: u64,
    /// Its own working time; with several workers, the sum over them.
    pub own: Duration,
    /// Time it waited for its inputs.
    pub waiting: Duration,
    /// Time its consumer waited for it.
    pub waited: Duration,
    /// Time its threads were blocked by a full buffer.
    pub blocked: Duration,
    /// Errors that it left out: those of `ignore_errors`.
    pub ignored: u64,
    /// The number of its own threads.
    pub workers: usize,
    /// Its buffer, if it has one.
    pub buffer: Option<BufferUse>,
}

impl StageReport {
    /// The most bytes of its buffer so far; zero without a buffer.
    pub fn high_water(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.most_bytes)
    }

    /// Own time per worker.
    fn time_per_worker(&self) -> Duration {
        self.own / self.workers.max(1) as u32
    }
}

/// Counters of the stages of a run so far, sources first. `Display` prints a table whose last line names the bottleneck.
#[derive(Clone, Debug)]
pub struct PipelineReport {
    /// The stages, each after its inputs.
    pub stages: Vec<StageReport>,
    /// Time since the iterator was started.
    pub elapsed: Duration,
}

impl PipelineReport {
    pub(crate) fn new(pipeline: &PipelineCounters, elapsed: Duration) -> PipelineReport {
        let counters = pipeline.all();
        // Consumers are started before their inputs, so the reversed list has inputs first.
        let stages = (0..counters.len()).rev().map(|index| stage(&counters, index)).collect();
        PipelineReport { stages, elapsed }
    }

    /// The last stage of this name, which is the nearest to the consumer.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().rev().find(|stage| stage.name == name)
    }

    /// A sentence that names the bottleneck.
    pub fn bottleneck(&self) -> String {
        let Some(last) = self.stages.last() else {
            return "no stage has run".to_owned();
        };
        let percent = 100.0 * last.waited.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        if percent < 5.0 {
            return format!("the consumer is the bottleneck: it waited {percent:.1} % of the time for data");
        }
        let times = self.stages.iter().map(StageReport::time_per_worker).enumerate();
        let index = times.max_by_key(|(_, time)| *time).map_or(0, |(index, _)| index);
        let name = self.stages[index].name;
        let is_source = !self.stages.iter().any(|stage| stage.consumer == Some(index));
        let background = self.stages.iter().any(|stage| stage.workers > 0);
        let advice = match name {
            "map" => "use several threads (map_parallel)",
            "map_parallel" => "use more workers, if cores are free",
            _ if is_source => "if the source is read more than once, add a cache",
            _ if !background => "add a prefetch at the end, to overlap it with the consumer",
            _ => "it is the slowest stage",
        };
        format!("the bottleneck is `{name}`: {advice} (the consumer waited {percent:.0} % of the time)")
    }
}

fn stage(all: &[Arc<StageCounters>], index: usize) -> StageReport {
    let counters = &all[index];
    let inputs = all.iter().filter(|input| input.consumer == Some(index));
    let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Relaxed));
    let waiting: Duration = inputs.map(|input| time(&input.waited)).sum();
    let (waited, workers) = (time(&counters.waited), counters.workers.load(Relaxed));
    // A stage with its own threads waits for its inputs on those.
    let own = if workers > 0 { time(&counters.worked) } else { waited.saturating_sub(waiting) };
    let buffer = counters.buffer.get().map(|buffer_counters| BufferUse {
        buffer_size: buffer_counters.buffer_size,
        elements: buffer_counters.elements.load(Relaxed),
        bytes: buffer_counters.bytes.load(Relaxed),
        most_elements: buffer_counters.most_elements.load(Relaxed),
        most_bytes: buffer_counters.most_bytes.load(Relaxed),
    });
    StageReport {
        name: counters.name,
        consumer: counters.consumer.map(|consumer| all.len() - 1 - consumer),
        elements: counters.elements.load(Relaxed),
        own,
        waiting,
        waited,
        blocked: time(&counters.blocked),
        ignored: counters.ignored.load(Relaxed),
        workers,
        buffer,
    }
}

impl fmt::Display for PipelineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0).max(5);
        let head = ["elements", "own", "for input", "consumer", "blocked", "buffered", "at most"];
        write!(f, "{:<width$}", "stage")?;
        head.iter().try_for_each(|column| write!(f, "  {column:>10}"))?;
        for stage in &self.stages {
            let times = [stage.own, stage.waiting, stage.waited, stage.blocked].map(seconds);
            let buffer = stage.buffer.as_ref();
            let buffer = buffer.map(|buffer| [buffer.bytes, buffer.most_bytes].map(|n| Bytes(n).to_string()));
            let [now, most] = buffer.unwrap_or_else(|| ["-", "-"].map(str::to_owned));
            write!(f, "\n{:<width$}  {:>10}", stage.name, stage.elements)?;
            times.iter().try_for_each(|time| write!(f, "  {time:>10}"))?;
            write!(f, "  {now:>10}  {most:>10}")?;
        }
        let ignored: u64 = self.stages.iter().map(|stage| stage.ignored).sum();
        if ignored > 0 {
            write!(f, "\n{ignored} elements with errors were left out")?;
        }
        write!(f, "\n{}", self.bottleneck())
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
