"""Traced functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from . import _native, config, dtypes, memory, nest
from ._common import refuse
from .concrete_function import ConcreteFunction, as_spec, placeholders, signature_key, traced_specs
from .errors import DTypeError, DynamicShapeError, InvalidArgumentError, OutOfRangeError
from .methods import BoundFunction, weak_method
from .open_sizes import Traces
from .open_variable import OpenVariable
from .recording import running
from .spec import TensorSpec
from .type_spec import DatasetSpec, IteratorSpec, TypeSpec, is_of_parts


class Trace(NamedTuple):
    """A trace of a function: its signature, its cost, and the reason it was made."""

    signature: str
    ms: float
    bytes: int
    peak_bytes: int
    reason: str


class Peak(str):
    """An explanation of a plan's peak: a printable table, and `rows` of (bytes, op, line, reason, remedy)."""

    rows: list[tuple[int, str | None, str | None, str, str | None]]


def _explain_peak(self: _native.Plan) -> Peak:
    """The buffers that are live at the peak: bytes, op, line, reason, and remedy. The rows sum to the peak."""
    text, rows = self._explain_peak()
    peak = Peak(text)
    peak.rows = rows
    return peak


def _plan_html(self: _native.Plan) -> str:
    from .display import plan_html

    return plan_html(self)


setattr(_native.Plan, "explain_peak", _explain_peak)
setattr(_native.Plan, "_repr_html_", _plan_html)


class FrontierRow(NamedTuple):
    """A plan of a frontier. `time` is relative to the fastest plan, by the planner's cost model."""

    bytes: int
    total_bytes: int
    time: float
    repeated_steps: int
    micro_batches: int
    spilled_bytes: int


def _frontier_rows(self: _native.Frontier) -> list[FrontierRow]:
    """The plans, from the fewest bytes to the least time."""
    return [FrontierRow(*row) for row in self._rows()]


def _frontier_within(self: _native.Frontier, budget: Any) -> FrontierRow | None:
    """The row of the plan that a budget chooses: the fastest that fits, or None."""
    row = self._within(budget)
    return None if row is None else FrontierRow(*row)


def _frontier_bit_equal_rows(self: _native.Frontier) -> list[FrontierRow]:
    """The plans that do not split the batch, so that results are the same to the last bit."""
    return [FrontierRow(*row) for row in self._bit_equal_rows()]


setattr(_native.Frontier, "rows", property(_frontier_rows))
setattr(_native.Frontier, "bit_equal_rows", property(_frontier_bit_equal_rows))
setattr(_native.Frontier, "within", _frontier_within)


#: The classes whose objects become another argument, with the function that makes it.
_ARGUMENTS: dict[type, Callable] = {}


def register_argument(kind: type, convert: Callable) -> None:
    """Converts arguments of this class with `convert` before they are part of a signature. Its result has a method
    `in_trace`, which returns what the traced function takes. That may raise `NeedsArgumentError`.
    """
    _ARGUMENTS[kind] = convert


class NeedsArgumentError(BaseException):
    """A function that is being traced uses an argument of this class in a way that only the object itself allows. It is traced
    again, for this object. No error of the program, which must not catch it.
    """

    def __init__(self, kind: type) -> None:
        super().__init__(f"a traced function needs the {kind.__name__} itself")
        self.kind = kind


def _converted_arguments(args: tuple, kwargs: dict, excluded: set[type]) -> tuple[tuple, dict]:
    def one(value: Any) -> Any:
        convert = _ARGUMENTS.get(type(value))
        return value if convert is None or type(value) in excluded else convert(value)

    return tuple(map(one, args)), {name: one(value) for name, value in kwargs.items()}


class _Creations(threading.local):
    """The variables that functions create while they are traced, or run op by op."""

    count = 0
    forbidden = False


_creations = _Creations()


def is_running_op_by_op() -> bool:
    """Whether a function that could not be traced runs on this thread."""
    return running.op_by_op > 0


def initial_value_unknown() -> DynamicShapeError:
    """The error for a variable whose initial value depends on an argument: the function runs op by op once, and creates it."""
    remedy = "create it from constants, or outside of the function"
    return DynamicShapeError(f"Variable: {_INITIAL_VALUE}\n  at {_native.calling_line()}\n  help: {remedy}")


_INITIAL_VALUE = (
    "the initial value of a variable depends on an argument of the function: "
    "this call creates it, the next one is traced"
)


class _CreatedAgainError(InvalidArgumentError):
    pass


