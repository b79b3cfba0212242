"""tf.print: values at the time when the program runs."""

import collections
import sys

import numpy as np
import pytest

import taut as tf


def test_at_once(capsys):
    tf.print("x =", tf.constant([1.0, 2.5]), [tf.constant(3), "a"], {"k": tf.constant(True)}, sep="|")
    shown = capsys.readouterr()
    assert shown.err == "x =|[1 2.5]|[3, 'a']|{'k': 1}\n"
    assert shown.out == ""
    tf.print(tf.range(100), summarize=2)
    assert capsys.readouterr().err == "[0 1 ... 98 99]\n"
    tf.print(tf.range(5), summarize=-1, end="")
    assert capsys.readouterr().err == "[0 1 2 3 4]"


def test_in_a_function_at_every_call_and_in_order(capsys):
    @tf.function
    def f(x):
        tf.print("before", x, output_stream=sys.stdout)
        y = tf.transpose(x) * 2.0
        tf.print("after", [y, 7], output_stream=sys.stdout, sep="|", end=".\n")
        return y

    f(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    f(tf.constant([[0.0, 0.5], [0.0, 0.0]]))
    assert f.trace_count == 1
    assert capsys.readouterr().out == (
        "before [[1 2]\n [3 4]]\nafter|[[[2 6]\n [4 8]], 7].\nbefore [[0 0.5]\n [0 0]]\nafter|[[[0 0]\n [1 0]], 7].\n"
    )


def test_the_order_is_that_of_the_program_where_another_needs_less_memory(capsys):
    @tf.function
    def f(x, v):
        large = [tf.tile(x + float(i), [1000]) for i in range(6)]
        for i, one in enumerate(large):
            tf.print(i, tf.reduce_max(one), output_stream=sys.stdout)
        for i in tf.range(1):
            tf.print("loop", i, output_stream=sys.stdout)
        for i, one in reversed(list(enumerate(large))):
            tf.print(i, tf.reduce_min(one), output_stream=sys.stdout)
        v.assign(x)

    f(tf.constant([1.0]), tf.Variable([0.0]))
    lines = capsys.readouterr().out.split("\n")
    assert lines == [*(f"{i} {i + 1}" for i in range(6)), "loop 0", *(f"{i} {i + 1}" for i in range(5, -1, -1)), ""]


def test_in_loops_and_only_in_the_branch_that_is_taken(capsys):
    @tf.function
    def f(n):
        for i in tf.range(n):
            if i % 2 == 0:
                tf.print("even", i, output_stream=sys.stdout)
            else:
                tf.print("odd", i, output_stream=sys.stdout)

    f(tf.constant(3))
    assert capsys.readouterr().out == "even 0\nodd 1\neven 2\n"


def test_the_first_and_last_elements(capsys):
    f = tf.function(lambda x: tf.print(x, summarize=2))
    f(tf.range(10))
    f(tf.range(10))
    assert capsys.readouterr().err == "[0 1 ... 8 9]\n" * 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint64", "bool"])
def test_every_type(capsys, dtype):
    @tf.function
    def f(x):
        tf.print(x, tf.zeros([0], x.dtype) if not tf.executing_eagerly() else None)

    f(tf.cast(tf.constant([1, 0]), dtype))
    assert capsys.readouterr().err == "[1 0] []\n"


def test_what_a_stream_raises_reaches_the_caller():
    class Full:
        def write(self, text):
            raise OSError("no space left")

    f = tf.function(lambda x: tf.print(x, output_stream=Full()))
    with pytest.raises(OSError, match="no space left"):
        f(tf.constant(1.0))


def test_gradients_go_past_it(capsys):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            tf.print(y)
        return tape.gradient(y, x)

    assert float(f(tf.constant(3.0))) == 6.0
    assert capsys.readouterr().err == "9\n"


def test_a_file_is_appended_to(tmp_path):
    # As TensorFlow's "file:///path/to/somewhere".
    path = tmp_path / "printed"
    write = tf.function(lambda x: tf.print("x", x, output_stream=f"file://{path}"))
    write(tf.constant(1))
    write(tf.constant(2))
    tf.print("end", output_stream=f"file://{path}")
    assert path.read_text() == "x 1\nx 2\nend\n"
    with pytest.raises(ValueError, match="output_stream"):
        tf.print("x", output_stream="nowhere")


TEXTS = {
    "a string alone": (lambda: [tf.constant("s")], "s"),
    "strings beside others": (lambda: ["x", tf.constant("é"), [tf.constant("z")]], 'x "é" ["z"]'),
    "a vector of strings": (lambda: [tf.constant(["s", 'a"b', "\n"])], r'["s" "a\"b" "\n"]'),
    "a matrix of strings": (lambda: [tf.constant([["a", "b"], ["c", "d"]])], '[["a" "b"]\n ["c" "d"]]'),
    "values of Python": (
        lambda: [["a", 1, 2.5, None, True], {"b": tf.constant(1), "a": "v"}],
        "['a', 1, 2.5, None, True] {'a': 'v', 'b': 1}",
    ),
    "arrays of NumPy": (lambda: [np.array([1.5, 2.0])], "array([1.5, 2. ])"),
    "ragged": (lambda: [tf.ragged.constant([[1, 2], [3]])], "[[1, 2], [3]]"),
    "ragged floats": (lambda: [tf.ragged.constant([[1.5], [], [1 / 3]])], "[[1.500000], [], [0.333333]]"),
    "ragged strings": (lambda: [tf.ragged.constant([["a"], ["b", "c"]])], "[['a'], ['b', 'c']]"),
    "ragged rows": (lambda: [tf.ragged.constant([[*range(10)]])], "[[0, 1, 2, ..., 7, 8, 9]]"),
    "sparse": (
        lambda: [tf.SparseTensor([[0, 1]], [5.0], [1, 2])],
        "'SparseTensor(indices=[[0 1]], values=[5], shape=[1 2])'",
    ),
    "floats": (lambda: [tf.constant([1e-8, 1e6, 1234567.0, 1 / 3, -0.0])], "[1e-08 1e+06 1234567 0.333333343 -0]"),
    "doubles": (lambda: [tf.constant([1e6, 1 / 3, 0.3], tf.float64)], "[1000000 0.33333333333333331 0.3]"),
    "halves": (lambda: [tf.constant([1.5, 0.1], tf.float16)], "[1.5 0.0999755859]"),
    "booleans": (lambda: [tf.constant([True, False])], "[1 0]"),
    "a named tuple": (lambda: [Pair(tf.constant(1), 2)], "Pair(a=1, b=2)"),
}

Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_tensorflows(name, capsys):
    make, text = TEXTS[name]
    tf.print(*make(), summarize=3 if "rows" in name else -1)
    assert capsys.readouterr().err == text + "\n"
    tf.function(lambda: tf.print(*make(), summarize=3 if "rows" in name else -1))()
    assert capsys.readouterr().err == text + "\n"


def test_ragged_tensors_of_a_function(capsys):
    @tf.function
    def f(values):
        ragged = tf.RaggedTensor.from_row_splits(values, [0, 1, 3])
        tf.print("r", [ragged, values[0]])

    f(tf.constant([1, 2, 3]))
    f(tf.constant([4, 5, 6]))
    assert capsys.readouterr().err == "r [[[1], [2, 3]], 1]\nr [[[4], [5, 6]], 4]\n"
