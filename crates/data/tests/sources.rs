//! Sources: valid files compared with what was written, and invalid files.

mod common;

use common::{Folder, batches};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;
use taut_core::ops::reduce::{max, min, sum};
use taut_core::ops::shape::transpose;
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, ErrorKind, Result, Tensor};
use taut_data::{Cardinality, Csv, Dataset, ImageFolder, digits, fashion_mnist, load_idx, read_idx};
use taut_memory::testing::ledger_check;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An array in IDX format.
fn idx(code: u8, dims: &[u32], elements: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, dims.len() as u8];
    dims.iter().for_each(|dim| bytes.extend_from_slice(&dim.to_be_bytes()));
    bytes.extend_from_slice(elements);
    bytes
}

#[test]
fn idx_of_every_type() {
    let _ledger = ledger_check();
    let bytes = read_idx(&idx(8, &[2, 3], &[0, 1, 2, 3, 4, 255])).unwrap();
    assert_eq!((bytes.shape(), bytes.to_vec::<u8>().unwrap()), (&[2, 3].into(), vec![0, 1, 2, 3, 4, 255]));
    assert_eq!(read_idx(&idx(9, &[1], &[0xff])).unwrap().to_vec::<i8>().unwrap(), [-1]);
    assert_eq!(read_idx(&idx(0x0b, &[1], &[1, 2])).unwrap().to_vec::<i16>().unwrap(), [258]);
    assert_eq!(read_idx(&idx(0x0c, &[1], &[0xff, 0xff, 0xff, 0xfe])).unwrap().to_vec::<i32>().unwrap(), [-2]);
    let real = read_idx(&packed(&idx(0x0d, &[1], &1.5f32.to_be_bytes()))).unwrap();
    assert_eq!(real.to_vec::<f32>().unwrap(), [1.5]);
    assert_eq!(read_idx(&idx(0x0e, &[], &0.1f64.to_be_bytes())).unwrap().item::<f64>().unwrap(), 0.1);
    assert_eq!(read_idx(&idx(8, &[0, 7], &[])).unwrap().shape(), &[0, 7]);
}

