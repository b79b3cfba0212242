//! Softmax and its logarithm along one axis.

use super::float::*;
use super::source::*;
use super::{CHUNK, rows_per_chunk};
use crate::math::exp;
use crate::view::{Arg, ViewMut};
use crate::{Element, dispatch, multiversion, pool};

/// `e^x / sum(e^x)` along `axis`.
///
/// Computed relative to the largest element, so that finite inputs never overflow. A row that holds NaN or positive
/// infinity, or nothing but negative infinities, becomes NaN.
pub fn softmax(x: Arg<'_>, axis: usize, out: ViewMut<'_>) {
    dispatch!(out.dtype(), T in floats => along::<T>(Source::of(x), axis, false, out));
}

/// `x - log(sum(e^x))` along `axis`: the logarithm of [`softmax`], without its underflow.
pub fn log_softmax(x: Arg<'_>, axis: usize, out: ViewMut<'_>) {
    dispatch!(out.dtype(), T in floats => along::<T>(Source::of(x), axis, true, out));
}

/// Elements that stay in a core's own cache.
const CACHED: usize = 64 * 1024;

fn along<T: Stored>(x: Source<'_, T>, axis: usize, log: bool, mut out: ViewMut<'_>) {
    if out.is_empty() {
        return;
    }
    let shape = out.shape();
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let out = out.slice::<T>();
    if inner == 1 {
        pool::for_each_mut(out, rows_per_chunk(n) * n, |start, rows| {
            rows_kernel(x, start, n, log, rows);
        });
        return;
    }
    // Columns side by side are computed together: a block of them is a vector of rows. Three passes go over it, so
    // it should stay in the cache.
    let width = (CACHED / n).clamp(LANES, TILE).min(inner);
    let blocks = inner.div_ceil(width);
    let outer = out.len() / (n * inner);
    let parts = Parts::new(out);
    pool::for_each(outer * blocks, (CHUNK / (n * width)).max(1), |range| {
        for block in range {
            let (first, column) = ((block / blocks) * n * inner, (block % blocks) * width);
            let columns =
                Columns { first: first + column, n, stride: inner, width: width.min(inner - column) };
            columns_kernel(x, columns, log, &parts);
        }
    });
}

multiversion! {
    fn rows_kernel[T: Stored](x: Source<'_, T>, start: usize, n: usize, log: bool, rows: &mut [T]) {
        let mut buffer = [real::<T::Wide>(0.0); TILE];
        for (i, row) in rows.chunks_exact_mut(n).enumerate() {
            let from = x.prepare(start + i * n, row);
            if log {
                log_row(from, row, &mut buffer);
            } else {
                softmax_row(from, row, &mut buffer);
            }
        }
    }
}

#[inline(always)]
fn row_max<T: Stored>(from: Option<&[T]>, row: &[T], buffer: &mut [T::Wide; TILE]) -> T::Wide {
    let mut max = real(f64::NEG_INFINITY);
    for range in tiles(row.len()) {
        max = larger(max, max_of(widened(from, row, range, buffer)));
    }
    max
}

#[inline(always)]
fn softmax_row<T: Stored>(from: Option<&[T]>, row: &mut [T], buffer: &mut [T::Wide; TILE]) {
    let max = row_max(from, row, buffer);
    let mut total = 0.0;
    for range in tiles(row.len()) {
        let x = widened(from, row, range.clone(), buffer);
        let sum = match T::as_wide_mut(&mut row[range]) {
            Some(to) => exp_into(x, max, to),
            None => exp_sum(x, max),
        };
        total += sum.to_f64();
    }
    let factor = real::<T::Wide>(1.0 / total);
    if let Some(row) = T::as_wide_mut(row) {
        for x in row {
            *x = *x * factor;
        }
        return;
    }
    // Exponentials that were rounded to half precision before the division would be rounded twice.
    let mut scaled = [real::<T::Wide>(0.0); TILE];
    for range in tiles(row.len()) {
        let x = widened(from, row, range.clone(), buffer);
        let scaled = &mut scaled[..range.len()];
        for (to, &x) in scaled.iter_mut().zip(x) {
            *to = exp(x - max) * factor;
        }
        T::narrow(scaled, &mut row[range]);
    }
}

