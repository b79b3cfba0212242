//! Whole files of every format, written by the crates that write them.

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use flate2::write::{GzEncoder, ZlibEncoder};
use image::{DynamicImage, ImageFormat, RgbImage};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel};
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::sync::Arc;
use taut_core::Tensor;
use taut_core::io::{write_npz, write_npz_compressed, write_safetensors};
use taut_data::{AnyTensor, ExampleBuilder, serialize_tensor};
use taut_strings::StringTensor;

fn picture(height: u32, width: u32) -> DynamicImage {
    let pixel = |x: u32, y: u32| image::Rgb([(x * 7) as u8, (y * 11) as u8, (x * y) as u8]);
    RgbImage::from_fn(width, height, pixel).into()
}

/// Pictures of several kinds of pixels, as far as the format has them.
fn pictures(format: ImageFormat) -> Vec<Vec<u8>> {
    let color = picture(24, 31);
    let kinds = [
        color.clone(),
        color.to_luma8().into(),
        color.to_rgba8().into(),
        color.to_rgb16().into(),
        picture(1, 1),
    ];
    let written = kinds.into_iter().filter_map(|kind| {
        let mut out = Cursor::new(Vec::new());
        kind.write_to(&mut out, format).is_ok().then(|| out.into_inner())
    });
    let written: Vec<_> = written.collect();
    assert!(!written.is_empty(), "{format:?} must be written");
    written
}

pub fn jpeg() -> Vec<Vec<u8>> {
    pictures(ImageFormat::Jpeg)
}

pub fn png() -> Vec<Vec<u8>> {
    pictures(ImageFormat::Png)
}

pub fn bmp() -> Vec<Vec<u8>> {
    pictures(ImageFormat::Bmp)
}

pub fn webp() -> Vec<Vec<u8>> {
    pictures(ImageFormat::WebP)
}

pub fn gif() -> Vec<Vec<u8>> {
    let mut animated = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut animated);
    for size in [16, 9] {
        encoder.encode_frame(image::Frame::new(picture(size, 16).to_rgba8())).expect("a frame is encoded");
    }
    drop(encoder);
    let mut all = pictures(ImageFormat::Gif);
    all.push(animated);
    all
}

pub fn csv() -> Vec<Vec<u8>> {
    let plain = "name,age,score\n".to_owned() + &"ann,31,0.5\nbob,7,\n\"c, \"\"d\"\"\",12,-1e3\n".repeat(4);
    let quoted = "name,age,score\n".to_owned() + &"\"a\nb\",1,2.5\r\n".repeat(8);
    vec![plain.into_bytes(), quoted.into_bytes()]
}

pub fn records() -> Vec<Vec<u8>> {
    let mut file = Vec::new();
    for payload in [&b"first"[..], b"", &[7; 300]] {
        file.extend((payload.len() as u64).to_le_bytes());
        file.extend([0; 4]);
        file.extend(payload);
        file.extend([0; 4]);
    }
    super::mutate::repair_records(&mut file);
    vec![file]
}

pub fn examples() -> Vec<Vec<u8>> {
    let whole = ExampleBuilder::new()
        .bytes("text", ["abc", "", "de"])
        .floats("x", &[1.0, -2.5, f32::NAN])
        .ints("n", &[3, -1, i64::MAX]);
    let short = ExampleBuilder::new().ints("n", &[5, 6, 7]).floats("x", &[0.0; 3]);
    vec![whole.serialize(), short.serialize()]
}

fn tensors() -> Vec<(&'static str, Tensor)> {
    let made = || -> taut_core::Result<_> {
        Ok(vec![
            ("floats", Tensor::from_vec((0..60).map(|i| i as f32).collect::<Vec<f32>>(), [3, 4, 5])?),
            ("ints", Tensor::from_vec(vec![1i64, 2, 3], [3])?),
            ("flag", Tensor::scalar(true)?),
            ("none", Tensor::from_vec(Vec::<f64>::new(), [0, 3])?),
        ])
    };
    made().expect("small tensors are made")
}

