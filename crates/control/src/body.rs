//! A graph that an op runs, again and again, in memory that the op was given.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use taut_compile::{Options, compile};
use taut_core::graph::{Origin, Value, ValueId, outside_traces};
use taut_core::{Element, Graph, Result, Spec, record};
use taut_exec::{Lent, run_in};
use taut_kernels::{Arg, View, dispatch};
use taut_plan::{Program, Request};

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
    program: OnceLock<Arc<Program>>,
}

impl Body {
    pub(crate) fn new(graph: Graph, into: Vec<Option<usize>>) -> Body {
        debug_assert_eq!(graph.outputs.len(), into.len());
        Body { graph, into, is_compiled: false, program: OnceLock::new() }
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same with what a compiler made of the graph.
    pub(crate) fn compiled(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Body> {
        let graph = if self.is_compiled { self.graph.clone() } else { change(&self.graph)? };
        Ok(Body { graph, into: self.into.clone(), is_compiled: true, program: OnceLock::new() })
    }

    pub(crate) fn input(&self, input: usize) -> &Spec {
        self.graph.spec(self.graph.inputs[input])
    }

    pub(crate) fn output(&self, output: usize) -> &Spec {
        self.graph.spec(self.graph.outputs[output])
    }

    /// The program. Its inputs are the graph's, then one for each output that is no input's new value.
    pub(crate) fn program(&self) -> Result<&Arc<Program>> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let made = outside_traces(|| record::unrecorded(|| self.plan()))?;
        Ok(self.program.get_or_init(|| Arc::new(made)))
    }

    fn plan(&self) -> Result<Program> {
        let options = Options { fuse: true, native: true };
        let mut graph = if self.is_compiled { self.graph.clone() } else { compile(&self.graph, &options)? };
        let mut updates = Vec::new();
        for (output, into) in self.into.iter().enumerate() {
            let input = into.unwrap_or_else(|| {
                let spec = graph.spec(graph.outputs[output]).clone();
                let position = graph.inputs.len();
                graph.inputs.push(ValueId(graph.values.len() as u32));
                graph.values.push(Value { spec, origin: Origin::Input(position) });
                position
            });
            updates.push((output, input));
        }
        Program::plan(&graph, &Request { updates, careless: true, ..Request::default() })
    }

    /// The bytes that a run needs beside its inputs and outputs. What cannot be planned fails when it is run.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.program().map_or(0, |program| rounded(program.arena_bytes()))
    }

    /// The bytes that it takes itself.
    pub(crate) fn footprint(&self) -> usize {
        let ops: usize = self.graph.nodes.iter().map(|node| node.op.footprint()).sum();
        ops + size_of_val(&self.graph.nodes[..]) + size_of_val(&self.graph.values[..])
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} nodes)", self.graph.nodes.len())
    }
}

/// A program about to be run many times.
pub(crate) struct Runner<'a> {
    program: &'a Program,
    arena: &'a mut [u8],
    lent: Vec<(Range<usize>, bool)>,
}

impl<'a> Runner<'a> {
    /// A runner in the first bytes of `scratch`, which is left without them.
    pub(crate) fn new(body: &'a Body, scratch: &mut &'a mut [u8]) -> Result<Runner<'a>> {
        let program = body.program()?;
        Ok(Runner { program, arena: take(scratch, rounded(program.arena_bytes())), lent: Vec::new() })
    }

    pub(crate) fn run(&mut self, inputs: &mut [Lent<'_>]) -> Result<()> {
        run_in(self.program, inputs, self.arena, &mut self.lent)
    }
}

/// The first bytes of scratch memory, which is left without them.
pub(crate) fn take<'a>(scratch: &mut &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    let all = std::mem::take(scratch);
    let (first, rest) = all.split_at_mut(bytes.min(all.len()));
    *scratch = rest;
    first
}

/// The bytes of an input that is contiguous, as every input of an op that holds graphs is; empty if it is in place.
pub(crate) fn bytes_of<'a>(input: &Arg<'a>) -> &'a [u8] {
    fn bytes<'a, T: Element>(view: &View<'a>) -> &'a [u8] {
        view.contiguous::<T>().map_or(&[], |elements| bytemuck::cast_slice(elements))
    }
    match input {
        Arg::InPlace(_) => &[],
        Arg::View(view) => dispatch!(view.dtype(), T in all => bytes::<T>(view)),
    }
}
