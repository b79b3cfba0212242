//! The training loop: results, memory and failures.

mod common;

use common::{Folder, line, line_trainer, samples, sgd, state, tensor, weight};
use std::sync::{Arc, Mutex};
use taut_autodiff::Variable;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::random::Generator;
use taut_core::ops::reduce::mean;
use taut_core::ops::unary::{log, sqrt, square};
use taut_core::{DType, ErrorKind, Result, Tensor};
use taut_data::Dataset;
use taut_memory::testing::ledger_check;
use taut_nn::layers::{Dense, Embedding, Flatten, Lambda, Sequential};
use taut_nn::losses::{Loss, MeanSquaredError, SparseCategoricalCrossentropy};
use taut_nn::metrics::MeanAbsoluteError;
use taut_nn::optimizers::{Adam, Optimizer};
use taut_nn::train::{Callback, EarlyStopping, Epoch, Flow, ReduceRate, SaveBest};
use taut_nn::{Checkpoint, Layer, Mode, NamedVariables, Trainer};

/// The expected weight, mean loss and mean absolute error of each epoch, computed with plain floats.
fn by_hand(mut w: f64, rate: f64, epochs: usize) -> Vec<(f64, f64, f64)> {
    let mut out = Vec::new();
    for _ in 0..epochs {
        let (mut loss, mut error) = (0.0, 0.0);
        for batch in [&[1.0, 2.0][..], &[3.0, 4.0], &[5.0]] {
            let count = batch.len() as f64;
            loss += batch.iter().map(|x| (w * x - 2.0 * x).powi(2)).sum::<f64>();
            error += batch.iter().map(|x| (w * x - 2.0 * x).abs()).sum::<f64>();
            let slope = batch.iter().map(|x| 2.0 * (w * x - 2.0 * x) * x).sum::<f64>() / count;
            w -= rate * slope;
        }
        out.push((w, loss / 5.0, error / 5.0));
    }
    out
}

#[test]
fn epochs_match_a_computation_by_hand() {
    let _ledger = ledger_check();
    let mut trainer = line_trainer(0.0, 0.01).metric(MeanAbsoluteError::new().unwrap()).validate(&samples());
    let history = trainer.fit(&samples(), 3).unwrap().clone();
    for (epoch, (w, loss, error)) in history.epochs.iter().zip(by_hand(0.0, 0.01, 3)) {
        assert_eq!((epoch.steps, epoch.samples), (3, 5));
        assert!((epoch.score("loss").unwrap() - loss).abs() < 1e-5 * loss);
        assert!((epoch.score("mean_absolute_error").unwrap() - error).abs() < 1e-5 * error);
        let left: f64 = (1..=5).map(|x| ((w - 2.0) * f64::from(x)).powi(2)).sum::<f64>() / 5.0;
        assert!((epoch.score("val_loss").unwrap() - left).abs() < 1e-4 * left);
        let names: Vec<&str> = epoch.scores.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"]);
    }
    assert_eq!(history.epochs.iter().map(|epoch| epoch.number).collect::<Vec<_>>(), [1, 2, 3]);
    // Complete epochs are not run again.
    assert_eq!(trainer.fit(&samples(), 3).unwrap().epochs.len(), 3);
    let prediction = trainer.predict(&tensor(&[1.0], &[1, 1])).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(prediction, [weight(&trainer)]);
}

#[test]
fn infinite_data_is_split_into_epochs() {
    let _ledger = ledger_check();
    let mut straight = line_trainer(0.0, 0.001);
    straight.fit(&samples(), 2).unwrap();
    let mut cut = line_trainer(0.0, 0.001).steps_per_epoch(2);
    let history = cut.fit(&samples().repeat(None), 3).unwrap();
    assert_eq!(history.epochs.iter().map(|epoch| epoch.steps).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(weight(&cut), weight(&straight));
    // Finite data starts again.
    let mut again = line_trainer(0.0, 0.001).steps_per_epoch(2);
    again.fit(&samples(), 3).unwrap();
    assert_eq!(weight(&again), weight(&straight));
}

#[test]
fn the_op_that_produced_a_nan_is_named_and_no_variable_changes() {
    let _ledger = ledger_check();
    let made = std::line!() + 1;
    let model = || Sequential::new().with(line(1.0)).with(Lambda::new(|x| log(sub(x, 3.0)?)));
    let trainer = |model: Sequential| {
        let optimizer = Optimizer::new(sgd(0.1), &model.trainable_variables()).unwrap();
        Trainer::new(model, MeanSquaredError, optimizer)
    };
    let mut broken = trainer(model());
    let x = tensor(&[4.0, 5.0, -2.0], &[3, 1]);
    let data = Dataset::from_tensor_slices((x.clone(), x)).unwrap().batch(1).unwrap();
    let error = broken.fit(&data, 5).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Numeric, Some("log")), "{error}");
    assert_eq!(error.location().unwrap().line(), made, "{error}");
    assert!(error.message().contains("epoch 1, step 3"), "{error}");
    assert!(weight(&broken).is_finite());
}

