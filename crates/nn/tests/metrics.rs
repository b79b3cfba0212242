//! Metrics against Keras over several batches, eager and traced; names, resets, and invalid arguments.

#[path = "keras/data.rs"]
mod data;

use data::{assert_close, load};
use std::sync::Arc;
use taut_autodiff::GradientTape;
use taut_core::ops::binary::sub;
use taut_core::ops::creation::zeros;
use taut_core::ops::reduce::max;
use taut_core::ops::unary::abs;
use taut_core::{DType, ErrorKind, Result, Tensor};
use taut_function::{OnRetrace, function};
use taut_memory::testing::ledger_check;
use taut_nn::NamedVariables;
use taut_nn::losses::{Hinge, SparseCategoricalCrossentropy};
use taut_nn::metrics::*;

fn make(case: &str) -> Result<Arc<dyn Metric>> {
    let area = |curve, summation| AUC::with_thresholds(20, curve, summation);
    let perplexity =
        |ignore_class| Perplexity::new(SparseCategoricalCrossentropy { from_logits: true, ignore_class });
    Ok(match case {
        "accuracy" => Arc::new(Accuracy::new()?),
        "binary_accuracy" => Arc::new(BinaryAccuracy::new()?),
        "binary_accuracy_low" => Arc::new(BinaryAccuracy::at(0.2)?),
        "sparse_categorical_accuracy" => Arc::new(SparseCategoricalAccuracy::new()?),
        "categorical_accuracy" => Arc::new(CategoricalAccuracy::new()?),
        "sparse_top_k" => Arc::new(SparseTopKCategoricalAccuracy::new(2)?),
        "top_k" => Arc::new(TopKCategoricalAccuracy::new(3)?),
        "precision" => Arc::new(Precision::new()?),
        "precision_high" => Arc::new(Precision::at(0.8)?),
        "recall" => Arc::new(Recall::new()?),
        "f1_each" => Arc::new(F1Score::new(4, Average::None, None)?),
        "f1_micro" => Arc::new(F1Score::new(4, Average::Micro, None)?),
        "f1_macro" => Arc::new(F1Score::new(4, Average::Macro, None)?),
        "f1_weighted" => Arc::new(F1Score::new(4, Average::Weighted, None)?),
        "f1_threshold" => Arc::new(F1Score::new(3, Average::Macro, Some(0.4))?),
        "auc_roc_interpolation" => Arc::new(area(Curve::Roc, Summation::Interpolation)?),
        "auc_roc_minoring" => Arc::new(area(Curve::Roc, Summation::Minoring)?),
        "auc_roc_majoring" => Arc::new(area(Curve::Roc, Summation::Majoring)?),
        "auc_pr_interpolation" => Arc::new(area(Curve::Pr, Summation::Interpolation)?),
        "auc_pr_minoring" => Arc::new(area(Curve::Pr, Summation::Minoring)?),
        "auc_pr_majoring" => Arc::new(area(Curve::Pr, Summation::Majoring)?),
        "auc_roc" => Arc::new(AUC::new(Curve::Roc)?),
        "auc_logits" => Arc::new(AUC::new(Curve::Roc)?.from_logits(true)),
        "mean_squared_error" => Arc::new(MeanSquaredError::new()?),
        "root_mean_squared_error" => Arc::new(RootMeanSquaredError::new()?),
        "mean_absolute_error" => Arc::new(MeanAbsoluteError::new()?),
        "mean_of_hinge" => Arc::new(MeanMetric::loss("hinge", Hinge)?),
        "r2_score" => Arc::new(R2Score::new(2)?),
        "perplexity" => Arc::new(perplexity(None)?),
        "perplexity_ignoring" => Arc::new(perplexity(Some(0))?),
        "confusion_matrix" => Arc::new(ConfusionMatrix::new(4)?),
        case => panic!("Keras has a case {case:?} that no metric is made for"),
    })
}

type Batch = (Tensor, Tensor, Option<Tensor>);

#[test]
fn metrics_match_keras() {
    let _ledger = ledger_check();
    let cases = load("metrics.safetensors");
    assert_eq!(cases.len(), 31);
    for (name, case) in &cases {
        let metric = make(name).unwrap();
        let inside = metric.clone();
        let traced = function(move |(t, p, w): &Batch| {
            inside.update_with(t, p, w.as_ref())?;
            inside.result()
        })
        .on_retrace(OnRetrace::Allow);
        let eager = |(t, p, w): &Batch| {
            metric.update_with(t, p, w.as_ref())?;
            metric.result()
        };
        for (how, weighted) in [("eager", false), ("eager", true), ("traced", false), ("traced", true)] {
            metric.reset().unwrap();
            for i in 0..3 {
                let part = |part: &str| case[&format!("{part}{i}")].clone();
                let weights = weighted.then(|| part("weights"));
                let batch = (part("truth"), part("predicted"), weights);
                let got = if how == "traced" { traced.call(&batch) } else { eager(&batch) };
                let want = format!("{}{i}", if weighted { "weighted" } else { "plain" });
                assert_close(&format!("{name}, {how}, {want}"), &got.unwrap(), &case[&want]);
            }
        }
    }
}

