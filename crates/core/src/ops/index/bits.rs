//! Bit masks, one bit per element: the residuals of gradients that depend only on a condition per element.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::where_;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{PadMode, pad, reshape_to, slice};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowAxis, RowCall, RowClass, RowPart, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply, s};
use std::sync::Arc;
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
        // The bits of every example begin at a byte.
        let rows = reshape_to(&call.inputs[0], &[call.size, len].into())?;
        let rows = match 8 * bytes - len {
            0 => rows,
            missing => pad(rows, &[[0, 0], [0, missing]], PadMode::Constant(0.into()))?,
        };
        single_output(reshape_to(pack_bits(rows)?, &[call.size, bytes].into()))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for PackBits {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (outer, per_row) = call.classes[0].axis()?.extents(call.inputs[0]);
        call.with_outputs([RowClass::PackedRows { outer, per_row }])
    }
}

/// Packs the condition `x > 0` (of booleans, `x`) into bits, eight to a byte: `uint8` of shape `[ceil(len / 8)]`. The
/// first element is the lowest bit of the first byte. Not differentiable.
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
        single_output(masks(call, 0, &self.shape))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("shape={}", self.shape)
    }
}

impl RowRule for UnpackBits {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = packed_rows(call, 0, &self.shape)?;
        call.with_outputs([RowClass::Rows(rows)])
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(UnpackBits { shape: part.outputs[0].shape.clone() }))
    }
}

/// Unpacks the bits of [`pack_bits`] into a boolean tensor of this shape.
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

    fn accepts_complex(&self) -> bool {
        true
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
            return single_output(keep_by_mask(call.inputs[0].clone(), mask, self.inverted));
        }
        if shape.len().is_multiple_of(8) {
            return single_output(keep_bits(call.batched_input(0)?, call.merged_input(1)?, self.inverted));
        }
        single_output(keep_by_mask(call.inputs[0].clone(), masks(call, 1, &shape)?, self.inverted))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        String::from(if self.inverted { "inverted" } else { "" })
    }
}

impl RowRule for KeepBits {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let rows = packed_rows(call, 1, &call.inputs[0].shape)?;
        let mut split = call.with_outputs([RowClass::Rows(rows)])?;
        split.inputs[0] = call.rows_of(0, rows)?;
        Some(split)
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

/// Masks a tensor by packed bits: `x` where the bit is set (with `inverted`, where it is not), zero elsewhere.
#[track_caller]
pub fn keep_bits(x: impl Into<Tensor>, bits: impl Into<Tensor>, inverted: bool) -> Result<Tensor> {
    apply(&KeepBits { inverted }, [x.into(), bits.into()])
}

/// As [`keep_bits`], where the bits are those of a mask whose shape broadcasts to that of `x`.
#[track_caller]
pub(crate) fn keep_where(x: Tensor, bits: &Tensor, mask: &Shape, inverted: bool) -> Result<Tensor> {
    if x.shape() == mask {
        return keep_bits(x, bits, inverted);
    }
    keep_by_mask(x, unpack_bits(bits, mask.clone())?, inverted)
}

/// `x` where the mask is true (with `inverted`, false), zero elsewhere.
#[track_caller]
fn keep_by_mask(x: Tensor, mask: Tensor, inverted: bool) -> Result<Tensor> {
    let zero = Tensor::constant(0, x.dtype())?;
    if inverted { where_(mask, zero, x) } else { where_(mask, x, zero) }
}

/// The boolean masks of an input of packed bits, one per example.
#[track_caller]
fn masks(call: &VmapCall<'_>, input: usize, shape: &Shape) -> Result<Tensor> {
    let (bits, len) = (call.merged_input(input)?, shape.len());
    let rows = unpack_bits(bits, [call.size, 8 * kernels::bytes(len)])?;
    reshape_to(slice(rows, &s![.., ..len as isize])?, &call.batched_shape(shape))
}

/// The row axis of a mask of this shape whose packed bits are an input.
fn packed_rows(call: &RowCall<'_>, bits: usize, shape: &Shape) -> Option<RowAxis> {
    let RowClass::PackedRows { outer, per_row } = call.classes[bits] else { return None };
    // The shape may have other elements than those that were packed, as long as their bits take as many bytes.
    let mask = Spec::new(DType::Bool, shape.clone());
    let axes = (0..shape.rank()).filter(|&axis| shape[axis] > 1 && shape[axis].is_multiple_of(call.rows));
    let mut axes = axes.map(|axis| RowAxis { axis, per_row: shape[axis] / call.rows });
    axes.find(|axis| axis.extents(&mask) == (outer, per_row))
}

fn check(bits: &Spec, shape: &Shape) -> Result<()> {
    if bits.dtype != DType::U8 {
        return Err(
            Error::dtype(format!("bits must be uint8, got {}", bits.dtype)).help("make them with pack_bits")
        );
    }
    let bytes = shape.checked_len().map(kernels::bytes);
    if bits.shape.rank() != 1 || Some(bits.shape.len()) != bytes {
        let message = format!(
            "bits of a mask of shape {shape} must have one bit per element, got shape {}",
            bits.shape
        );
        return Err(Error::shape(message));
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
            InvalidArgs::new(vec![bits, ArgValue::Ints(shape.to_vec())], kind, message)
        };
        let bytes = |n: usize| ramp(DType::U8, &[n], 0.0, 9.0);
        vec![
            bad(ramp(DType::I32, &[1], 0.0, 1.0), &[3], ErrorKind::DType, "bits must be uint8, got int32"),
            bad(bytes(2), &[3], ErrorKind::Shape, "bits of a mask of shape [3] must have one bit per element, got shape [2]"),
            bad(bytes(1), &[i64::MAX, i64::MAX], ErrorKind::Shape, "must have one bit per element"),
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
            InvalidArgs::new(vec![x(), of(DType::U8, &[1], &[3.0])], ErrorKind::Shape, "bits of a mask of shape [9] must have one bit per element"),
            InvalidArgs::new(vec![x(), of(DType::Bool, &[2], &[1.0, 0.0])], ErrorKind::DType, "bits must be uint8, got bool"),
        ]
    }),
];
