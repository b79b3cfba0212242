"""Structures of tensors and shapes: the elements of datasets and their descriptions."""

from __future__ import annotations

from typing import Any

from .. import _native, nest
from ..shape import TensorShape
from ..spec import TensorSpec


def as_tensors(structure: Any) -> Any:
    """Converts lists of numbers to tensors inside a structure."""
    if isinstance(structure, dict):
        return {key: as_tensors(part) for key, part in structure.items()}
    if isinstance(structure, tuple):
        parts = [as_tensors(part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return _native.as_tensor(structure)


def fill_unknown(shapes: Any, size: int) -> Any:
    """Shapes with `size` in place of unknown sizes."""
    if isinstance(shapes, dict):
        return {key: fill_unknown(part, size) for key, part in shapes.items()}
    if _is_shape(shapes):
        return TensorShape(size if dim in (None, -1) else dim for dim in shapes)
    return tuple(fill_unknown(part, size) for part in shapes)


def _is_shape(shapes: Any) -> bool:
    return isinstance(shapes, TensorShape) or all(dim is None or isinstance(dim, int) for dim in shapes)


def flat_shapes(shapes: Any, like: Any) -> list:
    """Flattens a structure of shapes, which are lists themselves."""
    if isinstance(shapes, dict):
        return [shape for key in sorted(shapes) for shape in flat_shapes(shapes[key], None)]
    if _is_shape(shapes) and not (
        isinstance(shapes, tuple) and len(shapes) == 0 and like is not None and nest.is_nested(like)
    ):
        return [shapes]
    return [shape for part in shapes for shape in flat_shapes(part, None)]


def typed_element(element: Any, signature: Any) -> Any:
    """Converts an element to the types of a signature; raises ValueError if it does not fit."""

    def one(spec: Any, leaf: Any) -> Any:
        dtype = getattr(spec, "dtype", spec)
        # Copied: a generator may yield the same array each time.
        made = _native.own_tensor(leaf, dtype)
        if isinstance(spec, TensorSpec) and not spec.shape.is_compatible_with(made.shape):
            raise ValueError(f"the generator must yield shape {spec.shape}, got {made.shape}")
        return made

    if isinstance(signature, (tuple, list)):
        if not isinstance(element, (tuple, list)) or len(element) != len(signature):
            raise ValueError(f"the generator must yield {signature!r}, got {element!r}")
        return tuple(typed_element(part, spec) for part, spec in zip(element, signature))
    if isinstance(signature, dict):
        return {key: typed_element(element[key], spec) for key, spec in signature.items()}
    return one(signature, element)
