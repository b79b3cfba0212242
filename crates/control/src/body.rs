//! A graph that an op runs, again and again, in memory that the op was given.

use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use taut_compile::{CompileOptions, compile};
use taut_core::graph::{GraphValue, Origin, ValueId, suspend_tracing};
use taut_core::{Graph, Result, Spec, record};
use taut_exec::{BorrowedInput, run_in};
use taut_kernels::Arg;
use taut_plan::{Home, PlanRequest, Program};

/// Pieces of scratch memory begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Bytes with what it takes to begin the next piece where it may begin.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// A graph, and the program that it becomes when it is first needed.
pub(crate) struct Body {
    graph: Graph,
    /// Per output, the input whose new value it is. The others get memory of their own, as further inputs.
    into: Vec<Option<usize>>,
    /// Whether the graph went through the compiler already.
    is_compiled: bool,
    planned: OnceLock<Planned>,
}

/// A body ready to run.
struct Planned {
    /// Its inputs are the graph's, then one for each output that is not written into the input whose new value it is.
    program: Program,
    /// Per output that is the new value of an input, whether it is made in other memory of the same size, which takes turns
    /// with that of the input: where it cannot be computed in place, that saves a copy.
    doubled: Vec<bool>,
    /// The bytes of that other memory.
    spare: usize,
}

impl Body {
    pub(crate) fn new(graph: Graph, into: Vec<Option<usize>>) -> Body {
        debug_assert_eq!(graph.outputs.len(), into.len());
        Body { graph, into, is_compiled: false, planned: OnceLock::new() }
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same with what a compiler made of the graph.
    pub(crate) fn compiled(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Body> {
        let graph = if self.is_compiled { self.graph.clone() } else { change(&self.graph)? };
        Ok(Body { graph, into: self.into.clone(), is_compiled: true, planned: OnceLock::new() })
    }

    pub(crate) fn input(&self, input: usize) -> &Spec {
        self.graph.spec(self.graph.inputs[input])
    }

    pub(crate) fn output(&self, output: usize) -> &Spec {
        self.graph.spec(self.graph.outputs[output])
    }

    fn planned(&self) -> Result<&Planned> {
        if let Some(planned) = self.planned.get() {
            return Ok(planned);
        }
        let made = suspend_tracing(|| record::without_recording(|| self.plan()))?;
        Ok(self.planned.get_or_init(|| made))
    }

    fn plan(&self) -> Result<Planned> {
        let options = CompileOptions { fuse: true, native: true };
        let compiled = if self.is_compiled { None } else { Some(compile(&self.graph, &options)?) };
        let graph = compiled.as_ref().unwrap_or(&self.graph);
        let carried = self.into.iter().filter(|into| into.is_some()).count();
        let program = program(graph, &self.into)?;
        let doubled: Vec<bool> = self.into[..carried].iter().map(|into| is_copied(&program, *into)).collect();
        if doubled.contains(&true) {
            let marks = doubled.iter().copied().chain(std::iter::repeat(false));
            let into: Vec<Option<usize>> =
                self.into.iter().zip(marks).map(|(into, doubled)| into.filter(|_| !doubled)).collect();
            let other = self::program(graph, &into)?;
            let spare = (0..carried).filter(|&k| doubled[k]).map(|k| rounded(self.output(k).bytes())).sum();
            if rounded(other.arena_bytes()) + spare <= rounded(program.arena_bytes()) {
                return Ok(Planned { program: other, doubled, spare });
            }
        }
        Ok(Planned { program, doubled: vec![false; carried], spare: 0 })
    }

    /// The bytes that a run needs beside its inputs and outputs. What cannot be planned fails when it is run.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.planned().map_or(0, |planned| rounded(planned.program.arena_bytes()))
    }

    /// The bytes that must stay as they are between runs.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.planned().map_or(0, |planned| planned.spare)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} nodes)", self.graph.nodes.len())
    }
}

/// A program whose outputs all have a place: where `into` says, or in inputs of their own.
fn program(graph: &Graph, into: &[Option<usize>]) -> Result<Program> {
    let mut graph = graph.clone();
    let mut updates = Vec::new();
    for (output, into) in into.iter().enumerate() {
        let input = into.unwrap_or_else(|| {
            let spec = graph.spec(graph.outputs[output]).clone();
            let position = graph.inputs.len();
            graph.inputs.push(ValueId(graph.values.len() as u32));
            graph.values.push(GraphValue { spec, origin: Origin::Input(position) });
            position
        });
        updates.push((output, input));
    }
    Program::plan(&graph, &PlanRequest { updates, atomic: false, ..PlanRequest::default() })
}

