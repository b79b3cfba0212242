//! Who writes and who reads each storage of a program.

use crate::Program;

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
