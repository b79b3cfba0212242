"""Tables of other libraries as datasets: pandas frames, Arrow tables, Parquet files."""

import numpy as np
import pytest

import taut as tf

COLUMNS = {"name": ["ann", "", "çé"], "age": [31, 7, 90], "score": [0.5, -1.0, 2.25], "member": [True, False, True]}


def rows(dataset):
    return [{key: value.numpy() for key, value in row.items()} for row in dataset]


WANTED = [
    {"name": name.encode(), "age": age, "score": score, "member": member}
    for name, age, score, member in zip(*COLUMNS.values())
]


def test_a_frame_is_a_dictionary_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COLUMNS)
    assert rows(tf.data.Dataset.from_tensor_slices(dict(frame))) == WANTED
    numbers = frame[["age", "score"]]
    np.testing.assert_array_equal(tf.convert_to_tensor(numbers), numbers.to_numpy())
    assert tf.constant(frame["name"]).numpy().tolist() == [row["name"] for row in WANTED]


def test_an_arrow_table_shares_its_memory():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS)
    assert rows(tf.data.Dataset.from_arrow(table)) == WANTED
    large = pa.table({"x": np.zeros(1 << 16)})
    before = tf.memory.live_bytes()
    made = tf.data.Dataset.from_arrow(large)
    assert tf.memory.live_bytes() - before < 1 << 12, "the column is not copied"
    assert next(iter(made.batch(1 << 16)))["x"].shape == [1 << 16]
    assert rows(tf.data.Dataset.from_arrow(table, columns=["age"])) == [{"age": age} for age in COLUMNS["age"]]
    coded = pa.table({"word": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert [row["word"] for row in rows(tf.data.Dataset.from_arrow(coded))] == [b"a", b"b", b"a"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="'age' must have no missing values, got 1"):
        tf.data.Dataset.from_arrow(pa.table({"age": [1, None]}))


def test_a_parquet_file_is_read_in_parts(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = str(tmp_path / "people.parquet")
    pq.write_table(pa.table(COLUMNS), path)
    assert rows(tf.data.Dataset.from_parquet(path)) == WANTED
    assert rows(tf.data.Dataset.from_parquet([path, path], columns=["name"], batch_rows=2)) == [
        {"name": row["name"]} for row in WANTED * 2
    ]
