"""Whole epochs of Keras's own `fit`, as users write it, on each backend: tautpy_keras, tf_keras, torch_keras, jax_keras.

One program for all: the backend is what the process imports. Weights and data come from workloads.py's generator, so the losses
of the backends can be compared. `compile` gets no option about speed: every backend uses what Keras chooses for it.
"""

import os

import numpy as np

import workloads
from measure import Case

BACKENDS = {"tautpy_keras": "taut", "tf_keras": "tensorflow", "torch_keras": "torch", "jax_keras": "jax"}


def load(peer):
    """The package keras on a peer's backend."""
    if peer == "tautpy_keras":
        import taut.keras

        return taut.keras
    os.environ["KERAS_BACKEND"] = BACKENDS[peer]
    import keras

    return keras


def dense(keras, p):
    layers = [keras.layers.Dense(units, activation="relu") for units in p["sizes"][1:-1]]
    return keras.Sequential([keras.Input((p["sizes"][0],)), *layers, keras.layers.Dense(p["sizes"][-1])])


def convolution(keras, p):
    layers = keras.layers
    x = inputs = keras.Input((p["image"], p["image"], 3))
    for width in p["widths"]:
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(p["classes"])(x))


def recurrent(keras, p):
    layers = keras.layers
    return keras.Sequential([keras.Input((p["steps"], p["nin"])), layers.LSTM(p["hidden"]), layers.Dense(p["classes"])])


def transformer(keras, p):
    layers = keras.layers
    words = keras.Input((p["seq"],), dtype="int32")
    x = layers.Embedding(p["vocab"], p["d"])(words)
    for _ in range(p["blocks"]):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(p["heads"], p["d"] // p["heads"])(y, y, use_causal_mask=True)
        y = layers.LayerNormalization()(x)
        x = x + layers.Dense(p["d"])(layers.Dense(4 * p["d"], activation="gelu")(y))
    return keras.Model(words, layers.Dense(p["vocab"])(layers.LayerNormalization()(x)))


MODELS = {"keras_mlp": dense, "keras_convnet": convolution, "keras_lstm": recurrent, "keras_transformer": transformer}


def initial(name, model):
    """Weights that depend on the workload alone: what a layer made random is drawn here, the rest stays."""
    g = workloads.rng(name + " weights")
    scale = lambda w: np.float32(1 / np.sqrt(max(np.prod(w.shape[:-1]), 1)))
    draw = lambda w: (g.standard_normal(w.shape, dtype=np.float32) * scale(w)).astype(np.float32)
    return [draw(w) if w.ndim > 1 else w for w in model.get_weights()]


def register(cases, peer):
    """Adds the epochs of a backend to a peer's cases."""
    for name, build in MODELS.items():
        cases[peer, name] = lambda peer, p, x, name=name, build=build: epoch(peer, name, build, p, x)


def epoch(peer, name, build, p, x):
    keras = load(peer)
    model = build(keras, p)
    model.set_weights(initial(name, model))
    model.compile(keras.optimizers.Adam(p["lr"]), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    fit = lambda: model.fit(x["x"], x["y"], batch_size=p["batch"], epochs=1, shuffle=False, verbose=0)
    return Case(fit, lambda out: None, lambda out: [float(out.history["loss"][0])], note="Keras's fit")
