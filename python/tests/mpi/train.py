"""A process of a custom training loop: prints a line of JSON at its end. The first argument says what goes wrong."""

import hashlib
import json
import os
import sys
import time

import numpy as np

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
if fault == "mpi4py":
    from mpi4py import MPI

import taut as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy(timeout=2.0 if fault == "late" else 60.0)
group, size = tf.distribute.world(), strategy.num_replicas_in_sync
rank = group.rank
GLOBAL = 12

tf.random.set_seed(3 + (rank if fault == "seeds" else 0))
with strategy.scope():
    w = tf.Variable(tf.random.normal([20, 3000]) * 0.1)
    b = tf.Variable(tf.zeros([3000]))
    v = tf.Variable(tf.random.normal([3000, 1]) * 0.1)
variables = [w, b, v]

rng = np.random.default_rng(0)
x = rng.normal(size=(4 * GLOBAL + (7 if fault == "uneven" else 0), 20)).astype("f")
y = x.sum(1, keepdims=True)
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL))


def step(x, y):
    with tf.GradientTape() as tape:
        error = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v) - y
        loss = tf.reduce_sum(error * error) / GLOBAL
    gradients = tape.gradient(loss, variables)
    context = tf.distribute.get_replica_context()
    for variable, gradient in reversed(list(zip(variables, gradients))):
        variable.assign_sub(0.01 * context.all_reduce(tf.distribute.ReduceOp.SUM, gradient))
    return context.all_reduce("SUM", loss)


@tf.function
def train_step(x, y):
    return strategy.run(step, (x, y))


@tf.function
def gradients_of(x, y):
    with tf.GradientTape() as tape:
        error = tf.matmul(tf.nn.relu(tf.matmul(x, w) + b), v) - y
        loss = tf.reduce_sum(error * error) / GLOBAL
    return tape.gradient(loss, variables)


def tree_step(x, y, parts):
    """A step of one process on the rows of `parts` (a power of two) ranks, added in the order of the tree."""
    rows = len(x) // parts
    sums = [gradients_of(x[i * rows : (i + 1) * rows], y[i * rows : (i + 1) * rows]) for i in range(parts)]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [[a + b for a, b in zip(*pair)] for pair in zip(sums[:half], sums[half:])]
    for variable, gradient in zip(variables, sums[0]):
        variable.assign_sub(0.01 * gradient)
    return 0.0


planned = measured = None
losses = []
for epoch in range(5):
    for i, (own_x, own_y) in enumerate(data):
        if fault == "raise" and rank == 1 and epoch == 1:
            raise ValueError("a value that this rank does not like")
        if fault == "kill" and rank == 1 and epoch == 1:
            os.kill(os.getpid(), 9)
        if fault == "late" and rank == 1 and epoch == 1:
            time.sleep(20)
        if fault == "exit" and rank == 1 and epoch == 1:
            sys.exit(0)
        if fault == "mismatch" and rank == 1 and epoch == 1:
            strategy.reduce("SUM", tf.zeros([3]), axis=None)
        if fault == "tree":
            result = tree_step(own_x, own_y, int(sys.argv[2]))
        elif epoch == 0 and i == 1:
            planned = train_step.plan(own_x, own_y).peak_bytes
            before = tf.memory.live_bytes()
            tf.memory.reset_peak()
            result = train_step(own_x, own_y)
            measured = tf.memory.peak_bytes() - before + train_step.plan(own_x, own_y).arena_bytes
        else:
            result = train_step(own_x, own_y)
        losses.append(float(result))
gathered = strategy.gather(tf.constant([[float(rank)]]), axis=1)
digest = hashlib.sha256(b"".join(variable.numpy().tobytes() for variable in variables)).hexdigest()
line = {"rank": rank, "size": size, "hash": digest, "loss": losses[-1], "steps": len(losses)}
line |= {"planned": planned, "measured": measured, "gathered": gathered.numpy().tolist()}
line |= {"transport": group.transport}
if fault == "mpi4py":
    # The library is still MPI's own: its sums and Taut's do not get in each other's way.
    line["mpi4py"] = [MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.allreduce(rank), MPI.Is_finalized()]
# One write per line: processes share the pipe.
os.write(1, (json.dumps(line) + "\n").encode())
