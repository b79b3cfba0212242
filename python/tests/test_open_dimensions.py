"""A function with open dimensions is traced once: a new size is planned, and its Python code is not called.

The numbers of traces, and the shapes that the code sees, are those of TensorFlow 2.21.
"""

import collections
import warnings

import numpy as np
import pytest

import taut as tf

OPEN = [tf.TensorSpec([None, 3])]


def ones(*shape):
    return tf.ones(shape)


class Counted:
    """A function with the number of calls of its code."""

    def __init__(self, code, **options):
        self.calls = 0

        def counted(*args):
            self.calls += 1
            return code(*args)

        self.function = tf.function(counted, **options)

    def __call__(self, *args):
        return self.function(*args)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_the_code_is_called_once_for_all_sizes():
    f = Counted(lambda x: 2.0 * x + 1.0, input_signature=OPEN)
    for size in (2, 3, 4, 1, 0):
        np.testing.assert_array_equal(f(ones(size, 3)), np.full([size, 3], 3.0))
    assert f.calls == f.function.experimental_get_tracing_count() == 1


def test_reduce_retracing_traces_twice_per_rank_as_tensorflow():
    f = Counted(lambda x: x * 2.0, reduce_retracing=True)
    counts = []
    for shape in ([2, 3], [3, 3], [4, 3], [1, 3], [7, 3], [5], [5, 5, 5], [5, 5, 5, 5]):
        np.testing.assert_array_equal(f(tf.ones(shape)), np.full(shape, 2.0))
        counts.append((f.calls, f.function.experimental_get_tracing_count()))
    assert counts == [(1, 1), (2, 2), (2, 2), (2, 2), (2, 2), (3, 3), (3, 3), (3, 3)]


def test_the_rank_may_be_open():
    seen = []

    def code(x):
        seen.append((x.shape.rank, tf.reduce_sum(x).shape))
        return tf.reduce_sum(x, keepdims=True) + 0.0 * x

    f = tf.function(code, input_signature=[tf.TensorSpec(None)])
    for shape in ([], [2], [2, 3], [1, 2, 3]):
        np.testing.assert_array_equal(f(tf.ones(shape)), np.full(shape, np.prod(shape)))
    assert seen == [(None, ())]
    assert f.experimental_get_tracing_count() == 1


def test_the_code_sees_none_for_sizes_that_are_open():
    seen = []

    @tf.function(input_signature=OPEN)
    def f(x):
        shown = (
            x,
            x * 2,
            tf.reduce_sum(x, 0),
            x[1:],
            tf.concat([x, x], 0),
            tf.reshape(x, [-1]),
            tf.matmul(x, tf.ones([3, 4])),
            tf.transpose(x),
        )
        seen.extend(one.shape.as_list() for one in shown)
        assert x.shape[0] is None and x.get_shape()[0] is None
        assert not tf.is_tensor(x.shape[1]) and x.shape[1] == 3
        return tf.shape(x)[0] + 0 * tf.cast(tf.reduce_sum(x), tf.int32)

    assert [int(f(ones(size, 3))) for size in (2, 5, 1)] == [2, 5, 1]
    assert seen == [[None, 3], [None, 3], [3], [None, 3], [None, 3], [None], [None, 4], [3, None]]
    assert f.experimental_get_tracing_count() == 1


