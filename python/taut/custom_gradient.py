"""Custom gradients and gradients by recomputation."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from . import _native, nest


def custom_gradient(f: Callable | None = None) -> Any:
    """Decorates a function that returns its result and a function from the result's gradient to the arguments'
    gradients.

    A tape keeps the tensors that the gradient function captures in its closure, and nothing else. If `f` reads
    trainable variables, the gradient function takes them as `variables=`, a list, and returns two values: the gradients
    of the arguments and a list of those of the variables.

    >>> import taut as tf
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     def grad(upstream):
    ...         return upstream * (1 - 1 / (1 + e))
    ...     return tf.math.log(1 + e), grad
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        flat = nest.flatten(args)
        where = [i for i, leaf in enumerate(flat) if _is_tensor(leaf)]
        template = {}

        def forward(*tensors: Any) -> tuple:
            leaves = list(flat)
            for i, tensor in zip(where, tensors):
                leaves[i] = tensor
            result, gradient = f(*nest.pack_sequence_as(args, leaves), **kwargs)
            template["result"] = result
            outputs = [_native.as_tensor(output) for output in nest.flatten(result)]
            saved, rebound = _captured(gradient)

            def backward(saved: list, upstream: list, variables: list) -> list:
                if not variables:
                    return _per_input(rebound(saved)(*upstream), len(where), "tensors", f)
                found = rebound(saved)(*upstream, variables=variables)
                if not isinstance(found, (list, tuple)) or len(found) != 2:
                    raise TypeError(
                        f"the gradient of {_name(f)}, which reads variables, must return two values: the gradients of its "
                        f"arguments, and a list of those of the variables; got {found!r}"
                    )
                of_inputs = _per_input(found[0], len(where), "tensors", f)
                return of_inputs + _per_input(found[1], len(variables), "variables", f)

            return outputs, saved, backward, _takes_variables(gradient)

        outputs = _native.custom_gradient(forward, [flat[i] for i in where])
        return nest.pack_sequence_as(template["result"], outputs)

    return decorated


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, _native.Array) or hasattr(leaf, "__array__") or isinstance(leaf, float)


def _name(f: Callable) -> str:
    return getattr(f, "__name__", "the function")


def _takes_variables(gradient: Callable) -> bool:
    code = getattr(gradient, "__code__", None)
    if code is None:
        return "variables" in inspect.signature(gradient).parameters
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return "variables" in names or bool(code.co_flags & inspect.CO_VARKEYWORDS)


def _per_input(found: Any, count: int, what: str, f: Callable) -> list:
    flat = nest.flatten(found)
    if len(flat) != count:
        raise ValueError(f"the gradient of {_name(f)} must return {count} gradients of {what}, got {len(flat)}")
    return flat


def _captured(gradient: Callable) -> tuple[list, Callable]:
    """The tensors in a gradient function's closure, and a function that rebinds it to other tensors."""
    cells = getattr(gradient, "__closure__", None)
    if not cells or not isinstance(gradient, types.FunctionType):
        return [], lambda saved: gradient
    contents = []
    for cell in cells:
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # an empty cell
            contents.append(None)
    tensors: list = []
    shapes: list[tuple[int, int] | None] = []
    for content in contents:
        if isinstance(content, (_native.Tensor, list, tuple, dict)):
            leaves = nest.flatten(content)
            if leaves and all(isinstance(leaf, _native.Tensor) for leaf in leaves):
                shapes.append((len(tensors), len(leaves)))
                tensors.extend(leaves)
                continue
        shapes.append(None)
    if not tensors:
        return [], lambda saved: gradient

    def rebound(saved: list) -> Callable:
        fresh = []
        for cell, content, place in zip(cells, contents, shapes):
            if place is None:
                fresh.append(cell)
            else:
                start, count = place
                fresh.append(types.CellType(nest.pack_sequence_as(content, saved[start : start + count])))
        made = types.FunctionType(
            gradient.__code__, gradient.__globals__, gradient.__name__, gradient.__defaults__, tuple(fresh)
        )
        made.__kwdefaults__ = gradient.__kwdefaults__
        return made

    return tensors, rebound


def recompute_grad(f: Callable) -> Callable:
    """Decorates a function whose gradient recomputes it instead of saving intermediate values. Random values are the
    same.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return _native.recompute(lambda given: f(*given[0], **given[1]), (args, kwargs))

    return decorated


def grad_pass_through(f: Callable) -> Callable:
    """Decorates a function whose gradient is that of the identity (straight-through estimator)."""

    @functools.wraps(f)
    def decorated(x: Any) -> Any:
        @custom_gradient
        def through(x: Any) -> tuple:
            return f(x), lambda upstream: upstream

        return through(x)

    return decorated
