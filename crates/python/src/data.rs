//! Datasets of Python's structures. Mapped functions are traced, and run outside of the interpreter lock.

use crate::call::{Held, call_back, into_python};
use crate::convert;
use crate::error::exception;
use crate::nest::{Leaves, Plain, Tree};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use taut::data::{self, BatchPadding, BufferSize, Cache, Cardinality, Position, Shuffle, Window};
use taut::memory::Bytes;
use taut::{OnRetrace, Tensor};

/// Elements that come one after the other.
#[pyclass(frozen, subclass, weakref, module = "taut")]
pub struct Dataset {
    inner: data::Dataset<Tree>,
    /// The Python function of its own stage. The garbage collector sees it here, and nowhere else.
    held: Option<Held>,
    /// The datasets that it is made of, which hold the functions of theirs.
    parents: Vec<Py<Dataset>>,
}

/// A dataset over this one.
fn then<'py>(slf: &Bound<'py, Dataset>, inner: data::Dataset<Tree>) -> PyResult<Bound<'py, PyAny>> {
    made(slf.py(), inner, None, std::slice::from_ref(slf))
}

/// A dataset over this one that holds a function.
fn with<'py>(
    slf: &Bound<'py, Dataset>,
    inner: data::Dataset<Tree>,
    function: Held,
) -> PyResult<Bound<'py, PyAny>> {
    made(slf.py(), inner, Some(function), std::slice::from_ref(slf))
}

fn object(py: Python<'_>, dataset: data::Dataset<Tree>) -> PyResult<Bound<'_, PyAny>> {
    made(py, dataset, None, &[])
}

fn made<'py>(
    py: Python<'py>,
    inner: data::Dataset<Tree>,
    held: Option<Held>,
    parents: &[Bound<'py, Dataset>],
) -> PyResult<Bound<'py, PyAny>> {
    let parents = parents.iter().map(|parent| parent.clone().unbind()).collect();
    Ok(Bound::new(py, Dataset { inner, held, parents })?.into_any())
}

/// A running dataset; nothing once it is closed.
struct Running {
    iter: Mutex<Option<data::Iter<Tree>>>,
    /// The thread that is asking it for something.
    asking: Mutex<Option<ThreadId>>,
}

/// All that run, to be closed before the interpreter ends: their threads call Python.
static ALL: Mutex<Vec<Weak<Running>>> = Mutex::new(Vec::new());

impl Running {
    fn new(iter: data::Iter<Tree>) -> Arc<Running> {
        let running = Arc::new(Running { iter: Mutex::new(Some(iter)), asking: Mutex::new(None) });
        let mut all = lock(&ALL);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&running));
        running
    }

    /// Asks it for something, in turn with other threads. What runs inside of it cannot.
    fn ask<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut data::Iter<Tree>) -> taut::Result<R> + Send,
    ) -> PyResult<R> {
        let me = std::thread::current().id();
        if *lock(&self.asking) == Some(me) {
            return Err(PyValueError::new_err("this iterator is running already, and asks itself"));
        }
        call_back(py, || {
            let mut iter = lock(&self.iter);
            let Some(iter) = iter.as_mut() else { return Err(taut::Error::value("the iterator is closed")) };
            *lock(&self.asking) = Some(me);
            let outcome = ask(iter);
            *lock(&self.asking) = None;
            outcome
        })
    }

    /// Ends it, without the interpreter lock: its threads may be waiting for that. If another thread is waiting for an element,
    /// it is given a moment.
    fn close(&self) {
        let work = || {
            let start = Instant::now();
            loop {
                match self.iter.try_lock() {
                    Ok(mut iter) => return iter.take(),
                    Err(TryLockError::Poisoned(iter)) => return iter.into_inner().take(),
                    Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return None,
                    Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        // Without an interpreter there is nobody for what it holds: that stays.
        Python::try_attach(|py| py.detach(|| drop(work())));
    }
}

/// How long an iterator that is being asked for an element is waited for when it is to end.
const PATIENCE: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes all iterators.
#[pyfunction]
pub fn close_iterators() {
    let all = std::mem::take(&mut *lock(&ALL));
    all.iter().filter_map(Weak::upgrade).for_each(|running| running.close());
}

/// A running dataset.
#[pyclass(frozen, weakref, module = "taut")]
pub struct DatasetIterator {
    running: Arc<Running>,
    dataset: Py<Dataset>,
}

impl Drop for DatasetIterator {
    fn drop(&mut self) {
        self.running.close();
    }
}

/// An element as a function's arguments: the parts of a tuple, or the element itself.
fn arguments<'py>(py: Python<'py>, element: &Tree) -> PyResult<Bound<'py, PyTuple>> {
    match element {
        Tree::Tuple(parts) => {
            let parts: Vec<Bound<'py, PyAny>> =
                parts.iter().map(|part| part.object(py)).collect::<PyResult<_>>()?;
            PyTuple::new(py, parts)
        }
        one => PyTuple::new(py, [one.object(py)?]),
    }
}

