"""Elements per second from files, beside TensorFlow's tf.data: lines with split and lookup, JPEG pictures, TFRecords, CSV rows.

    python benches/files.py                              this package alone
    python benches/files.py --peer PYTHON [--rounds 5]   and TensorFlow, which that interpreter has
        [--book docs/src/text-and-files.md]              writes the table into the book

Both engines read the same files with two threads, in processes of their own that take turns, round by round; a rate is the best of
three passes over the files, the table has the medians of all rounds. Of this package, the high-water mark of every buffer is
printed beside its setting; one that is set in bytes must not exceed it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LINES, PICTURES, RECORDS, ROWS = 200_000, 256, 100_000, 200_000
WORDS = [f"word{i}" for i in range(1000)]
#: The bytes of the buffer behind each pipeline.
BUFFER = 4 << 20
#: The settings of the buffers, by stage. A map keeps eight elements per thread.
SETTINGS = {"prefetch": f"{BUFFER >> 10:,} KiB", "map_parallel": "16 elements"}
TITLES = {
    "text": "text lines: batch, split, look up words",
    "pictures": "JPEG pictures of 256x256: decode, resize, batch",
    "records": "TFRecords: batch, parse 17 numbers",
    "csv": "CSV rows of 4 columns: parse, batch",
    "lines": "text lines, one by one in Python",
}


def engine(name: str) -> Any:
    """The package of an engine."""
    if name == "tensorflow":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        return tf
    import taut

    return taut


def write(tf: Any, folder: str) -> None:
    """Writes the files."""
    rng = np.random.default_rng(0)
    with open(os.path.join(folder, "lines.txt"), "w") as file:
        file.writelines(" ".join(rng.choice(WORDS, 10)) + "\n" for _ in range(LINES))
    rows, columns = np.mgrid[:256, :256] / 256
    for i in range(PICTURES):
        # Waves with a little noise: about as many bytes as a photo has.
        waves = [np.sin((i % 7 + 2) * rows + k) + np.cos((i % 5 + 3) * columns * k) for k in (1, 2, 3)]
        pixels = np.stack(waves, -1) * 50 + 128 + rng.normal(0, 6, [256, 256, 3])
        picture = tf.io.encode_jpeg(pixels.clip(0, 255).astype(np.uint8), quality=90)
        tf.io.write_file(os.path.join(folder, f"{i:03}.jpg"), picture)
    with tf.io.TFRecordWriter(os.path.join(folder, "records")) as writer:
        for i in range(RECORDS):
            features = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(16).tolist())),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    with open(os.path.join(folder, "rows.csv"), "w") as file:
        file.writelines(f"{i},{i * 0.5},{WORDS[i % 1000]},{i % 7}\n" for i in range(ROWS))


def pipelines(tf: Any, folder: str) -> dict[str, tuple[int, Callable[[], Any]]]:
    """The number of elements of each pipeline, and what makes it."""
    lines = os.path.join(folder, "lines.txt")
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(WORDS), tf.range(1000, dtype=tf.int64))
    table = tf.lookup.StaticHashTable(initializer, -1)
    names = [os.path.join(folder, f"{i:03}.jpg") for i in range(PICTURES)]
    spec = {"x": tf.io.FixedLenFeature([16], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    columns = [tf.int32, tf.float32, tf.string, tf.int64]

    def ids(batch: Any) -> Any:
        return table.lookup(tf.strings.split(batch).flat_values)

    def load(name: Any) -> Any:
        return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(name), channels=3), [128, 128])

    def text() -> Any:
        return tf.data.TextLineDataset(lines).batch(256).map(ids, num_parallel_calls=2)

    def pictures() -> Any:
        return tf.data.Dataset.from_tensor_slices(names).map(load, num_parallel_calls=2).batch(16)

    def records() -> Any:
        batches = tf.data.TFRecordDataset(os.path.join(folder, "records")).batch(256)
        return batches.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=2)

    def csv() -> Any:
        return tf.data.experimental.CsvDataset(os.path.join(folder, "rows.csv"), columns).batch(256)

    return {
        "text": (LINES, text),
        "pictures": (PICTURES, pictures),
        "records": (RECORDS, records),
        "csv": (ROWS, csv),
        "lines": (LINES // 10, lambda: tf.data.TextLineDataset(lines).take(LINES // 10)),
    }


def measure(tf: Any, folder: str, only: str | None) -> dict[str, Any]:
    """Elements per second, and the high-water marks of buffers: the most bytes by pipeline and stage."""
    is_tensorflow = tf.__name__ == "tensorflow"
    rates: dict[str, float] = {}
    buffers: dict[str, dict[str, int]] = {}
    for name, (count, make) in pipelines(tf, folder).items():
        if only not in (None, name):
            continue
        dataset = make()
        if is_tensorflow:
            options = tf.data.Options()
            options.threading.private_threadpool_size = 2
            dataset = dataset.prefetch(2).with_options(options)
        else:
            dataset = dataset.prefetch(buffer_bytes=BUFFER)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            running = iter(dataset)
            for _element in running:
                pass
            best = min(best, time.perf_counter() - start)
            if not is_tensorflow:
                marks = buffers.setdefault(name, {})
                for stage, most in running.report().stages:
                    if stage in SETTINGS:
                        marks[stage] = max(marks.get(stage, 0), most)
        rates[name] = count / best
    return {"rates": rates, "buffers": buffers}


def child(python: str, *arguments: str) -> dict[str, Any]:
    """What a process prints."""
    made = subprocess.run([python, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(made.stdout.splitlines()[-1])


def table(rounds: list[tuple[dict, dict | None]]) -> list[str]:
    """Medians of all rounds as a table."""
    lines = ["| | Taut / s | tf.data / s | ratio | buffer at most, of 4 MiB |", "|---|---|---|---|---|"]
    for name in rounds[0][0]["rates"]:
        own = [ours["rates"][name] for ours, _ in rounds]
        theirs = [peer["rates"][name] for _, peer in rounds if peer]
        most = max(ours["buffers"][name]["prefetch"] for ours, _ in rounds)
        assert most <= BUFFER, f"{name}: the buffer had {most} bytes"
        ratio = statistics.median(a / b for a, b in zip(own, theirs)) if theirs else float("nan")
        peer = f"{statistics.median(theirs):,.0f}" if theirs else "-"
        row = f"{statistics.median(own):,.0f} | {peer} | {ratio:.2f} | {most / 1024:,.0f} KiB"
        lines.append(f"| {TITLES[name]} | {row} |")
    return lines


def high_water(rounds: list[tuple[dict, dict | None]]) -> list[str]:
    """A line per pipeline: the most bytes of each buffer, and its setting."""
    lines = []
    for name in rounds[0][0]["buffers"]:
        marks: dict[str, int] = {}
        for ours, _ in rounds:
            for stage, most in ours["buffers"][name].items():
                marks[stage] = max(marks.get(stage, 0), most)
        parts = [f"{stage} {most / 1024:,.0f} KiB of {SETTINGS[stage]}" for stage, most in marks.items()]
        lines.append(f"{TITLES[name]}: buffers at most: {', '.join(parts)}")
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", help="an interpreter that has TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--book", help="the page whose table is replaced")
    parser.add_argument("--only", choices=TITLES, help="measure one row")
    parser.add_argument("--write", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--measure", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="taut", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(engine(options.engine), options.write)
        print("{}")
        return
    if options.measure:
        print(json.dumps(measure(engine(options.engine), options.measure, options.only)))
        return
    with tempfile.TemporaryDirectory() as folder:
        # The peer's encoder stores colours with half the resolution, as most pictures have them.
        writer = ("tensorflow", options.peer) if options.peer else ("taut", sys.executable)
        child(writer[1], "--write", folder, "--engine", writer[0])
        only = ["--only", options.only] if options.only else []
        rounds = []
        for number in range(options.rounds):
            ours = child(sys.executable, "--measure", folder, *only)
            peer = child(options.peer, "--measure", folder, "--engine", "tensorflow", *only) if options.peer else None
            rounds.append((ours, peer))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    lines = table(rounds)
    print("\n".join(lines))
    print("\n".join(high_water(rounds)))
    if options.book:
        with open(options.book) as file:
            page = file.read()
        before, rest = page.split("<!-- benches/files.py -->\n", 1)
        _, after = rest.split("<!-- end -->", 1)
        with open(options.book, "w") as file:
            file.write(before + "<!-- benches/files.py -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


if __name__ == "__main__":
    main()
