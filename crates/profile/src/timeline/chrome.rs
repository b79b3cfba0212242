//! Export to the trace event format of Perfetto and chrome://tracing.

use super::{MemoryKind, Timeline};
use serde_json::{Map, Value, json};
use taut_core::Spec;

impl Timeline {
    /// The timeline as JSON in the trace event format: open it in <https://ui.perfetto.dev> or in chrome://tracing.
    pub fn to_chrome_trace(&self) -> String {
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let mut events: Vec<Value> = Vec::new();
        for (number, name) in &self.threads {
            events.push(json!({
                "ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": { "name": name }
            }));
        }
        for call in &self.calls {
            let site = &self.sites[call.site as usize];
            let mut args = Map::new();
            if let Some(at) = site.at {
                args.insert("line".into(), at.short().to_string().into());
            }
            if let Some(of) = site.gradient_of {
                args.insert("gradient of".into(), of.into());
            }
            let outputs: Vec<String> = site.outputs.iter().map(ToString::to_string).collect();
            if !outputs.is_empty() {
                args.insert("outputs".into(), outputs.join(", ").into());
                args.insert("bytes".into(), site.outputs.iter().map(Spec::bytes).sum::<usize>().into());
            }
            let category = if site.is_run { "run" } else { "op" };
            events.push(json!({
                "ph": "X", "name": site.op, "cat": category, "pid": 1, "tid": call.thread,
                "ts": micros(call.start), "dur": micros(call.end - call.start), "args": args
            }));
        }
        let samples = self.memory();
        let is_present = |kind: &&MemoryKind| samples.iter().any(|sample| sample.by_kind[kind.index()] > 0);
        let present: Vec<&MemoryKind> = MemoryKind::ALL.iter().filter(is_present).collect();
        for sample in &samples {
            let bytes: Map<String, Value> = (present.iter())
                .map(|kind| (kind.to_string(), sample.by_kind[kind.index()].into()))
                .collect();
            let time = micros(sample.at.as_nanos() as u64);
            events.push(json!({ "ph": "C", "name": "memory", "pid": 1, "ts": time, "args": bytes }));
        }
        for mark in &self.marks {
            events.push(json!({
                "ph": "i", "s": "p", "name": mark.name, "pid": 1, "tid": 0, "ts": micros(mark.time)
            }));
        }
        json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
    }
}
