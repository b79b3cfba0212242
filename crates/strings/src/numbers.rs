//! Numbers from strings, and strings from numbers.

use crate::builder::StringBuilder;
use crate::case::is_space;
use crate::tensor::StringTensor;
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::list_with_capacity;

/// Converts each string to a number of type `float32`, `float64`, `int32` or `int64`. White space around it is allowed.
#[track_caller]
pub fn to_number(x: &StringTensor, dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::F32 => parsed(
            x,
            dtype,
            |text| hexadecimal_float(text).map(|value| value as f32),
            |text| text.parse::<f32>().ok(),
        ),
        DType::F64 => parsed(x, dtype, hexadecimal_float, |text| text.parse::<f64>().ok()),
        DType::I32 => parsed(x, dtype, |_| None, |text| text.parse::<i32>().ok()),
        DType::I64 => parsed(x, dtype, |_| None, |text| text.parse::<i64>().ok()),
        DType::U32 => parsed(x, dtype, |_| None, |text| text.parse::<u32>().ok()),
        DType::U64 => parsed(x, dtype, |_| None, |text| text.parse::<u64>().ok()),
        _ => {
            let message =
                format!("out_type must be float32, float64, int32, int64, uint32 or uint64, got {dtype}");
            Err(Error::dtype(message))
        }
    }
}

/// A hexadecimal integer, such as `0x1f`, as a float: the one form that Rust does not parse.
pub fn hexadecimal_float(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok().map(|value| sign * value as f64)
}

#[track_caller]
fn parsed<T: taut_core::Host>(
    x: &StringTensor,
    dtype: DType,
    other: impl Fn(&str) -> Option<T>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Tensor> {
    let values = x.values()?;
    let mut numbers = list_with_capacity(values.len())?;
    for (index, value) in values.iter().enumerate() {
        let start = value.iter().position(|&byte| !is_space(byte)).unwrap_or(value.len());
        let end = value.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
        let text = std::str::from_utf8(&value[start..end]).ok();
        let Some(number) = text.and_then(|text| parse(text).or_else(|| other(text))) else {
            let text = String::from_utf8_lossy(value);
            return Err(Error::value(format!(
                "expected a number of type {dtype}, got {text:?} at index {index}"
            )));
        };
        numbers.push(number);
    }
    Tensor::from_vec(numbers, x.shape().clone())
}

/// How numbers are written: C's conversions `%f`, `%e` and `%g` for floats, `%d` for integers.
#[derive(Clone, Copy, Debug)]
pub struct NumberFormat {
    /// Digits after the point (`%f`, `%e`) or in total (`%g`); `None` is C's default, 6.
    pub precision: Option<usize>,
    /// As `%e`.
    pub scientific: bool,
    /// As `%g`: the shorter of the two.
    pub shortest: bool,
    /// The least number of characters.
    pub width: usize,
    /// What narrower numbers are filled with: a space or `0` on the left, `-` for spaces on the right.
    pub fill: u8,
}

/// Writes each number.
#[track_caller]
pub fn as_string(x: &Tensor, format: NumberFormat) -> Result<StringTensor> {
    let mut out = StringBuilder::new(x.len(), 0);
    let mut push = |text: &str| out.push(filled(text, format).as_bytes());
    match x.dtype() {
        DType::Bool => {
            x.to_vec::<bool>()?
                .into_iter()
                .try_for_each(|value| push(if value { "true" } else { "false" }))?;
        }
        DType::U64 => x.to_vec::<u64>()?.into_iter().try_for_each(|value| push(&value.to_string()))?,
        dtype if dtype.is_integer() => {
            let wide = taut_core::ops::unary::cast(x, DType::I64)?;
            wide.to_vec::<i64>()?.into_iter().try_for_each(|value| push(&value.to_string()))?;
        }
        _ => {
            let wide = taut_core::ops::unary::cast(x, DType::F64)?;
            wide.to_vec::<f64>()?.into_iter().try_for_each(|value| push(&written(value, format)))?;
        }
    }
    out.finish(x.shape().clone())
}

fn filled(text: &str, format: NumberFormat) -> String {
    let missing = format.width.saturating_sub(text.len());
    match format.fill {
        _ if missing == 0 => text.to_owned(),
        b'-' => format!("{text}{}", " ".repeat(missing)),
        b'0' => {
            let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }
        _ => format!("{}{text}", " ".repeat(missing)),
    }
}

fn written(value: f64, format: NumberFormat) -> String {
    if !value.is_finite() {
        return match (value.is_nan(), value < 0.0) {
            (true, _) => "nan".into(),
            (_, true) => "-inf".into(),
            _ => "inf".into(),
        };
    }
    let digits = format.precision.unwrap_or(6);
    if format.scientific {
        return scientific(value, digits);
    }
    if !format.shortest {
        return format!("{value:.digits$}");
    }
    // C: with P significant digits and the exponent X of the `%e` form, `%f` is used if P > X >= -4.
    let digits = digits.max(1);
    let exponent: i32 = format!("{value:.*e}", digits - 1)
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let text = if (-4..digits as i32).contains(&exponent) {
        format!("{value:.*}", (digits as i32 - 1 - exponent) as usize)
    } else {
        scientific(value, digits - 1)
    };
    let (mantissa, rest) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), format!("e{exponent}")),
        None => (text, String::new()),
    };
    let short =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { &mantissa };
    format!("{short}{rest}")
}

/// C's `%e`: the exponent has a sign and at least two digits.
fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{mantissa}e{sign}{exponent:0>2}")
}
