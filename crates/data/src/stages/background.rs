//! Work done ahead, on threads: elements in their order, within a room.

use crate::dataset::Cursor;
use crate::item::{self, Item};
use crate::meter::{Input, Meter, add};
use crate::room::Room;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use taut_core::{Error, ErrorKind, Result, interrupt, is_checking_numerics, set_checking_numerics};

/// How long threads that are told to end are waited for. One that is in the middle of something longer ends after it, alone.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a stage with threads does to each element: its number counts from 0.
pub(crate) trait Work<T, U>: Fn(u64, T) -> Result<U> + Send + Sync + 'static {}

impl<T, U, F: Fn(u64, T) -> Result<U> + Send + Sync + 'static> Work<T, U> for F {}

/// A cursor whose elements are made ahead by threads. They are started by the first call of `next`, so that passing over
/// elements before it is the input's business.
pub(crate) struct Ahead<T, U, F> {
    input: Option<Input<T>>,
    /// Places passed over before the threads were started.
    passed: u64,
    work: Arc<F>,
    workers: usize,
    room: Room,
    meter: Arc<Meter>,
    running: Option<Running<T, U>>,
}

/// The threads and what they share. Dropping it ends them.
struct Running<T, U> {
    shared: Arc<Shared<T, U>>,
    threads: Vec<JoinHandle<()>>,
    /// The process whose threads they are: a fork of it has none of them.
    process: u32,
}

struct Shared<T, U> {
    /// Whoever holds this takes the next element: its number is the order in which it was held.
    input: Mutex<Input<T>>,
    state: Mutex<State<U>>,
    /// An element was delivered, or it is time to stop.
    space: Condvar,
    /// The element that is next was made, or there is no next one.
    ready: Condvar,
}

struct State<U> {
    /// From the next one to be delivered on; `None` is in the making.
    slots: VecDeque<Option<(Result<U>, usize)>>,
    /// Elements delivered: the number of the first slot.
    delivered: u64,
    /// Bytes of what was made.
    bytes: usize,
    /// Bytes that what is in the making is expected to take.
    reserved: usize,
    /// What the next element is expected to take.
    expected: usize,
    /// The input has no more.
    ended: bool,
    /// Nobody wants any more.
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
    Error::value(format!("a panic: {}", text.as_deref().unwrap_or("without a message")))
}

impl<T: Item, U: Item, F: Work<T, U>> Ahead<T, U, F> {
    pub(crate) fn new(input: Input<T>, work: Arc<F>, workers: usize, room: Room, meter: Arc<Meter>) -> Self {
        meter.workers.store(workers, Relaxed);
        meter.gauge(Some(room));
        Ahead { input: Some(input), passed: 0, work, workers, room, meter, running: None }
    }

    /// Starts the threads, once. `None` if they could not be started.
    fn running(&mut self) -> Result<Option<&Running<T, U>>> {
        if let Some(input) = self.input.take() {
            let state = State {
                slots: VecDeque::new(),
                delivered: self.passed,
                bytes: 0,
                reserved: 0,
                expected: 0,
                ended: false,
                stopped: false,
            };
            let (input, state) = (Mutex::new(input), Mutex::new(state));
            let shared = Arc::new(Shared { input, state, space: Condvar::new(), ready: Condvar::new() });
            let mut running = Running { shared, threads: Vec::new(), process: process::id() };
            for _ in 0..self.workers {
                let (shared, work, meter) = (running.shared.clone(), self.work.clone(), self.meter.clone());
                let (room, checking) = (self.room, is_checking_numerics());
                let spawned = thread::Builder::new().name("taut-data".to_owned()).spawn(move || {
                    set_checking_numerics(checking);
                    shared.work(&*work, room, &meter);
                });
                match spawned {
                    Ok(thread) => running.threads.push(thread),
                    // Fewer will do.
                    Err(_) if !running.threads.is_empty() => break,
                    Err(error) => return Err(Error::from(error).about("a thread for the dataset")),
                }
            }
            self.running = Some(running);
        }
        Ok(self.running.as_ref())
    }
}

