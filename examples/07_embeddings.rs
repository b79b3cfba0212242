//! An embedding table of a million rows: gradients and optimizer updates stay sparse.

use taut::layers::{Dense, Embedding};
use taut::losses::{BinaryCrossentropy, Loss};
use taut::memory::{self, Bytes};
use taut::optimizers::{Adam, Optimizer};
use taut::random::Generator;
use taut::{DType, GradientTape, Layer, Mode, Result, Tensor, function};
use taut_examples::is_quick;

const UNITS: usize = 64;
const IDS: usize = 26;

fn main() -> Result<()> {
    let (rows, batch) = if is_quick() { (20_000, 64) } else { (1_000_000, 4096) };
    taut::random::set_seed(1);
    let table = Embedding::new(rows, UNITS).build()?;
    let last = Dense::new(UNITS, 1).build()?;
    let variables = [table.trainable_variables(), last.trainable_variables()].concat();
    let optimizer = Optimizer::new(Adam { rate: 0.02.into(), ..Adam::default() }, &variables)?;
    let held = memory::live_bytes();
    println!("{rows} rows of {UNITS} and their moments: {}", Bytes(held));

    let random = Generator::from_seed(2);
    let ids = random.integers([batch, IDS], 0, rows as i64, DType::I32)?;
    let labels = taut::cast(random.integers([batch, 1], 0, 2, DType::I32)?, DType::F32)?;
    let step = function(move |(ids, labels): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let seen = taut::mean(table.call(ids, Mode::Train)?, 1, false)?;
        let loss = BinaryCrossentropy::from_logits();
        let loss = loss.mean(labels, &last.call(&seen, Mode::Train)?, None)?;
        optimizer.apply(&tape.gradient(&loss, &variables)?)?;
        Ok(loss)
    });

    let plan = step.plan((&ids, &labels))?;
    println!("{}", plan.explain_peak());
    let (before, first) = (memory::live_bytes(), step.plan((&ids, &labels))?.peak_bytes());
    memory::reset_peak();
    let mut losses = Vec::new();
    for _ in 0..10 {
        losses.push(step.call((&ids, &labels))?.item::<f32>()?);
    }
    let measured = memory::peak_bytes() - before;
    println!("a step needs {} more, as planned ({first} bytes)", Bytes(measured));
    println!("losses {losses:.3?}");
    assert_eq!(measured, first);
    // The rows of the gradient and little else: no gradient of the size of the table, no second copy of its rows.
    assert!(measured < batch * IDS * UNITS * 4 + (2 << 20));
    assert!(losses[9] < losses[0]);
    Ok(())
}
