//! Categories of memory.

use std::fmt;

/// What a buffer is used for. The ledger counts each category separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
// A whole word of its buffer, which is moved more often than it is read.
#[repr(u32)]
pub enum Category {
    /// A computed value.
    Tensor,
    /// The value of a variable.
    Variable,
    /// A gradient.
    Gradient,
    /// State of an optimizer.
    Optimizer,
    /// A value saved for the backward pass.
    Residual,
    /// Elements and buffers of a dataset.
    Dataset,
    /// Scratch memory of one kernel.
    Scratch,
    /// The arena of a planned program.
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

    /// The name used in reports.
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
