//! Variables: state that is updated in place.

use crate::arguments::{self, HandleSource, VariableArguments};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use taut_core::graph::{ExternalState, body_depth, create_state, evaluate, read_state, write_state};
use taut_core::ops::index::TensorScatter;
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::{ComputeDType, Elementwise, PassGradient, PassThrough};
use taut_core::record::{accessed, detached, without_recording};
use taut_core::{
    DType, Error, ErrorKind, Op, Operand, Result, Shape, Spec, Specs, Tensor, apply_at, is_tracing,
    promote_scalar,
};
use taut_kernels::elementwise::{self, Binary};
use taut_kernels::index::Scatter;
use taut_kernels::{Arg, ViewMut};
use taut_memory::{Category, Location};

/// A mutable tensor, which tapes watch automatically.
///
/// Reading does not copy: the tensor that [`Variable::read`] returns shares the variable's memory. An update writes into that
/// memory, so the variable's address stays the same. Only if a tensor that was read before still exists, the update copies:
/// that tensor keeps the old memory, because a tensor never changes.
///
/// A variable can be shared between threads; a read never sees part of an update.
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::Tensor;
/// let step = Variable::new(Tensor::scalar(1.0f32)?)?;
/// step.assign_add(2.0)?;
/// assert_eq!(step.read().item::<f32>()?, 3.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    inner: Arc<Inner>,
    source: HandleSource,
}

struct Inner {
    id: u64,
    name: Option<String>,
    spec: Spec,
    trainable: bool,
    category: Category,
    /// Always `Some`, except during an update, which takes it out and puts the result back.
    value: RwLock<Option<Tensor>>,
    /// The thread that has it locked for an update; 0 if none has.
    updating_thread: AtomicUsize,
}

impl Inner {
    /// Whether this thread has it locked, so that waiting for it would deadlock.
    fn is_locked_here(&self) -> bool {
        self.updating_thread.load(Ordering::Relaxed) == this_thread()
    }
}

/// A number that no other thread has while this one exists.
fn this_thread() -> usize {
    thread_local!(static ME: u8 = const { 0 });
    ME.with(|me| std::ptr::from_ref(me).addr())
}

/// Runs the work it is passed, which blocks until another thread is done.
pub type BlockingHook = fn(&mut dyn FnMut());

static BLOCKING_HOOK: OnceLock<BlockingHook> = OnceLock::new();

/// Sets the hook inside which a thread waits for another thread's update of a variable: a caller with a global lock, such as a
/// Python interpreter, releases it there. Only the first hook that is set is used.
pub fn set_blocking_hook(hook: BlockingHook) {
    let _ = BLOCKING_HOOK.set(hook);
}

fn block_in_hook<R>(mut wait: impl FnMut() -> R) -> R {
    let mut result = None;
    let mut work = || result = Some(wait());
    match BLOCKING_HOOK.get() {
        Some(hook) => hook(&mut work),
        None => work(),
    }
    result.unwrap_or_else(wait)
}

/// Options of a new variable.
#[derive(Clone, Debug)]
pub struct VariableBuilder {
    name: Option<String>,
    trainable: bool,
    category: Category,
}

impl Default for VariableBuilder {
    fn default() -> VariableBuilder {
        VariableBuilder { name: None, trainable: true, category: Category::Variable }
    }
}

impl VariableBuilder {
    /// A name, for messages and checkpoints.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> VariableBuilder {
        self.name = Some(name.into());
        self
    }

    /// Whether tapes watch it automatically; true by default.
    #[must_use]
    pub fn trainable(mut self, trainable: bool) -> VariableBuilder {
        self.trainable = trainable;
        self
    }

    /// The category of its memory, if it is not a model's: an optimizer's state, say.
    #[must_use]
    pub fn category(mut self, category: Category) -> VariableBuilder {
        self.category = category;
        self
    }

    /// A variable with this initial value.
    ///
    /// In the first trace of a function, the variable belongs to that function; a traced value is evaluated immediately, and must
    /// not depend on the function's arguments.
    #[track_caller]
    pub fn build(self, value: impl Into<Tensor>) -> Result<Variable> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let at = Location::caller();
        let value = evaluate(&value.into()).map_err(|e| e.in_op("variable", []).at(at))?;
        let value = own(&value, self.category, at)?;
        let inner = Arc::new(Inner {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            name: self.name,
            spec: value.spec().clone(),
            trainable: self.trainable,
            category: self.category,
            value: RwLock::new(Some(value)),
            updating_thread: AtomicUsize::new(0),
        });
        let variable = Variable { inner, source: HandleSource::Direct };
        create_state(&variable.state()).map_err(|e| e.in_op("variable", [variable.spec()]).at(at))?;
        Ok(variable)
    }
}

