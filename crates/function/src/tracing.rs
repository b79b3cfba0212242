//! Tracing a function for new arguments.

use crate::cache::{CachedTrace, find, insert, lock, remove_orphans};
use crate::concrete::ConcreteFunction;
use crate::first_trace::TraceInProgress;
use crate::function::{Found, Function, OnRetrace, tensors};
use crate::options::FunctionOptions;
use crate::report::{FunctionTrace, TraceReason, changes};
use crate::signature::{Signature, hash};
use crate::tensor_spec::TensorSpec;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use taut_autodiff::Variable;
use taut_autodiff::nest::Nest;
use taut_control::FunctionContext;
use taut_core::graph::{TracedFunction, trace_function};
use taut_core::{Error, ErrorKind, Result, Spec, is_tracing, record, warn};
use taut_memory::Location;

impl<A, R> Function<A, R>
where
    A: Nest<Owned = A>,
    R: Nest<Owned = R>,
{
    /// Traces the function for these arguments, and plans it unless `planned` is not set.
    #[cold]
    pub(crate) fn trace<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        donated: bool,
        planned: bool,
        at: Location,
    ) -> Result<Found<R>> {
        let start = Instant::now();
        let signature = Arc::new(Signature::of(arguments, donated));
        self.check_signature(&signature).map_err(|error| error.at(at))?;
        let reason = self.trace_reason(&signature);
        self.check_retrace(&reason).map_err(|error| error.at(at))?;
        let address = std::ptr::from_ref(self).addr();
        if TraceInProgress::exists(address, &signature) {
            let message = format!("{} calls itself while it is traced, with the same signature", self.name);
            return Err(Error::new(ErrorKind::Graph, message).at(at));
        }
        let first = self.first_trace.begin();
        if let Some(found) = find(&self.cache, arguments, donated) {
            return Ok(Found::Trace(found)); // another thread was faster
        }
        let in_progress = TraceInProgress::begin(address, &signature);
        let traced = self.trace_body(arguments, &signature, first.is_some(), &self.context(None));
        drop(in_progress);
        let (traced, template) = match traced {
            // In the trace of another function, that one runs op by op.
            Err(error) if error.kind() == ErrorKind::DynamicShape && !is_tracing() => {
                return self.add_op_by_op(signature, &error.at(at)).map(Found::OpByOp);
            }
            outcome => outcome.map_err(|error| error.at(at))?,
        };
        if !traced.captures.is_empty() {
            return Ok(Found::Body);
        }
        let created: Vec<Variable> = traced.created.iter().filter_map(Variable::from_state).collect();
        let concrete = ConcreteFunction::new(
            traced,
            &signature,
            FunctionOptions { name: self.name.clone(), executable: self.options, budget: self.budget },
        )?;
        if planned && !is_tracing() {
            self.plan_within_budget(&concrete, arguments, &signature).map_err(|error| error.at(at))?;
        }
        self.open_varying_dimensions(&signature);
        let (text, digest) = (signature.to_string(), signature.digest());
        let trace = CachedTrace::new(signature, hash(arguments, donated), concrete, template);
        let info = FunctionTrace {
            signature: text,
            reason,
            time: start.elapsed(),
            bytes: trace.bytes() + trace.concrete.arena_bytes(),
            peak_bytes: trace.concrete.peak_bytes(),
        };
        remove_orphans(&self.cache);
        let (trace, is_new) = insert(&self.cache, trace, arguments);
        lock(&self.cache).shrink(self.cache_bytes);
        // After the insertion: threads that wait for the first trace look it up in the cache.
        if let Some(first) = first {
            first.end(created);
        }
        if is_new {
            self.report_trace(info, digest);
        }
        Ok(Found::Trace(trace))
    }

    /// What loops and branches are built with: their bodies are compiled with the function's options.
    fn context(&self, residual_divisor: Option<usize>) -> Rc<FunctionContext> {
        Rc::new(FunctionContext::new(self.options.compile, residual_divisor))
    }

    /// Runs the body once on tensors without values.
    fn trace_body<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        signature: &Signature,
        may_create: bool,
        context: &Rc<FunctionContext>,
    ) -> Result<(TracedFunction, R)> {
        let specs: Vec<Spec> = signature.specs().cloned().collect();
        record::without_recording(|| {
            trace_function(&specs, may_create, Some(context.clone()), |inputs| {
                let own = arguments.rebuild(&mut inputs.iter().cloned());
                let results = (self.body)(&own)?;
                Ok((tensors(&results).into_vec(), results))
            })
        })
    }

    /// Plans a trace. If that exceeds the memory budget, it is traced again with loops whose gradients keep less.
    fn plan_within_budget<N: Nest<Owned = A>>(
        &self,
        concrete: &ConcreteFunction,
        arguments: &N,
        signature: &Signature,
    ) -> Result<()> {
        if concrete.exceeds_budget()? {
            self.add_variants(concrete, arguments, signature)?;
        }
        concrete.plan().map(drop)
    }

    /// Traces the function again with loops whose gradients keep less, for the memory frontier.
    pub(crate) fn add_variants<N: Nest<Owned = A>>(
        &self,
        concrete: &ConcreteFunction,
        arguments: &N,
        signature: &Signature,
    ) -> Result<()> {
        concrete.add_variants(|divisor| {
            let context = self.context(Some(divisor));
            let (traced, _) = self.trace_body(arguments, signature, false, &context)?;
            Ok(context.has_divided().then_some(traced))
        })
    }

    fn report_trace(&self, trace: FunctionTrace, digest: u64) {
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        let warning = {
            let mut report = lock(&self.report);
            report.known.insert(digest);
            report.add(&self.name, trace, calls)
        };
        if let (Some(warning), OnRetrace::Warn) = (warning, self.on_retrace) {
            warn(&warning);
        }
    }

    /// Checks the arguments against the input signature.
    pub(crate) fn check_signature(&self, signature: &Signature) -> Result<()> {
        let Some(specs) = &self.input_signature else { return Ok(()) };
        let found: Vec<&Spec> = signature.specs().collect();
        let (expected, got) = (specs.len(), found.len());
        if got != expected {
            let message = format!("{} takes {expected} tensors by its input signature, got {got}", self.name);
            return Err(Error::value(message));
        }
        let Some(i) = (0..specs.len()).find(|&i| !specs[i].covers(found[i])) else { return Ok(()) };
        let path = &signature.tensor_paths()[i];
        let message =
            format!("{path} of {} must be {} by its input signature, got {}", self.name, specs[i], found[i]);
        let kind = if specs[i].dtype == found[i].dtype { ErrorKind::Shape } else { ErrorKind::DType };
        Err(Error::new(kind, message))
    }

    /// Checks that the function may be traced again.
    fn check_retrace(&self, reason: &TraceReason) -> Result<()> {
        let (OnRetrace::Deny, TraceReason::Changed(_)) = (self.on_retrace, reason) else { return Ok(()) };
        let total = lock(&self.report).time.as_secs_f64() * 1e3;
        let message =
            format!("{} must not be traced again: {reason} ({total:.1} ms of tracing so far)", self.name);
        let help = "leave dimensions open with input_signature, or allow it with on_retrace";
        Err(Error::value(message).help(help))
    }

    fn trace_reason(&self, signature: &Signature) -> TraceReason {
        // Before the lock: it asks for the text of plain values, which may call methods of this function.
        let digest = signature.digest();
        if lock(&self.report).known.contains(&digest) {
            return TraceReason::Evicted;
        }
        let known: Vec<Arc<Signature>> =
            lock(&self.cache).traces().map(|trace| trace.signature.clone()).collect();
        let has_open_shapes = self.input_signature.is_some() || self.has_open_dimensions(signature);
        let Some(changes) = changes(signature, known.iter().map(|known| &**known)) else {
            return TraceReason::First;
        };
        if has_open_shapes && known.iter().any(|known| known.differs_only_in_shapes(signature)) {
            return TraceReason::OpenSize(changes);
        }
        TraceReason::Changed(changes)
    }

    /// Whether the dimensions that differ were left open before.
    fn has_open_dimensions(&self, signature: &Signature) -> bool {
        let covers = |specs: &Vec<TensorSpec>| {
            specs.len() == signature.specs().count()
                && specs.iter().zip(signature.specs()).all(|(open, spec)| open.covers(spec))
        };
        lock(&self.open_dimensions).iter().any(covers)
    }

    /// Leaves the dimensions open that vary, if the function reduces retracing.
    fn open_varying_dimensions(&self, signature: &Signature) {
        if !self.reduce_retracing {
            return;
        }
        let mut known = lock(&self.open_dimensions);
        let has_same_types = |specs: &&mut Vec<TensorSpec>| {
            let mut pairs = specs.iter().zip(signature.specs());
            specs.len() == signature.specs().count() && pairs.all(|(open, spec)| open.dtype == spec.dtype)
        };
        match known.iter_mut().find(has_same_types) {
            Some(specs) => {
                specs.iter_mut().zip(signature.specs()).for_each(|(o, s)| o.open_differences(&s.shape));
            }
            None => known.push(signature.specs().map(TensorSpec::from).collect()),
        }
    }
}
