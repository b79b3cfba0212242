//! Where the time went.

use super::Timeline;
use crate::recording::{CallEvent, Site};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use taut_core::Spec;
use taut_memory::Location;

/// A call of an op, a step of a program, or the run of one.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The op; `function` if it is the run of a program.
    pub op: &'static str,
    /// The op whose gradient it is part of, if it is.
    pub gradient_of: Option<&'static str>,
    /// The line that it was made for.
    pub line: Option<Location>,
    /// The outputs' types and shapes; none if it failed.
    pub outputs: &'a [Spec],
    /// The thread, as a place in [`Timeline::threads`].
    pub thread: usize,
    /// How many calls, steps and runs it is inside of.
    pub depth: usize,
    /// Whether it is the run of a program.
    pub is_run: bool,
    /// From when.
    pub start: Duration,
    /// Until when.
    pub end: Duration,
    /// Its time without what is called inside of it.
    pub own: Duration,
}

impl Call<'_> {
    /// How long it took.
    pub fn time(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// The time of calls that have something in common.
#[derive(Clone, Debug, Default)]
pub struct OpTime {
    /// The op; `function` for what the runs of programs take beside their steps. Of a line with several ops, the one
    /// that takes most.
    pub op: &'static str,
    /// The op whose gradient they are part of, if they are.
    pub gradient_of: Option<&'static str>,
    /// Their line. Of an op that is called from several lines, the one that takes most.
    pub line: Option<Location>,
    /// How many calls.
    pub count: u64,
    /// Their time, what is called inside of them included.
    pub total: Duration,
    /// Their time without what is called inside of them.
    pub own: Duration,
    /// Their part of all calls' own time, from 0 to 1.
    pub share: f64,
    /// Arithmetic operations.
    pub flops: u64,
    /// Bytes that they read and write at least.
    pub bytes: u64,
}

impl OpTime {
    /// Billions of arithmetic operations per second; `None` if nothing is known of them.
    pub fn gflops(&self) -> Option<f64> {
        self.rate(self.flops)
    }

    /// Billions of bytes per second; `None` if nothing is known of them.
    pub fn gigabytes(&self) -> Option<f64> {
        self.rate(self.bytes)
    }

    fn rate(&self, work: u64) -> Option<f64> {
        let nanos = self.total.as_nanos();
        (work > 0 && nanos > 0).then(|| work as f64 / nanos as f64)
    }
}

/// Time in which no op ran on any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From when.
    pub start: Duration,
    /// Until when.
    pub end: Duration,
}

impl Gap {
    /// How long.
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

impl Timeline {
    /// Every call, in the order in which they began.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.calls.iter().map(|call| {
            let site = &self.sites[call.site as usize];
            Call {
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

    /// Time per op, the largest own time first. What is part of a gradient stands apart.
    pub fn by_op(&self) -> Vec<OpTime> {
        self.times(|site| (site.op, site.gradient_of))
    }

    /// Time per line, the largest own time first.
    pub fn by_line(&self) -> Vec<OpTime> {
        self.times(|site| site.at)
    }

    fn times<K: Hash + Eq>(&self, key: impl Fn(&Site) -> K) -> Vec<OpTime> {
        // By site first: there are far fewer of those than calls.
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

    /// The times in which no op ran on any thread, the longest first. What runs of programs do beside their steps is such a
    /// time.
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
