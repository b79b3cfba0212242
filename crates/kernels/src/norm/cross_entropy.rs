//! Cross-entropy of logits, without writing the probabilities down.

use super::float::*;
use super::source::*;
use super::{rows_per_chunk, statistics_dtype};
use crate::view::{View, ViewMut};
use crate::{DType, Element, dispatch, multiversion, pool};
use std::fmt;

/// A label that is not a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelOutOfRange {
    /// The row it labels.
    pub row: usize,
    /// The label.
    pub label: i64,
    /// How many classes there are.
    pub classes: usize,
}

impl fmt::Display for LabelOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "label {} of row {} is outside 0..{}", self.label, self.row, self.classes)
    }
}

impl std::error::Error for LabelOutOfRange {}

/// The cross-entropy `-sum(labels * log_softmax(logits))` of every row, and the log-sum-exp of its logits.
///
/// `logits` and `labels` are `[rows, classes]` of one type, as is `loss` of `[rows]`; `lse` of `[rows]` has the type of the
/// statistics. A class with label zero contributes nothing, even where its logit is negative infinity.
pub fn softmax_cross_entropy(logits: View<'_>, labels: View<'_>, loss: ViewMut<'_>, lse: ViewMut<'_>) {
    assert_eq!(logits.shape(), labels.shape(), "a label per logit");
    dispatch!(logits.dtype(), T in floats => dense::<T>(logits, labels, loss, lse));
}

/// [`softmax_cross_entropy`] with all the weight of row `r` on class `labels[r]`; labels are `i32` or `i64`.
///
/// Nothing is written if a label is out of range.
pub fn sparse_softmax_cross_entropy(
    logits: View<'_>,
    labels: View<'_>,
    loss: ViewMut<'_>,
    lse: ViewMut<'_>,
) -> Result<(), LabelOutOfRange> {
    match labels.dtype() {
        DType::I32 => sparse_of::<i32>(logits, labels, loss, lse),
        DType::I64 => sparse_of::<i64>(logits, labels, loss, lse),
        other => panic!("labels of type {other}"),
    }
}

fn sparse_of<I: Element + Into<i64>>(
    logits: View<'_>,
    labels: View<'_>,
    loss: ViewMut<'_>,
    lse: ViewMut<'_>,
) -> Result<(), LabelOutOfRange> {
    let &[rows, classes] = logits.shape() else { panic!("logits of [rows, classes]") };
    assert_eq!(labels.shape(), [rows], "a label per row");
    let (data, offset, stride) = (labels.data::<I>(), labels.offset() as isize, labels.strides()[0]);
    let label = |row: usize| -> i64 { data[(offset + row as isize * stride) as usize].into() };
    for row in 0..rows {
        let label = label(row);
        if usize::try_from(label).map_or(true, |label| label >= classes) {
            return Err(LabelOutOfRange { row, label, classes });
        }
    }
    dispatch!(logits.dtype(), T in floats => {
        sparse::<T>(logits, |row| label(row) as usize, loss, lse);
    });
    Ok(())
}

fn check_outputs<T: Stored>(rows: usize, loss: &ViewMut<'_>, lse: &ViewMut<'_>) {
    assert_eq!(
        (loss.dtype(), lse.dtype()),
        (T::DTYPE, statistics_dtype(T::DTYPE)),
        "the types of the outputs"
    );
    assert_eq!((loss.len(), lse.len()), (rows, rows), "an output per row");
}

fn sparse<T: Stored>(
    logits: View<'_>,
    label: impl Fn(usize) -> usize + Sync,
    mut loss: ViewMut<'_>,
    mut lse: ViewMut<'_>,
) {
    let (rows, classes) = (logits.shape()[0], logits.shape()[1]);
    check_outputs::<T>(rows, &loss, &lse);
    let source = Source::<T>::new(logits);
    let loss = Parts::new(loss.slice::<T>());
    pool::for_each_mut(lse.slice::<T::Wide>(), rows_per_chunk(classes), |first, lse| {
        lse_kernel(source, first, classes, lse);
        // SAFETY: the loss has the rows of the log-sum-exp, which are handed out once.
        let loss = unsafe { loss.part(first..first + lse.len()) };
        for (i, (loss, &lse)) in loss.iter_mut().zip(&*lse).enumerate() {
            let x = widen_one(source.get((first + i) * classes + label(first + i)));
            T::narrow(&[lse - x], std::slice::from_mut(loss));
        }
    });
}

fn dense<T: Stored>(logits: View<'_>, labels: View<'_>, mut loss: ViewMut<'_>, mut lse: ViewMut<'_>) {
    let &[rows, classes] = logits.shape() else { panic!("logits of [rows, classes]") };
    check_outputs::<T>(rows, &loss, &lse);
    let (logits, labels) = (Source::<T>::new(logits), Source::<T>::new(labels));
    let loss = Parts::new(loss.slice::<T>());
    pool::for_each_mut(lse.slice::<T::Wide>(), rows_per_chunk(classes), |first, lse| {
        lse_kernel(logits, first, classes, lse);
        // SAFETY: the loss has the rows of the log-sum-exp, which are handed out once.
        let loss = unsafe { loss.part(first..first + lse.len()) };
        dense_kernel(logits, labels, first, classes, lse, loss);
    });
}

multiversion! {
    fn lse_kernel[T: Stored](x: Source<'_, T>, first: usize, n: usize, lse: &mut [T::Wide]) {
        let mut narrow = [T::from_f64(0.0); TILE];
        let mut buffer = [real::<T::Wide>(0.0); TILE];
        for (i, lse) in lse.iter_mut().enumerate() {
            let start = (first + i) * n;
            let mut max = real(f64::NEG_INFINITY);
            for range in tiles(n) {
                let tile = x.tile(start + range.start, range.len(), &mut narrow);
                max = larger(max, max_of(widened(Some(tile), &[], 0..tile.len(), &mut buffer)));
            }
            let mut sum = 0.0;
            for range in tiles(n) {
                let tile = x.tile(start + range.start, range.len(), &mut narrow);
                sum += exp_sum(widened(Some(tile), &[], 0..tile.len(), &mut buffer), max).to_f64();
            }
            *lse = LogSumExp { max, sum }.value();
        }
    }
}

multiversion! {
    fn dense_kernel[T: Stored](
        logits: Source<'_, T>,
        labels: Source<'_, T>,
        first: usize,
        n: usize,
        lse: &[T::Wide],
        loss: &mut [T],
    ) {
        let (mut narrow_x, mut narrow_p) = ([T::from_f64(0.0); TILE], [T::from_f64(0.0); TILE]);
        let (mut wide_x, mut wide_p) = ([real::<T::Wide>(0.0); TILE], [real::<T::Wide>(0.0); TILE]);
        let mut product = [real::<T::Wide>(0.0); TILE];
        for (i, (loss, &lse)) in loss.iter_mut().zip(lse).enumerate() {
            let mut total = 0.0;
            for range in tiles(n) {
                let (at, len) = ((first + i) * n + range.start, range.len());
                let (x, p) = (logits.tile(at, len, &mut narrow_x), labels.tile(at, len, &mut narrow_p));
                let x = widened(Some(x), &[], 0..len, &mut wide_x);
                let p = widened(Some(p), &[], 0..len, &mut wide_p);
                for ((to, &x), &p) in product.iter_mut().zip(x).zip(p) {
                    *to = if p == real(0.0) { p } else { p * (lse - x) };
                }
                total += sum_of(&product[..len]).to_f64();
            }
            T::narrow(&[real(total)], std::slice::from_mut(loss));
        }
    }
}
