//! The cross-entropy of a linear layer's logits, in chunks of rows.

use taut_control::Loops;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::ops::nn::sparse_softmax_cross_entropy_with_logits;
use taut_core::ops::shape::{concat, reshape, slice};
use taut_core::{Error, Result, Tensor, s, source_location, with_source_location};
use taut_memory::Location;

const NAME: &str = "linear_cross_entropy";

/// Bytes of logits that exist at a time.
const CHUNK: usize = 2 << 20;

/// What the gradient may keep of the loop over chunks: it has no states, so this is never reached. With a budget, the gradient
/// recomputes the logits of a chunk instead of keeping those of all chunks.
const GRAD_BUDGET: usize = 1 << 10;

/// The cross-entropy of the logits `features @ kernel + bias` and the class that each label names: one number per label.
///
/// `features` is `[.., inputs]`, `kernel` `[inputs, classes]`, `bias` `[classes]` and `labels` `[..]`, integers. The logits exist for
/// a chunk of rows at a time (2 MiB, or one row), in the forward pass and again in the backward pass, which recomputes them: a
/// vocabulary of any size costs no matrix of `[.., classes]`. The price is one more product with the kernel.
///
/// ```
/// use taut_core::{DType, Tensor, ops::creation::zeros};
/// use taut_nn::losses::linear_cross_entropy;
/// let (features, kernel) = (zeros([3, 8], DType::F32)?, zeros([8, 4], DType::F32)?);
/// let losses = linear_cross_entropy(&features, &kernel, None, &Tensor::new([0i32, 1, 3])?)?;
/// assert!((losses.to_vec::<f32>()?[2] - 4f32.ln()).abs() < 1e-6);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn linear_cross_entropy(
    features: &Tensor,
    kernel: &Tensor,
    bias: Option<&Tensor>,
    labels: &Tensor,
) -> Result<Tensor> {
    let at = Location::caller();
    let specs = || [features, kernel, labels].map(Tensor::spec);
    let check = check(features, kernel, labels);
    let (inputs, classes) = check.map_err(|error| error.in_op(NAME, specs()).at(source_location(at)))?;
    with_source_location(None, at, || {
        let lead: Vec<isize> = labels.shape().iter().map(|&dim| dim as isize).collect();
        let rows = labels.len();
        let features = reshape(features, &[rows as isize, inputs as isize])?;
        let flat = reshape(labels, &[rows as isize])?;
        let chunk = (CHUNK / (classes * features.dtype().size()).max(1)).clamp(1, rows.max(1));
        if chunk == rows.max(1) {
            return reshape(row_losses(features, kernel, bias, flat)?, &lead);
        }
        // Chunks of equal size in one loop, and one that is shorter for the rest.
        let size = rows.div_ceil(rows.div_ceil(chunk));
        let (count, whole) = (rows / size, rows / size * size);
        let part = |from: usize, to: usize, count: usize| {
            let rows = s![from as isize..to as isize];
            in_chunks(slice(&features, &rows)?, kernel, bias, slice(&flat, &rows)?, count)
        };
        let mut losses = part(0, whole, count)?;
        if whole < rows {
            losses = concat(&[losses, part(whole, rows, 1)?], 0)?;
        }
        reshape(losses, &lead)
    })
}

/// The number of inputs and of classes; an error if the shapes do not fit together.
fn check(features: &Tensor, kernel: &Tensor, labels: &Tensor) -> Result<(usize, usize)> {
    let &[inputs, classes] = &kernel.shape()[..] else {
        return Err(Error::shape(format!(
            "kernel must have shape [inputs, classes], got {}",
            kernel.shape()
        )));
    };
    let Some((&last, lead)) = features.shape().split_last() else {
        return Err(Error::shape("features must have shape [.., inputs], got a scalar"));
    };
    if last != inputs {
        return Err(Error::shape(format!(
            "features must have {inputs} inputs, as the kernel has, got {last}"
        )));
    }
    if labels.shape() != lead {
        let message = format!(
            "labels must have shape {lead:?}, that of the features without the last axis, got {}",
            labels.shape()
        );
        return Err(Error::shape(message));
    }
    Ok((inputs, classes))
}

/// The loss of each row, by all logits.
fn row_losses(features: Tensor, kernel: &Tensor, bias: Option<&Tensor>, labels: Tensor) -> Result<Tensor> {
    let mut logits = matmul(features, kernel)?;
    if let Some(bias) = bias {
        logits = add(logits, bias)?;
    }
    sparse_softmax_cross_entropy_with_logits(labels, logits)
}

/// The loss of each row, in this many chunks of equal size.
fn in_chunks(
    features: Tensor,
    kernel: &Tensor,
    bias: Option<&Tensor>,
    labels: Tensor,
    count: usize,
) -> Result<Tensor> {
    let (rows, inputs) = (features.shape()[0], features.shape()[1] as isize);
    let size = (rows / count) as isize;
    let elements =
        (reshape(features, &[count as isize, size, inputs])?, reshape(labels, &[count as isize, size])?);
    let loops = Loops::new().grad_budget(GRAD_BUDGET);
    let body =
        |(), (features, labels): (Tensor, Tensor)| Ok(((), row_losses(features, kernel, bias, labels)?));
    let ((), losses): ((), Tensor) = loops.scan(body, (), elements)?;
    reshape(losses, &[rows as isize])
}
