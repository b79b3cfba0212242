//! Counters of running stages: a few relaxed additions per element.

use crate::buffer_size::BufferSize;
use crate::dataset::{Cursor, Dataset, PipelineStage, next_id};
use crate::element::DatasetElement;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use taut_core::{Error, Result};

/// The counters of one stage of one run.
#[derive(Debug)]
pub(crate) struct StageCounters {
    dataset: u64,
    pub(crate) name: &'static str,
    /// The index of the stage that reads its elements.
    pub(crate) consumer: Option<usize>,
    pub(crate) elements: AtomicU64,
    /// Nanoseconds that its consumer waited for it.
    pub(crate) waited: AtomicU64,
    /// Nanoseconds that its own threads worked.
    pub(crate) worked: AtomicU64,
    /// Nanoseconds that its own threads were blocked by a full buffer.
    pub(crate) blocked: AtomicU64,
    /// Errors that it left out.
    pub(crate) ignored: AtomicU64,
    /// The number of its own threads.
    pub(crate) workers: AtomicUsize,
    pub(crate) buffer: OnceLock<BufferCounters>,
    /// The epoch in which the stage was first started.
    first_epoch: OnceLock<u64>,
}

/// The contents of a buffer, now and at most so far.
#[derive(Debug)]
pub(crate) struct BufferCounters {
    pub(crate) buffer_size: Option<BufferSize>,
    pub(crate) elements: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
    pub(crate) most_elements: AtomicUsize,
    pub(crate) most_bytes: AtomicUsize,
}

impl BufferCounters {
    /// Sets the contents of the buffer.
    pub(crate) fn set(&self, elements: usize, bytes: usize) {
        self.elements.store(elements, Relaxed);
        self.bytes.store(bytes, Relaxed);
        self.most_elements.fetch_max(elements, Relaxed);
        self.most_bytes.fetch_max(bytes, Relaxed);
    }
}

impl StageCounters {
    /// How often the stage was repeated before this epoch of its run.
    pub(crate) fn repetition(&self, epoch: u64) -> u64 {
        epoch.wrapping_sub(*self.first_epoch.get_or_init(|| epoch))
    }

    /// The counters of the stage's buffer.
    pub(crate) fn buffer_counters(&self, buffer_size: Option<BufferSize>) -> &BufferCounters {
        self.buffer.get_or_init(|| BufferCounters {
            buffer_size,
            elements: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_elements: AtomicUsize::new(0),
            most_bytes: AtomicUsize::new(0),
        })
    }
}

/// Adds the time since `start`.
pub(crate) fn add(to: &AtomicU64, start: Instant) {
    to.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
}

/// The counters of all stages of one run, and what distinguishes the places at which a stage occurs in it.
#[derive(Debug)]
pub(crate) struct PipelineCounters {
    all: Mutex<Vec<Arc<StageCounters>>>,
    /// Set when the iterator is dropped, so that a stage that searches for an element stops.
    stopped: Arc<AtomicBool>,
    /// The stages that draw an order and occur before: their dataset and place, and how often they occurred.
    repeated: HashMap<(u64, u64), u64>,
    /// Which of the datasets that functions have made this is; 0 for the dataset that is iterated over.
    opened: u64,
    /// The id of the first dataset that was made after the run had begun.
    first_new: u64,
}

impl PipelineCounters {
    /// For a run of this dataset.
    pub(crate) fn of_run(dataset: &dyn PipelineStage) -> PipelineCounters {
        PipelineCounters::new(dataset, Arc::default(), 0, next_id())
    }

    fn new(
        dataset: &dyn PipelineStage,
        stopped: Arc<AtomicBool>,
        opened: u64,
        first_new: u64,
    ) -> PipelineCounters {
        let mut found = Occurrences::default();
        found.count(dataset, 0);
        let repeated = found.repeated;
        PipelineCounters { all: Mutex::default(), stopped, repeated, opened, first_new }
    }

