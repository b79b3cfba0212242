"""Files as datasets: text lines, records, tables, pictures; what is damaged is an error that says where."""

import gc
import gzip
import os
import zlib

import numpy as np
import pytest

import taut as tf


def values(dataset):
    return [element.numpy() for element in dataset]


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def written(folder, name, contents):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(contents)
    return path


def records(folder, name, values, compression=""):
    path = os.path.join(folder, name)
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression)) as writer:
        for value in values:
            writer.write(value)
    return path


def test_lines_have_no_ends_and_files_follow_each_other(folder):
    a = written(folder, "a.txt", b"one\ntwo\r\n\nlast")
    b = written(folder, "b.txt", b"x\n")
    empty = written(folder, "empty.txt", b"")
    assert values(tf.data.TextLineDataset([a, empty, b])) == [b"one", b"two", b"", b"last", b"x"]
    assert values(tf.data.TextLineDataset(tf.data.Dataset.from_tensor_slices([b, a]))) == [
        b"x", b"one", b"two", b"", b"last",
    ]  # fmt: skip
    assert values(tf.data.TextLineDataset([a, b], num_parallel_reads=2)) == [b"one", b"x", b"two", b"", b"last"]
    assert tf.data.TextLineDataset(a).element_spec == tf.TensorSpec([], tf.string)


def test_compressed_files_are_read(folder):
    packed = gzip.compress(b"a\nb\n") + gzip.compress(b"c\n")
    assert values(tf.data.TextLineDataset(written(folder, "a.gz", packed), "GZIP")) == [b"a", b"b", b"c"]
    assert values(tf.data.TextLineDataset(written(folder, "a.z", zlib.compress(b"a\nb")), "ZLIB")) == [b"a", b"b"]
    with pytest.raises(tf.errors.DataLossError, match=r"a\.bad"):
        values(tf.data.TextLineDataset(written(folder, "a.bad", packed[:-9]), "GZIP"))
    with pytest.raises(ValueError, match="compression_type"):
        tf.data.TextLineDataset(written(folder, "a", b""), "BZIP")


def test_a_missing_file_is_named(folder):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        list(tf.data.TextLineDataset(os.path.join(folder, "nowhere")))
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        tf.io.read_file(os.path.join(folder, "nowhere"))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_come_back_as_they_were_written(folder, compression):
    written = [b"first", b"", bytes(range(256)) * 300]
    path = records(folder, "a", written, compression)
    assert values(tf.data.TFRecordDataset(path, compression)) == written
    assert values(tf.data.TFRecordDataset([path, path], compression)) == written * 2


def test_tensorflows_record_file_is_read(folder):
    # Written by TensorFlow: two records, `abc` and `d`.
    contents = bytes.fromhex("0300000000000000b099490e6162636e57f12101000000000000000175de41641ad3dc50")
    assert values(tf.data.TFRecordDataset(written(folder, "tf", contents))) == [b"abc", b"d"]


@pytest.mark.parametrize(
    ("place", "message"), [(0, "length .* checksum"), (13, "byte 0 must match"), (-1, "byte 21 must match")]
)
def test_a_changed_byte_of_a_record_file_is_found(folder, place, message):
    path = records(folder, "a", [b"hello", b"world"])
    contents = bytearray(open(path, "rb").read())
    contents[place] ^= 1
    damaged = written(folder, "b", bytes(contents))
    with pytest.raises(tf.errors.DataLossError, match=message) as error:
        values(tf.data.TFRecordDataset(damaged))
    assert damaged in str(error.value)


