"""Classes of values that are made of tensors: `tf.experimental.ExtensionType`."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from . import _native, _raw_ops as raw
from .ragged import stack
from .ragged_tensor import RaggedTensor, RaggedTensorSpec
from .shape import TensorShape
from .spec import TensorSpec
from .type_spec import TypeSpec, is_of_parts

_PLAIN = (int, float, str, bytes, bool, type(None))
# Of a class: what the names in its annotations mean.
_NAMES = "_taut_annotation_names"
_RESERVED = frozenset(("self", "Spec"))


class ImmutableDict(dict):
    """The value of a field that is a mapping."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("'ImmutableDict' object does not support item assignment")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))

    def __repr__(self) -> str:
        return f"ImmutableDict({super().__repr__()})"


def _field_names(cls: type) -> tuple[str, ...]:
    """The annotated attributes, those of base classes first."""
    own = [base for base in reversed(cls.__mro__) if isinstance(base, _Meta)][1:]
    return tuple(dict.fromkeys(name for base in own for name in inspect.get_annotations(base)))


class ExtensionTypeSpec(TypeSpec):
    """The specification of an extension type: those of its fields."""

    _value_type: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = _field_names(self._value_type)
        if len(args) > len(names) or not set(kwargs) <= set(names[len(args) :]):
            raise TypeError(f"{type(self).__qualname__}: expected fields {', '.join(names)}, got {args} and {kwargs}")
        given = {**dict(zip(names, args)), **kwargs}
        if missing := [name for name in names if name not in given]:
            raise TypeError(f"{type(self).__qualname__}: expected the fields {', '.join(missing)}")
        self.__dict__.update({name: _frozen(given[name]) for name in names})

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Any:
        made = cls.__new__(cls)
        made.__dict__.update(parts)
        return made

    def _with_tensors(self, change: Callable[[Any], Any]) -> Any:
        """The specification with those of its tensors, and of the composites among its fields, changed."""
        return self._of_parts({name: _with_specs(part, change) for name, part in self.__dict__.items()})

    @property
    def value_type(self) -> type:
        """The class of the values."""
        return self._value_type

    def _taut_part_specs(self) -> list:
        """The specs of the tensors that a traced function has in place of an object, in their order."""
        return _part_specs(self._serialize())

    def _serialize(self) -> tuple:
        return tuple(self.__dict__[name] for name in _field_names(self._value_type))

    @classmethod
    def from_value(cls, value: Any) -> Any:
        """The specification of a value."""
        return value._type_spec

    def __repr__(self) -> str:
        names = _field_names(self._value_type)
        text = ", ".join(f"{name}={part!r}" for name, part in zip(names, self._serialize()))
        return f"{type(self).__qualname__}({text})"


def _with_specs(value: Any, change: Callable[[Any], Any]) -> Any:
    """A field with the specs in it changed."""
    if isinstance(value, TypeSpec):
        return change(value)
    if isinstance(value, dict):
        return type(value)((key, _with_specs(part, change)) for key, part in value.items())
    return tuple(_with_specs(part, change) for part in value) if isinstance(value, tuple) else value


def _part_specs(value: Any) -> list:
    """The specs of tensors among fields."""
    if isinstance(value, TensorSpec):
        return [value]
    if is_of_parts(value):
        return value._taut_part_specs()
    if isinstance(value, (dict, tuple)):
        parts = value.values() if isinstance(value, dict) else value
        return [spec for part in parts for spec in _part_specs(part)]
    return []


def _names_in_strings(annotations: dict[str, Any], frame: types.FrameType) -> dict[str, Any]:
    """What the names in annotations that are strings mean where a class is defined, its own name aside."""
    texts = [text for text in annotations.values() if isinstance(text, str)]
    names = {name for text in texts for name in compile(text, "<annotation>", "eval").co_names}
    known = {**frame.f_globals, **frame.f_locals} if names else {}
    return {name: known[name] for name in names if name in known}


