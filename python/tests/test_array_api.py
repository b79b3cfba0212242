"""taut.array_api against NumPy, whose main namespace follows the same standard."""

import numpy as np
import pytest
from checks import fails

import taut as tf
from taut import array_api as xp

RNG = np.random.default_rng(9)
NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NAMES += ["float32", "float64"]
X = RNG.uniform(0.2, 0.9, (2, 3, 4)).astype("float32")


def close(got, want, tolerance=1e-5):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    got, want = np.asarray(got, "float64"), want.astype("float64")
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def same(got, want):
    want = np.asarray(want)
    assert got.dtype.name == want.dtype.name
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


def test_the_standards_names_are_there():
    standard = """
        e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 arange
        asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu
        zeros zeros_like astype can_cast finfo iinfo isdtype result_type abs acos acosh add asin asinh atan
        atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor
        ceil clip copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot
        isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
        logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
        reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc take
        take_along_axis matmul matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat
        expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin
        count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse unique_values
        argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
        __array_namespace_info__ __array_api_version__
    """
    assert [name for name in standard.split() if not hasattr(xp, name)] == []
    assert xp.__array_api_version__ == "2024.12"
    assert set(standard.split()) <= set(xp.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_creation(name):
    dtype, plain = getattr(xp, name), np.dtype(name)
    same(xp.zeros((2, 3), dtype=dtype), np.zeros((2, 3), plain))
    same(xp.ones(3, dtype=dtype), np.ones(3, plain))
    same(xp.full((2,), 1, dtype=dtype), np.full((2,), 1, plain))
    same(xp.eye(3, 4, k=1, dtype=dtype), np.eye(3, 4, k=1, dtype=plain))
    assert xp.empty((0, 2), dtype=dtype).shape == (0, 2)
    like = xp.ones((2, 2), dtype=dtype)
    same(xp.zeros_like(like), np.zeros((2, 2), plain))
    same(xp.full_like(like, 1), np.ones((2, 2), plain))
    same(xp.asarray([0, 1], dtype=dtype), np.array([0, 1], plain))
    same(xp.tril(xp.ones((3, 3), dtype=dtype), k=-1), np.tril(np.ones((3, 3), plain), -1))
    same(xp.triu(xp.ones((3, 3), dtype=dtype)), np.triu(np.ones((3, 3), plain)))


def test_defaults():
    assert xp.zeros(2).dtype == xp.float32
    assert xp.arange(3).dtype == xp.int64
    assert xp.arange(3.0).dtype == xp.float32
    assert xp.asarray([1, 2]).dtype == xp.int64
    assert xp.asarray(3).dtype == xp.int64
    assert xp.asarray([1.5]).dtype == xp.float32
    assert xp.asarray([True]).dtype == xp.bool
    assert xp.full(2, 7).dtype == xp.int64
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == xp.int64
    assert info.devices() == [xp.zeros(2).device] == [info.default_device()]
    assert set(info.dtypes()) == {*NAMES, "complex64", "complex128"}
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert info.capabilities()["boolean indexing"]


def test_complex_numbers_and_transforms():
    array = np.array([1 + 2j, -0.5, 3 - 1j, 2j])
    z = xp.asarray(array)
    assert z.dtype == xp.complex128 and xp.isdtype(z.dtype, "complex floating") and xp.isdtype(z.dtype, "numeric")
    assert xp.finfo(xp.complex64).eps == xp.finfo(xp.float32).eps
    for name in ("real", "imag", "conj", "abs"):
        close(getattr(xp, name)(z), getattr(np, name)(array))
    close(xp.vecdot(z, z), np.vdot(array, array))
    for name in ("fft", "ifft", "hfft", "irfft"):
        for norm in ("backward", "ortho", "forward"):
            close(getattr(xp.fft, name)(z, norm=norm), getattr(np.fft, name)(array, norm=norm))
    close(xp.fft.rfft(xp.real(z), n=6), np.fft.rfft(array.real, 6))
    close(xp.fft.ihfft(xp.real(z)), np.fft.ihfft(array.real))
    close(xp.fft.fftn(xp.reshape(z, (2, 2)), axes=(0,)), np.fft.fftn(array.reshape(2, 2), axes=(0,)))
    close(xp.fft.fftfreq(5, d=0.5), np.fft.fftfreq(5, 0.5))
    close(xp.fft.fftshift(z), np.fft.fftshift(array))


def test_ranges():
    same(xp.arange(2, 9, 3), np.arange(2, 9, 3))
    same(xp.arange(5, 5), np.arange(0))
    same(xp.arange(0, 5, -1), np.arange(0, 5, -1))
    close(xp.linspace(0, 1, 5), np.linspace(0, 1, 5))
    close(xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float64), np.linspace(0, 1, 5, endpoint=False))
    for got, want in zip(xp.meshgrid(xp.arange(3), xp.arange(2)), np.meshgrid(np.arange(3), np.arange(2))):
        same(got, want)


