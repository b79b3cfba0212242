//! The optimizer: state, settings and checks. The update is in `step`.

use super::clip::Clip;
use super::{LearningRate, UpdateRule, compute_dtype};
use crate::schedules::{Schedule, check_rate};
use crate::train::SMALL;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use taut_autodiff::Variable;
use taut_core::ops::shape::broadcast_to;
use taut_core::{
    DType, Error, ErrorKind, Gradient, IndexedSlices, Result, Shape, Spec, Tensor, is_tracing, record, warn,
    with_source_location,
};
use taut_distribute::Group;
use taut_function::{Function, OnRetrace, function};
use taut_memory::{Category, Location};

/// Updates variables by an [`UpdateRule`], and holds the state that the rule needs.
///
/// In a traced function, [`Optimizer::apply`] adds its ops to the trace: the update of each variable is one pass over memory, in place, which
/// runs as soon as the gradient exists. Outside of functions it runs the same program. A clone is another handle to the same state.
///
/// The state and the updates of half-precision variables are in `float32`.
///
/// ```
/// use taut_autodiff::{GradientTape, Variable};
/// use taut_core::{Tensor, ops::unary::square};
/// use taut_nn::optimizers::{Adam, Clip, Optimizer};
/// let w = Variable::new(Tensor::scalar(3.0f32)?)?;
/// let rule = Adam { rate: 0.1.into(), ..Adam::default() };
/// let optimizer = Optimizer::new(rule, &[w.clone()])?.clip(Clip::GlobalNorm(1.0))?;
/// for _ in 0..100 {
///     let tape = GradientTape::new();
///     let loss = square(&w)?;
///     optimizer.apply(&[tape.gradient(&loss, &w)?])?;
/// }
/// assert!(w.read().item::<f32>()?.abs() < 0.1);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Optimizer {
    parts: Arc<OptimizerParts>,
    /// The traced function for eager calls. A gradient is a list of no tensor, one tensor, or rows and their indices.
    eager: Arc<OnceLock<Function<Vec<Vec<Tensor>>, ()>>>,
}

/// The settings and variables of an optimizer.
#[derive(Clone)]
pub(super) struct OptimizerParts {
    pub(super) rule: Arc<dyn UpdateRule>,
    pub(super) entries: Vec<TrackedVariable>,
    /// The number of calls.
    pub(super) iterations: Variable,
    pub(super) rate: RateSource,
    pub(super) shared: Vec<(&'static str, Variable)>,
    pub(super) clip: Option<Clip>,
    pub(super) decay: f64,
    /// Calls per update.
    pub(super) calls: usize,
    /// The decay rate of the moving averages of values.
    pub(super) momentum: Option<f64>,
    /// The ranks over which slots are sharded.
    pub(super) sharding: Option<Group>,
    warned: Arc<Warned>,
}

/// A variable and its optimizer state.
#[derive(Clone)]
pub(super) struct TrackedVariable {
    pub(super) variable: Variable,
    pub(super) slots: Vec<(&'static str, Variable)>,
    /// The accumulated gradients since the last update.
    pub(super) gradient: Option<Variable>,
    pub(super) average: Option<Variable>,
    pub(super) decays: bool,
    /// Whether the slots are this rank's shards.
    pub(super) is_sharded: bool,
}

#[derive(Clone)]
pub(super) enum RateSource {
    Settable(Variable),
    Scheduled(Arc<dyn Schedule>),
}

/// Which warnings were issued.
#[derive(Default)]
struct Warned {
    missing: AtomicBool,
    dense: AtomicBool,
}

/// The spec of a shard of a variable. Fails for a rule whose update of a part depends on the whole.
fn shard_spec(rule: &dyn UpdateRule, spec: &Spec, group: &Group) -> Result<Spec> {
    if !rule.is_rowwise() || rule.slots(spec).iter().any(|slot| slot.shape != spec.shape) {
        let message = format!("a sharded optimizer's rule must treat elements independently, got {rule:?}");
        return Err(Error::value(message).help("use Optimizer::new, or a rule such as Adam"));
    }
    Ok(Spec::new(spec.dtype, shard_shape(&spec.shape, group)))
}

fn shard_shape(whole: &Shape, group: &Group) -> Shape {
    [whole.len().div_ceil(group.size())].into()
}

/// A variable of the optimizer's state.
fn state_variable(name: &str, shape: Shape, dtype: DType, initial: f64) -> Result<Variable> {
    let value = broadcast_to(Tensor::constant(initial, dtype)?, shape)?;
    Variable::builder().name(name).trainable(false).category(Category::Optimizer).build(value)
}

impl Optimizer {
    /// An optimizer of these variables. Its state is allocated here.
    #[track_caller]
    pub fn new(rule: impl UpdateRule, variables: &[Variable]) -> Result<Optimizer> {
        let at = Location::caller();
        with_source_location(None, at, || Optimizer::make(Arc::new(rule), variables, None))
            .map_err(|error| error.at(at))
    }

