//! Einstein summation.

use super::matmul;
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::binary::mul;
use crate::ops::creation::diag;
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, tensor};
use crate::ops::shape::{reshape, transpose};
use crate::ops::unary::cast;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::{DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply};
use taut_memory::Location;

/// The diagonal of the last two axes, as a view.
#[derive(Clone, Debug)]
struct Diagonal;

impl Op for Diagonal {
    fn name(&self) -> &'static str {
        "einsum_diagonal"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if shape.rank() < 2 {
            return Err(Error::shape(format!("expected rank >= 2, got rank {}", shape.rank())));
        }
        let shape = Layout::contiguous(shape.clone()).diagonal(0).shape;
        Ok(Spec { dtype: *dtype, shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }
}

impl ViewOp for Diagonal {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.diagonal(0))
    }
}

impl Differentiable for Diagonal {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| diag(g, 0))
    }
}

/// The label of an axis: a letter, or the position of an axis under the ellipsis, counted from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(std::cmp::Reverse<usize>),
    Letter(char),
}

/// A tensor with one label per axis.
struct Term {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// The labels of a term of the equation; `ellipsis_rank` gives the number of axes under its ellipsis, given the number of
/// its letters.
fn labels(part: &str, ellipsis_rank: impl Fn(usize) -> Result<usize>) -> Result<Vec<Label>> {
    let (before, after) = match part.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (part, None),
    };
    let letters = |text: &str| -> Result<Vec<Label>> {
        let letter = |c: char| match c {
            c if c.is_ascii_alphabetic() => Ok(Label::Letter(c)),
            c => Err(Error::value(format!("labels must be letters or \"...\", got {c:?} in {part:?}"))),
        };
        text.chars().map(letter).collect()
    };
    let (mut all, last) = (letters(before)?, letters(after.unwrap_or(""))?);
    let count = ellipsis_rank(all.len() + last.len())?;
    if after.is_none() && count > 0 {
        let given = all.len();
        let message =
            format!("{part:?} must have one label per axis, got {given} for rank {}", given + count);
        return Err(Error::shape(message).help("add \"...\" for the other axes"));
    }
    all.extend((0..count).rev().map(|i| Label::Ellipsis(std::cmp::Reverse(i))));
    all.extend(last);
    Ok(all)
}

/// The labels of each tensor and of the output.
fn parse(equation: &str, tensors: &[Tensor]) -> Result<(Vec<Vec<Label>>, Vec<Label>)> {
    let compact: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match compact.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&compact[..], None),
    };
    let parts: Vec<&str> = left.split(',').collect();
    if parts.len() != tensors.len() {
        return Err(Error::value(format!(
            "equation {equation:?} must have an input per tensor, {}, got {}",
            tensors.len(),
            parts.len()
        )));
    }
    let named = |(part, tensor): (&&str, &Tensor)| {
        labels(part, |letters| {
            tensor.rank().checked_sub(letters).ok_or_else(|| {
                let rank = tensor.rank();
                Error::shape(format!("{part:?} must have one label per axis, got {letters} for rank {rank}"))
            })
        })
    };
    let inputs: Vec<Vec<Label>> = parts.iter().zip(tensors).map(named).collect::<Result<_>>()?;
    let mut all: Vec<Label> = inputs.concat();
    all.sort_unstable();
    let hidden = all.iter().filter_map(|label| match label {
        Label::Ellipsis(place) => Some(place.0 + 1),
        Label::Letter(_) => None,
    });
    let hidden = hidden.max().unwrap_or(0);
    let output = if let Some(right) = right {
        labels(right, |_| Ok(if right.contains("...") { hidden } else { 0 }))?
    } else {
        let once = |label: &Label| {
            matches!(label, Label::Ellipsis(_)) || all.iter().filter(|other| *other == label).count() == 1
        };
        let mut output: Vec<Label> = all.iter().copied().filter(once).collect();
        output.dedup();
        output
    };
    for (i, label) in output.iter().enumerate() {
        if let Label::Letter(letter) = label {
            if !all.contains(label) {
                return Err(Error::value(format!("output label {letter:?} must occur in an input")));
            }
            if output[..i].contains(label) {
                return Err(Error::value(format!("output label {letter:?} must occur only once")));
            }
        }
    }
    Ok((inputs, output))
}