def test_asarray_copies_only_where_it_must():
    array = np.ones((8, 8), "float32")
    shared = xp.asarray(array, copy=False)
    assert shared.data_ptr() == array.__array_interface__["data"][0]
    copied = xp.asarray(array, copy=True)
    array[0, 0] = 7
    assert float(copied[0, 0]) == 1
    assert xp.asarray(shared, copy=False).data_ptr() == shared.data_ptr()
    assert xp.asarray(shared, copy=True).data_ptr() != shared.data_ptr()
    assert xp.from_dlpack(shared).data_ptr() == shared.data_ptr()
    fails(ValueError, "asarray", lambda: xp.asarray([1, 2], copy=False))
    fails(ValueError, "asarray", lambda: xp.asarray(shared, dtype=xp.int32, copy=False))
    fails(ValueError, "asarray", lambda: xp.asarray([1], device="gpu"))


UNARY = [
    "abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor",
    "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "negative", "positive", "reciprocal",
    "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "real",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unary(name, dtype):
    values = X.astype(dtype)
    reference = getattr(np, name)
    for x, plain in (
        (tf.constant(values), values),
        (tf.constant(values)[:, ::2], values[:, ::2]),
        (tf.transpose(values), values.T),
        (tf.constant(values[:0]), values[:0]),
        (tf.constant(values[0, 0, 0]), values[0, 0, 0]),
    ):
        got = getattr(xp, name)(x)
        assert got.dtype.name == np.asarray(reference(plain)).dtype.name
        close(got, reference(plain))


BINARY = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot",
    "less", "less_equal", "logaddexp", "maximum", "minimum", "multiply", "nextafter", "not_equal",
    "pow", "remainder", "subtract",
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = X - 0.5, RNG.uniform(0.5, 2, (3, 1)).astype("float32")
    x = np.abs(x) if name == "pow" else x
    reference = getattr(np, name)
    close(getattr(xp, name)(tf.constant(x), tf.constant(y)), reference(x, y))
    got = getattr(xp, name)(tf.constant(x), 1.5)
    assert got.dtype.name == reference(x, np.float32(1.5)).dtype.name
    close(got, reference(x, np.float32(1.5)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integers_and_bits(dtype):
    x, y = np.array([7, 5, 100], dtype), np.array([2, 3, 1], dtype)
    a, b = tf.constant(x), tf.constant(y)
    for name in ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_right_shift"):
        same(getattr(xp, name)(a, b), getattr(np, name)(x, y))
    for name in ("floor_divide", "remainder", "pow"):
        same(getattr(xp, name)(a, b), getattr(np, name)(x, y))
    same(xp.bitwise_left_shift(a, 1), np.left_shift(x, np.asarray(1, dtype)))
    same(xp.bitwise_invert(a), np.invert(x))
    for name in ("ceil", "floor", "trunc", "round", "sign", "square", "abs"):
        assert getattr(xp, name)(a).dtype.name == dtype


def test_logic():
    x, y = np.array([True, True, False]), np.array([True, False, False])
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"):
        same(getattr(xp, name)(tf.constant(x), tf.constant(y)), getattr(np, name)(x, y))
    same(xp.logical_not(tf.constant(x)), ~x)
    same(xp.bitwise_invert(tf.constant(x)), ~x)


def test_edges_of_floats():
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e38, np.finfo("f4").tiny], "float32")
    a, b = (one.ravel() for one in np.meshgrid(edges, edges))
    for name in ("nextafter", "copysign", "hypot"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(a, b)
        np.testing.assert_array_equal(getattr(xp, name)(tf.constant(a), tf.constant(b)), want)
    same(xp.signbit(tf.constant(edges)), np.signbit(edges))
    same(xp.clip(tf.constant(edges[5:8]), -0.5, 0.5), np.clip(edges[5:8], -0.5, 0.5))
    same(xp.clip(tf.constant([1, 5]), max=3), np.array([1, 3], "int32"))
    same(xp.clip(tf.constant([1, 5]), tf.constant(2)), np.array([2, 5], "int32"))
    same(xp.clip(tf.constant([1, 5])), np.array([1, 5], "int32"))
    fails(TypeError, "signbit", lambda: xp.signbit(tf.constant([1])))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_statistics(axis, keepdims):
    for x, plain in ((tf.constant(X), X), (tf.transpose(X), X.T)):
        for name in ("sum", "prod", "mean", "max", "min", "all", "any", "count_nonzero"):
            got = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
            close(got, getattr(np, name)(plain, axis=axis, keepdims=keepdims), 1e-4)
        for name in ("var", "std"):
            got = getattr(xp, name)(x, axis=axis, correction=1.0, keepdims=keepdims)
            close(got, getattr(np, name)(plain, axis=axis, correction=1, keepdims=keepdims), 1e-4)


def test_statistics_types():
    for name in NAMES[1:]:
        x = xp.ones((2, 2), dtype=getattr(xp, name))
        same(xp.sum(x), np.sum(np.ones((2, 2), name)))
        same(xp.prod(x), np.prod(np.ones((2, 2), name)))
        assert xp.max(x).dtype.name == name
        same(xp.cumulative_sum(x, axis=0), np.cumsum(np.ones((2, 2), name), 0))
    assert xp.sum(xp.ones(3, dtype=xp.int8), dtype=xp.float64).dtype == xp.float64
    assert xp.sum(xp.ones(3, dtype=xp.int8), dtype=xp.int16).dtype == xp.int16
    close(
        xp.cumulative_sum(tf.constant(X), axis=1, include_initial=True),
        np.cumulative_sum(X, axis=1, include_initial=True),
    )
    close(
        xp.cumulative_prod(tf.constant(X), axis=-1, include_initial=True),
        np.cumulative_prod(X, axis=-1, include_initial=True),
    )
    close(xp.diff(tf.constant(X), axis=1), np.diff(X, axis=1))
    close(xp.diff(tf.constant(X), n=2, prepend=tf.constant(X[..., :1])), np.diff(X, n=2, prepend=X[..., :1]))
    fails(ValueError, "cumulative_sum", lambda: xp.cumulative_sum(tf.constant(X)))


def test_manipulation():
    x = tf.constant(X)
    same(xp.permute_dims(x, (2, 0, 1)), X.transpose(2, 0, 1))
    same(xp.moveaxis(x, 0, -1), np.moveaxis(X, 0, -1))
    same(xp.flip(x), np.flip(X))
    same(xp.flip(x, axis=(0, -1)), np.flip(X, (0, -1)))
    same(xp.roll(x, 2), np.roll(X, 2))
    same(xp.roll(x, (1, -1), axis=(0, 2)), np.roll(X, (1, -1), (0, 2)))
    same(xp.concat([x, x], axis=1), np.concatenate([X, X], 1))
    same(xp.concat((x, x[0]), axis=None), np.concatenate([X, X[0]], None))
    same(xp.stack([x, x], axis=-1), np.stack([X, X], -1))
    same(xp.expand_dims(x, axis=-1), X[..., None])
    same(xp.expand_dims(x), X[None])
    same(xp.squeeze(xp.expand_dims(x), 0), X)
    same(xp.reshape(x, (4, -1)), X.reshape(4, -1))
    same(xp.repeat(x, 2, axis=1), np.repeat(X, 2, 1))
    same(xp.repeat(x, 2), np.repeat(X, 2))
    same(xp.tile(x, (2, 1)), np.tile(X, (2, 1)))
    same(xp.tile(x, (2, 1, 1, 3)), np.tile(X, (2, 1, 1, 3)))
    assert len(xp.unstack(x, axis=1)) == 3
    same(xp.unstack(x, axis=1)[2], X[:, 2])
    for got, want in zip(xp.broadcast_arrays(x, x[:1, :1]), np.broadcast_arrays(X, X[:1, :1])):
        same(got, want)
    same(xp.broadcast_to(x[0], (5, 3, 4)), np.broadcast_to(X[0], (5, 3, 4)))
    fails(ValueError, "broadcast_arrays", lambda: xp.broadcast_arrays(x, tf.zeros([7])))
    fails(ValueError, "reshape", lambda: xp.reshape(tf.transpose(X), (24,), copy=False))


def test_searching_and_sorting():
    x = tf.constant(X)
    for name in ("argmax", "argmin"):
        for axis in (None, 0, -1):
            for keepdims in (False, True):
                want = getattr(np, name)(X, axis=axis, keepdims=keepdims)
                same(getattr(xp, name)(x, axis=axis, keepdims=keepdims), np.asarray(want))
    for got, want in zip(xp.nonzero(x > 0.5), np.nonzero(X > 0.5)):
        same(got, want)
    same(xp.where(x > 0.5, x, 0.0), np.where(X > 0.5, X, np.float32(0)))
    same(xp.sort(x, axis=1), np.sort(X, 1))
    same(xp.sort(x, descending=True), -np.sort(-X))
    same(xp.argsort(x, axis=0), np.argsort(X, 0))
    edges = np.sort(X.ravel())
    same(xp.searchsorted(tf.constant(edges), x), np.searchsorted(edges, X))
    order = np.argsort(X.ravel())
    got = xp.searchsorted(tf.constant(X.ravel()), x, side="right", sorter=tf.constant(order))
    same(got, np.searchsorted(edges, X, "right"))
    same(xp.take(x, tf.constant([0, -1, 1]), axis=1), np.take(X, [0, -1, 1], 1))
    places = np.argsort(X, -1)
    same(xp.take_along_axis(x, tf.constant(places - 4)), np.sort(X))
    fails(IndexError, "gather", lambda: xp.take(x, tf.constant([9]), axis=0))
    fails(ValueError, "nonzero", lambda: xp.nonzero(tf.constant(1.0)))


def test_sets():
    x = np.array([[3, 1, 3], [2, 1, 3]])
    got = xp.unique_all(tf.constant(x))
    for one, want in zip(got, np.unique_all(x)):
        same(one, want)
    assert got._fields == ("values", "indices", "inverse_indices", "counts")
    for name in ("unique_counts", "unique_inverse"):
        for one, want in zip(getattr(xp, name)(tf.constant(x)), getattr(np, name)(x)):
            same(one, want)
    same(xp.unique_values(tf.constant(x)), np.unique(x))


def test_types():
    for a in NAMES:
        for b in NAMES:
            floats = [name for name in (a, b) if "float" in name]
            want = floats[0] if len(floats) == 1 else np.result_type(a, b).name
            if "uint64" in (a, b) and np.dtype(b if a == "uint64" else a).kind == "i":
                fails(TypeError, "where", lambda: xp.result_type(getattr(xp, a), getattr(xp, b)))
                want = None
            else:
                assert xp.result_type(getattr(xp, a), getattr(xp, b)).name == want
            assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == (want == b)
    assert xp.result_type(xp.float32, 1.0) == xp.float32
    assert xp.result_type(tf.constant([1], "int8"), 1) == xp.int8
    assert xp.isdtype(xp.int8, "signed integer")
    assert xp.isdtype(xp.float32, ("integral", "real floating"))
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.int8, xp.int8)
    assert not xp.isdtype(xp.float32, "complex floating")
    for name in ("float32", "float64"):
        info, want = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert (info.bits, info.eps, info.max, info.min) == (want.bits, want.eps, want.max, want.min)
        assert info.smallest_normal == want.smallest_normal
    for name in NAMES[1:9]:
        info, want = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert (info.bits, info.max, info.min) == (want.bits, want.max, want.min)
    x = tf.constant([1.5])
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32).data_ptr() != x.data_ptr()
    same(xp.astype(x, xp.int32), np.array([1], "int32"))
    fails(ValueError, "isdtype", lambda: xp.isdtype(xp.int8, "whole"))
    fails(TypeError, "finfo", lambda: xp.finfo(xp.int8))
    fails(TypeError, "iinfo", lambda: xp.iinfo(xp.float32))
    fails(ValueError, "result_type", lambda: xp.result_type(1, 2.0))


