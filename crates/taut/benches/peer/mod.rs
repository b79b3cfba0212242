//! Taut as a peer of `benches/peers`: one workload, measured as `measure.py` there measures the others.

use crate::timing::median;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;
use taut::{Dense, GradientTape, Tensor, Variable};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One step, and the numbers of its result that are compared with other peers'.
struct Case {
    step: Box<dyn FnMut() -> taut::Result<Vec<Tensor>>>,
    values: fn(&[Tensor]) -> taut::Result<Vec<f64>>,
    /// Units in one step: times are per unit.
    ops: usize,
}

const CASES: &[(&str, fn(&Path) -> taut::Result<Case>)] =
    &[("tape_step", tape_step), ("eager_add", eager_add), ("power_loop_grad", power_loop_grad)];

/// `--json --list`, or `--json <workload> --inputs <folder of .npy files> [--budget <seconds>]`.
pub fn main(args: &[String]) -> Outcome {
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).map(String::as_str)
    };
    let wanted = args.first().map_or("--list", String::as_str);
    if wanted == "--list" {
        let pairs: Vec<String> =
            CASES.iter().map(|(name, _)| format!("[\"taut_rust\", \"{name}\"]")).collect();
        println!("RESULT [{}]", pairs.join(", "));
        return Ok(());
    }
    let (_, build) = CASES.iter().find(|(name, _)| *name == wanted).ok_or("no such workload")?;
    let inputs = option("--inputs").ok_or("--inputs names the folder of the workload's arrays")?;
    let budget = option("--budget").map_or(Ok(4.0), str::parse)?;
    let measured = run(build(Path::new(inputs))?, budget)?;
    println!("RESULT {{\"peer\": \"taut_rust\", \"workload\": \"{wanted}\", {measured}}}");
    Ok(())
}

fn input(folder: &Path, name: &str) -> taut::Result<Tensor> {
    Tensor::load_npy(folder.join(format!("{name}.npy")))
}

fn tape_step(folder: &Path) -> taut::Result<Case> {
    let (x, y) = (input(folder, "x")?, input(folder, "y")?);
    let w = Variable::new(input(folder, "w")?)?;
    let step = move || {
        let tape = GradientTape::new();
        let loss = crate::classic_loss(&x, &w, &y)?;
        let gradient = tape.gradient(&loss, &w)?.dense()?;
        Ok(vec![loss, gradient])
    };
    let values = |out: &[Tensor]| Ok([vec![f64::from(out[0].item::<f32>()?)], summary(&out[1])?].concat());
    Ok(Case { step: Box::new(step), values, ops: 1 })
}

fn eager_add(folder: &Path) -> taut::Result<Case> {
    let (zero, b) = (input(folder, "c")?, input(folder, "b")?);
    let ops = 2000;
    let step = move || {
        let mut c = zero.clone();
        for _ in 0..ops {
            // By reference, as every other peer does it: a new result each time.
            c = (&c + &b)?;
        }
        Ok(vec![c])
    };
    Ok(Case { step: Box::new(step), values: |out| Ok(vec![f64::from(out[0].item::<f32>()?)]), ops })
}

fn power_loop_grad(folder: &Path) -> taut::Result<Case> {
    let a = input(folder, "a")?;
    let step = move || {
        let tape = GradientTape::new();
        tape.watch(&a);
        let total = crate::power(&a)?;
        Ok(vec![tape.gradient(&total, &a)?.dense()?])
    };
    Ok(Case { step: Box::new(step), values: |out| summary(&out[0]), ops: 1 })
}

/// The two numbers of `workloads.summary`: a weighted sum and the norm.
fn summary(tensor: &Tensor) -> taut::Result<Vec<f64>> {
    let (mut sum, mut squares) = (0.0, 0.0);
    for part in tensor.to_vec::<f32>()?.chunks(1 << 18) {
        for (i, &x) in part.iter().enumerate() {
            sum += f64::from(x) * (1 + i % 7) as f64;
            squares += f64::from(x) * f64::from(x);
        }
    }
    Ok(vec![sum, squares.sqrt()])
}

