//! One update of all variables, in ops.

use super::clip::{Bounds, Part};
use super::optimizer::{Entry, Pace, Parts};
use super::rows::Rows;
use super::{Now, wide};
use taut_autodiff::Variable;
use taut_control::{Loops, cond};
use taut_core::ops::binary::{add, equal, floor_div, mod_, mul, sub, where_};
use taut_core::ops::creation::zeros_like;
use taut_core::ops::index::tensor_scatter_add;
use taut_core::ops::shape::expand_dims;
use taut_core::ops::unary::cast;
use taut_core::record::detached;
use taut_core::{DType, Gradient, Result, Tensor};

impl Parts {
    /// Writes an update into the function that is being traced.
    pub(super) fn update(&self, gradients: &[Option<Gradient>]) -> Result<()> {
        let calls = self.iterations.value();
        let updates = if self.calls > 1 { floor_div(&calls, self.calls as i64)? } else { calls.clone() };
        let rate = match &self.rate {
            Pace::Settable(rate) => rate.value(),
            Pace::Scheduled(schedule) => schedule.rate(&cast(&calls, DType::F64)?)?,
        };
        let shared = self.shared.iter().map(|(_, number)| number.value()).collect();
        let now = Now { rate, step: cast(add(&updates, 1i64)?, DType::F64)?, shared };
        if self.calls > 1 {
            self.accumulate(&now, gradients, &calls)?;
        } else {
            self.update_now(now, gradients)?;
        }
        self.average(&updates)?;
        self.iterations.assign_add(1i64)
    }

    fn update_now(&self, mut now: Now, gradients: &[Option<Gradient>]) -> Result<()> {
        now.shared = self.rule.advance(&now)?;
        write(self.shared.iter().map(|(_, number)| number), &now.shared)?;
        let mut parts = Vec::with_capacity(gradients.len());
        for gradient in gradients {
            parts.push(match gradient {
                None => None,
                Some(Gradient::Sparse(slices)) if self.rule.is_rowwise() => {
                    Some(Part::Sparse(Rows::new(slices)?))
                }
                Some(gradient) => Some(Part::Dense(detached(&gradient.clone().dense()?))),
            });
        }
        let bounds = Bounds::of(self.clip, &parts, 1.0)?;
        for ((entry, part), bounds) in self.entries.iter().zip(parts).zip(&bounds) {
            let step =
                |states: Vec<Tensor>, gradient: Tensor| self.step(entry, &now, bounds, states, gradient);
            let states = match part {
                None => continue,
                Some(Part::Dense(gradient)) => step(entry.states(), gradient)?,
                Some(Part::Sparse(rows)) => rows.update(entry.states(), step)?,
            };
            write(entry.stateful(), &states)?;
        }
        Ok(())
    }

    /// The new value and the new slots of all of a variable, or of some of its rows.
    fn step(
        &self,
        entry: &Entry,
        now: &Now,
        bounds: &Bounds,
        mut states: Vec<Tensor>,
        gradient: Tensor,
    ) -> Result<Vec<Tensor>> {
        let narrow = states[0].dtype();
        let value = cast(&states[0], wide(narrow))?;
        let gradient = bounds.apply(cast(gradient, wide(narrow))?)?;
        let value = if self.decay > 0.0 && entry.decays {
            let lost = mul(mul(&value, self.decay)?, now.rate_as(&value)?)?;
            sub(value, lost)?
        } else {
            value
        };
        let value = self.rule.update(now, value, gradient, &mut states[1..])?;
        states[0] = cast(value, narrow)?;
        Ok(states)
    }

