//! The collectives on bytes: exchanges in rounds, sums in the order of the tree.

use crate::group::{CallInfo, Group, INLINE, Session};
use crate::tree::{Role, Tree};
use std::ops::Range;
use taut_core::{DType, Result};
use taut_kernels::elementwise::{Binary, binary, cast};
use taut_kernels::{Arg, View, ViewMut};
use taut_memory::Location;

/// The most bytes that are summed at a time.
const PIECE: usize = 4 << 20;

/// How the values of ranks are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Sum,
    Max,
    Min,
}

impl Combine {
    fn code(self) -> Binary {
        match self {
            Combine::Sum => Binary::Add,
            Combine::Max => Binary::Maximum,
            Combine::Min => Binary::Minimum,
        }
    }
}

/// The dtype in which values are combined: sums of half precision are kept in `float32` until the end.
fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

fn is_half(dtype: DType) -> bool {
    sum_dtype(dtype) != dtype
}

/// Elements that are summed at a time.
fn piece_elements(dtype: DType, elements: usize) -> usize {
    elements.min(PIECE / sum_dtype(dtype).size())
}

/// Bytes of scratch memory of an all-reduce of this many elements: what the other rank sends, which is half of a piece, and
/// for half precision the piece in `float32`.
pub(crate) fn all_reduce_scratch(ranks: usize, dtype: DType, elements: usize) -> usize {
    if ranks == 1 || elements == 0 {
        return 0;
    }
    let (size, piece) = (sum_dtype(dtype).size(), piece_elements(dtype, elements));
    (piece.div_ceil(2) + if is_half(dtype) { piece } else { 0 }) * size
}

/// Elements of each rank's block that are summed at a time.
fn block_piece(ranks: usize, dtype: DType, block: usize) -> usize {
    block.min((PIECE / sum_dtype(dtype).size() / ranks).max(1))
}

/// Bytes of scratch memory of a reduce-scatter of blocks of this many elements: a piece of every block, and half of that for
/// what the other rank sends.
pub(crate) fn reduce_scatter_scratch(ranks: usize, dtype: DType, block: usize) -> usize {
    if ranks == 1 || block == 0 {
        return 0;
    }
    let piece = ranks * block_piece(ranks, dtype, block);
    (piece + piece.div_ceil(2)) * sum_dtype(dtype).size()
}

/// `target = a combined with b`; which is first decides what becomes of NaN.
fn combine(how: Combine, dtype: DType, target: &mut [u8], other: &[u8], target_first: bool) {
    let shape = [target.len() / dtype.size()];
    let other = Arg::View(View::new(dtype, other, 0, &shape, &[1]));
    let out = ViewMut::new(dtype, target, &shape);
    let (a, b) = if target_first { (Arg::InPlace(0), other) } else { (other, Arg::InPlace(0)) };
    binary(how.code(), a, b, out);
}

fn convert(from: DType, bytes: &[u8], to: DType, out: &mut [u8]) {
    let shape = [bytes.len() / from.size()];
    cast(View::new(from, bytes, 0, &shape, &[1]), ViewMut::new(to, out, &shape));
}

/// A rank's work in the tree of one collective.
struct Rounds<'a, 's> {
    session: &'a mut Session<'s>,
    tree: Tree,
    role: Role,
    member: usize,
    how: Combine,
    /// The dtype of the values that are exchanged.
    dtype: DType,
    /// Whether mates have compared headers.
    greeted: bool,
}

impl<'a, 's> Rounds<'a, 's> {
    fn new(session: &'a mut Session<'s>, how: Combine, dtype: DType) -> Rounds<'a, 's> {
        let tree = Tree::of(session.size());
        let rank = session.rank();
        Rounds { tree, role: tree.role(rank), member: tree.member(rank), session, how, dtype, greeted: false }
    }

    fn mate(&self, distance: usize) -> usize {
        self.tree.leader(self.member ^ distance)
    }

    fn greet(&mut self, mate: usize) -> Result<()> {
        if self.greeted { Ok(()) } else { self.session.greet(mate, &[], &mut []) }
    }

