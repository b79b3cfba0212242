//! Slicing.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::pad::pad_axis;
use crate::ops::shape::{PadMode, pad, reshape_to, reverse};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    DType, Differentiable, Gradients, Index, Layout, Outputs, Placement, Saves, Set, Shape, Tensor, VjpCall,
    apply,
};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Slice {
    indices: Vec<Index>,
}

impl Slice {
    /// One index per axis of a tensor of this rank.
    fn by_axis(&self, rank: usize) -> Vec<Index> {
        let given = self.indices.iter().filter(|index| index.consumes_axis()).count();
        let mut all = Vec::with_capacity(rank);
        for index in &self.indices {
            match index {
                Index::NewAxis => {}
                Index::Ellipsis => all.resize(all.len() + rank.saturating_sub(given), Index::from(..)),
                index => all.push(*index),
            }
        }
        all.resize(rank, Index::from(..));
        all
    }

    /// For each axis of a tensor of this shape: start, number of elements and step.
    fn parts(&self, shape: &Shape) -> Result<Vec<(usize, usize, isize)>> {
        let parts = self.by_axis(shape.rank()).into_iter().zip(shape.iter()).map(|(index, &dim)| {
            let part = Layout::contiguous(Shape::from([dim])).slice(&[index])?;
            let step = if let Index::Range { step, .. } = index { step } else { 1 };
            Ok((part.offset, part.shape.len(), step))
        });
        parts.collect()
    }
}

/// The gradient of a strided range of an axis: reversed if the step is negative, with `|step| - 1` zeros between elements.
fn insert_zeros(g: Tensor, axis: usize, step: isize) -> Result<Tensor> {
    let g = if step < 0 { reverse(g, &[axis as isize])? } else { g };
    let (shape, stride) = (g.shape().clone(), step.unsigned_abs());
    let count = shape[axis];
    if stride == 1 || count < 2 {
        return Ok(g);
    }
    // Zeros after every element: padded on a new axis, which is then merged into this one.
    let apart = pad_axis(reshape_to(g, &shape.clone().with_inserted(axis + 1, 1))?, axis + 1, 0, stride - 1)?;
    let apart = reshape_to(apart, &shape.with(axis, count * stride))?;
    let mut whole = vec![Index::from(..); axis];
    let end = Some(((count - 1) * stride + 1) as isize);
    whole.push(Index::Range { start: None, end, step: 1 });
    slice(apart, &whole)
}

impl Op for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let layout = Layout::contiguous(inputs[0].shape.clone()).slice(&self.indices)?;
        Ok(Spec { dtype: inputs[0].dtype, shape: layout.shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Slice { indices: [&[Index::from(..)], &self.indices[..]].concat() })
    }

    fn attributes(&self) -> String {
        let part = |index: &Index| match index {
            Index::At(position) => position.to_string(),
            Index::Ellipsis => "...".into(),
            Index::NewAxis => "new".into(),
            Index::Range { start, end, step } => {
                let place = |p: &Option<isize>| p.map_or(String::new(), |p| p.to_string());
                format!("{}:{}:{step}", place(start), place(end))
            }
        };
        format!("[{}]", self.indices.iter().map(part).collect::<Vec<_>>().join(", "))
    }
}

impl ViewOp for Slice {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        input.slice(&self.indices).ok()
    }
}

