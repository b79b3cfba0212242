"""Nested structures: lists, tuples, named tuples, dicts, and objects with `__tf_flatten__` and `__tf_unflatten__`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _namespace, _native
from .indexed_slices import IndexedSlices


def is_nested(seq: Any) -> bool:
    """Whether it is a list, a tuple, a dict, or an object that says what its components are. A TensorShape is a leaf."""
    return isinstance(seq, (list, tuple, Mapping)) or is_custom(seq)


def is_custom(value: Any) -> bool:
    """Whether a value, such as a dataclass, has TensorFlow's methods that take it apart and make it again."""
    kind = type(value)
    return hasattr(kind, "__tf_flatten__") and hasattr(kind, "__tf_unflatten__")


def _parts(structure: Any) -> list:
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    if is_custom(structure):
        return list(structure.__tf_flatten__()[1])
    return list(structure)


def _like(structure: Any, parts: Sequence) -> Any:
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), parts))
        in_order = {key: by_key[key] for key in structure}
        if isinstance(structure, defaultdict):
            return type(structure)(structure.default_factory, in_order)
        made: Any = type(structure)
        return made(in_order)
    if is_custom(structure):
        return type(structure).__tf_unflatten__(structure.__tf_flatten__()[0], tuple(parts))
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def map_parts(func: Callable, structure: Any) -> Any:
    """Applies a function to the direct parts of a structure."""
    return _like(structure, [func(part) for part in _parts(structure)])


def _taken_apart(value: Any) -> tuple[Callable, Sequence] | None:
    """A ragged or sparse tensor, IndexedSlices or an ExtensionType as what makes one, and its parts; None for another leaf."""
    kind = type(value)
    if isinstance(value, IndexedSlices):
        return kind, (value.values, value.indices, value.dense_shape)
    if hasattr(kind, "from_nested_row_splits"):
        # The rows are checked.
        made = kind.from_nested_row_splits
        return lambda values, *splits: made(values, splits), (value.flat_values, *value.nested_row_splits)
    return (kind._taut_from_parts, value._taut_parts()) if hasattr(kind, "_taut_from_parts") else None


def _is_component(part: Any) -> bool:
    """Whether a part holds tensors. Plain values of an ExtensionType, and a shape that is not given, do not."""
    return isinstance(part, _native.Array) or is_nested(part) or _taken_apart(part) is not None


def _components(value: Any) -> list | None:
    taken = _taken_apart(value)
    return None if taken is None else [part for part in taken[1] if _is_component(part)]


def flatten(structure: Any, expand_composites: bool = False) -> list:
    """The leaves in order; dicts are ordered by key. With `expand_composites`, ragged tensors, sparse tensors, IndexedSlices
    and objects of ExtensionTypes give their components.
    """
    if is_nested(structure):
        parts = _parts(structure)
    elif not expand_composites or (found := _components(structure)) is None:
        return [structure]
    else:
        parts = found
    return [leaf for part in parts for leaf in flatten(part, expand_composites)]


def _pack(structure: Any, leaves: Any, expand_composites: bool) -> Any:
    if is_nested(structure):
        return _like(structure, [_pack(part, leaves, expand_composites) for part in _parts(structure)])
    taken = _taken_apart(structure) if expand_composites else None
    if taken is None:
        return next(leaves)
    make, parts = taken
    return make(*(_pack(part, leaves, True) if _is_component(part) else part for part in parts))


def pack_sequence_as(structure: Any, flat_sequence: Sequence, expand_composites: bool = False) -> Any:
    """Packs leaves into the structure of another value."""
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(f"the structure needs {count} leaves, got {len(flat_sequence)}")
    return _pack(structure, iter(flat_sequence), expand_composites)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError if two structures differ, TypeError if they differ in the types of their containers."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"structures must match, got {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        one, other = (_components(nest) if expand_composites else None for nest in (nest1, nest2))
        if (one is None) != (other is None) or (one is not None and type(nest1) is not type(nest2)):
            raise ValueError(f"structures must match, got {nest1!r} and {nest2!r}")
        if one is not None and other is not None:
            assert_same_structure(one, other, check_types, True)
        return
    if (
        check_types
        and type(nest1) is not type(nest2)
        and not (isinstance(nest1, Mapping) and isinstance(nest2, Mapping))
    ):
        raise TypeError(f"containers must have one type, got {type(nest1).__name__} and {type(nest2).__name__}")
    if isinstance(nest1, Mapping) and sorted(nest1) != sorted(nest2):
        raise ValueError(f"keys must match, got {sorted(nest1)} and {sorted(nest2)}")
    parts1, parts2 = _parts(nest1), _parts(nest2)
    if len(parts1) != len(parts2):
        raise ValueError(f"lengths must match, got {len(parts1)} and {len(parts2)}")
    for one, other in zip(parts1, parts2):
        assert_same_structure(one, other, check_types, expand_composites)


def map_structure(
    func: Callable, *structure: Any, check_types: bool = True, expand_composites: bool = False, **kwargs: Any
) -> Any:
    """Applies a function to corresponding leaves; returns a structure of the results."""
    if not structure:
        raise ValueError("map_structure needs at least one structure")
    if not is_nested(structure[0]) and len(structure) == 1 and not expand_composites:
        return func(structure[0], **kwargs)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    flat = [flatten(one, expand_composites) for one in structure]
    results = [func(*leaves, **kwargs) for leaves in zip(*flat)]
    return pack_sequence_as(structure[0], results, expand_composites)


__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
__getattr__, __dir__ = _namespace.plain(__name__)
