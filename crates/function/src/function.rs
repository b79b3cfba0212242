//! The function: its options and its calls.

use crate::budget::{MemoryBudget, MemoryFrontier};
use crate::cache::{CachedTrace, TraceCache, find, lock};
use crate::call::{Arguments, Caller};
use crate::concrete::{VariableArguments, VariableUse};
use crate::first_trace::FirstTrace;
use crate::op_by_op::OpByOpSignature;
use crate::report::{FunctionTrace, TraceReport};
use crate::signature::Signature;
use crate::tensor_spec::TensorSpec;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use taut_autodiff::Variable;
use taut_autodiff::nest::{Leaf, Nest};
use taut_core::{Error, ErrorKind, Result, is_tracing};
use taut_exec::ExecutableOptions;
use taut_memory::{Location, live_bytes};
use taut_plan::Program;

/// What happens when a function has to be traced again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRetrace {
    /// It is traced; a warning is issued once if that happens often.
    #[default]
    Warn,
    /// It is traced without a warning.
    Allow,
    /// The call fails, with what changed.
    Deny,
}

/// The default of [`Function::cache_bytes`].
const CACHE_BYTES: usize = 256 << 20;

/// A function that is traced once per signature and then runs as a planned program. Made by [`function`].
pub struct Function<A, R> {
    pub(crate) body: Box<dyn Fn(&A) -> Result<R> + Send + Sync>,
    pub(crate) name: String,
    pub(crate) input_signature: Option<Vec<TensorSpec>>,
    pub(crate) reduce_retracing: bool,
    pub(crate) on_retrace: OnRetrace,
    pub(crate) cache_bytes: usize,
    pub(crate) options: ExecutableOptions,
    pub(crate) budget: Option<MemoryBudget>,
    pub(crate) cache: Mutex<TraceCache<R>>,
    pub(crate) report: Mutex<TraceReport>,
    pub(crate) calls: AtomicU64,
    pub(crate) first_trace: FirstTrace,
    /// Whether it is traced for the very variables that it is given.
    pub(crate) by_identity: AtomicBool,
    /// Per combination of types and ranks, the dimensions that were found to vary: [`Function::reduce_retracing`].
    pub(crate) open_dimensions: Mutex<Vec<Vec<TensorSpec>>>,
    /// The signatures for which it runs op by op.
    pub(crate) op_by_op: Mutex<Vec<Arc<OpByOpSignature>>>,
}

/// How a call runs.
pub(crate) enum Found<R> {
    /// As the program of a trace.
    Trace(Arc<CachedTrace<R>>),
    /// By calling the body, which captures values of a trace around it.
    Body,
    /// By calling the body on the tensors themselves.
    OpByOp(Arc<OpByOpSignature>),
}

/// Turns a function into one that is traced once per signature: types and shapes of the tensors and variables among its arguments,
/// which of them are the same variable, which plain values. What it computes then runs as one program whose memory is known beforehand.
///
/// The function must take everything that changes as an argument or from a variable; other values that it captures are
/// constants of the trace. Variables that its first trace creates belong to it.
///
/// ```
/// use taut_core::Tensor;
/// use taut_function::function;
/// let f = function(|x: &Tensor| ((x * x)? * 2.0)? + 1.0);
/// let x = Tensor::from_vec(vec![1.0f32; 1000], [1000])?;
/// assert_eq!(f.plan(&x)?.peak_bytes(), 4000); // the result, and nothing else
/// assert_eq!(f.call(&x)?.to_vec::<f32>()?[0], 3.0);
/// assert_eq!(f.traces().len(), 1);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub fn function<A, R>(body: impl Fn(&A) -> Result<R> + Send + Sync + 'static) -> Function<A, R>
where
    A: Nest<Owned = A>,
    R: Nest<Owned = R>,
{
    Function {
        body: Box::new(body),
        name: "function".into(),
        input_signature: None,
        reduce_retracing: false,
        on_retrace: OnRetrace::default(),
        cache_bytes: CACHE_BYTES,
        options: ExecutableOptions::default(),
        budget: None,
        cache: Mutex::new(TraceCache::new()),
        report: Mutex::default(),
        calls: AtomicU64::new(0),
        first_trace: FirstTrace::default(),
        by_identity: AtomicBool::new(false),
        open_dimensions: Mutex::default(),
        op_by_op: Mutex::default(),
    }
}

