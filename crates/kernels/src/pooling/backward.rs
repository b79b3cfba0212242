//! Output gradients to input gradients. Each input gathers from the windows that lie over it.

use super::forward::Tap;
use super::{Geometry, LANES, Real, tasks};
use crate::conv::Layout;
use crate::conv::real::Sum;
use crate::conv::window::{Axis, Runs};
use crate::multiversion;
use crate::simd::Level;

/// The gradients of some windows: window `i`'s is `dy[base + i * stride]`, and it is element `first + i` of the
/// output in row-major order.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a, T> {
    dy: &'a [T],
    base: isize,
    stride: isize,
    first: usize,
    /// The tap that lies at the input.
    tap: u32,
    /// How many taps of these windows are inside.
    inside: usize,
}

/// How a window's gradient is shared among its taps.
pub(super) trait Spread: Copy + Sync {
    /// The highest level at which the loop over channels gets faster.
    const LEVEL: Level;
    /// Whether the number of taps inside is asked for.
    fn wants_count(&self) -> bool;
    /// Adds the share of window `i` to `sums[i * step]`.
    fn add<T: Real>(&self, sums: &mut [T::Sum], step: usize, windows: Windows<'_, T>);
}

/// All to the winning tap.
#[derive(Clone, Copy)]
pub(super) struct ToMax<'a, I> {
    winners: &'a [I],
}

impl<'a, I: Tap> ToMax<'a, I> {
    /// `winners` holds each window's tap.
    pub(super) fn new(winners: &'a [I]) -> Self {
        ToMax { winners }
    }
}

impl<I: Tap> Spread for ToMax<'_, I> {
    const LEVEL: Level = Level::Avx512;
    #[inline(always)]
    fn wants_count(&self) -> bool {
        false
    }
    #[inline(always)]
    fn add<T: Real>(&self, sums: &mut [T::Sum], step: usize, windows: Windows<'_, T>) {
        let Windows { dy, base, stride, first, tap, .. } = windows;
        let tap = I::of(tap);
        let count = sums.len().div_ceil(step);
        let winners = &self.winners[first..first + count];
        if step == 1 && stride == 1 {
            let dy = &dy[base as usize..][..count];
            for ((sum, &dy), &winner) in sums.iter_mut().zip(dy).zip(winners) {
                let share = if winner == tap { dy.widen() } else { T::Sum::ZERO };
                *sum = *sum + share;
            }
        } else {
            for (i, &winner) in winners.iter().enumerate() {
                if winner == tap {
                    let sum = &mut sums[i * step];
                    *sum = *sum + dy[(base + i as isize * stride) as usize].widen();
                }
            }
        }
    }
}

/// The same to every tap.
#[derive(Clone, Copy)]
pub(super) struct Evenly {
    divisor: Option<usize>,
}

impl Evenly {
    /// Divides by `divisor`, or else by the number of taps inside.
    pub(super) fn new(divisor: Option<usize>) -> Evenly {
        Evenly { divisor }
    }
}

impl Spread for Evenly {
    const LEVEL: Level = Level::Avx2;
    #[inline(always)]
    fn wants_count(&self) -> bool {
        self.divisor.is_none()
    }
    #[inline(always)]
    fn add<T: Real>(&self, sums: &mut [T::Sum], step: usize, windows: Windows<'_, T>) {
        let Windows { dy, base, stride, inside, .. } = windows;
        let divisor = self.divisor.unwrap_or(inside);
        let count = sums.len().div_ceil(step);
        if step == 1 && stride == 1 {
            let dy = &dy[base as usize..][..count];
            for (sum, &dy) in sums.iter_mut().zip(dy) {
                *sum = *sum + dy.widen().over(divisor);
            }
        } else {
            for i in 0..count {
                let sum = &mut sums[i * step];
                *sum = *sum + dy[(base + i as isize * stride) as usize].widen().over(divisor);
            }
        }
    }
}

/// Writes every input's gradient.
pub(super) fn run<T: Real>(layout: Layout, geometry: &Geometry, spread: impl Spread, dy: &[T], dx: &mut [T]) {
    let unit = match layout {
        Layout::ChannelsLast => geometry.x.channels,
        Layout::ChannelsFirst => geometry.x.size[2],
    };
    let over: usize = geometry.axes.iter().map(|a| a.taps.div_ceil(a.stride as usize)).product();
    tasks(dx, unit, over, |first, part| match layout {
        Layout::ChannelsLast => channels_last(spread, geometry, dy, first, part),
        Layout::ChannelsFirst => channels_first(spread, geometry, dy, first, part),
    });
}

