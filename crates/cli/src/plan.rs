//! `taut plan`: what a step will need, before anything runs.

use crate::options::Setup;
use crate::{Outcome, models};
use clap::Args;
use taut::Layer;
use taut::memory::Bytes;
use taut::{DType, Spec, Tensor};

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    setup: Setup,
    /// Of a prediction, instead of a step of training
    #[arg(long, conflicts_with = "optimizer")]
    predict: bool,
    /// Every buffer: where it lies, from when to when
    #[arg(long)]
    table: bool,
}

pub fn run(options: &Options) -> Outcome {
    let setup = &options.setup;
    let (shape, classes) = setup.shape()?;
    let model = setup.model.build(shape, classes)?;
    let images = Spec::new(DType::F32, [&[setup.batch], &shape[..]].concat());
    println!("{}", model.summary(&images)?);
    let variables: usize = model.named().iter().map(|(_, variable)| variable.spec().bytes()).sum();
    let trainer = models::trainer(model, setup.optimizer, None)?;
    let state: usize = trainer.optimizer().named().iter().map(|(_, variable)| variable.spec().bytes()).sum();

    // Without data: only types and shapes matter.
    let x = Tensor::placeholder(images);
    let y = Tensor::placeholder(Spec::new(DType::I64, [setup.batch]));
    let plan = if options.predict { trainer.plan_predict(&x)? } else { trainer.plan(&x, &y)? };
    if options.table {
        println!("{}", plan.table());
    }
    println!("{}", plan.explain_peak());
    let state = if options.predict { 0 } else { state };
    let given = plan.input_bytes();
    let rows = [
        ("variables", variables),
        ("optimizer", state),
        ("batch", given),
        ("working memory and results", plan.peak_bytes()),
    ];
    for (name, bytes) in rows {
        println!("{name:<28} {:>12}  {bytes:>12} bytes", Bytes(bytes).to_string());
    }
    let total: usize = rows.iter().map(|(_, bytes)| bytes).sum();
    println!("{:<28} {:>12}  {total:>12} bytes", "in all", Bytes(total).to_string());
    Ok(())
}
