//! Masks of one bit per element: what gradients keep in place of a tensor when a yes or no is all they need.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::batching::single;
use crate::ops::binary::where_;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{Margin, pad, reshape_to, slice};
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply, s};
use taut_kernels::{Arg, ViewMut, bits as kernels};

#[derive(Clone, Debug)]
struct PackBits;

impl Op for PackBits {
    fn name(&self) -> &'static str {
        "pack_bits"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(Spec::new(DType::U8, [kernels::bytes(inputs[0].shape.len())]).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        kernels::positive(inputs[0].view(), outputs[0].bytes());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let len = call.shape(0).len();
        let bytes = kernels::bytes(len);
        // Every set begins with a byte of its own.
        let rows = reshape_to(&call.inputs[0], &[call.size, len].into())?;
        let rows = match 8 * bytes - len {
            0 => rows,
            missing => pad(rows, &[[0, 0], [0, missing]], Margin::Constant(0.into()))?,
        };
        single(reshape_to(pack_bits(rows)?, &[call.size, bytes].into()))
    }
}

/// A bit per element, eight to a byte (uint8, one-dimensional): whether it is above zero or, of booleans, true. The
/// first element is the lowest bit of the first byte.
///
/// ```
/// use taut_core::{Tensor, ops::index::pack_bits};
/// let x = Tensor::from_slice(&[1.0f32, -1.0, 2.0], [3])?;
/// assert_eq!(pack_bits(&x)?.to_vec::<u8>()?, [0b101]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn pack_bits(x: impl Into<Tensor>) -> Result<Tensor> {
    apply(&PackBits, [x.into()])
}

#[derive(Clone, Debug)]
struct UnpackBits {
    shape: Shape,
}

impl Op for UnpackBits {
    fn name(&self) -> &'static str {
        "unpack_bits"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check(inputs[0], &self.shape)?;
        Ok(Spec::new(DType::Bool, self.shape.clone()).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        kernels::unpack(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        single(masks(call, 0, &self.shape))
    }

    fn attributes(&self) -> String {
        format!("shape={}", self.shape)
    }
}

/// The booleans, in this shape, that [`pack_bits`] made bits of.
#[track_caller]
pub fn unpack_bits(bits: impl Into<Tensor>, shape: impl Into<Shape>) -> Result<Tensor> {
    apply(&UnpackBits { shape: shape.into() }, [bits.into()])
}

#[derive(Clone, Debug)]
struct KeepBits {
    inverted: bool,
}

impl Op for KeepBits {
    fn name(&self) -> &'static str {
        "keep_bits"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check(inputs[1], &inputs[0].shape)?;
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        kernels::keep(inputs[0], inputs[1].view(), self.inverted, outputs[0].reborrow());
        Ok(())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let shape = call.shape(0);
        if !call.mapped[1] {
            let mask = unpack_bits(&call.inputs[1], shape)?;
            return single(keep_by_mask(call.inputs[0].clone(), mask, self.inverted));
        }
        if shape.len().is_multiple_of(8) {
            return single(keep_bits(call.spread(0)?, call.merged(1)?, self.inverted));
        }
        single(keep_by_mask(call.inputs[0].clone(), masks(call, 1, &shape)?, self.inverted))
    }

    fn attributes(&self) -> String {
        String::from(if self.inverted { "inverted" } else { "" })
    }
}

impl Differentiable for KeepBits {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| keep_bits(g, call.input(1)?, self.inverted))
    }
}

/// The elements of `x` whose bit is set, and zero for the others; with `inverted`, those whose bit is not set.
#[track_caller]
pub fn keep_bits(x: impl Into<Tensor>, bits: impl Into<Tensor>, inverted: bool) -> Result<Tensor> {
    apply(&KeepBits { inverted }, [x.into(), bits.into()])
}

/// As [`keep_bits`], with the bits of a mask of this shape, which broadcasts to that of `x`.
#[track_caller]
pub(crate) fn keep_where(x: Tensor, bits: &Tensor, mask: &Shape, inverted: bool) -> Result<Tensor> {
    if x.shape() == mask {
        return keep_bits(x, bits, inverted);
    }
    keep_by_mask(x, unpack_bits(bits, mask.clone())?, inverted)
}

/// Keeps what the mask says, or what it does not say, and zeros for the rest.
#[track_caller]
fn keep_by_mask(x: Tensor, mask: Tensor, inverted: bool) -> Result<Tensor> {
    let zero = Tensor::constant(0, x.dtype())?;
    if inverted { where_(mask, zero, x) } else { where_(mask, x, zero) }
}

