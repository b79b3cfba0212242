//! Serialized tensors: TensorFlow's `TensorProto`.

use super::format_error;
use super::wire::{WireValue, damaged, fields, put_bytes, put_number, varint};
use crate::element::AnyTensor;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Category, Location};
use taut_strings::StringBuilder;

/// The number of each type in messages.
const TYPES: [(u64, DType); 15] = [
    (1, DType::F32),
    (2, DType::F64),
    (3, DType::I32),
    (4, DType::U8),
    (5, DType::I16),
    (6, DType::I8),
    (8, DType::C64),
    (9, DType::I64),
    (10, DType::Bool),
    (14, DType::BF16),
    (17, DType::U16),
    (18, DType::C128),
    (19, DType::F16),
    (22, DType::U32),
    (23, DType::U64),
];
const STRING: u64 = 7;

/// The most bytes of a tensor per byte of its message, as equal values at the end are stored once.
const MOST_BYTES: usize = 1 << 12;

/// A tensor as a serialized `TensorProto`, which [`parse_tensor`] and TensorFlow read.
///
/// ```
/// use taut_core::Tensor;
/// use taut_data::{AnyTensor, parse_tensor, serialize_tensor};
/// let bytes = serialize_tensor(&AnyTensor::Numbers(Tensor::new([1.5f32, 2.0])?))?;
/// let AnyTensor::Numbers(tensor) = parse_tensor(&bytes)? else { panic!("expected numbers") };
/// assert_eq!(tensor.to_vec::<f32>()?, [1.5, 2.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub fn serialize_tensor(tensor: &AnyTensor) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match tensor {
        AnyTensor::Strings(strings) => {
            put_header(&mut out, STRING, strings.shape());
            strings.values()?.iter().for_each(|value| put_bytes(&mut out, 8, value));
        }
        AnyTensor::Numbers(tensor) => {
            let dtype = tensor.dtype();
            let Some((number, _)) = TYPES.iter().find(|(_, known)| *known == dtype) else {
                return Err(Error::dtype(format!("expected a type of TensorProto, got {dtype}")));
            };
            put_header(&mut out, *number, tensor.shape());
            let tensor = if tensor.is_contiguous() { tensor.clone() } else { tensor.copy()? };
            let view = tensor.view()?;
            match view.contiguous_bytes() {
                Some(bytes) if !bytes.is_empty() => put_bytes(&mut out, 4, bytes),
                _ => {}
            }
        }
    }
    Ok(out)
}

/// Type and shape. A dimension of size 0 is a message without fields, as the value 0 is not written.
fn put_header(out: &mut Vec<u8>, number: u64, shape: &Shape) {
    put_number(out, 1, number);
    let mut dims = Vec::new();
    for &size in shape.iter() {
        let mut dim = Vec::new();
        if size > 0 {
            put_number(&mut dim, 1, size as u64);
        }
        put_bytes(&mut dims, 2, &dim);
    }
    put_bytes(out, 2, &dims);
}

/// The tensor of a serialized `TensorProto`.
///
/// Memory: the tensor twice at most. A message whose shape asks for more than 4096 times its own bytes, and for more than a
/// mebibyte, is taken to be damaged.
#[track_caller]
pub fn parse_tensor(serialized: &[u8]) -> Result<AnyTensor> {
    let at = source_location(Location::caller());
    parse(serialized, at).map_err(|error| error.at(at))
}