/// Whether the new value of an input is made in the arena and copied into its place.
fn is_copied(program: &Program, input: Option<usize>) -> bool {
    let home = |storage: usize| program.storages[storage].home;
    program.steps.iter().any(|step| {
        step.op.is_none()
            && step.targets.iter().any(|target| input.is_some_and(|i| home(target.storage) == Home::Input(i)))
            && step.operands.iter().any(|operand| matches!(home(operand.storage), Home::Arena(_)))
    })
}

/// A body about to be run many times.
pub(crate) struct Runner<'a> {
    planned: &'a Planned,
    /// The other memory of what takes turns, in order.
    spare: SmallVec<[&'a mut [u8]; 8]>,
    lent: Notes,
    flipped: bool,
}

/// A list of what is lent, whose memory serves the next runner of this thread: a branch in a loop is run at every step.
#[derive(Default)]
struct Notes(Vec<(Range<usize>, bool)>);

thread_local! {
    static NOTES: RefCell<Vec<Notes>> = const { RefCell::new(Vec::new()) };
}

impl Notes {
    fn take() -> Notes {
        NOTES.with_borrow_mut(Vec::pop).unwrap_or_default()
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let list = std::mem::take(&mut self.0);
        if list.capacity() > 0 {
            // A thread that is ending has no use for it.
            let _ = NOTES.try_with(|notes| notes.borrow_mut().push(Notes(list)));
        }
    }
}

impl<'a> Runner<'a> {
    /// A runner with the first [`Body::spare_bytes`] of `scratch`, which is left without them.
    #[expect(clippy::mut_mut, reason = "the loan itself is made smaller")]
    pub(crate) fn new(body: &'a Body, scratch: &mut &'a mut [u8]) -> Result<Runner<'a>> {
        let planned = body.planned()?;
        let doubled = (0..planned.doubled.len()).filter(|&k| planned.doubled[k]);
        let spare =
            doubled.map(|k| body.output(k).bytes()).map(|bytes| &mut take(scratch, rounded(bytes))[..bytes]);
        Ok(Runner { planned, spare: spare.collect(), lent: Notes::take(), flipped: false })
    }

    /// Runs the body in this arena: its inputs are `before`, those in `carried`, which get their new values, and `after`; its other
    /// outputs are written to `made`.
    pub(crate) fn run<'b, 'f, 'm>(
        &mut self,
        before: impl IntoIterator<Item = &'b [u8]>,
        carried: &mut [&'a mut [u8]],
        after: impl IntoIterator<Item = &'f [u8]>,
        made: impl IntoIterator<Item = &'m mut [u8]>,
        arena: &mut [u8],
    ) -> Result<()> {
        let Runner { planned, spare, lent, .. } = self;
        let mut inputs: SmallVec<[BorrowedInput<'_>; 32]> = SmallVec::new();
        for bytes in before {
            inputs.push(BorrowedInput::Read(bytes));
        }
        for (state, &doubled) in carried.iter_mut().zip(&planned.doubled) {
            inputs.push(if doubled { BorrowedInput::Read(state) } else { BorrowedInput::Write(state) });
        }
        for bytes in after {
            inputs.push(BorrowedInput::Read(bytes));
        }
        inputs.extend(spare.iter_mut().map(|spare| BorrowedInput::Write(spare)));
        for bytes in made {
            inputs.push(BorrowedInput::Write(bytes));
        }
        run_in(&planned.program, &mut inputs, arena, &mut lent.0)?;
        drop(inputs);
        self.take_turns(carried);
        self.flipped = !self.flipped;
        Ok(())
    }

    fn take_turns(&mut self, carried: &mut [&'a mut [u8]]) {
        let doubled = carried.iter_mut().zip(&self.planned.doubled).filter(|(_, doubled)| **doubled);
        for ((state, _), spare) in doubled.zip(&mut self.spare) {
            std::mem::swap(state, spare);
        }
    }

    /// Puts what was carried where it was before the first run.
    pub(crate) fn settle(&mut self, carried: &mut [&'a mut [u8]]) {
        if !std::mem::take(&mut self.flipped) {
            return;
        }
        self.take_turns(carried);
        let doubled = carried.iter_mut().zip(&self.planned.doubled).filter(|(_, doubled)| **doubled);
        for ((state, _), spare) in doubled.zip(&self.spare) {
            state.copy_from_slice(spare);
        }
    }
}

/// The first bytes of scratch memory, which is left without them.
#[expect(clippy::mut_mut, reason = "the loan itself is made smaller")]
pub(crate) fn take<'a>(scratch: &mut &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    let all = std::mem::take(scratch);
    let (first, rest) = all.split_at_mut(bytes.min(all.len()));
    *scratch = rest;
    first
}

/// The bytes of an input that is contiguous, as every input of an op that holds graphs is; empty if it is in place.
pub(crate) fn bytes_of<'a>(input: &Arg<'a>) -> &'a [u8] {
    match input {
        Arg::InPlace(_) => &[],
        Arg::View(view) => view.contiguous_bytes().unwrap_or_default(),
    }
}
