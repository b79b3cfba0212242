//! Taut as a peer of `benches/peers`: one workload, measured as `measure.py` there measures the others. Its `run.py` builds
//! and runs this.

#[path = "../models/adam.rs"]
mod adam;
mod cases;
#[path = "../models/classic.rs"]
mod classic;
#[path = "../models/dense.rs"]
mod dense;
#[path = "../models/lstm.rs"]
mod lstm;
mod measure;
#[path = "../models/power.rs"]
mod power;
#[path = "../models/resnet.rs"]
mod resnet;
#[path = "../models/transformer.rs"]
mod transformer;

use cases::{CASES, Inputs};
use std::error::Error;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// `--list`, or `<peer> <workload> --inputs <folder of .npy files> [--budget <seconds>]`.
fn main() -> Outcome {
    // `cargo bench` passes `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).map(String::as_str)
    };
    let [peer, workload, ..] = &args[..] else {
        let pairs = CASES.iter().map(|(peer, workload, _)| format!("[\"{peer}\", \"{workload}\"]"));
        println!("RESULT [{}]", pairs.collect::<Vec<_>>().join(", "));
        return Ok(());
    };
    let is_wanted = |case: &&(&str, &str, _)| case.0 == peer && case.1 == workload;
    let (_, _, build) = CASES.iter().find(is_wanted).ok_or("no such peer or workload")?;
    let folder = option("--inputs").ok_or("--inputs names the folder of the workload's arrays")?;
    let budget = option("--budget").map_or(Ok(4.0), str::parse)?;
    let measured = measure::run(build(&Inputs::new(folder))?, budget)?;
    println!("RESULT {{\"peer\": \"{peer}\", \"workload\": \"{workload}\", {measured}}}");
    Ok(())
}
