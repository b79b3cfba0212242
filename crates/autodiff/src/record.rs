//! What a tape has written down, and how it forgets what can no longer matter.

use crate::variable::Variable;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_core::record::{RecordedCall, Recorder, Slot, slot_of};
use taut_core::{Op, Result, SavedValue, Set, Spec, Tensor};
use taut_memory::Location;

/// One call, or something watched.
pub(crate) struct Entry {
    /// The op; `None` for something watched.
    pub(crate) op: Option<Arc<dyn Op>>,
    /// The line that called it, or that asked to watch.
    pub(crate) at: Location,
    /// Its inputs, with the values that its gradient needs.
    pub(crate) inputs: SmallVec<[SavedValue; 2]>,
    /// Where the inputs come from, if they are followed.
    pub(crate) sources: SmallVec<[Option<Slot>; 2]>,
    /// Its outputs, with the values that its gradient needs.
    pub(crate) outputs: SmallVec<[SavedValue; 1]>,
    /// What the op made for its gradient.
    pub(crate) residual: Option<Tensor>,
    /// The inputs that are followed.
    pub(crate) wanted: Set,
    /// How many entries came before it, dead ones included: places are used again, this number is not.
    pub(crate) serial: u64,
}

impl Entry {
    pub(crate) fn leaf(spec: Spec, at: Location) -> Entry {
        Entry {
            op: None,
            at,
            inputs: SmallVec::new(),
            sources: SmallVec::new(),
            outputs: SmallVec::from_iter([SavedValue { spec, kept: None }]),
            residual: None,
            wanted: Set::NONE,
            serial: 0,
        }
    }

    /// The values it keeps, and what they are to the op.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (Kept, &Tensor)> {
        let inputs = self.inputs.iter().enumerate().map(|(i, part)| (Kept::Input(i), part.kept.as_ref()));
        let outputs = self.outputs.iter().enumerate().map(|(i, part)| (Kept::Output(i), part.kept.as_ref()));
        let residual = std::iter::once((Kept::Residual, self.residual.as_ref()));
        inputs.chain(outputs).chain(residual).filter_map(|(kind, kept)| Some((kind, kept?)))
    }
}

/// What a kept value is to its op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Input(usize),
    Output(usize),
    Residual,
}

/// A followed value that went into an op through which no gradient goes.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) from: Slot,
    /// The serial number of the entry that it came from.
    pub(crate) serial: u64,
    pub(crate) op: &'static str,
    pub(crate) at: Location,
}

/// How many blocks are remembered, to explain gradients that are not there.
const BLOCKS: usize = 4096;

/// The numbers of tensors and variables are counted up: they need no hashing.
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
        // The table looks at the high bits too.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Ids<T> = HashMap<u64, T, BuildHasherDefault<ById>>;

/// The entries of a tape. Tensors link to it; it lives as long as one of them or the tape does.
pub(crate) struct Record {
    state: Mutex<State>,
    watches_variables: bool,
    once: bool,
}

#[derive(Default)]
struct State {
    /// In the order of the calls; `None` once nothing can lead to it any more.
    entries: Vec<Option<Arc<Entry>>>,
    /// How many tensors and later entries refer to each.
    uses: Vec<u32>,
    /// Whether a block is remembered of each.
    blocked: Vec<bool>,
    leaves: Ids<Slot>,
    variables: Ids<Slot>,
    watched: Vec<Variable>,
    blocks: VecDeque<Block>,
    /// Entries that are to be dropped, but not while the lock is held: they hold tensors, whose links call back.
    deferred_drops: Vec<Arc<Entry>>,
    dropping: bool,
    /// How many entries there were, dead ones included.
    serial: u64,
    /// Whether its entries were taken away: what is linked to it is not followed any more.
    closed: bool,
}

