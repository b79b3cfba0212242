"""Type stubs and documentation agree with the op table, the surface table and the extension module."""

import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import pytest

import taut as tf
from taut import _native

PYTHON = pathlib.Path(__file__).resolve().parents[1]
TAUT = pathlib.Path(tf.__file__).parent


def test_stubs_are_up_to_date():
    run = subprocess.run(
        [sys.executable, str(PYTHON / "tools" / "stubs.py"), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_op_has_documentation_and_a_signature():
    for name in _native.op_names():
        op = _native.Op(name)
        assert op.__doc__, name
        assert [p for p in inspect.signature(op).parameters if p != "name"] == [p for p, *_ in op.params if p != "name"]


def _stub():
    return ast.parse((TAUT / "_native.pyi").read_text())


def _members(node):
    """The names that a class of the stub defines, with the parameters of functions."""
    found = {}
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            args = part.args
            names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            names += [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]
            is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in part.decorator_list)
            found[part.name] = None if is_property else names
    return found


def _parameters(function):
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def _named(name):
    return not (name.startswith("__") and name.endswith("__"))


def test_the_native_stub_has_the_functions_of_the_module():
    functions = {part.name: part for part in _stub().body if isinstance(part, ast.FunctionDef)}
    native = {name for name, value in vars(_native).items() if callable(value) and not inspect.isclass(value)}
    assert set(functions) == {name for name in native if _named(name)}
    members = _members(ast.Module(list(functions.values()), []))
    for name in functions:
        assert members[name] == _parameters(getattr(_native, name)), name


@pytest.mark.parametrize("name", sorted(name for name, value in vars(_native).items() if inspect.isclass(value)))
def test_the_native_stub_has_the_members_of_classes(name):
    importlib.import_module("taut.function")
    stub = next(part for part in _stub().body if isinstance(part, ast.ClassDef) and part.name == name)
    own, cls = _members(stub), getattr(_native, name)
    assert {one for one in own if _named(one)} == {one for one in vars(cls) if _named(one)}
    for member, parameters in own.items():
        if not _named(member) or parameters is None:
            continue
        found = _parameters(inspect.getattr_static(cls, member))
        found = _parameters(getattr(cls, member)) if found is None else found
        if found is not None:
            assert [one for one in parameters if one != "self"] == [
                one for one in found if one not in ("self", "$self")
            ]


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_typed_program_checks(tmp_path):
    # From a folder outside of the sources: the program is checked against the installed package.
    program = PYTHON / "tests" / "typed_program.py"
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_typed_program_runs():
    run = subprocess.run([sys.executable, str(PYTHON / "tests" / "typed_program.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
