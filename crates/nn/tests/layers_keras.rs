//! Layers against Keras: outputs, gradients, and the moving averages of batch normalisation.

#[path = "keras/data.rs"]
mod data;

use data::{Case, assert_close, load};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::mul;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{concat, reshape};
use taut_core::{DType, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_nn::layers::*;
use taut_nn::{Layer, Mode};

/// The layer of a case, and how it is called.
struct Made {
    layer: Arc<dyn Layer>,
    call: Arc<dyn Fn(&[Tensor], Mode) -> Result<Tensor> + Send + Sync>,
}

fn plain(layer: impl Layer) -> Made {
    let layer: Arc<dyn Layer> = Arc::new(layer);
    let inside = layer.clone();
    Made { layer, call: Arc::new(move |x, mode| inside.call(&x[0], mode)) }
}

fn with<L: Layer>(
    layer: L,
    call: impl Fn(&L, &[Tensor], Mode) -> Result<Tensor> + Send + Sync + 'static,
) -> Made {
    let layer = Arc::new(layer);
    let inside = layer.clone();
    Made { layer, call: Arc::new(move |x, mode| call(&inside, x, mode)) }
}

fn activation(function: Activation) -> Made {
    with(function, |function, x, mode| function.call(&mul(&x[0], 4.0)?, mode))
}

/// The layer's output and its states, concatenated.
fn joined(y: Tensor, states: &[Tensor]) -> Result<Tensor> {
    let flat = reshape(y, &[2, -1])?;
    concat(&[std::slice::from_ref(&flat), states].concat(), 1)
}

fn bools(rows: &[[i32; 4]], batch: usize) -> Tensor {
    let flat: Vec<bool> = rows.iter().flatten().map(|&seen| seen == 1).collect();
    Tensor::from_vec(flat, [batch, rows.len() / batch, 4]).unwrap()
}

fn make(case: &str) -> Result<Made> {
    use Activation::{Elu, Relu, Softmax, Tanh};
    let (same, f64) = (Padding::Same, DType::F64);
    Ok(match case {
        "dense" => plain(Dense::new(5, 4).build()?),
        "dense_relu_without_bias" => plain(Dense::new(5, 4).activation(Relu).bias(false).build()?),
        "dense_softmax_of_sequences" => plain(Dense::new(5, 4).activation(Softmax).build()?),
        "dense_of_doubles" => plain(Dense::new(5, 4).activation(Tanh).dtype(f64).build()?),
        "activation_relu" => activation(Relu),
        "activation_relu6" => activation(Activation::Relu6),
        "activation_leaky_relu" => activation(Activation::LeakyRelu { slope: 0.2 }),
        "activation_elu" => activation(Elu { alpha: 1.0 }),
        "activation_selu" => activation(Activation::Selu),
        "activation_gelu" => activation(Activation::Gelu),
        "activation_gelu_tanh" => activation(Activation::GeluTanh),
        "activation_silu" => activation(Activation::Silu),
        "activation_sigmoid" => activation(Activation::Sigmoid),
        "activation_hard_sigmoid" => activation(Activation::HardSigmoid),
        "activation_hard_silu" => activation(Activation::HardSilu),
        "activation_tanh" => activation(Tanh),
        "activation_exponential" => activation(Activation::Exponential),
        "activation_softplus" => activation(Activation::Softplus),
        "activation_softsign" => activation(Activation::Softsign),
        "activation_mish" => activation(Activation::Mish),
        "activation_softmax" => activation(Softmax),
        "activation_log_softmax" => activation(Activation::LogSoftmax),
        "embedding" => plain(Embedding::new(6, 4).build()?),
        "conv1d" => plain(Conv1D::new(2, 3, 3).build()?),
        "conv1d_same_strided" => plain(Conv1D::new(2, 3, 4).strides(2).padding(same).build()?),
        "conv1d_causal_dilated" => plain(Conv1D::new(2, 3, 3).causal().dilation(2).build()?),
        "conv1d_causal_strided" => plain(Conv1D::new(2, 3, 3).causal().strides(2).build()?),
        "conv2d" => plain(Conv2D::new(2, 3, 3).build()?),
        "conv2d_same" => plain(Conv2D::new(2, 3, [3, 2]).padding(same).activation(Relu).build()?),
        "conv2d_same_strided" => plain(Conv2D::new(2, 3, 3).strides(2).padding(same).bias(false).build()?),
        "conv2d_uneven_strides" => plain(Conv2D::new(2, 3, 2).strides([2, 1]).build()?),
        "conv2d_dilated" => plain(Conv2D::new(2, 3, 2).dilation(2).padding(same).build()?),
        "conv2d_groups" => plain(Conv2D::new(4, 4, 3).groups(2).build()?),
        "conv3d" => plain(Conv3D::new(2, 2, 2).build()?),
        "conv3d_same_strided" => plain(Conv3D::new(2, 2, 3).strides(2).padding(same).build()?),
        "depthwise1d" => plain(DepthwiseConv1D::new(3, 3).padding(same).depth_multiplier(2).build()?),
        "depthwise2d" => plain(DepthwiseConv2D::new(3, 3).build()?),
        "depthwise2d_same_multiplied" => {
            plain(DepthwiseConv2D::new(3, 2).padding(same).depth_multiplier(2).build()?)
        }
        "depthwise2d_strided" => plain(DepthwiseConv2D::new(3, 3).strides(2).padding(same).build()?),
        "depthwise2d_dilated" => plain(DepthwiseConv2D::new(2, 2).dilation(2).build()?),
        "separable1d" => plain(SeparableConv1D::new(3, 4, 3).padding(same).build()?),
        "separable2d" => plain(SeparableConv2D::new(2, 4, 3).depth_multiplier(2).activation(Relu).build()?),
        "separable2d_strided" => plain(SeparableConv2D::new(2, 4, 3).strides(2).padding(same).build()?),
        "transpose1d_same" => plain(Conv1DTranspose::new(2, 3, 3).strides(2).padding(same).build()?),
        "transpose1d_short" => plain(Conv1DTranspose::new(2, 3, 2).strides(3).build()?),
        "transpose2d" => plain(Conv2DTranspose::new(2, 3, 3).build()?),
        "transpose2d_strided" => plain(Conv2DTranspose::new(2, 3, 3).strides(2).build()?),
        "transpose2d_same" => plain(Conv2DTranspose::new(2, 3, [3, 4]).strides(2).padding(same).build()?),
        "transpose3d_same" => plain(Conv3DTranspose::new(2, 2, 3).strides(2).padding(same).build()?),
        "max_pooling1d" => plain(MaxPooling1D::new(2).build()?),
        "max_pooling2d" => plain(MaxPooling2D::new(2).build()?),
        "max_pooling2d_same" => plain(MaxPooling2D::new([3, 2]).strides([2, 1]).padding(same).build()?),
        "max_pooling3d" => plain(MaxPooling3D::new(2).build()?),
        "average_pooling1d_same" => plain(AveragePooling1D::new(3).strides(2).padding(same).build()?),
        "average_pooling2d" => plain(AveragePooling2D::new(2).strides(1).build()?),
        "average_pooling2d_same" => plain(AveragePooling2D::new(3).strides(2).padding(same).build()?),
        "average_pooling3d" => plain(AveragePooling3D::new(2).build()?),
        "global_max_pooling1d" => plain(GlobalMaxPooling1D::new()),
        "global_max_pooling2d" => plain(GlobalMaxPooling2D::new()),
        "global_max_pooling3d" => plain(GlobalMaxPooling3D::new()),
        "global_average_pooling1d" => plain(GlobalAveragePooling1D::new()),
        "global_average_pooling2d" => plain(GlobalAveragePooling2D::new()),
        "global_average_pooling3d" => plain(GlobalAveragePooling3D::new()),
        "global_average_pooling2d_kept" => plain(GlobalAveragePooling2D::new().keepdims(true)),
        "batch_norm" => plain(BatchNorm::new(3).build()?),
        "batch_norm_of_images" => plain(BatchNorm::new(2).momentum(0.7).epsilon(1e-2).build()?),
        "batch_norm_plain" => plain(BatchNorm::new(3).center(false).scale(false).build()?),
        "layer_norm" => plain(LayerNorm::new(5).build()?),
        "layer_norm_of_two_axes" => plain(LayerNorm::new([3, 4]).epsilon(1e-5).build()?),
        "layer_norm_unscaled" => plain(LayerNorm::new(5).scale(false).build()?),
        "group_norm" => plain(GroupNorm::new(4, 2).build()?),
        "group_norm_plain" => plain(GroupNorm::new(6, 3).center(false).scale(false).build()?),
        "rms_norm" => plain(RMSNorm::new(5).build()?),
        "flatten" => plain(Flatten::new()),
        "reshape" => plain(Reshape::new([2, -1])),
        "simple_rnn" => plain(SimpleRNN::new(3, 5).build()?),
        "simple_rnn_relu" => {
            plain(SimpleRNN::new(3, 5).activation(Relu).bias(false).return_sequences(true).build()?)
        }
        "simple_rnn_state" => with(SimpleRNN::new(3, 5).build()?, |layer, x, _| {
            let (y, last) = layer.run(&x[0], Some(&x[1]))?;
            joined(y, &[last])
        }),
        "lstm" => plain(LSTM::new(3, 5).build()?),
        "lstm_sequences" => plain(LSTM::new(3, 5).return_sequences(true).build()?),
        "lstm_backwards" => plain(LSTM::new(3, 5).return_sequences(true).go_backwards(true).build()?),
        "lstm_without_bias" => plain(LSTM::new(3, 5).bias(false).build()?),
        "lstm_state" => with(LSTM::new(3, 5).return_sequences(true).build()?, |layer, x, _| {
            let (y, (state, memory)) = layer.run(&x[0], Some((&x[1], &x[2])))?;
            joined(y, &[state, memory])
        }),
        "gru" => plain(GRU::new(3, 5).build()?),
        "gru_sequences" => plain(GRU::new(3, 5).return_sequences(true).build()?),
        "gru_backwards" => plain(GRU::new(3, 5).go_backwards(true).build()?),
        "gru_without_bias" => plain(GRU::new(3, 5).bias(false).build()?),
        "gru_state" => with(GRU::new(3, 5).build()?, |layer, x, _| {
            let (y, last) = layer.run(&x[0], Some(&x[1]))?;
            joined(y, &[last])
        }),
        "bidirectional" => {
            plain(Bidirectional::new(LSTM::new(3, 4).return_sequences(true), MergeMode::Concat)?)
        }
        "bidirectional_sum" => plain(Bidirectional::new(GRU::new(3, 4), MergeMode::Sum)?),
        "bidirectional_mul" => {
            plain(Bidirectional::new(GRU::new(3, 4).return_sequences(true), MergeMode::Mul)?)
        }
        "bidirectional_ave" => plain(Bidirectional::new(SimpleRNN::new(3, 4), MergeMode::Ave)?),
        "attention" => plain(MultiHeadAttention::new(6, 2, 3).build()?),
        "attention_causal" => plain(MultiHeadAttention::new(6, 2, 3).causal(true).build()?),
        "attention_masked_causal" => {
            let rows = [[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]];
            let mask = bools(&[rows, rows].concat(), 2);
            with(MultiHeadAttention::new(6, 2, 3).bias(false).build()?, move |layer, x, mode| {
                layer.attend(&x[0], &x[0], &x[0], Some(&mask), true, mode)
            })
        }
        "attention_crossed" => {
            let first = [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]];
            let second = [[0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]];
            let mask = bools(&[first, second].concat(), 2);
            let layer = MultiHeadAttention::new(6, 2, 3).memory(4).value_dim(5).outputs(7).build()?;
            with(layer, move |layer, x, mode| layer.attend(&x[0], &x[1], &x[2], Some(&mask), false, mode))
        }
        case => panic!("Keras has a case {case:?} that no layer is made for"),
    })
}