impl State {
    fn push(&mut self, mut entry: Entry, uses: u32) -> u32 {
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

    /// Takes note that no gradient goes from a value into an op.
    fn block(&mut self, from: Slot, op: &'static str, at: Location) {
        let Some(Some(entry)) = self.entries.get(from.entry as usize) else { return };
        if self.blocks.len() == BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(Block { from, serial: entry.serial, op, at });
        self.blocked[from.entry as usize] = true;
    }

    /// What blocked a value that is gone blocks what it was made of.
    fn pass_on_blocks(&mut self, number: usize, dead: &Entry) {
        let is_its = |block: &Block| block.from.entry as usize == number && block.serial == dead.serial;
        let (its, others): (Vec<Block>, Vec<Block>) = self.blocks.drain(..).partition(is_its);
        self.blocks = others.into();
        for block in its {
            for &source in dead.sources.iter().flatten() {
                self.block(source, block.op, block.at);
            }
        }
    }

    /// Takes a use away, and moves what nobody uses any more to the deferred_drops.
    fn release(&mut self, entry: u32) {
        let mut left: SmallVec<[u32; 8]> = SmallVec::from_slice(&[entry]);
        while let Some(entry) = left.pop() {
            let i = entry as usize;
            // What was taken by a walk, or forgotten by a reset, is no longer counted.
            let Some(Some(_)) = self.entries.get(i) else { continue };
            self.uses[i] -= 1;
            if self.uses[i] == 0
                && let Some(dead) = self.entries[i].take()
            {
                if self.blocked[i] {
                    self.pass_on_blocks(i, &dead);
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
    pub(crate) fn new(watches_variables: bool, once: bool) -> Record {
        Record { state: Mutex::default(), watches_variables, once }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot have left the counts half written: nothing here calls out under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a tensor from now on.
    pub(crate) fn watch(&self, tensor: &Tensor, at: Location) {
        if slot_of(tensor, self).is_some() {
            return;
        }
        let mark = taut_core::record::mark(tensor);
        let mut state = self.state();
        if state.closed {
            return;
        }
        let entry = state.push(Entry::leaf(tensor.spec().clone(), at), 1);
        state.leaves.insert(mark, Slot { entry, output: 0 });
    }

    /// Follows a variable from now on.
    pub(crate) fn watch_variable(&self, variable: &Variable, at: Location) -> Option<Slot> {
        let mut state = self.state();
        if let Some(&slot) = state.variables.get(&variable.id()) {
            return Some(slot);
        }
        if state.closed {
            return None;
        }
        let entry = state.push(Entry::leaf(variable.spec().clone(), at), 1);
        let slot = Slot { entry, output: 0 };
        state.variables.insert(variable.id(), slot);
        state.watched.push(variable.clone());
        Some(slot)
    }

    /// The variable's slot, if it is followed.
    pub(crate) fn variable(&self, variable: &Variable) -> Option<Slot> {
        self.state().variables.get(&variable.id()).copied()
    }

    pub(crate) fn watched_variables(&self) -> Vec<Variable> {
        self.state().watched.clone()
    }

    /// How many calls are written down.
    pub(crate) fn calls(&self) -> usize {
        let state = self.state();
        state.entries.iter().flatten().filter(|entry| entry.op.is_some()).count()
    }

    /// The entries as they are now.
    pub(crate) fn entries(&self) -> Vec<Option<Arc<Entry>>> {
        self.state().entries.clone()
    }

    /// The entries, which the record forgets: links to it mean nothing any more.
    pub(crate) fn take(&self) -> Vec<Option<Arc<Entry>>> {
        let mut state = self.state();
        let taken = std::mem::take(&mut *state);
        (state.dropping, state.closed) = (taken.dropping, true);
        drop(state);
        drop(taken.deferred_drops);
        taken.entries
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.state().blocks.iter().copied().collect()
    }

    /// Drops what was released, one by one and without the lock. Only one call at a time does so, and what it drops
    /// may release more: so a chain of any length is dropped without recursion.
    fn bury<'a>(&'a self, mut state: MutexGuard<'a, State>) {
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
    fn leaf(&self, mark: u64) -> Option<Slot> {
        self.state().leaves.get(&mark).copied()
    }

    fn is_single_use(&self) -> bool {
        self.once
    }

    fn record_op(&self, call: &RecordedCall<'_>) -> Result<Option<u32>> {
        let outputs = call.outputs.iter().filter(|output| output.dtype().is_float()).count();
        if outputs == 0 {
            self.blocked(call);
            return Ok(None);
        }
        let part = |(i, tensor): (usize, &Tensor), keep: Set, kept: Option<&Tensor>| SavedValue {
            spec: tensor.spec().clone(),
            kept: kept.filter(|_| keep.has(i)).cloned(),
        };
        let saves = call.saves;
        let entry = Entry {
            op: Some(call.op.shared()),
            at: call.at,
            inputs: (call.inputs.iter().enumerate())
                .map(|(i, tensor)| part((i, tensor), saves.inputs, call.kept[i].as_ref()))
                .collect(),
            sources: call.slots.iter().copied().collect(),
            outputs: (call.outputs.iter().enumerate())
                .map(|(i, tensor)| part((i, tensor), saves.outputs, Some(tensor)))
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
        Ok(Some(state.push(entry, outputs as u32)))
    }

    fn blocked(&self, call: &RecordedCall<'_>) {
        let mut state = self.state();
        for &from in call.slots.iter().flatten() {
            state.block(from, call.op.name(), call.at);
        }
    }

    fn link_outputs(&self, entry: u32, outputs: &[Tensor]) {
        let settled: SmallVec<[Tensor; 1]> =
            outputs.iter().map(|output| taut_core::record::detached_from(output, self)).collect();
        let mut replaced = Vec::new();
        let mut state = self.state();
        if let Some(Some(entry)) = state.entries.get_mut(entry as usize)
            && let Some(entry) = Arc::get_mut(entry)
        {
            for (part, output) in entry.outputs.iter_mut().zip(settled) {
                if part.kept.is_some() {
                    replaced.push(part.kept.replace(output));
                }
            }
        }
        drop(state);
    }

    fn access(&self, variable: &dyn Any) -> Option<Slot> {
        let variable = variable.downcast_ref::<Variable>()?;
        let follow = self.watches_variables && variable.is_trainable() && variable.dtype().is_float();
        let slot = match self.variable(variable) {
            None if follow => self.watch_variable(variable, Location::caller())?,
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
        self.bury(state);
    }
}
