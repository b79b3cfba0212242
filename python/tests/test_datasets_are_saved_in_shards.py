"""`Dataset.save` with `shard_func`, `load` with `reader_func`, ragged and sparse elements. The values are TensorFlow 2.21's."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import taut as tf

Dataset = tf.data.Dataset


def values(dataset):
    return list(dataset.as_numpy_iterator())


def flat(datasets):
    return datasets.flat_map(lambda one: one)


def test_each_shard_is_a_dataset(tmp_path):
    path = str(tmp_path / "shards")
    Dataset.range(10).save(path, shard_func=lambda x: x % 3)
    assert len(os.listdir(path)) == 4
    assert values(Dataset.load(path, reader_func=flat)) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    assert values(Dataset.load(path, reader_func=lambda all: all.interleave(lambda x: x, cycle_length=2))) == [
        *(0, 1, 3, 4, 6, 7, 9, 2, 5, 8)
    ]
    seen = []

    def reader(datasets):
        seen.append(datasets.element_spec)
        return flat(datasets.take(1)).map(lambda x: x * 10)

    assert values(Dataset.load(path, reader_func=reader)) == [0, 30, 60, 90]
    assert "DatasetSpec(TensorSpec(shape=(), dtype=tf.int64" in repr(seen[0])
    # One element of each file after the other: TensorFlow's order on a machine of at least three processors.
    loaded = Dataset.load(path)
    assert values(loaded) == list(range(10)) and len(loaded) == 10


def test_elements_that_are_structures(tmp_path):
    path = str(tmp_path / "dict")
    Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}).save(
        path, shard_func=lambda element: tf.cast(element["a"], tf.int64) % 2
    )
    assert values(Dataset.load(path)) == [{"a": 2, "b": 2.0}, {"a": 1, "b": 1.0}, {"a": 3, "b": 3.0}]
    path = str(tmp_path / "pair")
    Dataset.from_tensor_slices(([1, 2, 3], ["x", "yy", "zzz"])).save(
        path, shard_func=lambda a, b: tf.cast(a, tf.int64) % 2
    )
    assert values(Dataset.load(path)) == [(2, b"yy"), (1, b"x"), (3, b"zzz")]


@pytest.mark.parametrize("number", [lambda x: 0.5, lambda x: tf.cast(x, tf.int32), lambda x: 7, lambda x: x[None]])
def test_a_number_of_another_type_is_refused_and_nothing_is_written(tmp_path, number):
    path = str(tmp_path / "wrong")
    with pytest.raises(tf.errors.InvalidArgumentError, match="shard_func must return a scalar int64"):
        Dataset.range(3).save(path, shard_func=number)
    assert os.listdir(path) == []


def test_many_shards_and_gzip(tmp_path):
    path = str(tmp_path / "many")
    for compression in (None, "GZIP"):
        Dataset.range(400).save(path, compression=compression, shard_func=lambda x: x % 150)
        assert len(os.listdir(path)) == 151
        found = values(Dataset.load(path, compression=compression, reader_func=flat))
        assert found == sorted(range(400), key=lambda x: (x % 150, x))


def test_an_empty_dataset(tmp_path):
    path = str(tmp_path / "empty")
    Dataset.range(0).save(path, shard_func=lambda x: x)
    assert values(Dataset.load(path)) == [] and Dataset.load(path).element_spec == tf.TensorSpec([], tf.int64)
    assert values(Dataset.load(path, reader_func=flat)) == []


def test_ragged_and_sparse_elements(tmp_path):
    rows = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
    Dataset.from_tensor_slices(rows).batch(2).save(str(tmp_path / "ragged"))
    loaded = Dataset.load(str(tmp_path / "ragged"))
    assert loaded.element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert [one.to_list() for one in loaded] == [[[1, 2], [3]], [[], [4, 5, 6]]]
    deep = tf.ragged.constant([[[["a"], []], [["b", "cc"]]], [[[]]]])
    Dataset.from_tensor_slices({"r": deep, "n": [1, 2]}).save(
        str(tmp_path / "deep"), shard_func=lambda e: tf.cast(e["n"], tf.int64)
    )
    assert [(one["r"].to_list(), int(one["n"])) for one in Dataset.load(str(tmp_path / "deep"))] == [
        ([[[b"a"], []], [[b"b", b"cc"]]][0:2], 1),
        ([[[]]], 2),
    ]
    sparse = tf.sparse.from_dense([[1.0, 0, 2], [0, 0, 3]])
    Dataset.from_tensor_slices(sparse).save(str(tmp_path / "sparse"), compression="GZIP")
    loaded = Dataset.load(str(tmp_path / "sparse"))
    assert loaded.element_spec == tf.SparseTensorSpec([3], tf.float32)
    assert [tf.sparse.to_dense(one).numpy().tolist() for one in loaded] == [[1, 0, 2], [0, 0, 3]]


class Calls:
    """What a function notes beside its result: no part of what it computes."""

    number = 0


def test_snapshots_in_shards(tmp_path):
    calls = Calls()

    def note(x):
        calls.number += 1
        return x

    def made():
        source = Dataset.range(6).map(lambda x: tf.numpy_function(note, [x], tf.TensorSpec([], tf.int64)))
        return source.snapshot(str(tmp_path / "snapshot"), shard_func=lambda x: x % 2, reader_func=flat)

    assert values(made().take(2)) == [0, 1] and not list(tmp_path.glob("snapshot/*/dataset.json"))
    assert values(made()) == [0, 1, 2, 3, 4, 5]
    count = calls.number
    assert values(made()) == [0, 2, 4, 1, 3, 5]
    assert calls.number == count


def test_folders_of_the_first_version_are_read(tmp_path):
    path = str(tmp_path / "old")
    Dataset.range(3).save(path)
    with open(os.path.join(path, "dataset.json")) as file:
        index = json.load(file)
    index["version"], index["data"] = 1, index.pop("shards")[0]["data"]
    with open(os.path.join(path, "dataset.json"), "w") as file:
        json.dump(index, file)
    assert values(Dataset.load(path)) == [0, 1, 2]


def test_options(tmp_path):
    path = str(tmp_path / "options")
    for compression in (None, "", "NONE", "AUTO", "GZIP"):
        Dataset.range(2).save(path, compression=compression)
        assert values(Dataset.load(path, compression=compression, wait=True)) == [0, 1]
    with pytest.raises(ValueError, match="'SNAPPY'"):
        Dataset.range(2).save(path, compression="SNAPPY")
    with pytest.raises(TypeError, match="must be tensors"):
        Dataset.range(4).window(2).save(path)


TIMES = 2


def times(x):
    return x * TIMES


def twice():
    return Dataset.range(3).map(lambda x: x * 2)


PIPELINES = {
    "source": lambda: Dataset.range(3),
    "length": lambda: Dataset.range(4),
    "constant": twice,
    "other constant": lambda: Dataset.range(3).map(lambda x: x * 3),
    "captured": lambda: (lambda n: Dataset.range(3).map(lambda x: x * n))(4),
    "other capture": lambda: (lambda n: Dataset.range(3).map(lambda x: x * n))(5),
    "two stages": lambda: twice().map(lambda x: x + 1),
    "arguments": lambda: Dataset.from_tensor_slices(np.array([7, 8, 9])).skip(1),
    "other arguments": lambda: Dataset.from_tensor_slices(np.array([7, 8, 9])).skip(2),
    "tensors": lambda: Dataset.from_tensor_slices(np.array([7, 8, 1])).skip(2),
    "zipped": lambda: Dataset.zip((twice(), Dataset.range(3))).map(lambda x, y: x - y),
    "zipped the other way": lambda: Dataset.zip((Dataset.range(3), twice())).map(lambda x, y: x - y),
    "strings": lambda: Dataset.from_tensor_slices(["a", "bc"]).map(tf.strings.length),
    "other strings": lambda: Dataset.from_tensor_slices(["a", "bcd"]).map(tf.strings.length),
    "transformation": lambda: Dataset.range(3).apply(tf.data.experimental.map_and_batch(lambda x: x - 9, 1)).unbatch(),
    "generator": lambda: Dataset.from_generator(lambda: iter([5]), output_signature=tf.TensorSpec([], tf.int64)),
    "other generator": lambda: Dataset.from_generator(lambda: iter([6]), output_signature=tf.TensorSpec([], tf.int64)),
}


def test_a_snapshot_of_another_pipeline_is_not_read(tmp_path):
    # TensorFlow has a folder for the fingerprint of each pipeline.
    path = str(tmp_path / "snapshot")
    for _ in range(2):
        for name, made in PIPELINES.items():
            assert values(made().snapshot(path)) == values(made()), name
    assert len(os.listdir(path)) == len(PIPELINES)
    (path_of_lines := tmp_path / "a.txt").write_text("one\n")
    lines = Dataset.from_tensor_slices([1]).snapshot(str(tmp_path / "lines"))
    assert values(lines) == [1]
    texts = tf.data.TextLineDataset(str(path_of_lines)).map(tf.strings.length).snapshot(str(tmp_path / "lines"))
    assert values(texts) == [3]


def test_a_snapshot_is_not_read_if_a_name_in_a_function_has_changed(tmp_path, monkeypatch):
    path = str(tmp_path / "snapshot")
    assert values(Dataset.range(3).map(times).snapshot(path)) == [0, 2, 4]
    monkeypatch.setitem(globals(), "TIMES", 5)
    assert values(Dataset.range(3).map(times).snapshot(path)) == [0, 5, 10]
    monkeypatch.setitem(globals(), "TIMES", 2)
    assert values(Dataset.range(3).map(times).snapshot(path)) == [0, 2, 4]
    assert len(os.listdir(path)) == 2


def test_a_snapshot_is_read_in_another_run_of_the_program(tmp_path):
    code = (
        "import sys, taut as tf\n"
        "def note(x):\n"
        "    print('computed')\n"
        "    return x\n"
        "scale = tf.constant(2.0)\n"
        "data = tf.data.Dataset.from_tensor_slices({'a': [1, 2]}).shuffle(2, seed=1)\n"
        "data = data.map(lambda row: tf.py_function(note, [row['a']], tf.int32)).map(lambda x: tf.cast(x, tf.float32) * scale)\n"
        "print(sorted(float(x) for x in data.snapshot(sys.argv[1])))\n"
    )
    (program := tmp_path / "program.py").write_text(code)
    command = [sys.executable, "-W", "ignore", str(program), str(tmp_path / "snapshot")]
    runs = [subprocess.run(command, capture_output=True, text=True).stdout.split("\n") for _ in range(2)]
    assert [len(lines) for lines in runs] == [4, 2] and runs[0][-2:] == runs[1] == ["[2.0, 4.0]", ""]