def test_a_truncated_record_file_is_an_error_at_its_byte(folder):
    contents = open(records(folder, "a", [b"hello", b"world"]), "rb").read()
    for cut in range(len(contents) // 2 + 1, len(contents)):
        with pytest.raises(tf.errors.DataLossError, match="the record at byte 21 is truncated"):
            values(tf.data.TFRecordDataset(written(folder, "b", contents[:cut])))


def test_records_of_a_fixed_length(folder):
    path = written(folder, "a", b"HEADaabbccFT")
    assert values(tf.data.FixedLengthRecordDataset(path, 2, 4, 2)) == [b"aa", b"bb", b"cc"]
    assert values(tf.data.FixedLengthRecordDataset(path, 3)) == [b"HEA", b"Daa", b"bbc", b"cFT"]
    assert values(tf.data.FixedLengthRecordDataset(path, 2, 4, 2, buffer_size=1)) == [b"aa", b"bb", b"cc"]
    with pytest.raises(tf.errors.DataLossError, match="whole records of 5"):
        values(tf.data.FixedLengthRecordDataset(path, 5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="record_bytes must be >= 1"):
        tf.data.FixedLengthRecordDataset(path, 0)


TABLE = b'name,age,score\nann,31,0.5\n"b, ""c""",,1.5\ndora,7,\n'


def test_rows_of_a_table(folder):
    path = written(folder, "a.csv", TABLE)
    rows = list(tf.data.experimental.CsvDataset(path, [tf.string, 0, [-1.0]], header=True))
    assert [tuple(x.numpy() for x in row) for row in rows] == [
        (b"ann", 31, 0.5), (b'b, "c"', 0, 1.5), (b"dora", 7, -1.0),
    ]  # fmt: skip
    chosen = tf.data.experimental.CsvDataset(path, [-5], header=True, select_cols=[1])
    assert [row[0].numpy() for row in chosen] == [31, -5, 7]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"h,i\n1,2\n3\n", r"line 3: a row must have 2 fields, got 1"),
        (b"h,i\n1,2\n3,x\n", r'line 3: field 1 must be int32, got "x"'),
        (b"h,i\n1,\n", r"line 2: field 1 is required"),
        (b"h,i\n1,99999999999\n", r"line 2: field 1 must be int32"),
        (b"h,i\n1,\xff\n", r"line 2: field 1 must be int32"),
    ],
)
def test_a_bad_row_is_an_error_with_file_and_line(folder, contents, message):
    path = written(folder, "bad.csv", contents)
    with pytest.raises(tf.errors.DataLossError, match=message) as error:
        list(tf.data.experimental.CsvDataset(path, [tf.int32, tf.int32], header=True))
    assert path in str(error.value)


def test_a_table_as_batches_of_named_columns(folder):
    path = written(folder, "a.csv", TABLE)
    options = {"num_epochs": 1, "shuffle": False}
    (batch,) = tf.data.experimental.make_csv_dataset(path, 3, **options)
    assert {key: value.dtype for key, value in batch.items()} == {
        "name": tf.string, "age": tf.int32, "score": tf.float32,
    }  # fmt: skip
    assert batch["age"].numpy().tolist() == [31, 0, 7]
    features, label = next(iter(tf.data.experimental.make_csv_dataset(path, 2, label_name="score", **options)))
    assert sorted(features) == ["age", "name"]
    assert label.numpy().tolist() == [0.5, 1.5]
    selected = tf.data.experimental.make_csv_dataset(path, 3, select_columns=["age", "name"], **options)
    assert sorted(next(iter(selected))) == ["age", "name"]
    endless = tf.data.experimental.make_csv_dataset(path, 2, shuffle_seed=1)
    assert [batch["age"].shape[0] for batch in endless.take(5)] == [2] * 5
    with pytest.raises(tf.errors.InvalidArgumentError, match="no file matches"):
        tf.data.experimental.make_csv_dataset(os.path.join(folder, "*.tsv"), 2)
    with pytest.raises(ValueError, match="label_name must be one of"):
        tf.data.experimental.make_csv_dataset(path, 2, label_name="weight")


def test_a_table_that_is_named_twice_is_read_twice(folder):
    path = written(folder, "a.csv", b"x\n1\n2\n3\n")
    batches = tf.data.experimental.make_csv_dataset([path, path], 2, num_epochs=1, shuffle=False)
    assert [batch["x"].numpy().tolist() for batch in batches] == [[1, 2], [3, 1], [2, 3]]


