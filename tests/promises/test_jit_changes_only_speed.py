"""`jit_compile` changes speed, never semantics, and results only within float tolerance."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def floats(*shape):
    return tf.constant(np.random.default_rng(len(shape)).uniform(0.1, 0.9, size=shape).astype("f4"))


def key():
    return tf.constant(np.array([11, 5], np.uint64))


def ids(*values):
    return tf.constant(values)


# Ops that do not take two 4x4 matrices.
PARTICULAR = {
    "attention": lambda: [floats(2, 3, 5, 4), floats(2, 3, 6, 4), floats(2, 3, 6, 4)],
    "avg_pool": lambda: [floats(2, 6, 6, 3), [2, 2]],
    "avg_pool_gradient": lambda: [[2, 6, 6, 3], floats(2, 5, 5, 3), [2, 2]],
    "batch_norm": lambda: [floats(5, 3), floats(3), floats(3)],
    "bitcast": lambda: [floats(4), "int32"],
    "broadcast_to": lambda: [floats(1, 4), [3, 4]],
    "attention_gradient": lambda: [
        *(floats(1, 2, size, 4) for size in (3, 5, 5, 3)),
        *(floats(1, 2, 3) for _ in range(2)),
    ],
    "attention_with_dropout": lambda: [*(floats(1, 2, size, 4) for size in (3, 5, 5)), 0.5, key()],
    "check_numerics": lambda: [floats(4), "message"],
    "ensure": lambda: [tf.constant([True, True]), "message"],
    "cholesky": lambda: [tf.constant([[4.0, 1.0], [1.0, 3.0]])],
    "conv1d": lambda: [floats(2, 8, 3), floats(3, 3, 4)],
    "conv2d": lambda: [floats(2, 6, 6, 3), floats(3, 3, 3, 4)],
    "conv3d": lambda: [floats(1, 4, 4, 4, 2), floats(2, 2, 2, 2, 3)],
    "conv_filter_gradient": lambda: [floats(2, 6, 6, 3), [3, 3, 3, 4], floats(2, 4, 4, 4)],
    "conv_input_gradient": lambda: [[2, 6, 6, 3], floats(3, 3, 3, 4), floats(2, 4, 4, 4)],
    "conv_transpose": lambda: [floats(2, 4, 4, 3), floats(3, 3, 5, 3)],
    "depthwise_conv2d": lambda: [floats(2, 6, 6, 3), floats(3, 3, 3, 2)],
    "dropout": lambda: [floats(4, 4), 0.5, key()],
    "einsum": lambda: ["ij,jk->ik", [floats(3, 4), floats(4, 2)]],
    "fold_in": lambda: [key(), 3],
    "gather_nd": lambda: [floats(4, 4), tf.constant([[0, 1], [3, 2]])],
    "group_norm": lambda: [floats(2, 5, 4), None, None, 2],
    "keep_bits": lambda: [floats(16), tf.constant(np.array([170, 85], np.uint8))],
    "max_pool": lambda: [floats(2, 6, 6, 3), [2, 2]],
    "max_pool_gradient": lambda: [floats(2, 6, 6, 3), floats(2, 5, 5, 3), [2, 2]],
    "meshgrid": lambda: [[floats(3), floats(4)]],
    "pad": lambda: [floats(2, 3), [[1, 0], [2, 1]]],
    "reshape": lambda: [floats(4, 4), [2, 8]],
    "scatter_nd": lambda: [tf.constant([[1], [3]]), floats(2, 3), [5, 3]],
    "sparse_softmax_cross_entropy_with_logits": lambda: [ids(0, 2), floats(2, 3)],
    "split": lambda: [floats(4, 4), [1, 3]],
    "stateless_bernoulli": lambda: [key(), [4, 4]],
    "stateless_bernoulli_each": lambda: [key(), floats(4, 4)],
    "stateless_categorical": lambda: [key(), floats(3, 4), 5],
    "stateless_exponential": lambda: [key(), [4, 4]],
    "stateless_gamma": lambda: [key(), [4, 4], 2.0],
    "stateless_integers": lambda: [key(), [4, 4], 0, 10],
    "stateless_normal": lambda: [key(), [4, 4]],
    "stateless_permutation": lambda: [key(), 10],
    "stateless_shuffle": lambda: [key(), floats(4, 4)],
    "stateless_truncated_normal": lambda: [key(), [4, 4]],
    "stateless_uniform": lambda: [key(), [4, 4]],
    "tile": lambda: [floats(2, 3), [2, 2]],
    "unpack_bits": lambda: [tf.constant(np.array([170, 85], np.uint8)), [16]],
}
for how in ["add", "max", "min", "sub", "update"]:
    PARTICULAR[f"tensor_scatter_{how}"] = lambda: [floats(4, 3), tf.constant([[1], [3]]), floats(2, 3)]
for how in ["max", "mean", "min", "prod", "sum"]:
    PARTICULAR[f"segment_{how}"] = lambda: [floats(4, 3), ids(0, 0, 1, 2)]
    PARTICULAR[f"unsorted_segment_{how}"] = lambda: [floats(4, 3), ids(1, 0, 1, 2), 3]
# The shapes of their results depend on values: tracing them is an error.
SHAPED_BY_VALUES = {"bincount", "boolean_mask", "nonzero", "unique"}
SHAPED_BY_VALUES |= {f"segment_{how}" for how in ["max", "mean", "min", "prod", "sum"]}
PLAIN = {
    "Tensor": lambda: floats(4, 4),
    "Operand": lambda: floats(4, 4),
    "Tensors": lambda: [floats(4, 4), floats(4, 4)],
    "Ints": lambda: [0],
    "Int": lambda: 1,
    "DType": lambda: "float64",
    "Scalar": lambda: 0.5,
    "Float": lambda: 0.5,
}


def given_for(name, op):
    """Valid arguments for an op of the table."""
    if name in PARTICULAR:
        return PARTICULAR[name]()
    needed = [kind for _, kind, default in op.params if default is None]
    for dtype in ["float32", "int32", "bool"]:
        given = [PLAIN[kind]() for kind in needed]
        if dtype != "float32":
            given = [tf.cast(x * 3.0, dtype) if isinstance(x, tf.Tensor) else x for x in given]
        if name == "transpose":
            given = given[:1]
        try:
            op(*given)
        except (TypeError, ValueError, IndexError):
            continue
        return given
    raise AssertionError(f"{name} takes none of the arguments of this test: it is a particular one")


@pytest.mark.parametrize("name", tf._native.op_names())
def test_eager_traced_and_compiled_agree_on_every_op(name):
    op = tf._native.Op(name)
    given = given_for(name, op)
    eager = tf.nest.flatten(op(*given))
    if name in SHAPED_BY_VALUES:
        f = tf.function(op, autograph=False)
        with pytest.raises(tf.errors.DynamicShapeError, match="traced"):
            f.plan(*given)
        with pytest.warns(RuntimeWarning, match="runs op by op"):
            found = tf.nest.flatten(f(*given))
        for one, other in zip(eager, found, strict=True):
            np.testing.assert_array_equal(one, other)
        return
    where = [i for i, x in enumerate(given) if isinstance(x, tf.Tensor)]

    def around(*tensors):
        arguments = list(given)
        for i, tensor in zip(where, tensors):
            # An elementwise op before it, so that there is something to fuse.
            arguments[i] = tensor if tensor.dtype.is_bool else tensor * 1
        return op(*arguments)

    for jit in [False, True]:
        traced = tf.function(around, jit_compile=jit, autograph=False)(*[given[i] for i in where])
        for one, other in zip(eager, tf.nest.flatten(traced), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            one, other = np.asarray(one), np.asarray(other)
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("jit", [False, None, True])
def test_options_do_not_change_semantics(jit, rng):
    def step(v, x):
        noise = tf.random.normal(x.shape)
        v.assign_add(x * 0.5)
        if tf.reduce_sum(v) > 1.0:
            y = tf.tanh(v) + noise
        else:
            y = tf.exp(v) - noise
        return y

    start = rng.normal(size=(8,)).astype("f4")
    x = tf.constant(rng.normal(size=(8,)).astype("f4"))
    eager, traced = tf.Variable(start), tf.Variable(start)
    f = tf.function(step, jit_compile=jit)
    for run in range(4):
        tf.random.set_seed(run)
        want = step(eager, x)
        tf.random.set_seed(run)
        np.testing.assert_allclose(f(traced, x).numpy(), want.numpy(), rtol=1e-6)
        np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-6)
