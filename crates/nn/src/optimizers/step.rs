//! One update of all variables, as ops.

use super::clip::{Clipping, UpdateGradient};
use super::optimizer::{OptimizerParts, RateSource, TrackedVariable};
use super::rows::SparseRows;
use super::{UpdateContext, compute_dtype};
use taut_autodiff::Variable;
use taut_control::{Loops, cond};
use taut_core::ops::binary::{add, equal, floor_div, mod_, mul, sub, where_};
use taut_core::ops::creation::zeros_like;
use taut_core::ops::index::tensor_scatter_add;
use taut_core::ops::shape::expand_dims;
use taut_core::ops::unary::cast;
use taut_core::record::detached;
use taut_core::{DType, Gradient, Result, Tensor};
use taut_distribute::{own_shard, replace_shards};

impl OptimizerParts {
    /// Traces an update.
    pub(super) fn update(&self, gradients: &[Option<Gradient>]) -> Result<()> {
        let calls = self.iterations.value();
        let updates = if self.calls > 1 { floor_div(&calls, self.calls as i64)? } else { calls.clone() };
        let rate = match &self.rate {
            RateSource::Settable(rate) => rate.value(),
            RateSource::Scheduled(schedule) => schedule.rate(&cast(&calls, DType::F64)?)?,
        };
        let shared = self.shared.iter().map(|(_, number)| number.value()).collect();
        let context = UpdateContext { rate, step: cast(add(&updates, 1i64)?, DType::F64)?, shared };
        if self.calls > 1 {
            self.accumulate(&context, gradients, &calls)?;
        } else {
            self.update_now(context, gradients)?;
        }
        self.average(&updates)?;
        self.iterations.assign_add(1i64)
    }

    fn update_now(&self, mut context: UpdateContext, gradients: &[Option<Gradient>]) -> Result<()> {
        context.shared = self.rule.advance(&context)?;
        assign_all(self.shared.iter().map(|(_, number)| number), &context.shared)?;
        let mut parts = Vec::with_capacity(gradients.len());
        for (gradient, entry) in gradients.iter().zip(&self.entries) {
            let sharding = self.sharding.as_ref().filter(|_| entry.is_sharded);
            parts.push(match (gradient, sharding) {
                (None, _) => None,
                (Some(Gradient::Dense(shard)), Some(group)) => {
                    Some(UpdateGradient::Shard(detached(shard), group.clone()))
                }
                (Some(Gradient::Sparse(slices)), _) if self.rule.is_rowwise() => {
                    Some(UpdateGradient::Sparse(SparseRows::new(slices)?))
                }
                (Some(gradient), _) => Some(UpdateGradient::Dense(detached(&gradient.clone().dense()?))),
            });
        }
        let clipping = Clipping::for_gradients(self.clip, &parts, 1.0)?;
        for ((entry, part), clipping) in self.entries.iter().zip(parts).zip(&clipping) {
            let step = |states: Vec<Tensor>, gradient: Tensor| {
                self.step(entry, &context, clipping, states, gradient)
            };
            let states = match part {
                None => continue,
                Some(UpdateGradient::Dense(gradient)) => step(entry.states(), gradient)?,
                Some(UpdateGradient::Sparse(rows)) => rows.update(entry.states(), step)?,
                Some(UpdateGradient::Shard(gradient, group)) => {
                    let mut states = entry.states();
                    let whole = states[0].clone();
                    states[0] = own_shard(&whole, &group)?;
                    let mut states = step(states, gradient)?;
                    states[0] = replace_shards(whole, &states[0], &group)?;
                    states
                }
            };
            assign_all(entry.variables(), &states)?;
        }
        Ok(())
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

    /// Adds gradients to the accumulated sums, and updates after every `calls` calls.
    ///
    /// The update is a loop of at most one step, because loops update their states in place.
    fn accumulate(
        &self,
        context: &UpdateContext,
        gradients: &[Option<Gradient>],
        calls: &Tensor,
    ) -> Result<()> {
        let due = equal(mod_(add(calls, 1i64)?, self.calls as i64)?, 0i64)?;
        let if_due = |body: &dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>>, states: Vec<Tensor>| {
            Loops::new().maximum_iterations(1).while_loop(|_| Ok(due.clone()), body, states)
        };
        let mut parts = Vec::with_capacity(gradients.len());
        for (gradient, entry) in gradients.iter().zip(&self.entries) {
            parts.push(match (gradient, &entry.gradient) {
                (Some(gradient), Some(sum)) => {
                    Some(UpdateGradient::Dense(add_gradient(sum.value(), gradient)?))
                }
                _ => None,
            });
        }
        let share = 1.0 / self.calls as f64;
        let scales = cond(
            &due,
            || {
                Clipping::for_gradients(self.clip, &parts, share)?
                    .iter()
                    .map(Clipping::scale)
                    .collect::<Result<Vec<_>>>()
            },
            || parts.iter().map(|_| Tensor::constant(1.0, DType::F64)).collect(),
        )?;
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
            let (Some(UpdateGradient::Dense(sum)), Some(kept)) = (part, &entry.gradient) else { continue };
            let clipping = Clipping::scaled(scale, self.clip);
            let mut states = entry.states();
            states.push(sum);
            let mut states = if_due(
                &|mut states: Vec<Tensor>| {
                    let Some(sum) = states.pop() else { return Ok(states) };
                    let cleared = zeros_like(&sum, None)?;
                    let mut states = self.step(entry, &context, &clipping, states, sum)?;
                    states.push(cleared);
                    Ok(states)
                },
                states,
            )?;
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
