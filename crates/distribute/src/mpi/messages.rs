//! Messages between ranks over MPI.
#![expect(unsafe_code, reason = "the C interface of MPI")]

use super::library::{Handle, Library, Status};
use super::search;
use crate::transport::Transport;
use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taut_core::{Error, ErrorKind, Result, warn};

/// The tags of messages of collectives, and of announcements.
const MESSAGE: c_int = 7411;
const ANNOUNCEMENT: c_int = 7412;
/// Tests before a waiting rank leaves its core to others.
const SPINS: u32 = 2000;
/// The time after which a waiting rank sleeps between tests.
const PATIENCE: Duration = Duration::from_millis(50);
const NAP: Duration = Duration::from_micros(200);

/// The transport over MPI.
pub(super) struct Mpi {
    library: Library,
    /// A communicator of our own: messages of other users of MPI do not get in between.
    communicator: Handle,
    rank: usize,
    size: usize,
    name: String,
    /// MPI is called by one thread at a time.
    lock: Mutex<()>,
    /// Whether MPI was started here, and not by mpi4py.
    is_owner: bool,
    announced: Vec<AtomicU64>,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi({}, rank {} of {})", self.name, self.rank, self.size)
    }
}

impl Mpi {
    pub(super) fn start(library: Library) -> Result<Mpi> {
        let calls = &library.functions;
        let (is_owner, mut ended, mut level) = (!library.is_initialized(), 0, 0);
        // SAFETY: this may be called at any time, and the output is a live local.
        unsafe { (calls.finalized)(&raw mut ended) };
        if ended != 0 {
            let message = format!("{} has been finalized and cannot be used again", library.path.display());
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        // SAFETY: MPI_Init_thread is called once, because MPI was not initialised; its arguments may be null.
        unsafe {
            if is_owner {
                (calls.init_thread)(ptr::null_mut(), ptr::null_mut(), library.multiple, &raw mut level);
            } else {
                (calls.query_thread)(&raw mut level);
            }
        }
        if level < library.serialized {
            let message = format!("MPI must allow calls from several threads, got level {level}");
            let help = "initialise it with MPI_THREAD_SERIALIZED or more, or let Taut initialise it";
            return Err(Error::new(ErrorKind::Unavailable, message).help(help));
        }
        let (mut communicator, mut rank, mut size): (Handle, c_int, c_int) = (0, 0, 0);
        // SAFETY: MPI is initialised; the handle has room for a pointer, and an `int` fills its lower half.
        unsafe {
            (calls.comm_dup)(library.world, &raw mut communicator);
            (calls.comm_rank)(communicator, &raw mut rank);
            (calls.comm_size)(communicator, &raw mut size);
        }
        let (rank, size) = (usize::try_from(rank).unwrap_or(0), usize::try_from(size).unwrap_or(1));
        check_launcher(&library, size)?;
        let name = library.version();
        let announced = (0..size).map(|_| AtomicU64::new(0)).collect();
        Ok(Mpi { library, communicator, rank, size, name, lock: Mutex::new(()), is_owner, announced })
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request is complete; then it is free.
    fn is_complete(&self, request: &mut Handle) -> Result<bool> {
        let (mut done, mut status) = (0, Status::new());
        let _lock = self.lock();
        // SAFETY: the request is active; the status has room for that of any ABI.
        let code =
            unsafe { (self.library.functions.test)(&raw mut *request, &raw mut done, &raw mut status) };
        check(code, "MPI_Test")?;
        Ok(done != 0)
    }

    /// Receives the announcements that have arrived.
    fn read_announcements(&self) {
        let calls = &self.library.functions;
        for (rank, last) in self.announced.iter().enumerate().filter(|(rank, _)| *rank != self.rank) {
            loop {
                let (mut found, mut status, mut number) = (0, Status::new(), 0u64);
                let _lock = self.lock();
                // SAFETY: outputs are live locals; the message has eight bytes and has arrived, so MPI_Recv does not wait.
                unsafe {
                    (calls.iprobe)(
                        rank as c_int,
                        ANNOUNCEMENT,
                        self.communicator,
                        &raw mut found,
                        &raw mut status,
                    );
                    if found == 0 {
                        break;
                    }
                    let (data, tag) = ((&raw mut number).cast(), ANNOUNCEMENT);
                    (calls.recv)(
                        data,
                        8,
                        self.library.byte,
                        rank as c_int,
                        tag,
                        self.communicator,
                        &raw mut status,
                    );
                }
                last.fetch_max(number, Ordering::Relaxed);
            }
        }
    }
}

/// A library that does not belong to the launcher sees one rank, and every process would train alone.
fn check_launcher(library: &Library, size: usize) -> Result<()> {
    let Some(launcher) = search::launcher() else { return Ok(()) };
    if launcher.ranks == size {
        return Ok(());
    }
    let message = format!(
        "{} started {} ranks, but {} ({}) sees {size}: it belongs to another MPI",
        launcher.name,
        launcher.ranks,
        library.version(),
        library.path.display()
    );
    let help =
        "start the ranks with the mpiexec of that library, keep one MPI per environment, or set TAUT_MPI";
    Err(Error::new(ErrorKind::Unavailable, message).help(help))
}

fn check(code: c_int, call: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unavailable, format!("{call} failed with code {code}")))
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn exchange(
        &self,
        mate: usize,
        send: &[u8],
        receive: &mut [u8],
        waiting: &mut dyn FnMut(Duration) -> Result<()>,
    ) -> Result<()> {
        let (calls, byte, mate) = (&self.library.functions, self.library.byte, mate as c_int);
        let (mut sent, mut received): (Handle, Handle) = (0, 0);
        let (mut sending, mut receiving) = (!send.is_empty(), !receive.is_empty());
        {
            let _lock = self.lock();
            let communicator = self.communicator;
            // SAFETY: both slices outlive the requests: this function returns when both are complete, and otherwise the group
            // calls `give_up`, which ends the process. Lengths are below 2^31: messages have at most 4 MiB.
            unsafe {
                if receiving {
                    let (data, length) = (receive.as_mut_ptr().cast(), receive.len() as c_int);
                    check(
                        (calls.irecv)(data, length, byte, mate, MESSAGE, communicator, &raw mut received),
                        "MPI_Irecv",
                    )?;
                }
                if sending {
                    let (data, length) = (send.as_ptr().cast(), send.len() as c_int);
                    check(
                        (calls.isend)(data, length, byte, mate, MESSAGE, communicator, &raw mut sent),
                        "MPI_Isend",
                    )?;
                }
            }
        }
        let (mut tests, mut start) = (0u32, None);
        loop {
            receiving = receiving && !self.is_complete(&mut received)?;
            sending = sending && !self.is_complete(&mut sent)?;
            if !receiving && !sending {
                return Ok(());
            }
            tests += 1;
            if tests < SPINS {
                std::hint::spin_loop();
                continue;
            }
            let start = *start.get_or_insert_with(Instant::now);
            let passed = start.elapsed();
            waiting(passed)?;
            if passed < PATIENCE { std::thread::yield_now() } else { std::thread::sleep(NAP) }
        }
    }

