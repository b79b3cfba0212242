//! Pooling: the largest or the mean element of every window.

use super::pool_gradient::{avg_pool_gradient, to_winners, winners};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::window::{Channels, Padding, Sliding, sizes, sliding_reference};
use crate::ops::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply};
use taut_kernels::pooling::{self as kernel, PoolParams};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// How a pooling window slides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// The window's size, an entry per spatial dimension.
    pub ksize: Vec<usize>,
    /// The step from one window to the next: none is 1, one is for all dimensions.
    pub strides: Vec<usize>,
    /// What is added around the input. It is never the largest element.
    pub padding: Padding,
    /// The step from one tap of the window to the next: none is 1, one is for all dimensions.
    pub dilations: Vec<usize>,
    /// Where the channels are.
    pub channels: Channels,
    /// Whether means count padding as zeros.
    pub count_padding: bool,
}

impl PoolOptions {
    fn new(ksize: &[usize], strides: &[usize], padding: &str) -> Result<PoolOptions> {
        Ok(PoolOptions {
            ksize: ksize.to_vec(),
            strides: strides.to_vec(),
            padding: Padding::parse(padding)?,
            ..PoolOptions::default()
        })
    }

    /// The kernel's parameters and the output's shape, for an input of this shape.
    pub(super) fn resolve(&self, x: &Shape) -> Result<(PoolParams, Shape)> {
        let given = &self.ksize[..];
        let sliding = Sliding::new(x, given, &self.strides, &self.dilations, &self.padding, self.channels)?;
        if given.iter().try_fold(1u32, |taps, &k| taps.checked_mul(u32::try_from(k).ok()?)).is_none() {
            return Err(Error::shape(format!("a window of {given:?} has too many elements")));
        }
        let mut window = [1; 3];
        window[..sliding.rank].copy_from_slice(given);
        let Sliding { layout, rank, strides, dilations, padding, .. } = sliding;
        let params = PoolParams { layout, rank, window, strides, dilations, padding };
        Ok((params, sliding.output(x[0], x[self.channels.axis(rank)])))
    }

    /// The options among the arguments of a row of the table, from `first` on.
    pub(super) fn from_args(a: &Args<'_>, first: usize) -> Result<PoolOptions> {
        let ksize = sizes(a.ints_or(first)?, "windows")?.into_vec();
        let padding = a.str_or(first + 2)?.unwrap_or("VALID");
        Ok(PoolOptions {
            strides: sizes(a.ints_or(first + 1)?, "strides")?.into_vec(),
            padding: Padding::parse_with(padding, a.ints_or(first + 5)?.as_deref())?,
            channels: a.str_or(first + 3)?.map_or(Ok(Channels::Last), |f| Channels::parse(f, ksize.len()))?,
            dilations: sizes(a.ints_or(first + 4)?, "dilations")?.into_vec(),
            count_padding: a.bool_or(first + 6)?.unwrap_or(false),
            ksize,
        })
    }

    pub(super) fn attributes(&self) -> String {
        let PoolOptions { ksize, strides, padding, dilations, channels, count_padding } = self;
        format!(
            "ksize={ksize:?}, strides={strides:?}, padding={padding:?}, dilations={dilations:?}, {channels:?}{}",
            if *count_padding { ", count_padding" } else { "" }
        )
    }

    pub(super) fn cost(&self, pooled: &Shape, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let taps: usize = self.ksize.iter().product();
        let bytes = inputs.iter().map(|s| s.bytes()).sum::<usize>() + outputs[0].bytes();
        Cost { flops: taps as u64 * pooled.len() as u64, bytes: bytes as u64 }
    }
}

/// What pooling keeps of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Largest,
    Mean,
}

impl Keep {
    pub(super) fn check(self, dtype: DType) -> Result<()> {
        if dtype.is_float() || (self == Keep::Largest && dtype.is_integer()) {
            return Ok(());
        }
        Err(Error::dtype(format!("{dtype} is not supported")).help("cast to a float"))
    }
}

