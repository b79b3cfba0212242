//! Training with several ranks: data, steps, metrics and checkpoints that ranks share.

use super::callback::Flow;
use super::checkpoint::Checkpoint;
use super::distribution::Distribution;
use super::parts::{Batch, SavedValues, TrainingParts, variables_of};
use super::state::EpochProgress;
use super::trainer::Trainer;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use taut_core::ops::random;
use taut_core::{Error, Result, Shape, Tensor};
use taut_data::{Dataset, Iter, Position};
use taut_distribute::{Digest, Group, RankPlan, ReduceOp, all_reduce, check_equal, own_shard, tree_sum};
use taut_function::function;
use taut_memory::Location;

/// The prefix of the names of the optimizer's state in checkpoints.
const OPTIMIZER: &str = "optimizer.";

impl Trainer {
    /// Trains together with the other ranks of a group: each rank has a copy of the model and its own batches, and every step updates
    /// all copies alike, by the gradient of the mean loss over the rows of all ranks.
    ///
    /// All ranks give the same model, optimizer and data. [`Trainer::fit`] deals out the batches of the data in turn: of `n` ranks, rank
    /// `r` has the batches `r`, `r + n`, and so on; a rank without a batch in the last step takes part with weight 0. Gradients are
    /// reduced in place as the backward pass computes them, and each is free after its update: beside one process, a step needs the
    /// scratch memory of the largest reduction, of at most 6 MiB, and the buckets of small gradients. Variables must be equal at the
    /// start, which is checked; moving averages of batch normalisation become means over ranks. Random numbers in the model differ
    /// between ranks.
    ///
    /// Rank 0 writes checkpoints, which every rank reads, and which resume on any number of ranks. Losses and metrics in the history are
    /// those of all ranks; [`Trainer::scores`] during an epoch are this rank's. A metric's variables must be sums over samples.
    #[track_caller]
    pub fn distribute(self, group: &Group) -> Result<Trainer> {
        let at = Location::caller();
        if let Some(sharding) = self.parts.optimizer.sharding()
            && !sharding.is(group)
        {
            let message = format!(
                "the optimizer must be sharded over the trainer's group, got {sharding:?} and {group:?}"
            );
            return Err(Error::value(message).at(at));
        }
        let distribution = Distribution::new(group).map_err(|error| error.at(at))?;
        Ok(self.change(|parts| parts.distribution = Some(Arc::new(distribution))))
    }

    /// The group of ranks, if the trainer is distributed.
    pub fn group(&self) -> Option<&Group> {
        self.parts.distribution.as_ref().map(|distribution| &distribution.group)
    }

    /// The bytes and messages of one rank of `ranks` in a step on batches of these specs, each rank with such a batch. Computes nothing,
    /// needs no MPI and no other process, and holds for every rank.
    ///
    /// With an [optimizer that is sharded](crate::optimizers::Optimizer::sharded), its state is planned for that many ranks.
    #[track_caller]
    pub fn plan_for(&self, ranks: usize, x: &Tensor, y: &Tensor) -> Result<RankPlan> {
        let at = Location::caller();
        let plan = || {
            let group = Group::paper(ranks)?;
            let parts = TrainingParts {
                optimizer: Arc::new(self.parts.optimizer.for_group(&group)?),
                distribution: Some(Arc::new(Distribution::new(&group)?)),
                ..(*self.parts).clone()
            };
            let step = self.traced("train step", function(move |(x, y): &Batch| parts.train(x, y)));
            Ok(RankPlan::new(&*step.plan((x, y))?, ranks))
        };
        plan().map_err(|error: Error| error.at(at))
    }

    /// Does something with the other ranks, if there are any.
    pub(super) fn together(&self, work: impl FnOnce(&Distribution) -> Result<()>) -> Result<()> {
        self.parts.distribution.as_deref().map_or(Ok(()), work)
    }

    pub(super) fn ranks(&self) -> usize {
        self.group().map_or(1, Group::size)
    }

