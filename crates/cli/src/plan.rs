//! `taut plan`: the planned memory of a step, without running it.

use crate::options::TaskOptions;
use crate::{Outcome, models};
use clap::Args;
use taut::Layer;
use taut::memory::Bytes;
use taut::{DType, MemoryBudget, Spec, Tensor};

#[derive(Args, Clone, Debug)]
pub struct PlanOptions {
    #[command(flatten)]
    setup: TaskOptions,
    /// Plan a prediction instead of a training step
    #[arg(long, conflicts_with = "optimizer")]
    predict: bool,
    /// The bytes that a step may allocate, such as `200MB` or `64MiB`
    #[arg(long, value_name = "SIZE", conflicts_with = "predict")]
    memory_budget: Option<MemoryBudget>,
    /// Print the plans for every memory budget: bytes, time, repeated steps, parts of the batch
    #[arg(long, conflicts_with = "predict")]
    frontier: bool,
    /// Print every buffer: its memory and its live range
    #[arg(long)]
    table: bool,
}

pub fn run(options: &PlanOptions) -> Outcome {
    let setup = &options.setup;
    let (shape, classes) = setup.shape()?;
    let model = setup.model.build(shape, classes)?;
    let images = Spec::new(DType::F32, [&[setup.batch], &shape[..]].concat());
    println!("{}", model.summary(&images)?);
    let variables: usize = model.named_variables().iter().map(|(_, variable)| variable.spec().bytes()).sum();
    let mut trainer = models::trainer(model, setup.optimizer, None)?;
    if let Some(budget) = options.memory_budget {
        trainer = trainer.memory_budget(budget);
    }
    let state: usize =
        trainer.optimizer().named_variables().iter().map(|(_, variable)| variable.spec().bytes()).sum();

    // Planning needs types and shapes only, no data.
    let x = Tensor::placeholder(images);
    let y = Tensor::placeholder(Spec::new(DType::I64, [setup.batch]));
    if options.frontier {
        println!("{}\n", trainer.frontier(&x, &y)?);
    }
    let plan = if options.predict { trainer.plan_predict(&x)? } else { trainer.plan(&x, &y)? };
    if options.table {
        println!("{}", plan.table());
    }
    println!("{}", plan.explain_peak());
    let state = if options.predict { 0 } else { state };
    let rows = [
        ("variables", variables),
        ("optimizer", state),
        ("batch", plan.input_bytes()),
        ("arena and results", plan.peak_bytes()),
    ];
    for (name, bytes) in rows {
        println!("{name:<28} {:>12}  {bytes:>12} bytes", Bytes(bytes).to_string());
    }
    let total: usize = rows.iter().map(|(_, bytes)| bytes).sum();
    println!("{:<28} {:>12}  {total:>12} bytes", "total", Bytes(total).to_string());
    Ok(())
}
