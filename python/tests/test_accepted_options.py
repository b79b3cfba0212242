"""Every parameter takes effect, is refused, or is listed with the reason why it has no effect."""

import ast
import pathlib

import pytest

import taut as tf
from taut._accepted import ACCEPTED

ROOT = pathlib.Path(tf.__file__).parent


def _functions(node, prefix):
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.FunctionDef):
            yield f"{prefix}.{part.name}", part
        elif isinstance(part, (ast.ClassDef, ast.If)):
            yield from _functions(part, f"{prefix}.{part.name}" if isinstance(part, ast.ClassDef) else prefix)


def _ignored():
    """By function, the parameters that its body does not read."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(("taut", *(part for part in parts if part != "__init__")))
        for name, function in _functions(ast.parse(path.read_text()), module):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            # A function that only raises an error refuses all of its arguments.
            is_overload = any(ast.unparse(one) == "overload" for one in function.decorator_list)
            if is_overload or all(isinstance(statement, ast.Raise) for statement in body):
                continue
            read = {part.id for statement in body for part in ast.walk(statement) if isinstance(part, ast.Name)}
            args = function.args
            params = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            unread = {one for one in params if one not in read and one not in ("self", "cls", "name") and one[0] != "_"}
            if unread and not function.name.startswith("__get"):
                found[name] = unread
    return found


def test_every_ignored_parameter_is_listed_and_every_row_exists():
    listed = {name: set(rows) for name, rows in ACCEPTED.items()}
    assert _ignored() == listed


def test_every_row_has_a_reason():
    assert all(reason for rows in ACCEPTED.values() for reason in rows.values())


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.random.stateless_normal([2], seed=[1, 2], alg="threefry"),
        lambda: tf.random.Generator.from_seed(1, alg="threefry"),
        lambda: tf.strided_slice(tf.range(3), [0], [2], var=tf.Variable([1])),
        lambda: tf.vectorized_map(lambda x: x, tf.range(3), fallback_to_while_loop=False),
        lambda: tf.Variable(1.0, caching_device="/CPU:0"),
        lambda: tf.data.Dataset.range(3).map(lambda x: x, num_parallel_calls=2, synchronous=True),
    ],
)
def test_options_that_cannot_take_effect_are_refused(call):
    with pytest.raises(ValueError, match="must|needs"):
        call()


def test_a_refused_option_names_value_reason_and_line():
    with pytest.raises(ValueError) as caught:
        tf.Variable(1.0, caching_device="/CPU:0")
    text = str(caught.value)
    assert text.startswith("Variable: caching_device must be None, got '/CPU:0': there is one device")
    assert "test_accepted_options.py" in text


def test_options_of_random_algorithms_that_are_philox():
    first = tf.random.stateless_uniform([3], seed=[1, 2])
    second = tf.random.stateless_uniform([3], seed=[1, 2], alg="philox")
    assert bool(tf.reduce_all(first == second))