class _Meta(type):
    """Makes the specification of a class, and converts the fields of new objects."""

    def __init__(cls, name: str, bases: tuple, namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        for field in _field_names(cls):
            if field in _RESERVED or field.startswith("_taut"):
                raise ValueError(f"{name}: {field!r} must not be the name of a field")
        setattr(cls, _NAMES, _names_in_strings(namespace.get("__annotations__", {}), sys._getframe(1)))
        own_spec = vars(namespace["Spec"]) if "Spec" in namespace else {}
        members = {key: value for key, value in own_spec.items() if key not in ("__dict__", "__weakref__")}
        members.update(_value_type=cls, __qualname__=f"{cls.__qualname__}.Spec", __module__=cls.__module__)
        cls.Spec = type("Spec", (ExtensionTypeSpec,), members)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is ExtensionType:
            raise AssertionError(
                "Cannot create an instance of ExtensionType because ExtensionType is an abstract base class."
            )
        made: Any = object.__new__(cls)  # type: ignore[arg-type]
        made.__init__(*args, **kwargs)
        return _finished(made)


class ExtensionType(metaclass=_Meta):
    """Base class of classes whose annotated attributes are fields: tensors, numbers, strings, types, shapes, other objects of
    such classes, and tuples and mappings of these.

    Fields are converted to their types and cannot be assigned. Traced functions take such objects as arguments and return them:
    tensors are arguments, other fields are part of the signature.

    >>> import taut as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> Masked([1, 2], [True, False]).values.shape
    TensorShape([2])
    """

    Spec: Any
    _taut_traced = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            bound = _signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def __validate__(self) -> None:
        """Checks the fields of a new object: a subclass raises an error for values that do not fit."""

    def __setattr__(self, name: str, value: Any) -> None:
        if "_taut_done" in self.__dict__:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        if name not in _field_names(type(self)):
            raise AttributeError(f"Cannot set attribute `{name}`, which is no field of {type(self).__name__}.")
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")

    def _fields(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in _field_names(type(self))}

    def _taut_parts(self) -> tuple:
        return tuple(self._fields().values())

    @classmethod
    def _taut_from_parts(cls, *parts: Any) -> Any:
        made = cls.__new__(cls)
        made.__dict__.update({name: _plain(part, _types(cls)[name]) for name, part in zip(_field_names(cls), parts)})
        return _finished(made, validate=False)

    @property
    def _type_spec(self) -> Any:
        return self.Spec._of_parts({name: _spec_of(value) for name, value in self._fields().items()})

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return False
        return _equal(self._taut_parts(), other._taut_parts())

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return raw.logical_not(equal) if isinstance(equal, _native.Tensor) else not equal

    def __hash__(self) -> int:
        return hash((type(self), self._taut_parts()))

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({text})"


class BatchableExtensionType(ExtensionType):
    """Base class of extension types whose objects can be batches of objects: datasets and `tf.map_fn` take their rows, and
    `batch` stacks them.

    The row of a tensor is its element along the first axis, the row of a shape the shape without its first size; other fields
    are those of all rows.

    >>> import taut as tf
    >>> class Point(tf.experimental.BatchableExtensionType):
    ...     x: tf.Tensor
    ...     y: tf.Tensor
    >>> [float(p.x) for p in tf.data.Dataset.from_tensor_slices(Point([1.0, 2.0], [3.0, 4.0]))]
    [1.0, 2.0]
    """

    def _taut_rows(self) -> int:
        """The number of rows."""
        sizes = [size for value in self._fields().values() if (size := _row_count(value)) is not None]
        if not sizes or len(set(sizes)) > 1:
            raise ValueError(
                f"{type(self).__name__}: the tensors of a batch must have equal numbers of rows, got {sizes}"
            )
        return sizes[0]

    def _taut_row(self, number: int) -> Any:
        """One row."""
        return self._taut_from_parts(*(_row(value, number) for value in self._fields().values()))

    @classmethod
    def _taut_stacked(cls, parts: list) -> Any:
        """A batch of objects."""
        return cls._taut_from_parts(
            *(_stacked(list(column)) for column in zip(*(part._taut_parts() for part in parts)))
        )


def _row_count(value: Any) -> int | None:
    if isinstance(value, BatchableExtensionType):
        return value._taut_rows()
    if isinstance(value, dict):
        return next((size for part in value.values() if (size := _row_count(part)) is not None), None)
    if isinstance(value, tuple):
        return next((size for part in value if (size := _row_count(part)) is not None), None)
    return len(value) if isinstance(value, (_native.Array, RaggedTensor)) else None


def _row(value: Any, number: int) -> Any:
    if isinstance(value, (_native.Array, RaggedTensor)):
        return value[number]
    if isinstance(value, BatchableExtensionType):
        return value._taut_row(number)
    if isinstance(value, TensorShape):
        return value[1:]
    if isinstance(value, dict):
        return ImmutableDict({key: _row(part, number) for key, part in value.items()})
    return tuple(_row(part, number) for part in value) if isinstance(value, tuple) else value


def _stacked(column: list) -> Any:
    first = column[0]
    if isinstance(first, BatchableExtensionType):
        return first._taut_stacked(column)
    if isinstance(first, RaggedTensor):
        return stack(column)
    if isinstance(first, _native.Array):
        return raw.stack(column, 0)
    if isinstance(first, TensorShape):
        return TensorShape([len(column), *first])
    if isinstance(first, dict):
        return ImmutableDict({key: _stacked([part[key] for part in column]) for key in first})
    if isinstance(first, tuple):
        return tuple(_stacked(list(parts)) for parts in zip(*column))
    if any(other != first for other in column):
        raise ValueError(f"fields that are not tensors must be equal in a batch, got {column}")
    return first


@functools.cache
def _types(cls: type) -> dict[str, Any]:
    """The annotations, with the names in strings resolved."""
    names = {base.__name__: base for base in cls.__mro__}
    for base in cls.__mro__:
        names.update(base.__dict__.get(_NAMES, {}))
    return typing.get_type_hints(cls, localns=names)


@functools.cache
def _signature(cls: type) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = _field_names(cls)
    # Parameters with a default may stand before others only by name.
    params: list[inspect.Parameter] = []
    by_name = False
    for name in names:
        default = getattr(cls, name, inspect.Parameter.empty)
        by_name = by_name or (default is inspect.Parameter.empty and any(p.default is not p.empty for p in params))
        params.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY if by_name else kind, default=default))
    return inspect.Signature(params)


