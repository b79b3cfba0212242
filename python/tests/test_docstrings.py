"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import taut

MODULES = [
    "taut",
    *(f"taut.{one.name}" for one in pkgutil.iter_modules(taut.__path__) if not one.name.startswith("_native")),
]


def examples(module):
    # Functions of the table are one class's objects: what they say is made of the table.
    return [one for one in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__) if one.examples]


def test_there_are_examples():
    assert sum(bool(examples(importlib.import_module(name))) for name in MODULES) >= 3


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    for example in examples(module):
        runner.run(example)
    assert runner.failures == 0
