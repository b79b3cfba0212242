//! Parts of a tensor.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{Bad, Entry, Kind, Param, Reference, Samples, Value, one};
use crate::{DType, Index, Layout, Tensor, apply};
use std::panic::Location;

#[derive(Clone, Debug)]
struct Slice {
    indices: Vec<Index>,
}

impl Op for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let layout = Layout::contiguous(inputs[0].shape.clone()).slice(&self.indices)?;
        Ok(Spec { dtype: inputs[0].dtype, shape: layout.shape }.into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::View
    }

    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        input.slice(&self.indices).ok()
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

/// A part of a tensor, without copying: positions, ranges with steps, an ellipsis, new axes.
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

/// `x[begin:end:strides]`, an entry per leading axis, as in NumPy. Without copying.
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
        let message = format!("begin has {b} entries, end {e}, strides {s}");
        return Err(Error::value(message)
            .help("give as many of each; strides may be empty")
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

pub(crate) const ENTRIES: &[Entry] = &[Entry::new(
    "strided_slice",
    &[
        Param::tensor("x"),
        Param::new("begin", Kind::Ints),
        Param::new("end", Kind::Ints),
        Param::optional("strides", Kind::Ints, "[]"),
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
        let ints = |v: &[i64]| Value::Ints(v.to_vec());
        let with =
            |dtype| cases.map(|(x, [b, e, s])| vec![ramp(dtype, x, -4.0, 4.0), ints(b), ints(e), ints(s)]);
        dtypes::ALL.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |begin: &[i64], step: &[i64], message| {
        let ints = |v: &[i64]| Value::Ints(v.to_vec());
        let args = vec![ramp(DType::F32, &[3], 0.0, 1.0), ints(begin), ints(begin), ints(step)];
        Bad::new(args, ErrorKind::Index, message)
    };
    vec![bad(&[0], &[0], "a slice step of 0 goes nowhere"), bad(&[0, 0], &[1, 1], "2 indices for rank 1")]
})];
