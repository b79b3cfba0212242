//! Windows to outputs: the maximum, where it is, and the mean.

use super::{Geometry, LANES, Ordered, Real, tasks};
use crate::conv::Layout;
use crate::conv::real::Sum;
use crate::conv::window::Runs;
use crate::dtype::Element;
use crate::multiversion;
use crate::simd::Level;
use std::marker::PhantomData;

/// What is made of a window's values. Each lane has a running value and the number of the tap that won.
pub(super) trait Fold: Copy + Sync {
    type In: Element;
    type Running: Copy;
    type Out: Element;
    /// Whether the winning tap is asked for.
    const WANTS_TAP: bool = false;
    /// Whether the number of taps inside is asked for.
    fn wants_count(&self) -> bool {
        false
    }
    fn start(&self) -> Self::Running;
    fn step(&self, running: &mut Self::Running, winner: &mut u32, value: Self::In, tap: u32);
    fn finish(&self, running: Self::Running, winner: u32, inside: usize) -> Self::Out;
}

/// The maximum.
#[derive(Clone, Copy)]
pub(super) struct Max<T>(PhantomData<fn() -> T>);

impl<T> Default for Max<T> {
    fn default() -> Self {
        Max(PhantomData)
    }
}

impl<T: Ordered> Fold for Max<T> {
    type In = T;
    type Running = T;
    type Out = T;
    #[inline(always)]
    fn start(&self) -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn step(&self, running: &mut T, _: &mut u32, value: T, _: u32) {
        *running = if value.beats(*running) { value } else { *running };
    }
    #[inline(always)]
    fn finish(&self, running: T, _: u32, _: usize) -> T {
        running
    }
}

/// The tap that holds the maximum.
#[derive(Clone, Copy)]
pub(super) struct Argmax<T, I>(PhantomData<fn() -> (T, I)>);

impl<T, I> Default for Argmax<T, I> {
    fn default() -> Self {
        Argmax(PhantomData)
    }
}

impl<T: Ordered, I: Tap> Fold for Argmax<T, I> {
    type In = T;
    type Running = T;
    type Out = I;
    const WANTS_TAP: bool = true;
    #[inline(always)]
    fn start(&self) -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn step(&self, running: &mut T, winner: &mut u32, value: T, tap: u32) {
        let won = value.beats(*running);
        *running = if won { value } else { *running };
        *winner = if won { tap } else { *winner };
    }
    #[inline(always)]
    fn finish(&self, _: T, winner: u32, _: usize) -> I {
        I::of(winner)
    }
}

/// The number of a tap, as wide as the window asks for.
pub(super) trait Tap: Element {
    fn of(tap: u32) -> Self;
    fn number(self) -> usize;
}

impl Tap for u8 {
    #[inline(always)]
    fn of(tap: u32) -> u8 {
        tap as u8
    }
    #[inline(always)]
    fn number(self) -> usize {
        usize::from(self)
    }
}

impl Tap for u32 {
    #[inline(always)]
    fn of(tap: u32) -> u32 {
        tap
    }
    #[inline(always)]
    fn number(self) -> usize {
        self as usize
    }
}

/// The mean.
#[derive(Clone, Copy)]
pub(super) struct Average<T> {
    divisor: Option<usize>,
    element: PhantomData<fn() -> T>,
}

impl<T> Average<T> {
    /// Divides by `divisor`, or else by the number of taps inside.
    pub(super) fn new(divisor: Option<usize>) -> Average<T> {
        Average { divisor, element: PhantomData }
    }
}

impl<T: Real> Fold for Average<T> {
    type In = T;
    type Running = T::Sum;
    type Out = T;
    #[inline(always)]
    fn wants_count(&self) -> bool {
        self.divisor.is_none()
    }
    #[inline(always)]
    fn start(&self) -> T::Sum {
        T::Sum::ZERO
    }
    #[inline(always)]
    fn step(&self, running: &mut T::Sum, _: &mut u32, value: T, _: u32) {
        *running = *running + value.widen();
    }
    #[inline(always)]
    fn finish(&self, running: T::Sum, _: u32, inside: usize) -> T {
        T::narrow(running.over(self.divisor.unwrap_or(inside).max(1)))
    }
}

/// Folds every window of `x` into `out`.
pub(super) fn run<F: Fold>(layout: Layout, geometry: &Geometry, fold: F, x: &[F::In], out: &mut [F::Out]) {
    let unit = match layout {
        Layout::ChannelsLast => geometry.y.channels,
        Layout::ChannelsFirst => geometry.y.size[2],
    };
    tasks(out, unit, geometry.taps(), |first, part| match layout {
        Layout::ChannelsLast => channels_last(fold, geometry, x, first, part),
        Layout::ChannelsFirst => channels_first(fold, geometry, x, first, part),
    });
}

/// Writes the element of `x` at each window's given tap, or zero where that is padding; `g.y` is where the taps are.
pub(super) fn pick<T: Real, I: Tap>(layout: Layout, g: &Geometry, x: &[T], taps: &[I], out: &mut [T]) {
    let (channels, [depth, height, width]) = (g.y.channels, g.y.size);
    let unit = if layout == Layout::ChannelsLast { channels } else { width };
    tasks(out, unit, 1, |first, part| {
        for (i, out) in part.iter_mut().enumerate() {
            let mut left = first * unit + i;
            let mut next = |size: usize| {
                let at = left % size;
                left /= size;
                at
            };
            let (w, h, d, channel);
            if layout == Layout::ChannelsLast {
                (channel, w, h, d) = (next(channels), next(width), next(height), next(depth));
            } else {
                (w, h, d, channel) = (next(width), next(height), next(depth), next(channels));
            }
            let n = left;
            let at = g.y.at(n, d as isize, h as isize, w as isize) + channel as isize * g.y.strides[4];
            let (mut tap, mut place, mut inside) = (taps[at as usize].number(), [0; 3], true);
            for (axis, window) in [w, h, d].into_iter().enumerate().map(|(i, window)| (2 - i, window)) {
                let over = &g.axes[axis];
                place[axis] = over.at(window, tap % over.taps);
                tap /= over.taps;
                inside &= (0..over.size).contains(&place[axis]);
            }
            let [d, h, w] = place;
            let at = g.x.at(n, d, h, w) + channel as isize * g.x.strides[4];
            *out = if inside { x[at as usize] } else { T::narrow(T::Sum::ZERO) };
        }
    });
}

