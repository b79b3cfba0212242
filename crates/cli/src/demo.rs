//! `taut demo`: trains a small network on handwritten digits, in less memory than its values take, limited to its plan.

use crate::models::{ModelName, OptimizerName};
use crate::options::{DataSource, TaskOptions};
use crate::session::{BudgetChoice, RunOptions, Session};
use crate::{Outcome, report};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;
use taut::memory::{self, Bytes};
use taut::{data, random};

/// The seed of weights, dropout and the order of the data.
const SEED: u64 = 1;
const EPOCHS: usize = 30;
/// The work of a step under its memory budget, relative to a step without one.
const WORK: f64 = 1.25;
/// Bytes for the data pipeline and the metrics, in addition to the plan.
const EXTRA_BYTES: usize = 2 << 20;

#[derive(Args, Clone, Debug)]
pub struct DemoOptions {
    /// The file of the report page
    #[arg(long, default_value = "target/taut-report.html")]
    report: PathBuf,
}

impl Default for DemoOptions {
    fn default() -> DemoOptions {
        DemoOptions { report: "target/taut-report.html".into() }
    }
}

pub fn run(options: &DemoOptions) -> Outcome {
    println!("Taut: a tensor engine with planned, limited and explained memory.\n");
    println!("Training a small convolutional network on 1,797 handwritten digits (8 x 8 pixels, UCI).\n");
    let clock = Instant::now();
    random::set_seed(SEED);
    let data = data::digits()?;
    let setup = TaskOptions {
        model: ModelName::Convnet,
        data: DataSource::Digits,
        size: None,
        batch: 64,
        optimizer: OptimizerName::Adam,
    };
    let course = RunOptions { rate: Some(2e-3), seed: SEED };
    let choice = BudgetChoice::SmallestAtWork(WORK);
    let mut session = Session::new(&setup, &course, &data, EPOCHS, choice, Ok)?;
    // An allocation beyond the plan is an error.
    let limit = memory::live_bytes() + session.plan.peak_bytes() + EXTRA_BYTES;
    memory::limit(limit);
    println!("tensor memory is now limited to {}\n", Bytes(limit));
    session.fit(EPOCHS)?;
    memory::limit(None);
    let history = session.trainer.history();
    let accuracy = history.last("val_accuracy").ok_or("no accuracy")?;
    println!(
        "\naccuracy on {} test images: {:.1} %; total time {:.1} s\n",
        data.test.0.shape()[0],
        accuracy * 100.0,
        clock.elapsed().as_secs_f64()
    );
    pictures(&session, &data)?;
    report::profile_step(&session, Some(&options.report))?;
    println!(
        "\nNext: `cargo run --release -- train --help`, the examples, the book (docs/src/first-steps.md)."
    );
    Ok(())
}

/// Prints a few digits of the test set with their predictions.
fn pictures(session: &Session, data: &data::Split) -> Outcome {
    const SHADES: [char; 5] = [' ', '.', 'o', 'O', '#'];
    const SHOWN: usize = 8;
    let (images, labels) = &data.test;
    let some = taut::slice(images, &taut::s![0..SHOWN as isize])?;
    let predicted = taut::argmax(session.trainer.predict(&some)?, -1)?.to_vec::<i64>()?;
    let (pixels, labels) = (some.to_vec::<f32>()?, labels.to_vec::<i64>()?);
    let [height, width] = [images.shape()[1], images.shape()[2]];
    for row in 0..height {
        let line = |digit: usize| -> String {
            let start = (digit * height + row) * width;
            let shade = |&value: &f32| SHADES[((value * 4.99) as usize).min(4)];
            pixels[start..start + width].iter().flat_map(|value| [shade(value); 2]).collect()
        };
        println!("  {}", (0..SHOWN).map(line).collect::<Vec<_>>().join(" ").trim_end());
    }
    let words = predicted.iter().zip(&labels).map(|(predicted, label)| {
        let text =
            if predicted == label { format!("{predicted}") } else { format!("{predicted}, not {label}") };
        format!("{text:^16}")
    });
    println!("  {}\n", words.collect::<Vec<_>>().join(" ").trim_end());
    Ok(())
}
