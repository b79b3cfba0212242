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


def plain(dataset):
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), row) for row in dataset]


def test_structs_are_dicts_and_slices_keep_their_rows():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "point": pa.array([{"x": 1, "name": b"p"}, {"x": 2, "name": b"q"}, {"x": 3, "name": b"r"}]),
            "pairs": pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int32(), 2))),
            "parts": pa.array([[{"n": 1.0}], [{"n": 2.0}, {"n": 3.0}], []]),
        }
    )
    made = tf.data.Dataset.from_arrow(table.slice(1), columns=["point", "parts"])
    assert [row["point"]["x"].numpy() for row in made] == [2, 3]
    assert [row["point"]["name"].numpy() for row in made] == [b"q", b"r"]
    assert [row["parts"]["n"].numpy().tolist() for row in made] == [[2.0, 3.0], []]
    pairs = tf.data.Dataset.from_arrow(table, columns=["pairs"])
    assert plain(pairs) == [{"pairs": [[1, 2]]}, {"pairs": []}, {"pairs": [[3, 4], [5, 6]]}]
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0).reshape(2, 2, 3))
    assert tf.data.Dataset.from_arrow(pa.table({"m": tensors})).element_spec["m"].shape == [2, 3]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"'point.x' must have no missing values, got 1\n.*fill_null"
    ):
        tf.data.Dataset.from_arrow(pa.table({"point": [{"x": 1}, {"x": None}]}))
    with pytest.raises(TypeError, match=r"(?s)'day' of type date32.*help: Table.cast"):
        tf.data.Dataset.from_arrow(pa.table({"day": pa.array([1], pa.date32())}))


def test_every_source_of_arrow_is_a_table():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"age": [31, 7]})

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    for source in (table, table.to_batches()[0], table.to_reader(), Stream()):
        assert plain(tf.data.Dataset.from_arrow(source)) == [{"age": 31}, {"age": 7}]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [31, 7]}, index=["a", "b"])
    assert plain(tf.data.Dataset.from_arrow(frame)) == [{"age": 31}, {"age": 7}]
    with pytest.raises(TypeError, match="expected a table of Arrow, a frame or a datasets.Dataset, got 3"):
        tf.data.Dataset.from_arrow(3)


def test_pictures_of_a_table_have_contents_or_a_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    encoded = tf.io.encode_png(np.zeros([2, 3, 3], np.uint8)).numpy()
    (tmp_path / "b.png").write_bytes(encoded)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    stored = [{"bytes": encoded, "path": None}, {"bytes": None, "path": str(tmp_path / "b.png")}]
    made = tf.data.Dataset.from_arrow(pa.table({"image": pa.array(stored, kind)}))
    first, second = (row["image"] for row in made)
    assert tf.io.decode_image(first["bytes"]).shape == [2, 3, 3] and first["path"] == ""
    assert second["bytes"] == "" and tf.io.read_file(second["path"]).numpy() == encoded


def test_datasets_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    rows = {"text": ["a b", "c", "d"], "label": [0, 1, 2], "ids": [[1, 2], [3], []]}
    made = datasets.Dataset.from_dict(rows)
    wanted = [dict(zip(rows, row)) for row in zip([b"a b", b"c", b"d"], rows["label"], rows["ids"])]
    assert plain_bytes(tf.data.Dataset.from_arrow(made)) == wanted
    assert plain_bytes(tf.data.Dataset.from_arrow(made.select([2, 0]))) == [wanted[2], wanted[0]]
    streamed = tf.data.Dataset.from_arrow(made.to_iterable_dataset())
    assert plain_bytes(streamed) == wanted and plain_bytes(streamed) == wanted
    features = datasets.Features({"m": datasets.Array2D((2, 3), "float32")})
    arrays = datasets.Dataset.from_dict({"m": [np.ones((2, 3)), np.zeros((2, 3))]}, features=features)
    assert tf.data.Dataset.from_arrow(arrays).element_spec["m"].shape == [2, 3]
    assert tf.constant(made["label"]).numpy().tolist() == rows["label"]


def plain_bytes(dataset):
    def value(leaf):
        return leaf.numpy() if leaf.dtype == tf.string else leaf.numpy().tolist()

    return [tf.nest.map_structure(value, row) for row in dataset]


def test_other_sequences_are_lists():
    from collections import UserList

    assert tf.constant(UserList([1, 2])).dtype == tf.int32
    assert tf.convert_to_tensor(UserList([[0.5], [1.5]])).shape == [2, 1]
    assert tf.constant(UserList(["a", "b"])).numpy().tolist() == [b"a", b"b"]
    with pytest.raises(ValueError, match="expected an array of numbers of one type"):
        tf.constant(UserList([object()]))
