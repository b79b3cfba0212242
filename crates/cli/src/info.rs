//! `taut info`: the properties of this machine.

use std::fs;
use taut::memory::{self, Bytes};
use taut_kernels::{pool, simd};

pub fn run() {
    row("taut", env!("CARGO_PKG_VERSION"));
    row("system", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    row("processor", &processor().unwrap_or_else(|| "unknown".to_owned()));
    row("instructions", &format!("{} (kernels use {:?})", instructions(), simd::level()));
    let machine_code = match taut_fused::check_support() {
        Ok(()) => "fused kernels are compiled".to_owned(),
        Err(reason) => format!("none, fused kernels are interpreted: {reason}"),
    };
    row("machine code", &machine_code);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let asked = std::env::var("TAUT_THREADS").map_or(String::new(), |n| format!(" (TAUT_THREADS={n})"));
    row("threads", &format!("{} of {cores} available to this process{asked}", pool::threads()));
    row("memory", &known(meminfo("MemTotal:")));
    row("  available", &known(meminfo("MemAvailable:")));
    row("  limit", &cgroup_limit().map_or("none".to_owned(), |bytes| Bytes(bytes).to_string()));
    row("  huge pages", &huge_pages().unwrap_or_else(|| "unknown".to_owned()));
    row("alignment", &format!("{} bytes", memory::ALIGNMENT));
    println!("\n`taut bench` measures its speed; TAUT_THREADS sets the number of threads.");
}

fn row(name: &str, value: &str) {
    println!("{name:<14} {value}");
}

fn known(bytes: Option<usize>) -> String {
    bytes.map_or("unknown".to_owned(), |bytes| Bytes(bytes).to_string())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The instruction sets of this machine that kernels use.
fn instructions() -> String {
    let mut found: Vec<&str> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! detect { ($($name:tt)*) => { $(if std::arch::is_x86_feature_detected!($name) { found.push($name); })* } }
        detect!("sse4.2" "avx" "avx2" "fma" "f16c" "avx512f" "avx512bw" "avx512vl" "avx512bf16" "avx512fp16");
    }
    #[cfg(target_arch = "aarch64")]
    found.push("neon");
    if found.is_empty() { "the base set".to_owned() } else { found.join(" ") }
}

fn meminfo(name: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? << 10)
}

/// The memory limit of this process's control group.
fn cgroup_limit() -> Option<usize> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let bytes = files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse::<usize>().ok())?;
    // Without a limit, version 1 has a huge number.
    (bytes < 1 << 60).then_some(bytes)
}

fn huge_pages() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
