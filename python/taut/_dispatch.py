"""Functions for arguments that are not tensors: ragged and sparse tensors, and classes of a program.

A function of the package converts its arguments to tensors. Only when it raises an error are its arguments asked what they make
of the call, so that calls with tensors pay nothing: the first argument whose class has a method
`__taut_dispatch__(function, args, kwargs, error)` answers it. Ops of the op table do the same in the extension module.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from . import _native


def names(text: str) -> frozenset[str]:
    """Names that are separated by white space."""
    return frozenset(text.split())


#: Functions of one tensor, element by element: ops of the op table, and functions of `taut._ops` as `module.function`.
UNARY = names(
    """abs acos acosh asin asinh atan atanh bitcast bitwise_not cast ceil check_numerics clip_by_value conj cos cosh digamma elu
    erf erfc erfinv exp expm1 floor full_like gelu identity imag is_finite is_inf is_nan leaky_relu lgamma log log1p logical_not
    neg ones_like real reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus sqrt square stop_gradient tan
    tanh trunc zeros_like
    casting.cast casting.saturate_cast clipping.clip_by_value elementwise.angle elementwise.conj elementwise.imag
    elementwise.log_sigmoid elementwise.real elementwise.reciprocal_no_nan elementwise.softsign nn.swish nn.dropout
    special.bessel_i0 special.bessel_i0e special.bessel_i1 special.bessel_i1e special.bessel_j0 special.bessel_j1
    special.bessel_k0 special.bessel_k0e special.bessel_k1 special.bessel_k1e special.bessel_y0 special.bessel_y1 special.dawsn
    special.erfcinv special.expint special.fresnel_cos special.fresnel_sin special.ndtri special.spence"""
)
#: Functions of two tensors, element by element.
BINARY = names(
    """add atan2 bitwise_and bitwise_or bitwise_xor div div_no_nan equal floor_div greater greater_equal left_shift less
    less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod mul mul_no_nan not_equal pow right_shift
    squared_difference sub truncate_mod
    elementwise.complex elementwise.multiply_no_nan elementwise.truncatediv elementwise.xdivy elementwise.xlog1py
    elementwise.xlogy losses.sigmoid_cross_entropy_with_logits special.igamma special.igammac special.nextafter
    special.polygamma special.zeta"""
)
#: Comparisons of two tensors that raise an error.
ASSERTS = names(
    """checks.assert_equal checks.assert_greater checks.assert_greater_equal checks.assert_less checks.assert_less_equal
    checks.assert_near checks.assert_none_equal"""
)


def key(function: Any) -> str:
    """The name of a function in the tables: that of an op, or `module.function` of `taut._ops`."""
    if isinstance(function, _native.Op):
        return function.op
    own = inspect.unwrap(function)
    return f"{own.__module__}.{own.__name__}".removeprefix("taut.").removeprefix("_ops.")


def arguments(function: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The values of all parameters by name, in order."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "name"}


def dispatching(values: Iterable) -> Any:
    """The first of several arguments, also in lists and tuples, that answers calls; None if there is none."""
    for value in values:
        found = dispatching(value) if isinstance(value, (list, tuple)) else value
        if found is not None and hasattr(type(found), "__taut_dispatch__"):
            return found
    return None


def answered(function: Any, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """What the arguments of a function make of a call that raised an error; raises it if none answers."""
    found = dispatching((*args, *kwargs.values()))
    if found is None:
        raise error
    return found.__taut_dispatch__(function, args, kwargs, error)


# What programs register: `tf.experimental.dispatch_for_api` and its relatives.


class _Target(typing.NamedTuple):
    """A function of a program, the functions that it replaces, and the types of the arguments for which it does."""

    function: Callable
    apis: frozenset
    types: tuple
    is_elementwise: bool


_targets: list[_Target] = []


def user_dispatch(self: Any, function: Any, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """What a function that a program has registered makes of a call; raises the call's own error if there is none."""
    found = registered(function, args, kwargs)
    if found is NotImplemented:
        raise error
    return found


