//! Losses against Keras, invalid arguments, and special values.

#[path = "keras/data.rs"]
mod data;

use data::{assert_close, load};
use taut_autodiff::{DenseGradient as _, GradientTape};
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::{broadcast_to, transpose};
use taut_core::{DType, ErrorKind, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_nn::losses::*;

fn make(case: &str) -> Box<dyn Loss> {
    let sparse = SparseCategoricalCrossentropy::from_logits;
    match case {
        "mean_squared_error" | "mean_squared_error_of_columns" => Box::new(MeanSquaredError),
        "mean_absolute_error" | "mean_absolute_error_of_sequences" => Box::new(MeanAbsoluteError),
        "mean_absolute_percentage_error" => Box::new(MeanAbsolutePercentageError),
        "mean_squared_logarithmic_error" => Box::new(MeanSquaredLogarithmicError),
        "huber" => Box::new(Huber::default()),
        "huber_narrow" => Box::new(Huber { delta: 0.3 }),
        "log_cosh" => Box::new(LogCosh),
        "cosine_similarity" => Box::new(CosineSimilarity),
        "poisson" => Box::new(Poisson),
        "binary_crossentropy" => Box::new(BinaryCrossentropy::default()),
        "binary_crossentropy_logits" => Box::new(BinaryCrossentropy::from_logits()),
        "binary_crossentropy_smoothed" => {
            Box::new(BinaryCrossentropy { label_smoothing: 0.2, ..BinaryCrossentropy::default() })
        }
        "binary_focal" => Box::new(BinaryFocalCrossentropy::default()),
        "binary_focal_logits" => Box::new(BinaryFocalCrossentropy {
            gamma: 1.5,
            from_logits: true,
            label_smoothing: 0.1,
            ..BinaryFocalCrossentropy::default()
        }),
        "binary_focal_balanced" => {
            Box::new(BinaryFocalCrossentropy { alpha: Some(0.3), ..BinaryFocalCrossentropy::default() })
        }
        "categorical_crossentropy" | "categorical_crossentropy_unnormalised" => {
            Box::new(CategoricalCrossentropy::default())
        }
        "categorical_crossentropy_logits" => Box::new(CategoricalCrossentropy::from_logits()),
        "categorical_crossentropy_smoothed" => {
            Box::new(CategoricalCrossentropy { label_smoothing: 0.1, from_logits: true })
        }
        "categorical_focal" => Box::new(CategoricalFocalCrossentropy::default()),
        "categorical_focal_logits" => Box::new(CategoricalFocalCrossentropy {
            alpha: 0.4,
            gamma: 1.0,
            from_logits: true,
            label_smoothing: 0.1,
        }),
        "sparse_crossentropy" => Box::new(SparseCategoricalCrossentropy::default()),
        "sparse_crossentropy_logits"
        | "sparse_crossentropy_of_columns"
        | "sparse_crossentropy_of_sequences" => Box::new(sparse()),
        "sparse_crossentropy_ignoring" => {
            Box::new(SparseCategoricalCrossentropy { ignore_class: Some(-1), ..sparse() })
        }
        "kl_divergence" => Box::new(KlDivergence),
        "hinge" | "hinge_of_binary" => Box::new(Hinge),
        "squared_hinge" => Box::new(SquaredHinge),
        "categorical_hinge" => Box::new(CategoricalHinge),
        case => panic!("Keras has a case {case:?} that no loss is made for"),
    }
}

/// The mean, and its gradient by the predictions.
fn mean(
    loss: &dyn Loss,
    truth: &Tensor,
    predicted: &Tensor,
    weights: Option<&Tensor>,
) -> Result<Vec<Tensor>> {
    let tape = GradientTape::new();
    tape.watch(predicted);
    let mean = loss.mean(truth, predicted, weights)?;
    let gradient = tape.gradient(&mean, predicted)?.dense()?;
    Ok(vec![mean, gradient])
}

#[test]
fn losses_match_keras() {
    let _ledger = ledger_check();
    let cases = load("losses.safetensors");
    assert_eq!(cases.len(), 33);
    for (name, case) in &cases {
        let (truth, predicted, weights) = (&case["truth"], &case["predicted"], &case["weights"]);
        let loss = make(name);
        assert_close(&format!("{name}, each"), &loss.call(truth, predicted).unwrap(), &case["each"]);
        let eager = [mean(&*loss, truth, predicted, None), mean(&*loss, truth, predicted, Some(weights))];
        let traced =
            function(move |(t, p, w): &(Tensor, Tensor, Option<Tensor>)| mean(&*loss, t, p, w.as_ref()));
        let none = None::<Tensor>;
        let traced =
            [traced.call((truth, predicted, &none)), traced.call((truth, predicted, &Some(weights.clone())))];
        for [plain, weighted] in [eager, traced] {
            let got = [plain.unwrap(), weighted.unwrap()].concat();
            for (got, part) in got.iter().zip(["mean", "d", "weighted", "d_weighted"]) {
                assert_close(&format!("{name}, {part}"), got, &case[part]);
            }
        }
    }
}

fn logits(rows: usize) -> Tensor {
    zeros([rows, 3], DType::F32).unwrap()
}

#[test]
fn a_label_out_of_range_is_rejected_with_its_row_and_the_range() {
    let _ledger = ledger_check();
    let loss = SparseCategoricalCrossentropy::from_logits();
    let labels = Tensor::new([0i32, 7]).unwrap();
    let error = loss.mean(&labels, &logits(2), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.to_string().contains("label 7 of row 1 is outside 0..3"), "{error}");
    assert_eq!(error.location().unwrap().file(), file!());

    let step = function(move |(t, p): &(Tensor, Tensor)| loss.mean(t, p, None));
    let error = step.call((&labels, &logits(2))).unwrap_err();
    assert!(error.to_string().contains("label 7 of row 1 is outside 0..3"), "{error}");
    let fine = step.call((&Tensor::new([0i32, 2]).unwrap(), &logits(2))).unwrap();
    assert!((fine.item::<f32>().unwrap() - 3f32.ln()).abs() < 1e-6);
}

#[test]
fn mismatched_arguments_are_rejected() {
    let _ledger = ledger_check();
    let (truth, predicted) = (zeros([4, 2], DType::F32).unwrap(), zeros([4, 3], DType::F32).unwrap());
    let error = MeanSquaredError.mean(&truth, &predicted, None).unwrap_err();
    let line = line!() - 1;
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("MeanSquaredError")));
    assert!(
        error.message().contains("targets and predictions must have the same shape, got [4, 2] and [4, 3]"),
        "{error}"
    );
    assert_eq!(error.location().unwrap().line(), line);

    let number = Tensor::scalar(1.0f32).unwrap();
    assert_eq!(Hinge.call(&number, &number).unwrap_err().kind(), ErrorKind::Shape);
    let integers = zeros([4, 3], DType::I32).unwrap();
    assert_eq!(Huber::default().call(&integers, &integers).unwrap_err().kind(), ErrorKind::DType);
    let weights = zeros([3], DType::F32).unwrap();
    let error = MeanSquaredError.mean(&predicted, &predicted, Some(&weights)).unwrap_err();
    assert!(error.message().contains("weights must broadcast to the values [4], got float32[3]"), "{error}");
    let error = Huber { delta: 0.0 }.call(&predicted, &predicted).unwrap_err();
    assert!(error.message().contains("delta must be finite and > 0, got 0"), "{error}");
    let smoothed = CategoricalCrossentropy { label_smoothing: 1.5, from_logits: true };
    let error = smoothed.call(&predicted, &predicted).unwrap_err();
    assert!(error.message().contains("label_smoothing must be in [0, 1], got 1.5"), "{error}");
}

