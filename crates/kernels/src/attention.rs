//! Scaled dot-product attention, without the matrix of scores.
//!
//! Queries are taken in blocks, and for each block the keys in blocks: scores, their running maximum and sum, and the
//! weighted values so far are all that exists at a time ("online softmax"), so memory does not grow with the
//! number of keys. Threads take query blocks; a block's result does not depend on who computes it.

mod backward;
#[cfg(test)]
mod backward_tests;
mod dropout;
#[cfg(test)]
mod tests;

pub use backward::{AttentionCall, attention_gradient, attention_gradient_scratch};
pub use dropout::AttentionDropout;

use crate::matmul::{GemmElement, Mat, MatMut, gemm};
use crate::norm::float::{LogSumExp, Stored, exp_into, larger, max_of, real};
use crate::norm::source::Parts;
use crate::norm::statistics_dtype;
use crate::view::{View, ViewMut};
use crate::{Bool, DType, Element, dispatch, multiversion, pool};
use dropout::drop_weights;

/// Queries in a block.
const QUERIES: usize = 64;
/// Keys in a block.
const KEYS: usize = 128;
/// Below this many multiplications one thread is faster.
const PARALLEL: usize = 256 * 1024;

/// The sizes of an attention.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    batch: usize,
    heads: usize,
    shared: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    width: usize,
}

impl Sizes {
    fn new(q: &[usize], k: &[usize], v: &[usize]) -> Sizes {
        let &[batch, heads, queries, depth] = q else { panic!("queries of [batch, heads, n, d]") };
        let &[_, shared, keys, width] = v else { panic!("values of [batch, heads, m, d]") };
        assert_eq!(k, [batch, shared, keys, depth], "the shape of the keys");
        assert_eq!(v[0], batch, "one batch");
        assert!(heads == 0 || (shared > 0 && heads.is_multiple_of(shared)), "heads share keys evenly");
        Sizes { batch, heads, shared, queries, keys, depth, width }
    }

    /// The number of a score in row-major order of `[batch, heads, queries, keys]`.
    fn score(&self, [batch, head, query, key]: [usize; 4]) -> usize {
        ((batch * self.heads + head) * self.queries + query) * self.keys + key
    }

    /// Query blocks, the units of work.
    fn tasks(&self) -> usize {
        self.batch * self.heads * self.queries.div_ceil(QUERIES)
    }

    /// Elements of workspace for one query block: scores, weighted values, and widened inputs if these are halves.
    fn slot(&self, widen: bool) -> [usize; 5] {
        let (rows, cols) = (self.queries.min(QUERIES), self.keys.min(KEYS));
        let inputs = if widen { [rows * self.depth, cols * self.depth, cols * self.width] } else { [0; 3] };
        [rows * cols, rows * self.width, inputs[0], inputs[1], inputs[2]]
    }

    fn slot_len(&self, widen: bool) -> usize {
        // Slots of whole cache lines, so that threads do not share one.
        self.slot(widen).iter().sum::<usize>().next_multiple_of(16).max(16)
    }
}

/// Bytes of scratch for [`attention`] on inputs of these shapes. It grows with the threads that can take part; with less
/// than this, fewer do.
pub fn attention_scratch(dtype: DType, q: &[usize], k: &[usize], v: &[usize]) -> usize {
    let sizes = Sizes::new(q, k, v);
    let widen = matches!(dtype, DType::F16 | DType::BF16);
    let lanes = sizes.tasks().clamp(1, pool::threads());
    lanes.saturating_mul(sizes.slot_len(widen)).saturating_mul(statistics_dtype(dtype).size())
}

/// `softmax(scale * q kᵀ + mask) v`, and the log-sum-exp of every row of scores.
///
/// `q` is `[b, h, n, d]`, `k` `[b, g, m, d]`, `v` and `out` `[b, g, m, e]` and `[b, h, n, e]`, where `g` divides `h`: each key head serves
/// `h / g` neighbouring query heads. `lse` is `[b, h, n]` of the type of the statistics. The mask is `[b, h, n, m]`, usually with
/// strides of zero: `Bool` (true keeps) or floats of the inputs' type, added to the scores. With `causal`, query `i` sees
/// keys `0..=i` only. A query that sees no key gives zeros, and negative infinity as its log-sum-exp. With `dropout`, probabilities
/// are dropped before they weigh the values; the log-sum-exp is that of all scores.
///
/// # Panics
/// If shapes or types contradict each other, or the scratch is too small for one block.
pub fn attention(
    q: View<'_>,
    k: View<'_>,
    v: View<'_>,
    mask: Option<View<'_>>,
    causal: bool,
    scale: f64,
    dropout: Option<AttentionDropout>,
    out: ViewMut<'_>,
    lse: ViewMut<'_>,
    scratch: &mut [u8],
) {
    let sizes = Sizes::new(q.shape(), k.shape(), v.shape());
    let Sizes { batch, heads, queries, keys, width, .. } = sizes;
    let dtype = q.dtype();
    assert!([k.dtype(), v.dtype(), out.dtype()].iter().all(|&d| d == dtype), "one type");
    assert_eq!(out.shape(), [batch, heads, queries, width], "the shape of the output");
    assert_eq!(
        (lse.dtype(), lse.shape()),
        (statistics_dtype(dtype), &[batch, heads, queries][..]),
        "the lse"
    );
    if let Some(mask) = &mask {
        assert_eq!(mask.shape(), [batch, heads, queries, keys], "the shape of the mask");
        assert!(mask.dtype() == DType::Bool || mask.dtype() == dtype, "the type of the mask");
    }
    let inputs = Inputs { q, k, v, mask, causal, scale, dropout, sizes };
    dispatch!(dtype, T in floats => run::<T>(&inputs, out, lse, scratch));
}

