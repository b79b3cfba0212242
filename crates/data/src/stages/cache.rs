//! `cache`: keeps the elements of the first run, in memory or in a file.

mod file;

use crate::buffer_size::BufferSize;
use crate::counters::{StageCounters, StageInput, StageRun};
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::{self, DatasetElement};
use file::{RecordFile, RecordReader, RecordWriter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use taut_core::{Error, Result, source_location};
use taut_memory::Location;

/// Where a cache keeps elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// In memory.
    Memory,
    /// In memory up to this many bytes; further elements go to a temporary file in this folder.
    MemoryUpTo(usize, PathBuf),
    /// In a file, which later runs of the program reuse. It exists only when it is complete.
    ///
    /// The file does not depend on the pipeline: remove it when the stages before the cache change.
    File(PathBuf),
}

struct CacheStage<T> {
    input: Dataset<T>,
    how: Cache,
    complete: Arc<Mutex<Option<Arc<CompleteCache<T>>>>>,
    at: Location,
}

/// A complete cache: the first elements in memory, the others in a file.
struct CompleteCache<T> {
    memory: Vec<T>,
    bytes: usize,
    file: Option<RecordFile>,
    /// An element whose structure the tensors of a record are put into.
    template: OnceLock<T>,
}

impl<T> CompleteCache<T> {
    fn count(&self) -> u64 {
        self.memory.len() as u64 + self.file.as_ref().map_or(0, RecordFile::count)
    }
}

enum CacheCursor<T> {
    /// The first run: elements pass through, and are kept.
    Filling {
        input: StageInput<T>,
        filler: Option<CacheFiller<T>>,
        complete: Arc<Mutex<Option<Arc<CompleteCache<T>>>>>,
        counters: Arc<StageCounters>,
    },
    /// Later runs: the cache is complete.
    Reading {
        complete: Arc<CompleteCache<T>>,
        next: u64,
        reader: Option<RecordReader>,
        input: Dataset<T>,
        run: StageRun,
    },
}

/// A cache that is being filled.
struct CacheFiller<T> {
    how: Cache,
    memory: Vec<T>,
    bytes: usize,
    writer: Option<RecordWriter>,
    template: Option<T>,
    at: Location,
}

impl<T: DatasetElement> Dataset<T> {
    /// Keeps the elements of the first complete run, and returns them in later runs without computing them.
    ///
    /// Stages before a cache run as epoch 0, so shuffle after it: a shuffle before it would have the same order in every
    /// epoch. A run that is incomplete, that starts in the middle or that has an error is not kept. A file stores tensors;
    /// the plain values of all elements must be equal. If a file cannot be written, the error replaces an element, and the
    /// run continues without the cache.
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
        Dataset::new(CacheStage {
            input: self.clone(),
            how,
            complete: Arc::default(),
            at: source_location(Location::caller()),
        })
    }
}

impl<T: DatasetElement> Stage<T> for CacheStage<T> {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn start(&self, run: &StageRun, _epoch: u64) -> Result<Box<dyn Cursor<T>>> {
        let buffer_size =
            if let Cache::MemoryUpTo(bytes, _) = self.how { Some(BufferSize::Bytes(bytes)) } else { None };
        let buffer_counters = run.counters.buffer_counters(buffer_size);
        let mut complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Cache::File(path)) = (&*complete, &self.how)
            && path.exists()
        {
            let file = Some(RecordFile::open(path).map_err(|error| error.about(path.display()).at(self.at))?);
            *complete = Some(Arc::new(CompleteCache {
                memory: Vec::new(),
                bytes: 0,
                file,
                template: OnceLock::new(),
            }));
        }
        if let Some(complete) = &*complete {
            buffer_counters.set(complete.memory.len(), complete.bytes);
            let (complete, input, run) = (complete.clone(), self.input.clone(), run.clone());
            return Ok(Box::new(CacheCursor::Reading { complete, next: 0, reader: None, input, run }));
        }
        let filler = CacheFiller {
            how: self.how.clone(),
            memory: Vec::new(),
            bytes: 0,
            writer: None,
            template: None,
            at: self.at,
        };
        Ok(Box::new(CacheCursor::Filling {
            input: run.start_cached(&self.input)?,
            filler: Some(filler),
            complete: self.complete.clone(),
            counters: run.counters.clone(),
        }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        vec![&self.input]
    }

    fn cardinality(&self) -> Cardinality {
        match &*self.complete.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(complete) => Cardinality::Known(complete.count()),
            None => self.input.cardinality(),
        }
    }

