//! Images of bytes at another size, row by row: the numbers between the two axes stay in the cache.

use taut_core::{DType, Error, Result, Spec, Tensor, source_location};
use taut_kernels::multiversion;
use taut_memory::{Buffer, Category, Location};

/// The interpolation along one axis: pixel `i` of the result is the sum of `taps` old pixels, of which the first is `first[i]`,
/// with the weights `weights[i * taps..(i + 1) * taps]`.
#[derive(Clone, Copy, Debug)]
pub struct Taps<'a> {
    /// For each new pixel, the first old one that it reads.
    pub first: &'a [i32],
    /// The weights of the old pixels: as many for each new one.
    pub weights: &'a [f32],
}

impl Taps<'_> {
    fn count(&self) -> usize {
        self.weights.len() / self.first.len().max(1)
    }

    /// Refuses taps beyond the old pixels.
    fn check(&self, old: usize) -> Result<()> {
        let taps = self.count();
        if taps == 0 || self.weights.len() != self.first.len() * taps {
            let (first, weights) = (self.first.len(), self.weights.len());
            return Err(Error::shape(format!(
                "expected as many weights for each of {first} pixels, got {weights}"
            )));
        }
        let within = |&first: &i32| usize::try_from(first).is_ok_and(|first| first + taps <= old);
        match self.first.iter().find(|first| !within(first)) {
            None => Ok(()),
            Some(first) => Err(Error::value(format!("{taps} taps from {first} must be within {old} pixels"))),
        }
    }
}

/// Images `uint8 [.., height, width, channels]` at another size, as `float32`: weighted sums of their rows and of their columns.
///
/// Sums are in the order of the taps, each product and sum rounded: the values of the same sums of ops. Memory: the result, as many
/// rows of floats as there are taps, and eight floats per new column.
#[track_caller]
pub fn resample(images: &Tensor, rows: Taps<'_>, columns: Taps<'_>, columns_first: bool) -> Result<Tensor> {
    let at = source_location(Location::caller());
    let resample = || {
        if images.dtype() != DType::U8 || images.rank() < 3 {
            return Err(Error::shape(format!(
                "expected uint8 [.., height, width, channels], got {}",
                images.spec()
            )));
        }
        let (batch, sizes) = images.shape().split_at(images.rank() - 3);
        let [height, width, channels] = [sizes[0], sizes[1], sizes[2]];
        rows.check(height)?;
        columns.check(width)?;
        let dense = if images.is_contiguous() { images.clone() } else { images.copy()? };
        let view = dense.view()?;
        let pixels: &[u8] = view.contiguous().unwrap_or_default();
        let (new_height, new_width) = (rows.first.len(), columns.first.len());
        let (old_row, new_row) = (width * channels, new_width * channels);
        let shape: Vec<usize> = batch.iter().copied().chain([new_height, new_width, channels]).collect();
        // A row of the old width, and, if columns come first, rows of the new one.
        let spread = if columns.count() == 2 { new_width * 2 * WIDEST } else { 0 };
        let floats = spread + old_row + PADDING + if columns_first { rows.count() * new_row } else { 0 };
        let mut scratch = Buffer::new_at(floats * size_of::<f32>(), Category::Dataset, at)?;
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch.as_mut_slice());
        let (spread, scratch) = scratch.split_at_mut(spread);
        let (row, kept) = scratch.split_at_mut(old_row + PADDING);
        row[old_row..].fill(0.0);
        for (spread, &weight) in spread.chunks_exact_mut(WIDEST).zip(columns.weights) {
            spread.fill(weight);
        }
        let columns = ColumnTaps { taps: columns, spread };
        Tensor::build(Spec::new(DType::F32, shape), Category::Dataset, at, |out| {
            let (old_len, new_len) = (height * old_row, new_height * new_row);
            if old_len == 0 || new_len == 0 {
                return;
            }
            for (old, new) in pixels.chunks_exact(old_len).zip(out.slice::<f32>().chunks_exact_mut(new_len)) {
                if columns_first {
                    columns_then_rows(old, channels, rows, columns, row, kept, new);
                } else {
                    rows_then_columns(old, channels, rows, columns, row, new);
                }
            }
        })
    };
    resample().map_err(|error: Error| error.at(at))
}

/// The taps of columns. If there are two for each pixel, also their weights, each as often as the widest vector has numbers: the
/// compiler loads these as vectors, where it would otherwise rearrange what it has loaded.
#[derive(Clone, Copy)]
struct ColumnTaps<'a> {
    taps: Taps<'a>,
    spread: &'a [f32],
}

/// The numbers of the widest vector.
const WIDEST: usize = 4;

/// Numbers behind a row that [`along_columns`] may read: it reads pixels of three channels as four numbers.
const PADDING: usize = 1;

