//! `.npy`: one array, as `numpy.save` writes it.

mod header;

use super::{bytes_of, format_error, read_buffer, read_error, swap_bytes, with_bytes};
use crate::error::{Error, Result};
use crate::layout::Layout;
#[cfg(feature = "npz")]
use crate::op::Spec;
use crate::shape::Axes;
use crate::tensor::Tensor;
pub(super) use header::Header;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use taut_kernels::View;
use taut_memory::{Buffer, Location};

impl Tensor {
    /// Writes the tensor to a `.npy` file, which `numpy.load` reads.
    ///
    /// A transposed tensor is written without a copy, in Fortran order; other strided tensors are copied first. NumPy has no
    /// `bfloat16`: such a tensor is written with type `'<V2'`, as `ml_dtypes` does, and read by
    /// `numpy.load(path).view(ml_dtypes.bfloat16)`.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// # let directory = std::env::temp_dir().join(format!("taut-save-npy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// let path = directory.join("x.npy");
    /// Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.save_npy(&path)?;
    /// assert_eq!(Tensor::load_npy(&path)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, at) = (path.as_ref(), Location::caller());
        let save = || write(self, &mut File::create(path)?, at);
        save().map_err(|error| error.about(path.display()).at(at))
    }

    /// Reads a `.npy` file: versions 1 to 3, either byte order, C or Fortran order.
    ///
    /// An array in Fortran order becomes a transposed view. Python objects, structures and unsupported types are errors.
    /// Elements of type `'V2'` are read as `bfloat16`.
    ///
    /// ```
    /// # use taut_core::{ErrorKind, Tensor};
    /// let error = Tensor::load_npy("no/such/file.npy").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Io);
    /// assert!(error.message().starts_with("no/such/file.npy: "));
    /// ```
    #[track_caller]
    pub fn load_npy(path: impl AsRef<Path>) -> Result<Tensor> {
        let (path, at) = (path.as_ref(), Location::caller());
        load(path, at).map_err(|error| error.about(path.display()).at(at))
    }

    /// Maps a `.npy` file into memory: the system reads pages of the file on first access.
    ///
    /// The memory is the file's, so the ledger does not count it. The file must not change while the tensor exists (see
    /// [`Buffer::map`]). Arrays in the other byte order, and files that cannot be mapped, are read as by [`Tensor::load_npy`].
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// # let directory = std::env::temp_dir().join(format!("taut-map-npy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// let path = directory.join("x.npy");
    /// Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.save_npy(&path)?;
    /// let live = taut_memory::live_bytes();
    /// let x = Tensor::map_npy(&path)?;
    /// assert_eq!(taut_memory::live_bytes(), live);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn map_npy(path: impl AsRef<Path>) -> Result<Tensor> {
        let (path, at) = (path.as_ref(), Location::caller());
        let tensor = match map(path) {
            Ok(None) => load(path, at),
            Ok(Some(tensor)) => Ok(tensor),
            Err(error) => Err(error),
        };
        tensor.map_err(|error| error.about(path.display()).at(at))
    }

    /// Writes the tensor in `.npy` format, as [`Tensor::save_npy`] does.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let mut bytes = Vec::new();
    /// Tensor::new([1u8, 2, 3])?.write_npy(&mut bytes)?;
    /// assert_eq!(bytes[..6], *b"\x93NUMPY");
    /// assert_eq!(bytes[bytes.len() - 3..], [1, 2, 3]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn write_npy(&self, mut writer: impl Write) -> Result<()> {
        let at = Location::caller();
        write(self, &mut writer, at).map_err(|error| error.at(at))
    }

    /// Reads one array in `.npy` format, as [`Tensor::load_npy`] does, and no byte beyond it: concatenated arrays are read by
    /// one call each. From a stream of unknown length it allocates at most three times what it has read.
    ///
    /// ```
    /// # use taut_core::Tensor;
    /// let mut bytes = Vec::new();
    /// Tensor::new([1, 2, 3])?.write_npy(&mut bytes)?;
    /// Tensor::new(0.5)?.write_npy(&mut bytes)?;
    ///
    /// let mut reader = &bytes[..];
    /// assert_eq!(Tensor::read_npy(&mut reader)?.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(Tensor::read_npy(&mut reader)?.item::<f64>()?, 0.5);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn read_npy(mut reader: impl Read) -> Result<Tensor> {
        let at = Location::caller();
        let read = |reader: &mut dyn Read| Header::read(reader)?.elements(reader, 0, at);
        read(&mut reader).map_err(|error| error.at(at))
    }
}

