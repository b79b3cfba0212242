"""Writes what Keras computes, for the tests of layers, losses and metrics to compare with.

    pip install keras tensorflow-cpu
    python generate.py

Every tensor is named `case/part`. Cases are named as in the Rust tests, which fail for one that they do not know.
"""

import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, metrics

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(6)
keras.utils.set_random_seed(6)


def draw(*shape, low=-1.0, high=1.0, dtype="float32"):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def weight_name(variable):
    """The path below the layer, without the cells that Keras puts between."""
    names = [n for n in variable.path.split("/")[1:] if not n.endswith("_cell")]
    for direction in "forward", "backward":
        names = [f"{direction}_layer" if n.startswith(f"{direction}_") else n for n in names]
    return ".".join(names)


def dense(gradient):
    return tf.convert_to_tensor(gradient).numpy()


found = {}


def layer(name, made, *shapes, training=(), ids=None, dtype="float32", call=None):
    """A layer's weights, outputs and gradients of sum(output * g), by input and by weight.

    `training` holds the shapes of batches that it is trained with before; their outputs are `train0`, `train1`, ...
    """
    inputs = [draw(*shape, dtype=dtype) for shape in shapes] if ids is None else [ids]
    tensors = [tf.convert_to_tensor(x) for x in inputs]
    call = call or (lambda layer, *xs: layer(*xs))
    call(made, *tensors)
    for variable in made.weights:
        low = 0.5 if "variance" in variable.name else -0.7
        variable.assign(draw(*variable.shape, low=low, high=0.9, dtype=dtype))
        found[f"{name}/w:{weight_name(variable)}"] = variable.numpy()
    for i, shape in enumerate(training):
        x = draw(*shape, dtype=dtype)
        with tf.GradientTape() as tape:
            watched = tf.convert_to_tensor(x)
            tape.watch(watched)
            y = made(watched, training=True)
            g = draw(*y.shape, dtype=dtype)
            target = tf.reduce_sum(y * g)
        variables = [v.value for v in made.trainable_weights]
        gradients = tape.gradient(target, [watched, *variables])
        found[f"{name}/train{i}:x"], found[f"{name}/train{i}:y"] = x, y.numpy()
        found[f"{name}/train{i}:g"], found[f"{name}/train{i}:dx"] = g, dense(gradients[0])
        for variable, gradient in zip(made.trainable_weights, gradients[1:]):
            found[f"{name}/train{i}:d:{weight_name(variable)}"] = dense(gradient)
        for variable in made.non_trainable_weights:
            found[f"{name}/train{i}:after:{weight_name(variable)}"] = variable.numpy()
    with tf.GradientTape() as tape:
        if ids is None:
            tape.watch(tensors)
        y = call(made, *tensors)
        g = draw(*y.shape, dtype=dtype)
        target = tf.reduce_sum(y * g)
    sources = tensors if ids is None else []
    variables = [v.value for v in made.trainable_weights]
    gradients = tape.gradient(target, [*sources, *variables])
    for i, x in enumerate(inputs):
        found[f"{name}/x{i}"] = x
    found[f"{name}/y"], found[f"{name}/g"] = y.numpy(), g
    for i, _ in enumerate(sources):
        found[f"{name}/dx{i}"] = dense(gradients[i])
    for variable, gradient in zip(made.trainable_weights, gradients[len(sources) :]):
        found[f"{name}/d:{weight_name(variable)}"] = dense(gradient)


def write(file):
    """The safetensors format: the header's length, the header, the bytes."""
    types = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "bool": "BOOL"}
    header, parts, end = {}, [], 0
    # The largest elements first: every tensor then lies on a multiple of their size.
    for name, array in sorted(found.items(), key=lambda item: -item[1].dtype.itemsize):
        parts.append(array.tobytes())
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": types[str(array.dtype)], "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / file).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
    print(f"{file}: {len({name.split('/')[0] for name in found})} cases, {end + len(text)} bytes")
    found.clear()


