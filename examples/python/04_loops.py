"""Loops whose memory is independent of their length, and whose gradients fit a budget of bytes."""

import taut as tf

tf.random.set_seed(1)
w = tf.random.normal([64, 64], stddev=0.12)


def loop(steps, **options):
    def body(i, x):
        return i + 1, tf.tanh(tf.matmul(x, w))

    start = (tf.constant(0), w)
    return tf.while_loop(lambda i, _: i < steps, body, start, maximum_iterations=steps, **options)[1]


print("forward:")
peaks = []
for steps in [10, 1000, 10_000]:
    with tf.memory.measure() as measured:
        loop(steps)
    print(f"  {steps:6} steps   peak {measured.peak_bytes} bytes")
    peaks.append(measured.peak_bytes)
assert len(set(peaks)) == 1


def gradient(**options):
    with tf.memory.measure() as measured:
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(loop(1000, **options))
        found = tape.gradient(loss, w)
        del tape
    return measured.peak_bytes, found.numpy()


print("\nwith a gradient, of 1000 steps:")
everything, exact = gradient()
print(f"  no budget       peak {everything} bytes")
some, same = gradient(grad_budget=1 << 20)
print(f"  1 MiB budget    peak {some} bytes")
assert exact.tobytes() == same.tobytes()
assert some * 5 < everything
print("\nBoth gradients are bit-equal.")
