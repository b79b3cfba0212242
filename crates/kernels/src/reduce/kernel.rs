//! The two vector loops every reduction is made of: along rows, and down columns.

use super::fold::{Fold, STEPS};
use crate::multiversion;

/// How many accumulators a long row is spread over; the number is part of the result's definition.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<const L: usize>;

/// Eight 256-bit registers of accumulators, which hide the latency of an addition.
pub(crate) const fn lanes<Leaf>() -> usize {
    if size_of::<Leaf>() == 8 { 32 } else { 64 }
}

/// How many times a row's lanes step before they are merged into its wider accumulators.
pub(crate) const LEAF_STEPS: usize = 16;
const _: () = assert!(LEAF_STEPS < STEPS);

/// The lanes of a row too short for `L` of them.
const SHORT: usize = 8;

/// The longest row that [`rows`] takes, per lane: 16 leaves of 16 steps.
pub(crate) const ROW_STEPS: usize = LEAF_STEPS * 16;

/// Pairs the halves of `accs` until one is left.
#[inline(always)]
fn tree<F: Fold>(accs: &mut [F::Acc]) -> F::Acc {
    let mut half = accs.len() / 2;
    while half > 0 {
        let (low, high) = accs.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(&high[..half]) {
            *a = F::merge(*a, *b);
        }
        half /= 2;
    }
    accs[0]
}

#[inline(always)]
fn short_row<F: Fold>(x: &[F::In], context: F::Context) -> F::Acc {
    if x.len() < SHORT {
        return F::widen(x.iter().fold(F::LEAF, |leaf, &v| F::step(leaf, v, context)));
    }
    let mut leaves = [F::LEAF; SHORT];
    let (steps, rest) = x.as_chunks::<SHORT>();
    for step in steps {
        for i in 0..SHORT {
            leaves[i] = F::step(leaves[i], step[i], context);
        }
    }
    for (leaf, &v) in leaves.iter_mut().zip(rest) {
        *leaf = F::step(*leaf, v, context);
    }
    tree::<F>(&mut leaves.map(F::widen))
}

/// Merges the leaves of `x` into `accs`.
#[inline(always)]
fn long_part<F: Fold, const L: usize>(x: &[F::In], context: F::Context, accs: &mut [F::Acc; L]) {
    for part in x.chunks(LEAF_STEPS * L) {
        let mut leaves = [F::LEAF; L];
        let (steps, rest) = part.as_chunks::<L>();
        for step in steps {
            for i in 0..L {
                leaves[i] = F::step(leaves[i], step[i], context);
            }
        }
        for (leaf, &v) in leaves.iter_mut().zip(rest) {
            *leaf = F::step(*leaf, v, context);
        }
        for i in 0..L {
            accs[i] = F::merge(accs[i], F::widen(leaves[i]));
        }
    }
}

#[inline(always)]
fn long_row<F: Fold, const L: usize>(x: &[F::In], context: F::Context) -> F::Acc {
    let mut accs = [F::START; L];
    long_part::<F, L>(x, context, &mut accs);
    tree::<F>(&mut accs)
}

multiversion! {
    /// Merges the next part of a long row into its lanes: a multiple of `LEAF_STEPS * L` elements, or the last ones.
    up_to(F::ROWS)
    pub(crate) fn row_part[F: Fold, const L: usize](
        _fold: F, _lanes: Lanes<L>, x: &[F::In], context: F::Context, accs: &mut [F::Acc; L],
    ) {
        long_part::<F, L>(x, context, accs);
    }
}

/// What the lanes of a long row amount to.
pub(crate) fn row_end<F: Fold, const L: usize>(accs: &mut [F::Acc; L]) -> F::Acc {
    tree::<F>(accs)
}

multiversion! {
    /// Folds one row of `len` contiguous elements into each of `accs`, starting at `first` and `stride` apart. A row
    /// has at most `ROW_STEPS * L` elements, so that no accumulator takes in more than a few dozen terms.
    up_to(F::ROWS)
    pub(crate) fn rows[F: Fold, const L: usize](
        _fold: F, _lanes: Lanes<L>, x: &[F::In], first: usize, stride: usize, len: usize,
        contexts: &[F::Context], accs: &mut [F::Acc],
    ) {
        debug_assert!(len <= ROW_STEPS * L);
        let mut start = first;
        for (acc, &context) in accs.iter_mut().zip(contexts) {
            let row = &x[start..start + len];
            *acc = if len <= LEAF_STEPS * SHORT { short_row::<F>(row, context) } else { long_row::<F, L>(row, context) };
            start += stride;
        }
    }
}

/// How many rows [`columns`] adds up before it touches an accumulator.
pub(crate) const GROUP: usize = 4;

multiversion! {
    /// Merges `count` rows, the first at `first` and each `stride` after the one before, into `accs`, column by column.
    up_to(F::COLUMNS)
    pub(crate) fn columns[F: Fold](
        _fold: F, x: &[F::In], first: usize, stride: isize, count: usize, contexts: &[F::Context],
        accs: &mut [F::Acc],
    ) {
        let width = accs.len();
        let contexts = &contexts[..width];
        let row = |i: usize| {
            let start = first.wrapping_add_signed(i as isize * stride);
            &x[start..start + width]
        };
        let mut i = 0;
        while i + GROUP <= count {
            let (r0, r1, r2, r3) = (row(i), row(i + 1), row(i + 2), row(i + 3));
            for j in 0..width {
                let leaf = F::step(F::LEAF, r0[j], contexts[j]);
                let leaf = F::step(leaf, r1[j], contexts[j]);
                let leaf = F::step(leaf, r2[j], contexts[j]);
                let leaf = F::step(leaf, r3[j], contexts[j]);
                accs[j] = F::merge(accs[j], F::widen(leaf));
            }
            i += GROUP;
        }
        while i < count {
            let r = row(i);
            for j in 0..width {
                accs[j] = F::merge(accs[j], F::widen(F::step(F::LEAF, r[j], contexts[j])));
            }
            i += 1;
        }
    }
}
