//! Custom gradients.

use crate::uses::record_uses;
use crate::variable::Variable;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::{PassGradient, PassThrough};
use taut_core::record;
use taut_core::{
    Differentiable, Effects, Error, ErrorKind, Gradient, Gradients, Op, Result, SavedValue, Saves, Set, Spec,
    Specs, Tensor, VjpCall, apply_at, is_tracing,
};
use taut_memory::Location;

type Backward = dyn Fn(&[Tensor], &[Tensor], &[Variable]) -> Result<Vec<Option<Gradient>>> + Send + Sync;

/// The result of a function with a custom gradient.
pub struct GradientRule {
    outputs: Vec<Tensor>,
    saved: Vec<Tensor>,
    backward: Arc<Backward>,
    /// Whether it returns gradients of the variables that the function reads as well.
    has_variables: bool,
}

impl GradientRule {
    /// The outputs; the tensors that the gradient needs; and the gradient: from those tensors and the outputs' gradients
    /// (zeros where there is none) to a gradient per input.
    ///
    /// Pass the tensors that `backward` needs in `saved` and do not capture them: a tape counts the bytes of `saved` only.
    pub fn new(
        outputs: Vec<Tensor>,
        saved: Vec<Tensor>,
        backward: impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Option<Gradient>>> + Send + Sync + 'static,
    ) -> GradientRule {
        let backward =
            Arc::new(move |saved: &[Tensor], given: &[Tensor], _: &[Variable]| backward(saved, given));
        GradientRule { outputs, saved, backward, has_variables: false }
    }

    /// As [`GradientRule::new`], for a function that reads trainable variables: `backward` receives them, and returns their
    /// gradients after those of the inputs.
    pub fn with_variables(
        outputs: Vec<Tensor>,
        saved: Vec<Tensor>,
        backward: impl Fn(&[Tensor], &[Tensor], &[Variable]) -> Result<Vec<Option<Gradient>>>
        + Send
        + Sync
        + 'static,
    ) -> GradientRule {
        GradientRule { outputs, saved, backward: Arc::new(backward), has_variables: true }
    }
}

#[derive(Clone)]
struct Custom {
    /// The number of inputs that are the function's, with the variables it reads; the others are saved tensors.
    inputs: usize,
    variables: Vec<Variable>,
    outputs: SmallVec<[Spec; 1]>,
    backward: Arc<Backward>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Custom({} inputs)", self.inputs)
    }
}

