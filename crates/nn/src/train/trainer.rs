//! The trainer. A step is in `parts`, the loop in `run`, checkpoints are in `saving`.

use super::callback::Callback;
use super::history::History;
use super::numerics;
use super::parts::{Batch, SavedValues, TrainingParts, variables_of};
use super::state::{EpochProgress, PendingCallbacks, RunState};
use crate::layer::{Layer, Mode};
use crate::losses::Loss;
use crate::metrics::Metric;
use crate::optimizers::Optimizer;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use taut_autodiff::nest::Nest;
use taut_core::ops::random;
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, ErrorKind, Result, Tensor};
use taut_data::Dataset;
use taut_function::{Function, MemoryBudget, MemoryFrontier, OnRetrace, function};
use taut_memory::Location;
use taut_plan::Program;

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After every so many steps, counted from the first one of the run, and after every epoch.
    Steps(usize),
    /// After every so many epochs, and at the end.
    Epochs(usize),
}

/// The traced functions of a trainer.
pub(super) struct TracedFunctions {
    pub(super) step: Function<Batch, Tensor>,
    test: Function<Batch, Tensor>,
    infer: Function<Tensor, Tensor>,
}

/// Trains a model on a dataset: forward pass, backward pass and update are one traced function.
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
/// let optimizer = Optimizer::new(Sgd { rate: 0.1.into(), ..Sgd::default() }, &model.trainable_variables())?;
/// let mut trainer = Trainer::new(model, MeanSquaredError, optimizer);
/// let history = trainer.fit(&data, 50)?;
/// assert!(history.last("loss").unwrap() < 1e-3);
/// # Ok::<(), taut_core::Error>(())
/// ```
///
/// A step fails if the loss or a gradient is not finite, before a variable changes. The step then runs again op by op, and the
/// error names the op and the source line that produced the first NaN or infinity.
pub struct Trainer {
    pub(super) parts: Arc<TrainingParts>,
    programs: OnceLock<TracedFunctions>,
    native: bool,
    budget: Option<MemoryBudget>,
    /// Empty while `fit` runs, which holds them itself.
    pub(super) callbacks: Vec<Box<dyn Callback>>,
    pub(super) is_running: bool,
    pub(super) validation: Option<Dataset<Batch>>,
    pub(super) checkpoints: Option<(PathBuf, Every)>,
    pub(super) steps_per_epoch: Option<usize>,
    pub(super) state: RunState,
    /// The batches of all ranks that were delivered before the current iterator began.
    pub(super) batches_before: u64,
    /// Whether a rank has callbacks, which can stop the run.
    pub(super) some_rank_may_stop: bool,
    /// The loaded checkpoint, until callbacks have taken their state from it.
    pub(super) resumed: Option<PendingCallbacks>,
}

impl Trainer {
    /// A trainer that minimises the mean of this loss with an optimizer of the model's variables.
    #[track_caller]
    pub fn new(model: impl Layer, loss: impl Loss, optimizer: Optimizer) -> Trainer {
        let parts = TrainingParts {
            variables: optimizer.variables(),
            model: Arc::new(model),
            loss: Arc::new(loss),
            optimizer: Arc::new(optimizer),
            metrics: Vec::new(),
            checked: true,
            distribution: None,
            at: Location::caller(),
        };
        Trainer {
            parts: Arc::new(parts),
            programs: OnceLock::new(),
            native: true,
            budget: None,
            callbacks: Vec::new(),
            is_running: false,
            validation: None,
            checkpoints: None,
            steps_per_epoch: None,
            state: RunState::default(),
            batches_before: 0,
            some_rank_may_stop: true,
            resumed: None,
        }
    }

    /// Changes what a step uses, and drops the traces made before.
    pub(super) fn change(mut self, change: impl FnOnce(&mut TrainingParts)) -> Trainer {
        self.programs = OnceLock::new();
        change(
            Arc::get_mut(&mut self.parts).expect("only the traced functions share it, and they were dropped"),
        );
        self
    }

