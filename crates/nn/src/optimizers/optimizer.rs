//! What keeps the state of updates, and makes them.

use super::clip::Clip;
use super::{Rate, Rule, wide};
use crate::schedules::{Schedule, check_rate};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use taut_autodiff::Variable;
use taut_core::ops::shape::broadcast_to;
use taut_core::{
    DType, Error, ErrorKind, Gradient, IndexedSlices, Result, Shape, Tensor, is_tracing, record, warn,
    with_source_location,
};
use taut_function::{Function, OnRetrace, function};
use taut_memory::{Category, Location};

/// Updates variables by a [`Rule`], and keeps what the rule needs to remember.
///
/// In a traced function, [`Optimizer::apply`] adds its ops to the trace: the update of each variable is one pass over memory, in place, which
/// runs as soon as the gradient is there. Outside of functions it runs the same program. A clone is another handle on the same state.
///
/// Variables in half precision have their state in `float32`, and are updated in it.
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
    parts: Arc<Parts>,
    /// The program for calls outside of functions. A gradient is no tensor, one, or rows and their indices.
    eager: Arc<OnceLock<Function<Vec<Vec<Tensor>>, ()>>>,
}

/// What an update works with.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) rule: Arc<dyn Rule>,
    pub(super) entries: Vec<Entry>,
    /// How many calls there were.
    pub(super) iterations: Variable,
    pub(super) rate: Pace,
    pub(super) shared: Vec<(&'static str, Variable)>,
    pub(super) clip: Option<Clip>,
    pub(super) decay: f64,
    /// How many calls make one update.
    pub(super) calls: usize,
    /// How much of the averages of values stays.
    pub(super) momentum: Option<f64>,
    told: Arc<Told>,
}

/// A variable, and what is kept for it.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) variable: Variable,
    pub(super) slots: Vec<(&'static str, Variable)>,
    /// The sum of the gradients since the last update.
    pub(super) gradient: Option<Variable>,
    pub(super) average: Option<Variable>,
    pub(super) decays: bool,
}

#[derive(Clone)]
pub(super) enum Pace {
    Settable(Variable),
    Scheduled(Arc<dyn Schedule>),
}

/// What people were told already.
#[derive(Default)]
struct Told {
    missing: AtomicBool,
    dense: AtomicBool,
}

/// A variable of the optimizer's own.
fn own(name: &str, shape: Shape, dtype: DType, first: f64) -> Result<Variable> {
    let value = broadcast_to(Tensor::constant(first, dtype)?, shape)?;
    Variable::builder().name(name).trainable(false).category(Category::Optimizer).build(value)
}

impl Optimizer {
    /// An optimizer of these variables. All that it keeps is made now.
    #[track_caller]
    pub fn new(rule: impl Rule, variables: &[Variable]) -> Result<Optimizer> {
        let at = Location::caller();
        with_source_location(None, at, || Optimizer::make(Arc::new(rule), variables))
            .map_err(|error| error.at(at))
    }

    fn make(rule: Arc<dyn Rule>, variables: &[Variable]) -> Result<Optimizer> {
        rule.check()?;
        let (rate, decay) = (rule.rate(), rule.decay());
        rate.check()?;
        check_rate("the weight decay", decay)?;
        let mut entries: Vec<Entry> = Vec::with_capacity(variables.len());
        for variable in variables {
            if !variable.dtype().is_float() {
                let message = format!("the variable {variable} has no gradient");
                return Err(Error::dtype(message).help("leave it out: only floats can be trained"));
            }
            if entries.iter().any(|entry| entry.variable.id() == variable.id()) {
                return Err(Error::value(format!("the variable {variable} is given twice")));
            }
            let mut spec = variable.spec().clone();
            spec.dtype = wide(spec.dtype);
            let mut slots = Vec::new();
            for slot in rule.slots(&spec) {
                slots.push((slot.name, own(slot.name, slot.shape, spec.dtype, slot.first)?));
            }
            let variable = variable.clone();
            entries.push(Entry { variable, slots, gradient: None, average: None, decays: true });
        }
        let mut shared = Vec::new();
        for (name, first) in rule.shared() {
            shared.push((name, own(name, Shape::scalar(), DType::F64, first)?));
        }
        let rate = match rate {
            Rate::Fixed(rate) => Pace::Settable(own("rate", Shape::scalar(), DType::F64, rate)?),
            Rate::Scheduled(schedule) => Pace::Scheduled(schedule),
        };
        let iterations = own("iterations", Shape::scalar(), DType::I64, 0.0)?;
        let (clip, calls, momentum, told) = (None, 1, None, Arc::default());
        let parts = Parts { rule, entries, iterations, rate, shared, clip, decay, calls, momentum, told };
        Ok(Optimizer { parts: Arc::new(parts), eager: Arc::default() })
    }

