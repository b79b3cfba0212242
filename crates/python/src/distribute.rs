//! Groups of ranks: processes that compute together.

use crate::array::{Array, wrap};
use crate::call::call_back;
use crate::convert;
use crate::error::exception;
use crate::variable::variable;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;
use taut::distribute::{self, Network, RankPlan, ReduceOp};

/// The ranks that compute together. Every rank is a process.
#[pyclass(frozen, weakref, module = "taut.distribute")]
pub struct Group(distribute::Group);

fn reduce_op(name: &str) -> PyResult<ReduceOp> {
    match name {
        "SUM" => Ok(ReduceOp::Sum),
        "MEAN" => Ok(ReduceOp::Mean),
        "MAX" => Ok(ReduceOp::Max),
        "MIN" => Ok(ReduceOp::Min),
        other => {
            Err(PyValueError::new_err(format!("the reduction must be SUM, MEAN, MAX or MIN, got {other}")))
        }
    }
}

/// Calls a collective: other ranks run meanwhile, so the interpreter lock is released.
fn collective<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    work: impl FnOnce(taut::Tensor) -> taut::Result<taut::Tensor> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let x = convert::tensor(x)?;
    wrap(py, call_back(py, move || work(x))?)
}

#[pymethods]
impl Group {
    /// All processes that mpiexec started; one if there is no launcher.
    #[staticmethod]
    fn world(py: Python<'_>) -> PyResult<Group> {
        call_back(py, distribute::mpi::world).map(Group)
    }

    /// A group of this many ranks that plans and cannot run.
    #[staticmethod]
    fn paper(py: Python<'_>, ranks: usize) -> PyResult<Group> {
        call_back(py, || distribute::Group::paper(ranks)).map(Group)
    }

    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn transport(&self) -> String {
        self.0.transport()
    }

    #[getter]
    fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    fn set_timeout(&self, seconds: f64) -> PyResult<()> {
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("timeout must be >= 0 seconds, got {seconds}")))?;
        self.0.set_timeout(timeout);
        Ok(())
    }

    fn all_reduce<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        how: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = reduce_op(how)?;
        collective(py, x, |x| distribute::all_reduce(x, how, &self.0))
    }

    fn reduce_scatter<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        how: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = reduce_op(how)?;
        collective(py, x, |x| distribute::reduce_scatter(x, how, &self.0))
    }

    fn all_gather<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        collective(py, x, |x| distribute::all_gather(x, &self.0))
    }

    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        root: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        collective(py, x, |x| distribute::broadcast(x, root, &self.0))
    }

    /// This rank's shard of a tensor that every rank has.
    fn own_shard<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        collective(py, x, |x| distribute::own_shard(x, &self.0))
    }

    /// This rank's shard of a tensor's sum or mean over ranks.
    fn reduce_shard<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        how: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = reduce_op(how)?;
        collective(py, x, |x| distribute::reduce_shard(x, how, &self.0))
    }

    /// The whole tensor of this shape from the shards of all ranks.
    fn gather_shards<'py>(
        &self,
        py: Python<'py>,
        shard: &Bound<'py, PyAny>,
        shape: Vec<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        collective(py, shard, |shard| distribute::gather_shards(shard, shape, &self.0))
    }

    /// As `gather_shards`, in the memory of the old value.
    fn replace_shards<'py>(
        &self,
        py: Python<'py>,
        old: &Bound<'py, PyAny>,
        shard: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let old = convert::tensor(old)?;
        collective(py, shard, |shard| distribute::replace_shards(old, shard, &self.0))
    }

    /// The integers of every rank, in the order of ranks.
    fn all_gather_words(&self, py: Python<'_>, own: Vec<u64>) -> PyResult<Vec<u64>> {
        call_back(py, || self.0.all_gather_words("all_gather of integers", &own))
    }

    /// Fails on every rank if variables differ between ranks.
    fn check_equal(&self, py: Python<'_>, named: Vec<(String, Bound<'_, Array>)>) -> PyResult<()> {
        let named: Vec<(String, taut::Variable)> = named
            .iter()
            .map(|(name, array)| Ok((name.clone(), variable(array.get())?.clone())))
            .collect::<PyResult<_>>()?;
        call_back(py, || distribute::check_equal(&named, &self.0))
    }

    /// Fails on every rank if the collectives of a plan differ between ranks.
    fn check_same_plan(&self, py: Python<'_>, plan: &crate::plan::Plan) -> PyResult<()> {
        let plan = plan.0.clone();
        call_back(py, || self.0.check_same_plan(&plan))
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        call_back(py, || self.0.barrier())
    }

    /// Waits for the end of all ranks, and closes MPI.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        call_back(py, || self.0.finish())
    }

    /// Ends all ranks.
    fn abort(&self, code: i32) {
        self.0.abort(code)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Bytes, messages and time of a planned step for one rank: (variables, inputs, step, total, collectives, messages, sent, seconds).
#[pyfunction]
pub fn rank_plan(
    py: Python<'_>,
    plan: &crate::plan::Plan,
    ranks: usize,
    latency: f64,
    bandwidth: f64,
) -> PyResult<(usize, usize, usize, usize, usize, u64, u64, f64)> {
    let latency = Duration::try_from_secs_f64(latency).ok().filter(|_| bandwidth > 0.0);
    let Some(latency) = latency else {
        let error = taut::Error::value("latency must be >= 0 seconds, and bandwidth > 0 bytes a second");
        return Err(exception(py, error));
    };
    let plan = RankPlan::new(&plan.0, ranks);
    let seconds = plan.time(&Network { latency, bandwidth }).as_secs_f64();
    let RankPlan {
        variable_bytes,
        input_bytes,
        peak_bytes,
        total_bytes,
        collectives,
        messages,
        sent_bytes,
        ..
    } = plan;
    Ok((variable_bytes, input_bytes, peak_bytes, total_bytes, collectives, messages, sent_bytes, seconds))
}
