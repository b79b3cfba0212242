//! Axes in another order.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{Bad, Entry, Kind, Param, Reference, Samples, Value, one};
use crate::{Axes, DType, Layout, Shape, Tensor, apply};

#[derive(Clone, Debug)]
struct Transpose {
    permutation: Option<Vec<isize>>,
}

impl Transpose {
    fn resolve(&self, shape: &Shape) -> Result<Axes> {
        let Some(given) = &self.permutation else { return Ok((0..shape.rank()).rev().collect()) };
        if shape.axes(given)?.len() != shape.rank() {
            let message = format!("{} axes for rank {}", given.len(), shape.rank());
            return Err(Error::new(ErrorKind::Axis, message));
        }
        given.iter().map(|&axis| shape.axis(axis)).collect()
    }
}

impl Op for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let permutation = self.resolve(shape)?;
        Ok(Spec { dtype: *dtype, shape: permutation.iter().map(|&axis| shape[axis]).collect() }.into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::View
    }

    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.permute(&self.resolve(&input.shape).ok()?))
    }

    fn attributes(&self) -> String {
        self.permutation.as_ref().map_or_else(String::new, |p| format!("permutation={p:?}"))
    }
}

/// The axes in another order, without copying: `permutation[i]` is the axis that becomes axis `i`; `None` reverses
/// them all.
///
/// ```
/// use taut_core::{Tensor, ops::shape::transpose};
/// let x = Tensor::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// assert_eq!(transpose(&x, None)?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn transpose<'a>(x: impl Into<Tensor>, permutation: impl Into<Option<&'a [isize]>>) -> Result<Tensor> {
    let permutation = permutation.into().map(<[isize]>::to_vec);
    apply(&Transpose { permutation }, [x.into()])
}

pub(crate) const ENTRIES: &[Entry] = &[Entry::new(
    "transpose",
    &[Param::tensor("x"), Param::optional("permutation", Kind::Ints, "None")],
    |a| one(transpose(a.tensor(0)?, a.axes(1)?.as_deref())),
    Reference::Numpy("np.transpose(x, permutation)"),
    Samples::List(|| {
        let mut samples = Vec::new();
        for &dtype in dtypes::KINDS {
            samples.push(vec![ramp(dtype, &[2, 3], -4.0, 4.0), Value::None]);
            samples.push(vec![ramp(dtype, &[2, 3, 4], -4.0, 4.0), Value::Ints(vec![2, 0, 1])]);
            samples.push(vec![ramp(dtype, &[2, 0, 4], -4.0, 4.0), Value::Ints(vec![-1, 0, 1])]);
            samples.push(vec![ramp(dtype, &[], -4.0, 4.0), Value::Ints(vec![])]);
        }
        samples
    }),
)
.refuses(|| {
    let x = || ramp(DType::F32, &[2, 3], 0.0, 1.0);
    vec![
        Bad::new(vec![x(), Value::Ints(vec![0, 0])], ErrorKind::Axis, "axis 0 is given twice"),
        Bad::new(vec![x(), Value::Ints(vec![0, 2])], ErrorKind::Axis, "axis 2 is out of range for rank 2"),
        Bad::new(vec![x(), Value::Ints(vec![0])], ErrorKind::Axis, "1 axes for rank 2"),
    ]
})];
