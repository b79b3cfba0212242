"""Host callbacks: Python functions in traced programs."""

import numpy as np
import pytest
from checks import fails

import taut as tf

X = np.array([[1.0, 4.0], [9.0, 16.0]], np.float32)


def spec(*shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


def test_a_traced_function_calls_numpy_whenever_it_runs():
    seen = []

    def root(array):
        assert isinstance(array, np.ndarray)
        seen.append(array.sum())
        return np.sqrt(array)

    f = tf.function(lambda x: tf.numpy_function(root, [x * 1.0], spec(2, 2)) + 1.0)
    np.testing.assert_array_equal(f(tf.constant(X)), np.sqrt(X) + 1)
    np.testing.assert_array_equal(f(tf.constant(4 * X)), 2 * np.sqrt(X) + 1)
    assert seen == [30.0, 120.0] and f.trace_count == 1


def test_several_results_of_other_types_and_strides():
    @tf.function
    def f(x):
        turned, total, count = tf.numpy_function(
            lambda x: (x.T, x.sum(), 7), [x], [spec(2, 2), spec(dtype=tf.float64), spec(dtype=tf.int64)]
        )
        return turned, total * 2.0, count + 1

    turned, total, count = f(tf.constant(X))
    np.testing.assert_array_equal(turned, X.T)
    assert (float(total), int(count)) == (60.0, 8)
    assert (total.dtype, count.dtype) == (tf.float64, tf.int64)


def test_a_python_function_sees_tensors():
    @tf.function
    def f(x):
        def inner(t):
            assert isinstance(t, tf.Tensor) and not t.is_symbolic
            return t * 2.0 if float(t[0, 0]) > 0 else t * 3.0

        return tf.py_function(inner, [x], spec(2, 2))

    np.testing.assert_array_equal(f(tf.constant(X)), 2 * X)
    np.testing.assert_array_equal(f(tf.constant(-X)), -3 * X)


def test_what_is_only_told_is_called_in_order():
    seen = []

    @tf.function
    def f(x):
        tf.py_function(lambda t: seen.append(("first", float(t))), [tf.reduce_sum(x)], [])
        tf.numpy_function(lambda t: seen.append(("second", float(t))), [tf.reduce_max(x)], None)
        return x + 1.0

    f(tf.constant(X))
    assert seen == [("first", 30.0), ("second", 16.0)]


def test_what_has_no_effects_is_called_only_if_it_is_used():
    seen = []

    def note(name):
        return lambda t: seen.append(name) or t

    @tf.function
    def f(x):
        tf.numpy_function(note("unused"), [x], spec(2, 2), stateful=False)
        tf.numpy_function(note("stateful"), [x], spec(2, 2))
        return tf.numpy_function(note("used"), [x], spec(2, 2), stateful=False)

    f(tf.constant(X))
    assert sorted(seen) == ["stateful", "used"]


def test_inside_loops_and_datasets():
    @tf.function
    def f(x):
        return tf.while_loop(
            lambda i, x: i < 3,
            lambda i, x: (i + 1, tf.numpy_function(lambda a, i: a + i, [x, tf.cast(i, tf.float32)], spec(2, 2))),
            [tf.constant(0), x],
        )[1]

    np.testing.assert_array_equal(f(tf.constant(X)), X + 3)
    rows = tf.data.Dataset.from_tensor_slices(X).map(
        lambda row: tf.numpy_function(lambda a: a[::-1].copy(), [row], spec(2))
    )
    np.testing.assert_array_equal([row.numpy() for row in rows], X[:, ::-1])


def test_gradients_pass_where_python_is_called_at_once():
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = tf.py_function(lambda t: t * t, [x], tf.float32)
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * X)
    with tf.GradientTape() as tape:
        y = tf.function(lambda: tf.numpy_function(np.square, [x], spec(2, 2)))()
    assert tape.gradient(y, x) is None


def test_exceptions_reach_the_caller():
    class Mine(Exception):
        pass

    def bad(_):
        raise Mine("from inside")

    f = tf.function(lambda x: tf.numpy_function(bad, [x], spec(2, 2)))
    before = tf.memory.live_bytes()
    with pytest.raises(Mine, match="from inside"):
        f(tf.constant(X))
    f.forget()
    assert tf.memory.live_bytes() == before


