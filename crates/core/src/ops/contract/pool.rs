//! Max and average pooling.

use super::pool_gradient::{AVG_POOL_GRADIENT, MAX_POOL_ARGMAX, MAX_POOL_SCATTER};
use crate::error::{ErrorKind, Result};
use crate::ops::binary::add;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::zero_of;
use crate::ops::window::{Channels, Padding, Slide, SlideArgs, sizes, sliding_reference};
use crate::ops::windowed::{WindowRule, Windowed};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::record::has_single_use_recorder;
use crate::{DType, Saves, Tensor, apply};
use taut_kernels::pooling as kernel;
use taut_memory::Location;

/// Options of a pooling op.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// The window's size per spatial dimension.
    pub ksize: Vec<usize>,
    /// The stride per spatial dimension; empty means 1, a single value applies to all.
    pub strides: Vec<usize>,
    /// The padding of the input. Padding is never the maximum.
    pub padding: Padding,
    /// The dilation per spatial dimension; empty means 1, a single value applies to all.
    pub dilations: Vec<usize>,
    /// The position of the channel axis.
    pub channels: Channels,
    /// Whether averages include padding as zeros.
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

    /// Reads the options from a table entry's arguments, from position `first` on.
    pub(super) fn from_args(a: &Args<'_>, first: usize) -> Result<PoolOptions> {
        let positions = SlideArgs {
            strides: first + 1,
            padding: first + 2,
            data_format: first + 3,
            dilations: first + 4,
            explicit: Some(first + 5),
        };
        let ksize = sizes(a.ints_or(first)?, "ksize")?;
        let Slide { strides, padding, dilations, channels } = Slide::from_args(a, &positions, ksize.len())?;
        let count_padding = a.bool_or(first + 6)?.unwrap_or(false);
        Ok(PoolOptions { ksize, strides, padding, dilations, channels, count_padding })
    }
}

static MAX_POOL: WindowRule = WindowRule {
    name: "max_pool",
    integers: true,
    run: |shapes, inputs, out, _| kernel::max(&shapes.pool(), inputs[0].view(), out),
    // If the gradient may be differentiated itself: that derivative is zero, and positions would not tell that it exists.
    saves: |_| {
        let positions = Saves::residual_of([0]);
        Some(if has_single_use_recorder() { positions } else { positions.and(Saves::OUTPUT) })
    },
    residual: |op, call| op.call(&MAX_POOL_ARGMAX, None, [call.input(0)?.clone()]).map(Some),
    vjp: |op, call| {
        call.first(|call, g| {
            let x = call.input_shape(0).clone();
            let g = match call.output(0) {
                Ok(y) => add(g, zero_of(y)?)?,
                Err(_) => g,
            };
            op.call(&MAX_POOL_SCATTER, Some(x), [call.residual()?.clone(), g])
        })
    },
    ..WindowRule::BASE
};

pub(super) static AVG_POOL: WindowRule = WindowRule {
    name: "avg_pool",
    run: |shapes, inputs, out, _| {
        kernel::average(&shapes.pool(), shapes.count_padding, inputs[0].view(), out);
    },
    saves: |_| Some(Saves::NOTHING),
    vjp: |op, call| call.first(|call, g| op.call(&AVG_POOL_GRADIENT, Some(call.input_shape(0).clone()), [g])),
    ..WindowRule::BASE
};

/// Max pooling: the maximum of each window of `x`, `[batch, spatial.., channels]`, over one to three spatial dimensions;
/// `padding` is `"SAME"` or `"VALID"`.
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

/// Average pooling: the mean of each window of `x`, `[batch, spatial.., channels]`, over one to three spatial dimensions,
/// excluding padding; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn avg_pool(x: impl Into<Tensor>, ksize: &[usize], strides: &[usize], padding: &str) -> Result<Tensor> {
    let options = PoolOptions::new(ksize, strides, padding);
    let at = Location::caller();
    avg_pool_with(x, &options.map_err(|e| e.in_op("avg_pool", []).at(at))?)
}

/// As [`max_pool`], with all options.
#[track_caller]
pub fn max_pool_with(x: impl Into<Tensor>, options: &PoolOptions) -> Result<Tensor> {
    apply(&Windowed::new(&MAX_POOL, options), [x.into()])
}

