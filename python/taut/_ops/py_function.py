"""Host callbacks: Python functions called with tensor values, also inside traced functions."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, dtypes
from .._common import refuse
from .._native import as_tensor
from .._present_names import with_live_names
from ..custom_gradient import custom_gradient
from ..errors import DTypeError, DynamicShapeError, raise_for
from ..shape import TensorShape
from ..spec import TensorSpec

if TYPE_CHECKING:
    pass


def numpy_function(
    func: Callable | None = None,
    inp: Sequence | None = None,
    Tout: Any = None,  # noqa: N803
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a function of NumPy arrays with the values of tensors; returns tensors of the types `Tout`, without
    gradient.

    In a traced function it is called whenever the program runs. Shapes must be known before that, so unless `Tout` is
    made of `tf.TensorSpec` with all sizes, the function runs op by op. If it is not `stateful`, it is called only if its
    results are used.
    """
    if func is None and inp is None:
        return lambda func: _decorated(func, numpy_function, Tout=Tout, stateful=stateful)
    from ..function import is_running_op_by_op

    inputs = [as_tensor(one) for one in inp or ()]
    made = _host_call("numpy_function", func, inputs, _array, Tout, stateful)
    if not isinstance(made, list) or _native.is_tracing() or is_running_op_by_op() or len(made) > 1:
        return made
    # Outside of traced functions, a list of one result is that result, as in TensorFlow, and an empty one is None.
    return made[0] if made else None


def _array(value: Any) -> Any:
    """A tensor as an argument of a function of arrays; a scalar string is `bytes`, as in functions of TensorFlow."""
    array = np.asarray(value)
    return array[()] if array.dtype == object else array


def py_function(
    func: Callable | None = None,
    inp: Sequence | None = None,
    Tout: Any = None,  # noqa: N803
    name: str | None = None,
) -> Any:
    """Calls a Python function with tensors; returns tensors of the types `Tout`.

    Gradients flow through it. In a traced function it is called whenever the program runs, if `Tout` is made of
    `tf.TensorSpec` with all sizes and its gradient is not needed; otherwise the function runs op by op.
    """
    if func is None and inp is None:
        return lambda func: _decorated(func, py_function, Tout=Tout)
    return _host_call("py_function", func, [as_tensor(one) for one in inp or ()], as_tensor, Tout, True)


def _decorated(func: Callable, call: Callable, **options: Any) -> Callable:
    """A function that is called with the values of its arguments: without a function, the two above are decorators."""

    @functools.wraps(func)
    def decorated(*inputs: Any) -> Any:
        return call(func, inputs, **options)

    return decorated


def _host_call(name: str, func: Any, inputs: list, form: Callable, types: Any, stateful: bool) -> Any:
    if not callable(func):
        refuse(name, f"func must be callable, got {func!r}", TypeError)
    func = with_live_names(func)
    is_list = isinstance(types, (list, tuple))
    wanted = list(types) if is_list else [] if types is None else [types]

    def call(values: list) -> list:
        made = _called(name, func, [form(value) for value in values])
        if not wanted:
            return []
        if not is_list:
            return [made]
        if len(wanted) == 1 and not isinstance(made, (list, tuple)):
            return [made]
        if not isinstance(made, (list, tuple)) or len(made) != len(wanted):
            refuse(name, f"func must return {len(wanted)} values, one per element of Tout, got {made!r}")
        return list(made)

    if any(one.is_symbolic for one in inputs) or _native.is_tracing():
        traced = _without_traced_gradient(_traced_call) if name == "py_function" else _traced_call
        made = traced(name, call, inputs, wanted, stateful)
    else:
        made = [_check_result(name, one, spec) for one, spec in zip(call(inputs), wanted)]
    return made if is_list or not wanted else made[0]


def _called(name: str, func: Callable, values: list) -> Any:
    """Calls a function of the user. Errors that have a class in TensorFlow are of that class, too."""
    try:
        return func(*values)
    except Exception as error:
        raise_for(name, error)


def _without_traced_gradient(traced_call: Callable) -> Callable:
    """A call whose gradient, if a trace asks for it, makes the function run op by op, where a tape records what `func` does."""

    def call(name: str, function: Callable, inputs: list, wanted: list, stateful: bool) -> list:
        @custom_gradient
        def differentiable(*tensors: Any) -> Any:
            def gradient(*upstream: Any) -> Any:
                text = "the gradient is known only when func has run"
                refuse(
                    name,
                    f"{text}\n  help: use tf.custom_gradient for a gradient in traced functions",
                    DynamicShapeError,
                )

            return traced_call(name, function, list(tensors), wanted, stateful), gradient

        floats = any(one.dtype.is_floating or one.dtype.is_complex for one in inputs)
        return differentiable(*inputs) if floats and wanted else traced_call(name, function, inputs, wanted, stateful)

    return call


