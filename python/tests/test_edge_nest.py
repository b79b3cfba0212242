"""Structures and shapes: edge cases."""

import types
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import taut as tf


@pytest.mark.parametrize(
    "structure",
    [
        defaultdict(list, {"b": 1, "a": [2, 3]}),
        OrderedDict([("b", 1), ("a", 2)]),
        Counter("aab"),
        types.MappingProxyType({"b": 1, "a": (2,)}),
    ],
)
def test_dicts_of_all_kinds_stay_what_they_are(structure):
    more = tf.nest.map_structure(lambda x: x + 1, structure)
    assert type(more) is type(structure)
    assert list(more) == list(structure)
    assert tf.nest.flatten(more) == [x + 1 for x in tf.nest.flatten(structure)]


def test_a_default_stays():
    more = tf.nest.map_structure(lambda x: x, defaultdict(list, a=1))
    assert more["new"] == []


def test_one_size_of_numpys_is_a_shape():
    assert tf.TensorShape(np.int64(3)) == (3,)
    assert tf.TensorSpec(np.int32(3)).placeholder().shape == (3,)
    with pytest.raises(TypeError):
        tf.TensorShape(2.5)