/// As [`avg_pool`], with all options.
#[track_caller]
pub fn avg_pool_with(x: impl Into<Tensor>, options: &PoolOptions) -> Result<Tensor> {
    apply(&Windowed::new(&AVG_POOL, options), [x.into()])
}

/// Input shape, window, strides, padding, data format, dilations, explicit paddings, `count_padding`.
type Case<'a> =
    (&'a [usize], &'a [i64], &'a [i64], &'static str, &'static str, &'a [i64], Option<&'a [i64]>, bool);

/// Test cases of pooling and its gradients.
const CASES: &[Case<'static>] = &[
    (&[2, 7, 3], &[3], &[2], "SAME", "NWC", &[], None, false),
    (&[2, 3, 7], &[2], &[1], "VALID", "NCW", &[2], None, false),
    (&[2, 5, 6, 2], &[2, 3], &[2, 1], "SAME", "NHWC", &[], None, false),
    (&[1, 2, 5, 6], &[3, 3], &[2, 2], "EXPLICIT", "NCHW", &[], Some(&[1, 1, 0, 1]), true),
    (&[1, 3, 4, 5, 2], &[2, 2, 2], &[1, 2, 2], "SAME", "NDHWC", &[], None, true),
    (&[0, 4, 4, 3], &[2, 2], &[2], "VALID", "NHWC", &[], None, false),
];

/// The test cases: input shape, and the arguments after the input.
pub(super) fn cases() -> impl Iterator<Item = (&'static [usize], [ArgValue; 7])> {
    let amounts = |amounts: Option<&[i64]>| amounts.map_or(ArgValue::None, |v| ArgValue::Ints(v.to_vec()));
    CASES.iter().map(move |&(x, ksize, strides, padding, format, dilations, explicit, count)| {
        let options = [
            ArgValue::Ints(ksize.to_vec()),
            ArgValue::Ints(strides.to_vec()),
            ArgValue::Str(padding.into()),
            ArgValue::Str(format.into()),
            ArgValue::Ints(dilations.to_vec()),
            amounts(explicit),
            ArgValue::Bool(count),
        ];
        (x, options)
    })
}

fn samples(dtypes: &[DType], count: bool) -> Vec<Vec<ArgValue>> {
    let with = |dtype, (x, options): (&[usize], [ArgValue; 7])| {
        let mut args = vec![ramp(dtype, x, -4.0, 4.0)];
        args.extend(options.into_iter().take(if count { 7 } else { 6 }));
        args
    };
    dtypes.iter().flat_map(|&dtype| cases().map(move |case| with(dtype, case))).collect()
}

fn invalid(dtype: DType) -> Vec<InvalidArgs> {
    let bad = |ksize: &[i64], strides: &[i64], padding: &'static str, kind, message| {
        let options =
            [ArgValue::Ints(ksize.to_vec()), ArgValue::Ints(strides.to_vec()), ArgValue::Str(padding.into())];
        let args = [ramp(DType::F32, &[1, 4, 4, 2], 0.0, 1.0)].into_iter().chain(options).collect();
        InvalidArgs::new(args, kind, message)
    };
    let wrong = vec![ramp(dtype, &[1, 4, 4, 2], 0.0, 1.0), ArgValue::Ints(vec![2, 2])];
    vec![
        bad(
            &[2],
            &[],
            "VALID",
            ErrorKind::Shape,
            "the image must have a batch axis, 1 spatial dimensions and channels",
        ),
        bad(&[0, 1], &[], "VALID", ErrorKind::Shape, "window sizes must be >= 1, got [0, 1]"),
        bad(&[6, 1], &[], "VALID", ErrorKind::Shape, "size 6 with dilation 1 exceeds spatial dimension 0"),
        bad(
            &[1 << 20, 1 << 20],
            &[],
            "SAME",
            ErrorKind::Shape,
            "a window must have fewer than 2^32 elements",
        ),
        bad(&[2, 2], &[0], "VALID", ErrorKind::Value, "strides must be >= 1, got 0"),
        bad(&[2, 2], &[1], "NONE", ErrorKind::Value, "padding must be \"VALID\" or \"SAME\", got \"NONE\""),
        bad(&[-2, 2], &[1], "SAME", ErrorKind::Value, "ksize must be >= 1, got -2"),
        InvalidArgs::new(wrong, ErrorKind::DType, "is not supported"),
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
    .refuses(|| invalid(DType::Bool)),
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
    .refuses(|| invalid(DType::I32)),
];
