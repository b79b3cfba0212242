//! A group of ranks that compute together.

use crate::transport::{Paper, Transport};
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taut_core::{DType, Error, ErrorKind, Result, interrupt};
use taut_memory::Location;

/// The time after which a rank that does not come is given up.
const TIMEOUT: Duration = Duration::from_mins(5);
/// The part of that time after which waiting ranks say where they are.
const ANNOUNCED_AFTER: u32 = 10;
/// Bytes of the header of the first message between two ranks in a collective.
const HEADER: usize = 32;
/// The most bytes that this message carries beside its header.
pub(crate) const INLINE: usize = 4096;
/// Bytes of the text in which ranks say what they are doing, when they differ.
const TEXT: usize = 320;

/// Ranks that compute together: some or all of the ranks of a transport. A clone is another handle to the same group.
///
/// A rank is one process with one copy of the model. All ranks of a group must call the same collectives in the same order; ranks
/// compare what they call, and a difference is an error that names both lines.
#[derive(Clone)]
pub struct Group(Arc<Members>);

struct Members {
    transport: Arc<dyn Transport>,
    /// The ranks of the transport that are in the group.
    ranks: Vec<usize>,
    index: usize,
    /// Distinguishes groups of the same transport.
    id: u64,
    timeout: AtomicU64,
    state: Mutex<GroupState>,
}

#[derive(Default)]
struct GroupState {
    /// Collectives so far.
    calls: u64,
    /// The message of the first collective that failed.
    failed: Option<String>,
}

/// What a collective is, as far as all ranks must agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    /// The name, with what is not a tensor: `all_reduce sum`.
    pub(crate) name: &'static str,
    pub(crate) dtype: DType,
    pub(crate) elements: usize,
    /// Anything else that must be equal.
    pub(crate) detail: u64,
    /// The line that called it.
    pub(crate) at: Location,
}

impl CallInfo {
    fn digest(&self, group: u64) -> u64 {
        let mut digest = Digest::default();
        digest.bytes(self.name.as_bytes());
        let words = [self.dtype as u64, self.elements as u64, self.detail, group];
        words.iter().for_each(|word| digest.word(*word));
        digest.value()
    }
}

impl fmt::Display for CallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements == 0 {
            return write!(f, "{} at {}", self.name, self.at);
        }
        write!(f, "{} of {} x {} at {}", self.name, self.elements, self.dtype, self.at)
    }
}

/// A hash of words and bytes that is the same on every rank (FNV-1a on 64-bit words).
#[derive(Clone, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a word.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
        // Multiplication moves bits up only.
        self.0 ^= self.0 >> 29;
    }

    /// Adds bytes and their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.word(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    /// The hash.
    pub fn value(&self) -> u64 {
        self.0
    }
}

impl Group {
    /// All ranks of a transport.
    pub fn of(transport: impl Transport + 'static) -> Result<Group> {
        let ranks = transport.size();
        if ranks == 0 {
            return Err(Error::value("ranks must be >= 1, got 0"));
        }
        let (ranks, index) = ((0..ranks).collect(), transport.rank());
        Ok(Group::with(Arc::new(transport), ranks, index, 0))
    }

    /// A group of `ranks` ranks that plans and cannot run: [`Paper`].
    #[track_caller]
    pub fn paper(ranks: usize) -> Result<Group> {
        Group::of(Paper::of(ranks)).map_err(|error| error.at(Location::caller()))
    }

    fn with(transport: Arc<dyn Transport>, ranks: Vec<usize>, index: usize, id: u64) -> Group {
        let timeout = AtomicU64::new(TIMEOUT.as_millis() as u64);
        Group(Arc::new(Members { transport, ranks, index, id, timeout, state: Mutex::default() }))
    }

    /// The group of some ranks of this one, for those ranks; `None` for the others. All ranks must give the same list.
    #[track_caller]
    pub fn subgroup(&self, ranks: &[usize]) -> Result<Option<Group>> {
        let size = self.size();
        let mut digest = Digest::default();
        digest.word(self.0.id);
        for (i, &rank) in ranks.iter().enumerate() {
            if rank >= size || ranks[..i].contains(&rank) {
                let message = format!("ranks must be distinct and in [0, {size}), got {ranks:?}");
                return Err(Error::value(message).at(Location::caller()));
            }
            digest.word(rank as u64);
        }
        let Some(index) = ranks.iter().position(|&rank| rank == self.rank()) else { return Ok(None) };
        let members = ranks.iter().map(|&rank| self.0.ranks[rank]).collect();
        Ok(Some(Group::with(self.0.transport.clone(), members, index, digest.value())))
    }

