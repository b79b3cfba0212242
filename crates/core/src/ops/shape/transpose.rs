//! Transposition: permutations of axes.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    Axes, DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply,
};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Transpose {
    permutation: Option<Vec<isize>>,
}

impl Transpose {
    fn resolve(&self, shape: &Shape) -> Result<Axes> {
        let Some(given) = &self.permutation else { return Ok((0..shape.rank()).rev().collect()) };
        if shape.axes(given)?.len() != shape.rank() {
            let message = format!(
                "permutation must have {} axes, one per dimension, got {}",
                shape.rank(),
                given.len()
            );
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

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let permutation = self.resolve(&call.shape(0))?.into_iter().map(|axis| axis as isize + 1);
        call.apply_as_is(&Transpose { permutation: Some([0].into_iter().chain(permutation).collect()) })
    }

    fn attributes(&self) -> String {
        self.permutation.as_ref().map_or_else(String::new, |p| format!("permutation={p:?}"))
    }
}

impl ViewOp for Transpose {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.permute(&self.resolve(&input.shape).ok()?))
    }
}

impl Differentiable for Transpose {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let permutation = self.resolve(call.input_shape(0))?;
            let mut inverse = vec![0; permutation.len()];
            permutation.iter().enumerate().for_each(|(i, &axis)| inverse[axis] = i as isize);
            transpose(g, inverse.as_slice())
        })
    }
}

/// Permutes the axes, as a view: axis `permutation[i]` becomes axis `i`. `None` reverses the order of the axes.
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

/// The permutation that moves axes `source` to positions `destination` and keeps the others in order.
fn moveaxis_permutation(shape: &Shape, source: &[isize], destination: &[isize]) -> Result<Vec<isize>> {
    if source.len() != destination.len() {
        let message = format!(
            "source and destination must have the same length, got {} and {}",
            source.len(),
            destination.len()
        );
        return Err(Error::new(ErrorKind::Axis, message));
    }
    // `Shape::axes` rejects an axis that is given twice.
    let (sources, _) = (shape.axes(source)?, shape.axes(destination)?);
    let mut left = (0..shape.rank()).filter(|axis| !sources.contains(axis));
    let mut from = vec![None; shape.rank()];
    for (&source, &destination) in source.iter().zip(destination) {
        from[shape.axis(destination)?] = Some(shape.axis(source)?);
    }
    Ok(from.into_iter().filter_map(|axis| axis.or_else(|| left.next())).map(|axis| axis as isize).collect())
}

/// Moves axes, as a view: axis `source[i]` becomes axis `destination[i]`; the others keep their order.
#[track_caller]
pub fn moveaxis(x: impl Into<Tensor>, source: &[isize], destination: &[isize]) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    let permutation = moveaxis_permutation(x.shape(), source, destination);
    let permutation = permutation.map_err(|e| e.in_op("moveaxis", [x.spec()]).at(at))?;
    transpose(x, permutation.as_slice())
}

/// Swaps two axes, as a view.
#[track_caller]
pub fn swapaxes(x: impl Into<Tensor>, axis1: isize, axis2: isize) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    let axes = x.shape().axis(axis1).and_then(|a| Ok((a, x.shape().axis(axis2)?)));
    let (a, b) = axes.map_err(|e| e.in_op("swapaxes", [x.spec()]).at(at))?;
    let mut permutation: Vec<isize> = (0..x.rank() as isize).collect();
    permutation.swap(a, b);
    transpose(x, permutation.as_slice())
}

