"""A loop state whose shape or dtype changes is refused, with the variable, both specs and the line."""

from __future__ import annotations

import re

import pytest
import taut as tf


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("change", ["shape", "dtype"])
def test_a_state_that_changes_its_spec_is_refused(change, traced, line_of):
    def grow(x):
        return tf.concat([x, x], 0) if change == "shape" else tf.cast(x, tf.float32)

    def run():
        start = (tf.constant(0), tf.constant([1.0, 2.0], tf.float64))
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, grow(x)), start)  # here

    error = ValueError if change == "shape" else TypeError
    with pytest.raises(error) as caught:
        (tf.function(run, autograph=False) if traced else run)()
    text = str(caught.value)
    assert re.search(r"loop variable 1\b", text), text
    assert "float64[2]" in text
    assert ("float64[4]" if change == "shape" else "float32[2]") in text
    line = line_of(test_a_state_that_changes_its_spec_is_refused, "# here")
    assert f"test_loop_states_keep_their_spec.py:{line}" in text, text


def test_the_error_names_the_path_to_the_state():
    start = {"place": tf.constant([1.0]), "speed": (tf.constant(0), tf.constant([1.0, 2.0]))}

    def body(state):
        number, speed = state["speed"]
        return {"place": state["place"], "speed": (number + 1, tf.concat([speed, speed], 0))}

    with pytest.raises(ValueError, match=r"speed\.1\b"):
        tf.while_loop(lambda state: state["speed"][0] < 3, body, [start])


def test_a_shape_invariant_is_checked():
    start = (tf.constant(0), tf.constant([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="float32") as caught:
        tf.while_loop(
            lambda i, _: i < 3,
            lambda i, x: (i + 1, tf.concat([x, x], 1)),
            start,
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
        )
    assert "test_loop_states_keep_their_spec.py" in str(caught.value)