impl Differentiable for Slice {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            let parts = self.parts(shape)?;
            let part: Shape = parts.iter().map(|&(_, count, _)| count).collect();
            let g = if *g.shape() == part { g } else { reshape_to(g, &part)? };
            let (mut g, mut paddings) = (g, Vec::with_capacity(parts.len()));
            for (axis, (&(start, count, step), &dim)) in parts.iter().zip(shape.iter()).enumerate() {
                g = insert_zeros(g, axis, step)?;
                let size = g.shape()[axis];
                let before = match count {
                    0 => 0,
                    _ if step < 0 => start + 1 - size,
                    _ => start,
                };
                paddings.push([before, dim - before - size]);
            }
            if g.shape() == shape { Ok(g) } else { pad(g, &paddings, PadMode::Constant(0.into())) }
        })
    }

    fn placement(&self, input: &Shape) -> Option<Placement> {
        let parts = self.parts(input).ok()?;
        let is_whole = |axis: usize| parts[axis] == (0, input[axis], 1);
        let mut partial = (0..parts.len()).filter(|&axis| !is_whole(axis));
        let (axis, None) = (partial.next()?, partial.next()) else { return None };
        let (start, count, step) = parts[axis];
        let shape = input.clone().with(axis, count);
        (count > 0 && (step == 1 || count == 1)).then_some(Placement { axis, start, shape })
    }
}

/// Slices a tensor, as a view: positions, ranges with steps, an ellipsis, new axes.
///
/// ```
/// use taut_core::{Ellipsis, Index, Tensor, ops::shape::slice, s};
/// let x = Tensor::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// let backwards = slice(&x, &s![Ellipsis, Index::from(..).by(-1)])?;
/// assert_eq!(backwards.to_vec::<i32>()?, [3, 2, 1, 6, 5, 4]);
/// assert_eq!(slice(&x, &s![-1, 1..])?.to_vec::<i32>()?, [5, 6]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn slice(x: impl Into<Tensor>, indices: &[Index]) -> Result<Tensor> {
    apply(&Slice { indices: indices.to_vec() }, [x.into()])
}

/// `x[begin:end:strides]` as in NumPy, with one entry per leading axis, as a view.
#[track_caller]
pub fn strided_slice(
    x: impl Into<Tensor>,
    begin: &[isize],
    end: &[isize],
    strides: &[isize],
) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    if end.len() != begin.len() || !(strides.is_empty() || strides.len() == begin.len()) {
        let (b, e, s) = (begin.len(), end.len(), strides.len());
        let message = format!("begin, end and strides must have the same length, got {b}, {e} and {s}");
        return Err(Error::value(message)
            .help("strides may be empty")
            .in_op("strided_slice", [x.spec()])
            .at(at));
    }
    let indices = begin
        .iter()
        .enumerate()
        .map(|(i, &start)| Index::Range {
            start: Some(start),
            end: end.get(i).copied(),
            step: strides.get(i).copied().unwrap_or(1),
        })
        .collect();
    apply(&Slice { indices }, [x])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "strided_slice",
    &[
        Param::tensor("x"),
        Param::new("begin", ParamKind::Ints),
        Param::new("end", ParamKind::Ints),
        Param::optional("strides", ParamKind::Ints, "[]"),
    ],
    |a| {
        let list = |i| Ok::<_, Error>(a.axes(i)?.unwrap_or_default());
        one(strided_slice(a.tensor(0)?, &list(1)?, &list(2)?, &list(3)?))
    },
    Reference::Numpy("x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides or [1] * len(begin)))]"),
    Samples::List(|| {
        let cases: [(&[usize], [&[i64]; 3]); 6] = [
            (&[5], [&[1], &[4], &[1]]),
            (&[5], [&[-1], &[-6], &[-2]]),
            (&[4, 5], [&[0, 3], &[4, 0], &[2, -1]]),
            (&[4, 5], [&[2], &[100], &[1]]),
            (&[3], [&[3], &[1], &[1]]),
            (&[0, 2], [&[0], &[7], &[3]]),
        ];
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        let with =
            |dtype| cases.map(|(x, [b, e, s])| vec![ramp(dtype, x, -4.0, 4.0), ints(b), ints(e), ints(s)]);
        dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |begin: &[i64], step: &[i64], message| {
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        let args = vec![ramp(DType::F32, &[3], 0.0, 1.0), ints(begin), ints(begin), ints(step)];
        InvalidArgs::new(args, ErrorKind::Index, message)
    };
    vec![
        bad(&[0], &[0], "a slice step must not be 0"),
        bad(&[0, 0], &[1, 1], "expected at most 1 indices, one per axis, got 2"),
    ]
})];
