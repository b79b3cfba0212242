//! Files: those of NumPy and of the safetensors package are read, written files have the same bytes as theirs, and invalid
//! files are errors that allocate no more than their own size.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use taut_core::ops::sample;
use taut_core::ops::shape::{slice, transpose};
use taut_core::{DType, ErrorKind, Index, NewAxis, Result, Shape, Tensor, bf16, f16, io, s};
use taut_kernels::dispatch;
use taut_memory::testing::{fail_nth, ledger_check};
use taut_testing::{exclusive, measured};

/// A temporary directory, removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("taut-io-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A `.npy` file as NumPy writes it: the elements begin at byte 128.
fn npy(version: u8, dictionary: &str, elements: &[u8]) -> Vec<u8> {
    let prefix = if version == 1 { 10 } else { 12 };
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([version, 0]);
    out.extend(&(128u32 - prefix).to_le_bytes()[..prefix as usize - 8]);
    out.extend(dictionary.as_bytes());
    out.resize(127, b' ');
    out.push(b'\n');
    out.extend(elements);
    out
}

fn dictionary(descr: &str, fortran_order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}")
}

fn npy_bytes(tensor: &Tensor) -> Vec<u8> {
    let mut out = Vec::new();
    tensor.write_npy(&mut out).unwrap();
    out
}

fn npz_bytes(tensors: &[(&str, Tensor)], compressed: bool) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let tensors = tensors.iter().map(|(name, tensor)| (name, tensor));
    if compressed { io::write_npz_compressed(&mut out, tensors) } else { io::write_npz(&mut out, tensors) }
        .unwrap();
    out.into_inner()
}

fn safetensors_bytes(tensors: &[(&str, Tensor)]) -> Vec<u8> {
    let mut out = Vec::new();
    io::write_safetensors(&mut out, tensors.iter().map(|(n, t)| (n, t)), &BTreeMap::new()).unwrap();
    out
}

/// A safetensors file with this header.
fn safetensors(header: &str, elements: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), elements].concat()
}

/// Type, shape and the elements' bytes in row-major order.
fn content(tensor: &Tensor) -> (DType, Shape, Vec<u8>) {
    let copy = tensor.copy().unwrap();
    let view = copy.view().unwrap();
    let bytes =
        dispatch!(view.dtype(), T in sizes => bytemuck::cast_slice(view.contiguous::<T>().unwrap()).to_vec());
    (tensor.dtype(), tensor.shape().clone(), bytes)
}

fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (ErrorKind, String) {
    let error = result.unwrap_err();
    (error.kind(), error.message().to_owned())
}

/// A tensor of every type in several shapes.
fn samples() -> Vec<Tensor> {
    let shapes: [&[usize]; 5] = [&[], &[0, 3], &[1], &[7], &[2, 3, 4]];
    DType::ALL.iter().flat_map(|&d| shapes.map(|shape| sample::tensor(d, shape, -100.0, 100.0))).collect()
}

/// Views of one tensor: transposed, cut, reversed, empty, with a new axis.
fn strided() -> Vec<Tensor> {
    let x = Tensor::from_vec((0..24i32).collect(), [2, 3, 4]).unwrap();
    let row = Tensor::new([[1.5f32, 2.5]]).unwrap();
    vec![
        transpose(&x, None).unwrap(),
        transpose(&x, &[1, 0, 2][..]).unwrap(),
        slice(&x, &s![1, 1.., Index::from(..).by(2)]).unwrap(),
        slice(&x, &s![.., Index::from(..).by(-1), Index::from(..).by(-3)]).unwrap(),
        transpose(slice(&x, &s![1]).unwrap(), None).unwrap(),
        slice(&row, &s![0, NewAxis]).unwrap(),
        slice(&x, &s![.., 3..]).unwrap(),
    ]
}

#[test]
fn npy_files_are_numpys_to_the_byte() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let le = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let cases = [
        (
            Tensor::new([[1.0f32, -2.0, 0.5], [0.0, 3.0, 4.0]]),
            npy(1, &dictionary("<f4", "False", "(2, 3)"), &le(&[1.0, -2.0, 0.5, 0.0, 3.0, 4.0])),
        ),
        (Tensor::new(2.5), npy(1, &dictionary("<f8", "False", "()"), &2.5f64.to_le_bytes())),
        (Tensor::new([true, false]), npy(1, &dictionary("|b1", "False", "(2,)"), &[1, 0])),
        (
            Tensor::from_vec(Vec::<u8>::new(), [0, 1_000_000]),
            npy(1, &dictionary("|u1", "False", "(0, 1000000)"), &[]),
        ),
        (
            Tensor::new([1.0, -2.0].map(bf16::from_f64)),
            npy(1, &dictionary("<V2", "False", "(2,)"), &[0x80, 0x3f, 0x00, 0xc0]),
        ),
        (
            transpose(Tensor::new([[1i16, 4], [2, 5], [3, 6]]).unwrap(), None),
            npy(1, &dictionary("<i2", "True", "(2, 3)"), &[1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0]),
        ),
    ];
    for (tensor, want) in cases {
        let tensor = tensor.unwrap();
        assert_eq!(npy_bytes(&tensor), want, "{tensor:?}");
        assert_eq!(content(&Tensor::read_npy(&want[..]).unwrap()), content(&tensor));
    }
}

