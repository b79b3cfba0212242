"""Pictures from folders, with augmentation: files are decoded in parallel, and only batches are in memory."""

import pathlib
import tempfile

import numpy as np
import taut as tf
from common import is_quick

count, SIZE, BATCH = (24, 32, 8) if is_quick() else (400, 64, 32)

# A folder with one subfolder per class: horizontal and vertical stripes.
rng = np.random.default_rng(0)
folder = pathlib.Path(tempfile.mkdtemp())
stripes = np.where(np.arange(SIZE + 8) // 4 % 2 == 0, 200, 40)
for name in ("horizontal", "vertical"):
    for i in range(count):
        grid = np.broadcast_to(stripes[: SIZE + 8], (SIZE, SIZE + 8))
        pixels = (grid.T if name == "horizontal" else grid)[..., None] + rng.integers(-30, 30, [1, 1, 3])
        tf.io.write_file(str(folder / name / f"{i}.jpg"), tf.io.encode_jpeg(pixels.clip(0, 255).astype("uint8")))

batches = tf.keras.utils.image_dataset_from_directory(
    str(folder), image_size=(SIZE, SIZE), batch_size=BATCH, seed=1, verbose=False
)
print("classes", batches.class_names)
tf.keras.utils.set_random_seed(1)
augment = tf.keras.Sequential([tf.keras.layers.RandomFlip(seed=1), tf.keras.layers.Rescaling(1 / 255)])
prepared = batches.map(lambda images, labels: (augment(images, training=True), labels)).prefetch(1)

model = tf.keras.Sequential(
    [
        tf.keras.Input((SIZE, SIZE, 3)),
        tf.keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
        tf.keras.layers.GlobalMaxPooling2D(),
        tf.keras.layers.Dense(2),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
with tf.memory.measure() as measured:
    history = model.fit(prepared, epochs=8, verbose=0).history
print("losses", [round(value, 3) for value in history["loss"]])
# A few batches as floats, and the step; not the folder.
bound = 12 * BATCH * SIZE * SIZE * 3 * 4 + (4 << 20)
print(f"{measured.peak_bytes} bytes at most, bound {bound}")
assert measured.peak_bytes <= bound
assert history["loss"][-1] < history["loss"][0]