#[test]
fn the_op_whose_gradient_produced_a_nan_is_named() {
    let _ledger = ledger_check();
    // The root of zero is finite, its derivative is not.
    let model = Sequential::new().with(line(2.0)).with(Lambda::new(|x| sqrt(square(x)?)));
    let optimizer = Optimizer::new(sgd(0.1), &model.trainable_variables()).unwrap();
    let mut trainer = Trainer::new(model, MeanSquaredError, optimizer);
    let (x, y) = (tensor(&[0.0, 1.0], &[2, 1]), tensor(&[1.0, 1.0], &[2, 1]));
    let data = Dataset::from_tensor_slices((x, y)).unwrap().batch(2).unwrap();
    let error = trainer.fit(&data, 1).unwrap_err();
    assert_eq!((error.kind(), error.gradient_of()), (ErrorKind::Numeric, Some("sqrt")), "{error}");
    assert_eq!(weight(&trainer), 2.0);
    // Without the check, the NaN reaches the weights.
    let mut unchecked = trainer.check_numerics(false);
    unchecked.fit(&data, 1).unwrap();
    assert!(weight(&unchecked).is_nan());
}

#[test]
fn bad_data_is_rejected_with_a_message() {
    let _ledger = ledger_check();
    let nothing = Dataset::from_tensor_slices((tensor(&[], &[0, 1]), tensor(&[], &[0, 1]))).unwrap();
    let error = line_trainer(1.0, 0.1).fit(&nothing.batch(2).unwrap(), 1).unwrap_err();
    assert!(error.message().contains("must have at least one element"), "{error}");
    assert!(error.location().unwrap().file().ends_with("tests/trainer.rs"));

    let model = Dense::new(3, 4).build().unwrap();
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables()).unwrap();
    let loss = SparseCategoricalCrossentropy::from_logits();
    let mut trainer = Trainer::new(model, loss, optimizer);
    let before = state(&trainer);
    let x = Generator::from_seed(1).normal([2, 3], 0.0, 1.0, DType::F32).unwrap();
    let y = Tensor::from_slice(&[1i64, 4], [2]).unwrap();
    let data = Dataset::from_tensor_slices((x, y)).unwrap().batch(2).unwrap();
    let error = trainer.fit(&data, 1).unwrap_err();
    assert!(error.message().contains('4') && error.message().contains("epoch 1, step 1"), "{error}");
    assert_eq!(state(&trainer), before);

    let model = Sequential::new().with(Embedding::new(10, 4).build().unwrap()).with(Flatten::new());
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables()).unwrap();
    let mut trainer = Trainer::new(model, MeanSquaredError, optimizer);
    let x = Tensor::from_slice(&[1i64, 10], [2, 1]).unwrap();
    let y = tensor(&[0.0; 8], &[2, 4]);
    let data = Dataset::from_tensor_slices((x, y)).unwrap().batch(2).unwrap();
    let error = trainer.fit(&data, 1).unwrap_err();
    assert!(error.message().contains("10"), "{error}");
}

/// A metric with given scores.
struct Scripted(Mutex<Vec<f64>>, Arc<Mutex<Vec<f32>>>);

impl Callback for Scripted {
    fn epoch(&mut self, trainer: &Trainer, _: &Epoch) -> Result<Flow> {
        self.1.lock().unwrap().push(weight(trainer));
        let next = self.0.lock().unwrap().remove(0);
        trainer.model().named_variables()[1].1.assign(Tensor::scalar(next as f32)?)?;
        Ok(Flow::Continue)
    }
}

