"""Keras: `keras.ops` against NumPy."""

import numpy as np
import pytest

import taut as tf
from taut import keras

ops = keras.ops

A = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]], dtype="float32")
B = np.array([[2.0, 0.5, -1.0], [1.5, -3.0, 4.0]], dtype="float32")
UNIT = np.array([-0.9, -0.25, 0.0, 0.4, 0.8], dtype="float32")
POSITIVE = np.array([0.1, 1.0, 2.5, 10.0], dtype="float32")
WHOLE = np.array([[7, -3, 4], [0, 5, -6]], dtype="int32")
HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 2.0]], dtype="float32")


def check(name, *args, rtol=2e-6, **kwargs):
    """Compares one call with NumPy's, shapes included."""
    mine = getattr(ops, name)(*args, **kwargs)
    theirs = getattr(np, name)(*args, **kwargs)
    compare(mine, theirs, rtol)


def compare(mine, theirs, rtol=2e-6):
    if isinstance(theirs, (tuple, list)):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs):
            compare(one, other, rtol)
        return
    mine = ops.convert_to_numpy(mine)
    assert mine.shape == np.shape(theirs)
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    "abs absolute negative sign square exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh floor ceil "
    "trunc round isfinite isnan isinf logical_not signbit deg2rad rad2deg sinc cbrt reciprocal_ fabs isreal "
    "real conj".split(),
)
def test_functions_of_elements(name):
    if name == "reciprocal_":
        check("reciprocal", A[A != 0])
    else:
        check(name, A)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh"])
def test_functions_on_the_unit_interval(name):
    check(name, UNIT)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "sqrt"])
def test_functions_of_positive_numbers(name):
    check(name, POSITIVE)


def test_arccosh():
    check("arccosh", POSITIVE + 1)


@pytest.mark.parametrize(
    "name",
    "add subtract multiply divide true_divide floor_divide mod fmod maximum minimum fmax fmin arctan2 hypot "
    "logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal logical_and logical_or "
    "logical_xor isclose heaviside nextafter".split(),
)
def test_functions_of_pairs(name):
    check(name, A, B)
    check(name, A, B[0])


def test_powers_of_positive_numbers():
    check("power", np.abs(A) + 0.1, B)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"])
def test_functions_of_whole_numbers(name):
    check(name, WHOLE, np.array([[3, 9, 2], [4, 15, 4]], dtype="int32"))


def test_shifts():
    check("left_shift", WHOLE, np.int32(2))
    check("right_shift", WHOLE, np.int32(1))
    check("bitwise_invert", WHOLE)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "var", "std", "ptp", "median"])