/// The result, and the gradients of `sum(result * g)` by input (if those are floats) and by trainable variable.
fn differentiated(made: &Made, inputs: &[Tensor], g: &Tensor, mode: Mode) -> Result<Vec<Tensor>> {
    let floats: Vec<Tensor> = inputs.iter().filter(|x| x.dtype().is_float()).cloned().collect();
    let tape = GradientTape::new();
    tape.watch(&floats);
    let y = (made.call)(inputs, mode)?;
    let target = sum(mul(&y, g)?, None, false)?;
    let (by_input, by_variable) = tape.gradient(&target, &(floats, made.layer.trainable_variables()))?;
    let gradients = by_input.into_iter().chain(by_variable).map(taut_autodiff::DenseGradient::dense);
    std::iter::once(Ok(y)).chain(gradients).collect()
}

/// Compares a call, eager or traced, with the tensors of a case.
fn check(name: &str, made: &Made, case: &Case, prefix: &str, mode: Mode, traced: bool) {
    let numbered = |part: &str| match prefix {
        "" => format!("{part}0"),
        _ => format!("{prefix}{part}"),
    };
    let mut inputs = vec![case[&numbered("x")].clone()];
    if prefix.is_empty() {
        inputs.extend((1..).map_while(|i| case.get(&format!("x{i}")).cloned()));
    }
    let g = case[&format!("{prefix}g")].clone();
    let got = if traced {
        let (layer, call, rest) = (made.layer.clone(), made.call.clone(), inputs.clone());
        let made = Made { layer, call };
        let step = function(move |(x, g): &(Vec<Tensor>, Tensor)| differentiated(&made, x, g, mode));
        step.call((&rest, &g)).unwrap()
    } else {
        differentiated(made, &inputs, &g, mode).unwrap()
    };
    let mut names = vec![format!("{prefix}y")];
    match prefix {
        "" => names.extend((0..inputs.len()).map(|i| format!("dx{i}"))),
        _ => names.push(format!("{prefix}dx")),
    }
    names.retain(|name| name.ends_with('y') || inputs[0].dtype().is_float());
    let trained = made.layer.named_variables().into_iter().filter(|(_, variable)| variable.is_trainable());
    names.extend(trained.map(|(name, _)| format!("{prefix}d:{name}")));
    assert_eq!(got.len(), names.len(), "{name}");
    for (got, part) in got.iter().zip(names) {
        let how = if traced { "traced" } else { "eager" };
        assert_close(&format!("{name}, {how}, {part}"), got, &case[&part]);
    }
}

