//! Live ranges of training steps: the greedy orders reach the lower bound.

use taut_plan::{Effort, FoundBy, LiveBuffer, pack, verify};

/// Pseudo-random numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// Kinds of networks, by the sizes of their activations.
#[derive(Debug, Clone, Copy)]
enum Net {
    /// All layers of one size, as in a transformer.
    Even,
    /// Each stage has half the activations of the one before, as in a convolutional network.
    Narrowing,
    /// Random sizes, from bytes to megabytes.
    Any,
}

const LAYERS: [usize; 8] = [1, 2, 3, 5, 8, 13, 40, 150];

/// One training step: each activation is live from its layer's forward pass to its backward pass, nested like brackets;
/// each layer has scratch memory, a gradient that is live until the layer before has read it, and a weight gradient that
/// is read at once.
fn step(net: Net, layers: usize, seed: u64) -> Vec<LiveBuffer> {
    let mut numbers = Numbers(seed);
    let last = 4 * layers;
    let mut list = Vec::new();
    let mut add = |size: usize, start: usize, end: usize| {
        list.push(LiveBuffer::new(size, start as u32, end as u32).aligned(64));
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
        // Backward: the gradient of the activation, and the scratch memory of its layer.
        add(activation, backward - 2, backward + 1);
        add(1 + numbers.below(activation), backward - 1, backward);
    }
    list
}

#[test]
fn greedy_orders_reach_the_lower_bound() {
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

/// Random sizes: the greedy orders miss the lower bound in a few of a hundred instances, and a short search reaches it.
#[test]
fn random_sizes_reach_the_lower_bound() {
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

/// As many buffers as a large step has, both where a greedy order reaches the lower bound and where none does.
#[test]
fn greedy_orders_pack_large_steps() {
    let easy = step(Net::Any, 625, 1);
    let mut numbers = Numbers(1);
    let mut any = || {
        let (start, longest) = (numbers.below(1000), 1 + numbers.below(400));
        let time = 1 + numbers.below(longest);
        LiveBuffer::new(1 + numbers.below(1 << 20), start as u32, (start + time) as u32)
    };
    let hard: Vec<LiveBuffer> = (0..2500).map(|_| any()).collect();
    for (name, list, gap) in [("easy", easy, 1e-5), ("hard", hard, 0.2)] {
        let packing = pack(&list, Effort::PORTFOLIO).unwrap();
        assert_eq!(verify(&list, &packing), Ok(()));
        assert!(packing.gap() <= gap, "{name}: {packing}");
    }
}

/// Far more buffers than a step has: the order of time takes no quadratic time or memory, and no recursion.
#[test]
fn a_hundred_thousand_buffers() {
    let list: Vec<LiveBuffer> =
        (0..100_000).map(|i| LiveBuffer::new(64 + i % 7, i as u32, i as u32 + 20)).collect();
    let packing = pack(&list, Effort { steps: 1_000_000 }).unwrap();
    assert_eq!(verify(&list, &packing), Ok(()));
    assert!(packing.gap() < 0.2, "{packing}");
}
