"""Tensors, views, the memory ledger, and errors."""

import taut as tf

start = tf.memory.live_bytes()
x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
y = x * 10.0 + 0.5
print("x * 10 + 0.5 =", y.numpy(), sep="\n")

# A slice is a view: it shares the memory.
column = x[:, 1]
assert column.data_ptr() == x.data_ptr() + 4
print("\nthe second column is a view:", column.numpy())

# The ledger lists live bytes by category and source line.
tf.memory.record(True)
held = tf.ones([1000, 100])
print(f"\n{tf.memory.report()}")
tf.memory.record(False)

# An allocation beyond the limit is an error, not a crash.
tf.memory.limit(tf.memory.live_bytes() + (1 << 20))
try:
    tf.ones([100_000_000])
except tf.errors.ResourceExhaustedError as error:
    print(f"{error}\n")
else:
    raise AssertionError("400 MB under a limit of 1 MiB")
finally:
    tf.memory.limit(None)

# So is a product of shapes that do not match.
try:
    tf.matmul(x, x)
except ValueError as error:
    print(f"{error}\n")
else:
    raise AssertionError("2x3 times 2x3")

del x, y, column, held
assert tf.memory.live_bytes() == start
print("Every byte has been freed.")