#[derive(Clone, Debug)]
struct Pool {
    keep: Keep,
    options: PoolOptions,
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        match self.keep {
            Keep::Largest => "max_pool",
            Keep::Mean => "avg_pool",
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        self.keep.check(inputs[0].dtype)?;
        let (_, shape) = self.options.resolve(&inputs[0].shape)?;
        Ok(Spec { dtype: inputs[0].dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (x, out) = (inputs[0].view(), outputs[0].reborrow());
        let (params, _) = self.options.resolve(&x.shape().into())?;
        match self.keep {
            Keep::Largest => kernel::max(&params, x, out),
            Keep::Mean => kernel::average(&params, self.options.count_padding, x, out),
        }
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
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

impl Differentiable for Pool {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(match self.keep {
            Keep::Largest => Saves::residual_of([0]),
            Keep::Mean => Saves::NOTHING,
        })
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        winners(call.input(0)?, &self.options).map(Some)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let x = call.input_shape(0).clone();
            match self.keep {
                Keep::Largest => to_winners(x, call.residual()?, g, &self.options),
                Keep::Mean => avg_pool_gradient(x, g, &self.options),
            }
        })
    }
}

/// The largest element of every window of an image `[batch, spatial.., channels]` with one to three spatial
/// dimensions; `padding` is `"SAME"` or `"VALID"`.
///
/// ```
/// use taut_core::{Tensor, ops::contract::max_pool};
/// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 0.0], [1, 4, 1])?;
/// assert_eq!(max_pool(&x, &[2], &[2], "VALID")?.to_vec::<f32>()?, [3.0, 2.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn max_pool(x: impl Into<Tensor>, ksize: &[usize], strides: &[usize], padding: &str) -> Result<Tensor> {
    let options = PoolOptions::new(ksize, strides, padding);
    let at = Location::caller();
    max_pool_with(x, &options.map_err(|e| e.in_op("max_pool", []).at(at))?)
}

/// The mean of every window of an image `[batch, spatial.., channels]` with one to three spatial dimensions, over what
/// lies inside; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn avg_pool(x: impl Into<Tensor>, ksize: &[usize], strides: &[usize], padding: &str) -> Result<Tensor> {
    let options = PoolOptions::new(ksize, strides, padding);
    let at = Location::caller();
    avg_pool_with(x, &options.map_err(|e| e.in_op("avg_pool", []).at(at))?)
}

/// As [`max_pool`], with all the ways to slide.
#[track_caller]
pub fn max_pool_with(x: impl Into<Tensor>, options: &PoolOptions) -> Result<Tensor> {
    apply(&Pool { keep: Keep::Largest, options: options.clone() }, [x.into()])
}

/// As [`avg_pool`], with all the ways to slide.
#[track_caller]
pub fn avg_pool_with(x: impl Into<Tensor>, options: &PoolOptions) -> Result<Tensor> {
    apply(&Pool { keep: Keep::Mean, options: options.clone() }, [x.into()])
}