/// An error if axes with the same label have different sizes.
fn check_sizes(terms: &[Term]) -> Result<()> {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for term in terms {
        for (&label, &dim) in term.labels.iter().zip(term.tensor.shape().iter()) {
            match (label, sizes.iter_mut().find(|(other, _)| *other == label)) {
                (_, None) => sizes.push((label, dim)),
                (Label::Ellipsis(_), Some((_, size))) if *size == 1 => *size = dim,
                (Label::Ellipsis(_), Some(_)) if dim == 1 => {}
                (_, Some((_, size))) if *size == dim => {}
                (Label::Letter(letter), Some((_, size))) => {
                    return Err(Error::shape(format!(
                        "axes labelled {letter:?} must have equal sizes, got {size} and {dim}"
                    )));
                }
                (Label::Ellipsis(_), Some((_, size))) => {
                    return Err(Error::shape(format!(
                        "axes under the ellipsis must broadcast, got {size} and {dim}"
                    )));
                }
            }
        }
    }
    Ok(())
}

impl Term {
    fn size(&self, label: Label) -> usize {
        self.labels.iter().position(|&l| l == label).map_or(1, |axis| self.tensor.shape()[axis])
    }

    fn sizes(&self, labels: &[Label]) -> Vec<isize> {
        labels.iter().map(|&label| self.size(label) as isize).collect()
    }

    /// The term with its axes in this order, a permutation of its labels.
    #[track_caller]
    fn ordered(self, labels: &[Label]) -> Result<Tensor> {
        if self.labels == labels {
            return Ok(self.tensor);
        }
        let axis =
            |label: &Label| self.labels.iter().position(|l| l == label).map_or(0, |axis| axis as isize);
        let permutation: Vec<isize> = labels.iter().map(axis).collect();
        transpose(self.tensor, &permutation[..])
    }

    /// The term with distinct labels: takes diagonals of repeated labels, drops axes of size one under the ellipsis that
    /// are larger in another term, and sums over labels that are not wanted.
    #[track_caller]
    fn simplified(
        mut self,
        wanted: impl Fn(Label) -> bool,
        largest: impl Fn(Label) -> usize,
    ) -> Result<Term> {
        while let Some((i, j)) = repeated(&self.labels) {
            let label = self.labels[i];
            let mut order: Vec<isize> = (0..self.labels.len() as isize).collect();
            order.retain(|&axis| axis != i as isize && axis != j as isize);
            order.extend([i as isize, j as isize]);
            self.tensor = apply(&Diagonal, [transpose(self.tensor, &order[..])?])?;
            self.labels.retain(|&l| l != label);
            self.labels.push(label);
        }
        let squeezed: Vec<Label> = self
            .labels
            .iter()
            .copied()
            .filter(|&l| self.size(l) == largest(l) || self.size(l) != 1)
            .collect();
        if squeezed.len() < self.labels.len() {
            self.tensor = reshape(&self.tensor, &self.sizes(&squeezed))?;
            self.labels = squeezed;
        }
        let unwanted: Vec<isize> =
            (0..self.labels.len()).filter(|&i| !wanted(self.labels[i])).map(|i| i as isize).collect();
        if !unwanted.is_empty() {
            let dtype = self.tensor.dtype();
            self.tensor = cast(sum(self.tensor, &unwanted[..], false)?, dtype)?;
            self.labels.retain(|&label| wanted(label));
        }
        Ok(self)
    }

    /// The product of two terms, summed over the shared labels that are not wanted.
    #[track_caller]
    fn contract(self, other: Term, wanted: impl Fn(Label) -> bool) -> Result<Term> {
        let shared = |label: &Label| other.labels.contains(label);
        let batch: Vec<Label> = self.labels.iter().copied().filter(|l| shared(l) && wanted(*l)).collect();
        let summed: Vec<Label> = self.labels.iter().copied().filter(|l| shared(l) && !wanted(*l)).collect();
        let left: Vec<Label> = self.labels.iter().copied().filter(|l| !shared(l)).collect();
        let right: Vec<Label> = other.labels.iter().copied().filter(|l| !self.labels.contains(l)).collect();
        let sizes = [self.sizes(&batch), self.sizes(&left), other.sizes(&right)];
        let depth = self.sizes(&summed).iter().product::<isize>();
        let labels = [&batch[..], &left, &right].concat();
        let tensor = if summed.is_empty() {
            let ones = vec![1; right.len()];
            let a = reshape(
                self.ordered(&[&batch[..], &left].concat())?,
                &[&sizes[0][..], &sizes[1], &ones].concat(),
            )?;
            let ones = vec![1; left.len()];
            let b = reshape(
                other.ordered(&[&batch[..], &right].concat())?,
                &[&sizes[0][..], &ones, &sizes[2]].concat(),
            )?;
            mul(a, b)?
        } else {
            let [rows, columns] = [1, 2].map(|i| sizes[i].iter().product::<isize>());
            // The batch axes are kept separate: merging them would copy operands that have them in another order.
            let batched = |rows, columns| [&sizes[0][..], &[rows, columns]].concat();
            let a = reshape(self.ordered(&[&batch[..], &left, &summed].concat())?, &batched(rows, depth))?;
            let b =
                reshape(other.ordered(&[&batch[..], &summed, &right].concat())?, &batched(depth, columns))?;
            reshape(matmul(a, b)?, &sizes.concat())?
        };
        Ok(Term { tensor, labels })
    }

