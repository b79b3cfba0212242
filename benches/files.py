"""Elements per second from files: lines with split and lookup, JPEG pictures, TFRecords, CSV rows; two threads.

    python benches/files.py             this package
    python benches/files.py tensorflow  TensorFlow's tf.data
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

import numpy as np

if "tensorflow" in sys.argv:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
else:
    import taut as tf

LINES, PICTURES, RECORDS, ROWS = 100_000, 200, 50_000, 100_000
WORDS = [f"word{i}" for i in range(1000)]


def per_second(name: str, dataset: Any, count: int) -> None:
    """Prints the best of three runs."""
    best = min(_seconds(dataset) for _ in range(3))
    print(f"{name:28} {count / best:12,.0f} / s")


def _seconds(dataset: Any) -> float:
    start = time.perf_counter()
    for _ in dataset:
        pass
    return time.perf_counter() - start


def main() -> None:
    """Writes the files and measures."""
    rng = np.random.default_rng(0)
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "lines.txt")
    with open(path, "w") as file:
        file.writelines(" ".join(rng.choice(WORDS, 10)) + "\n" for _ in range(LINES))
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(WORDS), tf.range(1000, dtype=tf.int64))
    table = tf.lookup.StaticHashTable(initializer, -1)

    def ids(lines: Any) -> Any:
        return table.lookup(tf.strings.split(lines).flat_values)

    lines = tf.data.TextLineDataset(path)
    per_second("lines", lines, LINES)
    per_second("lines, batch, split, lookup", lines.batch(256).map(ids, num_parallel_calls=2), LINES)

    pixels = rng.integers(0, 255, [256, 256, 3]).astype(np.uint8)
    names = [os.path.join(folder, f"{i}.jpg") for i in range(PICTURES)]
    for name in names:
        tf.io.write_file(name, tf.io.encode_jpeg(pixels, quality=90))

    def load(name: Any) -> Any:
        return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(name), channels=3), [128, 128])

    pictures = tf.data.Dataset.from_tensor_slices(names).map(load, num_parallel_calls=2).batch(16)
    per_second("JPEG, resize, batch", pictures, PICTURES)

    path = os.path.join(folder, "records")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(RECORDS):
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(16).tolist())),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    records = tf.data.TFRecordDataset(path).batch(256)
    parsed = records.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=2)
    per_second("TFRecords, batch, parse", parsed, RECORDS)

    path = os.path.join(folder, "rows.csv")
    with open(path, "w") as file:
        file.writelines(f"{i},{i * 0.5},{WORDS[i % 1000]},{i % 7}\n" for i in range(ROWS))
    rows = tf.data.experimental.CsvDataset(path, [tf.int32, tf.float32, tf.string, tf.int64])
    per_second("CSV rows, batch", rows.batch(256), ROWS)


if __name__ == "__main__":
    main()
