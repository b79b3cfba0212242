"""Expressions that give the same in TensorFlow and here, and the values they use."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any

import numpy as np


@functools.cache
def namespace(tf: Any) -> dict[str, Any]:
    """What the expressions refer to: `tf`, tensors, and a few helpers."""
    rng = np.random.default_rng(7)

    def tensor(array: Any, dtype: Any = np.float32) -> Any:
        return tf.constant(np.asarray(array).astype(dtype))

    square = rng.normal(size=(2, 4, 4))
    symmetric = square + np.swapaxes(square, 1, 2)
    positive = square @ np.swapaxes(square, 1, 2) + 4 * np.eye(4)

    def grad(f: Any, *xs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return tape.gradient(y, list(xs))

    def jacobian(f: Any, x: Any, **options: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x, **options)

    def batch_jacobian(f: Any, x: Any, **options: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.batch_jacobian(y, x, **options)

    def second(f: Any, x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    def jvp(f: Any, x: Any, tangent: Any, **options: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, tangent) as acc:
            y = f(x)
        return acc.jvp(y, **options)

    def traced(f: Any, *args: Any) -> Any:
        return tf.function(f)(*args)

    def folder() -> str:
        return os.path.join(tempfile.mkdtemp(), "here")

    def after(action: Any, value: Any) -> Any:
        return value() if callable(value) else value

    return {
        "D": tf.data.Dataset,
        "a64": tensor(square, np.float64),
        "after": after,
        "batch_jacobian": batch_jacobian,
        "b": tensor([True, False, True, True], bool),
        "folder": folder,
        "grad": grad,
        "i": tensor(rng.integers(-5, 6, (3, 4)), np.int32),
        "ids": tensor([0, 0, 1, 2, 2, 2], np.int32),
        "image": tensor(rng.uniform(0, 1, (2, 6, 5, 3))),
        "images8": tensor(rng.integers(0, 256, (2, 6, 5, 3)), np.uint8),
        "jacobian": jacobian,
        "jvp": jvp,
        "labels": tensor([1, 0, 3], np.int64),
        "np": np,
        "p": tensor(rng.uniform(0.5, 3.0, (3, 4))),
        "p64": tensor(rng.uniform(0.5, 3.0, (3, 4)), np.float64),
        "pos": tensor(positive, np.float64),
        "q64": tensor(rng.uniform(0.3, 4.0, (3, 4)), np.float64),
        "r": lambda: tf.data.Dataset.range(5),
        "rows": tensor(rng.normal(size=(6, 2))),
        "second": second,
        "sym": tensor(symmetric, np.float64),
        "tf": tf,
        "traced": traced,
        "u": tensor(rng.uniform(0.05, 0.95, (3, 4))),
        "u64": tensor(rng.uniform(0.05, 0.95, (3, 4)), np.float64),
        "x": tensor(rng.normal(size=(3, 4))),
        "x64": tensor(rng.normal(size=(3, 4)), np.float64),
        "y": tensor(rng.normal(size=(3, 4))),
        "z": tensor(rng.uniform(-2, 2, (1, 8, 8, 3))),
    }


#: Topic: expressions, one per line. A line that starts with `~N` is compared with N times the usual tolerance.
TEXT: dict[str, str] = {}

TEXT["elementwise"] = "\n".join(
    [
        *(
            f"{name}(x)\ngrad({name}, x)\n{name}(x64)"
            for name in """tf.abs tf.asinh tf.atan tf.cos tf.cosh tf.exp tf.sigmoid tf.sin tf.sinh tf.square tf.tan tf.tanh
            tf.negative tf.sign tf.math.erf tf.math.erfc tf.math.expm1 tf.math.log_sigmoid tf.math.softplus tf.math.softsign
            tf.nn.elu tf.nn.relu tf.nn.relu6 tf.nn.selu tf.nn.silu tf.nn.swish tf.nn.crelu
            tf.math.reciprocal_no_nan""".split()
        ),
        *(
            f"~4 {name}(p)\n~4 grad({name}, p)\n~20 {name}(p64)"
            for name in """tf.sqrt tf.math.log tf.math.log1p tf.math.rsqrt tf.math.reciprocal tf.math.digamma tf.math.lgamma
            tf.math.bessel_i0 tf.math.bessel_i0e tf.math.bessel_i1 tf.math.bessel_i1e tf.math.special.bessel_i0
            tf.math.special.bessel_i1 tf.math.special.dawsn tf.math.special.expint tf.math.special.spence
            tf.math.special.fresnel_cos tf.math.special.fresnel_sin tf.math.special.bessel_j0 tf.math.special.bessel_j1
            tf.math.special.bessel_k0 tf.math.special.bessel_k0e tf.math.special.bessel_k1 tf.math.special.bessel_k1e
            tf.math.special.bessel_y0 tf.math.special.bessel_y1 tf.math.special.bessel_i0e tf.math.special.bessel_i1e""".split()
        ),
        *(
            f"~10 {name}(u)\n~10 grad({name}, u)\n~20 {name}(u64)"
            for name in "tf.acos tf.asin tf.atanh tf.math.erfinv tf.math.erfcinv tf.math.ndtri".split()
        ),
        *(
            f"{name}(x)"
            for name in """tf.floor tf.math.ceil tf.round tf.math.rint tf.math.is_nan tf.math.is_inf tf.math.is_finite
            tf.identity tf.zeros_like tf.ones_like tf.shape tf.size tf.rank tf.math.conj tf.math.real tf.math.angle""".split()
        ),
        *(
            f"{name}(x, y)\ngrad({name}, x, y)"
            for name in """tf.add tf.subtract tf.multiply tf.maximum tf.minimum tf.math.squared_difference tf.atan2
            tf.math.divide_no_nan tf.math.multiply_no_nan tf.math.floordiv tf.math.floormod tf.math.truediv tf.divide
            tf.math.xdivy tf.truediv tf.realdiv tf.math.mod""".split()
        ),
        *(
            f"{name}(i, i + 7)"
            for name in """tf.equal tf.not_equal tf.less tf.less_equal tf.greater tf.greater_equal tf.bitwise.bitwise_and
            tf.bitwise.bitwise_or tf.bitwise.bitwise_xor tf.math.floordiv tf.truncatediv tf.truncatemod""".split()
        ),
        *(f"{name}(x > 0, y > 0)" for name in "tf.logical_and tf.logical_or tf.math.logical_xor".split()),
        *(f"~10 {name}(p64, q64)\n~50 grad({name}, p64, q64)" for name in "tf.math.igamma tf.math.igammac".split()),
    ]
) + """
tf.acosh(1 + p)
tf.nn.gelu(x)
grad(tf.nn.gelu, x)
tf.nn.gelu(x, approximate=True)
tf.nn.leaky_relu(x)
grad(tf.nn.leaky_relu, x)
tf.pow(p, y)
grad(tf.pow, p, y)
tf.math.xlogy(p, p)
tf.math.xlog1py(p, p)
grad(tf.math.xlogy, p, p)
tf.logical_not(b)
tf.bitwise.invert(i)
tf.bitwise.left_shift(i, tf.abs(i))
tf.bitwise.right_shift(i, tf.abs(i))
tf.math.imag(x)
tf.scalar_mul(2.0, x)
tf.add_n([x, y, x])
tf.math.accumulate_n([x, y])
tf.clip_by_value(x, -0.5, 0.5)
tf.clip_by_norm(x, 1.0)
tf.clip_by_norm(x, 1.0, axes=[0])
tf.clip_by_global_norm([x, y], 1.0)
tf.linalg.global_norm([x, y])
tf.math.polyval([x, y, 2.0], p)
tf.math.nextafter(x64, y.dtype.max if False else x64 + 1)
tf.math.nextafter(x, x - 1)
~10 tf.math.betainc(p64, q64, u64)
~10 tf.math.betainc(p, tf.cast(q64, tf.float32), u)
~200 grad(lambda t: tf.math.betainc(p64, q64, t), u64)
~10 tf.math.zeta(p64 + 1.5, q64)
~50 grad(lambda t: tf.math.zeta(p64 + 1.5, t), q64)
~10 tf.math.polygamma(tf.constant(2.0, tf.float64), q64)
~10 tf.math.polygamma(tf.constant([0.0, 1.0, 3.0, 5.0], tf.float64), q64)
~50 grad(lambda t: tf.math.polygamma(tf.constant(1.0, tf.float64), t), q64)
~10 tf.math.igamma(tf.constant([1.0, 10.0, 100.0, 0.5]), tf.constant([2.0, 8.0, 120.0, 0.0]))
~10 tf.math.igammac(tf.constant([1.0, 10.0, 100.0, 0.5]), tf.constant([2.0, 8.0, 120.0, 0.0]))
~10 tf.math.erfcinv(tf.constant([1e-20, 1e-5, 0.5, 1.0, 1.5, 1.99999], tf.float64))
~10 tf.math.ndtri(tf.constant([1e-20, 1e-5, 0.5, 0.9, 1.0, 0.0], tf.float64))
~10 tf.math.bessel_i0e(tf.constant([0.0, 1.0, 7.9, 8.1, 100.0, -30.0, 1e4], tf.float64))
~10 tf.math.bessel_i1e(tf.constant([0.0, 1.0, 7.9, 8.1, 100.0, -30.0, 1e4], tf.float64))
~10 tf.math.lbeta(p)
tf.math.cumulative_logsumexp(x, 1)
tf.math.cumulative_logsumexp(x, 0, exclusive=True, reverse=True)
tf.cast(x * 100, tf.int32)
tf.cast(i, tf.bool)
tf.saturate_cast(x * 1000, tf.uint8)
tf.dtypes.cast(x, tf.float16)
tf.dtypes.saturate_cast(tf.constant([-5, 300]), tf.uint8)
tf.bitcast(x, tf.int32)
tf.complex
""".replace("\ntf.complex\n", "\n")

TEXT["reductions"] = "\n".join(
    f"{name}(x)\n{name}(x, axis=1)\n{name}(x, axis=[0, 1], keepdims=True)\ngrad(lambda t: {name}(t, axis=0), x)"
    for name in """tf.reduce_sum tf.reduce_mean tf.reduce_max tf.reduce_min tf.reduce_prod tf.reduce_logsumexp
    tf.math.reduce_std tf.math.reduce_variance tf.math.reduce_euclidean_norm""".split()
) + """
tf.reduce_all(x > 0, axis=1)
tf.reduce_any(x > 0, axis=0)
tf.math.count_nonzero(i)
tf.math.count_nonzero(i, axis=0, keepdims=True, dtype=tf.int32)
tf.argmax(x, axis=1)
tf.argmin(x)
tf.math.argmax(x, 1, tf.int32)
tf.cumsum(x, 1)
tf.cumsum(x, 0, exclusive=True)
tf.cumsum(x, 1, reverse=True)
tf.math.cumprod(x, 1)
grad(lambda t: tf.math.cumprod(t, 1), x)
tf.math.cumprod(x, 1, exclusive=True, reverse=True)
tf.math.top_k(x, 2)
tf.math.top_k(x, 3, sorted=True)
tf.nn.top_k(i, 2)
tf.math.in_top_k(labels, x, 2)
tf.nn.in_top_k(labels, x, 1)
tf.math.zero_fraction(i)
tf.nn.zero_fraction(x)
tf.math.softmax(x, 0)
tf.nn.softmax(x)
grad(tf.nn.softmax, x)
tf.nn.log_softmax(x)
tf.math.l2_normalize(x, 1)
tf.nn.l2_normalize(x, 0)
tf.linalg.l2_normalize(x)
tf.linalg.norm(x)
tf.norm(x, 1, axis=0)
tf.norm(x, np.inf, axis=1)
tf.linalg.norm(x, 'fro', axis=[0, 1])
tf.linalg.normalize(x, axis=1)
tf.math.is_non_decreasing(tf.constant([1, 1, 2]))
tf.math.is_strictly_increasing(tf.constant([1, 1, 2]))
tf.math.bincount(tf.abs(i))
tf.math.bincount(tf.constant([1, 1, 3]), weights=[0.5, 1.0, 2.0], minlength=5)
tf.math.confusion_matrix([1, 2, 4], [2, 2, 4])
tf.math.confusion_matrix([1, 2, 0], [2, 2, 1], num_classes=3, weights=[1.0, 2.0, 3.0])
tf.histogram_fixed_width(x, [-1.0, 1.0], nbins=4)
tf.histogram_fixed_width_bins(x, [-1.0, 1.0], nbins=4)
tf.math.segment_sum(rows, ids)
tf.math.segment_mean(rows, ids)
tf.math.segment_max(rows, ids)
tf.math.segment_min(rows, ids)
tf.math.segment_prod(rows, ids)
grad(lambda t: tf.math.segment_mean(t, ids), rows)
tf.math.unsorted_segment_sum(rows, ids[::-1], 4)
tf.math.unsorted_segment_mean(rows, ids, 4)
tf.math.unsorted_segment_max(rows, ids, 3)
tf.math.unsorted_segment_min(rows, ids, 3)
tf.math.unsorted_segment_prod(rows, ids, 4)
tf.math.unsorted_segment_sqrt_n(rows, ids, 3)
"""

TEXT["shapes"] = """
tf.reshape(x, [2, -1])
tf.transpose(x)
tf.transpose(image, [0, 3, 1, 2])
tf.expand_dims(x, 1)
tf.squeeze(x[None])
tf.squeeze(x[None, :, None], [0])
tf.concat([x, y], 0)
tf.concat([x, y], axis=-1)
tf.stack([x, y], 1)
tf.unstack(x)
tf.unstack(x, axis=1)
tf.split(x, 2, axis=1)
tf.split(x, [1, 3], axis=1)
tf.tile(x, [1, 2])
tf.repeat(x, 2, axis=0)
tf.repeat(x, [1, 0, 2], axis=0)
tf.repeat([1, 2], 3)
tf.reverse(x, [1])
tf.reverse_sequence(x, [2, 1, 4], seq_axis=1)
tf.roll(x, 1, 0)
tf.roll(x, [1, 2], [0, 1])
tf.pad(x, [[1, 0], [0, 2]])
tf.pad(x, [[1, 1], [2, 2]], 'REFLECT')
tf.pad(x, [[1, 1], [2, 2]], 'SYMMETRIC')
tf.pad(x, [[1, 0], [0, 2]], constant_values=7.0)
tf.slice(x, [0, 1], [2, 2])
tf.strided_slice(x, [0, 1], [3, 4], [2, 1])
tf.strided_slice(x, [2], [0], [-1])
tf.gather(x, [2, 0])
tf.gather(x, [[2, 0], [1, 1]], axis=1)
tf.gather(x, [[1, 0], [2, 2], [3, 0]], batch_dims=1, axis=1)
grad(lambda t: tf.gather(t, [2, 0, 2]), x)
tf.gather_nd(x, [[0, 1], [2, 3]])
tf.gather_nd(x, [[0], [2]])
tf.boolean_mask(x, [True, False, True])
tf.boolean_mask(x, x > 0)
tf.where(x > 0, x, y)
tf.where(x > 0)
tf.scatter_nd([[0], [2]], [[1, 2], [3, 4]], [4, 2])
tf.tensor_scatter_nd_add(x, [[0], [2]], y[:2])
tf.tensor_scatter_nd_sub(x, [[0], [2]], y[:2])
tf.tensor_scatter_nd_update(x, [[0, 1], [2, 2]], [9.0, 8.0])
tf.tensor_scatter_nd_max(x, [[0], [2]], y[:2])
tf.tensor_scatter_nd_min(x, [[0], [2]], y[:2])
tf.dynamic_partition(x, [0, 1, 0], 2)
tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:]])
tf.one_hot([0, 2], 3)
tf.one_hot([[0, 2]], 3, on_value=5.0, off_value=-1.0, axis=0)
tf.eye(3)
tf.eye(2, 3, batch_shape=[2])
tf.fill([2, 3], 7)
tf.zeros([2, 3], tf.int32)
tf.ones([2, 3])
tf.range(5)
tf.range(1.0, 2.0, 0.3)
tf.range(5, 0, -2)
tf.linspace(0.0, 1.0, 5)
tf.linspace([0.0, 1.0], [1.0, 2.0], 3, axis=1)
tf.meshgrid([1, 2, 3], [4, 5])
tf.meshgrid([1, 2, 3], [4, 5], indexing='ij')
tf.sequence_mask([1, 3, 2])
tf.sequence_mask([1, 3], 4, tf.float32)
tf.unique([3, 1, 3, 2])
tf.unique_with_counts([3, 1, 3, 2])
tf.sort(x)
tf.sort(x, axis=0, direction='DESCENDING')
tf.argsort(x)
tf.argsort(x, direction='DESCENDING')
tf.searchsorted([1, 3, 5], [0, 3, 6])
tf.searchsorted([1.0, 3.0], [3.0], side='right')
tf.broadcast_to(x[:1], [3, 4])
tf.broadcast_static_shape(tf.TensorShape([3, 1]), tf.TensorShape([1, 5]))
tf.broadcast_dynamic_shape([3, 1], [1, 5])
tf.ensure_shape(x, [None, 4])
tf.shape_n([x, image])
tf.identity_n([x, y])
tf.batch_to_space(tf.reshape(tf.range(16), [4, 2, 2, 1]), [2, 2], [[0, 0], [0, 1]])
tf.space_to_batch(image, [2, 1], [[0, 0], [1, 0]])
tf.space_to_batch_nd(image, [2, 1], [[0, 0], [1, 0]])
tf.required_space_to_batch_paddings([5, 6], [2, 4])
tf.nn.space_to_batch(image, [2, 1], [[0, 0], [1, 0]])
tf.unravel_index([3, 5], [2, 4])
tf.math.invert_permutation([2, 0, 1])
tf.tuple([x, y])
tf.extract_volume_patches(tf.reshape(tf.range(64.0), [1, 4, 4, 4, 1]), [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], 'VALID')
tf.TensorShape([2, None]).as_list()
tf.TensorSpec([2, 3], tf.int32)
tf.type_spec_from_value(x)
tf.IndexedSlicesSpec([3, 4], tf.float32)
tf.OptionalSpec(tf.TensorSpec([], tf.int64))
tf.NoneTensorSpec()
tf.as_dtype('float32')
tf.is_tensor(x)
tf.get_static_value(x)
tf.constant([[1, 2], [3, 4]], tf.float64)
tf.convert_to_tensor([1.5, 2])
tf.guarantee_const(x)
tf.stop_gradient(x)
tf.grad_pass_through(tf.round)(x)
grad(tf.grad_pass_through(tf.round), x)
tf.no_op()
tf.group(x, y)
tf.timestamp() > 0
tf.get_current_name_scope()
tf.nest.flatten({'b': 1, 'a': [2, 3]})
tf.nest.map_structure(lambda t: t * 2, (1, [2, 3]))
tf.nest.pack_sequence_as([0, (0, 0)], [1, 2, 3])
tf.nest.is_nested([1])
tf.nest.assert_same_structure([1, 2], [3, 4])
tf.executing_eagerly()
tf.inside_function()
tf.fill([2], x[0, 0])
"""

TEXT["linalg"] = """
tf.matmul(x, y, transpose_b=True)
tf.matmul(a64, a64, transpose_a=True)
tf.linalg.matmul(x, y, transpose_a=True)
tf.linalg.matvec(x, y[0])
tf.linalg.trace(a64)
tf.linalg.det(a64)
tf.linalg.inv(a64)
~10 grad(tf.linalg.inv, a64)
tf.linalg.cholesky(pos)
tf.linalg.cholesky_solve(tf.linalg.cholesky(pos), a64)
~10 tf.linalg.solve(a64, a64 + 1)
~10 tf.linalg.solve(a64, a64 + 1, adjoint=True)
~10 tf.linalg.triangular_solve(pos, a64)
~10 tf.linalg.triangular_solve(pos, a64, lower=False, adjoint=True)
~10 tf.linalg.lstsq(a64[:, :, :2], a64)
tf.linalg.slogdet(a64)
tf.linalg.logdet(pos)
tf.linalg.eigvalsh(sym)
tf.linalg.eigh(sym)[0]
tf.abs(tf.linalg.svd(a64)[0])
tf.linalg.svd(a64, compute_uv=False)
tf.abs(tf.linalg.qr(a64)[1])
~10 tf.linalg.pinv(a64[:, :, :2])
tf.linalg.matrix_rank(a64)
~10 tf.linalg.expm(a64)
tf.linalg.adjoint(a64)
tf.linalg.matrix_transpose(a64)
tf.linalg.band_part(a64, 1, 0)
tf.linalg.diag(x)
tf.linalg.diag(x, k=1)
tf.linalg.diag_part(a64)
tf.linalg.diag_part(a64, k=(-1, 1))
tf.linalg.set_diag(a64, a64[:, 0] * 0)
tf.linalg.tensor_diag(x[0])
tf.linalg.tensor_diag_part(a64[0])
tf.linalg.cross(x[:, :3], y[:, :3])
tf.linalg.einsum('ij,kj->ik', x, y)
tf.einsum('bij,bjk->bik', a64, a64)
tf.einsum('ii', a64[0])
tf.tensordot(x, y, [[0, 1], [0, 1]])
tf.linalg.tensordot(x, y, [[1], [1]])
tf.tensordot(x, y, 0)
tf.linalg.eye(2)
tf.linalg.lu(a64)
~10 tf.linalg.lu_solve(*tf.linalg.lu(a64), a64 + 1)
tf.linalg.lu_reconstruct(*tf.linalg.lu(a64))
~10 tf.linalg.lu_matrix_inverse(*tf.linalg.lu(a64))
tf.linalg.tridiagonal_matmul(a64[:, :3], a64)
~10 tf.linalg.tridiagonal_solve(a64[:, :3] + [[0.0], [4.0], [0.0]], a64)
~10 tf.linalg.tridiagonal_solve(a64[:, :3] + [[0.0], [4.0], [0.0]], a64[:, 0])
~10 tf.linalg.tridiagonal_solve((a64[0, :3, 1], a64[0, 1] + 5, a64[0, :3, 2]), a64[0], diagonals_format='sequence')
~10 tf.linalg.tridiagonal_solve(pos, a64, diagonals_format='matrix')
tf.linalg.banded_triangular_solve(a64[:, :2] + [[4.0], [0.0]], a64)
tf.linalg.banded_triangular_solve(a64[:, :2] + [[0.0], [4.0]], a64, lower=False)
tf.linalg.banded_triangular_solve(a64[:, :2] + [[4.0], [0.0]], a64, adjoint=True)
tf.linalg.eigh_tridiagonal(sym[0, 0], sym[0, 1, :3])
tf.linalg.eigh_tridiagonal(sym[0, 0], sym[0, 1, :3], select='i', select_range=[1, 2])
~100 tf.linalg.sqrtm(pos)
~100 tf.matrix_square_root(pos)
"""

TEXT["nn"] = """
tf.nn.conv2d(image, tf.ones([2, 2, 3, 4]), 1, 'SAME')
tf.nn.conv2d(image, tf.ones([2, 2, 3, 4]), [1, 2, 1, 1], 'VALID', dilations=[1, 1])
tf.nn.conv1d(x[:, :, None], tf.ones([2, 1, 3]), 1, 'VALID')
tf.nn.conv3d(tf.ones([1, 3, 4, 5, 2]), tf.ones([2, 2, 2, 2, 3]), [1, 1, 1, 1, 1], 'SAME')
tf.nn.convolution(image, tf.ones([2, 2, 3, 4]), padding='SAME')
tf.nn.conv2d_transpose(image, tf.ones([2, 2, 4, 3]), [2, 12, 10, 4], 2)
tf.nn.conv1d_transpose(x[:, :, None], tf.ones([2, 3, 1]), [3, 8, 3], 2)
tf.nn.conv3d_transpose(tf.ones([1, 2, 2, 2, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 4, 4, 4, 1], 2)
tf.nn.conv_transpose(image, tf.ones([2, 2, 4, 3]), [2, 12, 10, 4], 2)
tf.nn.atrous_conv2d(image, tf.ones([2, 2, 3, 4]), 2, 'SAME')
tf.nn.atrous_conv2d_transpose(image, tf.ones([2, 2, 4, 3]), [2, 6, 5, 4], 2, 'SAME')
tf.nn.depthwise_conv2d(image, tf.ones([2, 2, 3, 2]), [1, 1, 1, 1], 'SAME')
tf.nn.depthwise_conv2d_backprop_input([2, 6, 5, 3], tf.ones([2, 2, 3, 2]), tf.ones([2, 6, 5, 6]), [1, 1, 1, 1], 'SAME')
tf.nn.depthwise_conv2d_backprop_filter(image, [2, 2, 3, 2], tf.ones([2, 6, 5, 6]), [1, 1, 1, 1], 'SAME')
tf.nn.separable_conv2d(image, tf.ones([2, 2, 3, 2]), tf.ones([1, 1, 6, 4]), [1, 1, 1, 1], 'VALID')
tf.nn.max_pool(image, 2, 2, 'SAME')
tf.nn.max_pool1d(x[:, :, None], 2, 1, 'VALID')
tf.nn.max_pool2d(image, 2, 1, 'VALID')
tf.nn.max_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, 'VALID')
tf.nn.avg_pool(image, 2, 2, 'SAME')
tf.nn.avg_pool1d(x[:, :, None], 2, 1, 'VALID')
tf.nn.avg_pool2d(image, [2, 3], 1, 'SAME')
tf.nn.avg_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, 'VALID')
tf.nn.pool(image, [2, 2], 'MAX', padding='SAME')
tf.nn.max_pool_with_argmax(image, 2, 2, 'SAME')
tf.nn.max_pool_with_argmax(image, 2, 1, 'VALID', include_batch_in_index=True, output_dtype=tf.int32)
tf.nn.dilation2d(image, tf.ones([2, 2, 3]) * 0.1, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])
tf.nn.dilation2d(z, tf.ones([3, 2, 3]), [1, 2, 1, 1], 'VALID', 'NHWC', [1, 1, 2, 1])
tf.nn.erosion2d(image, tf.ones([2, 2, 3]) * 0.1, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])
tf.nn.bias_add(image, [1.0, 2.0, 3.0])
tf.nn.batch_normalization(x, 0.5, 2.0, 1.0, 3.0, 1e-3)
tf.nn.batch_norm_with_global_normalization(image, tf.ones([3]), tf.ones([3]), tf.zeros([3]), tf.ones([3]), 1e-3, True)
tf.nn.moments(x, [0])
tf.nn.weighted_moments(x, [0], p)
tf.nn.sufficient_statistics(x, [0])
tf.nn.normalize_moments(3.0, x[0], p[0] + 9, None)
tf.nn.local_response_normalization(image, 2)
tf.nn.lrn(image, 1)
tf.nn.dropout(x, 0.0)
tf.nn.embedding_lookup(x, [2, 0])
tf.nn.depth_to_space(tf.reshape(tf.range(16), [1, 2, 2, 4]), 2)
tf.nn.space_to_depth(tf.reshape(tf.range(16), [1, 4, 4, 1]), 2)
tf.nn.l2_loss(x)
tf.nn.softmax_cross_entropy_with_logits(u, x)
grad(lambda t: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(u), t), x)
tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
tf.nn.sigmoid_cross_entropy_with_logits(u, x)
tf.nn.weighted_cross_entropy_with_logits(u, x, 2.0)
tf.nn.log_poisson_loss(p, x)
tf.nn.log_poisson_loss(p, x, compute_full_loss=True)
tf.nn.compute_average_loss(p[0], global_batch_size=4)
tf.nn.scale_regularization_loss(p[0])
tf.nn.ctc_loss([[1, 2], [2, 0]], tf.stack([x, y], 1), [2, 1], [3, 3])
tf.nn.ctc_loss([[1, 0, 2], [2, 2, 0]], tf.stack([x, y, x, y, x], 0)[:, :2], [3, 3], [5, 5], blank_index=0)
tf.nn.ctc_unique_labels([[1, 2, 1, 0], [3, 3, 4, 4]])
tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 4, 0]], [5, 4])
tf.nn.isotonic_regression(x)
tf.nn.isotonic_regression(x, decreasing=False, axis=0)
tf.nn.experimental.stateless_dropout(tf.ones([4]), 0.0, [1, 2])
tf.nn.tanh(x)
tf.nn.sigmoid(x)
tf.nn.softplus(x)
tf.nn.softsign(x)
"""

TEXT["image"] = """
tf.image.resize(image, [3, 4])
~100 tf.image.resize(image, [9, 7], 'bicubic')
tf.image.resize(image, [9, 7], 'nearest')
tf.image.resize(image, [3, 4], 'area')
tf.image.resize(image, [3, 4], 'lanczos3', antialias=True)
tf.image.resize(image, [8, 4], preserve_aspect_ratio=True)
tf.image.resize(images8, [3, 4])
tf.image.resize_with_pad(image, 8, 8)
tf.image.resize_with_crop_or_pad(image, 4, 8)
tf.image.central_crop(image, 0.5)
tf.image.crop_to_bounding_box(image, 1, 1, 3, 2)
tf.image.pad_to_bounding_box(image, 1, 1, 9, 8)
tf.image.crop_and_resize(image, [[0.0, 0.0, 0.5, 1.0], [0.2, 0.1, 0.9, 0.8]], [0, 1], [4, 3])
tf.image.flip_left_right(image)
tf.image.flip_up_down(image)
tf.image.transpose(image)
tf.image.rot90(image)
tf.image.rgb_to_grayscale(image)
tf.image.grayscale_to_rgb(image[..., :1])
~4 tf.image.rgb_to_hsv(image)
~4 tf.image.hsv_to_rgb(image)
~4 tf.image.rgb_to_yiq(image)
~4 tf.image.yiq_to_rgb(image)
~4 tf.image.rgb_to_yuv(image)
~4 tf.image.yuv_to_rgb(image)
tf.image.adjust_brightness(image, 0.2)
~10 tf.image.adjust_contrast(image, 2.0)
tf.image.adjust_gamma(image, 2.0)
~10 tf.image.adjust_hue(image, 0.2)
~10 tf.image.adjust_saturation(image, 2.0)
tf.image.adjust_brightness(images8, 0.2)
~4 tf.image.per_image_standardization(image)
tf.image.convert_image_dtype(images8, tf.float32)
tf.image.convert_image_dtype(image, tf.uint8)
tf.image.total_variation(image)
tf.image.image_gradients(image)
tf.image.sobel_edges(image)
~10 tf.image.psnr(image, image * 0.9, 1.0)
~10 tf.image.ssim(tf.image.resize(image, [16, 16]), tf.image.resize(image * 0.9, [16, 16]), 1.0)
tf.image.extract_patches(image, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], 'VALID')
tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.8, 0.7], 3)
tf.image.non_max_suppression_with_scores([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.8, 0.7], 3)
tf.image.non_max_suppression_overlaps([[1.0, 0.9, 0.0], [0.9, 1.0, 0.1], [0.0, 0.1, 1.0]], [0.9, 0.8, 0.7], 3)
tf.image.non_max_suppression_padded([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.8, 0.7], 3, pad_to_max_output_size=True)
tf.image.draw_bounding_boxes(image, [[[0.1, 0.2, 0.8, 0.9]], [[0.0, 0.0, 0.5, 0.5]]], [[1.0, 0.0, 0.0]])
tf.image.extract_glimpse(image, [3, 3], [[0.0, 0.0], [0.1, 0.2]])
tf.image.extract_glimpse(image, [2, 2], [[2.0, 2.0], [3.0, 1.0]], centered=False, normalized=False)
tf.image.combined_non_max_suppression([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.1, 1.0, 1.1]], [[0.0, 0.2, 1.0, 0.6]]]], [[[0.9, 0.3], [0.8, 0.1], [0.7, 0.6]]], 2, 3, score_threshold=0.2)
tf.image.ResizeMethod.BILINEAR
tf.image.stateless_random_flip_left_right(image, [1, 2]).shape
tf.image.stateless_random_flip_up_down(image, [1, 2]).shape
tf.image.stateless_random_brightness(image, 0.2, [1, 2]).shape
tf.image.stateless_random_contrast(image, 0.2, 0.5, [1, 2]).shape
tf.image.stateless_random_hue(image, 0.2, [1, 2]).shape
tf.image.stateless_random_saturation(image, 0.2, 0.5, [1, 2]).shape
tf.image.stateless_random_crop(image, [2, 3, 3, 3], [1, 2]).shape
tf.image.random_flip_left_right(image).shape
tf.image.random_flip_up_down(image).shape
tf.image.random_brightness(image, 0.2).shape
tf.image.random_contrast(image, 0.2, 0.5).shape
tf.image.random_hue(image, 0.2).shape
tf.image.random_saturation(image, 0.2, 0.5).shape
tf.image.random_crop(image, [2, 3, 3, 3]).shape
tf.image.ssim_multiscale(tf.ones([1, 176, 176, 1]), tf.ones([1, 176, 176, 1]), 1.0)
"""

TEXT["random"] = """
tf.random.normal([2, 3]).shape
tf.random.uniform([2, 3], maxval=5, dtype=tf.int32).dtype
tf.random.truncated_normal([2, 3]).shape
tf.random.gamma([2], [1.0, 2.0]).shape
tf.random.poisson([2], [1.0, 2.0]).shape
tf.random.shuffle(tf.range(5)).shape
tf.random.categorical(x, 5).shape
tf.random.stateless_normal([2, 3], [1, 2]).shape
tf.random.stateless_uniform([2, 3], [1, 2], maxval=3, dtype=tf.int64).dtype
tf.random.stateless_truncated_normal([2, 3], [1, 2]).shape
tf.random.stateless_gamma([2, 3], [1, 2], 1.0).shape
tf.random.stateless_poisson([2, 3], [1, 2], 1.0).shape
tf.random.stateless_categorical(x, 3, [1, 2]).shape
tf.random.stateless_binomial([2, 3], [1, 2], 10.0, 0.5).shape
tf.random.stateless_parameterized_truncated_normal([2, 3], [1, 2], 0.0, 1.0, -1.0, 1.0).shape
tf.random.experimental.stateless_shuffle(tf.range(5), [1, 2]).shape
tf.random.split([1, 2], 3).shape
tf.random.fold_in([1, 2], 3).shape
tf.random.experimental.stateless_split([1, 2], 2).shape
tf.random.experimental.stateless_fold_in([1, 2], 3).shape
tf.random.Generator.from_seed(1).normal([2, 3]).shape
tf.random.get_global_generator().uniform([2]).shape
tf.random.set_seed(3)
tf.random.uniform_candidate_sampler([[1]], 1, 3, True, 5)[0].shape
tf.random.log_uniform_candidate_sampler([[1]], 1, 3, True, 5)[0].shape
tf.random.all_candidate_sampler([[0, 3]], 2, 5, True)[0].shape
tf.nn.all_candidate_sampler([[0, 3]], 2, 5, True)
tf.zeros_initializer()([2])
tf.ones_initializer()([2])
tf.constant_initializer(3)([2])
tf.random_normal_initializer()([2]).shape
tf.random_uniform_initializer()([2]).shape
tf.random.Algorithm.PHILOX
tf.random.create_rng_state(1, 'philox').shape
"""

TEXT["gradients"] = """
jacobian(lambda t: t[:0] * 2, x)
jacobian(lambda t: tf.matmul(t, t, transpose_b=True), x)
jacobian(lambda t: tf.constant(1.0), x)
jacobian(lambda t: tf.constant([1.0, 2.0]), x, unconnected_gradients='zero')
batch_jacobian(lambda t: t * t, x)
batch_jacobian(lambda t: tf.stack([t, t * t], 1), x)
batch_jacobian(lambda t: tf.constant([[1.0], [2.0], [3.0]]), x, unconnected_gradients='zero')
batch_jacobian(lambda t: tf.constant([[1.0], [2.0], [3.0]]), x)
batch_jacobian(lambda t: t[:2], x)
batch_jacobian(lambda t: t[0], x)
jvp(tf.sin, x, y)
jvp(tf.sin, x, np.ones([3, 4], np.float32))
jvp(lambda t: tf.constant(1.0), x, y)
jvp(lambda t: tf.constant(1.0), x, y, unconnected_gradients='zero')
jvp(lambda t: t[0] * t[1], [x, y], [y, x])
jvp(lambda t: {'a': t, 'b': t * t}, x, y)
second(lambda t: t ** 3, x)
second(lambda t: tf.reduce_sum(tf.sin(t)) * t, x)
traced(lambda t: tf.gradients(t * t, t), x)
traced(lambda t: tf.gradients([t * t, 2 * t], [t], grad_ys=[y, None]), x)
traced(lambda t: tf.gradients(t * 2, y, unconnected_gradients='zero'), x)
traced(lambda t: tf.hessians(tf.reduce_sum(t ** 3), t), x)
traced(lambda t: tf.hessians(t[0] * t[1] * t[1], t), x[0])
tf.GradientTape().watched_variables()
tf.UnconnectedGradients.NONE.value
tf.custom_gradient(lambda t: (t * 2, lambda d: d * 5))(x)
grad(tf.custom_gradient(lambda t: (t * 2, lambda d: d * 5)), x)
grad(tf.recompute_grad(lambda t: tf.sin(t) * t), x)
tf.AggregationMethod.ADD_N
tf.cond(x[0, 0] > 0, lambda: 1, lambda: 2)
tf.case([(x[0, 0] > 9, lambda: 1)], default=lambda: 2)
tf.switch_case(tf.constant(1), [lambda: 1, lambda: 2])
tf.while_loop(lambda k: k < 5, lambda k: [k + 1], [tf.constant(0)])
tf.map_fn(lambda t: t * 2, x)
tf.vectorized_map(lambda t: t * 2, x)
tf.foldl(lambda s, t: s + t, x)
tf.foldr(lambda s, t: s - t, x)
tf.scan(lambda s, t: s + t, x)
tf.scan(lambda s, t: s * t, x, reverse=True)
tf.py_function(lambda t: t * 2, [x], tf.float32)
tf.numpy_function(lambda t: t * 2, [x], tf.float32)
tf.TensorArray(tf.float32, 3).unstack(x).read(1)
tf.TensorArray(tf.float32, 2).write(0, x[0]).write(1, x[1]).stack()
tf.Variable(x).assign_add(y).read_value()
tf.Variable(x).assign_sub(y)[0]
tf.Variable(1.0).trainable
tf.Variable([1, 2]).get_shape()
tf.Variable([1.0, 2.0]).scatter_add(tf.IndexedSlices(tf.constant([5.0]), tf.constant([1])))
tf.Variable([1.0, 2.0]).scatter_nd_update([[0]], [7.0])
tf.Variable([1.0, 2.0], name='v').name
tf.Variable([1.0, 2.0]).is_initialized()
tf.Variable([1.0, 2.0]).initialized_value() if False else 0
tf.Variable([1.0, 2.0]).count_up_to(3) if False else 0
tf.Variable([[1.0, 2.0]]).sparse_read([0])
tf.Variable([1.0, 2.0]).synchronization.name
tf.Variable([1.0, 2.0]).aggregation.name
tf.Variable([1.0, 2.0]).device
tf.Variable([1.0, 2.0]).handle is not None
tf.Variable([1.0, 2.0]).op is not None if False else 1
tf.Variable([1.0, 2.0]).experimental_ref().deref() if False else 1
tf.Variable([1.0, 2.0]).ref().deref()
tf.Variable([1.0, 2.0]).shape.as_list()
tf.Variable([1.0, 2.0]).constraint
tf.Variable([1.0, 2.0], constraint=tf.abs).constraint is tf.abs
tf.Variable([1.0, 2.0]).eval() if False else 1
tf.Variable(lambda: x)[0]
tf.Variable([1.0, 2.0], shape=tf.TensorShape([None])).shape.as_list() if False else 1
tf.Module(name='m').name
tf.Module().name
tf.Module(name='a').name_scope.name
tf.Module().variables
tf.Module().submodules
tf.Module.with_name_scope(lambda self: 3)(tf.Module())
tf.variable_creator_scope(lambda next_creator, **kwargs: next_creator(**kwargs)).__enter__()
tf.control_dependencies([x]).__enter__()
tf.name_scope('a').name
tf.name_scope('a').__enter__()
tf.device('/CPU:0').__enter__()
"""

TEXT["data"] = """
r().take(-5)
r().skip(-5)
r().repeat(-5).take(7)
r().repeat(0)
r().shard(2, 1)
r().shard(0, 0)
r().shard(2, 2)
r().shard(2, -1)
r().window(0)
r().window(2, shift=0)
r().window(2, stride=0)
r().window(2).flat_map(lambda w: w.batch(2))
r().window(3, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(3))
D.from_tensor_slices({'a': [1, 2, 3], 'b': [4, 5, 6]}).window(2).flat_map(lambda w: w['b'].batch(2))
r().interleave(lambda v: D.from_tensors(v), cycle_length=0)
r().interleave(lambda v: D.range(v), cycle_length=2, block_length=0)
r().interleave(lambda v: D.range(v), cycle_length=2, num_parallel_calls=2)
r().interleave(lambda v: D.range(v), cycle_length=3, block_length=2)
r().map(lambda v: v, num_parallel_calls=0)
r().map(lambda v: v * 2, num_parallel_calls=2, deterministic=False).reduce(tf.constant(0, tf.int64), lambda s, v: s + v)
r().prefetch(0)
r().prefetch(-1)
r().prefetch(-2)
r().prefetch(None)
r().batch(0)
r().batch(-1)
r().batch(2.5)
r().take(2.5)
r().padded_batch(0)
r().batch(2).rebatch(3)
r().batch(2).rebatch([2, 1])
r().batch(2).rebatch([2, 1], drop_remainder=True)
r().rebatch(2)
r().shuffle(0)
r().shuffle(-1)
r().shuffle(-2).cardinality()
r().shuffle(tf.data.UNKNOWN_CARDINALITY).reduce(tf.constant(0, tf.int64), lambda s, v: s + v)
D.range(0, 5, 0)
D.range(5, 0)
D.range(5, 0, -2)
D.range(2.5)
D.range()
r().enumerate(start=-3)
D.random(seed=4).element_spec
D.random(seed=4).cardinality()
r().unique()
D.from_tensors((None, 1)).element_spec
D.from_tensor_slices((None, [1, 2])).element_spec
D.from_tensor_slices((None, [1, 2])).batch(2)
D.from_tensor_slices([]).element_spec
D.from_tensor_slices(5)
D.from_tensor_slices(([1, 2], [1, 2, 3]))
D.zip((r(), (r(), r()))).element_spec
D.zip(r(), r()).element_spec
D.zip({'a': r(), 'b': r()}).element_spec
D.zip(r()).element_spec
D.zip((r(),)).element_spec
r().batch(2).element_spec
r().batch(2, drop_remainder=True).element_spec
r().batch(5).map(lambda v: v * 2).element_spec
r().batch(5).map(lambda v: (v, tf.reduce_sum(v))).element_spec
r().batch(2).unbatch().element_spec
r().window(2).element_spec
D.from_tensor_slices({'a': [1, 2, 3], 'b': [1.0, 2.0, 3.0]}).window(2).element_spec
D.from_tensor_slices(([1, 2, 3], [1.0, 2.0, 3.0])).window(2).element_spec
r().map(lambda v: {'a': v, 'b': [v, v]}).element_spec
r().map(lambda v: {'a': v, 'b': [v, v]}).take(2)
r().map(lambda v: [v, v]).element_spec
r().map(lambda v: (v, None)).element_spec
r().enumerate().element_spec
r().padded_batch(2).element_spec
D.from_tensor_slices([[1, 2], [3, 4]]).padded_batch(2).element_spec
D.from_tensor_slices([[1, 2], [3, 4]]).padded_batch(2, padded_shapes=[None]).element_spec
D.from_tensor_slices([[1, 2], [3, 4]]).padded_batch(2, padded_shapes=[5], drop_remainder=True).element_spec
r().concatenate(r()).element_spec
r().batch(2, True).concatenate(r().batch(3, True)).element_spec
r().flat_map(lambda v: D.from_tensors((v, 1.0))).element_spec
r().scan(tf.constant(0, tf.int64), lambda s, v: (s + v, s * 1)).element_spec
r().scan(tf.constant(0, tf.int64), lambda s, v: (s + v, s * 1))
r().batch(2).scan(tf.constant(0, tf.int64), lambda s, v: (s, v)).element_spec
D.from_generator(lambda: iter([1]), output_signature=tf.TensorSpec([None], tf.int32)).element_spec
D.from_generator(lambda: iter([1]), output_types=(tf.int32, tf.float32), output_shapes=([], [None])).element_spec
D.counter().take(2).element_spec
D.counter(5, 2).take(3)
r().filter(lambda v: v > 2).cardinality()
r().filter(lambda v: v > 2).element_spec
r().batch(2).cardinality()
r().batch(2).unbatch().cardinality()
r().repeat().cardinality()
r().flat_map(lambda v: D.range(3)).cardinality()
r().window(2).cardinality()
r().with_options(tf.data.Options()).options().deterministic
len(r())
tf.data.experimental.at(r(), 2)
tf.data.experimental.at(r(), 5)
tf.data.experimental.cardinality(r())
tf.data.experimental.get_structure(r())
tf.data.experimental.get_single_element(r().take(1))
tf.data.experimental.from_list([(1, 2.0), (3, 4.0)])
tf.data.experimental.Counter().take(2)
tf.data.experimental.choose_from_datasets([r(), r()], D.from_tensor_slices(tf.constant([0, 1, 1], tf.int64)))
tf.data.experimental.INFINITE_CARDINALITY
tf.data.experimental.UNKNOWN_CARDINALITY
tf.data.experimental.AUTOTUNE
tf.data.AUTOTUNE
tf.data.INFINITE_CARDINALITY
tf.data.experimental.Reducer(lambda k: k, lambda s, v: s + v, lambda s: s).__class__ is not None
r().apply(tf.data.experimental.group_by_reducer(lambda v: v % 2, tf.data.experimental.Reducer(lambda k: tf.constant(0, tf.int64), lambda s, v: s + v, lambda s: s)))
r().apply(tf.data.experimental.assert_cardinality(5)).cardinality()
r().apply(tf.data.experimental.enumerate_dataset())
r().apply(tf.data.experimental.ignore_errors())
r().batch(2).apply(tf.data.experimental.unbatch())
r().apply(tf.data.experimental.unique())
r().apply(tf.data.experimental.take_while(lambda v: v < 3))
r().apply(tf.data.experimental.scan(tf.constant(0, tf.int64), lambda s, v: (s + v, s + v)))
r().apply(tf.data.experimental.map_and_batch(lambda v: v * 2, 2))
r().apply(tf.data.experimental.prefetch_to_device('/cpu:0'))
r().apply(tf.data.experimental.shuffle_and_repeat(3, 2)).cardinality()
r().apply(tf.data.experimental.parallel_interleave(lambda v: D.range(v), 2))
r().apply(tf.data.experimental.group_by_window(lambda v: v % 2, lambda k, w: w.batch(5), 5))
r().apply(tf.data.experimental.snapshot(folder()))
D.from_tensor_slices([1.0, 2.0, 0.0, 4.0]).map(lambda v: tf.debugging.check_numerics(1.0 / v, 'bad')).ignore_errors()
r().batch(2).get_single_element()
tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
tf.data.DatasetSpec.from_value(r())
tf.type_spec_from_value(r())
iter(r()).element_spec
isinstance(iter(r()), tf.data.Iterator)
next(r().as_numpy_iterator())
tf.data.NumpyIterator is not None
iter(r()).get_next_as_optional().element_spec
tf.data.experimental.get_next_as_optional(iter(r())).get_value()
tf.data.experimental.Optional.from_value(3).get_value()
tf.experimental.Optional.from_value(3).has_value()
D.sample_from_datasets([r(), r()], weights=[0.5, 0.5, 0.1])
D.sample_from_datasets([])
D.sample_from_datasets([r(), r()], weights=[1.0, 0.0])
tf.data.experimental.sample_from_datasets([r(), r()], [1.0, 0.0])
D.choose_from_datasets([r(), r()], D.from_tensors(1.0))
r().map(lambda v, w: v)
r().map(3)
D.from_tensor_slices((([1, 2], [3, 4]), [5, 6])).map(lambda v, w: v[0] + w)
r().group_by_window(lambda v: v % 2, lambda k, w: w.batch(2), 2)
r().bucket_by_sequence_length(lambda v: tf.cast(v, tf.int32), [2, 4], [1, 2, 3])
r().save(folder())
D.from_tensors(x).map(lambda v: (v, {'a': v[0]})).element_spec
D.from_tensors(([1, 2], [3.0])).cache().element_spec
D.from_tensor_slices([[1, 2], [3, 4]]).unbatch()
r().rejection_resample(lambda v: tf.cast(v % 2, tf.int32), [0.5, 0.5]).element_spec if False else 0
tf.data.Options().threading.private_threadpool_size
tf.data.ThreadingOptions().max_intra_op_parallelism
tf.data.experimental.AutoShardPolicy.DATA.name
tf.data.experimental.AutotuneAlgorithm.DEFAULT.name
tf.data.experimental.AutotuneOptions().enabled
tf.data.experimental.DistributeOptions().num_devices
tf.data.experimental.ExternalStatePolicy.WARN.name
tf.data.experimental.OptimizationOptions().map_fusion
tf.data.experimental.ThreadingOptions().private_threadpool_size
tf.data.experimental.RandomDataset(seed=1).element_spec
"""

TEXT["settings"] = """
tf.config.list_physical_devices('CPU')[0].device_type
tf.config.list_logical_devices('CPU')[0].name
tf.config.get_visible_devices('CPU')[0].name
tf.config.functions_run_eagerly()
tf.config.get_soft_device_placement()
tf.config.experimental.get_synchronous_execution()
tf.config.experimental.get_device_policy()
tf.config.experimental.tensor_float_32_execution_enabled()
tf.config.experimental.list_physical_devices('GPU')
tf.config.experimental.list_logical_devices('GPU')
tf.config.experimental.get_device_details(tf.config.list_physical_devices('CPU')[0])
tf.config.optimizer.get_jit()
tf.config.optimizer.get_experimental_options()
tf.config.get_logical_device_configuration(tf.config.list_physical_devices('CPU')[0])
tf.config.PhysicalDevice('a', 'CPU').name
tf.config.LogicalDevice('a', 'CPU').device_type
tf.errors.InvalidArgumentError(None, None, 'bad').message
tf.errors.InvalidArgumentError(None, None, 'bad').error_code
tf.errors.OutOfRangeError(None, None, 'bad').error_code
tf.errors.CANCELLED
tf.errors.UNKNOWN
tf.errors.INVALID_ARGUMENT
tf.errors.DEADLINE_EXCEEDED
tf.errors.NOT_FOUND
tf.errors.ALREADY_EXISTS
tf.errors.PERMISSION_DENIED
tf.errors.UNAUTHENTICATED
tf.errors.RESOURCE_EXHAUSTED
tf.errors.FAILED_PRECONDITION
tf.errors.ABORTED
tf.errors.OUT_OF_RANGE
tf.errors.UNIMPLEMENTED
tf.errors.INTERNAL
tf.errors.UNAVAILABLE
tf.errors.DATA_LOSS
tf.errors.OK
issubclass(tf.errors.AbortedError, tf.errors.OpError)
issubclass(tf.errors.AlreadyExistsError, tf.errors.OpError)
issubclass(tf.errors.CancelledError, tf.errors.OpError)
issubclass(tf.errors.DeadlineExceededError, tf.errors.OpError)
issubclass(tf.errors.InternalError, tf.errors.OpError)
issubclass(tf.errors.PermissionDeniedError, tf.errors.OpError)
issubclass(tf.errors.UnauthenticatedError, tf.errors.OpError)
issubclass(tf.errors.UnimplementedError, tf.errors.OpError)
issubclass(tf.errors.UnknownError, tf.errors.OpError)
issubclass(tf.errors.DataLossError, tf.errors.OpError)
issubclass(tf.errors.NotFoundError, tf.errors.OpError)
issubclass(tf.errors.FailedPreconditionError, tf.errors.OpError)
issubclass(tf.errors.ResourceExhaustedError, tf.errors.OpError)
tf.debugging.assert_equal(1, 1)
tf.debugging.assert_equal(1, 2)
tf.debugging.assert_less(1, 2)
tf.debugging.assert_less_equal(1, 2)
tf.debugging.assert_greater(2, 1)
tf.debugging.assert_greater_equal(2, 1)
tf.debugging.assert_near(1.0, 1.0)
tf.debugging.assert_negative(-1)
tf.debugging.assert_positive(1)
tf.debugging.assert_non_negative(0)
tf.debugging.assert_non_positive(0)
tf.debugging.assert_none_equal(1, 2)
tf.debugging.assert_rank(x, 2)
tf.debugging.assert_rank(x, 3)
tf.debugging.assert_rank_at_least(x, 1)
tf.debugging.assert_rank_in(x, [1, 2])
tf.debugging.assert_scalar(1)
tf.debugging.assert_shapes([(x, ('N', 4)), (y, ('N', 'Q'))])
tf.debugging.assert_shapes([(x, ('N', 5))])
tf.debugging.assert_type(x, tf.float32)
tf.debugging.assert_integer(i)
tf.debugging.assert_proper_iterable([1])
tf.debugging.assert_same_float_dtype([x, y])
tf.debugging.assert_all_finite(x, 'bad')
tf.debugging.check_numerics(x, 'bad')
tf.debugging.is_numeric_tensor(x)
tf.debugging.Assert(True, [1])
tf.debugging.Assert(False, [1])
tf.debugging.get_log_device_placement()
tf.debugging.is_traceback_filtering_enabled()
tf.debugging.disable_traceback_filtering()
tf.debugging.enable_traceback_filtering()
tf.debugging.enable_check_numerics() if False else 0
tf.get_logger().name is not None
tf.autograph.trace(1) if False else 0
'def' in tf.autograph.to_code(lambda: 1) if False else 0
tf.test.is_built_with_cuda()
tf.test.is_built_with_rocm()
tf.test.is_built_with_gpu_support()
tf.test.is_gpu_available() if False else 0
tf.test.gpu_device_name()
tf.test.compute_gradient(lambda t: t * t, [tf.constant([1.0, 2.0])])
tf.test.is_cpu_target_available('x86')
tf.dtypes.as_dtype(np.float32)
tf.dtypes.float32
tf.dtypes.int8
tf.dtypes.bool
tf.dtypes.half
tf.dtypes.double
tf.dtypes.bfloat16
tf.float32.max
tf.int8.min
tf.int32.is_integer
tf.float32.is_floating
tf.int32.as_numpy_dtype is np.int32
tf.bool.is_bool
tf.uint8.is_unsigned
tf.float32.size
tf.train.ExponentialMovingAverage(0.9).name
tf.train.latest_checkpoint(folder())
tf.version.VERSION.count('.') >= 2
"""

_NUMPY_UNARY = """abs absolute arcsinh arctan cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs fix floor isfinite isinf isnan isneginf
isposinf negative positive rad2deg ravel real reciprocal rint shape sign signbit sin sinc sinh size sort sqrt square squeeze sum tan
tanh transpose all any amax amin argmax argmin argsort average max mean min prod std var ptp cumsum cumprod flip fliplr flipud nansum
nanmean nanprod ndim nonzero count_nonzero diff trace tril triu zeros_like ones_like empty_like atleast_1d atleast_2d atleast_3d
isreal isrealobj iscomplex isscalar copy array asarray asanyarray ascontiguousarray conj conjugate imag rot90
diagonal diag vander diagflat"""
TEXT["numpy"] = "\n".join(
    f"tf.experimental.numpy.{name}(x64)"
    for name in _NUMPY_UNARY.split()
    if name not in ("rint", "vander", "sqrt", "diagflat", "shape", "empty_like")
) + "\n" + "\n".join(
    f"tf.experimental.numpy.{name}(x64, x64 + 1)"
    for name in """add subtract multiply divide true_divide maximum minimum arctan2 hypot logaddexp logaddexp2 fmax equal not_equal less
    less_equal greater greater_equal allclose array_equal isclose floor_divide mod remainder heaviside power float_power kron outer inner
    vdot append copysign nextafter logical_and logical_or logical_xor divmod""".split()
    if name not in ("fmax", "inner", "copysign", "power", "float_power")
) + """
tf.experimental.numpy.sqrt(p64)
tf.experimental.numpy.vstack([x64, x64])
tf.experimental.numpy.hstack([x64, x64])
tf.experimental.numpy.dstack([x64, x64])
tf.experimental.numpy.log(p64)
tf.experimental.numpy.log2(p64)
tf.experimental.numpy.log10(p64)
tf.experimental.numpy.log1p(p64)
tf.experimental.numpy.arccos(u64)
tf.experimental.numpy.arcsin(u64)
tf.experimental.numpy.arctanh(u64)
tf.experimental.numpy.arccosh(1 + p64)
tf.experimental.numpy.power(p64, 2.0)
tf.experimental.numpy.inner(x64[0], x64[1])
tf.experimental.numpy.float_power(p64, 2.0)
tf.experimental.numpy.vander(x64[0])
tf.experimental.numpy.diagflat(x64[0])
tf.experimental.numpy.logical_not(b)
tf.experimental.numpy.bitwise_and(i, 3)
tf.experimental.numpy.bitwise_or(i, 3)
tf.experimental.numpy.bitwise_xor(i, 3)
tf.experimental.numpy.bitwise_not(i)
tf.experimental.numpy.gcd(i, 4)
tf.experimental.numpy.lcm(i, 4)
tf.experimental.numpy.arange(5)
tf.experimental.numpy.arange(1.0, 2.0, 0.25)
tf.experimental.numpy.array([1, 2])
tf.experimental.numpy.array([1.0, 2.0])
tf.experimental.numpy.zeros([2])
tf.experimental.numpy.ones([2, 2])
tf.experimental.numpy.full([2], 7.0)
tf.experimental.numpy.full_like(x64, 3)
tf.experimental.numpy.eye(3)
tf.experimental.numpy.identity(2)
tf.experimental.numpy.linspace(0, 1, 5)
tf.experimental.numpy.logspace(0, 1, 4)
tf.experimental.numpy.geomspace(1.0, 8.0, 4)
tf.experimental.numpy.meshgrid([1, 2], [3, 4, 5])
tf.experimental.numpy.tri(3)
tf.experimental.numpy.clip(x64, -0.5, 0.5)
tf.experimental.numpy.concatenate([x64, x64], 1)
tf.experimental.numpy.stack([x64, x64])
tf.experimental.numpy.split(x64, 2, 1)
tf.experimental.numpy.hsplit(x64, 2)
tf.experimental.numpy.vsplit(x64, 3)
tf.experimental.numpy.dsplit(a64, 2)
tf.experimental.numpy.tile(x64, 2)
tf.experimental.numpy.repeat(x64, 2, 0)
tf.experimental.numpy.roll(x64, 1)
tf.experimental.numpy.reshape(x64, [4, 3])
tf.experimental.numpy.expand_dims(x64, 0)
tf.experimental.numpy.swapaxes(x64, 0, 1)
tf.experimental.numpy.moveaxis(a64, 0, 2)
tf.experimental.numpy.broadcast_to(x64[0], [2, 4])
tf.experimental.numpy.broadcast_arrays(x64, x64[0])
tf.experimental.numpy.pad(x64, [[1, 1], [0, 2]], 'constant')
tf.experimental.numpy.take(x64, [1, 2], axis=1)
tf.experimental.numpy.take_along_axis(x64, tf.constant([[0], [1], [2]], tf.int64), 1)
tf.experimental.numpy.where(x64 > 0, x64, 0.0)
tf.experimental.numpy.select([x64 > 0, x64 < -1], [x64, -x64], 9.0)
tf.experimental.numpy.compress([True, False, True], x64, axis=0)
tf.experimental.numpy.dot(x64, x64[0])
tf.experimental.numpy.matmul(x64, tf.transpose(x64))
tf.experimental.numpy.tensordot(x64, x64, 2)
tf.experimental.numpy.einsum('ij,ij->i', x64, x64)
tf.experimental.numpy.cross(x64[:, :3], x64[:, 1:])
tf.experimental.numpy.polyval(x64[0], 2.0)
tf.experimental.numpy.ix_([0, 1], [2, 3])
tf.experimental.numpy.sum(x64, axis=0)
tf.experimental.numpy.mean(i)
tf.experimental.numpy.iinfo(np.int32).max
tf.experimental.numpy.finfo(np.float32).eps
tf.experimental.numpy.promote_types(np.int32, np.float32)
tf.experimental.numpy.issubdtype(np.int32, np.integer)
tf.experimental.numpy.pi
tf.experimental.numpy.e
tf.experimental.numpy.inf
tf.experimental.numpy.newaxis
tf.experimental.numpy.random.rand(2, 3).shape
tf.experimental.numpy.random.randn(2, 3).shape
tf.experimental.numpy.random.randint(5, size=[2, 3]).shape
tf.experimental.numpy.random.uniform(size=[2]).shape
tf.experimental.numpy.random.standard_normal([2]).shape
tf.experimental.numpy.random.poisson(1.0, [2]).shape
tf.experimental.numpy.random.random([2]).shape
tf.experimental.numpy.random.seed(3)
tf.experimental.numpy.float32
tf.experimental.numpy.int64
tf.experimental.numpy.bool_
tf.experimental.numpy.inexact is not None
tf.experimental.numpy.ndarray is not None
"""


def _cases() -> list[tuple[str, float]]:
    found: dict[str, float] = {}
    for text in TEXT.values():
        for line in text.strip().splitlines():
            line, tolerance = line.strip(), 1.0
            if line.startswith("~"):
                number, _, line = line[1:].partition(" ")
                tolerance = float(number)
            if line and not line.endswith(("if False else 0", "if False else 1")):
                found[line] = tolerance
    return list(found.items())


CASES = _cases()
