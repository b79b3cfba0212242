//! Checkpoints: an interrupted run that is resumed gives the same bits as one that was not interrupted.

use taut::data::{self, Dataset};
use taut::layers::{Activation, Dense, Dropout, Flatten, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::optimizers::{Adam, Optimizer};
use taut::train::{Callback, Every, Flow, Step};
use taut::{Layer, Result, Tensor, Trainer, random};
use taut_examples::TemporaryFolder;

/// Stops the training after a number of steps, in the middle of an epoch.
struct StopAfter(usize);

impl Callback for StopAfter {
    fn step(&mut self, _trainer: &Trainer, _step: &Step) -> Result<Flow> {
        self.0 -= 1;
        Ok(if self.0 == 0 { Flow::Stop } else { Flow::Continue })
    }
}

fn trainer() -> Result<Trainer> {
    let model = Sequential::new()
        .with(Flatten::new())
        .with(Dense::new(64, 32).activation(Activation::Relu).build()?)
        .with(Dropout::new(0.2)?) // the state of its random generator is part of the checkpoint
        .with(Dense::new(32, 10).build()?);
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables())?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    Ok(Trainer::new(model, loss, optimizer))
}

fn weights(trainer: &Trainer) -> Result<Vec<Vec<f32>>> {
    trainer.model().named_variables().iter().map(|(_, variable)| variable.value().to_vec()).collect()
}

fn main() -> Result<()> {
    let folder = TemporaryFolder::new()?;
    let path = folder.join("run.safetensors");
    let data: Dataset<(Tensor, Tensor)> =
        Dataset::from_tensor_slices(data::digits()?.train)?.shuffle(500)?.batch(64)?.prefetch(2)?;

    random::set_seed(7);
    let mut straight = trainer()?;
    straight.fit(&data, 3)?;

    random::set_seed(7);
    let mut interrupted = trainer()?.checkpoint(&path, Every::Steps(1)).callback(StopAfter(31));
    interrupted.fit(&data, 3)?;
    println!("interrupted after {} complete epochs", interrupted.history().epochs.len());
    drop(interrupted);

    random::set_seed(1234); // `resume` restores the state of the generator
    let mut resumed = trainer()?.resume(&path)?;
    println!("{}", resumed.fit(&data, 3)?);
    assert_eq!(weights(&straight)?, weights(&resumed)?);
    assert_eq!(straight.history().scores("loss"), resumed.history().scores("loss"));
    println!("weights and losses are bit-equal");
    Ok(())
}