/// Refuses what cannot be the bits of a tensor of this shape.
/// The masks of this shape whose bits an input has, one per set.
#[track_caller]
fn masks(call: &VmapCall<'_>, input: usize, shape: &Shape) -> Result<Tensor> {
    let (bits, len) = (call.merged(input)?, shape.len());
    let rows = unpack_bits(bits, [call.size, 8 * kernels::bytes(len)])?;
    reshape_to(slice(rows, &s![.., ..len as isize])?, &call.many(shape))
}

fn check(bits: &Spec, shape: &Shape) -> Result<()> {
    if bits.dtype != DType::U8 {
        return Err(
            Error::dtype(format!("bits come in uint8, not {}", bits.dtype)).help("pack_bits makes them")
        );
    }
    let bytes = shape.checked_len().map(kernels::bytes);
    if bits.shape.rank() != 1 || Some(bits.shape.len()) != bytes {
        return Err(Error::shape(format!("bits of shape {} are not those of a mask {shape}", bits.shape)));
    }
    Ok(())
}

fn masked(dtype: DType, shape: &[usize]) -> [ArgValue; 2] {
    let bytes = kernels::bytes(shape.iter().product());
    [ramp(dtype, shape, -9.0, 9.0), ramp(DType::U8, &[bytes], 0.0, 255.0)]
}

const SHAPES: [&[usize]; 6] = [&[], &[0], &[7], &[8], &[3, 5], &[2, 3, 4]];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "pack_bits",
        Param::X,
        |a| one(pack_bits(a.tensor(0)?)),
        Reference::Numpy("np.packbits(np.ravel(x > 0), bitorder='little')"),
        Samples::Unary(dtypes::ALL, -2.0, 2.0),
    ),
    OpEntry::new(
        "unpack_bits",
        &[Param::tensor("bits"), Param::new("shape", ParamKind::Ints)],
        |a| one(unpack_bits(a.tensor(0)?, a.shape(1)?)),
        Reference::Numpy(
            "np.unpackbits(bits, bitorder='little')[:int(np.prod(shape))].reshape([int(d) for d in shape]).astype(bool)",
        ),
        Samples::List(|| {
            let with = |shape: &&[usize]| {
                let [_, bits] = masked(DType::F32, shape);
                vec![bits, ArgValue::Ints(shape.iter().map(|&dim| dim as i64).collect())]
            };
            SHAPES.iter().map(with).collect()
        }),
    )
    .refuses(|| {
        let bad = |bits, shape: &[i64], kind, message| {
            Bad::new(vec![bits, ArgValue::Ints(shape.to_vec())], kind, message)
        };
        let bytes = |n: usize| ramp(DType::U8, &[n], 0.0, 9.0);
        vec![
            bad(ramp(DType::I32, &[1], 0.0, 1.0), &[3], ErrorKind::DType, "bits come in uint8, not int32"),
            bad(bytes(2), &[3], ErrorKind::Shape, "bits of shape [2] are not those of a mask [3]"),
            bad(bytes(1), &[i64::MAX, i64::MAX], ErrorKind::Shape, "are not those of a mask"),
        ]
    }),
    OpEntry::new(
        "keep_bits",
        &[Param::tensor("x"), Param::tensor("bits"), Param::optional("inverted", ParamKind::Bool, "False")],
        |a| one(keep_bits(a.tensor(0)?, a.tensor(1)?, a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy(
            "np.where(np.unpackbits(bits, bitorder='little')[:x.size].reshape(x.shape).astype(bool) != bool(inverted), x, \
             np.zeros((), x.dtype))",
        ),
        Samples::List(|| {
            let mut list = Vec::new();
            for (i, &dtype) in dtypes::ALL.iter().enumerate() {
                for (j, shape) in SHAPES.iter().enumerate() {
                    list.push([&masked(dtype, shape)[..], &[ArgValue::Bool((i + j) % 2 == 1)]].concat());
                }
            }
            list
        }),
    )
    .refuses(|| {
        let x = || ramp(DType::F32, &[9], 0.0, 1.0);
        vec![
            Bad::new(vec![x(), of(DType::U8, &[1], &[3.0])], ErrorKind::Shape, "bits of shape [1] are not those"),
            Bad::new(vec![x(), of(DType::Bool, &[2], &[1.0, 0.0])], ErrorKind::DType, "bits come in uint8"),
        ]
    }),
];