    /// As [`Optimizer::new`], with slots that are sharded over the ranks of a group (ZeRO, stage 1): each rank has one part of the slots of
    /// every variable, updates that part of the variable, and gathers the others. Variables of less than 64 KiB are not sharded.
    ///
    /// For rules that treat elements independently, such as [`Adam`](super::Adam); it is an error for others. Used by a trainer that is
    /// [distributed](crate::Trainer::distribute) over the same group. [`Optimizer::apply`] takes this rank's gradients of sharded
    /// variables, which it averages over ranks, and gradients of the others that are equal on all ranks.
    #[track_caller]
    pub fn sharded(rule: impl UpdateRule, variables: &[Variable], group: &Group) -> Result<Optimizer> {
        let at = Location::caller();
        with_source_location(None, at, || Optimizer::make(Arc::new(rule), variables, Some(group)))
            .map_err(|error| error.at(at))
    }

    /// The optimizer for another group: with slots of its own if they are sharded, and otherwise itself. For plans.
    pub(crate) fn for_group(&self, group: &Group) -> Result<Optimizer> {
        if self.parts.sharding.is_none() {
            return Ok(self.clone());
        }
        let made = Optimizer::make(self.parts.rule.clone(), &self.variables(), Some(group))?;
        made.modified(|parts| {
            (parts.clip, parts.decay, parts.momentum) =
                (self.parts.clip, self.parts.decay, self.parts.momentum);
            for (entry, own) in parts.entries.iter_mut().zip(&self.parts.entries) {
                (entry.decays, entry.average) = (own.decays, own.average.clone());
            }
            Ok(())
        })?
        .accumulate(self.parts.calls)
    }

    /// The ranks over which slots are sharded.
    pub fn sharding(&self) -> Option<&Group> {
        self.parts.sharding.as_ref()
    }

    /// Whether the slots of a variable are shards.
    pub(crate) fn is_sharded(&self, variable: usize) -> bool {
        self.parts.entries[variable].is_sharded
    }

    /// The names of the state that is sharded, with the shape of the whole.
    pub(crate) fn sharded_names(&self) -> Vec<(String, Shape)> {
        let entries = self.parts.entries.iter().enumerate().filter(|(_, entry)| entry.is_sharded);
        let names = entries.flat_map(|(i, entry)| {
            let shape = entry.variable.shape();
            let slots = entry.slots.iter().map(move |(name, _)| format!("slots/{i}/{name}"));
            let sum = entry.gradient.iter().map(move |_| format!("gradients/{i}"));
            slots.chain(sum).map(|name| (name, shape.clone()))
        });
        names.collect()
    }

    fn make(
        rule: Arc<dyn UpdateRule>,
        variables: &[Variable],
        sharding: Option<&Group>,
    ) -> Result<Optimizer> {
        rule.check()?;
        let (rate, decay) = (rule.rate(), rule.decay());
        rate.check()?;
        check_rate("weight_decay", decay)?;
        let mut entries: Vec<TrackedVariable> = Vec::with_capacity(variables.len());
        for variable in variables {
            if !variable.dtype().is_float() {
                let message = format!("trained variables must be floating point, got {variable}");
                return Err(Error::dtype(message).help("leave it out of the optimizer's variables"));
            }
            if entries.iter().any(|entry| entry.variable.id() == variable.id()) {
                return Err(Error::value(format!("each variable must be given once, got {variable} twice")));
            }
            let mut spec = variable.spec().clone();
            spec.dtype = compute_dtype(spec.dtype);
            let mut slots = Vec::new();
            let shard = match sharding {
                Some(group) if spec.bytes() >= SMALL => Some(shard_spec(&*rule, &spec, group)?),
                _ => None,
            };
            let is_sharded = shard.is_some();
            let spec = shard.unwrap_or(spec);
            for slot in rule.slots(&spec) {
                slots.push((slot.name, state_variable(slot.name, slot.shape, spec.dtype, slot.initial)?));
            }
            let variable = variable.clone();
            entries.push(TrackedVariable {
                variable,
                slots,
                gradient: None,
                average: None,
                decays: true,
                is_sharded,
            });
        }
        let mut shared = Vec::new();
        for (name, first) in rule.shared() {
            shared.push((name, state_variable(name, Shape::scalar(), DType::F64, first)?));
        }
        let rate = match rate {
            LearningRate::Fixed(rate) => {
                RateSource::Settable(state_variable("rate", Shape::scalar(), DType::F64, rate)?)
            }
            LearningRate::Scheduled(schedule) => RateSource::Scheduled(schedule),
        };
        let iterations = state_variable("iterations", Shape::scalar(), DType::I64, 0.0)?;
        let (clip, calls, momentum, warned) = (None, 1, None, Arc::default());
        let sharding = sharding.cloned();
        let parts = OptimizerParts {
            rule,
            entries,
            iterations,
            rate,
            shared,
            clip,
            decay,
            calls,
            momentum,
            sharding,
            warned,
        };
        Ok(Optimizer { parts: Arc::new(parts), eager: Arc::default() })
    }

