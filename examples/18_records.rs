//! TFRecords: examples are written, read and parsed in batches; a damaged file is an error that says where.

use taut::data::{
    AnyTensor, Compression, Dataset, ExampleBuilder, FeatureSpec, FeatureValues, FileSet, ParsedFeature,
    TfRecordWriter, parse_examples, parse_tensor, serialize_tensor, tf_records,
};
use taut::{Error, Result, Shape, Tensor, memory, s};
use taut_examples::{TemporaryFolder, is_quick};

const BATCH: usize = 50;

/// The images and labels of a batch of serialized examples.
fn parse(serialized: &taut::strings::StringTensor) -> Result<(Tensor, Tensor)> {
    let feature = |key: &str, values: FeatureValues| FeatureSpec {
        key: key.to_owned(),
        values,
        shape: Some(Shape::scalar()),
        default: None,
    };
    let features = [feature("image", FeatureValues::Bytes), feature("label", FeatureValues::Ints)];
    let parsed = parse_examples(serialized, &features)?;
    let [ParsedFeature::Fixed(images), ParsedFeature::Fixed(labels)] = &parsed[..] else {
        return Err(Error::value("features of a fixed length must be parsed as tensors"));
    };
    let image = |bytes: &[u8]| Ok(parse_tensor(bytes)?.numbers()?.clone());
    let images: Result<Vec<Tensor>> = images.strings()?.values()?.iter().map(image).collect();
    Ok((taut::stack(&images?, 0)?, labels.numbers()?.clone()))
}

fn main() -> Result<()> {
    let count = if is_quick() { 200 } else { 1400 };
    let (images, labels) = taut::data::digits()?.train;
    let folder = TemporaryFolder::new()?;
    let path = folder.join("digits.tfrecord");

    let mut writer = TfRecordWriter::create(&path, Compression::None)?;
    for element in Dataset::from_tensor_slices((images.clone(), labels.clone()))?.take(count as u64).iter()? {
        let (image, label) = element?;
        let image = serialize_tensor(&AnyTensor::Numbers(image))?;
        let example = ExampleBuilder::new().bytes("image", [image]).ints("label", &[label.item::<i64>()?]);
        writer.write(&example.serialize())?;
    }
    writer.finish()?;
    let bytes = std::fs::metadata(&path)?.len() as usize;
    println!("{count} examples, {bytes} bytes");

    let batches = tf_records(&FileSet::new([&path])).batch(BATCH)?.map(|serialized| parse(&serialized));
    let before = memory::live_bytes();
    memory::reset_peak();
    let mut seen = 0;
    for batch in batches.iter()? {
        let (pixels, numbers) = batch?;
        let rows = s![seen as isize..(seen + BATCH) as isize];
        assert_eq!(pixels.to_vec::<f32>()?, taut::slice(&images, &rows)?.to_vec::<f32>()?);
        assert_eq!(numbers.to_vec::<i64>()?, taut::slice(&labels, &rows)?.to_vec::<i64>()?);
        seen += BATCH;
    }
    assert_eq!(seen, count);
    let measured = memory::peak_bytes() - before;
    // A batch of records, their parts, and the pixels; not the file.
    let bound = 12 * BATCH * (bytes / count) + (1 << 16);
    println!("{measured} bytes at most, bound {bound}");
    assert!(measured <= bound);

    let mut damaged = std::fs::read(&path)?;
    damaged[bytes / 2] ^= 1;
    std::fs::write(&path, damaged)?;
    let error = batches.iter()?.find_map(Result::err).expect("a changed byte must be found");
    println!("{error}");
    assert!(error.to_string().contains("must match its checksum"));
    Ok(())
}