def variable_created() -> None:
    """Called for each variable that is created."""
    if not (running.op_by_op or _native.is_tracing()):
        return
    _creations.count += 1
    if _creations.forbidden:
        text = (
            "a function may create variables only in its first call, but this one is created in every call\n"
            "  help: create it outside of the function, or once: `if v is None: v = tf.Variable(...)`"
        )
        refuse("Variable", text, _CreatedAgainError)


def _in_trace(name: str, converted: Callable, traces: Traces) -> Callable:
    """The converted function as it is traced, or run op by op if its shapes depend on values: it takes what converted arguments
    stand for, and is checked for side effects that would happen in the trace alone.
    """
    may_create = True

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal may_create
        is_traced = _native.is_tracing()

        def one(value: Any) -> Any:
            if not hasattr(type(value), "in_trace"):
                return value
            return value.in_trace() if is_traced else value.in_call()

        args, kwargs = tuple(map(one, args)), {key: one(value) for key, value in kwargs.items()}
        created, before = _creations.count, _contents([args, kwargs])
        if is_traced:
            try:
                result = traces.call(converted, args, kwargs)
            except DynamicShapeError as error:
                traces.needs_variables = _INITIAL_VALUE in str(error)
                if traces.needs_variables:
                    # It can be traced once it has run op by op.
                    traces.note((args, kwargs), None)
                raise
        else:
            # Only the first call creates variables, as in TensorFlow.
            with _running_op_by_op(may_create):
                result = nest.map_structure(as_result, converted(*args, **kwargs))
            may_create = False
            # The variables exist now, and the next call can be traced.
            traces.is_obsolete, traces.needs_variables = traces.needs_variables, False
            traces.ran_op_by_op = not traces.is_obsolete
        if _contents([args, kwargs]) != before:
            text = "the function must not modify its arguments: lists and dicts must be as they were"
            refuse(name, f"{text}\n  help: modify a copy", ValueError)
        if is_traced and _creations.count > created and not _creations.forbidden:

            def body(*args: Any, **kwargs: Any) -> Any:
                return traces.call(converted, args, kwargs, reports=False)

            _check_creates_once(body, args, kwargs)
        return result

    return call


def as_result(leaf: Any) -> Any:
    """What a traced function returns for this part of its result."""
    if isinstance(leaf, (bool, int, float, complex, np.generic, np.ndarray)):
        return _native.as_tensor(leaf)
    if isinstance(leaf, (str, bytes)):
        return _native.string_tensor(leaf)
    return leaf.read_value() if isinstance(leaf, _native.Variable) or type(leaf) is OpenVariable else leaf


@contextlib.contextmanager
def _running_op_by_op(may_create: bool) -> Iterator[None]:
    forbidden = _creations.forbidden
    running.op_by_op += 1
    _creations.forbidden = not may_create
    try:
        yield
    finally:
        running.op_by_op -= 1
        _creations.forbidden = forbidden


def _contents(value: Any) -> Any:
    """The structure of arguments, with the identities of the leaves."""
    if isinstance(value, dict):
        return {key: _contents(part) for key, part in value.items()}
    return [_contents(part) for part in value] if isinstance(value, (list, tuple)) else id(value)


def _check_creates_once(body: Callable, args: tuple, kwargs: dict) -> None:
    """Traces a function that has created variables once more, for the check: then it must not create any."""
    _creations.forbidden = True
    try:
        _native.trace_only(body, *args, **kwargs)
    except _CreatedAgainError as error:
        raise InvalidArgumentError(str(error)) from None
    except Exception:
        pass  # Of the check alone: the function's own trace has succeeded.
    finally:
        _creations.forbidden = False