def test_refused():
    x = tf.constant(X)

    def traced(function, types):
        return lambda: tf.function(lambda x: tf.numpy_function(function, [x], types))(x)

    def planned(types):
        f = tf.function(lambda x: tf.numpy_function(np.sqrt, [x], types))
        return lambda: f.plan(spec(2, 2))

    fails(tf.errors.DynamicShapeError, "Tout", planned(tf.float32))
    fails(tf.errors.DynamicShapeError, "Tout", planned(spec(None, 2)))
    fails(ValueError, "the shape of Tout", traced(lambda x: x[0], spec(2, 2)))
    fails(ValueError, "2 values", traced(np.sqrt, [spec(2, 2), spec(2, 2)]))
    fails(ValueError, "the shape of Tout", lambda: tf.numpy_function(lambda x: x[0], [x], spec(2, 2)))
    fails(TypeError, "must be callable", lambda: tf.numpy_function(None, [x], tf.float32))


def test_gradients_flow_through_py_function_with_known_shapes():
    """As in TensorFlow, under a tape around the function, in it, and in a function around it; each call calls once."""
    calls = []

    def both(a, b):
        calls.append(1)
        return a * b, a + b

    @tf.function
    def value(x, k):
        product, total = tf.py_function(both, [x, k], [spec(2), spec(2)])
        return tf.reduce_sum(product * total)

    k, w = tf.constant([3.0, 4.0]), tf.Variable([1.0, 2.0])
    # Without a tape there is a plan. The value is a b (a + b), with the derivatives 2ab + b² and a² + 2ab.
    assert value(w, k).numpy() == 12 + 48
    calls.clear()
    with tf.GradientTape() as tape, pytest.warns(RuntimeWarning, match="op by op"):
        tape.watch(k)
        found = value(w, k)
    assert found.numpy() == 60
    gradients = tape.gradient(found, [w, k])
    np.testing.assert_array_equal(gradients[0], [2 * 3 + 9, 2 * 8 + 16])
    np.testing.assert_array_equal(gradients[1], [1 + 2 * 3, 4 + 2 * 8])
    assert len(calls) == 1

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda a: a * a, [x], spec()) * 2.0
        return tape.gradient(y, x)

    with pytest.warns(RuntimeWarning, match="op by op"):
        assert inside(tf.constant(3.0)).numpy() == 12

    outer = tf.function(lambda x: value(x, k) * 2.0)
    with tf.GradientTape() as tape, pytest.warns(RuntimeWarning, match="op by op"):
        found = outer(w)
    np.testing.assert_array_equal(tape.gradient(found, w), [30, 64])


@pytest.mark.parametrize("traced", [False, True])
def test_results_of_another_type_are_not_rounded(traced):
    def called(call, result, dtype):
        body = lambda: call(lambda: result, [], dtype)  # noqa: E731
        return (tf.function(body) if traced else body)()

    refused = [(np.array([1.5]), tf.int32), (1.5, tf.int32), (np.array([1, 2]), tf.bool), ("a", tf.float32)]
    for result, dtype in [*refused, (np.array([2**40]), tf.int32), (np.array([1j]), tf.float32)]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="type of Tout"):
            called(tf.numpy_function, result, dtype)
    with pytest.raises(tf.errors.InvalidArgumentError, match="type of Tout"):
        called(tf.py_function, tf.constant([1.5]), tf.int32)
    # TensorFlow converts the arrays that py_function returns.
    np.testing.assert_array_equal(called(tf.py_function, np.array([1.5]), tf.int32), [1])
    assert called(tf.numpy_function, np.array([1, 2]), tf.int32).dtype == tf.int32


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (MemoryError, tf.errors.ResourceExhaustedError),
        (NotImplementedError, tf.errors.UnimplementedError),
    ],
)
def test_errors_have_the_classes_of_tensorflow_and_of_python(raised, wanted, traced):
    def bad(x):
        raise raised("of the function")

    def run():
        return tf.py_function(bad, [1], tf.int32)

    with pytest.raises(wanted, match="of the function") as caught:
        (tf.function(run) if traced else run)()
    assert isinstance(caught.value, raised)
    assert type(caught.value.__cause__) is raised


@pytest.mark.parametrize("call", [tf.py_function, tf.numpy_function])
def test_results_that_would_lose_their_fractions_are_refused(call):
    x = tf.constant([1.5, 2.5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must return the type of Tout, int32, got float32"):
        call(lambda value: value, [x], tf.int32)
    traced = tf.function(lambda value: call(lambda one: one, [value], tf.TensorSpec([2], tf.int32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="got float32"):
        traced(x)
    assert call(lambda value: 3, [x], tf.int32).numpy() == 3
    assert call(lambda value: np.array([1, 2]), [x], tf.float32).numpy().tolist() == [1.0, 2.0]
