"""Structures of tensors and shapes: the elements of datasets and their descriptions."""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _native, nest
from ..errors import InvalidArgumentError
from ..shape import TensorShape
from ..spec import TensorSpec
from ..type_spec import is_of_parts


def as_tensors(structure: Any) -> Any:
    """Converts lists of numbers to tensors inside a structure."""
    if isinstance(structure, dict):
        return _like(structure, {key: as_tensors(part) for key, part in structure.items()})
    if isinstance(structure, tuple):
        parts = [as_tensors(part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if nest.is_custom(structure):
        return nest.map_parts(as_tensors, structure)
    if structure is None or hasattr(structure, "_taut_parts") or hasattr(structure, "element_spec"):
        return structure
    return _native.as_tensor(structure)


def has_traced(structure: Any) -> bool:
    """Whether a structure has tensors of a trace, which have no values."""
    return _native.is_tracing() and any(
        isinstance(leaf, _native.Array) and leaf.is_symbolic for leaf in nest.flatten(structure)
    )


def boxed(element: Any) -> Any:
    """The element for the engine, which knows tuples and dicts: an object with `__tf_flatten__` becomes a named tuple of its
    components, whose class makes the object again.
    """
    if isinstance(element, dict):
        by_key = {key: boxed(part) for key, part in element.items()}
        return element if all(by_key[key] is element[key] for key in by_key) else _like(element, by_key)
    if nest.is_custom(element):
        metadata, components = element.__tf_flatten__()
        kind: Any = type(element)
        return tuple.__new__(_box(kind, metadata), map(boxed, components))
    if isinstance(element, tuple):
        parts = [boxed(part) for part in element]
        if all(one is other for one, other in zip(parts, element)):
            return element
        return type(element)(*parts) if hasattr(element, "_fields") else tuple(parts)
    return element


@functools.cache
def _box(kind: Any, metadata: Any) -> type:
    """The class of the named tuples for objects of a class with this metadata."""

    def made(_box: type, *components: Any) -> Any:
        return kind.__tf_unflatten__(metadata, components)

    return type(kind.__name__, (tuple,), {"_fields": (), "__new__": made})


def _like(structure: dict, parts: dict) -> dict:
    """The parts in a dict of the structure's class, if that is one of elements."""
    return OrderedDict(parts) if isinstance(structure, OrderedDict) else parts


def fill_unknown(shapes: Any, size: int) -> Any:
    """Shapes with `size` in place of unknown sizes."""
    if isinstance(shapes, dict):
        return {key: fill_unknown(part, size) for key, part in shapes.items()}
    if _is_shape(shapes):
        return TensorShape(size if dim in (None, -1) else dim for dim in shapes)
    return tuple(fill_unknown(part, size) for part in shapes)


def _is_shape(shapes: Any) -> bool:
    if isinstance(shapes, (str, bytes)) or not isinstance(shapes, Iterable):
        raise TypeError(f"expected a shape, or a structure of shapes, got {shapes!r}")
    return isinstance(shapes, TensorShape) or all(dim is None or isinstance(dim, (int, np.integer)) for dim in shapes)


def flat_shapes(shapes: Any, like: Any) -> list:
    """Flattens a structure of shapes, which are lists themselves."""
    if isinstance(shapes, dict):
        return [shape for key in sorted(shapes) for shape in flat_shapes(shapes[key], None)]
    if isinstance(shapes, _native.Array):
        return [shapes.numpy().tolist()]
    if _is_shape(shapes) and not (
        isinstance(shapes, tuple) and len(shapes) == 0 and like is not None and nest.is_nested(like)
    ):
        return [shapes]
    return [shape for part in shapes for shape in flat_shapes(part, None)]


def typed_element(element: Any, signature: Any) -> Any:
    """Converts an element to the types of a signature; raises ValueError if it does not fit."""

    def one(spec: Any, leaf: Any) -> Any:
        if is_of_parts(spec):
            if not spec.is_compatible_with(leaf):
                raise InvalidArgumentError(f"the generator must yield {spec!r}, got {leaf!r}")
            return leaf
        dtype = getattr(spec, "dtype", spec)
        try:
            # Copied: a generator may yield the same array each time.
            made = _native.own_tensor(leaf, dtype)
        except TypeError as error:
            raise InvalidArgumentError(f"the generator must yield {spec!r}, got {leaf!r}: {error}") from None
        if isinstance(spec, TensorSpec) and not spec.shape.is_compatible_with(made.shape):
            raise InvalidArgumentError(f"the generator must yield shape {spec.shape}, got {made.shape}")
        return made

    if isinstance(signature, (tuple, list)):
        if not isinstance(element, (tuple, list)) or len(element) != len(signature):
            raise InvalidArgumentError(f"the generator must yield {signature!r}, got {element!r}")
        return tuple(typed_element(part, spec) for part, spec in zip(element, signature))
    if isinstance(signature, dict):
        if not isinstance(element, dict) or element.keys() != signature.keys():
            raise InvalidArgumentError(f"the generator must yield {signature!r}, got {element!r}")
        return _like(signature, {key: typed_element(element[key], spec) for key, spec in signature.items()})
    return one(signature, element)


def as_element(made: Any) -> Any:
    """The result of a mapped function as an element: a list is a tuple, and lists inside of it are tensors."""
    if isinstance(made, _native.Tensor):
        return made
    return boxed(tuple(map(_component, made)) if isinstance(made, list) else _component(made))


def _component(part: Any) -> Any:
    if isinstance(part, (list, TensorShape)):
        from ..tensor import convert_to_tensor

        return convert_to_tensor(part)
    if isinstance(part, dict):
        made: Any = type(part)
        return made((key, _component(value)) for key, value in part.items())
    if isinstance(part, tuple):
        parts = [_component(value) for value in part]
        return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
    if nest.is_custom(part):
        return nest.map_parts(_component, part)
    if not (part is None or isinstance(part, _VALUES) or any(hasattr(part, name) for name in _COMPOSITE)):
        raise TypeError(f"a mapped function must return an element made of tensors, got {part!r}")
    return part


#: What becomes a tensor, and attributes of tensors, arrays, datasets and structures of them.
_VALUES = (bool, int, float, complex, str, bytes)
_COMPOSITE = ("dtype", "shape", "element_spec", "_taut_parts", "__taut_tensor__", "__dataclass_fields__", "has_value")


def size_of(stage: str, parameter: str, value: Any, least: int | None = None) -> int:
    """An integer argument, which must not be below `least`. A float is an error."""
    if isinstance(value, (_native.Array, np.ndarray)) and value.ndim == 0:
        value = value.numpy() if isinstance(value, _native.Array) else value[()]
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"{stage}: {parameter} must be an integer, got {value!r}") from None
    if least is not None and size < least:
        raise InvalidArgumentError(f"{stage}: {parameter} must be >= {least}, got {size}")
    return size
