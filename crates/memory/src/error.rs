//! The out-of-memory error.

use crate::Location;
use std::error::Error;
use std::fmt;
use std::ops::Deref;

use crate::category::Category;
use crate::report::{Bytes, Owner, owners};
use crate::{ledger, limit};

/// The most owners that an error lists.
const MAX_LISTED: usize = 8;

/// Why a request for memory failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfMemoryCause {
    /// The request would have exceeded the process limit.
    Limit,
    /// The allocator of this name failed.
    Allocator(String),
    /// A fault injected by a test ([`fail_nth`](crate::testing::fail_nth)).
    Injected,
}

/// An allocation that failed and changed nothing. It dereferences to its [`OutOfMemoryDetails`]: `error.requested`.
#[derive(Clone, PartialEq, Eq)]
pub struct OutOfMemory {
    // Boxed, so that the results of successful calls stay small: copying them is a good part of a buffer's cost.
    details: Box<OutOfMemoryDetails>,
}

/// A failed request, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemoryDetails {
    /// The bytes requested.
    pub requested: usize,
    /// The bytes that were live at that moment.
    pub live: usize,
    /// The limit in force.
    pub limit: Option<usize>,
    /// The category of the request.
    pub category: Category,
    /// The source location of the request.
    pub location: Location,
    /// The largest owners of memory, the largest first.
    pub owners: Vec<Owner>,
    /// Why it failed.
    pub cause: OutOfMemoryCause,
}

impl OutOfMemory {
    #[cold]
    pub(crate) fn new(
        requested: usize,
        category: Category,
        location: Location,
        cause: OutOfMemoryCause,
    ) -> OutOfMemory {
        let mut owners = owners();
        owners.truncate(MAX_LISTED);
        let (live, limit) = (ledger::live_bytes(), limit::current_limit());
        let details = OutOfMemoryDetails { requested, live, limit, category, location, owners, cause };
        OutOfMemory { details: Box::new(details) }
    }

    /// The same error, attributed to another source location.
    #[must_use]
    pub fn moved_to(mut self, location: Location) -> OutOfMemory {
        self.details.location = location;
        self
    }
}

impl Deref for OutOfMemory {
    type Target = OutOfMemoryDetails;

    fn deref(&self) -> &OutOfMemoryDetails {
        &self.details
    }
}

impl fmt::Debug for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `unwrap` prints the `Debug` text.
        write!(f, "{self}")
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requested, live) = (Bytes(self.requested), Bytes(self.live));
        write!(f, "out of memory: {requested} ({}) at {} ", self.category, self.location)?;
        match (&self.cause, self.limit) {
            (OutOfMemoryCause::Limit, Some(limit)) => {
                write!(f, "would exceed the limit of {}", Bytes(limit))?;
            }
            (OutOfMemoryCause::Limit, None) => f.write_str("would exceed the limit")?,
            (OutOfMemoryCause::Allocator(name), _) => {
                write!(f, "could not be allocated by the {name} allocator")?;
            }
            (OutOfMemoryCause::Injected, _) => f.write_str("failed by an injected fault")?,
        }
        writeln!(f, "; {live} live")?;

        if !self.owners.is_empty() {
            writeln!(f, "  {:>10}  {:>8}  {:<9}  biggest owners", "live", "buffers", "category")?;
            for owner in &self.owners {
                writeln!(f, "  {owner}")?;
            }
        }

        f.write_str("  help: ")?;
        match self.cause {
            OutOfMemoryCause::Limit => {
                let needed = self.live.saturating_add(self.requested);
                write!(f, "set a limit of at least {needed} bytes, or free some of the buffers above")?;
            }
            OutOfMemoryCause::Allocator(_) => {
                f.write_str("allocate less at a time, or free some of the buffers above")?;
            }
            OutOfMemoryCause::Injected => f.write_str("drop the fault guard of the test")?,
        }
        if self.owners.iter().any(|owner| owner.location.is_none()) {
            f.write_str("; `record(true)` attributes buffers to source lines")?;
        }
        Ok(())
    }
}

impl Error for OutOfMemory {}
