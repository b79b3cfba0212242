"""A table in a CSV file: numbers are normalized, words are looked up, missing fields have a default."""

import pathlib
import tempfile

import numpy as np
import taut as tf
from common import is_quick

rows, BATCH = (600, 50) if is_quick() else (50_000, 500)
CITIES = ["bern", "graz", "oslo"]

rng = np.random.default_rng(0)
path = pathlib.Path(tempfile.mkdtemp()) / "rents.csv"
with path.open("w") as file:
    file.write("area,city,rent\n")
    for _ in range(rows):
        area, city = rng.integers(20, 150), rng.integers(3)
        rent = 5 * area + 300 * city + rng.normal(0, 10)
        file.write(f"{area},{CITIES[city]},{rent:.2f}\n" if rng.random() > 0.01 else f",{CITIES[city]},{rent:.2f}\n")

# An empty area is taken to be 85; an empty city or rent is an error with file and line.
batches = tf.data.experimental.make_csv_dataset(
    str(path),
    BATCH,
    column_defaults=[85.0, tf.string, tf.float32],
    label_name="rent",
    num_epochs=1,
    shuffle_buffer_size=1000,
    shuffle_seed=1,
)
normalize = tf.keras.layers.Normalization()
normalize.adapt(batches.map(lambda features, rent: features["area"][:, None]))
cities = tf.keras.layers.StringLookup(vocabulary=CITIES, output_mode="one_hot")


def encode(features, rent):
    area = normalize(features["area"][:, None])
    return tf.concat([area, tf.cast(cities(features["city"]), tf.float32)], 1), rent / 1000.0


tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.1), "mse")
with tf.memory.measure() as measured:
    losses = model.fit(batches.map(encode), epochs=5, verbose=0).history["loss"]
print("losses", [round(loss, 5) for loss in losses])
# The rows of the shuffle buffer, three columns each, and a few batches; not the table.
bound = 1000 * 3 * 64 + 10 * BATCH * 64 + (1 << 16)
print(f"{measured.peak_bytes} bytes at most, bound {bound}, of a table of {path.stat().st_size} bytes")
assert measured.peak_bytes <= bound
# The noise of the rents and of the areas that are missing is left.
assert losses[-1] < (0.05 if is_quick() else 0.001)
