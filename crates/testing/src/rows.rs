//! Tests that are derived from the op table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_core::ops::{OpEntry, table};
use taut_memory::testing::ledger_check;

/// Runs a check for every row of the op table and reports all rows that fail. The environment variable `TAUT_ROWS` names
/// the rows to check, separated by commas.
///
/// # Panics
/// If a row fails, or does not free its memory.
pub fn every_row(check: impl Fn(&OpEntry)) {
    let only = std::env::var("TAUT_ROWS").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let failures: Vec<String> = table()
        .filter(|entry| only.is_empty() || only.contains(&entry.name))
        .filter_map(|entry| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _ledger = ledger_check();
                check(entry);
            }));
            let panic = result.err()?;
            let reason = (panic.downcast_ref::<String>().map(String::as_str))
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("{}: {}", entry.name, reason.unwrap_or("panicked")))
        })
        .collect();
    assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
}
