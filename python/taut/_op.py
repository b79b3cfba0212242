"""Signatures and documentation of op handles, from the op table."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from . import _native

#: The annotation of each kind of parameter in the op table.
ANNOTATIONS = {
    "Tensor": "TensorLike",
    "Operand": "TensorLike",
    "Tensors": "Sequence[TensorLike]",
    "Int": "int",
    "Ints": "IntsLike",
    "Pairs": "TensorLike",
    "Float": "float",
    "Scalar": "float",
    "Bool": "bool",
    "DType": "DTypeLike",
    "Str": "str",
}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def signature(op: _native.Op) -> inspect.Signature:
    """The parameters of an op with their defaults, and `name`, which every function of TensorFlow has."""
    found: list[inspect.Parameter] = []
    for name, kind, text in op.params:
        default = inspect.Parameter.empty if text is None else _value(text)
        # Python does not allow a required parameter after an optional one.
        if text is None and any(before.default is not before.empty for before in found):
            default = None
        annotation = f"{ANNOTATIONS[kind]} | None" if text == "None" else ANNOTATIONS[kind]
        place = inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(inspect.Parameter(name, place, default=default, annotation=annotation))
    if not any(parameter.name == "name" for parameter in found):
        found.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"))
    return inspect.Signature(found)


def restored(name: str, public: str, params: list[str]) -> _native.Op:
    """The op of a pickle: under a public name and with these parameter names."""
    return _native.Op(name, public, params)


def _reduce(op: _native.Op) -> tuple[Any, tuple[str, str, list[str]]]:
    return restored, (op.op, op.__name__, [name for name, *_ in op.params])


def _config(self: _native.Op) -> dict[str, Any]:
    """What Keras saves of an op."""
    return {"name": self.op, "public": self.__name__, "params": [name for name, *_ in self.params]}


def _from_config(config: dict[str, Any]) -> _native.Op:
    """The op that Keras has saved."""
    return restored(**config)


setattr(_native.Op, "get_config", _config)
setattr(_native.Op, "from_config", staticmethod(_from_config))
setattr(_native.Op, "__copy__", lambda self: self)
setattr(_native.Op, "__deepcopy__", lambda self, memo: self)
setattr(_native.Op, "__reduce__", _reduce)
setattr(_native.Op, "__doc__", property(lambda self: self.doc))
setattr(_native.Op, "__signature__", property(signature))
setattr(_native.Op, "__module__", "taut")