    /// Combines `values[keep]` with what the other rank has of it, and sends it `values[send]`, in messages of the size of
    /// `scratch`. Both ranks know both lengths.
    fn swap_and_combine(
        &mut self,
        mate: usize,
        values: &mut [u8],
        keep: Range<usize>,
        send: Range<usize>,
        scratch: &mut [u8],
        own_first: bool,
    ) -> Result<()> {
        let room = scratch.len() / self.dtype.size() * self.dtype.size();
        let (mut kept, mut sent) = (keep.start, send.start);
        while kept < keep.end || sent < send.end {
            let (receive, give) = ((keep.end - kept).min(room), (send.end - sent).min(room));
            self.session.exchange(mate, &values[sent..sent + give], &mut scratch[..receive])?;
            combine(self.how, self.dtype, &mut values[kept..kept + receive], &scratch[..receive], own_first);
            kept += receive;
            sent += give;
        }
        Ok(())
    }

    /// Sends or receives bytes, in messages of bounded size.
    fn send(&mut self, mate: usize, bytes: &[u8]) -> Result<()> {
        bytes.chunks(PIECE).try_for_each(|chunk| self.session.exchange(mate, chunk, &mut []))
    }

    fn receive(&mut self, mate: usize, bytes: &mut [u8]) -> Result<()> {
        bytes.chunks_mut(PIECE).try_for_each(|chunk| self.session.exchange(mate, &[], chunk))
    }

    /// Followers give their values to their leaders.
    fn fold(&mut self, values: &mut [u8], scratch: &mut [u8]) -> Result<()> {
        let all = 0..values.len();
        match self.role {
            Role::Single => Ok(()),
            Role::Leader { follower } => {
                self.greet(follower)?;
                self.swap_and_combine(follower, values, all, 0..0, scratch, true)
            }
            Role::Follower { leader } => {
                self.greet(leader)?;
                // In messages of the size that the leader takes at a time.
                let room = scratch.len() / self.dtype.size() * self.dtype.size();
                values.chunks(room).try_for_each(|chunk| self.session.exchange(leader, chunk, &mut []))
            }
        }
    }

    /// Recursive halving: after it, each member has the sums of its own bytes, which `bounds` gives for a range of members.
    fn halve(
        &mut self,
        values: &mut [u8],
        scratch: &mut [u8],
        bounds: &dyn Fn(Range<usize>) -> Range<usize>,
    ) -> Result<()> {
        for distance in self.tree.distances() {
            let mate = self.mate(distance);
            self.greet(mate)?;
            let first = self.member & !(2 * distance - 1);
            let (lower, upper) =
                (bounds(first..first + distance), bounds(first + distance..first + 2 * distance));
            let is_lower = self.member & distance == 0;
            let (keep, send) = if is_lower { (lower, upper) } else { (upper, lower) };
            self.swap_and_combine(mate, values, keep, send, scratch, is_lower)?;
        }
        Ok(())
    }