def test_files_are_listed_by_pattern(folder):
    for name in "cab":
        written(folder, f"{name}.txt", b"")
    pattern = os.path.join(folder, "*.txt")
    names = [os.path.join(folder, f"{name}.txt").encode() for name in "abc"]
    assert values(tf.data.Dataset.list_files(pattern, shuffle=False)) == names
    assert sorted(values(tf.data.Dataset.list_files(pattern, seed=3))) == names
    assert tf.io.matching_files(pattern).numpy().tolist() == names
    with pytest.raises(tf.errors.InvalidArgumentError, match="no file matches"):
        tf.data.Dataset.list_files(os.path.join(folder, "*.none"))


def test_files_are_written_and_read(folder):
    path = os.path.join(folder, "new", "a.bin")
    tf.io.write_file(path, b"\x00\xffabc")
    assert tf.io.read_file(tf.constant(path)).numpy() == b"\x00\xffabc"
    gfile = tf.io.gfile
    assert gfile.exists(path) and gfile.isdir(os.path.dirname(path)) and gfile.listdir(folder) == ["new"]
    with gfile.GFile(os.path.join(folder, "t.txt"), "w") as file:
        file.write("line\n")
    assert gfile.GFile(os.path.join(folder, "t.txt")).read() == "line\n"
    assert gfile.stat(path).length == 5
    gfile.copy(path, path + "2")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        gfile.copy(path, path + "2")
    gfile.remove(path)
    assert not gfile.exists(path)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [tf.uint8, tf.uint16])
def test_png_keeps_every_pixel(channels, dtype):
    pixels = np.random.default_rng(0).integers(0, dtype.max, [7, 5, channels]).astype(dtype.as_numpy_dtype)
    decoded = tf.io.decode_png(tf.io.encode_png(pixels), dtype=dtype)
    np.testing.assert_array_equal(decoded, pixels)
    assert tf.io.decode_image(tf.io.encode_png(pixels[..., :1]), channels=3, dtype=dtype).shape == [7, 5, 3]


def test_jpeg_is_close():
    rows, columns = np.mgrid[:16, :24]
    pixels = np.stack([rows * 10, columns * 8, rows + columns], -1).astype(np.uint8)
    encoded = tf.io.encode_jpeg(pixels, quality=100)
    assert bool(tf.io.is_jpeg(encoded)) and not bool(tf.io.is_jpeg(tf.io.encode_png(pixels)))
    assert tf.io.extract_jpeg_shape(encoded).numpy().tolist() == [16, 24, 3]
    assert np.abs(tf.io.decode_jpeg(encoded).numpy().astype(int) - pixels).max() <= 12
    assert tf.image.decode_jpeg(encoded, channels=1).shape == [16, 24, 1]
    assert tf.io.decode_image(encoded, dtype=tf.float32).numpy().max() <= 1.0


def test_pictures_that_are_damaged_are_errors():
    encoded = tf.io.encode_png(np.zeros([4, 4, 3], np.uint8)).numpy()
    for bad in (b"", b"not a picture", encoded[:20], encoded[:-20], b"\xff\xd8\xff" + b"\0" * 50):
        with pytest.raises(tf.errors.DataLossError):
            tf.io.decode_image(bad)
    # The size in a header does not decide what is allocated.
    huge = bytearray(encoded)
    huge[16:24] = b"\x00\x00\xff\xff\x00\x00\xff\xff"
    before = tf.memory.peak_bytes()
    with pytest.raises(tf.errors.DataLossError):
        tf.io.decode_png(bytes(huge))
    assert tf.memory.peak_bytes() - before < 1 << 20


