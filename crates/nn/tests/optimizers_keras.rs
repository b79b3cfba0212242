//! Optimizers and schedules against Keras: `keras/optimizers.py` generates the expected values.
//!
//! Keras rounds its settings to `float32` even where it computes in `float64`, which limits the tolerance.

use serde_json::Value;
use std::collections::BTreeSet;
use taut_autodiff::Variable;
use taut_core::ops::unary::cast;
use taut_core::{DType, Gradient, Result, Shape, Tensor};
use taut_memory::testing::ledger_check;
use taut_nn::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Clip, Ftrl, LearningRate, Lion, Nadam, Optimizer,
    RmsProp, Sgd, UpdateRule,
};
use taut_nn::schedules::{
    CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, PiecewiseConstant, PolynomialDecay,
    Schedule,
};

fn data() -> Value {
    serde_json::from_str(include_str!("keras/optimizers.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn tensors(value: &Value, shapes: &Value, dtype: DType) -> Vec<Tensor> {
    let shapes = lists(shapes);
    let tensor = |(list, shape): (Vec<f64>, &Vec<f64>)| {
        let shape: Shape = shape.iter().map(|&dim| dim as usize).collect();
        cast(Tensor::from_slice(&list, shape).unwrap(), dtype).unwrap()
    };
    lists(value).into_iter().zip(&shapes).map(tensor).collect()
}

fn near(got: &[f64], wanted: &[f64], within: f64, what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (&got, &wanted) in got.iter().zip(wanted) {
        assert!((got - wanted).abs() <= within * wanted.abs().max(1.0), "{what}: {got} and not {wanted}");
    }
}

fn values(variables: &[Variable]) -> Vec<Vec<f64>> {
    let list = |v: &Variable| cast(v.value(), DType::F64).unwrap().to_vec().unwrap();
    variables.iter().map(list).collect()
}

struct Cases {
    data: Value,
    seen: BTreeSet<String>,
}

impl Cases {
    fn check(&mut self, name: &str, rule: impl UpdateRule + Clone) {
        self.check_with(name, rule, Ok);
    }

    fn check_with(
        &mut self,
        name: &str,
        rule: impl UpdateRule + Clone,
        finish: impl Fn(Optimizer) -> Result<Optimizer>,
    ) {
        self.follow(name, rule.clone(), &finish, DType::F32, 1e-5);
        self.follow(name, rule, &finish, DType::F64, 1e-5);
        assert!(self.seen.insert(name.to_owned()));
    }

    /// Runs the steps that Keras ran, with variables of this dtype.
    fn follow(
        &self,
        name: &str,
        rule: impl UpdateRule,
        finish: &dyn Fn(Optimizer) -> Result<Optimizer>,
        dtype: DType,
        within: f64,
    ) {
        let (data, shapes) = (&self.data, &self.data["shapes"]);
        let variables: Vec<Variable> = tensors(&data["start"], shapes, dtype)
            .into_iter()
            .map(|value| Variable::new(value).unwrap())
            .collect();
        let optimizer = finish(Optimizer::new(rule, &variables).unwrap()).unwrap();
        let steps = data["cases"][name].as_array().unwrap();
        let gradients = data["gradients"].as_array().unwrap();
        assert_eq!(steps.len(), gradients.len());
        for (i, (wanted, gradients)) in steps.iter().zip(gradients).enumerate() {
            let gradients: Vec<Option<Gradient>> =
                tensors(gradients, shapes, dtype).into_iter().map(|gradient| Some(gradient.into())).collect();
            optimizer.apply(&gradients).unwrap();
            let rows = [("values", values(&variables)), ("averages", values(&optimizer.averages()))];
            for (key, got) in rows {
                let wanted = wanted.get(key).map_or_else(Vec::new, lists);
                assert_eq!(got.len(), wanted.len(), "{name}");
                for (got, wanted) in got.iter().zip(&wanted) {
                    near(got, wanted, within, &format!("{dtype} {name}, {key} after step {}", i + 1));
                }
            }
        }
        assert_eq!(optimizer.iterations().value().item::<i64>().unwrap(), steps.len() as i64);
    }

    fn all_seen(&self, key: &str) {
        let all: BTreeSet<String> = self.data[key].as_object().unwrap().keys().cloned().collect();
        assert_eq!(all, self.seen);
    }
}

#[test]
fn updates_match_keras() {
    let _ledger = ledger_check();
    let mut cases = Cases { data: data(), seen: BTreeSet::new() };
    let rate = |rate: f64| LearningRate::from(rate);
    let inverse = InverseTimeDecay { initial: 0.5, steps: 2.0, decay: 0.5, staircase: false };
    let sgd = |at: f64| Sgd { rate: rate(at), ..Sgd::default() };

    cases.check("sgd", Sgd::default());
    cases.check("sgd rate", sgd(0.3));
    cases.check("sgd momentum", Sgd { momentum: 0.9, ..sgd(0.1) });
    cases.check("sgd nesterov", Sgd { momentum: 0.8, nesterov: true, ..sgd(0.1) });
    let decay = ExponentialDecay { initial: 0.5, steps: 3.0, decay: 0.7, staircase: false };
    cases.check("sgd scheduled", Sgd { rate: decay.into(), ..Sgd::default() });

    cases.check("rmsprop", RmsProp::default());
    let rmsprop = || RmsProp { rate: rate(0.01), ..RmsProp::default() };
    cases.check("rmsprop momentum", RmsProp { rho: 0.8, momentum: 0.6, epsilon: 1e-5, ..rmsprop() });
    cases.check("rmsprop centered", RmsProp { centered: true, ..rmsprop() });
    let both = RmsProp { momentum: 0.5, centered: true, epsilon: 1e-3, ..rmsprop() };
    cases.check("rmsprop momentum centered", both);

    cases.check("adagrad", Adagrad::default());
    cases.check("adagrad rate", Adagrad { rate: rate(0.2), initial_accumulator: 0.0, epsilon: 1e-4 });
    cases.check("adadelta", Adadelta::default());
    cases.check("adadelta rate", Adadelta { rate: rate(1.0), rho: 0.8, epsilon: 1e-3 });

    cases.check("adam", Adam::default());
    let adam = |at: f64| Adam { rate: rate(at), ..Adam::default() };
    cases.check("adam rate", Adam { beta_1: 0.7, beta_2: 0.9, epsilon: 1e-3, ..adam(0.1) });
    cases.check("adam amsgrad", Adam { amsgrad: true, ..adam(0.05) });
    let cosine = CosineDecay { initial: 0.1, steps: 7.0, ..CosineDecay::default() };
    cases.check("adam scheduled", Adam { rate: cosine.into(), ..Adam::default() });
    cases.check("adamw", AdamW { rate: rate(0.05), ..AdamW::default() });
    let decay = AdamW { rate: rate(0.05), weight_decay: 0.3, amsgrad: true, ..AdamW::default() };
    cases.check("adamw decay", decay);
    cases.check("adamax", Adamax::default());
    cases.check("adamax rate", Adamax { rate: rate(0.1), beta_1: 0.8, beta_2: 0.9, epsilon: 1e-2 });
    cases.check("nadam", Nadam::default());
    cases.check("nadam rate", Nadam { rate: rate(0.1), beta_1: 0.8, beta_2: 0.9, epsilon: 1e-3 });

    cases.check("adafactor", Adafactor::default());
    cases.check(
        "adafactor rate",
        Adafactor {
            rate: rate(0.5),
            beta_2_decay: -0.6,
            epsilon_1: 1e-3,
            epsilon_2: 0.1,
            clip_threshold: 0.5,
        },
    );
    cases.check("adafactor scheduled", Adafactor { rate: inverse.clone().into(), ..Adafactor::default() });
    cases.check("lion", Lion::default());
    cases.check("lion rate", Lion { rate: rate(0.1), beta_1: 0.7, beta_2: 0.8 });
    cases.check("ftrl", Ftrl::default());
    cases.check(
        "ftrl rate",
        Ftrl {
            rate: rate(0.5),
            rate_power: -0.7,
            initial_accumulator: 0.3,
            l1: 0.2,
            l2: 0.1,
            l2_shrinkage: 0.05,
            beta: 0.4,
        },
    );

    cases.check_with("decay", sgd(0.1), |o| o.weight_decay(0.5));
    cases.check_with("decay exempt", sgd(0.1), |o| {
        o.weight_decay(0.5)?.without_decay(|v| v.shape().rank() == 1)
    });
    cases.check_with("clip value", sgd(0.1), |o| o.clip(Clip::Value(0.4)));
    cases.check_with("clip norm", sgd(0.1), |o| o.clip(Clip::Norm(0.9)));
    cases.check_with("clip global norm", sgd(0.1), |o| o.clip(Clip::GlobalNorm(1.5)));

    cases.check_with("accumulate", adam(0.1), |o| o.accumulate(3));
    cases.check_with("accumulate clip value", sgd(0.1), |o| o.accumulate(2)?.clip(Clip::Value(0.3)));
    cases.check_with("accumulate clip norm", sgd(0.1), |o| o.accumulate(2)?.clip(Clip::Norm(0.5)));
    cases.check_with("accumulate clip global norm", sgd(0.1), |o| {
        o.accumulate(4)?.clip(Clip::GlobalNorm(0.5))
    });
    let nadam = Nadam { rate: rate(0.1), ..Nadam::default() };
    cases.check_with("accumulate nadam decay", nadam, |o| o.accumulate(2)?.weight_decay(0.2));
    let scheduled = Sgd { rate: inverse.into(), momentum: 0.9, ..Sgd::default() };
    cases.check_with("accumulate scheduled", scheduled, |o| o.accumulate(2));

    cases.check_with("average", sgd(0.3), |o| o.average(0.7));
    cases.check_with("average adam", adam(0.05), |o| o.average(0.9));
    cases.check_with("average accumulate", adam(0.05), |o| o.average(0.8)?.accumulate(3));
    cases.all_seen("cases");
}

#[test]
fn schedules_match_keras() {
    let _ledger = ledger_check();
    let mut cases = Cases { data: data(), seen: BTreeSet::new() };
    let at = numbers(&cases.data["at"]);
    let mut check = |name: &str, schedule: &dyn Schedule| {
        let got: Vec<f64> = at.iter().map(|&step| schedule.at(step as u64).unwrap()).collect();
        let wanted = numbers(&cases.data["schedules"][name]);
        assert_eq!(got.len(), wanted.len());
        for ((got, wanted), step) in got.iter().zip(&wanted).zip(&at) {
            assert!((got - wanted).abs() <= 1e-6, "{name} at {step}: {got} and not {wanted}");
        }
        assert!(cases.seen.insert(name.to_owned()));
    };
    let exponential = ExponentialDecay { initial: 0.1, steps: 20.0, decay: 0.6, staircase: false };
    check("exponential", &exponential);
    check(
        "exponential staircase",
        &ExponentialDecay { steps: 7.0, decay: 0.5, staircase: true, ..exponential },
    );
    check(
        "piecewise",
        &PiecewiseConstant { boundaries: vec![3.0, 10.0, 40.0], rates: vec![1.0, 0.5, 0.1, 0.01] },
    );
    let polynomial = PolynomialDecay { initial: 0.2, steps: 30.0, end: 0.01, power: 1.0, cycle: false };
    check("polynomial", &polynomial);
    check("polynomial power", &PolynomialDecay { power: 2.5, ..polynomial.clone() });
    check("polynomial cycle", &PolynomialDecay { steps: 11.0, power: 0.5, cycle: true, ..polynomial });
    let inverse = InverseTimeDecay { initial: 0.3, steps: 10.0, decay: 0.7, staircase: false };
    check("inverse time", &inverse);
    check("inverse time staircase", &InverseTimeDecay { steps: 4.0, staircase: true, ..inverse });
    let cosine = CosineDecay { initial: 0.4, steps: 25.0, ..CosineDecay::default() };
    check("cosine", &cosine);
    check("cosine alpha", &CosineDecay { steps: 60.0, alpha: 0.2, ..cosine });
    let warm = CosineDecay { initial: 0.01, steps: 30.0, alpha: 0.1, warmup: Some((0.5, 12.0)) };
    check("cosine warmup", &warm);
    let restarts = CosineDecayRestarts { initial: 0.3, first_steps: 10.0, ..CosineDecayRestarts::default() };
    check("restarts", &restarts);
    let even = CosineDecayRestarts { first_steps: 8.0, t_mul: 1.0, m_mul: 0.9, alpha: 0.05, ..restarts };
    check("restarts even", &even);
    let lower = CosineDecayRestarts { first_steps: 6.0, t_mul: 1.5, m_mul: 0.7, alpha: 0.1, ..restarts };
    check("restarts lower", &lower);
    cases.all_seen("schedules");
}
