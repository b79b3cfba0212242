//! The function: what people call.

use crate::cache::{self, Cache, Entry, lock};
use crate::compiled::Settings;
use crate::concrete::{Arguments, Concrete};
use crate::report::{Reason, Trace, TraceReport, changes};
use crate::signature::{Signature, TensorSpec, hash};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;
use taut_autodiff::Variable;
use taut_autodiff::nest::{Leaf, Nest};
use taut_core::graph::trace_function;
use taut_core::{Error, ErrorKind, Result, Spec, is_tracing, record, warn};
use taut_memory::{Location, live_bytes};
use taut_plan::Program;

/// What happens when a function has to be traced again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRetrace {
    /// It is; and people are told once if that happens often.
    #[default]
    Warn,
    /// It is, in silence.
    Allow,
    /// The call is refused, with what changed.
    Deny,
}

/// The bytes that a function's traces may hold between calls, unless it is told otherwise.
const CACHE_BYTES: usize = 256 << 20;

/// A function that is traced once per signature and then runs as a planned program. Made by [`function`].
pub struct Function<A, R> {
    body: Box<dyn Fn(&A) -> Result<R> + Send + Sync>,
    name: String,
    input_signature: Option<Vec<TensorSpec>>,
    reduce_retracing: bool,
    on_retrace: OnRetrace,
    cache_bytes: usize,
    settings: Settings,
    cache: Mutex<Cache<R>>,
    report: Mutex<TraceReport>,
    calls: AtomicU64,
    first: Mutex<First>,
    /// Told when a first trace is over.
    over: Condvar,
    /// What sizes were found to vary, per tensor argument.
    open: Mutex<Vec<Vec<TensorSpec>>>,
}

/// The trace that may make variables.
enum First {
    /// Still to be made.
    Open,
    /// Some thread is making it.
    UnderWay,
    /// It is there, and these are its variables.
    Made(Vec<Variable>),
}

thread_local! {
    /// The traces that this thread is making: the function's address, and the signature.
    static TRACING: RefCell<Vec<(usize, Arc<Signature>)>> = const { RefCell::new(Vec::new()) };
}

