//! `taut train`: trains a model on a dataset.

use crate::options::{TaskOptions, positive};
use crate::session::{BudgetChoice, RunOptions, Session};
use crate::{Outcome, report};
use clap::Args;
use std::path::PathBuf;
use taut::train::Every;
use taut::{MemoryBudget, random};

#[derive(Args, Clone, Debug)]
pub struct TrainOptions {
    #[command(flatten)]
    pub setup: TaskOptions,
    #[command(flatten)]
    pub course: RunOptions,
    /// The number of epochs, including those before a resume
    #[arg(long, default_value_t = 10)]
    pub epochs: usize,
    /// Write a checkpoint to this file after every epoch
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Also write a checkpoint after every N steps
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = positive)]
    pub every: Option<usize>,
    /// Resume from the checkpoint, if the file exists; batch size, seed and learning rate must be those of the first run
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
    /// Write a page with the memory and the time of a step
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The bytes that a step may allocate, such as `200MB` or `64MiB`: values are computed again, or the batch is split, to fit
    #[arg(long, value_name = "SIZE")]
    pub memory_budget: Option<MemoryBudget>,
    /// Interpret fused kernels instead of compiling them to machine code
    #[arg(long)]
    pub no_jit: bool,
}

pub fn run(options: &TrainOptions) -> Outcome {
    let (setup, course) = (&options.setup, &options.course);
    random::set_seed(course.seed);
    let data = setup.load(course.seed)?;
    let choice = options.memory_budget.map_or(BudgetChoice::Unlimited, BudgetChoice::Given);
    let mut session = Session::new(setup, course, &data, options.epochs, choice, |trainer| {
        let mut trainer = trainer.jit_compile(!options.no_jit);
        if let Some(path) = &options.checkpoint {
            let every = options.every.map_or(Every::Epochs(1), Every::Steps);
            trainer = trainer.checkpoint(path, every);
            if options.resume && path.exists() {
                trainer = trainer.resume(path)?;
                println!("resuming from {}", path.display());
            }
        }
        Ok(trainer)
    })?;
    session.fit(options.epochs)?;
    if let Some(path) = &options.checkpoint {
        println!("the checkpoint is in {}; --resume continues from it", path.display());
    }
    report::profile_step(&session, options.report.as_deref())
}
