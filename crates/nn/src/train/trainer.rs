//! What is trained, how, and a step of it. The loop is in `run`, checkpoints are in `saving`.

use super::callback::Callback;
use super::history::History;
use super::numerics;
use super::saving::Resumed;
use super::state::{Partial, State};
use crate::layer::{Layer, Mode, Names};
use crate::losses::Loss;
use crate::metrics::Metric;
use crate::optimizers::Optimizer;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::random;
use taut_core::ops::unary::{cast, check_numerics};
use taut_core::{DType, Error, ErrorKind, Gradient, Result, Tensor, with_source_location};
use taut_data::Dataset;
use taut_function::{Function, OnRetrace, function};
use taut_memory::Location;
use taut_plan::Program;

/// A batch of inputs, and what is to come out.
pub(super) type Batch = (Tensor, Tensor);

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After so many steps, counted from the first one of the run, and after every epoch.
    Steps(usize),
    /// After so many epochs, and at the end.
    Epochs(usize),
}

/// What a step is made of.
pub(super) struct Parts {
    pub model: Arc<dyn Layer>,
    pub loss: Arc<dyn Loss>,
    pub variables: Vec<Variable>,
    pub optimizer: Arc<Optimizer>,
    pub metrics: Vec<(String, Box<dyn Metric>)>,
    checked: bool,
    /// The line that made the trainer: what loss, optimizer and metrics do is done for it.
    at: Location,
}

/// The traced functions of a trainer.
struct Programs {
    step: Function<Batch, Tensor>,
    test: Function<Batch, Tensor>,
    infer: Function<Tensor, Tensor>,
}

/// Trains a model: forward, backward and update as one traced function, over a dataset, for some epochs.
///
/// ```
/// use taut_core::{Tensor, ops::random};
/// use taut_data::Dataset;
/// use taut_nn::layers::Dense;
/// use taut_nn::{Layer, Trainer, losses::MeanSquaredError, optimizers::{Optimizer, Sgd}};
///
/// random::set_seed(1);
/// let x = Tensor::from_slice(&[-1.0f32, 0.0, 1.0, 2.0], [4, 1])?;
/// let y = Tensor::from_slice(&[-3.0f32, -1.0, 1.0, 3.0], [4, 1])?;
/// let data = Dataset::from_tensor_slices((x, y))?.shuffle(4)?.batch(2)?;
///
/// let model = Dense::new(1, 1).build()?;
/// let optimizer = Optimizer::new(Sgd { rate: 0.1.into(), ..Sgd::default() }, &model.trainable())?;
/// let mut trainer = Trainer::new(model, MeanSquaredError, optimizer);
/// let history = trainer.fit(&data, 50)?;
/// assert!(history.last("loss").unwrap() < 1e-3);
/// # Ok::<(), taut_core::Error>(())
/// ```
///
/// A step stops at the first loss or gradient that is not finite, before that reaches a variable; it is then made again op by
/// op, and the error names the op and the line that made the first NaN or infinity.
pub struct Trainer {
    pub(super) parts: Arc<Parts>,
    programs: OnceLock<Programs>,
    native: bool,
    /// Elsewhere while `fit` runs.
    pub(super) callbacks: Vec<Box<dyn Callback>>,
    pub(super) is_running: bool,
    pub(super) validation: Option<Dataset<Batch>>,
    pub(super) checkpoints: Option<(PathBuf, Every)>,
    pub(super) steps_per_epoch: Option<usize>,
    pub(super) state: State,
    /// The checkpoint that was loaded, of whose state the callbacks have still to be told.
    pub(super) resumed: Option<Resumed>,
}

impl Trainer {
    /// A trainer of this model, on the mean of this loss, with an optimizer of the model's variables.
    #[track_caller]
    pub fn new(model: impl Layer, loss: impl Loss, optimizer: Optimizer) -> Trainer {
        let parts = Parts {
            variables: optimizer.variables(),
            model: Arc::new(model),
            loss: Arc::new(loss),
            optimizer: Arc::new(optimizer),
            metrics: Vec::new(),
            checked: true,
            at: Location::caller(),
        };
        Trainer {
            parts: Arc::new(parts),
            programs: OnceLock::new(),
            native: false,
            callbacks: Vec::new(),
            is_running: false,
            validation: None,
            checkpoints: None,
            steps_per_epoch: None,
            state: State::default(),
            resumed: None,
        }
    }

    /// Changes what steps are made of. Functions traced before are forgotten.
    fn change(mut self, change: impl FnOnce(&mut Parts)) -> Trainer {
        self.programs = OnceLock::new();
        change(Arc::get_mut(&mut self.parts).expect("only the functions share it, and they are gone"));
        self
    }