    /// Another optimizer of the same variables and state.
    fn changed(self, change: impl FnOnce(&mut Parts) -> Result<()>) -> Result<Optimizer> {
        let mut parts = (*self.parts).clone();
        change(&mut parts)?;
        Ok(Optimizer { parts: Arc::new(parts), eager: Arc::default() })
    }

    /// Keeps gradients within bounds.
    #[track_caller]
    pub fn clip(self, clip: Clip) -> Result<Optimizer> {
        let at = Location::caller();
        clip.check().map_err(|error| error.at(at))?;
        self.changed(|parts| {
            parts.clip = Some(clip);
            Ok(())
        })
    }

    /// Takes `decay` times the learning rate of every value away at each update, before the step itself. Where a gradient is sparse, only the
    /// rows that it names decay.
    #[track_caller]
    pub fn weight_decay(self, decay: f64) -> Result<Optimizer> {
        let at = Location::caller();
        check_rate("the weight decay", decay).map_err(|error| error.at(at))?;
        self.changed(|parts| {
            parts.decay = decay;
            Ok(())
        })
    }

    /// Leaves the variables for which `exempt` holds without weight decay: biases, say.
    pub fn without_decay(self, exempt: impl Fn(&Variable) -> bool) -> Result<Optimizer> {
        self.changed(|parts| {
            parts.entries.iter_mut().for_each(|entry| entry.decays &= !exempt(&entry.variable));
            Ok(())
        })
    }

    /// Makes one update per `calls` calls, with the mean of their gradients, which is kept per variable. The calls in between leave variables
    /// and slots as they are.
    ///
    /// Sparse gradients are added to the rows that they name, but the mean is dense, and the update reaches every row.
    #[track_caller]
    pub fn accumulate(self, calls: usize) -> Result<Optimizer> {
        let at = Location::caller();
        if calls == 0 || i32::try_from(calls).is_err() {
            let message = format!("an update cannot be made once in {calls} calls");
            return Err(Error::value(message).at(at));
        }
        let made = with_source_location(None, at, || {
            self.changed(|parts| {
                parts.calls = calls;
                for entry in &mut parts.entries {
                    let spec = entry.variable.spec().clone();
                    entry.gradient = (calls > 1)
                        .then(|| own("gradient", spec.shape, wide(spec.dtype), 0.0))
                        .transpose()?;
                }
                Ok(())
            })
        });
        made.map_err(|error| error.at(at))
    }

