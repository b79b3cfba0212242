//! The formats: their files, their readers, and how much a reader may allocate.

use super::{mutate, originals};
use std::fs;
use std::io::Cursor;
use std::path::Path;
use taut_core::io::{read_npz, read_safetensors};
use taut_core::{Result, Shape, Tensor};
use taut_data::{
    Compression, Csv, CsvColumn, CsvFormat, Dataset, DatasetElement, FeatureSpec, FeatureValues, FileSet,
    csv_rows, decode_gif, decode_image, load_arrow, load_parquet, parse_examples, parse_tensor, read_idx,
    text_lines, tf_records,
};
use taut_strings::StringTensor;
use taut_testing::HeapCounter;

/// A format of files.
pub struct Format {
    pub name: &'static str,
    pub originals: fn() -> Vec<Vec<u8>>,
    /// Reads a file, by its bytes or from this path. Whether it could be read.
    pub read: fn(&[u8], &Path) -> bool,
    /// Corrects checksums.
    pub repair: fn(&mut [u8]),
    /// A reader may allocate this many bytes per byte of the file, and `floor` bytes.
    pub factor: usize,
    pub floor: usize,
}

/// What reading an input took.
pub struct Reading {
    /// Whether it could be read.
    pub whole: bool,
    /// The most bytes that were live, on the heap and on the ledger.
    pub bytes: usize,
    /// The bytes beyond the floor, as a factor of the input's size.
    pub factor: f64,
    /// The bytes that stay on the ledger.
    pub left: usize,
}

impl Reading {
    /// Reads an input and counts. The heap is counted if [`HeapCounter`] is the global allocator.
    pub fn of(format: &Format, input: &[u8], path: &Path) -> Reading {
        taut_memory::reset_peak();
        let (ledger, heap) = (taut_memory::live_bytes(), HeapCounter::start());
        let whole = (format.read)(input, path);
        let bytes = HeapCounter::peak() - heap + taut_memory::peak_bytes() - ledger;
        let factor = bytes.saturating_sub(format.floor) as f64 / input.len().max(1) as f64;
        Reading { whole, bytes, factor, left: taut_memory::live_bytes() - ledger }
    }

    /// What is wrong with it.
    pub fn complaint(&self, format: &Format, input: &[u8]) -> Option<String> {
        if self.left > 0 {
            return Some(format!("{} bytes are left on the ledger", self.left));
        }
        (self.factor > format.factor as f64)
            .then(|| format!("{} bytes were allocated for a file of {} bytes", self.bytes, input.len()))
    }
}

/// Buffers of readers and small files.
const FLOOR: usize = 1 << 20;

const fn format(
    name: &'static str,
    originals: fn() -> Vec<Vec<u8>>,
    read: fn(&[u8], &Path) -> bool,
    factor: usize,
) -> Format {
    Format { name, originals, read, repair: |_| {}, factor, floor: FLOOR }
}

/// A byte that is compressed with deflate becomes at most 1032 bytes; a string grows by doubling.
const DEFLATED: usize = 4 * 1032;

/// An image may have 4096 bytes of pixels per byte, or a mebibyte: as stored, converted, and as a tensor. What the decoder
/// allocates counts twice: on the heap, and as the bytes that the ledger reserves for it.
const PIXELS: usize = 6 * 4096;

const fn picture(name: &'static str, originals: fn() -> Vec<Vec<u8>>) -> Format {
    Format { name, originals, read: read_image, repair: |_| {}, factor: PIXELS, floor: 6 << 20 }
}

