//! The matrix product.

use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Epilogue, Form, FuseEpilogue, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, complex, sub};
use crate::ops::elementwise::sum_to;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{expand_dims, reshape_to};
use crate::ops::unary::{cast, imag, real};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Outputs, Shape, Strides, Tensor, apply};
use std::sync::Arc;
use taut_kernels::{Arg, View, ViewMut, elementwise, matmul as kernel};

#[derive(Clone, Debug)]
struct Matmul {
    transpose_a: bool,
    transpose_b: bool,
    /// The fused epilogue; its operands are the inputs from the third on.
    epilogue: Option<Arc<dyn Epilogue>>,
    /// Whether the product is added to the third input, in place where that is possible.
    accumulates: bool,
}

impl Matmul {
    /// Rows and columns of both operands; a vector is a row on the left and a column on the right.
    fn sizes(&self, a: &[usize], b: &[usize]) -> Result<[usize; 4]> {
        let matrix = |shape: &[usize], transpose: bool, name: &str| match *shape {
            [] => Err(Error::shape("operands must have rank >= 1, got a scalar").help("use mul to scale")),
            [_] if transpose => Err(Error::value(format!("transpose_{name} needs rank >= 2, got a vector"))),
            [n] if name == "a" => Ok([1, n]),
            [n] => Ok([n, 1]),
            [.., rows, columns] if transpose => Ok([columns, rows]),
            [.., rows, columns] => Ok([rows, columns]),
        };
        let ([m, k], [depth, n]) = (matrix(a, self.transpose_a, "a")?, matrix(b, self.transpose_b, "b")?);
        if k != depth {
            let message = format!("inner dimensions must be equal, got {m}x{k} and {depth}x{n} matrices");
            return Err(Error::shape(message).help("transpose one of them (transpose_a, transpose_b)"));
        }
        Ok([m, k, depth, n])
    }

    /// Whether it is a product of two operands and nothing more.
    fn is_plain(&self) -> bool {
        self.epilogue.is_none() && !self.accumulates
    }
}

