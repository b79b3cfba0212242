"""What Python's tools see of ops: documentation and signatures, from the op table."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from . import _native

#: What a parameter of the op table takes, as Python writes it.
KINDS = {
    "Tensor": "TensorLike",
    "Operand": "TensorLike",
    "Tensors": "Sequence[TensorLike]",
    "Int": "int",
    "Ints": "int | Sequence[int]",
    "Pairs": "Sequence[Sequence[int]]",
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
    """The parameters of an op, with their defaults, and `name` as everywhere."""
    found: list[inspect.Parameter] = []
    for name, takes, text in op.params:
        default = inspect.Parameter.empty if text is None else _value(text)
        # One that must be given after one that may be left out: Python has no way to write that.
        if text is None and any(before.default is not before.empty for before in found):
            default = None
        annotation = f"{KINDS[takes]} | None" if text == "None" else KINDS[takes]
        found.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation))
    if not any(parameter.name == "name" for parameter in found):
        found.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"))
    return inspect.Signature(found)


def made(name: str, public: str, params: list[str]) -> _native.Op:
    """The op of a name, under a public name and with these parameter names."""
    return _native.Op(name, public, params)


def _reduced(op: _native.Op) -> tuple:
    return made, (op.op, op.__name__, [name for name, *_ in op.params])


_native.Op.__copy__ = lambda self: self
_native.Op.__deepcopy__ = lambda self, memo: self
_native.Op.__reduce__ = _reduced
_native.Op.__doc__ = property(lambda self: self.doc)
_native.Op.__signature__ = property(signature)
_native.Op.__module__ = "taut"