def all_layers():
    layer("dense", layers.Dense(4), (3, 5))
    layer("dense_relu_without_bias", layers.Dense(4, activation="relu", use_bias=False), (3, 5))
    layer("dense_softmax_of_sequences", layers.Dense(4, activation="softmax"), (2, 3, 5))
    layer("dense_of_doubles", layers.Dense(4, activation="tanh", dtype="float64"), (3, 5), dtype="float64")

    for name in (
        "relu relu6 leaky_relu elu selu gelu silu sigmoid hard_sigmoid hard_silu tanh exponential softplus "
        "softsign mish softmax log_softmax"
    ).split():
        layer(f"activation_{name}", layers.Activation(name), (3, 7), call=lambda l, x: l(4.0 * x))
    layer(
        "activation_gelu_tanh",
        layers.Activation(lambda x: keras.activations.gelu(x, approximate=True)),
        (3, 7),
        call=lambda l, x: l(4.0 * x),
    )

    ids = np.array([[3, 0, 3], [5, 1, 0]], "int32")
    layer("embedding", layers.Embedding(6, 4), ids=ids)

    layer("conv1d", layers.Conv1D(3, 3), (2, 7, 2))
    layer("conv1d_same_strided", layers.Conv1D(3, 4, strides=2, padding="same"), (2, 7, 2))
    layer("conv1d_causal_dilated", layers.Conv1D(3, 3, padding="causal", dilation_rate=2), (2, 7, 2))
    layer("conv1d_causal_strided", layers.Conv1D(3, 3, padding="causal", strides=2), (2, 7, 2))
    layer("conv2d", layers.Conv2D(3, 3), (2, 5, 6, 2))
    layer("conv2d_same", layers.Conv2D(3, (3, 2), padding="same", activation="relu"), (2, 4, 5, 2))
    layer("conv2d_same_strided", layers.Conv2D(3, 3, strides=2, padding="same", use_bias=False), (2, 5, 6, 2))
    layer("conv2d_uneven_strides", layers.Conv2D(3, 2, strides=(2, 1)), (2, 5, 4, 2))
    layer("conv2d_dilated", layers.Conv2D(3, 2, dilation_rate=2, padding="same"), (2, 5, 5, 2))
    layer("conv2d_groups", layers.Conv2D(4, 3, groups=2), (1, 5, 5, 4))
    layer("conv3d", layers.Conv3D(2, 2), (1, 3, 4, 3, 2))
    layer("conv3d_same_strided", layers.Conv3D(2, 3, strides=2, padding="same"), (1, 3, 4, 3, 2))

    layer("depthwise1d", layers.DepthwiseConv1D(3, padding="same", depth_multiplier=2), (2, 6, 3))
    layer("depthwise2d", layers.DepthwiseConv2D(3), (2, 5, 5, 3))
    layer("depthwise2d_same_multiplied", layers.DepthwiseConv2D(2, padding="same", depth_multiplier=2), (1, 4, 5, 3))
    layer("depthwise2d_strided", layers.DepthwiseConv2D(3, strides=2, padding="same"), (1, 5, 6, 3))
    layer("depthwise2d_dilated", layers.DepthwiseConv2D(2, dilation_rate=2), (1, 5, 6, 2))
    layer("separable1d", layers.SeparableConv1D(4, 3, padding="same"), (2, 6, 3))
    layer("separable2d", layers.SeparableConv2D(4, 3, depth_multiplier=2, activation="relu"), (1, 5, 5, 2))
    layer("separable2d_strided", layers.SeparableConv2D(4, 3, strides=2, padding="same"), (1, 5, 6, 2))

    layer("transpose1d_same", layers.Conv1DTranspose(3, 3, strides=2, padding="same"), (2, 4, 2))
    layer("transpose1d_short", layers.Conv1DTranspose(3, 2, strides=3), (2, 4, 2))
    layer("transpose2d", layers.Conv2DTranspose(3, 3), (1, 3, 4, 2))
    layer("transpose2d_strided", layers.Conv2DTranspose(3, 3, strides=2), (1, 3, 4, 2))
    layer("transpose2d_same", layers.Conv2DTranspose(3, (3, 4), strides=2, padding="same"), (1, 3, 4, 2))
    layer("transpose3d_same", layers.Conv3DTranspose(2, 3, strides=2, padding="same"), (1, 2, 3, 2, 2))

    layer("max_pooling1d", layers.MaxPooling1D(2), (2, 7, 2))
    layer("max_pooling2d", layers.MaxPooling2D(2), (2, 5, 6, 2))
    layer("max_pooling2d_same", layers.MaxPooling2D((3, 2), strides=(2, 1), padding="same"), (2, 5, 4, 2))
    layer("max_pooling3d", layers.MaxPooling3D(2), (1, 4, 4, 3, 2))
    layer("average_pooling1d_same", layers.AveragePooling1D(3, strides=2, padding="same"), (2, 6, 2))
    layer("average_pooling2d", layers.AveragePooling2D(2, strides=1), (2, 4, 4, 2))
    layer("average_pooling2d_same", layers.AveragePooling2D(3, strides=2, padding="same"), (2, 5, 6, 2))
    layer("average_pooling3d", layers.AveragePooling3D(2), (1, 4, 4, 3, 2))
    spatial = {"1d": (2, 5, 3), "2d": (2, 3, 4, 3), "3d": (1, 3, 2, 4, 3)}
    for rank, shape in spatial.items():
        for kind in "Max", "Average":
            made = getattr(layers, f"Global{kind}Pooling{rank.upper()}")
            layer(f"global_{kind.lower()}_pooling{rank}", made(), shape)
    layer("global_average_pooling2d_kept", layers.GlobalAveragePooling2D(keepdims=True), (2, 3, 4, 3))

    norm = layers.BatchNormalization
    layer("batch_norm", norm(), (5, 3), training=[(5, 3), (4, 3), (6, 3)])
    layer("batch_norm_of_images", norm(momentum=0.7, epsilon=1e-2), (2, 3, 4, 2), training=[(2, 3, 4, 2)] * 2)
    layer("batch_norm_plain", norm(center=False, scale=False), (5, 3), training=[(5, 3)])
    layer("layer_norm", layers.LayerNormalization(), (2, 3, 5))
    layer("layer_norm_of_two_axes", layers.LayerNormalization(axis=(1, 2), epsilon=1e-5), (2, 3, 4))
    layer("layer_norm_unscaled", layers.LayerNormalization(scale=False), (3, 5))
    layer("group_norm", layers.GroupNormalization(2), (2, 3, 2, 4))
    layer("group_norm_plain", layers.GroupNormalization(3, center=False, scale=False), (2, 3, 6))
    layer("rms_norm", layers.RMSNormalization(), (2, 3, 5))

    layer("flatten", layers.Flatten(), (2, 3, 2, 2))
    layer("reshape", layers.Reshape((2, -1)), (2, 3, 4))

    x, state = (2, 4, 3), (2, 5)

    def with_state(made, sequence, *states):
        """The outputs and all last states, one behind the other."""
        y, *last = made(sequence, initial_state=list(states))
        return tf.concat([tf.reshape(y, [2, -1]), *last], 1)

    layer("simple_rnn", layers.SimpleRNN(5), x)
    layer("simple_rnn_relu", layers.SimpleRNN(5, activation="relu", use_bias=False, return_sequences=True), x)
    layer("simple_rnn_state", layers.SimpleRNN(5, return_state=True), x, state, call=with_state)
    layer("lstm", layers.LSTM(5), x)
    layer("lstm_sequences", layers.LSTM(5, return_sequences=True), x)
    layer("lstm_backwards", layers.LSTM(5, return_sequences=True, go_backwards=True), x)
    layer("lstm_without_bias", layers.LSTM(5, use_bias=False), x)
    layer(
        "lstm_state", layers.LSTM(5, return_sequences=True, return_state=True), x, state, state, call=with_state
    )
    layer("gru", layers.GRU(5), x)
    layer("gru_sequences", layers.GRU(5, return_sequences=True), x)
    layer("gru_backwards", layers.GRU(5, go_backwards=True), x)
    layer("gru_without_bias", layers.GRU(5, use_bias=False), x)
    layer("gru_state", layers.GRU(5, return_state=True), x, state, call=with_state)
    layer("bidirectional", layers.Bidirectional(layers.LSTM(4, return_sequences=True)), x)
    layer("bidirectional_sum", layers.Bidirectional(layers.GRU(4), merge_mode="sum"), x)
    layer("bidirectional_mul", layers.Bidirectional(layers.GRU(4, return_sequences=True), merge_mode="mul"), x)
    layer("bidirectional_ave", layers.Bidirectional(layers.SimpleRNN(4), merge_mode="ave"), x)

    mask = np.array([[[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]]] * 2, bool)
    mask[1, 0] = [0, 1, 0, 0]
    square = np.array([[[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]]] * 2, bool)
    attention = layers.MultiHeadAttention
    layer("attention", attention(2, 3), (2, 4, 6), call=lambda l, x: l(x, x))
    layer("attention_causal", attention(2, 3), (2, 4, 6), call=lambda l, x: l(x, x, use_causal_mask=True))
    layer(
        "attention_masked_causal",
        attention(2, 3, use_bias=False),
        (2, 4, 6),
        call=lambda l, x: l(x, x, attention_mask=square, use_causal_mask=True),
    )
    layer(
        "attention_crossed",
        attention(2, 3, value_dim=5, output_shape=7),
        (2, 3, 6),
        (2, 4, 4),
        (2, 4, 4),
        call=lambda l, q, k, v: l(q, v, key=k, attention_mask=mask),
    )
    write("layers.safetensors")