impl Op for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (a, b) = (inputs[0], inputs[1]);
        if a.dtype != b.dtype {
            let message = format!("operands must have the same dtype, got {} and {}", a.dtype, b.dtype);
            return Err(Error::dtype(message));
        }
        if a.dtype == DType::Bool {
            return Err(Error::dtype("bool is not supported").help("cast to an integer dtype first"));
        }
        let [m, _, _, n] = self.sizes(&a.shape, &b.shape)?;
        let mut shape = Shape::from(batch_dims(&a.shape)).broadcast(&Shape::from(batch_dims(&b.shape)))?;
        let lead = shape.rank();
        if b.shape.rank() > 1 {
            shape = shape.with_inserted(lead, n);
        }
        if a.shape.rank() > 1 {
            shape = shape.with_inserted(lead, m);
        }
        let product = Spec { dtype: a.dtype, shape };
        if let Some(epilogue) = &self.epilogue {
            epilogue.check(&product, &inputs[2..])?;
        }
        if self.accumulates && *inputs[2] != product {
            return Err(Error::shape(format!("the sum must be {product}, got {}", inputs[2])));
        }
        Ok(product.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (a, b) = (inputs[0].view(), inputs[1].view());
        let [m, k, _, n] = self.sizes(a.shape(), b.shape())?;
        let out = &mut outputs[0];
        if let (true, Arg::View(sum)) = (self.accumulates, inputs[inputs.len() - 1]) {
            elementwise::copy(sum, out.reborrow());
        }
        let matrices = usize::from(a.shape().len() > 1) + usize::from(b.shape().len() > 1);
        let batch = &out.shape()[..out.shape().len() - matrices];
        let sized = |rows, columns| -> Shape { batch.iter().copied().chain([rows, columns]).collect() };
        let (a_shape, b_shape, shape) = (sized(m, k), sized(k, n), sized(m, n));
        let (a_strides, b_strides) = (
            strides(&a, batch, self.transpose_a, |s| [0, s]),
            strides(&b, batch, self.transpose_b, |s| [s, 0]),
        );
        let (a, b) = (a.with_layout(&a_shape, &a_strides), b.with_layout(&b_shape, &b_strides));
        let mut out = ViewMut::new(out.dtype(), out.bytes(), &shape);
        match &self.epilogue {
            None if self.accumulates => kernel::matmul_accumulate(a, b, out),
            None => kernel::matmul(a, b, out),
            Some(epilogue) => {
                epilogue.with(&inputs[2..], &mut |apply| {
                    kernel::matmul_with_epilogue(a, b, out.reborrow(), apply);
                });
            }
        }
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        if self.accumulates { &[2] } else { &[] }
    }

    fn form(&self, _inputs: &[&Spec]) -> Form<'_> {
        if self.is_plain() { Form::Product(self) } else { Form::Opaque }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        if self.is_plain() { Some(self) } else { None }
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !self.is_plain() {
            return Ok(None);
        }
        let (a, b, specs) = (&call.inputs[0], &call.inputs[1], call.specs());
        let [a_rank, b_rank] = [0, 1].map(|i| specs[i].shape.rank());
        // The vectors of all examples are the rows of one matrix.
        match call.mapped {
            [true, false] if a_rank == 1 && b_rank <= 2 => {
                return single_output(matmul_with(a, b, false, self.transpose_b));
            }
            [false, true] if b_rank == 1 && a_rank <= 2 => {
                return single_output(matmul_with(b, a, false, a_rank == 2 && !self.transpose_a));
            }
            _ => {}
        }
        // A vector per example becomes a matrix, and batch dimensions are aligned.
        let rank = a_rank.max(b_rank).max(2);
        let operand = |i: usize| {
            if !call.mapped[i] {
                return Ok(call.inputs[i].clone());
            }
            let shape = specs[i].shape.clone();
            let matrix = if shape.rank() == 1 { shape.with_inserted(i, 1) } else { shape };
            let ones = vec![1; rank - matrix.rank()];
            reshape_to(
                &call.inputs[i],
                &call.batched_shape(&ones.into_iter().chain(matrix.iter().copied()).collect()),
            )
        };
        let product = matmul_with(operand(0)?, operand(1)?, self.transpose_a, self.transpose_b)?;
        let shape = call.batched_shape(&self.infer(&[&specs[0], &specs[1]])?[0].shape);
        single_output(if *product.shape() == shape { Ok(product) } else { reshape_to(product, &shape) })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let depth = self.sizes(&inputs[0].shape, &inputs[1].shape).map_or(0, |[_, k, ..]| k as u64);
        let flops = (2 * depth).saturating_mul(outputs[0].shape.len() as u64);
        Cost { flops, bytes: Cost::traffic(inputs, outputs) }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let flags = [
            (self.transpose_a, "transpose_a"),
            (self.transpose_b, "transpose_b"),
            (self.accumulates, "added to the third input"),
        ];
        let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name.into());
        let epilogue = self.epilogue.iter().map(|epilogue| format!("then {}", epilogue.describe(2)));
        flags.chain(epilogue).collect::<Vec<String>>().join(", ")
    }
}

impl RowRule for Matmul {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if !self.is_plain() || call.inputs.len() != 2 {
            return None;
        }
        let Some((operand, rows)) = call.first_rows() else {
            let linear =
                call.is_partial_sum(0) && call.is_same(1) || call.is_same(0) && call.is_partial_sum(1);
            return if linear { call.linear() } else { None };
        };
        let ranks = [0, 1].map(|i| call.inputs[i].shape.rank());
        let transposed = [self.transpose_a, self.transpose_b];
        // The axis that is contracted; a vector has no other.
        let contracted = [0, 1].map(|i| match ranks[i] {
            1 => 0,
            rank => rank - if (i == 0) == transposed[i] { 2 } else { 1 },
        });
        if rows.axis == contracted[operand] {
            return call.independent(&contracted.map(Some), &[None]);
        }
        let matrices = ranks.map(|rank| usize::from(rank > 1));
        let result = call.outputs[0].shape.rank();
        if rows.axis + 2 >= ranks[operand] {
            // The rows or columns of a matrix, and so those of the result.
            let free = if operand == 0 { result - 1 - matrices[1] } else { result - 1 };
            let inputs = [0, 1].map(|i| (i == operand).then_some(rows.axis));
            return call.independent(&inputs, &[Some(free)]);
        }
        // A batch dimension: the other operand has it, or is broadcast along it.
        let from_end = ranks[operand] - rows.axis;
        let own = |i: usize| {
            let axis = ranks[i].checked_sub(from_end)?;
            (call.inputs[i].shape[axis] != 1).then_some(axis)
        };
        let batch = result - matrices[0] - matrices[1] - (from_end - 2);
        call.independent(&[own(0), own(1)], &[Some(batch)])
    }
}

impl FuseEpilogue for Matmul {
    fn fuse_epilogue(&self, epilogue: Arc<dyn Epilogue>) -> Arc<dyn Op> {
        Arc::new(Matmul { epilogue: Some(epilogue), ..self.clone() })
    }

