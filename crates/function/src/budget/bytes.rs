//! A budget in bytes, from a number or from text.

use super::spill::static_path;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use taut_core::{Error, Result};
use taut_memory::Bytes;
use taut_plan::Program;

/// The bytes that a call of a function may allocate: [`Function::memory_budget`](crate::Function::memory_budget).
///
/// ```
/// use taut_function::MemoryBudget;
/// assert_eq!("1.5 GB".parse::<MemoryBudget>()?.bytes(), 1_500_000_000);
/// assert_eq!("200MiB".parse::<MemoryBudget>()?, MemoryBudget::from(200 << 20));
/// assert!("much".parse::<MemoryBudget>().is_err());
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    bytes: usize,
    is_total: bool,
    is_bit_equal: bool,
    spill_folder: Option<&'static Path>,
}

impl MemoryBudget {
    /// The bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Counts arguments, variables and constants as well, not only what a call allocates.
    #[must_use]
    pub fn total(mut self) -> MemoryBudget {
        self.is_total = true;
        self
    }

    /// Forbids what changes the rounding of results: splitting the batch. Steps may still be repeated.
    #[must_use]
    pub fn bit_equal(mut self) -> MemoryBudget {
        self.is_bit_equal = true;
        self
    }

    /// Allows values to be written to a file in this folder and read back before they are needed again, where that is faster than
    /// to compute them again, or where nothing else fits. A function that is called under a tape does not do so.
    #[must_use]
    pub fn spill_to(mut self, folder: impl AsRef<Path>) -> MemoryBudget {
        self.spill_folder = Some(static_path(folder.as_ref()));
        self
    }

    /// The folder in which values may be written to a file.
    pub fn spill_folder(self) -> Option<&'static Path> {
        self.spill_folder
    }

    /// Whether splitting the batch is forbidden.
    pub fn is_bit_equal(self) -> bool {
        self.is_bit_equal
    }

    /// Whether arguments, variables and constants are counted.
    pub fn is_total(self) -> bool {
        self.is_total
    }

    /// Whether a program keeps the budget.
    pub(crate) fn allows(self, program: &Program) -> bool {
        let needed = if self.is_total { program.total_bytes() } else { program.peak_bytes() };
        self.allows_bytes(needed)
    }

    /// Whether so many bytes keep the budget.
    pub(crate) fn allows_bytes(self, needed: usize) -> bool {
        needed <= self.bytes
    }
}

impl From<usize> for MemoryBudget {
    fn from(bytes: usize) -> MemoryBudget {
        MemoryBudget { bytes, is_total: false, is_bit_equal: false, spill_folder: None }
    }
}

/// A number with a unit: `B`, powers of 1000 (`kB`, `MB`, `GB`, `TB`) or of 1024 (`KiB`, `MiB`, `GiB`, `TiB`), in any case.
impl FromStr for MemoryBudget {
    type Err = Error;

    fn from_str(text: &str) -> Result<MemoryBudget> {
        let invalid = || {
            let message = format!("a memory budget must be a number with a unit, got {text:?}");
            Error::value(message)
                .help("write \"200MB\" (1000 kB are 1 MB) or \"200MiB\" (1024 KiB are 1 MiB)")
        };
        let trimmed = text.trim();
        let end =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number: f64 = number.replace('_', "").parse().map_err(|_| invalid())?;
        let unit = unit.trim().to_ascii_lowercase();
        let scale = match unit.as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "t" | "tb" => 1e12,
            "kib" => 1024.0,
            "mib" => 1024f64.powi(2),
            "gib" => 1024f64.powi(3),
            "tib" => 1024f64.powi(4),
            _ => return Err(invalid()),
        };
        let bytes = (number * scale).floor();
        if bytes.is_finite() && bytes < 2f64.powi(63) {
            Ok(MemoryBudget::from(bytes as usize))
        } else {
            Err(invalid())
        }
    }
}

impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Bytes(self.bytes))?;
        f.write_str(if self.is_total { " in total" } else { "" })?;
        f.write_str(if self.is_bit_equal { ", bit-equal" } else { "" })?;
        match self.spill_folder() {
            Some(folder) => write!(f, ", spilling to {}", folder.display()),
            None => Ok(()),
        }
    }
}
