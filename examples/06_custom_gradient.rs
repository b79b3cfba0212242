//! A custom gradient, and the bytes that it saves for the backward pass.

use taut::{DenseGradient, GradientRule, GradientTape, Result, Tensor, custom_gradient};

/// log(1 + e^x), with a gradient that does not overflow and keeps one tensor.
fn log1pexp(x: &Tensor) -> Result<Tensor> {
    let outputs = custom_gradient([x], |inputs| {
        let e = taut::exp(&inputs[0])?;
        let y = taut::log((&e + 1.0)?)?;
        Ok(GradientRule::new(vec![y], vec![e], |saved, gradients| {
            let slope = taut::sub(1.0, taut::div(1.0, (&saved[0] + 1.0)?)?)?;
            Ok(vec![Some((&gradients[0] * slope)?.into())])
        }))
    })?;
    Ok(outputs[0].clone())
}

/// The same function without a custom gradient.
fn naive(x: &Tensor) -> Result<Tensor> {
    taut::log((taut::exp(x)? + 1.0)?)
}

fn slope(f: fn(&Tensor) -> Result<Tensor>, x: f32) -> Result<f32> {
    let x = Tensor::scalar(x)?;
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = f(&x)?;
    println!("  saves {} bytes", tape.bytes_held());
    tape.gradient(&y, &x)?.dense()?.item::<f32>()
}

fn main() -> Result<()> {
    println!("without a custom gradient, at 100:");
    let formula = slope(naive, 100.0)?;
    println!("  slope {formula}\nwith a custom gradient:");
    let own = slope(log1pexp, 100.0)?;
    println!("  slope {own}");
    assert!(formula.is_nan());
    assert_eq!(own, 1.0);

    // Where the formula does not overflow, both agree.
    let (formula, own) = (slope(naive, 0.5)?, slope(log1pexp, 0.5)?);
    assert!((formula - own).abs() < 1e-6);
    Ok(())
}
