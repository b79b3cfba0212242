"""Every op of the table is within reach of TensorFlow's names."""

import importlib

import pytest

import taut as tf
from taut import _native

MODULES = [
    "_common", "bitwise", "counting", "debugging", "image", "indexing", "linalg", "math", "nn", "ops",
    "random", "tape", "windows", "array_api._creation", "array_api._elementwise",
    "array_api._manipulation", "array_api._reductions", "array_api._searching", "array_api.linalg",
]  # fmt: skip

# What only gradients are made of, or what a public function says in other words.
INTERNAL = {
    "avg_pool_gradient",
    "conv_filter_gradient",
    "conv_input_gradient",
    "full_like",
    "keep_bits",
    "max_pool_gradient",
    "pack_bits",
    "unpack_bits",
}


def _ops(value):
    if isinstance(value, _native.Op):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _ops(one)


def test_every_op_is_reachable():
    used = set()
    for name in MODULES:
        module = importlib.import_module(f"taut.{name}")
        for value in vars(module).values():
            used.update(one.op for one in _ops(value))
    assert set(_native.op_names()) - used == INTERNAL
    assert callable(tf.stop_gradient)


@pytest.mark.parametrize(
    "name",
    [
        "abs", "add", "argmax", "boolean_mask", "broadcast_to", "cast", "clip_by_value", "concat", "cumsum",
        "einsum", "expand_dims", "eye", "fill", "gather", "gather_nd", "identity", "linspace", "matmul",
        "meshgrid", "norm", "one_hot", "ones", "pad", "range", "reduce_sum", "repeat", "reshape", "reverse",
        "roll", "scatter_nd", "searchsorted", "sequence_mask", "slice", "sort", "split", "squeeze", "stack",
        "strided_slice", "tensor_scatter_nd_update", "tensordot", "tile", "transpose", "unique", "unstack",
        "where", "zeros", "math.log", "math.top_k", "math.bincount", "math.unsorted_segment_sum",
        "nn.conv2d", "nn.dropout", "nn.softmax_cross_entropy_with_logits", "linalg.svd", "linalg.solve",
        "random.stateless_normal", "random.shuffle", "image.resize", "debugging.assert_equal",
        "bitwise.invert",
    ],
)  # fmt: skip
def test_names(name):
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value)


def test_nothing_else_leaks_to_the_top():
    for name in ("op", "np", "Any", "builtins", "contextlib", "Sequence"):
        assert not hasattr(tf, name), name
