//! `tf.train.SequenceExample` messages: features of a whole example, and lists of features, one per step.

use super::example::{ExampleParser, FeatureColumn, FeatureSpec, KeyIndex, ParsedFeature, entries};
use super::wire::{WireValue, fields};
use crate::element::AnyTensor;
use taut_core::{Result, Tensor};
use taut_strings::StringTensor;

/// A parsed list of features of all examples.
#[derive(Clone, Debug)]
pub struct ParsedList {
    /// The values of all steps of all examples, one after the other.
    pub values: AnyTensor,
    /// The number of values of each step (`int64`).
    pub lengths: Tensor,
    /// The number of steps of each example (`int64`); -1 for an example without the list.
    pub steps: Tensor,
}

/// Parses serialized sequence examples: the features of their contexts, and their lists of features, whose shapes and defaults
/// are not used.
#[track_caller]
pub fn parse_sequence_examples(
    serialized: &StringTensor,
    context: &[FeatureSpec],
    lists: &[FeatureSpec],
) -> Result<(Vec<ParsedFeature>, Vec<ParsedList>)> {
    let examples = serialized.values()?;
    let mut contexts = ExampleParser::new(context, examples.len());
    let variable: Vec<FeatureSpec> =
        lists.iter().map(|list| FeatureSpec { shape: None, default: None, ..list.clone() }).collect();
    let index = KeyIndex::new(&variable);
    let mut columns: Vec<(FeatureColumn<'_>, Vec<i64>)> =
        variable.iter().map(|list| (FeatureColumn::new(list, 0), Vec::new())).collect();
    let mut found: Vec<Option<&[u8]>> = vec![None; lists.len()];
    for (row, example) in examples.iter().enumerate() {
        contexts.push(row, example)?;
        found.fill(None);
        entries(example, 2, &index, &mut found)
            .map_err(|error| error.about(format_args!("example {row}")))?;
        for (((column, steps), list), spec) in columns.iter_mut().zip(&found).zip(&variable) {
            let Some(list) = list else {
                steps.push(-1);
                continue;
            };
            let mut count = 0;
            fields(list, |number, value| {
                let (1, WireValue::Bytes(feature)) = (number, value) else { return Ok(()) };
                column.push(Some(feature))?;
                count += 1;
                Ok(())
            })
            .map_err(|error| {
                error.about(format_args!("example {row}, step {count} of feature list '{}'", spec.key))
            })?;
            steps.push(count);
        }
    }
    let mut parsed = Vec::new();
    for (column, steps) in columns {
        let (rows, total) = (steps.len(), steps.iter().map(|&count| count.max(0) as usize).sum());
        let steps = Tensor::from_vec(steps, [rows])?;
        if let ParsedFeature::Variable(values, lengths) = column.finish(total)? {
            parsed.push(ParsedList { values, lengths, steps });
        }
    }
    Ok((contexts.finish()?, parsed))
}
