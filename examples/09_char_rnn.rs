//! An LSTM that learns to write, sign by sign.

use taut::data::Dataset;
use taut::layers::{Dense, Embedding, LSTM, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::optimizers::{Adam, Clip, Optimizer};
use taut::{Layer, Result, Tensor, Trainer, random};
use taut_examples::{SIGNS, encode, is_quick, text, write};

const LENGTH: usize = 48;
const UNITS: usize = 96;

fn main() -> Result<()> {
    random::set_seed(1);
    let (windows, epochs) = if is_quick() { (320, 1) } else { (usize::MAX, 12) };
    let numbers = encode(&text());
    println!("{} signs of {} kinds", numbers.len(), SIGNS.len());

    // Pieces of the text, and the same one sign later.
    let rows = ((numbers.len() - 1) / LENGTH).min(windows);
    let piece = |from: usize| Tensor::from_slice(&numbers[from..from + rows * LENGTH], [rows, LENGTH]);
    let data = Dataset::from_tensor_slices((piece(0)?, piece(1)?))?.shuffle(rows)?.batch(32)?;

    let model = Sequential::new()
        .with(Embedding::new(SIGNS.len(), 32).build()?)
        .with(LSTM::new(32, UNITS).return_sequences(true).build()?)
        .with(Dense::new(UNITS, SIGNS.len()).build()?);
    let optimizer = Optimizer::new(Adam { rate: 0.005.into(), ..Adam::default() }, &model.trainable())?
        .clip(Clip::GlobalNorm(1.0))?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer = Trainer::new(model, loss, optimizer);
    let history = trainer.fit(&data, epochs)?;
    println!("{history}");

    assert!(history.last("loss") < Some((SIGNS.len() as f64).ln()), "better than guessing");
    println!("{}", write(&trainer, LENGTH)?);
    Ok(())
}
