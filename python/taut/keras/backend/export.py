"""Export of models: saved models of this package, and errors for other formats."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from keras.src import layers, tree
from keras.src.export.saved_model_export_archive import SavedModelExportArchive
from keras.src.utils import io_utils

import taut as tf
from taut.concrete_function import ConcreteFunction
from taut.function import Function
from taut.saved_model._functions import leaves
from taut.saved_model._load import LoadedObject
from taut.saved_model._save import save, signatures_of

#: Formats that other backends write.
OTHER_FORMATS = ("onnx", "openvino", "litert", "torch")


class ExportArchive(SavedModelExportArchive):
    """The backend's part of `keras.export.ExportArchive`: functions with the variables that they use, written as a saved model
    of this package.
    """

    def __init__(self) -> None:
        self._endpoint_names: list[str] = []
        self._endpoint_signatures: dict[str, Any] = {}
        self._tracked: list[Any] = []
        #: What is saved: its attributes are the endpoints and the collections of variables.
        self._tf_trackable: Any = LoadedObject()
        vars(self._tf_trackable).update(variables=[], trainable_variables=[], non_trainable_variables=[])

    def track(self, resource: Any) -> None:
        """Adds the variables of a layer or model to those of the archive."""
        if not isinstance(resource, layers.Layer):
            raise ValueError(
                f"Invalid resource type. Expected a layer or a model of Keras, got {resource} of class "
                f"{type(resource).__name__}. Lookup tables cannot be saved: call them before the exported function."
            )
        if not resource.built:
            raise ValueError(
                f"The layer {resource.name!r} has no variables yet. It must be built before export: call it."
            )
        self._tracked.append(resource)
        self._tf_trackable.variables += resource.variables
        self._tf_trackable.trainable_variables += resource.trainable_variables
        self._tf_trackable.non_trainable_variables += resource.non_trainable_variables

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> Any:
        """Adds a function under a name; see `keras.export.ExportArchive.add_endpoint`."""
        unknown = set(kwargs) - {"jax2tf_kwargs", "is_static"}
        if unknown:
            raise ValueError(f"Arguments not recognized: {sorted(unknown)}")
        if name in ("variables", "trainable_variables", "non_trainable_variables", "signatures"):
            raise ValueError(f"Endpoint name '{name}' is that of an attribute of the archive: choose another one.")
        if input_signature is None and isinstance(fn, Function):
            # It has its own signatures. Keras reads a list of TensorFlow's by a private name.
            if name in self._endpoint_names:
                raise ValueError(f"Endpoint name '{name}' is already taken.")
            if not signatures_of(fn):
                raise ValueError(
                    f"{fn} was not called, so that its arguments are not known: you must either provide a function that was "
                    "called, or an `input_signature`."
                )
            setattr(self._tf_trackable, name, fn)
            self._endpoint_names.append(name)
            return fn
        return super().add_endpoint(name, fn, input_signature, **kwargs)

    def _backend_add_endpoint(self, name: str, fn: Any, input_signature: Any) -> Any:
        return tf.function(fn, input_signature=input_signature, autograph=False)

    def write_out(self, filepath: Any, options: Any = None, verbose: bool = True) -> None:
        """Writes the endpoints, their variables and the collections; see `keras.export.ExportArchive.write_out`."""
        if not self._endpoint_names:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        signatures = {name: self._concrete(name) for name in self._endpoint_names}
        signatures.setdefault("serving_default", signatures[self._endpoint_names[0]])
        # Those that no layer of `track` has.
        used: dict[int, Any] = {}
        # An endpoint that runs op by op is refused when it is saved.
        with contextlib.suppress(tf.errors.DynamicShapeError):
            used = {id(one): one for concrete in signatures.values() for one in concrete.variables}
        self._tf_trackable._all_variables = list(used.values())
        save(self._tf_trackable, filepath, options=options, signatures=signatures)
        if verbose:
            endpoints = "\n\n".join(_described(name, signatures[name]) for name in self._endpoint_names)
            text = f"Saved artifact at '{filepath}'. The following endpoints are available:\n\n{endpoints}"
            io_utils.print_msg(text)

    def _concrete(self, name: str) -> ConcreteFunction:
        """The signature of an endpoint: of a function without an `input_signature`, the first one that it was called with."""
        function = getattr(self._tf_trackable, name)
        args, kwargs, _ = signatures_of(function)[0]
        if any(isinstance(one, tf.TensorSpec) and one.dtype == tf.string for one in leaves((args, kwargs))):
            raise ValueError(
                f"The endpoint {name!r} takes strings: functions of strings run op by op, so that they have no calls that "
                f"could be saved{self._string_layers()}. Export a model of numbers, and turn strings into numbers before it."
            )
        return function.get_concrete_function(*args, **kwargs)

    def _string_layers(self) -> str:
        kinds = (layers.StringLookup, layers.TextVectorization, layers.Hashing, layers.HashedCrossing)
        found = [one.name for root in self._tracked for one in root._flatten_layers() if isinstance(one, kinds)]
        return f" (layers {', '.join(map(repr, found))})" if found else ""


def serving_default(model: Any) -> Any:
    """The function that a saved Keras model serves: its call, for inputs of the shapes that it was built for."""
    from keras.src.models.functional import Functional
    from keras.src.models.sequential import Sequential

    inner = getattr(model, "_functional", None) if isinstance(model, Sequential) else model
    if isinstance(inner, Functional):
        specs = [tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), inner._inputs_struct)]
    else:
        shapes = getattr(model, "_build_shapes_dict", None) or {}
        specs = [
            tree.map_shape_structure(lambda x: tf.TensorSpec(x, model.input_dtype), one) for one in shapes.values()
        ]
    if len(specs) != 1:
        return None

    @tf.function(input_signature=specs, autograph=False)
    def serving_default(inputs: Any) -> Any:
        return model(inputs)

    return serving_default


def _described(name: str, function: ConcreteFunction) -> str:
    """The arguments, results and variables of an endpoint."""
    args, kwargs = function.structured_input_signature
    lines = [f"* Endpoint '{name}'"]
    lines += [f"  {key}: {spec}" for key, spec in [*zip(_names(function), args), *kwargs.items()]]
    lines += ["Output Type:", f"  {function.structured_outputs}", "Captures:"]
    lines += [f"  {one.name}: {tf.TensorSpec(one.shape, one.dtype)}" for one in function.variables]
    return "\n".join(lines)


def _names(function: ConcreteFunction) -> list[str]:
    signature: Any = function._function._signature
    parameters = signature.parameters.values()
    named = [one.name for one in parameters if one.kind is not one.VAR_POSITIONAL and one.kind is not one.VAR_KEYWORD]
    return [*named, *(f"args_{i}" for i in range(len(function._args) - len(named)))]


def refuse_other_formats(model: Any) -> None:
    """Makes the `export` of Keras's `Model` say, for the formats of other backends, what to do instead."""
    export = model.export

    @functools.wraps(export)
    def checked(self: Any, filepath: Any, format: str = "tf_saved_model", *args: Any, **options: Any) -> None:
        if format in OTHER_FORMATS:
            raise tf.errors.UnimplementedError(
                f"`Model.export(format={format!r})` needs a graph of TensorFlow, JAX or PyTorch, which the taut backend does "
                "not make. Use `Model.save(path)` to store the model; with another backend, `keras.models.load_model(path)` "
                "reads it, and `Model.export` exports it. `format='tf_saved_model'` writes a saved model of this package."
            )
        export(self, filepath, format, *args, **options)

    model.export = checked
