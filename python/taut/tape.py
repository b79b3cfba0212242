"""Gradient tapes."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _raw_ops as raw, nest
from ._common import refuse
from .errors import DTypeError, DynamicShapeError, InvalidArgumentError
from .open_variable import OpenVariable
from .recording import call_recorded, recorded

if TYPE_CHECKING:
    from ._typing import TensorLike


class UnconnectedGradients(enum.Enum):
    """The gradient of a source on which the target does not depend: None or zeros."""

    NONE = "none"
    ZERO = "zero"


def is_zero(unconnected_gradients: UnconnectedGradients | str) -> bool:
    """Whether unconnected gradients are zeros."""
    return UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO


def _check(name: str, leaf: Any) -> None:
    """Refuses leaves that a tape cannot record, whose gradient would silently be None, with a Type- and ValueError."""
    if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes, np.ndarray, np.generic)):
        refuse(f"GradientTape.{name}", f"expected a tensor or a variable, got {type(leaf).__name__}", DTypeError)


class SavedTensors(str):
    """The values that a tape has saved: a printable table, and `rows` of (bytes, op, line, role)."""

    rows: list[tuple[int, str, str, str]]


class GradientTape(_native.GradientTape):
    """Records operations for reverse-mode differentiation.

    Trainable variables are watched when they are read; tensors by `watch`. Of each op it saves only what the op's
    gradient needs, and it drops ops whose results are no longer reachable.

    >>> import taut as tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    #: How many nested bodies of loops and branches were being traced when the tape was made.
    _bodies = 0

    def __new__(
        cls, persistent: bool = False, watch_accessed_variables: bool = True, memory_budget: Any = None
    ) -> GradientTape:
        """Creates a tape; in a `with` statement it records."""
        make, args = super().__new__, (cls, persistent, watch_accessed_variables, memory_budget)
        made = call_recorded(make, *args)
        if _native.is_tracing():
            made._bodies = _native.body_depth()
        return made

    def watch(self, tensor: TensorLike) -> None:
        """Starts recording these tensors and variables."""
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
        """Computes the gradients of the summed targets with respect to the sources, in the sources' structure.

        The gradient is None where there is no dependency: `explain_none(target, source)` says why.
        """
        was_resized = has_strings = False
        for leaf in nest.flatten([target, sources]):
            _check("gradient", leaf)
            has_strings = has_strings or isinstance(leaf, _native.StringTensor)
            was_resized = was_resized or (type(leaf) is OpenVariable and bool(leaf._former))
        unconnected = UnconnectedGradients(unconnected_gradients).value
        if isinstance(target, (list, tuple, dict)) and isinstance(output_gradients, (list, tuple, dict)):
            output_gradients = nest.flatten(output_gradients)
        if has_strings:
            return self._gradient_of_numbers(target, sources, output_gradients, unconnected)
        if _native.is_tracing() and _native.body_depth() > self._bodies:
            return self._gradient_in_body(target, sources, output_gradients, unconnected)
        if was_resized:
            return self._gradient_of_resized(target, sources, output_gradients, unconnected)
        return super().gradient(target, sources, output_gradients, unconnected)

    def _gradient_in_body(self, target: Any, sources: Any, output_gradients: Any, unconnected: str) -> Any:
        """The gradient in a loop or branch of what was recorded outside of it. The tape records the loop or branch as a whole,
        so it knows nothing of the ops in it: with a target that is computed there, the function runs op by op. Of several
        targets, the gradient does not show whether one of them is.
        """
        is_known = len(nest.flatten(target)) == 1
        found = super().gradient(target, sources, output_gradients, "none") if is_known else None
        flat = nest.flatten(found)
        if flat and all(gradient is None for gradient in flat):
            text = "the tape records the loop or branch as a whole, and the target is computed in it"
            refuse("GradientTape.gradient", f"{text}\n  help: make the tape inside of it", DynamicShapeError)
        if unconnected == "zero":
            flat = [raw.zeros_like(x) if one is None else one for x, one in zip(nest.flatten(sources), flat)]
            found = nest.pack_sequence_as(sources, flat)
        return found

    def _gradient_of_numbers(self, target: Any, sources: Any, output_gradients: Any, unconnected: str) -> Any:
        """The gradient where targets or sources are strings, which have none: their zeros are empty strings."""
        targets = nest.flatten(target)
        given = [None] * len(targets) if output_gradients is None else nest.flatten(output_gradients)
        pairs = [pair for pair in zip(targets, given) if not isinstance(pair[0], _native.StringTensor)]
        flat = nest.flatten(sources)
        numbers = [one for one in flat if not isinstance(one, _native.StringTensor)]
        found: list[Any] = [None] * len(numbers)
        if pairs and numbers:
            upstream = None if output_gradients is None else [one for _, one in pairs]
            found = self.gradient([one for one, _ in pairs], numbers, upstream, unconnected)
        elif unconnected == "zero":
            found = [raw.zeros_like(one) for one in numbers]
        rest = iter(found)
        empty = np.vectorize(lambda _: b"", otypes=[object])
        made = [
            next(rest)
            if not isinstance(one, _native.StringTensor)
            else _native.as_tensor(empty(np.asarray(one)))
            if unconnected == "zero"
            else None
            for one in flat
        ]
        return nest.pack_sequence_as(sources, made)

    def _gradient_of_resized(self, target: Any, sources: Any, output_gradients: Any, unconnected: str) -> Any:
        """The gradient for variables that may have been read with another size than they have now."""
        watched = self.watched_variables()
        flat = nest.flatten(sources)
        versions = [one._watched_in(watched) if type(one) is OpenVariable else [one] for one in flat]
        found = super().gradient(target, versions, output_gradients, "none")
        chosen = []
        for source, own, gradients in zip(flat, versions, found):
            connected = [gradient for gradient in gradients if gradient is not None]
            if len(connected) > 1:
                text = (
                    f"the target depends on values of {source.name!r} of several sizes, which have no common gradient"
                )
                refuse("GradientTape.gradient", text)
            zeros = raw.zeros_like(own[-1]) if unconnected == "zero" else None
            chosen.append(connected[0] if connected else zeros)
        return nest.pack_sequence_as(sources, chosen)

    @recorded
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Computes the Jacobian of the target with respect to each source."""
        if not isinstance(target, _native.Array):
            refuse("GradientTape.jacobian", f"target must be one tensor, got {type(target).__name__}", TypeError)
        for leaf in nest.flatten(sources):
            _check("jacobian", leaf)
            if type(leaf) is OpenVariable and len(leaf._watched_in(self.watched_variables())) > 1:
                text = f"{leaf.name!r} has got another size since it was read"
                refuse("GradientTape.jacobian", f"{text}\n  help: compute the Jacobian before the assignment")
        zero = is_zero(unconnected_gradients)
        if 0 in target.shape:
            # There is no element to differentiate; the result of a connected source is empty all the same.
            found = self.gradient(target, sources, unconnected_gradients=unconnected_gradients)
            return nest.map_structure(lambda one: _empty(target, one), found)
        found = self._jacobian(target, sources)
        if not zero:
            return found

        def one(source: Any, jacobian: Any) -> Any:
            return raw.zeros([*target.shape, *source.shape], source.dtype) if jacobian is None else jacobian

        found = [one(*pair) for pair in zip(nest.flatten(sources), nest.flatten(found))]
        return nest.pack_sequence_as(sources, found)

    @recorded
    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Computes per-row Jacobians: row i of the target must depend on row i of the source only."""
        UnconnectedGradients(unconnected_gradients)
        for name, one in (("target", target), ("source", source)):
            if not isinstance(one, _native.Array):
                text = f"{name} must be one tensor, got {type(one).__name__}"
                refuse("GradientTape.batch_jacobian", text, TypeError)
            if len(one.shape) < 2:
                refuse("GradientTape.batch_jacobian", f"{name} must have rank >= 2, got {one.shape}", ValueError)
        if target.shape[0] != source.shape[0]:
            text = f"target and source must have the same first size, got shapes {target.shape} and {source.shape}"
            refuse("GradientTape.batch_jacobian", text, ValueError)
        if 0 in target.shape:
            return raw.zeros([*target.shape, *source.shape[1:]], source.dtype)
        found = self._batch_jacobian(target, source)
        # As in TensorFlow, zeros also if the target does not depend on the source.
        return raw.zeros([*target.shape, *source.shape[1:]], source.dtype) if found is None else found

    def watched_variables(self) -> tuple:
        """The variables that are watched, in the order of their creation."""
        try:
            return super().watched_variables()
        except RuntimeError:
            # Nothing is recorded yet.
            return ()

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A context manager that pauses recording."""
        if not self.is_recording:
            raise RuntimeError("the tape is not recording")
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def explain(self) -> SavedTensors:
        """The values that are saved, by op and line, with the reason: printable as a table, with `rows`."""
        text, rows = self._explain()
        saved = SavedTensors(text)
        saved.rows = rows
        return saved


def _empty(target: Any, gradient: Any) -> Any:
    """The Jacobian of a target without elements."""
    return None if gradient is None else raw.zeros([*target.shape, *gradient.shape], gradient.dtype)


@recorded
def stop_gradient(input: TensorLike, name: str | None = None) -> Any:
    """Returns the input as a constant for differentiation. A list is a tensor, as for other ops."""
    return raw.stop_gradient(input)


@recorded
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list:
    """Computes the gradients of the summed `ys` with respect to `xs`, inside a traced function.

    Outside of traced functions, use tf.GradientTape. The tensors in `stop_gradients` are constants: no gradient flows
    through the ops that computed them, but `xs` may be among them.
    """
    if not _native.is_tracing():
        raise RuntimeError(
            "tf.gradients works only in a traced function, not in one that runs op by op: use tf.GradientTape"
        )
    try:
        found = _native.gradients(ys, xs, grad_ys, nest.flatten([] if stop_gradients is None else stop_gradients))
    except DynamicShapeError as reason:
        # Run op by op, the function would have no graph to differentiate.
        raise InvalidArgumentError(str(reason)) from None
    if is_zero(unconnected_gradients):
        found = [raw.zeros_like(x) if gradient is None else gradient for gradient, x in zip(found, nest.flatten(xs))]
    return found


@recorded
def hessians(
    ys: Any,
    xs: Any,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    name: str = "hessians",
) -> list:
    """Computes the Hessians of the summed `ys` with respect to each of `xs`, inside a traced function.

    The Hessian of a tensor of shape S has shape S + S.
    """
    found: list[Any] = []
    for x in nest.flatten(xs):
        first = gradients(ys, x, gate_gradients=gate_gradients, aggregation_method=aggregation_method)[0]
        if first is None:
            found.append(None)
            continue
        flat = raw.reshape(first, [-1])
        rows = [gradients(flat[i], x, unconnected_gradients="zero")[0] for i in range(flat.shape[0])]
        found.append(raw.reshape(raw.stack(rows, 0), [*x.shape, *x.shape]))
    return found
