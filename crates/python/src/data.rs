//! Datasets of Python structures. Mapped functions are traced and run without the interpreter lock.

use crate::call::{PyFunctionRef, call_back, into_python};
use crate::convert;
use crate::error::exception;
use crate::line::at_line;
use crate::mapped::{arguments, joined_composites, predicate, split_composites, traced};
use crate::nest::{Leaves, Tree};
use crate::random::with_seed;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use taut::Tensor;
use taut::data::{self, BatchPadding, BufferSize, Cache, Cardinality, Position, Shuffle, Window};
use taut::memory::Bytes;

/// A sequence of elements.
#[pyclass(frozen, subclass, weakref, module = "taut")]
pub struct Dataset {
    inner: data::Dataset<Tree>,
    /// The Python function of this stage. It is reported to the garbage collector here only.
    function: Option<PyFunctionRef>,
    /// The datasets that this one is built on, which own their functions.
    parents: Vec<Py<Dataset>>,
    /// The stages from a source to this one, the longest way.
    depth: usize,
}

/// A dataset built on this one.
fn stage<'py>(slf: &Bound<'py, Dataset>, inner: data::Dataset<Tree>) -> PyResult<Bound<'py, PyAny>> {
    wrap(slf.py(), inner, None, std::slice::from_ref(slf))
}

/// A dataset built on this one with a function.
fn stage_with<'py>(
    slf: &Bound<'py, Dataset>,
    inner: data::Dataset<Tree>,
    function: PyFunctionRef,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(slf.py(), inner, Some(function), std::slice::from_ref(slf))
}

pub fn source(py: Python<'_>, dataset: data::Dataset<Tree>) -> PyResult<Bound<'_, PyAny>> {
    wrap(py, dataset, None, &[])
}

/// The most stages behind each other. A stage calls the one before it, and the stack of a thread ends.
const DEEPEST: usize = 4096;

fn wrap<'py>(
    py: Python<'py>,
    inner: data::Dataset<Tree>,
    function: Option<PyFunctionRef>,
    parents: &[Bound<'py, Dataset>],
) -> PyResult<Bound<'py, PyAny>> {
    let depth = 1 + parents.iter().map(|parent| parent.get().depth).max().unwrap_or(0);
    if depth > DEEPEST {
        return Err(PyValueError::new_err(format!(
            "a dataset must have at most {DEEPEST} stages behind each other\n  help: Dataset.zip, \
             sample_from_datasets and flat_map join many datasets in one stage"
        )));
    }
    let parents = parents.iter().map(|parent| parent.clone().unbind()).collect();
    Ok(Bound::new(py, Dataset { inner, function, parents, depth })?.into_any())
}

/// A running iterator; `None` once it is closed.
struct RunningIterator {
    iter: Mutex<Option<data::Iter<Tree>>>,
    /// The thread that is using it.
    user: Mutex<Option<ThreadId>>,
}

/// All running iterators, which are closed before the interpreter ends: their threads call Python.
static RUNNING: Mutex<Vec<Weak<RunningIterator>>> = Mutex::new(Vec::new());

