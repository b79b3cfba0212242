"""Lists without elements have no type, functions of datasets may modify their arguments, examples keep TensorFlow's order."""

import numpy as np
import pytest

import taut as tf


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([tf.constant([1, 2]), []], "int32", [1, 2]),
        ([[], tf.constant([1], tf.int64)], "int64", [1]),
        ([tf.constant([True]), []], "bool", [True]),
        ([tf.constant([1, 2]), np.array([])], "int32", [1, 2]),
        ([tf.shape(tf.zeros([3, 2])), []], "int32", [3, 2]),
        ([[1], []], "int32", [1]),
        ([tf.constant(["a"]), []], "string", [b"a"]),
        ([[], []], "float32", []),
    ],
)
def test_an_empty_list_takes_the_type_of_the_others(values, dtype, wanted):
    made = tf.concat(values, 0)
    assert made.dtype.name == dtype and made.numpy().tolist() == wanted


def table():
    return tf.data.Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]})


def test_functions_of_datasets_may_modify_their_arguments():
    def add(state, row):
        state["sum"] += row["a"]
        state["count"] += 1
        return state

    def running(state, row):
        state["sum"] += row.pop("a")
        return state, state["sum"]

    def parity(row):
        row["odd"] = row["a"] % 2
        return tf.cast(row["odd"], tf.int64)

    first = {"sum": 0, "count": 0}
    assert {name: int(value) for name, value in table().reduce(first, add).items()} == {"sum": 6, "count": 3}
    assert first == {"sum": 0, "count": 0}
    assert [int(value) for value in table().scan({"sum": 0}, running)] == [1, 3, 6]
    groups = table().group_by_window(parity, lambda _, rows: rows.batch(2), 2)
    found = [{name: value.numpy().tolist() for name, value in group.items()} for group in groups]
    assert found == [{"a": [1, 3], "b": [4, 6]}, {"a": [2], "b": [5]}]


def test_other_functions_may_not():
    @tf.function
    def grown(row):
        row["c"] = row["a"]
        return row

    with pytest.raises(ValueError, match="must not modify its arguments"):
        grown({"a": tf.constant(1)})


def test_features_are_in_the_order_of_tensorflow():
    features = {
        "w": tf.io.RaggedFeature(tf.float32),
        "i": tf.io.FixedLenFeature([], tf.int64, 7),
        "v": tf.io.VarLenFeature(tf.float32),
        "a": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "k": tf.io.SparseFeature("at", "v", tf.float32, 3),
        "b": tf.io.VarLenFeature(tf.int64),
    }
    empty = tf.train.Example().SerializeToString()
    wanted = ["b", "v", "a", "i", "w", "k"]
    assert list(tf.io.parse_example([empty], features)) == wanted
    assert list(tf.io.parse_single_example(empty, features)) == wanted


def test_texts_are_written_in_functions(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def step(number):
        with writer.as_default():
            tf.summary.text("words", "good", step=number)

    for number in tf.range(3, dtype=tf.int64):
        step(number)
    writer.flush()
    records = [record.numpy() for record in tf.data.TFRecordDataset([str(path) for path in tmp_path.iterdir()])]
    assert sum(b"good" in record for record in records) == 3


def test_a_folder_of_a_profile_that_was_not_made(tmp_path):
    tf.summary.trace_on(graph=True)
    tf.function(lambda x: x + 1.0)(tf.ones([2]))
    with tf.summary.create_file_writer(str(tmp_path / "logs")).as_default():
        tf.summary.trace_export("step", step=0, profiler_outdir=str(tmp_path / "profile"))
    assert not (tmp_path / "profile").exists()


def test_functions_of_tensorflow_1_that_did_not_change():
    v1 = tf.compat.v1
    assert v1.scan(lambda a, b: a + b, tf.range(4)).numpy().tolist() == [0, 1, 3, 6]
    assert int(v1.foldl(lambda a, b: a - b, tf.constant([5, 1, 2]))) == 2
    assert int(v1.foldr(lambda a, b: a - b, tf.constant([5, 1, 2]))) == -4
    assert v1.math.in_top_k([[0.1, 0.9], [0.8, 0.2]], [1, 1], 1).numpy().tolist() == [True, False]
    image, filters = tf.reshape(tf.range(9.0), [1, 3, 3, 1]), tf.ones([2, 2, 1, 1])
    assert tf.squeeze(v1.nn.convolution(image, filters, "VALID")).numpy().tolist() == [[8.0, 12.0], [20.0, 24.0]]
    assert v1.nn.convolution(image, filter=filters, padding="VALID", dilation_rate=[2, 2]).numpy().item() == 16.0