multiversion! {
    /// Resizes an image; `row` is a row of the old width, with [`PADDING`].
    fn rows_then_columns(
        old: &[u8],
        channels: usize,
        rows: Taps<'_>,
        columns: ColumnTaps<'_>,
        row: &mut [f32],
        new: &mut [f32],
    ) {
        let (old_row, new_row) = (row.len() - PADDING, columns.taps.first.len() * channels);
        let weights = rows.weights.chunks_exact(rows.count());
        for ((new, &first), weights) in new.chunks_exact_mut(new_row).zip(rows.first).zip(weights) {
            let tap = |tap: usize| &old[(first as usize + tap) * old_row..][..old_row];
            weighted_sum(tap, weights, &mut row[..old_row]);
            along_columns(row, channels, columns, new);
        }
    }
}

multiversion! {
    /// As [`rows_then_columns`], in the other order; `kept` are rows of the new width, one per tap.
    fn columns_then_rows(
        old: &[u8],
        channels: usize,
        rows: Taps<'_>,
        columns: ColumnTaps<'_>,
        row: &mut [f32],
        kept: &mut [f32],
        new: &mut [f32],
    ) {
        let (old_row, new_row) = (row.len() - PADDING, columns.taps.first.len() * channels);
        let count = rows.count();
        // Old row `i` is kept at `i % count`: rows that two new ones share are computed once.
        let mut indices = vec![usize::MAX; count];
        let weights = rows.weights.chunks_exact(count);
        for ((new, &first), weights) in new.chunks_exact_mut(new_row).zip(rows.first).zip(weights) {
            let first = first as usize;
            for index in first..first + count {
                let place = index % count;
                if indices[place] != index {
                    indices[place] = index;
                    let pixels = &old[index * old_row..][..old_row];
                    row.iter_mut().zip(pixels).for_each(|(row, &pixel)| *row = f32::from(pixel));
                    along_columns(row, channels, columns, &mut kept[place * new_row..][..new_row]);
                }
            }
            let tap = |tap: usize| &kept[(first + tap) % count * new_row..][..new_row];
            weighted_sum(tap, weights, new);
        }
    }
}

/// The weighted sum of rows.
#[inline(always)]
fn weighted_sum<'a, T: Copy + Into<f32> + 'a>(
    row: impl Fn(usize) -> &'a [T],
    weights: &[f32],
    out: &mut [f32],
) {
    let start = if let [a, b, ..] = *weights {
        for ((out, &x), &y) in out.iter_mut().zip(row(0)).zip(row(1)) {
            *out = x.into() * a + y.into() * b;
        }
        2
    } else {
        out.iter_mut().zip(row(0)).for_each(|(out, &x)| *out = x.into() * weights[0]);
        1
    };
    for (index, &weight) in weights.iter().enumerate().skip(start) {
        out.iter_mut().zip(row(index)).for_each(|(out, &x)| *out += x.into() * weight);
    }
}

/// Weighted sums of the pixels of a row.
#[inline(always)]
fn along_columns(old: &[f32], channels: usize, columns: ColumnTaps<'_>, out: &mut [f32]) {
    match channels {
        1 => columns_of::<1, 1>(old, columns, out),
        2 => columns_of::<2, 2>(old, columns, out),
        3 => columns_of::<3, 4>(old, columns, out),
        4 => columns_of::<4, 4>(old, columns, out),
        _ => {
            let taps = columns.taps;
            let count = taps.count();
            let all = out.chunks_exact_mut(channels).zip(taps.first).zip(taps.weights.chunks_exact(count));
            for ((new, &first), weights) in all {
                for (channel, new) in new.iter_mut().enumerate() {
                    let tap = |tap: usize| old[(first as usize + tap) * channels + channel];
                    let first = tap(0) * weights[0];
                    *new = (1..count).fold(first, |sum, index| sum + tap(index) * weights[index]);
                }
            }
        }
    }
}

