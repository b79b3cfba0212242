//! The `taut` command. Without arguments it trains a small network on handwritten digits, within its planned memory.

mod bench;
mod demo;
mod info;
mod models;
mod options;
mod plan;
mod progress;
mod report;
mod session;
mod train;

use crate::demo::DemoOptions;
use crate::plan::PlanOptions;
use crate::train::TrainOptions;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "taut", version, about = "A tensor engine with planned, limited and explained memory")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Train a small convolutional network on handwritten digits and write a report page (the default)
    Demo(DemoOptions),
    /// Train a model on a dataset, with checkpoints
    Train(TrainOptions),
    /// Print the planned memory of a training step, without running it
    Plan(PlanOptions),
    /// Measure this machine's peak rates, and the engine's share of them
    Bench,
    /// Print the properties of this machine: instruction sets, threads, memory and its limits
    Info,
}

/// A result whose error is printed to the user.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        None => demo::run(&DemoOptions::default()),
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Train(options)) => train::run(&options),
        Some(Command::Plan(options)) => plan::run(&options),
        Some(Command::Bench) => bench::run(),
        Some(Command::Info) => {
            info::run();
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("taut: {error}");
            ExitCode::FAILURE
        }
    }
}
