//! Text from files: lines, a vocabulary, an embedding; the step is planned, and the pipeline's buffers are bounded.

use std::collections::BTreeSet;
use taut::data::{FileSet, Shuffle, text_lines};
use taut::layers::{Dense, Embedding};
use taut::losses::{BinaryCrossentropy, Loss};
use taut::memory::{self, Bytes};
use taut::optimizers::{Adam, Optimizer};
use taut::random::Generator;
use taut::strings::{StringTable, StringTensor, lower, split};
use taut::{DType, GradientTape, Layer, Mode, Result, Tensor, function};
use taut_examples::{TemporaryFolder, is_quick};

const GOOD: [&str; 3] = ["great", "fine", "lovely"];
const BAD: [&str; 3] = ["awful", "poor", "dull"];
const OTHER: [&str; 6] = ["The", "film", "was", "a", "story", "and"];
const WORDS: usize = 8;
const UNITS: usize = 16;
/// Ids that are not words of the vocabulary: padding, and words that are not in it.
const SPECIAL: usize = 2;
/// The bytes that each of the two buffers of the pipeline may hold.
const BUFFER: usize = 1 << 20;

/// A file with a line per review: two words of a mood, and others.
fn write_reviews(path: &std::path::Path, mood: [&str; 3], count: usize, random: &Generator) -> Result<()> {
    let picks = random.integers([count, WORDS], 0, 6, DType::I32)?.to_vec::<i32>()?;
    let word = |(at, &pick): (usize, &i32)| {
        if at < 2 { mood[pick as usize % 3] } else { OTHER[pick as usize] }
    };
    let line = |picks: &[i32]| picks.iter().enumerate().map(word).collect::<Vec<_>>().join(" ") + "\n";
    Ok(std::fs::write(path, picks.chunks(WORDS).map(line).collect::<String>())?)
}

/// The ids of the words of lines: `[lines, WORDS]`, padded or cut.
fn vectorize(lines: &StringTensor, vocabulary: &StringTable) -> Result<Tensor> {
    let (words, row_splits) = split(&lower(lines, false)?, b"", None)?;
    let positions = vocabulary.positions(&words)?.to_vec::<i64>()?;
    let row_splits = row_splits.to_vec::<i64>()?;
    let mut ids = vec![0i64; lines.len() * WORDS];
    for (row, ids) in row_splits.windows(2).zip(ids.chunks_mut(WORDS)) {
        // A word that is not in the vocabulary has position -1.
        let row = positions[row[0] as usize..row[1] as usize].iter();
        row.zip(ids).for_each(|(position, id)| *id = position + SPECIAL as i64);
    }
    Tensor::from_vec(ids, [lines.len(), WORDS])
}

fn main() -> Result<()> {
    let (count, batch) = if is_quick() { (400, 32) } else { (20_000, 256) };
    taut::random::set_seed(1);
    let (folder, random) = (TemporaryFolder::new()?, Generator::from_seed(2));
    let (good, bad) = (folder.join("good.txt"), folder.join("bad.txt"));
    write_reviews(&good, GOOD, count, &random)?;
    write_reviews(&bad, BAD, count, &random)?;

    let mut words = BTreeSet::new();
    for lines in text_lines(&FileSet::new([&good, &bad])).batch(batch)?.iter()? {
        words.extend(split(&lower(&lines?, false)?, b"", None)?.0.to_vec()?);
    }
    let rows = words.len() + SPECIAL;
    println!("a vocabulary of {} words", words.len());
    let vocabulary = StringTable::new(StringTensor::from_values(&words, [words.len()])?)?;

    let labelled = |path, label: f32| {
        text_lines(&FileSet::new([path])).map(move |line| Ok((line, Tensor::new([label])?)))
    };
    let batches = labelled(&good, 1.0)
        .concatenate(&labelled(&bad, 0.0))
        .shuffle(Shuffle::new(Bytes(BUFFER)).seed(1))?
        .batch_exact(batch)?
        .map(move |(lines, labels)| Ok((vectorize(&lines, &vocabulary)?, labels)))
        .prefetch(Bytes(BUFFER))?;

    let table = Embedding::new(rows, UNITS).build()?;
    let last = Dense::new(UNITS, 1).build()?;
    let variables = [table.trainable_variables(), last.trainable_variables()].concat();
    let optimizer = Optimizer::new(Adam { rate: 0.02.into(), ..Adam::default() }, &variables)?;
    let step = function(move |(ids, labels): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let seen = taut::mean(table.call(ids, Mode::Train)?, 1, false)?;
        let logits = last.call(&seen, Mode::Train)?;
        let loss = BinaryCrossentropy::from_logits().mean(labels, &logits, None)?;
        // The gradient of the table has the rows in use, not the whole table.
        optimizer.apply(&tape.gradient(&loss, &variables)?)?;
        let right = taut::equal(taut::greater(logits, 0.0)?, taut::greater(labels, 0.5)?)?;
        Ok((loss, taut::mean(taut::cast(right, DType::F32)?, None, false)?))
    });

    let (ids, labels) = (taut::zeros([batch, WORDS], DType::I64)?, taut::zeros([batch, 1], DType::F32)?);
    let planned = step.plan((&ids, &labels))?.peak_bytes();
    drop((ids, labels));
    let before = memory::live_bytes();
    memory::reset_peak();
    let mut accuracy = 0.0;
    for epoch in 0..3 {
        let mut loss = 0.0;
        for element in batches.iter_from(&taut::data::Position::start_of(epoch))? {
            let (ids, labels) = element?;
            let (this, right) = step.call((&ids, &labels))?;
            (loss, accuracy) = (this.item::<f32>()?, right.item::<f32>()?);
        }
        println!("loss {loss:.3}, accuracy {accuracy:.2}");
    }
    let measured = memory::peak_bytes() - before;
    // The step, the two buffers, and a few batches of lines and of ids.
    let bound = planned + 2 * BUFFER + 4 * batch * (WORDS * 8 + 100);
    println!("{measured} bytes at most, bound {bound}, of which the step has {planned}");
    assert!(measured <= bound);
    assert!(accuracy > 0.9);
    Ok(())
}
