"""Variables that are None before a loop on traced tensors and tensors after it, with the answers of TensorFlow 2.21."""

import pytest

import taut as tf


def last_of(loop):
    """The function that assigns in a loop to a variable that is None before, traced."""

    def of_range(n):
        x = None
        for i in tf.range(n):
            x = i * 2
        return x

    def of_while(n):
        x, i = None, 0
        while i < n:
            x = i * 2
            i += 1
        return x

    def of_rows(n):
        x = None
        for i in tf.constant([0, 2, 4, 6, 8]):
            x = i
            if i > n:
                break
        return x

    return tf.function({"range": of_range, "while": of_while, "rows": of_rows}[loop])


@pytest.mark.parametrize("loop", ["range", "while", "rows"])
def test_a_variable_that_is_none_before_a_loop_is_a_tensor_after_it(loop):
    f = last_of(loop)
    assert int(f(tf.constant(4))) == 6
    assert f.plan(tf.constant(4)).peak_bytes > 0


def test_none_before_a_loop_that_runs_no_step_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="`x` is None before this `for`, which ran no step"):
        last_of("range")(tf.constant(0))


def test_a_structure_takes_the_place_of_none():
    @tf.function
    def f(n):
        x = None
        for i in tf.range(n):
            x = (i, [i + 1])
        return x

    assert tf.nest.map_structure(int, f(tf.constant(4))) == (3, [4])


def test_a_step_that_asks_for_none_runs_op_by_op():
    @tf.function
    def f(n):
        product = None
        for i in tf.range(1, n):
            product = i if product is None else product * i
        return product

    with pytest.warns(RuntimeWarning, match="`product` is None in the first step"):
        assert int(f(tf.constant(5))) == 24
