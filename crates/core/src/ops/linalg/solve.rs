//! Solvers of linear systems: square, triangular and least squares.

use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, sub};
use crate::ops::contract::matmul;
use crate::ops::creation::{eye, tril, triu};
use crate::ops::elementwise::sum_to;
use crate::ops::matrices::{
    adjoint, adjoint_times, check_dtype, check_square, narrow, numeric, regular, repeated, split,
    times_adjoint, wide,
};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::reshape;
use crate::ops::unary::{cast, neg};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::float_of;
use crate::{DType, Outputs, Shape, Tensor, apply_many, promote};
use taut_kernels::linalg as kernels;
use taut_kernels::{Arg, ViewMut};

/// Solves `a @ x = b` for batches of matrices that broadcast.
#[derive(Clone, Debug)]
struct Solve {
    problem: Problem,
}

#[derive(Clone, Copy, Debug)]
enum Problem {
    Square,
    Triangular {
        lower: bool,
        unit: bool,
        adjoint: bool,
    },
    /// The second output is the rank of each matrix.
    LeastSquares {
        rcond: Option<f64>,
    },
}

impl Solve {
    /// Applies the solver after promoting the operands; for a vector `b` the solution is a vector.
    #[track_caller]
    fn apply(&self, a: Tensor, b: Tensor) -> Result<Outputs> {
        let given = promote(float_of(a.dtype()), float_of(b.dtype()))?;
        let (a, b) = (wide(a)?, wide(b)?);
        let dtype = promote(a.dtype(), b.dtype())?;
        let vector = b.rank() == 1;
        let b = cast(b, dtype)?;
        let b = if vector { reshape(&b, &[b.len() as isize, 1])? } else { b };
        let mut outputs = apply_many(self, vec![cast(a, dtype)?, b])?;
        if vector {
            let shape = outputs[0].shape();
            let flat: Vec<isize> = shape[..shape.rank() - 1].iter().map(|&dim| dim as isize).collect();
            outputs[0] = reshape(&outputs[0], &flat)?;
        }
        outputs[0] = narrow(outputs[0].clone(), given)?;
        Ok(outputs)
    }
}

