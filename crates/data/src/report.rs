//! Where a pipeline waits.

use crate::meter::{Meter, Meters};
use crate::room::Room;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use taut_memory::Bytes;

/// What a stage's buffer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The room it was given; a cache in memory has none.
    pub room: Option<Room>,
    /// Elements in it now.
    pub elements: usize,
    /// Bytes of their tensors.
    pub bytes: usize,
    /// The most elements it ever held.
    pub most_elements: usize,
    /// The most bytes it ever held.
    pub most_bytes: usize,
}

/// What one stage did so far.
#[derive(Clone, Debug)]
pub struct StageReport {
    /// The method that made it.
    pub name: &'static str,
    /// Its place in the list of the stage that takes its elements; `None` for the last one.
    pub consumer: Option<usize>,
    /// Elements delivered.
    pub elements: u64,
    /// Time it worked itself; with several workers, the sum over them.
    pub own: Duration,
    /// Time it waited for its inputs.
    pub waiting: Duration,
    /// Time its consumer waited for it.
    pub waited: Duration,
    /// Time its threads had no room for what they had made.
    pub blocked: Duration,
    /// Threads of its own.
    pub workers: usize,
    /// Its buffer, if it has one.
    pub held: Option<Held>,
}

impl StageReport {
    /// The most bytes its buffer ever held; zero without a buffer.
    pub fn high_water(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.most_bytes)
    }

    /// Time per worker.
    fn load(&self) -> Duration {
        self.own / self.workers.max(1) as u32
    }
}

/// What the stages of a run did so far, sources first. Printed, it is a table whose last line says where the pipeline waits.
#[derive(Clone, Debug)]
pub struct Report {
    /// The stages: each stands after its inputs.
    pub stages: Vec<StageReport>,
    /// Time since the iterator was started.
    pub elapsed: Duration,
}

impl Report {
    pub(crate) fn new(meters: &Meters, elapsed: Duration) -> Report {
        let meters = meters.all();
        // Consumers are started before their inputs, so the list backward has inputs first.
        let stages = (0..meters.len()).rev().map(|index| stage(&meters, index)).collect();
        Report { stages, elapsed }
    }

    /// The stage of this name that is nearest to the consumer.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().rev().find(|stage| stage.name == name)
    }

    /// Where the time goes, in words.
    pub fn bottleneck(&self) -> String {
        let Some(last) = self.stages.last() else {
            return "nothing ran yet".to_owned();
        };
        let percent = 100.0 * last.waited.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        if percent < 5.0 {
            return format!("the consumer is the slowest: it waited {percent:.1} % of the time for data");
        }
        let loads = self.stages.iter().map(StageReport::load).enumerate();
        let index = loads.max_by_key(|(_, load)| *load).map_or(0, |(index, _)| index);
        let name = self.stages[index].name;
        let is_source = !self.stages.iter().any(|stage| stage.consumer == Some(index));
        let background = self.stages.iter().any(|stage| stage.workers > 0);
        let advice = match name {
            "map" => "more workers would help (map_parallel)",
            "map_parallel" => "more workers would help, if there are cores for them",
            _ if is_source => "the source is the slowest; a cache would help if it is read again",
            _ if !background => "a prefetch at the end would do it while the consumer works",
            _ => "it is the slowest stage",
        };
        format!("waiting for `{name}`: {advice} (the consumer waited {percent:.0} % of the time)")
    }
}

fn stage(meters: &[Arc<Meter>], index: usize) -> StageReport {
    let meter = &meters[index];
    let inputs = meters.iter().filter(|input| input.consumer == Some(index));
    let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Relaxed));
    let waiting: Duration = inputs.map(|input| time(&input.waited)).sum();
    let (waited, workers) = (time(&meter.waited), meter.workers.load(Relaxed));
    // With threads of its own, its inputs are waited for there.
    let own = if workers > 0 { time(&meter.worked) } else { waited.saturating_sub(waiting) };
    let held = meter.buffer.get().map(|gauge| Held {
        room: gauge.room,
        elements: gauge.elements.load(Relaxed),
        bytes: gauge.bytes.load(Relaxed),
        most_elements: gauge.most_elements.load(Relaxed),
        most_bytes: gauge.most_bytes.load(Relaxed),
    });
    StageReport {
        name: meter.name,
        consumer: meter.consumer.map(|consumer| meters.len() - 1 - consumer),
        elements: meter.elements.load(Relaxed),
        own,
        waiting,
        waited,
        blocked: time(&meter.blocked),
        workers,
        held,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0).max(5);
        let head = ["elements", "own", "for input", "consumer", "no room", "holds", "at most"];
        write!(f, "{:<width$}", "stage")?;
        head.iter().try_for_each(|column| write!(f, "  {column:>10}"))?;
        for stage in &self.stages {
            let times = [stage.own, stage.waiting, stage.waited, stage.blocked].map(seconds);
            let held =
                stage.held.as_ref().map(|held| [held.bytes, held.most_bytes].map(|n| Bytes(n).to_string()));
            let [now, most] = held.unwrap_or_else(|| ["-", "-"].map(str::to_owned));
            write!(f, "\n{:<width$}  {:>10}", stage.name, stage.elements)?;
            times.iter().try_for_each(|time| write!(f, "  {time:>10}"))?;
            write!(f, "  {now:>10}  {most:>10}")?;
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
