//! Evenly spaced values.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::elementwise::check_fits;
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Scalar, Tensor, apply, promote};
use half::{bf16, f16};
use taut_kernels::{Arg, ViewMut, index};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Sequence {
    start: Scalar,
    limit: Scalar,
    delta: Scalar,
    dtype: DType,
}

impl Sequence {
    /// The number of elements.
    fn len(&self) -> Result<usize> {
        if self.dtype == DType::Bool {
            return Err(Error::dtype("bool is not supported").help("use an integer dtype"));
        }
        if self.delta.to_f64() == 0.0 {
            return Err(Error::value("delta must not be 0"));
        }
        let integers = [self.start, self.limit, self.delta].map(integer);
        let [Some(start), Some(limit), Some(delta)] = integers else { return self.float_len() };
        let distance = if delta > 0 { limit - start } else { start - limit };
        let len = if distance > 0 { (distance - 1) / delta.abs() + 1 } else { 0 };
        if len > 0 && self.dtype.is_integer() {
            check_fits(self.start, self.dtype)?;
            let last = start + (len - 1) * delta;
            check_fits(i64::try_from(last).map_or(Scalar::Uint(last as u64), Scalar::Int), self.dtype)?;
        }
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn float_len(&self) -> Result<usize> {
        let Sequence { start, limit, delta, dtype } = *self;
        if dtype.is_integer() {
            let message =
                format!("{dtype} needs integer bounds, got start={start}, limit={limit}, delta={delta}");
            return Err(Error::dtype(message).help("use a float dtype, or pass integers"));
        }
        // In the arithmetic of the elements: 1/49 has 49 steps to 1 as a float32, and 50 as a float64.
        let [first, last, step] = [start, limit, delta].map(|scalar| rounded(scalar.to_f64(), dtype));
        let len = rounded(rounded(last - first, dtype) / step, dtype).ceil();
        if len.is_nan() || !start.to_f64().is_finite() {
            return Err(Error::value(format!(
                "start, limit and delta must be finite, got start={start}, limit={limit}, delta={delta}"
            )));
        }
        Ok(len as usize)
    }
}

/// A number rounded to a float dtype.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::BF16 => bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// The value of an integer scalar; `None` for a float.
fn integer(scalar: Scalar) -> Option<i128> {
    match scalar {
        Scalar::Bool(v) => Some(v.into()),
        Scalar::Int(v) => Some(v.into()),
        Scalar::Uint(v) => Some(v.into()),
        Scalar::Float(_) | Scalar::Complex(_) => None,
    }
}

impl Op for Sequence {
    fn name(&self) -> &'static str {
        "range"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        let scalars = [self.start, self.limit, self.delta];
        if self.dtype.is_complex() || scalars.iter().any(|scalar| matches!(scalar, Scalar::Complex(_))) {
            return Err(Error::dtype("complex numbers are not supported")
                .help("use a range of real numbers and cast it"));
        }
        Ok(Spec::new(self.dtype, self.len()?).into())
    }

    fn run(&self, _inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let bytes = |scalar: Scalar| scalar.to_bytes(self.dtype);
        index::range(&bytes(self.start), &bytes(self.delta), outputs[0].reborrow());
        Ok(())
    }

    fn attributes(&self) -> String {
        format!("start={}, limit={}, delta={}", self.start, self.limit, self.delta)
    }
}

/// The sequence `start`, `start + delta`, … up to but excluding `limit`.
///
/// `dtype` defaults to `float32` if one of the scalars is a float, else to `int32`, or a wider integer dtype if needed.
/// With a single argument, it is the limit, and `start` is 0.
///
/// ```
/// use taut_core::ops::creation::range;
/// assert_eq!(range(1, 10, 3, None)?.to_vec::<i32>()?, [1, 4, 7]);
/// assert_eq!(range(1.0, 0.0, -0.5, None)?.to_vec::<f32>()?, [1.0, 0.5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn range(
    start: impl Into<Scalar>,
    limit: impl Into<Scalar>,
    delta: impl Into<Scalar>,
    dtype: impl Into<Option<DType>>,
) -> Result<Tensor> {
    let (start, limit, delta) = (start.into(), limit.into(), delta.into());
    // A float among the scalars makes the result float32, whatever the width of the integers.
    let float = [start, limit, delta].iter().any(|v| matches!(v, Scalar::Float(_)));
    let default = if float {
        DType::F32
    } else {
        let dtypes = [limit, delta].map(Scalar::default_dtype);
        match dtypes.into_iter().try_fold(start.default_dtype(), promote) {
            Ok(dtype) => dtype,
            Err(error) => return Err(error.in_op("range", []).at(Location::caller())),
        }
    };
    apply(&Sequence { start, limit, delta, dtype: dtype.into().unwrap_or(default) }, [])
}

