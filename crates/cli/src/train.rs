//! `taut train`: trains a model on a dataset.

use crate::options::{TaskOptions, image_shape, positive};
use crate::progress::Progress;
use crate::{Outcome, models, report};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use taut::data::{Dataset, Shuffle, Split};
use taut::memory::Bytes;
use taut::plan::Program;
use taut::train::Every;
use taut::{Spec, Tensor, Trainer, random};

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
    /// Compile fused kernels to machine code
    #[arg(long)]
    pub jit: bool,
}

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

pub fn run(options: &TrainOptions) -> Outcome {
    let (setup, course) = (&options.setup, &options.course);
    random::set_seed(course.seed);
    let data = setup.load(course.seed)?;
    let mut session = Session::new(setup, course, &data, options.epochs, |trainer| {
        let mut trainer = trainer.jit_compile(options.jit);
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

/// A training run, its data and its plan.
pub struct Session {
    pub title: String,
    pub trainer: Trainer,
    pub train: Dataset<(Tensor, Tensor)>,
    /// A full batch.
    pub batch: (Tensor, Tensor),
    /// The plan of a step.
    pub plan: Arc<Program>,
}

impl Session {
    pub fn new(
        setup: &TaskOptions,
        course: &RunOptions,
        data: &Split,
        epochs: usize,
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
        let trainer = prepare(trainer.callback(Progress::new(epochs)))?;
        let batch = train.iter()?.next().ok_or("the data is empty")??;
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
        let title = format!("{:?} on {:?}", setup.model, setup.data).to_lowercase();
        Ok(Session { title, trainer, train, batch, plan })
    }

    /// Trains.
    pub fn fit(&mut self, epochs: usize) -> Outcome {
        self.trainer.fit(&self.train, epochs)?;
        Ok(())
    }
}