    /// The number of this rank in the group, from 0.
    pub fn rank(&self) -> usize {
        self.0.index
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.0.ranks.len()
    }

    /// What carries the bytes: `MPICH 5.0.2 (standard ABI)`.
    pub fn transport(&self) -> String {
        self.0.transport.name()
    }

    /// Waits at most this long for another rank. Default: 5 minutes.
    pub fn set_timeout(&self, timeout: Duration) {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.0.timeout.store(millis.max(1), Ordering::Relaxed);
    }

    /// The time after which a rank that does not come is an error.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.0.timeout.load(Ordering::Relaxed))
    }

    /// Whether a collective of this group has failed: then every later one is refused, because ranks may differ.
    pub fn has_failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// Whether two handles are of the same group.
    pub fn is(&self, other: &Group) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Ends all ranks of the job at once, with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.0.transport.abort(code)
    }

    /// Waits until every rank has come to its end, and closes the transport. A rank that is in another collective meanwhile
    /// gets an error, and so does this one.
    #[track_caller]
    pub fn finish(&self) -> Result<()> {
        let at = Location::caller();
        self.barrier_as("the end of the program", at).map_err(|error| error.at(at))?;
        self.0.transport.finish();
        Ok(())
    }

    /// Waits until every rank has come here.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let at = Location::caller();
        self.barrier_as("barrier", at).map_err(|error| error.at(at))
    }

    fn state(&self) -> MutexGuard<'_, GroupState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a collective: one at a time per group.
    pub(crate) fn begin(&self, call: CallInfo) -> Result<Session<'_>> {
        self.begin_as(call, version())
    }

    fn begin_as(&self, call: CallInfo, version: u64) -> Result<Session<'_>> {
        let mut state = self.state();
        if let Some(failed) = &state.failed {
            let message =
                format!("collectives after a failed one are refused, because ranks may differ: {failed}");
            return Err(Error::new(ErrorKind::Unavailable, message)
                .help("restart the job and resume from a checkpoint"));
        }
        state.calls += 1;
        let mut header = [0; HEADER];
        let words = [version, state.calls, call.digest(self.0.id), call.elements as u64];
        for (room, word) in header.chunks_exact_mut(8).zip(words) {
            room.copy_from_slice(&word.to_le_bytes());
        }
        Ok(Session { group: &self.0, state, call, header, announced: false })
    }
}

/// Changes with the messages that ranks exchange, and with the version.
fn version() -> u64 {
    let mut digest = Digest::default();
    digest.bytes(env!("CARGO_PKG_VERSION").as_bytes());
    digest.word(u64::from(cfg!(target_endian = "big")));
    digest.value()
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(rank {} of {}, {})", self.rank(), self.size(), self.transport())
    }
}

/// A collective in progress. Ranks are numbered within the group.
pub(crate) struct Session<'a> {
    group: &'a Members,
    state: MutexGuard<'a, GroupState>,
    call: CallInfo,
    header: [u8; HEADER],
    announced: bool,
}

