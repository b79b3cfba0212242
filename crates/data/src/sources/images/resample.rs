//! Images of bytes at another size, in one pass over each axis.

use taut_core::{DType, Error, Result, Spec, Tensor, source_location};
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
/// Sums are in the order of the taps, each product and sum rounded: the values of the same sums of ops. Memory: the result, and
/// the images after the first axis.
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
        let count: usize = batch.iter().product();
        let (new_height, new_width) = (rows.first.len(), columns.first.len());
        let between = if columns_first { height * new_width } else { new_height * width } * channels;
        let mut between = Buffer::new_at(between * size_of::<f32>(), Category::Dataset, at)?;
        let between: &mut [f32] = bytemuck::cast_slice_mut(between.as_mut_slice());
        let shape: Vec<usize> = batch.iter().copied().chain([new_height, new_width, channels]).collect();
        Tensor::build(Spec::new(DType::F32, shape), Category::Dataset, at, |out| {
            let out = out.slice::<f32>();
            let (old_len, new_len) = (height * width * channels, new_height * new_width * channels);
            for image in 0..count {
                let old = &pixels[image * old_len..][..old_len];
                let new = &mut out[image * new_len..][..new_len];
                if columns_first {
                    along_columns(old, width, channels, columns, between);
                    along_rows(between, new_width * channels, rows, new);
                } else {
                    along_rows(old, width * channels, rows, between);
                    along_columns(between, width, channels, columns, new);
                }
            }
        })
    };
    resample().map_err(|error: Error| error.at(at))
}

/// Weighted sums of rows of `row` numbers.
fn along_rows<T: Copy + Into<f32>>(old: &[T], row: usize, taps: Taps<'_>, out: &mut [f32]) {
    if row == 0 {
        return;
    }
    let count = taps.count();
    for ((new, &first), weights) in out.chunks_exact_mut(row).zip(taps.first).zip(taps.weights.chunks(count))
    {
        let first = first as usize;
        let tap = |tap: usize| &old[(first + tap) * row..][..row];
        let start = if let [a, b, ..] = *weights {
            for ((new, &x), &y) in new.iter_mut().zip(tap(0)).zip(tap(1)) {
                *new = x.into() * a + y.into() * b;
            }
            2
        } else {
            new.iter_mut().zip(tap(0)).for_each(|(new, &x)| *new = x.into() * weights[0]);
            1
        };
        for (index, &weight) in weights.iter().enumerate().skip(start) {
            new.iter_mut().zip(tap(index)).for_each(|(new, &x)| *new += x.into() * weight);
        }
    }
}

/// Weighted sums of the pixels of each row.
fn along_columns<T: Copy + Into<f32>>(
    old: &[T],
    width: usize,
    channels: usize,
    taps: Taps<'_>,
    out: &mut [f32],
) {
    match channels {
        0 => {}
        1 => columns_of::<T, 1>(old, width, taps, out),
        3 => columns_of::<T, 3>(old, width, taps, out),
        4 => columns_of::<T, 4>(old, width, taps, out),
        _ => {
            let count = taps.count();
            let rows = old.chunks_exact(width * channels);
            for (old, new) in rows.zip(out.chunks_exact_mut(taps.first.len() * channels)) {
                let all = new.chunks_exact_mut(channels).zip(taps.first).zip(taps.weights.chunks(count));
                for ((new, &first), weights) in all {
                    for (channel, new) in new.iter_mut().enumerate() {
                        let tap = |tap: usize| old[(first as usize + tap) * channels + channel].into();
                        let first = tap(0) * weights[0];
                        *new = (1..count).fold(first, |sum, index| sum + tap(index) * weights[index]);
                    }
                }
            }
        }
    }
}

/// [`along_columns`] of a constant number of channels.
fn columns_of<T: Copy + Into<f32>, const N: usize>(old: &[T], width: usize, taps: Taps<'_>, out: &mut [f32]) {
    let count = taps.count();
    for (old, new) in old.chunks_exact(width * N).zip(out.chunks_exact_mut(taps.first.len() * N)) {
        let (old, _) = old.as_chunks::<N>();
        let (new, _) = new.as_chunks_mut::<N>();
        for ((new, &first), weights) in new.iter_mut().zip(taps.first).zip(taps.weights.chunks_exact(count)) {
            let pixels = &old[first as usize..][..count];
            let mut sum = pixels[0].map(|x| x.into() * weights[0]);
            for (pixel, &weight) in pixels[1..].iter().zip(&weights[1..]) {
                (0..N).for_each(|channel| sum[channel] += pixel[channel].into() * weight);
            }
            *new = sum;
        }
    }
}
