//! Layers: names, counts, source locations, randomness, invalid arguments, and gradients against finite differences.

use taut_autodiff::{DenseGradient as _, Gradient, GradientTape, Variable};
use taut_core::ops::binary::{mul, sub};
use taut_core::ops::contract::{ConvOptions, conv};
use taut_core::ops::creation::{ones, zeros};
use taut_core::ops::random::uniform;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{broadcast_to, transpose};
use taut_core::ops::unary::cast;
use taut_core::{DType, ErrorKind, Result, Spec, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_nn::layers::*;
use taut_nn::{Layer, Mode};
use taut_testing::values;

fn noise(shape: &[usize], dtype: DType) -> Tensor {
    uniform(shape, -1.0, 1.0, dtype).unwrap()
}

fn names(layer: &dyn Layer) -> Vec<String> {
    layer
        .named_variables()
        .into_iter()
        .map(|(name, variable)| format!("{name}{}", variable.shape()))
        .collect()
}

#[test]
fn variables_have_the_names_and_shapes_of_keras() -> Result<()> {
    let _ledger = ledger_check();
    let cases: Vec<(Box<dyn Layer>, &[&str])> = vec![
        (Box::new(Dense::new(3, 2).build()?), &["kernel[3, 2]", "bias[2]"]),
        (Box::new(Embedding::new(7, 4).build()?), &["embeddings[7, 4]"]),
        (Box::new(Conv2D::new(4, 6, [3, 2]).groups(2).build()?), &["kernel[3, 2, 2, 6]", "bias[6]"]),
        (Box::new(Conv2DTranspose::new(4, 6, 3).bias(false).build()?), &["kernel[3, 3, 6, 4]"]),
        (
            Box::new(DepthwiseConv2D::new(4, 3).depth_multiplier(2).build()?),
            &["kernel[3, 3, 4, 2]", "bias[8]"],
        ),
        (
            Box::new(SeparableConv2D::new(4, 6, 3).build()?),
            &["depthwise_kernel[3, 3, 4, 1]", "pointwise_kernel[1, 1, 4, 6]", "bias[6]"],
        ),
        (
            Box::new(BatchNorm::new(3).build()?),
            &["gamma[3]", "beta[3]", "moving_mean[3]", "moving_variance[3]"],
        ),
        (Box::new(LayerNorm::new([2, 3]).build()?), &["gamma[2, 3]", "beta[2, 3]"]),
        (Box::new(LSTM::new(3, 2).build()?), &["kernel[3, 8]", "recurrent_kernel[2, 8]", "bias[8]"]),
        (Box::new(GRU::new(3, 2).build()?), &["kernel[3, 6]", "recurrent_kernel[2, 6]", "bias[2, 6]"]),
        (
            Box::new(
                Residual::new(Dense::new(2, 3).bias(false).build()?).projection(RMSNorm::new(2).build()?),
            ),
            &["layer.kernel[2, 3]", "projection.scale[2]"],
        ),
    ];
    for (layer, want) in cases {
        assert_eq!(names(&*layer), want);
    }
    let norm = BatchNorm::new(3).build()?;
    assert_eq!((norm.trainable_variables().len(), norm.named_variables().len()), (2, 4));
    let lstm = LSTM::new(3, 2).build()?;
    assert_eq!(values(&lstm.named_variables()[2].1.read()), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn a_summary_has_names_types_and_parameter_counts() -> Result<()> {
    let _ledger = ledger_check();
    let model = Sequential::new()
        .with_named("conv", Conv2D::new(1, 4, 3).padding(Padding::Same).build()?)
        .with(BatchNorm::new(4).build()?)
        .with(Activation::Relu)
        .with(MaxPooling2D::new(2).build()?)
        .with(Flatten::new())
        .with_named("conv", Dense::new(64, 10).build()?);
    assert_eq!((model.len(), names(&model)[0].as_str()), (6, "conv.kernel[3, 3, 1, 4]"));
    assert_eq!(names(&model)[6..], ["conv_1.kernel[64, 10]", "conv_1.bias[10]"]);
    let summary = model.summary(&Spec::new(DType::F32, [32, 8, 8, 1]))?;
    let kinds: Vec<&str> = summary.rows.iter().map(|row| row.layer_type.as_str()).collect();
    assert_eq!(kinds, ["Conv2D", "BatchNorm", "Activation", "MaxPooling2D", "Flatten", "Dense"]);
    assert_eq!(summary.rows[3].output, Spec::new(DType::F32, [32, 4, 4, 4]));
    assert_eq!((summary.rows[0].parameters, summary.rows[5].bytes), (40, 4 * 650));
    assert_eq!((summary.trainable, summary.fixed, summary.bytes), (40 + 8 + 650, 8, 4 * 706));
    let text = summary.to_string();
    assert_eq!(text.lines().count(), 8);
    assert!(text.lines().nth(1).unwrap().starts_with("conv    Conv2D        float32[32, 8, 8, 4]"), "{text}");
    assert!(text.ends_with("706 parameters, 698 of them trained, 2824 bytes"), "{text}");
    let error = model.summary(&Spec::new(DType::F32, [32, 8, 10, 1])).unwrap_err();
    assert!(error.message().contains("expected float32[batch, .., 64]"), "{error}");
    // An error without a source location gets that of the call.
    let speechless = Sequential::new().with(Lambda::new(|_| Err(taut_core::Error::value("no"))));
    let error = speechless.summary(&Spec::new(DType::F32, [1])).unwrap_err();
    assert!(error.location().unwrap().file().ends_with("tests/layers.rs"), "{error}");
    Ok(())
}

/// Kind and message of an error, whose location must be in this file.
#[track_caller]
fn refused<T>(result: Result<T>) -> (ErrorKind, String) {
    let error = result.err().expect("an error");
    assert_eq!(error.location().unwrap().file(), file!(), "{error}");
    (error.kind(), format!("{}: {}", error.op().unwrap_or("?"), error.message()))
}

#[test]
fn invalid_options_are_rejected() {
    let _ledger = ledger_check();
    let cases: Vec<((ErrorKind, String), &str)> = vec![
        (refused(Dense::new(0, 3).build()), "Dense: inputs must be >= 1, got 0"),
        (
            refused(Dense::new(2, 3).dtype(DType::I32).build()),
            "Dense: the dtype of a layer must be floating point, got int32",
        ),
        (refused(Embedding::new(3, 0).build()), "Embedding: units must be >= 1, got 0"),
        (refused(Conv2D::new(1, 1, [3, 0]).build()), "Conv2D: window must be >= 1, got 0"),
        (refused(Conv1D::new(1, 1, 3).strides(0).build()), "Conv1D: strides must be >= 1, got 0"),
        (
            refused(Conv2D::new(3, 4, 3).groups(2).build()),
            "Conv2D: groups must divide inputs and filters, got groups 2, inputs 3, filters 4",
        ),
        (
            refused(Conv1D::new(1, 1, 3).causal().padding(Padding::Same).build()),
            "Conv1D: padding of a causal convolution must be valid, got Same",
        ),
        (
            refused(Conv::<5>::new(3, 4, 3).build()),
            "Conv3D: the number of spatial dimensions must be 1, 2 or 3, got 5",
        ),
        (
            refused(DepthwiseConv2D::new(3, 3).depth_multiplier(0).build()),
            "DepthwiseConv2D: depth_multiplier must be >= 1, got 0",
        ),
        (refused(MaxPooling2D::new(0).build()), "MaxPooling2D: window must be >= 1, got 0"),
        (refused(Dropout::new(1.0)), "Dropout: the dropout rate must be in [0, 1), got 1"),
        (refused(Dropout::new(f64::NAN)), "Dropout: the dropout rate must be in [0, 1), got NaN"),
        (refused(BatchNorm::new(3).momentum(1.5).build()), "BatchNorm: momentum must be in [0, 1], got 1.5"),
        (
            refused(LayerNorm::new(3).epsilon(-1.0).build()),
            "LayerNorm: epsilon must be finite and >= 0, got -1",
        ),
        (
            refused(GroupNorm::new(4, 3).build()),
            "GroupNorm: groups must divide channels, got groups 3, channels 4",
        ),
        (refused(LSTM::new(3, 0).build()), "LSTM: units must be >= 1, got 0"),
        (refused(MultiHeadAttention::new(8, 0, 4).build()), "MultiHeadAttention: heads must be >= 1, got 0"),
        (
            refused(MultiHeadAttention::new(8, 2, 4).dropout(2.0).build()),
            "MultiHeadAttention: the dropout rate must be in [0, 1), got 2",
        ),
    ];
    for ((_, message), want) in cases {
        assert!(message.starts_with(want), "{message:?} instead of {want:?}");
    }
}

#[test]
fn inputs_of_another_dtype_or_shape_are_rejected() -> Result<()> {
    let _ledger = ledger_check();
    let give = |layer: &dyn Layer, shape: &[usize]| {
        refused(layer.call(&zeros(shape, DType::F32).unwrap(), Mode::Infer)).1
    };
    let dense = Dense::new(4, 2).build()?;
    assert_eq!(give(&dense, &[2, 3]), "Dense: expected float32[batch, .., 4], got float32[2, 3]");
    assert_eq!(give(&dense, &[4]), "Dense: expected float32[batch, .., 4], got float32[4]");
    let (kind, text) = refused(dense.call(&zeros([1, 4], DType::F64)?, Mode::Infer));
    assert_eq!(kind, ErrorKind::DType);
    assert_eq!(text, "Dense: expected float32[batch, .., 4], got float64[1, 4]");
    let conv = Conv2D::new(3, 2, 3).build()?;
    assert_eq!(
        give(&conv, &[1, 8, 8, 4]),
        "Conv2D: expected float32[batch, height, width, 3], got float32[1, 8, 8, 4]"
    );
    assert!(give(&conv, &[1, 1, 8, 3]).contains("size 3 with dilation 1 exceeds"));
    assert!(give(&MaxPooling1D::new(2).build()?, &[4, 4]).contains("expected [batch, steps, channels]"));
    assert!(
        give(&GlobalMaxPooling2D::new(), &[4, 4, 2]).contains("expected [batch, height, width, channels]")
    );
    assert!(give(&BatchNorm::new(3).build()?, &[2, 4]).contains("expected float32[batch, .., 3]"));
    assert!(give(&LayerNorm::new([2, 3]).build()?, &[2, 3]).contains("expected float32[batch, .., 2, 3]"));
    assert!(give(&GRU::new(3, 2).build()?, &[2, 3]).contains("expected float32[batch, steps, 3]"));
    assert!(give(&MultiHeadAttention::new(4, 2, 2).build()?, &[2, 3]).contains("[batch, length, 4]"));
    assert!(
        give(&Reshape::new([2, -1]), &[2, 5])
            .contains("must have the elements of shape [2, -1], got float32[2, 5]")
    );
    assert!(give(&Reshape::new([-1, -1]), &[2, 4]).contains("of shape [-1, -1]"));
    assert!(give(&Flatten::new(), &[]).contains("expected rank >= 1, got a scalar"));
    assert!(
        give(&Residual::new(Dense::new(4, 3).build()?), &[2, 4])
            .contains("got float32[2, 3] and float32[2, 4]")
    );
    let ids = Tensor::new([0i32, 9])?;
    let (kind, text) = refused(Embedding::new(5, 2).build()?.call(&ids, Mode::Infer));
    assert_eq!(kind, ErrorKind::Index);
    assert!(text.contains("ids must be in [0, 5), got 9 at position 1"), "{text}");
    let (_, text) = refused(BatchNorm::new(3).build()?.call(&zeros([0, 3], DType::F32)?, Mode::Train));
    assert!(text.contains("training needs a batch of at least one element, got float32[0, 3]"), "{text}");
    let (query, mask) = (zeros([1, 2, 4], DType::F32)?, zeros([2, 2], DType::F32)?);
    let attention = MultiHeadAttention::new(4, 2, 2).build()?;
    let (kind, _) = refused(attention.attend(&query, &query, &query, Some(&mask), false, Mode::Infer));
    assert_eq!(kind, ErrorKind::DType);
    let (_, text) = refused(GRU::new(4, 3).build()?.run(&query, Some(&zeros([2, 3], DType::F32)?)));
    assert!(text.contains("the state must be float32[1, 3], got float32[2, 3]"), "{text}");
    Ok(())
}

/// Allocations are attributed to the line that made the layer, not to a line of the library.
#[test]
fn allocations_are_attributed_to_the_line_of_the_layer() -> Result<()> {
    let _ledger = ledger_check();
    let layer = Dense::new(4, 2).activation(Activation::Relu).build()?;
    let line = line!() - 1;
    let model = Sequential::new().with(layer).with(Activation::Softplus);
    let f = function(move |x: &Tensor| model.call(x, Mode::Infer));
    let graph = f.graph(&noise(&[3, 4], DType::F32))?;
    let lines: Vec<u32> = graph.nodes.iter().map(|node| node.at.line()).collect();
    assert_eq!(graph.nodes.iter().find(|node| node.at.file() != file!()).map(|node| node.at), None);
    assert_eq!(lines, [line, line, line, line + 2]);
    let bad = Dense::new(4, 2).build()?;
    let error = bad.call(&zeros([1, 3], DType::F32)?, Mode::Infer).unwrap_err();
    assert_eq!(error.location().unwrap().line(), line!() - 2);
    Ok(())
}

#[test]
fn dropout_is_active_in_training_only_and_draws_a_new_mask_at_every_call() -> Result<()> {
    let _ledger = ledger_check();
    let layer = Dropout::new(0.25)?;
    let x = ones([1000], DType::F32)?;
    assert!(layer.call(&x, Mode::Infer)?.is_same(&x));
    assert!(Dropout::new(0.0)?.call(&x, Mode::Train)?.is_same(&x));
    let f = function(move |x: &Tensor| layer.call(x, Mode::Train));
    let (first, second) = (values(&f.call(&x)?), values(&f.call(&x)?));
    assert_ne!(first, second);
    for drawn in [first, second] {
        assert!(drawn.iter().all(|&x| x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6));
        let dropped = drawn.iter().filter(|&&x| x == 0.0).count() as f64;
        // Five standard deviations of 1000 draws.
        assert!((dropped - 250.0).abs() < 5.0 * (1000.0f64 * 0.25 * 0.75).sqrt());
    }
    Ok(())
}

/// With a dropout rate close to zero, attention while training equals that at inference.
#[test]
fn attention_with_a_tiny_dropout_rate_equals_attention_without() -> Result<()> {
    let _ledger = ledger_check();
    let layer = MultiHeadAttention::new(6, 2, 4).dropout(1e-12).dtype(DType::F64).build()?;
    let x = noise(&[2, 5, 6], DType::F64);
    let mut seen = vec![true; 25];
    (0..5).for_each(|key| seen[10 + key] = false);
    seen[3] = false;
    let mask = Tensor::from_vec(seen, [5, 5])?;
    for (mask, causal) in [(None, false), (None, true), (Some(&mask), false), (Some(&mask), true)] {
        let call = |mode| layer.attend(&x, &x, &x, mask, causal, mode);
        let (inferred, trained) = (values(&call(Mode::Infer)?), values(&call(Mode::Train)?));
        for (a, b) in inferred.iter().zip(&trained) {
            assert!((a - b).abs() < 1e-9, "{a} and {b}");
        }
    }
    let dropping = MultiHeadAttention::new(6, 2, 4).dropout(0.5).dtype(DType::F64).build()?;
    let draw = || dropping.call(&x, Mode::Train).map(|y| values(&y));
    assert_ne!(draw()?, draw()?);
    Ok(())
}

#[test]
fn the_gradient_of_an_embedding_holds_the_selected_rows() -> Result<()> {
    let _ledger = ledger_check();
    let layer = Embedding::new(1000, 4).build()?;
    let ids = Tensor::new([[3i32, 5], [3, 999]])?;
    let tape = GradientTape::new();
    let target = sum(layer.call(&ids, Mode::Train)?, None, false)?;
    let gradient = tape.gradient(&target, layer.embeddings())?;
    let Some(Gradient::Sparse(rows)) = gradient else { panic!("{gradient:?}") };
    assert_eq!(rows.values.shape()[1..], [4]);
    assert!(rows.values.shape()[0] <= 4);
    let dense = values(&rows.to_dense()?);
    let row = |i: usize| dense[4 * i..4 * i + 4].to_vec();
    assert_eq!([row(3), row(5), row(999), row(0)], [vec![2.0; 4], vec![1.0; 4], vec![1.0; 4], vec![0.0; 4]]);
    Ok(())
}

/// `<conv(y), x> = <y, transposed(x)>`, also with dilation, which Keras does not support everywhere.
#[test]
fn a_transposed_convolution_is_the_adjoint_of_the_convolution() -> Result<()> {
    let _ledger = ledger_check();
    for (strides, dilation, padding) in
        [(1, 2, Padding::Valid), (1, 2, Padding::Same), (2, 1, Padding::Same), (3, 1, Padding::Valid)]
    {
        let builder = Conv2DTranspose::new(3, 2, [3, 2]).strides(strides).dilation(dilation);
        let layer = builder.padding(padding.clone()).bias(false).dtype(DType::F64).build()?;
        let x = noise(&[2, 3, 4, 3], DType::F64);
        let grown = layer.call(&x, Mode::Infer)?;
        let y = noise(grown.shape(), DType::F64);
        let options = ConvOptions {
            strides: vec![strides],
            dilations: vec![dilation],
            padding: padding.clone(),
            ..ConvOptions::default()
        };
        let back = conv(&y, &layer.trainable_variables()[0], &options)?;
        let inner = |a: &Tensor, b: &Tensor| values(&sum(mul(a, b).unwrap(), None, false).unwrap())[0];
        let (left, right) = (inner(&back, &x), inner(&y, &grown));
        assert!((left - right).abs() < 1e-10, "{strides} {dilation} {padding:?}: {left} and {right}");
    }
    Ok(())
}

/// Compares the gradient of `sum(model(x) * g)` with finite differences, for some elements of every variable and of the input.
fn check_gradients(model: &dyn Layer, x: Tensor, mode: Mode) -> Result<()> {
    let g = noise(model.call(&x, Mode::Infer)?.shape(), DType::F64);
    let target = |x: &Tensor| sum(mul(model.call(x, mode)?, &g)?, None, false);
    let variables = model.trainable_variables();
    let tape = GradientTape::new();
    tape.watch(&x);
    let (by_x, by_variables) = tape.gradient(&target(&x)?, &(&x, &variables))?;
    drop(tape);
    let by_x = values(&by_x.dense()?);
    let step = 1e-6;
    let moved = |x: &Tensor, i: usize, by: f64| {
        let mut moved = values(x);
        moved[i] += by;
        Tensor::from_vec(moved, x.shape().clone())
    };
    let close = |what: String, got: f64, want: f64| {
        assert!((got - want).abs() <= 1e-6 * (1.0 + want.abs()), "{what}: {got}, by differences {want}");
    };
    for i in (0..x.len()).step_by((x.len() / 5).max(1)) {
        let ends = [step, -step].map(|by| target(&moved(&x, i, by).unwrap()).unwrap());
        let slope = values(&sub(&ends[0], &ends[1])?)[0] / (2.0 * step);
        close(format!("input, element {i}"), by_x[i], slope);
    }
    for (variable, gradient) in variables.iter().zip(by_variables) {
        let (before, gradient) = (variable.read().copy()?, values(&gradient.dense()?));
        for i in (0..before.len()).step_by((before.len() / 3).max(1)) {
            let ends = [step, -step].map(|by| {
                variable.assign(moved(&before, i, by).unwrap()).unwrap();
                target(&x).unwrap()
            });
            variable.assign(&before)?;
            let slope = values(&sub(&ends[0], &ends[1])?)[0] / (2.0 * step);
            close(format!("{variable}, element {i}"), gradient[i], slope);
        }
    }
    Ok(())
}

#[test]
fn gradients_of_models_match_finite_differences() -> Result<()> {
    let _ledger = ledger_check();
    let f64 = DType::F64;
    let convnet = Sequential::new()
        .with(Conv2D::new(2, 4, 3).padding(Padding::Same).activation(Activation::Tanh).dtype(f64).build()?)
        .with(BatchNorm::new(4).dtype(f64).build()?)
        .with(Residual::new(DepthwiseConv2D::new(4, 3).padding(Padding::Same).dtype(f64).build()?))
        .with(AveragePooling2D::new(2).build()?)
        .with(GroupNorm::new(4, 2).dtype(f64).build()?)
        .with(Conv2DTranspose::new(4, 2, 3).strides(2).activation(Activation::Gelu).dtype(f64).build()?)
        .with(Flatten::new())
        .with(Dense::new(98, 3).activation(Activation::Softmax).dtype(f64).build()?);
    let x = noise(&[2, 6, 6, 2], f64);
    check_gradients(&convnet, x.clone(), Mode::Train)?;
    check_gradients(&convnet, x, Mode::Infer)?;
    let sequences = Sequential::new()
        .with(Dense::new(3, 4).dtype(f64).build()?)
        .with(Residual::new(
            Sequential::new()
                .with(LayerNorm::new(4).dtype(f64).build()?)
                .with(MultiHeadAttention::new(4, 2, 3).causal(true).dtype(f64).build()?),
        ))
        .with(RMSNorm::new(4).dtype(f64).build()?)
        .with(Bidirectional::new(GRU::new(4, 3).return_sequences(true).dtype(f64), MergeMode::Concat)?)
        .with(LSTM::new(6, 3).dtype(f64).build()?);
    check_gradients(&sequences, noise(&[2, 4, 3], f64), Mode::Train)
}

/// A step with dropout and moving averages: traced and eager leave the same variables.
#[test]
fn a_traced_training_step_equals_the_eager_one() -> Result<()> {
    let _ledger = ledger_check();
    let build = || -> Result<Sequential> {
        Ok(Sequential::new()
            .with(Dense::new(3, 4).build()?)
            .with(BatchNorm::new(4).momentum(0.5).build()?)
            .with(Activation::Relu)
            .with(Dropout::new(0.0)?)
            .with(Dense::new(4, 2).build()?))
    };
    let step = |model: &Sequential, x: &Tensor| -> Result<Tensor> {
        let (tape, variables) = (GradientTape::new(), model.trainable_variables());
        let loss = sum(mul(model.call(x, Mode::Train)?, 0.5)?, None, false)?;
        for (variable, gradient) in variables.iter().zip(tape.gradient(&loss, &variables)?) {
            variable.assign_sub(mul(gradient.dense()?, 0.1)?)?;
        }
        Ok(loss)
    };
    let (eager, traced) = (build()?, std::sync::Arc::new(build()?));
    for ((_, a), (_, b)) in eager.named_variables().iter().zip(traced.named_variables()) {
        b.assign(a.read())?;
    }
    let inside = traced.clone();
    let f = function(move |x: &Tensor| step(&inside, x));
    for _ in 0..3 {
        let x = noise(&[6, 3], DType::F32);
        let (a, b) = (values(&step(&eager, &x)?), values(&f.call(&x)?));
        assert!((a[0] - b[0]).abs() < 1e-5);
    }
    for ((name, a), (_, b)) in eager.named_variables().iter().zip(traced.named_variables()) {
        for (a, b) in values(&a.read()).iter().zip(values(&b.read())) {
            assert!((a - b).abs() < 1e-5, "{name}: {a} and {b}");
        }
    }
    Ok(())
}

#[test]
fn layers_accept_views_and_empty_batches() -> Result<()> {
    let _ledger = ledger_check();
    let layers: Vec<(Box<dyn Layer>, Vec<usize>)> = vec![
        (Box::new(Dense::new(4, 3).build()?), vec![3, 2, 4]),
        (Box::new(Conv1D::new(4, 3, 2).build()?), vec![3, 5, 4]),
        (Box::new(LayerNorm::new(4).build()?), vec![3, 2, 4]),
        (Box::new(GroupNorm::new(4, 2).build()?), vec![3, 2, 4]),
        (Box::new(LSTM::new(4, 3).return_sequences(true).build()?), vec![3, 2, 4]),
        (Box::new(GRU::new(4, 3).build()?), vec![3, 2, 4]),
        (Box::new(SimpleRNN::new(4, 3).build()?), vec![3, 2, 4]),
        (Box::new(MultiHeadAttention::new(4, 2, 3).build()?), vec![3, 2, 4]),
        (Box::new(Flatten::new()), vec![3, 2, 4]),
        (Box::new(Reshape::new([4, -1])), vec![3, 2, 4]),
    ];
    for (layer, shape) in layers {
        let x = noise(&shape, DType::F32);
        let turned = transpose(transpose(&x, None)?.copy()?, None)?;
        let repeated = broadcast_to(noise(&shape[1..], DType::F32), &shape[..])?;
        for view in [turned, repeated] {
            assert!(!view.is_contiguous());
            let got = values(&layer.call(&view, Mode::Infer)?);
            let want = values(&layer.call(&view.copy()?, Mode::Infer)?);
            assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6));
        }
        let empty = [&[0], &shape[1..]].concat();
        let full = layer.call(&x, Mode::Infer)?;
        let y = layer.call(&zeros(&empty[..], DType::F32)?, Mode::Infer)?;
        assert_eq!(&y.shape()[..], [&[0], &full.shape()[1..]].concat());
    }
    Ok(())
}

/// Two models that share a layer share its variables, which are named once.
#[test]
fn a_shared_layer_is_named_once() -> Result<()> {
    let _ledger = ledger_check();
    let shared = std::sync::Arc::new(Dense::new(3, 3).build()?);
    let model = Sequential::new().with(shared.clone()).with(Lambda::new(|x| mul(x, 2.0))).with(shared);
    assert_eq!(names(&model), ["0.kernel[3, 3]", "0.bias[3]"]);
    let summary = model.summary(&Spec::new(DType::F32, [1, 3]))?;
    assert_eq!(summary.trainable, 12);
    let all: Vec<Variable> = model.trainable_variables();
    assert_eq!(all.len(), 2);
    Ok(())
}

/// Makes a layer of a given dtype.
type Build = fn(DType) -> Result<Box<dyn Layer>>;

/// Layers of half precision compute what float32 layers compute, within their precision.
#[test]
fn half_precision_layers_match_float32_within_their_precision() -> Result<()> {
    let _ledger = ledger_check();
    let cases: [(Build, &[usize]); 10] = [
        (|t| Ok(Box::new(Dense::new(4, 3).activation(Activation::Gelu).dtype(t).build()?)), &[3, 4]),
        (|t| Ok(Box::new(Conv2D::new(2, 3, 3).dtype(t).build()?)), &[2, 5, 5, 2]),
        (|t| Ok(Box::new(DepthwiseConv2D::new(2, 3).dtype(t).build()?)), &[2, 5, 5, 2]),
        (|t| Ok(Box::new(BatchNorm::new(4).dtype(t).build()?)), &[6, 4]),
        (|t| Ok(Box::new(LayerNorm::new(4).dtype(t).build()?)), &[6, 4]),
        (|t| Ok(Box::new(GroupNorm::new(4, 2).dtype(t).build()?)), &[6, 2, 4]),
        (|t| Ok(Box::new(RMSNorm::new(4).dtype(t).build()?)), &[6, 4]),
        (|t| Ok(Box::new(LSTM::new(4, 3).dtype(t).build()?)), &[2, 3, 4]),
        (|t| Ok(Box::new(GRU::new(4, 3).dtype(t).build()?)), &[2, 3, 4]),
        (|t| Ok(Box::new(MultiHeadAttention::new(4, 2, 3).dtype(t).build()?)), &[2, 3, 4]),
    ];
    for (dtype, digits) in [(DType::F16, 2e-2), (DType::BF16, 1e-1)] {
        for (case, (build, shape)) in cases.iter().enumerate() {
            let (half, float, x) = (build(dtype)?, build(DType::F32)?, noise(shape, dtype));
            for ((_, a), (_, b)) in half.named_variables().iter().zip(float.named_variables()) {
                b.assign(cast(a, DType::F32)?)?;
            }
            for mode in [Mode::Infer, Mode::Train] {
                let got = half.call(&x, mode)?;
                assert_eq!(got.dtype(), dtype, "case {case}");
                let want = values(&float.call(&cast(&x, DType::F32)?, mode)?);
                for (got, want) in values(&got).iter().zip(want) {
                    assert!((got - want).abs() <= digits * (1.0 + want.abs()), "case {case}: {got}, {want}");
                }
            }
        }
    }
    Ok(())
}

/// A function that makes its model at the first trace owns the model's variables.
#[test]
fn a_function_can_make_its_layers_at_the_first_trace() -> Result<()> {
    let _ledger = ledger_check();
    let made = std::sync::OnceLock::new();
    let f = function(move |x: &Tensor| {
        if made.get().is_none() {
            let layer = Sequential::new().with(Dense::new(3, 2).build()?).with(LSTM::new(2, 4).build()?);
            drop(made.set(layer));
        }
        made.get().unwrap().call(x, Mode::Train)
    });
    let x = noise(&[2, 5, 3], DType::F32);
    let (first, second) = (f.call(&x)?, f.call(&x)?);
    assert_eq!(values(&first), values(&second));
    assert!(values(&first).iter().any(|&y| y != 0.0));
    assert_eq!(f.variables().len(), 5);
    Ok(())
}

/// With a budget, the gradients of a recurrent layer are the same, and the tape saves fewer bytes.
#[test]
fn a_gradient_budget_lowers_saved_bytes_and_keeps_the_gradients() -> Result<()> {
    let _ledger = ledger_check();
    let builds: [fn(Option<usize>) -> Result<Box<dyn Layer>>; 3] = [
        |budget| {
            let layer = LSTM::new(3, 8).dtype(DType::F64);
            Ok(Box::new(budget.map_or(layer.clone(), |bytes| layer.grad_budget(bytes)).build()?))
        },
        |budget| {
            let layer = GRU::new(3, 8).dtype(DType::F64);
            Ok(Box::new(budget.map_or(layer.clone(), |bytes| layer.grad_budget(bytes)).build()?))
        },
        |budget| {
            let layer = SimpleRNN::new(3, 8).dtype(DType::F64);
            Ok(Box::new(budget.map_or(layer.clone(), |bytes| layer.grad_budget(bytes)).build()?))
        },
    ];
    let x = noise(&[2, 100, 3], DType::F64);
    for (number, build) in builds.into_iter().enumerate() {
        let simple = number == 2;
        let (free, sparing) = (build(None)?, build(Some(1000))?);
        for ((_, a), (_, b)) in free.named_variables().iter().zip(sparing.named_variables()) {
            b.assign(a.read())?;
        }
        let gradients = |layer: &dyn Layer| -> Result<(usize, Vec<Tensor>)> {
            let tape = GradientTape::new();
            tape.watch(&x);
            let target = sum(layer.call(&x, Mode::Train)?, None, false)?;
            let (held, variables) = (tape.bytes_held(), layer.trainable_variables());
            let (by_x, rest) = tape.gradient(&target, &(&x, &variables))?;
            let all = std::iter::once(by_x).chain(rest).map(taut_autodiff::DenseGradient::dense);
            Ok((held, all.collect::<Result<_>>()?))
        };
        let ((most, want), (least, got)) = (gradients(&*free)?, gradients(&*sparing)?);
        // The states of a simple layer are its result, which is kept anyway.
        assert!(least < most || least == most && simple, "{least} bytes with a budget, {most} without");
        for (got, want) in got.iter().zip(&want) {
            for (got, want) in values(got).iter().zip(values(want)) {
                assert!((got - want).abs() <= 1e-10 * (1.0 + want.abs()), "{got} instead of {want}");
            }
        }
    }
    Ok(())
}

/// Sizes beyond any memory are errors, not panics.
#[test]
fn sizes_beyond_the_address_space_are_errors() {
    let _ledger = ledger_check();
    let refused = |error: taut_core::Error| {
        assert!(
            matches!(error.kind(), ErrorKind::Shape | ErrorKind::OutOfMemory | ErrorKind::Value),
            "{error}"
        );
        assert!(error.location().unwrap().file().ends_with("tests/layers.rs"), "{error}");
    };
    refused(SimpleRNN::new(1, usize::MAX).build().unwrap_err());
    refused(LSTM::new(1, usize::MAX).build().unwrap_err());
    refused(GRU::new(usize::MAX, usize::MAX / 2).build().unwrap_err());
    let x = ones([1, 2, 2, 1], DType::F32).unwrap();
    let wide = Conv2DTranspose::new(1, 1, 3).dilation(usize::MAX).build();
    refused(wide.and_then(|layer| layer.call(&x, Mode::Infer)).unwrap_err());
    for shape in [[isize::MAX; 2], [isize::MAX, -1], [-2, -2]] {
        refused(Reshape::new(shape).call(&x, Mode::Infer).unwrap_err());
    }
    let orthogonal = taut_nn::initializers::Initializer::Orthogonal { gain: 1.0 };
    assert_eq!(orthogonal.make([usize::MAX, 3, 2], DType::F32).unwrap_err().kind(), ErrorKind::Shape);
}