    /// An optimizer with changed settings that shares the variables and the state.
    fn modified(self, change: impl FnOnce(&mut OptimizerParts) -> Result<()>) -> Result<Optimizer> {
        let mut parts = (*self.parts).clone();
        change(&mut parts)?;
        Ok(Optimizer { parts: Arc::new(parts), eager: Arc::default() })
    }

    /// Clips gradients.
    #[track_caller]
    pub fn clip(self, clip: Clip) -> Result<Optimizer> {
        let at = Location::caller();
        clip.check().map_err(|error| error.at(at))?;
        self.modified(|parts| {
            parts.clip = Some(clip);
            Ok(())
        })
    }

    /// Decoupled weight decay: each update first subtracts `decay * rate * value`. For a sparse gradient, only the rows that it names
    /// decay.
    #[track_caller]
    pub fn weight_decay(self, decay: f64) -> Result<Optimizer> {
        let at = Location::caller();
        check_rate("weight_decay", decay).map_err(|error| error.at(at))?;
        self.modified(|parts| {
            parts.decay = decay;
            Ok(())
        })
    }

    /// Exempts the variables for which `exempt` holds from weight decay, for example biases.
    pub fn without_decay(self, exempt: impl Fn(&Variable) -> bool) -> Result<Optimizer> {
        self.modified(|parts| {
            parts.entries.iter_mut().for_each(|entry| entry.decays &= !exempt(&entry.variable));
            Ok(())
        })
    }

    /// Gradient accumulation: one update per `calls` calls, with the mean of their gradients. The sum is stored per variable; the calls in
    /// between change neither variables nor slots.
    ///
    /// Sparse gradients are added to the rows that they name, but the sum is dense, and the update reaches every row. The sums of a
    /// [sharded](Optimizer::sharded) optimizer are shards, too.
    #[track_caller]
    pub fn accumulate(self, calls: usize) -> Result<Optimizer> {
        let at = Location::caller();
        if calls == 0 || i32::try_from(calls).is_err() {
            let message = format!("calls must be in [1, 2^31), got {calls}");
            return Err(Error::value(message).at(at));
        }
        let made = with_source_location(None, at, || {
            self.modified(|parts| {
                parts.calls = calls;
                let sharding = parts.sharding.as_ref();
                for entry in &mut parts.entries {
                    let spec = entry.variable.spec().clone();
                    let shape = match sharding.filter(|_| entry.is_sharded) {
                        Some(group) => shard_shape(&spec.shape, group),
                        None => spec.shape,
                    };
                    entry.gradient = (calls > 1)
                        .then(|| state_variable("gradient", shape, compute_dtype(spec.dtype), 0.0))
                        .transpose()?;
                }
                Ok(())
            })
        });
        made.map_err(|error| error.at(at))
    }

    /// Keeps an exponential moving average (EMA) of every variable, with decay rate `momentum`. See [`Optimizer::swap_averages`].
    ///
    /// All of it is updated at each call, also if the gradient is sparse.
    #[track_caller]
    pub fn average(self, momentum: f64) -> Result<Optimizer> {
        let at = Location::caller();
        let made = with_source_location(None, at, || {
            super::check_range("momentum", momentum, 0.0, 1.0)?;
            self.modified(|parts| {
                parts.momentum = Some(momentum);
                for entry in &mut parts.entries {
                    let builder = Variable::builder().name("average").trainable(false);
                    let builder = builder.category(Category::Optimizer);
                    entry.average = Some(builder.build(entry.variable.value())?);
                }
                Ok(())
            })
        });
        made.map_err(|error| error.at(at))
    }

