"""A process of a program for Horovod: prints a line of JSON at its end."""

import json
import os

import numpy as np

import taut as tf
import taut.horovod as hvd

keras = tf.keras

hvd.init()
w = tf.Variable([float(hvd.rank()), 5.0])
hvd.broadcast_variables([w], root_rank=0)
with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
    loss = tf.reduce_sum(w * (hvd.rank() + 1.0))
gradient = tape.gradient(loss, w)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
x = np.full((4, 2), hvd.rank() + 1.0, "f")
model.fit(x, x[:, :1], verbose=0, shuffle=False)
line = {
    "rank": hvd.rank(),
    "size": hvd.size(),
    "local": [hvd.local_rank(), hvd.local_size()],
    "w": w.numpy().tolist(),
    "gradient": gradient.numpy().tolist(),
    "sum": hvd.allreduce(tf.constant(hvd.rank() + 1), op=hvd.Sum).numpy().tolist(),
    "gather": hvd.allgather(tf.constant([hvd.rank()])).numpy().tolist(),
    "weights": [np.array(weight).tolist() for weight in model.weights],
}
os.write(1, (json.dumps(line) + "\n").encode())
