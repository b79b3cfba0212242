//! Where everything lies, once the order is known: what is computed in place, how long it lives, how it is packed.

use crate::lower::{Draft, Kind};
use crate::order::{Orders, repair};
use crate::program::{Home, Program, Step, Storage};
use crate::{Buffer, Effort, Packing, pack};
use smallvec::SmallVec;
use std::cmp::Ordering;
use taut_core::{Error, Result};

/// Some two milliseconds of search, where the greedy orders are not enough: a plan is waited for.
const EFFORT: Effort = Effort { steps: 400_000 };

/// So many donated inputs are tried in two ways; a plan is waited for.
const MOST_WAITING: usize = 8;

/// Every storage begins at a multiple of this.
const ALIGNMENT: usize = 64;

pub(crate) fn buffer(size: usize, start: usize, end: usize) -> Buffer {
    Buffer { align: ALIGNMENT, ..Buffer::new(size, start as u32, end as u32) }
}

/// What a buffer takes of the arena.
pub(crate) fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// What a root piece gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The memory of this input.
    Input(usize),
    Constant(usize),
    Arena,
    /// A buffer made for the caller.
    Output,
    /// The buffer that is made for this piece, before that is there.
    Before(usize),
}

/// The pieces under one order: which share their memory, and from when to when.
#[derive(Clone)]
pub(crate) struct Placement {
    /// Per piece, the first of those that are computed one over the other.
    roots: Vec<u32>,
    /// Step (by its place in the order), operand and output of what is computed in place.
    in_place: Vec<(u32, u32, u32)>,
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Of roots.
    places: Vec<Place>,
    /// The most that is alive in the arena at once, and at which steps first and how often.
    load: usize,
    peak: usize,
    peaks: usize,
    /// The buffers made for the caller.
    outputs: usize,
}

/// Plans the order that needs the fewest bytes; the first of those that need the same.
pub(crate) fn best(draft: Draft<'_>, orders: Orders) -> Result<Program> {
    let Orders { links, list } = orders;
    let mut tried: Vec<(Vec<u32>, Placement)> = Vec::with_capacity(list.len() + 1);
    for order in list {
        let placement = Placement::new(&draft, &order);
        tried.push((order, placement));
    }
    let chosen = (0..tried.len()).min_by_key(|&i| tried[i].1.bytes()).unwrap_or(0);
    let mut finalists: SmallVec<[usize; 3]> = [chosen, 0].into_iter().collect();
    if tried.len() > 1
        && let Some(repaired) = repair(&draft, &links, &tried)
    {
        finalists.insert(0, tried.len());
        tried.push(repaired);
    }
    finalists.dedup();
    // A packing may miss the load, or end below it by less than the alignment. Then an order of a higher load may be
    // better after all.
    let mut best: Option<(usize, usize, Packing)> = None;
    for i in finalists {
        let (order, placement) = &tried[i];
        if best.as_ref().is_some_and(|(bytes, ..)| bytes + ALIGNMENT <= placement.bytes()) {
            continue;
        }
        let packing = placement.pack(&draft, order)?;
        let bytes = packing.bytes + placement.outputs;
        if best.as_ref().is_none_or(|(least, ..)| bytes < *least) {
            best = Some((bytes, i, packing));
        }
    }
    let Some((_, i, packing)) = best else {
        return Err(Error::value("there is no order to plan"));
    };
    let (order, placement) = &tried[i];
    Ok(placement.finish(draft, order, packing))
}