    /// The variables, in the order of their gradients.
    pub fn variables(&self) -> Vec<Variable> {
        self.parts.entries.iter().map(|entry| entry.variable.clone()).collect()
    }

    /// The number of calls: a scalar `int64`.
    pub fn iterations(&self) -> &Variable {
        &self.parts.iterations
    }

    /// The moving averages, in the order of the variables; empty without [`Optimizer::average`].
    pub fn averages(&self) -> Vec<Variable> {
        self.parts.entries.iter().filter_map(|entry| entry.average.clone()).collect()
    }

    /// Swaps the variables with their moving averages: once to evaluate with the averages, and again to continue training.
    #[track_caller]
    pub fn swap_averages(&self) -> Result<()> {
        for entry in &self.parts.entries {
            let Some(average) = &entry.average else { continue };
            let value = entry.variable.value().copy()?;
            entry.variable.assign(average.value())?;
            average.assign(value)?;
        }
        Ok(())
    }

    /// The learning rate of the next update.
    pub fn rate(&self) -> Result<f64> {
        match &self.parts.rate {
            RateSource::Settable(rate) => rate.value().item(),
            RateSource::Scheduled(schedule) => {
                let calls: i64 = self.parts.iterations.value().item()?;
                schedule.at(calls.unsigned_abs())
            }
        }
    }

    /// Sets the learning rate. Traced functions use it from their next call on, without a retrace.
    #[track_caller]
    pub fn set_rate(&self, rate: f64) -> Result<()> {
        let at = Location::caller();
        check_rate("the learning rate", rate).map_err(|error| error.at(at))?;
        match &self.parts.rate {
            RateSource::Settable(variable) => variable.assign(rate),
            RateSource::Scheduled(schedule) => {
                let message =
                    format!("the learning rate must be a number to be set, got the schedule {schedule:?}");
                Err(Error::value(message).help("make the optimizer with a number as its rate").at(at))
            }
        }
    }

    /// The variables of the state under stable names: `iterations`, `rate`, `slots/0/momentum` for the first variable, `gradients/0`,
    /// `averages/0`.
    pub fn named_variables(&self) -> Vec<(String, Variable)> {
        let parts = &self.parts;
        let mut named = vec![("iterations".to_owned(), parts.iterations.clone())];
        if let RateSource::Settable(rate) = &parts.rate {
            named.push(("rate".to_owned(), rate.clone()));
        }
        named.extend(parts.shared.iter().map(|(name, number)| (format!("shared/{name}"), number.clone())));
        for (i, entry) in parts.entries.iter().enumerate() {
            named.extend(entry.slots.iter().map(|(name, slot)| (format!("slots/{i}/{name}"), slot.clone())));
            named.extend(entry.gradient.iter().map(|sum| (format!("gradients/{i}"), sum.clone())));
            named.extend(entry.average.iter().map(|average| (format!("averages/{i}"), average.clone())));
        }
        named
    }

    /// Updates the variables with gradients in the same order. Variables without a gradient are unchanged; it is an error if no variable
    /// has one.
    ///
    /// A rowwise rule changes only the rows that a sparse gradient names. Other rules get a dense gradient, with a warning.
    #[track_caller]
    pub fn apply(&self, gradients: &[Option<Gradient>]) -> Result<()> {
        self.apply_at(gradients, false, Location::caller())
    }

    /// As [`Optimizer::apply`]; if `check_shards` is set, a gradient of a sharded variable that is not finite is an error on all ranks.
    #[track_caller]
    pub(crate) fn apply_checked(&self, gradients: &[Option<Gradient>], check_shards: bool) -> Result<()> {
        self.apply_at(gradients, check_shards, Location::caller())
    }

    /// As [`Optimizer::apply`], with pairs of gradient and variable in any order.
    #[track_caller]
    pub fn apply_pairs<'a>(
        &self,
        pairs: impl IntoIterator<Item = (Option<Gradient>, &'a Variable)>,
    ) -> Result<()> {
        let at = Location::caller();
        let entries = &self.parts.entries;
        let mut gradients = vec![None; entries.len()];
        for (gradient, variable) in pairs {
            let Some(i) = entries.iter().position(|entry| entry.variable.id() == variable.id()) else {
                let message = format!("the variable must be one of the optimizer's, got {variable}");
                let help = "make the optimizer with every variable that it updates";
                return Err(Error::value(message).help(help).at(at));
            };
            if gradients[i].is_some() {
                return Err(
                    Error::value(format!("each variable must be given once, got {variable} twice")).at(at)
                );
            }
            gradients[i] = gradient;
        }
        self.apply_at(&gradients, false, at)
    }

