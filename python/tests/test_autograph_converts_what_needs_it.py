"""AutoGraph converts a function that needs it however it is reached, and leaves the others as they are."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import types

import pytest

import taut as tf
from taut.autograph import analysis, builtins as replaced, callees, source


def magnitude(x):
    if x > 0:
        return x
    return -x


def apply(function, x):
    return function(x)


def doubling(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) * 1.0

    return inner


class Thing:
    scale = 1.0
    choices = (magnitude,)

    def __init__(self):
        self.table = {"magnitude": magnitude}
        self.own = lambda x: x if x > 0 else -x

    def __call__(self, x):
        return x if x > 0 else -x

    def method(self, x):
        return magnitude(x) * self.scale

    @staticmethod
    def static(x):
        return magnitude(x)

    @classmethod
    def of_class(cls, x):
        return magnitude(x) * cls.scale

    @property
    def function(self):
        return magnitude

    def __getattr__(self, name):
        if name == "made":
            return magnitude
        raise AttributeError(name)


thing = Thing()
listed = [magnitude, lambda x: x if x > 0 else -x]
decorated = doubling(magnitude)
bound = functools.partial(apply, magnitude)


def functions():
    yield magnitude


def by_nested_definition(x):
    def inner(y):
        if y > 0:
            return y
        return -y

    return inner(x)


def by_nested_closure(x):
    chosen = magnitude

    def inner():
        return chosen(x)

    return inner()


def by_local_list(x):
    found = []
    found.append(magnitude)
    return found[0](x)


def by_stored_attribute(x):
    holder = types.SimpleNamespace()
    holder.call = magnitude
    return holder.call(x)


def by_module_attribute(x):
    module = tf.Module()
    module.call = magnitude
    return module.call(x)


def by_default(x, function=magnitude):
    return function(x)


def by_keyword_default(x, *, function=magnitude):
    return function(x)


def by_star(x):
    arguments = (magnitude, x)
    return apply(*arguments)


def by_keywords(x):
    return apply(**{"function": magnitude, "x": x})


def by_loop_over_functions(x):
    for function in listed:
        x = function(x)
    return x


def by_while_loop(x):
    def body(i, y):
        if y > 0:
            y = y * 1.0
        else:
            y = -y
        return i + 1, y

    return tf.while_loop(lambda i, y: i < 2, body, (0, x))[1]


def by_while_loop_with_a_default(x):
    return tf.while_loop(lambda i, y: i < 2, lambda i, y, f=magnitude: (i + 1, f(y)), (0, x))[1]


def by_import(x):
    import operator

    return operator.itemgetter(0)(listed)(x)


def by_conversion_of_a_number(x):
    return apply(lambda y: y * (1.0 if bool(y > 0) else -1.0), x)


WAYS = {
    "global": lambda x: magnitude(x),
    "method": lambda x: thing.method(x),
    "static method": lambda x: thing.static(x),
    "class method": lambda x: Thing.of_class(x),
    "method of a class": lambda x: Thing.method(thing, x),
    "attribute": lambda x: thing.own(x),
    "attribute that is made": lambda x: thing.made(x),
    "class attribute": lambda x: thing.choices[0](x),
    "dictionary": lambda x: thing.table["magnitude"](x),
    "dictionary of different kinds": lambda x: sizes["magnitude"](x),
    "dictionary method": lambda x: thing.table.get("magnitude")(x),
    "getattr": lambda x: getattr(thing, "method")(x),
    "property": lambda x: thing.function(x),
    "callable object": lambda x: thing(x),
    "partial": lambda x: bound(x),
    "partial made inside": lambda x: functools.partial(magnitude)(x),
    "decorator": lambda x: decorated(x),
    "decorator applied inside": lambda x: doubling(magnitude)(x),
    "lambda in a list": lambda x: listed[1](x),
    "argument": lambda x: apply(magnitude, x),
    "lambda as argument": lambda x: apply(lambda y: y if y > 0 else -y, x),
    "generator": lambda x: next(functions())(x),
    "generator expression": lambda x: next(magnitude(y) for y in [x]),
    "comprehension": lambda x: [function(x) for function in listed][1],
    "dict comprehension": lambda x: {k: function(x) for k, function in enumerate(listed)}[0],
    "map": lambda x: list(map(magnitude, [x]))[0],
    "map_fn": lambda x: tf.map_fn(magnitude, x[None])[0],
    "cond": lambda x: tf.cond(x > 100, lambda: x, lambda: magnitude(x)),
    "traced function": lambda x: tf.function(magnitude)(x),
    "nested definition": by_nested_definition,
    "nested closure": by_nested_closure,
    "local list": by_local_list,
    "stored attribute": by_stored_attribute,
    "module attribute": by_module_attribute,
    "default": by_default,
    "keyword default": by_keyword_default,
    "star": by_star,
    "keywords": by_keywords,
    "loop over functions": by_loop_over_functions,
    "while loop": by_while_loop,
    "while loop with a default": by_while_loop_with_a_default,
    "import": by_import,
    "conversion of a number": by_conversion_of_a_number,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_function_that_needs_conversion_is_converted_however_it_is_reached(way):
    f = tf.function(WAYS[way])
    assert [float(f(tf.constant(x))) for x in (-3.0, 2.0)] == [3.0, 2.0]
    assert f.trace_count == 1


def test_a_callee_that_the_closure_holds():
    def factory(function):
        return lambda x: function(x)

    assert float(tf.function(factory(magnitude))(tf.constant(-3.0))) == 3.0
    assert float(tf.function(factory(thing.method))(tf.constant(-3.0))) == 3.0
    assert float(tf.function(factory(lambda x: x * 2))(tf.constant(-3.0))) == -6.0


def test_a_callee_that_is_given_as_argument():
    f = tf.function(apply)
    assert float(f(magnitude, tf.constant(-3.0))) == 3.0
    assert float(f(thing, tf.constant(-3.0))) == 3.0


def test_constants_that_the_code_assigns():
    flag = None

    def f(x):
        def choose():
            nonlocal flag
            flag = x

        first = x if flag is None else magnitude(flag)
        choose()
        return first + (x if flag is None else magnitude(flag))

    traced = tf.function(f)
    assert float(traced(tf.constant(-3.0))) == 0.0
    for peer in ("one", "other", "one"):

        def g(x):
            return magnitude(x) if peer == "one" else -x

        assert float(tf.function(g)(tf.constant(3.0))) == (3.0 if peer == "one" else -3.0)


def test_datasets_convert_their_functions():
    data = tf.data.Dataset.from_tensor_slices(tf.constant([-1.0, 2.0])).map(lambda x: magnitude(x))
    assert [float(x) for x in data] == [1.0, 2.0]

    @tf.function
    def total():
        found = tf.constant(0.0)
        for x in tf.data.Dataset.from_tensor_slices(tf.constant([-1.0, 2.0])).map(lambda x: x if x > 0 else -x):
            found += x
        return found

    assert float(total()) == 3.0


def test_a_callee_that_sets_what_decides():
    flag = False

    def decide(x):
        nonlocal flag
        flag = x > 0

    @tf.function
    def f(x):
        decide(x)
        if flag:
            return x
        return -x

    assert float(f(tf.constant(-3.0))) == 3.0

    class Holder:
        flag = False

        def decide(self, x):
            self.flag = x > 0

        @tf.function
        def __call__(self, x):
            self.decide(x)
            return x if self.flag else -x

    assert float(Holder()(tf.constant(-3.0))) == 3.0


# Functions that run as they are.

weights = [tf.Variable(2.0), tf.Variable(3.0)]
names = {"first": 1.0, "second": 2.0}
settings = types.SimpleNamespace(training=True, layers=[lambda x: x * 2.0], scale=None)


def loop_over_weights(x):
    for w in weights:
        x = tf.tanh(x * w)
    return x


def loop_over_indices(x):
    for i in range(0, len(weights), 2):
        x = x * weights[i] + weights[i + 1]
        if i + 2 < len(weights):
            x = tf.nn.relu(x)
    return x


def loop_over_pairs(x):
    for k, (name, value) in enumerate(names.items()):
        x = x * value if name == "first" and k == 0 else x + value
    return x


def training_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loop_over_weights(x))
    for w, gradient in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.0 * gradient)
    return loss


def static_properties(x, scale=None, *rest, factor=2.0, **named):
    if scale is None:
        scale = 1.0
    assert isinstance(x, tf.Tensor), f"a tensor, not {x}"
    if x.dtype == tf.float32 and len(x.shape) == 0 and not named:
        x = x * (scale if settings.training else 0.0)
    while factor > 4.0:
        factor = factor - 1.0
    total = sum(value for value in names.values() if value > 1.0)
    return x * factor + total + max(1.0, 2.0) + len(rest)


def nested_functions(x):
    def twice(y, times=2):
        return y * times

    pick = lambda y: twice(y) + 1.0  # noqa: E731
    parts = [pick(part) for part in (x, x)]
    parts.append(sorted([3.0, 1.0], key=lambda value: -value)[0])
    try:
        return tf.add_n([part * 1.0 for part in parts])
    except ValueError as error:
        raise TypeError(str(error)) from error


sizes = {"layers": 2, "widths": (1.0, 2.0), "activation": tf.tanh, "magnitude": magnitude}


def items_of_different_kinds(x):
    for _ in range(sizes["layers"]):
        x = sizes["activation"](x) * sizes["widths"][1]
    return x if sizes["layers"] > 1 else -x


mode = "fast"


def branches_on_constants(x):
    if mode == "slow" or mode in ("slower", "slowest"):
        x = magnitude(x)
    elif not mode:
        for row in x:
            x = row
    return magnitude(x) if mode is None else x * 2.0


def objects(x):
    if settings.scale is None:
        x = x * thing.scale
    for layer in settings.layers:
        x = tf.identity(x)
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x))[1]


@pytest.fixture
def converted(monkeypatch):
    """The functions that were converted."""
    found = []
    original = source.factory
    monkeypatch.setattr(source, "factory", lambda *args: found.append(args[0].__name__) or original(*args))
    return found


AS_THEY_ARE = [
    loop_over_weights,
    loop_over_indices,
    loop_over_pairs,
    training_step,
    static_properties,
    nested_functions,
    items_of_different_kinds,
    branches_on_constants,
    objects,
]


@pytest.mark.parametrize("function", AS_THEY_ARE)
def test_functions_that_no_tensor_decides_run_as_they_are(function, converted):
    eager = function(tf.constant(2.0))
    assert float(tf.function(function)(tf.constant(2.0))) == pytest.approx(float(eager), rel=1e-6)
    assert converted == []


def test_only_what_needs_it_is_converted(converted):
    @tf.function
    def f(x):
        return magnitude(loop_over_weights(x))

    f(tf.constant(1.0))
    assert converted == ["f", "magnitude"]


def test_a_converted_function_is_not_analysed_again(monkeypatch):
    def f(x):
        return x if x > 0 else -x

    assert float(tf.function(f)(tf.constant(-1.0))) == 1.0
    monkeypatch.setattr(analysis, "Analysis", None)
    assert float(tf.function(f)(tf.constant(-2.0))) == 2.0


def on_a_condition(x):
    return x if x > 0 else -x


def on_an_element(x):
    for part in [x, x]:
        if part > 0:
            x = part
    return x


def on_a_result(x):
    y = tf.abs(x)
    return not y


def on_what_a_loop_makes_of_a_number(x):
    n = 0
    for w in [1, 2]:
        if n:
            x = x + 1.0
        n = x > w
    return x


def on_an_operand(x):
    return x and True


def on_rows(x):
    for row in x:
        x = x + row
    return x


def on_a_range(x):
    for _ in range(tf.cast(x, tf.int32)):
        x = x + 1.0
    return x


def on_a_chain(x):
    return 0.0 < x < 1.0


def on_a_comprehension(x):
    return [y for y in [x] if y > 0]


def on_an_assertion(x):
    assert x > 0
    return x


def on_a_walrus(x):
    if (y := x) > 0:
        return y
    return x


def on_a_container(x):
    found = {}
    found["flag"] = x > 0
    if found["flag"]:
        return x
    return -x


def on_an_extreme(x):
    return max(x, 0.0)


DECIDED_BY_TENSORS = [value for name, value in list(globals().items()) if name.startswith("on_")]


@pytest.mark.parametrize("function", DECIDED_BY_TENSORS)
def test_functions_that_a_tensor_may_decide_are_unproven(function):
    assert not analysis.runs_as_it_is(function, (tf.constant(1.0),), {})


def test_the_analysis_knows_the_functions_that_converted_code_replaces():
    assert replaced.REPLACED.keys() <= callees.SPECIAL.keys()


PROGRAM = """
import sys
import taut as tf

