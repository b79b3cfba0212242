"""Programs of TensorFlow's tutorials on text, written anew, as in `guide_cases.py`: embeddings, recurrent nets, attention.

They use no Adam: for a row of an embedding that occurs twice in a batch, its second moment is another one here (see the book's page on
Python).
"""

import numpy as np
from guide_cases import history
from tutorial_cases import constant


def word2vec(keras, tf, _):
    sentences, targets, contexts = [[1, 2, 3, 4, 5, 2, 6], [3, 1, 5, 6, 2, 7, 1]], [], []
    for sentence in sentences:
        for i, target in enumerate(sentence):
            for context in sentence[max(0, i - 2) : i] + sentence[i + 1 : i + 3]:
                targets.append(target)
                contexts.append([context, (context + 2) % 8, (context + 5) % 8])
    labels = np.tile([1, 0, 0], (len(targets), 1))

    class Words(keras.Model):
        def __init__(self):
            super().__init__()
            self.target, self.context = keras.layers.Embedding(8, 4), keras.layers.Embedding(8, 4)

        def call(self, pair):
            target, context = pair
            return tf.einsum("be,bce->bc", self.target(target), self.context(context))

    model, pairs = Words(), (np.array(targets), np.array(contexts))
    model((pairs[0][:1], pairs[1][:1]))
    constant(model).compile(
        keras.optimizers.SGD(2.0), keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    batches = tf.data.Dataset.from_tensor_slices((pairs, labels)).batch(8, drop_remainder=True).cache().prefetch(1)
    return [history(model.fit(batches, epochs=3, verbose=0)), model.get_weights()[0]]


def text_generation(keras, tf, _):
    text = "first citizen: before we proceed any further, hear me speak. all: speak, speak. "
    ids = keras.layers.StringLookup(vocabulary=sorted(set(text)), mask_token=None)
    letters = keras.layers.StringLookup(vocabulary=ids.get_vocabulary(), invert=True, mask_token=None)
    rows = tf.data.Dataset.from_tensor_slices(ids(tf.strings.unicode_split(text, "UTF-8")))
    batches = rows.batch(11, drop_remainder=True).map(lambda row: (row[:-1], row[1:])).batch(3, drop_remainder=True)

    class Writer(keras.Model):
        def __init__(self, count):
            super().__init__()
            self.embedding, self.dense = keras.layers.Embedding(count, 6), keras.layers.Dense(count)
            self.gru = keras.layers.GRU(8, return_sequences=True, return_state=True)

        def call(self, x, state=None, return_state=False):
            x = self.embedding(x)
            if state is None:
                state = self.gru.get_initial_state(tf.shape(x)[0])
            x, state = self.gru(x, initial_state=state)
            return (self.dense(x), state) if return_state else self.dense(x)

    model = Writer(ids.vocabulary_size())
    model(tf.zeros([3, 10], tf.int64))
    constant(model).compile(keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses, state, following = history(model.fit(batches, epochs=3, verbose=0)), None, tf.constant(["f", "a"])
    written = [following]
    for _ in range(6):
        logits, state = model(ids(tf.strings.unicode_split(following, "UTF-8")).to_tensor(), state, return_state=True)
        following = letters(tf.argmax(logits[:, -1], -1))
        written.append(following)
    return [losses, tf.strings.join(written), state]


def sequence_pairs(count=8, words=10):
    rng = np.random.default_rng(4)
    first, second = rng.integers(1, words, (count, 6)), rng.integers(1, words, (count, 5))
    first[::3, 4:] = 0
    second[::2, 3:] = 0
    return first, second


def masked_loss(keras, tf):
    each = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def loss(labels, logits):
        mask = tf.cast(labels != 0, tf.float32)
        return tf.reduce_sum(each(labels, logits) * mask) / tf.reduce_sum(mask)

    return loss


def nmt_with_attention(keras, tf, _):
    layers, words, units = keras.layers, 10, 6

    class Encoder(layers.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = layers.Embedding(words, units, mask_zero=True)
            self.gru = layers.Bidirectional(layers.GRU(units, return_sequences=True), merge_mode="sum")

        def call(self, x):
            return self.gru(self.embedding(x))

    class Decoder(layers.Layer):
        def __init__(self):
            super().__init__()
            self.embedding, self.dense = layers.Embedding(words, units, mask_zero=True), layers.Dense(words)
            self.gru = layers.GRU(units, return_sequences=True, return_state=True)
            self.attention, self.norm = layers.MultiHeadAttention(1, units), layers.LayerNormalization()

        def call(self, context, x, state=None, return_state=False):
            x, state = self.gru(self.embedding(x), initial_state=state)
            seen, self.weights_of_words = self.attention(x, context, return_attention_scores=True)
            logits = self.dense(self.norm(x + seen))
            return (logits, state) if return_state else logits

    class Translator(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = Encoder(), Decoder()

        def call(self, pair):
            return self.decoder(self.encoder(pair[0]), pair[1])

    (first, second), model = sequence_pairs(), Translator()
    model((first, second))
    constant(model).compile("adam", masked_loss(keras, tf))
    batches = tf.data.Dataset.from_tensor_slices(((first, second[:, :-1]), second[:, 1:])).batch(4).repeat()
    found = model.fit(batches, epochs=2, steps_per_epoch=3, validation_data=batches, validation_steps=2, verbose=0)
    context, state, word, written = model.encoder(first[:2]), None, tf.constant([[1], [2]]), []
    for _ in range(3):
        logits, state = model.decoder(context, word, state, return_state=True)
        word = tf.argmax(logits, -1)
        written.append(word)
    return [history(found), written, state, model.decoder.weights_of_words]


def transformer(keras, tf, _):
    layers, words, size = keras.layers, 10, 8
    angles = np.arange(16)[:, None] / 10000 ** (np.arange(size // 2)[None] / (size // 2))
    positions = tf.cast(np.concatenate([np.sin(angles), np.cos(angles)], -1), tf.float32)

    class Embedded(layers.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = layers.Embedding(words, size, mask_zero=True)

        def compute_mask(self, *args, **kwargs):
            return self.embedding.compute_mask(*args, **kwargs)

        def call(self, x):
            length = tf.shape(x)[1]
            return self.embedding(x) * tf.math.sqrt(tf.cast(size, tf.float32)) + positions[tf.newaxis, :length]

    class Block(layers.Layer):
        def __init__(self, causal=False):
            super().__init__()
            self.causal, self.attention = causal, layers.MultiHeadAttention(2, size)
            self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
            self.feed = keras.Sequential([layers.Dense(12, activation="relu"), layers.Dense(size)])

        def call(self, x, context=None):
            context = x if context is None else context
            x = self.norms[0](x + self.attention(x, context, use_causal_mask=self.causal))
            return self.norms[1](x + self.feed(x))

    class Transformer(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.dense = Embedded(), Embedded(), layers.Dense(words)
            self.encoder, self.decoder, self.cross = Block(), Block(causal=True), Block()

        def call(self, pair):
            context = self.encoder(self.first(pair[0]))
            return self.dense(self.cross(self.decoder(self.second(pair[1])), context))

    class Warmup(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            step = tf.cast(step, tf.float32)
            return 0.3 * tf.math.minimum(tf.math.rsqrt(step), step * 20**-1.5)

    (first, second), model = sequence_pairs(), Transformer()
    model((first, second))
    optimizer = keras.optimizers.SGD(Warmup(), momentum=0.9)
    constant(model).compile(optimizer, masked_loss(keras, tf))
    found = model.fit((first, second[:, :-1]), second[:, 1:], batch_size=4, epochs=3, shuffle=False, verbose=0)
    return [history(found), model((first[:1], second[:1, :-1]))]


CASES = {
    "tutorials/text/word2vec": word2vec,
    "tutorials/text/text_generation": text_generation,
    "tutorials/text/nmt_with_attention": nmt_with_attention,
    "tutorials/text/transformer": transformer,
}
