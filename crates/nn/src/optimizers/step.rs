//! One update of all variables, as ops.

use super::clip::{Clip, Clipping, UpdateGradient};
use super::optimizer::{OptimizerParts, RateSource, TrackedVariable};
use super::rows::SparseRows;
use super::{UpdateContext, compute_dtype};
use taut_autodiff::Variable;
use taut_control::{Loops, cond};
use taut_core::ops::binary::{add, equal, floor_div, mod_, mul, sub, where_};
use taut_core::ops::creation::zeros_like;
use taut_core::ops::index::tensor_scatter_add;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::expand_dims;
use taut_core::ops::unary::{cast, check_numerics};
use taut_core::record::detached;
use taut_core::{DType, Gradient, Result, Tensor};
use taut_distribute::{Group, ReduceOp, all_reduce, own_shard, reduce_shard, replace_shards};

impl OptimizerParts {
    /// Traces an update.
    pub(super) fn update(&self, gradients: &[Option<Gradient>], check_shards: bool) -> Result<()> {
        let calls = self.iterations.value();
        let updates = if self.calls > 1 { floor_div(&calls, self.calls as i64)? } else { calls.clone() };
        let rate = match &self.rate {
            RateSource::Settable(rate) => rate.value(),
            RateSource::Scheduled(schedule) => schedule.rate(&cast(&calls, DType::F64)?)?,
        };
        let shared = self.shared.iter().map(|(_, number)| number.value()).collect();
        let context = UpdateContext { rate, step: cast(add(&updates, 1i64)?, DType::F64)?, shared };
        if self.calls > 1 {
            self.accumulate(&context, gradients, check_shards, &calls)?;
        } else {
            self.update_now(context, gradients, check_shards)?;
        }
        self.average(&updates)?;
        self.iterations.assign_add(1i64)
    }

    fn update_now(
        &self,
        mut context: UpdateContext,
        gradients: &[Option<Gradient>],
        check_shards: bool,
    ) -> Result<()> {
        context.shared = self.rule.advance(&context)?;
        assign_all(self.shared.iter().map(|(_, number)| number), &context.shared)?;
        let prepare = |i: usize| self.prepare(gradients[i].as_ref(), &self.entries[i], check_shards);
        // Shards are reduced, updated and gathered variable by variable, in the order of the backward pass.
        let mut order: Vec<usize> = (0..gradients.len()).collect();
        if self.sharding.is_some() {
            order.reverse();
        }
        let mut clippings = vec![Clipping::default(); gradients.len()];
        let mut parts = vec![None; gradients.len()];
        // A norm is that of reduced gradients, and may be that of all.
        let needs_norms = matches!(self.clip, Some(Clip::Norm(_) | Clip::GlobalNorm(_)));
        if needs_norms {
            order.iter().try_for_each(|&i| prepare(i).map(|part| parts[i] = part))?;
            clippings = Clipping::for_gradients(self.clip, &parts, 1.0)?;
        }
        for i in order {
            let entry = &self.entries[i];
            if !needs_norms {
                parts[i] = prepare(i)?;
                clippings[i] = Clipping::for_gradients(self.clip, &parts[i..=i], 1.0)?.remove(0);
            }
            let step = |states: Vec<Tensor>, gradient: Tensor| {
                self.step(entry, &context, &clippings[i], states, gradient)
            };
            let states = match parts[i].take() {
                None => continue,
                Some(UpdateGradient::Dense(gradient)) => step(entry.states(), gradient)?,
                Some(UpdateGradient::Sparse(rows)) => rows.update(entry.states(), step)?,
                Some(UpdateGradient::Shard(gradient, group)) => {
                    update_shard(entry.states(), &group, |states| step(states, gradient))?
                }
            };
            assign_all(entry.variables(), &states)?;
        }
        Ok(())
    }

