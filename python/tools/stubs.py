"""Writes the type stubs of the modules whose functions are rows of the op table.

    python python/tools/stubs.py           writes them beside the modules
    python python/tools/stubs.py --check   says whether they are what it would write
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import sys

MODULES = ["bitwise", "counting", "image", "indexing", "linalg", "math", "nn", "ops", "random", "windows"]
HEAD = '''"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor

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


def stub(module) -> str:
    from taut import _native

    lines = [HEAD]
    for name, thing in sorted(vars(module).items()):
        if name.startswith("_"):
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
        first = (text or "").strip().splitlines()[:1]
        body = f'    """{first[0]}"""\n' if first and '"""' not in first[0] and "\\" not in first[0] else "    ...\n"
        lines.append(f"def {name}({parameters(signature)}) -> {result}:\n{body}")
    return "\n".join(lines)


def main(check: bool) -> int:
    home = pathlib.Path(__file__).resolve().parents[1] / "taut"
    stale = []
    for name in MODULES:
        made, path = stub(importlib.import_module(f"taut.{name}")), home / f"{name}.pyi"
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
