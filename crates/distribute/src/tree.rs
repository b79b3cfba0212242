//! The order of sums: a tree over the ranks.
//!
//! With a power of two of ranks, rank `i` and rank `i + n/2` are added first, then `i` and `i + n/4`, down to neighbours. With
//! another number, the first ranks are joined to pairs of neighbours, so that a power of two of *members* is left. Every element
//! of every tensor is summed in this order, so the bits of a sum depend on the number of ranks alone: not on its size, nor on how
//! it is cut into messages, nor on the library that carries them.
//!
//! The order is the one in which batches dealt out in turn are nested: rank `r` of 2 has the batches `r` and `r + 2` of 4, and
//! adding those two first gives the sum of 4 ranks.

use std::ops::Range;

/// The members of a tree over some ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) ranks: usize,
    /// The largest power of two that is not above `ranks`.
    pub(crate) members: usize,
}

/// What a rank is in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The leader of a member of one rank.
    Single,
    /// The first of a pair; the second is its follower.
    Leader { follower: usize },
    /// The second of a pair: its leader takes part for it.
    Follower { leader: usize },
}

impl Tree {
    pub(crate) fn of(ranks: usize) -> Tree {
        let members = if ranks == 0 { 1 } else { 1 << ranks.ilog2() };
        Tree { ranks, members }
    }

    fn pairs(self) -> usize {
        self.ranks - self.members
    }

    pub(crate) fn role(self, rank: usize) -> Role {
        match rank {
            _ if rank >= 2 * self.pairs() => Role::Single,
            _ if rank.is_multiple_of(2) => Role::Leader { follower: rank + 1 },
            _ => Role::Follower { leader: rank - 1 },
        }
    }

    /// The member to which a rank belongs.
    pub(crate) fn member(self, rank: usize) -> usize {
        if rank < 2 * self.pairs() { rank / 2 } else { rank - self.pairs() }
    }

    /// The rank that takes part for a member.
    pub(crate) fn leader(self, member: usize) -> usize {
        if member < self.pairs() { 2 * member } else { member + self.pairs() }
    }

    /// The ranks of the members in a range; they are consecutive.
    pub(crate) fn ranks_of(self, members: Range<usize>) -> Range<usize> {
        let first = |member: usize| if member >= self.members { self.ranks } else { self.leader(member) };
        first(members.start)..first(members.end)
    }

    /// Rounds of messages between members.
    pub(crate) fn rounds(self) -> u32 {
        self.members.ilog2()
    }

    /// The distances between members that exchange, in the order in which they add.
    pub(crate) fn distances(self) -> impl DoubleEndedIterator<Item = usize> {
        let members = self.members;
        (1..=self.rounds()).map(move |round| members >> round)
    }
}

/// The sum of one value per rank, added in the order in which [`all_reduce`](crate::all_reduce) adds: so one process that has the
/// values of all ranks gets the same bits.
pub fn tree_sum<T, E>(values: Vec<T>, mut add: impl FnMut(T, T) -> Result<T, E>) -> Result<Option<T>, E> {
    if values.is_empty() {
        return Ok(None);
    }
    let tree = Tree::of(values.len());
    let mut values = values.into_iter();
    let mut sums = Vec::with_capacity(tree.members);
    for member in 0..tree.members {
        let (first, second) = match tree.role(tree.leader(member)) {
            Role::Leader { .. } => (values.next(), values.next()),
            _ => (values.next(), None),
        };
        let Some(first) = first else { return Ok(None) };
        sums.push(match second {
            Some(second) => add(first, second)?,
            None => first,
        });
    }
    while sums.len() > 1 {
        let upper = sums.split_off(sums.len() / 2);
        sums = sums.into_iter().zip(upper).map(|(a, b)| add(a, b)).collect::<Result<_, E>>()?;
    }
    Ok(sums.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ranks: usize) -> String {
        let names = (0..ranks).map(|rank| rank.to_string()).collect();
        let add = |a: String, b: String| Ok::<_, ()>(format!("({a}+{b})"));
        tree_sum(names, add).unwrap().unwrap_or_default()
    }

    #[test]
    fn the_order_of_a_sum_is_a_function_of_the_number_of_ranks() {
        assert_eq!(order(0), "");
        assert_eq!(order(1), "0");
        assert_eq!(order(2), "(0+1)");
        assert_eq!(order(3), "((0+1)+2)");
        assert_eq!(order(4), "((0+2)+(1+3))");
        assert_eq!(order(5), "(((0+1)+3)+(2+4))");
        assert_eq!(order(6), "(((0+1)+4)+((2+3)+5))");
        assert_eq!(order(7), "(((0+1)+(4+5))+((2+3)+6))");
        assert_eq!(order(8), "(((0+4)+(2+6))+((1+5)+(3+7)))");
    }

    #[test]
    fn every_rank_belongs_to_one_member() {
        for ranks in 1..40 {
            let tree = Tree::of(ranks);
            assert!(tree.members.is_power_of_two() && tree.members <= ranks && ranks < 2 * tree.members);
            assert_eq!(tree.ranks_of(0..tree.members), 0..ranks);
            for member in 0..tree.members {
                for rank in tree.ranks_of(member..member + 1) {
                    assert_eq!(tree.member(rank), member);
                }
                assert!(!matches!(tree.role(tree.leader(member)), Role::Follower { .. }));
            }
        }
    }
}
