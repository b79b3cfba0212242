//! The loop itself.

use super::callback::{Callback, Flow, Step};
use super::checkpoint::Checkpoint;
use super::history::{Epoch, History};
use super::numerics;
use super::state::{Partial, State};
use crate::layer::{Layer, Mode, Names};
use crate::losses::Loss;
use crate::metrics::Metric;
use crate::optimizers::Optimizer;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::random;
use taut_core::ops::unary::{cast, check_numerics};
use taut_core::{DType, Error, ErrorKind, Gradient, Result, Tensor, on_behalf};
use taut_data::{Dataset, Iter, Position};
use taut_function::{Function, OnRetrace, function};
use taut_memory::Line;
use taut_plan::Program;

/// A batch of inputs, and what is to come out.
type Batch = (Tensor, Tensor);

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After so many steps, and at the end.
    Steps(usize),
    /// After so many epochs, and at the end.
    Epochs(usize),
}

/// What a step is made of.
pub(super) struct Parts {
    pub model: Arc<dyn Layer>,
    pub loss: Arc<dyn Loss>,
    pub variables: Vec<Variable>,
    optimizer: Arc<Optimizer>,
    metrics: Vec<(String, Box<dyn Metric>)>,
    checked: bool,
    /// The line that made the trainer: what loss, optimizer and metrics do is done for it.
    at: Line,
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
    parts: Arc<Parts>,
    programs: OnceLock<Programs>,
    native: bool,
    callbacks: Vec<Box<dyn Callback>>,
    validation: Option<Dataset<Batch>>,
    checkpoints: Option<(PathBuf, Every)>,
    steps_per_epoch: Option<usize>,
    state: State,
    /// The checkpoint that was loaded, of whose state the callbacks have still to be told.
    resumed: Option<PathBuf>,
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
            at: Line::caller(),
        };
        Trainer {
            parts: Arc::new(parts),
            programs: OnceLock::new(),
            native: false,
            callbacks: Vec::new(),
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

    /// Trains until `epochs` epochs are complete, those before a resume included.
    #[track_caller]
    pub fn fit(&mut self, data: &Dataset<Batch>, epochs: usize) -> Result<&History> {
        let at = Line::caller();
        let mut callbacks = std::mem::take(&mut self.callbacks);
        let trained = self.run(data, epochs, &mut callbacks);
        let ended = callbacks.iter_mut().try_for_each(|callback| callback.end(self));
        self.callbacks = callbacks;
        trained.and(ended).map_err(|error| error.at(at))?;
        Ok(&self.state.history)
    }

    fn run(
        &mut self,
        data: &Dataset<Batch>,
        epochs: usize,
        callbacks: &mut [Box<dyn Callback>],
    ) -> Result<()> {
        callbacks.iter_mut().try_for_each(|callback| callback.begin(self))?;
        if let Some(path) = self.resumed.take() {
            self.restore(&path, callbacks)?;
        }
        let mut saved = true;
        while self.state.epochs < epochs {
            let complete = self.state.epochs;
            let mut flow = self.epoch(data, callbacks)?;
            if self.state.epochs == complete {
                saved = false;
                break;
            }
            for callback in callbacks.iter_mut() {
                let last = self.state.history.epochs.last().expect("an epoch was just made");
                if callback.epoch(self, last)? == Flow::Stop {
                    flow = Flow::Stop;
                }
            }
            saved = self.save_if(callbacks, |every| match every {
                Every::Epochs(count) => self.state.epochs.is_multiple_of(count.max(1)),
                Every::Steps(_) => false,
            })?;
            if flow == Flow::Stop {
                break;
            }
        }
        if !saved {
            self.save_if(callbacks, |_| true)?;
        }
        Ok(())
    }

    /// The rest of the epoch that is under way.
    fn epoch(&mut self, data: &Dataset<Batch>, callbacks: &mut [Box<dyn Callback>]) -> Result<Flow> {
        let (clock, before) = (Instant::now(), self.state.now.seconds);
        let number = self.state.epochs + 1;
        let of = self.steps_per_epoch.or_else(|| data.cardinality().known().map(|count| count as usize));
        let mut batches = self.position(data)?;
        while self.steps_per_epoch.is_none_or(|steps| self.state.now.steps < steps) {
            let Some((x, y)) = batches.next().transpose()? else {
                if self.steps_per_epoch.is_none() || batches.position().delivered == 0 {
                    break;
                }
                batches = data.iter_from(&Position::start_of(batches.position().epoch + 1))?;
                continue;
            };
            let samples = x.shape().first().copied().unwrap_or(1);
            let made = self.state.now.steps + 1;
            let name = |error: Error| error.about(format!("epoch {number}, step {made}"));
            let loss = self.train_step(&x, &y).map_err(name)?;
            self.state.now.add(samples, loss);
            self.state.now.seconds = before + clock.elapsed().as_secs_f64();
            self.state.position = batches.position().to_string();
            let step = Step { epoch: number, number: made, of, samples, loss };
            let mut flow = Flow::Continue;
            for callback in callbacks.iter_mut() {
                if callback.step(self, &step)? == Flow::Stop {
                    flow = Flow::Stop;
                }
            }
            self.save_if(callbacks, |every| match every {
                Every::Steps(count) => made.is_multiple_of(count.max(1)),
                Every::Epochs(_) => false,
            })?;
            if flow == Flow::Stop {
                // The epoch goes on when training does.
                return Ok(flow);
            }
        }
        if self.state.now.steps == 0 {
            return Err(Error::value("the dataset has no elements").help("its report() says where they went"));
        }
        self.complete(clock, before, &batches.position())?;
        Ok(Flow::Continue)
    }

    /// Where the data goes on.
    fn position(&self, data: &Dataset<Batch>) -> Result<Iter<Batch>> {
        if self.state.position.is_empty() {
            return data.iter_from(&Position::start_of(self.state.epochs as u64));
        }
        data.iter_from(&self.state.position.parse::<Position>()?)
    }

    /// Scores the epoch, and begins the next one.
    fn complete(&mut self, clock: Instant, before: f64, position: &Position) -> Result<()> {
        let now = self.state.now;
        let mut scores = vec![("loss".to_owned(), now.loss())];
        scores.extend(self.scores()?);
        self.reset()?;
        if let Some(data) = &self.validation {
            // Training and validation work in memory one after the other, not side by side.
            self.release();
            let tried = self.evaluate(data).map_err(|error| error.about("validation"))?;
            self.release();
            scores.extend(tried.into_iter().map(|(name, value)| (format!("val_{name}"), value)));
        }
        let seconds = before + clock.elapsed().as_secs_f64();
        let Partial { steps, samples, .. } = now;
        let number = self.state.epochs + 1;
        self.state.history.epochs.push(Epoch { number, steps, samples, seconds, scores });
        self.state.epochs = number;
        self.state.now = Partial::default();
        // Data that ends begins anew with each epoch; data that is cut into epochs goes on.
        self.state.position =
            if self.steps_per_epoch.is_some() { position.to_string() } else { String::new() };
        Ok(())
    }

    /// What the metrics say of the epoch so far.
    pub fn scores(&self) -> Result<Vec<(String, f64)>> {
        self.parts.metrics.iter().map(|(name, metric)| Ok((name.clone(), metric.value()?))).collect()
    }

    /// The mean loss of the epoch so far.
    pub fn mean_loss(&self) -> f64 {
        self.state.now.loss()
    }

    fn reset(&self) -> Result<()> {
        self.parts.metrics.iter().try_for_each(|(_, metric)| metric.reset())
    }

    /// The mean loss and the metrics on this data, which the model is not trained on.
    #[track_caller]
    pub fn evaluate(&self, data: &Dataset<Batch>) -> Result<Vec<(String, f64)>> {
        self.reset()?;
        let mut sum = Partial::default();
        for batch in data.iter()? {
            let (x, y) = batch?;
            let loss = number(&self.programs().test.call((&x, &y))?)?;
            sum.add(x.shape().first().copied().unwrap_or(1), loss);
        }
        if sum.steps == 0 {
            return Err(Error::value("the dataset has no elements").at(Line::caller()));
        }
        let mut scores = vec![("loss".to_owned(), sum.loss())];
        scores.extend(self.scores()?);
        self.reset()?;
        Ok(scores)
    }

    /// What the model says to a batch.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.programs().infer.call(x)
    }

    /// All that a checkpoint holds.
    fn variables(&self, callbacks: &[Box<dyn Callback>]) -> Checkpoint {
        let collect = |visit: &dyn Fn(&mut Names)| {
            let mut names = Names::default();
            visit(&mut names);
            names.into_found()
        };
        let mut all = Checkpoint::new()
            .with("model", self.parts.model.named())
            .with("optimizer", self.parts.optimizer.named());
        for (i, (_, metric)) in self.parts.metrics.iter().enumerate() {
            all = all.with(&format!("metric.{i}"), collect(&|names| metric.variables(names)));
        }
        for (i, callback) in callbacks.iter().enumerate() {
            all = all.with(&format!("callback.{i}"), collect(&|names| callback.variables(names)));
        }
        all
    }

    fn save_if(&self, callbacks: &[Box<dyn Callback>], due: impl FnOnce(Every) -> bool) -> Result<bool> {
        match &self.checkpoints {
            Some((path, every)) if due(*every) => self.write(path, callbacks).map(|()| true),
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }

    fn write(&self, path: &Path, callbacks: &[Box<dyn Callback>]) -> Result<()> {
        let mut state = self.state.clone();
        state.random = random::state();
        let remembered =
            callbacks.iter().enumerate().filter_map(|(i, callback)| Some((i, callback.state()?)));
        state.callbacks = remembered.collect();
        self.variables(callbacks).save(path, &state.to_words()?)
    }

    /// Writes the whole state of the training to a file, now.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write(path.as_ref(), &self.callbacks)
    }

    /// Goes on from a checkpoint when [`Trainer::fit`] is called next: every later number will be the one that an
    /// uninterrupted run would have had. Model, optimizer, metrics and callbacks must be as they were.
    #[track_caller]
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Result<Trainer> {
        let path = path.into();
        let words = taut_core::io::load_safetensors(&path)?.metadata;
        let told = |error: Error| error.about(path.display()).at(Line::caller());
        self.state = State::from_words(&words).map_err(told)?;
        self.resumed = Some(path);
        Ok(self)
    }

    /// Loads the variables, once callbacks have theirs.
    fn restore(&mut self, path: &Path, callbacks: &mut [Box<dyn Callback>]) -> Result<()> {
        let state = State::from_words(&self.variables(callbacks).load(path)?)?;
        for (i, callback) in callbacks.iter_mut().enumerate() {
            if let Some(remembered) = state.callbacks.get(&i) {
                callback.restore(remembered)?;
            }
        }
        random::set_state(state.random);
        self.state = state;
        Ok(())
    }
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
        let loss = on_behalf(None, self.at, || self.loss.mean(y, &predicted, None))?;
        Ok((loss, predicted))
    }

    fn train(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let (loss, predicted, gradients) = {
            let tape = GradientTape::new();
            let (mut loss, predicted) = self.forward(x, y, Mode::Train)?;
            if self.checked {
                loss = check_numerics(loss, "the loss")?;
            }
            let gradients = tape.gradient(&loss, &self.variables)?;
            (loss, predicted, gradients)
        };
        on_behalf(None, self.at, || {
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
        on_behalf(None, self.at, || self.measure(y, &predicted))?;
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
