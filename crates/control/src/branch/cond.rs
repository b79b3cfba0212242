//! `cond` and `switch_case`.

use super::definition::BranchOp;
use crate::captures::{merge_captures, with_captures};
use crate::context::body_options;
use crate::structure::{check_structure, tensor_paths, tensors};
use crate::variables::{assign, variables};
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_autodiff::nest::Nest;
use taut_core::graph::{ExternalState, Traced, trace_writing};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, ErrorKind, Result, Shape, Spec, Tensor, apply_at, is_tracing};
use taut_memory::Location;

/// A branch of [`switch_case`].
pub type Case<'a, R> = Box<dyn FnOnce() -> Result<R> + 'a>;

/// Calls `yes` if `condition` is true, else `no`; returns the result.
///
/// Only one of them runs: outside of a trace, the other is never called; in a traced function, both are traced, and the one
/// that is not selected takes no time, and no memory beyond that of the other.
///
/// ```
/// use taut_control::cond;
/// use taut_core::{Tensor, ops::binary::less};
/// let x = Tensor::scalar(-2.0f32)?;
/// let size = cond(less(&x, 0.0)?, || -&x, || Ok(x.clone()))?;
/// assert_eq!(size.item::<f32>()?, 2.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn cond<R: Nest<Owned = R>>(
    condition: impl Into<Tensor>,
    yes: impl FnOnce() -> Result<R>,
    no: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let (at, condition) = (Location::caller(), condition.into());
    let run = || {
        if *condition.spec() != Spec::new(DType::Bool, Shape::scalar()) {
            let message = format!("the condition must be a single boolean, got {}", condition.spec());
            let error =
                if condition.dtype() == DType::Bool { Error::shape(message) } else { Error::dtype(message) };
            return Err(error.help("reduce it to one value with all() or any()"));
        }
        if !is_tracing() {
            return if condition.item::<bool>()? { yes() } else { no() };
        }
        choose("cond", condition, vec![Box::new(yes), Box::new(no)], at)
    };
    run().map_err(|error| error.in_op("cond", []).at(at))
}

/// Calls the branch of this index, the last one if the index is out of range; returns the result.
///
/// Only that one runs, as with [`cond`].
///
/// ```
/// use taut_control::switch_case;
/// use taut_core::Tensor;
/// let one = |x: f32| Tensor::scalar(x);
/// let y = switch_case(Tensor::scalar(1i32)?, vec![Box::new(|| one(10.0)), Box::new(|| one(20.0))])?;
/// assert_eq!(y.item::<f32>()?, 20.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn switch_case<R: Nest<Owned = R>>(index: impl Into<Tensor>, branches: Vec<Case<'_, R>>) -> Result<R> {
    let (at, index) = (Location::caller(), index.into());
    let run = || {
        if index.rank() != 0 || !index.dtype().is_integer() {
            let message = format!("the branch index must be a single integer, got {}", index.spec());
            return Err(Error::dtype(message));
        }
        let mut branches = branches;
        let Some(last) = branches.len().checked_sub(1) else { return Err(no_branch()) };
        let index = if index.dtype() == DType::I64 { index } else { cast(index, DType::I64)? };
        if !is_tracing() {
            let selected = usize::try_from(index.item::<i64>()?).map_or(last, |index| index.min(last));
            return branches.swap_remove(selected)();
        }
        choose("switch_case", index, branches, at)
    };
    run().map_err(|error| error.in_op("switch_case", []).at(at))
}

#[cold]
fn no_branch() -> Error {
    Error::value("expected at least one branch, got no branch")
}

/// Traces all branches, and applies the branch op.
fn choose<R: Nest<Owned = R>>(
    name: &'static str,
    choice: Tensor,
    branches: Vec<Case<'_, R>>,
    at: Location,
) -> Result<R> {
    let mut traced: Vec<(Traced, R)> = Vec::new();
    for branch in branches {
        traced.push(trace_writing(&[], &[], None, |_| {
            let result = branch()?;
            Ok((tensors(&result), result))
        })?);
    }
    let assigned = return_assigned(&mut traced);
    check_results(&traced)?;
    let lists: Vec<&[Tensor]> = traced.iter().map(|(traced, _)| &traced.captures[..]).collect();
    let captures = merge_captures(&lists);
    let (mut structure, mut graphs) = (None, Vec::new());
    for (traced, result) in traced {
        graphs.push(with_captures(traced.graph, &traced.captures, &captures));
        structure.get_or_insert(result);
    }
    let mut inputs = vec![choice];
    inputs.extend(captures);
    let op = BranchOp::new(name, graphs, body_options());
    let mut outputs = apply_at(&op, &mut inputs, at)?.into_iter();
    let result = structure.ok_or_else(no_branch)?.rebuild(&mut outputs);
    assign(&assigned, &mut outputs)?;
    Ok(result)
}

/// Checks that all branches return the same structure, types and shapes.
fn check_results<R: Nest>(traced: &[(Traced, R)]) -> Result<()> {
    let Some((first, result)) = traced.first() else { return Err(no_branch()) };
    let paths = tensor_paths(result);
    for (n, (other, other_result)) in traced.iter().enumerate().skip(1) {
        check_structure(&format!("branch {n}"), other_result, "branch 0", result)?;
        let pairs = first.graph.outputs.iter().zip(&other.graph.outputs);
        for ((&expected, &got), path) in pairs.zip(&paths) {
            let (expected, got) = (first.graph.spec(expected), other.graph.spec(got));
            if expected != got {
                let which = if path.is_empty() { "the result".into() } else { format!("result {path}") };
                let message = format!("{which} of branch {n} must be {expected}, as in branch 0, got {got}");
                let same_type = expected.dtype == got.dtype;
                let kind = if same_type { ErrorKind::DynamicShape } else { ErrorKind::DType };
                let error = Error::new(kind, message);
                return Err(error.help("return the same types and shapes from every branch"));
            }
        }
    }
    Ok(())
}

/// Makes every branch return the new values of all variables that some branch assigns; returns those variables.
fn return_assigned<R>(traced: &mut [(Traced, R)]) -> Vec<Variable> {
    let mut states: Vec<Arc<dyn ExternalState>> = Vec::new();
    for state in traced.iter().flat_map(|(traced, _)| &traced.writes) {
        if !states.iter().any(|other| other.id() == state.id()) {
            states.push(state.clone());
        }
    }
    let variables = variables(&states);
    for (traced, _) in traced {
        let own = traced.graph.outputs.len() - traced.writes.len();
        let values = traced.graph.outputs.split_off(own);
        for variable in &variables {
            let written = traced.writes.iter().position(|state| state.id() == variable.untraced_id());
            // A branch that does not assign to it returns its old value.
            let value = written.map_or_else(|| traced.capture(&variable.value()), |i| values[i]);
            traced.graph.outputs.push(value);
        }
    }
    variables
}
