//! The gradients of pooling.

use super::pool::{Keep, PoolOptions, avg_pool_with, cases};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::batching::times;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::window::sliding_reference;
use crate::ops::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply};
use taut_kernels::pooling::{self as kernel, PoolParams};
use taut_kernels::{Arg, ViewMut};

#[derive(Clone, Debug)]
struct MaxPoolGradient {
    options: PoolOptions,
}

impl Op for MaxPoolGradient {
    fn name(&self) -> &'static str {
        "max_pool_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, dy) = (inputs[0], inputs[1]);
        Keep::Mean.check(x.dtype)?;
        if x.dtype != dy.dtype {
            return Err(Error::dtype(format!("types {} and {} differ", x.dtype, dy.dtype)));
        }
        check_gradient(&dy.shape, &self.options.resolve(&x.shape)?.1)?;
        Ok(x.clone().into())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let params = self.options.resolve(&inputs[0].shape);
        params.map_or(0, |(params, y)| kernel::max_gradient_scratch(&params, &y))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, dy) = (inputs[0].view(), inputs[1].view());
        let (params, _) = self.options.resolve(&x.shape().into())?;
        kernel::max_gradient(&params, x, dy, outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.folded(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        self.options.cost(&inputs[1].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        self.options.attributes()
    }
}

impl Differentiable for MaxPoolGradient {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        // Which element wins does not change with it: the image itself has no gradient.
        wanted.has(1).then_some(Saves::residual_of([0]))
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        winners(call.input(0)?, &self.options).map(Some)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 2);
        if let Some(g) = call.take_gradient(0)
            && call.wants(1)
        {
            gradients[1] = Some(of_winners(g, call.residual()?, &self.options)?.into());
        }
        Ok(gradients)
    }
}

/// The tap of every window that holds its first largest element, as a number in window order: all that the gradient of
/// max pooling has to know.
#[derive(Clone, Debug)]
struct Winners {
    options: PoolOptions,
}

