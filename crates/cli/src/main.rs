//! The `taut` command. Without an argument it trains a small net on handwritten digits, and shows where its memory goes.

mod bench;
mod demo;
mod info;
mod models;
mod options;
mod plan;
mod progress;
mod report;
mod train;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "taut", version, about = "A tensor engine whose memory is known, kept and explained")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Trains a small convolutional net on handwritten digits and writes a report page (the default)
    Demo(demo::Options),
    /// Trains a model on data of your choice, with checkpoints
    Train(train::Options),
    /// Prints what a step of training will need, byte by byte, without running it
    Plan(plan::Options),
    /// Measures this machine and how near the engine gets to its limits
    Bench,
    /// Tells what this machine offers: instruction sets, threads, memory and its limits
    Info,
}

/// What went wrong, in words for people.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        None => demo::run(&demo::Options::default()),
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