    /// This rank's batches.
    pub(super) fn own_data(&self, data: &Dataset<Batch>) -> Result<Dataset<Batch>> {
        match self.group() {
            Some(group) if group.size() > 1 => data.shard(group.size() as u64, group.rank() as u64),
            _ => Ok(data.clone()),
        }
    }

    /// This rank's batches from a position on, which counts the batches of all ranks.
    pub(super) fn iterate(&mut self, data: &Dataset<Batch>, position: &Position) -> Result<Iter<Batch>> {
        let ranks = self.ranks() as u64;
        let Position { epoch, delivered } = *position;
        if delivered.is_multiple_of(ranks) {
            self.batches_before = 0;
            return self.own_data(data)?.iter_from(&Position { epoch, delivered: delivered / ranks });
        }
        // Another number of ranks saved this position.
        self.batches_before = delivered;
        self.own_data(&data.skip(delivered))?.iter_from(&Position::start_of(epoch))
    }

    /// The position in the batches of all ranks.
    pub(super) fn global_position(&self, own: &Position) -> Position {
        let ranks = self.ranks() as u64;
        // A rank of a sharded dataset has delivered one batch per step; all ranks are at the same step.
        Position { epoch: own.epoch, delivered: self.batches_before + own.delivered * ranks }
    }

    /// Whether a dataset from which nothing more comes is empty.
    pub(super) fn is_empty(&self, data: &Dataset<Batch>, batches: &Iter<Batch>) -> Result<bool> {
        // With fewer batches than ranks, some ranks have none.
        if self.ranks() > 1 {
            Ok(data.iter()?.next().is_none())
        } else {
            Ok(batches.position().delivered == 0)
        }
    }

    /// Whether any rank has callbacks: without, ranks need not ask each other after each step whether one stops.
    pub(super) fn agree_on_callbacks(&mut self, has_callbacks: bool) -> Result<()> {
        if let Some(distribution) = &self.parts.distribution {
            self.some_rank_may_stop = distribution.any("whether there are callbacks", has_callbacks)?;
        }
        Ok(())
    }

    /// Whether all ranks go on: they stop if one does.
    pub(super) fn agree_on_flow(&self, flow: Flow) -> Result<Flow> {
        let Some(distribution) = self.parts.distribution.as_ref().filter(|_| self.some_rank_may_stop) else {
            return Ok(flow);
        };
        let stops = distribution.any("whether training stops", flow == Flow::Stop)?;
        Ok(if stops { Flow::Stop } else { Flow::Continue })
    }

    /// A step of all ranks, of which this one has a batch or none: the number of rows of all, and their loss. `None` if no rank has a batch.
    #[track_caller]
    pub(super) fn next_step_together(
        &self,
        distribution: &Distribution,
        data: &Dataset<Batch>,
        batch: Option<Batch>,
    ) -> Result<Option<(usize, f64)>> {
        distribution.check_intact()?;
        let rows = batch.as_ref().map_or(0, |(x, _)| x.shape().first().copied().unwrap_or(1));
        let total = distribution.agree_on_rows(rows)?;
        if total == 0 {
            return Ok(None);
        }
        if let Some((x, y)) = batch {
            return Ok(Some((total, self.run_step(&x, &y)?)));
        }
        // The rank takes part with weight 0 and any batch, which must not count in its metrics.
        let Some(other) = data.iter()?.next() else { return Ok(None) };
        let (x, y) = other?;
        let sums = self.parts.metrics.iter().flat_map(|(_, metric)| variables_of(&**metric));
        let kept = SavedValues::copy_of(sums.map(|(_, variable)| variable))?;
        let loss = self.run_step(&x, &y)?;
        kept.restore()?;
        Ok(Some((total, loss)))
    }