pub fn npy() -> Vec<Vec<u8>> {
    let write = |(_, tensor): (&str, Tensor)| {
        let mut out = Vec::new();
        tensor.write_npy(&mut out).expect("a tensor is written");
        out
    };
    tensors().into_iter().map(write).collect()
}

pub fn npz() -> Vec<Vec<u8>> {
    let (mut plain, mut packed) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
    write_npz(&mut plain, tensors()).expect("an archive is written");
    write_npz_compressed(&mut packed, tensors()).expect("an archive is written");
    vec![plain.into_inner(), packed.into_inner()]
}

pub fn safetensors() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    write_safetensors(&mut out, tensors(), &BTreeMap::new()).expect("tensors are written");
    vec![out]
}

pub fn serialized_tensors() -> Vec<Vec<u8>> {
    let mut all: Vec<AnyTensor> =
        tensors().into_iter().map(|(_, tensor)| AnyTensor::Numbers(tensor)).collect();
    let words = StringTensor::from_values(["a", "", "word"], [3]).expect("strings are made");
    all.push(AnyTensor::Strings(words));
    let mut made: Vec<Vec<u8>> =
        all.iter().map(|tensor| serialize_tensor(tensor).expect("a tensor is serialized")).collect();
    // int32[2, 3] in a list of which equal values at the end are left out.
    made.push(vec![8, 3, 18, 8, 18, 2, 8, 2, 18, 2, 8, 3, 58, 2, 5, 7]);
    made
}

fn rows(first: i64, count: i64) -> RecordBatch {
    let rows = || first..first + count;
    let mut lists = FixedSizeListBuilder::new(Float32Builder::new(), 3);
    for row in rows() {
        (0..3).for_each(|i| lists.values().append_value((row + i) as f32));
        lists.append(true);
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("number", Arc::new(rows().collect::<Int64Array>())),
        ("half", Arc::new(rows().map(|row| Some(row as f64 / 2.0)).collect::<Float64Array>())),
        ("even", Arc::new(rows().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
        ("three", Arc::new(lists.finish())),
        ("name", Arc::new(rows().map(|row| Some(format!("row {row}"))).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).expect("columns have equal lengths")
}

pub fn parquet() -> Vec<Vec<u8>> {
    let write = |compression: Compression| {
        let (mut out, rows) = (Vec::new(), rows(0, 20));
        let settings = WriterProperties::builder().set_compression(compression).build();
        let mut writer =
            ArrowWriter::try_new(&mut out, rows.schema(), Some(settings)).expect("a writer is made");
        writer.write(&rows).expect("rows are written");
        writer.close().expect("a file is closed");
        out
    };
    vec![
        write(Compression::UNCOMPRESSED),
        write(Compression::SNAPPY),
        write(Compression::GZIP(GzipLevel::default())),
    ]
}

pub fn arrow() -> Vec<Vec<u8>> {
    let (mut out, parts) = (Vec::new(), [rows(0, 4), rows(4, 3)]);
    let mut writer = FileWriter::try_new(&mut out, &parts[0].schema()).expect("a writer is made");
    parts.iter().for_each(|part| writer.write(part).expect("rows are written"));
    writer.finish().expect("a file is closed");
    drop(writer);
    vec![out]
}

fn lines() -> String {
    (0..200).flat_map(|i| ["line ".to_owned(), i.to_string(), "\n".to_owned()]).collect()
}

pub fn gzip() -> Vec<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(lines().as_bytes()).expect("memory is written");
    vec![out.finish().expect("memory is written")]
}

pub fn zlib() -> Vec<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(lines().as_bytes()).expect("memory is written");
    vec![out.finish().expect("memory is written")]
}

pub fn idx() -> Vec<Vec<u8>> {
    let mut file = vec![0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    file.extend(0..12);
    vec![file]
}