    /// Recursive doubling of what [`Rounds::halve`] left: after it, every member has the bytes of all.
    fn double(&mut self, values: &mut [u8], bounds: &dyn Fn(Range<usize>) -> Range<usize>) -> Result<()> {
        for distance in self.tree.distances().rev() {
            let mate = self.mate(distance);
            self.greet(mate)?;
            let first = self.member & !(2 * distance - 1);
            let (lower, upper) =
                (bounds(first..first + distance), bounds(first + distance..first + 2 * distance));
            let (low, high) = values[lower.start..upper.end].split_at_mut(lower.end - lower.start);
            let (own, other) = if self.member & distance == 0 { (low, high) } else { (high, low) };
            let (mut sent, mut received) = (own.chunks(PIECE), other.chunks_mut(PIECE));
            loop {
                let (give, take) = (sent.next(), received.next());
                if give.is_none() && take.is_none() {
                    break;
                }
                self.session.exchange(mate, give.unwrap_or_default(), take.unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// Leaders give their followers the result.
    fn unfold(&mut self, values: &mut [u8]) -> Result<()> {
        match self.role {
            Role::Single => Ok(()),
            Role::Leader { follower } => self.send(follower, values),
            Role::Follower { leader } => self.receive(leader, values),
        }
    }

    fn is_follower(&self) -> bool {
        matches!(self.role, Role::Follower { .. })
    }

    /// An all-reduce of few bytes: every round exchanges all of them in one message, with the header.
    fn all_reduce_small(&mut self, values: &mut [u8]) -> Result<()> {
        let mut other = [0u64; INLINE / 8];
        let other: &mut [u8] = &mut bytes_of(&mut other)[..values.len()];
        match self.role {
            Role::Follower { leader } => {
                self.session.greet(leader, values, &mut [])?;
                return self.session.exchange(leader, &[], values);
            }
            Role::Leader { follower } => {
                self.session.greet(follower, &[], other)?;
                combine(self.how, self.dtype, values, other, true);
            }
            Role::Single => {}
        }
        for distance in self.tree.distances() {
            self.session.greet(self.mate(distance), values, other)?;
            combine(self.how, self.dtype, values, other, self.member & distance == 0);
        }
        match self.role {
            Role::Leader { follower } => self.session.exchange(follower, values, &mut []),
            _ => Ok(()),
        }
    }
}

/// Words as bytes, aligned for every dtype.
fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

impl Group {
    /// Combines the values of all ranks, in place.
    pub(crate) fn all_reduce_bytes(
        &self,
        call: CallInfo,
        how: Combine,
        values: &mut [u8],
        scratch: &mut [u8],
    ) -> Result<()> {
        let dtype = call.dtype;
        if self.size() == 1 || values.is_empty() {
            return Ok(());
        }
        let wide = sum_dtype(dtype);
        let mut session = self.begin(call)?;
        let mut rounds = Rounds::new(&mut session, how, wide);
        let elements = values.len() / dtype.size();
        if elements * wide.size() <= INLINE {
            if !is_half(dtype) {
                return rounds.all_reduce_small(values);
            }
            let mut sums = [0u64; INLINE / 8];
            let sums = &mut bytes_of(&mut sums)[..elements * wide.size()];
            convert(dtype, values, wide, sums);
            rounds.all_reduce_small(sums)?;
            convert(wide, sums, dtype, values);
            return Ok(());
        }
        let piece = piece_elements(dtype, elements);
        let (received, wider) = scratch.split_at_mut(piece.div_ceil(2) * wide.size());
        for values in values.chunks_mut(piece * dtype.size()) {
            let count = values.len() / dtype.size();
            let members = rounds.tree.members;
            let bounds = |size: usize| {
                move |members_of: Range<usize>| {
                    let at = |member: usize| count * member / members * size;
                    at(members_of.start)..at(members_of.end)
                }
            };
            if is_half(dtype) {
                let sums = &mut wider[..count * wide.size()];
                convert(dtype, values, wide, sums);
                rounds.fold(sums, received)?;
                if !rounds.is_follower() {
                    rounds.halve(sums, received, &bounds(wide.size()))?;
                    let member = rounds.member;
                    let (from, to) =
                        (bounds(wide.size())(member..member + 1), bounds(dtype.size())(member..member + 1));
                    convert(wide, &sums[from], dtype, &mut values[to]);
                }
            } else {
                rounds.fold(values, received)?;
                if !rounds.is_follower() {
                    rounds.halve(values, received, &bounds(wide.size()))?;
                }
            }
            rounds.greeted = true;
            if !rounds.is_follower() {
                rounds.double(values, &bounds(dtype.size()))?;
            }
            rounds.unfold(values)?;
        }
        Ok(())
    }

    /// Combines the values of all ranks and leaves each rank its block: as many elements as `out` has, the last blocks fewer.
    /// What `out` has beyond the end of the values is zero.
    pub(crate) fn reduce_scatter_bytes(
        &self,
        call: CallInfo,
        how: Combine,
        values: &[u8],
        out: &mut [u8],
        scratch: &mut [u8],
    ) -> Result<()> {
        let dtype = call.dtype;
        let (ranks, size, wide) = (self.size(), dtype.size(), sum_dtype(dtype));
        let block = out.len() / size;
        if ranks == 1 || block == 0 {
            out.copy_from_slice(values);
            return Ok(());
        }
        let mut session = self.begin(call)?;
        let mut rounds = Rounds::new(&mut session, how, wide);
        let (elements, piece) = (values.len() / size, block_piece(ranks, dtype, block));
        let (staged, received) = scratch.split_at_mut(ranks * piece * wide.size());
        for first in (0..block).step_by(piece) {
            let count = piece.min(block - first);
            let row = count * wide.size();
            let staged = &mut staged[..ranks * row];
            for (rank, staged) in staged.chunks_exact_mut(row).enumerate() {
                let (start, end) = (rank * block + first, rank * block + first + count);
                let (start, end) = (start.min(elements), end.min(elements));
                let (filled, empty) = staged.split_at_mut((end - start) * wide.size());
                convert(dtype, &values[start * size..end * size], wide, filled);
                empty.fill(0);
            }
            let tree = rounds.tree;
            let bounds = |members: Range<usize>| {
                let ranks = tree.ranks_of(members);
                ranks.start * row..ranks.end * row
            };
            rounds.fold(staged, received)?;
            if !rounds.is_follower() {
                rounds.halve(staged, received, &bounds)?;
            }
            rounds.greeted = true;
            let rank = self.rank();
            let own = rank * row..(rank + 1) * row;
            match rounds.role {
                Role::Single => {}
                Role::Leader { follower } => {
                    rounds.send(follower, &staged[follower * row..(follower + 1) * row])?;
                }
                Role::Follower { leader } => rounds.receive(leader, &mut staged[own.clone()])?,
            }
            convert(wide, &staged[own], dtype, &mut out[first * size..(first + count) * size]);
        }
        Ok(())
    }

    /// Gathers the blocks of all ranks; `out` holds this rank's block already. Blocks have `block` bytes, the last ones fewer.
    pub(crate) fn all_gather_bytes(&self, call: CallInfo, block: usize, out: &mut [u8]) -> Result<()> {
        if self.size() == 1 || out.is_empty() {
            return Ok(());
        }
        let mut session = self.begin(call)?;
        let mut rounds = Rounds::new(&mut session, Combine::Sum, call.dtype);
        let (tree, end, rank) = (rounds.tree, out.len(), self.rank());
        let of_ranks = |ranks: Range<usize>| (ranks.start * block).min(end)..(ranks.end * block).min(end);
        match rounds.role {
            Role::Single => {}
            Role::Leader { follower } => {
                rounds.greet(follower)?;
                rounds.receive(follower, &mut out[of_ranks(follower..follower + 1)])?;
            }
            Role::Follower { leader } => {
                rounds.greet(leader)?;
                rounds.send(leader, &out[of_ranks(rank..rank + 1)])?;
            }
        }
        if !rounds.is_follower() {
            rounds.double(out, &|members| of_ranks(tree.ranks_of(members)))?;
        }
        rounds.unfold(out)
    }

    /// Gives every rank the bytes of one of them: along a binomial tree.
    pub(crate) fn broadcast_bytes(&self, call: CallInfo, root: usize, values: &mut [u8]) -> Result<()> {
        let ranks = self.size();
        if ranks == 1 {
            return Ok(());
        }
        let mut session = self.begin(call)?;
        let own = (self.rank() + ranks - root) % ranks;
        let rank = |relative: usize| (relative + root) % ranks;
        let lowest = if own == 0 { ranks.next_power_of_two() } else { 1 << own.trailing_zeros() };
        if own != 0 {
            let from = rank(own - lowest);
            session.greet(from, &[], &mut [])?;
            values.chunks_mut(PIECE).try_for_each(|chunk| session.exchange(from, &[], chunk))?;
        }
        let mut distance = lowest / 2;
        while distance > 0 {
            if own + distance < ranks {
                let to = rank(own + distance);
                session.greet(to, &[], &mut [])?;
                values.chunks(PIECE).try_for_each(|chunk| session.exchange(to, chunk, &mut []))?;
            }
            distance /= 2;
        }
        Ok(())
    }

    pub(crate) fn barrier_as(&self, name: &'static str, at: Location) -> Result<()> {
        let call = CallInfo { name, dtype: DType::U8, elements: 0, detail: 0, at };
        self.all_reduce_bytes(call, Combine::Max, &mut [0], &mut [])
    }

    /// The words of every rank, in the order of ranks. Every rank gives the same number of words.
    #[track_caller]
    pub fn all_gather_words(&self, name: &'static str, own: &[u64]) -> Result<Vec<u64>> {
        let at = Location::caller();
        let (count, ranks) = (own.len(), self.size());
        let mut all = vec![0; count * ranks];
        all[self.rank() * count..(self.rank() + 1) * count].copy_from_slice(own);
        let call = CallInfo { name, dtype: DType::U64, elements: count, detail: 0, at };
        self.all_gather_bytes(call, count * 8, bytes_of(&mut all)).map_err(|error| error.at(at))?;
        Ok(all)
    }
}
