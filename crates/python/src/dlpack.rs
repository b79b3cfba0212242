//! Exchange of tensors with other libraries without a copy: DLPack.

use crate::array::Array;
use crate::error::exception;
use crate::numpy::first_byte;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use taut::{DType, Layout, Shape, Strides, Tensor};

/// The device of all tensors: the CPU.
pub const CPU: (i32, i32) = (1, 0);

/// The DLPack version of versioned capsules.
const VERSION: [u32; 2] = [1, 0];
const READ_ONLY: u64 = 1;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
struct ManagedTensorVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The tensor behind an exported capsule, with the shape and strides that it points to.
struct ExportedTensor {
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl ExportedTensor {
    fn dl_tensor(&mut self) -> DlTensor {
        let dtype = self.tensor.dtype();
        let code = match dtype {
            DType::Bool => 6,
            DType::BF16 => 4,
            dtype if dtype.is_float() => 2,
            dtype if dtype.is_complex() => 5,
            dtype if dtype.is_unsigned_integer() => 1,
            _ => 0,
        };
        DlTensor {
            data: first_byte(&self.tensor).cast_mut().cast(),
            device: [CPU.0, CPU.1],
            ndim: self.shape.len() as i32,
            code,
            bits: 8 * dtype.size() as u8,
            lanes: 1,
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

unsafe extern "C" fn delete(managed: *mut ManagedTensor) {
    if !managed.is_null() {
        // SAFETY: `export` created both boxes, and the deleter is called once.
        unsafe {
            drop(Box::from_raw((*managed).context.cast::<ExportedTensor>()));
            drop(Box::from_raw(managed));
        }
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedTensorVersioned) {
    if !managed.is_null() {
        // SAFETY: `export` created both boxes, and the deleter is called once.
        unsafe {
            drop(Box::from_raw((*managed).context.cast::<ExportedTensor>()));
            drop(Box::from_raw(managed));
        }
    }
}

/// The destructor of a capsule: frees the tensor if the capsule was not consumed.
unsafe extern "C" fn destroy_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule of `export`; a consumed one has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Exports a tensor as a capsule. Tensors are immutable: a versioned capsule is marked as read-only.
pub fn export<'py>(
    slf: &Bound<'py, Array>,
    stream: Option<Bound<'py, PyAny>>,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if stream.is_some_and(|stream| !stream.is_none()) {
        return Err(PyTypeError::new_err("stream must be None: tensors are on the CPU"));
    }
    if device.is_some_and(|device| device != CPU) {
        return Err(PyBufferError::new_err(
            "tensors are on the CPU and cannot be exported to another device",
        ));
    }
    let mut tensor = slf.get().read()?;
    tensor.view().map_err(|error| exception(py, error))?;
    if copy == Some(true) {
        tensor = tensor.copy().map_err(|error| exception(py, error))?;
    }
    let shape = tensor.shape().iter().map(|&dim| dim as i64).collect();
    let strides = tensor.strides().iter().map(|&stride| stride as i64).collect();
    let mut exported = Box::new(ExportedTensor { tensor, shape, strides });
    let tensor = exported.dl_tensor();
    let context = Box::into_raw(exported).cast();
    let knows_versions = max_version.is_some_and(|(major, _)| major >= 1);
    let (pointer, name): (*mut c_void, _) = if knows_versions {
        let flags = if copy == Some(true) { 0 } else { READ_ONLY };
        let made = ManagedTensorVersioned {
            version: VERSION,
            context,
            deleter: Some(delete_versioned),
            flags,
            tensor,
        };
        (Box::into_raw(Box::new(made)).cast(), VERSIONED)
    } else {
        let made = ManagedTensor { tensor, context, deleter: Some(delete) };
        (Box::into_raw(Box::new(made)).cast(), NAME)
    };
    // SAFETY: a new capsule over a new box; `destroy_capsule` frees it unless a consumer takes it.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy_capsule)))
    }
}

/// An imported tensor of another library, which is released by its deleter.
enum ImportedTensor {
    Plain(*mut ManagedTensor),
    Versioned(*mut ManagedTensorVersioned),
}

impl ImportedTensor {
    fn dl_tensor(&self) -> &DlTensor {
        // SAFETY: the producer keeps the tensor until the deleter is called, which `Drop` does.
        unsafe {
            match self {
                ImportedTensor::Plain(managed) => &(**managed).tensor,
                ImportedTensor::Versioned(managed) => &(**managed).tensor,
            }
        }
    }
}

impl Drop for ImportedTensor {
    fn drop(&mut self) {
        // The producer's deleter may free Python objects.
        Python::attach(|_| {
            // SAFETY: the capsule was consumed, so the deleter must be called once.
            unsafe {
                match *self {
                    ImportedTensor::Plain(managed) => {
                        if let Some(deleter) = (*managed).deleter {
                            deleter(managed);
                        }
                    }
                    ImportedTensor::Versioned(managed) => {
                        if let Some(deleter) = (*managed).deleter {
                            deleter(managed);
                        }
                    }
                }
            }
        });
    }
}

/// The memory of an imported tensor.
struct ImportedMemory {
    imported: ImportedTensor,
    bytes: usize,
}

// SAFETY: the memory is only read, and the deleter is called with the interpreter attached.
unsafe impl Send for ImportedMemory {}
// SAFETY: as above.
unsafe impl Sync for ImportedMemory {}

impl AsRef<[u8]> for ImportedMemory {
    fn as_ref(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        let tensor = self.imported.dl_tensor();
        // SAFETY: the producer guarantees that these bytes are its tensor's and keeps them alive.
        unsafe {
            let start = tensor.data.cast::<u8>().add(tensor.byte_offset as usize);
            std::slice::from_raw_parts(start, self.bytes)
        }
    }
}

/// Imports a tensor of another library over its own memory.
pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    // Device 3 is pinned host memory.
    if ![CPU.0, 3].contains(&device.0) {
        return Err(PyBufferError::new_err("the tensor must be in host memory: move it to the CPU first"));
    }
    let options = PyDict::new(py);
    options.set_item("max_version", (VERSION[0], VERSION[1]))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__")?,
        outcome => outcome?,
    };
    let imported = take(&capsule)?;
    let dl_tensor = imported.dl_tensor();
    let dtype = match (dl_tensor.code, dl_tensor.bits, dl_tensor.lanes) {
        (6, 8, 1) => DType::Bool,
        (4, 16, 1) => DType::BF16,
        (2, 16, 1) => DType::F16,
        (2, 32, 1) => DType::F32,
        (2, 64, 1) => DType::F64,
        (5, 64, 1) => DType::C64,
        (5, 128, 1) => DType::C128,
        (1, 8, 1) => DType::U8,
        (1, 16, 1) => DType::U16,
        (1, 32, 1) => DType::U32,
        (1, 64, 1) => DType::U64,
        (0, 8, 1) => DType::I8,
        (0, 16, 1) => DType::I16,
        (0, 32, 1) => DType::I32,
        (0, 64, 1) => DType::I64,
        (code, bits, lanes) => {
            let message = format!("unsupported DLPack element type: code {code}, {bits} bits, {lanes} lanes");
            return Err(PyTypeError::new_err(message));
        }
    };
    let rank = dl_tensor.ndim.max(0) as usize;
    let list = |start: *mut i64| -> Vec<i64> {
        if rank == 0 {
            return Vec::new();
        }
        // SAFETY: the producer guarantees `ndim` numbers.
        unsafe { std::slice::from_raw_parts(start, rank).to_vec() }
    };
    let shape: Shape = list(dl_tensor.shape).into_iter().map(|dim| dim.max(0) as usize).collect();
    let strides: Strides = if dl_tensor.strides.is_null() {
        shape.strides()
    } else {
        list(dl_tensor.strides).into_iter().map(|stride| stride as isize).collect()
    };
    if strides.iter().any(|&stride| stride < 0) {
        return Err(PyBufferError::new_err("a tensor with negative strides cannot be shared: copy it first"));
    }
    let last: usize = shape.iter().zip(&strides).map(|(&dim, &s)| dim.saturating_sub(1) * s as usize).sum();
    let bytes = if shape.is_empty() { 0 } else { (last + 1) * dtype.size() };
    let memory = ImportedMemory { imported, bytes };
    let layout = Layout { shape, strides, offset: 0 };
    if bytes == 0 {
        let spec = taut_core::Spec::new(dtype, layout.shape);
        let line = taut::memory::Location::caller();
        let made = Tensor::build(spec, taut::memory::Category::Tensor, line, |_| {});
        return made.map_err(|error| exception(py, error));
    }
    if memory.as_ref().as_ptr().addr().is_multiple_of(8) {
        return Tensor::borrowed(dtype, layout, memory).map_err(|error| exception(py, error));
    }
    // Misaligned memory is copied.
    let mut words = vec![0u64; bytes.div_ceil(8)];
    bytes_of(&mut words)[..bytes].copy_from_slice(memory.as_ref());
    let made = Tensor::borrowed(dtype, layout, AlignedBytes(words)).and_then(|tensor| tensor.copy());
    made.map_err(|error| exception(py, error))
}