impl Op for Solve {
    fn name(&self) -> &'static str {
        match self.problem {
            Problem::Square => "solve",
            Problem::Triangular { .. } => "triangular_solve",
            Problem::LeastSquares { .. } => "lstsq",
        }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (a, b) = (inputs[0], inputs[1]);
        check_dtype(a.dtype)?;
        if a.dtype != b.dtype {
            let message = format!("a and b must have the same dtype, got {} and {}", a.dtype, b.dtype);
            return Err(Error::dtype(message));
        }
        let ((a_batch, m, n), (b_batch, rows, k)) = (split(&a.shape)?, split(&b.shape)?);
        if !matches!(self.problem, Problem::LeastSquares { .. }) {
            check_square(m, n)?;
        }
        if rows != m {
            return Err(Error::shape(format!("b must have {m} rows, as many as a, got {rows}")));
        }
        let batch = Shape::from(a_batch).broadcast(&Shape::from(b_batch))?;
        let mut outputs = Specs::new();
        outputs.push(Spec::new(a.dtype, batch.iter().copied().chain([n, k]).collect::<Shape>()));
        if let Problem::LeastSquares { rcond } = self.problem {
            if let Some(rcond) = rcond.filter(|rcond| rcond.is_nan() || *rcond < 0.0) {
                return Err(Error::value(format!("rcond must be >= 0, got {rcond}")));
            }
            outputs.push(Spec::new(DType::I64, batch));
        }
        Ok(outputs)
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let dtype = inputs[0].dtype;
        let ([.., m, n], [.., k]) = (&inputs[0].shape[..], &inputs[1].shape[..]) else { return 0 };
        match self.problem {
            Problem::Square => kernels::solve_scratch(dtype, *n, *k),
            Problem::Triangular { .. } => kernels::triangular_solve_scratch(dtype, *n),
            Problem::LeastSquares { .. } => kernels::lstsq_scratch(dtype, *m, *n, *k),
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (a, b) = (inputs[0].view(), inputs[1].view());
        let batch = &outputs[0].shape()[..outputs[0].shape().len() - 2];
        let ((a_shape, a_strides), (b_shape, b_strides)) = (repeated(&a, batch), repeated(&b, batch));
        let (a, b) = (a.with_layout(&a_shape, &a_strides), b.with_layout(&b_shape, &b_strides));
        let outcome = match (self.problem, outputs) {
            (Problem::Square, [x]) => kernels::solve(a, b, x.reborrow(), scratch),
            (Problem::Triangular { lower, unit, adjoint }, [x]) => {
                kernels::triangular_solve(a, b, lower, unit, adjoint, x.reborrow(), scratch)
            }
            (Problem::LeastSquares { rcond }, [x, rank]) => {
                kernels::lstsq(a, b, rcond, x.reborrow(), Some(rank.reborrow()), scratch)
            }
            (_, outputs) => {
                let message = format!("got {} outputs, which is not the inferred number", outputs.len());
                return Err(Error::new(ErrorKind::Graph, message));
            }
        };
        outcome.map_err(numeric)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_broadcast(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let n = inputs[0].shape.last().copied().unwrap_or(0) as u64;
        let factoring =
            if matches!(self.problem, Problem::Triangular { .. }) { 0 } else { inputs[0].shape.len() as u64 };
        let bytes = inputs.iter().map(|s| s.bytes()).chain(outputs.iter().map(Spec::bytes)).sum::<usize>();
        Cost { flops: n * (factoring + 2 * outputs[0].shape.len() as u64), bytes: bytes as u64 }
    }

    fn makes_long_calls(&self) -> bool {
        true
    }

    fn attributes(&self) -> String {
        match self.problem {
            Problem::Square => String::new(),
            Problem::Triangular { lower, unit, adjoint } => {
                format!("lower={lower}, unit={unit}, adjoint={adjoint}")
            }
            Problem::LeastSquares { rcond } => {
                rcond.map_or_else(String::new, |rcond| format!("rcond={rcond}"))
            }
        }
    }
}

impl Differentiable for Solve {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        let mut saves = Saves::INPUT;
        if wanted.has(0) {
            saves = saves.and(Saves::OUTPUT);
            if matches!(self.problem, Problem::LeastSquares { .. }) {
                saves = saves.and(Saves::inputs([1]));
            }
        }
        Some(saves)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 2);
        let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
        let a = call.input(0)?;
        let (gb, ga) = match self.problem {
            Problem::Square => {
                let gb = solve(adjoint(a)?, g)?;
                let ga = matrix_gradient(call, |x| neg(times_adjoint(&gb, x)?))?;
                (gb, ga)
            }
            Problem::Triangular { lower, unit, adjoint } => {
                let gb = triangular_solve(a, g, lower, !adjoint, unit)?;
                let ga = matrix_gradient(call, |x| {
                    let (left, right) = if adjoint { (x, &gb) } else { (&gb, x) };
                    let ga = neg(times_adjoint(left, right)?)?;
                    let k = isize::from(unit);
                    if lower { tril(ga, -k) } else { triu(ga, k) }
                })?;
                (gb, ga)
            }
            Problem::LeastSquares { rcond } => {
                let [.., m, _] = a.shape()[..] else { return Ok(gradients) };
                let (inverse, _) = lstsq(a, eye(m, None, (), a.dtype(), 0)?, rcond)?;
                let gb = adjoint_times(&inverse, &g)?;
                let ga = matrix_gradient(call, |x| {
                    let residual = sub(call.input(1)?, matmul(a, x)?)?;
                    let null_space = sub(&g, matmul(&inverse, matmul(a, &g)?)?)?;
                    let ga = sub(times_adjoint(residual, matmul(&inverse, &gb)?)?, times_adjoint(&gb, x)?)?;
                    add(ga, times_adjoint(adjoint_times(&inverse, x)?, null_space)?)
                })?;
                (gb, ga)
            }
        };
        gradients[0] = ga.map(|ga| sum_to(ga, call.input_shape(0))).transpose()?.map(Into::into);
        if call.wants(1) {
            gradients[1] = Some(sum_to(gb, call.input_shape(1))?.into());
        }
        Ok(gradients)
    }
}

