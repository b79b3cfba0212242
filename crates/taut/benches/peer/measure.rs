//! Measures a step as `measure.py` in `benches/peers` does.

use crate::Outcome;
use crate::cases::Case;
use std::fs;
use std::time::Instant;

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
pub fn run(mut case: Case, budget: f64) -> Outcome<String> {
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
    samples.sort_by(f64::total_cmp);
    let (count, ops) = (samples.len(), case.ops as f64);
    let fields: [(&str, String); 16] = [
        ("step_s", (samples[count / 2] / ops).to_string()),
        ("best_s", (samples[0] / ops).to_string()),
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
        ("group", format!("{:?}", case.group)),
        ("threads", taut_kernels::pool::threads().to_string()),
        ("note", "\"\"".to_owned()),
    ];
    Ok(fields.map(|(name, value)| format!("\"{name}\": {value}")).join(", "))
}