def test_a_parsed_example_says_what_is_wrong():
    def feature(**lists):
        return tf.train.Feature(**lists)

    message = tf.train.Example(
        features=tf.train.Features(feature={"a": feature(int64_list=tf.train.Int64List(value=[1, 2]))})
    ).SerializeToString()
    fixed = tf.io.FixedLenFeature
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"feature 'a': expected 3 values"):
        tf.io.parse_single_example(message, {"a": fixed([3], tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"example 1, feature 'b': .* required"):
        tf.io.parse_example([message, message], {"b": fixed([1], tf.int64), "a": fixed([2], tf.int64)}) if False else (
            tf.io.parse_example(
                [
                    tf.train.Example(
                        features=tf.train.Features(feature={"b": feature(int64_list=tf.train.Int64List(value=[1]))})
                    ).SerializeToString(),
                    message,
                ],
                {"b": fixed([1], tf.int64)},
            )
        )
    with pytest.raises(TypeError, match="expected values of type Floats, got Ints"):
        tf.io.parse_single_example(message, {"a": fixed([2], tf.float32)})
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        tf.io.parse_single_example(message[:-1], {"a": fixed([2], tf.int64)})


def example(**features):
    """A serialized example of floats and integers."""

    def feature(values):
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    made = {key: feature(values) for key, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def test_features_of_one_key_have_the_same_values():
    messages = [example(i=[7, 1], j=[2, 0], v=[1.5, 2.5]), example(v=[3.5], j=[1], i=[9])]
    sparse = tf.io.SparseFeature
    found = tf.io.parse_example(
        messages,
        {
            "v": tf.io.VarLenFeature(tf.float32),
            "s": sparse("i", "v", tf.float32, 10, already_sorted=True),
            "t": sparse("i", "v", tf.float32, 12, already_sorted=True),
            "u": sparse(["i", "j"], "v", tf.float32, [10, 3], already_sorted=True),
            "i": tf.io.RaggedFeature(tf.int64),
        },
    )
    for key in ("v", "s", "t", "u"):
        assert found[key].values.numpy().tolist() == [1.5, 2.5, 3.5], key
    assert found["v"].indices.numpy().tolist() == [[0, 0], [0, 1], [1, 0]]
    assert found["s"].indices.numpy().tolist() == found["t"].indices.numpy().tolist() == [[0, 7], [0, 1], [1, 9]]
    assert found["u"].indices.numpy().tolist() == [[0, 7, 2], [0, 1, 0], [1, 9, 1]]
    assert [list(found[key].shape) for key in ("s", "t", "u")] == [[2, 10], [2, 12], [2, 10, 3]]
    assert found["i"].to_list() == [[7, 1], [9]]


@pytest.mark.parametrize("size", [10, [10], [10, 3, 4]])
def test_sizes_of_sparse_features_are_as_many_as_their_indices(size):
    spec = {"s": tf.io.SparseFeature(["i", "j"], "v", tf.float32, size)}
    with pytest.raises(ValueError, match="size of the SparseFeature 's' must have one number for each index_key, got"):
        tf.io.parse_example([example(i=[7], j=[2], v=[1.5])], spec)


@pytest.mark.parametrize("dtype", [tf.complex64, tf.complex128])
def test_complex_tensors_are_serialized(dtype):
    tensor = tf.constant(np.array([[1 + 2j, -0.5j], [3.0, 1e-3 - 1j]]), dtype)
    message = tf.io.serialize_tensor(tensor)
    again = tf.io.parse_tensor(message, dtype)
    assert again.dtype == dtype and again.numpy().tolist() == tensor.numpy().tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match="the tensor must have type float32, got complex"):
        tf.io.parse_tensor(message, tf.float32)


def test_many_small_records_with_a_footer(folder):
    contents = np.arange(3_000_000, dtype=np.uint32).astype(np.uint8).tobytes()
    path = written(folder, "a.bin", b"HEAD" + contents + b"FOOTER")
    found = tf.data.FixedLengthRecordDataset(path, 40, 4, 6, buffer_size=1024).batch(10_000)
    assert b"".join(record for batch in found for record in batch.numpy()) == contents


def test_memory_of_strings_is_counted_and_freed(folder):
    path = written(folder, "a.txt", b"".join(b"line %d\n" % i for i in range(1000)))
    before = tf.memory.live_bytes()
    lines = tf.data.TextLineDataset(path).batch(100)
    kept = list(lines)
    counted = tf.memory.live_bytes() - before
    bytes_of_lines = os.path.getsize(path) - 1000
    assert bytes_of_lines + 8 * 1000 <= counted <= 1.5 * (bytes_of_lines + 8 * 1000)
    assert sum(x.nbytes for x in kept) == bytes_of_lines + 8 * 1000
    del kept, lines
    assert tf.memory.live_bytes() == before


def test_strings_go_through_every_stage(folder):
    words = [f"w{i}" for i in range(20)]
    source = tf.data.Dataset.from_tensor_slices((words, np.arange(20)))
    seen = list(source.shuffle(7, seed=1).prefetch(2).cache().repeat(2).batch(3))
    assert sorted(word for batch, _ in seen for word in batch.numpy()) == sorted(2 * [w.encode() for w in words])
    for batch, numbers in seen:
        assert [f"w{i}".encode() for i in numbers.numpy()] == batch.numpy().tolist()
    cached = source.cache(os.path.join(folder, "cache"))
    assert [x.numpy() for x, _ in cached] == [x.numpy() for x, _ in cached] == [w.encode() for w in words]
    upper = source.map(lambda word, number: (tf.strings.upper(word), number), num_parallel_calls=2)
    assert [x.numpy().decode() for x, _ in upper] == [w.upper() for w in words]
    assert [x.numpy() for x in source.map(lambda w, n: w).skip(18)] == [b"w18", b"w19"]


@pytest.mark.parametrize("kind", ["record", "csv", "png", "jpeg", "example", "gzip"])
def test_changed_files_are_read_or_refused(folder, kind):
    """Random changes of a file: an error, or elements; no crash, and no memory beyond a factor of the file's size."""
    rng = np.random.default_rng(5)
    count = int(os.environ.get("TAUT_MUTATIONS", "60"))
    pixels = rng.integers(0, 255, [8, 9, 3]).astype(np.uint8)
    example = tf.train.Example(
        features=tf.train.Features(
            feature={"a": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"abc", b"d" * 50]))}
        )
    )
    original = {
        "record": lambda: open(records(folder, "r", [b"hello" * 9, b"world"]), "rb").read(),
        "csv": lambda: TABLE * 3,
        "png": lambda: tf.io.encode_png(pixels).numpy(),
        "jpeg": lambda: tf.io.encode_jpeg(pixels).numpy(),
        "example": example.SerializeToString,
        "gzip": lambda: gzip.compress(b"line\n" * 40),
    }[kind]()
    read = {
        "record": lambda path: list(tf.data.TFRecordDataset(path)),
        "csv": lambda path: list(tf.data.experimental.CsvDataset(path, ["", 0, 0.0], header=True)),
        "png": lambda path: tf.io.decode_png(tf.io.read_file(path)),
        "jpeg": lambda path: tf.io.decode_image(tf.io.read_file(path)),
        "example": lambda path: tf.io.parse_single_example(
            tf.io.read_file(path), {"a": tf.io.RaggedFeature(tf.string)}
        ),
        "gzip": lambda path: list(tf.data.TextLineDataset(path, "GZIP")),
    }[kind]
    gc.collect()  # what earlier tests have left in cycles
    before = tf.memory.live_bytes()
    for _ in range(count):
        changed = bytearray(original)
        for _ in range(rng.integers(1, 6)):
            match rng.integers(3):
                case 0:
                    changed[rng.integers(len(changed))] = rng.integers(256)
                case 1:
                    del changed[rng.integers(len(changed)) :][:8]
                    changed = changed or bytearray(b"x")
                case _:
                    at = rng.integers(len(changed))
                    changed[at:at] = rng.bytes(4)
        path = written(folder, "changed", bytes(changed))
        tf.memory.reset_peak()
        live = tf.memory.live_bytes()
        try:
            read(path)
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, TypeError):
            pass
        # Pixels: three times at most, each at most 4096 times the file; small files may have a megabyte.
        assert tf.memory.peak_bytes() - live <= max(3 << 20, 3 * 4096 * len(changed))
    assert tf.memory.live_bytes() == before


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_saved_strings_are_loaded(tmp_path, compression):
    path = str(tmp_path / "saved")
    elements = {"text": [["a", ""], ["\u00e4" * 300, "z"]], "number": [1, 2]}
    tf.data.Dataset.from_tensor_slices(elements).save(path, compression=compression)
    loaded = list(tf.data.Dataset.load(path))
    assert [one["text"].numpy().tolist() for one in loaded] == [[b"a", b""], ["\u00e4".encode() * 300, b"z"]]
    assert [int(one["number"]) for one in loaded] == [1, 2]


