//! `cache`: what was made once is kept, in memory or in a file.

mod file;

use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::{self, Item};
use crate::meter::{Input, Meter, Run};
use crate::room::Room;
use file::{Reader, Records, Writer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use taut_core::{Error, Result};
use taut_memory::Location;

/// Where a cache keeps elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// In memory, all of them.
    Memory,
    /// In memory up to so many bytes; what is beyond goes to a file in this folder, which is removed in the end.
    MemoryUpTo(usize, PathBuf),
    /// In a file, which later runs of the program find again. It is there when it is complete, and never in part.
    ///
    /// Nothing tells whether the pipeline is still the one that made the file: remove it when you change what comes before.
    File(PathBuf),
}

struct Cached<T> {
    input: Dataset<T>,
    how: Cache,
    whole: Arc<Mutex<Option<Arc<Whole<T>>>>>,
    at: Location,
}

/// A complete cache: the first elements in memory, the others in a file.
struct Whole<T> {
    memory: Vec<T>,
    bytes: usize,
    file: Option<Records>,
    /// An element that shows how the tensors of a record are put together.
    model: OnceLock<T>,
}

impl<T> Whole<T> {
    fn count(&self) -> u64 {
        self.memory.len() as u64 + self.file.as_ref().map_or(0, Records::count)
    }
}

enum CacheCursor<T> {
    /// The first time: elements pass through, and are kept.
    Filling {
        input: Input<T>,
        keeps: Option<Keeps<T>>,
        whole: Arc<Mutex<Option<Arc<Whole<T>>>>>,
        meter: Arc<Meter>,
    },
    /// They are all there.
    Reading { whole: Arc<Whole<T>>, next: u64, reader: Option<Reader>, input: Dataset<T>, run: Run },
}

/// A cache in the making.
struct Keeps<T> {
    how: Cache,
    memory: Vec<T>,
    bytes: usize,
    writer: Option<Writer>,
    model: Option<T>,
    at: Location,
}

impl<T: Item> Dataset<T> {
    /// Keeps the elements of the first complete run, and gives them again in later ones without making them.
    ///
    /// What comes before a cache runs as epoch 0, so a shuffle belongs after it: one before it would give the same order in every
    /// epoch. A run that is not complete, that begins in the middle or that has an error in it keeps nothing. Elements in files
    /// are made of tensors; plain values in them must all be equal. If a file cannot be written, the error takes the place of
    /// an element, and the run goes on without keeping.
    ///
    /// ```
    /// use taut_data::{Cache, Dataset};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let made = Arc::new(AtomicUsize::new(0));
    /// let count = made.clone();
    /// let costly = Dataset::range(0..5).map(move |x| { count.fetch_add(1, Ordering::Relaxed); Ok(x) });
    /// assert_eq!(costly.cache(Cache::Memory).repeat(3).iter()?.count(), 15);
    /// assert_eq!(made.load(Ordering::Relaxed), 5);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn cache(&self, how: Cache) -> Dataset<T> {
        Dataset::new(Cached { input: self.clone(), how, whole: Arc::default(), at: Location::caller() })
    }
}

