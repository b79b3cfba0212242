"""A custom gradient, and the bytes that it saves for the backward pass."""

import math

import taut as tf


@tf.custom_gradient
def log1pexp(x):
    """log(1 + e^x), with a gradient that does not overflow and keeps one tensor."""
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1.0 - 1.0 / (1.0 + e))

    return tf.math.log(1.0 + e), grad


def naive(x):
    """The same function without a custom gradient."""
    return tf.math.log(1.0 + tf.exp(x))


def slope(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    print(f"  saves {tape.bytes_held()} bytes")
    return float(tape.gradient(y, x))


print("without a custom gradient, at 100:")
formula = slope(naive, 100.0)
print(f"  slope {formula}\nwith a custom gradient:")
custom = slope(log1pexp, 100.0)
print(f"  slope {custom}")
assert math.isnan(formula) and custom == 1.0

# Where the formula does not overflow, both agree.
assert abs(slope(naive, 0.5) - slope(log1pexp, 0.5)) < 1e-6
