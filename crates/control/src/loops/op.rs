//! The loop as an op: what interpreters ask of it.

use super::definition::LoopOp;
use super::gradient;
use super::prune::prune_loop;
use super::run;
use super::signature::{BodyInput, StepCount};
use super::vmap::vmap_loop;
use crate::specs::{index_spec, stacked_spec};
use std::sync::Arc;
use taut_core::rows::RowRule;
use taut_core::{
    Cost, DType, Differentiable, Error, Gradients, Graph, Kernel, Op, Outputs, PrunedOp, Result, Saves, Set,
    Spec, Specs, Subgraphs, VjpCall, VmapCall,
};
use taut_kernels::{Arg, ViewMut};

impl LoopOp {
    /// Checks the inputs against the body's.
    fn check_inputs(&self, inputs: &[&Spec]) -> Result<()> {
        let signature = self.signature();
        let (expected, got) = (signature.inputs.len(), inputs.len());
        if got != expected {
            return Err(Error::value(format!("the loop must have {expected} inputs, got {got}")));
        }
        if let Some(count) = signature.inputs.count.first()
            && *inputs[count] != index_spec()
        {
            let message = format!("the number of steps must be {}, got {}", index_spec(), inputs[count]);
            return Err(Error::value(message));
        }
        for (position, spec) in self.body.inputs().enumerate() {
            let kind = signature.body_inputs.kind(position);
            let Some(input) = signature.inputs.source(kind).map(|input| inputs[input]) else { continue };
            let (expected, what) = match kind {
                BodyInput::Slice(i) => (stacked_spec(self.steps.limit(), spec), format!("slice {i}")),
                BodyInput::State(k) => (spec.clone(), format!("state {k}")),
                BodyInput::Capture(i) => (spec.clone(), format!("capture {i}")),
                BodyInput::Index => continue,
            };
            if *input != expected {
                return Err(Error::shape(format!("{what} must be {expected}, got {input}")));
            }
        }
        Ok(())
    }

    /// Checks that a step leaves the specs of the states unchanged.
    fn check_states(&self) -> Result<()> {
        let outputs = self.signature().body_outputs.states;
        for k in 0..self.arity.states {
            let (old, new) = (self.state_spec(k), self.body.output(outputs.at(k)));
            if old != new {
                return Err(Error::shape(format!("state {k} is {old} before a step and {new} after it")));
            }
        }
        Ok(())
    }
}

impl Op for LoopOp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        self.check_inputs(inputs)?;
        self.check_states()?;
        let signature = self.signature().outputs;
        let mut outputs: Specs = (0..self.arity.states).map(|k| self.state_spec(k).clone()).collect();
        outputs.extend(signature.count.first().map(|_| index_spec()));
        outputs.extend((0..self.arity.stacks).map(|k| stacked_spec(self.steps.limit(), self.stack_spec(k))));
        if let (Some(checkpoints), Some(position)) = (self.checkpoints, signature.checkpoint_buffer.first()) {
            outputs.insert(position, Spec::new(DType::U8, [checkpoints.count, self.checkpoint_bytes()]));
        }
        Ok(outputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        run::run(self, inputs, outputs, scratch)
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        run::scratch_bytes(self)
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |input| input)
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        vmap_loop(self, call)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let one = self.body.cost();
        // Of an unlimited number of steps, the cost of one.
        let steps = if self.steps.limit() == usize::MAX { 1 } else { self.steps.limit() as u64 };
        // The calls of the body read captures, and update states in place.
        let slices = self.signature().inputs.slices.of(inputs);
        let traffic = Cost::traffic(slices, &outputs[self.arity.states..]);
        let bytes = one.bytes.saturating_mul(steps).max(traffic);
        Cost { flops: one.flops.saturating_mul(steps), bytes }
    }

    fn attributes(&self) -> String {
        let steps = match self.steps {
            StepCount::Fixed(steps) => format!("steps={steps}"),
            StepCount::While(usize::MAX) => "steps=while condition".into(),
            StepCount::While(limit) => format!("steps=while condition, at most {limit}"),
            StepCount::Input(limit) => format!("steps=first input, at most {limit}"),
        };
        let counts = [
            ("states", self.arity.states),
            ("slices", self.arity.slices),
            ("stacks", self.arity.stacks),
            ("first_index", self.first_index),
            ("checkpoints", self.checkpoints.map_or(0, |checkpoints| checkpoints.count)),
        ];
        let mut parts = vec![steps];
        parts.extend(
            counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}={count}")),
        );
        if self.reverse {
            parts.push("reverse".into());
        }
        parts.join(", ")
    }
}

impl Subgraphs for LoopOp {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        let condition = self.condition.iter().map(|condition| ("condition", condition.graph()));
        condition.chain([("body", self.body.graph())]).collect()
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        changed.body = Arc::new(self.body.compiled(change)?);
        if let Some(condition) = &self.condition {
            changed.condition = Some(Arc::new(condition.compiled(change)?));
        }
        Ok(Arc::new(changed))
    }

    fn prepare(&self) -> Result<()> {
        self.body.prepare(self.options)?;
        self.condition.as_ref().map_or(Ok(()), |condition| condition.prepare(self.options))
    }

    fn with_smaller_plans(&self, divisor: usize) -> Result<Option<Arc<dyn Op>>> {
        let Some(body) = self.body.with_smaller_plan(divisor)? else { return Ok(None) };
        Ok(Some(Arc::new(LoopOp { body: Arc::new(body), ..self.clone() })))
    }

    fn prune_outputs(&self, used: &[bool]) -> Option<PrunedOp> {
        prune_loop(self, used)
    }
}

impl Differentiable for LoopOp {
    fn forward_with_residuals(&self, wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        let forward = gradient::forward_with_residuals(self, wanted)?;
        Ok(forward.map(|forward| -> Arc<dyn Op> { Arc::new(forward) }))
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(gradient::saves(self))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        gradient::vjp(self, call)
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}
