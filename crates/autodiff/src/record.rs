//! The entries of a tape, and how entries that no live tensor depends on are dropped.

use crate::variable::Variable;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_core::record::{RecordSlot, RecordedCall, Recorder, slot_of};
use taut_core::{Error, ErrorKind, Op, Result, SavedValue, Set, Spec, Tensor};
use taut_memory::Location;

/// A recorded call, or a watched tensor or variable.
pub(crate) struct TapeEntry {
    /// The op; `None` for a watched tensor or variable.
    pub(crate) op: Option<Arc<dyn Op>>,
    /// The line of the call, or of the call of `watch`.
    pub(crate) at: Location,
    /// Its inputs, with the values that its gradient needs.
    pub(crate) inputs: SmallVec<[SavedValue; 2]>,
    /// The slots of the inputs that are tracked.
    pub(crate) sources: SmallVec<[Option<RecordSlot>; 2]>,
    /// Its outputs, with the values that its gradient needs.
    pub(crate) outputs: SmallVec<[SavedValue; 1]>,
    /// The op's residual.
    pub(crate) residual: Option<Tensor>,
    /// The inputs that are tracked.
    pub(crate) wanted: Set,
    /// How many entries were recorded before it, dropped ones included: positions are reused, this number is not.
    pub(crate) serial: u64,
}

impl TapeEntry {
    pub(crate) fn leaf(spec: Spec, at: Location) -> TapeEntry {
        TapeEntry {
            op: None,
            at,
            inputs: SmallVec::new(),
            sources: SmallVec::new(),
            outputs: SmallVec::from_iter([SavedValue { spec, value: None }]),
            residual: None,
            wanted: Set::NONE,
            serial: 0,
        }
    }

    /// The values it saves, each with its role in the call.
    pub(crate) fn saved(&self) -> impl Iterator<Item = (SavedRole, &Tensor)> {
        let inputs =
            self.inputs.iter().enumerate().map(|(i, input)| (SavedRole::Input(i), input.value.as_ref()));
        let outputs =
            self.outputs.iter().enumerate().map(|(i, output)| (SavedRole::Output(i), output.value.as_ref()));
        let residual = std::iter::once((SavedRole::Residual, self.residual.as_ref()));
        inputs.chain(outputs).chain(residual).filter_map(|(role, value)| Some((role, value?)))
    }
}

/// The role of a saved value in its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavedRole {
    Input(usize),
    Output(usize),
    Residual,
}

/// A tracked value that is an input of an op without a gradient.
#[derive(Clone, Copy)]
pub(crate) struct BlockedValue {
    pub(crate) from: RecordSlot,
    /// The serial number of the entry that computed it.
    pub(crate) serial: u64,
    pub(crate) op: &'static str,
    pub(crate) at: Location,
}

/// How many blocked values are stored, to explain missing gradients.
const MAX_BLOCKED: usize = 4096;

/// A hasher for ids of tensors and variables, which are consecutive numbers: one multiplication.
#[derive(Default)]
pub(crate) struct ById(u64);

impl Hasher for ById {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, id: u64) {
        // The table uses the high bits as well.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Ids<T> = HashMap<u64, T, BuildHasherDefault<ById>>;

/// The entries of a tape. Linked tensors and the tape share ownership of it.
pub(crate) struct Record {
    state: Mutex<RecordState>,
    watches_variables: bool,
    single_use: bool,
}

#[derive(Default)]
struct RecordState {
    /// In the order of the calls; `None` once no tensor and no later entry refers to it.
    entries: Vec<Option<Arc<TapeEntry>>>,
    /// Per entry, how many tensors and later entries refer to it.
    uses: Vec<u32>,
    /// Per entry, whether `blocks` has a value of it.
    blocked: Vec<bool>,
    leaves: Ids<RecordSlot>,
    variables: Ids<RecordSlot>,
    watched: Vec<Variable>,
    blocks: VecDeque<BlockedValue>,
    /// Entries to be dropped once the lock is released: the links of their tensors call back into this record.
    deferred_drops: Vec<Arc<TapeEntry>>,
    dropping: bool,
    /// How many entries were recorded, dropped ones included.
    serial: u64,
    /// Whether its entries were taken: tensors linked to it are not tracked any more.
    closed: bool,
}

impl RecordState {
    /// Makes room for an entry; an error if the system refuses memory.
    fn reserve(&mut self) -> Result<()> {
        let grown = self
            .entries
            .try_reserve(1)
            .and_then(|()| self.uses.try_reserve(1))
            .and_then(|()| self.blocked.try_reserve(1));
        grown.map_err(|_| {
            let calls = self.entries.len();
            let message = format!("out of memory: a tape of {calls} calls could not grow");
            Error::new(ErrorKind::OutOfMemory, message)
        })
    }

