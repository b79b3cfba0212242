"""Loads saved models."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _native, _raw_ops as raw
from .._common import refuse
from .._ops.generator import Generator
from ..concrete_function import ConcreteFunction
from ..variable import Variable, VariableAggregation, VariableSynchronization
from ._encoding import Decoder, NotSavedError
from ._functions import LoadedFunction, Program, Signature
from .options import checked_load_options

FORMAT, VERSION = "taut.saved_model", 1
#: The file that says what the model consists of.
FILE = "saved_model.json"
#: The tags of every model.
TAGS = ["serve"]
_OF_TENSORFLOW = ("saved_model.pb", "saved_model.pbtxt")


class LoadedObject:
    """An object of a saved model, with the attributes that were saved."""

    def __repr__(self) -> str:
        return f"<object of a saved model: {', '.join(vars(self))}>"


class _CallableObject(LoadedObject):
    """An object of a saved model that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["__call__"](*args, **kwargs)


class Signatures(Mapping):
    """The signatures of a saved model by key."""

    def __init__(self, functions: dict[str, ConcreteFunction]) -> None:
        self._functions = functions

    def __getitem__(self, key: str) -> ConcreteFunction:
        return self._functions[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Signatures({self._functions!r})"


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a saved model: one that `tf.saved_model.save` has written, or one of TensorFlow."""
    folder = os.fspath(export_dir)
    return any(os.path.isfile(os.path.join(folder, name)) for name in (FILE, *_OF_TENSORFLOW))


def load(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """Loads what `tf.saved_model.save` has written: an object with the variables and functions of the saved one.

    Its functions take what they were traced for before they were saved, and compute the same to the last bit. `signatures`
    has the signatures by key. A SavedModel that TensorFlow has written cannot be loaded.
    """
    if _native.is_tracing():
        refuse("saved_model.load", "a model cannot be loaded inside of a traced function", AssertionError)
    checked_load_options(options)
    folder = os.fspath(export_dir)
    path = os.path.join(folder, FILE)
    if not os.path.isfile(path):
        if contains_saved_model(folder):
            text = f"{folder} holds a SavedModel of TensorFlow, whose graphs this package cannot run"
            remedy = "save the weights in TensorFlow, with model.save or as arrays, and load those"
            refuse("saved_model.load", f"{text}\n  help: {remedy}", ValueError)
        refuse("saved_model.load", f"SavedModel file does not exist at: {path}", OSError)
    document = read_tables(path)
    given = TAGS if tags is None else [tags] if isinstance(tags, str) else list(tags)
    if sorted(given) != TAGS:
        text = f"tags must be {TAGS} or None, got {given}"
        refuse("saved_model.load", text, ValueError)
    try:
        return _Reader(folder, document).root()
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        refuse("saved_model.load", f"{path} is damaged, or another version has written it: {error}", ValueError)


def read_tables(path: str) -> dict:
    """The file that says what a model consists of."""
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except (ValueError, RecursionError) as error:
            refuse("saved_model.load", f"{path} is damaged: {error}", ValueError)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse("saved_model.load", f"{path} is no saved model of this package", ValueError)
    if document.get("version") != VERSION:
        refuse("saved_model.load", f"{path} has version {document.get('version')!r}, expected {VERSION}", ValueError)
    return document


class _Reader:
    def __init__(self, folder: str, document: dict) -> None:
        path = os.path.join(folder, os.path.basename(document["tensors"]))
        if not os.path.isfile(path):
            refuse("saved_model.load", f"{path} does not exist: a part of the saved model is missing", OSError)
        found, words = _native.list_checkpoint(path)
        pairs = set(json.loads(words["complex128"]))
        values = {name: raw.complex(one[..., 0], one[..., 1]) if name in pairs else one for name, one in found}
        self._document = document
        self._variables = [_variable(one, values[f"variable_{i}"]) for i, one in enumerate(document["variables"])]
        tensors = [values[f"tensor_{i}"] for i in range(len(values) - len(self._variables))]
        self._decoder = Decoder(tensors, self._variables)
        self._objects: dict[int, Any] = {}

    def root(self) -> Any:
        """The object that was saved."""
        root = self._object(0)
        if isinstance(root, LoadedFunction | ConcreteFunction):
            made = LoadedObject()
            setattr(made, root.name, root)
            root = made
        serving = {key: self._serving(one) for key, one in self._document["signatures"].items()}
        vars(root)["signatures"] = Signatures(serving)
        return root

    def _object(self, number: int) -> Any:
        if number in self._objects:
            return self._objects[number]
        node = self._document["objects"][number]
        kind: str = node["kind"]
        made: Any
        if kind == "tuple":
            # The objects that are on the way to it cannot be part of it.
            self._objects[number] = made = tuple(self._part(*part[1:]) for part in node["parts"])
            return made
        if kind == "variable":
            made = self._variables[node["variable"]]
        elif kind == "generator":
            made = Generator.from_state([0, 0])
            made._state = self._variables[node["variable"]]
        elif kind == "function":
            made = self._function(node)
        elif kind == "object":
            is_callable = any(name == "__call__" for name, _, _ in node["parts"])
            made = _CallableObject() if is_callable else LoadedObject()
        else:
            made = [] if kind == "list" else {}
        self._objects[number] = made
        for name, what, part in node.get("parts", ()):
            value = self._part(what, part)
            if kind == "object":
                vars(made)[name] = value
            elif kind == "list":
                made.append(value)
            else:
                made[name] = value
        return made

    def _part(self, what: str, part: Any) -> Any:
        return self._object(part) if what == "object" else self._decoder.value(part)

    def _function(self, node: dict) -> Any:
        parameters = [
            inspect.Parameter(
                name,
                inspect._ParameterKind[kind],
                default=self._decoder.value(default[0]) if default else inspect.Parameter.empty,
            )
            for name, kind, *default in node["parameters"]
        ]
        signatures = [self._signature(one) for one in node["signatures"]]
        given = self._decoder.value(node["input_signature"])
        if not (given is None or type(given) is tuple):
            raise NotSavedError(f"an input signature must be a tuple, got {given!r}")
        function = LoadedFunction(node["name"], inspect.Signature(parameters), signatures, given, node["options"])
        if node["concrete"]:
            return ConcreteFunction(function, signatures[0].args, signatures[0].kwargs)
        return function

    def _signature(self, data: dict) -> Signature:
        args, kwargs = self._decoder.value(data["arguments"])
        if type(args) is not tuple or type(kwargs) is not dict:
            raise NotSavedError(f"arguments must be a tuple and a dict, got {args!r} and {kwargs!r}")
        program = {**data["program"], "calls": self._document["calls"][data["program"]["calls"]]}
        return Signature(args, kwargs, Program(program, self._decoder))

    def _serving(self, data: dict) -> ConcreteFunction:
        signature = self._signature(data)
        named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in signature.kwargs]
        function = LoadedFunction(data["name"], inspect.Signature(named), [signature], None, {})
        return ConcreteFunction(function, (), signature.kwargs)


def _variable(data: dict, value: Any) -> Variable:
    return Variable(
        value,
        trainable=data["trainable"],
        name=data["name"],
        synchronization=VariableSynchronization[data["synchronization"]],
        aggregation=VariableAggregation[data["aggregation"]],
    )