/// Strided views of targets and predictions give the same losses as contiguous copies.
#[test]
fn views_and_copies_have_the_same_loss() {
    let _ledger = ledger_check();
    let predicted = Tensor::from_vec((0..12).map(|i| i as f32 / 3.0).collect(), [3, 4]).unwrap();
    let turned = transpose(&predicted, None).unwrap();
    let truth = broadcast_to(Tensor::new([1.0f32, 2.0, 3.0]).unwrap(), [4, 3]).unwrap();
    let got = MeanSquaredError.call(&truth, &turned).unwrap().to_vec::<f32>().unwrap();
    for (row, got) in got.iter().enumerate() {
        let square = |column: usize| ((column * 4 + row) as f32 / 3.0 - (column + 1) as f32).powi(2);
        let want = (0..3).map(square).sum::<f32>() / 3.0;
        assert!((got - want).abs() < 1e-5, "row {row}: {got} instead of {want}");
    }
}

#[test]
fn an_empty_batch_has_no_losses() {
    let _ledger = ledger_check();
    let empty = zeros([0, 3], DType::F32).unwrap();
    for loss in [make("mean_squared_error"), make("hinge"), make("categorical_crossentropy_logits")] {
        assert_eq!(loss.call(&empty, &empty).unwrap().shape()[..], [0]);
    }
}

/// Ignored rows have loss 0, even if their predictions are NaN.
#[test]
fn ignored_rows_reach_neither_mean_nor_gradient() {
    let _ledger = ledger_check();
    let loss = SparseCategoricalCrossentropy { from_logits: true, ignore_class: Some(9) };
    let nan = f32::NAN;
    let predicted = Tensor::new([[1.0f32, 2.0, 0.5], [nan, nan, nan]]).unwrap();
    let got = mean(&loss, &Tensor::new([1i64, 9]).unwrap(), &predicted, None).unwrap();
    let want = (1f32.exp() + 2f32.exp() + 0.5f32.exp()).ln() - 2.0;
    assert!((got[0].item::<f32>().unwrap() - want).abs() < 1e-6);
    assert_eq!(got[1].to_vec::<f32>().unwrap()[3..], [0.0; 3]);
    let all = mean(&loss, &Tensor::new([9i64, 9]).unwrap(), &predicted, None).unwrap();
    assert_eq!(all[0].item::<f32>().unwrap(), 0.0);
}

/// Losses of probabilities 0 and 1 are finite in every dtype.
#[test]
fn losses_of_probabilities_zero_and_one_are_finite() {
    let _ledger = ledger_check();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let (truth, predicted) =
            (Tensor::new([[0.0f32, 1.0]]).unwrap(), Tensor::new([[1.0f32, 0.0]]).unwrap());
        let predicted = taut_core::ops::unary::cast(predicted, dtype).unwrap();
        let labels = Tensor::new([1i32]).unwrap();
        for (loss, truth) in [
            (make("binary_crossentropy"), &truth),
            (make("binary_focal"), &truth),
            (make("categorical_crossentropy"), &truth),
            (make("categorical_focal"), &truth),
            (make("kl_divergence"), &truth),
            (make("sparse_crossentropy"), &labels),
        ] {
            for got in mean(&*loss, truth, &predicted, None).unwrap() {
                let got = taut_core::ops::unary::cast(got, DType::F64).unwrap().to_vec::<f64>().unwrap();
                assert!(got.iter().all(|x| x.is_finite()), "{dtype}: {got:?}");
            }
        }
    }
}
