"""Type stubs and documentation come from the op table."""

import ast
import inspect
import pathlib
import subprocess
import sys

import taut as tf

PYTHON = pathlib.Path(__file__).resolve().parents[1]


def test_stubs_are_what_the_op_table_says():
    run = subprocess.run([sys.executable, str(PYTHON / "tools" / "stubs.py"), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_stubs_are_python():
    stubs = list((PYTHON / "taut").glob("*.pyi"))
    assert len(stubs) >= 8
    for stub in stubs:
        ast.parse(stub.read_text())


def test_every_op_has_documentation_and_a_signature():
    for name in tf._native.op_names():
        op = tf._native.Op(name)
        assert op.__doc__, name
        assert [p for p in inspect.signature(op).parameters if p != "name"] == [p for p, *_ in op.params if p != "name"]