def registered(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of the function that a program has registered for a call; NotImplemented if there is none."""
    name = key(function)
    for target in reversed(_targets):
        if name not in target.apis:
            continue
        given = arguments(function, args, kwargs)
        if target.is_elementwise:
            count = len(target.types)
            first = list(given)[:count]
            if all(_matches(given[one], kind) for one, kind in zip(first, target.types)):
                return target.function(_rest_bound(function, given, first), *(given[one] for one in first))
        elif any(_all_match(given, signature) for signature in target.types):
            return target.function(*args, **kwargs)
    return NotImplemented


def _rest_bound(function: Any, given: dict[str, Any], first: list[str]) -> Callable:
    """A function of the first arguments alone."""
    rest = {name: value for name, value in given.items() if name not in first}
    if not rest:
        return function
    return functools.wraps(inspect.unwrap(function), assigned=("__name__", "__doc__"), updated=())(
        lambda *values: function(*values, **rest)
    )


def _all_match(given: dict[str, Any], signature: dict[Any, Any]) -> bool:
    names = list(given)
    pairs = [(names[part] if isinstance(part, int) else part, kind) for part, kind in signature.items()]
    return all(_matches(given.get(part), kind) for part, kind in pairs)


def _matches(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type: a class, a union, a list, a tuple or a sequence."""
    if kind is Any or kind is inspect.Parameter.empty:
        return True
    if kind is None:
        return value is None
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or isinstance(kind, types.UnionType):
        return any(_matches(value, part) for part in parts)
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return isinstance(value, tuple) and all(_matches(one, parts[0]) for one in value)
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_matches, value, parts))
    if origin in (list, collections.abc.Sequence):
        kinds = (list,) if origin is list else (list, tuple)
        return isinstance(value, kinds) and all(_matches(one, parts[0]) for one in value)
    return isinstance(value, kind)


def _classes(kind: Any) -> set:
    """The classes that an annotation names, those of tensors and Python's own aside."""
    parts = typing.get_args(kind)
    if parts:
        return {one for part in parts for one in _classes(part)}
    own = isinstance(kind, type) and not issubclass(kind, _native.Array) and kind.__module__ != "builtins"
    return {kind} if own else set()


def _register(target: _Target, kinds: Iterable) -> None:
    classes = {one for kind in kinds for one in _classes(kind)}
    if not classes:
        raise ValueError(
            f"{target.function.__name__}: expected the annotation of a class that is not a tensor\n  help: annotate a "
            "parameter with the class, or pass {parameter: class}"
        )
    for one in classes:
        if not hasattr(one, "__taut_dispatch__"):
            setattr(one, "__taut_dispatch__", user_dispatch)
    _targets.append(target)


def dispatch_for_api(api: Any, *signatures: dict) -> Callable:
    """A decorator: calls of `api` with arguments of these types call the decorated function instead.

    A signature maps parameters, by name or position, to types: classes, unions and lists of them. Without one, the annotations
    of the decorated function are used.

    >>> import taut as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> @tf.experimental.dispatch_for_api(tf.reduce_sum)
    ... def masked_sum(input_tensor: Masked, axis=None, keepdims=False, name=None):
    ...     return tf.reduce_sum(tf.where(input_tensor.mask, input_tensor.values, 0), axis, keepdims)
    >>> int(tf.reduce_sum(Masked([1, 2, 4], [True, False, True])))
    5
    """
    if not isinstance(api, _native.Op) and not hasattr(api, "__wrapped__"):
        raise ValueError(f"api must be a function of tensors of this package, got {api!r}")
    parameters = [name for name in inspect.signature(api).parameters if name != "name"]

    def decorate(target: Callable) -> Callable:
        own = [name for name in inspect.signature(target).parameters if name != "name"]
        if own[: len(parameters)] != parameters[: len(own)]:
            raise ValueError(
                f"{target.__name__}: parameters must be those of {api.__name__} ({', '.join(parameters)}), got {', '.join(own)}"
            )
        hints = typing.get_type_hints(target)
        chosen = signatures or ({name: kind for name, kind in hints.items() if name in own},)
        made = _Target(target, frozenset((key(api),)), tuple(chosen), False)
        _register(made, (kind for signature in chosen for kind in signature.values()))
        return target

    return decorate


def _elementwise(apis: frozenset, kinds: tuple) -> Callable:
    def decorate(handler: Callable) -> Callable:
        _register(_Target(handler, apis, kinds, True), kinds)
        return handler

    return decorate


def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable:
    """A decorator: functions of one tensor, element by element, call `handler(function, x)` for arguments of a type."""
    return _elementwise(UNARY, (x_type,))


def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable:
    """A decorator: functions of two tensors, element by element, call `handler(function, x, y)` for these types."""
    return _elementwise(BINARY, (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable:
    """A decorator: assertions that compare two tensors call `handler(function, x, y)` for arguments of these types."""
    return _elementwise(ASSERTS, (x_type, y_type))


def unregister_dispatch_for(dispatch_target: Callable) -> None:
    """Undoes what one of the decorators has registered for a function.

    Raises:
        ValueError: It is not registered.
    """
    kept = [target for target in _targets if target.function is not dispatch_target]
    if len(kept) == len(_targets):
        raise ValueError(f"Function {dispatch_target} was not registered using a `@dispatch_for` decorator.")
    _targets[:] = kept
