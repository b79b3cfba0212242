"""Writes saved models."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from .. import _native, _raw_ops as raw, _trackable, dtypes
from .._common import refuse
from .._ops.generator import Generator
from ..concrete_function import ConcreteFunction
from ..function import Function
from ..module import Module
from ..open_sizes import Unnoted
from ..open_variable import OpenVariable
from ..optimizers import Optimizer
from ..replay import sizes
from ..spec import TensorSpec
from ..train import Checkpoint, make_folder
from ..type_spec import TypeSpec
from ..variable import Variable
from ._encoding import Encoder, NotSavedError, UntrackedError, dims as _dims, is_same
from ._functions import LoadedFunction, Program, changed, function_of, leaves, recorded
from ._load import FILE, FORMAT, TAGS, VERSION, LoadedObject, Signatures, read_tables
from .options import checked_save_options

#: The key of the signature of a model that has one.
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """Saves the variables and the traced functions of an object, and what its attributes hold, in a folder.

    `obj` is a `tf.Module`, a layer or model of Keras, a `tf.train.Checkpoint` or an object that `tf.saved_model.load` has
    returned. Saved are its variables, modules, layers, optimizers, lists and dicts of these, and each `tf.function`, for what
    it was called with before, or for its `input_signature`. The code of these functions is called once more, and the calls
    that it makes are written, of layers those that their code makes: the object that `load` returns needs no Python code. A
    model of Keras serves its call. What cannot be saved is an error, and then nothing is written.

    `signatures` is a function with an `input_signature`, a concrete function, or a dict of these.

    >>> import taut as tf, tempfile
    >>> model = tf.Module()
    >>> model.scale = tf.Variable(3.0)
    >>> model.apply = tf.function(lambda x: x * model.scale, input_signature=[tf.TensorSpec([None])])
    >>> folder = tempfile.mkdtemp()
    >>> tf.saved_model.save(model, folder)
    >>> tf.saved_model.load(folder).apply([1.0, 2.0]).numpy().tolist()
    [3.0, 6.0]
    """
    if _native.is_tracing():
        refuse("saved_model.save", "a model cannot be saved inside of a traced function", AssertionError)
    checked_save_options(options)
    folder = os.fspath(export_dir)
    writer = _Writer(obj)
    document = writer.document(signatures)
    _write(folder, document, writer.encoder)


def _write(folder: str, document: dict, encoder: Encoder) -> None:
    """Writes the tensors under a new name, then the file that names them, in place of the one before."""
    make_folder(folder)
    path = os.path.join(folder, FILE)
    before = None
    with contextlib.suppress(OSError, ValueError):
        before = read_tables(path).get("tensors")
    name = f"tensors-{uuid.uuid4().hex}.safetensors"
    states = [(f"variable_{i}", one) for i, one in enumerate(encoder.variables)]
    states += [(f"tensor_{i}", _native.Variable(one, False, None, None)) for i, one in enumerate(encoder.tensors)]
    pairs = [key for key, one in states if one.dtype == dtypes.complex128]
    states = [(key, _as_pairs(one) if key in pairs else one) for key, one in states]
    _native.save_checkpoint(os.path.join(folder, name), states, {"complex128": json.dumps(pairs)})
    try:
        _native.write_text(path, json.dumps({**document, "tensors": name}))
    except BaseException:
        os.remove(os.path.join(folder, name))
        raise
    if isinstance(before, str) and before.startswith("tensors-"):
        with contextlib.suppress(OSError):
            os.remove(os.path.join(folder, os.path.basename(before)))


def _as_pairs(state: Any) -> Variable:
    return Variable(raw.stack([raw.real(state), raw.imag(state)], -1), trainable=False)


class _Writer:
    """The objects and functions of a saved model, by number."""

    def __init__(self, root: Any) -> None:
        is_layer = _trackable.is_layer(root)
        if not is_layer and not isinstance(root, (Module, Checkpoint, LoadedObject)) and function_of(root) is None:
            text = f"obj must be a tf.Module, a layer or model of Keras, or a tf.train.Checkpoint, got {root!r}"
            refuse("saved_model.save", f"{text}\n  help: set it as an attribute of a tf.Module", ValueError)
        self._root = root
        while True:
            self.encoder = Encoder()
            self._nodes: list[dict] = []
            self._numbers: dict[int, int] = {}
            self._alive: list[Any] = []
            self._functions: list[tuple[int, str, Any]] = []
            self._paths: dict[int, str] = {}
            #: The calls of functions, which several signatures may share.
            self._calls: list[list] = []
            self._programs: list[tuple] = []
            self._renumbered_calls: dict[int, int] = {}
            self._add("obj", root)
            if not self._trace():
                break

    def _trace(self) -> bool:
        """Traces the functions with an input signature that have not been called: that may create variables."""
        functions = [one for _, _, one in self._functions if isinstance(one, Function) and _is_untraced(one)]
        for function in functions:
            function.get_concrete_function()
        return any(not _is_untraced(one) for one in functions)

    def document(self, signatures: Any) -> dict:
        """What is written beside the tensors."""
        for number, path, thing in list(self._functions):
            self._nodes[number].update(self._function(path, thing))
        named = self._signatures(signatures)
        variables = [
            {
                "name": self._paths.get(id(one), one._name),
                "trainable": bool(one.trainable),
                "synchronization": one.synchronization.name,
                "aggregation": one.aggregation.name,
            }
            for one in self.encoder.variables
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "tags": TAGS,
            "variables": variables,
            "calls": self._calls,
            "objects": self._nodes,
            "signatures": named,
        }

    # Objects.

    def _add(self, path: str, thing: Any) -> int:
        thing = function_of(thing) or thing
        found = self._numbers.get(id(thing))
        if found is not None:
            return found
        number = self._numbers[id(thing)] = len(self._nodes)
        node: dict = {}
        self._nodes.append(node)
        self._alive.append(thing)
        if isinstance(thing, _native.Variable):
            if type(thing) is not Variable:
                _refuse_kind(path, thing)
            node.update(kind="variable", variable=self.encoder.add_variable(thing))
        elif _trackable.is_keras_variable(thing):
            inner = thing.__taut_variable__()
            self._paths[id(inner)] = thing.path
            node.update(kind="variable", variable=self.encoder.add_variable(inner))
        elif isinstance(thing, Generator):
            node.update(kind="generator", variable=self.encoder.add_variable(thing.state))
        elif isinstance(thing, (Function, ConcreteFunction)):
            node.update(kind="function")
            self._functions.append((number, path, thing))
        elif isinstance(thing, dict):
            node.update(
                kind="dict", parts=[[_key(path, key), *self._part(path, key, part)] for key, part in thing.items()]
            )
        elif isinstance(thing, (list, tuple)):
            if type(thing) not in (list, tuple) and not isinstance(thing, list):
                _refuse_kind(path, thing)
            kind = "list" if isinstance(thing, list) else "tuple"
            node.update(kind=kind, parts=[[i, *self._part(path, i, part)] for i, part in enumerate(thing)])
        else:
            parts = [[name, "object", self._add(f"{path}.{name}", part)] for name, part in _attributes(path, thing)]
            node.update(kind="object", parts=parts)
        return number

    def _part(self, path: str, key: Any, part: Any) -> tuple[str, Any]:
        """A part of a list or dict: an object, or a plain value."""
        if part is None or isinstance(part, (bool, int, float, str)):
            return "value", self.encoder.value(part)
        if not _is_saved(f"{path}[{key!r}]", part):
            _refuse_kind(f"{path}[{key!r}]", part)
        return "object", self._add(f"{path}[{key!r}]", part)

    # Functions.

    def _function(self, path: str, thing: Any) -> dict:
        is_concrete = isinstance(thing, ConcreteFunction)
        function = thing._function if is_concrete else thing
        with _explained(path, function):
            if function._signature is None:
                raise NotSavedError("the parameters of the function are not known")
            parameters = [
                [one.name, one.kind.name, *([] if one.default is one.empty else [self.encoder.value(one.default)])]
                for one in function._signature.parameters.values()
            ]
            made: dict[str, Any] = {
                "name": function.name,
                "parameters": parameters,
                "options": self._options(function),
                "concrete": is_concrete,
            }
            if isinstance(function, LoadedFunction):
                # Its calls are known already.
                chosen = function.signatures
                if is_concrete:
                    chosen = [function._matching(thing._args, thing._kwargs)[0]]
                made["signatures"] = [self._loaded(one) for one in chosen]
            else:
                given = [(thing._args, thing._kwargs, None)] if is_concrete else signatures_of(function)
                made["signatures"] = [self._signature(function, *one) for one in given]
            signature = None if is_concrete else function.input_signature
            made["input_signature"] = None if signature is None else self.encoder.value(tuple(signature))
        return made

    def _options(self, function: Function) -> dict:
        found = {name: function._options[name] for name in ("jit_compile", "fuse", "memory_budget", "cache_bytes")}
        for name, value in found.items():
            if not (value is None or isinstance(value, (bool, int, str))):
                raise NotSavedError(f"{name} must be a number or a string to be saved, got {value!r}")
        return found

    def _signature(self, function: Function, args: tuple, kwargs: dict, shapes: Any) -> dict:
        for other, own, made in self._programs:
            if other is function and is_equal(own, (args, kwargs)):
                return made
        for leaf in leaves((args, kwargs)):
            if isinstance(leaf, Unnoted):
                raise NotSavedError(f"it was called with an argument of class {leaf.kind}, which is part of its trace")
            _check_leaf(leaf)
        recording = recorded(function._converted, args, kwargs, shapes)
        program = self.encoder.program(recording)
        self._calls.append(program["calls"])
        program["calls"] = len(self._calls) - 1
        made = {"arguments": self.encoder.value((args, kwargs)), "program": program}
        self._programs.append((function, (args, kwargs), made))
        return made

    def _loaded(self, signature: Any) -> dict:
        program, data = signature.program, signature.program.data
        number = self._renumbered_calls.get(id(data["calls"]))
        if number is None:
            number = self._renumbered_calls[id(data["calls"])] = len(self._calls)
            self._calls.append(self._renumbered(data["calls"], program))
        own = {key: self._renumbered(data[key], program) for key in ("arguments", "result")}
        arguments = self.encoder.value((signature.args, signature.kwargs))
        return {"arguments": arguments, "program": {**own, "calls": number}}

    def _renumbered(self, data: Any, program: Program) -> Any:
        """Recorded calls that were loaded, with the numbers that their variables and tensors have in the new file."""
        if isinstance(data, list):
            return [self._renumbered(part, program) for part in data]
        if not isinstance(data, dict):
            return data
        if len(data) == 1:
            ((kind, own),) = data.items()
            if kind == "variable":
                return {kind: self.encoder.variable(program.decoder.variables[own])}
            if kind in ("tensor", "array", "number"):
                return {kind: self.encoder.tensor(program.decoder.tensors[own])}
        return {key: self._renumbered(part, program) for key, part in data.items()}

    # Signatures.

    def _signatures(self, signatures: Any) -> dict:
        if signatures is None:
            return self._default_signature()
        if not isinstance(signatures, Mapping):
            signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
        made = {}
        for key, thing in signatures.items():
            if not isinstance(key, str):
                refuse("saved_model.save", f"the keys of signatures must be strings, got {key!r}", ValueError)
            concrete = _concrete(thing)
            if concrete is None:
                text = (
                    f"expected a TensorFlow function for the signature {key!r}, got {thing!r}: only `tf.functions` with an "
                    "input signature or concrete functions can be used as a signature"
                )
                refuse("saved_model.save", text, ValueError)
            path = f"signatures[{key!r}]"
            node = self._function_node(path, thing)
            with _explained(path, concrete._function):
                made[key] = _serving(concrete, node)
        return made

    def _default_signature(self) -> dict:
        """The only function of the object that can be a signature."""
        parts: list = []
        if function_of(self._root) is not None:
            parts = [self._root]
        elif _trackable.is_layer(self._root):
            from ..keras.backend.export import serving_default

            parts = [serving_default(self._root)]
        else:
            parts = [part for _, part in _attributes("obj", self._root)]
        found = []
        for part in parts:
            concrete = _concrete(part)
            if concrete is not None:
                with contextlib.suppress(NotSavedError):
                    made = _serving(concrete, self._function_node("obj", part))
                    # One without results, such as an assignment, has nothing to serve.
                    found += [made] if made["program"]["result"]["dict"] else []
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: found[0]} if len(found) == 1 else {}

    def _function_node(self, path: str, thing: Any) -> dict:
        """What is written of a function, which may be no attribute of an object."""
        count = len(self._functions)
        node = self._nodes[self._add(path, thing)]
        for number, own, one in self._functions[count:]:
            self._nodes[number].update(self._function(own, one))
        return node


def _serving(concrete: ConcreteFunction, node: dict) -> dict:
    """A signature: the calls of a function, as one of named tensors whose result is a dict of tensors."""
    specs: list[Any] = [
        leaf for leaf in leaves(concrete.structured_input_signature) if isinstance(leaf, (TypeSpec, TensorSpec))
    ]
    names = [getattr(spec, "name", None) for spec in specs]
    if not all(isinstance(spec, TensorSpec) for spec in specs) or None in names or len(set(names)) != len(names):
        raise NotSavedError(f"a signature takes tensors with names of their own, got {specs}")
    (own,) = node["signatures"]
    program = own["program"]
    inputs = [[name, one] for name, one in zip(names, _tensors(program["arguments"]))]
    encoded = [[spec.name, {"spec": [_dims(spec.shape), spec.dtype.name, spec.name]}] for spec in specs]
    return {
        "name": node["name"],
        "arguments": {"tuple": [{"tuple": []}, {"dict": encoded}]},
        "program": {
            "arguments": {"tuple": [{"tuple": []}, {"dict": inputs}]},
            "calls": program["calls"],
            "result": {"dict": _named_outputs(program["result"])},
        },
    }


def _tensors(data: Any) -> Iterator[dict]:
    """The tensors among encoded arguments, in order."""
    if isinstance(data, dict) and "made" in data:
        yield data
    elif isinstance(data, (dict, list)):
        for part in data.values() if isinstance(data, dict) else data:
            yield from _tensors(part)


def _named_outputs(data: Any) -> list:
    """The encoded result of a signature as the items of a dict."""
    if data is None:
        return []
    if isinstance(data, dict) and ("dict" in data or "ordered_dict" in data):
        (named,) = data.values()
    elif isinstance(data, list) or (isinstance(data, dict) and ("tuple" in data or "named_tuple" in data)):
        parts = data if isinstance(data, list) else data["tuple"] if "tuple" in data else data["named_tuple"][2]
        named = [[f"output_{i}", part] for i, part in enumerate(parts)]
    else:
        named = [["output_0", data]]
    for name, part in named:
        is_number = isinstance(part, (bool, int)) or (isinstance(part, dict) and not _TENSORS.isdisjoint(part))
        if not isinstance(name, str) or not is_number:
            raise NotSavedError("a signature returns a tensor, or a list, tuple or dict of tensors")
    return named


#: The kinds of encoded values that a function returns as tensors.
_TENSORS = {"result", "tensor", "variable", "array", "number", "float", "complex"}


def _filled(value: Any, rest: Iterator[Any]) -> Any:
    return changed(value, lambda leaf: next(rest) if isinstance(leaf, TensorSpec) else leaf)


def _concrete(thing: Any) -> ConcreteFunction | None:
    """The concrete function that can be a signature; None without one."""
    if isinstance(thing, ConcreteFunction):
        return thing
    function = function_of(thing)
    if function is None or function.input_signature is None:
        return None
    if isinstance(function, LoadedFunction):
        return function.get_concrete_function()
    # With the defaults of the arguments that have no specs.
    args, kwargs = function._arguments(tuple(function.input_signature), {})
    return ConcreteFunction(function, args, kwargs)


def _is_untraced(function: Function) -> bool:
    is_declared = function.input_signature is not None and not isinstance(function, LoadedFunction)
    return is_declared and not function._traces.ran_op_by_op and not function.experimental_get_tracing_count()


def signatures_of(function: Function) -> list[tuple[tuple, dict, Any]]:
    """What a function was traced for: arguments, in which TensorSpecs stand for tensors, and shapes that fit them."""
    traces = function._traces
    if traces.ran_op_by_op:
        raise NotSavedError("it runs op by op, so that it has no calls that could be saved")
    if function.input_signature is not None:
        known = [[sizes(one) for one in recording.inputs] for recording in traces._recordings]
        args, kwargs = function._arguments(tuple(function.input_signature), {})
        return [(args, kwargs, known[-1] if known else None)]
    found: list[tuple[tuple, dict, Any]] = []

    def add(args: tuple, kwargs: dict, shapes: Any) -> None:
        if not any(is_equal((args, kwargs), one[:2]) for one in found):
            found.append((args, kwargs, shapes))

    for (args, kwargs), shapes in traces.traced_for:
        if shapes is not None:
            specs = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, TensorSpec)]
            rest = iter([TensorSpec(shape, spec.dtype) for spec, shape in zip(specs, shapes)])
            open_args, open_kwargs = _filled((args, kwargs), rest)
            add(open_args, open_kwargs, [spec.shape for spec in specs])
        else:
            add(args, kwargs, None)
    for concrete in function._concrete.values():
        add(concrete._args, concrete._kwargs, None)
    return found


def is_equal(one: Any, other: Any) -> bool:
    """Whether two structures of arguments are the same signature, whatever the names of its TensorSpecs."""
    pair = list(leaves(one)), list(leaves(other))
    return len(pair[0]) == len(pair[1]) and repr(_skeleton(one)) == repr(_skeleton(other)) and all(map(_is_leaf, *pair))


def _skeleton(value: Any) -> Any:
    return changed(value, lambda _: 0)


def _is_leaf(one: Any, other: Any) -> bool:
    if isinstance(one, TensorSpec) and isinstance(other, TensorSpec):
        dims = [None if spec.shape.rank is None else list(spec.shape) for spec in (one, other)]
        return one.dtype == other.dtype and dims[0] == dims[1]
    return is_same(one, other)


def _check_leaf(leaf: Any) -> None:
    if isinstance(leaf, TensorSpec):
        if leaf.dtype == dtypes.string:
            raise NotSavedError("it takes strings, so that it runs op by op")
    elif (
        isinstance(leaf, (TypeSpec, _native.Array))
        or hasattr(type(leaf), "type_spec")
        or hasattr(type(leaf), "in_trace")
    ):
        raise NotSavedError(
            f"it takes an argument of class {type(leaf).__name__}: tensors and plain values can be saved"
        )


@contextlib.contextmanager
def _explained(path: str, function: Function) -> Iterator[None]:
    """Raises an error that names the function and its line."""
    try:
        yield
    except NotSavedError as error:
        text, _, remedy = str(error).partition("\n  help: ")
        own = inspect.unwrap(function.python_function)
        is_of_user = not (getattr(own, "__module__", None) or "").startswith(("keras.", "taut."))
        code = getattr(own, "__code__", None) if is_of_user else None
        where = "" if code is None or "\n  at " in text else f"\n  at {code.co_filename}:{code.co_firstlineno}"
        if isinstance(error, UntrackedError):
            remedy = "assign it to an attribute of the object that is saved"
            text = f"tried to export a function which references an untracked variable: {text}"
        remedy = f"\n  help: {remedy}" if remedy else ""
        kind = AssertionError if isinstance(error, UntrackedError) else ValueError
        raise kind(
            f"saved_model.save: the function {function.name} ({path}) cannot be saved: {text}{where}{remedy}"
        ) from None


# Attributes.


def _attributes(path: str, thing: Any) -> list[tuple[str, Any]]:
    """The attributes of an object that are saved: variables, functions, and what holds some."""
    if _has_named_parts(thing):
        # The constant tables of layers are constants of the calls.
        parts = [pair for pair in _trackable.parts(thing) if not hasattr(pair[1], "_taut_is_constant")]
        return [(name, part) for name, part in parts if _is_saved(f"{path}.{name}", part)]
    own = thing._objects() if isinstance(thing, Checkpoint) else vars(thing)
    if isinstance(thing, Checkpoint) and thing._counter is not None:
        own = {**own, "save_counter": thing._counter}
    own = {name: part for name, part in own.items() if name != "_restores" and not isinstance(part, Signatures)}
    found = [(name, part) for name, part in own.items() if _is_saved(f"{path}.{name}", part)]
    for name in dir(type(thing)):
        if isinstance(inspect.getattr_static(type(thing), name), Function) and name not in own:
            found.append((name, getattr(thing, name)))
    if path == "obj" and any(name == "signatures" for name, _ in found):
        text = "obj.signatures must be another attribute: that of a loaded object has its signatures"
        refuse("saved_model.save", f"{text}\n  help: rename it", ValueError)
    return found


def _is_saved(path: str, part: Any) -> bool:
    """Whether an attribute is saved. Plain values, and objects that are no modules, are not, as in TensorFlow."""
    if isinstance(part, (_native.Variable, Module, LoadedObject, Function, ConcreteFunction, Generator)):
        return True
    if isinstance(part, Checkpoint):
        return True
    if isinstance(part, OpenVariable):
        _refuse_kind(path, part)
    if function_of(part) is not None:
        return True
    if _trackable.is_keras_variable(part):
        return _trackable.variable_of(part) is not None
    if _has_named_parts(part):
        return True
    if isinstance(part, (dict, list)) and not part:
        return True
    if isinstance(part, dict):
        return True in [_is_saved(f"{path}[{key!r}]", one) for key, one in part.items()]
    if isinstance(part, (list, tuple)):
        return True in [_is_saved(f"{path}[{i}]", one) for i, one in enumerate(part)]
    module = type(part).__module__ or ""
    if (module.startswith("taut") and _trackable.holds_states(part)) or module.startswith("taut.data"):
        _refuse_kind(path, part)
    return False


def _has_named_parts(thing: Any) -> bool:
    """Whether it is an object of Keras or an optimizer, whose parts have the names that checkpoints give them."""
    is_of_keras = (type(thing).__module__ or "").startswith("keras.")
    is_known = is_of_keras and (isinstance(getattr(thing, "variables", None), list) or hasattr(thing, "state"))
    return _trackable.is_layer(thing) or isinstance(thing, Optimizer) or is_known


def _key(path: str, key: Any) -> Any:
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        refuse("saved_model.save", f"the keys of {path} must be strings or integers, got {key!r}", ValueError)
    return key


def _refuse_kind(path: str, thing: Any) -> NoReturn:
    hint = "leave it out of the object; tf.train.Checkpoint saves states of every kind"
    _refuse(path, f"of class {type(thing).__name__}", hint)


def _refuse(path: str, what: str, hint: str) -> NoReturn:
    text = f"{path} is {what}, which a saved model cannot hold\n  help: {hint}"
    refuse("saved_model.save", text, ValueError)
