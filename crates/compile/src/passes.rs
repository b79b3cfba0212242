//! The list of passes, in the order they run.

use crate::{CompileOptions, epilogue, fuse, prune, simplify};
use std::fmt;
use std::time::{Duration, Instant};
use taut_core::{Graph, Result};

struct Pass {
    name: &'static str,
    run: fn(&Graph, CompileOptions) -> Result<Graph>,
    /// Whether the options ask for it.
    wanted: fn(&CompileOptions) -> bool,
}

/// Each leaves a graph with the same inputs and outputs, in number, order, type and shape.
const PASSES: &[Pass] = &[
    Pass { name: "prune", run: |graph, _| Ok(prune::prune(graph)), wanted: |_| true },
    Pass { name: "simplify", run: |graph, _| simplify::simplify(graph), wanted: |_| true },
    Pass { name: "prune", run: |graph, options| bodies(prune::prune(graph), options), wanted: |_| true },
    Pass {
        name: "fuse",
        run: |graph, options| epilogue::fuse_epilogues(fuse::fuse(graph, options)?, options),
        wanted: |options| options.fuse,
    },
];

/// The graphs that ops hold go through the passes, too.
fn bodies(mut graph: Graph, options: CompileOptions) -> Result<Graph> {
    for node in &mut graph.nodes {
        if let Some(held) = node.op.subgraphs() {
            let compiled = held.map_graphs(&mut |body| compile(body, &options));
            node.op = compiled.map_err(|error| error.at(node.at))?;
        }
    }
    Ok(graph)
}

/// What a pass did.
#[derive(Clone, Copy, Debug)]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// How many nodes there were before.
    pub before: usize,
    /// How many there are after.
    pub after: usize,
    /// How long it took.
    pub time: Duration,
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PassReport { name, before, after, time } = self;
        write!(f, "{name}: {before} -> {after} nodes in {} us", time.as_micros())
    }
}

/// A graph that computes the same with fewer nodes, for a plan to be made of.
///
/// Inputs and outputs keep their number, order, types and shapes. An output may become a view of an input or of a
/// constant, where the original would have copied it.
pub fn compile(graph: &Graph, options: &CompileOptions) -> Result<Graph> {
    compile_with_report(graph, options).map(|(graph, _)| graph)
}

/// As [`compile`], and what each pass did.
pub fn compile_with_report(graph: &Graph, options: &CompileOptions) -> Result<(Graph, Vec<PassReport>)> {
    graph.verify()?;
    let (mut current, mut report) = (None, Vec::new());
    for pass in PASSES.iter().filter(|pass| (pass.wanted)(options)) {
        let from = current.as_ref().unwrap_or(graph);
        let start = Instant::now();
        let made = (pass.run)(from, *options)?;
        report.push(PassReport {
            name: pass.name,
            before: from.nodes.len(),
            after: made.nodes.len(),
            time: start.elapsed(),
        });
        if cfg!(debug_assertions) {
            made.verify()?;
            let specs =
                |graph: &Graph, ids: &[_]| ids.iter().map(|&id| graph.spec(id).clone()).collect::<Vec<_>>();
            debug_assert_eq!(specs(&made, &made.inputs), specs(graph, &graph.inputs), "{}", pass.name);
            debug_assert_eq!(specs(&made, &made.outputs), specs(graph, &graph.outputs), "{}", pass.name);
        }
        current = Some(made);
    }
    Ok((current.unwrap_or_else(|| graph.clone()), report))
}