/// A Python function of elements, traced once per type and shape of them.
fn mapped(function: Held) -> impl Fn(Tree) -> taut::Result<Tree> + Send + Sync + Clone + 'static {
    let body = function.clone();
    let traced = taut::function(move |element: &Tree| {
        into_python(|py| Tree::of(&body.get(py)?.call1(arguments(py, element)?)?, Leaves::Tensors))
    });
    let traced = Arc::new(traced.named("map").on_retrace(OnRetrace::Allow));
    move |element: Tree| {
        if element.holds_objects() {
            // Datasets among the elements cannot be traced.
            return into_python(|py| {
                Tree::of(&function.get(py)?.call1(arguments(py, &element)?)?, Leaves::Tensors)
            });
        }
        traced.call(&element)
    }
}

/// A Python function that makes a dataset of each element.
fn expanded(function: Held) -> impl Fn(Tree) -> taut::Result<data::Dataset<Tree>> + Send + Sync + 'static {
    move |element: Tree| {
        into_python(|py| {
            let made = function.get(py)?.call1(arguments(py, &element)?)?;
            let made = made.getattr("_native").unwrap_or(made);
            let made = made.cast::<Dataset>().map_err(|_| {
                PyTypeError::new_err("the function must return a tf.data.Dataset for each element")
            })?;
            // Its functions are there as long as the object is.
            let kept = made.clone().unbind();
            Ok(made.get().inner.map(move |element| {
                let _ = &kept;
                Ok(element)
            }))
        })
    }
}

fn predicate(function: Held) -> impl Fn(&Tree) -> taut::Result<bool> + Send + Sync + 'static {
    let mapped = mapped(function);
    move |element: &Tree| match mapped(element.clone())? {
        Tree::Tensor(answer) => answer.item::<bool>(),
        _ => Err(taut::Error::dtype("the predicate must return one boolean")),
    }
}

/// The size of a buffer in elements or in bytes.
fn buffer_size(elements: Option<usize>, bytes: Option<usize>) -> BufferSize {
    bytes.map_or_else(|| BufferSize::from(elements.unwrap_or(1)), |bytes| BufferSize::from(Bytes(bytes)))
}

/// Elements that are there already.
fn from_list(elements: Vec<Tree>) -> data::Dataset<Tree> {
    let elements = Arc::new(elements);
    data::Dataset::from_generator(move || {
        let elements = elements.clone();
        (0..elements.len()).map(move |i| Ok(elements[i].clone()))
    })
}

