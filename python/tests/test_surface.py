"""The public names come from one table, and every op of the op table is reachable by them."""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

import taut as tf
from taut import _native
from taut._surface import RESULTS, SURFACE, OpName, Wrapped

TAUT = pathlib.Path(tf.__file__).parent
NAMESPACES = [name for name in SURFACE if not name.startswith("taut.keras")]

# Ops of gradients, and ops whose meaning a public function has in other words.
INTERNAL = {
    "attention_gradient",
    "avg_pool_gradient",
    "conv_filter_gradient",
    "conv_input_gradient",
    "keep_bits",
    "max_pool_gradient",
    "pack_bits",
    "unpack_bits",
}


def test_every_op_is_used():
    used = {row.op for rows in SURFACE.values() for row in rows.values() if isinstance(row, (OpName, Wrapped))}
    for path in TAUT.rglob("*.py"):
        used.update(re.findall(r"\braw\.(\w+)", path.read_text()))
    names = set(_native.op_names())
    segments = {name for name in names if name.startswith("unsorted_segment_")}
    assert names - used - segments == INTERNAL
    assert {name for name in used if name not in names} == set()


def test_no_module_makes_handles_of_its_own():
    makers = {"_op.py", "_raw_ops.py", "_namespace.py"}
    found = [
        path.name for path in TAUT.rglob("*.py") if re.search(r"\bOp\(", path.read_text()) and path.name not in makers
    ]
    assert found == []


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_name_resolves_and_is_listed(namespace):
    module = importlib.import_module(namespace)
    for name in SURFACE[namespace]:
        assert getattr(module, name) is not None, name
        assert name in dir(module)
    if namespace != "taut":
        assert set(SURFACE[namespace]) <= set(module.__all__)


@pytest.mark.parametrize("namespace", [name for name in SURFACE if name.startswith("taut.keras")])
def test_every_name_of_the_keras_backend_resolves(namespace):
    importlib.import_module("taut.keras")
    module = importlib.import_module(namespace)
    for name in SURFACE[namespace]:
        assert getattr(module, name) is not None, name


def test_one_object_under_all_names():
    assert tf.add is tf.math.add
    assert tf.divide is tf.math.divide
    assert tf.nn.softmax is tf.math.softmax
    assert tf.linalg.matmul is tf.matmul


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="module 'taut.math' has no attribute 'sine'"):
        tf.math.sine
    with pytest.raises(AttributeError, match="module 'taut' has no attribute 'reduce_summ'"):
        tf.reduce_summ
    with pytest.raises(AttributeError, match="the op table has no op 'nothing'"):
        tf._namespace._raw_ops.nothing


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
def test_names_of_tensorflow(name):
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value)


def test_helpers_are_not_public():
    for name in ("op", "np", "Any", "builtins", "contextlib", "Sequence"):
        assert not hasattr(tf, name), name
        assert not hasattr(tf.math, name), name


def test_results_of_ops_with_several_outputs():
    raw = tf._namespace._raw_ops
    matrix = tf.constant([[2.0, 1.0], [1.0, 3.0]])
    calls = {
        "clip_by_global_norm": ([matrix, matrix], 1.0),
        "eig": (matrix,),
        "eigh": (matrix,),
        "lstsq": (matrix, matrix),
        "meshgrid": ([tf.range(2), tf.range(3)],),
        "moments": (matrix, [0]),
        "qr": (matrix,),
        "slogdet": (matrix,),
        "split": (matrix, 2, 0),
        "svd": (matrix,),
        "top_k": (matrix, 1, True),
        "unique": (tf.range(3),),
        "unstack": (matrix, 0),
    }
    assert set(calls) == set(RESULTS)
    for name, args in calls.items():
        results = getattr(raw, name)(*args)
        assert isinstance(results, tuple), name
        count = RESULTS[name].count("Tensor")
        assert "..." in RESULTS[name] or len(results) == count, (name, len(results))


def test_importing_takes_little_time(tmp_path):
    # Processor time, and the best of a few runs: other work on the machine must not matter. The first run writes the
    # bytecode, which an installed package has: without it, compiling takes most of the time.
    code = "import numpy, ml_dtypes, time; t = time.process_time(); import taut; print(time.process_time() - t)"
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env) for _ in range(4)]
    assert min(float(run.stdout) for run in runs) < 0.1
