"""Sound files, lists of Arrow, ragged and sparse elements, queries: as datasets, and with errors that name the file."""

import sqlite3

import numpy as np
import pytest

import taut as tf


def lists(dataset):
    return [{key: np.asarray(value.numpy()).tolist() for key, value in row.items()} for row in dataset]


def write_sounds(folder):
    rng = np.random.default_rng(0)
    for kind in ("cat", "dog"):
        for i in range(3):
            samples = rng.uniform(-1, 1, (100 + i, 1)).astype(np.float32)
            tf.io.write_file(str(folder / kind / f"{i}.wav"), tf.audio.encode_wav(samples, 16000))


def test_sounds_of_folders_are_batches(tmp_path):
    write_sounds(tmp_path)
    sounds = tf.keras.utils.audio_dataset_from_directory(
        str(tmp_path), batch_size=4, output_sequence_length=120, shuffle=False
    )
    assert sounds.class_names == ["cat", "dog"]
    batches = [(audio.numpy(), labels.numpy().tolist()) for audio, labels in sounds]
    assert [(audio.shape, labels) for audio, labels in batches] == [
        ((4, 120, 1), [0, 0, 0, 1]),
        ((2, 120, 1), [1, 1]),
    ]
    whole = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    np.testing.assert_allclose(batches[0][0][0, :100], whole, atol=1 / 32768)
    assert not batches[0][0][0, 100:].any()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"RIFFabcdWAVX", "must be a WAV file"),
        (b"RIFFabcdWAVE", "its data part is missing"),
        (
            b"RIFFabcdWAVEfmt \x10\0\0\0\3\0\1\0" + bytes(10) + b"\x20\0",
            "expected samples of 16-bit PCM, got format 3 of 32",
        ),
        (b"RIFFabcdWAVEfmt \x02\0\0\0\1\0", "must have at least 16 bytes, got 2"),
        (b"RIFFabcdWAVEdata\x02\0\0\0ab", "must come before its data"),
    ],
)
def test_damaged_sounds_are_errors_with_their_file(tmp_path, contents, message):
    path = tmp_path / "x.wav"
    path.write_bytes(contents)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
        tf.audio.decode_wav(tf.io.read_file(str(path)))
    assert str(caught.value).startswith(f"{path}: ")


def test_a_damaged_picture_is_an_error_with_its_file(tmp_path):
    good, cut, other = (str(tmp_path / name) for name in ("good.jpg", "cut.jpg", "other.png"))
    picture = tf.io.encode_jpeg(np.full((16, 16, 3), 9, np.uint8)).numpy()
    for path, contents in ((good, picture), (cut, picture[: len(picture) // 2]), (other, b"text")):
        tf.io.write_file(path, contents)
    pictures = tf.data.Dataset.from_tensor_slices([good, cut, other, good])
    pictures = pictures.map(lambda path: tf.io.decode_image(tf.io.read_file(path)))
    running = iter(pictures)
    assert next(running).shape == [16, 16, 3]
    for path in (cut, other):
        with pytest.raises(tf.errors.DataLossError) as caught:
            next(running)
        assert str(caught.value).startswith(f"{path}: ") and "ignore_errors" in str(caught.value)
    left = iter(pictures.ignore_errors())
    assert len(list(left)) == 2 and left.report().ignored_errors == 2


def test_a_table_of_numbers_names_the_line(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("a 1\nb two\n")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"table.txt, line 2: expected a number of type int64, got 'two'"
    ):
        tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter=" ")


def test_lists_of_arrow_and_parquet_are_rows_of_different_lengths(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"ids": [[1, 2], [], [3, 4, 5]], "n": [1, 2, 3], "words": [["a"], ["b", "c"], []]})
    wanted = [
        {"ids": [1, 2], "n": 1, "words": [b"a"]},
        {"ids": [], "n": 2, "words": [b"b", b"c"]},
        {"ids": [3, 4, 5], "n": 3, "words": []},
    ]
    path = str(tmp_path / "x.parquet")
    pq.write_table(table, path)
    assert lists(tf.data.Dataset.from_arrow(table)) == wanted
    assert lists(tf.data.Dataset.from_arrow(table.slice(1))) == wanted[1:]
    assert lists(tf.data.Dataset.from_parquet(path, batch_rows=2)) == wanted
    batch = next(iter(tf.data.Dataset.from_parquet(path).padded_batch(3)))
    assert batch["ids"].numpy().tolist() == [[1, 2, 0], [0, 0, 0], [3, 4, 5]]
    with pytest.raises(ValueError, match=r"x.parquet: columns must be among \['ids', 'n', 'words'\], got 'age'"):
        list(tf.data.Dataset.from_parquet(path, columns=["age"]))
    with pytest.raises(tf.errors.NotFoundError, match="nothing.parquet: no such file"):
        list(tf.data.Dataset.from_parquet(str(tmp_path / "nothing.parquet")))
    tf.io.write_file(path, b"PAR1xxxxPAR1")
    with pytest.raises(tf.errors.DataLossError, match="x.parquet: "):
        list(tf.data.Dataset.from_parquet(path))


def test_datasets_of_hugging_face_are_read_through_arrow():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["good", "bad", "ok"], "label": [1, 0, 1], "ids": [[1], [2, 3], []]})
    assert lists(tf.data.Dataset.from_arrow(made.select([2, 0]))) == [
        {"text": b"ok", "label": 1, "ids": []},
        {"text": b"good", "label": 1, "ids": [1]},
    ]