    /// Adds a metric, which is updated in training and in validation.
    #[must_use]
    pub fn metric(self, metric: impl Metric) -> Trainer {
        let name = metric.name().to_owned();
        self.metric_as(&name, metric)
    }

    /// As [`Trainer::metric`], under another name.
    #[must_use]
    pub fn metric_as(self, name: &str, metric: impl Metric) -> Trainer {
        self.change(|parts| parts.metrics.push((name.to_owned(), Arc::new(metric))))
    }

    /// Whether a loss or gradient that is not finite is an error, which costs one pass over each gradient. Default: true.
    #[must_use]
    pub fn check_numerics(self, on: bool) -> Trainer {
        self.change(|parts| parts.checked = on)
    }

    /// Whether fused kernels are compiled to machine code, where the machine supports it. Default: true.
    #[must_use]
    pub fn jit_compile(mut self, on: bool) -> Trainer {
        self.programs = OnceLock::new();
        self.native = on;
        self
    }

    /// The bytes that a step may allocate: [`Function::memory_budget`]. Evaluation and prediction have the same budget.
    #[must_use]
    pub fn memory_budget(mut self, budget: impl Into<MemoryBudget>) -> Trainer {
        self.programs = OnceLock::new();
        self.budget = Some(budget.into());
        self
    }

    /// Adds a callback.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'static) -> Trainer {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Evaluates the model on this data after each epoch.
    #[must_use]
    pub fn validate(mut self, data: &Dataset<Batch>) -> Trainer {
        self.validation = Some(data.clone());
        self
    }

    /// Ends an epoch after this many steps, for infinite data. The next epoch continues at the same position.
    #[must_use]
    pub fn steps_per_epoch(mut self, steps: usize) -> Trainer {
        self.steps_per_epoch = Some(steps);
        self
    }

