//! Tracing a function for new arguments.

use crate::cache::{CachedTrace, find, has_variables, insert, lock, remove_orphans};
use crate::concrete::{ConcreteFunction, VariableUse};
use crate::first_trace::TraceInProgress;
use crate::function::{Found, Function, OnRetrace, tensors, variables};
use crate::options::FunctionOptions;
use crate::report::{FunctionTrace, TraceReason, changes};
use crate::signature::{Signature, hash};
use crate::tensor_spec::TensorSpec;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use taut_autodiff::nest::{Leaf, Nest};
use taut_autodiff::{Variable, VariableArguments, is_bound_by_identity};
use taut_control::FunctionContext;
use taut_core::graph::{TracedFunction, trace_function};
use taut_core::{Error, ErrorKind, Result, Spec, Tensor, is_tracing, record, warn};
use taut_memory::Location;

/// What the body returned in a trace.
struct TracedBody<R> {
    traced: TracedFunction,
    template: R,
    /// The variables that the trace uses without being given them; `None` if the trace is for the very variables that it was given.
    direct_uses: Option<Vec<u64>>,
}

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
        let TracedBody { traced, template, direct_uses } = match traced {
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
        let given = direct_uses.as_ref().map(|_| variables(arguments)).unwrap_or_default();
        let concrete = ConcreteFunction::new(
            traced,
            &signature,
            &given,
            FunctionOptions { name: self.name.clone(), executable: self.options, budget: self.budget },
        )?;
        let by_identity = has_variables(arguments) && direct_uses.is_none();
        let signature = Arc::new(match direct_uses {
            Some(direct_uses) => {
                let captured = concrete.variables.iter().filter_map(VariableUse::captured);
                let captured = captured.map(Variable::untraced_id);
                Signature::of(arguments, donated).capturing(captured.chain(direct_uses))
            }
            None => Signature::of(arguments, donated).bound(),
        });
        if planned && !is_tracing() {
            self.plan_within_budget(&concrete, arguments, &signature).map_err(|error| error.at(at))?;
        }
        self.open_varying_dimensions(&signature);
        let (text, digest) = (signature.to_string(), signature.digest(by_identity));
        let hash = hash(arguments, donated, by_identity);
        let trace = CachedTrace::new(signature, hash, concrete, template);
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

    /// Runs the body once on tensors without values, and on handles that stand for the variables among the arguments. If it shows
    /// that it cannot be given those, it runs again on the variables themselves.
    fn trace_body<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        signature: &Signature,
        may_create: bool,
        context: &Rc<FunctionContext>,
    ) -> Result<TracedBody<R>> {
        let mut created = Vec::new();
        let by_identity = self.by_identity.load(Ordering::Relaxed) || is_bound_by_identity();
        if has_variables(arguments) && !by_identity {
            let ids = variables(arguments).iter().map(Variable::untraced_id).collect();
            let placeholders = VariableArguments::begin(ids);
            let traced = self.trace_once(signature, may_create, context, |inputs| {
                placeholders.bind(|| arguments.rebuild(&mut inputs.iter().cloned()))
            });
            let placeholders = placeholders.arguments();
            // Its code is the same in the traces to come.
            self.by_identity.fetch_or(placeholders.is_rejected(), Ordering::Relaxed);
            match traced {
                Ok((traced, _)) if placeholders.is_rejected() => created = traced.created,
                Err(_) if placeholders.is_rejected() => {}
                Err(error) => return Err(error),
                Ok((traced, template)) => {
                    // A variable that the function creates may belong to one that it was given: to its first one, say.
                    let depends = placeholders.is_by_identity() || !traced.created.is_empty();
                    let direct_uses = (!depends).then(|| placeholders.direct_uses());
                    return Ok(TracedBody { traced, template, direct_uses });
                }
            }
        }
        let own = |inputs: &[Tensor]| arguments.rebuild(&mut inputs.iter().cloned());
        let (mut traced, template) = self.trace_once(signature, may_create, context, own)?;
        created.append(&mut traced.created);
        let direct_uses = (!has_variables(arguments)).then(Vec::new);
        Ok(TracedBody { traced: TracedFunction { created, ..traced }, template, direct_uses })
    }

    /// Runs the body once, on the arguments that `own` makes of these inputs of the graph.
    fn trace_once(
        &self,
        signature: &Signature,
        may_create: bool,
        context: &Rc<FunctionContext>,
        own: impl FnOnce(&[Tensor]) -> A,
    ) -> Result<(TracedFunction, R)> {
        let specs: Vec<Spec> = signature.specs().cloned().collect();
        record::without_recording(|| {
            trace_function(&specs, may_create, Some(context.clone()), |inputs| {
                let results = (self.body)(&own(inputs))?;
                // A variable that is returned is that of the trace in every call.
                results.leaves(&mut |leaf| {
                    if let Leaf::Variable(variable) | Leaf::BoundVariable(variable) = leaf {
                        variable.id();
                    }
                });
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
        let given = if concrete.takes_variables { variables(arguments) } else { SmallVec::new() };
        concrete.add_variants(&given, |divisor| {
            let context = self.context(Some(divisor));
            let body = self.trace_body(arguments, signature, false, &context)?;
            let is_alike = !concrete.takes_variables || body.direct_uses.is_some();
            Ok((context.has_divided() && is_alike).then_some(body.traced))
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
        let digests = [signature.digest(false), signature.digest(true)];
        let known: Vec<Arc<Signature>> =
            lock(&self.cache).traces().map(|trace| trace.signature.clone()).collect();
        // There is a trace for these arguments, except that one of them is a variable that it captures.
        if let Some(change) = known.iter().find_map(|known| signature.captured_argument(known)) {
            return TraceReason::Changed(vec![change]);
        }
        if digests.iter().any(|digest| lock(&self.report).known.contains(digest)) {
            return TraceReason::Evicted;
        }
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
