"""Data that is wrong: an error says which file, which row, and what to do; `ignore_errors` leaves it out and counts it."""

import os

import numpy as np
import pytest

import taut as tf


def written(folder, name, contents):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(contents)
    return path


def ignored(dataset):
    """The elements without errors, and how many errors there were."""
    running = iter(dataset.ignore_errors())
    elements = [tf.nest.map_structure(lambda x: x.numpy(), element) for element in running]
    return elements, running.report().ignored_errors


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def test_wrong_encodings():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="string 1: expected valid UTF-8 text, got an invalid sequence at byte 4"
    ):
        tf.strings.unicode_decode([b"good", b"bad \xff"], "UTF-8", errors="strict")
    assert tf.strings.unicode_decode([b"\xff"], "UTF-8").to_list() == [[0xFFFD]]


def test_a_table_that_is_not_utf_8_is_an_error_with_its_file(folder):
    path = written(folder, "latin.csv", "name,n\nJosé,1\n".encode("latin-1"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"latin\.csv.*utf-8.*encoding="):
        tf.data.experimental.make_csv_dataset(path, 1, num_epochs=1)
    made = tf.data.experimental.make_csv_dataset(path, 1, num_epochs=1, encoding="latin-1", shuffle=False)
    assert next(iter(made))["name"].numpy().tolist() == ["José".encode("latin-1")]


def test_rows_with_missing_fields(folder):
    path = written(folder, "rows.csv", b"a,b\n1,2\n3\n4,5,6\n7,8\n")
    rows = tf.data.experimental.CsvDataset(path, [tf.int32, tf.int32], header=True)
    with pytest.raises(tf.errors.DataLossError, match=r"rows\.csv.*line 3.*a row must have 2 fields, got 1"):
        list(rows)
    assert ignored(rows) == ([(1, 2), (7, 8)], 2)
    made = tf.data.experimental.make_csv_dataset(path, 2, num_epochs=1, shuffle=False, ignore_errors=True)
    running = iter(made)
    assert next(running)["a"].numpy().tolist() == [1, 7]
    assert running.report().ignored_errors == 2
    assert "2 elements with errors were left out" in running.report()


def test_fields_of_the_wrong_type_in_a_batch(folder):
    path = written(folder, "rows.csv", b"1\nx\n3\n4\n")
    batches = tf.data.experimental.CsvDataset(path, [tf.int32]).batch(2)
    with pytest.raises(tf.errors.DataLossError, match=r'element 1.*rows\.csv.*line 2.*field 0 must be int32, got "x"'):
        list(batches)
    # An error replaces the batch of its row; the other batches have the same rows as ever.
    elements, count = ignored(batches)
    assert [element[0].tolist() for element in elements] == [[3, 4]] and count == 1


def test_missing_columns(folder):
    path = written(folder, "a.csv", b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"\['a', 'b'\], got 'c'"):
        tf.data.experimental.make_csv_dataset(path, 1, label_name="c")
    with pytest.raises(ValueError, match=r"\['a', 'b'\], got 'c'"):
        tf.data.experimental.make_csv_dataset(path, 1, select_columns=["a", "c"])
    with pytest.raises(ValueError, match=r"\['a', 'b'\], got 5"):
        tf.data.experimental.make_csv_dataset(path, 1, select_columns=[5])
    rows = tf.data.experimental.CsvDataset(path, [tf.int32], header=True, select_cols=[4])
    with pytest.raises(tf.errors.DataLossError, match="at least 5 fields, got 2"):
        list(rows)


def test_records_that_end_early_or_are_changed(folder):
    paths = []
    for name in "ab":
        paths.append(os.path.join(folder, name))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for value in (b"one", b"two", b"three"):
                writer.write(value)
    contents = open(paths[0], "rb").read()
    written(folder, "a", contents[:-3])
    records = tf.data.TFRecordDataset(paths)
    with pytest.raises(tf.errors.DataLossError, match=r"element 2.*/a: the record at byte 38 is truncated"):
        list(records)
    assert ignored(records) == ([b"one", b"two", b"one", b"two", b"three"], 1)
    changed = bytearray(contents)
    changed[13] ^= 1
    written(folder, "a", bytes(changed))
    with pytest.raises(tf.errors.DataLossError, match=r"/a: the record at byte 0 must match its checksum"):
        list(records.batch(2))
    written(folder, "a", b"this is a text file, not one of records")
    with pytest.raises(tf.errors.DataLossError, match=r"(?s)/a: .*help: .*not a TFRecord file"):
        list(records)


def test_corrupt_pictures(folder):
    good = tf.io.encode_png(np.zeros([4, 4, 3], np.uint8)).numpy()
    names = [written(folder, f"{i}.png", contents) for i, contents in enumerate([good, good[:40], b"text", good])]
    shapes = tf.data.Dataset.from_tensor_slices(names).map(lambda name: tf.io.decode_png(tf.io.read_file(name)))
    with pytest.raises(tf.errors.DataLossError):
        list(shapes)
    elements, count = ignored(shapes)
    assert [element.shape for element in elements] == [(4, 4, 3)] * 2 and count == 2


def test_a_missing_folder_or_file(folder):
    nowhere = os.path.join(folder, "nowhere")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"no file matches.*nowhere"):
        tf.data.Dataset.list_files(os.path.join(nowhere, "*"))
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        list(tf.data.TFRecordDataset(nowhere))
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        tf.lookup.TextFileInitializer(nowhere, tf.string, 0, tf.int64, -1)
    names = tf.data.Dataset.from_tensor_slices([nowhere, written(folder, "a.txt", b"line\n")])
    lines = tf.data.TextLineDataset(names)
    with pytest.raises(OSError, match="nowhere"):
        list(lines)
    assert ignored(lines) == ([b"line"], 1)


