//! A convolutional network for handwritten digits, trained with validation and early stopping.

use taut::data::{self, Dataset};
use taut::layers::{Activation, Conv2D, Dense, Dropout, Flatten, MaxPooling2D, Padding, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Adam, Optimizer};
use taut::train::EarlyStopping;
use taut::{Layer, Result, Trainer, random};
use taut_examples::is_quick;

fn main() -> Result<()> {
    random::set_seed(1);
    let digits = data::digits()?;
    let train = Dataset::from_tensor_slices(digits.train)?.shuffle(2000)?.batch(64)?.prefetch(2)?;
    let test = Dataset::from_tensor_slices(digits.test)?.batch(64)?;

    let relu = Activation::Relu;
    let model = Sequential::new()
        .with_named("conv", Conv2D::new(1, 16, 3).padding(Padding::Same).activation(relu).build()?)
        .with(MaxPooling2D::new(2).build()?)
        .with(Flatten::new())
        .with(Dropout::new(0.3)?)
        .with_named("hidden", Dense::new(4 * 4 * 16, 64).activation(relu).build()?)
        .with_named("classes", Dense::new(64, 10).build()?);
    let optimizer =
        Optimizer::new(Adam { rate: 0.003.into(), ..Adam::default() }, &model.trainable_variables())?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer = Trainer::new(model, loss, optimizer)
        .metric_as("accuracy", SparseCategoricalAccuracy::new()?)
        .validate(&test)
        .callback(EarlyStopping::lowest("val_loss").patience(4).restore_best());

    let history = trainer.fit(&train, if is_quick() { 2 } else { 20 })?;
    println!("{history}");
    let scores = trainer.evaluate(&test)?;
    println!("on the test set: {scores:.4?}");
    assert!(scores[1].1 > if is_quick() { 0.75 } else { 0.97 });
    Ok(())
}
