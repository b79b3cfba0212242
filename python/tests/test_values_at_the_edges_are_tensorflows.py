"""NaN, infinities, signed zeros, poles and shapes that do not fit. The literals are TensorFlow's answers."""

import math

import numpy as np
import pytest

import taut as tf

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("traced", [False, True])
def test_positions_of_extremes_ignore_nan(dtype, traced):
    largest = tf.function(tf.argmax) if traced else tf.argmax
    smallest = tf.function(tf.argmin) if traced else tf.argmin
    for values, at_most, at_least in (
        ([1, NAN, 3], 2, 0),
        ([NAN, NAN], 0, 0),
        ([NAN, 1], 1, 1),
        ([3, NAN], 0, 0),
        ([1, NAN, 3, NAN, 3], 2, 0),
        ([NAN, -INF], 0, 1),
        ([-INF, NAN], 0, 0),
        ([NAN, INF], 1, 0),
        ([NAN, NAN, 5, 7, NAN], 3, 2),
    ):
        x = tf.constant(values, dtype)
        assert (int(largest(x)), int(smallest(x))) == (at_most, at_least), values
    rows = tf.constant([[NAN, 2, 1], [3, NAN, 0]], dtype)
    assert largest(rows).numpy().tolist() == [1, 0, 0] and smallest(rows).numpy().tolist() == [1, 0, 1]
    assert tf.argmax(rows, 1).numpy().tolist() == [1, 0] and tf.argmin(rows, 1).numpy().tolist() == [2, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_remainder_of_zero_has_the_sign_of_the_dividend(dtype):
    cases = [(-0.0, 2.0), (0.0, -2.0), (4.0, -2.0), (-4.0, 2.0), (-0.0, INF), (0.0, -INF)]
    x, y = (tf.constant([case[i] for case in cases], dtype) for i in (0, 1))
    for remainder in (lambda x, y: x % y, tf.function(lambda x, y: x % y), tf.math.floormod, tf.truncatemod):
        found = remainder(x, y).numpy()
        assert found.tolist() == [0.0] * len(cases)
        assert np.signbit(found).tolist() == [True, False, False, True, True, False]
    assert (tf.constant([-1.0, 1.0]) % tf.constant([INF, -INF])).numpy().tolist() == [INF, -INF]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_digamma_is_nan_at_its_poles(dtype):
    poles = tf.constant([0.0, -0.0, -1.0, -2.0, -INF], dtype)
    assert np.isnan(tf.math.digamma(poles)).all() and np.isnan(tf.function(tf.math.digamma)(poles)).all()
    assert float(tf.math.digamma(tf.constant(INF, dtype))) == INF
    assert (tf.math.lgamma(poles).numpy() == INF).all()


@pytest.mark.parametrize("traced", [False, True])
def test_tensors_of_shapes_that_do_not_fit_are_different(traced):
    def compared(x, y):
        return x == y, x != y

    run = tf.function(compared) if traced else compared
    equal, different = run(tf.constant([1, 2, 3]), tf.constant([1, 2]))
    assert equal.shape == () and equal.dtype == tf.bool and not equal and different
    equal, different = run(tf.constant([[1, 2, 3]]), tf.constant([[1], [2]]))
    assert equal.numpy().tolist() == [[True, False, False], [False, True, False]]
    assert different.numpy().tolist() == [[False, True, True], [True, False, True]]


def test_comparisons_of_other_objects_that_do_not_fit():
    x = tf.constant([1, 2, 3])
    for other in ([1, 2], np.array([1, 2]), tf.Variable([1, 2])):
        assert not (x == other) and x != other and not (other == x) and other != x
    assert not (tf.Variable([1, 2, 3]) == x[:2])
    strings = tf.constant(["a", "b", "c"])
    assert not (strings == strings[:2]) and strings != strings[:2]
    assert x not in [tf.constant([1, 2])]
    for function in (tf.equal, tf.not_equal):
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(x, x[:2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        x < x[:2]  # noqa: B015


def test_strings_that_are_not_empty_are_counted():
    assert int(tf.math.count_nonzero(tf.constant(["a", "", "b"]))) == 2
    assert int(tf.math.count_nonzero(["a", "", "b"])) == 2
    count = tf.math.count_nonzero([["a", ""], ["b", ""]], axis=0, keepdims=True, dtype=tf.int32)
    assert count.dtype == tf.int32 and count.numpy().tolist() == [[2, 0]]


@pytest.mark.parametrize(
    ("value", "shape"), [([1, 2, 3], [2, 2]), ([1, 2, 3], [2, 1]), ([1, 2, 3], []), ([], [2, 2]), (["a", "b"], [3])]
)
def test_constants_with_another_number_of_elements_are_refused(value, shape):
    with pytest.raises(TypeError, match="elements"):
        tf.constant(value, shape=shape)


def test_constants_with_a_shape():
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.constant([1], shape=[2, 2]).numpy().tolist() == [[1, 1], [1, 1]]
    assert tf.constant(1, shape=[0]).shape == (0,) and tf.constant([], shape=[0, 2]).shape == (0, 2)
    assert tf.constant("a", shape=[2]).numpy().tolist() == [b"a", b"a"]


def test_maxima_and_their_places_have_names():
    images = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    found = tf.nn.max_pool_with_argmax(images, 2, 2, "VALID")
    assert found._fields == ("output", "argmax") and type(found).__name__ == "MaxPoolWithArgmax"
    assert found.output.numpy().ravel().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert found.argmax.numpy().ravel().tolist() == [5, 7, 13, 15]
    traced = tf.function(lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID"))(images)
    assert traced.argmax.numpy().ravel().tolist() == [5, 7, 13, 15]


def gradients(function, *values):
    variables = [tf.constant(value, tf.float32) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        made = function(*variables)
    return tape.gradient(made, variables)


def eager(function):
    return function


both_modes = pytest.mark.parametrize("mode", [eager, tf.function])


@both_modes
def test_the_lower_bound_of_a_clip_wins(mode):
    clip = mode(tf.clip_by_value)
    x = tf.constant([1.0, 5.0, 9.0])
    assert clip(x, 6.0, 2.0).numpy().tolist() == [6.0, 6.0, 6.0]
    assert clip(x, tf.constant(6.0), tf.constant(2.0)).numpy().tolist() == [6.0, 6.0, 6.0]
    assert clip(tf.constant([1, 5, 9]), 6, 2).numpy().tolist() == [6, 6, 6]
    found = mode(lambda: gradients(tf.clip_by_value, [1.0, 5.0, 9.0], 6.0, 2.0))()
    assert [part.numpy().tolist() for part in found] == [[0.0, 0.0, 0.0], 3.0, 0.0]
    found = mode(lambda: gradients(tf.clip_by_value, [2.0, 6.0, NAN], 2.0, 6.0))()
    assert [part.numpy().tolist() for part in found] == [[1.0, 1.0, 0.0], 1.0, 0.0]


@both_modes
@pytest.mark.parametrize(
    ("x", "low", "high"),
    [([1.0, 2.0], [[0.0], [1.0]], 2.0), ([[1.0, 2.0]], 0.0, [[0.0], [1.0]]), (1.0, [0.0, 2.0], 3.0)],
)
def test_bounds_do_not_broadcast_what_is_clipped(mode, x, low, high):
    with pytest.raises(ValueError, match="shape"):
        mode(tf.clip_by_value)(tf.constant(x), low, high)


def test_norms_broadcast_to_what_is_clipped():
    rows = tf.clip_by_norm([[3.0, 4.0], [3.0, 4.0]], [[1.0], [2.0]], axes=1)
    np.testing.assert_allclose(rows, [[0.6, 0.8], [1.2, 1.6]], rtol=1e-6)
    with pytest.raises(ValueError, match="shape"):
        tf.clip_by_norm([3.0, 4.0], [[1.0], [2.0]])
    for bound in (0.0, -2.0):
        assert tf.clip_by_norm([3.0, 4.0], bound).numpy().tolist() == [0.0, 0.0]


def test_rows_that_are_clipped_stay_rows():
    given = tf.IndexedSlices(tf.constant([1.0, 5.0]), tf.constant([0, 3]), tf.constant([4]))
    clipped = tf.clip_by_value(given, 2.0, 3.0)
    assert isinstance(clipped, tf.IndexedSlices) and clipped.dense_shape is given.dense_shape
    assert clipped.values.numpy().tolist() == [2.0, 3.0] and clipped.indices.numpy().tolist() == [0, 3]


def test_an_extremum_of_no_elements_has_a_gradient():
    for function, value in ((tf.reduce_max, -INF), (tf.reduce_min, INF)):
        x = tf.zeros([0, 3])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, 0)
        assert y.numpy().tolist() == [value] * 3 and tape.gradient(y, x).shape == (0, 3)


@both_modes
def test_softsign_is_flat_at_infinities(mode):
    (found,) = mode(lambda: gradients(tf.nn.softsign, [INF, -INF, NAN, 1.0, 0.0]))()
    np.testing.assert_array_equal(found, [0.0, 0.0, NAN, 0.25, 1.0])


def test_ranges_that_run_backward_are_refused():
    for arguments in ((0, 5, -1), (5, 0), (5, 0, 1), (-3,), (0.0, 5.0, -1.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="start must be"):
            tf.range(*arguments)
    with pytest.raises(tf.errors.InvalidArgumentError, match="start must be"):
        tf.function(lambda n: tf.range(n))(tf.constant(-5))
    assert tf.range(3, 3).shape == tf.range(3, 3, -1).shape == (0,)
    assert tf.linspace(0.0, 1.0, 0).shape == (0,)
    assert tf.linspace([0.0, 1.0], [1.0, 2.0], 0).shape == (0, 2)
    assert tf.linspace([0.0, 1.0], [1.0, 2.0], 0, axis=1).shape == (2, 0)


def test_a_scalar_updates_all_elements_of_rows():
    for name, first, second in (
        ("add", [3.0, 2.0, 5.0, 4.0], [[1.0, 2.0], [5.0, 6.0]]),
        ("sub", [-1.0, 2.0, 1.0, 4.0], [[1.0, 2.0], [1.0, 2.0]]),
        ("mul", [2.0, 2.0, 6.0, 4.0], [[1.0, 2.0], [6.0, 8.0]]),
        ("div", [0.5, 2.0, 1.5, 4.0], [[1.0, 2.0], [1.5, 2.0]]),
        ("max", [2.0, 2.0, 3.0, 4.0], [[1.0, 2.0], [3.0, 4.0]]),
        ("min", [1.0, 2.0, 2.0, 4.0], [[1.0, 2.0], [2.0, 2.0]]),
        ("update", [2.0, 2.0, 2.0, 4.0], [[1.0, 2.0], [2.0, 2.0]]),
    ):
        vector, matrix = tf.Variable([1.0, 2.0, 3.0, 4.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        getattr(vector, f"scatter_{name}")(tf.IndexedSlices(tf.constant(2.0), tf.constant([0, 2])))
        getattr(matrix, f"scatter_{name}")(tf.IndexedSlices(2.0, tf.constant([1])))
        assert vector.numpy().tolist() == first and matrix.numpy().tolist() == second, name


@both_modes
def test_booleans_are_scattered(mode):
    scatter = mode(lambda indices, updates: tf.scatter_nd(indices, updates, [4]))
    for indices, updates in (([[1], [2]], [True, False]), ([[1], [1]], [True, True]), ([[1], [1]], [False, True])):
        found = scatter(tf.constant(indices), tf.constant(updates))
        assert found.dtype == tf.bool and found.numpy().tolist() == [False, True, False, False]


def test_one_hot_of_strings():
    wanted = [[b"on", b"off", b"off"], [b"off", b"off", b"on"], [b"off", b"off", b"off"]]
    assert tf.one_hot([0, 2, -1], 3, on_value="on", off_value="off").numpy().tolist() == wanted
    assert tf.one_hot([0, 2, -1], 3, "on", "off", 0, tf.string).numpy().T.tolist() == wanted
    with pytest.raises(TypeError):
        tf.one_hot([0, 2], 3, on_value="on")


# TensorFlow 2.21's shapes.
EMPTY = [
    ((0, 3), [0, -1], (0, 3)),
    ((0, 3), [-1, 0], (3, 0)),
    ((0, 3), [0, 2, -1], (0, 2, 1)),
    ((0, 2, 3), [0, -1], (0, 6)),
    ((0,), [0, -1], (0, 1)),
    ((2, 0), [-1, 0, 5], (0, 0, 5)),
    ((0, 3), [3, -1], (3, 0)),
]


@pytest.mark.parametrize("own, wanted, shape", EMPTY)
def test_reshaping_without_elements_infers_a_size(own, wanted, shape):
    assert tf.reshape(tf.zeros(own), wanted).shape == shape


def test_an_empty_batch_is_flattened():
    flat = tf.function(lambda x: tf.reshape(x, [tf.shape(x)[0], -1]))
    assert flat(tf.zeros([0, 3, 4])).shape == (0, 12) and flat(tf.zeros([2, 3, 4])).shape == (2, 12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot reshape 6 elements"):
        tf.reshape(tf.zeros([2, 3]), [0, -1])


def test_sizes_that_keep_the_aspect_ratio_are_rounded_half_to_even():
    image = tf.reshape(tf.range(30.0), [1, 5, 6, 1])
    small = tf.image.resize(image, [3, 3], preserve_aspect_ratio=True)
    assert small.shape == (1, 2, 3, 1)  # 2.5 rows
    np.testing.assert_allclose(np.ravel(small), [5.0, 7.0, 9.0, 20.0, 22.0, 24.0], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no pixel"):
        tf.image.resize(tf.ones([1, 1, 600, 1]), [3, 3], preserve_aspect_ratio=True)


def test_color_spaces_have_tensorflows_numbers():
    rows = tf.eye(3, dtype=tf.float64)[None]
    yiq = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
    np.testing.assert_allclose(tf.image.rgb_to_yiq(rows)[0], yiq, atol=1e-12)
    rgb = [[1.0, 1.0, 1.0], [0.0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0.0]]
    np.testing.assert_allclose(tf.image.yuv_to_rgb(rows)[0], rgb, atol=1e-12)


def test_multiply_no_nan_of_complex_numbers():
    x, y = tf.constant([1 + 1j, complex("nan"), 2]), tf.constant([2j, 0, 1])
    assert tf.math.multiply_no_nan(x, y).numpy().tolist() == [-2 + 2j, 0, 2]


def test_depthwise_convolutions_with_strides_and_dilations_are_refused():
    x, kernel = tf.ones([1, 6, 7, 3]), tf.ones([3, 2, 3, 1])
    with pytest.raises(ValueError, match="strides must be 1"):
        tf.nn.depthwise_conv2d(x, kernel, [1, 2, 2, 1], "SAME", dilations=[2, 2])