#[test]
fn every_version_and_order_is_read() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let read = |bytes: &[u8]| Tensor::read_npy(bytes).unwrap();
    let big = npy(1, &dictionary(">i4", "False", "(2,)"), &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(read(&big).to_vec::<i32>().unwrap(), [1, -2]);
    let two = npy(2, &dictionary("<u8", "False", "(1,)"), &[9, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(read(&two).to_vec::<u64>().unwrap(), [(1 << 56) + 9]);
    let three = npy(3, &dictionary("<f2", "False", "(2,)"), &[0x00, 0x3e, 0x00, 0x40]);
    assert_eq!(read(&three).to_vec::<f16>().unwrap(), [1.5, 2.0].map(f16::from_f64));
    let loose = r#" {"shape" : ( 2L ,1), "fortran_order":True,'descr':"|i1"} "#;
    assert_eq!(read(&npy(1, loose, &[5, 0xfa])).to_vec::<i8>().unwrap(), [5, -6]);

    let fortran = npy(1, &dictionary("<i2", "True", "(2, 3)"), &[1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6, 0]);
    let (tensor, peak) = measured(|| read(&fortran));
    assert_eq!((tensor.to_vec::<i16>().unwrap(), tensor.strides()), (vec![1, 2, 3, 4, 5, 6], &[1, 2][..]));
    assert_eq!(peak, 12);
}

#[test]
fn npy_round_trips() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let directory = Directory::new("npy");
    let path = directory.0.join("x.npy");
    for tensor in samples().iter().chain(&strided()) {
        tensor.save_npy(&path).unwrap();
        let (read, peak) = measured(|| Tensor::load_npy(&path).unwrap());
        assert_eq!(content(&read), content(tensor));
        assert_eq!(peak, tensor.spec().bytes(), "{}", tensor.spec());
    }
}

#[test]
fn unsupported_npy_files_are_errors() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let with = |dictionary: &str| refusal(Tensor::read_npy(&npy(1, dictionary, &[0; 16])[..]));
    let structure = "{'descr': [('a', '<i4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }";
    assert_eq!(with(structure), (ErrorKind::DType, "elements must be numbers, got structures".into()));
    let object = (ErrorKind::DType, "elements must be numbers, got Python objects".into());
    assert_eq!(with(&dictionary("|O", "False", "(2,)")), object);
    for descr in ["<c32", "<U5", "|S3", "<M8[s]", "<f16", "|V3", "", "f4", "éé"] {
        assert_eq!(with(&dictionary(descr, "False", "(1,)")).0, ErrorKind::DType, "{descr}");
    }
    for shape in
        ["(-1,)", "(1.5,)", "3", "(99999999999999999999,)", "(4294967296, 4294967296)", "(1", "(1 2)"]
    {
        assert_eq!(with(&dictionary("|u1", "False", shape)).0, ErrorKind::Format, "{shape}");
    }
    for broken in [
        "",
        "{}",
        "{'descr': '|u1'}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '|u1' 'fortran_order': False, 'shape': (1,)}",
        "['descr']",
    ] {
        assert_eq!(with(broken).0, ErrorKind::Format, "{broken}");
    }
    let long = refusal(Tensor::read_npy(&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..]));
    assert_eq!(long, (ErrorKind::Format, "the header must have at most 65535 bytes, got 4294967295".into()));
    assert_eq!(refusal(Tensor::read_npy(&b"\x93NUMPY\x04\x00\x00\x00"[..])).0, ErrorKind::Format);
    assert_eq!(refusal(Tensor::read_npy(&b"PK\x03\x04"[..])).0, ErrorKind::Format);

    let ranks = "1,".repeat(65);
    let header = format!("{{'descr':'|u1','fortran_order':False,'shape':({ranks})}}");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    assert_eq!(refusal(Tensor::read_npy(&file[..])).1, "rank 65 exceeds the maximum of 64");
    assert_eq!(Tensor::from_vec(vec![1u8], vec![1usize; 65]).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn a_header_beyond_the_file_allocates_nothing() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let directory = Directory::new("claims");
    let claim = npy(1, &dictionary("<f8", "False", "(1000000000, 100)"), &[1; 40]);
    let path = directory.file("claim.npy", &claim);
    let (result, peak) = measured(|| refusal(Tensor::load_npy(&path)));
    let message = format!(
        "{}: float64[1000000000, 100] needs 800000000000 bytes after the header, got 40",
        path.display()
    );
    assert_eq!((result, peak), ((ErrorKind::Format, message), 0));
    // For a stream of unknown length, 64 KiB are allocated on the header's claim.
    let (result, peak) = measured(|| refusal(Tensor::read_npy(&claim[..])));
    assert_eq!((result.0, peak), (ErrorKind::Format, 1 << 16));

    let long = npy(1, &dictionary("<i2", "False", "(1,)"), &[1; 3]);
    assert_eq!(refusal(Tensor::load_npy(directory.file("long.npy", &long))).0, ErrorKind::Format);
    assert!(Tensor::read_npy(&long[..]).is_ok());
    assert_eq!(refusal(Tensor::load_npy(directory.0.join("none.npy"))).0, ErrorKind::Io);
    assert!(refusal(Tensor::load_npy(&directory.0)).1.contains("taut-io"));
}

