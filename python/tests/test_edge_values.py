"""Shared memory, and numbers that are out of range."""

import copy
import pickle

import numpy as np
import pytest

import taut as tf


def reused():
    row = np.zeros(2, np.float32)
    for i in range(4):
        row[:] = i
        yield row


def test_generators_may_use_their_arrays_again():
    rows = tf.data.Dataset.from_generator(reused)
    assert [float(x[0]) for x in list(rows)] == [0.0, 1.0, 2.0, 3.0]
    assert [x.numpy()[:, 0].tolist() for x in rows.batch(2)] == [[0.0, 1.0], [2.0, 3.0]]
    assert [float(x[0]) for x in rows.prefetch(3)] == [0.0, 1.0, 2.0, 3.0]
    signed = tf.data.Dataset.from_generator(reused, output_signature=tf.TensorSpec([2]))
    assert [float(x[0]) for x in list(signed)] == [0.0, 1.0, 2.0, 3.0]


def test_constants_of_frozen_views_are_copies():
    base = np.zeros(3, np.float32)
    view = base.view()
    view.flags.writeable = False
    constants = [tf.constant(view), tf.constant(np.broadcast_to(base, (2, 3)))]
    base[:] = 5
    assert [float(tf.reduce_sum(c)) for c in constants] == [0.0, 0.0]
    x = tf.ones([3])
    assert tf.constant(x.numpy()).data_ptr() == x.data_ptr()  # a tensor's own memory is immutable


@pytest.mark.parametrize("value, dtype", [(1e30, "int32"), ([2**63], "int32"), ([2**63], "int64"), (-1e30, "int8")])
def test_numbers_that_a_type_does_not_have(value, dtype):
    with pytest.raises((ValueError, TypeError)):
        tf.constant(value, dtype)


def test_numbers_beside_tensors_take_their_type():
    assert tf.constant([tf.constant(1.0), 2]).dtype == tf.float32


