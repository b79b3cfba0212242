//! Loops with shapes that depend on values, such as states that grow: they run op by op.

use super::options::Loops;
use crate::structure::{check_same_specs, check_structure, tensor_paths, tensors};
use taut_autodiff::nest::Nest;
use taut_core::{DType, Error, ErrorKind, Result, Shape, Spec, Tensor, is_tracing};

impl Loops {
    /// Checks the shapes of states against the shape invariants, if there are any.
    pub(super) fn check_shape_invariants(&self, paths: &[String], states: &[Tensor]) -> Result<()> {
        let Some(shapes) = &self.shape_invariants else { return Ok(()) };
        if shapes.len() != states.len() {
            let (got, expected) = (shapes.len(), states.len());
            return Err(Error::value(format!(
                "expected {expected} shape invariants, one per loop variable, got {got}"
            )));
        }
        for ((shape, state), path) in shapes.iter().zip(states).zip(paths) {
            let covers = |(expected, dim): (&Option<usize>, &usize)| expected.is_none_or(|e| e == *dim);
            let fits = shape.len() == state.rank() && shape.iter().zip(state.shape().iter()).all(covers);
            if !fits {
                let shape: Vec<String> =
                    shape.iter().map(|dim| dim.map_or("?".into(), |dim| dim.to_string())).collect();
                let which = if path.is_empty() { String::new() } else { format!(" {path}") };
                let message = format!(
                    "loop variable{which} must have the shape of its invariant, [{}], got {}",
                    shape.join(", "),
                    state.spec()
                );
                return Err(Error::shape(message).help("use None for the dimensions that change"));
            }
        }
        Ok(())
    }

    /// A loop over Rust closures, step by step.
    pub(super) fn run_op_by_op<S: Nest<Owned = S>>(
        &self,
        condition: &dyn Fn(&S) -> Result<Tensor>,
        body: &dyn Fn(S) -> Result<S>,
        mut states: S,
    ) -> Result<S> {
        if is_tracing() {
            let message = "the shapes of loop variables change from step to step";
            return Err(Error::new(ErrorKind::DynamicShape, message)
                .help("give the loop variables their largest shape, and carry how much of it is used"));
        }
        let paths = tensor_paths(&states);
        let types: Vec<DType> = tensors(&states).iter().map(Tensor::dtype).collect();
        self.check_shape_invariants(&paths, &tensors(&states))?;
        for _ in 0..self.maximum_iterations.unwrap_or(usize::MAX) {
            let result = condition(&states)?;
            check_condition(result.spec())?;
            if !result.item::<bool>()? {
                break;
            }
            let after = body(states.rebuild(&mut tensors(&states).into_iter()))?;
            check_structure("the body", &after, "the loop variables", &states)?;
            let list = tensors(&after);
            if let Some(i) = (0..list.len()).find(|&i| list[i].dtype() != types[i]) {
                let before = tensors(&states)[i].spec().clone();
                check_same_specs(&paths[i..=i], &[before], &list[i..=i])?;
            }
            self.check_shape_invariants(&paths, &list)?;
            states = after;
        }
        Ok(states)
    }
}

/// Whether a loop whose body failed with this error while it was traced runs step by step instead: its shapes depend on values,
/// which are known here.
pub(crate) fn runs_op_by_op(error: &Error) -> bool {
    error.kind() == ErrorKind::DynamicShape && !is_tracing()
}

/// Checks that a condition returned a single boolean.
pub(super) fn check_condition(result: &Spec) -> Result<()> {
    if *result == Spec::new(DType::Bool, Shape::scalar()) {
        return Ok(());
    }
    let message = format!("the condition must return a single boolean, got {result}");
    let error = if result.dtype == DType::Bool { Error::shape(message) } else { Error::dtype(message) };
    Err(error.help("reduce it to one value with all() or any()"))
}