def loss(name, made, truth, predicted, weights):
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    tensor = tf.convert_to_tensor(predicted)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensor)
        plain = made(truth, tensor)
        weighted = made(truth, tensor, sample_weight=weights)
    found[f"{name}/truth"], found[f"{name}/predicted"], found[f"{name}/weights"] = truth, predicted, weights
    found[f"{name}/each"] = made.call(tf.convert_to_tensor(truth), tensor).numpy()
    found[f"{name}/mean"], found[f"{name}/weighted"] = plain.numpy(), weighted.numpy()
    found[f"{name}/d"] = tape.gradient(plain, tensor).numpy()
    found[f"{name}/d_weighted"] = tape.gradient(weighted, tensor).numpy()


def probabilities(*shape):
    x = draw(*shape, low=0.05, high=1.0)
    return x / x.sum(-1, keepdims=True)


def one_hot(labels, classes):
    return np.eye(classes, dtype="float32")[labels]


def all_losses():
    weights = np.array([0.5, 1.0, 0.0, 2.0], "float32")
    plain = {
        "mean_squared_error": losses.MeanSquaredError(),
        "mean_absolute_error": losses.MeanAbsoluteError(),
        "mean_absolute_percentage_error": losses.MeanAbsolutePercentageError(),
        "huber": losses.Huber(),
        "huber_narrow": losses.Huber(delta=0.3),
        "log_cosh": losses.LogCosh(),
        "cosine_similarity": losses.CosineSimilarity(),
    }
    for name, made in plain.items():
        loss(name, made, 2 * draw(4, 3), 2 * draw(4, 3), weights)
    loss("mean_squared_error_of_columns", losses.MeanSquaredError(), draw(4), draw(4, 1), weights)
    loss("mean_absolute_error_of_sequences", losses.MeanAbsoluteError(), draw(4, 2, 3), draw(4, 2, 3), weights[:, None])
    for name, made in {
        "mean_squared_logarithmic_error": losses.MeanSquaredLogarithmicError(),
        "poisson": losses.Poisson(),
    }.items():
        loss(name, made, draw(4, 3, low=0.1, high=3.0), draw(4, 3, low=0.1, high=3.0), weights)

    binary = RANDOM.integers(0, 2, (4, 3)).astype("float32")
    sure = draw(4, 3, low=0.05, high=0.95)
    logits = 3 * draw(4, 3)
    loss("binary_crossentropy", losses.BinaryCrossentropy(), binary, sure, weights)
    loss("binary_crossentropy_logits", losses.BinaryCrossentropy(from_logits=True), binary, logits, weights)
    loss("binary_crossentropy_smoothed", losses.BinaryCrossentropy(label_smoothing=0.2), binary, sure, weights)
    focal = losses.BinaryFocalCrossentropy
    loss("binary_focal", focal(), binary, sure, weights)
    loss("binary_focal_logits", focal(gamma=1.5, from_logits=True, label_smoothing=0.1), binary, logits, weights)
    loss("binary_focal_balanced", focal(apply_class_balancing=True, alpha=0.3), binary, sure, weights)

    labels = np.array([2, 0, 1, 2])
    classes, likely = one_hot(labels, 3), probabilities(4, 3)
    categorical = losses.CategoricalCrossentropy
    loss("categorical_crossentropy", categorical(), classes, likely, weights)
    loss("categorical_crossentropy_unnormalised", categorical(), classes, 3 * likely, weights)
    loss("categorical_crossentropy_logits", categorical(from_logits=True), classes, logits, weights)
    loss("categorical_crossentropy_smoothed", categorical(from_logits=True, label_smoothing=0.1), classes, logits, weights)
    focal = losses.CategoricalFocalCrossentropy
    loss("categorical_focal", focal(), classes, likely, weights)
    loss("categorical_focal_logits", focal(alpha=0.4, gamma=1.0, from_logits=True, label_smoothing=0.1), classes, logits, weights)
    sparse = losses.SparseCategoricalCrossentropy
    loss("sparse_crossentropy", sparse(), labels, likely, weights)
    loss("sparse_crossentropy_logits", sparse(from_logits=True), labels, logits, weights)
    loss("sparse_crossentropy_of_columns", sparse(from_logits=True), labels[:, None], logits, weights)
    loss("sparse_crossentropy_ignoring", sparse(from_logits=True, ignore_class=-1), np.array([2, -1, 1, 2]), logits, weights)
    steps = RANDOM.integers(0, 3, (4, 2))
    loss("sparse_crossentropy_of_sequences", sparse(from_logits=True), steps, 3 * draw(4, 2, 3), weights[:, None])
    loss("kl_divergence", losses.KLDivergence(), probabilities(4, 3), likely, weights)

    signs = 2 * binary - 1
    loss("hinge", losses.Hinge(), signs, 2 * draw(4, 3), weights)
    loss("hinge_of_binary", losses.Hinge(), binary, 2 * draw(4, 3), weights)
    loss("squared_hinge", losses.SquaredHinge(), signs, 2 * draw(4, 3), weights)
    loss("categorical_hinge", losses.CategoricalHinge(), classes, 2 * draw(4, 3), weights)
    write("losses.safetensors")