impl<A, R> Function<A, R>
where
    A: Nest<Owned = A>,
    R: Nest<Owned = R>,
{
    /// A name for messages.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The types and shapes that the tensors among the arguments must have, in order. A dimension that is left open can
    /// have any size: each new size is traced, and does not count as a retrace.
    #[must_use]
    pub fn input_signature(mut self, specs: impl Into<Vec<TensorSpec>>) -> Self {
        self.input_signature = Some(specs.into());
        self
    }

    /// Leaves dimensions open as soon as they vary: further sizes do not count as retraces.
    #[must_use]
    pub fn reduce_retracing(mut self, on: bool) -> Self {
        self.reduce_retracing = on;
        self
    }

    /// Whether it is traced for each variable that it is given. Otherwise one trace serves all variables of a type and shape, unless the
    /// function shows that it depends on which variable it is given: it asks for its number or name, hands it to an optimizer that
    /// keeps state for it, or uses the same variable without being given it.
    #[must_use]
    pub fn trace_each_variable(mut self, on: bool) -> Self {
        self.by_identity = AtomicBool::new(on);
        self
    }

    /// What happens when the function has to be traced again.
    #[must_use]
    pub fn on_retrace(mut self, what: OnRetrace) -> Self {
        self.on_retrace = what;
        self
    }

    /// The most bytes that its traces may hold between calls: graphs, programs, constants, arenas. Beyond that, the least
    /// recently used traces are evicted; the most recently used one stays.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether fused kernels become machine code, on processors for which that is implemented; those in the bodies of loops as
    /// well. It changes speed, not results. On by default; otherwise, and where there is no machine code, they are interpreted.
    #[must_use]
    pub fn jit_compile(mut self, on: bool) -> Self {
        self.options.compile.native = on;
        self
    }

    /// Whether chains of ops are fused into one kernel, in the bodies of loops as well. On by default.
    #[must_use]
    pub fn fuse(mut self, on: bool) -> Self {
        self.options.compile.fuse = on;
        self
    }

    /// Whether calls fill memory with NaN before its first write and after its last use, so that a mistake of the planner
    /// is noticed. For tests: it costs about as much as the work itself.
    #[must_use]
    pub fn verify(mut self, on: bool) -> Self {
        self.options.poison_dead_memory = on;
        self
    }

    /// The bytes that a call may allocate. If the fastest plan needs more, values are dropped and computed again, so that
    /// the call fits at the least added time; the results are the same to the last bit. If no plan fits, the first call fails
    /// before anything runs, and the error names the smallest budget that works.
    ///
    /// ```
    /// use taut_core::{Tensor, ops};
    /// use taut_autodiff::{DenseGradient, gradients};
    /// use taut_function::function;
    /// let step = |x: &Tensor| {
    ///     let mut y = x.clone();
    ///     for _ in 0..32 {
    ///         y = ops::unary::sin(ops::nn::softmax(&y, -1)?)?;
    ///     }
    ///     gradients(&[y], &[x.clone()])?.remove(0).dense()
    /// };
    /// let x = Tensor::from_vec(vec![0.5f32; 64 * 1024], [64, 1024])?;
    /// let plain = function(step);
    /// let small = function(step).memory_budget(plain.plan(&x)?.peak_bytes() / 3);
    /// assert!(small.plan(&x)?.peak_bytes() <= plain.plan(&x)?.peak_bytes() / 3);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[must_use]
    pub fn memory_budget(mut self, budget: impl Into<MemoryBudget>) -> Self {
        self.budget = Some(budget.into());
        self
    }

    /// The plans for these arguments among which a memory budget chooses.
    #[track_caller]
    pub fn frontier<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Arc<MemoryFrontier>> {
        let at = Location::caller();
        // A budget that no plan keeps is not an error here.
        let trace = self.planned(self.find_or_trace(&arguments, false, false, at)?, at)?;
        self.add_variants(&trace.concrete, &arguments, &trace.signature)?;
        trace.concrete.frontier()
    }

    /// Calls the function.
    #[track_caller]
    pub fn call<N: Nest<Owned = A>>(&self, arguments: N) -> Result<R> {
        self.call_at(&arguments, Location::caller())
    }

    /// Calls the function with donated tensors: their memory may be overwritten, or become that of the results. They must
    /// not be shared.
    #[track_caller]
    pub fn call_donated(&self, arguments: A) -> Result<R> {
        let at = Location::caller();
        if is_tracing() {
            return self.call_at(&arguments, at);
        }
        let trace = match self.find_or_trace(&arguments, true, true, at)? {
            Found::OpByOp(found) => return self.run_op_by_op(&found, &arguments),
            found => self.planned(found, at)?,
        };
        let (tensors, given) = (tensors(&arguments), variables(&arguments));
        drop(arguments);
        if let Some(i) =
            tensors.iter().position(|tensor| tensor.is_contiguous() && !tensor.is_uniquely_owned())
        {
            let path = &trace.signature.tensor_paths()[i];
            let (reason, help) = if tensors[i].is_shared() {
                ("other handles share its memory", "drop the other handles, or donate a copy")
            } else {
                ("it is a view of another tensor", "donate a copy")
            };
            let message = format!("{path} is donated to {}, and {reason}", self.name);
            return Err(Error::value(message).help(help).at(at));
        }
        self.run(&trace, tensors, &given, true, at)
    }

    /// The plan for these arguments: the memory of a call, before it runs. Where only types and shapes are known, use
    /// [`Tensor::placeholder`](taut_core::Tensor::placeholder).
    #[track_caller]
    pub fn plan<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Arc<Program>> {
        self.trace_for(&arguments, false, Location::caller())?.concrete.plan()
    }

    /// The plan for donated arguments, as in [`Function::call_donated`].
    #[track_caller]
    pub fn plan_donated<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Arc<Program>> {
        self.trace_for(&arguments, true, Location::caller())?.concrete.plan()
    }

    /// The graph for these arguments, as it was traced.
    #[track_caller]
    pub fn graph<N: Nest<Owned = A>>(&self, arguments: N) -> Result<taut_core::Graph> {
        Ok(self.trace_for(&arguments, false, Location::caller())?.concrete.graph.clone())
    }

    /// The variables that a call with these arguments reads or writes.
    #[track_caller]
    pub fn used_variables<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Vec<Variable>> {
        let trace = self.trace_for(&arguments, false, Location::caller())?;
        let given = variables(&arguments);
        Ok(trace.concrete.variables.iter().map(|used| used.variable(&given).clone()).collect())
    }

    /// The variables that a call with these arguments reads or writes without being given them; all of them, if the trace is for the
    /// very variables that it was given.
    #[track_caller]
    pub fn captured_variables<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Vec<Variable>> {
        let trace = self.trace_for(&arguments, false, Location::caller())?;
        Ok(trace.concrete.variables.iter().filter_map(VariableUse::captured).cloned().collect())
    }

    /// The traces that were made, the last thousand of them.
    pub fn traces(&self) -> Vec<FunctionTrace> {
        lock(&self.report).traces.iter().cloned().collect()
    }

    /// How many traces were made.
    pub fn trace_count(&self) -> usize {
        lock(&self.report).count
    }

    /// How many signatures it was traced for. A new size of an open dimension is not a new signature.
    pub fn signature_count(&self) -> usize {
        lock(&self.report).signatures
    }

    /// The bytes that the traces hold between calls.
    pub fn cached_bytes(&self) -> usize {
        lock(&self.cache).traces().map(|trace| trace.bytes()).sum()
    }

    /// The variables that the first trace created.
    pub fn variables(&self) -> Vec<Variable> {
        self.first_trace.variables()
    }

    /// The plans of a call under a tape that watches every float argument and trainable variable: the forward pass, which
    /// returns the residuals as well, and the backward pass.
    #[track_caller]
    pub fn plan_gradient<N: Nest<Owned = A>>(&self, arguments: N) -> Result<(Arc<Program>, Arc<Program>)> {
        let trace = self.trace_for(&arguments, false, Location::caller())?;
        let wanted = trace.concrete.trainable_inputs(&variables(&arguments));
        Ok(trace.concrete.forward_backward(&wanted)?.plans())
    }

    /// Drops all traces. The variables that the first one created stay, and no other trace may create any.
    pub fn forget(&self) {
        lock(&self.op_by_op).clear();
        *lock(&self.cache) = TraceCache::new();
    }

    /// Frees the arenas that are kept between calls. The traces stay.
    pub fn release(&self) {
        lock(&self.cache).traces().for_each(|trace| trace.concrete.release_arenas());
    }

    fn call_at<N: Nest<Owned = A>>(&self, arguments: &N, at: Location) -> Result<R> {
        match self.find_or_trace(arguments, false, true, at)? {
            Found::Trace(trace) => {
                let given = trace.concrete.takes_variables.then(|| variables(arguments));
                match self.run(&trace, tensors(arguments), &given.unwrap_or_default(), false, at) {
                    // The derivative, which a tape around the call needs, depends on values. Nothing has run.
                    Err(error) if error.kind() == ErrorKind::DynamicShape && !is_tracing() => {
                        let found = self.find_or_add_op_by_op(arguments, &error)?;
                        self.run_op_by_op(&found, arguments)
                    }
                    outcome => outcome,
                }
            }
            Found::Body => (self.body)(&arguments.rebuild(&mut tensors(arguments).into_iter())),
            Found::OpByOp(found) => self.run_op_by_op(&found, arguments),
        }
    }

    fn run(
        &self,
        trace: &Arc<CachedTrace<R>>,
        arguments: Arguments,
        given: &[Variable],
        donated: bool,
        at: Location,
    ) -> Result<R> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let free_memory = || {
            let before = live_bytes();
            self.release();
            live_bytes() < before
        };
        let caller = Caller { at, free_memory: &free_memory };
        let run = trace.concrete.call(arguments, given, donated, caller).map_err(|error| error.at(at))?;
        if run.allocated_arena {
            lock(&self.cache).shrink(self.cache_bytes);
        }
        Ok(trace.template.rebuild(&mut run.outputs.into_iter()))
    }

    fn trace_for<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        donated: bool,
        at: Location,
    ) -> Result<Arc<CachedTrace<R>>> {
        self.planned(self.find_or_trace(arguments, donated, true, at)?, at)
    }

    /// The trace; an error if there is none.
    fn planned(&self, found: Found<R>, at: Location) -> Result<Arc<CachedTrace<R>>> {
        match found {
            Found::Trace(trace) => Ok(trace),
            Found::OpByOp(found) => Err(self.no_plan(&found).at(at)),
            Found::Body => {
                let message =
                    format!("{} captures a tensor of the function that is being traced around it", self.name);
                Err(Error::new(ErrorKind::Graph, message).help("pass it as an argument").at(at))
            }
        }
    }

    /// How a call with these arguments runs: the trace is made now if there is none, and planned unless `planned` is not set. There
    /// cannot be one if a shape depends on a value; and inside another function's trace, a function may capture values of that trace.
    fn find_or_trace<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        donated: bool,
        planned: bool,
        at: Location,
    ) -> Result<Found<R>> {
        if let Some(trace) = find(&self.cache, arguments, donated) {
            note_bound(&trace.signature, arguments);
            return Ok(Found::Trace(trace));
        }
        if let Some(found) = self.find_op_by_op(arguments, donated) {
            if self.input_signature.is_some() {
                let signature = Signature::of(arguments, donated);
                self.check_signature(&signature).map_err(|error| error.at(at))?;
            }
            return Ok(Found::OpByOp(found));
        }
        let found = self.trace(arguments, donated, planned, at)?;
        if let Found::Trace(trace) = &found {
            note_bound(&trace.signature, arguments);
        }
        Ok(found)
    }
}