impl Op for Custom {
    fn name(&self) -> &'static str {
        "custom_gradient"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.outputs.clone())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Custom {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let saved = (self.inputs..64).fold(Set::NONE, Set::with);
        Some(Saves { inputs: saved, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let saved = (self.inputs..call.inputs.len()).map(|i| call.input(i).cloned());
        let saved: Vec<Tensor> = saved.collect::<Result<_>>()?;
        let mut gradients = Vec::new();
        for output in 0..call.outputs.len() {
            let given = call.take_gradient(output);
            gradients.push(given.map_or_else(|| zeros(&call.outputs[output].spec), Ok)?);
        }
        let found = (self.backward)(&saved, &gradients, &self.variables)?;
        if found.len() != self.inputs {
            let (got, variables) = (found.len(), self.variables.len());
            let inputs = self.inputs - variables;
            let wanted = match variables {
                0 => format!("{inputs} inputs"),
                _ => format!("{inputs} inputs and {variables} variables"),
            };
            return Err(Error::value(format!(
                "a custom gradient must return a gradient per input, for {wanted}, got {got}"
            )));
        }
        Ok(found.into_iter().collect())
    }
}

/// The gradient rule of another op, for one of its outputs. The first input is that output's value, the others are the op's
/// own.
#[derive(Clone, Debug)]
struct RuleOfOutput {
    op: Arc<dyn Op>,
    outputs: SmallVec<[Spec; 1]>,
    output: usize,
}

impl Differentiable for RuleOfOutput {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let saves = self.op.gradient()?.saves(Set::ALL)?;
        let saved = (0..64).filter(|&i| saves.inputs.has(i)).fold(Set::NONE, |set, i| set.with(i + 1));
        Some(Saves { inputs: saved, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(rule) = self.op.gradient() else { return Ok(Gradients::new()) };
        let mut gradients = SmallVec::from_elem(None, self.outputs.len());
        gradients[self.output] = call.take_gradient(0);
        let mut outputs: SmallVec<[SavedValue; 1]> =
            self.outputs.iter().map(|spec| SavedValue { spec: spec.clone(), value: None }).collect();
        let mut inner = VjpCall {
            inputs: &call.inputs[1..],
            outputs: &mut outputs,
            residual: None,
            wanted: Set::ALL,
            gradients,
            sums: SmallVec::new(),
        };
        Ok(std::iter::once(None).chain(rule.vjp(&mut inner)?).collect())
    }
}

/// These outputs, each as a node of the graph being traced with the gradient rule of `op`, which has these inputs: graphs are
/// differentiated node by node.
pub(crate) fn with_gradient_rule(
    op: Arc<dyn Op>,
    inputs: &[Tensor],
    outputs: Vec<Tensor>,
    at: Location,
) -> Result<Vec<Tensor>> {
    let specs: SmallVec<[Spec; 1]> = outputs.iter().map(|output| output.spec().clone()).collect();
    let mut made = Vec::new();
    for (output, result) in outputs.into_iter().enumerate() {
        let mut all: Vec<Tensor> =
            std::iter::once(record::detached(&result)).chain(inputs.iter().cloned()).collect();
        let rule = RuleOfOutput { op: op.clone(), outputs: specs.clone(), output };
        let view = PassThrough::view(op.name(), PassGradient::Rule(Arc::new(rule)));
        let view = view.numbered("output", output as u64);
        made.extend(apply_at(&view, &mut all, at)?);
    }
    Ok(made)
}

/// Zeros: one number, broadcast.
pub(crate) fn zeros(spec: &Spec) -> Result<Tensor> {
    broadcast_to(Tensor::constant(0, spec.dtype)?, spec.shape.clone())
}

/// Calls a function with a custom gradient.
///
/// Captured tensors are constants to the rule. The trainable variables that the function reads are inputs to a rule
/// [with variables](GradientRule::with_variables); under another rule, read them with [`Variable::value`] only.
///
/// A tape that is not persistent does not record the ops inside the function: it saves what the [`GradientRule`] saves and
/// nothing else. Nested and persistent tapes record them, so that the gradient of the gradient is right.
///
/// ```
/// use taut_autodiff::{DenseGradient, GradientTape, GradientRule, custom_gradient};
/// use taut_core::{Tensor, ops::unary::exp, ops::binary::{add, div, mul, sub}, ops::unary::log};
/// // log(1 + e^x), with a gradient that does not overflow.
/// let log1pexp = |x: &Tensor| -> taut_core::Result<Tensor> {
///     let outputs = custom_gradient([x], |inputs| {
///         let e = exp(&inputs[0])?;
///         let y = log(add(&e, 1.0)?)?;
///         Ok(GradientRule::new(vec![y], vec![e], |saved, gradients| {
///             let slope = sub(1.0, div(1.0, add(&saved[0], 1.0)?)?)?;
///             Ok(vec![Some(mul(&gradients[0], slope)?.into())])
///         }))
///     })?;
///     Ok(outputs[0].clone())
/// };
/// let x = Tensor::scalar(0.0f64)?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = log1pexp(&x)?;
/// assert_eq!(tape.gradient(&y, &x)?.dense()?.item::<f64>()?, 0.5);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn custom_gradient(
    inputs: impl IntoIterator<Item = impl Into<Tensor>>,
    function: impl FnOnce(&[Tensor]) -> Result<GradientRule>,
) -> Result<Vec<Tensor>> {
    let (at, recording) = (Location::caller(), record::is_recording());
    let mut inputs: Vec<Tensor> = inputs.into_iter().map(Into::into).collect();
    let call = || record_uses(|_| function(&inputs));
    let (rule, uses) =
        if record::has_single_use_recorder() { record::without_recording(call) } else { call() };
    let GradientRule { outputs, saved, backward, has_variables } = rule?;
    let mut variables = uses.variables;
    variables.retain(Variable::is_trainable);
    if has_variables {
        inputs.extend(variables.iter().map(Variable::read));
    } else if let Some(variable) = variables.first().filter(|_| recording) {
        let message = format!(
            "a function with a custom gradient must not read variables without a gradient, got {variable}"
        );
        return Err(Error::value(message)
            .help("make it an input, return its gradient (GradientRule::with_variables), or read it with value() as a constant")
            .in_op("custom_gradient", inputs.iter().map(Tensor::spec))
            .at(at));
    }
    let (count, most) = (inputs.len() + saved.len(), 62);
    if count > most {
        let message =
            format!("a custom gradient can have at most {most} inputs and saved values, got {count}");
        return Err(Error::new(ErrorKind::Value, message).at(at));
    }
    let specs = outputs.iter().map(|output| output.spec().clone()).collect();
    let op = Custom { inputs: inputs.len(), variables, outputs: specs, backward };
    let mut all: Vec<Tensor> = inputs.into_iter().chain(saved).collect();
    if !is_tracing() {
        return record::record_completed(&op, &mut all, outputs, Vec::new(), at);
    }
    with_gradient_rule(Arc::new(op), &all, outputs, at)
}