impl ExternalState for Inner {
    fn id(&self) -> u64 {
        self.id
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn value(&self) -> Tensor {
        // A trace that reads the value itself, and not a placeholder of it, is for this variable.
        arguments::note_identity(self.id);
        let value = match self.value.try_read() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => {
                assert!(!self.is_locked_here(), "a variable must not be read during its own update");
                block_in_hook(|| self.value.read().unwrap_or_else(PoisonError::into_inner))
            }
        };
        value.clone().expect("a variable always has a value")
    }
}

/// A lock on a variable, for an update in place.
pub struct VariableGuard<'a> {
    value: RwLockWriteGuard<'a, Option<Tensor>>,
    updating_thread: &'a AtomicUsize,
}

impl VariableGuard<'_> {
    /// The value. It has no other handle.
    pub fn tensor(&mut self) -> Option<&mut Tensor> {
        self.value.as_mut()
    }
}

impl Drop for VariableGuard<'_> {
    fn drop(&mut self) {
        self.updating_thread.store(0, Ordering::Relaxed);
    }
}

/// A copy in memory of the variable's category.
fn own(value: &Tensor, category: Category, at: Location) -> Result<Tensor> {
    let view = value.view().map_err(|e| e.at(at))?;
    Tensor::build(value.spec().clone(), category, at, |out| elementwise::copy(view, out.reborrow()))
}

impl Variable {
    /// A trainable variable with this initial value.
    #[track_caller]
    pub fn new(value: impl Into<Tensor>) -> Result<Variable> {
        VariableBuilder::default().build(value)
    }

    /// A variable with a name, or one that is not trainable.
    pub fn builder() -> VariableBuilder {
        VariableBuilder::default()
    }

    /// Its id, unique in the process. A function that asks for it while it is traced is traced for each variable.
    pub fn id(&self) -> u64 {
        arguments::note_identity(self.inner.id);
        self.inner.id
    }

    /// Its id, for a use that the handle stands for: as a source of gradients, say. In a trace, an argument stays an argument.
    pub fn key(&self) -> u64 {
        arguments::note_use(self.inner.id, &self.source);
        self.inner.id
    }

    /// Its id, where a trace does not depend on it.
    pub fn untraced_id(&self) -> u64 {
        self.inner.id
    }

    /// The trace that this handle is an argument of.
    pub fn argument_of(&self) -> Option<&Arc<VariableArguments>> {
        match &self.source {
            HandleSource::Argument(arguments) => Some(arguments),
            HandleSource::Direct | HandleSource::Engine => None,
        }
    }

    /// A handle for a variable whose use in the trace is known already.
    #[must_use]
    pub fn in_engine(self) -> Variable {
        Variable { source: HandleSource::Engine, ..self }
    }

    /// The handle that the arguments of a trace contain, while those are made.
    pub(crate) fn bound(&self) -> Variable {
        let source = arguments::binding(self.inner.id).map(HandleSource::Argument);
        Variable { inner: self.inner.clone(), source: source.unwrap_or_else(|| self.source.clone()) }
    }

