"""Writes TensorFlow's results of the calls in `python/tests`: of strings, complex numbers, ragged tensors, CSV, Keras's
preprocessing, the steps of its tutorials on data, and programs of its guides. Run it where TensorFlow and pandas are installed.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"


def plain(value: Any) -> Any:
    """A result as lists, numbers and texts, with its type and shape."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in sorted(value.items())}
    if type(value).__name__ == "RaggedTensor":
        return {"ragged": _values(value.to_list()), "type": value.dtype.name}
    if hasattr(value, "numpy"):
        array = np.asarray(value.numpy())
        return {"type": value.dtype.name, "shape": list(array.shape), "values": _values(array.tolist())}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return _values(value.tolist() if isinstance(value, np.ndarray) else value)


def _values(value: Any) -> Any:
    if isinstance(value, list):
        return [_values(part) for part in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        return [repr(value.real), repr(value.imag)]
    return repr(value) if isinstance(value, float) else value


def main() -> None:
    """Writes the answers beside the cases."""
    sys.path[:0] = [str(TESTS), str(TESTS / "keras")]
    import complex_cases
    import csv_cases
    import guide_cases
    import guide_model_cases
    import guide_text_cases
    import keras
    import preprocessing_cases
    import ragged_cases
    import string_cases
    import tensorflow as tf
    import tutorial_cases

    answers = {name: plain(case(tf)) for name, case in string_cases.CASES.items()}
    _write(TESTS / "string_answers.json", answers)
    answers = {name: plain(case(tf)) for name, case in complex_cases.CASES.items()}
    _write(TESTS / "complex_answers.json", answers)
    answers = {text: plain(ragged_cases.result(tf, text)) for text in ragged_cases.CASES}
    _write(TESTS / "ragged_answers.json", answers)
    answers = {}
    for name, case in csv_cases.CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            answers[name] = plain(case(tf, folder))
    _write(TESTS / "csv_answers.json", answers)
    guides = guide_cases.CASES | guide_model_cases.CASES | guide_text_cases.CASES
    for kind, cases in (
        ("preprocessing", preprocessing_cases.CASES),
        ("tutorial", tutorial_cases.CASES),
        ("guide", guides),
    ):
        answers = {}
        for name, case in cases.items():
            with tempfile.TemporaryDirectory() as folder:
                answers[name] = plain(case(keras, tf, folder))
        _write(TESTS / "keras" / f"{kind}_answers.json", answers)


def _write(path: pathlib.Path, answers: dict[str, Any]) -> None:
    path.write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main()
