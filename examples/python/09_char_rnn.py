"""A character-level language model: an LSTM."""

import math

import taut as tf
from common import VOCABULARY, generate, is_quick, windows

LENGTH, UNITS = 48, 96

keras = tf.keras
keras.utils.set_random_seed(1)
x, y = windows(LENGTH, 320 if is_quick() else None)
print(f"{x.size} characters, a vocabulary of {len(VOCABULARY)}")

model = keras.Sequential(
    [
        keras.layers.Embedding(len(VOCABULARY), 32),
        keras.layers.LSTM(UNITS, return_sequences=True),
        keras.layers.Dense(len(VOCABULARY)),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.005, global_clipnorm=1.0),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
history = model.fit(x, y, batch_size=32, epochs=1 if is_quick() else 12, verbose=2)
assert history.history["loss"][-1] < math.log(len(VOCABULARY)), "better than a uniform guess"
print(generate(model, LENGTH))
