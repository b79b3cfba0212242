//! `tf.train.Example` messages: maps from names to lists of bytes, floats or integers. Writing them, and parsing serialized
//! ones to columns.

use super::wire::{WireValue, damaged, fields, put_bytes, put_varint, varint};
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
    let mut parser = ExampleParser::new(features, examples.len());
    for (row, example) in examples.iter().enumerate() {
        parser.push(row, example)?;
    }
    parser.finish()
}

/// The features of the examples so far.
pub(super) struct ExampleParser<'a, 'm> {
    index: KeyIndex<'a>,
    columns: Vec<FeatureColumn<'a>>,
    /// The wanted features of the current example.
    found: Vec<Option<&'m [u8]>>,
    rows: usize,
}

impl<'a, 'm> ExampleParser<'a, 'm> {
    #[track_caller]
    pub(super) fn new(features: &'a [FeatureSpec], rows: usize) -> ExampleParser<'a, 'm> {
        let columns = features.iter().map(|feature| FeatureColumn::new(feature, rows)).collect();
        ExampleParser { index: KeyIndex::new(features), columns, found: vec![None; features.len()], rows }
    }

    /// Adds the features of example `row`: those in field 1 of the message.
    pub(super) fn push(&mut self, row: usize, example: &'m [u8]) -> Result<()> {
        self.found.fill(None);
        entries(example, 1, &self.index, &mut self.found)
            .map_err(|error| error.about(format_args!("example {row}")))?;
        for (column, feature) in self.columns.iter_mut().zip(&self.found) {
            column
                .push(*feature)
                .map_err(|error| error.about(format_args!("example {row}, feature '{}'", column.spec.key)))?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Vec<ParsedFeature>> {
        self.columns.into_iter().map(|column| column.finish(self.rows)).collect()
    }
}

/// The places of features by their keys. Several features may have one key: an entry is found at the first place, and copied
/// to the others.
pub(super) struct KeyIndex<'a> {
    features: &'a [FeatureSpec],
    /// The first place of each key.
    places: HashMap<&'a [u8], usize>,
    /// For each feature, the first place of its key.
    firsts: Vec<usize>,
    /// Whether a key has several places.
    has_repeats: bool,
}

impl<'a> KeyIndex<'a> {
    pub(super) fn new(features: &'a [FeatureSpec]) -> KeyIndex<'a> {
        let mut places = HashMap::with_capacity(features.len());
        let firsts: Vec<usize> = features
            .iter()
            .enumerate()
            .map(|(i, feature)| *places.entry(feature.key.as_bytes()).or_insert(i))
            .collect();
        let has_repeats = places.len() < features.len();
        KeyIndex { features, places, firsts, has_repeats }
    }

    /// The first place of a key. `likely` is the place after that of the last key: examples of a file have one order.
    #[inline]
    fn place(&self, key: &[u8], likely: usize) -> Option<usize> {
        if self.features.get(likely).is_some_and(|feature| feature.key.as_bytes() == key) {
            return Some(self.firsts[likely]);
        }
        self.places.get(key).copied()
    }

    /// Copies what was found at the first place of each key to its other places.
    fn copy_repeats<T: Copy>(&self, found: &mut [T]) {
        if self.has_repeats {
            for (place, &first) in self.firsts.iter().enumerate() {
                found[place] = found[first];
            }
        }
    }
}

/// Finds the values of the wanted keys of a map, which is in this field of the message; the last one of a key counts, for all
/// features with that key.
pub(super) fn entries<'a>(
    message: &'a [u8],
    field: u64,
    index: &KeyIndex<'_>,
    found: &mut [Option<&'a [u8]>],
) -> Result<()> {
    let mut likely = 0;
    fields(message, |number, value| {
        let WireValue::Bytes(map) = value else { return Ok(()) };
        if number != field {
            return Ok(());
        }
        fields(map, |number, value| {
            let (1, WireValue::Bytes(entry)) = (number, value) else { return Ok(()) };
            let (mut key, mut value): (&[u8], &[u8]) = (b"", b"");
            fields(entry, |number, part| {
                match (number, part) {
                    (1, WireValue::Bytes(bytes)) => key = bytes,
                    (2, WireValue::Bytes(bytes)) => value = bytes,
                    _ => {}
                }
                Ok(())
            })?;
            if let Some(place) = index.place(key, likely) {
                found[place] = Some(value);
                likely = place + 1;
            }
            Ok(())
        })
    })?;
    index.copy_repeats(found);
    Ok(())
}

/// The values of one feature under construction.
pub(super) struct FeatureColumn<'a> {
    spec: &'a FeatureSpec,
    strings: StringBuilder,
    floats: Vec<f32>,
    ints: Vec<i64>,
    lengths: Vec<i64>,
}

impl<'a> FeatureColumn<'a> {
    #[track_caller]
    pub(super) fn new(spec: &'a FeatureSpec, rows: usize) -> FeatureColumn<'a> {
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
    pub(super) fn push(&mut self, feature: Option<&[u8]>) -> Result<()> {
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

    pub(super) fn finish(self, rows: usize) -> Result<ParsedFeature> {
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

/// Writes a `tf.train.Example` message feature by feature.
///
/// ```
/// use taut_data::{ExampleBuilder, FeatureSpec, FeatureValues, ParsedFeature, AnyTensor, parse_examples};
/// use taut_strings::StringTensor;
///
/// let message = ExampleBuilder::new().ints("label", &[3]).floats("x", &[0.5, 1.0]).serialize();
/// let serialized = StringTensor::from_values([message], [1])?;
/// let x = FeatureSpec { key: "x".into(), values: FeatureValues::Floats, shape: Some([2].into()), default: None };
/// let ParsedFeature::Fixed(AnyTensor::Numbers(x)) = &parse_examples(&serialized, &[x])?[0] else { panic!() };
/// assert_eq!(x.to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExampleBuilder {
    /// The entries of the map of features.
    entries: Vec<u8>,
}

impl ExampleBuilder {
    /// An example without features.
    pub fn new() -> ExampleBuilder {
        ExampleBuilder::default()
    }

    /// Adds a feature of byte strings.
    #[must_use]
    pub fn bytes<V: AsRef<[u8]>>(self, key: &str, values: impl IntoIterator<Item = V>) -> ExampleBuilder {
        let mut list = Vec::new();
        values.into_iter().for_each(|value| put_bytes(&mut list, 1, value.as_ref()));
        self.feature(key, 1, &list)
    }

    /// Adds a feature of floats.
    #[must_use]
    pub fn floats(self, key: &str, values: &[f32]) -> ExampleBuilder {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.packed(key, 2, &packed)
    }

    /// Adds a feature of integers.
    #[must_use]
    pub fn ints(self, key: &str, values: &[i64]) -> ExampleBuilder {
        let mut packed = Vec::new();
        values.iter().for_each(|&value| put_varint(&mut packed, value as u64));
        self.packed(key, 3, &packed)
    }

    fn packed(self, key: &str, kind: u64, packed: &[u8]) -> ExampleBuilder {
        let mut list = Vec::new();
        if !packed.is_empty() {
            put_bytes(&mut list, 1, packed);
        }
        self.feature(key, kind, &list)
    }

    fn feature(mut self, key: &str, kind: u64, list: &[u8]) -> ExampleBuilder {
        let (mut feature, mut entry) = (Vec::new(), Vec::new());
        put_bytes(&mut feature, kind, list);
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, &feature);
        put_bytes(&mut self.entries, 1, &entry);
        self
    }

    /// The serialized message.
    pub fn serialize(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, &self.entries);
        out
    }
}