def test_a_lookup_without_a_default():
    initializer = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    with pytest.raises(TypeError, match="default_value"):
        tf.lookup.StaticHashTable(initializer)
    with pytest.raises((TypeError, ValueError), match="default_value"):
        tf.lookup.StaticHashTable(initializer, None)
    table = tf.lookup.StaticHashTable(initializer, -1)
    with pytest.raises(TypeError, match="keys must be string, got int32"):
        table.lookup(tf.constant([1]))


def test_an_example_without_a_feature_says_which_and_what_to_do():
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    good = tf.train.Example(features=tf.train.Features(feature={"a": feature})).SerializeToString()
    spec = {"a": tf.io.FixedLenFeature([], tf.int64)}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)example 1, feature 'a'.*help: .*default_value"):
        tf.io.parse_example([good, b""], spec)
    parsed = tf.data.Dataset.from_tensor_slices([good, b"", b"\xff\xff", good])
    elements, count = ignored(parsed.map(lambda one: tf.io.parse_single_example(one, spec)["a"]))
    assert (elements, count) == ([1, 1], 2)


def test_errors_that_are_mistakes_of_the_program_are_not_ignored():
    def wrong(_):
        raise TypeError("a mistake")

    with pytest.raises(TypeError, match="a mistake"):
        list(tf.data.Dataset.range(3).map(wrong).ignore_errors())


@pytest.mark.parametrize("channels", [0, 1, 3])
def test_jpeg_images_that_end_early(channels):
    pixels = np.add.outer(np.arange(40), np.arange(64)).astype(np.uint8)[..., None].repeat(3, 2)
    whole = tf.io.encode_jpeg(pixels).numpy()
    assert tf.io.decode_jpeg(whole + b"more", channels=channels).shape[:2] == [40, 64]
    for end in (len(whole) // 2, len(whole) - 2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.decode_jpeg(whole[:end], channels=channels)


def test_channels_that_a_format_does_not_have():
    image = tf.io.encode_jpeg(np.zeros([2, 2, 3], np.uint8))
    for channels in (2, 4):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"channels must be one of 0, 1, 3, got {channels}"):
            tf.io.decode_jpeg(image, channels=channels)
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 1"):
        tf.io.decode_bmp(b"BM", channels=1)