/// The gradient of the matrix, computed from the solution, if it is wanted.
fn matrix_gradient(
    call: &VjpCall<'_>,
    rule: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Option<Tensor>> {
    if call.wants(0) { rule(call.output(0)?).map(Some) } else { Ok(None) }
}

/// Solves `a @ x = b` for square matrices; batch dimensions broadcast, and for a vector `b` the result is a vector. A
/// singular matrix is an error.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::solve};
/// let a = Tensor::from_slice(&[2.0f64, 0.0, 0.0, 4.0], [2, 2])?;
/// let b = Tensor::from_slice(&[2.0f64, 2.0], [2])?;
/// assert_eq!(solve(&a, &b)?.to_vec::<f64>()?, [1.0, 0.5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn solve(a: impl Into<Tensor>, b: impl Into<Tensor>) -> Result<Tensor> {
    let op = Solve { problem: Problem::Square };
    Ok(op.apply(a.into(), b.into())?.swap_remove(0))
}

/// Solves `a @ x = b` for triangular matrices, of which only the lower or the upper triangle is read.
///
/// With `adjoint`, solves `adjoint(a) @ x = b`; with `unit_diagonal`, the diagonal is taken as ones.
#[track_caller]
pub fn triangular_solve(
    a: impl Into<Tensor>,
    b: impl Into<Tensor>,
    lower: bool,
    adjoint: bool,
    unit_diagonal: bool,
) -> Result<Tensor> {
    let op = Solve { problem: Problem::Triangular { lower, unit: unit_diagonal, adjoint } };
    Ok(op.apply(a.into(), b.into())?.swap_remove(0))
}

/// The least-squares solution of `a @ x = b`: the `x` of least norm that minimizes `norm(a @ x - b)`, and the rank of each
/// matrix.
///
/// Singular values up to `rcond` times the largest count as zero; the default is the dtype's epsilon times the larger
/// dimension.
#[track_caller]
pub fn lstsq(
    a: impl Into<Tensor>,
    b: impl Into<Tensor>,
    rcond: impl Into<Option<f64>>,
) -> Result<(Tensor, Tensor)> {
    let op = Solve { problem: Problem::LeastSquares { rcond: rcond.into() } };
    let mut outputs = op.apply(a.into(), b.into())?;
    let x = outputs.swap_remove(0);
    Ok((x, outputs.swap_remove(0)))
}

/// Pairs of shapes whose first is square.
const PAIRS: &[(&[usize], &[usize])] = &[
    (&[3, 3], &[3]),
    (&[3, 3], &[3, 2]),
    (&[2, 3, 3], &[3, 1]),
    (&[4, 4], &[2, 2, 4, 3]),
    (&[1, 1], &[1, 1]),
    (&[0, 2, 2], &[2, 2]),
    (&[0, 0], &[0, 2]),
];

fn pairs() -> Vec<Vec<ArgValue>> {
    let with = |dtype| PAIRS.iter().map(move |(a, b)| vec![regular(dtype, a), ramp(dtype, b, -2.0, 2.0)]);
    dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn triangular_samples() -> Vec<Vec<ArgValue>> {
    let flags = |i: usize| [i & 1 != 0, i & 2 != 0, i & 4 != 0].map(ArgValue::Bool);
    pairs().into_iter().enumerate().map(|(i, args)| args.into_iter().chain(flags(i)).collect()).collect()
}

fn least_squares_samples() -> Vec<Vec<ArgValue>> {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[4, 2], &[4]),
        (&[4, 2], &[4, 3]),
        (&[2, 4], &[2, 1]),
        (&[2, 3, 3], &[3, 2]),
        (&[0, 3, 2], &[0, 3, 2]),
        (&[1, 1], &[1]),
    ];
    let with =
        |dtype| shapes.map(|(a, b)| vec![regular(dtype, a), ramp(dtype, b, -2.0, 2.0), ArgValue::None]);
    let mut samples: Vec<_> = dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect();
    let deficient = of(DType::F64, &[3, 2], &[1.0, 2.0, 2.0, 4.0, 3.0, 6.0]);
    samples.push(vec![deficient, ramp(DType::F64, &[3], -2.0, 2.0), ArgValue::Float(1e-3)]);
    samples
}

