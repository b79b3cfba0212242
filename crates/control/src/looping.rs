//! The loop: one op for all of them.
//!
//! A loop carries **states** from step to step, reads a row of each of its **slices** and writes a row of each of its
//! **stacks** per step, and sees **captures**, which stay what they are. Its body is a graph from
//! `(index, states, slices, captures)` to `(states, stacks)`. A `while` has a second graph, the test; a scan has slices
//! and stacks; a map has no states; and the gradient of any of them is a loop that runs the other way.
//!
//! The states live in the op's outputs, where the body updates them in place. Apart from that, a run needs the memory of one
//! body, whatever the number of steps.

use crate::body::{Body, Runner, bytes_of, rounded, take};
use crate::gradient::Reverse;
use crate::report::LoopReport;
use crate::schedule::{Known, Online};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_core::{
    Cost, DType, Differentiable, Error, Gradients, Graph, Kernel, Op, Outputs, PrunedOp, Result, Saves, Set,
    Shape, Spec, Specs, Subgraphs, VjpCall,
};
use taut_kernels::{Arg, ViewMut};

/// How many steps a loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// This many.
    Known(usize),
    /// As many as the test says, but no more than this; `usize::MAX` if there is no such limit.
    Tested(usize),
    /// As many as the first input says, but no more than this.
    Counted(usize),
}

impl Steps {
    /// How many at most; this is how many rows slices and stacks have.
    pub(crate) fn most(self) -> usize {
        match self {
            Steps::Known(steps) | Steps::Tested(steps) | Steps::Counted(steps) => steps,
        }
    }
}

/// States that are kept at chosen steps, to compute the others again. They lie in rows of one further output; its last row is for
/// the state that the way back works on.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// How many states can be kept, the first included.
    pub(crate) count: usize,
    /// How many stacks come before that output: those of the loop as it was asked for. Whoever sees those stacks does not
    /// see what is kept.
    pub(crate) after: usize,
}

/// A loop.
#[derive(Clone)]
pub(crate) struct Loop {
    pub(crate) name: &'static str,
    /// From `(index, states, slices, captures)` to `(states, stacks)`.
    pub(crate) body: Arc<Body>,
    /// From the same to a boolean: whether another step is made.
    pub(crate) test: Option<Arc<Body>>,
    pub(crate) states: usize,
    pub(crate) slices: usize,
    pub(crate) stacks: usize,
    pub(crate) steps: Steps,
    /// Whether the rows are taken from the last to the first.
    pub(crate) reverse: bool,
    /// The index of the first step: a loop may go on where another one ended.
    pub(crate) start: usize,
    /// Whether states are kept in a further output.
    pub(crate) slots: Option<Slots>,
    /// What the gradient may keep, in bytes.
    pub(crate) budget: Option<usize>,
    pub(crate) report: Option<Arc<LoopReport>>,
    /// How the gradient goes, if this is the form that keeps what it needs.
    pub(crate) reverse_pass: Option<Arc<Reverse>>,
    /// Per state that is an output, the inputs that it may overwrite.
    pub(crate) aliases: Vec<[usize; 1]>,
}

/// What a body is given beside its states, slices and captures.
pub(crate) fn index_spec() -> Spec {
    Spec::new(DType::I64, Shape::scalar())
}

/// The spec of rows of this spec.
pub(crate) fn stacked(rows: usize, row: &Spec) -> Spec {
    Spec { dtype: row.dtype, shape: row.shape.clone().with_inserted(0, rows) }
}

impl Loop {
    /// A loop without a gradient budget, over this body.
    pub(crate) fn new(
        name: &'static str,
        body: Graph,
        test: Option<Graph>,
        (states, slices, stacks): (usize, usize, usize),
        steps: Steps,
        reverse: bool,
    ) -> Loop {
        let first = usize::from(matches!(steps, Steps::Counted(_)));
        Loop {
            name,
            body: Arc::new(body_of(body, states, stacks)),
            test: test.map(|test| Arc::new(Body::new(test, vec![None]))),
            states,
            slices,
            stacks,
            steps,
            reverse,
            start: 0,
            slots: None,
            budget: None,
            report: None,
            reverse_pass: None,
            aliases: (0..states).map(|k| [first + k]).collect(),
        }
    }

