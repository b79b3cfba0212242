"""tf.print: values at the time when the program runs."""

import sys

import pytest

import taut as tf


def test_at_once(capsys):
    tf.print("x =", tf.constant([1.0, 2.5]), [tf.constant(3), "a"], {"k": tf.constant(True)}, sep="|")
    shown = capsys.readouterr()
    assert shown.err == "x =|[1 2.5]|[3, a]|{'k': True}\n"
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
    want = "[True False] []\n" if dtype == "bool" else "[1 0] []\n"
    assert capsys.readouterr().err == want


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
