//! Layer and root-mean-square normalisation: rows over the last axes.

use super::float::*;
use super::moments::Moments;
use super::source::*;
use super::{rows_per_chunk, statistics_dtype};
use crate::math::Real;
use crate::view::{Arg, View, ViewMut};
use crate::{Element, dispatch, multiversion, pool};

/// `(x - mean) / sqrt(variance + eps) * gamma + beta`, with mean and variance over the last `axes` dimensions.
///
/// `gamma` and `beta` have the shape of those dimensions and the type of `x`. `mean` and `rstd`, the reciprocal of the
/// deviation, have an element per row and the type of the statistics.
pub fn layer_norm(
    x: Arg<'_>,
    axes: usize,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    eps: f64,
    out: ViewMut<'_>,
    mean: Option<ViewMut<'_>>,
    rstd: Option<ViewMut<'_>>,
) {
    dispatch!(out.dtype(), T in floats => {
        run::<T>(Source::of(x), axes, true, gamma, beta, eps, out, mean, rstd);
    });
}

/// `x / sqrt(mean(x^2) + eps) * gamma`, with the mean over the last `axes` dimensions; arguments as for [`layer_norm`].
pub fn rms_norm(
    x: Arg<'_>,
    axes: usize,
    gamma: Option<View<'_>>,
    eps: f64,
    out: ViewMut<'_>,
    rstd: Option<ViewMut<'_>>,
) {
    dispatch!(out.dtype(), T in floats => {
        run::<T>(Source::of(x), axes, false, gamma, None, eps, out, None, rstd);
    });
}

/// What rows are multiplied by and what is added, element by element.
#[derive(Clone, Copy)]
pub(super) struct Affine<'a, T> {
    pub(super) gamma: Option<Source<'a, T>>,
    pub(super) beta: Option<Source<'a, T>>,
}

impl<'a, T: Stored> Affine<'a, T> {
    pub(super) fn new(gamma: Option<View<'a>>, beta: Option<View<'a>>, len: usize) -> Affine<'a, T> {
        for view in [gamma, beta].iter().flatten() {
            assert_eq!(view.len(), len, "a factor and a term per element");
        }
        Affine { gamma: gamma.map(Source::new), beta: beta.map(Source::new) }
    }

    /// `x * gamma + beta` for the parameters from `start` on.
    #[inline(always)]
    fn apply(&self, start: usize, len: usize, buffers: &mut Buffers<T>) {
        let Buffers { narrow, wide, result } = buffers;
        let x = &mut result[..len];
        if let Some(gamma) = &self.gamma {
            let tile = gamma.tile(start, x.len(), narrow);
            for (x, &gamma) in x.iter_mut().zip(widened(Some(tile), &[], 0..tile.len(), wide)) {
                *x = *x * gamma;
            }
        }
        if let Some(beta) = &self.beta {
            let tile = beta.tile(start, x.len(), narrow);
            for (x, &beta) in x.iter_mut().zip(widened(Some(tile), &[], 0..tile.len(), wide)) {
                *x = *x + beta;
            }
        }
    }

    /// The factor and the term at one place.
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> (T::Wide, T::Wide) {
        let gamma = self.gamma.map_or(real(1.0), |gamma| widen_one(gamma.get(at)));
        let beta = self.beta.map_or(real(0.0), |beta| widen_one(beta.get(at)));
        (gamma, beta)
    }

    /// `(x - mean) * rstd * gamma + beta` for a run of elements with the same parameters.
    #[inline(always)]
    pub(super) fn normalize_one(
        &self,
        at: usize,
        (mean, rstd): (f64, T::Wide),
        from: Option<&[T]>,
        run: &mut [T],
        buffers: &mut Buffers<T>,
    ) {
        let ((center, rest), (gamma, beta)) = (split::<T::Wide>(mean), self.get(at));
        let scale = rstd * gamma;
        for range in tiles(run.len()) {
            let x = widened(from, run, range.clone(), &mut buffers.wide);
            let result = &mut buffers.result[..range.len()];
            for (to, &x) in result.iter_mut().zip(x) {
                *to = ((x - center) - rest) * scale + beta;
            }
            T::narrow(result, &mut run[range]);
        }
    }

    /// `(x - mean) * rstd * gamma + beta` for a run of elements whose parameters are those from `start` on.
    #[inline(always)]
    pub(super) fn normalize(
        &self,
        start: usize,
        (mean, rstd): (f64, T::Wide),
        from: Option<&[T]>,
        run: &mut [T],
        buffers: &mut Buffers<T>,
    ) {
        let (center, rest) = split::<T::Wide>(mean);
        for range in tiles(run.len()) {
            let x = widened(from, run, range.clone(), &mut buffers.wide);
            for (to, &x) in buffers.result.iter_mut().zip(x) {
                *to = ((x - center) - rest) * rstd;
            }
            self.apply(start + range.start, range.len(), buffers);
            T::narrow(&buffers.result[..range.len()], &mut run[range]);
        }
    }
}

