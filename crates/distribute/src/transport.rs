//! What carries bytes between ranks: the [`Transport`] trait, and [`Paper`], which carries none.

use std::fmt;
use std::time::Duration;
use taut_core::{Error, ErrorKind, Result};

/// Carries bytes between the ranks of a job. It knows no tensors and adds nothing up.
///
/// Messages between two ranks arrive in the order in which they were sent.
pub trait Transport: fmt::Debug + Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Its name in messages: `MPICH 5.0.2 (standard ABI)`.
    fn name(&self) -> String;

    /// Sends to a rank and receives from it at the same time. An empty `send` is not sent, and nothing is received into an empty
    /// `receive`; a message that arrives may be shorter than `receive`. While it waits, it calls `waiting` from time to time with
    /// the time that has passed, and ends with its error.
    fn exchange(
        &self,
        mate: usize,
        send: &[u8],
        receive: &mut [u8],
        waiting: &mut dyn FnMut(Duration) -> Result<()>,
    ) -> Result<()>;

    /// Tells every other rank that this one has reached the collective of this number. Does not wait for them.
    fn announce(&self, number: u64);

    /// The highest number that another rank has announced.
    fn announced(&self, rank: usize) -> u64;

    /// Called with the error of an exchange that failed, whose memory may still be in use by the transport. Returns the error, or
    /// ends the job.
    fn give_up(&self, error: Error) -> Error {
        error
    }

    /// Says that this rank needs the transport no more. Called once by every rank.
    fn finish(&self);

    /// Ends all ranks of the job.
    fn abort(&self, code: i32) -> !;
}

/// A transport for plans: it has a number of ranks and carries nothing. A step can be planned for any number of ranks on one
/// machine, and running it is an error.
#[derive(Debug)]
pub struct Paper {
    ranks: usize,
}

impl Paper {
    /// Rank 0 of a job of this many ranks.
    pub fn of(ranks: usize) -> Paper {
        Paper { ranks }
    }
}

impl Transport for Paper {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.ranks
    }

    fn name(&self) -> String {
        "paper".to_owned()
    }

    fn exchange(
        &self,
        _mate: usize,
        _send: &[u8],
        _receive: &mut [u8],
        _waiting: &mut dyn FnMut(Duration) -> Result<()>,
    ) -> Result<()> {
        let message = format!("a group on paper plans for {} ranks and cannot run", self.ranks);
        let help = "start the ranks with mpiexec and use Group::world()";
        Err(Error::new(ErrorKind::Value, message).help(help))
    }

    fn announce(&self, _: u64) {}

    fn announced(&self, _: usize) -> u64 {
        0
    }

    fn finish(&self) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
