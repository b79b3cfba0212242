//! Lines of somebody's code, as people read them.

use std::fmt;
use std::panic::Location;

/// A line, the same on every machine: of a path from the root, the end has to do.
pub(crate) struct Line(pub(crate) &'static Location<'static>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line) = (self.0.file(), self.0.line());
        let is_absolute = file.starts_with('/') || file.chars().nth(1) == Some(':');
        let mut cuts = file.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
        let start = if is_absolute { cuts.nth(1).unwrap_or(0) } else { 0 };
        write!(f, "{}:{line}", &file[start..])
    }
}