#[test]
fn write_and_allocation_failures_are_errors() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let tensor = Tensor::new([1.0f32; 8]).unwrap();
    for (npy_room, safetensors_room) in [(0, 0), (140, 90)] {
        assert_eq!(refusal(tensor.write_npy(Full(npy_room))).0, ErrorKind::Io);
        let written = io::write_safetensors(Full(safetensors_room), [("x", &tensor)], &BTreeMap::new());
        assert_eq!(refusal(written).0, ErrorKind::Io);
    }
    let nowhere = std::env::temp_dir().join("taut-io-nowhere").join("x");
    for result in [
        tensor.save_npy(&nowhere),
        io::save_npz(&nowhere, [("x", &tensor)]),
        io::save_safetensors(&nowhere, [("x", &tensor)], &BTreeMap::new()),
    ] {
        let (kind, message) = refusal(result);
        assert!(kind == ErrorKind::Io && message.starts_with(&nowhere.display().to_string()), "{message}");
    }
    let bytes = npy_bytes(&tensor);
    let fault = fail_nth(0);
    let error = Tensor::read_npy(&bytes[..]).unwrap_err();
    assert!(fault.fired() && error.kind() == ErrorKind::OutOfMemory && error.out_of_memory().is_some());
}

#[test]
fn npz_round_trips() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let directory = Directory::new("npz");
    let path = directory.0.join("x.npz");
    let tensors: Vec<(String, Tensor)> =
        samples().into_iter().chain(strided()).enumerate().map(|(i, t)| (format!("part {i}/x"), t)).collect();
    let bytes: usize = tensors.iter().map(|(_, t)| t.spec().bytes()).sum();
    for compressed in [false, true] {
        let list = tensors.iter().map(|(name, tensor)| (name, tensor));
        if compressed { io::save_npz_compressed(&path, list) } else { io::save_npz(&path, list) }.unwrap();
        let (read, peak) = measured(|| io::load_npz(&path).unwrap());
        assert_eq!(peak, bytes);
        for ((name, tensor), (read_name, read)) in tensors.iter().zip(&read) {
            assert_eq!((name, content(tensor)), (read_name, content(read)));
        }
        assert_eq!(read.len(), tensors.len());
    }
    assert!(io::read_npz(Cursor::new(npz_bytes(&[], false))).unwrap().is_empty());
}

#[test]
fn invalid_npz_files_are_errors() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let x = Tensor::new([1u8, 2]).unwrap();
    let twice = io::write_npz(Cursor::new(Vec::new()), [("x", &x), ("x", &x)]);
    assert_eq!(refusal(twice).0, ErrorKind::Value);

    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("readme.txt", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(b"hello").unwrap();
    let text = archive.finish().unwrap().into_inner();
    let message = "member 'readme.txt' is not a .npy array".to_owned();
    assert_eq!(refusal(io::read_npz(Cursor::new(text))), (ErrorKind::Format, message));

    // The last element of a stored array: the checksum notices.
    let mut bytes = npz_bytes(&[("x", x)], false);
    let at = bytes.windows(2).position(|pair| pair == [b'\n', 1]).unwrap() + 2;
    bytes[at] ^= 1;
    let (kind, message) = refusal(io::read_npz(Cursor::new(bytes)));
    assert!(kind == ErrorKind::Format && message.starts_with("x.npy: "), "{message}");
}