    /// Keeps a moving average of every variable, of which `momentum` stays at each call. See [`Optimizer::swap_averages`].
    ///
    /// It is brought up to date as a whole, also where a gradient is sparse.
    #[track_caller]
    pub fn average(self, momentum: f64) -> Result<Optimizer> {
        let at = Location::caller();
        let made = with_source_location(None, at, || {
            super::within("the momentum of averages", momentum, 0.0, 1.0)?;
            self.changed(|parts| {
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

    /// How many times it was called: a single `int64`.
    pub fn iterations(&self) -> &Variable {
        &self.parts.iterations
    }

    /// The moving averages, in the order of the variables; none without [`Optimizer::average`].
    pub fn averages(&self) -> Vec<Variable> {
        self.parts.entries.iter().filter_map(|entry| entry.average.clone()).collect()
    }

    /// Exchanges the variables with their moving averages: once to evaluate with these, once more to go on.
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
            Pace::Settable(rate) => rate.value().item(),
            Pace::Scheduled(schedule) => {
                let calls: i64 = self.parts.iterations.value().item()?;
                schedule.at(calls.unsigned_abs())
            }
        }
    }

    /// Sets the learning rate. Functions that were traced use it from their next call on.
    #[track_caller]
    pub fn set_rate(&self, rate: f64) -> Result<()> {
        let at = Location::caller();
        check_rate("the learning rate", rate).map_err(|error| error.at(at))?;
        match &self.parts.rate {
            Pace::Settable(variable) => variable.assign(rate),
            Pace::Scheduled(schedule) => {
                let message = format!("the learning rate is what a schedule says: {schedule:?}");
                Err(Error::value(message).help("only a rate that is given as a number can be set").at(at))
            }
        }
    }

    /// All that it keeps, with names that stay the same from run to run: `iterations`, `rate`, `slots/0/momentum` for the first variable,
    /// `gradients/0`, `averages/0`.
    pub fn named(&self) -> Vec<(String, Variable)> {
        let parts = &self.parts;
        let mut named = vec![("iterations".to_owned(), parts.iterations.clone())];
        if let Pace::Settable(rate) = &parts.rate {
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

    /// Updates the variables by gradients in their order. Those without one are left alone; that there is none at all is an error.
    ///
    /// A rule that works row by row touches only the rows that a sparse gradient names. For the others it is made dense, and people are told.
    #[track_caller]
    pub fn apply(&self, gradients: &[Option<Gradient>]) -> Result<()> {
        self.apply_at(gradients, Location::caller())
    }

    /// As [`Optimizer::apply`], with gradients in any order, each with its variable.
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
                let message = format!("the variable {variable} is not one of the optimizer's");
                let help = "make the optimizer for every variable that it is to update";
                return Err(Error::value(message).help(help).at(at));
            };
            if gradients[i].is_some() {
                return Err(Error::value(format!("the variable {variable} is given twice")).at(at));
            }
            gradients[i] = gradient;
        }
        self.apply_at(&gradients, at)
    }

    fn apply_at(&self, gradients: &[Option<Gradient>], at: Location) -> Result<()> {
        self.parts.check(gradients, at).map_err(|error| error.at(at))?;
        let run = || {
            record::without_recording(|| {
                if is_tracing() {
                    return self.parts.update(gradients);
                }
                let program = self.eager.get_or_init(|| program(self.parts.clone()));
                program.call(gradients.iter().map(|gradient| flat(gradient.as_ref())).collect::<Vec<_>>())
            })
        };
        with_source_location(None, at, run).map_err(|error| error.at(at))
    }
}

/// The program for calls outside of functions.
fn program(parts: Arc<Parts>) -> Function<Vec<Vec<Tensor>>, ()> {
    let body = move |lists: &Vec<Vec<Tensor>>| {
        let shapes = parts.entries.iter().map(|entry| entry.variable.shape());
        let gradients: Vec<Option<Gradient>> =
            lists.iter().zip(shapes).map(|(list, shape)| whole(list, shape)).collect();
        parts.update(&gradients)
    };
    function(body).named("the optimizer").on_retrace(OnRetrace::Allow)
}

/// A gradient as the tensors that it is made of.
fn flat(gradient: Option<&Gradient>) -> Vec<Tensor> {
    match gradient {
        None => Vec::new(),
        Some(Gradient::Dense(tensor)) => vec![tensor.clone()],
        Some(Gradient::Sparse(IndexedSlices { values, indices, .. })) => {
            vec![values.clone(), indices.clone()]
        }
    }
}

/// The gradient that is made of these tensors.
fn whole(list: &[Tensor], shape: &Shape) -> Option<Gradient> {
    match list {
        [tensor] => Some(tensor.clone().into()),
        [values, indices] => {
            let (values, indices) = (values.clone(), indices.clone());
            Some(IndexedSlices { values, indices, dense_shape: shape.clone() }.into())
        }
        _ => None,
    }
}

impl Parts {
    /// Refuses gradients that are not those of the variables, and tells people of what they may not expect.
    fn check(&self, gradients: &[Option<Gradient>], at: Location) -> Result<()> {
        if gradients.len() != self.entries.len() {
            let (got, wanted) = (gradients.len(), self.entries.len());
            let message = format!("{got} gradients for {wanted} variables");
            return Err(Error::value(message).help("give one per variable, in their order, or None"));
        }
        for (gradient, Entry { variable, .. }) in gradients.iter().zip(&self.entries) {
            let Some(gradient) = gradient else { continue };
            let spec = gradient.spec();
            if spec != *variable.spec() {
                let message = format!("the gradient of the variable {variable} is {spec}");
                let same = spec.dtype == variable.dtype();
                let kind = if same { ErrorKind::Shape } else { ErrorKind::DType };
                return Err(Error::new(kind, message).help("a gradient has its variable's type and shape"));
            }
        }
        let missing = |(gradient, _): &(&Option<Gradient>, &Entry)| gradient.is_none();
        let without = gradients.iter().zip(&self.entries).filter(missing).count();
        if without > 0 && without == gradients.len() {
            return Err(Error::value("no variable has a gradient").help("the tape's explain_none() says why"));
        }
        if without > 0 && !self.told.missing.swap(true, Ordering::Relaxed) {
            let names: Vec<String> = (gradients.iter().zip(&self.entries))
                .filter(missing)
                .map(|(_, entry)| entry.variable.to_string())
                .collect();
            warn(&format!("no gradient for {}: left as it is (at {at})", names.join(", ")));
        }
        let is_sparse = |gradient: &&Option<Gradient>| matches!(gradient, Some(Gradient::Sparse(_)));
        if (!self.rule.is_rowwise() || self.calls > 1)
            && gradients.iter().any(|gradient| is_sparse(&gradient))
            && !self.told.dense.swap(true, Ordering::Relaxed)
        {
            let why = if self.calls > 1 { "gradients are accumulated" } else { "the rule needs every row" };
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