/// The elements of a window: a dataset for each part of a tuple, or one.
fn window_of(elements: Vec<Tree>) -> taut::Result<Tree> {
    let held = |elements: Vec<Tree>| -> taut::Result<Tree> {
        into_python(|py| {
            let made = object(py, from_list(elements))?;
            let class = PyModule::import(py, "taut.data")?.getattr("Dataset")?;
            Ok(Tree::Value(Plain::Object(class.call_method1("_of", (made,))?.unbind())))
        })
    };
    match elements.first() {
        Some(Tree::Tuple(parts)) => {
            let count = parts.len();
            let column = |i: usize| -> Vec<Tree> {
                let part = |element: &Tree| match element {
                    Tree::Tuple(parts) => parts[i].clone(),
                    other => other.clone(),
                };
                elements.iter().map(part).collect()
            };
            Ok(Tree::Tuple((0..count).map(|i| held(column(i))).collect::<taut::Result<_>>()?))
        }
        _ => held(elements),
    }
}

/// Goes through a Python iterator, which is made anew for each run.
struct Generated {
    make: Held,
    running: Option<Py<PyAny>>,
    failed: bool,
}

impl Iterator for Generated {
    type Item = taut::Result<Tree>;

    fn next(&mut self) -> Option<taut::Result<Tree>> {
        if self.failed {
            return None;
        }
        let next = into_python(|py| {
            if self.running.is_none() {
                let made = self.make.get(py)?.call0()?;
                self.running = Some(made.try_iter()?.into_any().unbind());
            }
            let Some(running) = &self.running else { return Ok(None) };
            let mut running = running.bind(py).try_iter()?;
            // What it yields may be the same array each time.
            running.next().map(|element| Tree::of(&element?, Leaves::Copies)).transpose()
        });
        self.failed = next.is_err();
        next.transpose()
    }
}