    /// Measures this as well, in training and in validation.
    #[must_use]
    pub fn metric(self, metric: impl Metric) -> Trainer {
        let name = metric.name().to_owned();
        self.metric_as(&name, metric)
    }

    /// As [`Trainer::metric`], under a name of your choice.
    #[must_use]
    pub fn metric_as(self, name: &str, metric: impl Metric) -> Trainer {
        self.change(|parts| parts.metrics.push((name.to_owned(), Box::new(metric))))
    }

    /// Whether steps stop at a loss or gradient that is not finite, which costs one more look at each gradient. On by
    /// itself.
    #[must_use]
    pub fn check_numerics(self, on: bool) -> Trainer {
        self.change(|parts| parts.checked = on)
    }

    /// Runs fused passes as machine code.
    #[must_use]
    pub fn jit_compile(mut self, on: bool) -> Trainer {
        self.programs = OnceLock::new();
        self.native = on;
        self
    }

    /// Somebody who looks on.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'static) -> Trainer {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// What the model is tried on after each epoch.
    #[must_use]
    pub fn validate(mut self, data: &Dataset<Batch>) -> Trainer {
        self.validation = Some(data.clone());
        self
    }

    /// Ends an epoch after so many steps, wherever the data is then: for data without an end. The next epoch goes on there.
    #[must_use]
    pub fn steps_per_epoch(mut self, steps: usize) -> Trainer {
        self.steps_per_epoch = Some(steps);
        self
    }

    /// Something that a resumed run must have in common with the one it goes on with: the size of the batches, a seed of the
    /// data. It goes into checkpoints, and [`Trainer::resume`], called after this, refuses a file that says otherwise.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl ToString) -> Trainer {
        self.state.settings.insert(name.to_owned(), value.to_string());
        self
    }

    /// Writes the whole state of the training to this file, again and again; [`Trainer::resume`] goes on from there.
    #[must_use]
    pub fn checkpoint(mut self, path: impl Into<PathBuf>, every: Every) -> Trainer {
        self.checkpoints = Some((path.into(), every));
        self
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Layer> {
        &self.parts.model
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer {
        &self.parts.optimizer
    }

    /// The epochs so far.
    pub fn history(&self) -> &History {
        &self.state.history
    }

    /// What a step of training does and needs, for batches like these. Nothing is computed.
    #[track_caller]
    pub fn plan(&self, x: &Tensor, y: &Tensor) -> Result<Arc<Program>> {
        self.programs().step.plan((x, y))
    }

    /// What a prediction does and needs, for a batch like this. Nothing is computed.
    #[track_caller]
    pub fn plan_predict(&self, x: &Tensor) -> Result<Arc<Program>> {
        self.programs().infer.plan(x)
    }

    /// Gives back the memory that steps work in, which is kept from step to step.
    pub fn release(&self) {
        if let Some(programs) = self.programs.get() {
            programs.step.release();
            programs.test.release();
            programs.infer.release();
        }
    }

    fn programs(&self) -> &Programs {
        self.programs.get_or_init(|| {
            // The last batch of an epoch may be smaller: that is no surprise.
            let [step, test, infer] = [(); 3].map(|()| self.parts.clone());
            Programs {
                step: function(move |(x, y): &Batch| step.train(x, y))
                    .named("train step")
                    .jit_compile(self.native)
                    .on_retrace(OnRetrace::Allow),
                test: function(move |(x, y): &Batch| test.test(x, y))
                    .named("test step")
                    .jit_compile(self.native)
                    .on_retrace(OnRetrace::Allow),
                infer: function(move |x: &Tensor| infer.model.call(x, Mode::Infer))
                    .named("predict")
                    .jit_compile(self.native)
                    .on_retrace(OnRetrace::Allow),
            }
        })
    }

    /// One step of training on a batch: its loss. [`Trainer::fit`] does this, and the rest.
    #[track_caller]
    pub fn train_step(&self, x: &Tensor, y: &Tensor) -> Result<f64> {
        let before = random::state();
        let loss = self.programs().step.call((x, y));
        let explained = |error: Error| match error.kind() {
            ErrorKind::Numeric => numerics::explain(&self.parts, (x, y), before, error),
            _ => error,
        };
        number(&loss.map_err(explained)?)
    }

    /// What the metrics say of the epoch so far.
    pub fn scores(&self) -> Result<Vec<(String, f64)>> {
        let score = |(name, metric): &(String, Box<dyn Metric>)| {
            let value = metric.value().map_err(|error| error.about(format_args!("the metric '{name}'")))?;
            Ok((name.clone(), value))
        };
        self.parts.metrics.iter().map(score).collect()
    }

    /// The mean loss of the epoch so far.
    pub fn mean_loss(&self) -> f64 {
        self.state.now.loss()
    }

    pub(super) fn reset(&self) -> Result<()> {
        self.parts.metrics.iter().try_for_each(|(_, metric)| metric.reset())
    }

    /// The mean loss and the metrics on this data, which the model is not trained on. What the metrics know of the epoch that
    /// is under way stays as it is.
    #[track_caller]
    pub fn evaluate(&self, data: &Dataset<Batch>) -> Result<Vec<(String, f64)>> {
        let at = Location::caller();
        let sums = self.parts.metrics.iter().flat_map(|(_, metric)| variables_of(&**metric));
        let kept = Kept::of(sums.map(|(_, variable)| variable)).map_err(|error| error.at(at))?;
        let scores = self.score(data);
        let restored = kept.restore();
        scores.and_then(|scores| restored.map(|()| scores)).map_err(|error| error.at(at))
    }

    fn score(&self, data: &Dataset<Batch>) -> Result<Vec<(String, f64)>> {
        self.reset()?;
        let mut sum = Partial::default();
        for batch in data.iter()? {
            let (x, y) = batch?;
            let loss = number(&self.programs().test.call((&x, &y))?)?;
            sum.add(x.shape().first().copied().unwrap_or(1), loss);
        }
        if sum.steps == 0 {
            return Err(Error::value("the dataset has no elements"));
        }
        let mut scores = vec![("loss".to_owned(), sum.loss())];
        scores.extend(self.scores()?);
        Ok(scores)
    }

    /// What the model says to a batch.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.programs().infer.call(x)
    }
}

