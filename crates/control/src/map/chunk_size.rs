//! How many elements a map works on at once.

use super::chunk::{Chunks, chunk_loop};
use crate::context::residual_budget;
use crate::loops::{Loops, backward_arena_bytes};
use taut_compile::CompileOptions;
use taut_core::{Error, Graph, Result, Subgraphs, is_tracing, record};

/// The memory of a chunk without a budget: it should fit into a core's cache.
const DEFAULT_BYTES: usize = 2 << 20;

impl Loops {
    /// How many of `count` elements a map works on at once.
    pub(super) fn chunk_size(
        &self,
        graph: &Graph,
        slices: usize,
        count: usize,
        options: CompileOptions,
    ) -> Result<usize> {
        if let Some(elements) = self.parallel_iterations {
            if elements == 0 {
                return Err(Error::value("parallel_iterations must be >= 1, got 0"));
            }
            return Ok(divisor(count, elements));
        }
        let budget =
            self.memory_budget.unwrap_or_else(|| residual_budget(DEFAULT_BYTES).unwrap_or(DEFAULT_BYTES));
        // A budget holds for the backward pass, too, if there may be one.
        let may_be_differentiated = self.memory_budget.is_some() && (record::is_recording() || is_tracing());
        let mut size = count;
        loop {
            let op = chunk_loop(graph, slices, Chunks { first: 0, count: 1, size }, options)?;
            op.prepare()?;
            let forward = op.body.arena_bytes();
            let needed =
                if may_be_differentiated { forward.max(backward_arena_bytes(&op)?) } else { forward };
            if needed <= budget {
                return Ok(size);
            }
            if size == 1 {
                return match self.memory_budget {
                    // One element is the least, in the backward pass as well.
                    Some(budget) if forward > budget => {
                        let message = format!(
                            "memory_budget must be at least {forward} bytes, one element of the map, got {budget}"
                        );
                        Err(Error::value(message).help("allow at least that"))
                    }
                    _ => Ok(1),
                };
            }
            // Memory grows nearly in proportion to the number of elements.
            let next = (size as u128 * budget as u128 / needed as u128) as usize;
            size = divisor(count, next.min(size - 1).max(1));
        }
    }
}

/// The largest divisor of `count` up to `limit`, so that no elements are left over; `limit` itself if that would be less than half
/// of it.
fn divisor(count: usize, limit: usize) -> usize {
    let limit = limit.min(count);
    (limit.div_ceil(2)..=limit).rev().find(|size| count.is_multiple_of(*size)).unwrap_or(limit)
}