    fn bytes_each(&self) -> Option<usize> {
        self.input.stage.bytes_each()
    }
}

impl<T: DatasetElement> CacheFiller<T> {
    fn keep(&mut self, item: &T) -> Result<()> {
        let bytes = element::bytes(item);
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
        let template = self.template.get_or_insert_with(|| item.clone());
        if !element::is_alike(template, item) {
            return Err(Error::value("the structure and plain values of all elements must be equal")
                .help("a file stores only the tensors of elements; use Cache::Memory"));
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RecordWriter::create(&path)?),
        };
        writer.write(&element::tensors(item)).map_err(|error| error.about(path.display()))
    }

    /// Completes the cache.
    fn finish(mut self) -> Result<CompleteCache<T>> {
        let about = |path: &PathBuf, error: Error| error.about(path.display());
        let file = match (self.writer.take(), &self.how) {
            (writer, Cache::File(path)) => {
                let writer = writer.map_or_else(|| RecordWriter::create(path), Ok)?;
                Some(writer.finish_at(path).map_err(|error| about(path, error))?)
            }
            (Some(writer), Cache::MemoryUpTo(_, folder)) => {
                Some(writer.finish().map_err(|error| about(folder, error))?)
            }
            _ => None,
        };
        let template = self.template.map_or_else(OnceLock::new, OnceLock::from);
        Ok(CompleteCache { memory: self.memory, bytes: self.bytes, file, template })
    }
}

impl<T: DatasetElement> Cursor<T> for CacheCursor<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self {
            CacheCursor::Filling { input, filler, complete, counters } => {
                let next = match input.next() {
                    Ok(next) => next,
                    Err(error) => {
                        *filler = None;
                        return Err(error);
                    }
                };
                let Some(mut filling) = filler.take() else {
                    return Ok(next);
                };
                let at = filling.at;
                if let Some(item) = &next {
                    filling.keep(item).map_err(|error| error.about("the cache").at(at))?;
                    counters.buffer_counters(None).set(filling.memory.len(), filling.bytes);
                    *filler = Some(filling);
                } else {
                    let filled = filling.finish().map_err(|error| error.about("the cache").at(at))?;
                    let mut complete = complete.lock().unwrap_or_else(PoisonError::into_inner);
                    complete.get_or_insert_with(|| Arc::new(filled));
                }
                Ok(next)
            }
            CacheCursor::Reading { complete, next, reader, input, run } => {
                let index = *next;
                if index >= complete.count() {
                    return Ok(None);
                }
                *next += 1;
                let Some(file_index) = index.checked_sub(complete.memory.len() as u64) else {
                    return Ok(Some(complete.memory[index as usize].clone()));
                };
                let Some(records) = &complete.file else {
                    return Ok(None);
                };
                if complete.template.get().is_none() {
                    // A file from an earlier run: the first element of the pipeline gives the structure.
                    let first = run.start_cached(input)?.next()?.ok_or_else(|| {
                        Error::value("the cache has elements, but its input dataset has none")
                            .help("remove the file if the dataset changed")
                    })?;
                    let _ = complete.template.set(first);
                }
                let Some(template) = complete.template.get() else {
                    return Ok(None);
                };
                let reader = match reader {
                    Some(reader) => reader,
                    none => none.insert(records.reader()?),
                };
                let tensors = reader.read(records, file_index)?;
                let (expected, got) = (element::tensors(template).len(), tensors.len());
                if got != expected {
                    let message = format!("a cached element must have {expected} tensors, got {got}");
                    let error = Error::new(taut_core::ErrorKind::Format, message).about(records.name());
                    return Err(error.help("remove the file if the dataset changed"));
                }
                Ok(Some(template.rebuild(&mut tensors.into_iter())))
            }
        }
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        match self {
            CacheCursor::Filling { input, filler, .. } => {
                *filler = None;
                input.skip(count).map(Some)
            }
            CacheCursor::Reading { complete, next, .. } => {
                let skipped = count.min(complete.count() - *next);
                *next += skipped;
                Ok(Some(skipped))
            }
        }
    }
}
