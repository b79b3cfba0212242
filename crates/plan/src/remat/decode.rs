//! The decoder: an order, a goal in bytes and a score become a sequence that keeps the goal, or nothing.
//!
//! It walks the order with the set of resident values. Before a step it rematerialises missing operands, recursively.
//! When bytes are missing, it evicts the value of the highest score, and the operands from which that value can be
//! rematerialised are retained until its next read, beyond their own last one: they become checkpoints.

use super::order::IndexedOrder;
use super::problem::{Aliases, NONE, Problem, RematStep, Residence};
use super::score::EvictionScore;
use smallvec::SmallVec;

/// What a decoder starts from.
pub(super) struct Guide<'a> {
    pub(super) score: EvictionScore,
    /// Per value, a factor of its score; empty for 1.
    pub(super) weights: &'a [f64],
    /// Values, and places until which they are retained although no step of the order reads them there.
    pub(super) retained: &'a [(u32, u32)],
    /// Places, ascending, and values that must be resident when their steps run, although a later step reads them.
    pub(super) prefetches: &'a [(u32, u32)],
}

/// What a decoder comes to.
pub(super) enum Decoded {
    Done(Vec<u32>),
    /// Bytes were missing when this value had to be rematerialised for the step at this place. Earlier, they may be there.
    Stuck {
        place: u32,
        value: u32,
    },
    /// The step at this place cannot keep the limits.
    Failed {
        place: u32,
    },
}

/// What ends a decoder early.
pub(super) struct Limits {
    /// The bytes of the arena that may be in use.
    pub(super) goal: i64,
    /// The cost of repetitions beyond which the sequence is of no use.
    pub(super) extra: u64,
    /// Units of work.
    pub(super) work: u64,
}

/// A step that waits for its operands.
struct Frame {
    step: u32,
    /// The value it is repeated for; [`NONE`] for the step of the order itself.
    target: u32,
    /// The operands that were rematerialised for it.
    pinned: SmallVec<[u32; 2]>,
}

/// What happens to the values of a step that runs.
#[derive(Default)]
struct StepPlan {
    /// The outputs it writes.
    written: SmallVec<[u32; 4]>,
    /// The operands that die at it, among those of its in-place pairs that lie in the arena.
    dead: SmallVec<[u32; 4]>,
}

pub(super) struct Decoder<'a> {
    pub(super) problem: &'a Problem,
    pub(super) order: &'a IndexedOrder,
    pub(super) guide: &'a Guide<'a>,
    limits: &'a Limits,
    /// The place in the order.
    pub(super) at: u32,
    sequence: Vec<u32>,
    extra: u64,
    pub(super) work: u64,
    live: i64,
    /// Per value, whether it can be read.
    pub(super) resident: Vec<bool>,
    /// The resident values that take bytes, and per value its index there.
    pub(super) list: Vec<u32>,
    pub(super) slot: Vec<u32>,
    /// Per value, how many waiting steps read it, and how many of them rely on its staying resident.
    pub(super) pending: Vec<u32>,
    pub(super) pins: Vec<u32>,
    /// Per value, the next place after the present one that reads or retains it; stale if not after the present one.
    next: Vec<u32>,
    cursor: Vec<u32>,
    /// Per value, the places until which it is retained for the rematerialisation of others.
    retained: Vec<SmallVec<[u32; 2]>>,
    /// Values worth evicting when all were last scored, with their scores, and the best score of the others.
    pub(super) shortlist: Vec<(f64, u32)>,
    pub(super) cutoff: f64,
    /// Steps visited by the current traversal have the current stamp.
    pub(super) marks: Vec<u32>,
    pub(super) stamp: u32,
    pub(super) open: Vec<u32>,
    frames: Vec<Frame>,
    /// The prefetches of places from the present one on, and those of the present one.
    prefetches: &'a [(u32, u32)],
    present: &'a [(u32, u32)],
    stuck: Option<(u32, u32)>,
}

