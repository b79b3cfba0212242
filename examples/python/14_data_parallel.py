"""Data-parallel training: python -m taut.run -n 4 examples/python/14_data_parallel.py, or alone with one process.

Every process has a copy of the model and its rows of every batch. The sums of gradients have the same bits on every
process and with every MPI library.
"""

import hashlib

import taut as tf
from common import digits, is_quick

keras = tf.keras

strategy = tf.distribute.MultiWorkerMirroredStrategy()
keras.utils.set_random_seed(7)
with strategy.scope():
    model = keras.Sequential(
        [keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])

(x, y), test = digits()
rank, size = tf.distribute.world().rank, strategy.num_replicas_in_sync
history = model.fit(x, y, batch_size=96, epochs=1 if is_quick() else 5, validation_data=test, verbose=0)
digest = hashlib.sha256(b"".join(weight.numpy().tobytes() for weight in model.weights)).hexdigest()
print(f"rank {rank} of {size}: accuracy {history.history['val_accuracy'][-1]:.3f}, weights {digest[:16]}")
