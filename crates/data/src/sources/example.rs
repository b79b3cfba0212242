//! `tf.train.Example` messages: parsing serialized examples to columns.
//!
//! The wire format is that of protocol buffers; an example is a map from names to lists of bytes, floats or integers. Only
//! these few message types are read, so the format is parsed here rather than by generated code.

use super::format_error;
use crate::element::AnyTensor;
use std::collections::HashMap;
use taut_core::{DType, Error, Result, Shape, Tensor};
use taut_strings::{StringBuilder, StringTensor};

/// The type of a feature's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureValues {
    /// Byte strings.
    Bytes,
    /// `float32`.
    Floats,
    /// `int64`.
    Ints,
}

/// A feature to parse.
#[derive(Clone, Debug)]
pub struct FeatureSpec {
    /// Its name.
    pub key: String,
    /// The type of its values.
    pub values: FeatureValues,
    /// The shape of each example's values; `None` for a list of any length.
    pub shape: Option<Shape>,
    /// The values of examples without the feature, one or as many as the shape has.
    pub default: Option<AnyTensor>,
}

/// A parsed feature: of all examples, with a fixed shape; or the values of all examples one after the other, and the number
/// of values of each (`int64`).
#[derive(Clone, Debug)]
pub enum ParsedFeature {
    /// `[examples, ..shape]`.
    Fixed(AnyTensor),
    /// Values, and lengths.
    Variable(AnyTensor, Tensor),
}

/// Parses serialized examples.
#[track_caller]
pub fn parse_examples(serialized: &StringTensor, features: &[FeatureSpec]) -> Result<Vec<ParsedFeature>> {
    let examples = serialized.values()?;
    let index: HashMap<&[u8], usize> =
        features.iter().enumerate().map(|(i, feature)| (feature.key.as_bytes(), i)).collect();
    let mut columns: Vec<FeatureColumn<'_>> =
        features.iter().map(|feature| FeatureColumn::new(feature, examples.len())).collect();
    let mut found: Vec<Option<&[u8]>> = vec![None; features.len()];
    for (row, example) in examples.iter().enumerate() {
        found.fill(None);
        scan(example, &index, &mut found).map_err(|error| error.about(format_args!("example {row}")))?;
        for (column, feature) in columns.iter_mut().zip(&found) {
            let key = &column.spec.key;
            let about = format!("example {row}, feature '{key}'");
            column.push(*feature).map_err(|error| error.about(about))?;
        }
    }
    columns.into_iter().map(|column| column.finish(examples.len())).collect()
}

/// Finds the wanted features of an example; the last one of a name counts.
fn scan<'a>(example: &'a [u8], index: &HashMap<&[u8], usize>, found: &mut [Option<&'a [u8]>]) -> Result<()> {
    fields(example, |number, value| {
        let WireValue::Bytes(features) = value else { return Ok(()) };
        if number != 1 {
            return Ok(());
        }
        fields(features, |number, value| {
            let (1, WireValue::Bytes(entry)) = (number, value) else { return Ok(()) };
            let (mut key, mut feature): (&[u8], &[u8]) = (b"", b"");
            fields(entry, |number, value| {
                match (number, value) {
                    (1, WireValue::Bytes(bytes)) => key = bytes,
                    (2, WireValue::Bytes(bytes)) => feature = bytes,
                    _ => {}
                }
                Ok(())
            })?;
            if let Some(&at) = index.get(key) {
                found[at] = Some(feature);
            }
            Ok(())
        })
    })
}

/// The values of one feature under construction.
struct FeatureColumn<'a> {
    spec: &'a FeatureSpec,
    strings: StringBuilder,
    floats: Vec<f32>,
    ints: Vec<i64>,
    lengths: Vec<i64>,
}