/// Decodes one guide; adds to `work` what that took.
pub(super) fn decode(
    problem: &Problem,
    order: &IndexedOrder,
    guide: &Guide<'_>,
    limits: &Limits,
    work: &mut u64,
) -> Decoded {
    let mut decoder = Decoder::new(problem, order, guide, limits);
    let done = decoder.walk();
    *work += decoder.work;
    match decoder.stuck {
        _ if done => Decoded::Done(decoder.sequence),
        Some((place, value)) => Decoded::Stuck { place, value },
        None => Decoded::Failed { place: decoder.at },
    }
}

impl<'a> Decoder<'a> {
    fn new(
        problem: &'a Problem,
        order: &'a IndexedOrder,
        guide: &'a Guide<'a>,
        limits: &'a Limits,
    ) -> Decoder<'a> {
        let (values, steps) = (problem.values.len(), problem.steps.len());
        let is_external =
            |v: usize| matches!(problem.values[v].residence, Residence::External | Residence::Donated);
        let mut retained = vec![SmallVec::new(); values];
        guide.retained.iter().for_each(|&(value, at): &(u32, u32)| retained[value as usize].push(at));
        Decoder {
            problem,
            order,
            guide,
            limits,
            at: 0,
            sequence: Vec::with_capacity(steps * 2),
            extra: 0,
            work: (values + steps) as u64,
            live: 0,
            resident: (0..values).map(is_external).collect(),
            list: Vec::new(),
            slot: vec![NONE; values],
            pending: vec![0; values],
            pins: vec![0; values],
            next: vec![0; values],
            cursor: vec![0; values],
            retained,
            shortlist: Vec::new(),
            cutoff: f64::INFINITY,
            marks: vec![0; steps],
            stamp: 0,
            open: Vec::new(),
            frames: Vec::new(),
            prefetches: guide.prefetches,
            present: &[],
            stuck: None,
        }
    }

    fn walk(&mut self) -> bool {
        let order = self.order;
        for (at, &step) in order.order.iter().enumerate() {
            self.at = at as u32;
            let count = self.prefetches.partition_point(|prefetch| prefetch.0 <= self.at);
            (self.present, self.prefetches) = self.prefetches.split_at(count);
            self.present.iter().for_each(|prefetch| self.pending[prefetch.1 as usize] += 1);
            self.push(step, NONE);
            while let Some(frame) = self.frames.last() {
                let step = frame.step;
                let advanced = match self.missing_operand(step) {
                    Some(value) => self.repeat(value),
                    None => self.run_last(),
                };
                if !advanced || self.work > self.limits.work {
                    return false;
                }
            }
        }
        true
    }

    fn push(&mut self, step: u32, target: u32) {
        for &v in &self.problem.steps[step as usize].reads {
            self.pending[v as usize] += 1;
        }
        self.frames.push(Frame { step, target, pinned: SmallVec::new() });
    }

    /// A value that has to be rematerialised before the step of the last frame can run.
    fn missing_operand(&mut self, step: u32) -> Option<u32> {
        if self.frames.len() == 1
            && let Some(&(_, v)) = self.present.iter().find(|prefetch| !self.resident[prefetch.1 as usize])
        {
            return Some(v);
        }
        let reads = &self.problem.steps[step as usize].reads;
        self.work += 1 + reads.len() as u64;
        let mut missing = reads.iter().copied().filter(|&v| !self.resident[v as usize]);
        let first = missing.next()?;
        let Some(second) = missing.next() else { return Some(first) };
        // The longest chain first: the fewest others wait for it in memory.
        let others: SmallVec<[u32; 4]> = [second].into_iter().chain(missing).collect();
        let mut best = (self.cost_of(first, self.at), first);
        for v in others {
            let cost = self.cost_of(v, self.at);
            if cost > best.0 {
                best = (cost, v);
            }
        }
        Some(best.1)
    }

    /// Lets the step that writes a value run again, if it may and the limits allow it.
    fn repeat(&mut self, value: u32) -> bool {
        let step = self.problem.makers[value as usize];
        if step == NONE || !self.order.may_repeat(self.problem, step, self.at) {
            return false;
        }
        self.extra = self.extra.saturating_add(self.problem.steps[step as usize].cost);
        self.push(step, value);
        self.extra <= self.limits.extra
    }

    /// Runs the last frame, whose operands are all resident.
    fn run_last(&mut self) -> bool {
        let Some(Frame { step, target, pinned }) = self.frames.pop() else { return false };
        let reads = &self.problem.steps[step as usize].reads;
        let prefetched = if target == NONE { self.present } else { &[] };
        pinned.iter().for_each(|&v| self.pins[v as usize] -= 1);
        reads.iter().for_each(|&v| self.pins[v as usize] += 1);
        prefetched.iter().for_each(|prefetch| self.pins[prefetch.1 as usize] += 1);
        let Some(plan) = self.make_room(step, target) else {
            let value = self.frames.get(1).map_or(target, |frame| frame.target);
            self.stuck = (target != NONE).then_some((self.at, value));
            return false;
        };
        self.sequence.push(step);
        for &(_, v) in prefetched {
            self.pins[v as usize] -= 1;
            self.pending[v as usize] -= 1;
        }
        for &v in reads {
            self.pins[v as usize] -= 1;
            self.pending[v as usize] -= 1;
        }
        self.write(target, &plan);
        for &v in reads {
            let is_idle = self.pins[v as usize] == 0 && self.pending[v as usize] == 0;
            if self.problem.bytes[v as usize] > 0 && is_idle && self.future(v) == NONE {
                self.remove(v);
            }
        }
        if let Some(frame) = self.frames.last_mut().filter(|_| target != NONE) {
            frame.pinned.push(target);
            self.pins[target as usize] += 1;
        }
        true
    }

    /// Evicts values until a step can run.
    fn make_room(&mut self, step: u32, target: u32) -> Option<StepPlan> {
        let problem = self.problem;
        let RematStep { writes, scratch, prunable, in_place, .. } = &problem.steps[step as usize];
        let mut plan = StepPlan::default();
        for &v in writes {
            if !prunable || self.is_needed(v, target) {
                plan.written.push(v);
            }
        }
        for &(operand, _) in in_place {
            let dies = self.is_read_last(operand) && self.future(operand) == NONE;
            // What lies over a donated input may have to make way for another alias, so that is not counted on.
            let is_in_arena = problem.bytes[operand as usize] > 0;
            if is_in_arena && dies && !plan.dead.contains(&operand) {
                plan.dead.push(operand);
            }
        }
        loop {
            let added = *scratch as i64 + self.added(step, &plan);
            if self.live + added <= self.limits.goal {
                return Some(plan);
            }
            let mut own: SmallVec<[u32; 4]> = SmallVec::new();
            let spare =
                |v: &u32| problem.bytes[*v as usize] > 0 && !plan.dead.contains(v) && self.is_read_last(*v);
            own.extend(in_place.iter().map(|pair| pair.0).filter(spare));
            if *prunable {
                let idle = |v: &u32| *v != target && self.pending[*v as usize] == 0;
                own.extend(plan.written.iter().copied().filter(idle));
            }
            let victim = self.victim(&own)?;
            self.retain_operands_of(victim);
            if let Some(i) = plan.written.iter().position(|&v| v == victim) {
                plan.written.remove(i);
                self.remove(victim);
            } else if own.contains(&victim) {
                plan.dead.push(victim);
            } else {
                self.remove(victim);
            }
        }
    }

    fn is_needed(&mut self, output: u32, target: u32) -> bool {
        output == target || self.pending[output as usize] > 0 || self.future(output) != NONE
    }

    /// Whether the step that is about to run is the only one that waits for an operand.
    fn is_read_last(&self, operand: u32) -> bool {
        self.pins[operand as usize] == 1 && self.pending[operand as usize] == 1
    }

    /// The bytes that a step adds to those of the resident values, without scratch.
    fn added(&self, step: u32, plan: &StepPlan) -> i64 {
        let missing = |v: u32| if self.resident[v as usize] { 0 } else { self.problem.bytes[v as usize] };
        let written: i64 = plan.written.iter().map(|&v| missing(v)).sum();
        let aliases = self.aliases(step, plan);
        let over = aliases.iter().filter(|pair| plan.written.contains(&pair.1));
        written - over.map(|pair| missing(pair.1)).sum::<i64>()
    }

    fn aliases(&self, step: u32, plan: &StepPlan) -> Aliases {
        self.problem.aliases(step as usize, |v| plan.dead.contains(&v))
    }

    /// Takes what dies out of the resident values, and puts in what the step wrote.
    fn write(&mut self, target: u32, plan: &StepPlan) {
        plan.dead.iter().for_each(|&v| self.remove(v));
        for &v in &plan.written {
            self.remove(v);
            if self.problem.bytes[v as usize] == 0 || self.is_needed(v, target) {
                self.add(v);
            }
        }
    }

    fn add(&mut self, value: u32) {
        self.resident[value as usize] = true;
        let bytes = self.problem.bytes[value as usize];
        if bytes == 0 {
            return;
        }
        self.live += bytes;
        self.slot[value as usize] = self.list.len() as u32;
        self.list.push(value);
        self.shortlist.push((f64::INFINITY, value));
    }

    fn remove(&mut self, value: u32) {
        if !std::mem::replace(&mut self.resident[value as usize], false) {
            return;
        }
        self.live -= self.problem.bytes[value as usize];
        let slot = std::mem::replace(&mut self.slot[value as usize], NONE);
        if slot != NONE {
            self.list.swap_remove(slot as usize);
            if let Some(&moved) = self.list.get(slot as usize) {
                self.slot[moved as usize] = slot;
            }
        }
    }

    /// The next place after the present one that reads or retains a value, or [`NONE`].
    pub(super) fn future(&mut self, value: u32) -> u32 {
        let v = value as usize;
        if self.next[v] > self.at {
            return self.next[v];
        }
        let reads = self.order.reads_of(value);
        while reads.get(self.cursor[v] as usize).is_some_and(|&at| at <= self.at) {
            self.cursor[v] += 1;
            self.work += 1;
        }
        let now = self.at;
        self.retained[v].retain(|at| *at > now);
        let retained = self.retained[v].iter().copied().min().unwrap_or(NONE);
        self.next[v] = reads.get(self.cursor[v] as usize).map_or(retained, |&at| at.min(retained));
        self.next[v]
    }

    /// The operands from which an evicted value is to be rematerialised are retained until its next read.
    fn retain_operands_of(&mut self, value: u32) {
        let at = if self.pending[value as usize] > 0 { NONE } else { self.future(value) };
        if at == NONE {
            return;
        }
        let problem = self.problem;
        self.stamp += 1;
        self.open.clear();
        self.open.push(value);
        while let Some(v) = self.open.pop() {
            let step = problem.makers[v as usize] as usize;
            if std::mem::replace(&mut self.marks[step], self.stamp) == self.stamp {
                continue;
            }
            self.work += 1 + problem.steps[step].reads.len() as u64;
            for &operand in &problem.steps[step].reads {
                let next = self.future(operand);
                let i = operand as usize;
                if problem.bytes[i] > 0 && !self.retained[i].contains(&at) {
                    self.retained[i].push(at);
                    self.next[i] = next.min(at);
                }
                if !self.resident[i] && problem.makers[i] != NONE {
                    self.open.push(operand);
                }
            }
        }
    }
}