const TRANSPOSE: OpEntry = OpEntry::new(
    "transpose",
    &[Param::tensor("x"), Param::optional("permutation", ParamKind::Ints, "None")],
    |a| one(transpose(a.tensor(0)?, a.axes(1)?.as_deref())),
    Reference::Numpy("np.transpose(x, permutation)"),
    Samples::List(|| {
        let mut samples = Vec::new();
        for &dtype in dtypes::EVERY {
            samples.push(vec![ramp(dtype, &[2, 3], -4.0, 4.0), ArgValue::None]);
            samples.push(vec![ramp(dtype, &[2, 3, 4], -4.0, 4.0), ArgValue::Ints(vec![2, 0, 1])]);
            samples.push(vec![ramp(dtype, &[2, 0, 4], -4.0, 4.0), ArgValue::Ints(vec![-1, 0, 1])]);
            samples.push(vec![ramp(dtype, &[], -4.0, 4.0), ArgValue::Ints(vec![])]);
        }
        samples
    }),
)
.refuses(|| {
    let x = || ramp(DType::F32, &[2, 3], 0.0, 1.0);
    vec![
        InvalidArgs::new(
            vec![x(), ArgValue::Ints(vec![0, 0])],
            ErrorKind::Axis,
            "axes must be distinct, got 0 twice",
        ),
        InvalidArgs::new(
            vec![x(), ArgValue::Ints(vec![0, 2])],
            ErrorKind::Axis,
            "axis must be in [-2, 2), got 2",
        ),
        InvalidArgs::new(
            vec![x(), ArgValue::Ints(vec![0])],
            ErrorKind::Axis,
            "permutation must have 2 axes, one per dimension, got 1",
        ),
    ]
});

pub(crate) const ENTRIES: &[OpEntry] = &[
    TRANSPOSE,
    OpEntry::new(
        "moveaxis",
        &[
            Param::tensor("x"),
            Param::new("source", ParamKind::Ints),
            Param::new("destination", ParamKind::Ints),
        ],
        |a| one(moveaxis(a.tensor(0)?, &a.axes(1)?.unwrap_or_default(), &a.axes(2)?.unwrap_or_default())),
        Reference::Numpy("np.moveaxis(x, source, destination)"),
        Samples::List(|| {
            let cases: [(&[usize], &[i64], &[i64]); 7] = [
                (&[], &[], &[]),
                (&[3], &[0], &[0]),
                (&[2, 3, 4], &[0], &[-1]),
                (&[2, 3, 4], &[2], &[0]),
                (&[2, 3, 4], &[0, 1], &[-1, -2]),
                (&[2, 3, 4, 1], &[3, 0], &[0, 2]),
                (&[2, 0, 4], &[1], &[2]),
            ];
            let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
            let with =
                |dtype| cases.map(|(x, from, to)| vec![ramp(dtype, x, -4.0, 4.0), ints(from), ints(to)]);
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |from: &[i64], to: &[i64], message| {
            let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
            let args = vec![ramp(DType::F32, &[2, 3], 0.0, 1.0), ints(from), ints(to)];
            InvalidArgs::new(args, ErrorKind::Axis, message)
        };
        vec![
            bad(&[0], &[0, 1], "must have the same length, got 1 and 2"),
            bad(&[2], &[0], "axis must be in [-2, 2), got 2"),
            bad(&[0], &[-3], "axis must be in [-2, 2), got -3"),
            bad(&[0, -2], &[0, 1], "axes must be distinct, got 0 twice"),
            bad(&[0, 1], &[1, -1], "axes must be distinct, got 1 twice"),
        ]
    }),
    OpEntry::new(
        "swapaxes",
        &[Param::tensor("x"), Param::new("axis1", ParamKind::Int), Param::new("axis2", ParamKind::Int)],
        |a| one(swapaxes(a.tensor(0)?, a.int(1)? as isize, a.int(2)? as isize)),
        Reference::Numpy("np.swapaxes(x, axis1, axis2)"),
        Samples::List(|| {
            let cases: [(&[usize], i64, i64); 5] =
                [(&[3], 0, -1), (&[2, 3], 0, 1), (&[2, 3, 4], -1, 0), (&[2, 3, 4], 1, 1), (&[2, 0, 4], 1, 2)];
            let with = |dtype| {
                cases.map(|(x, a, b)| vec![ramp(dtype, x, -4.0, 4.0), ArgValue::Int(a), ArgValue::Int(b)])
            };
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |shape: &[usize], a, b, message| {
            let args = vec![ramp(DType::F32, shape, 0.0, 1.0), ArgValue::Int(a), ArgValue::Int(b)];
            InvalidArgs::new(args, ErrorKind::Axis, message)
        };
        vec![
            bad(&[2, 3], 0, 2, "axis must be in [-2, 2), got 2"),
            bad(&[], 0, 0, "a scalar has no axes, got axis 0"),
        ]
    }),
];