def metric(name, make, batches):
    """Results after each batch, without and with weights."""
    plain, weighted = make(), make()
    for i, (truth, predicted, weights) in enumerate(batches):
        truth, predicted = np.asarray(truth), np.asarray(predicted)
        plain.update_state(truth, predicted)
        weighted.update_state(truth, predicted, sample_weight=weights)
        found[f"{name}/truth{i}"], found[f"{name}/predicted{i}"], found[f"{name}/weights{i}"] = truth, predicted, weights
        found[f"{name}/plain{i}"] = np.asarray(plain.result())
        found[f"{name}/weighted{i}"] = np.asarray(weighted.result())


class Perplexity(keras.metrics.Metric):
    """The exponential of the mean of Keras's cross-entropy."""

    def __init__(self, ignored=None):
        super().__init__()
        self.ignored, self.mean = ignored, metrics.Mean()

    def update_state(self, truth, predicted, sample_weight=None):
        each = keras.losses.sparse_categorical_crossentropy(
            truth, predicted, from_logits=True, ignore_class=self.ignored
        )
        counts = np.ones(truth.shape, "float32") if self.ignored is None else (truth != self.ignored).astype("float32")
        self.mean.update_state(np.asarray(each), counts if sample_weight is None else counts * sample_weight)

    def result(self):
        return keras.ops.exp(self.mean.result())