PROGRAMS = {
    "mean": lambda x: tf.reduce_mean(x, 0),
    "count": lambda x: tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32),
    "reshape": lambda x: tf.reshape(x, [tf.shape(x)[0] * 3]) * 2.0,
    "fill": lambda x: x + tf.fill([tf.shape(x)[0], 1], 2.0),
    "zeros": lambda x: tf.concat([x, tf.zeros([tf.shape(x)[0], 2])], 1),
    "range": lambda x: x * tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None],
    "slices": lambda x: x[: tf.shape(x)[0] // 2] * 2.0,
    "last": lambda x: x[-1],
    "reversed": lambda x: tf.reverse(x, [0]) - x[::-1],
    "one_hot": lambda x: tf.one_hot(tf.argmax(x, 1), tf.shape(x)[1]),
    "attention": lambda x: tf.nn.softmax(x @ tf.transpose(x)) @ x,
    "tile": lambda x: tf.tile(x, [2, 1]),
    "pad": lambda x: tf.pad(x, [[0, 1], [1, 0]]),
    "stack": lambda x: tf.stack(tf.unstack(x, axis=1)),
    "normalise": lambda x: tf.nn.l2_normalize(x - tf.reduce_mean(x, 0), 1, 0.1),
    "softmax": lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.ones_like(x) / 3.0, x),
    "sort": lambda x: tf.sort(x, 0),
    "gather": lambda x: tf.gather(x, tf.range(tf.shape(x)[0])[::-1]),
    "size": lambda x: tf.cast(tf.size(x), tf.float32) * tf.ones_like(x),
    "eye": lambda x: tf.eye(tf.shape(x)[0]) @ x,
    "cumsum": lambda x: tf.cumsum(x),
    "variance": lambda x: tf.math.reduce_std(x, 0),
    "where": lambda x: tf.where(x > 0.0, x, -x),
    "top": lambda x: tf.math.top_k(x, 2)[0],
    "einsum": lambda x: tf.einsum("ij,ik->jk", x, x),
    "boundary": lambda x: tf.linalg.diag_part(x @ tf.transpose(x)),
    "broadcast": lambda x: tf.broadcast_to(x[:1], tf.shape(x)),
    "meshgrid": lambda x: tf.meshgrid(x[:, 0], x[:, 1])[0],
    "map": lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x),
    "vectorised": lambda x: tf.vectorized_map(lambda row: row * tf.reduce_sum(row), x),
    "scan": lambda x: tf.scan(lambda a, row: a + row, x),
    "cond": lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0),
    "while": lambda x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1],
    "ternary": lambda x: x * 2.0 if tf.reduce_sum(x) > 0.0 else x - 1.0,
    "nested": lambda x: tf.nest.map_structure(lambda y: y + 1.0, {"a": [x, x * 2.0]})["a"][1],
    "clip": lambda x: tf.clip_by_norm(x, 1.0),
    "moments": lambda x: tf.nn.moments(x, [0])[1],
    "numpy": lambda x: x * np.array([1.0, 2.0, 3.0], np.float32),
    "expand": lambda x: tf.squeeze(tf.expand_dims(x, 1), 1) + x[:, None, :][:, 0],
    "split": lambda x: tf.split(x, [1, 2], axis=1)[1],
    "cast": lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32),
    "norm": lambda x: tf.norm(x, axis=1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_op_by_op(name):
    code = PROGRAMS[name]
    f = Counted(code, input_signature=OPEN, on_retrace="deny")
    random = np.random.default_rng(1)
    for size in (4, 6, 1, 9):
        x = tf.constant(random.normal(size=[size, 3]).astype("float32"))
        np.testing.assert_allclose(f(x), code(x), rtol=2e-5, atol=2e-6)
    assert f.calls == 1


@pytest.mark.parametrize("name", ["mean", "attention", "while", "scan", "softmax", "normalise", "cond"])
def test_gradients_inside_and_around(name):
    code = PROGRAMS[name]

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(code(x)))
        return tape.gradient(y, x)

    def around(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(function(x)))
        return tape.gradient(y, x)

    f, g = Counted(inside, input_signature=OPEN), Counted(code, input_signature=OPEN)
    random = np.random.default_rng(2)
    for size in (3, 5, 1):
        x = tf.constant(random.normal(size=[size, 3]).astype("float32"))
        np.testing.assert_allclose(f(x), inside(x), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(around(g, x), inside(x), rtol=1e-4, atol=1e-5)
    assert f.calls == g.calls == 1


def test_a_training_step_for_batches_of_every_size():
    random = np.random.default_rng(3)
    start = random.normal(size=[3, 1]).astype("float32")

    def train(traced):
        w, b = tf.Variable(start), tf.Variable([0.0])
        optimizer = tf.optimizers.Adam(0.1)

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ w + b - y))
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
            return loss

        signature = [tf.TensorSpec([None, 3]), tf.TensorSpec([None, 1])]
        f = Counted(step, input_signature=signature) if traced else step
        numbers = np.random.default_rng(4)
        losses = []
        for size in (8, 8, 5, 1, 8, 3):
            x = numbers.normal(size=[size, 3]).astype("float32")
            losses.append(float(f(tf.constant(x), tf.constant(x.sum(1, keepdims=True)))))
        return losses, w.numpy(), b.numpy(), getattr(f, "calls", None)

    eager, traced = train(False), train(True)
    for one, other in zip(eager[:3], traced[:3]):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert traced[3] == 1