/// [`along_columns`] of `N` channels, in vectors of `LANES` numbers: the numbers of a vector behind its pixel are replaced by the
/// next pixel. Only the last pixel has none behind it.
#[inline(always)]
fn columns_of<const N: usize, const LANES: usize>(old: &[f32], columns: ColumnTaps<'_>, out: &mut [f32]) {
    const { assert!(LANES - N <= PADDING && LANES <= WIDEST) };
    let taps = columns.taps;
    let count = taps.count();
    let Some((&last_first, firsts)) = taps.first.split_last() else { return };
    if count == 2 {
        // The usual number, without a loop.
        let (weights, _) = columns.spread.as_chunks::<{ 2 * WIDEST }>();
        for (index, (&first, weights)) in firsts.iter().zip(weights).enumerate() {
            let first = first as usize * N;
            let (x, y) = (vector::<LANES>(old, first), vector::<LANES>(old, first + N));
            let mut sum = [0.0; LANES];
            for lane in 0..LANES {
                sum[lane] = x[lane] * weights[lane] + y[lane] * weights[WIDEST + lane];
            }
            *out[index * N..].first_chunk_mut().expect("a pixel behind it") = sum;
        }
    } else {
        for (index, (&first, weights)) in firsts.iter().zip(taps.weights.chunks_exact(count)).enumerate() {
            let sum = weighted_pixels::<N, LANES>(old, first, weights);
            *out[index * N..].first_chunk_mut().expect("a pixel behind it") = sum;
        }
    }
    let sum = weighted_pixels::<N, LANES>(old, last_first, &taps.weights[firsts.len() * count..]);
    out[firsts.len() * N..][..N].copy_from_slice(&sum[..N]);
}

/// The weighted sum of the pixels from `first` on.
#[inline(always)]
fn weighted_pixels<const N: usize, const LANES: usize>(
    old: &[f32],
    first: i32,
    weights: &[f32],
) -> [f32; LANES] {
    let first = first as usize * N;
    let pixel = vector::<LANES>(old, first);
    let mut sum: [f32; LANES] = std::array::from_fn(|lane| pixel[lane] * weights[0]);
    for (tap, &weight) in weights.iter().enumerate().skip(1) {
        let pixel = vector::<LANES>(old, first + tap * N);
        (0..LANES).for_each(|lane| sum[lane] += pixel[lane] * weight);
    }
    sum
}

/// The numbers from `at` on.
#[inline(always)]
fn vector<const LANES: usize>(old: &[f32], at: usize) -> &[f32; LANES] {
    old[at..].first_chunk().expect("taps are within the row")
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_core::Shape;

    /// Both orders, all numbers of channels and of taps, against the sums written down one by one.
    #[test]
    fn equals_the_sums_of_its_definition() {
        let (height, width) = (7, 9);
        for channels in 1..=6 {
            let pixels: Vec<u8> = (0..2 * height * width * channels).map(|i| (i * 37 % 251) as u8).collect();
            let shape = Shape::from([2, height, width, channels]);
            let images = Tensor::from_vec(pixels.clone(), shape).unwrap();
            for (row_taps, column_taps) in [(1, 1), (2, 2), (1, 3), (3, 2), (5, 4)] {
                let first = |new: usize, old: usize, taps: usize| -> Vec<i32> {
                    (0..new).map(|i| (i * old / new).min(old - taps) as i32).collect()
                };
                let weight = |i: usize| 0.1 + (i * 7 % 13) as f32 / 17.0;
                let (first_rows, first_columns) = (first(5, height, row_taps), first(11, width, column_taps));
                let row_weights: Vec<f32> = (0..5 * row_taps).map(weight).collect();
                let column_weights: Vec<f32> = (3..3 + 11 * column_taps).map(weight).collect();
                let rows = Taps { first: &first_rows, weights: &row_weights };
                let columns = Taps { first: &first_columns, weights: &column_weights };
                for columns_first in [false, true] {
                    let made = resample(&images, rows, columns, columns_first).unwrap();
                    assert_eq!(made.shape(), &[2, 5, 11, channels]);
                    let made = made.to_vec::<f32>().unwrap();
                    for (place, &found) in made.iter().enumerate() {
                        let (channel, x, y) =
                            (place % channels, place / channels % 11, place / channels / 11 % 5);
                        let image = place / channels / 55;
                        let pixel = |r: usize, c: usize| {
                            let (row, column) = (first_rows[y] as usize + r, first_columns[x] as usize + c);
                            let index = ((image * height + row) * width + column) * channels + channel;
                            f32::from(pixels[index])
                        };
                        let sum = |terms: &mut dyn Iterator<Item = f32>| terms.reduce(|a, b| a + b).unwrap();
                        let row_weight = |r: usize| row_weights[y * row_taps + r];
                        let column_weight = |c: usize| column_weights[x * column_taps + c];
                        let expected = if columns_first {
                            sum(&mut (0..row_taps).map(|r| {
                                sum(&mut (0..column_taps).map(|c| pixel(r, c) * column_weight(c)))
                                    * row_weight(r)
                            }))
                        } else {
                            sum(&mut (0..column_taps).map(|c| {
                                sum(&mut (0..row_taps).map(|r| pixel(r, c) * row_weight(r)))
                                    * column_weight(c)
                            }))
                        };
                        assert_eq!(found.to_bits(), expected.to_bits(), "{channels} channels at {place}");
                    }
                }
            }
        }
    }
}