    fn push(&mut self, mut entry: TapeEntry, uses: u32) -> u32 {
        entry.serial = self.serial;
        self.serial += 1;
        for source in entry.sources.iter().flatten() {
            self.uses[source.entry as usize] += 1;
        }
        self.entries.push(Some(Arc::new(entry)));
        self.uses.push(uses);
        self.blocked.push(false);
        (self.entries.len() - 1) as u32
    }

    /// Records that a value is an input of an op without a gradient.
    fn block(&mut self, from: RecordSlot, op: &'static str, at: Location) {
        let Some(Some(entry)) = self.entries.get(from.entry as usize) else { return };
        if self.blocks.len() == MAX_BLOCKED {
            self.blocks.pop_front();
        }
        self.blocks.push_back(BlockedValue { from, serial: entry.serial, op, at });
        self.blocked[from.entry as usize] = true;
    }

    /// Moves the blocks of a dropped entry to the entries it was computed from.
    fn inherit_blocks(&mut self, number: usize, dead: &TapeEntry) {
        let is_its =
            |block: &BlockedValue| block.from.entry as usize == number && block.serial == dead.serial;
        let (its, others): (Vec<BlockedValue>, Vec<BlockedValue>) = self.blocks.drain(..).partition(is_its);
        self.blocks = others.into();
        for block in its {
            for &source in dead.sources.iter().flatten() {
                self.block(source, block.op, block.at);
            }
        }
    }

    /// Removes a use, and moves entries without uses to `deferred_drops`.
    fn release(&mut self, entry: u32) {
        let mut left: SmallVec<[u32; 8]> = SmallVec::from_slice(&[entry]);
        while let Some(entry) = left.pop() {
            let i = entry as usize;
            // Entries that a backward pass or a reset has taken are not counted any more.
            let Some(Some(_)) = self.entries.get(i) else { continue };
            self.uses[i] -= 1;
            if self.uses[i] == 0
                && let Some(dead) = self.entries[i].take()
            {
                if self.blocked[i] {
                    self.inherit_blocks(i, &dead);
                }
                left.extend(dead.sources.iter().flatten().map(|source| source.entry));
                self.deferred_drops.push(dead);
            }
        }
        while let Some(None) = self.entries.last() {
            self.entries.pop();
            self.uses.pop();
            self.blocked.pop();
        }
    }
}

impl Record {
    pub(crate) fn new(watches_variables: bool, single_use: bool) -> Record {
        Record { state: Mutex::default(), watches_variables, single_use }
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        // A poisoned lock is still consistent: no foreign code runs while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tracks a tensor from now on.
    pub(crate) fn watch(&self, tensor: &Tensor, at: Location) {
        if slot_of(tensor, self).is_some() {
            return;
        }
        let id = taut_core::record::watch_id(tensor);
        let mut state = self.state();
        if state.closed {
            return;
        }
        let entry = state.push(TapeEntry::leaf(tensor.spec().clone(), at), 1);
        state.leaves.insert(id, RecordSlot { entry, output: 0 });
    }

    /// Tracks a variable from now on.
    pub(crate) fn watch_variable(&self, variable: &Variable, at: Location) -> Option<RecordSlot> {
        let mut state = self.state();
        if let Some(&slot) = state.variables.get(&variable.key()) {
            return Some(slot);
        }
        if state.closed {
            return None;
        }
        let entry = state.push(TapeEntry::leaf(variable.spec().clone(), at), 1);
        let slot = RecordSlot { entry, output: 0 };
        state.variables.insert(variable.key(), slot);
        state.watched.push(variable.clone());
        Some(slot)
    }

    /// The variable's slot, if it is tracked.
    pub(crate) fn variable(&self, variable: &Variable) -> Option<RecordSlot> {
        self.state().variables.get(&variable.key()).copied()
    }

    pub(crate) fn watched_variables(&self) -> Vec<Variable> {
        self.state().watched.clone()
    }

    /// How many calls are recorded.
    pub(crate) fn calls(&self) -> usize {
        let state = self.state();
        state.entries.iter().flatten().filter(|entry| entry.op.is_some()).count()
    }

    /// A copy of the entries.
    pub(crate) fn entries(&self) -> Vec<Option<Arc<TapeEntry>>> {
        self.state().entries.clone()
    }

    /// Takes the entries; links to this record have no effect any more.
    pub(crate) fn take(&self) -> Vec<Option<Arc<TapeEntry>>> {
        let mut state = self.state();
        let taken = std::mem::take(&mut *state);
        (state.dropping, state.closed) = (taken.dropping, true);
        drop(state);
        drop(taken.deferred_drops);
        taken.entries
    }

    pub(crate) fn blocks(&self) -> Vec<BlockedValue> {
        self.state().blocks.iter().copied().collect()
    }

    /// Drops the released entries one by one, without the lock. Only one call at a time does so, and a drop may release more
    /// entries: so a chain of any length is dropped without recursion.
    fn drop_deferred<'a>(&'a self, mut state: MutexGuard<'a, RecordState>) {
        if state.deferred_drops.is_empty() || state.dropping {
            return;
        }
        state.dropping = true;
        while let Some(dead) = state.deferred_drops.pop() {
            drop(state);
            drop(dead);
            state = self.state();
        }
        state.dropping = false;
    }
}

impl Recorder for Record {
    fn leaf(&self, watch_id: u64) -> Option<RecordSlot> {
        self.state().leaves.get(&watch_id).copied()
    }