#[inline(always)]
fn log_row<T: Stored>(from: Option<&[T]>, row: &mut [T], buffer: &mut [T::Wide; TILE]) {
    let max = row_max(from, row, buffer);
    let mut total = 0.0;
    for range in tiles(row.len()) {
        total += exp_sum(widened(from, row, range, buffer), max).to_f64();
    }
    let log = real::<T::Wide>(total.ln());
    let mut result = [real::<T::Wide>(0.0); TILE];
    for range in tiles(row.len()) {
        let x = widened(from, row, range.clone(), buffer);
        let result = &mut result[..range.len()];
        for (to, &x) in result.iter_mut().zip(x) {
            *to = (x - max) - log;
        }
        T::narrow(result, &mut row[range]);
    }
}

/// A block of columns along whose length softmax is taken.
#[derive(Clone, Copy)]
struct Columns {
    first: usize,
    n: usize,
    stride: usize,
    width: usize,
}

multiversion! {
    fn columns_kernel[T: Stored](x: Source<'_, T>, columns: Columns, log: bool, out: &Parts<'_, T>) {
        let Columns { first, n, stride, width } = columns;
        let mut buffer = [real::<T::Wide>(0.0); TILE];
        let (mut max, mut sum, mut result) = ([real::<T::Wide>(f64::NEG_INFINITY); TILE], buffer, buffer);
        let mut total = [0f64; TILE];
        let mut from = None;
        for i in 0..n {
            let start = first + i * stride;
            // SAFETY: this block's columns belong to this call alone, and one segment is borrowed at a time.
            let to = unsafe { out.part(start..start + width) };
            from = x.prepare(start, to);
            for (max, &x) in max.iter_mut().zip(widened(from, to, 0..width, &mut buffer)) {
                *max = larger(*max, x);
            }
        }
        // The input stays where it is, or was copied to the output by the first pass.
        let again = |start: usize| match (from, x) {
            (Some(_), Source::Slice(slice)) => Some(&slice[start..start + width]),
            _ => None,
        };
        for i in 0..n {
            let start = first + i * stride;
            // SAFETY: as above.
            let to = unsafe { out.part(start..start + width) };
            let x = widened(again(start), to, 0..width, &mut buffer);
            for (((sum, result), &max), &x) in sum.iter_mut().zip(&mut result).zip(&max).zip(x) {
                *result = exp(x - max);
                *sum = *sum + *result;
            }
            if !log && let Some(to) = T::as_wide_mut(to) {
                to.copy_from_slice(&result[..width]);
            }
            // Sums in the computing type stay short, so that long columns are as accurate as long rows.
            if i % 64 == 63 || i + 1 == n {
                for (total, sum) in total.iter_mut().zip(&mut sum) {
                    *total += sum.to_f64();
                    *sum = real(0.0);
                }
            }
        }
        for (sum, &total) in sum[..width].iter_mut().zip(&total) {
            *sum = real(if log { total.ln() } else { 1.0 / total });
        }
        for i in 0..n {
            let start = first + i * stride;
            // SAFETY: as above.
            let to = unsafe { out.part(start..start + width) };
            if !log && let Some(to) = T::as_wide_mut(to) {
                for (to, &factor) in to.iter_mut().zip(&sum) {
                    *to = *to * factor;
                }
                continue;
            }
            let x = widened(again(start), to, 0..width, &mut buffer);
            for (((result, &sum), &max), &x) in result.iter_mut().zip(&sum).zip(&max).zip(x) {
                *result = if log { (x - max) - sum } else { exp(x - max) * sum };
            }
            T::narrow(&result[..width], to);
        }
    }
}