#[test]
fn invalid_idx_files_are_errors() {
    let _ledger = ledger_check();
    let folder = Folder::new("idx");
    let good = idx(8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let path = folder.join("images.gz");
    let mut bad: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
    let whole = packed(&good);
    bad.extend((2..whole.len()).map(|len| whole[..len].to_vec()));
    bad.extend([
        packed(&good[..10]),
        [&good[..], &[9]].concat(),
        idx(7, &[1], &[1]),
        idx(8, &[u32::MAX; 3], &[]),
        idx(8, &[u32::MAX], &[]),
        packed(&idx(8, &[1 << 30], &[1, 2, 3])),
        b"PNG, or anything else".to_vec(),
    ]);
    for bytes in bad {
        std::fs::write(&path, &bytes).unwrap();
        let error = load_idx(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{bytes:?}");
        assert!(error.message().contains("images.gz"), "{error}");
        assert!(error.location().unwrap().file().ends_with("sources.rs"));
    }
    assert_eq!(load_idx(folder.join("none")).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn digits_are_the_digits() {
    let _ledger = ledger_check();
    let digits = digits().unwrap();
    assert_eq!(digits.train.0.shape(), &[1437, 8, 8, 1]);
    assert_eq!(digits.test.0.shape(), &[360, 8, 8, 1]);
    let labels = [digits.train.1.to_vec::<i64>().unwrap(), digits.test.1.to_vec::<i64>().unwrap()];
    assert_eq!((labels[0].len(), labels[1].len(), digits.classes), (1437, 360, 10));
    // Counted by NumPy in the original.
    let counts =
        |labels: &[i64]| (0..10).map(|d| labels.iter().filter(|&&l| l == d).count()).collect::<Vec<_>>();
    assert_eq!(counts(&labels.concat()), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    assert!(
        counts(&labels[1]).iter().all(|&count| count > 20),
        "every digit is tested: {:?}",
        counts(&labels[1])
    );
    let images = [digits.train.0.to_vec::<f32>().unwrap(), digits.test.0.to_vec::<f32>().unwrap()].concat();
    assert_eq!(images.iter().map(|&pixel| f64::from(pixel) * 16.0).sum::<f64>(), 561718.0);
    // The first image of the original is a zero, and is not the first after shuffling.
    let zero = [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0].map(|pixel| pixel as f32 / 16.0);
    let at = images.chunks(64).position(|image| image[..16] == zero).unwrap();
    assert_eq!(labels.concat()[at], 0);
    assert_ne!(at, 0);
}

#[test]
fn fashion_mnist_is_read_or_says_how_to_install_it() {
    let _ledger = ledger_check();
    let folder = Folder::new("fashion");
    let error = fashion_mnist(Some(folder.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("sudo apt install dataset-fashion-mnist"), "{error}");
    for (name, count) in [("train", 3), ("t10k", 2)] {
        let images: Vec<u8> = (0..count * 4).map(|i| 51 * (i % 6) as u8).collect();
        let write = |kind: &str, bytes: Vec<u8>| {
            std::fs::write(folder.join(&format!("{name}-{kind}-ubyte.gz")), packed(&bytes)).unwrap();
        };
        write("images-idx3", idx(8, &[count, 2, 2], &images));
        write("labels-idx1", idx(8, &[count], &vec![7; count as usize]));
    }
    let set = fashion_mnist(Some(folder.path())).unwrap();
    assert_eq!((set.train.0.shape(), set.test.0.shape()), (&[3, 2, 2, 1].into(), &[2, 2, 2, 1].into()));
    assert_eq!(set.test.1.to_vec::<i64>().unwrap(), [7, 7]);
    let want: Vec<f32> = [0, 51, 102, 153, 204, 255, 0, 51].map(|pixel| pixel as f32 / 255.0).to_vec();
    assert_eq!(set.test.0.to_vec::<f32>().unwrap(), want);
    std::fs::write(folder.join("train-labels-idx1-ubyte.gz"), packed(&idx(8, &[4], &[0; 4]))).unwrap();
    assert_eq!(fashion_mnist(Some(folder.path())).unwrap_err().kind(), ErrorKind::Format);
}

#[test]
fn the_installed_fashion_mnist() {
    let _ledger = ledger_check();
    if !Path::new("/usr/share/datasets/fashion-mnist").exists() {
        println!("skipped: dataset-fashion-mnist is not installed");
        return;
    }
    let set = fashion_mnist(None).unwrap();
    assert_eq!(set.train.0.shape(), &[60000, 28, 28, 1]);
    assert_eq!(set.test.0.shape(), &[10000, 28, 28, 1]);
    let labels = cast(&set.train.1, DType::F64).unwrap();
    // Six thousand of each class.
    assert_eq!(sum(labels, None, false).unwrap().item::<f64>().unwrap(), 6000.0 * 45.0);
    assert_eq!(max(&set.train.0, None, false).unwrap().item::<f32>().unwrap(), 1.0);
    assert_eq!(min(&set.train.0, None, false).unwrap().item::<f32>().unwrap(), 0.0);
}

#[test]
fn mapped_arrays() {
    let _ledger = ledger_check();
    let folder = Folder::new("npy");
    let path = folder.join("x.npy");
    let x = Tensor::from_vec((0..12).collect::<Vec<i64>>(), [4, 3]).unwrap();
    x.save_npy(&path).unwrap();
    let bytes = taut_memory::thread_live_bytes();
    let rows = Dataset::from_npy(&path).unwrap();
    assert_eq!(batches(&rows), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]);
    assert_eq!(taut_memory::thread_live_bytes(), bytes, "nothing is allocated");
    drop(rows);
    // The file is never written to.
    let mapped = Tensor::map_npy(&path).unwrap();
    assert!(!mapped.is_uniquely_owned());
    let doubled = taut_core::ops::binary::mul(mapped, 2).unwrap();
    assert_eq!(doubled.to_vec::<i64>().unwrap()[11], 22);
    assert_eq!(batches(&Dataset::from_npy(&path).unwrap())[3], [9, 10, 11]);

    transpose(&x, None).unwrap().save_npy(&path).unwrap();
    let columns = Tensor::map_npy(&path).unwrap();
    assert_eq!(columns.to_vec::<i64>().unwrap(), [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
    Tensor::from_vec(Vec::<f32>::new(), [0, 5]).unwrap().save_npy(&path).unwrap();
    assert_eq!(Tensor::map_npy(&path).unwrap().shape(), &[0, 5]);

    x.save_npy(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert_eq!(Dataset::from_npy(&path).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(Dataset::from_npy(folder.join("none")).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn csv_columns_and_types() {
    let _ledger = ledger_check();
    let folder = Folder::new("csv");
    let path = folder.join("table.csv");
    std::fs::write(&path, "id, size,kind,good\n1,0.5,cat,true\n-2,3,dog,false\n3,1e2,cat,true\n").unwrap();
    let all = Csv::new(&path).classes("kind", ["dog", "cat"]);
    let table = all.read().unwrap();
    assert_eq!(table.keys().collect::<Vec<_>>(), ["good", "id", "kind", "size"]);
    assert_eq!(table["id"].to_vec::<i64>().unwrap(), [1, -2, 3]);
    assert_eq!(table["size"].to_vec::<f32>().unwrap(), [0.5, 3.0, 100.0]);
    assert_eq!(table["kind"].to_vec::<i64>().unwrap(), [1, 0, 1]);
    assert_eq!(table["good"].to_vec::<bool>().unwrap(), [true, false, true]);
    // The rows of the dataset are the same, from any position.
    let rows = all.dataset().unwrap();
    let second = rows.iter_from(&"0:1".parse().unwrap()).unwrap().next().unwrap().unwrap();
    assert_eq!(second["id"].item::<i64>().unwrap(), -2);
    assert_eq!(rows.repeat(2).batch(6).unwrap().iter().unwrap().next().unwrap().unwrap()["size"].len(), 6);

    let some = Csv::new(&path)
        .columns(["size", "id"])
        .dtype("id", DType::I8)
        .dtype("size", DType::F64)
        .read()
        .unwrap();
    assert_eq!(some.len(), 2);
    assert_eq!(some["id"].to_vec::<i8>().unwrap(), [1, -2, 3]);
    assert_eq!(some["size"].dtype(), DType::F64);

    std::fs::write(&path, packed(b"1;2\n3;4\n")).unwrap();
    let bare = Csv::new(&path).without_header().delimiter(b';').read().unwrap();
    assert_eq!(bare["1"].to_vec::<i64>().unwrap(), [2, 4]);
    std::fs::write(&path, "a,b\n").unwrap();
    assert_eq!(Csv::new(&path).read().unwrap()["b"].shape(), &[0]);
    assert_eq!(Csv::new(&path).dataset().unwrap().iter().unwrap().count(), 0);
}

#[test]
fn the_value_for_missing_fields_affects_the_inferred_type() {
    let _ledger = ledger_check();
    let folder = Folder::new("missing-csv");
    let path = folder.join("table.csv");
    std::fs::write(&path, "a,b\n1,2\n,\n").unwrap();
    let column =
        |value: f64| Csv::new(&path).missing("a", value).missing("b", 0).read().unwrap()["a"].clone();
    assert_eq!(column(7.0).to_vec::<i64>().unwrap(), [1, 7]);
    assert_eq!(column(2.5).to_vec::<f32>().unwrap(), [1.0, 2.5]);
    assert!(column(f64::NAN).to_vec::<f32>().unwrap()[1].is_nan());
}

#[test]
fn csv_errors_name_line_and_column() {
    let _ledger = ledger_check();
    let folder = Folder::new("bad-csv");
    let path = folder.join("table.csv");
    let refused = |text: &str, csv: fn(Csv) -> Csv| {
        std::fs::write(&path, text).unwrap();
        let error = csv(Csv::new(&path)).read().unwrap_err();
        assert!(error.message().contains("table.csv"), "{error}");
        assert!(error.location().unwrap().file().ends_with("sources.rs"));
        error.to_string()
    };
    let has =
        |text: String, parts: &[&str]| parts.iter().for_each(|part| assert!(text.contains(part), "{text}"));
    has(refused("a,b\n1,2\n3,\n", |csv| csv), &["line 3", "`b`", "missing()"]);
    has(
        refused("a,b\n1,2\n3,x\n", |csv| csv.dtype("b", DType::I32)),
        &["line 3", "`b`", "expected int32, got `x`"],
    );
    has(refused("a,b\n1,300\n", |csv| csv.dtype("b", DType::U8)), &["line 2", "expected uint8, got `300`"]);
    has(refused("a,b\n1,x\n", |csv| csv), &["column `b` is text", "classes()"]);
    has(refused("a,b\n1,x\n", |csv| csv.classes("b", ["y"])), &["line 2", "`x` is not one of the classes"]);
    has(refused("a,b\n1,2\n3\n", |csv| csv), &["line 3: expected 2 fields, got 1"]);
    has(refused("a,b\n1,2\n", |csv| csv.columns(["c"])), &["unknown column `c`", "the columns are a, b"]);
    has(refused("a,b\n1,2\n", |csv| csv.missing("c", 0)), &["unknown column `c`"]);
    has(refused("a,b\n1,2\n", |csv| csv.missing("a", 300).dtype("a", DType::U8)), &["300"]);
    for value in [2.5, f64::NAN, -1.0] {
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let error = Csv::new(&path).missing("a", value).dtype("a", DType::U8).read().unwrap_err();
        has(error.to_string(), &["missing fields of `a` must be representable in uint8"]);
    }
    has(
        refused("a,b\ntrue,2\n", |csv| csv.missing("a", f64::NAN)),
        &["missing fields of `a` must be representable in bool"],
    );
    has(refused("a,b,a\n1,2,3\n", |csv| csv), &["several columns are named `a`"]);
    // Other columns can be read.
    assert_eq!(Csv::new(&path).columns(["b"]).read().unwrap()["b"].to_vec::<i64>().unwrap(), [2]);
    assert_eq!(Csv::new(folder.join("none")).dataset().unwrap_err().kind(), ErrorKind::Io);
    // In a dataset, an error replaces its row only.
    std::fs::write(&path, "a,b\n1,2\n3,x\n4\n5,6\n").unwrap();
    let rows = Csv::new(&path).dtype("b", DType::I64).dataset().unwrap();
    let valid: Vec<bool> = rows.iter().unwrap().map(|row| row.is_ok()).collect();
    assert_eq!(valid, [true, false, false, true]);
    assert_eq!(rows.skip(3).iter().unwrap().next().unwrap().unwrap()["a"].item::<i64>().unwrap(), 5);
}

/// Writes an image of one colour.
fn paint(path: &Path, width: u32, height: u32, colour: [u8; 3]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    image::RgbImage::from_pixel(width, height, image::Rgb(colour)).save(path).unwrap();
}

#[test]
fn folders_of_images() {
    let _ledger = ledger_check();
    let folder = Folder::new("images");
    paint(&folder.join("dog/b.png"), 4, 2, [1, 2, 3]);
    paint(&folder.join("dog/a.bmp"), 3, 3, [9, 9, 9]);
    paint(&folder.join("cat/z.PNG"), 2, 2, [200, 100, 0]);
    std::fs::write(folder.join("cat/notes.txt"), "not an image").unwrap();
    let images = ImageFolder::open(folder.path()).unwrap();
    assert_eq!((images.classes(), images.len()), (&["cat".to_owned(), "dog".to_owned()][..], 3));
    let all: Vec<(Tensor, Tensor)> =
        images.dataset().unwrap().iter().unwrap().collect::<Result<_>>().unwrap();
    let labels: Vec<i64> = all.iter().map(|(_, label)| label.item::<i64>().unwrap()).collect();
    assert_eq!(labels, [0, 1, 1]);
    assert_eq!(all[2].0.shape(), &[2, 4, 3]);
    assert_eq!(all[2].0.to_vec::<u8>().unwrap(), [1, 2, 3].repeat(8));
    // One size makes batches of them.
    let batch = images
        .clone()
        .size(5, 6)
        .dataset()
        .unwrap()
        .batch(3)
        .unwrap()
        .iter()
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(batch.0.shape(), &[3, 5, 6, 3]);
    assert_eq!(batch.0.to_vec::<u8>().unwrap()[..90], [200, 100, 0].repeat(30));
    let grey = images.clone().channels(1).dataset().unwrap().iter().unwrap().nth(1).unwrap().unwrap();
    assert_eq!(grey.0.to_vec::<u8>().unwrap(), [9; 9]);
    assert!(images.clone().channels(2).dataset().is_err());
    for (height, width) in [(0, 5), (5, u32::MAX), (u32::MAX, u32::MAX), (16385, 1)] {
        let error = images.clone().size(height, width).dataset().unwrap_err();
        assert!(error.message().contains(&format!("got {height} and {width}")), "{error}");
    }
}

#[test]
fn broken_images() {
    let _ledger = ledger_check();
    let folder = Folder::new("broken-images");
    paint(&folder.join("a/1.png"), 2, 2, [1, 1, 1]);
    paint(&folder.join("a/3.png"), 2, 2, [3, 3, 3]);
    std::fs::write(folder.join("a/2.png"), b"\x89PNG, but only for a moment").unwrap();
    let images = ImageFolder::open(folder.path()).unwrap();
    let strict = images.dataset().unwrap();
    assert_eq!(strict.cardinality(), Cardinality::Known(3));
    let places: Vec<Result<_>> = strict.iter().unwrap().collect();
    assert_eq!(places.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let error: &Error = places[1].as_ref().unwrap_err();
    assert!(error.kind() == ErrorKind::Format && error.message().contains("2.png"), "{error}");
    let lenient = images.skip_broken().dataset().unwrap();
    let found: Vec<u8> = lenient.iter().unwrap().map(|x| x.unwrap().0.to_vec::<u8>().unwrap()[0]).collect();
    assert_eq!(found, [1, 3]);
    assert_eq!(ImageFolder::open(folder.join("none")).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(ImageFolder::open(folder.join("a")).unwrap_err().kind(), ErrorKind::Format);
}
