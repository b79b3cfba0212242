//! Out of memory, as a value.

use crate::Location;
use std::error::Error;
use std::fmt;
use std::ops::Deref;

use crate::category::Category;
use crate::report::{Bytes, Owner, owners};
use crate::{ledger, limit};

/// Owners listed in an error.
const LISTED: usize = 8;

/// Why a request for memory failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The bytes would have passed the process limit.
    Limit,
    /// The allocator of this name had nothing to give.
    Allocator(String),
    /// A test asked for this failure.
    Injected,
}

/// A request for memory that could not be met. Nothing changed by asking. What there is to know about it are the fields
/// of a [`Shortage`], which it gives access to: `error.requested`.
#[derive(Clone, PartialEq, Eq)]
pub struct OutOfMemory {
    // Boxed, so that the results of calls that succeed stay small: copying them is a good part of a buffer's cost.
    shortage: Box<Shortage>,
}

/// What was asked for, and why there was no room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// The bytes asked for.
    pub requested: usize,
    /// The bytes in use at that moment.
    pub live: usize,
    /// The limit in force.
    pub limit: Option<usize>,
    /// What the memory was for.
    pub category: Category,
    /// The line that asked.
    pub location: Location,
    /// Who owns most of the memory, largest first.
    pub owners: Vec<Owner>,
    /// Why it failed.
    pub cause: Cause,
}

impl OutOfMemory {
    #[cold]
    pub(crate) fn new(requested: usize, category: Category, location: Location, cause: Cause) -> OutOfMemory {
        let mut owners = owners();
        owners.truncate(LISTED);
        let (live, limit) = (ledger::live_bytes(), limit::current_limit());
        let shortage = Shortage { requested, live, limit, category, location, owners, cause };
        OutOfMemory { shortage: Box::new(shortage) }
    }

    /// The same shortage, with another line as the one that asked.
    #[must_use]
    pub fn moved_to(mut self, location: Location) -> OutOfMemory {
        self.shortage.location = location;
        self
    }
}

impl Deref for OutOfMemory {
    type Target = Shortage;

    fn deref(&self) -> &Shortage {
        &self.shortage
    }
}

impl fmt::Debug for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `unwrap` prints this, to people.
        write!(f, "{self}")
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requested, live) = (Bytes(self.requested), Bytes(self.live));
        write!(f, "out of memory: {requested} ({}) at {} ", self.category, self.location)?;
        match (&self.cause, self.limit) {
            (Cause::Limit, Some(limit)) => write!(f, "would pass the limit of {}", Bytes(limit))?,
            (Cause::Limit, None) => f.write_str("would pass the limit")?,
            (Cause::Allocator(name), _) => write!(f, "cannot be had from the {name} allocator")?,
            (Cause::Injected, _) => f.write_str("failed because a test asked for it")?,
        }
        writeln!(f, "; {live} live")?;

        if !self.owners.is_empty() {
            writeln!(f, "  {:>10}  {:>8}  {:<9}  biggest owners", "live", "buffers", "category")?;
            for owner in &self.owners {
                writeln!(f, "  {owner}")?;
            }
        }

        f.write_str("  what would help: ")?;
        match self.cause {
            Cause::Limit => {
                let needed = self.live.saturating_add(self.requested);
                write!(f, "a limit of {needed} bytes or more, or dropping some of the above")?;
            }
            Cause::Allocator(_) => f.write_str("asking for less at a time, or dropping some of the above")?,
            Cause::Injected => f.write_str("disarming the fault")?,
        }
        if self.owners.iter().any(|owner| owner.location.is_none()) {
            f.write_str("; `record(true)` shows the lines that own it")?;
        }
        Ok(())
    }
}

impl Error for OutOfMemory {}
