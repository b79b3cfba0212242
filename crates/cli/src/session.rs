//! A training run of the command: model, data, trainer and plan.

use crate::options::{TaskOptions, image_shape};
use crate::progress::Progress;
use crate::{Outcome, models};
use clap::Args;
use std::sync::Arc;
use taut::data::{Dataset, Shuffle, Split};
use taut::memory::Bytes;
use taut::plan::Program;
use taut::{MemoryBudget, MemoryFrontier, Spec, Tensor, Trainer};

/// Options of training that do not affect the memory of a step.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The learning rate, instead of the optimizer's default
    #[arg(long)]
    pub rate: Option<f64>,
    /// The seed of the initial weights, of dropout and of the order of the data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A training run, its data and its plan.
pub struct Session {
    pub title: String,
    pub trainer: Trainer,
    pub train: Dataset<(Tensor, Tensor)>,
    /// A full batch.
    pub batch: (Tensor, Tensor),
    /// The plan of a step.
    pub plan: Arc<Program>,
    /// The budget of a step, and the plans that it chose from.
    pub budget: Option<(MemoryBudget, Arc<MemoryFrontier>)>,
}

/// The memory budget of a run.
#[derive(Clone, Copy, Debug)]
pub enum BudgetChoice {
    /// None.
    Unlimited,
    /// This one.
    Given(MemoryBudget),
    /// The smallest at which a step takes at most this many times the work.
    SmallestAtWork(f64),
}

impl BudgetChoice {
    /// The budget, and the plans that it chooses from.
    fn of(
        self,
        trainer: &Trainer,
        (x, y): &(Tensor, Tensor),
    ) -> Outcome<Option<(MemoryBudget, Arc<MemoryFrontier>)>> {
        if let BudgetChoice::Unlimited = self {
            return Ok(None);
        }
        let frontier = trainer.frontier(x, y)?;
        let budget = match self {
            BudgetChoice::Unlimited => return Ok(None),
            BudgetChoice::Given(budget) => budget,
            BudgetChoice::SmallestAtWork(factor) => {
                let most = frontier.fastest().time as f64 * factor;
                let affordable = frontier.rows().iter().find(|row| row.time as f64 <= most);
                MemoryBudget::from(affordable.ok_or("no plan")?.bytes)
            }
        };
        Ok(Some((budget, frontier)))
    }
}

impl Session {
    pub fn new(
        setup: &TaskOptions,
        course: &RunOptions,
        data: &Split,
        epochs: usize,
        choice: BudgetChoice,
        prepare: impl FnOnce(Trainer) -> Outcome<Trainer>,
    ) -> Outcome<Session> {
        let (images, labels) = &data.train;
        let shape = image_shape(images)?;
        let model = setup.model.build(shape, data.classes)?;
        println!("{}", model.summary(&Spec::new(images.dtype(), [&[setup.batch], &shape[..]].concat()))?);
        let rows = images.shape()[0];
        let train = Dataset::from_tensor_slices((images.clone(), labels.clone()))?
            .shuffle(Shuffle::new(rows).seed(course.seed))?
            .batch(setup.batch)?
            .prefetch(2)?;
        let test = Dataset::from_tensor_slices(data.test.clone())?.batch(setup.batch)?;
        // A resumed run must have the same settings: its position is a number of batches.
        let rate = course.rate.map_or("the optimizer's default".to_owned(), |rate| rate.to_string());
        let trainer = models::trainer(model, setup.optimizer, course.rate)?
            .validate(&test)
            .setting("--batch", setup.batch)
            .setting("--seed", course.seed)
            .setting("--rate", rate);
        let mut trainer = prepare(trainer.callback(Progress::new(epochs)))?;
        let batch = train.iter()?.next().ok_or("the data is empty")??;
        let budget = choice.of(&trainer, &batch)?;
        if let Some((budget, frontier)) = &budget {
            println!("a step without a memory budget allocates {}", Bytes(frontier.fastest().bytes));
            println!("the memory budget is {budget}");
            trainer = trainer.memory_budget(*budget);
        }
        let plan = trainer.plan(&batch.0, &batch.1)?;
        println!(
            "{rows} training samples, {} test samples, batch size {}",
            data.test.0.shape()[0],
            batch.0.shape()[0]
        );
        println!(
            "the planned peak of a step is {} ({} bytes), without data and variables\n",
            Bytes(plan.peak_bytes()),
            plan.peak_bytes()
        );
        if let Some(row) = budget.as_ref().and_then(|(budget, frontier)| frontier.within(*budget)) {
            println!(
                "to fit, {} steps run again, and the batch is computed in {} parts\n",
                row.repeated_steps, row.micro_batches
            );
        }
        let title = format!("{:?} on {:?}", setup.model, setup.data).to_lowercase();
        Ok(Session { title, trainer, train, batch, plan, budget })
    }

    /// Trains.
    pub fn fit(&mut self, epochs: usize) -> Outcome {
        self.trainer.fit(&self.train, epochs)?;
        Ok(())
    }
}