    /// Whether it has another handle.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        arguments::note_identity(self.inner.id);
        self.inner.name.as_deref()
    }

    /// Type and shape; they never change.
    pub fn spec(&self) -> &Spec {
        &self.inner.spec
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.inner.spec.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.inner.spec.shape
    }

    /// Whether tapes watch it automatically.
    pub fn is_trainable(&self) -> bool {
        self.inner.trainable
    }

    /// The variable as external state of traced functions.
    pub fn state(&self) -> Arc<dyn ExternalState> {
        arguments::note_use(self.inner.id, &self.source);
        self.inner.clone()
    }

    /// The variable that is this external state.
    pub fn from_state(state: &Arc<dyn ExternalState>) -> Option<Variable> {
        let state: Arc<dyn Any + Send + Sync> = state.clone();
        let inner = state.downcast::<Inner>().ok()?;
        Some(Variable { inner, source: HandleSource::Direct })
    }

    /// Locks the value for an update in place. A value with another handle is copied first, and the handle keeps the old memory.
    ///
    /// Lock several variables in the order of their ids, to avoid deadlocks.
    pub fn lock(&self, at: Location) -> Result<VariableGuard<'_>> {
        arguments::note_identity(self.inner.id);
        let mut value = match self.inner.value.try_write() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.check_unlocked().map_err(|error| error.at(at))?;
                block_in_hook(|| self.inner.value.write().unwrap_or_else(PoisonError::into_inner))
            }
        };
        if value.as_ref().is_some_and(Tensor::is_shared) {
            let copy = value.as_ref().map(|value| own(value, self.inner.category, at)).transpose()?;
            *value = copy;
        }
        self.inner.updating_thread.store(this_thread(), Ordering::Relaxed);
        Ok(VariableGuard { value, updating_thread: &self.inner.updating_thread })
    }

    /// Fails if this thread is inside an update of it, as a signal handler or a callback of a program can be. The value can be
    /// neither read nor written then, and waiting would deadlock.
    pub fn check_unlocked(&self) -> Result<()> {
        if self.inner.is_locked_here() {
            let error = Error::value(format!("the variable {self} must not be used during its own update"));
            return Err(error.help("read or write it after the update"));
        }
        Ok(())
    }

    /// The current value, without a copy. Tapes that track the variable track the result.
    pub fn read(&self) -> Tensor {
        accessed(self, &self.value())
    }

    /// A tensor without a value that tapes track like the value.
    pub fn placeholder(&self) -> Tensor {
        accessed(self, &Tensor::placeholder(self.spec().clone()))
    }

    /// The current value, without a copy and as a constant: tapes do not record the read. In a traced function, it is the value
    /// that a call reads.
    ///
    /// # Panics
    /// If a panic inside an earlier update lost the value; or inside an update of the variable by the same thread, where
    /// [`Variable::check_unlocked`] is an error.
    pub fn value(&self) -> Tensor {
        if is_tracing()
            && let Some(traced) = read_state(&self.state())
        {
            return traced;
        }
        self.stored_value()
    }

    /// The current value, even if a function is being traced.
    fn stored_value(&self) -> Tensor {
        ExternalState::value(&*self.inner)
    }

    /// The address of its first byte.
    pub fn address(&self) -> usize {
        self.stored_value().memory().map_or(0, |(address, _)| address)
    }

    /// Replaces the value.
    #[track_caller]
    pub fn assign(&self, value: impl Into<Operand>) -> Result<()> {
        self.update("assign", &Overwrite, value.into(), Location::caller())
    }

    /// Adds to the value.
    #[track_caller]
    pub fn assign_add(&self, delta: impl Into<Operand>) -> Result<()> {
        static ADD: Elementwise = Elementwise::binary("assign_add", Binary::Add, ComputeDType::Same);
        self.update("assign_add", &ADD, delta.into(), Location::caller())
    }

    /// Subtracts from the value.
    #[track_caller]
    pub fn assign_sub(&self, delta: impl Into<Operand>) -> Result<()> {
        static SUB: Elementwise = Elementwise::binary("assign_sub", Binary::Sub, ComputeDType::Same);
        self.update("assign_sub", &SUB, delta.into(), Location::caller())
    }

    fn update(&self, name: &'static str, op: &dyn Op, value: Operand, at: Location) -> Result<()> {
        let value = match value {
            Operand::Tensor(value) => value,
            Operand::Scalar(scalar) => {
                let is_of_its_type = promote_scalar(self.dtype(), scalar) == self.dtype();
                if !is_of_its_type || !scalar.fits(self.dtype()) {
                    let message =
                        format!("the variable {self} must be assigned values of its type, got {scalar}");
                    let kind = if is_of_its_type { ErrorKind::Value } else { ErrorKind::DType };
                    let error = Error::new(kind, message).help("cast the value");
                    return Err(error.in_op(name, [self.spec()]).at(at));
                }
                broadcast_to(Tensor::constant(scalar, self.dtype())?, self.shape().clone())?
            }
        };
        if value.spec() != self.spec() {
            let message =
                format!("the variable {self} must be assigned values of its spec, got {}", value.spec());
            let kind = if value.dtype() == self.dtype() { ErrorKind::Shape } else { ErrorKind::DType };
            return Err(Error::new(kind, message)
                .in_op(name, [self.spec(), value.spec()])
                .at(at)
                .help("cast or reshape the value"));
        }
        let value = detached(&value);
        if name == Overwrite.name() && is_tracing() {
            // Values of a graph are immutable: the assigned one becomes the state's value in the trace.
            return self.write(&value, at);
        }
        self.apply(op, std::slice::from_ref(&value), at)
            .map_err(|e| e.in_op(name, [self.spec(), value.spec()]))
    }

    /// Applies an op to the value, in place. If it fails, the value is unchanged.
    fn apply(&self, op: &dyn Op, rest: &[Tensor], at: Location) -> Result<()> {
        if is_tracing() {
            return self.trace(op, rest, at);
        }
        let mut locked = self.lock(at)?;
        without_recording(|| taut_core::update(op, &mut locked.value, rest, at))
    }

    /// Traces an update.
    fn trace(&self, op: &dyn Op, rest: &[Tensor], at: Location) -> Result<()> {
        let mut inputs: SmallVec<[Tensor; 3]> =
            std::iter::once(self.value()).chain(rest.iter().cloned()).collect();
        let outputs = without_recording(|| apply_at(op, &mut inputs, at))?;
        self.write(&outputs[0], at)
    }

    /// Writes a value in the current trace.
    fn write(&self, value: &Tensor, at: Location) -> Result<()> {
        let mut value = value.clone();
        if self.dtype().is_inexact() {
            // Inside a body, the old value must be recorded as a read of the variable.
            let before = if body_depth() > 0 { self.read() } else { self.value() };
            value = without_recording(|| apply_at(&ASSIGNED, &mut [value, before], at))?.swap_remove(0);
        }
        let written = write_state(&self.state(), &value).unwrap_or_else(|| {
            let message = format!("the variable {self} must not be updated in a trace of a graph");
            Err(Error::new(ErrorKind::Graph, message).help("return the new value, and assign it afterwards"))
        });
        written.map_err(|error| error.at(at))
    }

    #[track_caller]
    fn scatter(&self, code: Scatter, indices: impl Into<Tensor>, updates: impl Into<Tensor>) -> Result<()> {
        let rest = [detached(&indices.into()), detached(&updates.into())];
        self.apply(&TensorScatter { code }, &rest, Location::caller())
    }
}

