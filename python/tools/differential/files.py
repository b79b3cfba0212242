"""Files that one engine writes and the other one reads: TFRecords, examples, serialized tensors, pictures, event files.

`python -m differential write FOLDER` runs in both environments, then `python -m differential read FOLDER` in the other one.
Event files that this package wrote are opened by TensorBoard itself, through its server.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
import urllib.request
from typing import Any

import numpy as np

COMPRESSIONS = ("", "GZIP", "ZLIB")
RECORDS = [b"", b"a", bytes(range(256)) * 400, b"last"]
TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64")
TYPES += ("uint8", "uint16", "uint32", "uint64", "bool")
STEPS = 5
PIXELS = (np.arange(9 * 7 * 3).reshape(9, 7, 3) * 5 % 256).astype(np.uint8)


def _example(tf: Any, n: int) -> Any:
    feature = tf.train.Feature
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "bytes": feature(bytes_list=tf.train.BytesList(value=[b"x" * n, b"\x00\xff"])),
                "floats": feature(float_list=tf.train.FloatList(value=[n + 0.25] * n)),
                "ints": feature(int64_list=tf.train.Int64List(value=[-n, n << 40])),
            }
        )
    )


def _sequence(tf: Any, n: int) -> Any:
    steps = [tf.train.Feature(int64_list=tf.train.Int64List(value=[i] * i)) for i in range(n)]
    return tf.train.SequenceExample(
        context=_example(tf, n).features,
        feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)}),
    )


def _tensor(tf: Any, dtype: str) -> Any:
    return tf.cast(tf.constant([[0, 1, 2], [3, 4, 100]]), dtype)


def _path(folder: str, *names: str) -> str:
    return os.path.join(folder, *names)


def write(tf: Any, folder: str) -> None:
    """Writes all files."""
    os.makedirs(folder, exist_ok=True)
    for compression in COMPRESSIONS:
        with tf.io.TFRecordWriter(_path(folder, f"records{compression}"), tf.io.TFRecordOptions(compression)) as writer:
            for record in RECORDS:
                writer.write(record)
    for name, made in (("examples", _example), ("sequences", _sequence)):
        with tf.io.TFRecordWriter(_path(folder, name)) as writer:
            for n in range(4):
                writer.write(made(tf, n).SerializeToString())
    for dtype in TYPES:
        tf.io.write_file(_path(folder, f"tensor_{dtype}"), tf.io.serialize_tensor(_tensor(tf, dtype)))
    tf.io.write_file(_path(folder, "tensor_string"), tf.io.serialize_tensor(tf.constant([["a", ""], ["bc", "\x00"]])))
    tf.io.write_file(_path(folder, "picture.png"), tf.io.encode_png(PIXELS))
    tf.io.write_file(_path(folder, "picture.jpg"), tf.io.encode_jpeg(PIXELS, quality=95))
    writer = tf.summary.create_file_writer(_path(folder, "events"))
    with writer.as_default():
        for step in range(STEPS):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
            tf.summary.histogram("weights", np.arange(20.0) * step, step=step)
        tf.summary.image("picture", PIXELS[None], step=0)
        tf.summary.text("note", "some *text*", step=0)
        function = tf.function(lambda x: tf.tanh(x * 2.0 + 1.0))
        concrete = function.get_concrete_function(tf.TensorSpec([3, 4], tf.float32))
        tf.summary.graph(getattr(concrete, "graph", concrete))
    writer.close()
    _fit(tf, folder)


def _fit(tf: Any, folder: str) -> None:
    """A training run with Keras's callback."""
    keras = tf.keras
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    callback = keras.callbacks.TensorBoard(_path(folder, "keras"), histogram_freq=1, write_images=True)
    x, y = np.ones((8, 3), "f4"), np.ones((8, 1), "f4")
    model.fit(x, y, epochs=2, verbose=0, callbacks=[callback], validation_split=0.5)


