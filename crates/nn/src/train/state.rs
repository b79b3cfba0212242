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
    /// What resumed runs must have in common with this one.
    pub settings: BTreeMap<String, String>,
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
    /// Steps of the whole run.
    pub fn steps(&self) -> usize {
        self.history.epochs.iter().map(|epoch| epoch.steps).sum::<usize>() + self.now.steps
    }

    /// Refuses settings that are not those of the run it is the state of.
    pub fn agree(&self, settings: &BTreeMap<String, String>) -> Result<()> {
        for (name, here) in settings {
            let there = self.settings.get(name);
            if there != Some(here) {
                let there = there.map_or("not known", String::as_str);
                return Err(Error::value(format!("{name} is {here} here and {there} there"))
                    .help("a run goes on as it began"));
            }
        }
        Ok(())
    }

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
    use crate::train::Epoch;

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
    fn so_does_every_score() {
        let values =
            [0.1, -0.0, f64::MIN_POSITIVE / 3.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN];
        let scores = values.map(|value| (value.to_string(), value)).to_vec();
        let epoch = Epoch { number: 1, steps: 5, samples: 9, seconds: 0.5, scores };
        let state = State { history: History { epochs: vec![epoch] }, ..State::default() };
        let words = state.to_words().unwrap();
        let back = State::from_words(&words).unwrap();
        let bits = |state: &State| -> Vec<u64> {
            state.history.epochs[0].scores.iter().map(|(_, value)| value.to_bits()).collect()
        };
        assert_eq!(bits(&back), values.map(f64::to_bits));
        assert!(words[KEY].contains("\"-inf\""), "people can read it: {words:?}");
    }

    #[test]
    fn steps_are_counted_over_the_whole_run() {
        let epoch = |steps| Epoch { number: 1, steps, samples: 9, seconds: 0.5, scores: Vec::new() };
        let mut state = State::default();
        assert_eq!(state.steps(), 0);
        state.history.epochs.extend([epoch(5), epoch(3)]);
        state.now.add(2, 1.0);
        assert_eq!(state.steps(), 9);
    }

    #[test]
    fn settings_agree_or_are_named() {
        let settings = |seed: &str| BTreeMap::from([("seed".to_owned(), seed.to_owned())]);
        let state = State { settings: settings("1"), ..State::default() };
        state.agree(&settings("1")).unwrap();
        // Who says nothing goes on with what is there.
        state.agree(&BTreeMap::new()).unwrap();
        let error = state.agree(&settings("2")).unwrap_err();
        assert!(error.message().contains("seed is 2 here and 1 there"), "{error}");
        let error = State::default().agree(&settings("2")).unwrap_err();
        assert!(error.message().contains("not known"), "{error}");
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
