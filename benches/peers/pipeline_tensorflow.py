"""tf.data's counterpart of crates/data/benches/pipeline.rs: the same images, the same pipelines, images per second.

python benches/peers/pipeline_tensorflow.py
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

IMAGES, SIDE, BATCH, SHUFFLED, ROUNDS = 60_000, 28, 128, 10_000, 5


def prepared(image, label):
    image = tf.cast(image, tf.float32) * (1.0 / 255.0)
    return tf.cond(label % 2 == 1, lambda: tf.reverse(image, [1]), lambda: image), label


def batched(images, labels):
    return tf.cast(images, tf.float32) * (1.0 / 255.0), labels


def row(name, dataset):
    rates = []
    for _ in range(ROUNDS + 1):
        start, images = time.perf_counter(), 0
        for batch, _ in dataset:
            images += batch.shape[0]
        assert images == IMAGES
        rates.append(images / (time.perf_counter() - start))
    # The first round builds and warms up.
    print(f"{name:<44} {sorted(rates[1:])[ROUNDS // 2]:>10.0f} images/s", flush=True)


def main():
    pixels = (np.arange(IMAGES * SIDE * SIDE, dtype=np.int64) * 31 % 256).astype(np.uint8)
    images, labels = pixels.reshape(IMAGES, SIDE, SIDE, 1), np.arange(IMAGES, dtype=np.int64) % 10
    source = tf.data.Dataset.from_tensor_slices((images, labels))
    shuffled = source.shuffle(SHUFFLED, seed=1)
    row("batch", source.batch(BATCH))
    row("shuffle, batch", shuffled.batch(BATCH))
    row("shuffle, map, batch", shuffled.map(prepared).batch(BATCH))
    row("shuffle, map, batch, prefetch", shuffled.map(prepared).batch(BATCH).prefetch(2))
    parallel = shuffled.map(prepared, num_parallel_calls=2).batch(BATCH).prefetch(2)
    row("shuffle, map on 2 threads, batch, prefetch", parallel)
    row("shuffle, batch, map of batches, prefetch", shuffled.batch(BATCH).map(batched).prefetch(2))


if __name__ == "__main__":
    main()
