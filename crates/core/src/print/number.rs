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
        let decimal = Decimal::shortest(self.dtype, value);
        let largest = if self.dtype == DType::F64 { 1e16 } else { self.large() };
        if value == 0.0 || (1e-4..largest).contains(&value.abs()) {
            let (whole, fraction) = decimal.positional();
            format!("{whole}.{}", if fraction.is_empty() { "0" } else { &fraction })
        } else {
            let (whole, fraction, exponent) = decimal.scientific();
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{whole}{point}{fraction}{}", Exponent { value: exponent, width: 2 })
        }
    }

    /// All numbers with their points below each other, and at most `precision` fractional digits.
    pub(super) fn aligned(&self, precision: usize) -> Vec<String> {
        let finite = || self.values.iter().copied().filter(|v| v.is_finite());
        let notation = if self.needs_exponent() {
            let (mut fraction, mut width) = (0, 0);
            for value in finite() {
                let decimal = self.at_most(value, precision);
                fraction = fraction.max(decimal.digits[1..].trim_end_matches('0').len());
                width = width.max(Exponent { value: decimal.exponent, width: 2 }.digits());
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

    /// The text before and after the point; all before it if there is no point.
    fn split(&self, value: f64, notation: &Notation) -> (String, String) {
        match *notation {
            _ if !value.is_finite() => (special(value).to_owned(), String::new()),
            Notation::Positional { precision } => {
                let decimal = Decimal::shortest(self.dtype, value);
                if decimal.fraction() <= precision {
                    return decimal.positional();
                }
                let text = format!("{value:.precision$}");
                let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
                (whole.to_owned(), fraction.trim_end_matches('0').to_owned())
            }
            Notation::Scientific { fraction, width } => {
                let mut decimal = self.at_most(value, fraction);
                if decimal.digits.len() <= fraction {
                    decimal = Decimal::rounded(value, fraction);
                }
                let (whole, digits, exponent) = decimal.scientific();
                (whole, format!("{digits}{}", Exponent { value: exponent, width }))
            }
        }
    }

    /// The shortest decimal that identifies the number, rounded if it has more than `fraction` fractional digits.
    fn at_most(&self, value: f64, fraction: usize) -> Decimal {
        let decimal = Decimal::shortest(self.dtype, value);
        if decimal.digits.len() > fraction + 1 { Decimal::rounded(value, fraction) } else { decimal }
    }

    /// Whether the numbers are too large, too small or too far apart for columns without exponents. As in NumPy, the comparison is
    /// rounded to the element type.
    fn needs_exponent(&self) -> bool {
        let round = |value: f64| dispatch!(self.dtype, T in floats => T::from_f64(value).to_f64());
        let sizes = || self.values.iter().map(|v| v.abs()).filter(|&v| v.is_finite() && v != 0.0);
        let Some(largest) = sizes().reduce(f64::max) else { return false };
        let smallest = sizes().fold(f64::INFINITY, f64::min);
        largest >= self.large() || smallest < round(1e-4) || round(largest / smallest) > 1000.0
    }

    /// The magnitude from which a number of this type has more digits before the point than are significant.
    fn large(&self) -> f64 {
        match self.dtype {
            DType::F64 => 1e8,
            DType::F32 => 1e6,
            _ => 1e3,
        }
    }
}

/// Complex numbers as words of one width, from their real and imaginary parts: `1.+2.j` as in NumPy, and `(1+2j)` of a scalar.
pub(super) fn complex(
    part: DType,
    values: &[(f64, f64)],
    precision: Option<usize>,
    is_scalar: bool,
) -> Vec<String> {
    let re = Numbers::new(part, values.iter().map(|value| value.0).collect());
    let im = Numbers::new(part, values.iter().map(|value| value.1.abs()).collect());
    let sign = |value: f64| if value.is_sign_negative() && !value.is_nan() { '-' } else { '+' };
    if let (true, None, &[(real, imaginary)]) = (is_scalar, precision, values) {
        let whole = |text: String| text.strip_suffix(".0").map_or(text.clone(), str::to_owned);
        let (re, im) = (whole(re.single()), whole(im.single()));
        return vec![match sign(imaginary) {
            '+' if real == 0.0 && !real.is_sign_negative() => format!("{im}j"),
            sign => format!("({re}{sign}{im}j)"),
        }];
    }
    let precision = precision.unwrap_or(super::PRECISION);
    let signed = |(word, value): (String, &(f64, f64))| format!("{}{}", sign(value.1), word.trim_start());
    let imaginary: Vec<String> = im.aligned(precision).into_iter().zip(values).map(signed).collect();
    let width = imaginary.iter().map(String::len).max().unwrap_or(0);
    let join = |(re, im): (String, String)| {
        let (digits, padded) = (im.trim_end(), format!("{im:>width$}"));
        let spaces = im.len() - digits.len();
        format!("{re}{}j{:spaces$}", padded.trim_end(), "")
    };
    re.aligned(precision).into_iter().zip(imaginary).map(join).collect()
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

/// Significant digits with the point behind the first, times a power of ten.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// Reads Rust's scientific notation.
    fn parse(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        Decimal {
            negative: mantissa.starts_with('-'),
            digits: mantissa.chars().filter(char::is_ascii_digit).collect(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// The number rounded to `fraction` digits behind the point of its mantissa.
    fn rounded(value: f64, fraction: usize) -> Decimal {
        Decimal::parse(&format!("{value:.fraction$e}"))
    }

    /// The fewest digits that identify the number in its type; of two decimals equally near, the even one.
    fn shortest(dtype: DType, value: f64) -> Decimal {
        let identifies = |decimal: &Decimal| {
            dispatch!(dtype, T in floats => T::from_f64(decimal.value()).to_f64()) == value
        };
        let shortest = match dtype {
            DType::F64 => Decimal::parse(&format!("{value:e}")),
            DType::F32 => Decimal::parse(&format!("{:e}", value as f32)),
            _ => {
                let candidates = (0..4).flat_map(|fraction| Decimal::near(value, fraction));
                // Five digits always identify it: both half-precision types have at most eleven bits.
                candidates.into_iter().find(identifies).unwrap_or_else(|| Decimal::rounded(value, 4))
            }
        };
        let even = Decimal::rounded(value, shortest.digits.len() - 1);
        if identifies(&even) { even } else { shortest }
    }

    /// The nearest decimal of so many digits and the next one beyond the number. Above a power of two the next element
    /// is twice as far as below it, so the farther decimal may identify the number where the nearer does not.
    fn near(value: f64, fraction: usize) -> [Decimal; 2] {
        let nearest = Decimal::rounded(value, fraction);
        let step = 10f64.powi(nearest.exponent - fraction as i32).copysign(value);
        let beyond =
            if nearest.value().abs() < value.abs() { nearest.value() + step } else { nearest.value() };
        [nearest, Decimal::rounded(beyond, fraction)]
    }

    fn value(&self) -> f64 {
        let magnitude = format!("{}e{}", self.digits, self.exponent - (self.digits.len() as i32 - 1));
        let magnitude: f64 = magnitude.parse().unwrap_or(f64::NAN);
        if self.negative { -magnitude } else { magnitude }
    }

    /// The number of digits after the point when it is written without exponent.
    fn fraction(&self) -> usize {
        (self.digits.len() as i32 - 1 - self.exponent).max(0) as usize
    }

    /// Without exponent: the text before and after the point.
    fn positional(&self) -> (String, String) {
        let sign = if self.negative { "-" } else { "" };
        if let Ok(exponent) = usize::try_from(self.exponent) {
            let split = self.digits.len().min(exponent + 1);
            let (whole, fraction) = self.digits.split_at(split);
            (format!("{sign}{whole}{:0<1$}", "", exponent + 1 - split), fraction.to_owned())
        } else {
            let zeros = self.exponent.unsigned_abs() as usize - 1;
            (format!("{sign}0"), format!("{:0<zeros$}{}", "", self.digits))
        }
    }

    /// With exponent: the text before and after the point, and the exponent.
    fn scientific(&self) -> (String, &str, i32) {
        let (whole, fraction) = self.digits.split_at(1);
        (format!("{}{whole}", if self.negative { "-" } else { "" }), fraction, self.exponent)
    }
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
