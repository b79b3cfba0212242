//! A run that was interrupted and resumed. In a separate process: the default random generator belongs to the process.

mod common;

use common::{Data, Folder, state};
use taut_core::ops::random::{self, Generator};
use taut_core::{DType, Result};
use taut_data::Dataset;
use taut_memory::live_bytes;
use taut_nn::layers::{Activation, BatchNorm, Dense, Dropout, Sequential};
use taut_nn::losses::SparseCategoricalCrossentropy;
use taut_nn::metrics::SparseCategoricalAccuracy;
use taut_nn::optimizers::{Adam, Optimizer};
use taut_nn::train::{Callback, EarlyStopping, Every, Flow, Step};
use taut_nn::{Layer, Trainer};

/// A trainer with every kind of state: dropout, moving averages, sums of metrics, a callback with variables.
fn whole(seed: u64) -> Trainer {
    random::set_seed(seed);
    let model = Sequential::new()
        .with(Dense::new(3, 8).activation(Activation::Relu).build().unwrap())
        .with(BatchNorm::new(8).build().unwrap())
        .with(Dropout::new(0.4).unwrap())
        .with(Dense::new(8, 4).build().unwrap());
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables()).unwrap();
    let loss = SparseCategoricalCrossentropy::from_logits();
    Trainer::new(model, loss, optimizer)
        .metric(SparseCategoricalAccuracy::new().unwrap())
        .validate(&classes(2))
        .callback(EarlyStopping::lowest("val_loss").patience(2).restore_best())
}

fn classes(seed: u64) -> Data {
    let random = Generator::from_seed(seed);
    let x = random.normal([22, 3], 0.0, 1.0, DType::F32).unwrap();
    let y = random.integers([22], 0, 4, DType::I64).unwrap();
    Dataset::from_tensor_slices((x, y)).unwrap().shuffle(10).unwrap().batch(5).unwrap().prefetch(2).unwrap()
}

struct StopAfter(usize);

impl Callback for StopAfter {
    fn step(&mut self, _: &Trainer, _: &Step) -> Result<Flow> {
        self.0 = self.0.saturating_sub(1);
        Ok(if self.0 == 0 { Flow::Stop } else { Flow::Continue })
    }
}

fn scores(trainer: &Trainer) -> Vec<Vec<(String, f64)>> {
    trainer.history().epochs.iter().map(|epoch| epoch.scores.clone()).collect()
}

#[test]
fn a_run_resumed_after_any_step_is_the_same_to_the_last_bit() {
    // Checked for the whole process, not this thread: another thread prefetches batches.
    let before = live_bytes();
    let folder = Folder::new("resumed");
    let path = folder.join("run.safetensors");
    let (data, epochs) = (classes(1), 4);
    let mut straight = whole(9);
    straight.fit(&data, epochs).unwrap();
    let steps: usize = straight.history().epochs.iter().map(|epoch| epoch.steps).sum();
    for cut in 1..steps {
        let mut first = whole(9).callback(StopAfter(cut)).checkpoint(&path, Every::Epochs(100));
        first.fit(&data, epochs).unwrap();
        drop(first);
        let mut second = whole(77).callback(StopAfter(usize::MAX)).resume(&path).unwrap();
        second.fit(&data, epochs).unwrap();
        assert_eq!(scores(&second), scores(&straight), "cut after step {cut}");
        assert_eq!(state(&second), state(&straight), "cut after step {cut}");
    }
    drop((straight, data));
    assert_eq!(live_bytes(), before);
}