/// Turns a function into one that is traced once per signature: types and shapes of the tensors among its arguments,
/// which variables, which plain values. What it computes then runs as one program whose memory is known beforehand.
///
/// The function must take everything that changes as an argument or from a variable; what it captures besides is fixed in
/// the trace. Variables that its first trace makes belong to it.
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
        settings: Settings::default(),
        cache: Mutex::new(Cache::new()),
        report: Mutex::default(),
        calls: AtomicU64::new(0),
        first: Mutex::new(First::Open),
        over: Condvar::new(),
        open: Mutex::default(),
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
    /// have any size: programs for other sizes are made as they are needed, and count as no retrace.
    #[must_use]
    pub fn input_signature(mut self, specs: impl Into<Vec<TensorSpec>>) -> Self {
        self.input_signature = Some(specs.into());
        self
    }

    /// Leaves sizes open as soon as they turn out to vary: further sizes count as no retrace.
    #[must_use]
    pub fn reduce_retracing(mut self, on: bool) -> Self {
        self.reduce_retracing = on;
        self
    }

    /// What happens when the function has to be traced again.
    #[must_use]
    pub fn on_retrace(mut self, what: OnRetrace) -> Self {
        self.on_retrace = what;
        self
    }

    /// How many bytes its traces may hold between calls: graphs, programs, constants, arenas. Beyond that, what was not
    /// used for longest is forgotten; the trace used last stays.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether fused loops become machine code, where this machine's kind is known. It changes speed, and no results.
    #[must_use]
    pub fn jit_compile(mut self, on: bool) -> Self {
        self.settings.options.native = on;
        self
    }

    /// Whether chains of operations become single passes over memory. They do, unless it is said here.
    #[must_use]
    pub fn fuse(mut self, on: bool) -> Self {
        self.settings.options.fuse = on;
        self
    }

    /// Whether calls overwrite memory with nonsense before anything lies there and after its last use, so that a mistake
    /// of the planner shows. For tests: it costs about as much as the work itself.
    #[must_use]
    pub fn verify(mut self, on: bool) -> Self {
        self.settings.verify = on;
        self
    }

    /// Calls the function.
    #[track_caller]
    pub fn call<N: Nest<Owned = A>>(&self, arguments: N) -> Result<R> {
        self.run(&arguments, false, Location::caller())
    }

    /// Calls the function with tensors that are given to it: their memory may become that of the results. Nobody else
    /// may hold them.
    #[track_caller]
    pub fn give(&self, arguments: A) -> Result<R> {
        let at = Location::caller();
        if is_tracing() {
            return self.run(&arguments, false, at);
        }
        let entry = self.entry(&arguments, true, at)?;
        let tensors = tensors(&arguments);
        drop(arguments);
        if let Some(i) =
            tensors.iter().position(|tensor| tensor.is_contiguous() && !tensor.is_uniquely_owned())
        {
            let path = &entry.signature.tensor_paths()[i];
            let (reason, help) = if tensors[i].is_shared() {
                ("somebody else still holds it", "drop the other handles, or give a copy")
            } else {
                ("it is a view of another's memory", "give a copy")
            };
            return Err(Error::value(format!("{path} is given to {}, and {reason}", self.name))
                .help(help)
                .at(at));
        }
        self.finish(&entry, tensors, true, at)
    }

    /// The plan for these arguments: what a call needs, before it runs. Where only types and shapes are known, use
    /// [`Tensor::placeholder`](taut_core::Tensor::placeholder).
    #[track_caller]
    pub fn plan<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Arc<Program>> {
        self.entry(&arguments, false, Location::caller())?.concrete.plan()
    }

    /// The plan for arguments that are given, as in [`Function::give`].
    #[track_caller]
    pub fn plan_given<N: Nest<Owned = A>>(&self, arguments: N) -> Result<Arc<Program>> {
        self.entry(&arguments, true, Location::caller())?.concrete.plan()
    }

    /// The graph for these arguments, as it was traced.
    #[track_caller]
    pub fn graph<N: Nest<Owned = A>>(&self, arguments: N) -> Result<taut_core::Graph> {
        Ok(self.entry(&arguments, false, Location::caller())?.concrete.graph.clone())
    }

    /// The traces that were made, the last thousand of them.
    pub fn traces(&self) -> Vec<Trace> {
        lock(&self.report).traces.iter().cloned().collect()
    }

    /// How many traces were made.
    pub fn trace_count(&self) -> usize {
        lock(&self.report).made
    }

    /// The bytes that the traces hold between calls.
    pub fn cached_bytes(&self) -> usize {
        lock(&self.cache).entries().map(|entry| entry.bytes()).sum()
    }

    /// The variables that the first trace made.
    pub fn variables(&self) -> Vec<Variable> {
        match &*lock(&self.first) {
            First::Made(variables) => variables.clone(),
            First::Open | First::UnderWay => Vec::new(),
        }
    }

    /// The plans of a call under a tape that follows every float argument and trainable variable: the forward program, which
    /// returns what is kept as well, and the backward program.
    #[track_caller]
    pub fn plan_gradient<N: Nest<Owned = A>>(&self, arguments: N) -> Result<(Arc<Program>, Arc<Program>)> {
        let entry = self.entry(&arguments, false, Location::caller())?;
        Ok(entry.concrete.differentiated(&entry.concrete.trainable())?.plans())
    }

    /// Forgets all traces. The variables that the first one made stay, and no other trace may make any.
    pub fn forget(&self) {
        *lock(&self.cache) = Cache::new();
    }

    /// Gives back the memory that is kept between calls. The traces stay.
    pub fn release(&self) {
        lock(&self.cache).entries().for_each(|entry| entry.concrete.release());
    }

    fn run<N: Nest<Owned = A>>(&self, arguments: &N, given: bool, at: Location) -> Result<R> {
        match self.look_up(arguments, given, at)? {
            Some(entry) => self.finish(&entry, tensors(arguments), given, at),
            None => (self.body)(&arguments.rebuild(&mut tensors(arguments).into_iter())),
        }
    }

    fn finish(&self, entry: &Arc<Entry<R>>, mut tensors: Arguments, given: bool, at: Location) -> Result<R> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let relieve = || {
            // The arenas of other traces only wait for their next call.
            let before = live_bytes();
            self.release();
            live_bytes() < before
        };
        let outcome = entry.concrete.call(&mut tensors, given, &relieve, at);
        let (outputs, grew) = outcome.map_err(|error| error.at(at))?;
        if grew {
            lock(&self.cache).shrink(self.cache_bytes);
        }
        Ok(entry.template.rebuild(&mut outputs.into_iter()))
    }

    fn entry<N: Nest<Owned = A>>(&self, arguments: &N, given: bool, at: Location) -> Result<Arc<Entry<R>>> {
        self.look_up(arguments, given, at)?.ok_or_else(|| {
            let message = format!("{} uses a tensor of the function that is traced around it", self.name);
            Error::new(ErrorKind::Graph, message).help("pass it as an argument").at(at)
        })
    }

    /// The trace for these arguments, made now if there is none. `None` if there cannot be one: inside another function's
    /// trace, a function may use values of that trace that are not among its arguments.
    fn look_up<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        given: bool,
        at: Location,
    ) -> Result<Option<Arc<Entry<R>>>> {
        let found = cache::find(&self.cache, arguments, given);
        match found {
            Some(entry) => Ok(Some(entry)),
            None => self.trace(arguments, given, at),
        }
    }

    #[cold]
    fn trace<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        given: bool,
        at: Location,
    ) -> Result<Option<Arc<Entry<R>>>> {
        let start = Instant::now();
        let (signature, hash) = (Arc::new(Signature::of(arguments, given)), hash(arguments, given));
        self.check(&signature).map_err(|error| error.at(at))?;
        let (reason, digest) = (self.reason(&signature), signature.digest());
        if let (OnRetrace::Deny, Reason::Changed(_)) = (self.on_retrace, &reason) {
            let so_far = lock(&self.report).time.as_secs_f64() * 1e3;
            let message = format!(
                "{} must not be traced again: {reason} ({so_far:.1} ms of tracing so far)",
                self.name
            );
            let help = "leave sizes open with input_signature, or allow it with on_retrace";
            return Err(Error::value(message).help(help).at(at));
        }

        let here = std::ptr::from_ref(self).addr();
        let is_here = |(of, traced): &(usize, Arc<Signature>)| *of == here && traced.is_like(&signature);
        // A copy: comparing values may trace.
        if TRACING.with_borrow(Vec::clone).iter().any(is_here) {
            let message = format!("{} calls itself while it is traced, with the same signature", self.name);
            return Err(Error::new(ErrorKind::Graph, message).at(at));
        }
        let first = self.begin();
        if let Some(found) = cache::find(&self.cache, arguments, given) {
            return Ok(Some(found)); // another thread was faster
        }
        let may_create = first.is_some();

        let specs: Vec<Spec> = signature.specs().cloned().collect();
        let guard = Under::new((here, signature.clone()));
        let outcome = record::without_recording(|| {
            trace_function(&specs, may_create, |inputs| {
                let own = arguments.rebuild(&mut inputs.iter().cloned());
                let results = (self.body)(&own)?;
                Ok((tensors(&results).into_vec(), results))
            })
        });
        drop(guard);
        let (traced, template) = outcome.map_err(|error| error.at(at))?;
        if !traced.captures.is_empty() {
            return Ok(None);
        }
        let created: Vec<Variable> = traced.created.iter().filter_map(Variable::from_state).collect();
        let concrete = Concrete::new(traced, &signature, self.settings)?;
        if !is_tracing() {
            concrete.plan().map_err(|error| error.at(at))?;
        }
        self.remember(&signature);
        let text = signature.to_string();
        let entry = Entry::new(signature, hash, concrete, template);
        let trace = Trace {
            signature: text,
            reason,
            time: start.elapsed(),
            bytes: entry.bytes() + entry.concrete.arena_bytes(),
            peak_bytes: entry.concrete.peak_bytes(),
        };
        cache::sweep(&self.cache);
        let (entry, is_new) = cache::insert(&self.cache, entry, arguments);
        lock(&self.cache).shrink(self.cache_bytes);
        // Only now: who waits for the first trace looks for it in the cache.
        if let Some(first) = first {
            first.end(created);
        }
        if !is_new {
            return Ok(Some(entry));
        }
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        let told = {
            let mut report = lock(&self.report);
            report.known.insert(digest);
            report.add(&self.name, trace, calls)
        };
        if let (Some(told), OnRetrace::Warn) = (told, self.on_retrace) {
            warn(&told);
        }
        Ok(Some(entry))
    }

    /// Begins the first trace, if this is it; waits for another thread that is making it. A thread that is tracing already
    /// does not wait: that could be in a circle.
    fn begin(&self) -> Option<FirstTrace<'_>> {
        let mut first = lock(&self.first);
        let may_wait = TRACING.with_borrow(Vec::is_empty);
        while matches!(*first, First::UnderWay) && may_wait {
            first = self.over.wait(first).unwrap_or_else(PoisonError::into_inner);
        }
        if !matches!(*first, First::Open) {
            return None;
        }
        *first = First::UnderWay;
        Some(FirstTrace { first: &self.first, over: &self.over })
    }

    /// Refuses arguments that the input signature does not cover.
    fn check(&self, signature: &Signature) -> Result<()> {
        let Some(specs) = &self.input_signature else { return Ok(()) };
        let found: Vec<&Spec> = signature.specs().collect();
        if found.len() != specs.len() {
            let message = format!(
                "{} takes {} tensors by its input signature, not {}",
                self.name,
                specs.len(),
                found.len()
            );
            return Err(Error::value(message));
        }
        let paths = signature.tensor_paths();
        match (0..specs.len()).find(|&i| !specs[i].covers(found[i])) {
            None => Ok(()),
            Some(i) => {
                let message = format!(
                    "{} takes {} as {} by its input signature, not {}",
                    self.name, paths[i], specs[i], found[i]
                );
                let kind = if specs[i].dtype == found[i].dtype { ErrorKind::Shape } else { ErrorKind::DType };
                Err(Error::new(kind, message))
            }
        }
    }

    fn reason(&self, signature: &Signature) -> Reason {
        if lock(&self.report).known.contains(&signature.digest()) {
            return Reason::Forgotten;
        }
        let known: Vec<Arc<Signature>> =
            lock(&self.cache).entries().map(|entry| entry.signature.clone()).collect();
        let Some(changes) = changes(signature, known.iter().map(|known| &**known)) else {
            return Reason::First;
        };
        let only_sizes = !changes.is_empty() && changes.iter().all(|change| change.only_sizes);
        if only_sizes && (self.input_signature.is_some() || self.is_open(signature)) {
            return Reason::OpenSize(changes);
        }
        Reason::Changed(changes)
    }

    /// Whether sizes that vary were left open so that these are among them.
    fn is_open(&self, signature: &Signature) -> bool {
        let fits = |specs: &Vec<TensorSpec>| {
            specs.len() == signature.specs().count()
                && specs.iter().zip(signature.specs()).all(|(open, spec)| open.covers(spec))
        };
        lock(&self.open).iter().any(fits)
    }

    /// Leaves open what varies.
    fn remember(&self, signature: &Signature) {
        if !self.reduce_retracing {
            return;
        }
        let mut open = lock(&self.open);
        let alike = |specs: &&mut Vec<TensorSpec>| {
            specs.len() == signature.specs().count()
                && specs
                    .iter()
                    .zip(signature.specs())
                    .all(|(open, spec)| open.dtype == spec.dtype && open.dims.len() == spec.shape.rank())
        };
        match open.iter_mut().find(alike) {
            Some(specs) => specs.iter_mut().zip(signature.specs()).for_each(|(o, s)| o.around(&s.shape)),
            None => open.push(signature.specs().map(TensorSpec::from).collect()),
        }
    }
}

/// The first trace while it is made. If it fails, another one is the first.
struct FirstTrace<'a> {
    first: &'a Mutex<First>,
    over: &'a Condvar,
}

impl FirstTrace<'_> {
    fn end(self, variables: Vec<Variable>) {
        *lock(self.first) = First::Made(variables);
    }
}

impl Drop for FirstTrace<'_> {
    fn drop(&mut self) {
        let mut first = lock(self.first);
        if matches!(*first, First::UnderWay) {
            *first = First::Open;
        }
        drop(first);
        self.over.notify_all();
    }
}

/// The trace that this thread is making, until it is dropped.
struct Under;

impl Under {
    fn new(what: (usize, Arc<Signature>)) -> Under {
        TRACING.with_borrow_mut(|tracing| tracing.push(what));
        Under
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        TRACING.with_borrow_mut(Vec::pop);
    }
}

fn tensors<N: Nest>(nest: &N) -> Arguments {
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
        write!(f, "{}: {} traces, {:.2} ms", self.name, report.made, report.time.as_secs_f64() * 1e3)
    }
}
