//! A character-level language model: a small transformer, made of structs that implement `Layer`.

use taut::data::Dataset;
use taut::layers::{Activation, Dense, Dropout, Embedding, LayerNorm, MultiHeadAttention, Sequential};
use taut::losses::SparseCategoricalCrossentropy;
use taut::memory::Bytes;
use taut::optimizers::{AdamW, Optimizer};
use taut::schedules::{CosineDecay, Warmup};
use taut::{DType, Layer, Mode, NamedVariables, Result, Tensor, Trainer, random};
use taut_examples::{VOCABULARY, encode, generate, is_quick, text};

const LENGTH: usize = 64;
const WIDTH: usize = 64;
const HEADS: usize = 4;

/// A pre-norm transformer block: attention and a feed-forward network, each with a residual connection.
struct Block {
    first: LayerNorm,
    attention: MultiHeadAttention,
    second: LayerNorm,
    feed_forward: Sequential,
}

impl Block {
    fn new() -> Result<Block> {
        Ok(Block {
            first: LayerNorm::new([WIDTH]).build()?,
            attention: MultiHeadAttention::new(WIDTH, HEADS, WIDTH / HEADS).causal(true).build()?,
            second: LayerNorm::new([WIDTH]).build()?,
            feed_forward: Sequential::new()
                .with(Dense::new(WIDTH, 4 * WIDTH).activation(Activation::Gelu).build()?)
                .with(Dense::new(4 * WIDTH, WIDTH).build()?)
                .with(Dropout::new(0.1)?),
        })
    }
}

impl Layer for Block {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = (x + self.attention.call(&self.first.call(x, mode)?, mode)?)?;
        &x + self.feed_forward.call(&self.second.call(&x, mode)?, mode)?
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add_layer("first", &self.first);
        names.add_layer("attention", &self.attention);
        names.add_layer("second", &self.second);
        names.add_layer("feed_forward", &self.feed_forward);
    }
}

/// The sum of a token embedding and a position embedding.
struct TokenAndPosition {
    tokens: Embedding,
    positions: Embedding,
}

impl Layer for TokenAndPosition {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let length = x.shape()[1] as i64;
        let positions = taut::range(0i64, length, 1i64, DType::I64)?;
        self.tokens.call(x, mode)? + self.positions.call(&positions, mode)?
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add_layer("tokens", &self.tokens);
        names.add_layer("positions", &self.positions);
    }
}

fn main() -> Result<()> {
    random::set_seed(1);
    let (windows, epochs, blocks) = if is_quick() { (128, 1, 1) } else { (usize::MAX, 15, 3) };
    let tokens = encode(&text());
    let rows = ((tokens.len() - 1) / LENGTH).min(windows);
    let piece = |from: usize| Tensor::from_slice(&tokens[from..from + rows * LENGTH], [rows, LENGTH]);
    let data = Dataset::from_tensor_slices((piece(0)?, piece(1)?))?.shuffle(rows)?.batch(16)?;

    let mut model = Sequential::new().with(TokenAndPosition {
        tokens: Embedding::new(VOCABULARY.len(), WIDTH).build()?,
        positions: Embedding::new(LENGTH, WIDTH).build()?,
    });
    for _ in 0..blocks {
        model = model.with(Block::new()?);
    }
    let model =
        model.with(LayerNorm::new([WIDTH]).build()?).with(Dense::new(WIDTH, VOCABULARY.len()).build()?);

    let steps = (rows.div_ceil(16) * epochs) as u64;
    let rate = Warmup::new(
        steps / 10 + 1,
        CosineDecay { initial: 0.003, steps: steps as f64, ..CosineDecay::default() },
    );
    let optimizer =
        Optimizer::new(AdamW { rate: rate.into(), ..AdamW::default() }, &model.trainable_variables())?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer = Trainer::new(model, loss, optimizer);
    let (x, y) = data.iter()?.next().expect("the text is not empty")?;
    println!("a step needs {} in addition to data and variables", Bytes(trainer.plan(&x, &y)?.peak_bytes()));

    let history = trainer.fit(&data, epochs)?;
    println!("{history}");
    assert!(history.last("loss") < Some((VOCABULARY.len() as f64).ln()), "better than a uniform guess");
    println!("{}", generate(&trainer, LENGTH)?);
    Ok(())
}
