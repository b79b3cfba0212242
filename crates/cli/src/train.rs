//! `taut train`: a model of your choice on data of your choice.

use crate::options::{Setup, image_shape, positive};
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
pub struct Options {
    #[command(flatten)]
    pub setup: Setup,
    #[command(flatten)]
    pub course: Course,
    /// How many passes over the data, those before a resume included
    #[arg(long, default_value_t = 10)]
    pub epochs: usize,
    /// Writes the state of the training to this file after every epoch
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Also after every so many steps, counted from the first one
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = positive)]
    pub every: Option<usize>,
    /// Goes on from the checkpoint, if the file is there; with the batches, the seed and the learning rate that it began with
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
    /// Writes a page with the memory and the time of a step
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Compiles fused passes to machine code
    #[arg(long)]
    pub jit: bool,
}

/// How the training goes, beyond what a step needs.
#[derive(Args, Clone, Debug)]
pub struct Course {
    /// The learning rate, if not the optimizer's own
    #[arg(long)]
    pub rate: Option<f64>,
    /// The seed of the first weights, of dropout and of the order of the data
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

pub fn run(options: &Options) -> Outcome {
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
                println!("going on from {}", path.display());
            }
        }
        Ok(trainer)
    })?;
    session.fit(options.epochs)?;
    if let Some(path) = &options.checkpoint {
        println!("the state of the training is in {}; --resume goes on from there", path.display());
    }
    report::watch(&session, options.report.as_deref())
}

/// A training run, and what is known of it.
pub struct Session {
    pub title: String,
    pub trainer: Trainer,
    pub train: Dataset<(Tensor, Tensor)>,
    /// A full batch.
    pub batch: (Tensor, Tensor),
    /// What a step is to do, and how many bytes it needs beside what is there anyway.
    pub plan: Arc<Program>,
}

impl Session {
    pub fn new(
        setup: &Setup,
        course: &Course,
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
        // The position in the data is a number of batches, and the rate is in the checkpoint.
        let rate = course.rate.map_or("the optimizer's own".to_owned(), |rate| rate.to_string());
        let trainer = models::trainer(model, setup.optimizer, course.rate)?
            .validate(&test)
            .setting("--batch", setup.batch)
            .setting("--seed", course.seed)
            .setting("--rate", rate);
        let trainer = prepare(trainer.callback(Progress::new(epochs)))?;
        let batch = train.iter()?.next().ok_or("the data is empty")??;
        let plan = trainer.plan(&batch.0, &batch.1)?;
        println!(
            "{rows} samples to train on, {} to test on, batches of {}",
            data.test.0.shape()[0],
            batch.0.shape()[0]
        );
        println!(
            "a step is planned to need {} ({} bytes) beside data and variables\n",
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
