//! Maps: the same for every element.

use crate::branch::Branch;
use crate::looping::Loop;
use taut_core::{Batch, Outputs, Result};

pub(crate) fn batch_loop(_op: &Loop, _call: &Batch<'_>) -> Result<Option<Outputs>> {
    Ok(None)
}

pub(crate) fn batch_branch(_op: &Branch, _call: &Batch<'_>) -> Result<Option<Outputs>> {
    Ok(None)
}