#[test]
fn a_zip_bomb_allocates_little() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let zeros = 4 << 20;
    // An honest archive that is much smaller than its array.
    let tensor = Tensor::from_vec(vec![0u8; zeros], [zeros]).unwrap();
    let honest = npz_bytes(&[("x", tensor)], true);
    assert!(honest.len() < zeros / 100);
    let (read, peak) = measured(|| io::read_npz(Cursor::new(&honest)).unwrap());
    assert_eq!((read[0].1.len(), peak), (zeros, zeros));
    drop(read);

    // A member whose header claims more than it holds, first with its true size, then with the size of the claim.
    let claim = npy(1, &dictionary("|u1", "False", "(1000000000,)"), &vec![0; zeros]);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive.start_file("x.npy", options).unwrap();
    archive.write_all(&claim).unwrap();
    let mut bytes = archive.finish().unwrap().into_inner();
    for _ in 0..2 {
        let (result, peak) = measured(|| refusal(io::read_npz(Cursor::new(&bytes))));
        assert_eq!((result.0, peak), (ErrorKind::Format, 0));
        let (size, lie) = ((claim.len() as u32).to_le_bytes(), (128 + 1_000_000_000u32).to_le_bytes());
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == size {
                bytes[at..at + 4].copy_from_slice(&lie);
            }
        }
    }
}

#[test]
fn safetensors_of_the_python_package_are_read() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let header = concat!(
        r#"{"__metadata__":{"k":"v\"\n"},"b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"#,
        r#""a":{"dtype":"I8","shape":[1],"data_offsets":[16,17]}}    "#
    );
    let elements: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).chain([7]).collect();
    let bytes = safetensors(header, &elements);
    let read = io::read_safetensors(&bytes).unwrap();
    assert_eq!(read.get("b").unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.get("a").unwrap().to_vec::<i8>().unwrap(), [7]);
    let metadata = BTreeMap::from([("k".to_owned(), "v\"\n".to_owned())]);
    assert_eq!(read.metadata, metadata);

    let mut written = Vec::new();
    io::write_safetensors(&mut written, read.tensors.iter().rev().map(|(n, t)| (n, t)), &metadata).unwrap();
    let header = header.replace("\\n", "\\u000a").trim_end().to_owned();
    let padding = " ".repeat(header.len().next_multiple_of(8) - header.len());
    assert_eq!(written, safetensors(&(header + &padding), &elements));
}

#[test]
fn safetensors_round_trip() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let directory = Directory::new("safetensors");
    let path = directory.0.join("x.safetensors");
    // The format has no type of complex numbers of 128 bits.
    let tensors: BTreeMap<String, Tensor> = samples()
        .into_iter()
        .filter(|t| t.dtype() != DType::C128)
        .chain(strided())
        .enumerate()
        .map(|(i, t)| (format!("\"{i}\"\\ \u{1}é 12345678901234567890"), t))
        .collect();
    io::save_safetensors(&path, &tensors, &BTreeMap::new()).unwrap();
    let size = fs::metadata(&path).unwrap().len() as usize;
    let (read, peak) = measured(|| io::load_safetensors(&path).unwrap());
    assert_eq!(peak, size);
    assert_eq!((read.tensors.len(), read.metadata.len()), (tensors.len(), 0));
    for (name, tensor) in &tensors {
        assert_eq!(content(read.get(name).unwrap()), content(tensor));
    }
    let empty = safetensors_bytes(&[]);
    assert!(io::read_safetensors(&empty).unwrap().tensors.is_empty());
}