fn parse(serialized: &[u8], at: Location) -> Result<AnyTensor> {
    let (mut number, mut dims, mut content) = (0, Vec::new(), &serialized[..0]);
    fields(serialized, |field, value| {
        match (field, value) {
            (1, WireValue::Varint(value)) => number = value,
            (2, WireValue::Bytes(shape)) => dims = parse_shape(shape)?,
            (4, WireValue::Bytes(bytes)) => content = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let most = serialized.len().saturating_mul(MOST_BYTES).max(1 << 20);
    let shape = Shape::from(dims);
    let refused = |bytes: Option<usize>| bytes.is_none_or(|bytes| bytes > most);
    let too_large = || {
        format_error(format!(
            "a tensor of shape {shape} must have at most {most} bytes, as its message has {}",
            serialized.len()
        ))
    };
    let count = shape.checked_len();
    if number == STRING {
        if refused(count.and_then(|count| count.checked_mul(size_of::<i64>()))) {
            return Err(too_large());
        }
        return strings(serialized, content, shape).map(AnyTensor::Strings);
    }
    let Some(&(_, dtype)) = TYPES.iter().find(|(known, _)| *known == number) else {
        return Err(Error::value(format!("the type of the tensor must be a number or string, got {number}")));
    };
    if refused(count.and_then(|count| count.checked_mul(dtype.size()))) {
        return Err(too_large());
    }
    let listed;
    let values = if content.is_empty() {
        listed = listed_values(serialized, dtype)?;
        &listed[..]
    } else {
        content
    };
    let spec = Spec::new(dtype, shape);
    let (size, wanted) = (dtype.size(), spec.bytes());
    // A list, and a content of one value, may leave out equal values at the end.
    let is_short = content.is_empty() || values.len() == size;
    if values.len() != wanted && !(is_short && values.len() < wanted) {
        return Err(format_error(format!(
            "the tensor is damaged: shape {} of {dtype} needs {wanted} bytes, got {}",
            spec.shape,
            values.len()
        )));
    }
    Tensor::build(spec, Category::Tensor, at, |out| {
        let out = out.bytes();
        let (start, rest) = out.split_at_mut(values.len());
        start.copy_from_slice(values);
        // Equal values at the end are stored once; without any, they are zero.
        match values.len().checked_sub(size) {
            Some(last) => rest.chunks_exact_mut(size).for_each(|one| one.copy_from_slice(&values[last..])),
            None => rest.fill(0),
        }
        if dtype == DType::Bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    })
    .map(AnyTensor::Numbers)
}

fn parse_shape(shape: &[u8]) -> Result<Vec<usize>> {
    let mut dims = Vec::new();
    fields(shape, |field, value| {
        let (2, WireValue::Bytes(dim)) = (field, value) else { return Ok(()) };
        let mut size = 0;
        fields(dim, |field, value| {
            if let (1, WireValue::Varint(value)) = (field, value) {
                size = usize::try_from(value as i64).map_err(|_| damaged())?;
            }
            Ok(())
        })?;
        dims.push(size);
        if dims.len() > MAX_RANK { Err(damaged()) } else { Ok(()) }
    })?;
    Ok(dims)
}

/// The maximum rank of TensorFlow's tensors.
const MAX_RANK: usize = 254;

/// The bytes of values that are listed one by one.
fn listed_values(serialized: &[u8], dtype: DType) -> Result<Vec<u8>> {
    let list = list_of(dtype);
    // A complex number is listed as its real and its imaginary part.
    let part = dtype.part();
    let (size, mut found) = (part.size(), Vec::new());
    let mut push = |value: u64| {
        let value = if part == DType::Bool { u64::from(value != 0) } else { value };
        found.extend_from_slice(&value.to_le_bytes()[..size]);
    };
    fields(serialized, |field, value| {
        if field != list {
            return Ok(());
        }
        match value {
            WireValue::Varint(value) if !matches!(part, DType::F32 | DType::F64) => push(value),
            WireValue::Fixed32(bits) if part == DType::F32 => push(u64::from(bits)),
            WireValue::Fixed64(bits) if part == DType::F64 => push(bits),
            WireValue::Bytes(packed) if part == DType::F32 => {
                let (words, rest) = packed.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(damaged());
                }
                words.iter().for_each(|word| push(u64::from(u32::from_le_bytes(*word))));
            }
            WireValue::Bytes(packed) if part == DType::F64 => {
                let (words, rest) = packed.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(damaged());
                }
                words.iter().for_each(|word| push(u64::from_le_bytes(*word)));
            }
            WireValue::Bytes(mut packed) => {
                while !packed.is_empty() {
                    push(varint(&mut packed)?);
                }
            }
            _ => return Err(damaged()),
        }
        Ok(())
    })?;
    if found.len().is_multiple_of(dtype.size()) { Ok(found) } else { Err(damaged()) }
}

/// The field that lists the values of a type.
fn list_of(dtype: DType) -> u64 {
    match dtype {
        DType::F32 => 5,
        DType::F64 => 6,
        DType::C64 => 9,
        DType::I64 => 10,
        DType::Bool => 11,
        DType::C128 => 12,
        DType::F16 | DType::BF16 => 13,
        DType::U32 => 16,
        DType::U64 => 17,
        _ => 7,
    }
}

fn strings(serialized: &[u8], content: &[u8], shape: Shape) -> Result<taut_strings::StringTensor> {
    let count = shape.len();
    let mut out = StringBuilder::new(count, content.len());
    if content.is_empty() {
        fields(serialized, |field, value| match (field, value) {
            (8, WireValue::Bytes(value)) => out.push(value),
            _ => Ok(()),
        })?;
        if out.count() == 0 {
            (0..count).try_for_each(|_| out.push(b""))?;
        }
    } else {
        // All lengths, then all bytes.
        let (mut rest, mut lengths) = (content, Vec::new());
        for _ in 0..count {
            lengths.push(varint(&mut rest)?);
        }
        for length in lengths {
            let length = usize::try_from(length).map_err(|_| damaged())?;
            let (value, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
            out.push(value)?;
            rest = after;
        }
    }
    if out.count() != count {
        let message =
            format!("the tensor is damaged: shape {shape} needs {count} strings, got {}", out.count());
        return Err(format_error(message));
    }
    out.finish(shape)
}
