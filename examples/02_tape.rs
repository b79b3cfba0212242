//! Gradients by a tape, and the bytes that it saves for the backward pass: fits a line to noisy points.

use taut::random::Generator;
use taut::{DType, DenseGradient, GradientTape, Result, Tensor, Variable, memory};

fn main() -> Result<()> {
    let random = Generator::from_seed(1);
    let x = random.uniform([1000], -1.0, 1.0, DType::F32)?;
    let y = (((&x * 3.0)? - 2.0)? + random.normal([1000], 0.0, 0.1, DType::F32)?)?;

    let slope = Variable::new(Tensor::scalar(0.0f32)?)?;
    let offset = Variable::new(Tensor::scalar(0.0f32)?)?;
    for step in 0..100 {
        let tape = GradientTape::new(); // trainable variables are watched automatically
        let line = (taut::mul(&slope, &x)? + &offset)?;
        let loss = taut::mean(taut::squared_difference(line, &y)?, None, false)?;
        if step == 0 {
            println!("{}", tape.explain());
        }
        let (down, left) = tape.gradient(&loss, &(&slope, &offset))?;
        slope.assign_sub((down.dense()? * 0.5)?)?;
        offset.assign_sub((left.dense()? * 0.5)?)?;
        if step % 20 == 19 {
            println!("step {:3}  loss {:.4}", step + 1, loss.item::<f32>()?);
        }
    }
    let (slope, offset) = (slope.read().item::<f32>()?, offset.read().item::<f32>()?);
    println!("\ny = {slope:.2} x {offset:+.2}; {} allocations in all", memory::allocations());
    assert!((slope - 3.0).abs() < 0.05 && (offset + 2.0).abs() < 0.05);

    // Second order: the outer tape records the backward pass of the inner one.
    let x = Tensor::scalar(2.0f64)?;
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let cube = ((&x * &x)? * &x)?;
    let first = inner.gradient(&cube, &x)?.dense()?;
    let second = outer.gradient(&first, &x)?.dense()?;
    println!("x\u{b3} at 2: {cube}, first derivative {first}, second {second}");
    assert_eq!((first.item::<f64>()?, second.item::<f64>()?), (12.0, 12.0));
    Ok(())
}