impl Op for Winners {
    fn name(&self) -> &'static str {
        "max_pool_winners"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Keep::Mean.check(inputs[0].dtype)?;
        let (params, shape) = self.options.resolve(&inputs[0].shape)?;
        Ok(Spec { dtype: kernel::winner_dtype(&params), shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let (params, _) = self.options.resolve(&x.shape().into())?;
        kernel::max_winners(&params, x, outputs[0].reborrow());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.folded(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        self.options.cost(&outputs[0].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        self.options.attributes()
    }
}

/// The winning taps of [`max_pool`](super::max_pool)'s windows.
#[track_caller]
pub(super) fn winners(x: &Tensor, options: &PoolOptions) -> Result<Tensor> {
    apply(&Winners { options: options.clone() }, [x.into()])
}

/// Adds each window's value to the element that its winning tap lies at.
#[derive(Clone, Debug)]
struct ToWinners {
    input_shape: Shape,
    options: PoolOptions,
}

impl Op for ToWinners {
    fn name(&self) -> &'static str {
        "max_pool_to_winners"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (winners, dy) = (inputs[0], inputs[1]);
        Keep::Mean.check(dy.dtype)?;
        let (params, y) = self.options.resolve(&self.input_shape)?;
        check_winners(winners, &params, &y)?;
        check_gradient(&dy.shape, &y)?;
        Ok(Spec { dtype: dy.dtype, shape: self.input_shape.clone() }.into())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        inputs[0].bytes()
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (params, _) = self.options.resolve(&self.input_shape)?;
        kernel::to_winners(&params, inputs[0].view(), inputs[1].view(), outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let batch = times(self.input_shape[0], call.size)?;
        call.folded(&ToWinners { input_shape: self.input_shape.clone().with(0, batch), ..self.clone() })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        self.options.cost(&inputs[1].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        format!("input_shape={}, {}", self.input_shape, self.options.attributes())
    }
}

impl Differentiable for ToWinners {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([0]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 2);
        if let Some(g) = call.take_gradient(0) {
            gradients[1] = Some(of_winners(g, call.input(0)?, &self.options)?.into());
        }
        Ok(gradients)
    }
}

/// [`max_pool_gradient`] where the winners are known.
#[track_caller]
pub(super) fn to_winners(
    input_shape: Shape,
    winners: &Tensor,
    dy: Tensor,
    options: &PoolOptions,
) -> Result<Tensor> {
    apply(&ToWinners { input_shape, options: options.clone() }, [winners.into(), dy])
}

/// The element that each window's winning tap lies at; zero if that is padding.
#[derive(Clone, Debug)]
struct OfWinners {
    options: PoolOptions,
}

impl Op for OfWinners {
    fn name(&self) -> &'static str {
        "max_pool_of_winners"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, winners) = (inputs[0], inputs[1]);
        Keep::Mean.check(x.dtype)?;
        let (params, y) = self.options.resolve(&x.shape)?;
        check_winners(winners, &params, &y)?;
        Ok(Spec { dtype: x.dtype, shape: y }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let (params, _) = self.options.resolve(&x.shape().into())?;
        kernel::of_winners(&params, x, inputs[1].view(), outputs[0].reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.folded(self)
    }

    fn attributes(&self) -> String {
        self.options.attributes()
    }
}

impl Differentiable for OfWinners {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| to_winners(call.input_shape(0).clone(), call.input(1)?, g, &self.options))
    }
}

/// What [`to_winners`] is the way back from.
#[track_caller]
fn of_winners(x: Tensor, winners: &Tensor, options: &PoolOptions) -> Result<Tensor> {
    apply(&OfWinners { options: options.clone() }, [x, winners.into()])
}

fn check_winners(winners: &Spec, params: &PoolParams, y: &Shape) -> Result<()> {
    let wanted = Spec::new(kernel::winner_dtype(params), y.clone());
    if *winners == wanted {
        Ok(())
    } else {
        Err(Error::shape(format!("the winners are {winners}, not {wanted}")))
    }
}

#[derive(Clone, Debug)]
struct AvgPoolGradient {
    input_shape: Shape,
    options: PoolOptions,
}

impl Op for AvgPoolGradient {
    fn name(&self) -> &'static str {
        "avg_pool_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Keep::Mean.check(inputs[0].dtype)?;
        check_gradient(&inputs[0].shape, &self.options.resolve(&self.input_shape)?.1)?;
        Ok(Spec { dtype: inputs[0].dtype, shape: self.input_shape.clone() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (params, _) = self.options.resolve(&self.input_shape)?;
        let out = outputs[0].reborrow();
        kernel::average_gradient(&params, self.options.count_padding, inputs[0].view(), out);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let batch = times(self.input_shape[0], call.size)?;
        call.folded(&AvgPoolGradient { input_shape: self.input_shape.clone().with(0, batch), ..self.clone() })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        self.options.cost(&inputs[0].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        format!("input_shape={}, {}", self.input_shape, self.options.attributes())
    }
}

impl Differentiable for AvgPoolGradient {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| avg_pool_with(g, &self.options))
    }
}

fn check_gradient(dy: &Shape, y: &Shape) -> Result<()> {
    if dy == y {
        return Ok(());
    }
    Err(Error::shape(format!("the gradient has shape {dy}, the pooled image {y}")))
}

/// The gradient of [`max_pool`](super::max_pool) with respect to its input, given that of its result: it goes to the first
/// largest element of every window.
#[track_caller]
pub fn max_pool_gradient(
    x: impl Into<Tensor>,
    dy: impl Into<Tensor>,
    options: &PoolOptions,
) -> Result<Tensor> {
    apply(&MaxPoolGradient { options: options.clone() }, [x.into(), dy.into()])
}

/// The gradient of [`avg_pool`](super::avg_pool) with respect to its input, given that of its result.
#[track_caller]
pub fn avg_pool_gradient(
    input_shape: impl Into<Shape>,
    dy: impl Into<Tensor>,
    options: &PoolOptions,
) -> Result<Tensor> {
    let op = AvgPoolGradient { input_shape: input_shape.into(), options: options.clone() };
    apply(&op, [dy.into()])
}

fn samples(average: bool) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::FLOATS {
        for (shape, way) in cases() {
            let options = PoolOptions::from_args(&Args(&way), 0);
            let (_, y) = options.and_then(|o| o.resolve(&shape.into())).expect("the cases are right");
            let first = if average {
                ArgValue::Ints(shape.iter().map(|&d| d as i64).collect())
            } else {
                ramp(dtype, shape, -4.0, 4.0)
            };
            let mut args = vec![first, ramp(dtype, &y, -1.0, 2.0)];
            args.extend(way.into_iter().take(if average { 7 } else { 6 }));
            samples.push(args);
        }
    }
    samples
}

fn refuses(first: ArgValue, ints: ArgValue) -> Vec<Bad> {
    let dy = |dtype| ramp(dtype, &[1, 4, 4, 2], 0.0, 1.0);
    let window = || ArgValue::Ints(vec![2, 2]);
    vec![
        Bad::new(
            vec![first, dy(DType::F32), window()],
            ErrorKind::Shape,
            "the gradient has shape [1, 4, 4, 2], the pooled image [1, 3, 3, 2]",
        ),
        Bad::new(vec![ints, dy(DType::I32), window()], ErrorKind::DType, "int32 is not supported"),
    ]
}

const WAY: [Param; 7] = [
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
        &[Param::tensor("x"), Param::tensor("dy"), WAY[0], WAY[1], WAY[2], WAY[3], WAY[4], WAY[5]],
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
        refuses(x(DType::F32), x(DType::I32))
    }),
    OpEntry::new(
        "avg_pool_gradient",
        &[
            Param::new("input_shape", ParamKind::Ints),
            Param::tensor("dy"),
            WAY[0],
            WAY[1],
            WAY[2],
            WAY[3],
            WAY[4],
            WAY[5],
            WAY[6],
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
        refuses(shape(), shape())
    }),
];