impl Session<'_> {
    pub(crate) fn rank(&self) -> usize {
        self.group.index
    }

    pub(crate) fn size(&self) -> usize {
        self.group.ranks.len()
    }

    /// The first message to another rank in a collective: the header, by which both see whether they are in the same collective,
    /// and up to [`INLINE`] bytes. `receive` has the length of what the other one sends beside its header.
    pub(crate) fn greet(&mut self, mate: usize, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let (mut out, mut back) = ([0; HEADER + INLINE], [0; HEADER + INLINE]);
        out[..HEADER].copy_from_slice(&self.header);
        out[HEADER..HEADER + send.len()].copy_from_slice(send);
        self.exchange(mate, &out[..HEADER + send.len()], &mut back)?;
        if back[..HEADER] != self.header {
            let theirs: [u8; HEADER] = back[..HEADER].try_into().unwrap_or_default();
            return Err(self.mismatch(mate, theirs));
        }
        receive.copy_from_slice(&back[HEADER..HEADER + receive.len()]);
        Ok(())
    }

    /// A message after [`Session::greet`].
    pub(crate) fn exchange(&mut self, mate: usize, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let group = self.group;
        let timeout = Duration::from_millis(group.timeout.load(Ordering::Relaxed));
        let calls = self.state.calls;
        let announced = &mut self.announced;
        let mut timed_out = false;
        let mut waiting = |passed: Duration| {
            if passed >= timeout {
                timed_out = true;
                return Err(Error::new(ErrorKind::Unavailable, String::new()));
            }
            // Numbers are those of the group of all ranks: other groups count by themselves.
            if group.id == 0 && passed >= timeout / ANNOUNCED_AFTER && !std::mem::replace(announced, true) {
                group.transport.announce(calls);
            }
            interrupt::poll()
        };
        match group.transport.exchange(group.ranks[mate], send, receive, &mut waiting) {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = if timed_out { self.missing(mate, timeout) } else { error };
                let error = self.fail(error);
                // The transport may still read and write the memory of the exchange.
                Err(group.transport.give_up(error))
            }
        }
    }

    /// Remembers a failure: ranks may differ from now on.
    fn fail(&mut self, error: Error) -> Error {
        let error = error.about(format_args!("rank {}, {}", self.group.index, self.call));
        self.state.failed = Some(error.message().to_owned());
        error
    }

    fn missing(&self, mate: usize, timeout: Duration) -> Error {
        let ranks = &self.group.ranks;
        let late = |&rank: &usize| {
            rank != self.group.index && self.group.transport.announced(ranks[rank]) < self.state.calls
        };
        let mut missing: Vec<usize> =
            if self.group.id == 0 { (0..ranks.len()).filter(late).collect() } else { vec![mate] };
        if missing.is_empty() {
            missing.push(mate);
        }
        let plural = if missing.len() == 1 { "rank" } else { "ranks" };
        let list = missing.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let message =
            format!("waited {:.1} s for {plural} {list}, which did not come", timeout.as_secs_f64());
        Error::new(ErrorKind::Unavailable, message)
            .help("look for an error, an endless loop or a longer input on these ranks; Group::set_timeout changes the time")
    }

    /// The error of two ranks that are in different collectives. Both see it, so both tell each other what they do.
    fn mismatch(&mut self, mate: usize, theirs: [u8; HEADER]) -> Error {
        let mut text = [b' '; TEXT];
        let mut own = String::new();
        let _ = write!(own, "{}, version {}", self.call, env!("CARGO_PKG_VERSION"));
        let length = own.len().min(TEXT);
        text[..length].copy_from_slice(&own.as_bytes()[..length]);
        let mut other = [b' '; TEXT];
        if let Err(error) = self.exchange(mate, &text, &mut other) {
            return error;
        }
        let word = |header: &[u8; HEADER], i: usize| header[8 * i..8 * i + 8].to_owned();
        let other = String::from_utf8_lossy(&other).trim_end().to_owned();
        let what = if word(&theirs, 0) == word(&self.header, 0) {
            "call the same collectives in the same order"
        } else {
            "run the same version"
        };
        let message = format!(
            "all ranks must {what}, got {own} on rank {}, and {other} on rank {mate}",
            self.group.index
        );
        self.fail(
            Error::new(ErrorKind::Unavailable, message)
                .help("conditions on the rank must not enclose collectives, and every rank needs the same model and batch count"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;

    #[test]
    fn ranks_of_different_versions_are_refused() {
        let ranks = Threads::of(2).into_iter().enumerate().map(|(rank, transport)| {
            std::thread::spawn(move || {
                let group = Group::of(transport).unwrap();
                let at = Location::caller();
                let call = CallInfo { name: "barrier", dtype: DType::U8, elements: 0, detail: 0, at };
                let mut session = group.begin_as(call, version() + rank as u64).unwrap();
                session.greet(1 - rank, &[], &mut []).unwrap_err().message().to_owned()
            })
        });
        for rank in ranks.collect::<Vec<_>>() {
            let message = rank.join().unwrap();
            assert!(message.contains("all ranks must run the same version, got barrier at"), "{message}");
            assert!(message.contains(env!("CARGO_PKG_VERSION")), "{message}");
        }
    }
}