S = (RNG.normal(size=(2, 3, 3)) + 2 * np.eye(3)).astype("float64")


def test_linalg():
    s, symmetric = tf.constant(S), S @ S.transpose(0, 2, 1) + np.eye(3)
    close(xp.matmul(s, s), S @ S)
    close(xp.matrix_transpose(s), S.transpose(0, 2, 1))
    close(xp.vecdot(s, s, axis=1), np.vecdot(S, S, axis=1))
    close(xp.tensordot(s, s, axes=((1,), (2,))), np.tensordot(S, S, ((1,), (2,))))
    close(xp.linalg.det(s), np.linalg.det(S))
    close(xp.linalg.inv(s), np.linalg.inv(S))
    close(xp.linalg.solve(s, s[:, :, :2]), np.linalg.solve(S, S[:, :, :2]))
    upper = xp.linalg.cholesky(tf.constant(symmetric), upper=True)
    close(upper, np.linalg.cholesky(symmetric).transpose(0, 2, 1))
    close(xp.linalg.eigh(tf.constant(symmetric)).eigenvalues, np.linalg.eigvalsh(symmetric))
    u, values, vh = xp.linalg.svd(s, full_matrices=False)
    close((u * values[:, None, :]) @ vh, S)
    q, r = xp.linalg.qr(s)
    close(q @ r, S)
    close(xp.linalg.slogdet(s).logabsdet, np.linalg.slogdet(S).logabsdet)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        want = np.linalg.matrix_norm(S, ord=order, keepdims=True)
        close(xp.linalg.matrix_norm(s, ord=order, keepdims=True), want)
    for order in (1, 2, 3, np.inf):
        close(xp.linalg.vector_norm(s, axis=-1, ord=order), np.linalg.vector_norm(S, axis=-1, ord=order))
    turned = (S * np.exp(1j * S)).astype(np.complex64)
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        found = xp.linalg.vector_norm(tf.constant(turned), axis=-1, ord=order)
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, np.linalg.vector_norm(turned, axis=-1, ord=order), rtol=1e-5)
    for power in (-2, 0, 1, 5):
        close(xp.linalg.matrix_power(s, power), np.linalg.matrix_power(S, power))
    close(xp.linalg.outer(s[0, 0], s[0, 1]), np.outer(S[0, 0], S[0, 1]))
    close(xp.linalg.cross(s, s[:1], axis=1), np.cross(S, S[:1], axis=1))
    close(xp.linalg.trace(s, offset=1), np.trace(S, 1, 1, 2))
    close(xp.linalg.diagonal(s, offset=-1), np.diagonal(S, -1, 1, 2))
    close(xp.linalg.pinv(s), np.linalg.pinv(S))
    close(xp.linalg.matrix_rank(s), [3, 3])
    assert xp.linalg.matrix_rank(tf.constant([[1.0, 0.0], [0.0, 0.1]]), rtol=0.5).numpy() == 1
    fails(ValueError, "outer", lambda: xp.linalg.outer(s, s))
    fails(ValueError, "vecdot", lambda: xp.vecdot(tf.zeros([3]), tf.zeros([4])))


