"""Functions of the user in stages of datasets. Their code is called once, when the stage is made, as in TensorFlow."""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .. import _native, dtypes, nest
from .._ops.py_function import UnknownResultError, is_trial, trial_shape, with_trial_shape
from .._present_names import with_present_names
from ..errors import DynamicShapeError, OperatorNotAllowedInGraphError, OpError
from ..extension_type import has_plain_fields
from ..function import Function, is_of_package
from ..open_sizes import Traces
from ..replay import parts_of
from ..spec import TensorSpec
from ..type_spec import DatasetSpec, NoneTensorSpec, TypeSpec
from . import _specs

# Sizes that stand for an unknown one: what differs in the results for both is unknown, too. They have many divisors,
# for functions that reshape.
_TRIAL_SIZES = (60, 120)
# The same for tensors of which not even the rank is known.
_TRIAL_SHAPES: tuple[list[int], ...] = ([], [60])


class StageFunction:
    """A function of the elements of a dataset.

    It is traced when the stage is made, with tensors without values, and the trace serves all elements, of all sizes. Its
    errors are raised there, too. If the specs of the elements are not known, or if the function needs values (of strings,
    or for a shape), its code is called for the elements; the names in it keep the objects that they had when the stage
    was made.
    """

    def __init__(
        self, stage: str, function: Callable, arguments: tuple | None, result: Callable = lambda made: made
    ) -> None:
        if not callable(function):
            raise ValueError(f"{stage}: expected a function, got {function!r}")
        self._stage, self._result = stage, result
        self._body = converted(with_present_names(function))
        flat = [] if arguments is None else _leaves(arguments)
        self._traces = Traces(stage, [leaf for leaf in flat if isinstance(leaf, TensorSpec)], False, "allow")
        self._traces.is_recorded = not is_of_package(function)
        # The program does not keep this object alive, which owns it.
        owner = weakref.ref(self)

        def code(*args: Any) -> Any:
            made = owner()
            assert made is not None
            return made._code(*args)

        self._program = _native.Function(code, stage, on_retrace="allow")
        #: The specs of the arguments; None if they are not known, or if the function cannot be traced for them.
        self._arguments = arguments if arguments is not None and all(map(_can_be_traced, flat)) else None
        self._is_open = self._arguments is not None and _has_open_sizes(self._arguments)
        self._first: Any = None
        #: Whether the code assigns variables, if it was traced.
        self.assigns = False
        #: Why the code is called for each element; None if it is not, or if that is not known yet.
        self._untraceable: tuple[type[Exception], str] | None = None
        #: What is known of the results of such a function.
        self._trial_spec: Any = None
        if self._arguments is not None:
            self._trace(self._arguments)
        elif any(isinstance(leaf, DatasetSpec) for leaf in flat):
            self._trial_spec = trial_specs(self._call, arguments)

    def __call__(self, *args: Any) -> Any:
        """The result for an element: in a trace, or of code that is called for each element."""
        # A recording of the code serves all sizes, the program the sizes that it was traced for.
        if self._is_open or not _native.is_tracing():
            return self._code(*args)
        return self._result(self._program(*args))

    def run(self, *args: Any) -> Any:
        """The result for an element, by a program where that is possible."""
        return self._program(*args)

    def _code(self, *args: Any) -> Any:
        if not _native.is_tracing():
            return self._call(*args)
        if self._untraceable is not None:
            kind, text = self._untraceable
            raise kind(text)
        made = self._result(self._traces.call(self._body, args, {}))
        if any(hasattr(leaf, "element_spec") for leaf in nest.flatten(made)):
            raise UnknownResultError("a function that returns a dataset makes it of the values of its arguments")
        if any(map(has_plain_fields, nest.flatten(made))):
            raise UnknownResultError("a program has no numbers and strings of Python, which the result has as fields")
        return made

    def _call(self, *args: Any) -> Any:
        return self._result(self._body(*args))

    def _trace(self, arguments: tuple) -> None:
        """Calls the code with tensors without values. An error is raised, unless it is that the code needs values."""
        try:
            self._first = self._traced(arguments, _TRIAL_SIZES[0])
        except (DynamicShapeError, OperatorNotAllowedInGraphError) as error:
            self._arguments, self._untraceable = None, (type(error), str(error))
            if isinstance(error, UnknownResultError):
                self._trial_spec = trial_specs(self._call, arguments)
        except Exception as error:
            if _native.is_tracing() or (_has_open_sizes(arguments) and _may_be_of_a_size(error)):
                # The call for an element reports it.
                self._arguments = None
                return
            raise

    def _traced(self, arguments: tuple, size: int) -> Any:
        # Traces for sizes that stand for unknown ones are not kept.
        function = self._code if _has_open_sizes(arguments) else self._program
        flat = [_placeholder(leaf, size) for leaf in nest.flatten(arguments)]
        # A function in a trial may use tensors of the function around it.
        if is_trial():
            function = self._code
        with _outside_of_traces():
            made, assigns = _native.trace_for_writes(function, *nest.pack_sequence_as(arguments, flat))
        self.assigns |= assigns
        return _specs.specs_of(made)

    @functools.cached_property
    def spec(self) -> Any:
        """The specs of the results, with None for sizes that may vary; None if they are not known."""
        return self._trial_spec if self._arguments is None else self.results(self._arguments, self._first)

    def results(self, arguments: tuple | None, first: Any = None) -> Any:
        """The specs of the results for arguments with these specs, which are those of some elements."""
        if self._arguments is None or arguments is None or not all(map(_can_be_traced, _leaves(arguments))):
            return None
        try:
            found = [self._traced(arguments, _TRIAL_SIZES[0]) if first is None else first]
            if _has_open_sizes(arguments):
                found.append(self._traced(arguments, _TRIAL_SIZES[1]))
        except Exception:
            # It is reported for the element.
            return None
        if not all(isinstance(leaf, TypeSpec) for leaf in nest.flatten(found[0])):
            return None
        return _specs.common_spec(found)


