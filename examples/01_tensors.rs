//! Tensors, views, the memory ledger, and errors.

use taut::{DType, Result, Tensor, memory, s};

fn main() -> Result<()> {
    let start = memory::live_bytes();
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let y = ((&x * 10.0)? + 0.5)?; // operators return a Result, like every call that can fail
    println!("x * 10 + 0.5 =\n{y}\n");

    // A slice is a view: it shares the memory.
    let column = taut::slice(&x, &s![.., 1])?;
    assert!(column.shares_memory(&x));
    println!("the second column is a view: {column}\n");

    // The ledger lists live bytes by category and source line.
    memory::record(true);
    let held = taut::ones([1000, 100], DType::F32)?;
    println!("{}", memory::report());
    memory::record(false);

    // An allocation beyond the limit is an error, not a crash.
    let previous = memory::limit(memory::live_bytes() + (1 << 20));
    let refused = taut::ones([100_000_000], DType::F32).unwrap_err();
    memory::limit(previous);
    println!("{refused}\n");

    // So is a product of shapes that do not match.
    let mistake = taut::matmul(&x, &x).unwrap_err();
    println!("{mistake}\n");

    drop((x, y, column, held));
    assert_eq!(memory::live_bytes(), start);
    println!("Every byte has been freed.");
    Ok(())
}
