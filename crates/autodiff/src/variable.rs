//! State that is updated in its own memory.

use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use taut_core::graph::{State, body_depth, create_state, evaluate, read_state, write_state};
use taut_core::ops::index::TensorScatter;
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::{Elementwise, PassGradient, PassThrough, Types};
use taut_core::record::{accessed, detached, without_recording};
use taut_core::{
    DType, Error, ErrorKind, Op, Operand, Result, Shape, Spec, Specs, Tensor, apply_at, is_tracing,
    promote_scalar,
};
use taut_kernels::elementwise::{self, Binary};
use taut_kernels::index::Scatter;
use taut_kernels::{Arg, ViewMut};
use taut_memory::{Category, Location};

/// A tensor that can be changed, and that tapes watch by themselves.
///
/// Reading costs nothing: the tensor that [`Variable::read`] returns looks at the variable's own memory. An update
/// writes into that memory too, so the variable's address stays the same; only if somebody still holds a value that
/// was read before, the update leaves it that memory and goes on in its own, because nothing changes a tensor that
/// somebody holds.
///
/// A variable can be shared between threads; each read sees a whole update or none.
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
pub struct Variable(Arc<Inner>);

struct Inner {
    id: u64,
    name: Option<String>,
    spec: Spec,
    trainable: bool,
    category: Category,
    /// Always there; an update takes it out and puts the result back.
    value: RwLock<Option<Tensor>>,
    /// The thread that holds it to change it; 0 if none does.
    holder: AtomicUsize,
}

impl Inner {
    /// Whether this very thread holds it, so that waiting for it would never end.
    fn is_held_here(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread()
    }
}

/// A number that no other thread has while this one is there.
fn this_thread() -> usize {
    thread_local!(static ME: u8 = const { 0 });
    ME.with(|me| std::ptr::from_ref(me).addr())
}

/// Does what it is given, which waits for another thread.
pub type Wait = fn(&mut dyn FnMut());

static WAIT: OnceLock<Wait> = OnceLock::new();

/// From now on, a thread that has to wait for another one's update of a variable waits inside of `wait`: whoever has a lock
/// of its own around calls of this library, as interpreters do, gives it up there. Only the first to be set counts.
pub fn set_blocking_hook(wait: Wait) {
    let _ = WAIT.set(wait);
}

fn waiting<R>(mut wait: impl FnMut() -> R) -> R {
    let mut found = None;
    let mut work = || found = Some(wait());
    match WAIT.get() {
        Some(within) => within(&mut work),
        None => work(),
    }
    found.unwrap_or_else(wait)
}

/// Says what a variable is like before it is made.
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
    /// A name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> VariableBuilder {
        self.name = Some(name.into());
        self
    }

    /// Whether tapes watch it by themselves; they do, unless it is said here.
    #[must_use]
    pub fn trainable(mut self, trainable: bool) -> VariableBuilder {
        self.trainable = trainable;
        self
    }

    /// What its memory counts as, if it is not a model's: an optimizer's own state, say.
    #[must_use]
    pub fn category(mut self, category: Category) -> VariableBuilder {
        self.category = category;
        self
    }

    /// The variable, with this value to begin with.
    ///
    /// In the first trace of a function, the variable belongs to that function; a value that is being traced is computed
    /// at once, and must not depend on the function's arguments.
    #[track_caller]
    pub fn build(self, value: impl Into<Tensor>) -> Result<Variable> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let at = Location::caller();
        let value = evaluate(&value.into()).map_err(|e| e.in_op("variable", []).at(at))?;
        let value = own(&value, self.category, at)?;
        let variable = Variable(Arc::new(Inner {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            name: self.name,
            spec: value.spec().clone(),
            trainable: self.trainable,
            category: self.category,
            value: RwLock::new(Some(value)),
            holder: AtomicUsize::new(0),
        }));
        create_state(&variable.state()).map_err(|e| e.in_op("variable", [variable.spec()]).at(at))?;
        Ok(variable)
    }
}

