"""Text from files: lines, a vocabulary, an embedding; the step is planned, and the pipeline's buffers are bounded."""

import pathlib
import tempfile

import numpy as np
import taut as tf
from common import is_quick

GOOD, BAD, OTHER = ["great", "fine", "lovely"], ["awful", "poor", "dull"], ["the", "film", "was", "a", "story", "and"]
count, epochs, BATCH, WORDS, UNITS = (400, 3, 32, 8, 16) if is_quick() else (20_000, 3, 256, 8, 16)

# A folder with one file per class and a line per review.
rng = np.random.default_rng(0)
folder = pathlib.Path(tempfile.mkdtemp())
for name, mood in (("bad", BAD), ("good", GOOD)):
    lines = (" ".join(rng.permutation([*rng.choice(OTHER, WORDS - 2), *rng.choice(mood, 2)])) for _ in range(count))
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")

tf.random.set_seed(1)
tf.keras.utils.set_random_seed(1)
good, bad = (tf.data.TextLineDataset(str(folder / f"{name}.txt")) for name in ("good", "bad"))
vectorize = tf.keras.layers.TextVectorization(max_tokens=50, output_sequence_length=WORDS)
vectorize.adapt(good.concatenate(bad).batch(BATCH))
print("vocabulary", vectorize.get_vocabulary())

labelled = good.map(lambda line: (line, 1.0)).concatenate(bad.map(lambda line: (line, 0.0)))
# The buffer is in bytes: it holds lines of any length.
shuffled = labelled.shuffle(buffer_bytes=1 << 20, seed=1).batch(BATCH, drop_remainder=True)
# Lines are vectorized in batches: one call handles many strings.
batches = shuffled.map(lambda lines, label: (vectorize(lines), label)).prefetch(buffer_bytes=1 << 20)

table = tf.Variable(tf.random.uniform([50, UNITS], -0.05, 0.05))
kernel = tf.Variable(tf.random.normal([UNITS, 1], stddev=UNITS**-0.5))
optimizer = tf.optimizers.Adam(0.02)
optimizer.build([table, kernel])


@tf.function
def step(ids, labels):
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.reduce_mean(tf.gather(table, ids), axis=1), kernel)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    gradients = tape.gradient(loss, [table, kernel])
    assert isinstance(gradients[0], tf.IndexedSlices)  # the rows in use, not the whole table
    optimizer.apply_gradients(zip(gradients, [table, kernel]))
    return loss, tf.reduce_mean(tf.cast((logits > 0.0) == (labels > 0.5), tf.float32))


plan = step.plan(tf.TensorSpec([BATCH, WORDS], tf.int64), tf.TensorSpec([BATCH]))
with tf.memory.measure() as measured:
    for _ in range(epochs):
        for ids, labels in batches:
            loss, accuracy = step(ids, labels)
        print(f"loss {float(loss):.3f}, accuracy {float(accuracy):.2f}")
# The step, the two buffers, and a batch of lines and of ids.
bound = plan.peak_bytes + (2 << 20) + 4 * BATCH * (WORDS * 8 + 100)
print(f"{measured.peak_bytes} bytes at most, bound {bound}")
assert measured.peak_bytes <= bound
assert float(accuracy) > 0.9