def test_random_numbers_are_those_of_the_code():
    def code(x):
        return x + tf.random.normal(tf.shape(x)) + tf.nn.dropout(x, 0.5)

    def run(f):
        tf.random.set_seed(7)
        return [f(ones(size, 3)).numpy() for size in (2, 4, 2)]

    f = Counted(code, input_signature=OPEN)
    for one, other in zip(run(f), run(code)):
        np.testing.assert_array_equal(one, other)
    assert f.calls == 1


def test_a_function_inside_is_not_called_again():
    inner = Counted(lambda x: tf.reduce_mean(x, 0) + 1.0)
    outer = Counted(lambda x: inner(x) * tf.reduce_sum(x), input_signature=OPEN)
    for size in (2, 4, 7):
        np.testing.assert_allclose(outer(ones(size, 3)), np.full(3, 6.0 * size))
    assert inner.calls == outer.calls == 1


def test_a_loop_of_the_code_over_a_tensor_of_known_length():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)], on_retrace="deny")
    def power(x, n):
        y = x
        for i in tf.range(n):
            if i % 2 == 0:
                y = y * x
            else:
                y = y + 1.0
        return y

    def expected(x, n):
        y = x
        for i in range(n):
            y = y * x if i % 2 == 0 else y + 1.0
        return y

    for size, n in ((2, 3), (4, 5), (1, 1)):
        x = np.linspace(-1, 1, 3 * size).reshape(size, 3).astype("float32")
        np.testing.assert_allclose(power(tf.constant(x), n), expected(x, n), rtol=1e-6)
    assert power.experimental_get_tracing_count() == 1


def test_code_that_reads_a_size_is_traced_again_and_says_so():
    @tf.function(input_signature=OPEN)
    def f(x):
        total = tf.zeros([3])
        for i in range(len(x)):  # the size, as a number
            total += x[i]
        return total

    f(ones(2, 3))
    with pytest.warns(RuntimeWarning, match=r"f is traced again for a new size .*test_open_dimensions.py:\d+"):
        np.testing.assert_array_equal(f(ones(4, 3)), np.full(3, 4.0))
    np.testing.assert_array_equal(f(ones(6, 3)), np.full(3, 6.0))
    np.testing.assert_array_equal(f(ones(2, 3)), np.full(3, 2.0))
    assert f.experimental_get_tracing_count() == 3


