//! Safetensors: named tensors and metadata, the format of most published model weights.

use super::{claimed_shape, format_error, read_buffer, read_error, swap_bytes, with_bytes};
use crate::error::{Error, Result};
use crate::op::Spec;
use crate::tensor::Tensor;
use safetensors::tensor::{Metadata, SafeTensors, TensorInfo};
use safetensors::{Dtype, SafeTensorError};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use taut_kernels::DType;
use taut_memory::{Buffer, Category, Location};

/// Bytes of the header's length, in front of it.
const PREFIX: usize = size_of::<u64>();

/// The header's key of the metadata; no tensor can have this name.
const METADATA: &str = "__metadata__";

/// The content of a safetensors file.
#[derive(Clone, Debug, Default)]
pub struct Safetensors {
    /// Names and tensors, in the order of the file.
    pub tensors: Vec<(String, Tensor)>,
    /// Metadata: format, licence, training step, …
    pub metadata: BTreeMap<String, String>,
}

impl Safetensors {
    /// The tensor of this name.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use taut_core::{Tensor, io};
    /// let mut bytes = Vec::new();
    /// io::write_safetensors(&mut bytes, [("bias", Tensor::new([1.0f32])?)], &BTreeMap::new())?;
    /// let weights = io::read_safetensors(&bytes)?;
    /// assert!(weights.get("bias").is_some() && weights.get("weight").is_none());
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor)
    }
}

/// Writes named tensors and metadata to a safetensors file. Strided tensors are copied first, one at a time.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use taut_core::{Tensor, io};
/// # let directory = std::env::temp_dir().join(format!("taut-save-safetensors-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("model.safetensors");
/// let metadata = BTreeMap::from([("step".to_owned(), "100".to_owned())]);
/// io::save_safetensors(&path, [("weight", Tensor::new([[1.0f32, 2.0]])?)], &metadata)?;
///
/// let model = io::load_safetensors(&path)?;
/// assert_eq!(model.get("weight").unwrap().to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(model.metadata["step"], "100");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn save_safetensors<N: AsRef<str>, T: Borrow<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let (path, at) = (path.as_ref(), Location::caller());
    let tensors: Vec<(N, T)> = tensors.into_iter().collect();
    let save = || write(&mut File::create(path)?, tensors, metadata, at);
    save().map_err(|error| error.about(path.display()).at(at))
}

/// Writes named tensors and metadata in safetensors format. See [`save_safetensors`].
///
/// ```
/// # use std::collections::BTreeMap;
/// # use taut_core::{Tensor, io};
/// let mut bytes = Vec::new();
/// io::write_safetensors(&mut bytes, [("x", Tensor::new([7u8])?)], &BTreeMap::new())?;
/// assert_eq!(bytes.last(), Some(&7));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn write_safetensors<N: AsRef<str>, T: Borrow<Tensor>>(
    mut writer: impl Write,
    tensors: impl IntoIterator<Item = (N, T)>,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let at = Location::caller();
    write(&mut writer, tensors.into_iter().collect(), metadata, at).map_err(|error| error.at(at))
}

/// Reads a safetensors file. Each tensor gets a buffer of its own.
///
/// A tensor of an unsupported type is an error of kind [`DType`](crate::ErrorKind::DType) that names it.
///
/// ```
/// # use taut_core::{ErrorKind, io};
/// assert_eq!(io::load_safetensors("no/such/file").unwrap_err().kind(), ErrorKind::Io);
/// ```
#[track_caller]
pub fn load_safetensors(path: impl AsRef<Path>) -> Result<Safetensors> {
    let (path, at) = (path.as_ref(), Location::caller());
    load(path, at).map_err(|error| error.about(path.display()).at(at))
}

/// Reads the content of a safetensors file. See [`load_safetensors`].
///
/// ```
/// # use taut_core::{ErrorKind, io};
/// assert_eq!(io::read_safetensors(b"too short").unwrap_err().kind(), ErrorKind::Format);
/// ```
#[track_caller]
pub fn read_safetensors(bytes: &[u8]) -> Result<Safetensors> {
    let at = Location::caller();
    let read = || {
        let (metadata, start) = parse(bytes)?;
        read_tensors(&metadata, &mut &bytes[start..], at)
    };
    read().map_err(|error: Error| error.at(at))
}

