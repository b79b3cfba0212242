//! Measures the rematerialisation search on problems like those of training steps:
//! `cargo run --release -p taut-plan --example remat_bench [name]`.

#[path = "../tests/remat_models/mod.rs"]
mod remat_models;

use std::time::Instant;
use taut_plan::remat::{Problem, RematEffort, frontier, peak, verify};

const SHARES: [f64; 12] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05];

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let models: Vec<(&str, Problem)> = vec![
        ("mlp 64", remat_models::mlp(64, 4096, 1024)),
        ("mlp 90", remat_models::mlp(90, 4096, 1024)),
        ("mlp 500", remat_models::mlp(500, 4096, 256)),
        ("transformer 9", remat_models::transformer(9, 2048, 256, 256)),
        ("transformer 16", remat_models::transformer(16, 2048, 256, 256)),
        ("transformer 90", remat_models::transformer(90, 2048, 256, 256)),
        ("resnet 20", remat_models::resnet(3, 128)),
        ("resnet 110", remat_models::resnet(18, 128)),
        ("large transformer 360", remat_models::transformer(360, 2048, 256, 256)),
    ];
    for (name, problem) in models.iter().filter(|(name, _)| name.starts_with(&only)) {
        measure(name, problem);
    }
}

fn measure(name: &str, problem: &Problem) {
    let own = remat_models::own_order(problem);
    let (plain, cost) = (peak(problem, &own).bytes as f64, problem.cost(&own) as f64);
    let effort = RematEffort::for_problem(problem);
    let mut packings = 0;
    let mut pack = |sequence: &[u32]| {
        packings += 1;
        peak(problem, sequence).bytes
    };
    let begun = Instant::now();
    let front = frontier(problem, std::slice::from_ref(&own), effort, &mut pack).unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert!(front.points().iter().all(|point| verify(problem, &point.sequence).is_ok()));
    println!("{name}: {} steps, {:.1} MB, {took:.3} s", own.len(), plain / 1e6);
    let (bound, smallest) = (front.bytes_bound() as f64, front.smallest().unwrap().bytes as f64);
    println!(
        "  {} points, {packings} packings, {:.1} million units of work; smallest {:.3}, no less than {:.3}",
        front.points().len(),
        front.work() as f64 / 1e6,
        smallest / plain,
        bound / plain
    );
    for share in SHARES {
        let Some(point) = front.at((plain * share) as usize) else { break };
        let added = |cost_of: u64| 100.0 * (cost_of as f64 / cost - 1.0);
        let repeated = point.sequence.len() - own.len();
        let (found, least) = (added(point.cost), added(point.cost_bound));
        println!("  {share:4}: +{found:.1} % time (at least {least:.1} %), {repeated} steps repeated");
    }
}