def _finished(made: Any, validate: bool = True) -> Any:
    """The object with converted fields, which can no longer be assigned."""
    cls: Any = type(made)
    for name in _field_names(cls):
        if name not in made.__dict__:
            if not hasattr(cls, name):
                raise ValueError(f"{cls.__name__}: the constructor must set the field {name!r}")
            made.__dict__[name] = getattr(cls, name)
        made.__dict__[name] = _converted(made.__dict__[name], _types(cls)[name], name)
    if validate:
        made.__validate__()
    made.__dict__["_taut_done"] = True
    return made


def has_plain_fields(value: Any) -> bool:
    """Whether an object has fields, or has objects with fields, that are no tensors: numbers, strings, types, shapes."""
    if isinstance(value, ExtensionType):
        return any(map(_is_plain, value._taut_parts()))
    return False


def _is_plain(field: Any) -> bool:
    if isinstance(field, (dict, tuple)):
        return any(map(_is_plain, field.values() if isinstance(field, dict) else field))
    return has_plain_fields(field) or isinstance(field, _PLAIN)


def _plain(value: Any, kind: Any) -> Any:
    """A field of a Python type that a function has returned as a tensor."""
    if kind is str and isinstance(value, _native.StringTensor):
        return value.numpy().decode()
    if kind in (bool, int, float) and isinstance(value, _native.Tensor) and not value.is_symbolic:
        return kind(value.numpy())
    return value


def _converted(value: Any, kind: Any, name: str) -> Any:
    """A value as the type of a field."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is _native.Tensor:
        if isinstance(value, _native.Tensor):
            return value
        if value is None or isinstance(value, (ExtensionType, RaggedTensor)):
            raise TypeError(f"{name}: expected a Tensor, got {type(value).__name__!r}")
        try:
            return _native.as_tensor(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}: expected a Tensor, got {type(value).__name__!r}: {error}") from None
    if kind is TensorShape:
        return TensorShape(value)
    if kind is _native.DType:
        from .dtypes import as_dtype

        return as_dtype(value)
    if origin in (typing.Union, types.UnionType):
        for one in args:
            try:
                return _converted(value, one, name)
            except TypeError:
                continue
        raise TypeError(f"{name}: expected one of {args}, got {type(value).__name__!r}")
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{name}: expected a tuple, got {type(value).__name__!r}")
        kinds = [args[0]] * len(value) if len(args) == 2 and args[1] is ... else list(args)
        if len(kinds) != len(value):
            raise TypeError(f"{name}: expected a tuple with {len(kinds)} elements, got {len(value)}")
        return tuple(_converted(part, one, f"{name}[{i}]") for i, (part, one) in enumerate(zip(value, kinds)))
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, collections.abc.Mapping):
            raise TypeError(f"{name}: expected a mapping, got {type(value).__name__!r}")
        key_kind, part_kind = args
        return ImmutableDict(
            {
                _converted(key, key_kind, f"{name}.keys()"): _converted(part, part_kind, f"{name}[{key!r}]")
                for key, part in value.items()
            }
        )
    if isinstance(kind, type) and (isinstance(value, kind) and not (kind in (int, float) and isinstance(value, bool))):
        return value
    if kind is float and type(value) is int:
        return float(value)
    if kind is None and value is None:
        return None
    shown = kind.__name__ if isinstance(kind, type) else kind
    raise TypeError(f"{name}: expected {shown}, got {type(value).__name__!r}")


def _spec_of(value: Any) -> Any:
    if isinstance(value, _native.Array):
        return TensorSpec.from_tensor(value)
    if isinstance(value, ExtensionType):
        return value._type_spec
    if isinstance(value, RaggedTensor):
        return RaggedTensorSpec.from_value(value)
    if isinstance(value, dict):
        return ImmutableDict({key: _spec_of(part) for key, part in value.items()})
    return tuple(_spec_of(part) for part in value) if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, collections.abc.Mapping):
        return ImmutableDict({key: _frozen(part) for key, part in value.items()})
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def _equal(one: Any, other: Any) -> Any:
    """Whether fields are equal: True or False, or a tensor if that depends on the values of tensors."""
    if isinstance(one, _native.Array) and isinstance(other, _native.Array):
        if one.dtype != other.dtype or tuple(one.shape) != tuple(other.shape):
            return False
        return raw.all(raw.equal(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and _all([_equal(one[key], other[key]) for key in one])
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and _all([_equal(*pair) for pair in zip(one, other)])
    return one == other


def _all(results: list) -> Any:
    if any(result is False for result in results):
        return False
    traced = [result for result in results if isinstance(result, _native.Tensor)]
    return functools.reduce(raw.logical_and, traced) if traced else True


def as_dict(value: Any) -> dict[str, Any]:
    """The fields of an object of an extension type, by name."""
    return value._fields()
