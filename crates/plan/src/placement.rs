//! Places every value in memory, given an order of the steps: what is computed in place, live ranges, packing.

use crate::lower::{AliasSetKind, LoweredGraph};
use crate::order::{CandidateOrders, repair};
use crate::program::{Home, Program, ProgramStep, Storage};
use crate::{Effort, LiveBuffer, Packing, pack};
use smallvec::SmallVec;
use std::cmp::Ordering;
use taut_core::{Error, Result};

/// About two milliseconds of search where the greedy orders miss the lower bound: planning is part of the first call.
pub(crate) const EFFORT: Effort = Effort { steps: 400_000 };

/// The most donated inputs for which both uses of their memory are tried, to bound the time of planning.
const MAX_RESERVED: usize = 8;

/// Every storage begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// A buffer of the arena, live from step `start` up to, not including, step `end`.
pub(crate) fn buffer(size: usize, start: usize, end: usize) -> LiveBuffer {
    LiveBuffer { align: ALIGNMENT, ..LiveBuffer::new(size, start as u32, end as u32) }
}

/// The bytes that a buffer takes of the arena.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The memory assigned to a root alias set, before it has an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssignedHome {
    /// The memory of this input.
    Input(usize),
    Constant(usize),
    Arena,
    /// An output buffer of its own, allocated for the caller.
    Output,
    /// The output buffer of this alias set, before that set is live.
    ReusedOutput(usize),
}

/// The memory of all alias sets under one order of the steps.
#[derive(Clone)]
pub(crate) struct Placement {
    /// Per alias set, its root: the first set of a chain in which each is computed in place of the one before.
    roots: Vec<u32>,
    /// Per value computed in place: its step (by position in the order), the operand, and the output.
    in_place: Vec<(u32, u32, u32)>,
    /// Live ranges of the roots: the first position in the order, and the position after the last.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Of the roots.
    homes: Vec<AssignedHome>,
    /// The most bytes of the arena that are live at one step.
    max_live_bytes: usize,
    /// The first position in the order with that many live bytes, and the number of such positions.
    peak: usize,
    peak_steps: usize,
    /// Bytes of all output buffers.
    output_bytes: usize,
}

/// An order of the steps, with the memory of every value under it.
pub(crate) struct PackedOrder {
    pub(crate) order: Vec<u32>,
    placement: Placement,
    packing: Packing,
}

impl PackedOrder {
    /// Places and packs all values under an order.
    pub(crate) fn new(lowered: &LoweredGraph<'_>, order: Vec<u32>, effort: Effort) -> Result<PackedOrder> {
        let placement = Placement::new(lowered, &order);
        let packing = placement.pack(lowered, &order, effort)?;
        Ok(PackedOrder { order, placement, packing })
    }

    /// The bytes of the arena and of the output buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.packing.bytes + self.placement.output_bytes
    }

    /// The program that runs the steps in this order.
    pub(crate) fn program(self, lowered: LoweredGraph<'_>) -> Program {
        self.placement.finish(lowered, &self.order, self.packing)
    }
}

/// The order that needs the fewest bytes; ties go to the earlier candidate.
pub(crate) fn best(lowered: &LoweredGraph<'_>, orders: CandidateOrders) -> Result<PackedOrder> {
    let CandidateOrders { dependencies, list } = orders;
    let mut tried: Vec<(Vec<u32>, Placement)> = Vec::with_capacity(list.len() + 1);
    for order in list {
        let placement = Placement::new(lowered, &order);
        tried.push((order, placement));
    }
    let chosen = (0..tried.len()).min_by_key(|&i| tried[i].1.bytes()).unwrap_or(0);
    let mut finalists: SmallVec<[usize; 3]> = [chosen, 0].into_iter().collect();
    if tried.len() > 1
        && let Some(repaired) = repair(lowered, &dependencies, &tried)
    {
        finalists.insert(0, tried.len());
        tried.push(repaired);
    }
    finalists.dedup();
    // A packing may need more than the live bytes, or less than them by up to the alignment. Then an order with more live
    // bytes may still be better.
    let mut best: Option<(usize, usize, Packing)> = None;
    for i in finalists {
        let (order, placement) = &tried[i];
        if best.as_ref().is_some_and(|(bytes, ..)| bytes + ALIGNMENT <= placement.bytes()) {
            continue;
        }
        let packing = placement.pack(lowered, order, EFFORT)?;
        let bytes = packing.bytes + placement.output_bytes;
        if best.as_ref().is_none_or(|(least, ..)| bytes < *least) {
            best = Some((bytes, i, packing));
        }
    }
    let Some((_, i, packing)) = best else {
        return Err(Error::value("the list of candidate orders must not be empty"));
    };
    let (order, placement) = tried.swap_remove(i);
    Ok(PackedOrder { order, placement, packing })
}

