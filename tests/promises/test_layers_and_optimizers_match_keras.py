"""Layers, losses, metrics and optimizers give the numbers of Keras."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_values(name, rng):
    """A Keras layer, an input, and the expected output computed by NumPy."""
    layers = tf.keras.layers
    x = rng.normal(size=(2, 5, 4)).astype("f4")
    if name == "Dense":
        layer = layers.Dense(3, activation="relu")
        layer.build(x.shape)
        w, b = layer.get_weights()
        return layer, x, np.maximum(x @ w + b, 0)
    if name == "Embedding":
        layer, x = layers.Embedding(10, 3), np.array([[1, 2], [9, 0]])
        layer.build(x.shape)
        return layer, x, layer.get_weights()[0][x]
    if name == "LayerNormalization":
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return layers.LayerNormalization(epsilon=1e-3), x, (x - mean) / np.sqrt(variance + 1e-3)
    if name == "BatchNormalization":
        return layers.BatchNormalization(epsilon=1e-3), x, x / np.sqrt(1 + 1e-3)
    if name == "Conv1D":
        layer = layers.Conv1D(3, 2)
        layer.build(x.shape)
        w, b = layer.get_weights()
        windows = np.stack([x[:, i : i + 2].reshape(2, -1) for i in range(4)], 1)
        return layer, x, windows @ w.reshape(-1, 3) + b
    if name == "SimpleRNN":
        layer = layers.SimpleRNN(3)
        layer.build(x.shape)
        w, u, b = layer.get_weights()
        h = np.zeros((2, 3))
        for t in range(5):
            h = np.tanh(x[:, t] @ w + h @ u + b)
        return layer, x, h
    if name == "LSTM":
        layer = layers.LSTM(3)
        layer.build(x.shape)
        w, u, b = layer.get_weights()
        h, c = np.zeros((2, 3)), np.zeros((2, 3))
        for t in range(5):
            i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        return layer, x, h
    if name == "GRU":
        layer = layers.GRU(3)
        layer.build(x.shape)
        w, u, (given, inner) = layer.get_weights()
        h = np.zeros((2, 3))
        for t in range(5):
            (z, r, n), (uz, ur, un) = np.split(x[:, t] @ w + given, 3, 1), np.split(h @ u + inner, 3, 1)
            z, r = sigmoid(z + uz), sigmoid(r + ur)
            h = z * h + (1 - z) * np.tanh(n + r * un)
        return layer, x, h
    if name == "Conv2D":
        x = rng.normal(size=(2, 5, 6, 4)).astype("f4")
        layer = layers.Conv2D(3, (2, 3), strides=2)
        layer.build(x.shape)
        w, b = layer.get_weights()
        want = np.zeros((2, 2, 2, 3))
        for i, j in np.ndindex(2, 2):
            window = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 3].reshape(2, -1)
            want[:, i, j] = window @ w.reshape(-1, 3) + b
        return layer, x, want
    if name == "MultiHeadAttention":
        layer = layers.MultiHeadAttention(2, 3)
        layer.build(x.shape, x.shape)
        wq, bq, wk, bk, wv, bv, wo, bo = layer.get_weights()
        parts = [(wq, bq), (wk, bk), (wv, bv)]
        q, k, v = (np.einsum("btd,dhe->bhte", x, w) + b[None, :, None] for w, b in parts)
        scores = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(3))
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        return lambda x: layer(x, x), x, np.einsum("bhte,hed->btd", mixed, wo) + bo
    raise AssertionError(name)


LAYERS = ["Dense", "Embedding", "LayerNormalization", "BatchNormalization", "Conv1D", "Conv2D", "SimpleRNN"]
LAYERS += ["LSTM", "GRU", "MultiHeadAttention"]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, rng):
    layer, x, want = layer_values(name, rng)
    np.testing.assert_allclose(np.asarray(layer(x)), want, rtol=1e-4, atol=1e-5)


def adam(w, g, state, rate=0.1, b1=0.9, b2=0.999, epsilon=1e-7, decay=0.0):
    step, m, v = state.get("t", 0) + 1, state.get("m", 0.0), state.get("v", 0.0)
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    state.update(t=step, m=m, v=v)
    w = w - rate * decay * w
    return w - rate * np.sqrt(1 - b2**step) / (1 - b1**step) * m / (np.sqrt(v) + epsilon)


def momentum(w, g, state):
    state["v"] = 0.9 * state.get("v", 0.0) - 0.1 * g
    return w + state["v"]


def rmsprop(w, g, state):
    state["v"] = 0.9 * state.get("v", 0.0) + 0.1 * g * g
    return w - 0.1 * g / np.sqrt(state["v"] + 1e-7)


def adagrad(w, g, state):
    state["v"] = state.get("v", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(state["v"] + 1e-7)


def adafactor(w, g, state):
    """Row and column means instead of the full second moment; steps relative to the RMS of the weights."""
    step = state["t"] = state.get("t", 0) + 1
    keep, square = 1 - step**-0.8, g * g + 1e-30
    rows = state["rows"] = keep * state.get("rows", 0.0) + (1 - keep) * square.mean(-1)
    columns = state["columns"] = keep * state.get("columns", 0.0) + (1 - keep) * square.mean(-2)
    update = g / np.sqrt((rows / rows.mean())[:, None] * columns[None])
    update /= max(1.0, np.sqrt((update**2).mean()))
    return w - max(1e-3, np.sqrt((w**2).mean())) * min(0.1, 1 / np.sqrt(step)) * update


RULES = {
    "SGD": (lambda made: made.SGD(0.1), lambda w, g, state: w - 0.1 * g),
    "momentum": (lambda made: made.SGD(0.1, momentum=0.9), momentum),
    "Adam": (lambda made: made.Adam(0.1), adam),
    "AdamW": (
        lambda made: made.AdamW(0.1, weight_decay=0.02),
        lambda w, g, state: adam(w, g, state, decay=0.02),
    ),
    "RMSprop": (lambda made: made.RMSprop(0.1), rmsprop),
    "Adagrad": (lambda made: made.Adagrad(0.1), adagrad),
    "Adafactor": (lambda made: made.Adafactor(0.1), adafactor),
}


@pytest.mark.parametrize("home", ["optimizers", "keras"])
@pytest.mark.parametrize("name", RULES)
def test_optimizers(name, home, rng):
    make, rule = RULES[name]
    optimizer = make(tf.optimizers if home == "optimizers" else tf.keras.optimizers)
    start = rng.normal(size=(3, 2)).astype("f4")
    w, want, state = tf.Variable(start), start.astype("f8"), {}
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * w)
        gradient = tape.gradient(loss, w)
        optimizer.apply_gradients(zip([gradient], [w]))
        want = rule(want, 3 * want * want, state)
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-3, atol=1e-4)


def test_losses_and_metrics(rng):
    truth, guess = rng.uniform(size=(4, 3)).astype("f4"), rng.uniform(0.1, 0.9, size=(4, 3)).astype("f4")
    losses = tf.keras.losses
    squares = ((truth - guess) ** 2).mean(-1)
    np.testing.assert_allclose(np.asarray(losses.MSE(truth, guess)), squares, rtol=1e-5)
    np.testing.assert_allclose(
        float(losses.MeanAbsoluteError()(truth, guess)), np.abs(truth - guess).mean(), rtol=1e-5
    )
    logits, labels = rng.normal(size=(4, 3)).astype("f4"), np.array([0, 2, 1, 1])
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        float(losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)),
        -np.log(softmax[range(4), labels]).mean(),
        rtol=1e-5,
    )
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state(labels, logits)
    np.testing.assert_allclose(float(accuracy.result()), (logits.argmax(-1) == labels).mean())


def test_models_learn(rng):
    keras = tf.keras
    keras.utils.set_random_seed(3)
    x = rng.normal(size=(256, 8)).astype("f4")
    y = (x[:, :1] * x[:, 1:2] > 0).astype("f4")
    inputs = keras.Input((8,))
    hidden = keras.layers.Dense(32, activation="tanh")(inputs)
    functional = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    sequential = keras.Sequential([keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    for model in [functional, sequential]:
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.Adam(0.02), loss=loss)
        history = model.fit(x, y, epochs=15, batch_size=32, verbose=0)
        assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]
        assert model.predict(x, verbose=0).shape == (256, 1)