/// The values of variables, to come back to.
pub(super) struct Kept(Vec<(Variable, Tensor)>);

impl Kept {
    pub fn of(variables: impl IntoIterator<Item = Variable>) -> Result<Kept> {
        let copies = variables.into_iter().map(|variable| {
            let value = variable.value().copy()?;
            Ok((variable, value))
        });
        Ok(Kept(copies.collect::<Result<_>>()?))
    }

    pub fn restore(self) -> Result<()> {
        self.0.into_iter().try_for_each(|(variable, value)| variable.assign(value))
    }
}

/// The variables of a metric, with their names.
pub(super) fn variables_of(metric: &dyn Metric) -> Vec<(String, Variable)> {
    let mut names = Names::default();
    metric.variables(&mut names);
    names.into_found()
}

/// A loss as a number. Those of halves are widened first; the others need no memory for it.
fn number(loss: &Tensor) -> Result<f64> {
    match loss.dtype() {
        DType::F64 => loss.item::<f64>(),
        DType::F32 => Ok(f64::from(loss.item::<f32>()?)),
        _ => cast(loss, DType::F64)?.item::<f64>(),
    }
}

impl Parts {
    /// The mean loss of what the model makes of a batch, and that.
    pub fn forward(&self, x: &Tensor, y: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let predicted = self.model.call(x, mode)?;
        let loss = with_source_location(None, self.at, || self.loss.mean(y, &predicted, None))?;
        Ok((loss, predicted))
    }

    fn train(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let (loss, predicted, gradients) = {
            let tape = GradientTape::new();
            let (mut loss, predicted) = self.forward(x, y, Mode::Train)?;
            if self.checked {
                loss = with_source_location(None, self.at, || check_numerics(loss, "the loss"))?;
            }
            let gradients = tape.gradient(&loss, &self.variables)?;
            (loss, predicted, gradients)
        };
        with_source_location(None, self.at, || {
            let gradients: Vec<Option<Gradient>> = if self.checked {
                gradients.into_iter().map(checked).collect::<Result<_>>()?
            } else {
                gradients
            };
            self.optimizer.apply(&gradients)?;
            self.measure(y, &predicted)?;
            Ok(loss)
        })
    }

    fn measure(&self, y: &Tensor, predicted: &Tensor) -> Result<()> {
        self.metrics.iter().try_for_each(|(_, metric)| metric.update(y, predicted))
    }

    fn test(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let (loss, predicted) = self.forward(x, y, Mode::Infer)?;
        with_source_location(None, self.at, || self.measure(y, &predicted))?;
        Ok(loss)
    }
}

fn checked(gradient: Option<Gradient>) -> Result<Option<Gradient>> {
    let Some(gradient) = gradient else { return Ok(None) };
    let name = "a gradient";
    Ok(Some(match gradient {
        Gradient::Dense(gradient) => Gradient::Dense(check_numerics(gradient, name)?),
        Gradient::Sparse(mut slices) => {
            slices.values = check_numerics(slices.values, name)?;
            Gradient::Sparse(slices)
        }
    }))
}