    /// A gradient as updates use it: rows, all elements, or this rank's shard of the mean over ranks.
    fn prepare(
        &self,
        gradient: Option<&Gradient>,
        entry: &TrackedVariable,
        check_shards: bool,
    ) -> Result<Option<UpdateGradient>> {
        let Some(gradient) = gradient else { return Ok(None) };
        Ok(Some(match (gradient, self.sharding_of(entry)) {
            (gradient, Some(group)) => {
                UpdateGradient::Shard(shard_of_mean(gradient, group, check_shards)?, group.clone())
            }
            (Gradient::Sparse(slices), None) if self.rule.is_rowwise() => {
                UpdateGradient::Sparse(SparseRows::new(slices)?)
            }
            (gradient, None) => UpdateGradient::Dense(detached(&gradient.clone().dense()?)),
        }))
    }

    /// The new value and the new slots of a variable, or of some of its rows.
    fn step(
        &self,
        entry: &TrackedVariable,
        context: &UpdateContext,
        clipping: &Clipping,
        mut states: Vec<Tensor>,
        gradient: Tensor,
    ) -> Result<Vec<Tensor>> {
        let narrow = states[0].dtype();
        let value = cast(&states[0], compute_dtype(narrow))?;
        let gradient = clipping.apply(cast(gradient, compute_dtype(narrow))?)?;
        let value = if self.decay > 0.0 && entry.decays {
            let decayed = mul(mul(&value, self.decay)?, context.rate_as(&value)?)?;
            sub(value, decayed)?
        } else {
            value
        };
        let value = self.rule.update(context, value, gradient, &mut states[1..])?;
        states[0] = cast(value, narrow)?;
        Ok(states)
    }

    /// The ranks over which the slots of a variable are sharded.
    fn sharding_of(&self, entry: &TrackedVariable) -> Option<&Group> {
        self.sharding.as_ref().filter(|_| entry.is_sharded)
    }

    /// Adds gradients to the accumulated sums, and updates after every `calls` calls.
    ///
    /// The update is a loop of at most one step, because loops update their states in place.
    fn accumulate(
        &self,
        context: &UpdateContext,
        gradients: &[Option<Gradient>],
        check_shards: bool,
        calls: &Tensor,
    ) -> Result<()> {
        let due = equal(mod_(add(calls, 1i64)?, self.calls as i64)?, 0i64)?;
        let if_due = |body: &dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>>, states: Vec<Tensor>| {
            Loops::new().maximum_iterations(1).while_loop(|_| Ok(due.clone()), body, states)
        };
        let mut parts = vec![None; gradients.len()];
        for i in (0..gradients.len()).rev() {
            let entry = &self.entries[i];
            let (Some(gradient), Some(sum)) = (&gradients[i], &entry.gradient) else { continue };
            parts[i] = Some(match self.sharding_of(entry) {
                Some(group) => {
                    let shard = shard_of_mean(gradient, group, check_shards)?;
                    UpdateGradient::Shard(add_gradient(sum.value(), &shard.into())?, group.clone())
                }
                None => UpdateGradient::Dense(add_gradient(sum.value(), gradient)?),
            });
        }
        let share = 1.0 / self.calls as f64;
        let scales = || -> Result<Vec<Tensor>> {
            Clipping::for_gradients(self.clip, &parts, share)?.iter().map(Clipping::scale).collect()
        };
        // The norm of shards is a collective: those stay outside of branches, where the plan counts them.
        let scales = if self.sharding.is_some() {
            scales()?
        } else {
            cond(&due, scales, || parts.iter().map(|_| Tensor::constant(1.0, DType::F64)).collect())?
        };
        let shared = if context.shared.is_empty() {
            Vec::new()
        } else {
            if_due(
                &|shared| self.rule.advance(&UpdateContext { shared, ..context.clone() }),
                context.shared.clone(),
            )?
        };
        assign_all(self.shared.iter().map(|(_, number)| number), &shared)?;
        let context = UpdateContext { shared, ..context.clone() };
        for ((entry, part), scale) in self.entries.iter().zip(parts).zip(scales) {
            let Some(kept) = &entry.gradient else { continue };
            let clipping = Clipping::scaled(scale, self.clip);
            // The last state is the sum.
            let update = |states: Vec<Tensor>| {
                if_due(
                    &|mut states: Vec<Tensor>| {
                        let Some(sum) = states.pop() else { return Ok(states) };
                        let cleared = zeros_like(&sum, None)?;
                        let mut states = self.step(entry, &context, &clipping, states, sum)?;
                        states.push(cleared);
                        Ok(states)
                    },
                    states,
                )
            };
            let with = |sum: Tensor| entry.states().into_iter().chain([sum]).collect();
            let mut states = match part {
                Some(UpdateGradient::Dense(sum)) => update(with(sum))?,
                Some(UpdateGradient::Shard(sum, group)) => update_shard(with(sum), &group, update)?,
                _ => continue,
            };
            if let Some(sum) = states.pop() {
                kept.assign(sum)?;
            }
            assign_all(entry.variables(), &states)?;
        }
        Ok(())
    }

