//! Discrete Fourier transforms of the rows of a matrix.

use crate::dtype::{Complex, DType, Element};
use crate::pool::{check_interrupt, for_each_mut};
use crate::view::ViewMut;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::collections::{HashSet, TryReserveError};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The longest rows whose plans are kept.
const LONGEST_KEPT: usize = 1 << 14;

/// The elements of the rows whose plans are kept together. The tables of a plan have one to five times the bytes of its row.
const MOST_KEPT: usize = 1 << 18;

/// The steps of a transform of a given length, direction and type. Making one takes longer than a short transform, so the plans of short
/// ones are kept.
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

static SINGLE: LazyLock<Mutex<PlanCache<f32>>> = LazyLock::new(Mutex::default);
static DOUBLE: LazyLock<Mutex<PlanCache<f64>>> = LazyLock::new(Mutex::default);

/// The plans that are kept.
struct PlanCache<T: FftNum> {
    planner: FftPlanner<T>,
    lengths: HashSet<(usize, bool)>,
    /// The sum of the lengths.
    elements: usize,
}

impl<T: FftNum> Default for PlanCache<T> {
    fn default() -> Self {
        PlanCache { planner: FftPlanner::new(), lengths: HashSet::new(), elements: 0 }
    }
}

impl<T: FftNum> PlanCache<T> {
    fn plan(&mut self, n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
        if self.lengths.insert((n, direction == FftDirection::Inverse)) {
            self.elements += n;
            if self.elements > MOST_KEPT {
                *self = PlanCache::default();
            }
        }
        self.planner.plan_fft(n, direction)
    }
}

impl FftPlan {
    /// The plan for rows of `n` complex elements of this type. It fails if the system refuses the memory of its tables.
    ///
    /// # Panics
    /// If the type is not complex.
    pub fn new(dtype: DType, n: usize, inverse: bool) -> Result<FftPlan, TryReserveError> {
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        match dtype {
            DType::C64 => Ok(FftPlan::Single(made(&SINGLE, n, direction)?)),
            DType::C128 => Ok(FftPlan::Double(made(&DOUBLE, n, direction)?)),
            other => panic!("no Fourier transform of {other}"),
        }
    }

    /// Bytes of scratch memory that [`transform`] needs for `count` rows.
    pub fn scratch(&self, count: usize) -> usize {
        let (row, each) = match self {
            FftPlan::Single(fft) => (fft.len(), fft.get_inplace_scratch_len() * size_of::<Complex<f32>>()),
            FftPlan::Double(fft) => (fft.len(), fft.get_inplace_scratch_len() * size_of::<Complex<f64>>()),
        };
        each * pieces(count, row)
    }
}

/// The largest number of pieces that run at the same time, each with scratch memory of its own.
const MOST_PIECES: usize = 8;

/// Elements below which threads cost more than they save.
const FEW: usize = 1 << 14;

/// In how many pieces `count` rows of `n` elements are transformed, whatever the number of threads.
fn pieces(count: usize, n: usize) -> usize {
    if count * n < FEW { 1 } else { count.min(MOST_PIECES) }
}

fn made<T: FftNum>(
    kept: &Mutex<PlanCache<T>>,
    n: usize,
    direction: FftDirection,
) -> Result<Arc<dyn Fft<T>>, TryReserveError> {
    if n > LONGEST_KEPT {
        // `rustfft` would end the process where the system refuses memory: ask first.
        let mut tables: Vec<Complex<T>> = Vec::new();
        tables.try_reserve_exact(n.saturating_mul(planned_rows(n)))?;
        drop(tables);
        return Ok(FftPlanner::new().plan_fft(n, direction));
    }
    Ok(kept.lock().unwrap_or_else(PoisonError::into_inner).plan(n, direction))
}

/// An upper bound of the elements that making a plan takes, in rows: measured 3 for lengths with small prime factors,
/// and up to 10 for others, which are transformed as convolutions.
fn planned_rows(n: usize) -> usize {
    let mut rest = n;
    for prime in [2, 3, 5, 7, 11] {
        while rest > 1 && rest.is_multiple_of(prime) {
            rest /= prime;
        }
    }
    if rest == 1 { 3 } else { 11 }
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
    let (n, each) = (fft.len().max(1), fft.get_inplace_scratch_len());
    let count = out.len() / n;
    let mut parts: [(&mut [Complex<T>], &mut [Complex<T>]); MOST_PIECES] = Default::default();
    let parts = &mut parts[..pieces(count, n)];
    let (mut rows, mut memory) = (out, scratch);
    for (i, (part, own)) in parts.iter_mut().enumerate() {
        let (from, to) = (i * count / pieces(count, n), (i + 1) * count / pieces(count, n));
        (*part, rows) = rows.split_at_mut((to - from) * n);
        (*own, memory) = memory.split_at_mut(each);
    }
    for_each_mut(parts, 1, |_, parts| {
        for (part, own) in parts {
            for row in part.chunks_exact_mut(n) {
                check_interrupt();
                fft.process_with_scratch(row, own);
                if fft.fft_direction() == FftDirection::Inverse {
                    let factor = share(row.len());
                    row.iter_mut().for_each(|z| *z = Complex { re: z.re * factor, im: z.im * factor });
                }
            }
        }
    });
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
                let plan = FftPlan::new(DType::C128, n, inverse).expect("memory");
                let mut out = x.clone();
                let mut scratch = vec![0u64; plan.scratch(1) / 8];
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

    #[test]
    fn rows_in_pieces_have_the_bits_of_rows_one_by_one() {
        for (count, n) in [(1usize, 1usize << 15), (3, 1 << 14), (11, 3000), (500, 64)] {
            let x: Vec<Complex<f32>> = (0..count * n)
                .map(|i| Complex { re: (i as f32 * 0.7).sin(), im: (i as f32 * 1.3).cos() })
                .collect();
            let plan = FftPlan::new(DType::C64, n, true).expect("memory");
            let run = |values: &mut [Complex<f32>], rows: usize| {
                let mut scratch = vec![0u64; plan.scratch(rows).div_ceil(8)];
                let scratch = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut scratch)[..plan.scratch(rows)];
                transform(
                    &plan,
                    ViewMut::new(DType::C64, bytemuck::cast_slice_mut(values), &[rows, n]),
                    scratch,
                );
            };
            let (mut together, mut alone) = (x.clone(), x);
            run(&mut together, count);
            alone.chunks_exact_mut(n).for_each(|row| run(row, 1));
            assert_eq!(together, alone, "{count} rows of {n}");
        }
    }

    #[test]
    fn plans_that_are_kept_have_a_bound() {
        let mut kept = PlanCache::<f32>::default();
        for n in 1..2000 {
            assert_eq!(kept.plan(n, FftDirection::Forward).len(), n);
            assert!(kept.elements <= MOST_KEPT);
        }
        assert!(kept.lengths.len() < 1000);
    }

    #[test]
    fn a_plan_without_memory_is_an_error() {
        for n in [1usize << 60, (1 << 60) + 1] {
            assert!(FftPlan::new(DType::C64, n, false).is_err());
        }
    }
}
