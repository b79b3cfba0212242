//! Measures the cost of a buffer on this machine: `cargo run --release -p taut-memory --example cost`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use taut_memory::{Allocator, Arena, Buffer, Category, OutOfMemory, System, limit, record, set_allocator};

const ROUNDS: usize = 100;

/// The best of many short rounds, in nanoseconds per call: other processes do not disturb all of them.
fn time<T>(calls: u32, work: impl Fn() -> Result<T, OutOfMemory>) -> Result<f64, OutOfMemory> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..calls {
            match work() {
                Ok(value) => drop(black_box(&value)),
                Err(error) => return Err(error),
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    Ok(best)
}

fn show(what: &str, nanoseconds: f64) {
    println!("{what:<52} {nanoseconds:>10.1} ns");
}

fn main() -> Result<(), OutOfMemory> {
    println!("new + drop");
    let new = |bytes: usize| move || Buffer::new(black_box(bytes), Category::Tensor);
    show("0 B", time(5_000, new(0))?);
    show("4 B, pooled", time(5_000, new(4))?);
    show("4 KiB, pooled", time(5_000, new(4 << 10))?);
    show("1 MiB, pooled", time(5_000, new(1 << 20))?);
    show("64 MiB, pooled", time(5_000, new(64 << 20))?);

    let previous = limit(8 << 30);
    show("4 B, pooled, with a limit", time(5_000, new(4))?);
    limit(previous);

    record(true);
    show("4 B, pooled, recording", time(5_000, new(4))?);
    record(false);

    let held = (0..4).map(|_| Buffer::new(64, Category::Tensor)).collect::<Result<Vec<_>, _>>()?;
    show(
        "eight 4 B buffers at once, each",
        time(1_000, || (0..8).map(|_| new(4)()).collect::<Result<Vec<_>, _>>())? / 8.0,
    );
    drop(held);

    let arena: Arc<dyn Allocator> = Arc::new(Arena::new(1 << 20, Category::Arena)?);
    show("4 B in an arena", time(5_000, || Buffer::new_in(&arena, 4, Category::Tensor))?);

    let pool = set_allocator(Arc::new(System));
    show("4 B from the system", time(5_000, new(4))?);
    show("4 KiB from the system", time(5_000, new(4 << 10))?);

    println!("\nnew + fill + drop");
    let filled = |bytes: usize| {
        move || {
            let mut buffer = Buffer::new(bytes, Category::Tensor)?;
            buffer.as_mut_slice().fill(1);
            Ok(buffer)
        }
    };
    show("64 MiB from the system, fresh pages every time", time(1, filled(64 << 20))?);
    set_allocator(pool);
    show("64 MiB, pooled", time(1, filled(64 << 20))?);
    Ok(())
}
