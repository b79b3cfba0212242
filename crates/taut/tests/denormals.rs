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

/// Logarithm, count and coordinates of nonzero elements.
fn tests_for_zero(x: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((taut::log(x)?, taut::count_nonzero(x, None, false)?))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn functions_with_a_pole_at_zero_and_counts_take_denormal_numbers_for_zeros() -> Result<()> {
    let _ledger = ledger_check();
    for count in [6, 6000] {
        let x = taut::abs(Tensor::from_vec(values(count), [count])?)?;
        for function in [None, Some(function(tests_for_zero))] {
            let (log, nonzero) = match &function {
                None => tests_for_zero(&x)?,
                Some(function) => function.call(&x)?,
            };
            let log = log.to_vec::<f32>()?;
            assert!(log[2] == f32::NEG_INFINITY && log[3] == f32::NEG_INFINITY, "{log:?}");
            assert!((log[1] + 87.336_54).abs() < 1e-4, "{log:?}");
            assert_eq!(nonzero.item::<i64>()?, count as i64 * 4 / 6);
        }
        assert_eq!(taut::nonzero(&x)?.shape(), &[count * 4 / 6, 1]);
    }
    let wide = Tensor::from_slice(&[0.0f64, 1e-310, 1.0], [3])?;
    assert_eq!(taut::log(&wide)?.to_vec::<f64>()?, [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0]);
    assert_eq!(taut::count_nonzero(&wide, None, false)?.item::<i64>()?, 1);
    Ok(())
}

/// As sorting does: positions are not results of arithmetic.
#[test]
fn positions_of_extremes_compare_denormal_numbers() -> Result<()> {
    let _ledger = ledger_check();
    for count in [3, 300_000] {
        let mut values = vec![0.0f32; count];
        (values[count - 1], values[count - 2]) = (2e-40, -1e-40);
        let x = Tensor::from_vec(values, [count])?;
        assert_eq!(taut::argmax(&x, 0)?.item::<i64>()?, count as i64 - 1);
        assert_eq!(taut::argmin(&x, 0)?.item::<i64>()?, count as i64 - 2);
        let compiled = function(|x: &Tensor| taut::argmax(x, 0));
        assert_eq!(compiled.call(&x)?.item::<i64>()?, count as i64 - 1);
    }
    Ok(())
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