def test_reductions(name, axis, keepdims):
    check(name, A, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanstd", "nanvar", "nanmedian"])
def test_reductions_without_nan(name, axis):
    rows = HOLES[:, [0, 2]] if axis == 0 else HOLES
    check(name, rows, axis=axis)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantiles(axis, method):
    x = np.array([[1.0, 7.0, 3.0, 9.0], [4.0, 4.5, -2.0, 0.0], [5.0, 6.0, 8.0, 2.0]], dtype="float32")
    check("quantile", x, 0.3, axis=axis, method=method)
    check("quantile", x, np.array([0.0, 0.45, 1.0]), axis=axis, method=method)
    check("percentile", x, 75.0, axis=axis, method=method)


def test_quantiles_without_nan():
    check("nanquantile", HOLES, 0.5, axis=1)
    check("nanpercentile", HOLES, 25.0)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum", "cumprod"])
def test_along_an_axis(name, axis):
    check(name, A, axis=axis)


def test_averages_and_counts():
    check("average", A, axis=1, weights=np.array([1.0, 2.0, 3.0], dtype="float32"))
    check("count_nonzero", A, axis=0)
    check("trapezoid", A, dx=0.5)
    check("trapezoid", A, x=np.array([0.0, 1.0, 3.0], dtype="float32"))
    check("bincount", np.array([1, 3, 1, 0]), minlength=6)
    check("bincount", np.array([1, 3, 1, 0]), weights=np.array([0.5, 1.0, 2.0, 4.0], dtype="float32"))
    check("histogram", A.ravel(), bins=4)
    check("histogram", A.ravel(), bins=3, range=(-1.0, 2.0))
    check("corrcoef", A, rtol=1e-5)
    check("diff", A, n=2, axis=1)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sorting(axis):
    check("sort", A, axis=axis)
    check("argsort", A, axis=axis)


def test_searching():
    edges = np.array([-1.0, 0.0, 1.0, 2.0], dtype="float32")
    check("searchsorted", edges, A.ravel(), side="left")
    check("searchsorted", edges, A.ravel(), side="right")
    check("digitize", A, edges)
    check("isin", A, B)
    check("isin", A, B, invert=True)
    check("nonzero", A)
    check("where", A > 0, A, B)
    values, places = np.unique(WHOLE % 3, return_inverse=True)
    compare(ops.unique(WHOLE % 3, return_inverse=True), (values, places.reshape(WHOLE.shape)))
    values, first, counts = np.unique(np.array([3, 1, 3, 2, 1]), return_index=True, return_counts=True)
    compare(ops.unique(np.array([3, 1, 3, 2, 1]), return_index=True, return_counts=True), (values, first, counts))


def test_taking():
    check("take", A, np.array([2, 0, -1]), axis=1)
    check("take", A, np.array([[5, 0], [1, 1]]))
    check("take_along_axis", A, np.array([[2, 0], [1, 1]]), axis=1)
    check("unravel_index", np.array([0, 4, 5]), (2, 3))
    check("select", [A > 1, A < 0], [A, B], 9.0)


def test_shapes(rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    check("reshape", x, (4, -1))
    check("transpose", x)
    check("transpose", x, (2, 0, 1))
    check("moveaxis", x, (0, 1), (-1, 0))
    check("swapaxes", x, 0, -1)
    check("expand_dims", x, (0, -1))
    check("squeeze", x[:, :1], 1)
    check("flip", x, (0, 2))
    check("fliplr", x)
    check("flipud", x)
    check("rot90", x, 3, (1, 2))
    check("roll", x, 2)
    check("roll", x, (1, -1), (0, 2))
    check("tile", x, (2, 1))
    check("repeat", x, 2, axis=1)
    check("ravel", x)
    check("broadcast_to", A, (4, 2, 3))
    check("concatenate", [A, B], 1)
    check("stack", [A, B], -1)
    check("hstack", [A, B])
    check("vstack", [A, B])
    check("dstack", [A, B])
    check("append", A, B)
    check("split", x, 2, 2)
    check("split", x, [1, 3], 2)
    check("array_split", x, 3, 2)
    check("meshgrid", UNIT, POSITIVE, indexing="ij")
    check("meshgrid", UNIT, POSITIVE)


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric", "edge", "wrap"])
def test_padding(mode):
    check("pad", A, ((1, 0), (2, 1)), mode=mode)


def test_padding_with_a_value():
    check("pad", A, 1, constant_values=7.0)


def test_diagonals(rng):
    x = rng.normal(size=(3, 4)).astype("float32")
    for k in (-1, 0, 2):
        check("tril", x, k)
        check("triu", x, k)
        check("diagonal", x, k)
        check("diag", x, k)
        check("diag", x[0], k)
        check("diagflat", x[:2], k)
        check("trace", x, k)


def test_products(rng):
    x, y = rng.normal(size=(2, 3, 4)).astype("float32"), rng.normal(size=(2, 4, 5)).astype("float32")
    check("matmul", x, y, rtol=1e-5)
    check("matmul", x, y[0], rtol=1e-5)
    check("matmul", x[0, 0], y[0], rtol=1e-5)
    check("matmul", x[0], y[0, :, 0], rtol=1e-5)
    check("dot", x, y[0], rtol=1e-5)
    check("inner", x, x[0], rtol=1e-5)
    check("vdot", A, B)
    check("outer", A, B)
    check("tensordot", x, y, ((0, 2), (0, 1)), rtol=1e-5)
    check("einsum", "bij,bjk->bik", x, y, rtol=1e-5)
    check("kron", A, B)
    check("cross", A, B)
    check("correlate", POSITIVE, UNIT[:3], mode="full")
    check("correlate", POSITIVE, UNIT[:3], mode="same")


def test_creation():
    check("arange", 2.0, 7.0, 0.5)
    check("linspace", 1.0, 4.0, 7)
    check("linspace", A, B, 3, endpoint=False, axis=1)
    check("logspace", 0.0, 2.0, 5)
    check("geomspace", 1.0, 16.0, 5, rtol=1e-5)
    check("eye", 3, 4, 1)
    check("tri", 3, 4, -1)
    check("full_like", A, 3.0)
    check("vander", POSITIVE, 3)
    for window in ("bartlett", "blackman", "hamming", "hanning"):
        check(window, 7)
    check("kaiser", 7, 3.5)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16"])
def test_views_of_bytes(dtype):
    x = np.arange(8, dtype="int16").reshape(2, 4)
    made = ops.view(x, dtype=dtype).numpy()
    assert made.tobytes() == x.tobytes() and made.shape == x.view(dtype).shape
    with pytest.raises(ValueError, match="must be a multiple"):
        ops.view(x[:, :3], dtype="int64")


def test_nan_to_num():
    check("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1.0], dtype="float32"))
    check("nan_to_num", np.array([np.nan, np.inf], dtype="float32"), nan=1.0, posinf=2.0)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("int32", "float32", "float32"),
        ("int64", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("float16", "int32", "float16"),
        ("bfloat16", "float16", "float32"),
        ("uint8", "int8", "int16"),
        ("int64", "int32", "int64"),
        ("float64", "float32", "float64"),
        ("bool", "int32", "int32"),
    ],
)
def test_types_meet_as_keras_says(left, right, result):
    made = ops.add(ops.ones((2,), left), ops.ones((2,), right))
    assert keras.backend.standardize_dtype(made.dtype) == result


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_numbers_take_the_type_of_the_tensor(dtype):
    assert keras.backend.standardize_dtype((ops.ones((2,), dtype) * 2).dtype) == dtype
    assert keras.backend.standardize_dtype(ops.multiply(ops.ones((2,), dtype), 2).dtype) == dtype


def test_whole_numbers_become_floats_where_needed():
    assert keras.backend.standardize_dtype(ops.sqrt(WHOLE * WHOLE).dtype) == "float32"
    assert keras.backend.standardize_dtype(ops.mean(WHOLE).dtype) == "float32"
    assert keras.backend.standardize_dtype(ops.sum(np.ones(3, "uint8")).dtype) == "uint32"


def test_halves_are_averaged_without_overflow():
    assert float(ops.mean(np.full(4, 60000.0, "float16"))) == 60000.0


Z = np.array([[1 + 2j, -0.5 + 0.25j, 3 - 1j], [0.1 - 0.7j, -2 - 0.5j, 0.4 + 0.9j]], dtype="complex64")
W = np.array([[0.5 - 1j, 2 + 0.5j, -1 + 1.5j], [1.5 + 0.2j, -0.3 + 0.8j, 0.7 - 0.6j]], dtype="complex64")


@pytest.mark.parametrize("mode", ["valid", "same", "full"])
def test_correlations_of_complex_numbers(mode):
    check("correlate", Z.ravel(), W[0], mode, rtol=1e-5)
    check("correlate", W[0], Z.ravel(), mode, rtol=1e-5)
    check("correlate", Z[0], A[0], mode, rtol=1e-5)


def test_complex_numbers_are_conjugated_and_measured_by_their_absolute_values():
    check("vdot", Z, W, rtol=1e-5)
    for axis in (None, 0, 1):
        check("var", Z, axis=axis, rtol=1e-5)
        check("std", Z, axis=axis, rtol=1e-5)
    holes = np.where(Z.real > 2, np.complex64(np.nan), Z)
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        check(name, holes, rtol=1e-5)
    for order in (None, 0, 1, 2, 3, np.inf, -np.inf):
        compare(ops.norm(Z, order, axis=1), np.linalg.norm(Z, order, axis=1), 1e-5)
    for order in (None, "fro", 1, -1, np.inf, -np.inf):
        compare(ops.norm(Z, order, axis=(0, 1)), np.linalg.norm(Z, order, axis=(0, 1)), 1e-5)
    compare(ops.norm(Z), np.linalg.norm(Z), 1e-5)


def test_complex_numbers_that_are_not_finite():
    given = np.array([1 + 2j, complex(np.nan, 1), complex(1, np.nan), complex(np.inf, -np.inf), complex(0, np.inf)])
    for name in ("isnan", "isinf", "isfinite", "nan_to_num"):
        check(name, given)
    compare(ops.nan_to_num(given, 1.0, 2.0, 3.0), np.nan_to_num(given, nan=1.0, posinf=2.0, neginf=3.0))
    check("isclose", given, given)
    check("isclose", given, given, equal_nan=True)


def test_lengths_that_depend_on_values_in_traced_functions():
    x = tf.constant([1, 1, 3])
    # Without a length, the function runs op by op; with one, a value beyond it is an error, and is not dropped.
    with pytest.warns(RuntimeWarning, match="runs op by op"):
        assert tf.function(lambda v: ops.bincount(v))(x).numpy().tolist() == [0, 2, 0, 1]
    with pytest.warns(RuntimeWarning, match="runs op by op"):
        assert tf.function(lambda v: ops.segment_sum(v, v))(x).numpy().tolist() == [0, 2, 0, 3]
    counted = tf.function(lambda v: ops.bincount(v, minlength=4))
    assert counted(x).numpy().tolist() == [0, 2, 0, 1]
    assert counted.trace_count == 1
    with pytest.raises(ValueError, match="less than minlength"):
        counted(tf.constant([1, 1, 4]))
    assert ops.bincount(np.zeros([0], "int32")).shape == (0,)


def test_discretization_in_a_traced_model():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Discretization(bin_boundaries=[-0.5, 0, 0.1, 0.2, 3])(inputs))
    x = np.array([[0.0, 0.15, 0.21, 0.3], [0.0, 0.17, 0.451, 7.8]])
    assert model.predict(x, verbose=0).tolist() == [[2, 3, 4, 4], [2, 3, 4, 5]] == model(x).numpy().tolist()
