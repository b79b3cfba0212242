//! Circular shifts.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    DType, Differentiable, Gradients, Outputs, Saves, Set, Strides, Tensor, VjpCall, apply, normalize_axis,
};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct Roll {
    shifts: Vec<isize>,
    axes: Vec<isize>,
}

impl Op for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if self.shifts.len() != self.axes.len() {
            let message = format!(
                "shift and axis must have the same length, got {} and {}",
                self.shifts.len(),
                self.axes.len()
            );
            return Err(Error::value(message));
        }
        for &axis in &self.axes {
            inputs[0].shape.axis(axis)?;
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let mut shifts = Strides::from_elem(0, x.shape().len());
        for (&shift, &axis) in self.shifts.iter().zip(&self.axes) {
            let axis = normalize_axis(axis, shifts.len())?;
            // Reduced modulo the axis's size, shifts of one axis add without overflow.
            let dim = x.shape()[axis].max(1) as isize;
            shifts[axis] = (shifts[axis] + shift.rem_euclid(dim)) % dim;
        }
        index::roll(x, &shifts, outputs[0].reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Roll { axes: call.axes(&self.axes)?, ..self.clone() })
    }

    fn attributes(&self) -> String {
        format!("shift={:?}, axis={:?}", self.shifts, self.axes)
    }
}

impl Differentiable for Roll {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| {
            let mut inverse = Vec::with_capacity(self.shifts.len());
            for (&shift, &axis) in self.shifts.iter().zip(&self.axes) {
                // Reduced modulo the axis's size, a shift can be negated without overflow.
                inverse.push(-shift.rem_euclid(g.shape()[g.shape().axis(axis)?].max(1) as isize));
            }
            roll(g, &inverse, &self.axes)
        })
    }
}

/// Shifts elements circularly by `shift[i]` positions along `axis[i]`. Shifts of an axis given twice add up.
///
/// ```
/// use taut_core::{Tensor, ops::shape::roll};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [4])?;
/// assert_eq!(roll(&x, &[1], &[0])?.to_vec::<i32>()?, [4, 1, 2, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn roll(input: impl Into<Tensor>, shift: &[isize], axis: &[isize]) -> Result<Tensor> {
    apply(&Roll { shifts: shift.to_vec(), axes: axis.to_vec() }, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "roll",
    &[Param::tensor("input"), Param::new("shift", ParamKind::Ints), Param::new("axis", ParamKind::Ints)],
    |a| one(roll(a.tensor(0)?, &a.axes(1)?.unwrap_or_default(), &a.axes(2)?.unwrap_or_default())),
    Reference::Numpy("np.roll(input, shift, axis)"),
    Samples::List(|| {
        let cases: [(&[usize], &[i64], &[i64]); 10] = [
            (&[5], &[2], &[0]),
            (&[5], &[-7], &[-1]),
            (&[1], &[3], &[0]),
            (&[2, 3], &[1], &[1]),
            (&[2, 3], &[1, 2], &[0, 1]),
            (&[2, 3], &[1, 1], &[-1, -1]),
            (&[2, 3, 4], &[-1, 3], &[1, 2]),
            (&[2, 3], &[6], &[1]),
            (&[0, 3], &[2], &[0]),
            (&[4], &[1 << 40], &[0]),
        ];
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        let with =
            |dtype| cases.map(|(x, shift, axis)| vec![ramp(dtype, x, -4.0, 4.0), ints(shift), ints(axis)]);
        let mut list: Vec<_> = dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect();
        list.push(vec![ramp(DType::F32, &[2, 3], 0.0, 1.0), ArgValue::Int(1), ArgValue::Int(0)]);
        list
    }),
)
.refuses(|| {
    let bad = |shift: &[i64], axis: &[i64], kind, message| {
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        InvalidArgs::new(vec![ramp(DType::F32, &[2, 3], 0.0, 1.0), ints(shift), ints(axis)], kind, message)
    };
    vec![
        bad(&[1], &[0, 1], ErrorKind::Value, "must have the same length, got 1 and 2"),
        bad(&[1], &[2], ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
        bad(&[1], &[-3], ErrorKind::Axis, "axis must be in [-2, 2), got -3"),
    ]
})];