class ConfusionMatrix(keras.metrics.Metric):
    """TensorFlow's confusion matrix, summed."""

    def __init__(self, classes):
        super().__init__()
        self.classes, self.total = classes, np.zeros((classes, classes))

    def update_state(self, truth, predicted, sample_weight=None):
        taken = predicted.argmax(-1)
        self.total = self.total + tf.math.confusion_matrix(truth, taken, self.classes, sample_weight, tf.float64)

    def result(self):
        return self.total


def all_metrics():
    def batches(truth, predicted, sizes=(5, 3, 4)):
        return [(truth(n), predicted(n), draw(n, low=0.0, high=2.0)) for n in sizes]

    def labels(n):
        return RANDOM.integers(0, 4, n)

    def hot(n):
        return one_hot(labels(n), 4)

    def scores(n):
        return draw(n, 4)

    def yes(n):
        return RANDOM.integers(0, 2, (n, 3)).astype("float32")

    def sure(n):
        return draw(n, 3, low=0.0, high=1.0)

    metric("accuracy", metrics.Accuracy, batches(lambda n: labels(n)[:, None], lambda n: labels(n)[:, None]))
    metric("binary_accuracy", metrics.BinaryAccuracy, batches(yes, sure))
    metric("binary_accuracy_low", lambda: metrics.BinaryAccuracy(threshold=0.2), batches(yes, sure))
    metric("sparse_categorical_accuracy", metrics.SparseCategoricalAccuracy, batches(labels, scores))
    metric("categorical_accuracy", metrics.CategoricalAccuracy, batches(hot, scores))
    metric("sparse_top_k", lambda: metrics.SparseTopKCategoricalAccuracy(k=2), batches(labels, scores))
    metric("top_k", lambda: metrics.TopKCategoricalAccuracy(k=3), batches(hot, scores))
    metric("precision", metrics.Precision, batches(yes, sure))
    metric("precision_high", lambda: metrics.Precision(thresholds=0.8), batches(yes, sure))
    metric("recall", metrics.Recall, batches(yes, sure))
    for average in None, "micro", "macro", "weighted":
        metric(f"f1_{average or 'each'}", lambda: metrics.F1Score(average=average), batches(hot, scores))
    metric("f1_threshold", lambda: metrics.F1Score(threshold=0.4, average="macro"), batches(yes, sure))
    for curve in "ROC", "PR":
        for method in "interpolation", "minoring", "majoring":
            make = lambda: metrics.AUC(num_thresholds=20, curve=curve, summation_method=method)
            metric(f"auc_{curve.lower()}_{method}", make, batches(yes, sure))
    metric("auc_roc", metrics.AUC, batches(yes, sure))
    metric("auc_logits", lambda: metrics.AUC(from_logits=True), batches(yes, lambda n: 3 * draw(n, 3)))
    numbers = lambda n: draw(n, 2)
    metric("mean_squared_error", metrics.MeanSquaredError, batches(numbers, numbers))
    metric("root_mean_squared_error", metrics.RootMeanSquaredError, batches(numbers, numbers))
    metric("mean_absolute_error", metrics.MeanAbsoluteError, batches(numbers, numbers))
    metric("mean_of_hinge", metrics.Hinge, batches(lambda n: 2 * yes(n) - 1, lambda n: draw(n, 3)))
    metric("r2_score", metrics.R2Score, batches(numbers, numbers))
    metric("perplexity", Perplexity, batches(labels, scores))
    metric("perplexity_ignoring", lambda: Perplexity(ignored=0), batches(labels, scores))
    metric("confusion_matrix", lambda: ConfusionMatrix(4), batches(labels, scores))
    write("metrics.safetensors")


if __name__ == "__main__":
    all_layers()
    all_losses()
    all_metrics()
