//! Where a training run is, as it goes into a checkpoint beside the variables.

use super::history::History;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taut_core::{Error, ErrorKind, Result};

/// The key of this state among a checkpoint's words.
const KEY: &str = "taut.trainer";

/// Everything that is not a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Epochs that are complete.
    pub epochs: usize,
    /// The part of the epoch that is done.
    pub now: Partial,
    /// How far the data was read.
    pub position: String,
    /// Seed and counter of the random numbers.
    pub random: (u64, u64),
    pub history: History,
    /// What callbacks remember, by their positions.
    pub callbacks: BTreeMap<usize, String>,
}

/// An epoch that is not complete yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Partial {
    pub steps: usize,
    pub samples: usize,
    /// The sum of the samples' losses, as bits: text must not round it.
    loss_bits: u64,
    pub seconds: f64,
}

impl Partial {
    pub fn add(&mut self, samples: usize, loss: f64) {
        self.steps += 1;
        self.samples += samples;
        self.loss_bits = (f64::from_bits(self.loss_bits) + loss * samples as f64).to_bits();
    }

    /// The mean loss of the samples so far.
    pub fn loss(&self) -> f64 {
        f64::from_bits(self.loss_bits) / self.samples as f64
    }
}

impl State {
    pub fn to_words(&self) -> Result<BTreeMap<String, String>> {
        let text = serde_json::to_string(self).map_err(|error| Error::value(error.to_string()))?;
        Ok(BTreeMap::from([(KEY.to_owned(), text)]))
    }

    pub fn from_words(words: &BTreeMap<String, String>) -> Result<State> {
        let foreign = |message: String| {
            Error::new(ErrorKind::Format, message).help("Checkpoint::load_part reads the weights alone")
        };
        let text =
            words.get(KEY).ok_or_else(|| foreign("this file does not say how far training got".into()))?;
        serde_json::from_str(text).map_err(|error| foreign(format!("the state of the training: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_losses_survives_to_the_last_bit() {
        let mut state = State { position: "3:17".into(), random: (u64::MAX, 5), ..State::default() };
        for i in 1..100 {
            state.now.add(3, 1.0 / f64::from(i));
        }
        let back = State::from_words(&state.to_words().unwrap()).unwrap();
        assert_eq!(back, state);
        assert_eq!(back.now.loss().to_bits(), state.now.loss().to_bits());
    }

    #[test]
    fn foreign_words_are_refused() {
        let none = State::from_words(&BTreeMap::new()).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::Format);
        for text in ["", "{}", "[1, 2]", r#"{"epochs": -1}"#] {
            let words = BTreeMap::from([(KEY.to_owned(), text.to_owned())]);
            assert_eq!(State::from_words(&words).unwrap_err().kind(), ErrorKind::Format, "{text}");
        }
    }
}