fn invalid_pairs(square: bool) -> Vec<InvalidArgs> {
    let with = |dtype, a: &[usize], b: &[usize]| vec![regular(dtype, a), ramp(dtype, b, 0.5, 1.0)];
    let mut bad = vec![
        InvalidArgs::new(
            with(DType::F32, &[3, 3], &[2, 3]),
            ErrorKind::Shape,
            "b must have 3 rows, as many as a, got 2",
        ),
        InvalidArgs::new(with(DType::F32, &[3, 3], &[]), ErrorKind::Shape, "expected rank >= 2, got rank 0"),
        InvalidArgs::new(with(DType::F32, &[2, 3, 3], &[3, 3, 1]), ErrorKind::Shape, "do not broadcast"),
        InvalidArgs::new(with(DType::F16, &[3, 3], &[3, 3]), ErrorKind::DType, "float16 is not supported"),
    ];
    if square {
        bad.push(InvalidArgs::new(
            with(DType::F32, &[3, 2], &[3]),
            ErrorKind::Shape,
            "expected square matrices, got 3x2",
        ));
        let singular = of(DType::F64, &[2, 2], &[1.0, 0.0, 2.0, 0.0]);
        let args = vec![singular, ramp(DType::F64, &[2], 0.5, 1.0), ArgValue::Bool(true)];
        bad.push(InvalidArgs::new(args, ErrorKind::Numeric, "matrix 0 of the batch is singular"));
    }
    bad
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "solve",
        &[Param::tensor("a"), Param::tensor("b")],
        |a| one(solve(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy("np.linalg.solve(a.astype(np.promote_types(a.dtype, np.float64)), b.astype(np.promote_types(b.dtype, np.float64))).astype(a.dtype)"),
        Samples::List(pairs),
    )
    .refuses(|| invalid_pairs(true)),
    OpEntry::new(
        "triangular_solve",
        &[
            Param::tensor("a"),
            Param::tensor("b"),
            Param::optional("lower", ParamKind::Bool, "True"),
            Param::optional("adjoint", ParamKind::Bool, "False"),
            Param::optional("unit_diagonal", ParamKind::Bool, "False"),
        ],
        |a| {
            let flag = |i, default| Ok::<_, Error>(a.bool_or(i)?.unwrap_or(default));
            one(triangular_solve(a.tensor(0)?, a.tensor(1)?, flag(2, true)?, flag(3, false)?, flag(4, false)?))
        },
        Reference::Numpy(
            "[w := np.promote_types(a.dtype, np.float64), t := (np.tril if lower else np.triu)(a.astype(w)), i := np.eye(a.shape[-1]), \
             t := np.where(i, 1.0, t) if unit_diagonal else t, t := np.conj(np.swapaxes(t, -1, -2)) if adjoint else t, \
             np.linalg.solve(t, b.astype(w)).astype(a.dtype)][-1]",
        ),
        Samples::List(triangular_samples),
    )
    .refuses(|| invalid_pairs(true)),
    OpEntry::new(
        "lstsq",
        &[Param::tensor("a"), Param::tensor("b"), Param::optional("rcond", ParamKind::Float, "None")],
        |a| {
            let (x, rank) = lstsq(a.tensor(0)?, a.tensor(1)?, a.float_or(2)?)?;
            Ok(vec![x, rank])
        },
        Reference::Numpy(
            "[w := a.astype(np.promote_types(a.dtype, np.float64)), v := b.ndim == 1, y := b[:, None] if v else b, \
             p := np.linalg.pinv(w, rcond=rcond or 1e-7), x := (p @ y).astype(a.dtype), [x[..., 0] if v else x, \
             np.broadcast_to(np.asarray(np.linalg.matrix_rank(w), np.int64), x.shape[:-2])]][-1]",
        ),
        Samples::List(least_squares_samples),
    )
    .refuses(|| invalid_pairs(false)),
];
