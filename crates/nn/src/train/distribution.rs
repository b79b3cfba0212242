//! What ranks share in a training step: the loss, gradients, and variables that the step updates without a gradient.

use crate::optimizers::Optimizer;
use std::sync::atomic::{AtomicBool, Ordering};
use taut_autodiff::Variable;
use taut_core::ops::binary::mul;
use taut_core::ops::shape::{concat, reshape, strided_slice};
use taut_core::ops::unary::cast;
use taut_core::record::detached;
use taut_core::{DType, Error, ErrorKind, Gradient, Result, Tensor};
use taut_distribute::{Group, ReduceOp, all_reduce};

/// Tensors of fewer bytes share a message with others.
pub(crate) const SMALL: usize = 64 << 10;
/// The most bytes of such a message.
const BUCKET: usize = 1 << 20;

/// How a trainer takes part in a group of ranks.
pub(super) struct Distribution {
    pub group: Group,
    /// The rows of this rank in the current step, relative to equal shares: a scalar `float64`.
    weight: Variable,
    /// Whether ranks have compared their variables and plans.
    is_checked: AtomicBool,
    /// Whether variables of ranks may differ, because a step failed on one of them.
    is_torn: AtomicBool,
}

/// A tensor that is averaged over ranks.
enum Shared {
    Gradient(usize),
    State(Variable),
}

impl Distribution {
    pub fn new(group: &Group) -> Result<Distribution> {
        let weight = Variable::builder().name("rank weight").trainable(false);
        let weight = weight.build(Tensor::scalar(1.0f64)?)?;
        Ok(Distribution {
            group: group.clone(),
            weight,
            is_checked: AtomicBool::new(false),
            is_torn: AtomicBool::new(false),
        })
    }

    /// The rows of all ranks in a step, of which this one has `rows`; sets the weights by them. Zero if no rank has any.
    pub fn agree_on_rows(&self, rows: usize) -> Result<usize> {
        let rows = rows as u64;
        let all = self.group.all_gather_words("the rows of a step", &[rows])?;
        let total: u64 = all.iter().sum();
        if total > 0 {
            let weight = rows as f64 * all.len() as f64 / total as f64;
            if self.weight.value().item::<f64>()? != weight {
                self.weight.assign(weight)?;
            }
        }
        Ok(total as usize)
    }

    /// Whether a condition holds on any rank.
    pub fn any(&self, name: &'static str, condition: bool) -> Result<bool> {
        Ok(self.group.all_gather_words(name, &[u64::from(condition)])?.contains(&1))
    }

    /// Runs `check` once, before the first step.
    pub fn check_once(&self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.is_checked.load(Ordering::Relaxed) {
            check()?;
            self.is_checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Remembers that a step failed here and perhaps not elsewhere. A loss or gradient that is not finite fails on all ranks alike.
    pub fn note_failure(&self, error: &Error) {
        if error.kind() != ErrorKind::Numeric || self.group.has_failed() {
            self.is_torn.store(true, Ordering::Relaxed);
        }
    }

    pub fn check_intact(&self) -> Result<()> {
        if !self.is_torn.load(Ordering::Relaxed) {
            return Ok(());
        }
        let message = "variables of ranks may differ since a step failed: training cannot go on";
        Err(Error::new(ErrorKind::Unavailable, message).help("restart the job and call Trainer::resume"))
    }

    /// This rank's part of the loss, from which gradients are computed, and the mean loss of all rows of all ranks.
    pub fn share_loss(&self, loss: &Tensor) -> Result<(Tensor, Tensor)> {
        let own = mul(loss, cast(self.weight.value(), loss.dtype())?)?;
        let mean = all_reduce(detached(&own), ReduceOp::Mean, &self.group)?;
        Ok((own, mean))
    }

    /// The gradients of the mean loss of all rows, and the same values of `states` on every rank: their means.
    ///
    /// Gradients are reduced in the order in which the backward pass computes them, last variables first; each is free after its
    /// update. Those of variables whose optimizer state is sharded are left to the optimizer.
    pub fn share(
        &self,
        mut gradients: Vec<Option<Gradient>>,
        states: Vec<Variable>,
        optimizer: &Optimizer,
    ) -> Result<Vec<Option<Gradient>>> {
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut shared = vec![None; gradients.len()];
        let put = |bucket: Bucket, shared: &mut Vec<Option<Gradient>>| -> Result<()> {
            for (item, mean) in bucket.reduce(&self.group)? {
                match item {
                    Shared::Gradient(i) => shared[i] = Some(mean.into()),
                    Shared::State(variable) => variable.assign(mean)?,
                }
            }
            Ok(())
        };
        let mut add = |item: Shared, tensor: Tensor, shared: &mut Vec<Option<Gradient>>| -> Result<()> {
            let dtype = tensor.dtype();
            let at = buckets.iter().position(|bucket| bucket.dtype == dtype).unwrap_or_else(|| {
                buckets.push(Bucket::new(dtype));
                buckets.len() - 1
            });
            if buckets[at].bytes + tensor.spec().bytes() > BUCKET {
                let full = std::mem::replace(&mut buckets[at], Bucket::new(dtype));
                put(full, shared)?;
            }
            buckets[at].add(item, tensor);
            Ok(())
        };
        for i in (0..gradients.len()).rev() {
            let Some(gradient) = gradients[i].take() else { continue };
            // Ranks have rows of different indices, and sums in the order of the tree need all of them.
            let gradient = detached(&gradient.dense()?);
            if optimizer.is_sharded(i) {
                // The optimizer reduces it to its shard, updates and gathers: so no other shard waits meanwhile.
                shared[i] = Some(gradient.into());
            } else if gradient.spec().bytes() < SMALL {
                add(Shared::Gradient(i), gradient, &mut shared)?;
            } else {
                shared[i] = Some(all_reduce(gradient, ReduceOp::Mean, &self.group)?.into());
            }
        }
        for variable in states {
            let value = mul(variable.value(), cast(self.weight.value(), variable.dtype())?)?;
            add(Shared::State(variable), value, &mut shared)?;
        }
        for bucket in buckets {
            put(bucket, &mut shared)?;
        }
        Ok(shared)
    }
}

/// Small tensors that are reduced in one message.
struct Bucket {
    dtype: DType,
    items: Vec<(Shared, Tensor)>,
    bytes: usize,
}

impl Bucket {
    fn new(dtype: DType) -> Bucket {
        Bucket { dtype, items: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, item: Shared, tensor: Tensor) {
        self.bytes += tensor.spec().bytes();
        self.items.push((item, tensor));
    }

    /// The means of its tensors.
    fn reduce(mut self, group: &Group) -> Result<Vec<(Shared, Tensor)>> {
        if self.items.len() < 2 {
            let Some((item, tensor)) = self.items.pop() else { return Ok(Vec::new()) };
            return Ok(vec![(item, all_reduce(tensor, ReduceOp::Mean, group)?)]);
        }
        let flat = self.items.iter().map(|(_, tensor)| reshape(tensor, &[-1]));
        let joined = concat(&flat.collect::<Result<Vec<_>>>()?, 0)?;
        let mean = all_reduce(joined, ReduceOp::Mean, group)?;
        let mut first = 0;
        let part = |(item, tensor): (Shared, Tensor)| {
            let (start, end) = (first as isize, (first + tensor.len()) as isize);
            first += tensor.len();
            let shape: Vec<isize> = tensor.shape().iter().map(|&size| size as isize).collect();
            Ok((item, reshape(strided_slice(&mean, &[start], &[end], &[1])?, &shape)?))
        };
        self.items.into_iter().map(part).collect()
    }
}