fn load(path: &Path, at: Location) -> Result<Safetensors> {
    let mut file = File::open(path)?;
    let size = usize::try_from(file.metadata()?.len()).map_err(|_| format_error("larger than memory"))?;
    let mut prefix = [0; PREFIX];
    file.read_exact(&mut prefix).map_err(read_error)?;
    let header = usize::try_from(u64::from_le_bytes(prefix)).ok().and_then(|len| len.checked_add(PREFIX));
    let header =
        header.filter(|&end| end <= size).ok_or_else(|| format_error("the file ends within the header"))?;
    // The parser compares the header with the length of the whole file and reads nothing else of it: zeros take the place of
    // the tensors, and the system allocates no page that is not touched.
    let mut whole = Buffer::zeroed_at(size, Category::Scratch, at)?;
    whole.as_mut_slice()[..PREFIX].copy_from_slice(&prefix);
    file.read_exact(&mut whole.as_mut_slice()[PREFIX..header]).map_err(read_error)?;
    let (metadata, _) = parse(whole.as_slice())?;
    drop(whole);
    read_tensors(&metadata, &mut file, at)
}

/// The header of a file's content, and the offset of the elements, which are not read.
fn parse(bytes: &[u8]) -> Result<(Metadata, usize)> {
    let header = bytes.first_chunk().and_then(|&prefix| {
        let end = usize::try_from(u64::from_le_bytes(prefix)).ok()?.checked_add(PREFIX)?;
        bytes.get(PREFIX..end)
    });
    let header = header.ok_or_else(|| format_error("the file ends within the header"))?;
    if has_huge_number(header) {
        return Err(format_error("the header has a number that exceeds every file size"));
    }
    let (len, metadata) = SafeTensors::read_metadata(bytes).map_err(header_error)?;
    Ok((metadata, PREFIX + len))
}

/// Whether a number outside strings has more than eighteen digits. The parser adds offsets; with fewer digits its sums cannot
/// overflow.
fn has_huge_number(json: &[u8]) -> bool {
    let (mut in_string, mut escaped, mut digits) = (false, false, 0);
    json.iter().any(|&byte| {
        digits = if byte.is_ascii_digit() && !in_string { digits + 1 } else { 0 };
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
        digits > 18
    })
}

#[cold]
fn header_error(error: SafeTensorError) -> Error {
    match error {
        SafeTensorError::IoError(error) => error.into(),
        other => format_error(other.to_string()),
    }
}

/// Reads the tensors. Their bytes are contiguous: the parser has checked it.
fn read_tensors(metadata: &Metadata, reader: &mut dyn Read, at: Location) -> Result<Safetensors> {
    let mut out = Safetensors::default();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let tensor =
            read_tensor(info, reader, at).map_err(|error| error.about(format!("tensor '{name}'")))?;
        out.tensors.push((name, tensor));
    }
    out.metadata.extend(metadata.metadata().iter().flatten().map(|(key, word)| (key.clone(), word.clone())));
    Ok(out)
}

fn read_tensor(info: &TensorInfo, reader: &mut dyn Read, at: Location) -> Result<Tensor> {
    let dtype = DType::ALL.into_iter().find(|&dtype| stored(dtype) == Some(info.dtype));
    let dtype = dtype.ok_or_else(|| Error::dtype(format!("type {} is not supported", info.dtype)))?;
    let spec = Spec::new(dtype, claimed_shape(&info.shape)?);
    let mut buffer = read_buffer(reader, spec.bytes(), u64::MAX, at)?;
    to_little_endian(buffer.as_mut_slice(), dtype);
    Ok(Tensor::from_exact_buffer(spec, buffer))
}

fn write<N: AsRef<str>, T: Borrow<Tensor>>(
    writer: &mut dyn Write,
    tensors: Vec<(N, T)>,
    metadata: &BTreeMap<String, String>,
    at: Location,
) -> Result<()> {
    let specs = tensors.iter().map(|(name, tensor)| (name, tensor.borrow().spec().clone())).collect();
    write_each(writer, specs, metadata, |i| Ok(tensors[i].1.borrow().clone()), at)
}

