//! The gradients of pooling.

use super::pool::{AVG_POOL, PoolOptions, cases};
use crate::error::{ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::window::sliding_reference;
use crate::ops::windowed::{Role, WindowOptions, WindowRule, Windowed};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Gradients, Saves, Shape, Tensor, apply};
use taut_kernels::pooling as kernel;

static MAX_POOL_GRADIENT: WindowRule = WindowRule {
    name: "max_pool_gradient",
    inputs: &[Role::Image, Role::Result],
    output: Role::Image,
    scratch: |shapes, _| kernel::max_gradient_scratch(&shapes.pool(), &shapes.result),
    run: |shapes, inputs, out, scratch| {
        kernel::max_gradient(&shapes.pool(), inputs[0].view(), inputs[1].view(), out, scratch);
    },
    // The argmax is piecewise constant in the image, which therefore has no gradient.
    saves: |wanted| wanted.has(1).then_some(Saves::residual_of([0])),
    residual: |op, call| op.call(&MAX_POOL_ARGMAX, None, [call.input(0)?.clone()]).map(Some),
    vjp: |op, call| {
        let mut gradients = Gradients::from_elem(None, 2);
        if let Some(g) = call.take_gradient(0)
            && call.wants(1)
        {
            let inputs = [g, call.residual()?.clone()];
            gradients[1] = Some(op.call(&MAX_POOL_GATHER, None, inputs)?.into());
        }
        Ok(gradients)
    },
    ..WindowRule::BASE
};

/// The argmax of each window: the index of its tap with the first maximum, in row-major order. It is the residual of max
/// pooling.
pub(super) static MAX_POOL_ARGMAX: WindowRule = WindowRule {
    name: "max_pool_argmax",
    output: Role::Argmax,
    run: |shapes, inputs, out, _| kernel::max_winners(&shapes.pool(), inputs[0].view(), out),
    ..WindowRule::BASE
};

/// Adds each window's value to the element at its argmax: [`max_pool_gradient`] with a saved argmax.
pub(super) static MAX_POOL_SCATTER: WindowRule = WindowRule {
    name: "max_pool_scatter",
    inputs: &[Role::Argmax, Role::Result],
    output: Role::Image,
    scratch: |shapes, dtype| shapes.result.len() * dtype.size(),
    run: |shapes, inputs, out, scratch| {
        kernel::to_winners(&shapes.pool(), inputs[0].view(), inputs[1].view(), out, scratch);
    },
    saves: |_| Some(Saves::inputs([0])),
    vjp: |op, call| {
        let mut gradients = Gradients::from_elem(None, 2);
        if let Some(g) = call.take_gradient(0) {
            let inputs = [g, call.input(0)?.clone()];
            gradients[1] = Some(op.call(&MAX_POOL_GATHER, None, inputs)?.into());
        }
        Ok(gradients)
    },
    ..WindowRule::BASE
};

/// The element at each window's argmax, zero if that is padding: the transpose of [`MAX_POOL_SCATTER`].
static MAX_POOL_GATHER: WindowRule = WindowRule {
    name: "max_pool_gather",
    inputs: &[Role::Image, Role::Argmax],
    flops: |_| 1,
    run: |shapes, inputs, out, _| {
        kernel::of_winners(&shapes.pool(), inputs[0].view(), inputs[1].view(), out);
    },
    saves: |_| Some(Saves::inputs([1])),
    vjp: |op, call| {
        call.first(|call, g| {
            let x = call.input_shape(0).clone();
            op.call(&MAX_POOL_SCATTER, Some(x), [call.input(1)?.clone(), g])
        })
    },
    ..WindowRule::BASE
};

pub(super) static AVG_POOL_GRADIENT: WindowRule = WindowRule {
    name: "avg_pool_gradient",
    inputs: &[Role::Result],
    output: Role::Image,
    run: |shapes, inputs, out, _| {
        kernel::average_gradient(&shapes.pool(), shapes.count_padding, inputs[0].view(), out);
    },
    saves: |_| Some(Saves::NOTHING),
    vjp: |op, call| call.first(|_, g| op.call(&AVG_POOL, None, [g])),
    ..WindowRule::BASE
};

/// The gradient of [`max_pool`](super::max_pool) with respect to its input, given the gradient `dy` of its result: it goes
/// to the first maximum of each window.
#[track_caller]
pub fn max_pool_gradient(
    x: impl Into<Tensor>,
    dy: impl Into<Tensor>,
    options: &PoolOptions,
) -> Result<Tensor> {
    apply(&Windowed::new(&MAX_POOL_GRADIENT, options), [x.into(), dy.into()])
}

