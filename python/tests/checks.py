"""Assertions shared by the test modules."""

import pathlib

import pytest


def fails(kind, name, work):
    """Calling `work` is this error, which names the function, and the file that called it."""
    with pytest.raises(kind) as caught:
        work()
    assert name in str(caught.value)
    assert pathlib.Path(work.__code__.co_filename).name in str(caught.value)