def test_complex_linear_algebra():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 4, 3)) + 1j * rng.normal(size=(2, 4, 3))
    square = x[..., :3, :] + 2 * np.eye(3)
    hermitian = square @ np.conj(np.swapaxes(square, -1, -2))
    for made, wanted in (
        (xp.linalg.pinv(xp.asarray(x)), np.linalg.pinv(x)),
        (xp.linalg.matrix_norm(xp.asarray(x), ord="nuc"), np.linalg.svd(x, compute_uv=False).sum(-1)),
        (xp.linalg.matrix_rank(xp.asarray(x)), [3, 3]),
        (xp.linalg.cholesky(xp.asarray(hermitian), upper=True), np.linalg.cholesky(hermitian, upper=True)),
        (xp.linalg.eigvalsh(xp.asarray(hermitian)), np.linalg.eigvalsh(hermitian)),
        (xp.linalg.matrix_power(xp.asarray(square), -2), np.linalg.matrix_power(square, -2)),
    ):
        np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-9)
    sign, log = xp.linalg.slogdet(xp.asarray(square))
    assert sign.dtype == xp.complex128 and log.dtype == xp.float64
    values, vectors = xp.linalg.eigh(xp.asarray(hermitian))
    assert values.dtype == xp.float64 and vectors.dtype == xp.complex128


