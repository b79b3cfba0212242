//! Tensors as text, laid out as NumPy lays them out.

mod number;

use crate::tensor::Tensor;
use number::Numbers;
use std::fmt;
use taut_kernels::{Bool, DType, Element, View, dispatch};

/// NumPy's print options: when to leave elements out, how many to keep at each edge, and when to break lines.
const THRESHOLD: usize = 1000;
const EDGE: usize = 3;
const LINE_WIDTH: usize = 75;
const PRECISION: usize = 8;

impl fmt::Display for Tensor {
    /// The elements as NumPy's `str` shows them; `{:.3}` shows at most three fractional digits.
    ///
    /// The two half-precision types show the fewest digits that identify the element.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let x = Tensor::new([[1.0, -0.5], [0.25, 100.0]])?;
    /// assert_eq!(x.to_string(), "[[  1.    -0.5 ]\n [  0.25 100.  ]]");
    /// assert_eq!(format!("{:.1}", Tensor::new([0.123, 4.0])?), "[0.1 4. ]");
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            Ok(view) => f.write_str(&text(&view, f.precision(), " ", 0, LINE_WIDTH)),
            Err(_) => fmt::Debug::fmt(self, f),
        }
    }
}

impl fmt::Debug for Tensor {
    /// Type, shape and elements; `traced` in place of the elements of a traced tensor.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(format!("{x:?}"), "Tensor(float32[2, 2],\n       [[1., 2.],\n        [3., 4.]])");
    /// assert_eq!(format!("{:?}", Tensor::new([1, 2, 3])?), "Tensor(int32[3], [1, 2, 3])");
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPEN: &str = "Tensor(";
        let Ok(view) = self.view() else { return write!(f, "{OPEN}{} traced)", self.spec()) };
        let (spec, indent) = (self.spec().to_string(), OPEN.len());
        let elements = text(&view, f.precision(), ", ", indent, LINE_WIDTH - 1);
        let fits = indent + spec.len() + ", ".len() + elements.len() < LINE_WIDTH;
        if fits && !elements.contains('\n') {
            write!(f, "{OPEN}{spec}, {elements})")
        } else {
            write!(f, "{OPEN}{spec},\n{:indent$}{elements})", "")
        }
    }
}

/// The elements in brackets, broken into lines of `width` of which all but the first are indented.
fn text(view: &View<'_>, precision: Option<usize>, separator: &str, indent: usize, width: usize) -> String {
    if view.is_empty() {
        return "[]".to_owned();
    }
    let summarized = view.len() > THRESHOLD;
    let mut positions = Vec::new();
    shown(view, summarized, 0, view.offset() as isize, &mut positions);
    let words = words(view, &positions, precision);
    let mut layout = Lines { shape: view.shape(), words: words.into_iter(), summarized, separator };
    let mut out = String::new();
    layout.write(&mut out, 0, indent + 1, width);
    out
}

/// Where the elements to be shown are in the view's buffer, in row-major order.
fn shown(view: &View<'_>, summarized: bool, axis: usize, at: isize, out: &mut Vec<usize>) {
    if axis == view.shape().len() {
        return out.push(at as usize);
    }
    for i in shown_indices(view.shape()[axis], summarized).flatten() {
        shown(view, summarized, axis + 1, at + i as isize * view.strides()[axis], out);
    }
}

/// The indices of an axis to be shown; `None` in place of those left out.
fn shown_indices(dim: usize, summarized: bool) -> impl Iterator<Item = Option<usize>> {
    let cut = summarized && dim > 2 * EDGE;
    let (head, tail) = if cut { (EDGE, dim - EDGE) } else { (dim, dim) };
    (0..head).map(Some).chain(cut.then_some(None)).chain((tail..dim).map(Some))
}

/// The elements at these positions as words of one width.
fn words(view: &View<'_>, positions: &[usize], precision: Option<usize>) -> Vec<String> {
    match view.dtype() {
        DType::Bool => {
            let data = view.data::<Bool>();
            let width = if view.shape().is_empty() { 0 } else { "False".len() };
            let word = |&at: &usize| if data[at].get() { "True" } else { "False" };
            positions.iter().map(|at| format!("{:>width$}", word(at))).collect()
        }
        dtype if dtype.is_float() => {
            let numbers = dispatch!(dtype, T in floats => {
                let data = view.data::<T>();
                Numbers::new(dtype, positions.iter().map(|&at| data[at].to_f64()).collect())
            });
            match precision {
                None if view.shape().is_empty() => vec![numbers.single()],
                precision => numbers.aligned(precision.unwrap_or(PRECISION)),
            }
        }
        dtype if dtype.is_complex() => {
            let parts: Vec<(f64, f64)> = dispatch!(dtype, T in complex => {
                let data = view.data::<T>();
                positions.iter().map(|&at| (data[at].re.to_f64(), data[at].im.to_f64())).collect()
            });
            number::complex(dtype.part(), &parts, precision, view.shape().is_empty())
        }
        dtype => dispatch!(dtype, T in integers => {
            let data = view.data::<T>();
            let words: Vec<String> = positions.iter().map(|&at| data[at].to_string()).collect();
            let width = words.iter().map(String::len).max().unwrap_or(0);
            words.into_iter().map(|word| format!("{word:>width$}")).collect()
        }),
    }
}

/// Arranges words in brackets and lines.
struct Lines<'a> {
    shape: &'a [usize],
    words: std::vec::IntoIter<String>,
    summarized: bool,
    separator: &'a str,
}

impl Lines<'_> {
    /// Writes the elements at the current index of the axes before `axis`. Lines after the first begin with `indent` spaces, and
    /// end before `width`.
    fn write(&mut self, out: &mut String, axis: usize, indent: usize, width: usize) {
        let Some(&dim) = self.shape.get(axis) else { return out.extend(self.words.next()) };
        out.push('[');
        if axis + 1 == self.shape.len() {
            self.write_row(out, dim, indent, width);
        } else {
            let between = self.shape.len() - axis - 1;
            for (i, place) in shown_indices(dim, self.summarized).enumerate() {
                if i > 0 {
                    out.push_str(self.separator.trim_end());
                    new_line(out, between, indent);
                }
                match place {
                    Some(_) => self.write(out, axis + 1, indent + 1, width.saturating_sub(1)),
                    None => out.push_str("..."),
                }
            }
        }
        out.push(']');
    }

    fn write_row(&mut self, out: &mut String, dim: usize, indent: usize, width: usize) {
        let room = width.saturating_sub("]".len());
        let mut column = indent;
        for (i, place) in shown_indices(dim, self.summarized).enumerate() {
            if i > 0 {
                out.push_str(self.separator);
                column += self.separator.len();
            }
            let word = match place {
                Some(_) => self.words.next().unwrap_or_default(),
                None => "...".to_owned(),
            };
            // A word that is longer than a line is not moved.
            if column + word.len() > room && column > indent {
                out.truncate(out.trim_end().len());
                new_line(out, 1, indent);
                column = indent;
            }
            out.push_str(&word);
            column += word.len();
        }
    }
}

fn new_line(out: &mut String, times: usize, indent: usize) {
    out.extend(std::iter::repeat_n('\n', times));
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests;