/// `y = w * x`, with validation losses that the test chooses.
struct Judged(Variable, Variable);

impl Layer for Judged {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let y = mul(x, &self.0)?;
        if mode.is_training() { Ok(y) } else { add(mul(y, 0.0)?, sqrt(&self.1)?) }
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("w", &self.0);
        names.add("score", &self.1);
    }
}

fn judged(scores: &[f64]) -> (Trainer, Arc<Mutex<Vec<f32>>>) {
    let score =
        Variable::builder().trainable(false).build(Tensor::scalar(scores[0] as f32).unwrap()).unwrap();
    let model = Judged(Variable::new(Tensor::scalar(0.0f32).unwrap()).unwrap(), score);
    let optimizer = Optimizer::new(sgd(0.01), &model.trainable_variables()).unwrap();
    let zeros = tensor(&[0.0; 2], &[2, 1]);
    let test = Dataset::from_tensor_slices((zeros.clone(), zeros)).unwrap().batch(2).unwrap();
    let weights = Arc::new(Mutex::new(Vec::new()));
    let script = Scripted(Mutex::new([&scores[1..], &[0.0]].concat()), weights.clone());
    (Trainer::new(model, MeanSquaredError, optimizer).validate(&test).callback(script), weights)
}

#[test]
fn training_stops_without_improvement() {
    let _ledger = ledger_check();
    let (trainer, weights) = judged(&[4.0, 2.0, 3.0, 2.5, 1.0]);
    let mut trainer = trainer.callback(EarlyStopping::lowest("val_loss").patience(2).restore_best());
    let epochs = trainer.fit(&samples(), 5).unwrap().epochs.len();
    assert_eq!(epochs, 4);
    assert_eq!(weight(&trainer), weights.lock().unwrap()[1], "as after the best epoch");
    let (trainer, _) = judged(&[1.0, 2.0]);
    let error = trainer.callback(EarlyStopping::lowest("val_acc")).fit(&samples(), 2).unwrap_err();
    assert!(error.to_string().contains("val_loss"), "{error}");
}

#[test]
fn the_rate_is_reduced_and_the_best_model_is_saved() {
    let _ledger = ledger_check();
    let folder = Folder::new("best");
    let path = folder.join("best.safetensors");
    let (trainer, weights) = judged(&[4.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
    let mut trainer = trainer
        .callback(ReduceRate::lowest("val_loss", 0.5).patience(2).min_rate(0.004))
        .callback(SaveBest::lowest("val_loss", &path));
    trainer.fit(&samples(), 6).unwrap();
    assert!((trainer.optimizer().rate().unwrap() - 0.004).abs() < 1e-9);
    let best = line(0.0);
    let score = Variable::new(Tensor::scalar(0.0f32).unwrap()).unwrap();
    let named = [("w", best.0.clone()), ("score", score)];
    let words = Checkpoint::new().with("model", named).load(&path).unwrap();
    assert!((words["val_loss"].parse::<f64>().unwrap() - 2.0).abs() < 1e-6);
    assert_eq!(best.0.value().item::<f32>().unwrap(), weights.lock().unwrap()[1]);
}

/// The fourth power of the error.
struct Fourth;

impl Loss for Fourth {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        mean(square(square(sub(truth, predicted)?)?)?, -1, false)
    }
}

#[test]
fn a_custom_loss_and_steps_without_fit() {
    let _ledger = ledger_check();
    let model = line(0.0);
    let optimizer = Optimizer::new(sgd(0.001), &model.trainable_variables()).unwrap();
    let trainer = Trainer::new(model, Fourth, optimizer);
    let (x, y) = (tensor(&[1.0], &[1, 1]), tensor(&[2.0], &[1, 1]));
    assert_eq!(trainer.train_step(&x, &y).unwrap(), 16.0);
    // d/dw (2 - w)^4 = -4 * 8 at zero.
    assert!((weight(&trainer) - 0.032).abs() < 1e-6);
    let scores = trainer.evaluate(&samples()).unwrap();
    assert_eq!(scores.len(), 1);
}
