"""TFRecords: examples are written, read and parsed in batches; a damaged file is an error that says where."""

import pathlib
import tempfile

import numpy as np
import taut as tf
from common import digits, is_quick

(images, labels), _ = digits()
count, BATCH = (200, 50) if is_quick() else (1400, 50)
path = pathlib.Path(tempfile.mkdtemp()) / "digits.tfrecord"


def example(image, label):
    features = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.serialize_tensor(image).numpy()])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


with tf.io.TFRecordWriter(str(path)) as writer:
    for image, label in zip(images[:count], labels[:count]):
        writer.write(example(image, label).SerializeToString())
print(f"{count} examples, {path.stat().st_size} bytes")

SPEC = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def parse(serialized):
    parsed = tf.io.parse_example(serialized, SPEC)
    return tf.map_fn(lambda image: tf.io.parse_tensor(image, tf.float32), parsed["image"]), parsed["label"]


batches = tf.data.TFRecordDataset(str(path)).batch(BATCH).map(parse)
with tf.memory.measure() as measured:
    seen = 0
    for pixels, numbers in batches:
        np.testing.assert_array_equal(pixels, images[seen : seen + BATCH])
        np.testing.assert_array_equal(numbers, labels[seen : seen + BATCH])
        seen += BATCH
assert seen == count
# A batch of records, their parts, and the pixels.
each = path.stat().st_size // count
print(f"{measured.peak_bytes} bytes at most for batches of {BATCH * each} bytes")
assert measured.peak_bytes <= 12 * BATCH * each + (1 << 16)

damaged = bytearray(path.read_bytes())
damaged[len(damaged) // 2] ^= 1
path.write_bytes(damaged)
try:
    for _ in batches:
        pass
except tf.errors.DataLossError as error:
    print(error)
else:
    raise AssertionError("a changed byte must be found")
