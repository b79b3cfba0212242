"""AutoGraph converts functions with `except ... as` and `match`: they give the results of eager Python."""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf


def same(function, *args):
    """Traced and converted, the function returns what it returns when Python runs it."""
    expected, found = function(*args), tf.function(function)(*args)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("x", [-3, 3])
def test_exceptions_with_names(x):
    def f(x):
        try:
            if x > 0:
                r = x
            else:
                r = x * 2
        except ValueError as error:
            raise RuntimeError("never") from error
        return r

    same(f, tf.constant(x))


@pytest.mark.parametrize("x", [-3, 3])
def test_exceptions_that_are_caught_while_tracing(x):
    def f(x):
        texts = []
        for i in range(3):
            try:
                x = x + 6 // i
            except ZeroDivisionError as error:
                texts.append(str(error))
                continue
            finally:
                x = x + 1
        error = 5
        if x > 0:
            x = x * error
        return x + len(texts)

    same(f, tf.constant(x))


def test_the_end_of_a_dataset_is_caught_outside_of_the_function():
    @tf.function
    def f(iterator, limit):
        def taken():
            try:
                return next(iterator)
            except ValueError as error:
                raise RuntimeError("never") from error

        x = taken()
        if x > limit:
            x = x * 10
        return x

    iterator = iter(tf.data.Dataset.range(3))
    found = []
    try:
        while True:
            found.append(int(f(iterator, 0)))
    except tf.errors.OutOfRangeError as error:
        found.append(type(error).__name__)
    assert found == [0, 10, 20, "OutOfRangeError"]


MODES = ["double", "half", "halve", None, "neg", "other"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("x", [-3, 3])
def test_match_of_a_python_value(x, mode):
    def f(x, mode):
        match mode:
            case "double":
                r = x * 2
            case "half" | "halve":
                r = x // 2
            case None:
                r = x
            case text if text == "neg":
                r = -x
            case text:
                r = x + len(text)
        if r > 2:
            r = r + 100
        return r

    same(f, tf.constant(x), mode)


@pytest.mark.parametrize("x", [1, 3, 200, 7, 9])
def test_match_of_a_tensor(x):
    def f(x):
        match x:
            case 1:
                return 10
            case 2 | 3:
                return 20
            case y if y > 100:
                return y
            case 7 as z:
                return z + 1
            case _:
                return -x

    def plain(x):
        return {1: 10, 3: 20, 200: 200, 7: 8, 9: -9}[int(x)]

    assert int(tf.function(f)(tf.constant(x))) == plain(x)


def test_match_in_a_loop():
    @tf.function
    def f(n):
        total = tf.constant(0)
        for i in tf.range(n):
            match i % 3:
                case 0:
                    total += 1
                case 1:
                    continue
                case rest:
                    total += 10 * rest
        return total

    assert int(f(tf.constant(7))) == 43


def test_match_nested_in_a_case():
    def f(x, y):
        match x:
            case 1:
                match y:
                    case 1:
                        r = x
                    case _:
                        r = x * 2
            case _:
                r = x * 3
        return r

    for x in (1, 2):
        for y in (1, 2):
            assert int(tf.function(f)(tf.constant(x), tf.constant(y))) == f(x, y)


def test_patterns_that_look_into_their_subject_are_left_to_python():
    @tf.function
    def f(x, pair):
        match pair:
            case (a, b):
                return x * a + b
            case _:
                return x

    with pytest.warns(UserWarning, match="`match`"):
        assert int(f(tf.constant(3), (2, 1))) == 7