    /// Adds to the sums, and updates if enough was added.
    ///
    /// The update is a loop of one step or none, because loops update their states in place.
    fn accumulate(&self, now: &Now, gradients: &[Option<Gradient>], calls: &Tensor) -> Result<()> {
        let due = equal(mod_(add(calls, 1i64)?, self.calls as i64)?, 0i64)?;
        let perhaps = |body: &dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>>, states: Vec<Tensor>| {
            Loops::new().maximum_iterations(1).while_loop(|_| Ok(due.clone()), body, states)
        };
        let mut parts = Vec::with_capacity(gradients.len());
        for (gradient, entry) in gradients.iter().zip(&self.entries) {
            parts.push(match (gradient, &entry.gradient) {
                (Some(gradient), Some(sum)) => Some(Part::Dense(added(sum.value(), gradient)?)),
                _ => None,
            });
        }
        let share = 1.0 / self.calls as f64;
        let scales = cond(
            &due,
            || Bounds::of(self.clip, &parts, share)?.iter().map(Bounds::scale).collect::<Result<Vec<_>>>(),
            || parts.iter().map(|_| Tensor::constant(1.0, DType::F64)).collect(),
        )?;
        let shared = if now.shared.is_empty() {
            Vec::new()
        } else {
            perhaps(&|shared| self.rule.advance(&Now { shared, ..now.clone() }), now.shared.clone())?
        };
        write(self.shared.iter().map(|(_, number)| number), &shared)?;
        let now = Now { shared, ..now.clone() };
        for ((entry, part), scale) in self.entries.iter().zip(parts).zip(scales) {
            let (Some(Part::Dense(sum)), Some(kept)) = (part, &entry.gradient) else { continue };
            let bounds = Bounds::scaled(scale, self.clip);
            let mut states = entry.states();
            states.push(sum);
            let mut states = perhaps(
                &|mut states: Vec<Tensor>| {
                    let Some(sum) = states.pop() else { return Ok(states) };
                    let nothing = zeros_like(&sum, None)?;
                    let mut states = self.step(entry, &now, &bounds, states, sum)?;
                    states.push(nothing);
                    Ok(states)
                },
                states,
            )?;
            if let Some(sum) = states.pop() {
                kept.assign(sum)?;
            }
            write(entry.stateful(), &states)?;
        }
        Ok(())
    }

    /// Brings the moving averages up to date. Before the first update they are the values themselves.
    fn average(&self, updates: &Tensor) -> Result<()> {
        let Some(momentum) = self.momentum else { return Ok(()) };
        let stays = where_(equal(updates, 0i64)?, Tensor::constant(0.0, DType::F64)?, momentum)?;
        for Entry { variable, average, .. } in &self.entries {
            let Some(average) = average else { continue };
            let narrow = variable.dtype();
            let stays = cast(&stays, wide(narrow))?;
            let (value, old) = (cast(variable.value(), wide(narrow))?, cast(average.value(), wide(narrow))?);
            let new = add(mul(old, &stays)?, mul(value, sub(1.0, stays)?)?)?;
            average.assign(cast(new, narrow)?)?;
        }
        Ok(())
    }
}

impl Entry {
    /// What an update changes: the variable, then its slots.
    fn stateful(&self) -> impl Iterator<Item = &Variable> {
        std::iter::once(&self.variable).chain(self.slots.iter().map(|(_, slot)| slot))
    }

    fn states(&self) -> Vec<Tensor> {
        self.stateful().map(Variable::value).collect()
    }
}

/// Gives variables new values.
fn write<'a>(variables: impl Iterator<Item = &'a Variable>, values: &[Tensor]) -> Result<()> {
    variables.zip(values).try_for_each(|(variable, value)| variable.assign(value))
}

/// A sum with one more gradient.
fn added(sum: Tensor, gradient: &Gradient) -> Result<Tensor> {
    let dtype = sum.dtype();
    match gradient {
        Gradient::Dense(gradient) => add(sum, cast(detached(gradient), dtype)?),
        Gradient::Sparse(slices) => {
            let (indices, values) = (expand_dims(&slices.indices, -1)?, detached(&slices.values));
            tensor_scatter_add(sum, indices, cast(values, dtype)?)
        }
    }
}
