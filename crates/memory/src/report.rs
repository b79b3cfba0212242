//! The memory report: live and peak bytes by category and by source line.

use crate::Location;
use std::fmt;

use crate::allocator::idle_bytes;
use crate::category::Category;
use crate::{ledger, limit, record, thread};

/// A number of bytes, formatted with a unit: `640 B`, `1.5 KiB`, `23.0 MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut unit = "B";
        for larger in units {
            // 1023.95 of a unit would be rounded to 1024.0: it is 1.0 of the next.
            if value < if unit == "B" { 1024.0 } else { 1023.95 } {
                break;
            }
            value /= 1024.0;
            unit = larger;
        }
        let decimals = usize::from(unit != "B");
        f.pad(&format!("{value:.decimals$} {unit}"))
    }
}

/// The memory of one category that one source line owns, or that was allocated while recording was off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The category.
    pub category: Category,
    /// The line that allocated it, or `None` for buffers allocated while recording was off.
    pub location: Option<Location>,
    /// Live bytes.
    pub bytes: usize,
    /// Live buffers.
    pub count: usize,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Bytes(self.bytes);
        write!(f, "{bytes:>10}  {count:>8}  {category:<9}  ", count = self.count, category = self.category)?;
        match self.location {
            Some(line) => write!(f, "{line}"),
            None => f.write_str("not recorded"),
        }
    }
}

/// One category's part of a [`MemoryReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryUse {
    /// Which category.
    pub category: Category,
    /// Bytes in use now.
    pub live: usize,
    /// The most bytes of this category that were in use at the same moment.
    pub peak: usize,
    /// Buffers in use now.
    pub count: usize,
}

/// The ledger at one moment. Its `Display` is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Bytes in use.
    pub live: usize,
    /// The most bytes that were in use at the same moment.
    pub peak: usize,
    /// Buffers ever made.
    pub allocations: u64,
    /// Bytes kept for reuse.
    pub idle: usize,
    /// The limit in force.
    pub limit: Option<usize>,
    /// Every category, in order.
    pub by_category: Vec<CategoryUse>,
    /// Every owner, largest first. The rows sum to `live`.
    pub by_line: Vec<Owner>,
}

/// The ledger now. Its parts agree with one another if no other thread allocates meanwhile.
///
/// ```
/// # use taut_memory::{Buffer, Category, record, report};
/// record(true);
/// let batch = Buffer::new(3 << 20, Category::Dataset)?;
/// let report = report();
/// assert_eq!(report.by_line[0].bytes, 3 << 20);
/// assert!(report.to_string().contains("3.0 MiB"));
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
pub fn report() -> MemoryReport {
    let by_category = Category::ALL.map(|category| CategoryUse {
        category,
        live: ledger::live_bytes_of(category),
        peak: ledger::peak_bytes_of(category),
        count: thread::buffers(category),
    });
    MemoryReport {
        live: ledger::live_bytes(),
        peak: ledger::peak_bytes(),
        allocations: ledger::allocations(),
        idle: idle_bytes(),
        limit: limit::current_limit(),
        by_category: by_category.to_vec(),
        by_line: owners(),
    }
}

/// Every owner, largest first: recorded lines, and the unrecorded buffers of each category.
pub(crate) fn owners() -> Vec<Owner> {
    let mut owners = record::owners();
    for category in Category::ALL {
        let of_category = || owners.iter().filter(|owner| owner.category == category);
        let bytes = of_category().map(|owner| owner.bytes).sum();
        let count = of_category().map(|owner| owner.count).sum();
        let bytes = ledger::live_bytes_of(category).saturating_sub(bytes);
        let count = thread::buffers(category).saturating_sub(count);
        if bytes > 0 {
            owners.push(Owner { category, location: None, bytes, count });
        }
    }
    owners.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.location.cmp(&b.location)));
    owners
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [live, peak, idle] = [self.live, self.peak, self.idle].map(Bytes);
        write!(f, "memory: {live} live, {peak} at the peak, {idle} idle")?;
        if let Some(limit) = self.limit {
            write!(f, ", limit {}", Bytes(limit))?;
        }
        writeln!(f, "; {} allocations so far", self.allocations)?;

        writeln!(f, "\n  {:<9}  {:>10}  {:>10}  {:>8}", "category", "live", "peak", "buffers")?;
        for row in self.by_category.iter().filter(|row| row.peak > 0) {
            let (category, live, peak) = (row.category, Bytes(row.live), Bytes(row.peak));
            writeln!(f, "  {category:<9}  {live:>10}  {peak:>10}  {:>8}", row.count)?;
        }

        if self.by_line.iter().any(|owner| owner.location.is_some()) {
            writeln!(f, "\n  {:>10}  {:>8}  {:<9}  line", "live", "buffers", "category")?;
            for owner in &self.by_line {
                writeln!(f, "  {owner}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_formatted_with_a_unit() {
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1023), "1023 B");
        assert_eq!(text(1024), "1.0 KiB");
        assert_eq!(text(1536), "1.5 KiB");
        assert_eq!(text((1 << 20) - 1), "1.0 MiB");
        assert_eq!(text(5 << 30), "5.0 GiB");
        assert_eq!(text(usize::MAX), "16.0 EiB");
        assert_eq!(format!("{:>9}|", Bytes(7)), "      7 B|");
    }

    #[test]
    fn a_report_is_a_table() {
        let line = Location::caller();
        let tensor = CategoryUse { category: Category::Tensor, live: 2048, peak: 4096, count: 2 };
        let unused = CategoryUse { category: Category::Arena, live: 0, peak: 0, count: 0 };
        let owner = |location, bytes| Owner { category: Category::Tensor, location, bytes, count: 1 };
        let report = MemoryReport {
            live: 2048,
            peak: 4096,
            allocations: 9,
            idle: 512,
            limit: Some(1 << 20),
            by_category: vec![tensor, unused],
            by_line: vec![owner(Some(line), 1536), owner(None, 512)],
        };
        let expected = format!(
            "memory: 2.0 KiB live, 4.0 KiB at the peak, 512 B idle, limit 1.0 MiB; 9 allocations so far\n\
             \n\
             \x20 category         live        peak   buffers\n\
             \x20 tensor        2.0 KiB     4.0 KiB         2\n\
             \n\
             \x20       live   buffers  category   line\n\
             \x20    1.5 KiB         1  tensor     {line}\n\
             \x20      512 B         1  tensor     not recorded\n"
        );
        assert_eq!(report.to_string(), expected);
    }
}
