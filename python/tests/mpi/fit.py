"""A process of `model.fit`: prints a line of JSON at its end. The first argument says how processes are joined, the third whether batch
statistics are those of all processes.
"""

import hashlib
import json
import os
import sys

import numpy as np

import taut as tf

keras = tf.keras

how, folder, synchronized = sys.argv[1], sys.argv[2], sys.argv[3:] == ["synchronized"]
group = tf.distribute.world()
rng = np.random.default_rng(0)
# The last batch is one of 2 or 3 rows, which two processes share evenly or not.
x = rng.normal(size=(51 if synchronized else 50, 6)).astype("f")
y = (x.sum(1, keepdims=True) > 0).astype("f")

if how == "DataParallel":
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    strategy = tf.distribute.OneDeviceStrategy()
else:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
keras.utils.set_random_seed(5)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input([6]),
            keras.layers.Dense(16, "relu"),
            keras.layers.BatchNormalization(synchronized=synchronized),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["binary_accuracy"])
callbacks = [keras.callbacks.ModelCheckpoint(os.path.join(folder, "model.keras"))]
history = model.fit(x, y, batch_size=16, epochs=3, validation_data=(x, y), verbose=0, callbacks=callbacks)
values = [np.array(weight) for weight in model.weights]
line = {"rank": group.rank, "size": group.size}
line["hash"] = hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()
line["kernel"] = values[0].ravel()[:4].tolist()
line["history"] = {name: value[-1] for name, value in history.history.items()}
os.write(1, (json.dumps(line) + "\n").encode())
