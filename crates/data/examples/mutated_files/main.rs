//! Reads mutated files of every format: none may cause a panic, or an allocation beyond a factor of its size.
//!
//! `mutated_files [--inputs 1000] [--seed 0] [--format NAME] [--originals FOLDER]`. Inputs depend on the format, the seed and their number alone; one
//! that fails is printed with its number. With `--originals`, the files that are mutated are written to a folder per format: the
//! first inputs of the libFuzzer targets in `fuzz`. Memory is counted exactly: what Rust's allocator gave out, and what is on the ledger.

mod mutate;
mod originals;
mod readers;

use mutate::Random;
use readers::{FORMATS, Format, Reading};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use taut_testing::HeapCounter;

#[global_allocator]
static HEAP: HeapCounter = HeapCounter;

/// Where the last panic was, and what it said.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// What was seen of one format.
#[derive(Default)]
struct Outcome {
    read: u64,
    refused: u64,
    failed: u64,
    most_bytes: usize,
    most_factor: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1)).map(String::as_str)
    };
    let number = |name: &str, default: u64| value(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (inputs, seed) = (number("--inputs", 1000), number("--seed", 0));
    if let Some(folder) = value("--originals") {
        return write_originals(Path::new(folder));
    }
    // The readers of some formats panic, and the crate turns that into an error: only what escapes is reported.
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
    let folder = taut_testing::Folder::new("mutated-files");
    let path = folder.join("input");
    println!(
        "{:<12} {:>8} {:>8} {:>8} {:>7} {:>14} {:>10}  allowed",
        "format", "inputs", "read", "refused", "failed", "most bytes", "factor"
    );
    let mut failed = 0;
    for format in FORMATS.iter().filter(|format| value("--format").is_none_or(|name| name == format.name)) {
        let seen = run(format, inputs, seed, &path);
        let allowed = format!("{} x size + {} KiB", format.factor, format.floor >> 10);
        println!(
            "{:<12} {inputs:>8} {:>8} {:>8} {:>7} {:>14} {:>10.1}  {allowed}",
            format.name, seen.read, seen.refused, seen.failed, seen.most_bytes, seen.most_factor
        );
        failed += seen.failed;
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the files that are mutated, each into the folder of its format.
fn write_originals(folder: &Path) -> ExitCode {
    for format in FORMATS {
        let folder = folder.join(format.name);
        let written = std::fs::create_dir_all(&folder).and_then(|()| {
            let files = (format.originals)();
            files
                .iter()
                .enumerate()
                .try_for_each(|(i, file)| std::fs::write(folder.join(i.to_string()), file))
        });
        if let Err(error) = written {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
        println!("{}", format.name);
    }
    ExitCode::SUCCESS
}

fn run(format: &Format, inputs: u64, seed: u64, path: &Path) -> Outcome {
    let originals = (format.originals)();
    let mut seen = Outcome::default();
    for (number, original) in originals.iter().enumerate() {
        if !catch_unwind(AssertUnwindSafe(|| (format.read)(original, path))).unwrap_or(false) {
            println!("{}: original {number} must be read", format.name);
            seen.failed += 1;
        }
    }
    for number in 0..inputs {
        let mut random = Random::new(format.name, seed, number);
        let mut input = mutate::mutated(&originals, &mut random);
        if random.below(2) == 0 {
            (format.repair)(&mut input);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| Reading::of(format, &input, path)));
        let complaint = match outcome {
            Err(_) => Some(PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Ok(reading) => {
                seen.most_bytes = seen.most_bytes.max(reading.bytes);
                seen.most_factor = seen.most_factor.max(reading.factor);
                let complaint = reading.complaint(format, &input);
                if complaint.is_none() {
                    *(if reading.whole { &mut seen.read } else { &mut seen.refused }) += 1;
                }
                complaint
            }
        };
        if let Some(complaint) = complaint {
            seen.failed += 1;
            if seen.failed <= 10 {
                println!("{} {number}: {complaint}", format.name);
            }
        }
    }
    seen
}
