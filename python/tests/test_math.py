"""tf.math against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.special as special
from checks import fails

import taut as tf

RNG = np.random.default_rng(7)
TOLERANCE = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 2e-6, "float64": 1e-12}


def layouts(values):
    """The same kind of values in one piece, with steps, transposed, without elements, without dimensions."""
    wide = np.stack([values, values], -1).reshape(*values.shape[:-1], -1)
    yield tf.constant(values), values
    yield tf.constant(wide)[..., ::2], wide[..., ::2]
    yield tf.transpose(tf.constant(values)), values.T
    yield tf.constant(values)[::-1], values[::-1]
    yield tf.constant(values)[:0], values[:0]
    yield tf.constant(values.ravel()[1]), values.ravel()[1]


def close(got, want, dtype=None):
    got = got.numpy() if hasattr(got, "numpy") else got
    want = np.asarray(want)
    assert np.shape(got) == want.shape
    tolerance = TOLERANCE[dtype or (got.dtype.name if got.dtype.kind == "f" else "float64")]
    np.testing.assert_allclose(np.asarray(got, "float64"), want.astype("float64"), rtol=10 * tolerance, atol=tolerance)


ANY, POSITIVE, UNIT, ABOVE = (-3.0, 3.0), (0.2, 4.0), (-0.9, 0.9), (1.1, 4.0)
UNARY = {
    "abs": (np.abs, ANY),
    "acos": (np.arccos, UNIT),
    "acosh": (np.arccosh, ABOVE),
    "asin": (np.arcsin, UNIT),
    "asinh": (np.arcsinh, ANY),
    "atan": (np.arctan, ANY),
    "atanh": (np.arctanh, UNIT),
    "ceil": (np.ceil, ANY),
    "cos": (np.cos, ANY),
    "cosh": (np.cosh, ANY),
    "digamma": (special.digamma, POSITIVE),
    "erf": (special.erf, ANY),
    "erfc": (special.erfc, ANY),
    "erfinv": (special.erfinv, UNIT),
    "exp": (np.exp, ANY),
    "expm1": (np.expm1, ANY),
    "floor": (np.floor, ANY),
    "lgamma": (special.gammaln, POSITIVE),
    "log": (np.log, POSITIVE),
    "log1p": (np.log1p, POSITIVE),
    "log_sigmoid": (special.log_expit, ANY),
    "negative": (np.negative, ANY),
    "reciprocal": (np.reciprocal, POSITIVE),
    "rint": (np.rint, ANY),
    "round": (np.round, ANY),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "sigmoid": (special.expit, ANY),
    "sign": (np.sign, ANY),
    "sin": (np.sin, ANY),
    "sinh": (np.sinh, ANY),
    "softplus": (lambda x: np.logaddexp(0, x), ANY),
    "softsign": (lambda x: x / (1 + np.abs(x)), ANY),
    "sqrt": (np.sqrt, POSITIVE),
    "square": (np.square, ANY),
    "tan": (np.tan, UNIT),
    "tanh": (np.tanh, ANY),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_unary(name, dtype):
    reference, (low, high) = UNARY[name]
    for x, values in layouts(RNG.uniform(low, high, (3, 4)).astype(dtype)):
        got = getattr(tf.math, name)(x, name="a_name")
        assert got.dtype.name == dtype
        close(got, reference(np.asarray(values, "float64")), dtype)


def test_bfloat16():
    x = tf.cast([0.5, 1.5, -2.0], tf.bfloat16)
    assert tf.math.exp(x).dtype == tf.bfloat16
    close(tf.cast(tf.math.exp(x), tf.float32), np.exp([0.5, 1.5, -2.0]), "bfloat16")


BINARY = {
    "add": np.add,
    "atan2": np.arctan2,
    "divide": np.divide,
    "equal": np.equal,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logaddexp": np.logaddexp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "not_equal": np.not_equal,
    "pow": np.power,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "subtract": np.subtract,
    "xdivy": np.divide,
    "xlog1py": special.xlog1py,
    "xlogy": special.xlogy,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary(name, dtype):
    x, y = RNG.uniform(0.5, 4, (2, 3, 4)).astype(dtype), RNG.uniform(0.5, 2, (3, 1)).astype(dtype)
    compares = BINARY[name](x, y).dtype == bool
    pairs = [
        (tf.constant(x), tf.constant(y), x, y),
        (tf.transpose(tf.constant(x))[::2], y[0, 0], x.T[::2], y[0, 0]),
        (tf.constant(x[:0]), tf.constant(y), x[:0], y),
    ]
    for a, b, u, v in pairs:
        got = getattr(tf.math, name)(a, tf.constant(b), name="a_name")
        assert got.dtype.name == ("bool" if compares else dtype)
        close(got, BINARY[name](u, v), dtype)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers(dtype):
    x, y = np.array([7, 5, 100], dtype), np.array([2, 3, 7], dtype)
    for name in ("add", "subtract", "multiply", "floordiv", "floormod", "maximum", "minimum"):
        got = getattr(tf.math, name)(tf.constant(x), tf.constant(y))
        assert got.dtype.name == dtype
        assert got.numpy().tolist() == BINARY[name](x, y).tolist()
    assert tf.divide(tf.constant(x), tf.constant(y)).dtype == tf.float32


def test_numbers_take_the_tensors_type():
    x = tf.constant([1.5, 2.5])
    assert tf.add(x, 1).dtype == tf.float32
    assert tf.multiply(2, x).dtype == tf.float32
    assert tf.add(tf.constant([1, 2]), 1).dtype == tf.int32


REDUCTIONS = {
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_mean": np.mean,
    "reduce_std": np.std,
    "reduce_variance": np.var,
    "reduce_logsumexp": special.logsumexp,
    "reduce_euclidean_norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2], [-1, 0, 1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, dtype, axis, keepdims):
    values = RNG.uniform(0.5, 1.5, (2, 3, 4)).astype(dtype)
    for x, array in [
        (tf.constant(values), values),
        (tf.constant(values)[:, ::-1], values[:, ::-1]),
        (tf.transpose(tf.constant(values)), values.T),
    ]:
        got = getattr(tf.math, name)(x, axis=axis, keepdims=keepdims, name="a_name")
        assert got.dtype.name == dtype
        over = tuple(axis) if isinstance(axis, list) else axis
        close(got, REDUCTIONS[name](array.astype("float64"), axis=over, keepdims=keepdims), dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_reductions_keep_integers(dtype):
    values = np.array([[1, 2], [3, 5]], dtype)
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "cumprod"):
        assert getattr(tf.math, name)(values).dtype.name == dtype
    assert tf.reduce_sum(values, 0).numpy().tolist() == [4, 7]
    assert tf.reduce_mean(values).numpy() == 2
    assert tf.reduce_mean(tf.constant([-3, 0])).numpy() == -1
    assert tf.reduce_sum(tf.constant([2**31 - 1, 1])).numpy() == -(2**31)


def test_reductions_of_nothing():
    nothing = tf.zeros([0, 3])
    assert tf.reduce_sum(nothing, 0).numpy().tolist() == [0, 0, 0]
    assert tf.reduce_prod(nothing, 0).numpy().tolist() == [1, 1, 1]
    assert tf.reduce_max(nothing, 0).numpy().tolist() == [-np.inf] * 3
    assert tf.reduce_min(tf.zeros([0], tf.int32)).numpy() == 2**31 - 1
    assert tf.reduce_max(tf.zeros([0], tf.uint8)).numpy() == 0
    assert tf.reduce_max(nothing, 1, keepdims=True).shape == (0, 1)
    assert np.isnan(tf.reduce_mean(nothing))
    assert bool(tf.reduce_all(tf.zeros([0], tf.bool)))
    assert not bool(tf.reduce_any(tf.zeros([0], tf.bool)))


def test_reductions_refuse():
    fails(ValueError, "sum", lambda: tf.reduce_sum(tf.zeros([2, 2]), axis=2))
    fails(TypeError, "reduce_sum", lambda: tf.reduce_sum(tf.constant([True, False])))
    fails(TypeError, "reduce_mean", lambda: tf.reduce_mean(tf.constant([True, False])))
    fails(ValueError, "max", lambda: tf.reduce_max(tf.zeros([2]), axis=-2))
    with pytest.raises(TypeError, match="reduce_any"):
        tf.reduce_any([True], axes=0)


def test_arg_extremes():
    x = np.array([[3, 9, 2], [8, 1, 8]], "float32")
    assert tf.argmax(x).numpy().tolist() == np.argmax(x, 0).tolist()
    assert tf.argmin(x, axis=1, output_type=tf.int32).numpy().tolist() == [2, 1]
    assert tf.argmax(x, -1).dtype == tf.int64
    assert tf.argmin(x, 1, tf.int32).dtype == tf.int32
    fails(ValueError, "argmax", lambda: tf.argmax(tf.zeros([2]), axis=3))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running(axis):
    x = RNG.uniform(-1, 1, (3, 4))
    close(tf.cumsum(x, axis), np.cumsum(x, axis))
    close(tf.math.cumprod(x, axis), np.cumprod(x, axis))
    close(tf.cumsum(x, axis, reverse=True), np.flip(np.cumsum(np.flip(x, axis), axis), axis))
    close(tf.cumsum(x, axis, exclusive=True), np.cumsum(x, axis) - x)
    close(tf.math.cumulative_logsumexp(x, axis), np.logaddexp.accumulate(x, axis))
    rest = tf.math.cumulative_logsumexp(x, axis, exclusive=True).numpy()
    first, others = np.split(rest, [1], axis)
    assert np.all(first == -np.inf)
    close(others, np.logaddexp.accumulate(np.split(x, [x.shape[axis] - 1], axis)[0], axis))
    close(tf.math.cummax(x, axis), np.maximum.accumulate(x, axis))
    close(tf.math.cummin(x, axis), np.minimum.accumulate(x, axis))


def test_softmax_and_norms():
    x = RNG.normal(size=(3, 4))
    for axis in (None, 0, 1):
        over = -1 if axis is None else axis
        close(tf.math.softmax(x, axis), special.softmax(x, over))
        close(tf.math.log_softmax(x, axis=axis), special.log_softmax(x, over))
    close(tf.math.l2_normalize(x, 1), x / np.linalg.norm(x, axis=1, keepdims=True))
    close(tf.math.l2_normalize(x, dim=0), x / np.linalg.norm(x, axis=0, keepdims=True))
    fails(TypeError, "softmax", lambda: tf.math.softmax(tf.constant([1, 2])))


def test_top_k():
    x = np.array([[1.0, 9.0, 3.0], [7.0, 7.0, 2.0]], "float32")
    values, indices = tf.math.top_k(x, k=2)
    assert values.numpy().tolist() == [[9, 3], [7, 7]]
    assert indices.numpy().tolist() == [[1, 2], [0, 1]]
    assert indices.dtype == tf.int32
    assert tf.math.top_k(x, 2, index_type=tf.int64).indices.dtype == tf.int64
    fails(ValueError, "top_k", lambda: tf.math.top_k(x, 4))
    got = tf.math.in_top_k([0, 0, 5], [[3.0, 1.0, 2.0], [1.0, 3.0, 2.0], [1.0, 1.0, 1.0]], 2)
    assert got.numpy().tolist() == [True, False, False]
    assert tf.math.in_top_k([0], [[np.inf, 1.0]], 1).numpy().tolist() == [False]
    fails(ValueError, "in_top_k", lambda: tf.math.in_top_k([0, 1], [[3.0, 1.0]], 2))


def test_zero_is_safe_and_so_is_its_gradient():
    x, y = tf.constant([0.0, 2.0]), tf.constant([0.0, 4.0])
    cases = [
        (lambda: tf.math.divide_no_nan(x, y), [0, 0.5]),
        (lambda: tf.math.reciprocal_no_nan(y), [0, 0.25]),
        (lambda: tf.math.xdivy(x, y), [0, 0.5]),
        (lambda: tf.math.xlogy(x, y), [0, 2 * np.log(4)]),
        (lambda: tf.math.xlog1py(x, y - 1), [0, 2 * np.log(4)]),
    ]
    for work, want in cases:
        with tf.GradientTape() as tape:
            tape.watch(y)
            got = work()
        close(got, want, "float32")
        assert np.all(np.isfinite(tape.gradient(got, y).numpy()))


def test_sums_of_several():
    parts = [RNG.normal(size=(2, 3)) for _ in range(3)]
    close(tf.add_n(parts), sum(parts))
    close(tf.math.accumulate_n(parts, shape=[2, 3], tensor_dtype=tf.float64), sum(parts))
    close(tf.math.polyval([2.0, 0.0, 1.0], tf.constant(parts[0])), 2 * parts[0] ** 2 + 1)
    close(tf.math.scalar_mul(3.0, parts[0]), 3 * parts[0])
    fails(ValueError, "add_n", lambda: tf.add_n([tf.zeros([2]), tf.zeros([3])]))
    fails(ValueError, "add_n", lambda: tf.add_n([]))
    fails(TypeError, "accumulate_n", lambda: tf.math.accumulate_n(parts, tensor_dtype=tf.float32))
    fails(ValueError, "polyval", lambda: tf.math.polyval(tf.zeros([2]), 1.0))


def test_order_and_parts():
    assert bool(tf.math.is_non_decreasing([1, 1, 2]))
    assert not bool(tf.math.is_strictly_increasing([1, 1, 2]))
    assert bool(tf.math.is_strictly_increasing(tf.zeros([0])))
    x = tf.constant([-1.0, 2.0])
    assert tf.math.real(x).numpy().tolist() == [-1, 2]
    assert tf.math.imag(x).numpy().tolist() == [0, 0]
    close(tf.math.angle(x), [np.pi, 0], "float32")
    a, b = 2.5, 1.5
    close(tf.math.lbeta([a, b]), np.log(special.beta(a, b)), "float32")
    assert tf.math.zero_fraction([0, 3, 0, 0]).numpy() == 0.75
    assert tf.math.zero_fraction([0, 3]).dtype == tf.float32
    assert tf.math.count_nonzero([[0, 3], [1, 1]], axis=1).numpy().tolist() == [1, 2]
    assert tf.math.count_nonzero([0, 3], dtype=tf.int32).dtype == tf.int32


def test_what_is_nothing_at_zero_has_the_gradient_of_the_rest():
    x, y = tf.constant([0.0, 1.0, np.inf, 3.0]), tf.constant([2.0, 0.0, 0.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        product = tf.math.multiply_no_nan(x, y)
        quotient = tf.math.xdivy(x[::3], y[::3])
    assert product.numpy().tolist() == [0.0, 0.0, 0.0, 6.0]
    # As in TensorFlow, the other factor.
    assert tape.gradient(product, y).numpy().tolist() == [0.0, 1.0, np.inf, 3.0]
    assert tape.gradient(quotient, x).numpy().tolist() == [0.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("name", ["multiply_no_nan", "xdivy", "xlogy", "xlog1py"])
def test_numbers_take_the_type_of_the_other_argument(name):
    made = getattr(tf.math, name)(2, tf.constant([5.0, 6.0]))
    assert made.dtype == tf.float32
    assert getattr(tf.math, name)(tf.constant([5.0], tf.float16), 2).dtype == tf.float16


def test_a_tensor_is_added_up_by_its_slices():
    assert tf.add_n(tf.constant([[1.0, 2.0], [3.0, 4.0]])).numpy().tolist() == [4.0, 6.0]
    assert tf.add_n([tf.constant([1.0]), [2]]).dtype == tf.float32