/// Assigns the weights of the case. Names, dtypes and shapes must match.
fn assign(name: &str, layer: &dyn Layer, case: &Case) -> BTreeMap<String, Variable> {
    let ours: BTreeMap<String, Variable> = layer.named_variables().into_iter().collect();
    let theirs: BTreeSet<&str> = case.keys().filter_map(|part| part.strip_prefix("w:")).collect();
    assert_eq!(ours.keys().map(String::as_str).collect::<BTreeSet<_>>(), theirs, "{name}");
    for (part, variable) in &ours {
        variable.assign(&case[&format!("w:{part}")]).unwrap();
    }
    ours
}

/// The batches that a case is trained with.
fn batches(case: &Case) -> impl Iterator<Item = String> {
    (0..).map(|i| format!("train{i}:")).take_while(|prefix| case.contains_key(&format!("{prefix}x")))
}

#[test]
fn layers_match_keras() {
    let _ledger = ledger_check();
    let cases = load("layers.safetensors");
    assert_eq!(cases.len(), 96);
    for (name, case) in &cases {
        let made = make(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        for traced in [false, true] {
            let variables = assign(name, &*made.layer, case);
            for prefix in batches(case) {
                check(name, &made, case, &prefix, Mode::Train, traced);
                for (part, variable) in variables.iter().filter(|(_, variable)| !variable.is_trainable()) {
                    let after = format!("{prefix}after:{part}");
                    assert_close(&format!("{name}, {after}"), &variable.read(), &case[&after]);
                }
            }
            check(name, &made, case, "", Mode::Infer, traced);
        }
    }
}

/// Layers without moving averages and dropout compute the same in training, eager and traced.
#[test]
fn layers_without_state_match_keras_in_training_mode() {
    let _ledger = ledger_check();
    for (name, case) in load("layers.safetensors").iter().filter(|(name, _)| !name.contains("batch_norm")) {
        let made = make(name).unwrap();
        assign(name, &*made.layer, case);
        check(name, &made, case, "", Mode::Train, false);
        check(name, &made, case, "", Mode::Train, true);
    }
}
