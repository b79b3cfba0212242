//! `map_fn`: a function of one element applied to many, as fast as the vectorised form, in bounded memory.

use taut::memory::{self, Bytes};
use taut::random::Generator;
use taut::{DType, DenseGradient, GradientTape, Loops, Result, Tensor};

fn main() -> Result<()> {
    let points = Generator::from_seed(1).normal([2000, 3], 0.0, 1.0, DType::F32)?;
    let centres = Generator::from_seed(2).normal([500, 3], 0.0, 1.0, DType::F32)?;

    // Written for one point: the distance to the nearest centre.
    let nearest = |point: Tensor| {
        let apart = taut::sum(taut::squared_difference(&centres, point)?, 1, false)?;
        taut::sqrt(taut::min(apart, None, false)?)
    };

    let mut results = Vec::new();
    for (name, loops) in [
        ("chunks of 2 MiB", Loops::new()),
        ("chunks of 64 KiB", Loops::new().memory_budget(64 << 10)),
        ("one at a time", Loops::new().parallel_iterations(1)),
    ] {
        let before = memory::live_bytes();
        memory::reset_peak();
        let distances = loops.map_fn(nearest, points.clone())?;
        println!("{name:<18} peak {}", Bytes(memory::peak_bytes() - before));
        results.push(distances.to_vec::<f32>()?);
    }
    assert!(results.iter().all(|result| *result == results[0]));

    // Maps are differentiable, in the same bounded memory.
    let tape = GradientTape::new();
    tape.watch(&points);
    let total = taut::sum(taut::map_fn(nearest, points.clone())?, None, false)?;
    let gradient = tape.gradient(&total, &points)?.dense()?;
    println!("\nthe gradient of their sum: {}", gradient.spec());
    // The gradient of a distance is a unit vector.
    let lengths = taut::sqrt(taut::sum(taut::square(gradient)?, 1, false)?)?.to_vec::<f32>()?;
    assert!(lengths.iter().all(|length| (length - 1.0).abs() < 1e-4));
    Ok(())
}