impl RunningIterator {
    fn new(iter: data::Iter<Tree>) -> Arc<RunningIterator> {
        let running = Arc::new(RunningIterator { iter: Mutex::new(Some(iter)), user: Mutex::new(None) });
        let mut all = lock(&RUNNING);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&running));
        running
    }

    /// Uses the iterator, exclusively among threads. A callback that runs inside of it cannot.
    fn with_iter<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut data::Iter<Tree>) -> taut::Result<R> + Send,
    ) -> PyResult<R> {
        let me = std::thread::current().id();
        if *lock(&self.user) == Some(me) {
            return Err(PyValueError::new_err(
                "the iterator is already in use by this thread: a function of the dataset must not use its own iterator",
            ));
        }
        call_back(py, || {
            let mut iter = lock(&self.iter);
            let Some(iter) = iter.as_mut() else { return Err(taut::Error::value("the iterator is closed")) };
            *lock(&self.user) = Some(me);
            let outcome = work(iter);
            *lock(&self.user) = None;
            outcome
        })
    }

    /// Closes the iterator without the interpreter lock, for which its threads may be waiting. If another thread is using it,
    /// waits up to `CLOSE_TIMEOUT`.
    fn close(&self) {
        let work = || {
            let start = Instant::now();
            loop {
                match self.iter.try_lock() {
                    Ok(mut iter) => return iter.take(),
                    Err(TryLockError::Poisoned(iter)) => return iter.into_inner().take(),
                    Err(TryLockError::WouldBlock) if start.elapsed() > CLOSE_TIMEOUT => return None,
                    Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        // Without an interpreter, Python objects cannot be freed: they are leaked.
        Python::try_attach(|py| py.detach(|| drop(work())));
    }
}

/// How long `close` waits for a thread that is using the iterator.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes all iterators.
#[pyfunction]
pub fn close_iterators() {
    let all = std::mem::take(&mut *lock(&RUNNING));
    all.iter().filter_map(Weak::upgrade).for_each(|running| running.close());
}

/// An iterator over a dataset.
#[pyclass(frozen, weakref, module = "taut")]
pub struct DatasetIterator {
    running: Arc<RunningIterator>,
    dataset: Py<Dataset>,
}

impl Drop for DatasetIterator {
    fn drop(&mut self) {
        self.running.close();
    }
}

/// A Python function that maps each element to a dataset.
fn expanded(
    function: PyFunctionRef,
    seed: Option<u64>,
) -> impl Fn(Tree) -> taut::Result<data::Dataset<Tree>> + Send + Sync + 'static {
    move |element: Tree| {
        into_python(|py| {
            let made = with_seed(seed, || function.get(py)?.call1(arguments(py, &element)?))?;
            let made = made.getattr("_native").unwrap_or(made);
            let made = made.cast::<Dataset>().map_err(|_| {
                PyTypeError::new_err("the function must return a tf.data.Dataset for each element")
            })?;
            // The object owns the dataset's functions, so it is kept alive.
            let owner = made.clone().unbind();
            Ok(made.get().inner.map(move |element| {
                let _ = &owner;
                Ok(element)
            }))
        })
    }
}

/// The size of a buffer in elements or in bytes.
fn buffer_size(elements: Option<usize>, bytes: Option<usize>) -> BufferSize {
    bytes.map_or_else(|| BufferSize::from(elements.unwrap_or(1)), |bytes| BufferSize::from(Bytes(bytes)))
}

/// Iterates over a Python iterator, which is created anew for each iteration.
struct GeneratorElements {
    make: PyFunctionRef,
    running: Option<Py<PyAny>>,
    failed: bool,
}

impl Iterator for GeneratorElements {
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
            // Copied: a generator may yield the same array each time.
            running.next().map(|element| Tree::of(&element?, Leaves::Copies)).transpose()
        });
        // An iterator ends by itself, and goes on after an element that does not fit. One that cannot be made is not made again.
        self.failed = next.is_err() && self.running.is_none();
        next.transpose()
    }
}

