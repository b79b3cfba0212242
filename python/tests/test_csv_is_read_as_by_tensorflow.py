"""Rows of comma-separated values: what TensorFlow reads has its values here, what it refuses is refused."""

import json
import pathlib
import sys

import csv_cases
import pytest

import taut as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
from answers import plain

ANSWERS = json.loads((pathlib.Path(__file__).parent / "csv_answers.json").read_text())


@pytest.mark.parametrize("name", csv_cases.CASES)
def test_the_rows_are_tensorflows(name, tmp_path):
    assert json.loads(json.dumps(plain(csv_cases.CASES[name](tf, str(tmp_path))))) == ANSWERS[name]


def test_every_case_has_an_answer():
    assert set(ANSWERS) == set(csv_cases.CASES)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b'1,2\n3,"4\n5,6\n', r"rows\.csv: line 2: a quoted field must end.*use_quote_delim=False"),
        (b'1,2\n"3\n"x,4\n', r"rows\.csv: line 2: a closing quotation mark must be followed.*got 'x'.*written twice"),
        (b'1,2\n\n3,a"4\n', r"rows\.csv: line 3: a field that is not quoted.*quote the whole field"),
        (b"1,2\n3\n", r"rows\.csv: line 2: a row must have 2 fields, got 1"),
    ],
)
def test_errors_have_file_line_and_help(tmp_path, contents, message):
    path = tmp_path / "rows.csv"
    path.write_bytes(contents)
    rows = tf.data.experimental.CsvDataset(str(path), ["", ""])
    found = []
    running = iter(rows)
    while True:
        try:
            next(running)
        except StopIteration:
            break
        except tf.errors.InvalidArgumentError as error:
            found.append(error)
    import re

    assert re.search(message, str(found[-1]), re.DOTALL)
    # Malformed data is a DataLossError, too, as it is in records.
    assert isinstance(found[-1], tf.errors.DataLossError)


def test_a_header_that_cannot_be_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a"b,c\n1,2\n')
    running = iter(tf.data.experimental.CsvDataset(str(path), [0, 0], header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"rows\.csv: the header: line 1"):
        next(running)
    assert [int(field) for field in next(running)] == [1, 2]
    path.write_bytes(b"")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"rows\.csv: expected a header, got an empty file"):
        next(iter(tf.data.experimental.CsvDataset(str(path), [0, 0], header=True)))


def test_columns_beside_excluded_ones_have_one_default_each(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2,3\n5,6,7\n")

    def rows(count, excluded):
        made = tf.data.experimental.CsvDataset(str(path), [[""]] * count, exclude_cols=excluded)
        return [tuple(field.numpy() for field in row) for row in made]

    assert rows(2, [0]) == [(b"2", b"3"), (b"6", b"7")]
    assert rows(2, [2]) == [(b"1", b"2"), (b"5", b"6")]
    assert rows(1, [0, 2]) == [(b"2",), (b"6",)]
    # A column that is not there is left out, too.
    assert rows(3, [7]) == [(b"1", b"2", b"3"), (b"5", b"6", b"7")]
    # TensorFlow: "Expect 1 fields but have more in record", "Expect 3 fields but have 2 in record".
    for count, excluded in [(1, [0]), (1, []), (3, [0]), (2, [0, 1, 2])]:
        with pytest.raises(tf.errors.OpError):
            rows(count, excluded)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.data.experimental.CsvDataset(str(path), [[""]], select_cols=[0], exclude_cols=[0])
