//! The scores of a run, epoch by epoch.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One pass over the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: usize,
    /// The number of steps.
    pub steps: usize,
    /// The number of samples of all steps.
    pub samples: usize,
    /// The duration in seconds, including validation.
    pub seconds: f64,
    /// Names and values: `loss`, the metrics, and those of the validation with the prefix `val_`.
    #[serde(with = "exact")]
    pub scores: Vec<(String, f64)>,
}

impl Epoch {
    /// The score of this name.
    pub fn score(&self, name: &str) -> Option<f64> {
        self.scores.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }
}

/// Scores as a name, the value's bits, and the value as text: JSON cannot represent NaN and infinities.
mod exact {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(scores: &[(String, f64)], to: S) -> Result<S::Ok, S::Error> {
        let text = |(name, value): &(String, f64)| (name.clone(), value.to_bits(), value.to_string());
        scores.iter().map(text).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, f64)>, D::Error> {
        let scores = Vec::<(String, u64, String)>::deserialize(from)?;
        Ok(scores.into_iter().map(|(name, bits, _)| (name, f64::from_bits(bits))).collect())
    }
}

/// All epochs so far, including those before a resume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The epochs, in order.
    pub epochs: Vec<Epoch>,
}

impl History {
    /// The score of this name in each epoch that has it.
    pub fn scores(&self, name: &str) -> Vec<f64> {
        self.epochs.iter().filter_map(|epoch| epoch.score(name)).collect()
    }

    /// The last score of this name.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.epochs.iter().rev().find_map(|epoch| epoch.score(name))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {:3}  {:6.2} s", self.number, self.seconds)?;
        self.scores.iter().try_for_each(|(name, value)| write!(f, "  {name} {value:.4}"))
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.epochs.iter().try_for_each(|epoch| writeln!(f, "{epoch}"))
    }
}