/// If a trace is for the very variables that it was made with, so is a trace around this call that was given them.
fn note_bound<N: Nest>(signature: &Signature, arguments: &N) {
    if is_tracing() && signature.is_bound() {
        arguments.leaves(&mut |leaf| {
            if let Leaf::Variable(variable) | Leaf::BoundVariable(variable) = leaf {
                variable.id();
            }
        });
    }
}

/// The different variables among arguments for which one trace may serve, in order.
pub(crate) fn variables<N: Nest>(arguments: &N) -> VariableArguments {
    let mut found = VariableArguments::new();
    arguments.leaves(&mut |leaf| {
        if let Leaf::Variable(variable) = leaf
            && !found.iter().any(|other| other.untraced_id() == variable.untraced_id())
        {
            found.push(variable.clone());
        }
    });
    found
}

/// The tensors among arguments or results.
pub(crate) fn tensors<N: Nest>(nest: &N) -> Arguments {
    let mut tensors = Arguments::new();
    nest.leaves(&mut |leaf| {
        if let Leaf::Tensor(tensor) = leaf {
            tensors.push(tensor.clone());
        }
    });
    tensors
}

impl<A, R> fmt::Debug for Function<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = lock(&self.report);
        write!(f, "{}: {} traces, {:.2} ms", self.name, report.count, report.time.as_secs_f64() * 1e3)
    }
}
