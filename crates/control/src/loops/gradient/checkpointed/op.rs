//! The checkpointed backward pass as an op.

use super::definition::CheckpointedBackward;
use super::{run, second_order};
use crate::loops::schedule::recomputed_steps;
use crate::specs::{index_spec, stacked_spec};
use std::ops::Range;
use std::sync::Arc;
use taut_core::{
    Cost, DType, Differentiable, Error, Gradients, Graph, Kernel, Op, Result, Saves, Set, Spec, Specs,
    Subgraphs, VjpCall,
};
use taut_kernels::{Arg, ViewMut};

impl Op for CheckpointedBackward {
    fn name(&self) -> &'static str {
        "loop_checkpointed_backward"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let signature = self.signature();
        let (expected, got) = (signature.inputs.end(), inputs.len());
        if got != expected {
            return Err(Error::value(format!("the backward pass must have {expected} inputs, got {got}")));
        }
        let buffer = Spec::new(DType::U8, [self.checkpoints, self.forward.checkpoint_bytes()]);
        let limit = self.forward.steps.limit();
        let fits = |positions: Range<usize>, body: Range<usize>, is_stacked: bool| {
            positions.zip(body).all(|(position, body)| {
                let body = self.reverse.input(body);
                if is_stacked {
                    *inputs[position] == stacked_spec(limit, body)
                } else {
                    inputs[position] == body
                }
            })
        };
        let (own, body) = (signature.inputs, signature.body);
        let all_fit = signature.count.of(inputs).iter().all(|count| **count == index_spec())
            && signature.buffer.of(inputs).iter().all(|input| **input == buffer)
            && fits(own.states.positions(), body.states.positions(), false)
            && fits(own.carried(), body.carried(), false)
            && fits(own.rows(), body.rows(), true)
            && fits(own.captures.positions(), body.captures.positions(), false);
        if !all_fit {
            return Err(Error::shape("the inputs must have the specs of the loop's values"));
        }
        let mut outputs: Specs = buffer.into();
        outputs.extend(inputs[own.carried()].iter().map(|spec| (*spec).clone()));
        let slices = signature.body_slice_gradients.positions();
        outputs.extend(slices.map(|output| stacked_spec(limit, self.reverse.output(output))));
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

    /// A backward step for each step of the loop, and the forward steps that the schedule repeats.
    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let steps = self.forward.steps.limit();
        let (advance, reverse) = (self.advance.cost(), self.reverse.cost());
        // Of an unlimited number of steps, the cost of one.
        let (steps, repeated) = if steps == usize::MAX {
            (1, 1)
        } else {
            (steps as u64, recomputed_steps(steps, self.checkpoints))
        };
        let sum = |advance: u64, reverse: u64| {
            reverse.saturating_mul(steps).saturating_add(advance.saturating_mul(repeated))
        };
        let bytes = sum(advance.bytes, reverse.bytes).max(Cost::traffic(inputs, outputs));
        Cost { flops: sum(advance.flops, reverse.flops), bytes }
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("of={}, checkpoints={}", self.forward.name, self.checkpoints)
    }
}

impl Subgraphs for CheckpointedBackward {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        vec![("advance", self.advance.graph()), ("reverse", self.reverse.graph())]
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        changed.advance = Arc::new(self.advance.compiled(change)?);
        changed.reverse = Arc::new(self.reverse.compiled(change)?);
        Ok(Arc::new(changed))
    }

    fn prepare(&self) -> Result<()> {
        self.advance.prepare(self.forward.options)?;
        self.reverse.prepare(self.forward.options)
    }

    fn with_smaller_plans(&self, divisor: usize) -> Result<Option<Arc<dyn Op>>> {
        let (advance, reverse) =
            (self.advance.with_smaller_plan(divisor)?, self.reverse.with_smaller_plan(divisor)?);
        if advance.is_none() && reverse.is_none() {
            return Ok(None);
        }
        let mut smaller = self.clone();
        advance.into_iter().for_each(|body| smaller.advance = Arc::new(body));
        reverse.into_iter().for_each(|body| smaller.reverse = Arc::new(body));
        Ok(Some(Arc::new(smaller)))
    }
}

impl Differentiable for CheckpointedBackward {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves { inputs: Set::ALL, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        second_order::vjp(self, call)
    }
}
