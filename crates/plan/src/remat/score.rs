//! How much evicting a value gains.

/// An exponent of a factor of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Zero,
    Half,
    One,
    Two,
}

impl Power {
    /// Only operations that round the same on every machine.
    fn of(self, x: f64) -> f64 {
        match self {
            Power::Zero => 1.0,
            Power::Half => x.sqrt(),
            Power::One => x,
            Power::Two => x * x,
        }
    }
}

/// The exponents of the score `bytes^size · distance^distance / cost^cost` of a value: the bytes it frees, the distance
/// to its next read, and the cost of rematerialising it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvictionScore {
    pub(super) size: Power,
    pub(super) distance: Power,
    pub(super) cost: Power,
    /// Whether the distance is measured in time; otherwise in steps.
    pub(super) in_time: bool,
}

impl EvictionScore {
    pub(super) fn of(self, bytes: f64, distance: f64, cost: f64) -> f64 {
        self.size.of(bytes) * self.distance.of(distance) / self.cost.of(cost)
    }

    /// All scores worth trying, those that are good most often first.
    pub(super) fn all() -> Vec<EvictionScore> {
        use Power::{Half, One, Two, Zero};
        let mut all = Vec::new();
        for (size, distance) in [(One, Half), (One, One), (One, Two), (One, Zero), (Zero, One), (Zero, Two)] {
            for cost in [One, Half, Two] {
                for in_time in [true, false] {
                    all.push(EvictionScore { size, distance, cost, in_time });
                }
            }
        }
        all
    }
}
