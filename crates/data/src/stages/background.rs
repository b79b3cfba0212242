//! Background threads that compute elements ahead of the consumer, in order, within a buffer size.

use crate::buffer_size::BufferSize;
use crate::counters::{StageCounters, StageInput, add};
use crate::dataset::Cursor;
use crate::element::{self, DatasetElement};
use crate::iter::check_reserve;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use taut_core::{Error, ErrorKind, Result, interrupt, is_checking_numerics, set_checking_numerics};
use taut_memory::list_with_capacity;

/// The most time that the consumer waits for threads to end. A thread that is busy for longer ends on its own.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Address space that must be there for a further thread.
const THREAD_BYTES: usize = 16 << 20;

/// Called on each thread that a stage starts, with its number and the number of the stage's threads.
pub type WorkerStartHook = fn(usize, usize);

static WORKER_START_HOOK: OnceLock<WorkerStartHook> = OnceLock::new();

/// Sets a function that is called on each thread that a stage starts, for example to move the thread to a core of its own. The first
/// one stays.
pub fn set_worker_start_hook(hook: WorkerStartHook) {
    let _ = WORKER_START_HOOK.set(hook);
}

/// The function that the threads of a stage apply to each element, with its index.
pub(crate) trait ElementWork<T, U>: Fn(u64, T) -> Result<U> + Send + Sync + 'static {}

impl<T, U, F: Fn(u64, T) -> Result<U> + Send + Sync + 'static> ElementWork<T, U> for F {}

/// A cursor whose elements are computed ahead by threads. The first call of `next` starts them, so that skipping before it
/// is delegated to the input.
pub(crate) struct BackgroundCursor<T, U, F> {
    input: Option<StageInput<T>>,
    /// Elements skipped before the threads were started.
    skipped: u64,
    /// The elements that the consumer has announced to take next.
    announced: usize,
    work: Arc<F>,
    workers: usize,
    buffer_size: BufferSize,
    counters: Arc<StageCounters>,
    running: Option<WorkerThreads<T, U>>,
}

/// The threads and their queue. Dropping it ends them.
struct WorkerThreads<T, U> {
    shared: Arc<SharedQueue<T, U>>,
    threads: Vec<JoinHandle<()>>,
    /// The process that started the threads: a fork of it does not have them.
    process: u32,
}

struct SharedQueue<T, U> {
    /// A thread holds this while it takes the next element and its index, so that indices are in order.
    input: Mutex<StageInput<T>>,
    state: Mutex<QueueState<U>>,
    /// Signalled when an element was delivered, or the threads must stop.
    space: Condvar,
    /// Signalled when the next element is ready, or there is no next one.
    ready: Condvar,
}

struct QueueState<U> {
    /// Elements in order, from the next to be delivered on, with their bytes; `None` while one is being computed.
    slots: VecDeque<Option<(Result<U>, usize)>>,
    /// Elements delivered: the index of the first slot.
    delivered: u64,
    /// Bytes of the finished elements.
    bytes: usize,
    /// Expected bytes of the elements being computed.
    reserved: usize,
    /// Expected bytes of the next element.
    expected: usize,
    /// The elements that the consumer waits for, from the next on; 0 if it does not wait.
    awaited: usize,
    /// Slots that failed for want of memory. No further element is computed until they were delivered: each would be such an error.
    refused: usize,
    /// The input has ended.
    ended: bool,
    /// The consumer was dropped.
    stopped: bool,
}

fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, S>(condition: &Condvar, guard: MutexGuard<'a, S>) -> MutexGuard<'a, S> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// A panic as an error.
#[cold]
fn panicked(cause: Box<dyn Any + Send>) -> Error {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
    Error::value(format!("the function panicked: {}", text.as_deref().unwrap_or("no message")))
}

impl<T: DatasetElement, U: DatasetElement, F: ElementWork<T, U>> BackgroundCursor<T, U, F> {
    pub(crate) fn new(
        input: StageInput<T>,
        work: Arc<F>,
        workers: usize,
        buffer_size: BufferSize,
        counters: Arc<StageCounters>,
    ) -> Self {
        counters.workers.store(workers, Relaxed);
        counters.buffer_counters(Some(buffer_size));
        BackgroundCursor {
            input: Some(input),
            skipped: 0,
            announced: 1,
            work,
            workers,
            buffer_size,
            counters,
            running: None,
        }
    }

    /// Starts the threads at the first call. `None` if an earlier call failed to start them.
    fn running(&mut self) -> Result<Option<&WorkerThreads<T, U>>> {
        if let Some(input) = self.input.take() {
            let state = QueueState {
                slots: VecDeque::new(),
                delivered: self.skipped,
                bytes: 0,
                reserved: 0,
                expected: 0,
                awaited: 0,
                refused: 0,
                ended: false,
                stopped: false,
            };
            let (input, state) = (Mutex::new(input), Mutex::new(state));
            let shared = Arc::new(SharedQueue { input, state, space: Condvar::new(), ready: Condvar::new() });
            let mut running = WorkerThreads { shared, threads: Vec::new(), process: process::id() };
            for index in 0..self.workers {
                // A thread that finds no memory for its stack and its locals may end the process.
                if !running.threads.is_empty() && list_with_capacity::<u8>(THREAD_BYTES).is_err() {
                    break;
                }
                let (shared, work, counters) =
                    (running.shared.clone(), self.work.clone(), self.counters.clone());
                let (buffer_size, checking, workers) =
                    (self.buffer_size, is_checking_numerics(), self.workers);
                let spawned = thread::Builder::new().name("taut-data".to_owned()).spawn(move || {
                    set_checking_numerics(checking);
                    if let Some(hook) = WORKER_START_HOOK.get() {
                        hook(index, workers);
                    }
                    shared.work(&*work, buffer_size, &counters);
                });
                match spawned {
                    Ok(thread) => running.threads.push(thread),
                    // Continue with fewer threads.
                    Err(_) if !running.threads.is_empty() => break,
                    Err(error) => return Err(Error::from(error).about("starting a thread of the dataset")),
                }
            }
            self.running = Some(running);
        }
        Ok(self.running.as_ref())
    }
}

impl<U> QueueState<U> {
    /// Whether a further element may be computed.
    fn has_space(&mut self, buffer_size: BufferSize) -> bool {
        self.refused == 0
            && buffer_size.has_space(self.slots.len(), self.bytes + self.reserved, self.expected)
            && (self.slots.is_empty() || self.slots.try_reserve(1).is_ok())
    }

    /// Whether the elements that the consumer waits for are finished, or as many as there will be: the input has ended, or no further
    /// element is computed since memory did not suffice.
    fn has_awaited(&self) -> bool {
        let is_last = self.ended || self.refused > 0;
        let count = if is_last { self.awaited.min(self.slots.len()) } else { self.awaited };
        self.slots.len() >= count && self.slots.iter().take(count).all(Option::is_some)
    }
}

fn is_refused<U>(made: &Result<U>) -> bool {
    made.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory)
}

impl<T: DatasetElement, U: DatasetElement> SharedQueue<T, U> {
    /// The loop of each thread, until the input ends or the consumer is dropped.
    fn work<F: ElementWork<T, U>>(&self, work: &F, buffer_size: BufferSize, counters: &StageCounters) {
        while let Some((number, reserved, element)) = self.take(buffer_size, counters) {
            let start = Instant::now();
            let made = element.and_then(|element| {
                // Unwind safety: state of the closure that the panic leaves inconsistent is the user's, who gets the error.
                catch_unwind(AssertUnwindSafe(|| work(number, element)))
                    .unwrap_or_else(|cause| Err(panicked(cause).about(format_args!("element {number}"))))
            });
            add(&counters.worked, start);
            let bytes = made.as_ref().map_or(0, element::bytes);

            let mut state = lock(&self.state);
            state.reserved -= reserved;
            state.bytes += bytes;
            state.expected = bytes.max(state.expected - state.expected / 8);
            state.refused += usize::from(is_refused(&made));
            let index = (number - state.delivered) as usize;
            state.slots[index] = Some((made, bytes));
            counters.buffer_counters(Some(buffer_size)).set(state.slots.len(), state.bytes);
            let wakes = state.awaited > 0 && state.has_awaited();
            drop(state);
            if wakes {
                self.ready.notify_one();
            }
        }
        self.ready.notify_one();
    }