impl Placement {
    /// Computes in place of donated inputs where possible. An input whose memory saves more bytes as the home of a returned
    /// value is reserved for that.
    pub(crate) fn new(lowered: &LoweredGraph<'_>, order: &[u32]) -> Placement {
        let is_donated = |input: &usize| matches!(lowered.alias_sets[*input].kind, AliasSetKind::Donated(_));
        let donated: SmallVec<[usize; 8]> =
            (0..lowered.inputs.len()).filter(is_donated).take(MAX_RESERVED).collect();
        let mut reserved = vec![false; lowered.inputs.len()];
        let mut best = Placement::with(lowered, order, &reserved);
        loop {
            let mut better = None;
            for &input in &donated {
                let is_overwritten = best.roots.iter().filter(|&&root| root as usize == input).count() > 1;
                if !is_overwritten && !reserved[input] {
                    continue;
                }
                reserved[input] ^= true;
                let other = Placement::with(lowered, order, &reserved);
                reserved[input] ^= true;
                if other.bytes()
                    < better.as_ref().map_or(best.bytes(), |(_, other): &(_, Placement)| other.bytes())
                {
                    better = Some((input, other));
                }
            }
            let Some((input, other)) = better else { return best };
            reserved[input] ^= true;
            best = other;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.max_live_bytes + self.output_bytes
    }

    /// Orders are compared by this: bytes, then the number of steps at the peak.
    pub(crate) fn cost_key(&self) -> (usize, usize) {
        (self.bytes(), self.peak_steps)
    }

    /// The first position in the order at which the most bytes of the arena are live.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// The roots in the arena that are live at a step which does not use them; the largest first.
    pub(crate) fn idle_at(&self, lowered: &LoweredGraph<'_>, order: &[u32], at: usize) -> Vec<usize> {
        let Some(&number) = order.get(at) else { return Vec::new() };
        let is_idle = |&i: &usize| {
            let spans = (self.starts[i] as usize) < at && self.ends[i] as usize > at + 1;
            self.is_packed(i) && spans && !self.is_used(&lowered.steps[number as usize], i)
        };
        let mut idle: Vec<usize> = (0..lowered.alias_sets.len()).filter(is_idle).collect();
        idle.sort_by_key(|&i| std::cmp::Reverse(lowered.alias_sets[i].bytes));
        idle
    }

    /// The steps that use a root, in order.
    pub(crate) fn users(
        &self,
        lowered: &LoweredGraph<'_>,
        order: &[u32],
        root: usize,
    ) -> impl Iterator<Item = u32> {
        let live_range = &order[self.starts[root] as usize..self.ends[root] as usize];
        live_range.iter().copied().filter(move |&step| self.is_used(&lowered.steps[step as usize], root))
    }

    fn is_used(&self, step: &ProgramStep, root: usize) -> bool {
        let mut used = step.operands.iter().map(|o| o.storage).chain(step.targets.iter().map(|t| t.storage));
        used.any(|set| self.roots[set] as usize == root)
    }

    /// The placement in which nothing is computed in place of the reserved inputs.
    fn with(lowered: &LoweredGraph<'_>, order: &[u32], reserved: &[bool]) -> Placement {
        let count = lowered.alias_sets.len();
        let mut placement = Placement {
            roots: (0..count as u32).collect(),
            in_place: Vec::new(),
            starts: vec![u32::MAX; count],
            ends: vec![0; count],
            homes: Vec::with_capacity(count),
            max_live_bytes: 0,
            peak: 0,
            peak_steps: 0,
            output_bytes: 0,
        };
        placement.compute_in_place(lowered, order, reserved);
        placement.live_ranges(lowered, order);
        placement.reuse_donated_inputs(lowered);
        let mut other = placement.clone();
        let moved = placement.reuse_output_buffers(lowered, true);
        placement.sum_live_bytes(lowered, order);
        if moved {
            other.reuse_output_buffers(lowered, false);
            other.sum_live_bytes(lowered, order);
            if other.max_live_bytes < placement.max_live_bytes {
                return other;
            }
        }
        placement
    }

    /// Lets a step overwrite an operand at its last read, where the op allows it.
    fn compute_in_place(&mut self, lowered: &LoweredGraph<'_>, order: &[u32], reserved: &[bool]) {
        let mut left: Vec<usize> = lowered.alias_sets.iter().map(|set| set.reads).collect();
        for (at, &number) in order.iter().enumerate() {
            let step = &lowered.steps[number as usize];
            let first = self.in_place.len();
            for choice in &lowered.choices[number as usize] {
                let (from, to) = (step.operands[choice.operand].storage, step.targets[choice.output].storage);
                let set = &lowered.alias_sets[from];
                let free = match set.kind {
                    AliasSetKind::Computed => !set.is_output,
                    AliasSetKind::Donated(input) => !set.is_output && !reserved[input],
                    _ => false,
                };
                let made = lowered.alias_sets[to].kind == AliasSetKind::Computed;
                let taken = |&(_, operand, output): &(u32, u32, u32)| {
                    operand == choice.operand as u32 || output == choice.output as u32
                };
                if left[from] == 1
                    && (choice.forced || (free && made))
                    && !self.in_place[first..].iter().any(taken)
                {
                    self.roots[to] = self.roots[from];
                    self.in_place.push((at as u32, choice.operand as u32, choice.output as u32));
                }
            }
            for operand in &step.operands {
                left[operand.storage] -= 1;
            }
        }
    }

    /// Computes the live range of each root, and assigns memory by what the set is.
    fn live_ranges(&mut self, lowered: &LoweredGraph<'_>, order: &[u32]) {
        for (at, &number) in order.iter().enumerate() {
            let step = &lowered.steps[number as usize];
            let used = step.operands.iter().map(|o| o.storage).chain(step.targets.iter().map(|t| t.storage));
            for root in used.map(|set| self.roots[set] as usize) {
                self.starts[root] = self.starts[root].min(at as u32);
                self.ends[root] = at as u32 + 1;
            }
        }
        let after = order.len() as u32 + 1;
        for (i, set) in lowered.alias_sets.iter().enumerate() {
            let root = self.roots[i] as usize;
            if set.is_output || matches!(set.kind, AliasSetKind::Update(_)) {
                self.ends[root] = after;
            }
        }
        for (i, set) in lowered.alias_sets.iter().enumerate() {
            if !matches!(set.kind, AliasSetKind::Computed | AliasSetKind::Update(_)) {
                self.starts[i] = 0;
            }
            self.homes.push(match set.kind {
                AliasSetKind::Input(input) | AliasSetKind::Donated(input) | AliasSetKind::Update(input) => {
                    AssignedHome::Input(input)
                }
                AliasSetKind::Constant(constant) => AssignedHome::Constant(constant),
                AliasSetKind::Computed if self.ends[i] == after => AssignedHome::Output,
                AliasSetKind::Computed => AssignedHome::Arena,
            });
        }
    }

    /// Puts values of the same size into the memory of a donated input after its last read. A returned value goes last:
    /// its own buffer would be allocated for the whole run.
    fn reuse_donated_inputs(&mut self, lowered: &LoweredGraph<'_>) {
        let is_donated = |set: &usize| matches!(lowered.alias_sets[*set].kind, AliasSetKind::Donated(_));
        let donated: Vec<usize> = (0..lowered.inputs.len()).filter(is_donated).collect();
        if donated.is_empty() {
            return;
        }
        let (mut unassigned, mut returned) = (Vec::new(), Vec::new());
        for (i, set) in lowered.alias_sets.iter().enumerate() {
            let is_root = self.roots[i] as usize == i && set.bytes > 0;
            match self.homes[i] {
                AssignedHome::Arena if is_root => unassigned.push(i),
                AssignedHome::Output if is_root => returned.push(i),
                _ => {}
            }
        }
        // Memory that is free for one value is also free for later ones: each takes what became free last.
        returned.sort_by_key(|&i| self.starts[i]);
        let mut until = vec![u32::MAX; donated.len()];
        for i in returned {
            let fits = |&n: &usize| {
                let home = donated[n];
                let is_free = self.ends[home] <= self.starts[i] && until[n] == u32::MAX;
                is_free && lowered.alias_sets[home].bytes == lowered.alias_sets[i].bytes
            };
            if let Some(n) = (0..donated.len()).filter(fits).max_by_key(|&n| self.ends[donated[n]]) {
                until[n] = self.starts[i];
                self.homes[i] = self.homes[donated[n]];
            }
        }
        // By their ends: as many as fit one after the other (interval scheduling).
        unassigned.sort_by_key(|&i| (self.ends[i], self.starts[i]));
        for (home, until) in donated.into_iter().zip(until) {
            let mut free = self.ends[home];
            unassigned.retain(|&i| {
                let fits = lowered.alias_sets[i].bytes == lowered.alias_sets[home].bytes;
                let is_taken = fits && self.starts[i] >= free && self.ends[i] <= until;
                if is_taken {
                    free = self.ends[i];
                    self.homes[i] = self.homes[home];
                }
                !is_taken
            });
        }
    }

    /// Output buffers are allocated before the run. Puts other values into them until the returned value is computed:
    /// of those that fit, the sequence with the most bytes (weighted interval scheduling); ties go to the later ones or
    /// to the earlier ones. Returns whether a value was moved.
    fn reuse_output_buffers(&mut self, lowered: &LoweredGraph<'_>, later: bool) -> bool {
        let bytes = |i: usize| lowered.alias_sets[i].bytes;
        let roots = |home: AssignedHome| {
            let is_at = |&i: &usize| self.roots[i] as usize == i && self.homes[i] == home && bytes(i) > 0;
            (0..lowered.alias_sets.len()).filter(is_at).collect::<Vec<usize>>()
        };
        let mut homes = roots(AssignedHome::Output);
        homes.retain(|&home| self.starts[home] > 0);
        if homes.is_empty() {
            return false;
        }
        let mut moved = false;
        homes.sort_by_key(|&home| std::cmp::Reverse(bytes(home)));
        let mut unassigned = roots(AssignedHome::Arena);
        unassigned.sort_by_key(|&i| (self.ends[i], self.starts[i]));
        for home in homes {
            let fits = |&i: &usize| bytes(i) <= bytes(home) && self.ends[i] <= self.starts[home];
            let fitting: Vec<usize> = unassigned.iter().copied().filter(fits).collect();
            // The most bytes among the first k, and whether the k-th is one of them.
            let mut most = vec![(0usize, false); fitting.len() + 1];
            let before =
                |k: usize| fitting.partition_point(|&i| self.ends[i] <= self.starts[fitting[k]]).min(k);
            for k in 0..fitting.len() {
                let with = most[before(k)].0 + bytes(fitting[k]);
                let better = with > most[k].0 || (later && with == most[k].0);
                most[k + 1] = if better { (with, true) } else { (most[k].0, false) };
            }
            let mut k = fitting.len();
            let mut chosen = Vec::new();
            while k > 0 {
                if most[k].1 {
                    chosen.push(fitting[k - 1]);
                    k = before(k - 1);
                } else {
                    k -= 1;
                }
            }
            moved |= !chosen.is_empty();
            for &i in &chosen {
                self.homes[i] = AssignedHome::ReusedOutput(home);
            }
            unassigned.retain(|i| !chosen.contains(i));
        }
        moved
    }

    /// Adds up the live bytes of each step and the output buffers.
    fn sum_live_bytes(&mut self, lowered: &LoweredGraph<'_>, order: &[u32]) {
        let mut changes = vec![0isize; order.len() + 2];
        for (i, set) in lowered.alias_sets.iter().enumerate().filter(|&(i, _)| self.roots[i] as usize == i) {
            match self.homes[i] {
                AssignedHome::Arena => {
                    let bytes = rounded(set.bytes) as isize;
                    changes[self.starts[i] as usize] += bytes;
                    changes[self.ends[i] as usize] -= bytes;
                }
                AssignedHome::Output => self.output_bytes += set.bytes,
                _ => {}
            }
        }
        for (at, &number) in order.iter().enumerate() {
            let scratch = rounded(lowered.steps[number as usize].scratch.1) as isize;
            changes[at] += scratch;
            changes[at + 1] -= scratch;
        }
        let mut now = 0;
        for (at, change) in changes[..order.len()].iter().enumerate() {
            now += change;
            match (now as usize).cmp(&self.max_live_bytes) {
                Ordering::Greater => {
                    (self.max_live_bytes, self.peak, self.peak_steps) = (now as usize, at, 1);
                }
                Ordering::Equal => self.peak_steps += 1,
                Ordering::Less => {}
            }
        }
    }

    /// Packs the arena: first the roots by index, then the scratch memory of each step.
    fn pack(&self, lowered: &LoweredGraph<'_>, order: &[u32], effort: Effort) -> Result<Packing> {
        let mut buffers = Vec::new();
        for (i, set) in lowered.alias_sets.iter().enumerate() {
            if self.is_packed(i) {
                buffers.push(buffer(set.bytes, self.starts[i] as usize, self.ends[i] as usize));
            }
        }
        for (at, &number) in order.iter().enumerate() {
            match lowered.steps[number as usize].scratch.1 {
                0 => {}
                scratch => buffers.push(buffer(scratch, at, at + 1)),
            }
        }
        pack(&buffers, effort).map_err(|refused| Error::shape(refused.to_string()))
    }

    fn is_packed(&self, set: usize) -> bool {
        self.roots[set] as usize == set && self.homes[set] == AssignedHome::Arena
    }

    /// The program, with the home of every storage.
    fn finish(&self, lowered: LoweredGraph<'_>, order: &[u32], packing: Packing) -> Program {
        let mut offsets = packing.offsets.iter().copied();
        let (mut storages, mut buffers) = (Vec::new(), Vec::new());
        let mut numbers = vec![0; lowered.alias_sets.len()];
        let mut made = vec![0; lowered.alias_sets.len()];
        for (i, set) in lowered.alias_sets.iter().enumerate() {
            if self.roots[i] as usize == i && self.homes[i] == AssignedHome::Output {
                made[i] = buffers.len();
                buffers.push(set.bytes);
            }
        }
        for (i, set) in lowered.alias_sets.iter().enumerate().filter(|&(i, _)| self.roots[i] as usize == i) {
            let home = match self.homes[i] {
                AssignedHome::Input(input) => Home::Input(input),
                AssignedHome::Constant(constant) => Home::Constant(constant),
                AssignedHome::Output => Home::Output(made[i]),
                AssignedHome::ReusedOutput(returned) => Home::Output(made[returned]),
                AssignedHome::Arena => Home::Arena(offsets.next().unwrap_or(0)),
            };
            numbers[i] = storages.len();
            let (start, end) = (self.starts[i].min(self.ends[i]) as usize, self.ends[i] as usize);
            storages.push(Storage { home, bytes: set.bytes, start, end, value: set.value });
        }
        let number = |set: &mut usize| *set = numbers[self.roots[*set] as usize];
        let LoweredGraph { steps, constants, inputs, mut results, .. } = lowered;
        let mut remaining: Vec<_> = steps.into_iter().map(Some).collect();
        let mut steps: Vec<_> = order.iter().filter_map(|&i| remaining[i as usize].take()).collect();
        for &(at, operand, output) in &self.in_place {
            steps[at as usize].operands[operand as usize].in_place = Some(output as usize);
        }
        for step in &mut steps {
            step.operands.iter_mut().for_each(|operand| number(&mut operand.storage));
            step.targets.iter_mut().for_each(|target| number(&mut target.storage));
            if step.scratch.1 > 0 {
                step.scratch.0 = offsets.next().unwrap_or(0);
            }
        }
        results.iter_mut().for_each(|result| number(&mut result.storage));
        Program { steps, storages, results, buffers, constants, inputs, packing }
    }
}
