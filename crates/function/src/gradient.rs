//! A function under a tape: one entry, with a compiled backward pass joined to the forward one by what it keeps.

use crate::compiled::{Compiled, Settings};
use crate::concrete::{Arguments, Concrete, Key, With};
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, OnceLock};
use taut_autodiff::GradientTape;
use taut_autodiff::joint::{InputGradient, JointGraph, SavedFrom, SplitGraph, vjp};
use taut_core::graph::suspend_tracing;
use taut_core::ops::creation::zeros;
use taut_core::{
    Differentiable, Effects, Gradient, Gradients, Graph, IndexedSlices, Op, Result, Saves, Set, Spec, Specs,
    Tensor, VjpCall, is_tracing, record, source_location,
};
use taut_exec::RunInput;
use taut_memory::Location;
use taut_plan::{Home, InputRequest, PlanRequest, Program};

/// The forward program that keeps what is needed, and the backward program that needs it.
pub(crate) struct Differentiated {
    forward: Compiled,
    /// How many results the forward program has before what it keeps.
    results: usize,
    kept: Vec<SavedFrom>,
    /// From what is kept and the gradients of the results.
    backward: Graph,
    /// Uses up what the forward program made for it alone.
    taking: Compiled,
    /// For those who may ask again.
    reading: OnceLock<Compiled>,
    request: PlanRequest,
    settings: Settings,
    /// Which results have gradients: the floats.
    followed: Vec<usize>,
    answers: Vec<InputGradient>,
    /// The whole function, for those who follow the backward pass, too.
    whole: Graph,
    specs: Vec<Spec>,
}

impl Differentiated {
    pub(crate) fn new(concrete: &Concrete, wanted: &[bool]) -> Result<Differentiated> {
        let whole = concrete.graph.clone();
        let specs: Vec<Spec> = whole.outputs.iter().map(|&id| whole.spec(id).clone()).collect();
        let followed: Vec<usize> =
            (0..concrete.results).filter(|&output| specs[output].dtype.is_float()).collect();
        let joint = JointGraph::new(&whole, wanted, &followed, false)?;
        let SplitGraph { forward, backward, saved: kept } = joint.split(concrete.results)?;
        let (results, answers) = (concrete.results, joint.input_gradients);
        let (settings, request) = (concrete.settings(), concrete.request());
        let forward = Compiled::new(&forward, settings, request)?;
        // What was kept is read where it lies.
        let layout = |kept: &SavedFrom| match *kept {
            SavedFrom::Input(i) => request.inputs.get(i).and_then(|given| given.strides.clone()),
            SavedFrom::Output(i) => {
                let layout = &forward.program().results[i].layout;
                (!layout.is_contiguous()).then(|| layout.strides.clone())
            }
        };
        let given = |kept: &SavedFrom| {
            let donated =
                matches!(*kept, SavedFrom::Output(i) if i >= results && is_alone(forward.program(), i));
            InputRequest { strides: layout(kept), donated }
        };
        let given: Vec<InputRequest> = kept.iter().map(given).collect();
        let request = PlanRequest { inputs: given, ..PlanRequest::default() };
        let taking = Compiled::new(&backward, settings, &request)?;
        let reading = OnceLock::new();
        Ok(Differentiated {
            forward,
            results,
            kept,
            backward,
            taking,
            reading,
            request,
            settings,
            followed,
            answers,
            whole,
            specs,
        })
    }

    /// The backward program that leaves what was kept as it is.
    fn reading(&self) -> Result<&Compiled> {
        if let Some(program) = self.reading.get() {
            return Ok(program);
        }
        let mut request = self.request.clone();
        request.inputs.iter_mut().for_each(|given| given.donated = false);
        let made = suspend_tracing(|| Compiled::new(&self.backward, self.settings, &request))?;
        Ok(self.reading.get_or_init(|| made))
    }