    fn apply_at(&self, gradients: &[Option<Gradient>], check_shards: bool, at: Location) -> Result<()> {
        self.parts.check(gradients, at).map_err(|error| error.at(at))?;
        let run = || {
            record::without_recording(|| {
                if is_tracing() {
                    return self.parts.update(gradients, check_shards);
                }
                let program = self.eager.get_or_init(|| program(self.parts.clone()));
                program.call(
                    gradients.iter().map(|gradient| gradient_tensors(gradient.as_ref())).collect::<Vec<_>>(),
                )
            })
        };
        with_source_location(None, at, run).map_err(|error| error.at(at))
    }
}

/// The traced function for eager calls.
fn program(parts: Arc<OptimizerParts>) -> Function<Vec<Vec<Tensor>>, ()> {
    let body = move |lists: &Vec<Vec<Tensor>>| {
        let shapes = parts.entries.iter().map(|entry| entry.variable.shape());
        let gradients: Vec<Option<Gradient>> =
            lists.iter().zip(shapes).map(|(list, shape)| gradient_from_tensors(list, shape)).collect();
        parts.update(&gradients, false)
    };
    function(body).named("the optimizer").on_retrace(OnRetrace::Allow)
}

/// The tensors of a gradient.
fn gradient_tensors(gradient: Option<&Gradient>) -> Vec<Tensor> {
    match gradient {
        None => Vec::new(),
        Some(Gradient::Dense(tensor)) => vec![tensor.clone()],
        Some(Gradient::Sparse(IndexedSlices { values, indices, .. })) => {
            vec![values.clone(), indices.clone()]
        }
    }
}

/// The gradient of these tensors.
fn gradient_from_tensors(list: &[Tensor], shape: &Shape) -> Option<Gradient> {
    match list {
        [tensor] => Some(tensor.clone().into()),
        [values, indices] => {
            let (values, indices) = (values.clone(), indices.clone());
            Some(IndexedSlices { values, indices, dense_shape: shape.clone() }.into())
        }
        _ => None,
    }
}

impl OptimizerParts {
    /// Rejects gradients that do not match the variables, and warns about missing and sparse ones.
    fn check(&self, gradients: &[Option<Gradient>], at: Location) -> Result<()> {
        if gradients.len() != self.entries.len() {
            let (got, expected) = (gradients.len(), self.entries.len());
            let message = format!("expected {expected} gradients, one per variable, got {got}");
            return Err(Error::value(message).help("give None for a variable without a gradient"));
        }
        for (gradient, TrackedVariable { variable, .. }) in gradients.iter().zip(&self.entries) {
            let Some(gradient) = gradient else { continue };
            let spec = gradient.spec();
            if spec != *variable.spec() {
                let message = format!(
                    "the gradient of {variable} must have the variable's dtype and shape, got {spec}"
                );
                let same = spec.dtype == variable.dtype();
                let kind = if same { ErrorKind::Shape } else { ErrorKind::DType };
                return Err(Error::new(kind, message));
            }
        }
        let missing = |(gradient, _): &(&Option<Gradient>, &TrackedVariable)| gradient.is_none();
        let without = || gradients.iter().zip(&self.entries).filter(missing);
        let count = without().count();
        let names = || without().map(|(_, entry)| entry.variable.to_string()).collect::<Vec<_>>();
        if count > 0 && count == gradients.len() {
            let names = names().join(", ");
            return Err(Error::value(format!(
                "at least one variable must have a gradient, got none for {names}"
            ))
            .help("tape.explain_none() gives the reason"));
        }
        if count > 0 && !self.warned.missing.swap(true, Ordering::Relaxed) {
            let names = names();
            warn(&format!("no gradient for {}: not updated (at {at})", names.join(", ")));
        }
        let is_sparse = |gradient: &&Option<Gradient>| matches!(gradient, Some(Gradient::Sparse(_)));
        if (!self.rule.is_rowwise() || self.calls > 1)
            && gradients.iter().any(|gradient| is_sparse(&gradient))
            && !self.warned.dense.swap(true, Ordering::Relaxed)
        {
            let why = if self.calls > 1 { "gradients are accumulated" } else { "the rule is not rowwise" };
            warn(&format!("a sparse gradient becomes dense, because {why}: {:?} (at {at})", self.rule));
        }
        Ok(())
    }
}

impl fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Optimizer({:?}, {} variables)", self.parts.rule, self.parts.entries.len())
    }
}