    fn fuse_accumulation(&self, inputs: &[&Spec]) -> Option<Arc<dyn Op>> {
        let [m, k, _, n] = self.sizes(&inputs[0].shape, &inputs[1].shape).ok()?;
        let are_matrices = inputs.iter().all(|input| input.shape.rank() == 2);
        let is_exact = are_matrices && kernel::adds_after_sum(inputs[0].dtype, [m, k, n]);
        is_exact.then(|| -> Arc<dyn Op> { Arc::new(Matmul { accumulates: true, ..self.clone() }) })
    }
}

impl Differentiable for Matmul {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(Saves::others(wanted))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(g) = call.take_gradient(0) else { return Ok(Gradients::new()) };
        let (a_shape, b_shape) = (call.input_shape(0), call.input_shape(1));
        // Vectors become matrices, and the gradient gets back the axes that the result dropped for them.
        let row = |x: &Tensor| if x.rank() == 1 { expand_dims(x, 0) } else { Ok(x.clone()) };
        let column = |x: &Tensor| if x.rank() == 1 { expand_dims(x, 1) } else { Ok(x.clone()) };
        let g = if b_shape.rank() == 1 { expand_dims(g, -1)? } else { g };
        let g = if a_shape.rank() == 1 { expand_dims(g, -2)? } else { g };
        let own = |x: Tensor, shape: &Shape, vector: usize| match shape.rank() {
            1 => reshape_to(sum_to(x, &shape.clone().with_inserted(vector, 1))?, shape),
            _ => sum_to(x, shape),
        };
        let mut gradients = Gradients::from_elem(None, 2);
        if call.wants(0) {
            let b = column(call.input(1)?)?;
            let a = if self.transpose_a {
                matmul_with(b, &g, self.transpose_b, true)?
            } else {
                matmul_with(&g, b, false, !self.transpose_b)?
            };
            gradients[0] = Some(own(a, a_shape, 0)?.into());
        }
        if call.wants(1) {
            let a = row(call.input(0)?)?;
            let b = if self.transpose_b {
                matmul_with(g, a, true, self.transpose_a)?
            } else {
                matmul_with(a, g, !self.transpose_a, false)?
            };
            gradients[1] = Some(own(b, b_shape, 1)?.into());
        }
        Ok(gradients)
    }
}

/// The batch dimensions: all but the last two.
fn batch_dims(shape: &[usize]) -> &[usize] {
    &shape[..shape.len().saturating_sub(2)]
}

/// Strides that broadcast an operand to a batch of matrices of batch shape `batch`.
fn strides(x: &View<'_>, batch: &[usize], transpose: bool, vector: fn(isize) -> [isize; 2]) -> Strides {
    let own = batch_dims(x.shape());
    let added = batch.len() - own.len();
    let mut strides = Strides::from_elem(0, added);
    strides.extend((0..own.len()).map(|i| if own[i] == batch[added + i] { x.strides()[i] } else { 0 }));
    strides.extend(match *x.strides() {
        [.., rows, columns] if transpose => [columns, rows],
        [.., rows, columns] => [rows, columns],
        [stride] => vector(stride),
        [] => [0, 0],
    });
    strides
}

/// The matrix product of the last two axes; leading (batch) dimensions broadcast.
///
/// A vector is a row on the left and a column on the right, and its axis of size one is dropped from the result. Integers
/// wrap.
///
/// ```
/// use taut_core::{Tensor, ops::contract::matmul};
/// let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let x = Tensor::from_slice(&[1.0f32, -1.0], [2])?;
/// assert_eq!(matmul(&a, &x)?.to_vec::<f32>()?, [-1.0, -1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn matmul(a: impl Into<Tensor>, b: impl Into<Tensor>) -> Result<Tensor> {
    matmul_with(a, b, false, false)
}

/// As [`matmul`], with the last two axes of an operand transposed if its flag is set, without a copy.
#[inline]
#[track_caller]
pub fn matmul_with(
    a: impl Into<Tensor>,
    b: impl Into<Tensor>,
    transpose_a: bool,
    transpose_b: bool,
) -> Result<Tensor> {
    let (a, b) = (a.into(), b.into());
    let dtype = common_dtype("matmul", [&a, &b])?;
    if dtype.is_complex() {
        return complex_matmul(a, b, transpose_a, transpose_b, dtype.part());
    }
    apply(
        &Matmul { transpose_a, transpose_b, epilogue: None, accumulates: false },
        [cast(a, dtype)?, cast(b, dtype)?],
    )
}