impl<'a> FeatureColumn<'a> {
    #[track_caller]
    fn new(spec: &'a FeatureSpec, rows: usize) -> FeatureColumn<'a> {
        let count = spec.shape.as_ref().map_or(0, |shape| shape.len().saturating_mul(rows)).min(1 << 24);
        let room = |values: FeatureValues| if spec.values == values { count } else { 0 };
        FeatureColumn {
            spec,
            strings: StringBuilder::new(room(FeatureValues::Bytes), 0),
            floats: Vec::with_capacity(room(FeatureValues::Floats)),
            ints: Vec::with_capacity(room(FeatureValues::Ints)),
            lengths: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        match self.spec.values {
            FeatureValues::Bytes => self.strings.count(),
            FeatureValues::Floats => self.floats.len(),
            FeatureValues::Ints => self.ints.len(),
        }
    }

    /// Adds the values of one example.
    fn push(&mut self, feature: Option<&[u8]>) -> Result<()> {
        let before = self.len();
        let present = feature.map_or(Ok(false), |feature| self.read(feature))?;
        let count = self.len() - before;
        let Some(shape) = &self.spec.shape else {
            self.lengths.push(count as i64);
            return Ok(());
        };
        if present && count == shape.len() {
            return Ok(());
        }
        if present && count > 0 {
            return Err(Error::value(format!(
                "expected {} values (shape {shape}), got {count}",
                shape.len()
            )));
        }
        let missing = || {
            Error::value(format!("the feature of shape {shape} is required, but the example has none"))
                .help("give it a default_value, or parse it with a variable length")
        };
        let default = self.spec.default.clone().ok_or_else(missing)?;
        self.extend(&default, shape.len())
    }

    fn extend(&mut self, default: &AnyTensor, count: usize) -> Result<()> {
        let wrong =
            |len: usize| Error::value(format!("the default must have 1 or {count} values, got {len}"));
        match (default, self.spec.values) {
            (AnyTensor::Strings(strings), FeatureValues::Bytes) => {
                let values = strings.values()?;
                if values.len() != count && values.len() != 1 {
                    return Err(wrong(values.len()));
                }
                (0..count).try_for_each(|i| self.strings.push(values.get(i % values.len())))
            }
            (AnyTensor::Numbers(tensor), FeatureValues::Floats) => {
                let values = taut_core::ops::unary::cast(tensor, DType::F32)?.to_vec::<f32>()?;
                if values.len() != count && values.len() != 1 {
                    return Err(wrong(values.len()));
                }
                self.floats.extend((0..count).map(|i| values[i % values.len()]));
                Ok(())
            }
            (AnyTensor::Numbers(tensor), FeatureValues::Ints) => {
                let values = taut_core::ops::unary::cast(tensor, DType::I64)?.to_vec::<i64>()?;
                if values.len() != count && values.len() != 1 {
                    return Err(wrong(values.len()));
                }
                self.ints.extend((0..count).map(|i| values[i % values.len()]));
                Ok(())
            }
            _ => Err(Error::dtype("the default must have the type of the feature")),
        }
    }

    /// Reads a `Feature` message. Returns false if it holds no list at all.
    fn read(&mut self, feature: &[u8]) -> Result<bool> {
        let mut present = false;
        let wanted = self.spec.values;
        fields(feature, |number, value| {
            let WireValue::Bytes(list) = value else { return Ok(()) };
            let kind = match number {
                1 => FeatureValues::Bytes,
                2 => FeatureValues::Floats,
                3 => FeatureValues::Ints,
                _ => return Ok(()),
            };
            if kind != wanted {
                return Err(Error::dtype(format!("expected values of type {wanted:?}, got {kind:?}")));
            }
            present = true;
            fields(list, |number, value| match (number, value, kind) {
                (1, WireValue::Bytes(bytes), FeatureValues::Bytes) => self.strings.push(bytes),
                (1, WireValue::Bytes(packed), FeatureValues::Floats) => {
                    let (words, rest) = packed.as_chunks::<4>();
                    if !rest.is_empty() {
                        return Err(damaged());
                    }
                    self.floats.extend(words.iter().map(|word| f32::from_le_bytes(*word)));
                    Ok(())
                }
                (1, WireValue::Fixed32(bits), FeatureValues::Floats) => {
                    self.floats.push(f32::from_bits(bits));
                    Ok(())
                }
                (1, WireValue::Bytes(mut packed), FeatureValues::Ints) => {
                    while !packed.is_empty() {
                        self.ints.push(varint(&mut packed)? as i64);
                    }
                    Ok(())
                }
                (1, WireValue::Varint(value), FeatureValues::Ints) => {
                    self.ints.push(value as i64);
                    Ok(())
                }
                _ => Ok(()),
            })
        })?;
        Ok(present)
    }

    fn finish(self, rows: usize) -> Result<ParsedFeature> {
        let count = self.len();
        let shape = match &self.spec.shape {
            Some(shape) => shape.clone().with_inserted(0, rows),
            None => Shape::from([count]),
        };
        let made = match self.spec.values {
            FeatureValues::Bytes => AnyTensor::Strings(self.strings.finish(shape)?),
            FeatureValues::Floats => AnyTensor::Numbers(Tensor::from_vec(self.floats, shape)?),
            FeatureValues::Ints => AnyTensor::Numbers(Tensor::from_vec(self.ints, shape)?),
        };
        match self.spec.shape {
            Some(_) => Ok(ParsedFeature::Fixed(made)),
            None => Ok(ParsedFeature::Variable(made, Tensor::from_vec(self.lengths, [rows])?)),
        }
    }
}

/// The value of a field on the wire.
enum WireValue<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    Fixed32(u32),
}

#[cold]
fn damaged() -> Error {
    format_error("the message is damaged: it is not a serialized tf.train.Example")
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Ok(value);
        }
    }
    Err(damaged())
}

/// Calls `visit` with number and value of each field of a message.
fn fields<'a>(mut message: &'a [u8], mut visit: impl FnMut(u64, WireValue<'a>) -> Result<()>) -> Result<()> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let mut take = |len: usize| -> Result<&'a [u8]> {
            let (part, rest) = message.split_at_checked(len).ok_or_else(damaged)?;
            message = rest;
            Ok(part)
        };
        let value = match tag & 7 {
            0 => WireValue::Varint(varint(&mut message)?),
            1 => take(8).map(|_| WireValue::Fixed64)?,
            2 => {
                let len = varint(&mut message)?;
                let (part, rest) = message.split_at_checked(len as usize).ok_or_else(damaged)?;
                message = rest;
                WireValue::Bytes(part)
            }
            5 => WireValue::Fixed32(u32::from_le_bytes(take(4)?.try_into().map_err(|_| damaged())?)),
            _ => return Err(damaged()),
        };
        visit(tag >> 3, value)?;
    }
    Ok(())
}