    /// The number of elements of the product with another term, summed over the labels that are not wanted.
    fn product_len(&self, other: &Term, wanted: impl Fn(Label) -> bool) -> f64 {
        let own = self.labels.iter().map(|&l| (l, self.size(l)));
        let others = other.labels.iter().filter(|l| !self.labels.contains(l)).map(|&l| (l, other.size(l)));
        own.chain(others).filter(|&(label, _)| wanted(label)).map(|(_, size)| size as f64).product()
    }
}

/// The positions of the first label that occurs twice.
fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|i| (i + 1..labels.len()).find(|&j| labels[i] == labels[j]).map(|j| (i, j)))
}

/// Einstein summation: sums of products over labelled axes. `"ij,jk->ik"` is a matrix product, `"ii"` a trace,
/// `"...ij->...ji"` a transposition.
///
/// Labels that are not in the output are summed over. Without `->`, the output has the labels that occur once, in
/// alphabetical order. Tensors are contracted pairwise as matrix products, the pair with the smallest result first.
///
/// ```
/// use taut_core::{Tensor, ops::contract::einsum};
/// let a = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(einsum("ij,jk->ik", &[a.clone(), a.clone()])?.to_vec::<i32>()?, [7, 10, 15, 22]);
/// assert_eq!(einsum("ii", &[a])?.item::<i32>()?, 5);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn einsum(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
    let at = Location::caller();
    let with_context = |e: Error| e.in_op("einsum", tensors.iter().map(Tensor::spec)).at(at);
    let (inputs, output) = parse(equation, tensors).map_err(with_context)?;
    let dtype = common_dtype("einsum", tensors)?;
    if dtype == DType::Bool {
        return Err(with_context(
            Error::dtype("bool is not supported").help("cast to an integer dtype first"),
        ));
    }
    let mut terms = Vec::new();
    for (tensor, labels) in tensors.iter().zip(inputs) {
        terms.push(Term { tensor: cast(tensor, dtype)?, labels });
    }
    check_sizes(&terms).map_err(with_context)?;
    let all: Vec<Vec<Label>> = terms.iter().map(|term| term.labels.clone()).collect();
    let shapes: Vec<Shape> = terms.iter().map(|term| term.tensor.shape().clone()).collect();
    let largest = |label: Label| {
        let sizes = all.iter().zip(&shapes).flat_map(|(labels, shape)| labels.iter().zip(shape.iter()));
        sizes.filter(|(l, _)| **l == label).map(|(_, &size)| size).find(|&size| size != 1).unwrap_or(1)
    };
    let mut ready = Vec::new();
    for (i, term) in terms.into_iter().enumerate() {
        let elsewhere =
            |label: Label| all.iter().enumerate().any(|(j, labels)| j != i && labels.contains(&label));
        ready.push(term.simplified(|label| output.contains(&label) || elsewhere(label), largest)?);
    }
    let mut terms = ready;
    while terms.len() > 1 {
        let wanted = |label: Label, i: usize, j: usize| {
            output.contains(&label)
                || terms
                    .iter()
                    .enumerate()
                    .any(|(at, term)| at != i && at != j && term.labels.contains(&label))
        };
        let pairs = (0..terms.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
        let cost = |&(i, j): &(usize, usize)| terms[i].product_len(&terms[j], |label| wanted(label, i, j));
        let Some((i, j)) = pairs.min_by(|a, b| cost(a).total_cmp(&cost(b))) else { break };
        let keep: Vec<Label> =
            terms[i].labels.iter().chain(&terms[j].labels).copied().filter(|&l| wanted(l, i, j)).collect();
        let second = terms.remove(j);
        let first = terms.remove(i);
        terms.insert(i, first.contract(second, |label| keep.contains(&label))?);
    }
    let Some(result) = terms.pop() else {
        return Err(with_context(Error::value("expected at least one tensor, got an empty list")));
    };
    // Only axes under the ellipsis that are larger than one in a single term remain to be summed.
    result.simplified(|label| output.contains(&label), |_| 1)?.ordered(&output)
}