def test_nothing_comes_through_dlpack():
    assert tf.from_dlpack(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_a_cast_is_no_view():
    with pytest.raises(ValueError):
        np.array(tf.ones([3]), dtype=np.int32, copy=False)


@pytest.mark.parametrize("op", [tf.exp, tf.nn.relu, tf.reduce_sum])
def test_ops_are_copied_and_sent(op):
    assert copy.copy(op) is op and copy.deepcopy({"activation": op})["activation"] is op
    assert pickle.loads(pickle.dumps(op))(tf.constant([0.0])).numpy() == op(tf.constant([0.0])).numpy()


def test_methods_of_deleted_objects():
    class Doubles:
        @tf.function
        def double(self, x):
            return x * 2.0

    assert Doubles().double(tf.ones([1])).numpy() == [2.0]


def test_stop_iteration_in_a_mapped_function_is_no_end():
    with pytest.raises(Exception):  # noqa: B017, PT011
        list(tf.data.Dataset.range(3).map(lambda x: next(iter([]))))


@pytest.mark.parametrize("dims", [[2**62, 8], [2**63 - 1], [2**32, 2**32, 0]])
def test_sizes_beyond_memory_are_refused(dims):
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        tf.TensorSpec(dims).placeholder().nbytes  # noqa: B018


# Below the normal range of float16 (6.1e-5), but far above that of float32, in which they are added up.
SMALL_HALVES = {
    "sum": (lambda x: tf.reduce_sum(x), lambda x: x.sum()),
    "mean": (lambda x: tf.reduce_mean(x, 0), lambda x: x.mean(0)),
    "norm": (lambda x: tf.norm(x, axis=0), lambda x: np.sqrt((x * x).sum(0))),
    "max": (lambda x: tf.reduce_max(x), lambda x: x.max()),
    "matmul": (lambda x: x @ tf.ones([8, 3], x.dtype), lambda x: x @ np.ones((8, 3))),
    "large matmul": (
        lambda x: tf.tile(x, [4, 4]) @ tf.ones([32, 33], x.dtype),
        lambda x: np.tile(x, (4, 4)) @ np.ones((32, 33)),
    ),
    "convolution": (
        lambda x: tf.nn.conv2d(x[None, :, :, None], tf.ones([2, 2, 1, 1], x.dtype), 1, "VALID")[0, :, :, 0],
        lambda x: x[1:, 1:] + x[:-1, 1:] + x[1:, :-1] + x[:-1, :-1],
    ),
    "cumsum": (lambda x: tf.cumsum(x, 1), lambda x: x.cumsum(1)),
    "segments": (lambda x: tf.math.segment_sum(x, [0] * 8), lambda x: x.sum(0)[None]),
    "product and sum": (lambda x: tf.reduce_sum(x * 2 + x), lambda x: 3 * x.sum()),
    "einsum": (lambda x: tf.einsum("ij,kj->ik", x, tf.ones([2, 8], x.dtype)), lambda x: x @ np.ones((8, 2))),
}


@pytest.mark.parametrize("name", SMALL_HALVES)
def test_small_float16_numbers_are_not_zeros(name):
    function, reference = SMALL_HALVES[name]
    x = np.linspace(1e-5, 5e-5, 64).reshape(8, 8).astype(np.float16)
    wanted = reference(x.astype(np.float64))
    for made in (function(tf.constant(x)), tf.function(function)(tf.constant(x))):
        np.testing.assert_allclose(made.numpy().astype(np.float64), wanted, rtol=2e-2, atol=1e-7)


DENORMAL = {np.float32: 1e-40, np.float64: 1e-310}


@pytest.mark.parametrize("dtype", DENORMAL)
def test_conversions_keep_denormal_numbers(dtype):
    tiny = dtype(DENORMAL[dtype])
    for made in (
        tf.constant([0, float(tiny)], dtype),
        tf.constant(np.array([0.0, tiny]), dtype),
        tf.constant(np.array([0.0, tiny], dtype)),
        tf.Variable([0, float(tiny)], dtype=dtype),
    ):
        np.testing.assert_array_equal(made.numpy(), np.array([0, tiny], dtype))
        assert float(made[1]) == float(tiny) and made[1].numpy().item() == float(tiny)
        assert bool(made[1]) and not bool(made[0])


# What TensorFlow 2.21 computes on vectors: denormal numbers are zeros.
@pytest.mark.parametrize("dtype", DENORMAL)
@pytest.mark.parametrize("traced", [False, True])
def test_denormal_numbers_are_zeros_where_numbers_are_compared_with_zero(dtype, traced):
    x = np.array([0, DENORMAL[dtype], 1, -DENORMAL[dtype]], dtype)

    def found(x):
        return tf.where(x), tf.math.count_nonzero(x), tf.cast(x, tf.bool), x > 0, tf.nn.zero_fraction(x), tf.math.log(x)

    where, count, truth, positive, fraction, log = (tf.function(found) if traced else found)(tf.constant(x))
    assert where.numpy().tolist() == [[2]] and int(count) == 1 and float(fraction) == 0.75
    assert truth.numpy().tolist() == positive.numpy().tolist() == [False, False, True, False]
    assert log.numpy().tolist() == [-np.inf, -np.inf, 0.0, -np.inf]
    static = tf.function(lambda: tf.where(tf.constant(x)))()
    assert static.numpy().tolist() == [[2]]


@pytest.mark.parametrize("dtype", DENORMAL)
def test_what_orders_or_steps_tells_denormal_numbers_apart(dtype):
    tiny = DENORMAL[dtype]
    x = np.array([0, tiny, -tiny, 2 * tiny, 0], dtype)
    t = tf.constant(x)
    assert int(tf.argmax(t)) == 3 and int(tf.argmin(t)) == 2
    assert int(tf.function(tf.argmax)(t)) == 3
    np.testing.assert_array_equal(tf.sort(t).numpy(), np.sort(x))
    np.testing.assert_array_equal(tf.argsort(t).numpy(), np.argsort(x, kind="stable"))
    assert tf.math.top_k(t, 2).indices.numpy().tolist() == [3, 1]
    assert len(tf.unique(t)[0]) == 4
    assert tf.searchsorted(np.sort(x), [dtype(tiny)]).numpy().tolist() == [3]
    for towards in (dtype(1), dtype(-1), dtype(0), dtype(tiny)):
        made = tf.math.nextafter(t, tf.fill([5], towards)).numpy()
        expected = np.nextafter(x, towards)
        np.testing.assert_array_equal(made, expected)
        np.testing.assert_array_equal(np.signbit(made), np.signbit(expected))