def test_complex_numbers_in_the_rest_of_the_standard():
    x = np.array([1 + 2j, 0.5 - 1.5j, 1 + 2j, 1 - 2j, complex(np.nan, 0), complex(np.nan, 0)], "complex64")
    found, want = xp.unique_all(xp.asarray(x)), np.unique_all(x)
    assert found.values.numpy()[:3].tolist() == want.values[:3].tolist()
    assert found.indices.numpy()[:3].tolist() == want.indices[:3].tolist()
    assert found.counts.numpy().tolist() == [1, 1, 2, 1, 1]  # no NaN is equal to another
    assert found.inverse_indices.numpy().tolist() == [2, 0, 2, 1, 3, 4]
    assert xp.round(xp.asarray([1.5 + 2.5j, -0.4 - 1.6j])).numpy().tolist() == [2 + 2j, -2j]
    assert xp.full((2,), 1j).dtype == xp.complex64
    m = np.array([[3 + 4j, 0], [0, 1]], "complex64")
    for order in ("fro", "nuc", 1, 2, xp.inf, -1, -2, -xp.inf):
        norm = xp.linalg.matrix_norm(xp.asarray(m), ord=order)
        assert norm.dtype == xp.float32
        assert float(norm) == pytest.approx(np.linalg.norm(m, order), rel=1e-5)