#[pymethods]
impl Dataset {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.parents.iter().try_for_each(|parent| visit.call(parent))?;
        self.function.as_ref().map_or(Ok(()), |function| function.visit(&visit))
    }

    fn __clear__(&self) {
        if let Some(function) = &self.function {
            function.clear();
        }
    }

    #[staticmethod]
    fn from_tensor_slices<'py>(py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let tree = Tree::of(tensors, Leaves::Tensors)?;
        source(py, call_back(py, || data::Dataset::from_tensor_slices(tree))?)
    }

    #[staticmethod]
    fn from_tensors<'py>(py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let tree = Tree::of(tensors, Leaves::Tensors)?;
        source(py, at_line(py, || data::Dataset::from_tensors(tree)))
    }

    #[staticmethod]
    fn from_generator(py: Python<'_>, make: Py<PyAny>) -> PyResult<Bound<'_, PyAny>> {
        let function = PyFunctionRef::new(make);
        let make = function.clone();
        let inner = data::Dataset::from_generator(move || GeneratorElements {
            make: make.clone(),
            running: None,
            failed: false,
        });
        wrap(py, inner, Some(function), &[])
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
        let numbers = at_line(py, || data::Dataset::range_by(start, stop, step))
            .map_err(|error| exception(py, error))?;
        source(py, numbers.map(move |number: Tensor| taut::cast(number, dtype).map(Tree::Tensor)))
    }

    #[staticmethod]
    fn zip<'py>(py: Python<'py>, parts: Vec<Bound<'py, Dataset>>) -> PyResult<Bound<'py, PyAny>> {
        let Some((first, others)) = parts.split_first() else {
            return Err(PyTypeError::new_err("zip needs at least one dataset"));
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
        wrap(py, all, None, &parts)
    }

    #[staticmethod]
    fn sample_from<'py>(
        py: Python<'py>,
        parts: Vec<(Bound<'py, Dataset>, f64)>,
        seed: u64,
        each_epoch: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (parents, weights): (Vec<_>, Vec<f64>) = parts.into_iter().unzip();
        let inner = parents.iter().map(|part| part.get().inner.clone());
        let parts: Vec<(data::Dataset<Tree>, f64)> = inner.zip(weights).collect();
        let how = data::Sampling::new(seed).each_epoch(each_epoch);
        let sample = data::Dataset::sample_from(&parts, how).map_err(|error| exception(py, error))?;
        wrap(py, sample, None, &parents)
    }

    #[pyo3(signature = (function, workers, seed=None))]
    fn map<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        workers: Option<usize>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        let mapped = traced(function.clone(), seed);
        let inner = match workers {
            None => slf.get().inner.map(mapped),
            Some(workers) => {
                slf.get().inner.map_parallel(workers, mapped).map_err(|error| exception(slf.py(), error))?
            }
        };
        stage_with(slf, inner, function)
    }

    #[pyo3(signature = (function, seed=None))]
    fn filter<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        stage_with(slf, slf.get().inner.filter(predicate(function.clone(), seed)), function)
    }

    #[pyo3(signature = (function, seed=None))]
    fn take_while<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        stage_with(slf, slf.get().inner.take_while(predicate(function.clone(), seed)), function)
    }

    #[pyo3(signature = (function, seed=None))]
    fn flat_map<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        stage_with(slf, slf.get().inner.flat_map(expanded(function.clone(), seed)), function)
    }

    #[pyo3(signature = (function, cycle_length, block_length, seed=None))]
    fn interleave<'py>(
        slf: &Bound<'py, Self>,
        function: Py<PyAny>,
        cycle_length: usize,
        block_length: usize,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        let inner = slf.get().inner.interleave(cycle_length, block_length, expanded(function.clone(), seed));
        stage_with(slf, inner.map_err(|error| exception(slf.py(), error))?, function)
    }

    /// Leaves out elements that are errors, unless the function raises again what it is called with.
    fn ignore_errors<'py>(slf: &Bound<'py, Self>, function: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let function = PyFunctionRef::new(function);
        let on_error = function.clone();
        let inner = slf.get().inner.ignore_errors(move |error| {
            into_python(|py| on_error.get(py)?.call1((exception(py, error),)).map(drop))
        });
        stage_with(slf, inner, function)
    }

    fn batch<'py>(slf: &Bound<'py, Self>, size: usize, exact: bool) -> PyResult<Bound<'py, PyAny>> {
        let made = at_line(slf.py(), || slf.get().inner.batch_with(size, exact, joined_composites));
        stage(slf, made.map_err(|error| exception(slf.py(), error))?)
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
                if crate::strings::is_strings(&value) {
                    let text = crate::strings::strings_of(&value)?;
                    let text = text.item().map_err(|error| exception(slf.py(), error))?;
                    padding = padding.string(i, text);
                    continue;
                }
                let number = convert::number(&value)?
                    .map_or_else(|| convert::float(&value).map(taut::Scalar::Float), Ok)?;
                padding = padding.value(i, number);
            }
        }
        if exact {
            padding = padding.drop_remainder();
        }
        let tensors = slf.get().inner.map(|element| {
            let message =
                "padded_batch: elements must be tensors, got a ragged or sparse tensor, or another object";
            if element.holds_composites() { Err(taut::Error::dtype(message)) } else { Ok(element) }
        });
        let made = at_line(slf.py(), || tensors.padded_batch(size, padding));
        stage(slf, made.map_err(|error| exception(slf.py(), error))?)
    }

    fn unbatch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        stage(slf, at_line(slf.py(), || slf.get().inner.unbatch_with(split_composites)))
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
        let made = at_line(slf.py(), || slf.get().inner.shuffle(how));
        stage(slf, made.map_err(|error| exception(slf.py(), error))?)
    }

    fn repeat<'py>(slf: &Bound<'py, Self>, times: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        stage(slf, slf.get().inner.repeat(times))
    }

    fn take<'py>(slf: &Bound<'py, Self>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        stage(slf, slf.get().inner.take(count))
    }

    fn skip<'py>(slf: &Bound<'py, Self>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        stage(slf, slf.get().inner.skip(count))
    }

    fn shard<'py>(slf: &Bound<'py, Self>, shards: u64, index: u64) -> PyResult<Bound<'py, PyAny>> {
        stage(slf, slf.get().inner.shard(shards, index).map_err(|error| exception(slf.py(), error))?)
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
        stage(slf, at_line(slf.py(), || slf.get().inner.cache(how)))
    }

    #[pyo3(signature = (elements, bytes))]
    fn prefetch<'py>(
        slf: &Bound<'py, Self>,
        elements: Option<usize>,
        bytes: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = at_line(slf.py(), || slf.get().inner.prefetch(buffer_size(elements, bytes)));
        stage(slf, made.map_err(|error| exception(slf.py(), error))?)
    }

    fn enumerate<'py>(slf: &Bound<'py, Self>, start: i64) -> PyResult<Bound<'py, PyAny>> {
        let pair = |(number, element)| Ok(Tree::Tuple(vec![Tree::Tensor(number), element]));
        stage(slf, at_line(slf.py(), || slf.get().inner.enumerate(start)).map(pair))
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
        stage(slf, windows.map(crate::window::window_of))
    }

    fn concatenate<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Dataset>) -> PyResult<Bound<'py, PyAny>> {
        let inner = slf.get().inner.concatenate(&other.get().inner);
        wrap(slf.py(), inner, None, &[slf.clone(), other.clone()])
    }

    /// The datasets that this one is built on.
    #[getter]
    fn parents(&self, py: Python<'_>) -> Vec<Py<Dataset>> {
        self.parents.iter().map(|parent| parent.clone_ref(py)).collect()
    }

    /// States the number of elements; -1 if it is infinite, -2 if it is unknown.
    fn assert_cardinality<'py>(slf: &Bound<'py, Self>, count: i64) -> PyResult<Bound<'py, PyAny>> {
        let cardinality = match count {
            -1 => Cardinality::Infinite,
            _ => u64::try_from(count).map_or(Cardinality::Unknown, Cardinality::Known),
        };
        stage(slf, slf.get().inner.assert_cardinality(cardinality))
    }

    /// The number of elements; -1 if it is infinite, -2 if it is unknown.
    fn cardinality(&self) -> i64 {
        match self.inner.cardinality() {
            Cardinality::Known(count) => i64::try_from(count).unwrap_or(i64::MAX),
            Cardinality::Infinite => -1,
            Cardinality::Unknown => -2,
        }
    }

    /// An iterator over the next epoch, or from a position (epoch, elements delivered) on.
    #[pyo3(signature = (position=None))]
    fn iterate(slf: &Bound<'_, Self>, position: Option<(u64, u64)>) -> PyResult<DatasetIterator> {
        let inner = &slf.get().inner;
        let made = call_back(slf.py(), || match position {
            None => inner.iter(),
            Some((epoch, delivered)) => inner.iter_from(&Position { epoch, delivered }),
        })?;
        Ok(DatasetIterator { running: RunningIterator::new(made), dataset: slf.clone().unbind() })
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
        let next = self.running.with_iter(py, |iter| iter.next().transpose()).map_err(|error| {
            // StopIteration would silently end the loop over the elements.
            if error.is_instance_of::<PyStopIteration>(py) {
                let raised = PyRuntimeError::new_err("a function of the dataset raised StopIteration");
                raised.set_cause(py, Some(error));
                return raised;
            }
            error
        })?;
        next.map(|element| element.object(py)).transpose()
    }

    /// Ends the iterator's threads and frees their buffers.
    fn close(&self) {
        self.running.close();
    }

    /// The position: (epoch, elements delivered).
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let position = self.running.with_iter(py, |iter| Ok(data::Iter::position(iter)))?;
        Ok((position.epoch, position.delivered))
    }

    /// Statistics of the stages: as text, as rows of (stage, peak bytes), and the number of errors that were left out.
    fn report(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, usize)>, u64)> {
        let report = self.running.with_iter(py, |iter| Ok(iter.report()))?;
        let rows = report.stages.iter().map(|stage| (stage.name.to_string(), stage.high_water()));
        let ignored = report.stages.iter().map(|stage| stage.ignored).sum();
        Ok((report.to_string(), rows.collect(), ignored))
    }
}

/// The handwritten digits that are part of the package: images and labels for training, images and labels for testing.
#[pyfunction]
pub fn digits(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let split = call_back(py, data::digits)?;
    [split.train.0, split.train.1, split.test.0, split.test.1]
        .into_iter()
        .map(|tensor| crate::array::wrap(py, tensor))
        .collect()
}