def test_deny_is_true_to_its_name():
    calls = []

    @tf.function(input_signature=OPEN, on_retrace="deny")
    def f(x):
        calls.append(len(x))
        return x * float(len(x))

    f(ones(2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must not be traced again.*test_open_dimensions.py"):
        f(ones(4, 3))
    assert calls == [2]
    np.testing.assert_array_equal(f(ones(2, 3)), np.full([2, 3], 2.0))


def test_values_that_depend_on_sizes_are_never_stale():
    @tf.function(input_signature=OPEN, on_retrace="allow")
    def f(x):
        n = int(tf.shape(x)[0])
        extra = np.arange(n, dtype="float32")[:, None]
        if tf.shape(x)[0] > 3:
            x = x * 2.0
        return x + extra

    for size in (2, 4, 5, 2, 3):
        expected = np.ones([size, 3]) * (2 if size > 3 else 1) + np.arange(size)[:, None]
        np.testing.assert_array_equal(f(ones(size, 3)), expected)


def test_a_branch_on_a_size_is_traced_once_per_side():
    @tf.function(input_signature=OPEN, on_retrace="allow")
    def f(x):
        if tf.shape(x)[0] > 3:
            return x * 2.0
        return x - 1.0

    for size in (2, 5, 1, 9, 3, 4):
        np.testing.assert_array_equal(f(ones(size, 3)), np.full([size, 3], 2.0 if size > 3 else 0.0))
    assert f.experimental_get_tracing_count() == 2


def test_errors_for_a_size_name_the_lines_of_the_code():
    weights = ones(2, 3)

    @tf.function(input_signature=OPEN)
    def f(x):
        return x + weights

    np.testing.assert_array_equal(f(ones(2, 3)), np.full([2, 3], 2.0))
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match=r"test_open_dimensions.py"):
        f(ones(5, 3))
    # One row is broadcast.
    np.testing.assert_array_equal(f(ones(1, 3)), np.full([2, 3], 2.0))


def test_plans_and_lines_are_those_of_a_trace():
    @tf.function(input_signature=OPEN)
    def f(x):
        y = tf.exp(x) @ tf.ones([3, 5])
        return tf.reduce_sum(y, 1)

    f(ones(2, 3))
    first, other = f.plan(ones(2, 3)), f.plan(ones(64, 3))
    plain = tf.function(f.python_function).plan(ones(64, 3))
    assert other.peak_bytes == plain.peak_bytes > first.peak_bytes
    line = f.python_function.__code__.co_firstlineno + 2
    assert f"test_open_dimensions.py:{line}" in str(other.table())
    assert f.experimental_get_tracing_count() == 1


def test_lists_and_arrays_of_the_code_may_change_later():
    scale, axes = np.array([1.0, 2.0, 3.0], np.float32), [1]

    @tf.function(input_signature=OPEN)
    def f(x):
        return tf.reduce_sum(x * scale, axes)

    np.testing.assert_array_equal(f(ones(2, 3)), [6, 6])
    scale[:] = 100.0
    axes[0] = 0
    np.testing.assert_array_equal(f(ones(4, 3)), [6, 6, 6, 6])


def test_structures_and_other_arguments():
    @tf.function(reduce_retracing=True)
    def f(x, scale, options):
        return {"y": x["a"] * scale, "z": (x["b"] + options["shift"], 3)}

    for size in (2, 3, 4, 5):
        made = f({"a": ones(size), "b": ones(2 * size)}, 2.0, {"shift": 1.0})
        np.testing.assert_array_equal(made["y"], np.full(size, 2.0))
        np.testing.assert_array_equal(made["z"][0], np.full(2 * size, 2.0))
        assert made["z"][1] == 3
    assert f.experimental_get_tracing_count() == 2
    f({"a": ones(2), "b": ones(4)}, 3.0, {"shift": 1.0})
    assert f.experimental_get_tracing_count() == 3


def test_variables_are_assigned_once_per_call():
    total = tf.Variable(0.0)

    @tf.function(input_signature=OPEN)
    def f(x):
        total.assign_add(tf.reduce_sum(x))
        return total.read_value() * 1.0

    assert [float(f(ones(size, 3))) for size in (1, 2, 3)] == [3.0, 9.0, 18.0]
    assert float(total) == 18.0
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("read", ["ndim", "numpy"])
def test_a_branch_on_the_rank_is_traced_once_per_rank(read):
    def rank(x):
        return x.ndim if read == "ndim" else np.ndim(x)

    @tf.function(input_signature=[tf.TensorSpec(None)], on_retrace="allow")
    def f(x):
        if rank(x) == 1:
            return x * 10.0
        if rank(x) == 2:
            return tf.reduce_sum(x, 1) * 100.0
        return tf.reduce_sum(x) * 1000.0

    for _ in range(2):
        np.testing.assert_array_equal(f(ones(2)), [10.0, 10.0])
        np.testing.assert_array_equal(f(ones(4)), [10.0] * 4)
        np.testing.assert_array_equal(f(ones(2, 3)), [300.0, 300.0])
        np.testing.assert_array_equal(f(ones(4, 2)), [200.0] * 4)
        assert float(f(ones(1, 2, 3))) == 6000.0
        assert float(f(ones(3, 2, 3))) == 18000.0
    assert f.experimental_get_tracing_count() == 3


def test_shapes_are_open_after_the_rank_is_known():
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec(None)], on_retrace="deny")
    def f(x):
        assert x.ndim == 2
        shapes.append((x * 2.0).shape.as_list())
        return x + 1.0

    for shape in ([2, 3], [5, 4], [1, 1]):
        np.testing.assert_array_equal(f(tf.ones(shape)), np.full(shape, 2.0))
    assert shapes == [[None, None]]


def test_a_function_that_another_has_called_is_traced_for_its_own_sizes():
    scale, calls = [1.0], []

    @tf.function
    def inner(x):
        calls.append(x)
        return x * scale[0]

    outer = tf.function(lambda x: inner(x) + 1.0, input_signature=[tf.TensorSpec([None])])
    np.testing.assert_array_equal(outer(ones(2)), [2.0, 2.0])
    assert len(calls) == 1
    scale[0] = 5.0
    np.testing.assert_array_equal(inner(ones(3)), [5.0, 5.0, 5.0])
    assert len(calls) == inner.experimental_get_tracing_count() == 2
    # The outer function keeps its one trace.
    np.testing.assert_array_equal(outer(ones(4)), [2.0] * 4)
    assert outer.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("on_retrace", ["warn", "deny"])
