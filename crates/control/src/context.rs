//! What a trace passes to the loops and branches that are built inside it: compile options, and shares of a budget.

use std::cell::Cell;
use std::rc::Rc;
use taut_compile::CompileOptions;
use taut_core::Result;
use taut_core::graph::{TraceContext, trace_context};
use taut_core::ops::random::{RecordedKeys, with_recorded_keys};

/// What the trace of a function passes to the loops and branches in it.
#[derive(Debug)]
pub struct FunctionContext {
    compile: CompileOptions,
    residual_divisor: Option<usize>,
    has_divided: Cell<bool>,
}

impl FunctionContext {
    /// Bodies are compiled with these options. The gradient of a loop without a budget of its own may keep a part of its residuals,
    /// and a chunk of a map may take a part of the usual memory, given as a divisor: with 4, a quarter. `None` keeps all.
    pub fn new(compile: CompileOptions, residual_divisor: Option<usize>) -> FunctionContext {
        FunctionContext { compile, residual_divisor, has_divided: Cell::new(false) }
    }

    /// Whether the divisor made a difference to a loop or a map.
    pub fn has_divided(&self) -> bool {
        self.has_divided.get()
    }
}

/// How bodies are compiled: with the options of the function being traced, if there is one.
pub(crate) fn body_options() -> CompileOptions {
    trace_context::<FunctionContext>().map_or_else(CompileOptions::default, |context| context.compile)
}

/// The gradient budget of a loop without one of its own whose residuals take so many bytes: what the function being traced
/// says.
pub(crate) fn residual_budget(bytes: usize) -> Option<usize> {
    let context = trace_context::<FunctionContext>()?;
    let divisor = context.residual_divisor?;
    context.has_divided.set(true);
    Some(bytes / divisor.max(1))
}

/// What the gradients of the loops inside a loop with a budget may keep. It belongs to the trace of that loop's body; the
/// loops of a function that is called there have no share, since a function is traced independently of its callers.
struct BudgetShare {
    /// The bytes for each loop.
    bytes: usize,
    /// How many loops took a share.
    loops: Cell<usize>,
}

/// The gradient budget of a loop that has none of its own: a share of the loop's around it.
pub(crate) fn inherited_budget() -> Option<usize> {
    let share = trace_context::<BudgetShare>()?;
    share.loops.set(share.loops.get() + 1);
    Some(share.bytes)
}

/// Traces the body of a loop with a gradient budget: the loop and those inside it get equal shares. Returns the share of the
/// loop itself. `trace` is given the context for its traces.
pub(crate) fn trace_with_budget<R>(
    budget: Option<usize>,
    trace: impl Fn(Option<TraceContext>) -> Result<R>,
) -> Result<(R, Option<usize>)> {
    let Some(budget) = budget else {
        return Ok((trace(None)?, None));
    };
    let attempt = |bytes: usize, keys: &RecordedKeys| {
        let share = Rc::new(BudgetShare { bytes, loops: Cell::new(0) });
        let (outcome, keys) = with_recorded_keys(keys, || trace(Some(share.clone())));
        outcome.map(|traced| (traced, share.loops.get(), keys))
    };
    // The first trace assumes one loop inside; if there are more, a second one gives them smaller shares.
    let (traced, loops, keys) = attempt(budget / 2, &RecordedKeys::default())?;
    match loops {
        0 => Ok((traced, Some(budget))),
        1 => Ok((traced, Some(budget / 2))),
        _ => {
            drop(traced);
            let share = budget / (loops + 1);
            // Both traces take the same random keys.
            Ok((attempt(share, &keys)?.0, Some(share)))
        }
    }
}
