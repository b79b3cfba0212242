//! Tensors of other engines, both ways, without a copy: DLPack.

use crate::array::Array;
use crate::error::exception;
use crate::numpy::first_byte;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use taut::{DType, Layout, Shape, Strides, Tensor};

/// Where all our tensors are.
pub const CPU: (i32, i32) = (1, 0);

/// The version that is spoken where both sides know versions.
const VERSION: [u32; 2] = [1, 0];
const READ_ONLY: u64 = 1;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
struct Described {
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
struct Managed {
    tensor: Described,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Described,
}

/// What an exported tensor needs until the other side is done with it.
struct Kept {
    tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Kept {
    fn described(&mut self) -> Described {
        let dtype = self.tensor.dtype();
        let code = match dtype {
            DType::Bool => 6,
            DType::BF16 => 4,
            dtype if dtype.is_float() => 2,
            dtype if dtype.is_unsigned_integer() => 1,
            _ => 0,
        };
        Described {
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

unsafe extern "C" fn delete(managed: *mut Managed) {
    if !managed.is_null() {
        // SAFETY: `export` made both boxes, and this is called once.
        unsafe {
            drop(Box::from_raw((*managed).context.cast::<Kept>()));
            drop(Box::from_raw(managed));
        }
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    if !managed.is_null() {
        // SAFETY: `export` made both boxes, and this is called once.
        unsafe {
            drop(Box::from_raw((*managed).context.cast::<Kept>()));
            drop(Box::from_raw(managed));
        }
    }
}

/// What happens to a capsule that nobody took: its tensor goes.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule of ours; one that was taken has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A tensor as a capsule that others understand. Tensors never change: who knows versions is told that it is only to be read.
pub fn export<'py>(
    slf: &Bound<'py, Array>,
    stream: Option<Bound<'py, PyAny>>,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if stream.is_some_and(|stream| !stream.is_none()) {
        return Err(PyTypeError::new_err("tensors are on the processor, where there are no streams"));
    }
    if device.is_some_and(|device| device != CPU) {
        return Err(PyBufferError::new_err(
            "tensors are on the processor and cannot be exported to another device",
        ));
    }
    let mut tensor = slf.get().read()?;
    tensor.view().map_err(|error| exception(py, error))?;
    if copy == Some(true) {
        tensor = tensor.copy().map_err(|error| exception(py, error))?;
    }
    let shape = tensor.shape().iter().map(|&dim| dim as i64).collect();
    let strides = tensor.strides().iter().map(|&stride| stride as i64).collect();
    let mut kept = Box::new(Kept { tensor, shape, strides });
    let tensor = kept.described();
    let context = Box::into_raw(kept).cast();
    let knows_versions = max_version.is_some_and(|(major, _)| major >= 1);
    let (pointer, name): (*mut c_void, _) = if knows_versions {
        let flags = if copy == Some(true) { 0 } else { READ_ONLY };
        let made = Versioned { version: VERSION, context, deleter: Some(delete_versioned), flags, tensor };
        (Box::into_raw(Box::new(made)).cast(), VERSIONED)
    } else {
        let made = Managed { tensor, context, deleter: Some(delete) };
        (Box::into_raw(Box::new(made)).cast(), NAME)
    };
    // SAFETY: a new capsule over the box just made; `forget` frees it unless somebody takes it.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, name.as_ptr(), Some(forget))) }
}

/// Another engine's tensor, until it is told that we are done.
enum Foreign {
    Plain(*mut Managed),
    Versioned(*mut Versioned),
}

impl Foreign {
    fn described(&self) -> &Described {
        // SAFETY: the other side keeps it until the deleter is called, which `Drop` does.
        unsafe {
            match self {
                Foreign::Plain(managed) => &(**managed).tensor,
                Foreign::Versioned(managed) => &(**managed).tensor,
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Other engines may free Python objects of theirs.
        Python::attach(|_| {
            // SAFETY: the capsule was taken, so calling the deleter once is our duty.
            unsafe {
                match *self {
                    Foreign::Plain(managed) => {
                        if let Some(deleter) = (*managed).deleter {
                            deleter(managed);
                        }
                    }
                    Foreign::Versioned(managed) => {
                        if let Some(deleter) = (*managed).deleter {
                            deleter(managed);
                        }
                    }
                }
            }
        });
    }
}

/// The memory of another engine's tensor.
struct Lent {
    foreign: Foreign,
    bytes: usize,
}

// SAFETY: the memory is only read, and the deleter is called with the interpreter attached.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        let tensor = self.foreign.described();
        // SAFETY: the other side says that the elements from there on are its tensor's, and keeps them.
        unsafe {
            let start = tensor.data.cast::<u8>().add(tensor.byte_offset as usize);
            std::slice::from_raw_parts(start, self.bytes)
        }
    }
}

/// Another engine's tensor as one of ours, over its own memory.
pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    // What is pinned for other devices is in the processor's memory, too.
    if ![CPU.0, 3].contains(&device.0) {
        return Err(PyBufferError::new_err("its memory is not the processor's: move it to the cpu first"));
    }
    let asked = PyDict::new(py);
    asked.set_item("max_version", (VERSION[0], VERSION[1]))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&asked)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__")?,
        outcome => outcome?,
    };
    let foreign = take(&capsule)?;
    let described = foreign.described();
    let dtype = match (described.code, described.bits, described.lanes) {
        (6, 8, 1) => DType::Bool,
        (4, 16, 1) => DType::BF16,
        (2, 16, 1) => DType::F16,
        (2, 32, 1) => DType::F32,
        (2, 64, 1) => DType::F64,
        (1, 8, 1) => DType::U8,
        (1, 16, 1) => DType::U16,
        (1, 32, 1) => DType::U32,
        (1, 64, 1) => DType::U64,
        (0, 8, 1) => DType::I8,
        (0, 16, 1) => DType::I16,
        (0, 32, 1) => DType::I32,
        (0, 64, 1) => DType::I64,
        (code, bits, lanes) => {
            let message =
                format!("elements of code {code} with {bits} bits in {lanes} lanes have no type of ours");
            return Err(PyTypeError::new_err(message));
        }
    };
    let rank = described.ndim.max(0) as usize;
    let list = |start: *mut i64| -> Vec<i64> {
        if rank == 0 {
            return Vec::new();
        }
        // SAFETY: the other side says that there are `ndim` numbers.
        unsafe { std::slice::from_raw_parts(start, rank).to_vec() }
    };
    let shape: Shape = list(described.shape).into_iter().map(|dim| dim.max(0) as usize).collect();
    let strides: Strides = if described.strides.is_null() {
        shape.strides()
    } else {
        list(described.strides).into_iter().map(|stride| stride as isize).collect()
    };
    if strides.iter().any(|&stride| stride < 0) {
        return Err(PyBufferError::new_err("a tensor that runs backwards cannot be shared: copy it first"));
    }
    let last: usize = shape.iter().zip(&strides).map(|(&dim, &s)| dim.saturating_sub(1) * s as usize).sum();
    let bytes = if shape.is_empty() { 0 } else { (last + 1) * dtype.size() };
    let lent = Lent { foreign, bytes };
    let layout = Layout { shape, strides, offset: 0 };
    if bytes == 0 {
        let spec = taut_core::Spec::new(dtype, layout.shape);
        let line = taut::memory::Location::caller();
        let made = Tensor::build(spec, taut::memory::Category::Tensor, line, |_| {});
        return made.map_err(|error| exception(py, error));
    }
    if lent.as_ref().as_ptr().addr().is_multiple_of(8) {
        return Tensor::borrowed(dtype, layout, lent).map_err(|error| exception(py, error));
    }
    // At an odd address: its bytes, moved to a better one.
    let mut words = vec![0u64; bytes.div_ceil(8)];
    bytes_of(&mut words)[..bytes].copy_from_slice(lent.as_ref());
    let made = Tensor::borrowed(dtype, layout, Words(words)).and_then(|tensor| tensor.copy());
    made.map_err(|error| exception(py, error))
}

struct Words(Vec<u64>);

impl AsRef<[u8]> for Words {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: any bytes are bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 8) }
    }
}

fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are bytes, and any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Takes what is in a capsule, so that nobody else does.
fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let pointer = capsule.as_ptr();
    // SAFETY: every call checks what it is given; a capsule's name says what its pointer is.
    unsafe {
        for (name, used) in [(VERSIONED, USED_VERSIONED), (NAME, USED)] {
            if ffi::PyCapsule_IsValid(pointer, name.as_ptr()) != 1 {
                continue;
            }
            let content = ffi::PyCapsule_GetPointer(pointer, name.as_ptr());
            let foreign = if name == VERSIONED {
                let managed = content.cast::<Versioned>();
                if (*managed).version[0] > VERSION[0] {
                    return Err(PyBufferError::new_err("it speaks a later version of DLPack than we do"));
                }
                Foreign::Versioned(managed)
            } else {
                Foreign::Plain(content.cast())
            };
            if ffi::PyCapsule_SetName(pointer, used.as_ptr()) != 0 {
                std::mem::forget(foreign);
                return Err(PyErr::fetch(capsule.py()));
            }
            return Ok(foreign);
        }
    }
    Err(PyBufferError::new_err("no DLPack capsule, or one that somebody took already"))
}

/// A tensor over the memory of another engine's.
#[pyfunction]
pub fn from_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    crate::array::wrap(object.py(), import(object)?)
}