/// Test cases: equations and shapes.
const CASES: &[(&str, &[&[usize]])] = &[
    ("ij,jk->ik", &[&[2, 3], &[3, 4]]),
    ("ij,jk", &[&[2, 3], &[3, 4]]),
    ("ba", &[&[2, 3]]),
    ("ii", &[&[3, 3]]),
    ("iji->j", &[&[3, 2, 3]]),
    ("ii->i", &[&[3, 3]]),
    ("i,j->ij", &[&[2], &[3]]),
    ("i,i->i", &[&[3], &[3]]),
    ("i,i", &[&[3], &[3]]),
    ("ijk->j", &[&[2, 3, 4]]),
    ("...ij->...ji", &[&[2, 2, 3]]),
    ("...ij,...jk->...ik", &[&[2, 1, 2, 3], &[4, 3, 2]]),
    ("...,...", &[&[2, 1], &[3]]),
    ("i...->...", &[&[2, 3]]),
    ("bhqd,bhkd->bhqk", &[&[2, 2, 3, 2], &[2, 2, 4, 2]]),
    ("ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]]),
    ("ab,cb,b->ac", &[&[2, 3], &[4, 3], &[3]]),
    ("ij , jk -> k", &[&[2, 3], &[3, 4]]),
    ("ij,kl->jl", &[&[2, 3], &[2, 2]]),
    (",i->i", &[&[], &[3]]),
    ("ij,jk->ik", &[&[2, 0], &[0, 3]]),
    ("ij->", &[&[0, 3]]),
    ("...i,...i->...", &[&[1, 3], &[1, 3]]),
    ("...i,...i", &[&[1, 3], &[2, 2, 3]]),
];

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "einsum",
    &[Param::new("equation", ParamKind::Str), Param::new("tensors", ParamKind::Tensors)],
    |a| one(einsum(a.str(0)?, &a.tensors(1)?)),
    Reference::Numpy("np.asarray(np.einsum(equation, *tensors))"),
    Samples::List(|| {
        let with = |dtype, &(equation, shapes): &(&'static str, &[&[usize]])| {
            let tensors = shapes.iter().map(|shape| tensor(dtype, shape, -2.0, 3.0)).collect();
            vec![ArgValue::Str(equation.into()), ArgValue::Tensors(tensors)]
        };
        let dtypes = dtypes::WIDE_COMPLEX.iter().chain(&[DType::I32, DType::U8]);
        let mut samples: Vec<_> =
            dtypes.flat_map(|&dtype| CASES.iter().map(move |case| with(dtype, case))).collect();
        samples.push(with(DType::F16, &CASES[0]));
        samples.push(with(DType::BF16, &CASES[0]));
        samples
    }),
)
.refuses(|| {
    let bad = |equation: &'static str, dtype, shapes: &[&[usize]], kind, message| {
        let tensors = shapes.iter().map(|shape| tensor(dtype, shape, 0.0, 1.0)).collect();
        InvalidArgs::new(vec![ArgValue::Str(equation.into()), ArgValue::Tensors(tensors)], kind, message)
    };
    let f = DType::F32;
    vec![
        bad(
            "ij,jk",
            f,
            &[&[2, 3], &[2, 3]],
            ErrorKind::Shape,
            "axes labelled 'j' must have equal sizes, got 3 and 2",
        ),
        bad(
            "ij",
            f,
            &[&[2, 3], &[2, 3]],
            ErrorKind::Value,
            "equation \"ij\" must have an input per tensor, 2, got 1",
        ),
        bad("ijk", f, &[&[2, 3]], ErrorKind::Shape, "\"ijk\" must have one label per axis, got 3 for rank 2"),
        bad("i", f, &[&[2, 3]], ErrorKind::Shape, "\"i\" must have one label per axis, got 1 for rank 2"),
        bad("i1", f, &[&[2, 3]], ErrorKind::Value, "labels must be letters or \"...\", got '1' in \"i1\""),
        bad("ij->k", f, &[&[2, 3]], ErrorKind::Value, "output label 'k' must occur in an input"),
        bad("ij->ii", f, &[&[2, 3]], ErrorKind::Value, "output label 'i' must occur only once"),
        bad("ii", f, &[&[2, 3]], ErrorKind::Shape, "axes labelled 'i' must have equal sizes, got 2 and 3"),
        bad(
            "...,...",
            f,
            &[&[2], &[3]],
            ErrorKind::Shape,
            "axes under the ellipsis must broadcast, got 2 and 3",
        ),
        bad("ij,jk", DType::Bool, &[&[2, 2], &[2, 2]], ErrorKind::DType, "bool is not supported"),
        bad("......", f, &[&[2]], ErrorKind::Value, "labels must be letters or \"...\", got '.'"),
    ]
})];