/// What attention works on.
struct Inputs<'a> {
    q: View<'a>,
    k: View<'a>,
    v: View<'a>,
    mask: Option<View<'a>>,
    causal: bool,
    scale: f64,
    dropout: Option<AttentionDropout>,
    sizes: Sizes,
}

fn run<T: Stored<Wide: GemmElement>>(
    inputs: &Inputs<'_>,
    mut out: ViewMut<'_>,
    mut lse: ViewMut<'_>,
    scratch: &mut [u8],
) {
    let sizes = inputs.sizes;
    let tasks = sizes.tasks();
    if tasks == 0 {
        return;
    }
    let slot = sizes.slot_len(T::DTYPE.size() != size_of::<T::Wide>());
    let slots = bytemuck::cast_slice_mut::<u8, T::Wide>(scratch);
    let work =
        [QUERIES, sizes.keys, sizes.depth + sizes.width].into_iter().fold(tasks, usize::saturating_mul);
    let lanes = if work < PARALLEL { 1 } else { (slots.len() / slot).clamp(1, tasks) };
    let (out, lse) = (Parts::new(out.slice::<T>()), Parts::new(lse.slice::<T::Wide>()));
    pool::for_each_with_slot(&mut slots[..lanes * slot], slot, tasks, |task, slot| {
        let block = Block::new(&sizes, task);
        let rows = block.head * sizes.queries + block.first;
        // SAFETY: every task is taken once, and tasks are disjoint ranges of rows.
        let (out, lse) = unsafe {
            (
                out.part(rows * sizes.width..(rows + block.rows) * sizes.width),
                lse.part(rows..rows + block.rows),
            )
        };
        attend::<T>(inputs, block, slot, out, lse);
    });
}

/// A block of queries.
#[derive(Clone, Copy)]
struct Block {
    /// Batch and head in one.
    head: usize,
    first: usize,
    rows: usize,
}

impl Block {
    fn new(sizes: &Sizes, task: usize) -> Block {
        let blocks = sizes.queries.div_ceil(QUERIES);
        let first = task % blocks * QUERIES;
        Block { head: task / blocks, first, rows: QUERIES.min(sizes.queries - first) }
    }
}

/// Rows of a view of `[batch, head, rows, columns]` in the computing type: where they are, or copied into `room`.
fn widen<'a, T: Stored>(
    view: &View<'a>,
    [batch, head, first, rows]: [usize; 4],
    room: &'a mut [T::Wide],
) -> Mat<'a, T::Wide> {
    let (strides, cols) = (view.strides(), view.shape()[3]);
    let reach = [batch, head, first].into_iter().zip(strides).map(|(i, &stride)| i as isize * stride);
    let start = view.offset() as isize + reach.sum::<isize>();
    if T::DTYPE == T::Wide::DTYPE {
        return Mat::new(view.data(), start as usize, rows, cols, strides[2], strides[3]);
    }
    let data = view.data::<T>();
    for (row, to) in room.chunks_exact_mut(cols.max(1)).take(rows).enumerate() {
        let start = start + row as isize * strides[2];
        if strides[3] == 1 {
            T::widen(&data[start as usize..][..cols], to);
            continue;
        }
        for (col, to) in to.iter_mut().enumerate() {
            *to = real(data[(start + col as isize * strides[3]) as usize].to_f64());
        }
    }
    Mat::row_major(room, rows, cols)
}