fn load(path: &Path, at: Location) -> Result<Tensor> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let header = Header::read(&mut file)?;
    if !metadata.is_file() {
        return header.elements(&mut file, 0, at);
    }
    let present = metadata.len().saturating_sub(header.len as u64);
    header.check(present).map_err(|error| {
        error.help("concatenated arrays are read with Tensor::read_npy from one open file")
    })?;
    header.elements(&mut file, present, at)
}

/// The array mapped from the file, or `None` if it must be read.
fn map(path: &Path) -> Result<Option<Tensor>> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let header = Header::read(&mut file)?;
    header.check(metadata.len().saturating_sub(header.len as u64))?;
    if header.swapped || !header.len.is_multiple_of(taut_memory::ALIGNMENT) {
        return Ok(None);
    }
    let Ok(buffer) = Buffer::map(&file, header.len as u64, header.spec.bytes()) else {
        return Ok(None);
    };
    let (dtype, tensor) = (header.spec.dtype, header.into_tensor(buffer));
    // A view, so that no op writes into it: written pages would be memory that the ledger does not count.
    let layout = tensor.layout();
    Ok(Some(tensor.with_inner_layout(dtype, layout)))
}

impl Header {
    /// Fails unless the spec's bytes are as many as follow the header.
    pub(super) fn check(&self, present: u64) -> Result<()> {
        let claimed = self.spec.bytes() as u64;
        if claimed == present {
            return Ok(());
        }
        let claim = format!("{} needs {claimed} bytes after the header, got {present}", self.spec);
        Err(format_error(claim))
    }

    /// Reads the elements that follow the header, of which `present` bytes are known to exist.
    pub(super) fn elements(self, reader: &mut dyn Read, present: u64, at: Location) -> Result<Tensor> {
        let mut buffer = read_buffer(reader, self.spec.bytes(), present, at)?;
        if self.swapped {
            swap_bytes(buffer.as_mut_slice(), self.spec.dtype.part().size());
        }
        Ok(self.into_tensor(buffer))
    }

    /// The tensor of these elements, in the header's order.
    fn into_tensor(self, buffer: Buffer) -> Tensor {
        let Header { mut spec, fortran_order, .. } = self;
        if !fortran_order || spec.shape.rank() < 2 {
            return Tensor::from_exact_buffer(spec, buffer);
        }
        spec.shape = spec.shape.iter().rev().copied().collect();
        let (dtype, layout) = (spec.dtype, Layout::contiguous(spec.shape.clone()));
        let reversed: Axes = (0..spec.shape.rank()).rev().collect();
        Tensor::from_exact_buffer(spec, buffer).with_inner_layout(dtype, layout.permute(&reversed))
    }
}

pub(super) fn write(tensor: &Tensor, writer: &mut dyn Write, at: Location) -> Result<()> {
    let mut put = |fortran_order: bool, bytes: &[u8]| -> Result<()> {
        writer.write_all(&header::encode(tensor.spec(), fortran_order)?)?;
        writer.write_all(bytes).map_err(Error::from)
    };
    let layout = tensor.layout();
    let reversed: Axes = (0..layout.shape.rank()).rev().collect();
    let transposed = layout.permute(&reversed);
    if !layout.is_contiguous() && transposed.is_contiguous() {
        let view: View<'_> = tensor.view()?.with_layout(&transposed.shape, &transposed.strides);
        if let Some(bytes) = bytes_of(&view) {
            return put(true, bytes);
        }
    }
    with_bytes(tensor, at, |bytes| put(false, bytes))
}

/// Bytes that `spec` takes in a file, with its header.
#[cfg(feature = "npz")]
pub(super) fn file_size(spec: &Spec) -> Result<u64> {
    Ok(header::encode(spec, false)?.len() as u64 + spec.bytes() as u64)
}

fn read_exactly<const N: usize>(reader: &mut dyn Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(read_error)?;
    Ok(bytes)
}
