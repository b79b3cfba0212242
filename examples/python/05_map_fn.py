"""`map_fn`: a function of one element applied to many, as fast as the vectorised form, in bounded memory."""

import numpy as np
import taut as tf

tf.random.set_seed(1)
points, centres = tf.random.normal([2000, 3]), tf.random.normal([500, 3])


def nearest(point):
    """Written for one point: the distance to the nearest centre."""
    return tf.sqrt(tf.reduce_min(tf.reduce_sum(tf.square(centres - point), axis=1)))


results = []
for name, options in {
    "chunks of 2 MiB": {},
    "chunks of 64 KiB": {"memory_budget": 64 << 10},
    "one at a time": {"parallel_iterations": 1},
}.items():
    with tf.memory.measure() as measured:
        distances = tf.map_fn(nearest, points, **options)
    print(f"{name:<18} peak {measured.peak_bytes} bytes")
    results.append(distances.numpy().tobytes())
assert len(set(results)) == 1

# Maps are differentiable, in the same bounded memory.
with tf.GradientTape() as tape:
    tape.watch(points)
    total = tf.reduce_sum(tf.map_fn(nearest, points))
gradient = tape.gradient(total, points)
print("\nthe gradient of their sum has the shape", gradient.shape)
# The gradient of a distance is a unit vector.
np.testing.assert_allclose(np.linalg.norm(gradient.numpy(), axis=1), 1.0, atol=1e-4)
