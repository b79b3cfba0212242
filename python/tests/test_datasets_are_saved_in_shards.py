"""`Dataset.save` with `shard_func`, `load` with `reader_func`, ragged and sparse elements. The values are TensorFlow 2.21's."""

import json
import os

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


def test_snapshots_in_shards(tmp_path):
    computed = []

    def note(x):
        computed.append(int(x))
        return x

    def made():
        source = Dataset.range(6).map(lambda x: tf.numpy_function(note, [x], tf.TensorSpec([], tf.int64)))
        return source.snapshot(str(tmp_path / "snapshot"), shard_func=lambda x: x % 2, reader_func=flat)

    assert values(made().take(2)) == [0, 1] and not os.path.exists(tmp_path / "snapshot" / "dataset.json")
    assert values(made()) == [0, 1, 2, 3, 4, 5]
    count = len(computed)
    assert values(made()) == [0, 2, 4, 1, 3, 5]
    assert len(computed) == count


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