pub const FORMATS: &[Format] = &[
    picture("jpeg", originals::jpeg),
    Format { repair: mutate::repair_png, ..picture("png", originals::png) },
    picture("bmp", originals::bmp),
    picture("gif", originals::gif),
    picture("webp", originals::webp),
    format("csv", originals::csv, read_csv, 64),
    Format { repair: mutate::repair_records, ..format("tfrecord", originals::records, read_records, 64) },
    format("example", originals::examples, read_example, 64),
    format("npy", originals::npy, read_npy, 64),
    format("npz", originals::npz, |bytes, _| read_npz(Cursor::new(bytes)).is_ok(), DEFLATED),
    format("safetensors", originals::safetensors, |bytes, _| read_safetensors(bytes).is_ok(), 64),
    format(
        "parquet",
        originals::parquet,
        |bytes, path| from_path(bytes, path, |path| load_parquet(path, None)),
        4096,
    ),
    format(
        "arrow",
        originals::arrow,
        |bytes, path| from_path(bytes, path, |path| load_arrow(path, None)),
        1024,
    ),
    format("tensor", originals::serialized_tensors, |bytes, _| parse_tensor(bytes).is_ok(), 2 * 4096),
    format("gzip", originals::gzip, |bytes, path| read_lines(bytes, path, Compression::Gzip), DEFLATED),
    format("zlib", originals::zlib, |bytes, path| read_lines(bytes, path, Compression::Zlib), DEFLATED),
    format("idx", originals::idx, |bytes, _| read_idx(bytes).is_ok(), 64),
];

fn read_image(bytes: &[u8], _: &Path) -> bool {
    let whole = decode_image(bytes, 0, false).is_ok();
    let _ = decode_image(bytes, 1, true);
    let _ = decode_gif(bytes);
    whole
}

fn from_path<R>(bytes: &[u8], path: &Path, read: impl FnOnce(&Path) -> Result<R>) -> bool {
    fs::write(path, bytes).expect("a file is written");
    read(path).is_ok()
}

/// Reads all elements; an element that is an error does not end a dataset.
fn all<T: DatasetElement>(dataset: &Dataset<T>) -> bool {
    let Ok(elements) = dataset.iter() else { return false };
    let mut whole = true;
    for element in elements {
        whole &= element.is_ok();
    }
    whole
}

/// Reads the elements one by one, and in batches.
fn both<T: DatasetElement>(dataset: Result<Dataset<T>>) -> bool {
    dataset.is_ok_and(|dataset| {
        let single = all(&dataset);
        let batched = dataset.batch(7).is_ok_and(|batches| all(&batches));
        assert_eq!(single, batched, "elements one by one and in batches must be read alike");
        single
    })
}

fn read_csv(bytes: &[u8], path: &Path) -> bool {
    fs::write(path, bytes).expect("a file is written");
    let columns =
        vec![CsvColumn::String(Some(Vec::new())), CsvColumn::I64(Some(0)), CsvColumn::F32(Some(0.0))];
    let format = CsvFormat {
        header: true,
        delimiter: b',',
        quote: true,
        missing: Vec::new(),
        select: None,
        most_fields: None,
    };
    let _ = Csv::new(path).columns(["age", "score"]).missing("score", 0.0).missing("age", 0).read();
    both(csv_rows(&FileSet::new([path]), columns, format))
}

fn read_records(bytes: &[u8], path: &Path) -> bool {
    fs::write(path, bytes).expect("a file is written");
    both(Ok(tf_records(&FileSet::new([path]))))
}

fn read_lines(bytes: &[u8], path: &Path, compression: Compression) -> bool {
    fs::write(path, bytes).expect("a file is written");
    both(Ok(text_lines(&FileSet::new([path]).compression(compression))))
}

fn read_example(bytes: &[u8], _: &Path) -> bool {
    let spec = |key: &str, values: FeatureValues, shape: Option<Shape>| FeatureSpec {
        key: key.to_owned(),
        values,
        shape,
        default: None,
    };
    let features = [
        spec("text", FeatureValues::Bytes, None),
        spec("x", FeatureValues::Floats, Some(Shape::from([3]))),
        spec("n", FeatureValues::Ints, None),
    ];
    let serialized = StringTensor::from_values([bytes], [1]).expect("a string is made");
    parse_examples(&serialized, &features).is_ok()
}

fn read_npy(bytes: &[u8], path: &Path) -> bool {
    fs::write(path, bytes).expect("a file is written");
    let _ = Tensor::map_npy(path);
    let _ = Tensor::load_npy(path);
    Tensor::read_npy(bytes).is_ok()
}