    fn announce(&self, number: u64) {
        for rank in (0..self.size).filter(|rank| *rank != self.rank) {
            // The number must outlive the message, which is not waited for: announcements are rare, and these bytes are not freed.
            let number: &'static u64 = Box::leak(Box::new(number));
            let (data, mut request): (_, Handle) = (ptr::from_ref(number).cast(), 0);
            let (calls, byte, tag) = (&self.library.functions, self.library.byte, ANNOUNCEMENT);
            let _lock = self.lock();
            // SAFETY: the bytes live for the rest of the process; the request is never read.
            unsafe { (calls.isend)(data, 8, byte, rank as c_int, tag, self.communicator, &raw mut request) };
        }
    }

    fn announced(&self, rank: usize) -> u64 {
        self.read_announcements();
        self.announced[rank].load(Ordering::Relaxed)
    }

    fn give_up(&self, error: Error) -> Error {
        // MPI may still read and write the memory of the exchange, and the other ranks wait for this one.
        warn(&format!("{error}"));
        self.abort(1)
    }

    fn finish(&self) {
        if self.is_owner {
            let _lock = self.lock();
            // SAFETY: MPI was initialised here, and every rank has come to its end.
            unsafe { (self.library.functions.finalize)() };
        }
    }

    fn abort(&self, code: i32) -> ! {
        // SAFETY: MPI is initialised. The lock is not taken: its holder may wait for a rank that never comes.
        unsafe { (self.library.functions.abort)(self.communicator, code) };
        std::process::exit(code)
    }
}