impl Placement {
    /// Computes over donated inputs where that is possible, unless fewer bytes are needed if one of them waits for a
    /// value that is returned.
    pub(crate) fn new(draft: &Draft<'_>, order: &[u32]) -> Placement {
        let is_donated = |input: &usize| matches!(draft.pieces[*input].kind, Kind::Donated(_));
        let donated: SmallVec<[usize; 8]> =
            (0..draft.inputs.len()).filter(is_donated).take(MOST_WAITING).collect();
        let mut waiting = vec![false; draft.inputs.len()];
        let mut best = Placement::with(draft, order, &waiting);
        loop {
            let mut better = None;
            for &input in &donated {
                let is_overwritten = best.roots.iter().filter(|&&root| root as usize == input).count() > 1;
                if !is_overwritten && !waiting[input] {
                    continue;
                }
                waiting[input] ^= true;
                let other = Placement::with(draft, order, &waiting);
                waiting[input] ^= true;
                if other.bytes()
                    < better.as_ref().map_or(best.bytes(), |(_, other): &(_, Placement)| other.bytes())
                {
                    better = Some((input, other));
                }
            }
            let Some((input, other)) = better else { return best };
            waiting[input] ^= true;
            best = other;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.load + self.outputs
    }

    /// To compare orders by: bytes, then how long so many are needed.
    pub(crate) fn height(&self) -> (usize, usize) {
        (self.bytes(), self.peaks)
    }

    /// The first step, by its place in the order, at which most of the arena is needed.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// What lies in the arena at a step that does not use it; the largest first.
    pub(crate) fn kept_at(&self, draft: &Draft<'_>, order: &[u32], at: usize) -> Vec<usize> {
        let Some(&number) = order.get(at) else { return Vec::new() };
        let is_kept = |&i: &usize| {
            let spans = (self.starts[i] as usize) < at && self.ends[i] as usize > at + 1;
            self.is_packed(i) && spans && !self.is_used(&draft.steps[number as usize], i)
        };
        let mut kept: Vec<usize> = (0..draft.pieces.len()).filter(is_kept).collect();
        kept.sort_by_key(|&i| std::cmp::Reverse(draft.pieces[i].bytes));
        kept
    }

    /// The steps that use a root, in their order.
    pub(crate) fn users(&self, draft: &Draft<'_>, order: &[u32], root: usize) -> impl Iterator<Item = u32> {
        let life = &order[self.starts[root] as usize..self.ends[root] as usize];
        life.iter().copied().filter(move |&step| self.is_used(&draft.steps[step as usize], root))
    }

    fn is_used(&self, step: &Step, root: usize) -> bool {
        let mut used = step.operands.iter().map(|o| o.storage).chain(step.targets.iter().map(|t| t.storage));
        used.any(|piece| self.roots[piece] as usize == root)
    }

    /// The placement in which nothing is computed over the inputs that wait.
    fn with(draft: &Draft<'_>, order: &[u32], waiting: &[bool]) -> Placement {
        let count = draft.pieces.len();
        let mut placement = Placement {
            roots: (0..count as u32).collect(),
            in_place: Vec::new(),
            starts: vec![u32::MAX; count],
            ends: vec![0; count],
            places: Vec::with_capacity(count),
            load: 0,
            peak: 0,
            peaks: 0,
            outputs: 0,
        };
        placement.compute_in_place(draft, order, waiting);
        placement.measure_lives(draft, order);
        placement.use_donations(draft);
        let mut other = placement.clone();
        let moved = placement.use_outputs(draft, true);
        placement.add_up(draft, order);
        if moved {
            other.use_outputs(draft, false);
            other.add_up(draft, order);
            if other.load < placement.load {
                return other;
            }
        }
        placement
    }

    /// Lets a step write over an operand that nobody reads later, where the op allows it.
    fn compute_in_place(&mut self, draft: &Draft<'_>, order: &[u32], waiting: &[bool]) {
        let mut left: Vec<usize> = draft.pieces.iter().map(|piece| piece.reads).collect();
        for (at, &number) in order.iter().enumerate() {
            let step = &draft.steps[number as usize];
            let first = self.in_place.len();
            for choice in &draft.choices[number as usize] {
                let (from, to) = (step.operands[choice.operand].storage, step.targets[choice.output].storage);
                let piece = &draft.pieces[from];
                let free = match piece.kind {
                    Kind::Made => !piece.is_output,
                    Kind::Donated(input) => !piece.is_output && !waiting[input],
                    _ => false,
                };
                let made = draft.pieces[to].kind == Kind::Made;
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

    /// The first step of each root, and the step after its last.
    fn measure_lives(&mut self, draft: &Draft<'_>, order: &[u32]) {
        for (at, &number) in order.iter().enumerate() {
            let step = &draft.steps[number as usize];
            let used = step.operands.iter().map(|o| o.storage).chain(step.targets.iter().map(|t| t.storage));
            for root in used.map(|piece| self.roots[piece] as usize) {
                self.starts[root] = self.starts[root].min(at as u32);
                self.ends[root] = at as u32 + 1;
            }
        }
        let after = order.len() as u32 + 1;
        for (i, piece) in draft.pieces.iter().enumerate() {
            let root = self.roots[i] as usize;
            if piece.is_output || matches!(piece.kind, Kind::Update(_)) {
                self.ends[root] = after;
            }
        }
        for (i, piece) in draft.pieces.iter().enumerate() {
            if !matches!(piece.kind, Kind::Made | Kind::Update(_)) {
                self.starts[i] = 0;
            }
            self.places.push(match piece.kind {
                Kind::Input(input) | Kind::Donated(input) | Kind::Update(input) => Place::Input(input),
                Kind::Constant(constant) => Place::Constant(constant),
                Kind::Made if self.ends[i] == after => Place::Output,
                Kind::Made => Place::Arena,
            });
        }
    }

    /// Puts values of exactly its size into the memory of a donated input that nobody reads any more. One that is
    /// returned goes last: its memory would have to be there from the start.
    fn use_donations(&mut self, draft: &Draft<'_>) {
        let is_donated = |piece: &usize| matches!(draft.pieces[*piece].kind, Kind::Donated(_));
        let donated: Vec<usize> = (0..draft.inputs.len()).filter(is_donated).collect();
        if donated.is_empty() {
            return;
        }
        let (mut wanting, mut returned) = (Vec::new(), Vec::new());
        for (i, piece) in draft.pieces.iter().enumerate() {
            let is_root = self.roots[i] as usize == i && piece.bytes > 0;
            match self.places[i] {
                Place::Arena if is_root => wanting.push(i),
                Place::Output if is_root => returned.push(i),
                _ => {}
            }
        }
        // What is free for one is free for those that come later: each takes what became free last.
        returned.sort_by_key(|&i| self.starts[i]);
        let mut until = vec![u32::MAX; donated.len()];
        for i in returned {
            let fits = |&n: &usize| {
                let home = donated[n];
                let is_free = self.ends[home] <= self.starts[i] && until[n] == u32::MAX;
                is_free && draft.pieces[home].bytes == draft.pieces[i].bytes
            };
            if let Some(n) = (0..donated.len()).filter(fits).max_by_key(|&n| self.ends[donated[n]]) {
                until[n] = self.starts[i];
                self.places[i] = self.places[donated[n]];
            }
        }
        // By their ends: as many as fit one after the other.
        wanting.sort_by_key(|&i| (self.ends[i], self.starts[i]));
        for (home, until) in donated.into_iter().zip(until) {
            let mut free = self.ends[home];
            wanting.retain(|&i| {
                let fits = draft.pieces[i].bytes == draft.pieces[home].bytes;
                let is_taken = fits && self.starts[i] >= free && self.ends[i] <= until;
                if is_taken {
                    free = self.ends[i];
                    self.places[i] = self.places[home];
                }
                !is_taken
            });
        }
    }

    /// Puts values into the buffers made for the caller, which are there from the start, until what is returned is made:
    /// of those that fit, as many bytes one after the other as possible; of as many, the later ones or the earlier ones.
    /// Says whether there was one.
    fn use_outputs(&mut self, draft: &Draft<'_>, later: bool) -> bool {
        let bytes = |i: usize| draft.pieces[i].bytes;
        let roots = |place: Place| {
            let is_wanted =
                |&i: &usize| self.roots[i] as usize == i && self.places[i] == place && bytes(i) > 0;
            (0..draft.pieces.len()).filter(is_wanted).collect::<Vec<usize>>()
        };
        let mut homes = roots(Place::Output);
        homes.retain(|&home| self.starts[home] > 0);
        if homes.is_empty() {
            return false;
        }
        let mut moved = false;
        homes.sort_by_key(|&home| std::cmp::Reverse(bytes(home)));
        let mut wanting = roots(Place::Arena);
        wanting.sort_by_key(|&i| (self.ends[i], self.starts[i]));
        for home in homes {
            let fits = |&i: &usize| bytes(i) <= bytes(home) && self.ends[i] <= self.starts[home];
            let fitting: Vec<usize> = wanting.iter().copied().filter(fits).collect();
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
                self.places[i] = Place::Before(home);
            }
            wanting.retain(|i| !chosen.contains(i));
        }
        moved
    }

    fn add_up(&mut self, draft: &Draft<'_>, order: &[u32]) {
        let mut changes = vec![0isize; order.len() + 2];
        for (i, piece) in draft.pieces.iter().enumerate().filter(|&(i, _)| self.roots[i] as usize == i) {
            match self.places[i] {
                Place::Arena => {
                    let bytes = rounded(piece.bytes) as isize;
                    changes[self.starts[i] as usize] += bytes;
                    changes[self.ends[i] as usize] -= bytes;
                }
                Place::Output => self.outputs += piece.bytes,
                _ => {}
            }
        }
        for (at, &number) in order.iter().enumerate() {
            let scratch = rounded(draft.steps[number as usize].scratch.1) as isize;
            changes[at] += scratch;
            changes[at + 1] -= scratch;
        }
        let mut now = 0;
        for (at, change) in changes[..order.len()].iter().enumerate() {
            now += change;
            match (now as usize).cmp(&self.load) {
                Ordering::Greater => (self.load, self.peak, self.peaks) = (now as usize, at, 1),
                Ordering::Equal => self.peaks += 1,
                Ordering::Less => {}
            }
        }
    }

    /// Packs what goes into the arena: roots in the order of pieces, then each step's scratch.
    fn pack(&self, draft: &Draft<'_>, order: &[u32]) -> Result<Packing> {
        let mut buffers = Vec::new();
        for (i, piece) in draft.pieces.iter().enumerate() {
            if self.is_packed(i) {
                buffers.push(buffer(piece.bytes, self.starts[i] as usize, self.ends[i] as usize));
            }
        }
        for (at, &number) in order.iter().enumerate() {
            match draft.steps[number as usize].scratch.1 {
                0 => {}
                scratch => buffers.push(buffer(scratch, at, at + 1)),
            }
        }
        pack(&buffers, EFFORT).map_err(|refused| Error::shape(refused.to_string()))
    }

    fn is_packed(&self, piece: usize) -> bool {
        self.roots[piece] as usize == piece && self.places[piece] == Place::Arena
    }

    /// The program, with every storage at its place.
    fn finish(&self, draft: Draft<'_>, order: &[u32], packing: Packing) -> Program {
        let mut offsets = packing.offsets.iter().copied();
        let (mut storages, mut buffers) = (Vec::new(), Vec::new());
        let mut numbers = vec![0; draft.pieces.len()];
        let mut made = vec![0; draft.pieces.len()];
        for (i, piece) in draft.pieces.iter().enumerate() {
            if self.roots[i] as usize == i && self.places[i] == Place::Output {
                made[i] = buffers.len();
                buffers.push(piece.bytes);
            }
        }
        for (i, piece) in draft.pieces.iter().enumerate().filter(|&(i, _)| self.roots[i] as usize == i) {
            let home = match self.places[i] {
                Place::Input(input) => Home::Input(input),
                Place::Constant(constant) => Home::Constant(constant),
                Place::Output => Home::Output(made[i]),
                Place::Before(returned) => Home::Output(made[returned]),
                Place::Arena => Home::Arena(offsets.next().unwrap_or(0)),
            };
            numbers[i] = storages.len();
            let (start, end) = (self.starts[i].min(self.ends[i]) as usize, self.ends[i] as usize);
            storages.push(Storage { home, bytes: piece.bytes, start, end, value: piece.value });
        }
        let number = |piece: &mut usize| *piece = numbers[self.roots[*piece] as usize];
        let Draft { steps, constants, inputs, mut results, .. } = draft;
        let mut waiting: Vec<_> = steps.into_iter().map(Some).collect();
        let mut steps: Vec<_> = order.iter().filter_map(|&i| waiting[i as usize].take()).collect();
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