def _check_result(name: str, made: Any, spec: Any) -> _native.Tensor:
    if not isinstance(spec, TensorSpec):
        return _converted(name, made, dtypes.as_dtype(spec))
    made = _converted(name, made, spec.dtype)
    if not spec.shape.is_compatible_with(made.shape):
        refuse(name, f"func must return the shape of Tout, {spec.shape}, got {made.shape}")
    return made


def _converted(name: str, made: Any, dtype: _native.DType) -> _native.Tensor:
    """A result as a tensor of the type of `Tout`. Floats do not become integers in silence, except in arrays that `py_function`
    returns, as in TensorFlow.
    """
    is_array = isinstance(made, (np.ndarray, np.generic))
    wanted = f"func must return the type of Tout, {dtype.name}"
    try:
        given = dtypes.as_dtype(made.dtype) if is_array or isinstance(made, _native.Array) else dtype
        is_lost = _loses(given, dtype) and not (is_array and name == "py_function")
        tensor = None if is_lost else as_tensor(made, dtype)
    except (TypeError, ValueError) as error:
        refuse(name, f"{wanted}, got {made!r}: {error}", DTypeError)
    if tensor is None:
        refuse(name, f"{wanted}, got {given.name}", DTypeError)
    if given.is_integer and dtype.is_integer and not np.array_equal(np.asarray(tensor), np.asarray(made)):
        refuse(name, f"{wanted}, got {made!r}, which exceeds its range", DTypeError)
    return tensor


def _loses(given: _native.DType, wanted: _native.DType) -> bool:
    """Whether complex numbers become floats, floats integers, or integers truth values."""
    kinds = [3 if one.is_complex else 2 if one.is_floating else 1 if one.is_integer else 0 for one in (given, wanted)]
    return kinds[0] > kinds[1]


class UnknownResultError(DynamicShapeError):
    """The shape of the result of a Python function is not known in a trace."""


class _Trial(threading.local):
    shape: list[int] | None = None
    made: list | None = None


_trial = _Trial()


@contextlib.contextmanager
def with_trial_shape(shape: list[int]) -> Iterator[None]:
    """Gives results whose shapes are not known a shape, in traces that only ask for specs."""
    before = _trial.shape, _trial.made
    _trial.shape, _trial.made = shape, []
    try:
        yield
    finally:
        _trial.shape, _trial.made = before


def is_trial() -> bool:
    """Whether a function is traced only for the specs of its results."""
    return _trial.shape is not None


def trial_shape(tensor: Any) -> Any:
    """What is known of the shape of a result that was given a shape for a trial; None for other tensors."""
    return next((shape for one, shape in _trial.made or () if one is tensor), None)


def note_shape(tensor: Any, shape: Any) -> bool:
    """Notes a shape that a program states for a tensor, if that was given one for a trial."""
    for number, (one, known) in enumerate(_trial.made or ()):
        if one is tensor:
            assert _trial.made is not None
            _trial.made[number] = (one, known.merge_with(TensorShape(shape)))
            return True
    return False


def _has_all_sizes(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()


def _dtype_of(spec: Any) -> Any:
    return spec.dtype if isinstance(spec, TensorSpec) else dtypes.as_dtype(spec)


def _of_trial(wanted: list) -> list:
    """Results for a trace that only asks for specs."""
    made = []
    for spec in wanted:
        shape: Any = spec.shape if _has_all_sizes(spec) else _trial.shape
        made.append(_native.host_callback("numpy_function", list, [], [(_dtype_of(spec), list(shape))], True)[0])
        if not _has_all_sizes(spec) and _trial.made is not None:
            _trial.made.append((made[-1], TensorShape(getattr(spec, "shape", None))))
    return made


def _traced_call(name: str, call: Callable, inputs: list, wanted: list, stateful: bool) -> list:
    if _trial.shape is not None:
        return _of_trial(wanted)
    for spec in wanted:
        if not _has_all_sizes(spec):
            text = f"the shape of the result is known only when func has run: Tout is {spec!r}"
            refuse(name, f"{text}\n  help: give a tf.TensorSpec with all sizes", UnknownResultError)

    def call_for_bytes(values: list) -> list[bytes]:
        made = call(values)
        return [np.asarray(_check_result(name, one, spec)).tobytes() for one, spec in zip(made, wanted)]

    if not wanted:
        _native.host_callback(name, call, inputs)
        return []
    return _native.host_callback(
        name, call_for_bytes, inputs, [(spec.dtype, list(spec.shape)) for spec in wanted], stateful
    )
