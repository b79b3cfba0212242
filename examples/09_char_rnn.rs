//! A character-level language model: an LSTM.

use taut::data::Dataset;
use taut::layers::{Dense, Embedding, LSTM, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::optimizers::{Adam, Clip, Optimizer};
use taut::{Layer, Result, Tensor, Trainer, random};
use taut_examples::{VOCABULARY, encode, generate, is_quick, text};

const LENGTH: usize = 48;
const UNITS: usize = 96;

fn main() -> Result<()> {
    random::set_seed(1);
    let (windows, epochs) = if is_quick() { (320, 1) } else { (usize::MAX, 12) };
    let tokens = encode(&text());
    println!("{} characters, a vocabulary of {}", tokens.len(), VOCABULARY.len());

    // Windows of the text as inputs; the same windows shifted by one character as labels.
    let rows = ((tokens.len() - 1) / LENGTH).min(windows);
    let piece = |from: usize| Tensor::from_slice(&tokens[from..from + rows * LENGTH], [rows, LENGTH]);
    let data = Dataset::from_tensor_slices((piece(0)?, piece(1)?))?.shuffle(rows)?.batch(32)?;

    let model = Sequential::new()
        .with(Embedding::new(VOCABULARY.len(), 32).build()?)
        .with(LSTM::new(32, UNITS).return_sequences(true).build()?)
        .with(Dense::new(UNITS, VOCABULARY.len()).build()?);
    let optimizer =
        Optimizer::new(Adam { rate: 0.005.into(), ..Adam::default() }, &model.trainable_variables())?
            .clip(Clip::GlobalNorm(1.0))?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer = Trainer::new(model, loss, optimizer);
    let history = trainer.fit(&data, epochs)?;
    println!("{history}");

    assert!(history.last("loss") < Some((VOCABULARY.len() as f64).ln()), "better than a uniform guess");
    println!("{}", generate(&trainer, LENGTH)?);
    Ok(())
}