def read(tf: Any, folder: str) -> int:
    """Reads all files. Returns how many things differ."""
    failures: list[str] = []

    def check(name: str, found: Any, wanted: Any) -> None:
        same = np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted
        if not same:
            failures.append(f"{name}: expected {wanted!r}, got {found!r}")

    for compression in COMPRESSIONS:
        found = [one.numpy() for one in tf.data.TFRecordDataset(_path(folder, f"records{compression}"), compression)]
        check(f"records {compression}", found, RECORDS)
    examples = [one.numpy() for one in tf.data.TFRecordDataset(_path(folder, "examples"))]
    check("examples", [tf.train.Example.FromString(one) for one in examples], [_example(tf, n) for n in range(4)])
    parsed = tf.io.parse_example(examples, {"floats": tf.io.RaggedFeature(tf.float32)})["floats"]
    check("parsed examples", parsed.to_list(), [[n + 0.25] * n for n in range(4)])
    sequences = [one.numpy() for one in tf.data.TFRecordDataset(_path(folder, "sequences"))]
    wanted = [_sequence(tf, n) for n in range(4)]
    check("sequences", [tf.train.SequenceExample.FromString(one) for one in sequences], wanted)
    _, lists, _ = tf.io.parse_sequence_example(sequences, sequence_features={"steps": tf.io.RaggedFeature(tf.int64)})
    check("parsed sequences", lists["steps"].to_list(), [[[i] * i for i in range(n)] for n in range(4)])
    for dtype in TYPES:
        found = tf.io.parse_tensor(tf.io.read_file(_path(folder, f"tensor_{dtype}")), dtype)
        check(f"tensor {dtype}", np.asarray(found.numpy()), np.asarray(_tensor(tf, dtype).numpy()))
    found = tf.io.parse_tensor(tf.io.read_file(_path(folder, "tensor_string")), tf.string)
    check("tensor of strings", found.numpy().tolist(), [[b"a", b""], [b"bc", b"\x00"]])
    check("PNG", tf.io.decode_png(tf.io.read_file(_path(folder, "picture.png"))).numpy(), PIXELS)
    # Encoders and decoders of JPEG differ by rounding; the picture is made of steep edges.
    pixels = tf.io.decode_jpeg(tf.io.read_file(_path(folder, "picture.jpg"))).numpy()
    check("JPEG", pixels.shape, PIXELS.shape)
    events = _tensorboard(folder) if importlib.util.find_spec("tensorboard") else _events(tf, folder)
    for name, good in events.items():
        check(f"events: {name}", good, True)
    for failure in failures:
        print(failure)
    print(f"files: {12 + len(TYPES) + len(events)} checks, {len(failures)} differ")
    return len(failures)


def _events(tf: Any, folder: str) -> dict[str, bool]:
    """What this package finds in event files: they are TFRecords of messages."""
    from taut.example_protos import fields

    (name,) = os.listdir(_path(folder, "events"))
    scalars, tags = [], set()
    for record in tf.data.TFRecordDataset(_path(folder, "events", name)):
        for number, value in fields(record.numpy()):
            if number == 4:
                tags.add("graph")
            for _, summary in fields(value) if number == 5 else ():
                parts = dict(fields(summary))
                tags.add(parts[1].decode())
                if parts[1] == b"loss":
                    scalars.append(float(tf.io.parse_tensor(parts[8], tf.float32)))
    wanted = [float(np.float32(1.0 / (step + 1))) for step in range(STEPS)]
    return {"scalars": scalars == wanted, "tags": {"loss", "weights", "picture", "note", "graph"} <= tags}


def _tensorboard(folder: str) -> dict[str, bool]:
    """What TensorBoard shows of event files: with its fast reader and with its own, each in a server."""
    from tensorboard import program

    seen: dict[str, bool] = {}
    for fast in ("false", "true"):
        board = program.TensorBoard()
        board.configure(argv=[None, "--logdir", folder, "--port", "0", "--load_fast", fast])
        url = board.launch()

        def get(path: str, url: str = url) -> Any:
            with urllib.request.urlopen(f"{url}data/{path}") as answer:
                return json.load(answer)

        # The server reads the files in the background.
        for _ in range(100):
            runs = get("plugin/scalars/tags")
            if "loss" in runs.get("events", {}) and "epoch_mae" in runs.get("keras/train", {}):
                break
            time.sleep(0.1)
        points = get("plugin/scalars/scalars?run=events&tag=loss")
        wanted = [float(np.float32(1.0 / (step + 1))) for step in range(STEPS)]
        seen |= {
            f"scalars {fast}": [value for _, _, value in points] == wanted,
            f"histograms {fast}": len(get("plugin/histograms/histograms?run=events&tag=weights")) == STEPS,
            f"images {fast}": "picture" in get("plugin/images/tags").get("events", {}),
            f"texts {fast}": "note" in get("plugin/text/tags").get("events", []),
            f"graph {fast}": bool(get("plugin/graphs/info")["events"]["run_graph"]),
            f"keras {fast}": {"epoch_loss", "epoch_mae"} <= set(runs["keras/train"]),
            f"keras validation {fast}": "epoch_loss" in runs.get("keras/validation", {}),
            f"keras histograms {fast}": bool(get("plugin/histograms/tags").get("keras/train")),
        }
        with urllib.request.urlopen(f"{url}data/plugin/graphs/graph?run=events&conceptual=false") as answer:
            seen[f"nodes {fast}"] = answer.read().count(b"node {") > 0
    return seen
