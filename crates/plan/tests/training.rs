//! Lifetimes as steps of training have them: the greedy orders reach the load.

use taut_plan::{Buffer, Effort, FoundBy, pack, verify};

/// Numbers that look random and are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// The kinds of network: how large the activation of each layer is.
#[derive(Debug, Clone, Copy)]
enum Net {
    /// All layers alike, as in a transformer.
    Even,
    /// Each stage has half the activations of the one before, as in a convolutional network.
    Narrowing,
    /// Any size, from bytes to megabytes.
    Any,
}

const LAYERS: [usize; 8] = [1, 2, 3, 5, 8, 13, 40, 150];

/// One step: activations are kept from their layer forward to their layer backward, like brackets; each layer has
/// scratch memory, a gradient that lives until the layer before has used it, and a weight gradient that is used at once.
fn step(net: Net, layers: usize, seed: u64) -> Vec<Buffer> {
    let mut numbers = Numbers(seed);
    let last = 4 * layers;
    let mut list = Vec::new();
    let mut add = |size: usize, start: usize, end: usize| {
        list.push(Buffer::new(size, start as u32, end as u32).aligned(64));
    };
    for layer in 0..layers {
        let activation = match net {
            Net::Even => 65536,
            Net::Narrowing => 1 << (20 - (12 * layer / layers)),
            Net::Any => {
                let power = 4 + numbers.below(17);
                1 + numbers.below(1 << power)
            }
        };
        let (forward, backward) = (2 * layer, last - 2 * layer);
        add(activation, forward, backward);
        add(1 + numbers.below(activation), forward, forward + 1);
        // Backward: the gradient of the activation, and what its layer needs besides.
        add(activation, backward - 2, backward + 1);
        add(1 + numbers.below(activation), backward - 1, backward);
    }
    list
}

#[test]
fn the_greedy_orders_reach_the_load() {
    for net in [Net::Even, Net::Narrowing] {
        for layers in LAYERS {
            for seed in 0..20 {
                let list = step(net, layers, seed);
                let packing = pack(&list, Effort::PORTFOLIO).unwrap();
                assert_eq!(verify(&list, &packing), Ok(()));
                assert!(packing.optimal, "{net:?}, {layers} layers, seed {seed}: {packing}");
            }
        }
    }
}

/// Sizes without any pattern: the greedy orders miss the load in a few of a hundred, and the search finds it soon.
#[test]
fn any_sizes_reach_the_load() {
    let (mut greedy, mut all) = (0, 0);
    for layers in LAYERS {
        for seed in 0..100 {
            let list = step(Net::Any, layers, seed);
            let packing = pack(&list, Effort { steps: 20_000_000 }).unwrap();
            assert_eq!(verify(&list, &packing), Ok(()));
            let above = packing.bytes - packing.lower_bound;
            assert!(packing.optimal && above < 64, "{layers} layers, seed {seed}: {packing}");
            greedy += usize::from(packing.found_by == FoundBy::Portfolio);
            all += 1;
        }
    }
    assert!(greedy * 100 >= all * 97, "{greedy} of {all} without search");
}

/// As many buffers as a large step has, whether the load is reached at once or in no order.
#[test]
fn the_greedy_orders_pack_large_steps() {
    let easy = step(Net::Any, 625, 1);
    let mut numbers = Numbers(1);
    let mut any = || {
        let (start, longest) = (numbers.below(1000), 1 + numbers.below(400));
        let time = 1 + numbers.below(longest);
        Buffer::new(1 + numbers.below(1 << 20), start as u32, (start + time) as u32)
    };
    let hard: Vec<Buffer> = (0..2500).map(|_| any()).collect();
    for (name, list, gap) in [("easy", easy, 1e-5), ("hard", hard, 0.2)] {
        let packing = pack(&list, Effort::PORTFOLIO).unwrap();
        assert_eq!(verify(&list, &packing), Ok(()));
        assert!(packing.gap() <= gap, "{name}: {packing}");
    }
}

/// Far more buffers than a step has: no quadratic time or memory in the order of time, and no recursion.
#[test]
fn a_hundred_thousand_buffers() {
    let list: Vec<Buffer> = (0..100_000).map(|i| Buffer::new(64 + i % 7, i as u32, i as u32 + 20)).collect();
    let packing = pack(&list, Effort { steps: 1_000_000 }).unwrap();
    assert_eq!(verify(&list, &packing), Ok(()));
    assert!(packing.gap() < 0.2, "{packing}");
}
