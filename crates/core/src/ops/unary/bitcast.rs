//! Reinterpretation of the bits of a tensor as another dtype.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::ramp;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Layout, Outputs, Tensor, apply};
use std::cmp::Ordering;

#[derive(Clone, Debug)]
struct Bitcast {
    to: DType,
}

impl Op for Bitcast {
    fn name(&self) -> &'static str {
        "bitcast"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype: from, shape } = inputs[0].clone();
        let to = self.to;
        if from == DType::Bool || to == DType::Bool {
            return Err(Error::dtype("bool cannot be reinterpreted").help("use cast"));
        }
        if from.is_complex() != to.is_complex() {
            return Err(Error::dtype(format!("{from} cannot be reinterpreted as {to}"))
                .help("use real and imag, or complex"));
        }
        let shape = match from.size().cmp(&to.size()) {
            Ordering::Equal => shape,
            Ordering::Greater => {
                let rank = shape.rank();
                shape.with_inserted(rank, from.size() / to.size())
            }
            Ordering::Less => {
                let needed = to.size() / from.size();
                if shape.last() != Some(&needed) {
                    return Err(Error::shape(format!(
                        "bitcast from {from} to {to} needs a last dimension of {needed}, got shape {shape}"
                    ))
                    .help(format!("reshape to [..., {needed}] first")));
                }
                let last = shape.rank() - 1;
                shape.without(last)
            }
        };
        Ok(Spec { dtype: to, shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn attributes(&self) -> String {
        format!("to={}", self.to)
    }
}

impl ViewOp for Bitcast {
    fn view(&self, dtype: DType, input: &Layout) -> Option<Layout> {
        let mut out = input.clone();
        match dtype.size().cmp(&self.to.size()) {
            Ordering::Equal => {}
            Ordering::Greater => {
                let parts = dtype.size() / self.to.size();
                let rank = out.shape.rank();
                out.strides.iter_mut().for_each(|stride| *stride = stride.wrapping_mul(parts as isize));
                out.strides.push(1);
                out.shape = out.shape.with_inserted(rank, parts);
                out.offset *= parts;
            }
            Ordering::Less => {
                let parts = self.to.size() / dtype.size();
                let last = out.shape.rank().checked_sub(1)?;
                // The parts must be contiguous, and every element of the wider dtype aligned to its size.
                if out.strides.pop()? != 1 || !out.offset.is_multiple_of(parts) {
                    return None;
                }
                out.shape = out.shape.without(last);
                out.offset /= parts;
                for stride in &mut out.strides {
                    if *stride % parts as isize != 0 {
                        return None;
                    }
                    *stride /= parts as isize;
                }
            }
        }
        Some(out)
    }
}

/// Reinterprets the bits of a tensor as another dtype, without a copy where the layout allows it.
///
/// A narrower dtype appends a dimension of size `size(from) / size(to)`; a wider one removes the last dimension, which
/// must have size `size(to) / size(from)`. The order of the parts is the machine's byte order. Not differentiable.
///
/// ```
/// use taut_core::{DType, Tensor, ops::unary::bitcast};
/// let x = Tensor::from_slice(&[1.0f32, -0.0], [2])?;
/// assert_eq!(bitcast(&x, DType::U32)?.to_vec::<u32>()?, [0x3f80_0000, 0x8000_0000]);
/// assert_eq!(bitcast(&x, DType::U8)?.shape(), &[2, 4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn bitcast(input: impl Into<Tensor>, dtype: DType) -> Result<Tensor> {
    let input = input.into();
    // The same dtype is the identity, which is differentiable.
    if input.dtype() == dtype && dtype != DType::Bool {
        return Ok(input);
    }
    apply(&Bitcast { to: dtype }, [input])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "bitcast",
    &[Param::tensor("input"), Param::new("type", ParamKind::DType)],
    |a| one(bitcast(a.tensor(0)?, a.dtype(1)?)),
    Reference::Property(
        "out.dtype == type and out.tobytes() == input.tobytes() and out.shape == (input.shape[:-1] \
         if input.itemsize < type.itemsize \
         else input.shape + (input.itemsize // type.itemsize,) * (input.itemsize > type.itemsize))",
    ),
    Samples::List(|| {
        use DType::*;
        let types = [I8, U16, F16, U32, F32, I64, F64];
        let mut samples = Vec::new();
        for from in types {
            for to in types {
                let parts = to.size().div_ceil(from.size());
                let shape: &[usize] = if parts > 1 { &[3, parts] } else { &[2, 3] };
                samples.push(vec![ramp(from, shape, -50.0, 50.0), ArgValue::DType(to)]);
            }
        }
        samples.push(vec![ramp(F32, &[], -50.0, 50.0), ArgValue::DType(I32)]);
        samples.push(vec![ramp(F32, &[], -50.0, 50.0), ArgValue::DType(U16)]);
        samples.push(vec![ramp(U8, &[4], -50.0, 50.0), ArgValue::DType(F32)]);
        samples.push(vec![ramp(U8, &[0, 2], -50.0, 50.0), ArgValue::DType(F16)]);
        samples.push(vec![ramp(F64, &[2, 0], -50.0, 50.0), ArgValue::DType(I8)]);
        samples
    }),
)
.refuses(|| {
    let bad = |from, shape: &[usize], to, kind, message| {
        InvalidArgs::new(vec![ramp(from, shape, 0.0, 1.0), ArgValue::DType(to)], kind, message)
    };
    vec![
        bad(DType::Bool, &[2], DType::U8, ErrorKind::DType, "bool cannot be reinterpreted"),
        bad(DType::U8, &[2], DType::Bool, ErrorKind::DType, "bool cannot be reinterpreted"),
        bad(
            DType::U8,
            &[2, 3],
            DType::F32,
            ErrorKind::Shape,
            "from uint8 to float32 needs a last dimension of 4",
        ),
        bad(DType::F32, &[], DType::F64, ErrorKind::Shape, "a last dimension of 2, got shape []"),
    ]
})];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::shape::slice;
    use crate::{bf16, s};

    #[test]
    fn bfloat16_is_the_upper_half_of_float32() {
        let _ledger = taut_memory::testing::ledger_check();
        let x = Tensor::from_slice(&[1.0f32, -2.5], [2]).unwrap();
        let halves = bitcast(&x, DType::BF16).unwrap();
        let upper = isize::from(cfg!(target_endian = "little"));
        let upper = slice(halves, &s![.., upper]).unwrap();
        assert_eq!(upper.to_vec::<bf16>().unwrap(), [bf16::from_f32(1.0), bf16::from_f32(-2.5)]);
    }

    /// Slices of a buffer whose size or offset is not a multiple of the wider dtype's size.
    #[test]
    fn unaligned_slices_are_copied() {
        let _ledger = taut_memory::testing::ledger_check();
        let bytes: Vec<u8> = (1..=7).collect();
        let x = Tensor::from_slice(&bytes, [7]).unwrap();
        for start in 0..4 {
            let part = slice(&x, &s![start..start + 4]).unwrap();
            let want = u32::from_ne_bytes(std::array::from_fn(|i| bytes[start as usize + i]));
            let whole = bitcast(part, DType::U32).unwrap();
            assert_eq!(whole.item::<u32>().unwrap(), want);
            assert_eq!(whole.shares_memory(&x), start == 0, "only the aligned slice is a view");
        }
    }
}
