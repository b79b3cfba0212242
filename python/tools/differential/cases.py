"""Expressions that give the same in TensorFlow and here, and the values they use."""

from __future__ import annotations

import functools
import os
import pathlib
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

    def operator(op: Any, x: Any) -> Any:
        """What a square linear operator computes."""
        found = [op.to_dense(), op.matmul(x), op.matmul(x, adjoint=True), op.matmul(x, adjoint_arg=True)]
        found += [op.matvec(x[..., 0]), op.solve(x), op.solve(x, adjoint=True), op.solvevec(x[..., 0], adjoint=True)]
        found += [op.diag_part(), op.trace(), op.determinant(), op.log_abs_determinant(), op.cond(), op.shape, op.dtype]
        found += [op.inverse().to_dense(), op.H.to_dense(), op.add_to_tensor(x), op.batch_shape, op.shape_tensor()]
        return [*found, op.is_square, int(op.domain_dimension), int(op.range_dimension), op.tensor_rank]

    class Point:
        """A class that converts to a tensor when a function is registered for it."""

        def __init__(self, y: float) -> None:
            self.y = y

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
        "operator": operator,
        "ra": tf.ragged.constant([[3, 1, 4], [], [5, 9], [2]]),
        "rd": tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0, 5.0, 6.0], [], [7.0]]]),
        "rf": tf.ragged.constant([[3.0, 1.0, 4.0], [], [5.0, 9.0], [2.0]]),
        "ri": tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1),
        "sp": tf.sparse.from_dense([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]]),
        "p": tensor(rng.uniform(0.5, 3.0, (3, 4))),
        "p64": tensor(rng.uniform(0.5, 3.0, (3, 4)), np.float64),
        "point": Point,
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


def _cases() -> list[tuple[str, float]]:
    """The expressions of all files. One that begins with `~N` is compared with N times the usual tolerance."""
    found: dict[str, float] = {}
    for path in sorted((pathlib.Path(__file__).parent / "expressions").glob("*.txt")):
        for line in path.read_text().splitlines():
            text, tolerance = line, 1.0
            if line.startswith("~"):
                number, _, text = line[1:].partition(" ")
                tolerance = float(number)
            found[text] = tolerance
    return list(found.items())


CASES = _cases()
