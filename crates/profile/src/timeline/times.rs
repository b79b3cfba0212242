//! Time by call, by op and by source line.

use super::Timeline;
use crate::recording::{CallEvent, CallSite};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use taut_core::Spec;
use taut_memory::Location;

/// A call of an op, a step of a program, or the run of one.
#[derive(Clone, Copy, Debug)]
pub struct TimedCall<'a> {
    /// The op; `function` if it is the run of a program.
    pub op: &'static str,
    /// The op whose gradient it is part of, if it is.
    pub gradient_of: Option<&'static str>,
    /// The source location that it is attributed to.
    pub line: Option<Location>,
    /// The outputs' types and shapes; empty if it failed.
    pub outputs: &'a [Spec],
    /// The thread, as an index into [`Timeline::threads`].
    pub thread: usize,
    /// The number of calls, steps and runs that it is nested in.
    pub depth: usize,
    /// Whether it is the run of a program.
    pub is_run: bool,
    /// When it began.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// Its time without nested calls.
    pub own: Duration,
}

impl TimedCall<'_> {
    /// How long it took.
    pub fn time(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// The time of the calls of one op, or of one source line.
#[derive(Clone, Debug, Default)]
pub struct OpTime {
    /// The op; `function` for the time of program runs outside their steps. Of a line with several ops, the one that takes
    /// the most time.
    pub op: &'static str,
    /// The op whose gradient they are part of, if they are.
    pub gradient_of: Option<&'static str>,
    /// The source location. Of an op that is called from several lines, the one that takes the most time.
    pub line: Option<Location>,
    /// The number of calls.
    pub count: u64,
    /// Their time, including nested calls.
    pub total: Duration,
    /// Their time without nested calls.
    pub own: Duration,
    /// Their fraction of the own time of all calls, in [0, 1].
    pub share: f64,
    /// Arithmetic operations.
    pub flops: u64,
    /// The least bytes that they read and write.
    pub bytes: u64,
}

impl OpTime {
    /// Billions of arithmetic operations per second; `None` if their number is unknown.
    pub fn gflops(&self) -> Option<f64> {
        self.rate(self.flops)
    }

    /// Billions of bytes per second; `None` if their number is unknown.
    pub fn gigabytes(&self) -> Option<f64> {
        self.rate(self.bytes)
    }

    fn rate(&self, work: u64) -> Option<f64> {
        let nanos = self.total.as_nanos();
        (work > 0 && nanos > 0).then(|| work as f64 / nanos as f64)
    }
}

/// An interval of time in which no op ran on any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
}

impl Gap {
    /// Its length.
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

impl Timeline {
    /// Every call, in the order of their start.
    pub fn calls(&self) -> impl Iterator<Item = TimedCall<'_>> {
        self.calls.iter().map(|call| {
            let site = &self.sites[call.site as usize];
            TimedCall {
                op: site.op,
                gradient_of: site.gradient_of,
                line: site.at,
                outputs: &site.outputs,
                thread: self.threads.partition_point(|(number, _)| *number < call.thread),
                depth: call.depth as usize,
                is_run: site.is_run,
                start: Duration::from_nanos(call.start),
                end: Duration::from_nanos(call.end),
                own: Duration::from_nanos(call.own),
            }
        })
    }

    /// Time per op, the largest own time first. Calls that are part of a gradient have rows of their own.
    pub fn by_op(&self) -> Vec<OpTime> {
        self.times(|site| (site.op, site.gradient_of))
    }

    /// Time per line, the largest own time first.
    pub fn by_line(&self) -> Vec<OpTime> {
        self.times(|site| site.at)
    }

    fn times<K: Hash + Eq>(&self, key: impl Fn(&CallSite) -> K) -> Vec<OpTime> {
        // By call site first: there are far fewer of those than calls.
        let mut by_site: Vec<OpTime> = vec![OpTime::default(); self.sites.len()];
        for &CallEvent { site, start, end, own, .. } in &self.calls {
            let row = &mut by_site[site as usize];
            row.count += 1;
            row.total += Duration::from_nanos(end - start);
            row.own += Duration::from_nanos(own);
        }
        let all: Duration = by_site.iter().map(|row| row.own).sum();
        let mut rows: HashMap<K, (OpTime, Duration)> = HashMap::new();
        for (site, time) in self.sites.iter().zip(by_site).filter(|(_, time)| time.count > 0) {
            let (row, most) = rows.entry(key(site)).or_default();
            row.count += time.count;
            row.total += time.total;
            row.own += time.own;
            row.flops = row.flops.saturating_add(site.cost.flops.saturating_mul(time.count));
            row.bytes = row.bytes.saturating_add(site.cost.bytes.saturating_mul(time.count));
            if row.op.is_empty() || time.own > *most {
                (row.op, row.gradient_of, row.line) = (site.op, site.gradient_of, site.at);
                *most = time.own;
            }
        }
        let mut rows: Vec<OpTime> = rows.into_values().map(|(row, _)| row).collect();
        for row in &mut rows {
            row.share = if all.is_zero() { 0.0 } else { row.own.as_nanos() as f64 / all.as_nanos() as f64 };
        }
        rows.sort_by(|a, b| b.own.cmp(&a.own).then_with(|| (a.op, a.line).cmp(&(b.op, b.line))));
        rows
    }

    /// The intervals in which no op ran on any thread, the longest first. They include the time of program runs outside
    /// their steps.
    pub fn gaps(&self) -> Vec<Gap> {
        let ops = self.calls.iter().filter(|call| !self.sites[call.site as usize].is_run);
        let mut spans: Vec<(u64, u64)> = ops.map(|call| (call.start, call.end)).collect();
        spans.sort_unstable();
        spans.push((self.duration, self.duration));
        let (mut gaps, mut until) = (Vec::new(), 0);
        for (start, end) in spans {
            if start > until {
                gaps.push(Gap { start: Duration::from_nanos(until), end: Duration::from_nanos(start) });
            }
            until = until.max(end);
        }
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.length()));
        gaps
    }

    /// All time in which no op ran on any thread.
    pub fn time_outside_ops(&self) -> Duration {
        self.gaps().iter().map(Gap::length).sum()
    }
}
