//! The functions of an MPI library, and the constants of the three ABIs.
#![expect(unsafe_code, reason = "the C interface of MPI")]

use super::missing;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use taut_core::Result;

/// A handle of MPI: an `int` in MPICH, a pointer in the other ABIs. An `int` is the lower half of the register, on the 64-bit
/// little-endian targets that are supported.
pub(super) type Handle = usize;

/// Which constants a library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// That of MPI 5.
    Standard,
    Mpich,
    OpenMpi,
}

/// Declares the table of functions and loads it.
macro_rules! functions {
    ($($field:ident: $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions that are used. All return an error code; MPI's default is to end the job on an error.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            fn load(library: *mut c_void) -> Option<Functions> {
                Some(Functions {$(
                    $field: {
                        let address = symbol(library, $symbol)?;
                        // SAFETY: the symbol is MPI's function of this name, whose parameters the standard fixes up to the width of handles.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(address) }
                    },
                )*})
            }
        }
    };
}

functions! {
    initialized: c"MPI_Initialized" (*mut c_int);
    init_thread: c"MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    query_thread: c"MPI_Query_thread" (*mut c_int);
    comm_dup: c"MPI_Comm_dup" (Handle, *mut Handle);
    comm_rank: c"MPI_Comm_rank" (Handle, *mut c_int);
    comm_size: c"MPI_Comm_size" (Handle, *mut c_int);
    isend: c"MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv: c"MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    test: c"MPI_Test" (*mut Handle, *mut c_int, *mut Status);
    iprobe: c"MPI_Iprobe" (c_int, c_int, Handle, *mut c_int, *mut Status);
    recv: c"MPI_Recv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Status);
    abort: c"MPI_Abort" (Handle, c_int);
    finalize: c"MPI_Finalize" ();
    finalized: c"MPI_Finalized" (*mut c_int);
    library_version: c"MPI_Get_library_version" (*mut c_char, *mut c_int);
}

/// Room for the status of any ABI, which is not read.
#[repr(C, align(16))]
pub(super) struct Status([u8; 128]);

impl Status {
    pub(super) fn new() -> Status {
        Status([0; 128])
    }
}

/// An open MPI library. It is never closed.
pub(super) struct Library {
    pub(super) functions: Functions,
    pub(super) abi: Abi,
    pub(super) path: PathBuf,
    pub(super) world: Handle,
    pub(super) byte: Handle,
    /// The constants `MPI_THREAD_SERIALIZED` and `MPI_THREAD_MULTIPLE`.
    pub(super) serialized: c_int,
    pub(super) multiple: c_int,
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `library` is a handle from `dlopen` that is never closed, and the name ends with NUL.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Library {
    /// Opens a library, by its path, or by its name where the system looks.
    pub(super) fn open(path: &Path) -> Result<Library> {
        Library::with_flags(path, libc::RTLD_NOW | libc::RTLD_GLOBAL).ok_or_else(|| {
            missing(format!("{} cannot be opened as an MPI library{}", path.display(), reason()))
        })
    }

    /// The library of this name, if the process has loaded it.
    pub(super) fn loaded(name: &Path) -> Option<Library> {
        Library::with_flags(name, libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NOLOAD)
    }

    fn with_flags(path: &Path, flags: c_int) -> Option<Library> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the name ends with NUL; the initialisers of an MPI library may run at any time.
        let library = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if library.is_null() {
            return None;
        }
        let functions = Functions::load(library)?;
        let open_mpi = symbol(library, c"ompi_mpi_comm_world").zip(symbol(library, c"ompi_mpi_byte"));
        let is_standard = path.file_name()?.to_string_lossy().contains("mpi_abi");
        let (abi, world, byte) = match open_mpi {
            _ if is_standard => (Abi::Standard, 0x101, 0x247),
            Some((world, byte)) => (Abi::OpenMpi, world as usize, byte as usize),
            None => (Abi::Mpich, 0x4400_0000, 0x4c00_010d),
        };
        let (serialized, multiple) = if abi == Abi::Standard { (2048, 4096) } else { (2, 3) };
        let path = path.to_owned();
        Some(Library { functions, abi, path, world, byte, serialized, multiple })
    }

    /// Whether this process has started it: here, or through mpi4py.
    pub(super) fn is_initialized(&self) -> bool {
        let mut started = 0;
        // SAFETY: this may be called at any time, and the output is a live local.
        unsafe { (self.functions.initialized)(&raw mut started) };
        started != 0
    }

    /// The library's own name and version: the first line of what it says.
    pub(super) fn version(&self) -> String {
        let (mut text, mut length) = (vec![0u8; 8192], 0);
        // SAFETY: the buffer has MPI_MAX_LIBRARY_VERSION_STRING bytes of every ABI; this may be called before MPI_Init.
        unsafe { (self.functions.library_version)(text.as_mut_ptr().cast(), &raw mut length) };
        text.truncate(usize::try_from(length).unwrap_or(0));
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().next().unwrap_or_default().replace('\t', " ");
        let name = line.split(", package").next().unwrap_or_default().trim_end_matches('\0');
        let abi = if self.abi == Abi::Standard { " (standard ABI)" } else { "" };
        format!("{}{abi}", name.split_whitespace().collect::<Vec<_>>().join(" ").replace(" Version: ", " "))
    }
}

/// What the system says about the last library that it could not open.
fn reason() -> String {
    // SAFETY: `dlerror` returns null or a string that is valid until the next call of this thread.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
    };
    text.map(|text| format!(": {text}")).unwrap_or_default()
}