@tf.function
def f(x):
    for _ in range(3):
        x = tf.tanh(x) * 2.0
    return x

f(tf.constant(1.0))
assert "taut.autograph.calls" not in sys.modules
assert not any(name.partition(".")[0] == "malt" for name in sys.modules)
"""


def test_the_converter_is_imported_only_if_it_is_needed(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    subprocess.run([sys.executable, "-W", "error", str(file)], check=True)


# Where functions are in their files.

# fmt: off


def odd_ends(
    x,
    y=(
        1,
        2,
    ),
):
    z = (
        x
    )
    if not x:
        unused = 1  # noqa: F841
    # A comment.
    return [
        z,
        y,
    ]

    # Another one.


def ends_with_dead_code(x):
    return x
    if False:
        y = x  # noqa: F841


lambdas = [
    lambda x: x + 1,
    lambda x, y=(1, 2): (
        x
        + 1
    ),
    (lambda x: -(x) if x else (x)), (lambda x: not x and x),
    functools.partial(
        lambda x:
            x
            * 2,
    ).func,
]
# fmt: on


@pytest.mark.parametrize("function", [odd_ends, ends_with_dead_code, WAYS["map"], Thing.method, *lambdas, *AS_THEY_ARE])
def test_trees_are_those_of_the_file(function):
    with open(__file__, encoding="utf-8") as file:
        whole = ast.parse(file.read())
    found = source.parsed(function)
    kind = type(found)
    expected = [
        node
        for node in ast.walk(whole)
        if type(node) is kind and (node.lineno, node.col_offset) == (found.lineno, found.col_offset)
    ]
    assert [ast.dump(node, include_attributes=True) for node in expected] == [ast.dump(found, include_attributes=True)]
    assert found.lineno == function.__code__.co_firstlineno
