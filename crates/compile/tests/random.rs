//! Random graphs and their gradients compute the same compiled.

mod common;

use common::graphs::{Move, check};
use proptest::prelude::{Strategy, proptest};

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one =
        (0..48u8, 0..64usize, 0..64usize, 0..64usize).prop_map(|(kind, a, b, n)| Move { kind, a, b, n });
    proptest::collection::vec(one, 1..24)
}

proptest! {
    #[test]
    fn graphs(moves in moves(), odd in proptest::bool::ANY, first in 0..6usize) {
        check(&moves, odd, false, first);
    }

    #[test]
    fn elementwise_graphs_to_the_bit(
        moves in proptest::collection::vec(
            (0..32u8, 0..64usize, 0..64usize, 0..64usize).prop_map(|(kind, a, b, n)| Move { kind, a, b, n }),
            1..40,
        ),
        odd in proptest::bool::ANY,
        first in 0..6usize,
    ) {
        check(&moves, odd, false, first);
    }

    #[test]
    fn gradients_of_graphs(moves in moves(), first in 0..6usize) {
        check(&moves, false, true, first);
    }
}
