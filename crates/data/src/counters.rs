//! What stages count while they run: a few relaxed additions per element.

use crate::dataset::{Cursor, Dataset};
use crate::item::Item;
use crate::room::Room;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use taut_core::{Error, Result};

/// The counters of one stage of one run.
#[derive(Debug)]
pub(crate) struct Meter {
    dataset: u64,
    pub(crate) name: &'static str,
    /// The stage that takes its elements.
    pub(crate) consumer: Option<usize>,
    pub(crate) elements: AtomicU64,
    /// Nanoseconds that its consumer spent in it.
    pub(crate) waited: AtomicU64,
    /// Nanoseconds of work that threads of its own did.
    pub(crate) worked: AtomicU64,
    /// Nanoseconds that threads of its own had nowhere to put an element.
    pub(crate) blocked: AtomicU64,
    /// Threads of its own.
    pub(crate) workers: AtomicUsize,
    pub(crate) buffer: OnceLock<Gauge>,
}

/// What a buffer holds, and the most it ever held.
#[derive(Debug)]
pub(crate) struct Gauge {
    pub(crate) room: Option<Room>,
    pub(crate) elements: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
    pub(crate) most_elements: AtomicUsize,
    pub(crate) most_bytes: AtomicUsize,
}

impl Gauge {
    /// Says what the buffer holds now.
    pub(crate) fn set(&self, elements: usize, bytes: usize) {
        self.elements.store(elements, Relaxed);
        self.bytes.store(bytes, Relaxed);
        self.most_elements.fetch_max(elements, Relaxed);
        self.most_bytes.fetch_max(bytes, Relaxed);
    }
}

impl Meter {
    /// The gauge of the stage's buffer.
    pub(crate) fn gauge(&self, room: Option<Room>) -> &Gauge {
        self.buffer.get_or_init(|| Gauge {
            room,
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

/// The meters of one run.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    all: Mutex<Vec<Arc<Meter>>>,
    /// Set when the iterator is dropped, so that a stage which looks for an element in vain stops looking.
    stopped: Arc<AtomicBool>,
}

impl Meters {
    pub(crate) fn all(&self) -> Vec<Arc<Meter>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, every stage gives errors.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// The meter of a stage, which it keeps when it is started again.
    fn enter(&self, dataset: u64, name: &'static str, consumer: Option<usize>) -> (usize, Arc<Meter>) {
        let mut meters = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = meters.iter().position(|meter| meter.dataset == dataset && meter.consumer == consumer);
        let index = known.unwrap_or_else(|| {
            meters.push(Arc::new(Meter {
                dataset,
                name,
                consumer,
                elements: AtomicU64::new(0),
                waited: AtomicU64::new(0),
                worked: AtomicU64::new(0),
                blocked: AtomicU64::new(0),
                workers: AtomicUsize::new(0),
                buffer: OnceLock::new(),
            }));
            meters.len() - 1
        });
        (index, meters[index].clone())
    }
}

/// A stage's place in a run: where its own counters are, and what starts its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    meters: Arc<Meters>,
    index: usize,
    pub(crate) meter: Arc<Meter>,
}

impl Run {
    pub(crate) fn begin<T: Item>(
        dataset: &Dataset<T>,
        meters: &Arc<Meters>,
        consumer: Option<usize>,
        epoch: u64,
    ) -> Result<Input<T>> {
        let (index, meter) = meters.enter(dataset.id(), dataset.stage.name(), consumer);
        let run = Run { meters: meters.clone(), index, meter };
        let cursor = dataset.stage.start(&run, epoch)?;
        Ok(Input { cursor, meter: run.meter, stopped: meters.stopped.clone() })
    }

    /// Starts a dataset that is made while the pipeline runs. Reports would grow with the data if each of them had counters
    /// there: their time is this stage's.
    pub(crate) fn start_aside<T: Item>(&self, dataset: &Dataset<T>, epoch: u64) -> Result<Input<T>> {
        let meters = Meters { all: Mutex::default(), stopped: self.meters.stopped.clone() };
        Run::begin(dataset, &Arc::new(meters), None, epoch)
    }

    /// Starts an input of the stage.
    pub(crate) fn start<T: Item>(&self, input: &Dataset<T>, epoch: u64) -> Result<Input<T>> {
        Run::begin(input, &self.meters, Some(self.index), epoch)
    }
}

/// A started stage, as its consumer sees it: with a clock on it.
pub(crate) struct Input<T> {
    cursor: Box<dyn Cursor<T>>,
    meter: Arc<Meter>,
    stopped: Arc<AtomicBool>,
}

impl<T> Input<T> {
    /// What is in the next place. Once nobody wants it any more, an error that takes no place: who collects places must
    /// then stop at once.
    pub(crate) fn next(&mut self) -> Result<Option<T>> {
        self.wanted()?;
        let start = Instant::now();
        let next = self.cursor.next();
        add(&self.meter.waited, start);
        if !matches!(next, Ok(None)) {
            self.meter.elements.fetch_add(1, Relaxed);
        }
        next
    }

    /// Passes over the next `count` places. Returns how many there were before the end.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64> {
        let start = Instant::now();
        let passed = if count == 0 { Ok(0) } else { self.pass(count) };
        add(&self.meter.waited, start);
        passed
    }

    fn pass(&mut self, count: u64) -> Result<u64> {
        self.wanted()?;
        if let Some(passed) = self.cursor.jump(count)? {
            return Ok(passed);
        }
        for passed in 0..count {
            self.wanted()?;
            if let Ok(None) = self.cursor.next() {
                return Ok(passed);
            }
        }
        Ok(count)
    }

    /// Whether the iterator was dropped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// An error once the iterator was dropped. Not the end: a cache must not take it for that.
    pub(crate) fn wanted(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::value("the iterator was dropped")) } else { Ok(()) }
    }
}