    /// The forward and the backward program.
    pub(crate) fn plans(&self) -> (Arc<Program>, Arc<Program>) {
        (self.forward.program().clone(), self.taking.program().clone())
    }

    pub(crate) fn bytes(&self) -> usize {
        let reading = self.reading.get().map_or(0, Compiled::bytes);
        let programs = self.forward.bytes() + self.taking.bytes() + reading;
        programs + self.whole.footprint() + self.backward.footprint()
    }

    pub(crate) fn release(&self) {
        self.forward.release();
        self.taking.release();
        self.reading.get().into_iter().for_each(Compiled::release);
    }

    /// Runs the forward program, and tells those who follow the inputs.
    pub(crate) fn call(
        self: Arc<Self>,
        concrete: &Concrete,
        mut inputs: Vec<Tensor>,
        relieve: &dyn Fn() -> bool,
        at: Location,
    ) -> Result<(Vec<Tensor>, bool)> {
        let simple = record::has_single_use_recorder();
        // Where the backward pass needs what the call writes to: what it was before.
        for (i, used) in concrete.variables.iter().enumerate().filter(|(_, used)| used.writes) {
            let input = concrete.arguments + i;
            if !simple
                || self.kept.iter().any(|kept| matches!(kept, SavedFrom::Input(kept) if *kept == input))
            {
                inputs[input] = used.variable.read();
            }
        }
        let first_key = concrete.arguments + concrete.variables.len();
        let mut arguments: Arguments = inputs[..concrete.arguments].iter().map(record::detached).collect();
        let variables: SmallVec<[Tensor; 8]> =
            inputs[concrete.arguments..first_key].iter().map(record::detached).collect();
        let keys = inputs[first_key..].iter().cloned().map(Key::Tensor).collect();
        let with = With { given: false, variables: Some(&variables), keys, relieve };
        let (mut outputs, grew) = concrete.run(&self.forward, &mut arguments, with, at)?;
        let saved = self
            .kept
            .iter()
            .map(|kept| match *kept {
                SavedFrom::Input(i) => record::detached(&inputs[i]),
                SavedFrom::Output(i) => outputs[i].clone(),
            })
            .collect();
        outputs.truncate(self.results);
        let op = Called { form: self, whole: !simple };
        Ok((record::record_completed(&op, &mut inputs, outputs, saved, at)?, grew))
    }

    /// The gradients of the inputs as the backward program, or its graph, computed them.
    fn gradients(&self, found: Vec<Tensor>) -> Gradients {
        let answer = |answer: &InputGradient| match answer {
            InputGradient::None => None,
            InputGradient::Dense(at) => Some(Gradient::Dense(found[*at].clone())),
            InputGradient::Sparse { values, indices, dense_shape } => Some(Gradient::Sparse(IndexedSlices {
                values: found[*values].clone(),
                indices: found[*indices].clone(),
                dense_shape: dense_shape.clone(),
            })),
        };
        self.answers.iter().map(answer).collect()
    }
}

/// Whether a result is all that lies in a buffer made for it.
fn is_alone(program: &Program, result: usize) -> bool {
    let home = |result: usize| program.storages[program.results[result].storage].home;
    let (layout, own) = (&program.results[result].layout, home(result));
    let bytes = layout.shape.len() * program.results[result].dtype.size();
    matches!(own, Home::Output(_))
        && layout.offset == 0
        && layout.is_contiguous()
        && bytes == program.storages[program.results[result].storage].bytes
        && (0..program.results.len()).filter(|&other| home(other) == own).count() == 1
}

/// A call of a function, as tapes know it.
#[derive(Clone)]
struct Called {
    form: Arc<Differentiated>,
    /// Whether the inputs are kept, too: somebody may follow the backward pass.
    whole: bool,
}

impl fmt::Debug for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Called({} nodes)", self.form.whole.nodes.len())
    }
}