/// Folds one tap of every lane; lane `i`'s value is `x[base + i * stride]`.
#[inline(always)]
fn step<F: Fold>(
    fold: F,
    running: &mut [F::Running],
    winners: &mut [u32],
    x: &[F::In],
    base: isize,
    stride: isize,
    tap: u32,
) {
    if stride == 1 {
        let x = &x[base as usize..][..running.len()];
        for ((running, winner), &value) in running.iter_mut().zip(winners).zip(x) {
            fold.step(running, winner, value, tap);
        }
    } else {
        for (i, (running, winner)) in running.iter_mut().zip(winners).enumerate() {
            fold.step(running, winner, x[(base + i as isize * stride) as usize], tap);
        }
    }
}

multiversion! {
    /// Pixels from number `first` on; the lanes are channels.
    up_to(if F::WANTS_TAP { Level::Avx512 } else { Level::Avx2 })
    fn channels_last[F: Fold](fold: F, g: &Geometry, x: &[F::In], first: usize, out: &mut [F::Out]) {
        let channels = g.y.channels;
        let [over_d, over_h, over_w] = g.axes;
        for run in Runs::new(g.y.size, first, out.len() / channels) {
            let (ds, hs) = (over_d.taps_inside(run.d), over_h.taps_inside(run.h));
            for i in 0..run.len {
                let w = run.w + i;
                let ws = over_w.taps_inside(w);
                let inside = ds.len() * hs.len() * ws.len();
                let start = g.tap(ds.start, hs.start, ws.start);
                let pixel = &mut out[(run.done + i) * channels..][..channels];
                for (block, out) in pixel.chunks_mut(LANES).enumerate() {
                    let mut running = [fold.start(); LANES];
                    let mut winners = [start; LANES];
                    let (running, winners) = (&mut running[..out.len()], &mut winners[..out.len()]);
                    for d in ds.clone() {
                        for h in hs.clone() {
                            let row = g.x.at(run.n, over_d.at(run.d, d), over_h.at(run.h, h), over_w.at(w, 0))
                                + (block * LANES) as isize * g.x.strides[4];
                            for t in ws.clone() {
                                let base = row + t as isize * over_w.step * g.x.strides[3];
                                step(fold, running, winners, x, base, g.x.strides[4], g.tap(d, h, t));
                            }
                        }
                    }
                    for ((out, running), winner) in out.iter_mut().zip(running).zip(winners) {
                        *out = fold.finish(*running, *winner, inside);
                    }
                }
            }
        }
    }
}

multiversion! {
    /// Rows from number `first` on; the lanes are the pixels of a row.
    up_to(Level::Avx2)
    fn channels_first[F: Fold](fold: F, g: &Geometry, x: &[F::In], first: usize, out: &mut [F::Out]) {
        let [depth, height, width] = g.y.size;
        let [over_d, over_h, over_w] = g.axes;
        let padded = !over_w.all_inside(width);
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let (plane, h) = ((first + i) / height, (first + i) % height);
            let (image, d) = (plane / depth, plane % depth);
            let (n, channel) = (image / g.y.channels, image % g.y.channels);
            let (ds, hs) = (over_d.taps_inside(d), over_h.taps_inside(h));
            for (block, out) in out.chunks_mut(LANES).enumerate() {
                let lanes = block * LANES..block * LANES + out.len();
                let mut running = [fold.start(); LANES];
                let mut winners = [g.tap(ds.start, hs.start, 0); LANES];
                if F::WANTS_TAP && padded {
                    for (winner, w) in winners.iter_mut().zip(lanes.clone()) {
                        *winner += over_w.taps_inside(w).start as u32;
                    }
                }
                for td in ds.clone() {
                    for th in hs.clone() {
                        let row = g.x.at(n, over_d.at(d, td), over_h.at(h, th), 0)
                            + channel as isize * g.x.strides[4];
                        for tw in 0..over_w.taps {
                            let inside = if padded { over_w.windows_inside(tw, width) } else { 0..width };
                            let (low, high) = (inside.start.max(lanes.start), inside.end.min(lanes.end));
                            if low < high {
                                let part = low - lanes.start..high - lanes.start;
                                let base = row + over_w.at(low, tw) * g.x.strides[3];
                                let stride = over_w.stride * g.x.strides[3];
                                let (running, winners) = (&mut running[part.clone()], &mut winners[part]);
                                step(fold, running, winners, x, base, stride, g.tap(td, th, tw));
                            }
                        }
                    }
                }
                let mut inside = ds.len() * hs.len() * over_w.taps;
                for (i, out) in out.iter_mut().enumerate() {
                    if padded && fold.wants_count() {
                        inside = ds.len() * hs.len() * over_w.taps_inside(lanes.start + i).len();
                    }
                    *out = fold.finish(running[i], winners[i], inside);
                }
            }
        }
    }
}