/// Writes named tensors of these specs, each of which `value` computes by its index when it is its turn: one at a time is live. The
/// order depends on the specs alone. See [`save_safetensors`].
///
/// ```
/// # use std::collections::BTreeMap;
/// # use taut_core::{DType, Spec, Tensor, io, ops::creation::zeros};
/// let mut bytes = Vec::new();
/// let specs = vec![("x", Spec::new(DType::U8, [2])), ("y", Spec::new(DType::F32, [1]))];
/// let compute = |i: usize| if i == 0 { Tensor::new([7u8, 8]) } else { zeros([1], DType::F32) };
/// io::write_safetensors_by(&mut bytes, specs, &BTreeMap::new(), compute)?;
/// assert_eq!(io::read_safetensors(&bytes)?.get("x").unwrap().to_vec::<u8>()?, [7, 8]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn write_safetensors_by<N: AsRef<str>>(
    mut writer: impl Write,
    specs: Vec<(N, Spec)>,
    metadata: &BTreeMap<String, String>,
    value: impl FnMut(usize) -> Result<Tensor>,
) -> Result<()> {
    let at = Location::caller();
    write_each(&mut writer, specs, metadata, value, at).map_err(|error| error.at(at))
}

fn write_each<N: AsRef<str>>(
    writer: &mut dyn Write,
    specs: Vec<(N, Spec)>,
    metadata: &BTreeMap<String, String>,
    mut value: impl FnMut(usize) -> Result<Tensor>,
    at: Location,
) -> Result<()> {
    let mut specs: Vec<(usize, (N, Spec))> = specs.into_iter().enumerate().collect();
    // Wide elements first, so that every tensor begins at a multiple of its element's size.
    specs.sort_by_key(|(_, (_, spec))| std::cmp::Reverse(spec.dtype.size()));
    writer.write_all(&header(&specs, metadata)?)?;
    for (i, (name, spec)) in &specs {
        let put = |bytes: &[u8]| -> Result<()> { Ok(writer.write_all(bytes)?) };
        let tensor = value(*i)?;
        if tensor.spec() != spec {
            let message = format!("the tensor '{}' must be {spec}, got {}", name.as_ref(), tensor.spec());
            return Err(Error::value(message));
        }
        write_tensor(&tensor, at, put).map_err(|error| error.about(name.as_ref()))?;
    }
    Ok(())
}

fn write_tensor(tensor: &Tensor, at: Location, put: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    if cfg!(target_endian = "little") || tensor.dtype().size() == 1 {
        return with_bytes(tensor, at, put);
    }
    with_bytes(tensor, at, |bytes| {
        let mut swapped = Buffer::new_at(bytes.len(), Category::Scratch, at)?;
        swapped.as_mut_slice().copy_from_slice(bytes);
        to_little_endian(swapped.as_mut_slice(), tensor.dtype());
        put(swapped.as_slice())
    })
}

/// From this machine's byte order to the format's, or back.
fn to_little_endian(bytes: &mut [u8], dtype: DType) {
    if cfg!(target_endian = "big") {
        swap_bytes(bytes, dtype.part().size());
    }
}

/// Length and text of the header, padded so that the elements begin at a multiple of eight.
fn header<N: AsRef<str>>(
    specs: &[(usize, (N, Spec))],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let mut entries = Vec::new();
    if !metadata.is_empty() {
        let items: Vec<String> =
            metadata.iter().map(|(key, word)| format!("{}:{}", quoted(key), quoted(word))).collect();
        entries.push(format!("{}:{{{}}}", quoted(METADATA), items.join(",")));
    }
    let mut names = HashSet::from([METADATA]);
    let mut offset = 0;
    for (_, (name, spec)) in specs {
        let name = name.as_ref();
        if !names.insert(name) {
            return Err(Error::value(format!("tensor names must be distinct, got '{name}' twice")));
        }
        let Some(dtype) = stored(spec.dtype) else {
            let message =
                format!("the safetensors format has no type {}, which tensor '{name}' has", spec.dtype);
            return Err(
                Error::dtype(message).help("cast it to complex64, or save its real and imaginary parts")
            );
        };
        let end = offset + spec.bytes();
        let shape = spec.shape.to_string().replace(' ', "");
        entries.push(format!(
            r#"{}:{{"dtype":"{}","shape":{shape},"data_offsets":[{offset},{end}]}}"#,
            quoted(name),
            dtype
        ));
        offset = end;
    }
    let mut text = format!("{{{}}}", entries.join(",")).into_bytes();
    text.resize(text.len().next_multiple_of(PREFIX), b' ');
    Ok([&(text.len() as u64).to_le_bytes()[..], &text].concat())
}

/// A string as JSON writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The format's name for a type; it has none for `complex128`.
fn stored(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::C64 => Dtype::C64,
        DType::C128 => return None,
    })
}