multiversion! {
    /// Pixels from number `first` on; the lanes are channels.
    up_to(S::LEVEL)
    fn channels_last[S: Spread, T: Real](spread: S, g: &Geometry, dy: &[T], first: usize, dx: &mut [T]) {
        let channels = g.x.channels;
        let [over_d, over_h, over_w] = g.axes;
        let [depth, height, width] = g.y.size;
        for run in Runs::new(g.x.size, first, dx.len() / channels) {
            for i in 0..run.len {
                let at = [run.d as isize, run.h as isize, (run.w + i) as isize];
                let pixel = &mut dx[(run.done + i) * channels..][..channels];
                for (block, dx) in pixel.chunks_mut(LANES).enumerate() {
                    let mut sums = [T::Sum::ZERO; LANES];
                    let sums = &mut sums[..dx.len()];
                    for d in over_d.windows_over(at[0], depth) {
                        let Some(td) = over_d.tap_at(d, at[0]) else { continue };
                        for h in over_h.windows_over(at[1], height) {
                            let Some(th) = over_h.tap_at(h, at[1]) else { continue };
                            for w in over_w.windows_over(at[2], width) {
                                let Some(tw) = over_w.tap_at(w, at[2]) else { continue };
                                let window = ((run.n * depth + d) * height + h) * width + w;
                                let inside = if spread.wants_count() {
                                    over_d.taps_inside(d).len()
                                        * over_h.taps_inside(h).len()
                                        * over_w.taps_inside(w).len()
                                } else {
                                    0
                                };
                                spread.add(sums, 1, Windows {
                                    dy,
                                    base: g.y.at(run.n, d as isize, h as isize, w as isize)
                                        + (block * LANES) as isize * g.y.strides[4],
                                    stride: g.y.strides[4],
                                    first: window * channels + block * LANES,
                                    tap: g.tap(td, th, tw),
                                    inside,
                                });
                            }
                        }
                    }
                    T::narrow_slice(sums, dx);
                }
            }
        }
    }
}

multiversion! {
    /// Rows from number `first` on; the lanes are the pixels of a row.
    up_to(Level::Avx2)
    fn channels_first[S: Spread, T: Real](spread: S, g: &Geometry, dy: &[T], first: usize, dx: &mut [T]) {
        let channels = g.x.channels;
        let [over_d, over_h, over_w] = g.axes;
        let [depth, height, width] = g.y.size;
        let counted = spread.wants_count() && !over_w.all_inside(width);
        for (i, dx) in dx.chunks_exact_mut(g.x.size[2]).enumerate() {
            let (plane, h) = ((first + i) / g.x.size[1], ((first + i) % g.x.size[1]) as isize);
            let (image, d) = (plane / g.x.size[0], (plane % g.x.size[0]) as isize);
            let (n, channel) = (image / channels, image % channels);
            for (block, dx) in dx.chunks_mut(LANES).enumerate() {
                let start = (block * LANES) as isize;
                let over_block = Axis { first: over_w.first - start, size: dx.len() as isize, ..over_w };
                let step = over_w.stride as usize;
                let mut sums = [T::Sum::ZERO; LANES];
                let sums = &mut sums[..dx.len()];
                for jd in over_d.windows_over(d, depth) {
                    let Some(td) = over_d.tap_at(jd, d) else { continue };
                    for jh in over_h.windows_over(h, height) {
                        let Some(th) = over_h.tap_at(jh, h) else { continue };
                        let rows = over_d.taps_inside(jd).len() * over_h.taps_inside(jh).len();
                        let row = ((image * depth + jd) * height + jh) * width;
                        let base = g.y.at(n, jd as isize, jh as isize, 0) + channel as isize * g.y.strides[4];
                        for tw in 0..over_w.taps {
                            let windows = over_block.windows_inside(tw, width);
                            // Near padding every window of a row has its own count.
                            let together = if counted { 1 } else { windows.len() };
                            for w in windows.clone().step_by(together.max(1)) {
                                let low = over_block.at(w, tw) as usize;
                                let high = low + (together - 1) * step + 1;
                                let taps = if counted { over_w.taps_inside(w).len() } else { over_w.taps };
                                spread.add(&mut sums[low..high], step, Windows {
                                    dy,
                                    base: base + w as isize * g.y.strides[3],
                                    stride: g.y.strides[3],
                                    first: row + w,
                                    tap: g.tap(td, th, tw),
                                    inside: rows * taps,
                                });
                            }
                        }
                    }
                }
                T::narrow_slice(sums, dx);
            }
        }
    }
}