def test_ragged_tensors_in_datasets():
    rows = tf.data.Dataset.from_tensor_slices((tf.ragged.constant([[1, 2], [3], [4, 5, 6]]), ["a", "b", "c"]))
    assert [(ids.numpy().tolist(), word.numpy()) for ids, word in rows] == [
        ([1, 2], b"a"),
        ([3], b"b"),
        ([4, 5, 6], b"c"),
    ]
    assert rows.element_spec == (tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.string))
    batches = [(ids.to_list(), words.numpy().tolist()) for ids, words in rows.ragged_batch(2)]
    assert batches == [([[1, 2], [3]], [b"a", b"b"]), ([[4, 5, 6]], [b"c"])]
    assert len(list(rows.ragged_batch(2, drop_remainder=True))) == 1
    words = tf.data.Dataset.from_tensor_slices([["a b", "c"], ["d", "e f"]]).map(tf.strings.split)
    # TensorFlow 2.21 knows that there are two rows; here, functions of strings run op by op, element by element.
    assert words.element_spec == tf.RaggedTensorSpec([None, None], tf.string, 1)
    (batch,) = words.ragged_batch(2)
    assert batch.to_list() == [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e", b"f"]]]
    (batch,) = words.batch(2)
    assert batch.to_list() == [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e", b"f"]]]


def test_sparse_tensors_in_datasets():
    rows = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2]]))
    assert [tf.sparse.to_dense(row).numpy().tolist() for row in rows] == [[1, 0], [0, 2]]
    assert rows.element_spec == tf.SparseTensorSpec([2], tf.int32)
    (batch,) = rows.batch(2)
    assert tf.sparse.to_dense(batch).numpy().tolist() == [[1, 0], [0, 2]]
    made = tf.data.Dataset.range(2).map(lambda i: tf.sparse.from_dense(tf.stack([i + 1, i + 1])))
    (batch,) = made.batch(2)
    assert tf.sparse.to_dense(batch).numpy().tolist() == [[1, 1], [2, 2]]
    (batch,) = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[7], [8, 9]])).sparse_batch(2, [None])
    assert batch.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert batch.values.numpy().tolist() == [7, 8, 9] and list(batch.shape) == [2, 2]


def test_examples_of_files_are_batches(tmp_path):
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(5):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            features = tf.train.Features(feature={"x": feature, "y": feature})
            writer.write(tf.train.Example(features=features).SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([], tf.int64), "y": tf.io.FixedLenFeature([], tf.int64)}
    made = tf.data.experimental.make_batched_features_dataset(path, 2, spec, label_key="y", num_epochs=1, shuffle=False)
    assert [(x["x"].numpy().tolist(), y.numpy().tolist()) for x, y in made] == [
        ([0, 1], [0, 1]),
        ([2, 3], [2, 3]),
        ([4], [4]),
    ]
    assert all("y" not in x for x, _ in made)
    with pytest.raises(ValueError, match=r"label_key must be one of the features \['x', 'y'\], got 'z'"):
        tf.data.experimental.make_batched_features_dataset(path, 2, spec, label_key="z")


