"""Writes the type stubs of the extension module, and of the modules whose functions are rows of the op table.

    python python/tools/stubs.py           writes them beside the modules
    python python/tools/stubs.py --check   says whether they are what it would write
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import pkgutil
import re
import sys

import taut

MODULES = ["bitwise", "boxes", "counting", "ctc", "image", "indexing", "inside", "linalg", "math", "nn", "ops", "patches", "random", "sampling", "windows"]
HEAD = '''"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any
'''


def parameter(one: inspect.Parameter) -> str:
    text = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "") + one.name
    if one.annotation is not one.empty:
        kind = one.annotation if isinstance(one.annotation, str) else getattr(one.annotation, "__name__", "Any")
        text += f": {known(kind)}"
    if one.default is not one.empty:
        text += " = ..."
    return text


def known(kind: str) -> str:
    """An annotation without the private names of the module that wrote it."""
    kind = kind.replace("_native.", "").replace("_Tensor", "Tensor")
    return "Any" if re.search(r"\b_\w+", kind) or "np." in kind else kind


def parameters(signature: inspect.Signature) -> str:
    parts, starred = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred |= one.kind is one.VAR_POSITIONAL
        parts.append(parameter(one))
    return ", ".join(parts)


def first_line(text: object) -> str:
    first = text.strip().splitlines()[:1] if isinstance(text, str) else []
    return f'"""{first[0]}"""' if first and '"""' not in first[0] and "\\" not in first[0] else "..."


def stub(module) -> str:
    from taut import _native

    lines = [HEAD]
    for name, thing in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        home = getattr(thing, "__module__", None) or ""
        if home.startswith("taut.") and home != module.__name__ and (inspect.isfunction(thing) or inspect.isclass(thing)):
            if name in getattr(module, "__all__", [name]):
                lines.append(f"from .{home.removeprefix('taut.')} import {thing.__name__} as {name}")
            continue
        if isinstance(thing, _native.Op):
            signature, result, text = inspect.signature(thing), "Any", thing.__doc__
        elif inspect.isfunction(thing) and thing.__module__ == module.__name__:
            signature, text = inspect.signature(thing), thing.__doc__
            result = signature.return_annotation
            result = known(result) if isinstance(result, str) else "Any"
        elif inspect.isclass(thing) and thing.__module__ == module.__name__:
            lines.append(
                f"class {name}:\n    def __getattr__(self, name: str) -> Any: ...\n"
                "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
            )
            continue
        else:
            continue
        body = f"    {first_line(text)}\n"
        lines.append(f"def {name}({parameters(signature)}) -> {result}:\n{body}")
    return "\n".join(lines)


# What Python's own protocols say of types.
KINDS = {"__bool__": "bool", "__int__": "int", "__float__": "float", "__len__": "int", "__index__": "int", "__hash__": "int"}
SKIPPED = {"__doc__", "__module__", "__new__", "__array_priority__"}


def native_stub() -> str:
    """The extension module: what it has, with what the package's modules add, and what that says of itself."""
    from taut import _native

    for one in pkgutil.iter_modules(taut.__path__):
        if one.name != "keras":
            importlib.import_module(f"taut.{one.name}")

    lines = [re.sub(r"from \.\w+ import .*\n", "", HEAD)]
    for name, thing in sorted(vars(_native).items()):
        if name.startswith("__"):
            continue
        if not inspect.isclass(thing):
            lines.append(f"def {name}{untyped(thing)} -> Any:\n    {first_line(thing.__doc__)}\n")
            continue
        base = next((one.__name__ for one in thing.__mro__[1:] if one.__module__ == thing.__module__), "")
        lines.append(f"class {name}{f'({base})' if base else ''}:\n    {first_line(thing.__doc__)}\n")
        lines.extend(member(one, what) for one, what in sorted(vars(thing).items()) if one not in SKIPPED)
    return "\n".join(lines)


def member(name: str, thing) -> str:
    if inspect.isgetsetdescriptor(thing):
        return f"    @property\n    def {name}(self) -> Any:\n        {first_line(thing.__doc__)}\n"
    if not callable(thing):
        return f"    {name}: Any\n"
    text = "..." if name.startswith("__") else first_line(thing.__doc__)
    return f"    def {name}{untyped(thing)} -> {KINDS.get(name, 'Any')}:\n        {text}\n"


def untyped(thing) -> str:
    """The parameters of something that tells their names."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(*args: Any, **kwargs: Any)"
    said = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    text = re.sub(r"=[^,)]+", "=...", str(signature.replace(parameters=said, return_annotation=signature.empty)))
    return text.replace("$self", "self")


def main(check: bool) -> int:
    home = pathlib.Path(__file__).resolve().parents[1] / "taut"
    stale = []
    for name in ["_native", *MODULES]:
        made = native_stub() if name == "_native" else stub(importlib.import_module(f"taut.{name}"))
        path = home / f"{name}.pyi"
        if check:
            if not path.exists() or path.read_text() != made:
                stale.append(path.name)
        else:
            path.write_text(made)
    if stale:
        print(f"out of date: {', '.join(stale)}; run python/tools/stubs.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
