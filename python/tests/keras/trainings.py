"""Small trainings, from given weights on given data, and the losses another backend of Keras got.

Run as a program, with KERAS_BACKEND set to the backend to compare with, it prints those losses:

    KERAS_BACKEND=jax python trainings.py > data/losses.json

The tests train the same models on Taut. Nothing random is left: weights and data come from NumPy, batches are
in order, and there is no dropout.
"""

import gzip
import json
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).parents[3] / "crates" / "data" / "assets" / "digits"


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The images, (count, 8, 8, 1) from 0 to 1, and their labels."""
    images = read_idx(DIGITS / "images-idx3-ubyte.gz", 3)
    labels = read_idx(DIGITS / "labels-idx1-ubyte.gz", 1)
    return (images[..., None] / images.max()).astype("float32"), labels.astype("int32")


def read_idx(path: Path, rank: int) -> np.ndarray:
    """An array of bytes in the IDX format: a magic number, the sizes, the elements."""
    content = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(content, ">i4", count=rank, offset=4)
    return np.frombuffer(content, "u1", offset=4 + 4 * rank).reshape(shape)


def mlp(keras):
    """A regression, by Adam."""
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(96, 6)).astype("float32")
    return model, x, np.sin(x.sum(1, keepdims=True))


def convnet(keras):
    """The digits, by stochastic gradient descent with momentum; with batch normalization."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(8, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True), loss, metrics=["accuracy"])
    x, y = digits()
    return model, x[:256], y[:256]


def recurrent(keras):
    """Sequences of whole numbers with padding, by RMSprop; an embedding, a masked LSTM and a GRU."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            layers.Embedding(11, 5, mask_zero=True),
            layers.LSTM(6, return_sequences=True),
            layers.GRU(4, go_backwards=True),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.RMSprop(0.01), "binary_crossentropy")
    rng = np.random.default_rng(2)
    x = rng.integers(1, 11, size=(64, 7)).astype("int32")
    lengths = rng.integers(3, 8, size=64)
    x[np.arange(7)[None, :] >= lengths[:, None]] = 0
    return model, x, (x.sum(1) % 2).astype("float32")[:, None]


def attention(keras):
    """A transformer's block, functional, by AdamW with clipped gradients."""
    layers = keras.layers
    inputs = keras.Input((5, 8))
    x = layers.LayerNormalization()(inputs)
    x = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.Add()([x, inputs])
    x = layers.Dense(8, activation="gelu")(layers.LayerNormalization()(x))
    outputs = layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.01, clipnorm=1.0), "categorical_crossentropy")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(48, 5, 8)).astype("float32")
    return model, x, np.eye(3, dtype="float32")[np.argmax(x.sum(1)[:, :3], axis=1)]


def simple_convnet(keras):
    """The convnet of Keras's first example, for images of 8 x 8, on all digits; without its dropout, which is random."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
            layers.MaxPooling2D(pool_size=(2, 2)),
            layers.Conv2D(64, kernel_size=(3, 3), padding="same", activation="relu"),
            layers.MaxPooling2D(pool_size=(2, 2)),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    x, y = digits()
    return model, x, keras.utils.to_categorical(y, 10)


TRAININGS = (mlp, convnet, recurrent, attention, simple_convnet)


def set_weights(model) -> None:
    """Weights that depend on their shapes alone."""
    rng = np.random.default_rng(4)
    for variable in model.variables:
        if "seed" in variable.path or "iteration" in variable.path or "learning_rate" in variable.path:
            continue
        if "moving_variance" in variable.path or "gamma" in variable.path:
            variable.assign(np.ones(variable.shape))
        elif len(variable.shape) == 1:
            variable.assign(np.zeros(variable.shape))
        else:
            variable.assign(rng.normal(scale=0.3, size=variable.shape).astype("float32"))


def losses(keras, training) -> list[float]:
    """The losses of four epochs."""
    model, x, y = training(keras)
    set_weights(model)
    history = model.fit(x, y, batch_size=16, epochs=4, shuffle=False, verbose=0)
    return history.history["loss"]


if __name__ == "__main__":
    import keras

    print(json.dumps({training.__name__: losses(keras, training) for training in TRAININGS}, indent=1))