    #[track_caller]
    pub(super) fn run_step_together(
        &self,
        distribution: &Distribution,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<f64> {
        distribution.check_intact()?;
        let group = &distribution.group;
        let run = || {
            distribution.check_once(|| {
                check_equal(&self.shared_variables(), group)?;
                group.check_same_plan(&*self.programs().step.plan((x, y))?)
            })?;
            let (seed, counter) = random::state();
            random::set_state((seed_of_rank(seed, group.rank()), counter));
            let loss = self.run_own_step(x, y);
            random::set_state((seed, random::state().1));
            loss
        };
        run()
            .inspect_err(|error| distribution.note_failure(error))
            .map_err(|error: Error| error.about(format_args!("rank {} of {}", group.rank(), group.size())))
    }

    /// The variables that must be equal on all ranks.
    fn shared_variables(&self) -> Vec<(String, taut_autodiff::Variable)> {
        let shards = self.shards();
        let all = self.parts.model.named_variables().into_iter().chain(
            self.parts
                .optimizer
                .named_variables()
                .into_iter()
                .map(|(name, variable)| (format!("{OPTIMIZER}{name}"), variable)),
        );
        all.filter(|(name, _)| !shards.contains_key(name)).collect()
    }

    /// The names of sharded state in checkpoints, with the shapes of the whole.
    fn shards(&self) -> BTreeMap<String, Shape> {
        let names = self.parts.optimizer.sharded_names().into_iter();
        names.map(|(name, shape)| (format!("{OPTIMIZER}{name}"), shape)).collect()
    }

    /// Makes the sums of metrics those of all ranks.
    pub(super) fn sum_metrics(&self) -> Result<()> {
        let Some(group) = self.group().filter(|group| group.size() > 1) else { return Ok(()) };
        for (_, metric) in &self.parts.metrics {
            for (_, variable) in variables_of(&**metric) {
                variable.assign(all_reduce(variable.value().copy()?, ReduceOp::Sum, group)?)?;
            }
        }
        Ok(())
    }

    /// The sums over the ranks' own data.
    pub(super) fn sum_over_ranks(&self, own: EpochProgress) -> Result<EpochProgress> {
        let Some(group) = self.group() else { return Ok(own) };
        let (steps, samples, loss) = own.sums();
        let all =
            group.all_gather_words("sums of losses", &[steps as u64, samples as u64, loss.to_bits()])?;
        let column = |i: usize| all.iter().skip(i).step_by(3);
        let losses = column(2).map(|bits| f64::from_bits(*bits)).collect();
        let loss = tree_sum(losses, |a, b| Ok::<_, Error>(a + b))?.unwrap_or(0.0);
        Ok(EpochProgress::of_sums(column(0).sum::<u64>() as usize, column(1).sum::<u64>() as usize, loss))
    }

    /// Writes a checkpoint: rank 0 does, with the shards of all.
    #[track_caller]
    pub(super) fn save_shared(
        &self,
        variables: &Checkpoint,
        path: &Path,
        more: &[(String, Tensor)],
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let at = Location::caller();
        let Some(group) = self.group() else { return variables.save_with(path, more, metadata) };
        let saved = variables.save_gathered(path, more, metadata, &self.shards(), group);
        saved.map_err(|error| error.about(path.display()).at(at))
    }

    /// Replaces the state that this rank has shards of by its shards.
    pub(super) fn take_own_shards(&self, tensors: &mut [(String, Tensor)]) -> Result<()> {
        let (Some(group), shards) = (self.parts.optimizer.sharding(), self.shards()) else { return Ok(()) };
        for (name, tensor) in tensors {
            if shards.get(name).is_some_and(|shape| shape == tensor.shape()) {
                *tensor = own_shard(&*tensor, group)?;
            }
        }
        Ok(())
    }
}

/// Another seed for each rank, and the same one for rank 0.
fn seed_of_rank(seed: u64, rank: usize) -> u64 {
    if rank == 0 {
        return seed;
    }
    let mut digest = Digest::default();
    digest.word(seed);
    digest.word(rank as u64);
    digest.value()
}
