"""Assertions: accepted and refused values, eager and traced."""

import numpy as np
import pytest
from checks import fails

import taut as tf
from taut import debugging

PASSES = [
    ("assert_equal", ([1, 2], [1, 2]), ([1, 2], [1, 3])),
    ("assert_none_equal", ([1, 2], [3, 4]), ([1, 2], [3, 2])),
    ("assert_greater", ([3.0], [2.0]), ([2.0], [2.0])),
    ("assert_greater_equal", ([2.0], [2.0]), ([1.0], [2.0])),
    ("assert_less", ([1], [2]), ([2], [2])),
    ("assert_less_equal", ([2], [2]), ([3], [2])),
    ("assert_near", ([1.0], [1.0 + 1e-7]), ([1.0], [1.1])),
    ("assert_positive", ([1],), ([0, 1],)),
    ("assert_negative", ([-1],), ([0],)),
    ("assert_non_negative", ([0],), ([-1],)),
    ("assert_non_positive", ([0],), ([1],)),
]


@pytest.mark.parametrize(("name", "good", "bad"), PASSES)
def test_values(name, good, bad):
    check = getattr(tf.debugging, name)
    assert check.__name__ == name
    check(*good)
    check(*good, message="said", summarize=2, name="a_name")
    fails(tf.errors.InvalidArgumentError, name, lambda: check(*bad))
    with pytest.raises(tf.errors.InvalidArgumentError, match="what was expected"):
        check(*bad, message="what was expected")
    # Nothing breaks no rule.
    check(*(tf.zeros([0]) for _ in good))


@pytest.mark.parametrize(("name", "good", "bad"), PASSES)
def test_values_inside_functions(name, good, bad):
    def body(*args):
        getattr(tf.debugging, name)(*args, message="inside")
        return tf.reduce_sum(args[0])

    traced = tf.function(body, autograph=False)
    traced(*(tf.constant(one) for one in good))
    with pytest.raises(tf.errors.InvalidArgumentError, match="inside") as caught:
        traced(*(tf.constant(one) for one in bad))
    assert name in str(caught.value)
    assert "test_debugging.py" in str(caught.value)


def test_assert():
    tf.debugging.Assert(True, ["fine"])
    tf.Assert(tf.constant([True, True]), [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="x is 3"):
        tf.Assert(tf.constant(False), ["x is 3", tf.constant([1, 2])])
    tf.assert_equal(1, 1)
    tf.assert_greater(2, 1)
    tf.assert_less(1, 2)
    tf.assert_rank(tf.zeros([2]), 1)


def test_finite():
    x = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(tf.debugging.check_numerics(x, "no"), x)
    np.testing.assert_array_equal(tf.debugging.assert_all_finite(x, message="no"), x)
    fails(ValueError, "bad thing", lambda: tf.debugging.check_numerics([np.nan, 1.0], "bad thing"))
    fails(ValueError, "bad thing", lambda: tf.debugging.assert_all_finite([np.inf], "bad thing"))
    fails(TypeError, "check_numerics", lambda: tf.debugging.check_numerics([1], "ints"))


def test_near_takes_tolerances():
    tf.debugging.assert_near([1.0], [1.1], atol=0.2)
    tf.debugging.assert_near([10.0], [11.0], rtol=0.1)
    with pytest.raises(ValueError, match="rtol"):
        tf.debugging.assert_near([10.0], [12.0], rtol=0.1)


def test_shapes():
    x, y = tf.zeros([2, 3]), tf.zeros([3, 5, 3])
    debugging.assert_shapes([(x, ("N", "Q")), (y, ("Q", None, 3))])
    debugging.assert_shapes([(x, "NQ"), (y, ("...", "Q")), (tf.constant(1.0), ())])
    debugging.assert_shapes({x.ref(): (2, 3), y.ref(): ("*", 3)})
    # A scalar counts as a vector of one element, as in TensorFlow 2.21.
    debugging.assert_shapes([(tf.ones([1]), ()), (tf.constant(5), ("N",)), (tf.ones([1, 3]), "NQ"), (x, (2, "Q"))])
    fails(ValueError, "assert_shapes", lambda: debugging.assert_shapes([(tf.ones([2]), ())]))
    fails(ValueError, "assert_shapes", lambda: debugging.assert_shapes([(tf.constant(5), ("N",)), (x, ("N", 3))]))
    fails(ValueError, "assert_shapes", lambda: debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", 5, 3))]))
    fails(ValueError, "assert_shapes", lambda: debugging.assert_shapes([(x, ("N",))]))
    fails(ValueError, "assert_shapes", lambda: debugging.assert_shapes([(x, (2, 4))], message="said"))
    debugging.assert_rank(x, 2)
    debugging.assert_rank_at_least(y, 2)
    debugging.assert_rank_in(x, [1, 2])
    fails(ValueError, "assert_rank", lambda: debugging.assert_rank(x, 3))
    fails(ValueError, "assert_rank_at_least", lambda: debugging.assert_rank_at_least(x, 3))
    fails(ValueError, "assert_rank_in", lambda: debugging.assert_rank_in(x, [1, 3]))
    assert debugging.assert_scalar(3.0).numpy() == 3
    fails(ValueError, "assert_scalar", lambda: debugging.assert_scalar(x))


def test_types():
    debugging.assert_integer([1])
    debugging.assert_type([1.0], tf.float32)
    fails(TypeError, "assert_integer", lambda: debugging.assert_integer([1.0]))
    fails(TypeError, "assert_type", lambda: debugging.assert_type([1.0], tf.int32))
    assert debugging.assert_same_float_dtype([tf.zeros([1], tf.float64), None]) == tf.float64
    assert debugging.assert_same_float_dtype() == tf.float32
    fails(ValueError, "assert_same_float_dtype", lambda: debugging.assert_same_float_dtype([[1.0], [1]]))
    fails(ValueError, "assert_same_float_dtype", lambda: debugging.assert_same_float_dtype([[1]]))
    debugging.assert_proper_iterable([1])
    fails(TypeError, "assert_proper_iterable", lambda: debugging.assert_proper_iterable("text"))
    assert debugging.is_numeric_tensor(tf.zeros([1]))
    assert not debugging.is_numeric_tensor(tf.zeros([1], tf.bool))
    assert not debugging.is_numeric_tensor(3)


@pytest.fixture
def checking():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def test_every_op_is_checked(checking):
    x = tf.constant([1.0, 0.0])
    fails(ValueError, "log", lambda: tf.math.log(x))
    fails(ValueError, "div", lambda: x / x)
    traced = tf.function(lambda x: tf.reduce_sum(tf.math.log(x) + 1.0), autograph=False)
    assert traced(tf.ones([2])).numpy() == 2
    fails(ValueError, "log", lambda: traced(x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sqrt(x))
    fails(ValueError, "", lambda: tape.gradient(y, x))
    tf.debugging.disable_check_numerics()
    assert tf.math.log(x).numpy().tolist() == [0, -np.inf]


def test_checks_in_a_function_say_what_did_not_hold():
    @tf.function
    def f(x):
        assert x > 0.0, "x has to be positive"
        tf.debugging.assert_less(x, 10.0, message="sizes")
        return tf.sqrt(x)

    assert float(f(tf.constant(4.0))) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        f(tf.constant(-1.0))
    assert "Assert: x has to be positive" in str(caught.value) and "NaN" not in str(caught.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert_less: sizes: x < y must hold"):
        f(tf.constant(11.0))
