//! External state of traced functions: variables and random keys, read by every call.

use super::ValueId;
use crate::op::Spec;
use crate::tensor::Tensor;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// State that persists between calls of a traced function, which reads and writes it by reference: a variable.
pub trait ExternalState: Any + Send + Sync {
    /// Its number, which no other state has.
    fn id(&self) -> u64;

    /// Type and shape; they never change.
    fn spec(&self) -> &Spec;

    /// Its value as it is now.
    fn value(&self) -> Tensor;
}

/// A source of keys for random numbers: each call of a traced function takes new ones.
pub trait KeySource: Send + Sync {
    /// The next key: a seed, and the number of the call.
    fn next(&self) -> [u64; 2];

    /// Its seed, if it is that of calls of random functions with a seed of their own.
    fn call_seed(&self) -> Option<u64> {
        None
    }
}

/// A state that a traced function uses.
#[derive(Clone)]
pub struct StateUse {
    /// The state.
    pub state: Arc<dyn ExternalState>,
    /// Whether the function writes to it.
    pub writes: bool,
}

impl fmt::Debug for StateUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.writes { "writes" } else { "reads" };
        write!(f, "{verb} state {}: {}", self.state.id(), self.state.spec())
    }
}

impl fmt::Debug for dyn KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySource")
    }
}

impl fmt::Debug for dyn ExternalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {}: {}", self.id(), self.spec())
    }
}

/// The external state that a trace has used so far.
pub(super) struct ExternalUses {
    pub(super) may_create: bool,
    pub(super) states: Vec<StateRead>,
    pub(super) keys: Vec<KeyUse>,
    pub(super) created: Vec<Arc<dyn ExternalState>>,
}

impl ExternalUses {
    pub(super) fn new(may_create: bool) -> ExternalUses {
        ExternalUses { may_create, states: Vec::new(), keys: Vec::new(), created: Vec::new() }
    }
}

pub(super) struct StateRead {
    pub(super) state: Arc<dyn ExternalState>,
    /// Its value when the function is called.
    pub(super) input: ValueId,
    /// The value that was last written to it.
    pub(super) last_write: Option<ValueId>,
}

/// The value that the body of a loop or branch last wrote to a state, or received as its value.
pub(super) struct StateWrite {
    pub(super) state: Arc<dyn ExternalState>,
    pub(super) value: ValueId,
}

pub(super) struct KeyUse {
    pub(super) input: ValueId,
    pub(super) source: Arc<dyn KeySource>,
}
