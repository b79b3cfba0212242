"""Functions of saved models: their code's calls recorded to be saved, and made again when they are loaded."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from .. import _native, nest
from .._common import refuse
from ..concrete_function import ConcreteFunction
from ..errors import DynamicShapeError
from ..function import Function, as_result
from ..methods import BoundFunction
from ..open_sizes import calls_recorded
from ..recording import Recording, call_with_functions, is_saving, layer_text, saving
from ..replay import ChangedError, is_made, parts_of, rebuilt, replaying, sizes, unrecorded
from ..shape import TensorShape
from ..spec import TensorSpec
from ..tensor import convert_to_tensor
from ..trial_sizes import first_fit
from ._encoding import Decoder, NotSavedError, check_call, is_same

_lock = threading.Lock()
_original_call = Function.__call__


def _call_while_saving(self: Function, *args: Any, **kwargs: Any) -> Any:
    """Calls the code of a function that another one calls, so that its calls are recorded with those of the other one."""
    if not is_saving() or not _native.is_tracing():
        return _original_call(self, *args, **kwargs)

    def work(args: tuple, kwargs: dict) -> Any:
        if self.input_signature is not None:
            self._check_defaults(args, kwargs)
            args = self._typed(args)
        return nest.map_structure(as_result, self._converted(*args, **kwargs))

    return self._with_arguments(work, args, kwargs)


_users = 0


@contextlib.contextmanager
def _calls_inlined() -> Iterator[None]:
    """While functions are recorded, those that they call are parts of their recordings."""
    global _users
    with _lock:
        _users += 1
        Function.__call__ = _call_while_saving  # type: ignore[method-assign]
    try:
        with saving():
            yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                Function.__call__ = _original_call  # type: ignore[method-assign]


def changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of arguments with each leaf changed."""
    return change(value) if parts_of(value) is None else rebuilt(value, lambda part: changed(part, change))


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a structure of arguments."""
    parts = parts_of(value)
    if parts is None:
        yield value
    for part in parts or ():
        yield from leaves(part)


def recorded(code: Callable, args: tuple, kwargs: dict, known: list | None = None) -> Recording:
    """The calls that code makes for these arguments, in which TensorSpecs stand for tensors. `known` are shapes of tensors that
    fit the specs; without them, sizes are tried. Raises NotSavedError, with the line, if the calls cannot be made again.
    """
    shapes = [leaf.shape for leaf in leaves((args, kwargs)) if isinstance(leaf, TensorSpec)]
    is_open = not all(shape.is_fully_defined() for shape in shapes)

    def work(sizes: list[list[int]]) -> Recording:
        return _recorded(code, args, kwargs, shapes if is_open else None, sizes)

    recording = work(known) if known is not None else first_fit(shapes, work, NotSavedError)[1]
    if known is None and any(shape.rank is None for shape in shapes):
        _check_rank(recording)
    if is_open:
        _check_sizes(recording)
    return recording


def _recorded(
    code: Callable, args: tuple, kwargs: dict, shapes: list[TensorShape] | None, given: list[list[int]]
) -> Recording:
    """The calls that code makes for tensors of these sizes, of which it sees `shapes`."""
    own = iter(given)

    def placeholder(leaf: Any) -> Any:
        return _native.placeholder(leaf.dtype, list(next(own))) if isinstance(leaf, TensorSpec) else leaf

    args, kwargs = changed((args, kwargs), placeholder)
    made: list[Recording] = []

    def body(*args: Any, **kwargs: Any) -> Any:
        recording = Recording((args, kwargs), shapes)
        before = _native.set_recording(recording)
        try:
            with calls_recorded():
                result = code(*args, **kwargs)
        finally:
            _native.set_recording(before)
        recording.finish(result)
        made.append(recording)
        return result

    with _calls_inlined():
        try:
            _native.trace_only(body, *args, **kwargs)
        except DynamicShapeError as error:
            remedy = "use ops whose shapes follow from those of their arguments"
            raise NotSavedError(f"it runs op by op{layer_text()}: {error}\n  help: {remedy}") from None
        except (TypeError, ValueError) as error:
            if shapes is None or not layer_text():
                raise
            text = f"its code fails{layer_text()}, where a size is open: {error}"
            remedy = "use keras.ops.shape(x) in place of x.shape, or give the argument a known size in its TensorSpec"
            raise NotSavedError(f"{text}\n  help: {remedy}") from error
    recording = made[-1]
    if recording.reason is not None:
        remedy = "compute it with other ops, or save the weights alone, in a checkpoint or with model.save"
        raise NotSavedError(f"the calls of its code cannot be saved: {recording.reason}\n  help: {remedy}")
    return recording


def _check_rank(recording: Recording) -> None:
    """Raises NotSavedError if the recorded calls depend on an unknown rank of a tensor."""
    try:
        _native.trace_only(lambda *given: recording.replay(given), *recording.trial_arguments(True))
    except ChangedError as error:
        text = f"a tensor has an unknown rank, on which its code depends: {error}"
        raise NotSavedError(f"{text}\n  help: call the function before it is saved") from None
    except Exception:
        return  # The calls are not possible for another rank. The code itself would fail with it, too.


def _check_sizes(recording: Recording) -> None:
    """Raises NotSavedError if the recorded calls depend on the size of an open dimension."""
    for size in (None, 1, 2, 3):
        arguments = recording.trial_arguments(False) if size is None else _with_size(recording, size)
        try:
            _native.trace_only(lambda *given: recording.replay(given), *arguments)
        except ChangedError as error:
            reason = str(error).strip() or "a call gives another number of results"
            text = f"its code depends on the size of an open dimension: {reason}"
            raise NotSavedError(f"{text}\n  help: give the argument a known size in its TensorSpec") from None
        except Exception:
            continue  # The calls are not possible for this size. The code itself would fail with it, too.


def _with_size(recording: Recording, size: int) -> Any:
    """The arguments of a recording with this size in place of open ones. Tensors of an unknown rank keep theirs."""
    shapes = iter(recording.shapes or ())

    def placeholder(leaf: Any) -> Any:
        if not isinstance(leaf, _native.Tensor):
            return leaf
        shape, own = next(shapes), sizes(leaf)
        dims = own if shape.rank is None else [size if dim is None else dim for dim in shape]
        return _native.placeholder(leaf.dtype, list(dims))

    return changed(recording.arguments, placeholder)


class Program:
    """Recorded calls that were loaded."""

    # Without a `__dict__`, in which checkpoints would look for variables.
    __slots__ = ("data", "decoder")

    def __init__(self, data: dict, decoder: Decoder) -> None:
        self.data, self.decoder = data, decoder

    def replay(self, arguments: Any) -> Any:
        """Makes the calls with these arguments, and returns their result."""
        with replaying(True):
            return self._run(self.data, arguments, _Results())

    def _run(self, data: dict, arguments: Any, results: _Results) -> Any:
        self._bind(data["arguments"], arguments, results)
        for entry in data["calls"]:
            if "observed" in entry:
                self._check(entry, results)
            else:
                self._call(entry, results)
        return self._value(data["result"], results)

    def _value(self, data: Any, results: _Results) -> Any:
        return self.decoder.value(data, results.find, lambda programs: self._body(programs, results))

    def _body(self, programs: list[dict], results: _Results) -> Callable:
        # A body that is traced several times makes the same calls each time.
        rest, last = iter(programs), None

        def call(*args: Any) -> Any:
            nonlocal last
            last = next(rest, last)
            if last is None:
                raise ChangedError("a branch or loop has no recorded calls")
            return self._run(last, args, _Results(results))

        return call

    def _call(self, entry: dict, results: _Results) -> None:
        function = self._value(entry["call"], results)
        args = [self._value(one, results) for one in entry["args"]]
        kwargs = {name: self._value(one, results) for name, one in entry["kwargs"]}
        check_call(function, kwargs)
        _native.set_replayed_line(*entry["at"])
        try:
            if not _native.is_recording_calls():
                made = function(*args, **kwargs)
            elif any(map(_has_body, entry["args"])):
                made = call_with_functions(function, *args)
            else:
                made = _native.recorded_call(function, tuple(args), kwargs)
        finally:
            _native.set_replayed_line()
        self._bind(entry["result"], made, results)

    def _check(self, entry: dict, results: _Results) -> None:
        """Raises ChangedError unless a size or value that the code has read is the same."""
        array, dims = self._value(entry["observed"], results), tuple(entry["dims"])
        wanted = None if entry["value"] is None else self.decoder.value(entry["value"])
        outer = _native.set_recording(None)
        try:
            shape = tuple(array.shape)
            if len(shape) != len(dims) or any(a is not None and a != b for a, b in zip(dims, shape)):
                raise ChangedError(f"its code has read a size that is another one now (at {entry['at']})")
            if wanted is not None and not np.array_equal(
                wanted, np.asarray(array), equal_nan=wanted.dtype.kind in "fc"
            ):
                raise ChangedError(f"its code has read a value that is another one now (at {entry['at']})")
        finally:
            _native.set_recording(outer)
        if outer is not None and outer.knows(array):
            outer.observe(array, dims, wanted, entry["at"])

    def _bind(self, data: Any, made: Any, results: _Results) -> None:
        """Takes the parts of a result, or of arguments, in place of the recorded ones."""
        if not isinstance(data, (dict, list)):
            if not is_same(data, made):
                raise ChangedError(f"a call gives {made!r}, and gave {data!r} when it was saved")
            return
        kind: str
        own: Any
        kind, own = ("list", data) if isinstance(data, list) else next(iter(data.items()))
        if kind == "made":
            number, dtype = own
            if not is_made(made) or (dtype is not None and getattr(made, "dtype", None) != dtype):
                raise ChangedError(f"a call gives {made!r}, and gave {dtype or 'another object'} when it was saved")
            results.bind(number, made)
            return
        if kind in ("dict", "ordered_dict"):
            keys = [self.decoder.value(key) for key, _ in own]
            if not isinstance(made, dict) or list(made) != keys:
                raise ChangedError(f"a call gives {made!r}, and gave the keys {keys} when it was saved")
            parts, others = [part for _, part in own], list(made.values())
        elif kind in ("list", "tuple", "named_tuple", "slices"):
            parts = own[2] if kind == "named_tuple" else own
            found = None if isinstance(made, slice) else parts_of(made)
            if found is None or len(found) != len(parts) or isinstance(made, list) != (kind == "list"):
                raise ChangedError(f"a call gives {made!r}, and gave {len(parts)} parts when it was saved")
            others = found
        else:
            if not is_same(self.decoder.value(data), made):
                raise ChangedError(f"a call gives {made!r}, which is not what it gave when it was saved")
            return
        for part, other in zip(parts, others):
            self._bind(part, other, results)


def _has_body(data: Any) -> bool:
    """Whether an argument is a body of a loop or branch, or a list of these."""
    return any(map(_has_body, data)) if isinstance(data, list) else isinstance(data, dict) and "body" in data


class _Results:
    """The results of calls so far, by their numbers; in a body, also those of the calls around it."""

    def __init__(self, outer: _Results | None = None) -> None:
        self._outer, self._own = outer, {}  # type: ignore[var-annotated]

    def bind(self, number: int, value: Any) -> None:
        """Sets the result with a number."""
        self._own[number] = value

    def find(self, number: int) -> Any:
        """The result with a number."""
        if number in self._own:
            return self._own[number]
        if self._outer is None:
            raise ChangedError("a call uses a result before it is made")
        return self._outer.find(number)


class Signature:
    """What a saved function takes, and the calls that it makes for that."""

    __slots__ = ("args", "kwargs", "program")

    def __init__(self, args: tuple, kwargs: dict, program: Program) -> None:
        self.args, self.kwargs, self.program = args, kwargs, program

    def fitted(self, args: tuple, kwargs: dict, converts: bool) -> tuple[tuple, dict] | None:
        """The arguments, with tensors where the signature has some; None if they do not fit."""
        try:
            found = _fitted((args, kwargs), (self.args, self.kwargs), converts)
        except _UnfitError:
            return None
        return found[0], found[1]


class _UnfitError(Exception):
    pass


def _fitted(given: Any, wanted: Any, converts: bool) -> Any:
    if isinstance(wanted, TensorSpec):
        if isinstance(given, TensorSpec):
            fits = wanted.is_compatible_with(given)
        else:
            given = _tensor(given, wanted, converts)
            with unrecorded():
                fits = given.dtype == wanted.dtype and wanted.shape.is_compatible_with(given.shape)
        if not fits:
            raise _UnfitError
        return given
    parts, others = parts_of(wanted), parts_of(given)
    if parts is None:
        if others is not None or not is_same(wanted, given):
            raise _UnfitError
        return given
    is_dict = isinstance(wanted, dict)
    if others is None or len(parts) != len(others) or not isinstance(given, type(wanted)):
        raise _UnfitError
    if is_dict:
        if given.keys() != wanted.keys():
            raise _UnfitError
        return {key: _fitted(given[key], part, converts) for key, part in wanted.items()}
    made = [_fitted(*pair, converts) for pair in zip(others, parts)]
    return made if isinstance(wanted, list) else tuple(made)


def _tensor(given: Any, wanted: TensorSpec, converts: bool) -> Any:
    if isinstance(given, (_native.Tensor, _native.Variable)):
        return given
    if not converts and not isinstance(given, (np.ndarray, np.generic)):
        raise _UnfitError
    if isinstance(given, (float, complex)) and wanted.dtype.is_integer:
        raise _UnfitError
    try:
        return convert_to_tensor(given, None if isinstance(given, (np.ndarray, np.generic)) else wanted.dtype)
    except (TypeError, ValueError):
        raise _UnfitError from None


class LoadedFunction(Function):
    """A function of a saved model: it takes what it was traced for before it was saved."""

    def __init__(
        self,
        name: str,
        parameters: inspect.Signature,
        signatures: list[Signature],
        input_signature: Any,
        options: Mapping[str, Any],
    ) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._replay(args, kwargs)

        call.__name__ = call.__qualname__ = name
        setattr(call, "__signature__", parameters)
        self.signatures = signatures
        super().__init__(
            call, input_signature=input_signature, autograph=False, on_retrace="allow", name=name, **options
        )
        self._traces.is_recorded = False

    def _replay(self, args: tuple, kwargs: dict) -> Any:
        signature, args, kwargs = self._matching(args, kwargs)
        try:
            return signature.program.replay((args, kwargs))
        except ChangedError as error:
            text = f"this function of a saved model cannot take these arguments: {error}"
            refuse(self._name, f"{text}\n  help: save it again, with these sizes in its TensorSpecs")

    def _matching(self, args: tuple, kwargs: dict) -> tuple[Signature, tuple, dict]:
        """The signature that arguments fit, and the arguments with tensors where it has some."""
        found = self._find(args, kwargs)
        if found is None:
            self._refuse(args, kwargs)
        return found

    def _find(self, args: tuple, kwargs: dict) -> tuple[Signature, tuple, dict] | None:
        for converts in (False, True):
            for signature in self.signatures:
                found = signature.fitted(args, kwargs, converts)
                if found is not None:
                    return signature, *found
        return None

    def _refuse(self, args: tuple, kwargs: dict) -> NoReturn:
        if not self.signatures:
            text = "found zero restored functions: it had not been called when it was saved"
            refuse(self._name, f"{text}\n  help: call it before it is saved, or give it an input_signature", ValueError)
        wanted = "\n".join(f"    {_described(one.args, one.kwargs)}" for one in self.signatures)
        text = (
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"    {_described(args, kwargs)}\n  expected one of:\n{wanted}"
        )
        refuse(self._name, text, ValueError)

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        args, kwargs = super()._arguments(args, kwargs)
        if self.input_signature is not None:
            return args, kwargs
        _, args, kwargs = self._matching(args, kwargs)
        return args, kwargs

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for these arguments or TensorSpecs; without arguments, that of the only signature."""
        if not args and not kwargs and self.input_signature is None and len(self.signatures) == 1:
            return ConcreteFunction(self, self.signatures[0].args, self.signatures[0].kwargs)
        return super().get_concrete_function(*args, **kwargs)

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The functions for each signature."""
        return [ConcreteFunction(self, one.args, one.kwargs) for one in self.signatures]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self

    def __reduce__(self) -> tuple:
        raise TypeError(f"{self._name}: a function of a saved model cannot be pickled: save it in a saved model")


def _described(args: tuple, kwargs: dict) -> str:
    def one(leaf: Any) -> str:
        if isinstance(leaf, _native.Array):
            with unrecorded():
                return f"{leaf.dtype.name}{list(leaf.shape)}"
        if isinstance(leaf, TensorSpec):
            dims = "unknown rank" if leaf.shape.rank is None else list(leaf.shape)
            return f"{leaf.dtype.name}{dims}"
        return repr(leaf)

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {text(part)}" for key, part in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(text, value)) + "]"
        return one(value)

    named = [f"{name}={text(value)}" for name, value in kwargs.items()]
    return f"({', '.join([*map(text, args), *named])})"


def function_of(thing: Any) -> Function | None:
    """The function behind an object; None if it is none."""
    if type(thing) is BoundFunction:
        return thing._function
    return thing if isinstance(thing, Function) else None