/// Computes one block of queries.
fn attend<T: Stored<Wide: GemmElement>>(
    inputs: &Inputs<'_>,
    block: Block,
    slot: &mut [T::Wide],
    out: &mut [T],
    lse: &mut [T::Wide],
) {
    let Inputs { q, k, v, mask, causal, scale, dropout, sizes } = inputs;
    let Block { head, first, rows } = block;
    let (batch, head) = (head / sizes.heads, head % sizes.heads);
    let shared = head / (sizes.heads / sizes.shared);
    let [scores, sums, room_q, room_k, room_v] = carve(slot, sizes.slot(T::DTYPE != T::Wide::DTYPE));
    let sums = &mut sums[..rows * sizes.width];
    sums.fill(real(0.0));
    let mut states = [LogSumExp { max: real::<T::Wide>(f64::NEG_INFINITY), sum: 0.0 }; QUERIES];
    let queries = widen::<T>(q, [batch, head, first, rows], room_q);
    let visible = if *causal { sizes.keys.min(first + rows) } else { sizes.keys };
    for start in (0..visible).step_by(KEYS) {
        let cols = KEYS.min(visible - start);
        let scores = &mut scores[..rows * cols];
        let keys = widen::<T>(k, [batch, shared, start, cols], &mut *room_k);
        gemm(queries, keys.transposed(), MatMut::row_major(scores, rows, cols), false);
        for row in 0..rows {
            let query = first + row;
            let scores = &mut scores[row * cols..][..cols];
            let seen = if *causal { cols.min((query + 1).saturating_sub(start)) } else { cols };
            let mask = mask.as_ref().map(|mask| MaskRow::<T>::new(mask, [batch, head, query, start]));
            let sums = &mut sums[row * sizes.width..][..sizes.width];
            weigh(scores, seen, real(*scale), mask, &mut states[row], sums);
            if let Some(dropout) = dropout {
                let mut kept = [Bool::FALSE; KEYS];
                let kept = dropout.draw(sizes.score([batch, head, query, start]), &mut kept[..seen]);
                // The factor of the weights that are kept is applied to their sum.
                drop_weights(&mut scores[..seen], kept, real(1.0));
            }
        }
        let values = widen::<T>(v, [batch, shared, start, cols], &mut *room_v);
        gemm(Mat::row_major(scores, rows, cols), values, MatMut::row_major(sums, rows, sizes.width), true);
    }
    let kept_factor = dropout.map_or(1.0, |dropout| dropout.factor());
    for (row, state) in states[..rows].iter().enumerate() {
        lse[row] = state.value();
        let factor: T::Wide = real(if state.sum == 0.0 { 0.0 } else { kept_factor / state.sum });
        let sums = &mut sums[row * sizes.width..][..sizes.width];
        for sum in &mut *sums {
            *sum = *sum * factor;
        }
        T::narrow(sums, &mut out[row * sizes.width..][..sizes.width]);
    }
}

/// Cuts workspace into pieces of these lengths.
fn carve<W, const N: usize>(mut slot: &mut [W], lengths: [usize; N]) -> [&mut [W]; N] {
    lengths.map(|len| {
        let (piece, rest) = std::mem::take(&mut slot).split_at_mut(len);
        slot = rest;
        piece
    })
}

/// The mask of one query, from some key on.
struct MaskRow<'a, T> {
    values: MaskValues<'a, T>,
    start: isize,
    stride: isize,
}

enum MaskValues<'a, T> {
    Keep(&'a [Bool]),
    Add(&'a [T]),
}

impl<'a, T: Stored> MaskRow<'a, T> {
    fn new(mask: &View<'a>, at: [usize; 4]) -> MaskRow<'a, T> {
        let reach: isize = at.iter().zip(mask.strides()).map(|(&i, &stride)| i as isize * stride).sum();
        let values = match mask.dtype() {
            DType::Bool => MaskValues::Keep(mask.data()),
            _ => MaskValues::Add(mask.data()),
        };
        MaskRow { values, start: mask.offset() as isize + reach, stride: mask.strides()[3] }
    }

    /// Applies the mask to scores.
    #[inline(always)]
    fn apply(&self, scores: &mut [T::Wide]) {
        let at = |i: usize| (self.start + i as isize * self.stride) as usize;
        match &self.values {
            MaskValues::Keep(keep) => {
                for (i, score) in scores.iter_mut().enumerate() {
                    *score = if keep[at(i)].get() { *score } else { real(f64::NEG_INFINITY) };
                }
            }
            MaskValues::Add(terms) => {
                for (i, score) in scores.iter_mut().enumerate() {
                    *score = *score + real::<T::Wide>(terms[at(i)].to_f64());
                }
            }
        }
    }
}

multiversion! {
    /// Turns a query's scores into weights relative to the largest score so far, and brings what was summed before
    /// to the same measure. Scores from `seen` on are not for this query.
    fn weigh[T: Stored](
        scores: &mut [T::Wide],
        seen: usize,
        scale: T::Wide,
        mask: Option<MaskRow<'_, T>>,
        state: &mut LogSumExp<T::Wide>,
        sums: &mut [T::Wide],
    ) {
        let mut row = [real::<T::Wide>(0.0); KEYS];
        let row = &mut row[..seen];
        for (to, &score) in row.iter_mut().zip(&*scores) {
            *to = score * scale;
        }
        if let Some(mask) = mask {
            mask.apply(row);
        }
        let none: T::Wide = real(f64::NEG_INFINITY);
        let max = larger(state.max, max_of(row));
        // Where nothing was seen yet weights are zero, or NaN if a score was.
        let shift = if max == none { real(0.0) } else { max };
        let sum = exp_into(row, shift, &mut scores[..seen]).to_f64();
        scores[seen..].fill(real(0.0));
        if max != state.max {
            let fade = crate::math::exp(state.max - max);
            state.sum *= fade.to_f64();
            for sum in sums {
                *sum = *sum * fade;
            }
        }
        state.sum += sum;
        state.max = max;
    }
}