    /// Takes the next element of the input once the buffer has space for it: its index, the bytes reserved for it, and it.
    fn take(&self, buffer_size: BufferSize, counters: &StageCounters) -> Option<(u64, usize, Result<T>)> {
        let mut input = lock(&self.input);
        let (number, reserved) = {
            let mut state = lock(&self.state);
            let start = Instant::now();
            let mut waited = false;
            while !state.stopped && !state.ended && !state.has_space(buffer_size) {
                waited = true;
                state = wait(&self.space, state);
            }
            if waited {
                add(&counters.blocked, start);
            }
            if state.stopped || state.ended {
                return None;
            }
            let reserved = state.expected;
            state.reserved += reserved;
            state.slots.push_back(None);
            (state.delivered + state.slots.len() as u64 - 1, reserved)
        };
        let (element, last) = match check_reserve() {
            Ok(()) => match catch_unwind(AssertUnwindSafe(|| input.next())) {
                Ok(Ok(None)) => (None, true),
                // The iterator was dropped: every further call would return the same error.
                Ok(Err(error)) if input.is_stopped() => (Some(Err(error)), true),
                Ok(next) => (next.transpose(), false),
                // The input may be inconsistent after a panic, and is not called again.
                Err(cause) => (Some(Err(panicked(cause))), true),
            },
            // Elements that are views have no buffer whose allocation would fail. The iterator ends with this error, and others
            // behind it would only take the rest of the reserve.
            Err(error) => (Some(Err(error)), true),
        };
        if last {
            let mut state = lock(&self.state);
            state.ended = true;
            if element.is_none() {
                state.reserved -= reserved;
                state.slots.pop_back();
            }
            drop(state);
            self.ready.notify_one();
            self.space.notify_all();
        }
        element.map(|element| (number, reserved, element))
    }
}

impl<T: DatasetElement, U: DatasetElement, F: ElementWork<T, U>> Cursor<U> for BackgroundCursor<T, U, F> {
    fn next(&mut self) -> Result<Option<U>> {
        let (counters, buffer_size) = (self.counters.clone(), self.buffer_size);
        // Half of the buffer: the threads go on while the consumer takes it.
        let awaited = match buffer_size {
            BufferSize::Elements(most) => {
                std::mem::replace(&mut self.announced, 1).clamp(1, (most / 2).max(1))
            }
            BufferSize::Bytes(_) => 1,
        };
        let Some(WorkerThreads { shared, process, .. }) = self.running()? else {
            return Ok(None);
        };
        let mut state = lock(&shared.state);
        // An element that is finished is taken without waiting for others.
        if !matches!(state.slots.front(), Some(Some(_))) {
            state.awaited = awaited;
            while !state.has_awaited() {
                if process::id() != *process {
                    let message = "a dataset iterator with threads must not be used in a forked process";
                    let error = Error::new(ErrorKind::Value, message);
                    return Err(error.help("create the iterator in the process that uses it"));
                }
                // Wake up regularly to check for interrupts.
                state = match shared.ready.wait_timeout(state, interrupt::MIN_INTERVAL) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                };
                interrupt::poll()?;
            }
            state.awaited = 0;
        }
        let Some((made, bytes)) = state.slots.pop_front().flatten() else { return Ok(None) };
        state.bytes -= bytes;
        state.delivered += 1;
        let refused = is_refused(&made);
        state.refused -= usize::from(refused);
        counters.buffer_counters(Some(buffer_size)).set(state.slots.len(), state.bytes);
        // A thread that waits for space is woken for several elements at once, not for each.
        let wakes = match buffer_size {
            BufferSize::Elements(most) => refused || state.slots.len() <= most / 2,
            BufferSize::Bytes(_) => true,
        };
        drop(state);
        if wakes {
            shared.space.notify_one();
        }
        made.map(Some)
    }

    fn expect(&mut self, count: usize) {
        self.announced = count;
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        let Some(input) = &mut self.input else {
            return Ok(None);
        };
        let skipped = input.skip(count)?;
        self.skipped += skipped;
        Ok(Some(skipped))
    }
}

impl<T, U> Drop for WorkerThreads<T, U> {
    fn drop(&mut self) {
        if process::id() != self.process {
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        lock(&self.shared.state).stopped = true;
        self.shared.space.notify_all();
        let (start, mut pause) = (Instant::now(), Duration::from_micros(10));
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && start.elapsed() < JOIN_TIMEOUT {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            if thread.is_finished() {
                // Panics are caught inside the thread.
                let _ = thread.join();
            }
        }
    }
}
