"""Tapes."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _native, nest
from ._common import _refuse

_stop_gradient = _native.Op("stop_gradient")
_zeros = _native.Op("zeros")
_zeros_like = _native.Op("zeros_like")


class UnconnectedGradients(enum.Enum):
    """What a gradient is where target and source are not connected."""

    NONE = "none"
    ZERO = "zero"


def is_zero(unconnected_gradients: UnconnectedGradients | str) -> bool:
    """Whether zeros are wanted where there is no gradient."""
    return UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO


def _check(name: str, leaf: Any) -> None:
    """Refuses what no tape could have followed: its gradient would be None, and nobody would know why."""
    if leaf is None or isinstance(leaf, (bool, int, float, str, np.ndarray)):
        _refuse(f"GradientTape.{name}", f"a {type(leaf).__name__} is neither a tensor nor a variable", TypeError)


class Held(str):
    """What a tape keeps: a text for people, and rows of (bytes, op, line, role)."""

    rows: list[tuple[int, str, str, str]]


class GradientTape(_native.GradientTape):
    """Follows what is computed with what it watches, so that gradients can be asked for.

    Trainable variables are watched as soon as they are read; tensors are watched when asked. Of each call it keeps only
    what that call's gradient needs, and of calls that nothing depends on any more nothing at all.

    >>> import taut as tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    def watch(self, tensor: Any) -> None:
        """Follows these tensors and variables from now on."""
        for leaf in nest.flatten(tensor):
            _check("watch", leaf)
        super().watch(tensor)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of the targets (summed) with respect to the sources, in the sources' structure.

        None where there is none: `explain_none(target, source)` says why.
        """
        for leaf in nest.flatten(target):
            _check("gradient", leaf)
        unconnected = UnconnectedGradients(unconnected_gradients).value
        return super().gradient(target, sources, output_gradients, unconnected)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of every element of the target with respect to every element of the sources."""
        found = self._jacobian(target, sources)
        if not is_zero(unconnected_gradients):
            return found

        def one(source: Any, jacobian: Any) -> Any:
            return _zeros([*target.shape, *source.shape], source.dtype) if jacobian is None else jacobian

        found = [one(*pair) for pair in zip(nest.flatten(sources), nest.flatten(found))]
        return nest.pack_sequence_as(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """As `jacobian`, where rows of the target depend only on the same rows of the source."""
        found = self._batch_jacobian(target, source)
        if found is None and is_zero(unconnected_gradients):
            return _zeros([*target.shape, *source.shape[1:]], source.dtype)
        return found

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Records nothing inside the `with` statement."""
        if not self.is_recording:
            raise RuntimeError("this tape is not recording")
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def explain(self) -> Held:
        """What is kept, by which op and line, and why: prints as a table, and has `rows`."""
        text, rows = self._explain()
        held = Held(text)
        held.rows = rows
        return held


def stop_gradient(input: Any, name: str | None = None) -> Any:  # noqa: A002
    """The same value, through which no gradient goes."""
    return nest.map_structure(_stop_gradient, input)


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list:
    """The gradients of `ys` (summed) with respect to `xs`, inside a traced function. Elsewhere, a GradientTape is for that.

    What the gradient shall not go through is said where it is used, with `tf.stop_gradient`.
    """
    if not _native.is_tracing():
        raise RuntimeError("tf.gradients works while a function is traced: use tf.GradientTape elsewhere")
    found = _native.gradients(ys, xs, grad_ys)
    if is_zero(unconnected_gradients):
        found = [_zeros_like(x) if gradient is None else gradient for gradient, x in zip(found, nest.flatten(xs))]
    return found
