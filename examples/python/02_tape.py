"""Gradients by a tape, and the bytes that it saves for the backward pass: fits a line to noisy points."""

import taut as tf

tf.random.set_seed(1)
x = tf.random.uniform([1000], -1.0, 1.0)
y = 3.0 * x - 2.0 + tf.random.normal([1000], stddev=0.1)

slope, offset = tf.Variable(0.0), tf.Variable(0.0)
for step in range(100):
    with tf.GradientTape() as tape:  # trainable variables are watched automatically
        loss = tf.reduce_mean(tf.square(slope * x + offset - y))
    if step == 0:
        print(tape.explain())
    of_slope, of_offset = tape.gradient(loss, [slope, offset])
    slope.assign_sub(0.5 * of_slope)
    offset.assign_sub(0.5 * of_offset)
    if step % 20 == 19:
        print(f"step {step + 1:3}  loss {float(loss):.4f}")

print(f"\ny = {float(slope):.2f} x {float(offset):+.2f}")
assert abs(float(slope) - 3.0) < 0.05 and abs(float(offset) + 2.0) < 0.05

# Second order: the outer tape records the backward pass of the inner one.
x = tf.constant(2.0, tf.float64)
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        cube = x * x * x
    first = inner.gradient(cube, x)
second = outer.gradient(first, x)
print(f"x^3 at 2: {float(cube)}, first derivative {float(first)}, second {float(second)}")
assert (float(first), float(second)) == (12.0, 12.0)
