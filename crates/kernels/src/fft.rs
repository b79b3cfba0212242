//! Discrete Fourier transforms of the rows of a matrix.

use crate::dtype::{Complex, DType, Element};
use crate::pool::check_interrupt;
use crate::view::ViewMut;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The longest rows whose plans are kept: their tables have about as many bytes as a row.
const LONGEST_KEPT: usize = 1 << 14;

/// The steps of a transform of a given length, direction and type. Making one takes longer than a short transform, so the plans of short
/// ones are kept for the life of the process.
#[derive(Clone)]
pub enum FftPlan {
    /// Of `complex64`.
    Single(Arc<dyn Fft<f32>>),
    /// Of `complex128`.
    Double(Arc<dyn Fft<f64>>),
}

impl fmt::Debug for FftPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FftPlan")
    }
}

static SINGLE: LazyLock<Mutex<FftPlanner<f32>>> = LazyLock::new(|| Mutex::new(FftPlanner::new()));
static DOUBLE: LazyLock<Mutex<FftPlanner<f64>>> = LazyLock::new(|| Mutex::new(FftPlanner::new()));

impl FftPlan {
    /// The plan for rows of `n` complex elements of this type.
    ///
    /// # Panics
    /// If the type is not complex.
    pub fn new(dtype: DType, n: usize, inverse: bool) -> FftPlan {
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        match dtype {
            DType::C64 => FftPlan::Single(made(&SINGLE, n, direction)),
            DType::C128 => FftPlan::Double(made(&DOUBLE, n, direction)),
            other => panic!("no Fourier transform of {other}"),
        }
    }

    /// Bytes of scratch memory that [`transform`] needs.
    pub fn scratch(&self) -> usize {
        match self {
            FftPlan::Single(fft) => fft.get_inplace_scratch_len() * size_of::<Complex<f32>>(),
            FftPlan::Double(fft) => fft.get_inplace_scratch_len() * size_of::<Complex<f64>>(),
        }
    }
}

fn made<T: FftNum>(planner: &Mutex<FftPlanner<T>>, n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
    if n > LONGEST_KEPT {
        return FftPlanner::new().plan_fft(n, direction);
    }
    planner.lock().unwrap_or_else(PoisonError::into_inner).plan_fft(n, direction)
}

/// Transforms the last dimension of `out` in place; the inverse transform divides by its length.
///
/// # Panics
/// If the plan is of another type, or the last dimension of another length.
pub fn transform(plan: &FftPlan, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    match plan {
        FftPlan::Single(fft) => rows(&**fft, out.slice(), scratch, |n| 1.0 / n as f32),
        FftPlan::Double(fft) => rows(&**fft, out.slice(), scratch, |n| 1.0 / n as f64),
    }
}

fn rows<T: FftNum>(fft: &dyn Fft<T>, out: &mut [Complex<T>], scratch: &mut [u8], share: fn(usize) -> T)
where
    Complex<T>: Element,
{
    // An empty slice of bytes need not be aligned.
    let scratch = if scratch.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(scratch) };
    for row in out.chunks_exact_mut(fft.len().max(1)) {
        check_interrupt();
        fft.process_with_scratch(row, scratch);
        if fft.fft_direction() == FftDirection::Inverse {
            let factor = share(row.len());
            row.iter_mut().for_each(|z| *z = Complex { re: z.re * factor, im: z.im * factor });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_sums_of_roots_of_unity() {
        for n in [1usize, 2, 3, 7, 8, 12, 30] {
            let x: Vec<Complex<f64>> =
                (0..n).map(|i| Complex { re: (i as f64 * 0.7).sin(), im: (i as f64 * 1.3).cos() }).collect();
            for inverse in [false, true] {
                let plan = FftPlan::new(DType::C128, n, inverse);
                let mut out = x.clone();
                let mut scratch = vec![0u64; plan.scratch() / 8];
                let bytes = bytemuck::cast_slice_mut(&mut out);
                transform(
                    &plan,
                    ViewMut::new(DType::C128, bytes, &[n]),
                    bytemuck::cast_slice_mut(&mut scratch),
                );
                for (k, got) in out.iter().enumerate() {
                    let turn = if inverse { 1.0 } else { -1.0 } * std::f64::consts::TAU * k as f64 / n as f64;
                    let sum = x.iter().enumerate().fold(Complex { re: 0.0, im: 0.0 }, |sum, (i, z)| {
                        sum + z * Complex { re: (turn * i as f64).cos(), im: (turn * i as f64).sin() }
                    });
                    let want = if inverse { sum / n as f64 } else { sum };
                    assert!(
                        (got - want).re.hypot((got - want).im) < 1e-12,
                        "{got} for {want}, {n}, {inverse}"
                    );
                }
            }
        }
    }
}