/// The product of complex matrices, or of a complex and a real one, from products of their parts.
#[track_caller]
fn complex_matmul(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, part: DType) -> Result<Tensor> {
    let ((re_a, im_a), (re_b, im_b)) = (parts(&a, part)?, parts(&b, part)?);
    let mut re = matmul_with(&re_a, &re_b, transpose_a, transpose_b)?;
    let mut im = match &im_b {
        Some(im_b) => Some(matmul_with(&re_a, im_b, transpose_a, transpose_b)?),
        None => None,
    };
    if let Some(im_a) = im_a {
        let other = matmul_with(&im_a, &re_b, transpose_a, transpose_b)?;
        im = Some(match im {
            Some(im) => add(im, other)?,
            None => other,
        });
        if let Some(im_b) = im_b {
            re = sub(re, matmul_with(&im_a, &im_b, transpose_a, transpose_b)?)?;
        }
    }
    match im {
        Some(im) => complex(re, im),
        None => Ok(re),
    }
}

/// The real part, and the imaginary part of what has one.
#[track_caller]
fn parts(x: &Tensor, part: DType) -> Result<(Tensor, Option<Tensor>)> {
    let imaginary = if x.dtype().is_complex() { Some(cast(imag(x)?, part)?) } else { None };
    Ok((cast(real(x)?, part)?, imaginary))
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "matmul",
    &[
        Param::tensor("a"),
        Param::tensor("b"),
        Param::optional("transpose_a", ParamKind::Bool, "False"),
        Param::optional("transpose_b", ParamKind::Bool, "False"),
    ],
    |a| {
        let flag = |i| Ok::<_, Error>(a.bool_or(i)?.unwrap_or(false));
        one(matmul_with(a.tensor(0)?, a.tensor(1)?, flag(2)?, flag(3)?))
    },
    Reference::Numpy(
        "np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)",
    ),
    Samples::List(|| {
        let cases: [(&[usize], &[usize], bool, bool); 8] = [
            (&[2, 3], &[3, 4], false, false),
            (&[3, 2], &[4, 3], true, true),
            (&[3], &[3], false, false),
            (&[3], &[2, 3, 2], false, false),
            (&[2, 1, 2, 3], &[3, 3, 2], false, false),
            (&[2, 2, 3], &[3], false, false),
            (&[2, 0], &[0, 3], false, false),
            (&[0, 2, 3], &[3, 1], false, false),
        ];
        let with = |dtype, (a, b, ta, tb): (&[usize], &[usize], bool, bool)| {
            vec![ramp(dtype, a, -3.0, 3.0), ramp(dtype, b, -1.0, 4.0), ArgValue::Bool(ta), ArgValue::Bool(tb)]
        };
        let mut samples: Vec<_> =
            dtypes::ARITHMETIC.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect();
        for &dtype in dtypes::WIDE {
            // Positive values: no cancellation, so another summation order gives close results.
            let (a, b) = (ramp(dtype, &[2, 17, 33], 0.5, 2.0), ramp(dtype, &[2, 9, 33], 0.5, 1.5));
            samples.push(vec![a, b, ArgValue::Bool(false), ArgValue::Bool(true)]);
        }
        samples.push(vec![ramp(DType::I32, &[2, 3], -3.0, 3.0), ramp(DType::F32, &[3, 2], -1.0, 1.0)]);
        samples
    }),
)
.refuses(|| {
    let bad = |a: &[usize], b: &[usize], flag, kind, message| {
        let x = |shape| ramp(DType::F32, shape, 0.0, 1.0);
        InvalidArgs::new(vec![x(a), x(b), ArgValue::Bool(flag)], kind, message)
    };
    let bools = || ramp(DType::Bool, &[2, 2], 0.0, 1.0);
    vec![
        bad(&[2, 3], &[2, 3], false, ErrorKind::Shape, "inner dimensions must be equal, got 2x3 and 2x3 matrices"),
        bad(&[], &[2], false, ErrorKind::Shape, "operands must have rank >= 1, got a scalar"),
        bad(&[2], &[2, 3], true, ErrorKind::Value, "transpose_a needs rank >= 2, got a vector"),
        bad(&[2, 2, 3], &[3, 3, 2], false, ErrorKind::Shape, "do not broadcast"),
        InvalidArgs::new(vec![bools(), bools()], ErrorKind::DType, "bool is not supported"),
    ]
})];