def test_arguments_of_strings_that_do_not_fit():
    assert tf.strings.substr(["abc", "", "de"], [1, 0, 0], [-1, -1, -1]).numpy().tolist() == [b"bc", b"", b"de"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"axis must be in \[-2, 2\), got 2"):
        tf.strings.reduce_join([["a", "b"]], 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"segment_ids must be in \[0, 2\)"):
        tf.strings.unsorted_segment_join(["a", "b"], [0, 5], 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scientific and shortest must be False for int32"):
        tf.strings.as_string([1], scientific=True)
    with pytest.raises(ValueError, match="encoding must be .* got 'GBK'"):
        tf.strings.unicode_decode(["\u00e4"], "GBK")
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.strings.unicode_decode(["\u00e4"], "US-ASCII", errors="strict")


def test_gifs_where_one_image_is_expected():
    # Two frames of one red pixel.
    frame = b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00"
    header = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00"
    one, two = header + frame + b";", header + frame + frame + b";"
    assert tf.io.decode_png(one).numpy().tolist() == [[[255, 0, 0]]]
    assert tf.io.decode_gif(two).shape == [2, 1, 1, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected one image, got a GIF of 2: use decode_gif"):
        tf.io.decode_png(two)
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels of a GIF must be 0 or 3, got 1"):
        tf.io.decode_jpeg(one, channels=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels of a GIF must be 0, 1 or 3, got 4"):
        tf.io.decode_image(one, channels=4)


def test_jpeg_images_of_16_bits_that_end_early():
    contents = tf.io.encode_jpeg(np.full([8, 8, 3], 200, np.uint8)).numpy()
    narrow, wide = tf.io.decode_image(contents), tf.io.decode_image(contents, dtype=tf.uint16)
    assert (wide.numpy() == narrow.numpy().astype(np.uint16) * 256).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="ends early"):
        tf.io.decode_image(contents[:-10], dtype=tf.uint16)


def test_options_of_records_that_are_not_there():
    with pytest.raises(ValueError, match="compression_level"):
        tf.io.TFRecordOptions(compression_type="GZIP", compression_level=9)


def test_errors_say_what_to_do(folder):
    rows = written(folder, "rows.csv", b"1,2\n3\n")
    with pytest.raises(tf.errors.DataLossError, match="line 2: a row must have 2 fields(.|\n)*help: .*`ignore_errors`"):
        list(tf.data.experimental.CsvDataset(rows, [tf.int32, tf.int32]))
    record = os.path.join(folder, "record")
    with tf.io.TFRecordWriter(record) as writer:
        writer.write(b"abc")
    with open(record, "rb") as file:
        contents = file.read()
    cut = written(folder, "cut", contents[:-1])
    with pytest.raises(tf.errors.DataLossError, match="truncated(.|\n)*help: the file is damaged or incomplete"):
        list(tf.data.TFRecordDataset(cut))


def test_errors_in_a_function_of_a_library_have_the_line_that_made_the_dataset(folder):
    keras = pytest.importorskip("keras")
    os.makedirs(os.path.join(folder, "a"))
    picture = tf.io.encode_jpeg(np.zeros([8, 8, 3], np.uint8)).numpy()
    written(folder, "a/1.jpg", picture[:100])
    pictures = keras.utils.image_dataset_from_directory(folder, labels=None, image_size=(4, 4), verbose=False)
    with pytest.raises(tf.errors.DataLossError, match=r"(?s)1\.jpg: the picture ends early.*at .*test_bad_data_is"):
        list(pictures)


def test_files_without_rows_and_columns_without_values(folder):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"none\.csv: expected a row of column names"):
        tf.data.experimental.make_csv_dataset(written(folder, "none.csv", b""), 2)
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = os.path.join(folder, "x.parquet")
    parquet.write_table(pa.table({"x": [1, None]}), path)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x\.parquet: column 'x' must have no missing values"):
        list(tf.data.Dataset.from_parquet(path))
    parquet.write_table(pa.table({"p": [{"n": 1, "l": [1, 2]}, {"n": 2, "l": []}]}), path)
    rows = [tf.nest.map_structure(lambda x: x.numpy().tolist(), row) for row in tf.data.Dataset.from_parquet(path)]
    assert rows == [{"p": {"n": 1, "l": [1, 2]}}, {"p": {"n": 2, "l": []}}]


def test_a_file_that_cannot_be_written(folder):
    path = written(folder, "file", b"")
    with pytest.raises(tf.errors.FailedPreconditionError, match="file"):
        tf.io.write_file(os.path.join(path, "inside"), "x")
    with pytest.raises(tf.errors.FailedPreconditionError, match="is a directory"):
        tf.io.write_file(folder, "x")