def test_read_file_takes_every_form_of_a_path(tmp_path):
    path = tmp_path / "ü.txt"
    path.write_bytes(b"contents")
    for form in (path, str(path), os.fsencode(path), tf.constant(str(path)), np.array(str(path))):
        assert tf.io.read_file(form).numpy() == b"contents"
    with pytest.raises(tf.errors.InvalidArgumentError, match="filename must be a scalar"):
        tf.io.read_file([str(path)])
    with pytest.raises(TypeError):
        tf.io.read_file(3)
    with pytest.raises(tf.errors.NotFoundError, match="none.txt: no such file"):
        tf.io.read_file(os.fsencode(tmp_path / "none.txt"))


def test_files_and_folders_raise_tensorflows_errors(folder):
    gfile, errors = tf.io.gfile, tf.errors
    path, nowhere = os.path.join(folder, "a"), os.path.join(folder, "no", "where")
    tf.io.write_file(path, "x")
    gfile.mkdir(folder)  # a folder that exists is left as it is
    for call in (
        lambda: gfile.mkdir(nowhere),
        lambda: gfile.rmtree(nowhere),
        lambda: gfile.remove(nowhere),
        lambda: gfile.stat(nowhere),
        lambda: gfile.listdir(nowhere),
        lambda: gfile.copy(nowhere, path + "b"),
        lambda: gfile.rename(nowhere, path + "b"),
        lambda: gfile.GFile(nowhere, "w"),
    ):
        with pytest.raises(errors.NotFoundError, match="where: no such file or directory"):
            call()
    for call in (gfile.copy, gfile.rename):
        with pytest.raises(errors.AlreadyExistsError, match="pass overwrite=True"):
            call(path, path)
    for call in (lambda: gfile.GFile(folder), lambda: list(tf.data.TextLineDataset(folder))):
        with pytest.raises(errors.FailedPreconditionError, match="is a (directory|folder)"):
            call()
    with pytest.raises(errors.InvalidArgumentError, match="mode must be one of"):
        gfile.GFile(path, "q")
    with pytest.raises(errors.InvalidArgumentError, match="compression_type must be"):
        tf.data.TextLineDataset(path, compression_type="XX")


def test_distinct_strings_are_compared_by_value():
    # Strings that are equal, and not the same object.
    words = tf.data.Dataset.from_tensor_slices(["b", "a", "c", "a", "b"])
    assert values(words.unique()) == [b"b", b"a", b"c"]
    pairs = tf.data.Dataset.from_tensor_slices([["a", "b"], ["ab", ""], ["a", "b"]])
    assert [row.tolist() for row in values(pairs.unique())] == [[b"a", b"b"], [b"ab", b""]]


def test_numpy_functions_of_strings_get_bytes(folder):
    path = os.path.join(folder, "a.npy")
    np.save(path, np.arange(3.0))
    names = tf.data.Dataset.from_tensor_slices([path])
    loaded = names.map(lambda name: tf.numpy_function(lambda x: np.load(x.decode()), [name], tf.float64))
    assert [row.tolist() for row in values(loaded)] == [[0.0, 1.0, 2.0]]