    pub(crate) fn all(&self) -> Vec<Arc<StageCounters>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, every stage returns errors.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// The counters of a stage; the same ones when it is started again.
    fn stage_counters(
        &self,
        dataset: u64,
        name: &'static str,
        consumer: Option<usize>,
    ) -> (usize, Arc<StageCounters>) {
        let mut stages = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = stages.iter().position(|stage| stage.dataset == dataset && stage.consumer == consumer);
        let index = known.unwrap_or_else(|| {
            stages.push(Arc::new(StageCounters {
                dataset,
                name,
                consumer,
                elements: AtomicU64::new(0),
                waited: AtomicU64::new(0),
                worked: AtomicU64::new(0),
                blocked: AtomicU64::new(0),
                ignored: AtomicU64::new(0),
                workers: AtomicUsize::new(0),
                buffer: OnceLock::new(),
                first_epoch: OnceLock::new(),
            }));
            stages.len() - 1
        });
        (index, stages[index].clone())
    }
}

/// The stages of a pipeline that draw an order, counted.
#[derive(Default)]
struct Occurrences {
    /// How often each dataset occurs.
    counts: HashMap<u64, u64>,
    /// Those that occur before: their dataset and place, and how often they occurred.
    repeated: HashMap<(u64, u64), u64>,
    /// Datasets in which nothing draws an order. They are visited once: a dataset that is joined with itself many times over
    /// has more places than could be counted.
    fixed: HashSet<u64>,
}

impl Occurrences {
    /// Counts a dataset and its inputs. Returns whether one of them draws an order.
    fn count(&mut self, dataset: &dyn PipelineStage, place: u64) -> bool {
        if self.fixed.contains(&dataset.id()) {
            return false;
        }
        let mut draws = dataset.draws_order();
        if draws {
            let count = self.counts.entry(dataset.id()).or_insert(0);
            if *count > 0 {
                self.repeated.insert((dataset.id(), place), *count);
            }
            *count += 1;
        }
        let inputs = dataset.inputs();
        for (number, input) in inputs.iter().enumerate() {
            let place = if inputs.len() == 1 { place } else { mixed(place, number as u64 + 1) };
            draws |= self.count(*input, place);
        }
        if !draws && inputs.len() > 1 {
            self.fixed.insert(dataset.id());
        }
        draws
    }
}

/// A number for a path: that of the path so far and of the next step, which is not 0.
pub(crate) fn mixed(path: u64, step: u64) -> u64 {
    let bits = (path ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^ (bits >> 31)
}

/// The place of a stage in a pipeline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StagePlace {
    /// Which inputs of stages with several ones lead to it from the last stage.
    path: u64,
    /// Whether a cache reads it, whose elements are the same wherever it occurs.
    is_cached: bool,
}

/// The run of a stage: its counters, and what starts its inputs.
#[derive(Clone, Debug)]
pub(crate) struct StageRun {
    pipeline: Arc<PipelineCounters>,
    index: usize,
    place: StagePlace,
    pub(crate) counters: Arc<StageCounters>,
}

impl StageRun {
    pub(crate) fn begin<T: DatasetElement>(
        dataset: &Dataset<T>,
        pipeline: &Arc<PipelineCounters>,
        consumer: Option<usize>,
        place: StagePlace,
        epoch: u64,
    ) -> Result<StageInput<T>> {
        let (index, counters) = pipeline.stage_counters(dataset.id(), dataset.stage.name(), consumer);
        let run = StageRun { pipeline: pipeline.clone(), index, place, counters };
        let cursor = dataset.stage.start(&run, epoch)?;
        Ok(StageInput { cursor, counters: run.counters, stopped: pipeline.stopped.clone() })
    }

    /// Starts the dataset that a function has made of element `index` while the pipeline runs. Its counters are separate, as
    /// reports would otherwise grow with the data; its time counts as this stage's.
    pub(crate) fn start_aside<T: DatasetElement>(
        &self,
        dataset: &Dataset<T>,
        index: u64,
        epoch: u64,
    ) -> Result<StageInput<T>> {
        let steps = [self.place.path.wrapping_add(1), self.counters.repetition(epoch) + 1, index + 1];
        let opened = steps.into_iter().fold(self.pipeline.opened, mixed);
        let (stopped, first_new) = (self.pipeline.stopped.clone(), self.pipeline.first_new);
        let separate = PipelineCounters::new(dataset, stopped, opened, first_new);
        let place = StagePlace { path: 0, ..self.place };
        StageRun::begin(dataset, &Arc::new(separate), None, place, epoch)
    }