macro_rules! scatters {
    ($($(#[$doc:meta])* $name:ident = $code:ident;)*) => {
        impl Variable {$(
            $(#[$doc])*
            ///
            /// The last axis of `indices` holds coordinates, as in
            /// [`tensor_scatter_update`](taut_core::ops::index::tensor_scatter_update).
            #[track_caller]
            pub fn $name(&self, indices: impl Into<Tensor>, updates: impl Into<Tensor>) -> Result<()> {
                self.scatter(Scatter::$code, indices, updates)
            }
        )*}
    };
}

scatters! {
    /// Replaces slices of the value.
    scatter_update = Update;
    /// Adds to slices of the value.
    scatter_add = Add;
    /// Subtracts from slices of the value.
    scatter_sub = Sub;
    /// Multiplies slices of the value.
    scatter_mul = Mul;
    /// Raises slices of the value to the updates where those are larger.
    scatter_max = Max;
    /// Lowers slices of the value to the updates where those are smaller.
    scatter_min = Min;
}

/// The first input, as the new value of a variable whose old value is the second. Gradients do not flow through an assignment, and
/// reads after it are reads of the variable: so the output's gradient is a gradient of the old value.
static ASSIGNED: PassThrough = PassThrough::view("assigned", PassGradient::ToSecond);

/// Writes the second input over the first.
#[derive(Clone, Debug)]
struct Overwrite;

impl Op for Overwrite {
    fn name(&self) -> &'static str {
        "assign"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        elementwise::copy(inputs[1].view(), outputs[0].reborrow());
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }
}

impl From<&Variable> for Tensor {
    /// Reads it.
    fn from(variable: &Variable) -> Tensor {
        variable.read()
    }
}

impl From<&Variable> for Operand {
    /// Reads it.
    fn from(variable: &Variable) -> Operand {
        variable.read().into()
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.name {
            Some(name) => write!(f, "`{name}` {}", self.spec()),
            None => write!(f, "{}", self.spec()),
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({self}, {:?})", self.stored_value())
    }
}
