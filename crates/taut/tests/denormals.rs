//! Denormal numbers are zeros in arithmetic: op by op, in functions with and without machine code, with any number of threads.
//! The mode of the calling thread stays as it was.

use std::hint::black_box;
use taut::kernels::{set_threads, threads};
use taut::memory::testing::ledger_check;
use taut::{Result, Tensor, function};

/// Elements that are normal, denormal, and become denormal when they are halved twice.
fn values(count: usize) -> Vec<f32> {
    let kinds = [1.5, f32::MIN_POSITIVE, 1e-40, -1e-40, 3e-38, -2.0];
    (0..count).map(|i| kinds[i % kinds.len()]).collect()
}

fn halved_twice(x: &Tensor) -> Result<Tensor> {
    (x * 0.5)? * 0.5
}

/// What [`halved_twice`] computes where denormal operands and results are zeros.
fn expected(x: f32) -> f32 {
    let flushed = |x: f32| if x.is_subnormal() { 0.0 * x } else { x };
    flushed(flushed(flushed(x) * 0.5) * 0.5)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn denormal_numbers_are_zeros_in_arithmetic() -> Result<()> {
    let _ledger = ledger_check();
    let before = threads();
    for count in [1, 7, 200_000] {
        let x = Tensor::from_vec(values(count), [count])?;
        let want: Vec<f32> = values(count).into_iter().map(expected).collect();
        for threads in [1, 2, 4] {
            set_threads(threads);
            assert_eq!(halved_twice(&x)?.to_vec::<f32>()?, want);
            for native in [true, false] {
                let compiled = function(halved_twice).jit_compile(native);
                assert_eq!(compiled.call(&x)?.to_vec::<f32>()?, want, "machine code: {native}");
            }
        }
        // Copies keep bits.
        assert_eq!(
            taut::reverse(&x, &[0])?.to_vec::<f32>()?,
            values(count).into_iter().rev().collect::<Vec<_>>()
        );
    }
    set_threads(before);
    assert!(black_box(f32::MIN_POSITIVE) * black_box(0.5) > 0.0, "the caller computes with denormal numbers");
    Ok(())
}
