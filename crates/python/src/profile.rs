//! Profiles: recordings of memory and calls, and their HTML report.

use crate::error::exception;
use crate::plan::Plan;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use taut::profile::{self, OpTime, ProfileReport};

type AliveRow = (usize, &'static str, Option<&'static str>, Option<String>, String);
type TimeRow = (&'static str, Option<&'static str>, Option<String>, u64, f64, f64, Option<f64>, Option<f64>);

/// Records memory and calls on all threads of the process.
#[pyclass(frozen, module = "taut")]
pub struct Profiler(Mutex<Option<profile::Profiler>>);

#[pymethods]
impl Profiler {
    /// Starts recording up to `capacity` memory events and as many calls.
    #[new]
    #[pyo3(signature = (capacity=profile::DEFAULT_CAPACITY))]
    fn new(py: Python<'_>, capacity: usize) -> PyResult<Profiler> {
        let profiler = profile::Profiler::with_capacity(capacity);
        profiler.map(|profiler| Profiler(Mutex::new(Some(profiler)))).map_err(|error| exception(py, error))
    }

    /// Stops recording and returns the timeline; None if it was stopped before.
    fn finish(&self, py: Python<'_>) -> Option<Timeline> {
        let profiler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Timeline(py.detach(|| profiler.finish())))
    }
}

/// Marks this moment with a name in the current recording, if there is one.
#[pyfunction]
pub fn mark(name: String) {
    profile::mark(name);
}

/// A recording: memory, calls, runs of programs, and marks. Times are in seconds from its start.
#[pyclass(frozen, module = "taut")]
pub struct Timeline(profile::Timeline);

#[pymethods]
impl Timeline {
    /// The duration in seconds.
    #[getter]
    fn duration(&self) -> f64 {
        self.0.duration().as_secs_f64()
    }

    /// The ledger's live bytes at the start.
    #[getter]
    fn live_at_start(&self) -> usize {
        self.0.live_at_start()
    }

    /// The ledger's live bytes at the end.
    #[getter]
    fn live_at_end(&self) -> usize {
        self.0.live_at_end()
    }

    /// The numbers of memory events, calls and marks that exceeded the capacity.
    #[getter]
    fn _dropped(&self) -> (u64, u64, u64) {
        let dropped = self.0.dropped();
        (dropped.memory, dropped.calls, dropped.marks)
    }

    /// The peak of the live bytes.
    #[getter]
    fn peak_bytes(&self) -> usize {
        self.0.peak().bytes
    }

    /// The time of the peak.
    #[getter]
    fn peak_at(&self) -> f64 {
        self.0.peak().at.as_secs_f64()
    }

    /// The bytes at every moment at which they changed: (seconds, rows of (kind, bytes)).
    fn _memory(&self) -> Vec<(f64, Vec<(&'static str, usize)>)> {
        let samples = self.0.memory();
        let kinds = profile::MemoryKind::ALL.map(profile::MemoryKind::name);
        let sample = |sample: &profile::MemorySample| {
            let rows = kinds.into_iter().zip(sample.by_kind).filter(|&(_, bytes)| bytes > 0);
            (sample.at.as_secs_f64(), rows.collect())
        };
        samples.iter().map(sample).collect()
    }

    /// The live buffers at a moment, or at the peak: (bytes, kind, op, line, reason). The rows sum to the ledger's live bytes.
    #[pyo3(signature = (seconds=None))]
    fn _alive_at(&self, seconds: Option<f64>) -> Vec<AliveRow> {
        // Seconds that are not a valid duration are clamped to the start or the end.
        let at = seconds.map_or_else(
            || self.0.peak().at,
            |seconds| {
                let latest = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
                Duration::try_from_secs_f64(seconds).unwrap_or(latest)
            },
        );
        let alive = self.0.live_at(at).into_iter();
        alive
            .map(|row| (row.bytes, row.kind.name(), row.op, row.line.map(|line| line.to_string()), row.why))
            .collect()
    }

    /// Per program: (line, steps, runs, planned peak, largest and smallest measured peak, seconds).
    fn _planned(&self) -> Vec<(String, usize, usize, usize, usize, usize, f64)> {
        let row = |row: profile::PlanComparison| {
            let time = row.time.as_secs_f64();
            (row.line.to_string(), row.steps, row.runs, row.planned, row.measured, row.least, time)
        };
        self.0.planned().into_iter().map(row).collect()
    }

    /// Time per op: (op, op whose gradient it is part of, line, calls, seconds, own seconds, GFLOP/s, GB/s).
    fn _by_op(&self) -> Vec<TimeRow> {
        times(self.0.by_op())
    }

    /// Time per line, as `_by_op`.
    fn _by_line(&self) -> Vec<TimeRow> {
        times(self.0.by_line())
    }

    /// The marks: (seconds, name, live bytes).
    fn _marks(&self) -> Vec<(f64, String, usize)> {
        self.0.marks().into_iter().map(|mark| (mark.at.as_secs_f64(), mark.name, mark.live)).collect()
    }

    /// The recording in the trace event format, for Perfetto.
    fn to_chrome_trace(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.to_chrome_trace())
    }

    /// Writes the HTML report, with the plans of the programs that ran and further plans by name.
    #[pyo3(signature = (path, title, plans))]
    fn _save_html(
        &self,
        py: Python<'_>,
        path: PathBuf,
        title: String,
        plans: Vec<(String, Py<Plan>)>,
    ) -> PyResult<()> {
        let mut report = ProfileReport::new(title).timeline(&self.0);
        for (name, plan) in plans {
            report = report.plan(name, &plan.get().0);
        }
        py.detach(|| report.write(&path)).map_err(|error| exception(py, error))
    }
}

fn times(rows: Vec<OpTime>) -> Vec<TimeRow> {
    let row = |row: OpTime| {
        let line = row.line.map(|line| line.to_string());
        let (total, own) = (row.total.as_secs_f64(), row.own.as_secs_f64());
        (row.op, row.gradient_of, line, row.count, total, own, row.gflops(), row.gigabytes())
    };
    rows.into_iter().map(row).collect()
}