    /// Starts the only input of the stage.
    pub(crate) fn start<T: DatasetElement>(&self, input: &Dataset<T>, epoch: u64) -> Result<StageInput<T>> {
        StageRun::begin(input, &self.pipeline, Some(self.index), self.place, epoch)
    }

    /// Starts one of several inputs of the stage, by its number.
    pub(crate) fn start_one<T: DatasetElement>(
        &self,
        input: &Dataset<T>,
        number: usize,
        epoch: u64,
    ) -> Result<StageInput<T>> {
        let place = StagePlace { path: mixed(self.place.path, number as u64 + 1), ..self.place };
        StageRun::begin(input, &self.pipeline, Some(self.index), place, epoch)
    }

    /// Starts the input of a cache. Its elements are those of epoch 0, wherever the cache occurs.
    pub(crate) fn start_cached<T: DatasetElement>(&self, input: &Dataset<T>) -> Result<StageInput<T>> {
        let place = StagePlace { is_cached: true, ..self.place };
        StageRun::begin(input, &self.pipeline, Some(self.index), place, 0)
    }

    /// Which of the datasets that functions have made this is part of; 0 for one that is iterated over.
    pub(crate) fn opened(&self) -> u64 {
        if self.place.is_cached { 0 } else { self.pipeline.opened }
    }

    /// The epoch for the random numbers of the stage. A stage that occurs several times in a pipeline, `zip((d, d))`, draws
    /// an order for each, and so does a dataset that a function returns for several elements.
    pub(crate) fn drawing_epoch(&self, epoch: u64) -> u64 {
        if self.place.is_cached {
            return epoch;
        }
        let dataset = self.counters.dataset;
        let occurrence = self.pipeline.repeated.get(&(dataset, self.place.path)).copied().unwrap_or(0);
        // A stage that the function has made for this element occurs nowhere else.
        let opened = if dataset < self.pipeline.first_new { self.pipeline.opened } else { 0 };
        match (opened, occurrence) {
            (0, 0) => epoch,
            _ => epoch.wrapping_add(mixed(opened, occurrence + 1)),
        }
    }
}

/// A running stage as the input of its consumer, with counters of time and elements.
pub(crate) struct StageInput<T> {
    cursor: Box<dyn Cursor<T>>,
    counters: Arc<StageCounters>,
    stopped: Arc<AtomicBool>,
}

impl<T> StageInput<T> {
    /// The next element. Once the iterator is dropped, an error that is not an element: a stage that collects elements must
    /// stop at once.
    pub(crate) fn next(&mut self) -> Result<Option<T>> {
        self.check_not_stopped()?;
        let start = Instant::now();
        let next = self.cursor.next();
        add(&self.counters.waited, start);
        if !matches!(next, Ok(None)) {
            self.counters.elements.fetch_add(1, Relaxed);
        }
        next
    }

    /// As [`Cursor::expect`].
    pub(crate) fn expect(&mut self, count: usize) {
        self.cursor.expect(count);
    }

    /// As [`Cursor::try_stack`].
    pub(crate) fn try_stack(&mut self, count: usize) -> Option<(usize, Result<T>)> {
        if let Err(error) = self.check_not_stopped() {
            return Some((1, Err(error)));
        }
        let start = Instant::now();
        let (found, made) = self.cursor.try_stack(count)?;
        add(&self.counters.waited, start);
        self.counters.elements.fetch_add(found as u64, Relaxed);
        Some((found, made))
    }

    /// Skips the next `count` elements. Returns how many there were before the end.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64> {
        let start = Instant::now();
        let skipped = if count == 0 { Ok(0) } else { self.skip_untimed(count) };
        add(&self.counters.waited, start);
        skipped
    }

    fn skip_untimed(&mut self, count: u64) -> Result<u64> {
        self.check_not_stopped()?;
        if let Some(skipped) = self.cursor.try_skip(count)? {
            return Ok(skipped);
        }
        for skipped in 0..count {
            self.check_not_stopped()?;
            if let Ok(None) = self.cursor.next() {
                return Ok(skipped);
            }
        }
        Ok(count)
    }

    /// Whether the iterator was dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// An error once the iterator is dropped. Not the end of the sequence, which a cache would store.
    pub(crate) fn check_not_stopped(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::value("the iterator was dropped")) } else { Ok(()) }
    }
}
