"""Programs of TensorFlow's guides and tutorials compute what they compute with TensorFlow: every loss, weight and word.

The ids of the tests are the names of the guides and tutorials; `python/tests/test_programs_*.py` have more programs without Keras.
"""

import json
import pathlib
import sys

import guide_cases
import guide_model_cases
import guide_text_cases
import keras
import pytest

import taut as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
from answers import plain

ANSWERS = json.loads((pathlib.Path(__file__).parent / "guide_answers.json").read_text())
CASES = guide_cases.CASES | guide_model_cases.CASES | guide_text_cases.CASES


def difference(found, wanted, path=""):
    """Where two results differ, by more than the rounding of a few steps in float32; None where they do not."""
    if isinstance(wanted, dict):
        if set(found) != set(wanted):
            return f"{path}: {sorted(found)}, not {sorted(wanted)}"
        parts = [(f"{path}.{name}", found[name], wanted[name]) for name in wanted]
    elif isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{path}: {found}, not {wanted}"
        parts = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(found, wanted))]
    else:
        try:
            same = float(found) == pytest.approx(float(wanted), rel=1e-4, abs=1e-5)
        except (TypeError, ValueError):
            same = found == wanted
        return None if same else f"{path}: {found}, not {wanted}"
    return next(filter(None, (difference(a, b, at) for at, a, b in parts)), None)


@pytest.mark.parametrize("name", CASES)
def test_a_program_of_the_documentation_computes_what_tensorflow_does(name, tmp_path):
    assert difference(plain(CASES[name](keras, tf, str(tmp_path))), ANSWERS[name]) is None


def test_thirty_programs_have_answers():
    assert set(ANSWERS) == set(CASES) and len(CASES) == 30