impl State for Inner {
    fn id(&self) -> u64 {
        self.id
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn value(&self) -> Tensor {
        let value = match self.value.try_read() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => {
                assert!(!self.is_held_here(), "a variable is read in the middle of its own update");
                waiting(|| self.value.read().unwrap_or_else(PoisonError::into_inner))
            }
        };
        value.clone().expect("a variable always has a value")
    }
}

/// The value of a variable, to be changed in place. Nobody reads the variable meanwhile.
pub struct VariableGuard<'a> {
    value: RwLockWriteGuard<'a, Option<Tensor>>,
    holder: &'a AtomicUsize,
}

impl VariableGuard<'_> {
    /// The value. Nobody else holds its memory.
    pub fn tensor(&mut self) -> Option<&mut Tensor> {
        self.value.as_mut()
    }
}

impl Drop for VariableGuard<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// A copy in memory that counts as the variable's.
fn own(value: &Tensor, category: Category, at: Location) -> Result<Tensor> {
    let view = value.view().map_err(|e| e.at(at))?;
    Tensor::build(value.spec().clone(), category, at, |out| elementwise::copy(view, out.reborrow()))
}

impl Variable {
    /// A trainable variable with this value to begin with.
    #[track_caller]
    pub fn new(value: impl Into<Tensor>) -> Result<Variable> {
        VariableBuilder::default().build(value)
    }

    /// A variable with a name, or one that is not trainable.
    pub fn builder() -> VariableBuilder {
        VariableBuilder::default()
    }

    /// Its number, which no other variable of this process has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether another handle on it is held somewhere.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Its name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Type and shape; they never change.
    pub fn spec(&self) -> &Spec {
        &self.0.spec
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.spec.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.0.spec.shape
    }

    /// Whether tapes watch it by themselves.
    pub fn is_trainable(&self) -> bool {
        self.0.trainable
    }

    /// As what traced functions refer to.
    pub fn state(&self) -> Arc<dyn State> {
        self.0.clone()
    }

    /// The variable that a traced function refers to.
    pub fn of_state(state: &Arc<dyn State>) -> Option<Variable> {
        let state: Arc<dyn Any + Send + Sync> = state.clone();
        state.downcast::<Inner>().ok().map(Variable)
    }

