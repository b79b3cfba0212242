"""The op and the line that made the first NaN or infinity are found."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


@pytest.fixture
def checking():
    """Checks the results of every op for NaN and infinity."""
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@pytest.mark.parametrize("kind", ["eager", "traced", "jit"])
def test_the_first_op_that_makes_a_nan_is_found(kind, checking, line_of):
    def f(x):
        y = x * 2.0
        z = tf.math.log(y - 2.0)  # source
        return tf.exp(z) + z * 0.0

    g = f if kind == "eager" else tf.function(f, jit_compile=kind == "jit")
    assert np.isfinite(g(tf.constant([2.0, 3.0])).numpy()).all()
    with pytest.raises(ValueError) as caught:
        g(tf.constant([2.0, 0.5]))
    text = str(caught.value)
    assert "log" in text and "NaN" in text
    line = line_of(test_the_first_op_that_makes_a_nan_is_found, "# source")
    assert f"test_first_nan_is_located.py:{line}" in text, text


@pytest.mark.parametrize("kind", ["eager", "traced", "jit"])
def test_an_infinity_in_the_backward_pass_is_found(kind, checking, line_of):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)  # source
            z = tf.reduce_sum(y * 2.0)
        return tape.gradient(z, x)

    g = f if kind == "eager" else tf.function(f, jit_compile=kind == "jit")
    np.testing.assert_allclose(g(tf.constant([4.0, 1.0])).numpy(), [0.5, 1.0])
    with pytest.raises(ValueError) as caught:
        g(tf.constant([4.0, 0.0]))
    text = str(caught.value)
    assert "inf" in text.lower()
    line = line_of(test_an_infinity_in_the_backward_pass_is_found, "# source")
    assert f"test_first_nan_is_located.py:{line}" in text, text


@pytest.mark.parametrize("traced", [False, True])
def test_one_tensor_can_be_checked(traced, line_of):
    def f(x):
        return tf.debugging.check_numerics(x / 2.0, "halved") + 1.0  # source

    g = tf.function(f) if traced else f
    assert g(tf.constant([2.0])).numpy().tolist() == [2.0]
    for bad in [np.nan, np.inf]:
        with pytest.raises(ValueError, match="halved") as caught:
            g(tf.constant([1.0, bad]))
        line = line_of(test_one_tensor_can_be_checked, "# source")
        assert f"test_first_nan_is_located.py:{line}" in str(caught.value)


def test_nothing_is_checked_by_default():
    assert np.isnan(tf.math.log(tf.constant(-1.0)).numpy())