#[test]
fn invalid_safetensors_files_are_errors() {
    let _exclusive = exclusive();
    let _ledger = ledger_check();
    let read = |header: &str| refusal(io::read_safetensors(&safetensors(header, &[0; 8])));
    let unsupported = read(r#"{"w":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}}"#);
    assert_eq!(unsupported, (ErrorKind::DType, "tensor 'w': type F8_E4M3 is not supported".into()));
    for broken in [
        "",
        "{",
        r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#,
        r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#,
        r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
        r#"{"w":{"dtype":"Q7","shape":[1],"data_offsets":[0,8]}}"#,
        r#"{"w":{"dtype":"U8","shape":[18446744073709551608],"data_offsets":[0,18446744073709551608]}}"#,
        r#"{"a\"":{"dtype":"U8","shape":[0],"data_offsets":[18446744073709551608,18446744073709551608]}}"#,
    ] {
        assert_eq!(read(broken).0, ErrorKind::Format, "{broken}");
    }
    let x = Tensor::new(1u8).unwrap();
    for names in [["x", "x"], ["x", "__metadata__"]] {
        let written = io::write_safetensors(Vec::new(), names.map(|n| (n, &x)), &BTreeMap::new());
        assert_eq!(refusal(written).0, ErrorKind::Value);
    }
}

/// Reads bytes in every format, from memory and from a file. Nothing may panic or allocate more than the file's size.
fn read_all(directory: &Directory, bytes: &[u8], inflated: usize) {
    let path = directory.file("fuzz", bytes);
    let size = bytes.len();
    let within = |(_, peak): (bool, usize), bound: usize, what: &str| {
        assert!(peak <= bound, "{what} held {peak} bytes of {size}");
    };
    within(measured(|| Tensor::read_npy(bytes).is_ok()), (3 * size).max(1 << 16), "read_npy");
    within(measured(|| Tensor::load_npy(&path).is_ok()), size, "load_npy");
    within(measured(|| io::read_npz(Cursor::new(bytes)).is_ok()), size + inflated, "read_npz");
    within(measured(|| io::load_npz(&path).is_ok()), size + inflated, "load_npz");
    within(measured(|| io::read_safetensors(bytes).is_ok()), size, "read_safetensors");
    within(measured(|| io::load_safetensors(&path).is_ok()), size, "load_safetensors");
}

/// Valid files, each with the bytes of its tensors.
fn valid_files() -> Vec<(Vec<u8>, usize)> {
    let a = sample::tensor(DType::F32, &[3, 5], -1.0, 1.0);
    let b = transpose(sample::tensor(DType::I16, &[4, 2], -9.0, 9.0), None).unwrap();
    let tensors = [("a", a.clone()), ("b", b.clone())];
    vec![
        (npy_bytes(&a), 60),
        (npy_bytes(&b), 16),
        (npz_bytes(&tensors, false), 76),
        (npz_bytes(&tensors, true), 76),
        (safetensors_bytes(&tensors), 76),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn random_bytes_are_errors(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..4usize) {
        let _exclusive = exclusive();
        let _ledger = ledger_check();
        let magic: &[u8] = [&b""[..], b"\x93NUMPY\x01\0", b"PK\x03\x04", b"\x40\0\0\0\0\0\0\0{"][kind];
        bytes.splice(0..0, magic.iter().copied());
        read_all(&Directory::new("random"), &bytes, 0);
    }

    #[test]
    fn cut_and_flipped_files_do_no_harm(
        file in 0..5usize,
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 0..4),
        keep in any::<bool>(),
    ) {
        let _exclusive = exclusive();
        let _ledger = ledger_check();
        let (mut bytes, inflated) = valid_files().swap_remove(file);
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if !keep {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all(&Directory::new("flips"), &bytes, inflated);
    }

    #[test]
    fn claims_are_checked(
        dims in prop::collection::vec(prop_oneof![0..5usize, any::<usize>(), Just(1 << 31)], 0..6),
        code in prop::sample::select(vec!["|b1", "<i2", ">f4", "<f8"]),
        order in prop::sample::select(vec!["True", "False"]),
        elements in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let _exclusive = exclusive();
        let _ledger = ledger_check();
        let directory = Directory::new("claimed");
        let list: Vec<String> = dims.iter().map(|dim| format!("{dim},")).collect();
        let text = dictionary(code, order, &format!("({})", list.join(" ")));
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(&elements);
        read_all(&directory, &file, 0);
        let size: usize = code[2..].parse().unwrap();
        let want = dims.iter().try_fold(size as u128, |bytes, &dim| bytes.checked_mul(dim as u128));
        // Only dimensions that memory could hold make a shape, even where another is zero.
        if want == Some(elements.len() as u128) && dims.iter().all(|&dim| dim < 1 << 20) {
            prop_assert!(Tensor::load_npy(directory.file("fuzz", &file)).is_ok());
        } else if want != Some(elements.len() as u128) {
            prop_assert!(Tensor::load_npy(directory.file("fuzz", &file)).is_err());
        }

        let end = elements.len();
        let header = format!(r#"{{"w":{{"dtype":"U8","shape":{dims:?},"data_offsets":[0,{end}]}}}}"#);
        read_all(&directory, &safetensors(&header, &elements), 0);
        let offsets: Vec<String> = dims.iter().enumerate().map(|(i, dim)| {
            let start = if i == 0 { 0 } else { dims[i - 1] };
            let len = dim.wrapping_sub(start);
            format!(r#""{i}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{start},{dim}]}}"#)
        }).collect();
        read_all(&directory, &safetensors(&format!("{{{}}}", offsets.join(",")), &elements), 0);
    }
}