impl Op for Called {
    fn name(&self) -> &'static str {
        "function"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.form.specs[..self.form.results].iter().cloned().collect())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Called {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let inputs = if self.whole { Set::ALL } else { Set::NONE };
        let saved = self.form.results..self.form.results + self.form.kept.len();
        Some(Saves { inputs, outputs: saved.fold(Set::NONE, Set::with), ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let form = &*self.form;
        let mut given: Vec<Tensor> = Vec::new();
        for &output in &form.followed {
            let spec = &form.specs[output];
            given.push(match call.take_gradient(output) {
                Some(gradient) => gradient,
                None => zeros(spec.shape.clone(), spec.dtype)?,
            });
        }
        if record::is_recording() || is_tracing() {
            return if self.whole { self.again(call, &given) } else { self.by_ops(call, given) };
        }
        for gradient in given.iter_mut().filter(|gradient| !gradient.is_contiguous()) {
            *gradient = gradient.copy()?;
        }
        let mut saved: SmallVec<[Tensor; 16]> = SmallVec::new();
        for i in 0..form.kept.len() {
            saved.push(call.take_output(form.results + i)?);
        }
        let at = source_location(Location::caller());
        let donated = |i: usize| form.request.inputs[i].donated;
        if (0..saved.len()).any(|i| donated(i) && !saved[i].is_uniquely_owned()) {
            let mut inputs: SmallVec<[RunInput<'_>; 16]> =
                saved.iter().chain(&given).map(RunInput::Read).collect();
            return Ok(form.gradients(form.reading()?.run(&mut inputs, at)?.0));
        }
        let mut read: SmallVec<[Option<Tensor>; 16]> = SmallVec::new();
        let mut taken: SmallVec<[Option<Tensor>; 16]> = SmallVec::new();
        for (i, tensor) in saved.into_iter().enumerate() {
            let is_donated = donated(i);
            read.push((!is_donated).then(|| tensor.clone()));
            taken.push(is_donated.then_some(tensor));
        }
        let mut inputs: SmallVec<[RunInput<'_>; 16]> = (read.iter().zip(taken))
            .map(|(read, taken)| match (read, taken) {
                (Some(read), _) => RunInput::Read(read),
                (None, Some(taken)) => RunInput::Donated(taken),
                (None, None) => RunInput::Consumed,
            })
            .collect();
        inputs.extend(given.iter().map(RunInput::Read));
        Ok(form.gradients(form.taking.run(&mut inputs, at)?.0))
    }
}

impl Called {
    /// The backward pass op by op, for those who follow it.
    fn by_ops(&self, call: &VjpCall<'_>, given: Vec<Tensor>) -> Result<Gradients> {
        let form = &*self.form;
        let saved = (0..form.kept.len()).map(|i| call.output(form.results + i).cloned());
        let mut inputs: Vec<Tensor> = saved.collect::<Result<_>>()?;
        inputs.extend(given);
        Ok(form.gradients(form.backward.run(&inputs)?))
    }

    /// The whole function again and its gradient, op by op: for those who follow how it came about.
    fn again(&self, call: &VjpCall<'_>, given: &[Tensor]) -> Result<Gradients> {
        let form = &*self.form;
        let inputs: Vec<Tensor> = (0..call.inputs.len())
            .map(|i| taut_autodiff::optimization_barrier(call.input(i)?, given))
            .collect::<Result<_>>()?;
        let tape = GradientTape::new();
        let is_wanted = |i: usize| !matches!(form.answers[i], InputGradient::None);
        let sources: Vec<Tensor> =
            (0..form.answers.len()).filter(|&i| is_wanted(i)).map(|i| inputs[i].clone()).collect();
        tape.watch(&sources);
        let outputs = form.whole.run(&inputs)?;
        let mut found = vjp(&tape, &outputs, &form.followed, given, sources)?.into_iter();
        let answer = |i: usize| if is_wanted(i) { found.next().flatten() } else { None };
        Ok((0..form.answers.len()).map(answer).collect())
    }
}
