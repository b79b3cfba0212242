"""A character-level language model: a small transformer, made of Keras layers."""

import math

import taut as tf
from common import VOCABULARY, generate, is_quick, windows

LENGTH, WIDTH, HEADS, BATCH = 64, 64, 4, 16

keras = tf.keras
layers = keras.layers
keras.utils.set_random_seed(1)


class TokenAndPosition(layers.Layer):
    """The sum of a token embedding and a position embedding."""

    def __init__(self):
        super().__init__()
        self.tokens = layers.Embedding(len(VOCABULARY), WIDTH)
        self.positions = layers.Embedding(LENGTH, WIDTH)

    def call(self, x):
        return self.tokens(x) + self.positions(tf.range(x.shape[1]))


def block(x):
    """A pre-norm transformer block: attention and a feed-forward network, each with a residual connection."""
    normal = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(normal, normal, use_causal_mask=True)
    y = layers.Dense(4 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
    return x + layers.Dropout(0.1)(layers.Dense(WIDTH)(y))


most, epochs, blocks = (128, 1, 1) if is_quick() else (None, 15, 3)
x, y = windows(LENGTH, most)
inputs = keras.Input((LENGTH,), dtype="int64")
hidden = TokenAndPosition()(inputs)
for _ in range(blocks):
    hidden = block(hidden)
model = keras.Model(inputs, layers.Dense(len(VOCABULARY))(layers.LayerNormalization()(hidden)))

steps = math.ceil(len(x) / BATCH) * epochs
rate = keras.optimizers.schedules.CosineDecay(
    0.0, steps, warmup_target=0.003, warmup_steps=steps // 10 + 1
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.AdamW(rate), loss=loss)
history = model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=2)
assert history.history["loss"][-1] < math.log(len(VOCABULARY)), "better than a uniform guess"
print(generate(model, LENGTH))