    /// A setting that a resumed run must share, such as the batch size or a seed of the data. It is saved in checkpoints, and
    /// [`Trainer::resume`], called after this, rejects a file with another value.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl ToString) -> Trainer {
        self.state.settings.insert(name.to_owned(), value.to_string());
        self
    }

    /// Writes the whole state of the run to this file at each interval; [`Trainer::resume`] continues from it.
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

    /// The plan of a training step for batches of these specs. Computes nothing.
    #[track_caller]
    pub fn plan(&self, x: &Tensor, y: &Tensor) -> Result<Arc<Program>> {
        self.programs().step.plan((x, y))
    }

    /// The plans of a training step among which a memory budget chooses, for batches of these specs. Computes nothing.
    #[track_caller]
    pub fn frontier(&self, x: &Tensor, y: &Tensor) -> Result<Arc<MemoryFrontier>> {
        self.programs().step.frontier((x, y))
    }

    /// The plan of a prediction for a batch of this spec. Computes nothing.
    #[track_caller]
    pub fn plan_predict(&self, x: &Tensor) -> Result<Arc<Program>> {
        self.programs().infer.plan(x)
    }

    /// Frees the arenas, which are otherwise kept from step to step.
    pub fn release(&self) {
        if let Some(programs) = self.programs.get() {
            programs.step.release();
            programs.test.release();
            programs.infer.release();
        }
    }

    pub(super) fn programs(&self) -> &TracedFunctions {
        self.programs.get_or_init(|| {
            // The last batch of an epoch may be smaller, so one retrace is expected.
            let [step, test, infer] = [(); 3].map(|()| self.parts.clone());
            TracedFunctions {
                step: self.traced("train step", function(move |(x, y): &Batch| step.train(x, y))),
                test: self.traced("test step", function(move |(x, y): &Batch| test.test(x, y))),
                infer: self.traced("predict", function(move |x: &Tensor| infer.model.call(x, Mode::Infer))),
            }
        })
    }

    /// A function with the trainer's options.
    pub(super) fn traced<A: Nest<Owned = A>>(
        &self,
        name: &str,
        function: Function<A, Tensor>,
    ) -> Function<A, Tensor> {
        let function = function.named(name).jit_compile(self.native).on_retrace(OnRetrace::Allow);
        match self.budget {
            Some(budget) => function.memory_budget(budget),
            None => function,
        }
    }

    /// Runs one training step on a batch and returns its loss. [`Trainer::fit`] runs this in a loop.
    #[track_caller]
    pub fn train_step(&self, x: &Tensor, y: &Tensor) -> Result<f64> {
        let rows = x.shape().first().copied().unwrap_or(1);
        self.together(|distribution| distribution.agree_on_rows(rows).map(|_| ()))?;
        self.run_step(x, y)
    }

    /// Runs one training step, of whose rows all ranks know.
    #[track_caller]
    pub(super) fn run_step(&self, x: &Tensor, y: &Tensor) -> Result<f64> {
        match &self.parts.distribution {
            Some(distribution) => self.run_step_together(distribution, x, y),
            None => self.run_own_step(x, y),
        }
    }

    #[track_caller]
    pub(super) fn run_own_step(&self, x: &Tensor, y: &Tensor) -> Result<f64> {
        let before = random::state();
        let loss = self.programs().step.call((x, y));
        let explained = |error: Error| match error.kind() {
            ErrorKind::Numeric => numerics::explain(&self.parts, (x, y), before, error),
            _ => error,
        };
        number(&loss.map_err(explained)?)
    }

    /// The values of the metrics in the epoch so far.
    pub fn scores(&self) -> Result<Vec<(String, f64)>> {
        let score = |(name, metric): &(String, Arc<dyn Metric>)| {
            let value = metric.value().map_err(|error| error.about(format_args!("the metric '{name}'")))?;
            Ok((name.clone(), value))
        };
        self.parts.metrics.iter().map(score).collect()
    }

    /// The mean loss of the epoch so far.
    pub fn mean_loss(&self) -> f64 {
        self.state.progress.loss()
    }

    pub(super) fn reset(&self) -> Result<()> {
        self.parts.metrics.iter().try_for_each(|(_, metric)| metric.reset())
    }

    /// The mean loss and the metrics on this data, without training. The metrics' sums of the current epoch are preserved.
    #[track_caller]
    pub fn evaluate(&self, data: &Dataset<Batch>) -> Result<Vec<(String, f64)>> {
        let at = Location::caller();
        let sums = self.parts.metrics.iter().flat_map(|(_, metric)| variables_of(&**metric));
        let kept = SavedValues::copy_of(sums.map(|(_, variable)| variable)).map_err(|error| error.at(at))?;
        let scores = self.score(data);
        let restored = kept.restore();
        scores.and_then(|scores| restored.map(|()| scores)).map_err(|error| error.at(at))
    }

    fn score(&self, data: &Dataset<Batch>) -> Result<Vec<(String, f64)>> {
        self.reset()?;
        let mut sum = EpochProgress::default();
        for batch in self.own_data(data)?.iter()? {
            let (x, y) = batch?;
            let loss = number(&self.programs().test.call((&x, &y))?)?;
            sum.add(x.shape().first().copied().unwrap_or(1), loss);
        }
        let sum = self.sum_over_ranks(sum)?;
        if sum.steps == 0 {
            return Err(Error::value("the dataset must have at least one element, got none"));
        }
        self.sum_metrics()?;
        let mut scores = vec![("loss".to_owned(), sum.loss())];
        scores.extend(self.scores()?);
        Ok(scores)
    }

    /// The model's output for a batch, at inference.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.programs().infer.call(x)
    }
}

/// A loss as a number. Half precision is cast first; other dtypes need no allocation.
fn number(loss: &Tensor) -> Result<f64> {
    match loss.dtype() {
        DType::F64 => loss.item::<f64>(),
        DType::F32 => Ok(f64::from(loss.item::<f32>()?)),
        _ => cast(loss, DType::F64)?.item::<f64>(),
    }
}