/// A field of this process's status, in bytes.
fn status(field: &str) -> Outcome<i64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with(&format!("{field}:"))).ok_or("no such field")?;
    let kibibytes: i64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kibibytes * 1024)
}

/// Resets the high-water mark of resident memory, and returns what is resident.
fn reset_resident_peak() -> Outcome<i64> {
    fs::write("/proc/self/clear_refs", "5")?;
    status("VmRSS")
}

/// CPU seconds of these fields of a line of `/proc`, which counts hundredths.
fn cpu_seconds(line: &str, fields: &[usize]) -> f64 {
    let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap_or(0.0)).collect();
    fields.iter().filter_map(|&field| numbers.get(field)).sum::<f64>() / 100.0
}

fn own_cpu() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The program's name stands in brackets and may hold spaces.
    let after = text.rsplit(')').next().unwrap_or_default();
    Ok(cpu_seconds(after, &[11, 12]))
}

fn machine_cpu() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    Ok(cpu_seconds(text.lines().next().unwrap_or_default(), &[1, 2, 3, 6, 7, 8]))
}

/// Measures as `run` in `measure.py`: cold, warmed up, then samples for `budget` seconds.
fn run(mut case: Case, budget: f64) -> Outcome<String> {
    taut::memory::trim();
    let base = reset_resident_peak()?;
    let start = Instant::now();
    let mut out = (case.step)()?;
    let cold = start.elapsed().as_secs_f64();
    let first = status("VmHWM")?;
    let mut values = (case.values)(&out)?;
    let (begun, mut once) = (Instant::now(), cold);
    for i in 0..30 {
        drop(out);
        let start = Instant::now();
        out = (case.step)()?;
        once = start.elapsed().as_secs_f64();
        if i < 2 {
            values.extend((case.values)(&out)?);
        }
        if i > 0 && begun.elapsed().as_secs_f64() > budget / 4.0 {
            break;
        }
    }
    drop(out);
    let inner = (0.02 / once).round().max(1.0) as usize;
    let warmed = status("VmHWM")?;
    let warm_base = reset_resident_peak()?;
    let (cpu, wall, machine) = (own_cpu()?, Instant::now(), machine_cpu()?);
    let mut samples = Vec::new();
    while samples.len() < 3 || (wall.elapsed().as_secs_f64() < budget && samples.len() < 200) {
        let start = Instant::now();
        for _ in 0..inner {
            drop((case.step)()?);
        }
        samples.push(start.elapsed().as_secs_f64() / inner as f64);
    }
    let wall = wall.elapsed().as_secs_f64();
    let cpu = own_cpu()? - cpu;
    let others = (machine_cpu()? - machine - cpu).max(0.0) / wall;
    let warm = status("VmHWM")?;
    let (count, ops) = (samples.len(), case.ops as f64);
    let best = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let fields: [(&str, String); 16] = [
        ("step_s", (median(samples) / ops).to_string()),
        ("best_s", (best / ops).to_string()),
        ("cold_s", (cold / ops).to_string()),
        ("cpu_s", (cpu / (count * inner) as f64 / ops).to_string()),
        ("samples", count.to_string()),
        ("inner", inner.to_string()),
        ("peak_bytes", (first.max(warmed).max(warm) - base).to_string()),
        ("first_peak_bytes", (first - base).to_string()),
        ("warm_peak_bytes", (warm - base).to_string()),
        ("warm_delta_bytes", (warm - warm_base).to_string()),
        ("base_bytes", base.to_string()),
        ("others_cores", format!("{others:.2}")),
        ("values", format!("{values:?}")),
        ("group", "\"\"".to_owned()),
        ("threads", taut_kernels::pool::threads().to_string()),
        ("note", "\"\"".to_owned()),
    ];
    Ok(fields.map(|(name, value)| format!("\"{name}\": {value}")).join(", "))
}
