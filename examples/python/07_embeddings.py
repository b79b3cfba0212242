"""An embedding table of a million rows: gradients and optimizer updates stay sparse."""

import taut as tf
from common import is_quick

UNITS, IDS = 64, 26
rows, batch = (20_000, 64) if is_quick() else (1_000_000, 4096)

tf.random.set_seed(1)
table = tf.Variable(tf.random.uniform([rows, UNITS], -0.05, 0.05))
kernel = tf.Variable(tf.random.normal([UNITS, 1], stddev=UNITS**-0.5))
optimizer = tf.optimizers.Adam(0.02)
optimizer.build([table, kernel])
print(f"{rows} rows of {UNITS} and their moments: {tf.memory.live_bytes()} bytes")

ids = tf.random.uniform([batch, IDS], 0, rows, tf.int32)
labels = tf.cast(tf.random.uniform([batch, 1], 0, 2, tf.int32), tf.float32)


@tf.function
def step(ids, labels):
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.reduce_mean(tf.gather(table, ids), axis=1), kernel)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    gradients = tape.gradient(loss, [table, kernel])
    assert isinstance(gradients[0], tf.IndexedSlices)
    optimizer.apply_gradients(zip(gradients, [table, kernel]))
    return loss


plan = step.plan(ids, labels)
print(plan.explain_peak())
with tf.memory.measure() as measured:
    loss = step(ids, labels)
losses = [float(loss)] + [float(step(ids, labels)) for _ in range(9)]
print(f"a step needs {measured.peak_bytes} bytes more, as planned ({plan.peak_bytes})")
print("losses", [round(loss, 3) for loss in losses])
assert measured.peak_bytes == plan.peak_bytes
# The rows of the gradient and little else: no gradient of the size of the table, no second copy of its rows.
assert measured.peak_bytes < batch * IDS * UNITS * 4 + (2 << 20)
assert losses[-1] < losses[0]
