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
