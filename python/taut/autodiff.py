"""Forward-mode differentiation."""

from __future__ import annotations

from typing import Any

from . import _namespace, _native, _raw_ops as raw, nest
from ._common import refuse
from .open_variable import held
from .recording import call_recorded
from .tape import GradientTape, is_zero

__all__ = ["ForwardAccumulator", "GradientTape"]
__getattr__, __dir__ = _namespace.plain(__name__)


def _as_tensors(primals: Any, tangents: Any) -> Any:
    """Tangents with numbers and arrays as tensors of their primals' types."""
    flat, wanted = nest.flatten(tangents), len(nest.flatten(primals))
    if wanted == 1 and not nest.is_nested(primals):
        # A tangent of one tensor may be a list of numbers.
        flat, tangents = [tangents], primals
    if len(flat) != wanted:
        text = f"primals and tangents must have one structure, got {wanted} primals and {len(flat)} tangents"
        refuse("ForwardAccumulator", text, ValueError)
    for primal in nest.flatten(primals):
        if not isinstance(primal, _native.Array):
            raise TypeError(f"ForwardAccumulator: primals must be tensors or variables, got {primal!r}")
    converted = [
        tangent if isinstance(tangent, _native.Array) or tangent is None else _native.as_tensor(tangent, primal.dtype)
        for primal, tangent in zip(nest.flatten(primals), flat)
    ]
    return nest.pack_sequence_as(tangents, converted)


class ForwardAccumulator:
    """Computes Jacobian-vector products alongside the values (forward mode).

    >>> import taut as tf
    >>> x = tf.constant([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
    ...     y = x * x
    >>> acc.jvp(y).numpy().tolist()
    [2.0, 2.0]
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        primals = nest.map_structure(held, primals)
        tangents = _as_tensors(primals, tangents)
        self._native = call_recorded(_native.ForwardAccumulator, primals, tangents)
        pairs = zip(nest.flatten(primals), nest.flatten(tangents))
        #: A variable is no value of its own: its derivative is its tangent.
        self._variables = [(one, tangent) for one, tangent in pairs if isinstance(one, _native.Variable)]

    def __enter__(self) -> ForwardAccumulator:
        self._native.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._native.__exit__(*error)

    def jvp(self, primals: Any, unconnected_gradients: Any = "none") -> Any:
        """The derivative of each value along the tangents; None where it does not depend on the primals."""
        zero = is_zero(unconnected_gradients)

        def one(value: Any) -> Any:
            value = held(value)
            own = [tangent for variable, tangent in self._variables if variable is value]
            found = own[0] if own else self._native.jvp(value)
            return raw.zeros_like(value) if found is None and zero else found

        return nest.map_structure(one, primals)
