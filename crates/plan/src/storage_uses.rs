//! Which steps write and read each storage of a program.

use crate::Program;

/// Per storage, the steps that use it.
pub(crate) struct StorageUses {
    /// The steps that write it, in order: the first computes it, the others overwrite it.
    pub(crate) writers: Vec<Vec<usize>>,
    /// The steps that read it, in order.
    pub(crate) readers: Vec<Vec<usize>>,
}

impl StorageUses {
    pub(crate) fn new(program: &Program) -> StorageUses {
        let none = vec![Vec::new(); program.storages.len()];
        let mut uses = StorageUses { writers: none.clone(), readers: none };
        for (i, step) in program.steps.iter().enumerate() {
            step.targets.iter().for_each(|target| uses.writers[target.storage].push(i));
            step.operands.iter().for_each(|operand| uses.readers[operand.storage].push(i));
        }
        uses
    }
}
