"""A whole training step as one traced function, whose peak memory is known before it runs."""

import taut as tf

tf.random.set_seed(1)
x = tf.random.normal([512, 64])
y = tf.sin(tf.reduce_sum(x, axis=1, keepdims=True))
weights = [
    tf.Variable(tf.random.normal(shape, stddev=shape[0] ** -0.5)) for shape in [(64, 128), (128, 128), (128, 1)]
]


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        h = x
        for w in weights[:-1]:
            h = tf.tanh(tf.matmul(h, w))
        loss = tf.reduce_mean(tf.square(tf.matmul(h, weights[-1]) - y))
    for w, gradient in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.05 * gradient)
    return loss


# The plan is made from shapes alone: nothing has run yet.
plan = step.plan(x, y)
print(plan.explain_peak())

addresses = [w.address for w in weights]
with tf.memory.measure() as measured:
    loss = step(x, y)
first = float(loss)
print(f"planned {plan.peak_bytes} bytes, measured {measured.peak_bytes}")
assert plan.peak_bytes == measured.peak_bytes

for _ in range(200):
    last = float(step(x, y))
print(f"the loss went from {first:.3f} to {last:.3f}; traced {step.trace_count} time")
assert last < first
assert [w.address for w in weights] == addresses, "updates happen in place"