class Function:
    """A Python function that is traced once per signature and then runs as a planned program.

    A signature consists of the types and shapes of tensors and variables, of which arguments are the same variable, and of the
    values of everything else. A function that shows that it depends on which variable it is given (it reads its name, or
    keeps state for it) is traced for each. Variables that the first trace creates belong to the function.
    """

    def __init__(
        self,
        python_function: Callable,
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        on_retrace: str = "warn",
        cache_bytes: int | None = None,
        name: str | None = None,
        fuse: bool = True,
        memory_budget: Any = None,
    ) -> None:
        if not callable(python_function):
            refuse("function", f"expected a function, got {python_function!r}", TypeError)
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self._options = {
            "input_signature": input_signature,
            "autograph": autograph,
            "jit_compile": jit_compile,
            "reduce_retracing": reduce_retracing,
            "on_retrace": on_retrace,
            "cache_bytes": cache_bytes,
            "name": name,
            "fuse": fuse,
            "memory_budget": memory_budget,
        }
        self._name = str(name or getattr(python_function, "__name__", type(python_function).__name__))
        #: The functions of methods by object.
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        #: The handle of this function of a method, while it is in use.
        self._handle: weakref.ref[BoundFunction] | None = None
        self._concrete: dict[Any, ConcreteFunction] = {}
        #: The classes of arguments that the function needs as they are.
        self._unconverted: set[type] = set()
        self._input_signature = _flat_signature(input_signature)
        self._takes_data = _has_data(input_signature)
        self._signature: inspect.Signature | None
        try:
            self._signature = inspect.signature(python_function)
        except (TypeError, ValueError):
            self._signature = None
        parameters = self._signature.parameters.values() if self._signature else ()
        plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
        # A call with this many positional arguments needs no binding.
        self._count = len(parameters) if plain else None
        body = python_function
        if autograph:
            from . import autograph as conversion

            body = conversion.lazily_converted(python_function)
        flat = None if input_signature is None else _parts(input_signature)
        # The engine compares tensors of numbers with the signature, unless a function takes strings.
        self._takes_strings = flat is not None and any(one.dtype == dtypes.string for one in flat)
        if flat is not None and self._takes_strings:
            flat = [one for one in flat if one.dtype != dtypes.string]
        self._traces = Traces(self._name, flat, bool(reduce_retracing), on_retrace)
        self._traces.is_recorded = not is_of_package(python_function)
        self._converted = body
        self._traced = _in_trace(self._name, body, self._traces)
        self._native = _native.Function(
            self._traced,
            self._name,
            jit_compile is None or bool(jit_compile),
            reduce_retracing,
            # The recording of the first trace serves other sizes, and denies what it does not hold for.
            "allow" if reduce_retracing and input_signature is None and on_retrace == "deny" else on_retrace,
            cache_bytes,
            self._input_signature,
            fuse,
            memory.default_budget() if memory_budget is None else memory_budget,
            # A recording for open dimensions holds for the variables that it was made with.
            bool(reduce_retracing) or input_signature is not None,
        )

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments in canonical form, with defaults."""
        if self._signature is not None and (kwargs or len(args) != self._count):
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if not _ARGUMENTS.keys().isdisjoint(map(type, (*args, *kwargs.values()))):
            return _converted_arguments(args, kwargs, self._unconverted)
        return args, kwargs

    def _take_unconverted(self, needed: NeedsArgumentError, args: tuple, kwargs: dict) -> None:
        """From now on, passes arguments of a class as they are. Raises the error if these were passed so already."""
        if needed.kind in self._unconverted or all(type(one) is not needed.kind for one in (*args, *kwargs.values())):
            raise needed
        self._unconverted.add(needed.kind)

    def _with_arguments(self, work: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of `work` for the arguments in canonical form."""
        try:
            # The arguments stay alive here: a trace may find them by a number.
            return work(*self._arguments(args, kwargs))
        except NeedsArgumentError as needed:
            self._take_unconverted(needed, args, kwargs)
        return self._with_arguments(work, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program for these arguments, traced now if necessary."""
        # Inside a trace there are no values to run eagerly on.
        if config.functions_run_eagerly() and not _native.is_tracing():
            return self.python_function(*args, **kwargs)
        return self._with_arguments(self._typed_call, args, kwargs)

    def _typed_call(self, args: tuple, kwargs: dict) -> Any:
        try:
            is_free = self._options["input_signature"] is None
            if not is_free:
                self._check_defaults(args, kwargs)
            made = self._native(*(args if is_free else self._typed(args)), **kwargs)
            if self._traces.is_obsolete:
                self._traces.is_obsolete = False
                self._native.forget()
            return made
        except StopIteration:
            # A function that runs op by op has asked an iterator for an element in Python. A traced one raises this class.
            raise OutOfRangeError("the dataset has no more elements") from None
        except InvalidArgumentError as error:
            if "by its input signature" in str(error) and not isinstance(error, TypeError):
                raise DTypeError(str(error)) from None
            raise

    def _check_defaults(self, args: tuple, kwargs: dict) -> None:
        """Raises TypeError unless the arguments for which the input signature has no specs are their defaults."""
        if self._signature is None or (not kwargs and len(args) <= len(self._options["input_signature"])):
            return
        count = len(self._options["input_signature"])
        bound = self._signature.bind(*args, **kwargs).arguments
        for name, parameter in list(self._signature.parameters.items())[count:]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            given, default = bound.get(name, parameter.default), parameter.default
            if given is not default and not (
                type(given) is type(default) and isinstance(given, _LITERALS) and given == default
            ):
                raise TypeError(
                    f"{self._name}: {name} has no spec in the input signature and must have its default, "
                    f"got {given!r}\n  at {_native.calling_line()}"
                )

    def _typed(self, args: tuple) -> tuple:
        """Converts numbers and lists to tensors of the types in the input signature."""
        specs = self._options["input_signature"]
        if len(args) < len(specs):
            return args
        made = tuple(map(_typed_argument, specs, args))
        if self._takes_strings or self._takes_data:
            for spec, given in zip(specs, made):
                if not isinstance(spec, (DatasetSpec, IteratorSpec)):
                    for pair in zip(nest.flatten(spec), nest.flatten(given)):
                        _check_argument(*pair)
        return (*made, *args[len(specs) :])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            found = self._bound.get(instance)
        except TypeError:
            return Function(self.python_function.__get__(instance, owner), **self._options)
        if found is None:
            found = Function(weak_method(self.python_function, instance), **self._options)
            self._bound[instance] = found
        handle = None if found._handle is None else found._handle()
        if handle is None:
            handle = BoundFunction(found, instance)
            found._handle = weakref.ref(handle)
        return handle

    def plan(self, *args: Any, **kwargs: Any) -> _native.Plan:
        """Plans a call with these arguments without running it. TensorSpecs stand for tensors."""
        return self._planned(self._native.plan, args, kwargs)

    def frontier(self, *args: Any, **kwargs: Any) -> _native.Frontier:
        """The plans of a call for every memory budget, without running it: `rows` of bytes, time, repeated steps and
        micro-batches. TensorSpecs stand for tensors.
        """
        return self._planned(self._native.frontier, args, kwargs)

    def plan_gradient(self, *args: Any, **kwargs: Any) -> tuple[_native.Plan, _native.Plan]:
        """Plans a call under a tape: the forward and the backward program."""
        return self._planned(self._native.plan_gradient, args, kwargs)

    def graph(self, *args: Any, **kwargs: Any) -> str:
        """The traced graph for these arguments, as text."""
        return self._planned(self._native.graph, args, kwargs)

    def _planned(self, native: Callable, args: tuple, kwargs: dict) -> Any:
        def work(args: tuple, kwargs: dict) -> Any:
            return native(*placeholders(list(args)), **placeholders(kwargs))

        return self._with_arguments(work, args, kwargs)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for these arguments or TensorSpecs, traced now if necessary."""
        if not args and not kwargs and self._options["input_signature"] is not None:
            args = tuple(self._options["input_signature"])
        elif self._options["input_signature"] is not None:
            args, kwargs = self._with_arguments(self._signed, args, kwargs)
        return self._with_arguments(self._concrete_for, args, kwargs)

    def _signed(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of the one signature; raises TypeError if these do not fit it."""
        specs = tuple(self._options["input_signature"])
        self._check_defaults(args, kwargs)
        if len(args) < len(specs):
            raise TypeError(f"{self._name} takes {len(specs)} tensors by its input signature, got {len(args)}")
        for spec, given in zip(specs, args):
            flat = nest.flatten(given)
            fitted = given if any(isinstance(leaf, TypeSpec) for leaf in flat) else _typed_argument(spec, given)
            wanted, found = nest.flatten(spec), nest.flatten(fitted)
            if len(wanted) != len(found):
                _refuse_argument(spec, given)
            for one, leaf in zip(wanted, found):
                if not isinstance(one, (DatasetSpec, IteratorSpec)):
                    _check_argument(one, leaf)
        return specs, {}

    def _concrete_for(self, args: tuple, kwargs: dict) -> ConcreteFunction:
        args, kwargs = nest.map_structure(as_spec, (args, kwargs))
        given = [leaf for leaf in nest.flatten((args, kwargs)) if isinstance(leaf, _native.Variable)]
        for by_identity in (False, True) if given else (True,):
            found = self._concrete.get(_with_names(signature_key((args, kwargs), by_identity), args, kwargs))
            if found is not None and not (given and not by_identity and found.captures(given)):
                return found
        found = ConcreteFunction(self, args, kwargs)
        key = signature_key((args, kwargs), not given or found.captures(given))
        if key is not None:
            # As the traces, the last thousand of which are kept.
            if len(self._concrete) >= 1000:
                self._concrete.clear()
            self._concrete[_with_names(key, args, kwargs)] = found
            # Specs without names stand for those of the first function, whatever their names are.
            self._concrete.setdefault(_with_names(key, (), {}), found)
        return found

    def _of_tensors(self, args: tuple, kwargs: dict, specs: list[TensorSpec]) -> Function:
        """The function of the tensors among these arguments, given as TensorSpecs; the others are as they are."""

        def call(*tensors: Any) -> Any:
            given = iter(tensors)
            own = nest.map_structure(lambda one: next(given) if isinstance(one, TensorSpec) else one, (args, kwargs))
            return self._converted(*own[0], **own[1])

        made = functools.wraps(self.python_function)(call)
        del made.__wrapped__
        # That of the function, which takes other arguments, too.
        vars(made).pop("__signature__", None)
        options = {**self._options, "input_signature": specs, "autograph": False}
        found = Function(made, **options)
        found._traces.counted_by = self._traces
        found._traces.is_recorded = self._traces.is_recorded
        return found

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures of the traces; with `verbose`, also their peak memory and the reasons they were made."""
        lines = [f"{self._name}{trace.signature}" for trace in self.traces]
        if verbose:
            lines = [
                f"{line}\n  peak: {trace.peak_bytes} bytes\n  reason: {trace.reason}"
                for line, trace in zip(lines, self.traces)
            ]
        return "\n\n".join(lines)

    @property
    def traces(self) -> list[Trace]:
        """The traces that were made: the last thousand."""
        return [Trace(*row) for row in self._native.traces()]

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was called for a trace. A new size of an open dimension is planned anew, without
        calling it.
        """
        return self._traces.count

    @property
    def trace_count(self) -> int:
        """The number of traces that were made."""
        return self._native.trace_count

    @property
    def cached_bytes(self) -> int:
        """The bytes that traces hold between calls."""
        return self._native.cached_bytes

    @property
    def variables(self) -> list:
        """The variables that the first trace created."""
        return self._native.variables

    @property
    def input_signature(self) -> Any:
        """The required types and shapes of the arguments, if given."""
        given = self._options["input_signature"]
        return given if given is None else tuple(given)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    def forget(self) -> None:
        """Drops all traces; the next call traces again."""
        self._concrete.clear()
        self._traces.forget()
        self._native.forget()

    def release(self) -> None:
        """Frees the memory that is kept between calls. The traces stay."""
        self._native.release()

    def __reduce__(self) -> tuple:
        return _restored, (self.python_function, self._options)

    def __repr__(self) -> str:
        count = self._native.trace_count
        return f"<tf.function {self._name}: {count} {'trace' if count == 1 else 'traces'}>"


def _restored(python_function: Callable, options: dict[str, Any]) -> Function:
    return Function(python_function, **options)


def _with_names(key: Any, args: tuple, kwargs: dict) -> Any:
    """The key of a signature whose specs have names of their own."""
    leaves = nest.flatten((args, kwargs))
    names = tuple(leaf.name if isinstance(leaf, TensorSpec) else None for leaf in leaves)
    return key, names if any(names) else ()


def is_of_package(function: Callable) -> bool:
    """Whether the code is that of this package or of Keras, which may read every size."""
    from .autograph.callables import is_never_converted

    code = getattr(inspect.unwrap(function, stop=lambda one: hasattr(one, "__code__")), "__code__", None)
    own = getattr(function, "__taut_converted__", None)
    return own is None and code is not None and is_never_converted(code.co_filename)


#: Arguments of these types are equal to a default by their values.
_LITERALS = (bool, int, float, complex, str, bytes)


def _typed_argument(spec: Any, given: Any) -> Any:
    """Numbers, lists, arrays and variables as tensors for these specs. What does not fit stays, and is refused later."""
    if isinstance(spec, (DatasetSpec, IteratorSpec)):
        found = given.type_spec() if hasattr(type(given), "type_spec") else given
        if not spec.is_compatible_with(found):
            _refuse_argument(spec, found)
        return given
    if isinstance(spec, TensorSpec):
        if isinstance(given, _native.Variable):
            return given.read_value()
        if not isinstance(given, _native.Array):
            given = _native.as_tensor(given, None if spec.dtype == dtypes.string else spec.dtype)
        if given.dtype == dtypes.string:
            _check_argument(spec, given)
        return given
    if is_of_parts(spec):
        _check_argument(spec, given)
    if isinstance(spec, dict) and isinstance(given, dict) and spec.keys() == given.keys():
        return {key: _typed_argument(spec[key], part) for key, part in given.items()}
    if isinstance(spec, (list, tuple)) and isinstance(given, (list, tuple)) and len(spec) == len(given):
        parts = [_typed_argument(one, part) for one, part in zip(spec, given)]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    if isinstance(given, (dict, list, tuple)):
        _refuse_argument(spec, given)
    return given


def _check_argument(spec: Any, given: Any) -> None:
    """Raises TypeError if an argument does not fit its spec."""
    if not spec.is_compatible_with(given):
        _refuse_argument(spec, given)


def _refuse_argument(spec: Any, given: Any) -> NoReturn:
    raise TypeError(f"input_signature: expected {spec}, got {given!r}\n  at {_native.calling_line()}")


def _parts(signature: Any) -> list:
    """The specs of the tensors of a signature, flat: a ragged or sparse tensor is that of its parts."""
    found: list[Any] = []
    for spec in nest.flatten(signature):
        if not isinstance(spec, (DatasetSpec, IteratorSpec)):
            found += spec._taut_part_specs() if is_of_parts(spec) else [spec]
    return found


def _has_data(signature: Any) -> bool:
    """Whether a signature has specs of datasets or iterators."""
    return any(isinstance(spec, (DatasetSpec, IteratorSpec)) for spec in nest.flatten(signature))


def _flat_signature(signature: Any) -> list | None:
    if signature is None:
        return None
    specs = _parts(signature)
    if not all(isinstance(spec, TensorSpec) for spec in specs):
        raise TypeError(f"input_signature must be made of tf.TensorSpec, got {signature!r}")
    if _has_data(signature):
        # The engine compares tensors alone.
        return None
    numbers = [spec for spec in specs if spec.dtype != dtypes.string]
    return [(spec.dtype, None if spec.shape.rank is None else list(spec.shape)) for spec in numbers]


def function(
    func: Callable | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    on_retrace: str = "warn",
    cache_bytes: int | None = None,
    name: str | None = None,
    fuse: bool = True,
    memory_budget: Any = None,
) -> Any:
    """Compiles a Python function: it is traced once per signature and then runs as a planned program.

    Fused loops become machine code where the processor supports it, unless `jit_compile` is False: then they are
    interpreted, with the same results. `reduce_retracing=True` treats sizes that vary as unknown.
    `on_retrace` is "warn", "allow" or "deny". `experimental_implements`, a name for other compilers, and
    `experimental_autograph_options`, parts of AutoGraph, are accepted: nothing here depends on them.
    `cache_bytes` bounds the bytes that traces hold between calls.

    `memory_budget` is the number of bytes that a call may allocate, as a number, as text ("200MB") or as a
    `tf.memory.MemoryBudget`. Values are dropped and computed again, or the batch is split, so that the call fits at the
    least added time. If no plan fits, the first call raises `tf.errors.ResourceExhaustedError`, which names the smallest
    budget that works.

    >>> import taut as tf
    >>> @tf.function
    ... def f(x):
    ...     return 2.0 * x * x + 1.0
    >>> f.plan(tf.TensorSpec([1000])).peak_bytes  # the result, and nothing else
    4000
    """

    if experimental_attributes is not None:
        raise ValueError(f"tf.function: experimental_attributes is not supported, got {experimental_attributes!r}")

    def decorated(inner: Callable) -> Function:
        return Function(
            inner,
            input_signature=input_signature,
            autograph=autograph,
            jit_compile=experimental_compile if jit_compile is None else jit_compile,
            reduce_retracing=bool(reduce_retracing or experimental_relax_shapes),
            on_retrace=on_retrace,
            cache_bytes=cache_bytes,
            name=name,
            fuse=fuse,
            memory_budget=memory_budget,
        )

    return decorated if func is None else decorated(func)


def trace_specs(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """The result of a function for arguments given as TensorSpecs, as TensorSpecs. Nothing is computed."""
    return traced_specs(func, args, kwargs)


def executing_eagerly() -> bool:
    """Whether ops run immediately instead of being traced."""
    return not _native.is_tracing()


def inside_function() -> bool:
    """Whether a function is being traced."""
    return _native.is_tracing()


def init_scope() -> _native.InitScope:
    """A context manager that suspends tracing: ops run immediately, and variables outlive the trace."""
    return _native.InitScope()