    fn is_single_use(&self) -> bool {
        self.single_use
    }

    fn record_op(&self, call: &RecordedCall<'_>) -> Result<Option<u32>> {
        let outputs = call.outputs.iter().filter(|output| output.dtype().is_inexact()).count();
        if outputs == 0 {
            self.blocked(call);
            return Ok(None);
        }
        let saved = |(i, tensor): (usize, &Tensor), saves: Set, value: Option<&Tensor>| SavedValue {
            spec: tensor.spec().clone(),
            value: value.filter(|_| saves.has(i)).cloned(),
        };
        let saves = call.saves;
        let entry = TapeEntry {
            op: Some(call.op.shared()),
            at: call.at,
            inputs: (call.inputs.iter().enumerate())
                .map(|(i, tensor)| saved((i, tensor), saves.inputs, call.saved_inputs[i].as_ref()))
                .collect(),
            sources: call.slots.iter().copied().collect(),
            outputs: (call.outputs.iter().enumerate())
                .map(|(i, tensor)| saved((i, tensor), saves.outputs, Some(tensor)))
                .collect(),
            residual: call.residual.filter(|_| saves.residual).cloned(),
            wanted: call.wanted,
            serial: 0,
        };
        let mut state = self.state();
        if state.closed {
            drop(state);
            return Ok(None);
        }
        state.reserve()?;
        Ok(Some(state.push(entry, outputs as u32)))
    }

    fn blocked(&self, call: &RecordedCall<'_>) {
        let mut state = self.state();
        for &from in call.slots.iter().flatten() {
            state.block(from, call.op.name(), call.at);
        }
    }

    fn link_outputs(&self, entry: u32, outputs: &[Tensor]) {
        let linked: SmallVec<[Tensor; 1]> =
            outputs.iter().map(|output| taut_core::record::detached_from(output, self)).collect();
        let mut replaced = Vec::new();
        let mut state = self.state();
        if let Some(Some(entry)) = state.entries.get_mut(entry as usize)
            && let Some(entry) = Arc::get_mut(entry)
        {
            for (saved, output) in entry.outputs.iter_mut().zip(linked) {
                if saved.value.is_some() {
                    replaced.push(saved.value.replace(output));
                }
            }
        }
        drop(state);
    }

    fn access(&self, variable: &dyn Any) -> Option<RecordSlot> {
        let variable = variable.downcast_ref::<Variable>()?;
        let watches = self.watches_variables && variable.is_trainable() && variable.dtype().is_inexact();
        let slot = match self.variable(variable) {
            None if watches => self.watch_variable(variable, Location::caller())?,
            slot => slot?,
        };
        self.retain(slot.entry);
        Some(slot)
    }

    fn retain(&self, entry: u32) {
        if let Some(uses) = self.state().uses.get_mut(entry as usize) {
            *uses += 1;
        }
    }

    fn release(&self, entry: u32) {
        let mut state = self.state();
        state.release(entry);
        self.drop_deferred(state);
    }
}