    /// Updates the moving averages. Before the first update they equal the values.
    fn average(&self, updates: &Tensor) -> Result<()> {
        let Some(momentum) = self.momentum else { return Ok(()) };
        let stays = where_(equal(updates, 0i64)?, Tensor::constant(0.0, DType::F64)?, momentum)?;
        for TrackedVariable { variable, average, .. } in &self.entries {
            let Some(average) = average else { continue };
            let narrow = variable.dtype();
            let stays = cast(&stays, compute_dtype(narrow))?;
            let (value, old) = (
                cast(variable.value(), compute_dtype(narrow))?,
                cast(average.value(), compute_dtype(narrow))?,
            );
            let new = add(mul(old, &stays)?, mul(value, sub(1.0, stays)?)?)?;
            average.assign(cast(new, narrow)?)?;
        }
        Ok(())
    }
}

impl TrackedVariable {
    /// The variable, then its slots: what an update changes.
    fn variables(&self) -> impl Iterator<Item = &Variable> {
        std::iter::once(&self.variable).chain(self.slots.iter().map(|(_, slot)| slot))
    }

    fn states(&self) -> Vec<Tensor> {
        self.variables().map(Variable::value).collect()
    }
}

/// This rank's shard of the mean of a gradient over ranks.
fn shard_of_mean(gradient: &Gradient, group: &Group, check: bool) -> Result<Tensor> {
    let gradient = detached(&gradient.clone().dense()?);
    let shard = reduce_shard(gradient, ReduceOp::Mean, group)?;
    if check { check_shard(shard, group) } else { Ok(shard) }
}

/// A shard of a gradient, and an error on all ranks if a shard of one of them is not finite.
fn check_shard(shard: Tensor, group: &Group) -> Result<Tensor> {
    // Zero; NaN if an element is not finite. Multiplied by one, a shard keeps its bits, and waits for the check.
    let zero = all_reduce(sum(mul(&shard, 0.0)?, None, false)?, ReduceOp::Sum, group)?;
    let one = add(zero, 1.0)?;
    mul(shard, check_numerics(one, "a gradient")?)
}

/// Updates this rank's shard of a variable, which is the first state and whole, and gathers the others' shards.
fn update_shard(
    mut states: Vec<Tensor>,
    group: &Group,
    update: impl FnOnce(Vec<Tensor>) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let whole = states[0].clone();
    states[0] = own_shard(&whole, group)?;
    let mut states = update(states)?;
    states[0] = replace_shards(whole, &states[0], group)?;
    Ok(states)
}

/// Assigns values to variables.
fn assign_all<'a>(variables: impl Iterator<Item = &'a Variable>, values: &[Tensor]) -> Result<()> {
    variables.zip(values).try_for_each(|(variable, value)| variable.assign(value))
}

/// Adds a gradient to a sum.
fn add_gradient(sum: Tensor, gradient: &Gradient) -> Result<Tensor> {
    let dtype = sum.dtype();
    match gradient {
        Gradient::Dense(gradient) => add(sum, cast(detached(gradient), dtype)?),
        Gradient::Sparse(slices) => {
            let (indices, values) = (expand_dims(&slices.indices, -1)?, detached(&slices.values));
            tensor_scatter_add(sum, indices, cast(values, dtype)?)
        }
    }
}
