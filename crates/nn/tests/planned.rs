//! The planned peak of a step equals the ledger's. In a separate process, because the ledger counts the whole process.

use taut_core::DType;
use taut_core::ops::random::Generator;
use taut_memory::testing::ledger_check;
use taut_memory::{live_bytes, peak_bytes, reset_peak};
use taut_nn::layers::{Activation, Dense, Sequential};
use taut_nn::losses::MeanSquaredError;
use taut_nn::optimizers::{Adam, Optimizer};
use taut_nn::{Layer, Trainer};

#[test]
fn the_planned_peak_is_the_measured_one_and_updates_are_in_place() {
    let _ledger = ledger_check();
    let layers = |count: usize| {
        let mut model = Sequential::new();
        for _ in 0..count {
            model = model.with(Dense::new(64, 64).activation(Activation::Tanh).build().unwrap());
        }
        let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables()).unwrap();
        Trainer::new(model, MeanSquaredError, optimizer)
    };
    let x = Generator::from_seed(1).normal([4, 64], 0.0, 1.0, DType::F32).unwrap();
    let mut peaks = Vec::new();
    for count in [4, 8] {
        let trainer = layers(count);
        let planned = trainer.plan(&x, &x).unwrap().peak_bytes();
        let addresses =
            || trainer.model().named_variables().iter().map(|(_, v)| v.address()).collect::<Vec<_>>();
        let (before, places) = (live_bytes(), addresses());
        reset_peak();
        trainer.train_step(&x, &x).unwrap();
        assert_eq!(peak_bytes() - before, planned);
        assert_eq!(addresses(), places);
        peaks.push(planned);
    }
    // Four more layers need four more activations, not four more gradients of 64 x 64.
    let (gradient, activation) = (64 * 64 * 4, 4 * 64 * 4);
    assert!(peaks[1] - peaks[0] <= 4 * (activation + 64), "{peaks:?}");
    assert!(peaks[1] < 3 * gradient, "{peaks:?}");
}