    /// The position of the first state among the inputs.
    pub(crate) fn first(&self) -> usize {
        usize::from(matches!(self.steps, Steps::Counted(_)))
    }

    /// How many captures there are.
    pub(crate) fn captures(&self) -> usize {
        self.body.graph().inputs.len() - 1 - self.states - self.slices
    }

    /// Whether the number of steps that were made is an output: the first after the states.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.steps, Steps::Tested(_))
    }

    /// The position of the kept states among the outputs.
    pub(crate) fn slab(&self) -> usize {
        let stacks = self.slots.as_ref().map_or(self.stacks, |slots| slots.after);
        self.states + usize::from(self.counts()) + stacks
    }

    /// The position of a stack among the outputs.
    pub(crate) fn stack(&self, stack: usize) -> usize {
        let behind = self.slots.as_ref().is_some_and(|slots| stack >= slots.after);
        self.states + usize::from(self.counts()) + stack + usize::from(behind)
    }

    /// The bytes of all states, each rounded up, as they are kept together.
    pub(crate) fn state_bytes(&self) -> usize {
        (0..self.states).map(|k| rounded(self.body.input(1 + k).bytes())).sum()
    }

    /// Refuses a budget that not even one state fits into.
    pub(crate) fn check_budget(&self) -> Result<()> {
        let one = self.state_bytes();
        match self.budget {
            Some(budget) if budget < one && self.steps.most() > 0 => {
                let states: Vec<String> =
                    (0..self.states).map(|k| format!("{k}: {}", self.body.input(1 + k))).collect();
                let message = format!(
                    "a gradient budget of {budget} bytes is less than one state of the loop, which takes {one} ({})",
                    states.join(", ")
                );
                Err(Error::value(message).help("allow at least that, and twenty times as much for speed"))
            }
            _ => Ok(()),
        }
    }
}

/// The body of a loop: its first outputs are the new values of its states.
pub(crate) fn body_of(graph: Graph, states: usize, stacks: usize) -> Body {
    let into = (0..states).map(|k| Some(1 + k)).chain((0..stacks).map(|_| None)).collect();
    Body::new(graph, into)
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loop({}, {:?}, {:?})", self.name, self.steps, self.body)
    }
}