struct AlignedBytes(Vec<u64>);

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: every bit pattern is a valid byte.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 8) }
    }
}

fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: every bit pattern is a valid byte and a valid integer.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Consumes a capsule, so that it cannot be consumed again.
fn take(capsule: &Bound<'_, PyAny>) -> PyResult<ImportedTensor> {
    let pointer = capsule.as_ptr();
    // SAFETY: every call checks its argument; a capsule's name determines the type of its pointer.
    unsafe {
        for (name, used) in [(VERSIONED, USED_VERSIONED), (NAME, USED)] {
            if ffi::PyCapsule_IsValid(pointer, name.as_ptr()) != 1 {
                continue;
            }
            let content = ffi::PyCapsule_GetPointer(pointer, name.as_ptr());
            let imported = if name == VERSIONED {
                let managed = content.cast::<ManagedTensorVersioned>();
                if (*managed).version[0] > VERSION[0] {
                    return Err(PyBufferError::new_err("the capsule has a later DLPack version than 1"));
                }
                ImportedTensor::Versioned(managed)
            } else {
                ImportedTensor::Plain(content.cast())
            };
            if ffi::PyCapsule_SetName(pointer, used.as_ptr()) != 0 {
                std::mem::forget(imported);
                return Err(PyErr::fetch(capsule.py()));
            }
            return Ok(imported);
        }
    }
    Err(PyBufferError::new_err("expected a DLPack capsule that was not consumed before"))
}

/// Imports a tensor of another library over its own memory.
#[pyfunction]
pub fn from_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    crate::array::wrap(object.py(), import(object)?)
}
