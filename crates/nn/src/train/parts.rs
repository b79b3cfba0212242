//! One training step, and copies of variables.

use super::distribution::Distribution;
use crate::layer::{Layer, Mode, NamedVariables};
use crate::losses::Loss;
use crate::metrics::Metric;
use crate::optimizers::Optimizer;
use std::sync::Arc;
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::unary::check_numerics;
use taut_core::{Gradient, Result, Tensor, with_source_location};
use taut_memory::Location;

/// A batch of inputs and targets.
pub(super) type Batch = (Tensor, Tensor);

/// What a training step uses.
#[derive(Clone)]
pub(super) struct TrainingParts {
    pub model: Arc<dyn Layer>,
    pub loss: Arc<dyn Loss>,
    pub variables: Vec<Variable>,
    pub optimizer: Arc<Optimizer>,
    pub metrics: Vec<(String, Arc<dyn Metric>)>,
    pub checked: bool,
    /// The ranks that train together, if there are several.
    pub distribution: Option<Arc<Distribution>>,
    /// The source location of the trainer, to which the ops of loss, optimizer and metrics are attributed.
    pub at: Location,
}

/// Copies of the values of variables, to restore them.
pub(super) struct SavedValues(Vec<(Variable, Tensor)>);

impl SavedValues {
    pub fn copy_of(variables: impl IntoIterator<Item = Variable>) -> Result<SavedValues> {
        let copies = variables.into_iter().map(|variable| {
            let value = variable.value().copy()?;
            Ok((variable, value))
        });
        Ok(SavedValues(copies.collect::<Result<_>>()?))
    }

    pub fn restore(self) -> Result<()> {
        self.0.into_iter().try_for_each(|(variable, value)| variable.assign(value))
    }
}

/// The variables of a metric, with their names.
pub(super) fn variables_of(metric: &dyn Metric) -> Vec<(String, Variable)> {
    let mut names = NamedVariables::default();
    metric.variables(&mut names);
    names.into_vec()
}

impl TrainingParts {
    /// The mean loss of a batch, and the predictions.
    pub fn forward(&self, x: &Tensor, y: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let predicted = self.model.call(x, mode)?;
        let loss = with_source_location(None, self.at, || self.loss.mean(y, &predicted, None))?;
        Ok((loss, predicted))
    }

    pub fn train(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        if let Some(distribution) = &self.distribution {
            return self.train_together(distribution, x, y);
        }
        let (loss, predicted, gradients) = {
            let tape = GradientTape::new();
            let (mut loss, predicted) = self.forward(x, y, Mode::Train)?;
            if self.checked {
                loss = with_source_location(None, self.at, || check_numerics(loss, "the loss"))?;
            }
            let gradients = tape.gradient(&loss, &self.variables)?;
            (loss, predicted, gradients)
        };
        with_source_location(None, self.at, || {
            self.optimizer.apply(&self.check_gradients(gradients)?)?;
            self.measure(y, &predicted)?;
            Ok(loss)
        })
    }

    fn check_gradients(&self, gradients: Vec<Option<Gradient>>) -> Result<Vec<Option<Gradient>>> {
        if self.checked { gradients.into_iter().map(checked).collect() } else { Ok(gradients) }
    }

    /// A step of one rank. What is checked are values that all ranks share, so that all ranks fail or none.
    fn train_together(&self, distribution: &Distribution, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let states = self.model.named_variables().into_iter().map(|(_, variable)| variable);
        let states: Vec<(Variable, Tensor)> = states
            .filter(|variable| !variable.is_trainable() && variable.dtype().is_float())
            .map(|variable| (variable.clone(), variable.value()))
            .collect();
        let (loss, predicted, gradients) = {
            let tape = GradientTape::new();
            let (loss, predicted) = self.forward(x, y, Mode::Train)?;
            let (own, loss) = with_source_location(None, self.at, || -> Result<_> {
                let (own, mean) = distribution.share_loss(&loss)?;
                Ok((own, if self.checked { check_numerics(mean, "the loss")? } else { mean }))
            })?;
            let gradients = tape.gradient(&own, &self.variables)?;
            (loss, predicted, gradients)
        };
        with_source_location(None, self.at, || {
            let is_updated =
                |(variable, old): &(Variable, Tensor)| !variable.value().same_value_and_links(old);
            let updated = states.into_iter().filter(is_updated).map(|(variable, _)| variable).collect();
            let gradients = distribution.share(gradients, updated, &self.optimizer)?;
            let check = |(i, gradient)| {
                // The optimizer checks shards, which ranks do not share.
                if self.checked && !self.optimizer.is_sharded(i) { checked(gradient) } else { Ok(gradient) }
            };
            let gradients = gradients.into_iter().enumerate().map(check).collect::<Result<Vec<_>>>()?;
            self.optimizer.apply_checked(&gradients, self.checked)?;
            self.measure(y, &predicted)?;
            Ok(loss)
        })
    }

    fn measure(&self, y: &Tensor, predicted: &Tensor) -> Result<()> {
        self.metrics.iter().try_for_each(|(_, metric)| metric.update(y, predicted))
    }

    pub fn test(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let (loss, predicted) = self.forward(x, y, Mode::Infer)?;
        with_source_location(None, self.at, || self.measure(y, &predicted))?;
        Ok(loss)
    }
}

fn checked(gradient: Option<Gradient>) -> Result<Option<Gradient>> {
    let Some(gradient) = gradient else { return Ok(None) };
    let name = "a gradient";
    Ok(Some(match gradient {
        Gradient::Dense(gradient) => Gradient::Dense(check_numerics(gradient, name)?),
        Gradient::Sparse(mut slices) => {
            slices.values = check_numerics(slices.values, name)?;
            Gradient::Sparse(slices)
        }
    }))
}
