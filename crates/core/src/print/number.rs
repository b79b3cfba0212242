//! Floating-point numbers in NumPy's notation.

use taut_kernels::{DType, Element, dispatch};

/// Numbers that share a notation. Each is exact: every element type fits an `f64`.
pub(super) struct Numbers {
    dtype: DType,
    values: Vec<f64>,
}

impl Numbers {
    pub(super) fn new(dtype: DType, values: Vec<f64>) -> Numbers {
        Numbers { dtype, values }
    }

    /// The first number as NumPy shows a scalar: all its digits, with an exponent if it is very large or small.
    pub(super) fn single(&self) -> String {
        let value = self.values[0];
        if !value.is_finite() {
            return special(value).to_owned();
        }
        let digits = shortest(self.dtype, value);
        let largest = if self.dtype == DType::F64 { 1e16 } else { self.large() };
        if value == 0.0 || (1e-4..largest).contains(&value.abs()) {
            let (whole, fraction) = positional(value, digits.fraction());
            format!("{whole}.{}", if fraction.is_empty() { "0" } else { &fraction })
        } else {
            let (mantissa, exponent) = scientific(value, digits.count - 1);
            format!("{mantissa}{}", Exponent { value: exponent, width: 2 })
        }
    }

    /// All numbers with their points below each other, and at most `precision` fractional digits.
    pub(super) fn aligned(&self, precision: usize) -> Vec<String> {
        let finite = || self.values.iter().copied().filter(|v| v.is_finite());
        let notation = if self.needs_exponent() {
            let (mut fraction, mut width) = (0, 0);
            for value in finite() {
                let wanted = precision.min(shortest(self.dtype, value).count - 1);
                let (mantissa, exponent) = scientific(value, wanted);
                let digits = mantissa.split_once('.').map_or("", |(_, digits)| digits);
                fraction = fraction.max(digits.trim_end_matches('0').len());
                width = width.max(Exponent { value: exponent, width: 2 }.digits());
            }
            Notation::Scientific { fraction, width }
        } else {
            Notation::Positional { precision }
        };

        let pairs: Vec<(String, String)> =
            self.values.iter().map(|&value| self.split(value, &notation)).collect();
        let widest = |part: fn(&(String, String)) -> usize| {
            (pairs.iter().zip(&self.values).filter(|(_, v)| v.is_finite()))
                .map(|(pair, _)| part(pair))
                .max()
                .unwrap_or(0)
        };
        let right = widest(|(_, fraction)| fraction.len());
        let mut left = widest(|(whole, _)| whole.len());
        for &value in self.values.iter().filter(|v| !v.is_finite()) {
            left = left.max(special(value).len().saturating_sub(right + 1));
        }

        (pairs.iter().zip(&self.values))
            .map(|((whole, fraction), value)| {
                if value.is_finite() {
                    format!("{whole:>left$}.{fraction:<right$}")
                } else {
                    format!("{whole:>width$}", width = left + right + 1)
                }
            })
            .collect()
    }

    /// What stands before and after the point; all before it if there is none.
    fn split(&self, value: f64, notation: &Notation) -> (String, String) {
        match *notation {
            _ if !value.is_finite() => (special(value).to_owned(), String::new()),
            Notation::Positional { precision } => {
                positional(value, precision.min(shortest(self.dtype, value).fraction()))
            }
            Notation::Scientific { fraction, width } => {
                let (mantissa, value) = scientific(value, fraction);
                let (whole, digits) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
                (whole.to_owned(), format!("{digits}{}", Exponent { value, width }))
            }
        }
    }

    /// Whether the numbers are too large, too small or too far apart to stand below each other without exponents.
    /// NumPy decides it in the element type, so rounding there counts.
    fn needs_exponent(&self) -> bool {
        let round = |value: f64| dispatch!(self.dtype, T in floats => T::from_f64(value).to_f64());
        let sizes = || self.values.iter().map(|v| v.abs()).filter(|&v| v.is_finite() && v != 0.0);
        let Some(largest) = sizes().reduce(f64::max) else { return false };
        let smallest = sizes().fold(f64::INFINITY, f64::min);
        largest >= self.large() || smallest < round(1e-4) || round(largest / smallest) > 1000.0
    }

    /// From where on a number of this type has more digits before the point than it means.
    fn large(&self) -> f64 {
        match self.dtype {
            DType::F64 => 1e8,
            DType::F32 => 1e6,
            _ => 1e3,
        }
    }
}

enum Notation {
    Positional { precision: usize },
    Scientific { fraction: usize, width: usize },
}

fn special(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        _ => "nan",
    }
}

/// How many significant digits the shortest decimal has that leads back to the number, and its exponent.
struct Digits {
    count: usize,
    exponent: i32,
}

impl Digits {
    /// How many of the digits stand behind the point.
    fn fraction(&self) -> usize {
        (self.count as i32 - 1 - self.exponent).max(0) as usize
    }
}

fn shortest(dtype: DType, value: f64) -> Digits {
    let text = match dtype {
        DType::F64 => format!("{value:e}"),
        DType::F32 => format!("{:e}", value as f32),
        _ => {
            let returns = |text: &String| {
                let parsed = text.parse().unwrap_or(f64::NAN);
                dispatch!(dtype, T in floats => T::from_f64(parsed).to_f64()) == value
            };
            // Five digits always return: both types have at most eleven bits.
            (0..4).map(|digits| format!("{value:.digits$e}")).find(returns).unwrap_or(format!("{value:.4e}"))
        }
    };
    let (mantissa, exponent) = split_exponent(&text);
    Digits { count: mantissa.bytes().filter(u8::is_ascii_digit).count(), exponent }
}

/// The number rounded to `fraction` fractional digits, without trailing zeros: before and after the point.
fn positional(value: f64, fraction: usize) -> (String, String) {
    let text = format!("{value:.fraction$}");
    let (whole, digits) = text.split_once('.').unwrap_or((&text, ""));
    (whole.to_owned(), digits.trim_end_matches('0').to_owned())
}

/// The number rounded to `fraction` fractional digits of its mantissa: mantissa and exponent.
fn scientific(value: f64, fraction: usize) -> (String, i32) {
    let text = format!("{value:.fraction$e}");
    let (mantissa, exponent) = split_exponent(&text);
    (mantissa.to_owned(), exponent)
}

fn split_exponent(text: &str) -> (&str, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// An exponent with its sign and at least `width` digits.
struct Exponent {
    value: i32,
    width: usize,
}

impl Exponent {
    fn digits(&self) -> usize {
        self.to_string().len() - "e+".len()
    }
}

impl std::fmt::Display for Exponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.value < 0 { '-' } else { '+' };
        write!(f, "e{sign}{:0width$}", self.value.unsigned_abs(), width = self.width)
    }
}