#[derive(Clone, Debug)]
struct Linspace {
    start: f64,
    stop: f64,
    num: usize,
    endpoint: bool,
    dtype: DType,
}

impl Op for Linspace {
    fn name(&self) -> &'static str {
        "linspace"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        if !self.dtype.is_float() {
            return Err(Error::dtype(format!("{} is not supported", self.dtype))
                .help("use a float dtype and cast the result"));
        }
        Ok(Spec::new(self.dtype, self.num).into())
    }

    fn run(&self, _inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::linspace(self.start, self.stop, self.endpoint, outputs[0].reborrow());
        Ok(())
    }

    fn attributes(&self) -> String {
        format!("start={}, stop={}, endpoint={}", self.start, self.stop, self.endpoint)
    }
}

/// `num` evenly spaced values over `[start, stop]`, or over `[start, stop)` without `endpoint`.
#[track_caller]
pub fn linspace(start: f64, stop: f64, num: usize, endpoint: bool, dtype: DType) -> Result<Tensor> {
    apply(&Linspace { start, stop, num, endpoint, dtype }, [])
}

fn range_samples() -> Vec<Vec<ArgValue>> {
    let mut list = Vec::new();
    for &dtype in dtypes::NUMBERS {
        for (start, limit, delta) in [(0, 5, 1), (3, 3, 1), (5, 1, 1), (10, 0, -3), (1, 8, 7), (1, 9, 7)] {
            list.push(vec![
                ArgValue::Int(start),
                ArgValue::Int(limit),
                ArgValue::Int(delta),
                ArgValue::DType(dtype),
            ]);
        }
    }
    for &dtype in dtypes::FLOATS {
        for (start, limit, delta) in [(0.0, 1.0, 0.25), (2.0, -1.0, -0.75), (0.5, 0.5, 1.0), (-1.0, 4.0, 8.0)]
        {
            list.push(vec![
                ArgValue::Float(start),
                ArgValue::Float(limit),
                ArgValue::Float(delta),
                ArgValue::DType(dtype),
            ]);
        }
    }
    list.push(vec![ArgValue::Int(4), ArgValue::None, ArgValue::Int(1), ArgValue::None]);
    list.push(vec![ArgValue::Float(2.5), ArgValue::None, ArgValue::Int(1), ArgValue::None]);
    list.push(vec![ArgValue::Int(-128), ArgValue::Int(128), ArgValue::Int(51), ArgValue::DType(DType::I8)]);
    list.push(vec![
        ArgValue::Int(i64::MIN),
        ArgValue::Int(i64::MAX),
        ArgValue::Int(1 << 62),
        ArgValue::DType(DType::I64),
    ]);
    list.push(vec![
        ArgValue::Int(1),
        ArgValue::Float(2.0),
        ArgValue::Float(0.1),
        ArgValue::DType(DType::F64),
    ]);
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "range",
        &[
            Param::new("start", ParamKind::Scalar),
            Param::optional("limit", ParamKind::Scalar, "None"),
            Param::optional("delta", ParamKind::Scalar, "1"),
            Param::optional("dtype", ParamKind::DType, "None"),
        ],
        |a| {
            let (first, delta) = (a.scalar(0)?, a.scalar_or(2)?.unwrap_or(Scalar::Int(1)));
            let (start, limit) = a.scalar_or(1)?.map_or((Scalar::Int(0), first), |limit| (first, limit));
            one(range(start, limit, delta, a.dtype_or(3)?))
        },
        Reference::Numpy(
            "(lambda r: r.astype({'i': 'int32', 'f': 'float32'}[r.dtype.kind] if dtype is None else dtype))\
             (np.arange(start, limit, delta))",
        ),
        Samples::List(range_samples),
    )
    .refuses(|| {
        let ints = |start, limit, delta, dtype| {
            vec![ArgValue::Int(start), ArgValue::Int(limit), ArgValue::Int(delta), ArgValue::DType(dtype)]
        };
        let floats = |start, limit, delta, dtype| {
            vec![
                ArgValue::Float(start),
                ArgValue::Float(limit),
                ArgValue::Float(delta),
                ArgValue::DType(dtype),
            ]
        };
        vec![
            InvalidArgs::new(ints(0, 5, 0, DType::I32), ErrorKind::Value, "delta must not be 0"),
            InvalidArgs::new(ints(0, 2, 1, DType::Bool), ErrorKind::DType, "bool is not supported"),
            InvalidArgs::new(ints(0, 300, 1, DType::U8), ErrorKind::Value, "299 does not fit uint8"),
            InvalidArgs::new(ints(-1, 3, 1, DType::U8), ErrorKind::Value, "-1 does not fit uint8"),
            InvalidArgs::new(
                ints(i64::MIN, i64::MAX, 1, DType::I64),
                ErrorKind::Shape,
                "more elements than memory",
            ),
            InvalidArgs::new(
                floats(0.5, 3.0, 1.0, DType::I32),
                ErrorKind::DType,
                "int32 needs integer bounds",
            ),
            InvalidArgs::new(floats(0.0, f64::NAN, 1.0, DType::F32), ErrorKind::Value, "must be finite"),
            InvalidArgs::new(
                floats(0.0, f64::INFINITY, 1.0, DType::F32),
                ErrorKind::Shape,
                "more elements than memory",
            ),
            InvalidArgs::new(
                floats(f64::NEG_INFINITY, 0.0, 1.0, DType::F32),
                ErrorKind::Value,
                "must be finite",
            ),
        ]
    }),
    OpEntry::new(
        "linspace",
        &[
            Param::new("start", ParamKind::Float),
            Param::new("stop", ParamKind::Float),
            Param::new("num", ParamKind::Int),
            Param::optional("endpoint", ParamKind::Bool, "True"),
            Param::optional("dtype", ParamKind::DType, "float32"),
        ],
        |a| {
            let (endpoint, dtype) = (a.bool_or(3)?.unwrap_or(true), a.dtype_or(4)?.unwrap_or(DType::F32));
            one(linspace(a.float(0)?, a.float(1)?, a.size(2)?, endpoint, dtype))
        },
        Reference::Numpy("np.linspace(start, stop, num, endpoint).astype(dtype)"),
        Samples::List(|| {
            let mut list = Vec::new();
            for &dtype in dtypes::FLOATS {
                for (start, stop, num) in
                    [(0.0, 1.0, 5), (-2.0, 3.0, 7), (1.0, 1.0, 3), (4.0, -4.0, 1), (0.0, 1.0, 0)]
                {
                    for endpoint in [true, false] {
                        let ends = [ArgValue::Float(start), ArgValue::Float(stop), ArgValue::Int(num)];
                        list.push(
                            ends.into_iter()
                                .chain([ArgValue::Bool(endpoint), ArgValue::DType(dtype)])
                                .collect(),
                        );
                    }
                }
            }
            list
        }),
    )
    .refuses(|| {
        let args = |num, dtype| {
            let ends = vec![ArgValue::Float(0.0), ArgValue::Float(1.0), ArgValue::Int(num)];
            [ends, vec![ArgValue::Bool(true), ArgValue::DType(dtype)]].concat()
        };
        vec![
            InvalidArgs::new(args(3, DType::I32), ErrorKind::DType, "int32 is not supported"),
            InvalidArgs::new(args(-1, DType::F32), ErrorKind::Shape, "dimension must be >= 0, got -1"),
            InvalidArgs::new(
                args(i64::MAX, DType::F32),
                ErrorKind::Shape,
                "more elements than memory has addresses",
            ),
        ]
    }),
];
