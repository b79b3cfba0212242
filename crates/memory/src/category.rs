//! What memory is for.

use std::fmt;

/// What a buffer is for. The ledger keeps a count for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
// A whole word of its buffer, which is moved around more often than it is read.
#[repr(u32)]
pub enum Category {
    /// A value that a program computed.
    Tensor,
    /// A variable's value.
    Variable,
    /// A gradient.
    Gradient,
    /// An optimizer's own state.
    Optimizer,
    /// A value kept for a backward pass.
    Residual,
    /// A dataset's elements and its buffers.
    Dataset,
    /// Working space of one kernel.
    Scratch,
    /// A block that holds the values of a planned computation.
    Arena,
}

impl Category {
    /// Every category, in order.
    pub const ALL: [Category; 8] = [
        Category::Tensor,
        Category::Variable,
        Category::Gradient,
        Category::Optimizer,
        Category::Residual,
        Category::Dataset,
        Category::Scratch,
        Category::Arena,
    ];

    /// The name, as reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Tensor => "tensor",
            Category::Variable => "variable",
            Category::Gradient => "gradient",
            Category::Optimizer => "optimizer",
            Category::Residual => "residual",
            Category::Dataset => "dataset",
            Category::Scratch => "scratch",
            Category::Arena => "arena",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