/// The names of a metric's variables.
fn names(metric: &dyn Metric) -> Vec<String> {
    let mut names = NamedVariables::default();
    metric.variables(&mut names);
    format!("{names:?}").split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn reset_sets_the_sums_to_zero_and_keeps_the_variables() {
    let _ledger = ledger_check();
    for name in load("metrics.safetensors").keys() {
        let metric = make(name).unwrap();
        assert!(!metric.name().is_empty() && !names(&*metric).is_empty(), "{name}");
        metric.reset().unwrap();
    }
    let mean = Mean::new().unwrap();
    assert_eq!(mean.value().unwrap(), 0.0);
    mean.add(&Tensor::new([[1.0f32, 3.0], [5.0, 7.0]]).unwrap(), None).unwrap();
    assert_eq!(mean.value().unwrap(), 4.0);
    mean.add(&Tensor::scalar(10.0f32).unwrap(), Some(&Tensor::scalar(2.0f32).unwrap())).unwrap();
    assert_eq!(mean.value().unwrap(), (8.0 + 20.0) / 4.0);
    mean.reset().unwrap();
    mean.add(&zeros([0, 3], DType::F32).unwrap(), None).unwrap();
    assert_eq!(mean.value().unwrap(), 0.0);
}

struct LargestError;

impl Measure for LargestError {
    fn name(&self) -> &'static str {
        "largest_error"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        max(abs(sub(truth, predicted)?)?, -1, false)
    }
}

#[test]
fn a_custom_measure_is_a_metric() {
    let _ledger = ledger_check();
    let metric = MeanMetric::of_measure(LargestError).unwrap();
    let truth = Tensor::new([[0.0f32, 1.0], [2.0, 2.0]]).unwrap();
    metric.update(&truth, &Tensor::new([[3.0f32, 0.0], [2.0, 1.0]]).unwrap()).unwrap();
    assert_eq!((metric.value().unwrap(), metric.name()), (2.0, "largest_error"));
}

#[test]
fn invalid_arguments_are_rejected_with_the_callers_line() {
    let _ledger = ledger_check();
    let scores = zeros([2, 3], DType::F32).unwrap();
    let matrix = ConfusionMatrix::new(3).unwrap();
    let error = matrix.update(&Tensor::new([0i32, 5]).unwrap(), &scores).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.to_string().contains('5'), "{error}");
    assert_eq!(matrix.result().unwrap().to_vec::<f64>().unwrap(), [0.0; 9]);
    let accuracy = SparseCategoricalAccuracy::new().unwrap();
    let error = accuracy.update(&zeros([3], DType::I32).unwrap(), &scores).unwrap_err();
    assert!(error.message().contains("got labels [3] and predictions [2, 3]"), "{error}");
    assert_eq!(error.location().unwrap().file(), file!());
    assert_eq!(R2Score::new(2).unwrap().update(&scores, &scores).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(
        AUC::with_thresholds(1, Curve::Roc, Summation::Minoring).unwrap_err().kind(),
        ErrorKind::Value
    );
    let error = AUC::with_thresholds(usize::MAX, Curve::Roc, Summation::Minoring).unwrap_err();
    assert_eq!((error.kind(), error.location().unwrap().file()), (ErrorKind::Shape, file!()), "{error}");
    assert_eq!(
        F1Score::new(2, Average::Macro, None).unwrap().update(&scores, &scores).unwrap_err().kind(),
        ErrorKind::Shape
    );
}

/// As in scikit-learn: the score of constant targets is 1 for an exact prediction and 0 otherwise.
#[test]
fn r2_of_constant_targets_is_one_or_zero() {
    let _ledger = ledger_check();
    let score = |truth: [[f32; 2]; 2], predicted: [[f32; 2]; 2]| {
        let metric = R2Score::new(2).unwrap();
        metric.update(&Tensor::new(truth).unwrap(), &Tensor::new(predicted).unwrap()).unwrap();
        metric.value().unwrap()
    };
    assert_eq!(R2Score::new(2).unwrap().value().unwrap(), 0.0);
    let constant = [[3.0, 5.0], [3.0, 5.0]];
    assert_eq!(score(constant, constant), 1.0);
    assert_eq!(score(constant, [[3.0, 5.0], [3.0, 6.0]]), 0.5);
    // One output varies: its squared distances from the mean add up to 2, and both predictions are off by one half: 1 - 0.5 / 2.
    assert_eq!(score([[1.0, 5.0], [3.0, 5.0]], [[1.5, 5.0], [2.5, 5.0]]), f64::midpoint(0.75, 1.0));
}

/// Tapes record nothing of an update of a metric.
#[test]
fn metrics_are_not_recorded_on_tapes() {
    let _ledger = ledger_check();
    let tape = GradientTape::new();
    let scores = zeros([4, 3], DType::F32).unwrap();
    tape.watch(&scores);
    let labels = zeros([4], DType::I32).unwrap();
    let before = (tape.num_entries(), tape.bytes_held());
    let metric = MeanMetric::loss("loss", SparseCategoricalCrossentropy::from_logits()).unwrap();
    metric.update(&labels, &scores).unwrap();
    ConfusionMatrix::new(3).unwrap().update(&labels, &scores).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), before);
    assert!((metric.value().unwrap() - 3f64.ln()).abs() < 1e-6);
}

/// NaN never counts as a match, for any `k`.
#[test]
fn nan_is_not_a_match() {
    let _ledger = ledger_check();
    let top = SparseTopKCategoricalAccuracy::new(2).unwrap();
    let scores = Tensor::new([[f32::NAN, f32::NAN, 1.0], [0.0, 1.0, 2.0]]).unwrap();
    top.update(&Tensor::new([0i32, 1]).unwrap(), &scores).unwrap();
    assert_eq!(top.value().unwrap(), 0.5);
}
