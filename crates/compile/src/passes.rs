//! The list of passes, in the order they run.

use crate::context::PassContext;
use crate::{CompileOptions, Rewrites, dead_code, decompose, epilogue, fuse, recompute, simplify};
use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};
use taut_core::{Graph, Result};

/// Each pass leaves a graph with the same inputs and outputs, in number, order, type and shape.
const PASSES: &[Pass] = &[
    Pass {
        name: "dead_code_elimination",
        run: |graph, _| Ok(dead_code::eliminate_dead_code(&graph)),
        is_enabled: |_| true,
    },
    Pass {
        name: "decompose",
        run: |graph, _| decompose::decompose(graph),
        is_enabled: |options| options.fuse && options.rewrites >= Rewrites::Decompose,
    },
    // Constant folding, algebraic rewrites, views as layouts, common-subexpression elimination: one walk, as each makes
    // work for the others.
    Pass { name: "simplify", run: |graph, _| simplify::simplify(&graph), is_enabled: |_| true },
    Pass { name: "compile_subgraphs", run: compile_subgraphs, is_enabled: |_| true },
    Pass {
        name: "recompute",
        run: |graph, _| Ok(recompute::recompute(graph)),
        is_enabled: |options| options.fuse && options.rewrites >= Rewrites::Recompute,
    },
    Pass {
        name: "fuse",
        run: |graph, context| fuse::fuse(&graph, context),
        is_enabled: |options| options.fuse,
    },
    Pass { name: "fuse_epilogue", run: epilogue::fuse_epilogue, is_enabled: |options| options.fuse },
];

struct Pass {
    name: &'static str,
    run: fn(Cow<'_, Graph>, &mut PassContext) -> Result<Graph>,
    /// Whether the options enable it.
    is_enabled: fn(&CompileOptions) -> bool,
}

/// Compiles the graphs that ops hold: bodies of loops, branches.
fn compile_subgraphs(graph: Cow<'_, Graph>, context: &mut PassContext) -> Result<Graph> {
    let mut graph = graph.into_owned();
    for node in &mut graph.nodes {
        if let Some(subgraphs) = node.op.subgraphs() {
            let compiled = subgraphs.map_graphs(&mut |subgraph| compile(subgraph, &context.options));
            node.op = compiled.map_err(|error| error.at(node.at))?;
        }
    }
    Ok(graph)
}

/// What a pass did.
#[derive(Clone, Copy, Debug)]
pub struct PassReport {
    /// The name of the pass.
    pub name: &'static str,
    /// The number of nodes before it.
    pub before: usize,
    /// The number of nodes after it.
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

/// A graph that computes the same with fewer nodes, to be planned.
///
/// Inputs and outputs keep their number, order, types and shapes. An output may become a view of an input or of a
/// constant, where the original graph would copy it.
pub fn compile(graph: &Graph, options: &CompileOptions) -> Result<Graph> {
    compile_with_report(graph, options).map(|(graph, _)| graph)
}

/// As [`compile`], with a report of each pass.
pub fn compile_with_report(graph: &Graph, options: &CompileOptions) -> Result<(Graph, Vec<PassReport>)> {
    graph.verify()?;
    let mut context = PassContext { options: *options, fused_nodes: Vec::new() };
    let (mut current, mut report) = (Cow::Borrowed(graph), Vec::new());
    for pass in PASSES.iter().filter(|pass| (pass.is_enabled)(options)) {
        let before = current.nodes.len();
        let start = Instant::now();
        let made = (pass.run)(current, &mut context)?;
        report.push(PassReport { name: pass.name, before, after: made.nodes.len(), time: start.elapsed() });
        if cfg!(debug_assertions) {
            made.verify()?;
            let specs =
                |graph: &Graph, ids: &[_]| ids.iter().map(|&id| graph.spec(id).clone()).collect::<Vec<_>>();
            debug_assert_eq!(specs(&made, &made.inputs), specs(graph, &graph.inputs), "{}", pass.name);
            debug_assert_eq!(specs(&made, &made.outputs), specs(graph, &graph.outputs), "{}", pass.name);
        }
        current = Cow::Owned(made);
    }
    Ok((current.into_owned(), report))
}