    /// Takes hold of the value, to change it in place. A value that somebody else holds is left to them, and copied.
    ///
    /// Whoever holds several variables takes them in the order of their ids, so that nobody waits for each other.
    pub fn hold(&self, at: Location) -> Result<VariableGuard<'_>> {
        let mut value = match self.0.value.try_write() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.check_free().map_err(|error| error.at(at))?;
                waiting(|| self.0.value.write().unwrap_or_else(PoisonError::into_inner))
            }
        };
        if value.as_ref().is_some_and(Tensor::is_shared) {
            let copy = value.as_ref().map(|held| own(held, self.0.category, at)).transpose()?;
            *value = copy;
        }
        self.0.holder.store(this_thread(), Ordering::Relaxed);
        Ok(VariableGuard { value, holder: &self.0.holder })
    }

    /// An error if this thread is in the middle of an update of it: so a handler of signals may be, or what a program prints
    /// with. Its value can be neither read nor written then, and waiting would never end.
    pub fn check_free(&self) -> Result<()> {
        if self.0.is_held_here() {
            let error = Error::value(format!("the variable {self} is being updated by what is running now"));
            return Err(error.help("read or write it when that is over"));
        }
        Ok(())
    }

    /// The value as it is now, without a copy. A tape that follows the variable follows what is made of it.
    pub fn read(&self) -> Tensor {
        accessed(self, &self.value())
    }

    /// A tensor without a value that tapes follow as they would follow the value.
    pub fn placeholder(&self) -> Tensor {
        accessed(self, &Tensor::placeholder(self.spec().clone()))
    }

    /// The value as it is now, without a copy and as a constant: no tape is told. In a traced function, it is the value
    /// that a call finds there.
    ///
    /// # Panics
    /// If an earlier panic took the value away, which no error does; or in the middle of an update of it by the same thread,
    /// where [`Variable::check_free`] is an error.
    pub fn value(&self) -> Tensor {
        if is_tracing()
            && let Some(traced) = read_state(&self.state())
        {
            return traced;
        }
        self.now()
    }

    /// The value as it is now, even if a function is being traced.
    fn now(&self) -> Tensor {
        State::value(&*self.0)
    }

    /// The address of its first byte.
    pub fn address(&self) -> usize {
        self.now().memory().map_or(0, |(address, _)| address)
    }

    /// Replaces the value.
    #[track_caller]
    pub fn assign(&self, value: impl Into<Operand>) -> Result<()> {
        self.update("assign", &Overwrite, value.into(), Location::caller())
    }

    /// Adds to the value.
    #[track_caller]
    pub fn assign_add(&self, delta: impl Into<Operand>) -> Result<()> {
        static ADD: Elementwise = Elementwise::binary("assign_add", Binary::Add, Types::Same);
        self.update("assign_add", &ADD, delta.into(), Location::caller())
    }

    /// Subtracts from the value.
    #[track_caller]
    pub fn assign_sub(&self, delta: impl Into<Operand>) -> Result<()> {
        static SUB: Elementwise = Elementwise::binary("assign_sub", Binary::Sub, Types::Same);
        self.update("assign_sub", &SUB, delta.into(), Location::caller())
    }

    fn update(&self, name: &'static str, op: &dyn Op, value: Operand, at: Location) -> Result<()> {
        let value = match value {
            Operand::Tensor(value) => value,
            Operand::Scalar(scalar) => {
                if promote_scalar(self.dtype(), scalar) != self.dtype() || !scalar.fits(self.dtype()) {
                    let message = format!("a variable {self} cannot take {scalar}");
                    let error = Error::value(message).help("its type never changes");
                    return Err(error.in_op(name, [self.spec()]).at(at));
                }
                broadcast_to(Tensor::constant(scalar, self.dtype())?, self.shape().clone())?
            }
        };
        if value.spec() != self.spec() {
            let message = format!("a variable {self} cannot take {}", value.spec());
            let kind = if value.dtype() == self.dtype() { ErrorKind::Shape } else { ErrorKind::DType };
            return Err(Error::new(kind, message)
                .in_op(name, [self.spec(), value.spec()])
                .at(at)
                .help("its type and shape never change"));
        }
        let value = detached(&value);
        if name == Overwrite.name() && is_tracing() {
            // A value of a graph is never overwritten: the new one is the state from here on.
            return self.write(&value, at);
        }
        self.apply(op, std::slice::from_ref(&value), at)
            .map_err(|e| e.in_op(name, [self.spec(), value.spec()]))
    }

    /// Applies an op to the value, in its own memory. If it fails, the value is as it was.
    fn apply(&self, op: &dyn Op, rest: &[Tensor], at: Location) -> Result<()> {
        if is_tracing() {
            return self.trace(op, rest, at);
        }
        let mut held = self.hold(at)?;
        without_recording(|| taut_core::update(op, &mut held.value, rest, at))
    }

    /// The update as part of a function being traced.
    fn trace(&self, op: &dyn Op, rest: &[Tensor], at: Location) -> Result<()> {
        let mut inputs: SmallVec<[Tensor; 3]> =
            std::iter::once(self.value()).chain(rest.iter().cloned()).collect();
        let outputs = without_recording(|| apply_at(op, &mut inputs, at))?;
        self.write(&outputs[0], at)
    }

    /// Makes this its value from here on in what is being traced.
    fn write(&self, value: &Tensor, at: Location) -> Result<()> {
        let mut value = value.clone();
        if self.dtype().is_float() {
            // Recorders outside of a body see what the body read before it.
            let before = if body_depth() > 0 { self.read() } else { self.value() };
            value = without_recording(|| apply_at(&ASSIGNED, &mut [value, before], at))?.swap_remove(0);
        }
        let written = write_state(&self.state(), &value).unwrap_or_else(|| {
            let message = format!("a variable {self} cannot be updated while a graph is traced");
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
        match self.name() {
            Some(name) => write!(f, "`{name}` {}", self.spec()),
            None => write!(f, "{}", self.spec()),
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({self}, {:?})", self.now())
    }
}
