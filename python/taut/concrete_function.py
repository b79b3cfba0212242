"""Traced functions for one signature."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, dtypes, nest
from .errors import DTypeError, DynamicShapeError
from .open_sizes import trying_sizes
from .ragged_tensor import RaggedTensor, RaggedTensorSpec
from .shape import TensorShape
from .sparse_tensor import SparseTensor
from .spec import TensorSpec
from .tensor import convert_to_tensor
from .trial_sizes import Sizes, first_fit, others
from .type_spec import SparseTensorSpec, VariableSpec, is_of_parts

if TYPE_CHECKING:
    from .function import Function


def placeholders(value: Any) -> Any:
    """Tensors without values in place of TensorSpecs."""
    return nest.map_structure(lambda leaf: leaf.placeholder() if isinstance(leaf, TensorSpec) else leaf, value)


def traced_specs(function: Callable, args: tuple, kwargs: dict) -> Any:
    """The result of a function for arguments given as TensorSpecs, as TensorSpecs. Nothing is computed."""
    shapes = _shapes((list(args), kwargs))
    if all(shape.is_fully_defined() for shape in shapes):
        return _traced_specs(function, args, kwargs)

    def at(sizes: Sizes) -> Any:
        given, named = _sized((list(args), kwargs), sizes)
        return _traced_specs(function, given, named)

    def merged(one: Any, other: Any) -> Any:
        return one.most_specific_compatible_type(other) if isinstance(one, TensorSpec) else one

    # A size that differs between two traces is unknown in the result.
    sizes, found = first_fit(shapes, at, DynamicShapeError)
    *longer, last = others(shapes, sizes)
    for other in longer:
        with contextlib.suppress(ValueError, TypeError):
            return nest.map_structure(merged, found, at(other))
    return nest.map_structure(merged, found, at(last))


def _shapes(arguments: Any) -> list[TensorShape]:
    return [leaf.shape for leaf in nest.flatten(arguments) if isinstance(leaf, TensorSpec)]


def _sized(arguments: Any, sizes: Sizes) -> Any:
    """Arguments whose TensorSpecs have these sizes."""
    given = iter(sizes)
    return nest.map_structure(
        lambda leaf: TensorSpec(next(given), leaf.dtype) if isinstance(leaf, TensorSpec) else leaf, arguments
    )


def _traced_specs(function: Callable, args: Any, kwargs: dict) -> Any:
    with trying_sizes():
        made = _native.trace_only(function, *placeholders(list(args)), **placeholders(kwargs))
    return nest.map_structure(
        lambda leaf: TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, _native.Array) else leaf, made
    )


def as_spec(leaf: Any) -> Any:
    """The specification in place of a tensor, also of a ragged or sparse one. Variables belong to the signature themselves."""
    if isinstance(leaf, _native.Tensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf, RaggedTensor):
        return RaggedTensorSpec.from_value(leaf)
    return SparseTensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, SparseTensor) else leaf


def signature_key(arguments: Any, by_identity: bool) -> Any:
    """What two calls with one signature have in common; None if an argument cannot be compared by its value. Variables are
    compared by identity, or by their specs and by which are the same.
    """
    parts: list[tuple] = []
    numbers: list[int] = []
    for leaf in nest.flatten(arguments):
        if isinstance(leaf, TensorSpec):
            parts.append((TensorSpec, leaf.dtype.name, leaf.shape))
        elif isinstance(leaf, _native.Variable):
            numbers.append(leaf.id)
            spec = (leaf.dtype.name, tuple(leaf.shape), leaf.trainable, numbers.index(leaf.id))
            parts.append((type(leaf), leaf.id if by_identity else spec))
        elif leaf is None or isinstance(leaf, (bool, int, float, str, bytes)) or is_of_parts(leaf):
            parts.append((type(leaf), leaf))
        else:
            return None
    return repr(nest.map_structure(lambda _: 0, arguments)), tuple(parts)


#: Arguments of these types are compared by their values.
_COMPARABLE = (type(None), bool, int, float, complex, str, bytes)


def _has_specs(argument: Any) -> bool:
    return any(isinstance(leaf, TensorSpec) or is_of_parts(leaf) for leaf in nest.flatten(argument))


def _is_of_strings(leaf: Any) -> bool:
    return isinstance(leaf, TensorSpec) and leaf.dtype == dtypes.string


def _fitted(given: Any, wanted: Any) -> Any:
    """An argument with tensors where the signature has TensorSpecs. Raises an error if it has another structure or type."""
    if isinstance(wanted, TensorSpec):
        if isinstance(given, (_native.Array, TensorSpec)):
            return given
        if isinstance(given, (float, complex)) and wanted.dtype.is_integer:
            raise TypeError(f"expected {wanted}, got {given!r}")
        try:
            return convert_to_tensor(given, wanted.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"expected {wanted}, got {given!r}: {error}") from None
    if not isinstance(wanted, (dict, list, tuple)):
        return given
    if not isinstance(given, type(wanted)) and not isinstance(wanted, type(given)):
        raise TypeError(f"expected an argument of type {type(wanted).__name__}, got {type(given).__name__}")
    if isinstance(wanted, dict):
        if given.keys() != wanted.keys():
            raise TypeError(f"expected the keys {list(wanted)}, got {list(given)}")
        made = copy.copy(given)
        made.update((key, _fitted(part, wanted[key])) for key, part in given.items())
        return made
    if len(given) != len(wanted):
        raise TypeError(f"expected {len(wanted)} elements, got {len(given)}")
    parts = [_fitted(*pair) for pair in zip(given, wanted)]
    return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)


class _Names:
    """Names the specs of arguments after their parameters, and numbers the variables among them."""

    def __init__(self) -> None:
        self._variables: list[int] = []

    def spec(self, argument: Any, name: str) -> Any:
        """An argument whose specs have the names of its parameter and of their place in it: `name_key_0`."""
        if isinstance(argument, TensorSpec):
            return TensorSpec(argument.shape, argument.dtype, argument.name or name or None)
        if isinstance(argument, _native.Variable):
            return self._variable(argument)
        if hasattr(type(argument), "type_spec"):
            return argument.type_spec()
        if isinstance(argument, dict):
            return {key: self.spec(part, f"{name}_{key}") for key, part in argument.items()}
        if isinstance(argument, (list, tuple)) and not hasattr(argument, "_fields"):
            return type(argument)(self.spec(part, f"{name}_{i}") for i, part in enumerate(argument))
        return argument

    def _variable(self, variable: Any) -> VariableSpec:
        if variable._id not in self._variables:
            self._variables.append(variable._id)
        number = self._variables.index(variable._id)
        return VariableSpec(variable.shape, variable.dtype, variable.trainable, number)


#: Attributes of TensorFlow's concrete functions that tell of its graphs.
_OF_GRAPHS = ("function_def", "function_type", "graph", "inference_fn")


class ConcreteFunction:
    """A function for arguments of given types and shapes."""

    def __init__(self, function: Function, args: tuple, kwargs: dict) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        self._outputs: Any = None
        specs = [leaf for leaf in nest.flatten([args, kwargs]) if isinstance(leaf, TensorSpec)]
        self._plan: _native.Plan | None = None
        self._no_plan: Exception = ValueError(
            "a plan needs all sizes: call `plan` of the function itself with known sizes"
        )
        #: With open dimensions, the function of the tensors alone, traced once for all sizes.
        self._open: Function | None = None
        self._sizes: Sizes | None = None
        if any(is_of_parts(leaf) or _is_of_strings(leaf) for leaf in nest.flatten([args, kwargs])):
            # Sizes of rows and strings are known only from a value: the first call traces.
            pass
        elif all(spec.shape.is_fully_defined() for spec in specs):
            try:
                self._plan = function.plan(*args, **kwargs)
            except DynamicShapeError as reason:
                self._no_plan = reason
        else:
            has_signature = function.input_signature is not None
            self._open = function if has_signature else function._of_tensors(args, kwargs, specs)
            if not self._open.experimental_get_tracing_count():
                self._trace()

    def _trace(self) -> None:
        """Traces for a size in place of open ones. If that is not possible, the first call traces."""
        assert self._open is not None
        try:
            self._trial_arguments()
        except Exception:
            # The traces of the function itself are its own.
            if self._open is not self._function:
                self._open.forget()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function; raises TypeError if the arguments do not fit. Arguments that are no tensors may be left out."""
        args, kwargs = self._converted(*self._complete(args, kwargs))
        self._check(args, kwargs)
        if self._open is not None and self._open is not self._function:
            leaves = zip(nest.flatten([args, kwargs]), nest.flatten([self._args, self._kwargs]))
            return self._open(*(given for given, wanted in leaves if isinstance(wanted, TensorSpec)))
        return self._function(*args, **kwargs)

    def _trial_arguments(self) -> list:
        """The arguments of the function with open dimensions, with sizes in place of those for which it can be traced."""
        assert self._open is not None
        wanted = list(self._open.input_signature)
        if self._sizes is None:

            def work(sizes: Sizes) -> Any:
                return _traced_specs(self._open._traced, _sized(wanted, sizes), {})  # type: ignore[union-attr]

            self._sizes = first_fit(_shapes(wanted), work, DynamicShapeError)[0]
        return _sized(wanted, self._sizes)

    def _complete(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments in the order of the signature, with those that were left out. Those that do not fit it are
        taken for its tensors, in order or by the names of their TensorSpecs.
        """
        try:
            return self._bound(args, kwargs)
        except TypeError:
            flat = self._flat(args, kwargs)
            if flat is None:
                raise
            return flat

    def _flat(self, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """The arguments made of their tensors alone; None if those are not as many, or have other names."""
        own, named = self.structured_input_signature
        specs = [leaf for leaf in nest.flatten([own, named]) if _has_specs(leaf)]
        names = [getattr(spec, "name", None) for spec in specs]
        rest = [kwargs[name] for name in names[len(args) :] if name in kwargs]
        if len(args) + len(rest) != len(specs) or len(rest) != len(kwargs):
            return None
        given = iter([*args, *rest])

        def filled(leaf: Any) -> Any:
            return next(given) if _has_specs(leaf) else leaf

        positional, by_name = nest.map_structure(filled, (list(self._args), self._kwargs))
        return tuple(positional), by_name

    def _bound(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments in the order of the signature, with those that were left out."""
        is_bound = [not _has_specs(arg) for arg in self._args]
        takes_names = any(map(_has_specs, self._kwargs.values()))
        if any(is_bound) and len(args) == len(self._args) - sum(is_bound) and not kwargs and not takes_names:
            given = iter(args)
            return tuple(own if bound else next(given) for own, bound in zip(self._args, is_bound)), self._kwargs
        signature = self._function._signature
        if signature is None or (len(args) == len(self._args) and not kwargs and not self._kwargs):
            return args, kwargs
        named = signature.bind_partial(*args, **kwargs)
        for name, own in signature.bind(*self._args, **self._kwargs).arguments.items():
            if name not in named.arguments and not _has_specs(own):
                named.arguments[name] = own
        found = signature.bind(*named.args, **named.kwargs)
        return found.args, found.kwargs

    def _converted(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments with tensors of the signature's types in place of numbers, strings and arrays. Raises TypeError if
        their structure is not that of the signature, whose trace is the only one that may run.
        """
        try:
            return _fitted(args, self._args), _fitted(kwargs, self._kwargs)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self._function._name}: {error}") from None

    def _check(self, args: tuple, kwargs: dict) -> None:
        """Raises TypeError for arguments that do not fit the signature."""
        for given, wanted in zip(nest.flatten([args, kwargs]), nest.flatten([self._args, self._kwargs])):
            if is_of_parts(wanted):
                if not wanted.is_compatible_with(given):
                    raise TypeError(f"{self._function._name}: expected {wanted}, got {given!r}")
            elif not isinstance(wanted, TensorSpec):
                self._check_bound(given, wanted)
            elif isinstance(given, _native.Array) and not wanted.is_compatible_with(given):
                found = TensorSpec.from_tensor(given)
                raise DTypeError(f"{self._function._name}: expected {wanted}, got {found}")

    def _check_bound(self, given: Any, wanted: Any) -> None:
        """Raises TypeError for another value than that of the signature."""
        if given is wanted or hasattr(type(wanted), "in_trace"):
            return
        if isinstance(wanted, _native.Variable) and isinstance(given, _native.Variable):
            specs = [VariableSpec.from_value(one) for one in (wanted, given)]
            if specs[0] != specs[1]:
                raise TypeError(f"{self._function._name}: expected {specs[0]}, got {specs[1]}")
        if isinstance(wanted, _COMPARABLE):
            is_same = isinstance(given, (*_COMPARABLE, np.generic)) and bool(given == wanted)
        elif self._open is None or self._open is self._function:
            # The function has other traces for other arrays, variables and objects.
            is_same = True
        else:
            is_same = not isinstance(wanted, _native.Variable) and np.array_equal(given, wanted)
        if not is_same:
            raise TypeError(
                f"{self._function._name}: expected {wanted!r}, which is part of the signature, got {given!r}\n"
                "  help: call the function itself, which is traced for each value"
            )

    @property
    def plan(self) -> _native.Plan:
        """The plan of a call."""
        if self._plan is None:
            raise self._no_plan
        return self._plan

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._function._name

    @property
    def structured_input_signature(self) -> tuple[tuple, dict]:
        """The positional and the named arguments, with TensorSpecs for tensors, which have the names of the parameters, and the
        specs of variables, datasets and iterators.
        """
        names = _Names()
        signature = self._function._signature
        parameters = [] if signature is None else list(signature.parameters.values())
        named = [own.name for own in parameters if own.kind in (own.POSITIONAL_ONLY, own.POSITIONAL_OR_KEYWORD)]
        rest = next((own.name for own in parameters if own.kind is own.VAR_POSITIONAL), "args")
        named += [f"{rest}_{i}" for i in range(len(self._args) - len(named))]
        args = tuple(names.spec(arg, name) for arg, name in zip(self._args, named))
        return args, {name: names.spec(arg, name) for name, arg in self._kwargs.items()}

    @property
    def output_shapes(self) -> Any:
        """The shapes of the results."""
        return nest.map_structure(lambda leaf: getattr(leaf, "shape", leaf), self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The element types of the results."""
        return nest.map_structure(lambda leaf: getattr(leaf, "dtype", leaf), self.structured_outputs)

    @property
    def inputs(self) -> list[TensorSpec]:
        """The tensor arguments, as TensorSpecs, then the variables that the function uses, as those of their values."""
        given = [leaf for leaf in nest.flatten([self._args, self._kwargs]) if isinstance(leaf, TensorSpec)]
        return given + [TensorSpec(one.shape, one.dtype) for one in self.variables]

    @property
    def structured_outputs(self) -> Any:
        """The results, with TensorSpecs for tensors."""
        if self._outputs is None:
            if self._open is not None:
                self._outputs = (traced_specs(self._open._traced, tuple(self._open.input_signature), {}),)
            else:
                self._outputs = (traced_specs(self._function._traced, self._args, self._kwargs),)
        return self._outputs[0]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The results, as a flat list of TensorSpecs."""
        return [leaf for leaf in nest.flatten(self.structured_outputs) if isinstance(leaf, TensorSpec)]

    @property
    def variables(self) -> tuple:
        """The variables that the function reads or writes without being given them; all of them, if it depends on which
        variables it is given.
        """
        if self._open is not None:
            return tuple(self._open._native.captured_variables(*placeholders(self._trial_arguments())))
        args, kwargs = placeholders(list(self._args)), placeholders(self._kwargs)
        return tuple(self._function._native.captured_variables(*args, **kwargs))

    def captures(self, variables: list) -> bool:
        """Whether it uses one of these variables without being given it, or depends on which variables it is given."""
        if self._plan is None:
            # With open dimensions, or op by op, there is no one trace to ask.
            return True
        ids = {one.id for one in self.variables}
        return any(one.id in ids for one in variables)

    @property
    def trainable_variables(self) -> tuple:
        """Those of its variables that are trainable."""
        return tuple(one for one in self.variables if one.trainable)

    @property
    def captured_inputs(self) -> list:
        """The variables that the function uses. Tensors from outside are constants of the trace."""
        return list(self.variables)

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _OF_GRAPHS:
            remedy = "plan.table() lists the steps of a call, and `graph` of the tf.function prints what was traced"
            text += f": there is no graph of TensorFlow\n  help: {remedy}"
        raise AttributeError(text, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name} of {self._args} {self._kwargs}>"