impl Op for Loop {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (first, most) = (self.first(), self.steps.most());
        let wanted = first + self.states + self.slices + self.captures();
        if inputs.len() != wanted {
            return Err(Error::value(format!("the loop takes {wanted} inputs, not {}", inputs.len())));
        }
        if first == 1 && *inputs[0] != index_spec() {
            return Err(Error::value(format!("the number of steps is {}, not {}", index_spec(), inputs[0])));
        }
        for (i, input) in inputs[first..].iter().enumerate() {
            let own = self.body.input(1 + i);
            let is_slice = i >= self.states && i < self.states + self.slices;
            let fits = if is_slice { **input == stacked(most, own) } else { *input == own };
            if !fits {
                let what = if i < self.states { "state" } else { "input" };
                let rows = if is_slice { format!("{most} rows of ") } else { String::new() };
                return Err(Error::shape(format!("{what} {i} is {input}, and the body takes {rows}{own}")));
            }
        }
        for k in 0..self.states {
            let (old, new) = (self.body.input(1 + k), self.body.output(k));
            if old != new {
                return Err(Error::shape(format!("state {k} is {old} before a step and {new} after it")));
            }
        }
        let mut outputs: Specs = (0..self.states).map(|k| self.body.output(k).clone()).collect();
        if self.counts() {
            outputs.push(index_spec());
        }
        outputs.extend((0..self.stacks).map(|k| stacked(most, self.body.output(self.states + k))));
        if let Some(Slots { count, .. }) = self.slots {
            outputs.insert(self.slab(), Spec::new(DType::U8, [count, self.state_bytes()]));
        }
        Ok(outputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let mut scratch = scratch;
        let first = self.first();
        let (own, rest) = inputs[first..].split_at(self.states);
        let (slices, captures) = rest.split_at(self.slices);
        let slices: SmallVec<[Rows<'_>; 8]> = (slices.iter().enumerate())
            .map(|(i, slice)| Rows {
                bytes: bytes_of(slice),
                row: self.body.input(1 + self.states + i).bytes(),
            })
            .collect();
        let captures: SmallVec<[&[u8]; 16]> = captures.iter().map(bytes_of).collect();
        for (k, init) in own.iter().enumerate() {
            if let Arg::View(_) = init {
                outputs[k].bytes().copy_from_slice(bytes_of(init));
            }
        }
        let mut outputs = outputs.iter_mut().map(ViewMut::bytes);
        let mut states: SmallVec<[&mut [u8]; 8]> = outputs.by_ref().take(self.states).collect();
        let made = if self.counts() { outputs.next() } else { None };
        let mut stacks: SmallVec<[&mut [u8]; 8]> = outputs.collect();
        let mut keeper =
            self.slots.as_ref().map(|slots| Keeper::new(self, slots, stacks.remove(slots.after)));

        let mut body = Runner::new(&self.body, &mut scratch)?;
        let mut test = match &self.test {
            None => None,
            Some(test) => {
                let answer = take(&mut scratch, rounded(1));
                Some((Runner::new(test, &mut scratch)?, &mut answer[..1]))
            }
        };
        let arena = scratch;
        let most = self.steps.most();
        let steps = match self.steps {
            Steps::Counted(_) => count(&inputs[0]).min(most),
            _ => most,
        };
        let mut step = 0;
        while step < steps {
            let place = if self.reverse { steps - 1 - step } else { step };
            let index = (self.start + place) as i64;
            let index = bytemuck::bytes_of(&index);
            let rest = || slices.iter().map(|slice| slice.row(place)).chain(captures.iter().copied());
            if let Some((test, answer)) = &mut test {
                let states = states.iter().map(|state| &**state);
                test.run([index].into_iter().chain(states), &mut [], rest(), [&mut **answer], arena)?;
                if answer[0] == 0 {
                    break;
                }
            }
            if let Some(keeper) = &mut keeper {
                keeper.see(step, &states);
            }
            let made = stacks.iter_mut().enumerate().map(|(k, stack)| {
                let row = self.body.output(self.states + k).bytes();
                &mut stack[place * row..(place + 1) * row]
            });
            body.run([index], &mut states, rest(), made, arena)?;
            step += 1;
        }
        body.settle(&mut states);
        if step < most {
            for (k, stack) in stacks.iter_mut().enumerate() {
                stack[step * self.body.output(self.states + k).bytes()..].fill(0);
            }
        }
        if let Some(made) = made {
            made.copy_from_slice(bytemuck::bytes_of(&(step as i64)));
        }
        Ok(())
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        let test = self.test.as_ref().map_or((0, 0), |test| (rounded(1), test.arena_bytes()));
        // The body and the test never run at the same time.
        self.body.spare_bytes() + test.0 + self.body.arena_bytes().max(test.1)
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |input| input)
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &taut_core::VmapCall<'_>) -> Result<Option<Outputs>> {
        crate::many::batch_loop(self, call)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let graph = self.body.graph();
        let one = graph.nodes.iter().map(|node| {
            let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
            let outputs: Vec<Spec> = node.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
            node.op.cost(&inputs, &outputs).flops
        });
        // Of an unknown number of steps, the cost of one.
        let steps = if self.steps.most() == usize::MAX { 1 } else { self.steps.most() as u64 };
        let flops = one.fold(0u64, u64::saturating_add).saturating_mul(steps);
        Cost { flops, bytes: Cost::traffic(inputs, outputs) }
    }