impl<T: Item, U: Item> Shared<T, U> {
    /// What each thread does, until there is nothing left or nobody wants it.
    fn work<F: Work<T, U>>(&self, work: &F, room: Room, meter: &Meter) {
        while let Some((number, reserved, element)) = self.take(room, meter) {
            let start = Instant::now();
            let made = element.and_then(|element| {
                // What the closure may leave half changed is the user's, who is told of the panic.
                catch_unwind(AssertUnwindSafe(|| work(number, element)))
                    .unwrap_or_else(|cause| Err(panicked(cause).about(format_args!("element {number}"))))
            });
            add(&meter.worked, start);
            let bytes = made.as_ref().map_or(0, item::bytes);

            let mut state = lock(&self.state);
            state.reserved -= reserved;
            state.bytes += bytes;
            state.expected = bytes.max(state.expected - state.expected / 8);
            let index = (number - state.delivered) as usize;
            state.slots[index] = Some((made, bytes));
            meter.gauge(Some(room)).set(state.slots.len(), state.bytes);
            drop(state);
            if index == 0 {
                self.ready.notify_one();
            }
        }
        self.ready.notify_one();
    }

    /// Takes the next element from the input, once there is room for it: its number, the bytes set aside for it, itself.
    fn take(&self, room: Room, meter: &Meter) -> Option<(u64, usize, Result<T>)> {
        let mut input = lock(&self.input);
        let (number, reserved) = {
            let mut state = lock(&self.state);
            let start = Instant::now();
            let mut waited = false;
            while !state.stopped
                && !state.ended
                && !room.takes(state.slots.len(), state.bytes + state.reserved, state.expected)
            {
                waited = true;
                state = wait(&self.space, state);
            }
            if waited {
                add(&meter.blocked, start);
            }
            if state.stopped || state.ended {
                return None;
            }
            let reserved = state.expected;
            state.reserved += reserved;
            state.slots.push_back(None);
            (state.delivered + state.slots.len() as u64 - 1, reserved)
        };
        let (element, last) = match catch_unwind(AssertUnwindSafe(|| input.next())) {
            Ok(Ok(None)) => (None, true),
            // More of the same would follow, as fast as there is room for it.
            Ok(Err(error)) if input.is_stopped() => (Some(Err(error)), true),
            Ok(next) => (next.transpose(), false),
            // The input is in an unknown state: this is the last that is heard of it.
            Err(cause) => (Some(Err(panicked(cause))), true),
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

impl<T: Item, U: Item, F: Work<T, U>> Cursor<U> for Ahead<T, U, F> {
    fn next(&mut self) -> Result<Option<U>> {
        let (meter, room) = (self.meter.clone(), self.room);
        let Some(Running { shared, process, .. }) = self.running()? else {
            return Ok(None);
        };
        let mut state = lock(&shared.state);
        let (made, bytes) = loop {
            // One that is in the making keeps its place.
            match state.slots.pop_front() {
                Some(Some(made)) => break made,
                Some(None) => state.slots.push_front(None),
                None if state.ended => return Ok(None),
                None => {}
            }
            if process::id() != *process {
                let error = Error::new(
                    ErrorKind::Value,
                    "the threads that read ahead stayed with the process that was forked",
                );
                return Err(error.help("make the iterator in the process that uses it"));
            }
            // Whoever waits may be asked to stop.
            state = match shared.ready.wait_timeout(state, interrupt::MIN_INTERVAL) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            interrupt::poll()?;
        };
        state.bytes -= bytes;
        state.delivered += 1;
        meter.gauge(Some(room)).set(state.slots.len(), state.bytes);
        // A thread that waits for room is woken for several elements, not for each.
        let wakes = match room {
            Room::Elements(most) => state.slots.len() <= most / 2,
            Room::Bytes(_) => true,
        };
        drop(state);
        if wakes {
            shared.space.notify_one();
        }
        made.map(Some)
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        let Some(input) = &mut self.input else {
            return Ok(None);
        };
        let passed = input.skip(count)?;
        self.passed += passed;
        Ok(Some(passed))
    }
}

impl<T, U> Drop for Running<T, U> {
    fn drop(&mut self) {
        if process::id() != self.process {
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        lock(&self.shared.state).stopped = true;
        self.shared.space.notify_all();
        let (start, mut pause) = (Instant::now(), Duration::from_micros(10));
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && start.elapsed() < PATIENCE {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            if thread.is_finished() {
                // Panics were caught where they happened.
                let _ = thread.join();
            }
        }
    }
}