#[pymethods]
impl Dataset {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.parents.iter().try_for_each(|parent| visit.call(parent))?;
        self.held.as_ref().map_or(Ok(()), |held| held.visit(&visit))
    }

    fn __clear__(&self) {
        if let Some(held) = &self.held {
            held.clear();
        }
    }

    #[staticmethod]
    fn from_tensor_slices<'py>(py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let tree = Tree::of(tensors, Leaves::Tensors)?;
        object(py, call_back(py, || data::Dataset::from_tensor_slices(tree))?)
    }

    #[staticmethod]
    fn from_tensors<'py>(py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        object(py, data::Dataset::from_tensors(Tree::of(tensors, Leaves::Tensors)?))
    }

    #[staticmethod]
    fn from_generator(py: Python<'_>, make: Py<PyAny>) -> PyResult<Bound<'_, PyAny>> {
        let held = Held::new(make);
        let make = held.clone();
        let inner = data::Dataset::from_generator(move || Generated {
            make: make.clone(),
            running: None,
            failed: false,
        });
        made(py, inner, Some(held), &[])
    }

    #[staticmethod]
    fn range<'py>(
        py: Python<'py>,
        start: i64,
        stop: i64,
        step: i64,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dtype = crate::dtype::given(dtype)?;
        let numbers = data::Dataset::range_by(start, stop, step).map_err(|error| exception(py, error))?;
        object(py, numbers.map(move |number: Tensor| taut::cast(number, dtype).map(Tree::Tensor)))
    }

    #[staticmethod]
    fn zip<'py>(py: Python<'py>, parts: Vec<Bound<'py, Dataset>>) -> PyResult<Bound<'py, PyAny>> {
        let Some((first, others)) = parts.split_first() else {
            return Err(PyTypeError::new_err("there is nothing to zip"));
        };
        let mut all = first.get().inner.map(|element| Ok(Tree::Tuple(vec![element])));
        for part in others {
            all = all.zip(&part.get().inner).map(|(all, one)| match all {
                Tree::Tuple(mut all) => {
                    all.push(one);
                    Ok(Tree::Tuple(all))
                }
                other => Ok(other),
            });
        }
        made(py, all, None, &parts)
    }

    #[staticmethod]
    fn sample_from<'py>(
        py: Python<'py>,
        parts: Vec<(Bound<'py, Dataset>, f64)>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (parents, weights): (Vec<_>, Vec<f64>) = parts.into_iter().unzip();
        let inner = parents.iter().map(|part| part.get().inner.clone());
        let parts: Vec<(data::Dataset<Tree>, f64)> = inner.zip(weights).collect();
        let sample = data::Dataset::sample_from(&parts, seed).map_err(|error| exception(py, error))?;
        made(py, sample, None, &parents)
    }

    fn map<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::new(function);
        let mapped = mapped(held.clone());
        let inner = match workers {
            None => slf.get().inner.map(mapped),
            Some(workers) => {
                slf.get().inner.map_parallel(workers, mapped).map_err(|error| exception(slf.py(), error))?
            }
        };
        with(slf, inner, held)
    }

    fn filter<'py>(slf: &Bound<'py, Self>, function: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::new(function);
        with(slf, slf.get().inner.filter(predicate(held.clone())), held)
    }

    fn take_while<'py>(slf: &Bound<'py, Self>, function: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::new(function);
        with(slf, slf.get().inner.take_while(predicate(held.clone())), held)
    }

    fn flat_map<'py>(slf: &Bound<'py, Self>, function: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::new(function);
        with(slf, slf.get().inner.flat_map(expanded(held.clone())), held)
    }

    fn interleave<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        cycle_length: usize,
        block_length: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::new(function);
        let inner = slf.get().inner.interleave(cycle_length, block_length, expanded(held.clone()));
        with(slf, inner.map_err(|error| exception(slf.py(), error))?, held)
    }

    fn batch<'py>(slf: &Bound<'py, Self>, size: usize, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        let made = if exact { slf.get().inner.batch_exact(size) } else { slf.get().inner.batch(size) };
        then(slf, made.map_err(|error| exception(slf.py(), error))?)
    }

    fn padded_batch<'py>(
        slf: &Bound<'py, Self>,
        size: usize,
        shapes: Vec<Option<Vec<Option<usize>>>>,
        values: Vec<Option<Bound<'py, PyAny>>>,
        exact: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut padding = BatchPadding::default();
        for (i, shape) in shapes.into_iter().enumerate() {
            if let Some(shape) = shape {
                padding = padding.shape(i, shape);
            }
        }
        for (i, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                let number = convert::number(&value)?
                    .map_or_else(|| convert::float(&value).map(taut::Scalar::Float), Ok)?;
                padding = padding.value(i, number);
            }
        }
        if exact {
            padding = padding.drop_remainder();
        }
        then(slf, slf.get().inner.padded_batch(size, padding).map_err(|error| exception(slf.py(), error))?)
    }

    fn unbatch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        then(slf, slf.get().inner.unbatch())
    }

    #[pyo3(signature = (elements, bytes, seed, each_epoch))]
    fn shuffle<'py>(
        slf: &Bound<'py, Self>,
        elements: Option<usize>,
        bytes: Option<usize>,
        seed: Option<u64>,
        each_epoch: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut how = Shuffle::new(buffer_size(elements, bytes)).each_epoch(each_epoch);
        if let Some(seed) = seed {
            how = how.seed(seed);
        }
        then(slf, slf.get().inner.shuffle(how).map_err(|error| exception(slf.py(), error))?)
    }

    fn repeat<'py>(slf: &Bound<'py, Self>, times: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        then(slf, slf.get().inner.repeat(times))
    }

    fn take<'py>(slf: &Bound<'py, Self>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        then(slf, slf.get().inner.take(count))
    }

    fn skip<'py>(slf: &Bound<'py, Self>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        then(slf, slf.get().inner.skip(count))
    }

    fn shard<'py>(slf: &Bound<'py, Self>, shards: u64, index: u64) -> PyResult<Bound<'py, PyAny>> {
        then(slf, slf.get().inner.shard(shards, index).map_err(|error| exception(slf.py(), error))?)
    }

    #[pyo3(signature = (path, bytes))]
    fn cache<'py>(
        slf: &Bound<'py, Self>,
        path: Option<PathBuf>,
        bytes: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = match (path, bytes) {
            (None, None) => Cache::Memory,
            (Some(path), None) => Cache::File(path),
            (folder, Some(bytes)) => Cache::MemoryUpTo(bytes, folder.unwrap_or_else(std::env::temp_dir)),
        };
        then(slf, slf.get().inner.cache(how))
    }

    #[pyo3(signature = (elements, bytes))]
    fn prefetch<'py>(
        slf: &Bound<'py, Self>,
        elements: Option<usize>,
        bytes: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        then(
            slf,
            slf.get()
                .inner
                .prefetch(buffer_size(elements, bytes))
                .map_err(|error| exception(slf.py(), error))?,
        )
    }

    fn enumerate<'py>(slf: &Bound<'py, Self>, start: i64) -> PyResult<Bound<'py, PyAny>> {
        let pair = |(number, element)| Ok(Tree::Tuple(vec![Tree::Tensor(number), element]));
        then(slf, slf.get().inner.enumerate(start).map(pair))
    }

    fn window<'py>(
        slf: &Bound<'py, Self>,
        size: usize,
        shift: usize,
        stride: usize,
        exact: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut how = Window::new(size).shift(shift).stride(stride);
        if exact {
            how = how.drop_remainder();
        }
        let windows = slf.get().inner.window(how).map_err(|error| exception(slf.py(), error))?;
        then(slf, windows.map(window_of))
    }

    fn concatenate<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Dataset>) -> PyResult<Bound<'py, PyAny>> {
        let inner = slf.get().inner.concatenate(&other.get().inner);
        made(slf.py(), inner, None, &[slf.clone(), other.clone()])
    }

    /// The number of elements; -1 if there is no end, -2 if only running it will tell.
    fn cardinality(&self) -> i64 {
        match self.inner.cardinality() {
            Cardinality::Known(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Cardinality::Infinite => -1,
            Cardinality::Unknown => -2,
        }
    }

    /// Starts the next epoch, or at a position: (epoch, elements delivered).
    #[pyo3(signature = (position=None))]
    fn iterate(slf: &Bound<'_, Self>, position: Option<(u64, u64)>) -> PyResult<DatasetIterator> {
        let inner = &slf.get().inner;
        let made = call_back(slf.py(), || match position {
            None => inner.iter(),
            Some((epoch, delivered)) => inner.iter_from(&Position { epoch, delivered }),
        })?;
        Ok(DatasetIterator { running: Running::new(made), dataset: slf.clone().unbind() })
    }
}