/// The mean in the computing type, and what that could not hold of it: to be subtracted once the large part
/// cancelled.
#[inline(always)]
pub(super) fn split<W: Real>(mean: f64) -> (W, W) {
    let center: W = real(mean);
    let rest = mean - center.to_f64();
    (center, real(if rest.is_finite() { rest } else { 0.0 }))
}

/// Room for tiles on their way.
pub(super) struct Buffers<T: Stored> {
    narrow: [T; TILE],
    wide: [T::Wide; TILE],
    result: [T::Wide; TILE],
}

impl<T: Stored> Buffers<T> {
    #[inline(always)]
    pub(super) fn new() -> Buffers<T> {
        Buffers { narrow: [T::from_f64(0.0); TILE], wide: [real(0.0); TILE], result: [real(0.0); TILE] }
    }
}

fn run<T: Stored>(
    x: Source<'_, T>,
    axes: usize,
    center: bool,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    eps: f64,
    mut out: ViewMut<'_>,
    mut mean: Option<ViewMut<'_>>,
    mut rstd: Option<ViewMut<'_>>,
) {
    let (outer, row) = out.shape().split_at(out.shape().len() - axes);
    let (rows, n) = (outer.iter().product::<usize>(), row.iter().product::<usize>());
    let affine = Affine::<T>::new(gamma, beta, n);
    let statistics = |view: &mut Option<ViewMut<'_>>| {
        if let Some(view) = view {
            assert_eq!(view.dtype(), statistics_dtype(T::DTYPE), "the type of a statistic");
            assert_eq!(view.len(), rows, "a statistic per row");
        }
    };
    statistics(&mut mean);
    statistics(&mut rstd);
    let out = Parts::new(out.slice::<T>());
    let mean = mean.as_mut().map(|mean| Parts::new(mean.slice::<T::Wide>()));
    let rstd = rstd.as_mut().map(|rstd| Parts::new(rstd.slice::<T::Wide>()));
    pool::for_each(rows, rows_per_chunk(n), |range| {
        // SAFETY: `for_each` hands out every row once, and each output is cut by rows.
        let (to, mean, rstd) = unsafe {
            (
                out.part(range.start * n..range.end * n),
                mean.as_ref().map(|mean| mean.part(range.clone())),
                rstd.as_ref().map(|rstd| rstd.part(range.clone())),
            )
        };
        rows_kernel(x, range.start, n, center, eps, affine, to, mean, rstd);
    });
}

multiversion! {
    fn rows_kernel[T: Stored](
        x: Source<'_, T>,
        first: usize,
        n: usize,
        center: bool,
        eps: f64,
        affine: Affine<'_, T>,
        out: &mut [T],
        mean: Option<&mut [T::Wide]>,
        rstd: Option<&mut [T::Wide]>,
    ) {
        let (mut mean, mut rstd) = (mean, rstd);
        if n == 0 {
            for statistic in [mean, rstd].into_iter().flatten() {
                statistic.fill(real(f64::NAN));
            }
            return;
        }
        let mut buffers = Buffers::<T>::new();
        for (i, row) in out.chunks_exact_mut(n).enumerate() {
            let from = x.prepare((first + i) * n, row);
            let (average, spread);
            if center {
                let mut found = Moments::default();
                for range in tiles(n) {
                    found.add(widened(from, row, range, &mut buffers.wide));
                }
                (average, spread) = (found.mean(), found.variance());
            } else {
                let mut squares = 0.0;
                for range in tiles(n) {
                    let x = widened(from, row, range, &mut buffers.wide);
                    squares += centered_sums(x, real(0.0)).1.to_f64();
                }
                (average, spread) = (0.0, squares / n as f64);
            }
            let scale: T::Wide = real(1.0 / (spread + eps).sqrt());
            if let Some(mean) = &mut mean {
                mean[i] = real(average);
            }
            if let Some(rstd) = &mut rstd {
                rstd[i] = scale;
            }
            affine.normalize(0, (average, scale), from, row, &mut buffers);
        }
    }
}
