//! Ranks that are threads of one process, for tests.

use crate::transport::Transport;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taut_core::{Error, ErrorKind, Result};

/// The longest time without a look at the clock.
const SLICE: Duration = Duration::from_millis(5);

/// A transport between threads of one process: every rank is a thread, and a message is a copy in memory.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    shared: Arc<Mailboxes>,
}

#[derive(Debug)]
struct Mailboxes {
    ranks: usize,
    /// Messages from rank `a` to rank `b`, at `a * ranks + b`.
    boxes: Vec<Mutex<VecDeque<Vec<u8>>>>,
    arrived: Vec<Condvar>,
    announced: Vec<AtomicU64>,
    /// Exchanges until one fails, counted over all ranks; negative if none does.
    exchanges_left: AtomicI64,
}

impl Threads {
    /// One transport per rank, to be used by one thread each.
    pub fn of(ranks: usize) -> Vec<Threads> {
        Threads::failing(ranks, -1)
    }

    /// As [`Threads::of`]; the exchange of this number, counted over all ranks from 0, fails.
    pub fn failing(ranks: usize, exchange: i64) -> Vec<Threads> {
        let shared = Arc::new(Mailboxes {
            ranks,
            boxes: (0..ranks * ranks).map(|_| Mutex::default()).collect(),
            arrived: (0..ranks * ranks).map(|_| Condvar::new()).collect(),
            announced: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
            exchanges_left: AtomicI64::new(exchange),
        });
        (0..ranks).map(|rank| Threads { rank, shared: shared.clone() }).collect()
    }

    fn lock(&self, at: usize) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.shared.boxes[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.ranks
    }

    fn name(&self) -> String {
        "threads".to_owned()
    }

    fn exchange(
        &self,
        mate: usize,
        send: &[u8],
        receive: &mut [u8],
        waiting: &mut dyn FnMut(Duration) -> Result<()>,
    ) -> Result<()> {
        if self.shared.exchanges_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(Error::new(ErrorKind::Unavailable, "the connection was lost"));
        }
        if !send.is_empty() {
            let at = self.rank * self.shared.ranks + mate;
            self.lock(at).push_back(send.to_vec());
            self.shared.arrived[at].notify_all();
        }
        if receive.is_empty() {
            return Ok(());
        }
        let (at, start) = (mate * self.shared.ranks + self.rank, Instant::now());
        let mut messages = self.lock(at);
        loop {
            if let Some(message) = messages.pop_front() {
                let Some(room) = receive.get_mut(..message.len()) else {
                    let message = format!("expected at most {} bytes, got {}", receive.len(), message.len());
                    return Err(Error::new(ErrorKind::Unavailable, message));
                };
                room.copy_from_slice(&message);
                return Ok(());
            }
            let waited = self.shared.arrived[at].wait_timeout(messages, SLICE);
            messages = waited.unwrap_or_else(PoisonError::into_inner).0;
            waiting(start.elapsed())?;
        }
    }

    fn announce(&self, number: u64) {
        self.shared.announced[self.rank].store(number, Ordering::Relaxed);
    }

    fn announced(&self, rank: usize) -> u64 {
        self.shared.announced[rank].load(Ordering::Relaxed)
    }

    fn finish(&self) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
