//! Who writes and who reads each storage of a program.

use crate::Program;
use std::fmt;
use std::panic::Location;

/// Steps by storage.
pub(crate) struct Uses {
    /// Those that write it, in order: the first makes it, the others overwrite it.
    pub(crate) writers: Vec<Vec<usize>>,
    /// Those that read it, in order.
    pub(crate) readers: Vec<Vec<usize>>,
}

impl Uses {
    pub(crate) fn new(program: &Program) -> Uses {
        let none = vec![Vec::new(); program.storages.len()];
        let mut uses = Uses { writers: none.clone(), readers: none };
        for (i, step) in program.steps.iter().enumerate() {
            step.targets.iter().for_each(|target| uses.writers[target.storage].push(i));
            step.operands.iter().for_each(|operand| uses.readers[operand.storage].push(i));
        }
        uses
    }
}

/// A line of somebody's code, the same on every machine: of a path from the root, the end has to do.
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
