//! From what was traced to what an op holds.

use std::cell::Cell;
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_core::graph::{ExternalState, GraphValue, Origin, ValueId, depth};
use taut_core::ops::random::{Keys, with_keys};
use taut_core::{Graph, Result, Tensor};

/// How many states and slices a loop has.
#[derive(Clone, Copy)]
pub(crate) struct Spans {
    pub(crate) states: usize,
    pub(crate) slices: usize,
}

/// All captures of several graphs, each once.
pub(crate) fn bodies(captures: &[&[Tensor]]) -> Vec<Tensor> {
    let mut all: Vec<Tensor> = Vec::new();
    for capture in captures.iter().flat_map(|list| *list) {
        if !all.iter().any(|other| other.same_value_and_links(capture)) {
            all.push(capture.clone());
        }
    }
    all
}

/// A graph whose captures, the inputs from number `varying` on, are those in `all`; it may not read some of them.
pub(crate) fn align(graph: Graph, varying: usize, own: &[Tensor], all: &[Tensor]) -> Graph {
    let mut graph = graph;
    let had = graph.inputs.split_off(varying);
    for capture in all {
        let id = match own.iter().position(|other| other.same_value_and_links(capture)) {
            Some(i) => had[i],
            None => {
                let id = ValueId(graph.values.len() as u32);
                let origin = Origin::Input(0);
                graph.values.push(GraphValue { spec: capture.spec().clone(), origin });
                id
            }
        };
        graph.values[id.index()].origin = Origin::Input(graph.inputs.len());
        graph.inputs.push(id);
    }
    graph
}

/// The variables behind the states that a trace wrote.
pub(crate) fn variables(states: &[Arc<dyn ExternalState>]) -> Vec<Variable> {
    states.iter().filter_map(Variable::from_state).collect()
}

/// Traces the body of a loop with the variables that it carries, until those are all that it writes. `trace` returns what it
/// found, and what was written.
pub(crate) fn carrying<R>(
    trace: impl Fn(&[Variable]) -> Result<(R, Vec<Arc<dyn ExternalState>>)>,
) -> Result<(R, Vec<Variable>)> {
    let (mut carried, mut keys) = (Vec::new(), Keys::default());
    loop {
        // Tracing twice must not draw other random numbers than tracing once.
        let (found, taken) = with_keys(&keys, || trace(&carried));
        let (found, written) = found?;
        if written.len() == carried.len() {
            return Ok((found, carried));
        }
        (carried, keys) = (variables(&written), taken);
    }
}

thread_local! {
    static SHARE: Cell<Option<Share>> = const { Cell::new(None) };
}

/// What a loop may keep that is inside one with a budget.
#[derive(Clone, Copy)]
struct Share {
    bytes: usize,
    /// How many such loops there were.
    loops: usize,
    /// How many functions were being traced: the loops of a function that is first called in a body are its own.
    depth: usize,
}

/// The budget of a loop that has none of its own: its share of the one around it.
pub(crate) fn inherited() -> Option<usize> {
    let share = SHARE.get().filter(|share| share.depth == depth())?;
    SHARE.set(Some(Share { loops: share.loops + 1, ..share }));
    Some(share.bytes)
}

/// Traces a body with this budget, of which loops in it get equal shares; returns what is left for the loop itself.
pub(crate) fn nested<R>(budget: Option<usize>, trace: impl Fn() -> Result<R>) -> Result<(R, Option<usize>)> {
    struct Restore(Option<Share>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SHARE.set(self.0);
        }
    }
    let _restore = Restore(SHARE.get());
    let Some(budget) = budget else {
        SHARE.set(None);
        return Ok((trace()?, None));
    };
    SHARE.set(Some(Share { bytes: budget / 2, loops: 0, depth: depth() }));
    let (first, keys) = with_keys(&Keys::default(), &trace);
    let first = first?;
    let loops = SHARE.get().map_or(0, |share| share.loops);
    if loops < 2 {
        return Ok((first, Some(if loops == 0 { budget } else { budget / 2 })));
    }
    drop(first);
    let share = budget / (loops + 1);
    SHARE.set(Some(Share { bytes: share, loops: 0, depth: depth() }));
    // Tracing twice must not draw other random numbers than tracing once.
    Ok((with_keys(&keys, &trace).0?, Some(share)))
}