    fn attributes(&self) -> String {
        let steps = match self.steps {
            Steps::Known(steps) => format!("steps={steps}"),
            Steps::Tested(usize::MAX) => "steps=while test".into(),
            Steps::Tested(most) => format!("steps=while test, at most {most}"),
            Steps::Counted(most) => format!("steps=first input, at most {most}"),
        };
        let counts = [("states", self.states), ("slices", self.slices), ("stacks", self.stacks)];
        let further = [("start", self.start), ("slots", self.slots.as_ref().map_or(0, |slots| slots.count))];
        let mut parts = vec![steps];
        let named = counts.into_iter().chain(further).filter(|(_, count)| *count > 0);
        parts.extend(named.map(|(name, count)| format!("{name}={count}")));
        if self.reverse {
            parts.push("reverse".into());
        }
        parts.join(", ")
    }
}

impl Subgraphs for Loop {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        let test = self.test.iter().map(|test| ("test", test.graph()));
        test.chain([("body", self.body.graph())]).collect()
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        changed.body = Arc::new(self.body.compiled(change)?);
        if let Some(test) = &self.test {
            changed.test = Some(Arc::new(test.compiled(change)?));
        }
        Ok(Arc::new(changed))
    }

    fn prune_outputs(&self, used: &[bool]) -> Option<PrunedOp> {
        crate::trim::prune_outputs(self, used)
    }
}

impl Differentiable for Loop {
    fn forward_with_residuals(&self, wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        let kept = Reverse::forward_with_residuals(self, wanted)?;
        Ok(kept.map(|kept| -> Arc<dyn Op> { Arc::new(kept) }))
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Reverse::saves(self))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        Reverse::vjp(self, call)
    }
}

/// Whether a graph makes a check for its own sake.
pub(crate) fn checks(graph: &Graph) -> bool {
    graph.effects().is_check()
}

/// The rows of a slice.
pub(crate) struct Rows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) row: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row..(row + 1) * self.row]
    }
}

/// The number of steps that an input says.
pub(crate) fn count(input: &Arg<'_>) -> usize {
    let bytes = bytes_of(input);
    bytes.try_into().map_or(0, |bytes| i64::from_ne_bytes(bytes).max(0) as usize)
}

/// Keeps states as the schedule says.
struct Keeper<'a> {
    schedule: Schedule,
    /// The step before which the state is kept for the way back to begin with, if that is known.
    last: Option<usize>,
    slab: &'a mut [u8],
    row: usize,
}

enum Schedule {
    Known(Known),
    Online(Online),
}

impl<'a> Keeper<'a> {
    fn new(op: &Loop, slots: &Slots, slab: &'a mut [u8]) -> Keeper<'a> {
        let (schedule, last) = match op.steps {
            Steps::Known(steps) => (Schedule::Known(Known::new(steps, slots.count)), steps.checked_sub(1)),
            _ => (Schedule::Online(Online::new(slots.count)), None),
        };
        Keeper { schedule, last, slab, row: op.state_bytes() }
    }

    fn see(&mut self, step: usize, states: &[&mut [u8]]) {
        let slot = match &mut self.schedule {
            Schedule::Known(schedule) => schedule.keep(step),
            Schedule::Online(schedule) => schedule.keep(step),
        };
        // The first state is kept by the caller.
        let rows = slot.filter(|&slot| slot > 0).map(|slot| slot - 1);
        let last = (self.last == Some(step)).then(|| (self.slab.len() / self.row.max(1)).saturating_sub(1));
        for row in rows.into_iter().chain(last) {
            let mut kept = &mut self.slab[row * self.row..(row + 1) * self.row];
            for state in states {
                take(&mut kept, rounded(state.len()))[..state.len()].copy_from_slice(state);
            }
        }
    }
}