impl<T: Item> Stage<T> for Cached<T> {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn start(&self, run: &Run, _epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let room = if let Cache::MemoryUpTo(bytes, _) = self.how { Some(Room::Bytes(bytes)) } else { None };
        let gauge = run.meter.gauge(room);
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Cache::File(path)) = (&*whole, &self.how)
            && path.exists()
        {
            let file = Some(Records::open(path).map_err(|error| error.about(path.display()).at(self.at))?);
            *whole = Some(Arc::new(Whole { memory: Vec::new(), bytes: 0, file, model: OnceLock::new() }));
        }
        if let Some(whole) = &*whole {
            gauge.set(whole.memory.len(), whole.bytes);
            let (whole, input, run) = (whole.clone(), self.input.clone(), run.clone());
            return Ok(Box::new(CacheCursor::Reading { whole, next: 0, reader: None, input, run }));
        }
        let keeps = Keeps {
            how: self.how.clone(),
            memory: Vec::new(),
            bytes: 0,
            writer: None,
            model: None,
            at: self.at,
        };
        Ok(Box::new(CacheCursor::Filling {
            input: run.start(&self.input, 0)?,
            keeps: Some(keeps),
            whole: self.whole.clone(),
            meter: run.meter.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match &*self.whole.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(whole) => Cardinality::Known(whole.count()),
            None => self.input.cardinality(),
        }
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: Item> Keeps<T> {
    fn keep(&mut self, item: &T) -> Result<()> {
        let bytes = item::bytes(item);
        let folder = match &self.how {
            Cache::Memory => None,
            Cache::MemoryUpTo(most, _) if self.writer.is_none() && self.bytes + bytes <= *most => None,
            Cache::MemoryUpTo(_, folder) => Some(folder.join("taut-cache")),
            Cache::File(path) => Some(path.clone()),
        };
        let Some(path) = folder else {
            self.bytes += bytes;
            self.memory.push(item.clone());
            return Ok(());
        };
        let model = self.model.get_or_insert_with(|| item.clone());
        if !item::is_alike(model, item) {
            return Err(Error::value("it is made of other parts, or other plain values, than those before it")
                .help("a cache in a file keeps tensors; what else elements are made of must be the same in all of them"));
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::create(&path)?),
        };
        writer.write(&item::tensors(item)).map_err(|error| error.about(path.display()))
    }

    /// Completes the cache.
    fn finish(mut self) -> Result<Whole<T>> {
        let about = |path: &PathBuf, error: Error| error.about(path.display());
        let file = match (self.writer.take(), &self.how) {
            (writer, Cache::File(path)) => {
                let writer = writer.map_or_else(|| Writer::create(path), Ok)?;
                Some(writer.finish_at(path).map_err(|error| about(path, error))?)
            }
            (Some(writer), Cache::MemoryUpTo(_, folder)) => {
                Some(writer.finish().map_err(|error| about(folder, error))?)
            }
            _ => None,
        };
        let model = self.model.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Whole { memory: self.memory, bytes: self.bytes, file, model })
    }
}

impl<T: Item> Cursor<T> for CacheCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self {
            CacheCursor::Filling { input, keeps, whole, meter } => {
                let next = match input.next() {
                    Ok(next) => next,
                    Err(error) => {
                        *keeps = None;
                        return Err(error);
                    }
                };
                let Some(mut keeping) = keeps.take() else {
                    return Ok(next);
                };
                let at = keeping.at;
                if let Some(item) = &next {
                    keeping.keep(item).map_err(|error| error.about("the cache").at(at))?;
                    meter.gauge(None).set(keeping.memory.len(), keeping.bytes);
                    *keeps = Some(keeping);
                } else {
                    let complete = keeping.finish().map_err(|error| error.about("the cache").at(at))?;
                    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    whole.get_or_insert_with(|| Arc::new(complete));
                }
                Ok(next)
            }
            CacheCursor::Reading { whole, next, reader, input, run } => {
                let index = *next;
                if index >= whole.count() {
                    return Ok(None);
                }
                *next += 1;
                let Some(file_index) = index.checked_sub(whole.memory.len() as u64) else {
                    return Ok(Some(whole.memory[index as usize].clone()));
                };
                let Some(records) = &whole.file else {
                    return Ok(None);
                };
                if whole.model.get().is_none() {
                    // A file from an earlier run: the first element of the pipeline shows what elements look like.
                    let first = run.start(input, 0)?.next()?.ok_or_else(|| {
                        Error::value("the cache has elements, and the dataset that it is a cache of has none")
                    })?;
                    let _ = whole.model.set(first);
                }
                let Some(model) = whole.model.get() else {
                    return Ok(None);
                };
                let reader = match reader {
                    Some(reader) => reader,
                    none => none.insert(records.reader()?),
                };
                let tensors = reader.read(records, file_index)?;
                let wanted = item::tensors(model).len();
                if tensors.len() != wanted {
                    let message =
                        format!("it has elements of {} tensors, and the pipeline of {wanted}", tensors.len());
                    return Err(Error::new(taut_core::ErrorKind::Format, message).about(records.name()));
                }
                Ok(Some(model.rebuild(&mut tensors.into_iter())))
            }
        }
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        match self {
            CacheCursor::Filling { input, keeps, .. } => {
                *keeps = None;
                input.skip(count).map(Some)
            }
            CacheCursor::Reading { whole, next, .. } => {
                let passed = count.min(whole.count() - *next);
                *next += passed;
                Ok(Some(passed))
            }
        }
    }
}
