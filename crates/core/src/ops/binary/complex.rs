//! Complex numbers from their parts.

use crate::error::{ErrorKind, Result};
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::{imag, real};
use crate::ops::{
    ComputeDType, Elementwise, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one,
};
use crate::{DType, Operand, Saves, Tensor};
use taut_kernels::elementwise::Binary;

static COMPLEX: Elementwise = Elementwise::binary("complex", Binary::Complex, ComputeDType::Same)
    .grad(|_| Saves::NOTHING, |_, g, i| if i == 0 { real(g) } else { imag(g) });

/// The complex numbers with these real and imaginary parts, which are `float32` or `float64`.
///
/// ```
/// use taut_core::{Complex, Tensor, ops::binary::complex};
/// let z = complex(Tensor::new([1.0f32, 2.0])?, 0.5)?;
/// assert_eq!(z.to_vec::<Complex<f32>>()?[1], Complex { re: 2.0, im: 0.5 });
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn complex(real: impl Into<Operand>, imag: impl Into<Operand>) -> Result<Tensor> {
    binary(&COMPLEX, real.into(), imag.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "complex",
    &[Param::new("real", ParamKind::Operand), Param::new("imag", ParamKind::Operand)],
    |a| one(complex(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("real + 1j * imag"),
    Samples::List(|| {
        let pairs: [(&[usize], &[usize]); 4] =
            [(&[], &[]), (&[0], &[1]), (&[2, 3], &[3]), (&[2, 1], &[1, 4])];
        let with =
            |&dtype: &DType| pairs.map(|(a, b)| vec![ramp(dtype, a, -3.0, 3.0), ramp(dtype, b, -2.0, 2.0)]);
        dtypes::WIDE.iter().flat_map(with).collect()
    }),
)
.refuses(|| {
    let bad = |dtype| {
        let args = vec![ramp(dtype, &[2], 0.0, 1.0), ramp(dtype, &[2], 0.0, 1.0)];
        InvalidArgs::new(args, ErrorKind::DType, "is not supported")
    };
    vec![bad(DType::I32), bad(DType::F16), bad(DType::C64)]
})];