def step_function(
    stage: str,
    function: Callable,
    state: Any,
    structure: Any,
    next_state: Callable = lambda result: result,
    result: Callable = lambda made: made,
) -> StageFunction:
    """A function of a state and an element, whose sizes may vary. `next_state` gives the specs of the next state, given
    those of the result.
    """
    spec = _specs.specs_of(state)
    while True:
        made = StageFunction(stage, function, None if structure is None else (spec, structure), result)
        if made.spec is None:
            return made
        after = next_state(made.spec)
        _specs.check_state(stage, spec, after)
        relaxed = _specs.common_spec([spec, nest.pack_sequence_as(spec, nest.flatten(after))])
        if relaxed is None or relaxed == spec:
            return made
        spec = relaxed


def trial_specs(function: Callable, arguments: tuple | None) -> Any:
    """The specs of the results of a function that cannot be traced, for arguments with these specs; None if they are not
    known. It is called with tensors without values and datasets without elements: once for each size, and rank, that may
    be another one.
    """
    flat = [] if arguments is None else nest.flatten(arguments)
    if arguments is None or not all(_can_be_traced(leaf) or isinstance(leaf, DatasetSpec) for leaf in flat):
        return None
    sizes = _TRIAL_SIZES if _has_open_sizes(arguments) else _TRIAL_SIZES[:1]
    found: list[Any] = []
    are_all_known = False

    def body(*args: Any) -> None:
        nonlocal are_all_known
        made = function(*args)
        # A result that is that of a Python function has no known rank. One that follows from it is found by another trial.
        shapes = [trial_shape(leaf) for leaf in nest.flatten(made)]
        are_all_known = all(shape is not None for shape in shapes)
        specs = nest.flatten(_specs.specs_of(made))
        specs = [s if shape is None else TensorSpec(shape, s.dtype) for s, shape in zip(specs, shapes, strict=True)]
        found.append(nest.pack_sequence_as(made, specs))

    for size, shape in itertools.product(sizes, _TRIAL_SHAPES):
        if are_all_known:
            break
        try:
            with _outside_of_traces(), with_trial_shape(shape):
                _native.trace_only(body, *nest.pack_sequence_as(arguments, [_placeholder(leaf, size) for leaf in flat]))
        except Exception:
            # The call for an element reports it.
            return None
    if not all(isinstance(leaf, TypeSpec) for leaf in nest.flatten(found[0])):
        return None
    return _specs.common_spec(found)


def expanding(stage: str, function: Callable, arguments: tuple | None) -> tuple[Callable, Any]:
    """A function that makes datasets, and the specs of their elements; None if they are not known."""
    if not callable(function):
        raise ValueError(f"{stage}: expected a function, got {function!r}")
    function = with_present_names(function)
    made = trial_specs(function, arguments)
    if made is not None and not isinstance(made, DatasetSpec):
        raise TypeError(f"{stage}: the function must return a tf.data.Dataset, got {made}")
    return function, None if made is None else made.element_spec


def _outside_of_traces() -> Any:
    return _native.InitScope() if _native.is_tracing() and not is_trial() else contextlib.nullcontext()


def _leaves(structure: Any) -> list:
    """The specs of a structure in the order in which a trace has their tensors."""
    parts = parts_of(structure)
    return [structure] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def _can_be_traced(spec: Any) -> bool:
    if isinstance(spec, TensorSpec):
        return spec.dtype != dtypes.string
    return isinstance(spec, NoneTensorSpec)


def _has_open_sizes(arguments: tuple) -> bool:
    return any(isinstance(leaf, TensorSpec) and not leaf.shape.is_fully_defined() for leaf in nest.flatten(arguments))


def _placeholder(spec: Any, size: int) -> Any:
    """A tensor without values, with this size in place of unknown ones."""
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, DatasetSpec):
        from ._dataset import Dataset

        return Dataset._without_elements(spec.element_spec)
    shape: Any = spec.shape
    if shape.rank is None:
        shape = _TRIAL_SHAPES[_TRIAL_SIZES.index(size)]
    return TensorSpec([size if dim is None else dim for dim in shape], spec.dtype).placeholder()


def _may_be_of_a_size(error: Exception) -> bool:
    """Whether an error may come from a size that stands for an unknown one: if the user's code has not raised it itself."""
    if isinstance(error, OpError):
        return not isinstance(error, TypeError)
    if not isinstance(error, (ValueError, ArithmeticError, LookupError)):
        return False
    from ..autograph.callables import is_never_converted

    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None or is_never_converted(at.tb_frame.f_code.co_filename):
        return True
    return at.tb_frame.f_code.co_code[at.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def arguments_of(structure: Any) -> tuple | None:
    """The specs of the arguments of a function of elements: the parts of a tuple are arguments."""
    return structure if structure is None or type(structure) is tuple else (structure,)


def converted(function: Callable) -> Callable:
    """The function, converted by AutoGraph where it has to be."""
    if isinstance(function, Function):
        return function
    from ..autograph import lazily_converted

    return lazily_converted(function)
