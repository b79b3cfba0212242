//! Ops whose output is their first input: copies, checks, constants, barriers.

use crate::apply::{Outputs, apply};
use crate::error::Result;
use crate::gradient::{Differentiable, Gradient, Gradients, Saves, Set, VjpCall};
use crate::layout::Layout;
use crate::op::{Effects, Form, Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::rows::{RowCall, RowClass, RowRule, RowSplit, view_rows};
use std::sync::Arc;
use taut_kernels::{Arg, DType, ViewMut, elementwise};

/// An op whose output is its first input, element for element. Further inputs only order it or receive its gradient.
///
/// Such ops differ in their name, in the memory of their output and in their gradient, so they are values of one type:
///
/// ```
/// use taut_core::ops::{PassGradient, PassThrough};
/// use taut_core::{Tensor, apply};
/// let op = PassThrough::view("no_gradient", PassGradient::Stop);
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert!(apply(&op, [x.clone()])?.shares_memory(&x));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PassThrough {
    name: &'static str,
    mode: PassMode,
    gradient: PassGradient,
    /// A name and a number that distinguish it from other ops of its name; graphs print them.
    number: Option<(&'static str, u64)>,
}

/// The memory of the output, and what the compiler may do with it.
#[derive(Clone, Debug)]
enum PassMode {
    /// A row-major copy in a new buffer.
    Copy,
    /// The input's memory.
    View,
    /// The input's memory, as a value that the compiler must not identify with the input.
    Barrier,
    /// The input if it passes a check, and an error otherwise. In place if the input is donated.
    Check { check: &'static PassCheck, message: Arc<str> },
}

/// The gradient of a [`PassThrough`].
#[derive(Clone, Debug)]
pub enum PassGradient {
    /// No gradient flows through.
    Stop,
    /// The first input's gradient is the output's.
    Pass,
    /// The first input's gradient is the output's, passed through this op as well.
    PassThroughOp,
    /// The second input's gradient is the output's; the first has none.
    ToSecond,
    /// Another rule, over all inputs.
    Rule(Arc<dyn Differentiable>),
}

/// A check of the elements.
#[derive(Debug)]
pub(super) struct PassCheck {
    /// An error for dtypes that cannot be checked.
    pub(super) accepts: fn(DType) -> Result<()>,
    /// An error with the given message if an element fails the check.
    pub(super) holds: fn(&mut ViewMut<'_>, &str) -> Result<()>,
}

impl PassThrough {
    /// A row-major copy in a new buffer.
    pub(super) const fn copy(name: &'static str) -> PassThrough {
        PassThrough { name, mode: PassMode::Copy, gradient: PassGradient::Pass, number: None }
    }

    /// A view of the input with this gradient.
    pub const fn view(name: &'static str, gradient: PassGradient) -> PassThrough {
        PassThrough { name, mode: PassMode::View, gradient, number: None }
    }

    /// A view of the input that the compiler must not identify with the input: see
    /// [`Form::OptimizationBarrier`]. Barriers of different numbers are never merged.
    pub const fn barrier(name: &'static str, number: u64) -> PassThrough {
        let number = Some(("number", number));
        PassThrough { name, mode: PassMode::Barrier, gradient: PassGradient::Pass, number }
    }

    /// The input, if `check` holds for its elements; otherwise an error with this message.
    pub(super) fn check(
        name: &'static str,
        check: &'static PassCheck,
        message: &str,
        gradient: PassGradient,
    ) -> PassThrough {
        let mode = PassMode::Check { check, message: message.into() };
        PassThrough { name, mode, gradient, number: None }
    }

    /// The op with a number that graphs print under this name.
    #[must_use]
    pub fn numbered(mut self, name: &'static str, number: u64) -> PassThrough {
        self.number = Some((name, number));
        self
    }
}

impl Op for PassThrough {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        match (&self.mode, self.number) {
            (PassMode::Check { message, .. }, _) => format!("message={message:?}"),
            (_, Some((name, number))) => format!("{name}={number}"),
            _ => String::new(),
        }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if let PassMode::Check { check, .. } = &self.mode {
            (check.accepts)(inputs[0].dtype)?;
        }
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        match self.mode {
            PassMode::Copy => Kernel::Elementwise,
            PassMode::View | PassMode::Barrier => Kernel::View(self),
            PassMode::Check { .. } => Kernel::Custom,
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        if let Arg::View(x) = inputs[0] {
            elementwise::copy(x, outputs[0].reborrow());
        }
        match &self.mode {
            PassMode::Check { check, message } => (check.holds)(&mut outputs[0], message),
            _ => Ok(()),
        }
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        // A copy must not alias its input; a check leaves the elements unchanged.
        if matches!(self.mode, PassMode::Check { .. }) { &[0] } else { &[] }
    }

    fn effects(&self) -> Effects {
        match (&self.mode, &self.gradient) {
            (PassMode::Check { .. }, _) => Effects::CAN_FAIL | Effects::CHECK,
            (_, PassGradient::Rule(_)) => Effects::NO_CSE,
            _ => Effects::NONE,
        }
    }

    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        match self.mode {
            PassMode::Copy => Form::Elementwise(elementwise::Code::Copy),
            PassMode::Barrier => Form::OptimizationBarrier,
            PassMode::View | PassMode::Check { .. } => Form::Opaque,
        }
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        // Further inputs may be mapped where the first is not, and a custom rule holds for one example only.
        let own = !matches!(self.gradient, PassGradient::Rule(_));
        if own && call.inputs.len() == 1 { call.apply_as_is(self) } else { Ok(None) }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        match &self.gradient {
            PassGradient::Stop => None,
            PassGradient::Rule(rule) => Some(&**rule),
            _ => Some(self),
        }
    }
}

impl RowRule for PassThrough {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        match &self.mode {
            PassMode::View | PassMode::Barrier => view_rows(self, call),
            // A check of the elements checks those of every part.
            PassMode::Copy | PassMode::Check { .. } => {
                let linear = matches!(self.mode, PassMode::Copy) && call.classes[0] == RowClass::PartialSum;
                if linear {
                    call.linear()
                } else {
                    call.with_outputs([RowClass::Rows(call.classes[0].axis()?)])
                }
            }
        }
    }
}

impl ViewOp for PassThrough {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.clone())
    }
}

impl Differentiable for PassThrough {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        match &self.gradient {
            PassGradient::Stop => Ok(Gradients::new()),
            PassGradient::Pass => call.first(|_, gradient| Ok(gradient)),
            PassGradient::PassThroughOp => call.first(|_, gradient| apply(self, [gradient])),
            PassGradient::ToSecond => {
                Ok(Gradients::from_iter([None, call.take_gradient(0).map(Gradient::Dense)]))
            }
            PassGradient::Rule(rule) => rule.vjp(call),
        }
    }
}
