//! Shared by the tests: a line through the origin whose slope is trained.
#![allow(dead_code, unused_imports)]

use taut_autodiff::Variable;
use taut_core::ops::binary::mul;
use taut_core::{Result, Tensor};
use taut_data::Dataset;
use taut_nn::losses::MeanSquaredError;
use taut_nn::optimizers::{Optimizer, Sgd};
use taut_nn::{Layer, Mode, NamedVariables, Trainer};
pub use taut_testing::Folder;

pub type Data = Dataset<(Tensor, Tensor)>;

pub fn tensor(values: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

pub fn sgd(rate: f64) -> Sgd {
    Sgd { rate: rate.into(), ..Sgd::default() }
}

/// `y = w * x`, with an initial `w`.
pub struct Line(pub Variable);

impl Layer for Line {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        mul(x, &self.0)
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("w", &self.0);
    }
}

pub fn line(w: f32) -> Line {
    Line(Variable::new(Tensor::scalar(w).unwrap()).unwrap())
}

pub fn line_trainer(w: f32, rate: f64) -> Trainer {
    let model = line(w);
    let optimizer = Optimizer::new(sgd(rate), &model.trainable_variables()).unwrap();
    Trainer::new(model, MeanSquaredError, optimizer)
}

pub fn weight(trainer: &Trainer) -> f32 {
    trainer.model().named_variables()[0].1.value().item().unwrap()
}

/// Five samples in batches of two: the last batch is smaller.
pub fn samples() -> Data {
    let x = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5, 1]);
    let y = tensor(&[2.0, 4.0, 6.0, 8.0, 10.0], &[5, 1]);
    Dataset::from_tensor_slices((x, y)).unwrap().batch(2).unwrap()
}

/// Names and values of the model and the optimizer.
pub fn state(trainer: &Trainer) -> Vec<(String, String)> {
    let all = trainer.model().named_variables().into_iter().chain(trainer.optimizer().named_variables());
    all.map(|(name, variable)| (name, format!("{:?}", variable.value().view().unwrap()))).collect()
}