/// The gradient of [`avg_pool`](super::avg_pool) with respect to its input, given the gradient `dy` of its result.
#[track_caller]
pub fn avg_pool_gradient(
    input_shape: impl Into<Shape>,
    dy: impl Into<Tensor>,
    options: &PoolOptions,
) -> Result<Tensor> {
    apply(&Windowed::shaped(&AVG_POOL_GRADIENT, options, input_shape), [dy.into()])
}

fn samples(average: bool) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::FLOATS {
        for (shape, options) in cases() {
            let parsed = PoolOptions::from_args(&Args(&options), 0);
            let shapes = parsed.and_then(|o| WindowOptions::from(&o).resolve(&shape.into(), None));
            let y = shapes.expect("the cases are valid").result;
            let first = if average {
                ArgValue::Ints(shape.iter().map(|&d| d as i64).collect())
            } else {
                ramp(dtype, shape, -4.0, 4.0)
            };
            let mut args = vec![first, ramp(dtype, &y, -1.0, 2.0)];
            args.extend(options.into_iter().take(if average { 7 } else { 6 }));
            samples.push(args);
        }
    }
    samples
}

fn invalid(first: ArgValue, ints: ArgValue) -> Vec<InvalidArgs> {
    let dy = |dtype| ramp(dtype, &[1, 4, 4, 2], 0.0, 1.0);
    let window = || ArgValue::Ints(vec![2, 2]);
    vec![
        InvalidArgs::new(
            vec![first, dy(DType::F32), window()],
            ErrorKind::Shape,
            "the gradient must have the result's shape [1, 3, 3, 2], got [1, 4, 4, 2]",
        ),
        InvalidArgs::new(vec![ints, dy(DType::I32), window()], ErrorKind::DType, "int32 is not supported"),
    ]
}

const OPTIONS: [Param; 7] = [
    Param::new("ksize", ParamKind::Ints),
    Param::optional("strides", ParamKind::Ints, "None"),
    Param::optional("padding", ParamKind::Str, "'VALID'"),
    Param::optional("data_format", ParamKind::Str, "None"),
    Param::optional("dilations", ParamKind::Ints, "None"),
    Param::optional("explicit_paddings", ParamKind::Ints, "None"),
    Param::optional("count_padding", ParamKind::Bool, "False"),
];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "max_pool_gradient",
        &[Param::tensor("x"), Param::tensor("dy"), OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], OPTIONS[4], OPTIONS[5]],
        |a| one(max_pool_gradient(a.tensor(0)?, a.tensor(1)?, &PoolOptions::from_args(a, 2)?)),
        Reference::Numpy(concat!(
            sliding_reference!("x.shape", "ksize"),
            "xp := np.pad(last(x), [(0, 0), *pads, (0, 0)], constant_values=-np.inf), ",
            "dx := np.zeros((shape[0], *padded, shape[-1])), ",
            "winner := np.argmax(np.stack([xp[p] for p in patches]), axis=0), ",
            "[dx.__setitem__(p, dx[p] + np.where(winner == i, last(dy), 0)) for i, p in enumerate(patches)], ",
            "back(dx[crop]).astype(x.dtype)][-1]"
        )),
        Samples::List(|| samples(false)),
    )
    .refuses(|| {
        let x = |dtype| ramp(dtype, &[1, 4, 4, 2], 0.0, 1.0);
        invalid(x(DType::F32), x(DType::I32))
    }),
    OpEntry::new(
        "avg_pool_gradient",
        &[
            Param::new("input_shape", ParamKind::Ints),
            Param::tensor("dy"),
            OPTIONS[0],
            OPTIONS[1],
            OPTIONS[2],
            OPTIONS[3],
            OPTIONS[4],
            OPTIONS[5],
            OPTIONS[6],
        ],
        |a| one(avg_pool_gradient(a.shape(0)?, a.tensor(1)?, &PoolOptions::from_args(a, 2)?)),
        Reference::Numpy(concat!(
            sliding_reference!("input_shape", "ksize"),
            "inside := np.pad(np.ones(shape), [(0, 0), *pads, (0, 0)], constant_values=float(count_padding)), ",
            "share := last(dy) / sum(inside[p] for p in patches), ",
            "dx := np.zeros((shape[0], *padded, shape[-1])), ",
            "[dx.__setitem__(p, dx[p] + share) for p in patches], ",
            "back(dx[crop]).astype(dy.dtype)][-1]"
        )),
        Samples::List(|| samples(true)),
    )
    .refuses(|| {
        let shape = || ArgValue::Ints(vec![1, 4, 4, 2]);
        invalid(shape(), shape())
    }),
];