def test_a_function_that_creates_a_variable_is_not_reported(on_retrace):
    state = []

    @tf.function(input_signature=OPEN, on_retrace=on_retrace)
    def f(x):
        if not state:
            state.append(tf.Variable(2.0))
        return x * state[0]

    for size in (2, 4, 1):
        np.testing.assert_array_equal(f(ones(size, 3)), np.full([size, 3], 2.0))


def test_a_variable_in_every_call_is_refused_with_deny_as_well():
    @tf.function(input_signature=OPEN, on_retrace="deny")
    def f(x):
        return x * tf.Variable(2.0)

    with pytest.raises(tf.errors.InvalidArgumentError, match="created in every call"):
        f(ones(2, 3))


class Rows(list):
    """A list with more methods."""


def test_subclasses_of_dicts_and_lists_are_never_stale():
    @tf.function(input_signature=OPEN, on_retrace="allow")
    def listed(x):
        return tf.add_n(Rows([x, x]))

    @tf.function(input_signature=OPEN, on_retrace="allow")
    def named(x):
        made = collections.defaultdict(list)
        made["a"] = x * 2.0
        return made

    @tf.function(input_signature=OPEN, on_retrace="deny")
    def ordered(x):
        return collections.OrderedDict(a=x * 2.0, b=x)

    for size in (2, 4, 1):
        np.testing.assert_array_equal(listed(ones(size, 3)), np.full([size, 3], 2.0))
        np.testing.assert_array_equal(named(ones(size, 3))["a"], np.full([size, 3], 2.0))
        np.testing.assert_array_equal(ordered(ones(size, 3))["a"], np.full([size, 3], 2.0))


def test_a_loop_over_a_scalar_says_what_is_missing():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def f(x):
        total = 0.0
        for row in x:
            total += row
        return total

    with pytest.raises(TypeError, match="scalar"):
        f(tf.constant(1.0))


def test_deny_with_reduce_retracing_calls_the_code_once():
    f = Counted(lambda x: x * 2.0 + tf.cast(tf.shape(x)[0], tf.float32), reduce_retracing=True, on_retrace="deny")
    for shape in ([2], [3], [7], [2, 3], [4, 1, 2]):
        np.testing.assert_array_equal(f(tf.ones(shape)), np.full(shape, 2.0 + shape[0]))
    assert f.calls == f.function.experimental_get_tracing_count() == 1
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"must not be traced again, but .*float32\[2\].*int32\[2\]"
    ):
        f(tf.ones([2], tf.int32))
    assert f.calls == 1


def test_deny_with_reduce_retracing_refuses_what_needs_a_trace():
    calls = []

    @tf.function(reduce_retracing=True, on_retrace="deny")
    def f(x, scale):
        calls.append(x.shape.as_list())
        return x * scale

    np.testing.assert_array_equal(f(ones(2, 3), 2.0), np.full([2, 3], 2.0))
    np.testing.assert_array_equal(f(ones(2, 3), 2.0), np.full([2, 3], 2.0))
    for call in (lambda: f(ones(4, 3), 2.0), lambda: f(ones(2, 3), 3.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"must not be traced again"):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"read a size.*test_open_dimensions.py:\d+"):
        f(ones(4, 3), 2.0)
    assert calls == [[2, 3]]


def test_deny_with_reduce_retracing_and_gradients_variables_and_plans():
    v = tf.Variable(2.0)
    made = []

    @tf.function(reduce_retracing=True, on_retrace="deny")
    def step(x):
        if not made:
            made.append(tf.Variable(1.0))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * v) * made[0]
        v.assign_sub(0.0 * tape.gradient(loss, v))
        return loss

    for size in (2, 5, 3):
        assert float(step(tf.ones([size]))) == 2.0 * size
    assert step.plan(tf.TensorSpec([100])).peak_bytes > 0
    with tf.GradientTape() as tape:
        loss = step(tf.ones([4]))
    assert float(tape.gradient(loss, v)) == 4.0


def test_printing_a_tensor_reads_no_size_of_it(capsys):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        print(x, f"{x}", repr(x), x + 1)
        return x

    for size in (3, 5):
        assert f(tf.range(size)).shape == [size]
    assert f.experimental_get_tracing_count() == 1
    assert capsys.readouterr().out.count("shape=(None,)") == 4