def test_rows_of_a_query(tmp_path):
    path = str(tmp_path / "base.db")
    with sqlite3.connect(path) as base:
        base.execute("create table people (name text, age integer, score real)")
        base.executemany("insert into people values (?, ?, ?)", [("ann", 31, 0.5), ("bob", None, 1.5)])
    query = "select name, age, score from people order by name"
    rows = tf.data.experimental.SqlDataset("sqlite", path, query, (tf.string, tf.int32, tf.float64))
    assert [tuple(value.numpy() for value in row) for row in rows] == [(b"ann", 31, 0.5), (b"bob", 0, 1.5)]
    wrong = tf.data.experimental.SqlDataset("sqlite", path, "select missing from people", (tf.string,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="base.db: no such column: missing"):
        list(wrong)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos3", "area", "gaussian", "mitchellcubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_pixels_are_resized_as_in_a_function(method, antialias):
    rng = np.random.default_rng(1)
    for shape, size in (([17, 23, 3], [8, 40]), ([2, 40, 9, 1], [9, 8]), ([30, 5, 2], [30, 7]), ([9, 64, 4], [9, 9])):
        pixels = rng.integers(0, 256, shape).astype(np.uint8)

        def resize(x, size=size):
            return tf.image.resize(x, size, method=method, antialias=antialias)

        eager, traced = resize(tf.constant(pixels)), tf.function(resize)(tf.constant(pixels))
        np.testing.assert_array_equal(eager, traced)
        np.testing.assert_array_equal(eager, resize(tf.constant(pixels.astype(np.float32))))
    turned = np.transpose(pixels, (1, 0, 2))[::-1]
    np.testing.assert_array_equal(resize(tf.constant(turned.copy())), resize(turned))


def test_sparse_functions():
    eye = tf.sparse.eye(2, 3)
    assert tf.sparse.to_dense(eye).numpy().tolist() == [[1, 0, 0], [0, 1, 0]]
    doubled = tf.sparse.map_values(tf.multiply, eye, 2.0)
    assert tf.sparse.to_dense(doubled).numpy().tolist() == [[2, 0, 0], [0, 2, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="equal indices and shapes"):
        tf.sparse.map_values(tf.add, eye, tf.sparse.eye(3))


def test_gradients_of_sparse_embeddings():
    table = tf.Variable(np.arange(10.0, dtype=np.float32).reshape(5, 2))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 1], [2, 2])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup_sparse(table, ids, None, "mean"))
    gradient = tf.convert_to_tensor(tape.gradient(loss, table))
    assert gradient.numpy().tolist() == [[0, 0], [1.5, 1.5], [0, 0], [0.5, 0.5], [0, 0]]


def test_sounds_are_written_to_event_files(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        assert tf.summary.audio("sound", np.zeros((2, 5, 1), np.float32), 8000, step=1)
        with pytest.raises(ValueError, match="encoding must be 'wav'"):
            tf.summary.audio("sound", np.zeros((2, 5, 1), np.float32), 8000, step=1, encoding="mp3")
    writer.close()
    (path,) = tmp_path.iterdir()
    (event,) = [one.numpy() for one in tf.data.TFRecordDataset(str(path)) if b"sound" in one.numpy()]
    assert event.count(b"RIFF") == 2 and b"audio" in event


def test_name_scopes_are_part_of_tags(tmp_path):
    summary = tf.summary
    with summary.create_file_writer(str(tmp_path)).as_default(), tf.name_scope("outer"):
        summary.scalar("loss", 1.0, step=1)
        with tf.name_scope("inner"):
            summary.text("note", "x", step=1)
        with summary.experimental.summary_scope("b") as scope:
            assert scope == ("outer/b", "outer/b/")
        # As TensorFlow writes one value: buckets without width, of which the last has all.
        summary.histogram("same", [1.0, 1.0, 1.0], step=2, buckets=2)
        summary.flush()
    (path,) = tmp_path.iterdir()
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    for record, tag in zip(records[1:], (b"outer/loss", b"outer/inner/note", b"outer/same")):
        assert bytes([len(tag)]) + tag in record
    assert np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 3.0]]).tobytes() in records[3]