#[pymethods]
impl DatasetIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dataset)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = self.running.ask(py, |iter| iter.next().transpose()).map_err(|error| {
            // It would end the loop over the elements in silence.
            if error.is_instance_of::<PyStopIteration>(py) {
                let told = PyRuntimeError::new_err("a function of the dataset raised StopIteration");
                told.set_cause(py, Some(error));
                return told;
            }
            error
        })?;
        next.map(|element| element.object(py)).transpose()
    }

    /// Ends it: its threads, and what they hold.
    fn close(&self) {
        self.running.close();
    }

    /// Where it is: (epoch, elements delivered).
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let position = self.running.ask(py, |iter| Ok(data::Iter::position(iter)))?;
        Ok((position.epoch, position.delivered))
    }

    /// What each stage did so far and where the pipeline waits: a text, and rows of (stage, most bytes held).
    fn report(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, usize)>)> {
        let report = self.running.ask(py, |iter| Ok(iter.report()))?;
        let rows = report.stages.iter().map(|stage| (stage.name.to_string(), stage.high_water()));
        Ok((report.to_string(), rows.collect()))
    }
}

/// The handwritten digits that come with the package: images and labels to train with, and to test with.
#[pyfunction]
pub fn digits(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let split = call_back(py, data::digits)?;
    [split.train.0, split.train.1, split.test.0, split.test.1]
        .into_iter()
        .map(|tensor| crate::array::wrap(py, tensor))
        .collect()
}
