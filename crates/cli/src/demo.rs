//! `taut` alone: a small net learns to read handwritten digits, in memory that was known before.

use crate::models::{Kind, Rule};
use crate::options::{Setup, Source};
use crate::train::{Course, Session};
use crate::{Outcome, report};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;
use taut::memory::{self, Bytes};
use taut::{data, random};

/// Of weights, dropout and the order of the data.
const SEED: u64 = 1;
/// Passes over the data.
const EPOCHS: usize = 30;
/// What the order of the data, its batches and its scores may take beside the plan.
const ASIDE: usize = 2 << 20;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Where the page goes
    #[arg(long, default_value = "target/taut-report.html")]
    report: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options { report: "target/taut-report.html".into() }
    }
}

pub fn run(options: &Options) -> Outcome {
    println!("Taut: a tensor engine whose memory is known, kept and explained.\n");
    println!("A small convolutional net learns to read 1,797 handwritten digits (8 x 8 pixels, UCI).\n");
    let clock = Instant::now();
    random::set_seed(SEED);
    let data = data::digits()?;
    let setup =
        Setup { model: Kind::Convnet, data: Source::Digits, size: None, batch: 64, optimizer: Rule::Adam };
    let course = Course { rate: Some(2e-3), seed: SEED };
    let mut session = Session::new(&setup, &course, &data, EPOCHS, Ok)?;
    // From here on, more than what was planned is refused.
    let allowed = memory::live_bytes() + session.plan.peak_bytes() + ASIDE;
    memory::limit(allowed);
    println!("from here on, this process may hold {} of tensors\n", Bytes(allowed));
    session.fit(EPOCHS)?;
    memory::limit(None);
    let history = session.trainer.history();
    let accuracy = history.last("val_accuracy").ok_or("no accuracy")?;
    println!(
        "\nit reads {:.1} % of {} digits that it never saw; {:.1} s in all\n",
        accuracy * 100.0,
        data.test.0.shape()[0],
        clock.elapsed().as_secs_f64()
    );
    pictures(&session, &data)?;
    report::watch(&session, Some(&options.report))?;
    println!(
        "\nNext: `cargo run --release -- train --help`, the examples, the book (docs/src/first-steps.md)."
    );
    Ok(())
}

/// A few digits of the test set, and what the net takes them for.
fn pictures(session: &Session, data: &data::Split) -> Outcome {
    const SHADES: [char; 5] = [' ', '.', 'o', 'O', '#'];
    const SHOWN: usize = 8;
    let (images, labels) = &data.test;
    let some = taut::slice(images, &taut::s![0..SHOWN as isize])?;
    let said = taut::argmax(session.trainer.predict(&some)?, -1)?.to_vec::<i64>()?;
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
    let words = said.iter().zip(&labels).map(|(said, label)| {
        let text = if said == label { format!("{said}") } else { format!("{said}, not {label}") };
        format!("{text:^16}")
    });
    println!("  {}\n", words.collect::<Vec<_>>().join(" ").trim_end());
    Ok(())
}