def test_the_standards_corners():
    assert xp.eye(2, 3, k=2**70).numpy().tolist() == [[0.0] * 3] * 2
    assert xp.eye(2, 3, k=-(2**70)).numpy().tolist() == [[0.0] * 3] * 2
    assert xp.eye(3, 2, k=1).numpy().tolist() == np.eye(3, 2, k=1).tolist()
    with pytest.raises(IndexError):
        xp.expand_dims(xp.zeros(()), axis=2)
    device = xp.__array_namespace_info__().default_device()
    assert xp.from_dlpack(xp.zeros(2), device=device).device == xp.zeros(2, device=device).device == device


def test_python_complex_numbers_have_the_default_type():
    default = xp.__array_namespace_info__().default_dtypes()["complex floating"]
    for value in (1j, [1j, 2.0], [[1, 2j], [True, 0.5]]):
        made = xp.asarray(value)
        assert made.dtype == default
        np.testing.assert_array_equal(np.asarray(made), np.asarray(value))
    assert xp.full((2,), 1j).dtype == xp.linspace(0, 1j, 3).dtype == default
    assert xp.asarray([1j], dtype=xp.complex128).dtype == xp.asarray(np.complex128(1j)).dtype == xp.complex128
    fails(TypeError, "cannot be converted to float32", lambda: xp.asarray([1.0, 1j], dtype=xp.float32))


@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_between_complex_numbers(endpoint):
    for start, stop in ((0, 1j), (1 - 2j, 3.0), (2.5, 2.5 + 8j)):
        for dtype in ("complex64", "complex128"):
            got = xp.linspace(start, stop, 5, dtype=getattr(xp, dtype), endpoint=endpoint)
            assert got.dtype.name == dtype
            np.testing.assert_allclose(np.asarray(got), np.linspace(start, stop, 5, endpoint=endpoint), rtol=1e-6)
    arrays = xp.linspace(xp.asarray(0.0), xp.asarray(2j), 3)
    assert np.asarray(arrays).tolist() == [0j, 1j, 2j]
    assert np.asarray(xp.linspace(0, 1, 3, dtype=xp.complex64)).tolist() == [0, 0.5, 1]
    fails(TypeError, "dtype must be complex", lambda: xp.linspace(0, 1j, 3, dtype=xp.float32))
