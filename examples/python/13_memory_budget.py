"""A training step that runs in a third of its memory: values are dropped and computed again, and the results are the same bits."""

import sys

import taut as tf

depth, width, batch = (32, 64, 256) if "--quick" in sys.argv else (64, 256, 2048)


def network():
    tf.random.set_seed(1)
    weights = [tf.Variable(tf.random.normal([width, width], stddev=width**-0.5)) for _ in range(depth)]
    x = tf.random.normal([batch, width])

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(tf.matmul(h, w))
            loss = tf.reduce_mean(tf.square(h))
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.05 * gradient)
        return loss

    return step, x


def train(step, x):
    step.plan(x)
    with tf.memory.measure() as measured:
        loss = step(x)
    return measured.peak_bytes, [float(loss), float(step(x)), float(step(x))]


body, x = network()
plain = tf.function(body)
print("The plans of this step, before anything runs:")
print(plain.frontier(x))
peak, losses = train(plain, x)
print(f"without a budget: {peak} bytes, losses {losses}")

body, x = network()
small = tf.function(body, memory_budget=tf.memory.MemoryBudget(peak // 3, bit_equal=True))
repeated = len(small.plan(x).repeated_steps)
within, same = train(small, x)
print(f"with a third of it: {within} bytes, {repeated} steps repeated, losses {same}")
assert within <= peak // 3, "the budget is kept"
assert losses == same, "the same bits"

body, x = network()
try:
    tf.function(body, memory_budget="10kB")(x)
except tf.errors.ResourceExhaustedError as error:
    print("\nA budget that no plan keeps is an error before the first kernel runs:")
    print(error)