/// The image's shape, the window's, strides, padding, data format, dilations, explicit padding, count of padding.
type Case<'a> =
    (&'a [usize], &'a [i64], &'a [i64], &'static str, &'static str, &'a [i64], Option<&'a [i64]>, bool);

/// What pooling and its gradients are tried on.
const CASES: &[Case<'static>] = &[
    (&[2, 7, 3], &[3], &[2], "SAME", "NWC", &[], None, false),
    (&[2, 3, 7], &[2], &[1], "VALID", "NCW", &[2], None, false),
    (&[2, 5, 6, 2], &[2, 3], &[2, 1], "SAME", "NHWC", &[], None, false),
    (&[1, 2, 5, 6], &[3, 3], &[2, 2], "EXPLICIT", "NCHW", &[], Some(&[1, 1, 0, 1]), true),
    (&[1, 3, 4, 5, 2], &[2, 2, 2], &[1, 2, 2], "SAME", "NDHWC", &[], None, true),
    (&[0, 4, 4, 3], &[2, 2], &[2], "VALID", "NHWC", &[], None, false),
];

/// The arguments of a case, after the image.
pub(super) fn cases() -> impl Iterator<Item = (&'static [usize], [ArgValue; 7])> {
    let amounts = |amounts: Option<&[i64]>| amounts.map_or(ArgValue::None, |v| ArgValue::Ints(v.to_vec()));
    CASES.iter().map(move |&(x, ksize, strides, padding, format, dilations, explicit, count)| {
        let way = [
            ArgValue::Ints(ksize.to_vec()),
            ArgValue::Ints(strides.to_vec()),
            ArgValue::Str(padding),
            ArgValue::Str(format),
            ArgValue::Ints(dilations.to_vec()),
            amounts(explicit),
            ArgValue::Bool(count),
        ];
        (x, way)
    })
}

fn samples(dtypes: &[DType], count: bool) -> Vec<Vec<ArgValue>> {
    let with = |dtype, (x, way): (&[usize], [ArgValue; 7])| {
        let mut args = vec![ramp(dtype, x, -4.0, 4.0)];
        args.extend(way.into_iter().take(if count { 7 } else { 6 }));
        args
    };
    dtypes.iter().flat_map(|&dtype| cases().map(move |case| with(dtype, case))).collect()
}

fn refuses(dtype: DType) -> Vec<Bad> {
    let bad = |ksize: &[i64], strides: &[i64], padding, kind, message| {
        let way = [ArgValue::Ints(ksize.to_vec()), ArgValue::Ints(strides.to_vec()), ArgValue::Str(padding)];
        let args = [ramp(DType::F32, &[1, 4, 4, 2], 0.0, 1.0)].into_iter().chain(way).collect();
        Bad::new(args, kind, message)
    };
    let wrong = vec![ramp(dtype, &[1, 4, 4, 2], 0.0, 1.0), ArgValue::Ints(vec![2, 2])];
    vec![
        bad(&[2], &[], "VALID", ErrorKind::Shape, "does not have a batch, channels and"),
        bad(&[0, 1], &[], "VALID", ErrorKind::Shape, "a window of 0"),
        bad(&[6, 1], &[], "VALID", ErrorKind::Shape, "a window of 6 with dilation 1 does not fit"),
        bad(&[1 << 20, 1 << 20], &[], "SAME", ErrorKind::Shape, "has too many elements"),
        bad(&[2, 2], &[0], "VALID", ErrorKind::Value, "strides of 0 go nowhere"),
        bad(&[2, 2], &[1], "NONE", ErrorKind::Value, "padding \"NONE\" is unknown"),
        bad(&[-2, 2], &[1], "SAME", ErrorKind::Value, "windows of -2 do not exist"),
        Bad::new(wrong, ErrorKind::DType, "is not supported"),
    ]
}

const PARAMS: &[Param; 8] = &[
    Param::tensor("x"),
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
        "max_pool",
        PARAMS.split_at(7).0,
        |a| one(max_pool_with(a.tensor(0)?, &PoolOptions::from_args(a, 1)?)),
        Reference::Numpy(concat!(
            sliding_reference!("x.shape", "ksize"),
            "low := -np.inf if x.dtype.kind == 'f' else np.iinfo(x.dtype).min, ",
            "xp := np.pad(last(x), [(0, 0), *pads, (0, 0)], constant_values=low), ",
            "back(np.max(np.stack([xp[p] for p in patches]), axis=0))][-1]"
        )),
        Samples::List(|| samples(dtypes::NUMBERS, false)),
    )
    .refuses(|| refuses(DType::Bool)),
    OpEntry::new(
        "avg_pool",
        PARAMS,
        |a| one(avg_pool_with(a.tensor(0)?, &PoolOptions::from_args(a, 1)?)),
        Reference::Numpy(concat!(
            sliding_reference!("x.shape", "ksize"),
            "pad := lambda t, v: np.pad(t, [(0, 0), *pads, (0, 0)], constant_values=v), ",
            "xp := pad(last(x).astype(np.float64), 0.0), inside := pad(np.ones(shape), float(count_padding)), ",
            "total := sum(xp[p] for p in patches), ",
            "back(total / sum(inside[p] for p in patches)).astype(x.dtype)][-1]"
        )),
        Samples::List(|| samples(dtypes::FLOATS, true)),
    )
    .refuses(|| refuses(DType::I32)),
];
