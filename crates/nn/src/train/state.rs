//! The progress of a run, saved in a checkpoint beside the variables.

use super::history::History;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use taut_core::{Error, ErrorKind, Result, Tensor};

/// The key of this state among a checkpoint's metadata.
const KEY: &str = "taut.trainer";

/// The state of a run that is not a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunState {
    /// Complete epochs.
    pub epochs: usize,
    /// The current epoch. Files call it `now`.
    #[serde(rename = "now")]
    pub progress: EpochProgress,
    /// The position in the data.
    pub position: String,
    /// Seed and counter of the random numbers.
    pub random: (u64, u64),
    pub history: History,
    /// The state of callbacks, by their indices.
    pub callbacks: BTreeMap<usize, String>,
    /// Settings that a resumed run must share.
    pub settings: BTreeMap<String, String>,
}

/// The sums of an incomplete epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct EpochProgress {
    pub steps: usize,
    pub samples: usize,
    /// The bits of the sum of the samples' losses: a decimal number could be rounded.
    loss_bits: u64,
    pub seconds: f64,
}

impl EpochProgress {
    pub fn add(&mut self, samples: usize, loss: f64) {
        self.steps += 1;
        self.samples += samples;
        self.loss_bits = (f64::from_bits(self.loss_bits) + loss * samples as f64).to_bits();
    }

    /// Steps, samples, and the bits of the sum of losses.
    pub fn sums(&self) -> (usize, usize, f64) {
        (self.steps, self.samples, f64::from_bits(self.loss_bits))
    }

    /// The progress of these sums.
    pub fn of_sums(steps: usize, samples: usize, loss: f64) -> EpochProgress {
        EpochProgress { steps, samples, loss_bits: loss.to_bits(), seconds: 0.0 }
    }

    /// The mean loss of the samples so far.
    pub fn loss(&self) -> f64 {
        f64::from_bits(self.loss_bits) / self.samples as f64
    }
}

impl RunState {
    /// Steps of the whole run.
    pub fn steps(&self) -> usize {
        self.history.epochs.iter().map(|epoch| epoch.steps).sum::<usize>() + self.progress.steps
    }

    /// Rejects settings that differ from those of the saved run.
    pub fn check_settings(&self, settings: &BTreeMap<String, String>) -> Result<()> {
        for (name, here) in settings {
            let there = self.settings.get(name);
            if there != Some(here) {
                let there = there.map_or("no value", String::as_str);
                return Err(Error::value(format!("{name} must be {there} as in the checkpoint, got {here}"))
                    .help("resume with the settings of the saved run"));
            }
        }
        Ok(())
    }

    pub fn to_metadata(&self) -> Result<BTreeMap<String, String>> {
        let text = serde_json::to_string(self).map_err(|error| Error::value(error.to_string()))?;
        Ok(BTreeMap::from([(KEY.to_owned(), text)]))
    }

    pub fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<RunState> {
        let foreign = |message: String| {
            Error::new(ErrorKind::Format, message).help("use Checkpoint::load_part to read only the weights")
        };
        let text = metadata.get(KEY).ok_or_else(|| foreign("the file has no trainer state".into()))?;
        serde_json::from_str(text)
            .map_err(|error| foreign(format!("the trainer state cannot be parsed: {error}")))
    }
}

/// The variables of callbacks in a checkpoint. They are assigned after their `begin`.
pub(super) struct PendingCallbacks {
    pub path: PathBuf,
    pub tensors: Vec<(String, Tensor)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Epoch;

    #[test]
    fn a_sum_of_losses_survives_to_the_last_bit() {
        let mut state = RunState { position: "3:17".into(), random: (u64::MAX, 5), ..RunState::default() };
        for i in 1..100 {
            state.progress.add(3, 1.0 / f64::from(i));
        }
        let back = RunState::from_metadata(&state.to_metadata().unwrap()).unwrap();
        assert_eq!(back, state);
        assert_eq!(back.progress.loss().to_bits(), state.progress.loss().to_bits());
    }

    #[test]
    fn every_score_survives_to_the_last_bit() {
        let values =
            [0.1, -0.0, f64::MIN_POSITIVE / 3.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN];
        let scores = values.map(|value| (value.to_string(), value)).to_vec();
        let epoch = Epoch { number: 1, steps: 5, samples: 9, seconds: 0.5, scores };
        let state = RunState { history: History { epochs: vec![epoch] }, ..RunState::default() };
        let metadata = state.to_metadata().unwrap();
        let back = RunState::from_metadata(&metadata).unwrap();
        let bits = |state: &RunState| -> Vec<u64> {
            state.history.epochs[0].scores.iter().map(|(_, value)| value.to_bits()).collect()
        };
        assert_eq!(bits(&back), values.map(f64::to_bits));
        assert!(metadata[KEY].contains("\"-inf\""), "{metadata:?}");
    }

    #[test]
    fn steps_are_counted_over_the_whole_run() {
        let epoch = |steps| Epoch { number: 1, steps, samples: 9, seconds: 0.5, scores: Vec::new() };
        let mut state = RunState::default();
        assert_eq!(state.steps(), 0);
        state.history.epochs.extend([epoch(5), epoch(3)]);
        state.progress.add(2, 1.0);
        assert_eq!(state.steps(), 9);
    }

    #[test]
    fn different_settings_are_rejected_by_name() {
        let settings = |seed: &str| BTreeMap::from([("seed".to_owned(), seed.to_owned())]);
        let state = RunState { settings: settings("1"), ..RunState::default() };
        state.check_settings(&settings("1")).unwrap();
        // A setting that is not given is not compared.
        state.check_settings(&BTreeMap::new()).unwrap();
        let error = state.check_settings(&settings("2")).unwrap_err();
        assert!(error.message().contains("seed must be 1 as in the checkpoint, got 2"), "{error}");
        let error = RunState::default().check_settings(&settings("2")).unwrap_err();
        assert!(error.message().contains("seed must be no value"), "{error}");
    }

    #[test]
    fn metadata_without_a_valid_state_is_rejected() {
        let none = RunState::from_metadata(&BTreeMap::new()).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::Format);
        for text in ["", "{}", "[1, 2]", r#"{"epochs": -1}"#] {
            let metadata = BTreeMap::from([(KEY.to_owned(), text.to_owned())]);
            assert_eq!(RunState::from_metadata(&metadata).unwrap_err().kind(), ErrorKind::Format, "{text}");
        }
    }
}
