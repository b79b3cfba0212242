"""Strings, ragged tensors, records and tables: every result equals TensorFlow's."""

import json
import pathlib
import sys

import pytest
import string_cases

import taut as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools"))
from answers import plain

ANSWERS = json.loads((pathlib.Path(__file__).parent / "string_answers.json").read_text())


@pytest.mark.parametrize("name", string_cases.CASES)
def test_the_result_is_tensorflows(name):
    assert plain(string_cases.CASES[name](tf)) == ANSWERS[name]


def test_every_case_has_an_answer():
    assert set(ANSWERS) == set(string_cases.CASES)


def test_split_leaves_a_rest_after_as_many_strings_as_wanted():
    words = tf.constant(["  a b ", "ab", "", " "])
    assert tf.strings.split(words, maxsplit=1).to_list() == [[b"a", b"b "], [b"ab", b""], [], []]
    assert tf.strings.split(words, maxsplit=2).to_list() == [[b"a", b"b", b""], [b"ab"], [], []]


def test_strings_are_not_compared_with_numbers():
    with pytest.raises(TypeError):
        tf.constant(["a", "b"]) == 1  # noqa: B015
    assert (tf.constant("a") == None) is False  # noqa: E711
    assert tf.strings.as_string([0.5], precision=1) == "0.5"
    for options in ({"fill": "ab"}, {"scientific": True, "shortest": True}):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.strings.as_string([0.5], **options)


def test_tables_with_a_key_that_occurs_again():
    def table(keys, values):
        return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)

    for keys in (["a", "b", "a"], [3, 5, 3]):
        made = table(keys, [1, 2, 1])
        assert made.size() == 2 and made.lookup(tf.constant(keys)).numpy().tolist() == [1, 2, 1]
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"key b?{keys[0]!r} has 1 and 3"):
            table(keys, [1, 2, 3])
