"""Traced functions (C8 to C11): control flow, compilation, too little memory, side effects."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def collatz(n):
    """The steps until a number is one."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps


def clipped(x):
    if x > 2.0:
        return x - 2.0
    if x < -2.0:
        return x + 2.0
    return x * 0.5


def first_above(rows, limit):
    """The number of the first row above a limit, leaving out negative ones."""
    found = -1
    i = 0
    for row in rows:
        if row < 0.0:
            i += 1
            continue
        if row > limit:
            found = i
            break
        i += 1
    return found


def sum_of_squares(n):
    total = 0
    for i in tf.range(n):
        total += i * i
    return total


def truth(a, b):
    both = a > 0.0 and b > 0.0
    either = a > 0.0 or b > 0.0
    if both:
        return 1
    return 2 if either and not both else 3


CASES = {
    "while, if": (collatz, [(tf.constant(n),) for n in [1, 7, 27]], lambda n: collatz(int(n))),
    "early return": (clipped, [(tf.constant(x),) for x in [3.0, -5.0, 1.0]], lambda x: clipped(float(x))),
    "for, break, continue": (
        first_above,
        [(tf.constant([1.0, -9.0, 5.0, 7.0]), tf.constant(limit)) for limit in [0.5, 4.0, 6.0, 8.0]],
        lambda rows, limit: first_above(rows.numpy().tolist(), float(limit)),
    ),
    "for over a range": (
        sum_of_squares,
        [(tf.constant(n),) for n in [0, 1, 10]],
        lambda n: sum(i * i for i in range(int(n))),
    ),
    "and, or, not": (
        truth,
        [(tf.constant(a), tf.constant(b)) for a in [-1.0, 1.0] for b in [-1.0, 1.0]],
        lambda a, b: truth(float(a), float(b)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_c8_python_control_flow_on_tensors(name):
    function, arguments, want = CASES[name]
    f = tf.function(function)
    for given in arguments:
        found = f(*given)
        assert isinstance(found, tf.Tensor)
        assert found.numpy() == want(*given)
    assert f.trace_count == 1, "the values of tensors decide while it runs"


def test_c8_python_values_specialise_the_trace():
    traced = []

    @tf.function(on_retrace="allow")
    def f(x, flag, times):
        traced.append((flag, times))
        for _ in range(times):
            x = x * 2.0 if flag else x + 1.0
        return x

    x = tf.constant(3.0)
    assert float(f(x, True, 3)) == 24.0
    assert float(f(x, False, 3)) == 6.0
    assert float(f(x, True, 3)) == 24.0
    assert traced == [(True, 3), (False, 3)]
    assert "cond" not in f.graph(x, True, 3)


def test_c8_a_branch_not_taken_costs_no_memory(peak_of, rng):
    def narrow(x):
        return tf.reduce_sum(tf.matmul(x, tf.tanh(tf.matmul(x, x))))

    def wide(x):
        rows = tf.concat([x, x, x, x], 0)
        return tf.reduce_sum(tf.tanh(tf.matmul(tf.matmul(rows, x), x)))

    @tf.function
    def either(x, flag):
        if flag:
            y = narrow(x)
        else:
            y = wide(x)
        return y

    x = tf.constant(rng.normal(size=(32, 32)))
    alone = [tf.function(f).plan(x).arena_bytes for f in [narrow, wide]]
    assert 0 < alone[0] < alone[1]
    plan = either.plan(x, tf.constant(True))
    # The larger of both, in whole pieces of 64 bytes, and not their sum.
    assert -(-plan.arena_bytes // 64) == -(-alone[1] // 64)
    for flag, function in [(True, narrow), (False, wide)]:
        peak, y = peak_of(lambda: either(x, tf.constant(flag)))
        assert peak <= plan.peak_bytes + 1, "and the flag"
        np.testing.assert_allclose(y.numpy(), function(x).numpy(), rtol=1e-12)
        either.release()


def test_c8_a_branch_not_taken_is_not_run():
    @tf.function
    def guarded(x):
        if x > 0.0:
            y = x
        else:
            y = tf.debugging.check_numerics(tf.math.log(x), "this branch")
        return y

    assert float(guarded(tf.constant(2.0))) == 2.0
    with pytest.raises(ValueError, match="this branch"):
        guarded(tf.constant(-2.0))


def floats(*shape):
    return tf.constant(np.random.default_rng(len(shape)).uniform(0.1, 0.9, size=shape).astype("f4"))


def key():
    return tf.constant(np.array([11, 5], np.uint64))


def ids(*values):
    return tf.constant(values)


# Ops that do not take two matrices of four by four.
PARTICULAR = {
    "attention": lambda: [floats(2, 3, 5, 4), floats(2, 3, 6, 4), floats(2, 3, 6, 4)],
    "avg_pool": lambda: [floats(2, 6, 6, 3), [2, 2]],
    "avg_pool_gradient": lambda: [[2, 6, 6, 3], floats(2, 5, 5, 3), [2, 2]],
    "batch_norm": lambda: [floats(5, 3), floats(3), floats(3)],
    "bitcast": lambda: [floats(4), "int32"],
    "broadcast_to": lambda: [floats(1, 4), [3, 4]],
    "check_numerics": lambda: [floats(4), "message"],
    "ensure": lambda: [tf.constant([True, True]), "message"],
    "cholesky": lambda: [tf.constant([[4.0, 1.0], [1.0, 3.0]])],
    "conv1d": lambda: [floats(2, 8, 3), floats(3, 3, 4)],
    "conv2d": lambda: [floats(2, 6, 6, 3), floats(3, 3, 3, 4)],
    "conv3d": lambda: [floats(1, 4, 4, 4, 2), floats(2, 2, 2, 2, 3)],
    "conv_filter_gradient": lambda: [floats(2, 6, 6, 3), [3, 3, 3, 4], floats(2, 4, 4, 4)],
    "conv_input_gradient": lambda: [[2, 6, 6, 3], floats(3, 3, 3, 4), floats(2, 4, 4, 4)],
    "conv_transpose": lambda: [floats(2, 4, 4, 3), floats(3, 3, 5, 3)],
    "depthwise_conv2d": lambda: [floats(2, 6, 6, 3), floats(3, 3, 3, 2)],
    "dropout": lambda: [floats(4, 4), 0.5, key()],
    "einsum": lambda: ["ij,jk->ik", [floats(3, 4), floats(4, 2)]],
    "fold_in": lambda: [key(), 3],
    "gather_nd": lambda: [floats(4, 4), tf.constant([[0, 1], [3, 2]])],
    "group_norm": lambda: [floats(2, 5, 4), None, None, 2],
    "keep_bits": lambda: [floats(16), tf.constant(np.array([170, 85], np.uint8))],
    "max_pool": lambda: [floats(2, 6, 6, 3), [2, 2]],
    "max_pool_gradient": lambda: [floats(2, 6, 6, 3), floats(2, 5, 5, 3), [2, 2]],
    "meshgrid": lambda: [[floats(3), floats(4)]],
    "pad": lambda: [floats(2, 3), [[1, 0], [2, 1]]],
    "reshape": lambda: [floats(4, 4), [2, 8]],
    "scatter_nd": lambda: [tf.constant([[1], [3]]), floats(2, 3), [5, 3]],
    "sparse_softmax_cross_entropy_with_logits": lambda: [ids(0, 2), floats(2, 3)],
    "split": lambda: [floats(4, 4), [1, 3]],
    "stateless_bernoulli": lambda: [key(), [4, 4]],
    "stateless_bernoulli_each": lambda: [key(), floats(4, 4)],
    "stateless_categorical": lambda: [key(), floats(3, 4), 5],
    "stateless_exponential": lambda: [key(), [4, 4]],
    "stateless_gamma": lambda: [key(), [4, 4], 2.0],
    "stateless_integers": lambda: [key(), [4, 4], 0, 10],
    "stateless_normal": lambda: [key(), [4, 4]],
    "stateless_permutation": lambda: [key(), 10],
    "stateless_shuffle": lambda: [key(), floats(4, 4)],
    "stateless_truncated_normal": lambda: [key(), [4, 4]],
    "stateless_uniform": lambda: [key(), [4, 4]],
    "tile": lambda: [floats(2, 3), [2, 2]],
    "unpack_bits": lambda: [tf.constant(np.array([170, 85], np.uint8)), [16]],
}
for how in ["add", "max", "min", "sub", "update"]:
    PARTICULAR[f"tensor_scatter_{how}"] = lambda: [floats(4, 3), tf.constant([[1], [3]]), floats(2, 3)]
for how in ["max", "mean", "min", "prod", "sum"]:
    PARTICULAR[f"segment_{how}"] = lambda: [floats(4, 3), ids(0, 0, 1, 2)]
    PARTICULAR[f"unsorted_segment_{how}"] = lambda: [floats(4, 3), ids(1, 0, 1, 2), 3]

# The shapes of what these return depend on values: they cannot be traced, and say so.
SHAPED_BY_VALUES = {"bincount", "boolean_mask", "nonzero", "unique"}
SHAPED_BY_VALUES |= {f"segment_{how}" for how in ["max", "mean", "min", "prod", "sum"]}

PLAIN = {
    "Tensor": lambda: floats(4, 4),
    "Operand": lambda: floats(4, 4),
    "Tensors": lambda: [floats(4, 4), floats(4, 4)],
    "Ints": lambda: [0],
    "Int": lambda: 1,
    "DType": lambda: "float64",
    "Scalar": lambda: 0.5,
    "Float": lambda: 0.5,
}


def given_for(name, op):
    """Arguments that an op of the table takes."""
    if name in PARTICULAR:
        return PARTICULAR[name]()
    needed = [kind for _, kind, default in op.params if default is None]
    for dtype in ["float32", "int32", "bool"]:
        given = [PLAIN[kind]() for kind in needed]
        if dtype != "float32":
            given = [tf.cast(x * 3.0, dtype) if isinstance(x, tf.Tensor) else x for x in given]
        if name == "transpose":
            given = given[:1]
        try:
            op(*given)
        except (TypeError, ValueError, IndexError):
            continue
        return given
    raise AssertionError(f"{name} takes none of the arguments of this test: it is a particular one")


@pytest.mark.parametrize("name", tf._native.op_names())
def test_c9_eager_traced_and_compiled_agree_on_every_op(name):
    op = tf._native.Op(name)
    given = given_for(name, op)
    if name in SHAPED_BY_VALUES:
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="traced"):
            tf.function(op, autograph=False)(*given)
        return
    eager = tf.nest.flatten(op(*given))
    where = [i for i, x in enumerate(given) if isinstance(x, tf.Tensor)]

    def around(*tensors):
        arguments = list(given)
        for i, tensor in zip(where, tensors):
            # Something before it, so that there is something to fuse.
            arguments[i] = tensor if tensor.dtype.is_bool else tensor * 1
        return op(*arguments)

    for jit in [False, True]:
        traced = tf.function(around, jit_compile=jit, autograph=False)(*[given[i] for i in where])
        for one, other in zip(eager, tf.nest.flatten(traced), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            one, other = np.asarray(one), np.asarray(other)
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("jit", [False, True])
def test_c9_options_never_change_what_a_function_means(jit, rng):
    def step(v, x):
        noise = tf.random.normal(x.shape)
        v.assign_add(x * 0.5)
        if tf.reduce_sum(v) > 1.0:
            y = tf.tanh(v) + noise
        else:
            y = tf.exp(v) - noise
        return y

    start = rng.normal(size=(8,)).astype("f4")
    x = tf.constant(rng.normal(size=(8,)).astype("f4"))
    eager, traced = tf.Variable(start), tf.Variable(start)
    f = tf.function(step, jit_compile=jit)
    for run in range(4):
        tf.random.set_seed(run)
        want = step(eager, x)
        tf.random.set_seed(run)
        np.testing.assert_allclose(f(traced, x).numpy(), want.numpy(), rtol=1e-6)
        np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-6)


def test_c10_too_little_memory_is_known_before_the_first_kernel(no_limit, rng, line_of):
    v = tf.Variable(np.ones(1000, "f4"))
    w = tf.constant(rng.normal(size=(1000, 1000)).astype("f4"))

    @tf.function
    def f(x):
        v.assign_add(x)
        return tf.matmul(tf.reshape(v * x + 1.0, [1, 1000]), w)

    x = tf.ones([1000])
    need = f.plan(x).peak_bytes
    address, before = v.address, tf.memory.live_bytes()
    tf.memory.limit(before + need - 1)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        f(x)  # here
    assert isinstance(caught.value, MemoryError)
    line = line_of(test_c10_too_little_memory_is_known_before_the_first_kernel, "# here")
    assert f"test_c8.py:{line}" in str(caught.value)
    del caught
    f.release()
    assert tf.memory.live_bytes() == before
    assert (v.address, v.numpy().tolist()) == (address, [1.0] * 1000), "no kernel ran"
    tf.memory.limit(before + need)
    f(x)
    assert v.numpy().tolist() == [2.0] * 1000


def test_c10_the_error_names_the_owners(no_limit, line_of):
    tf.memory.record(True)
    try:
        owner = tf.ones([5000])  # owner
        tf.memory.limit(tf.memory.live_bytes() + 100)
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            tf.zeros([1000])
    finally:
        tf.memory.record(False)
    line = line_of(test_c10_the_error_names_the_owners, "# owner")
    assert f"test_c8.py:{line}" in str(caught.value)
    assert "4000" in str(caught.value) or "3.9 KiB" in str(caught.value)
    assert owner.nbytes == 20_000


@pytest.mark.parametrize("kind", ["eager", "traced", "tape"])
def test_c10_every_limit_is_kept_and_leaves_all_as_it_was(kind, no_limit, rng):
    v = tf.Variable(rng.normal(size=(16, 16)))
    x = tf.constant(rng.normal(size=(16, 16)))

    def work(x):
        y = tf.tanh(tf.matmul(x, v))
        return tf.matmul(tf.exp(y), y)

    traced = tf.function(work)

    def run():
        if kind == "eager":
            return work(x)
        if kind == "traced":
            return traced(x)
        with tf.GradientTape() as tape:
            y = traced(x)
        return tape.gradient(y, v)

    want = run().numpy().copy()
    start, address = v.numpy().copy(), v.address
    traced.release()
    before = tf.memory.live_bytes()
    with tf.memory.measure() as measured:
        run()
    need = measured.peak_bytes
    traced.release()
    rooms = [*range(0, need, max(need // 32, 1)), need - 1, need, 2 * need]
    outcomes = []
    for room in rooms:
        tf.memory.reset_peak()
        tf.memory.limit(before + room)
        try:
            np.testing.assert_array_equal(run().numpy(), want)
            outcomes.append(True)
        except tf.errors.ResourceExhaustedError:
            outcomes.append(False)
        assert tf.memory.peak_bytes() <= before + room
        tf.memory.limit(None)
        traced.release()
        assert tf.memory.live_bytes() == before, room
        assert v.address == address
    np.testing.assert_array_equal(v.numpy(), start)
    assert outcomes[-2:] == [True, True], "what was measured is enough"
    assert outcomes[0] is False and outcomes == sorted(outcomes), "more room is never worse"
    np.testing.assert_array_equal(run().numpy(), want)


def test_c11_variables_of_the_first_trace_belong_to_the_function():
    made = []

    @tf.function(on_retrace="allow")
    def f(x):
        if not made:
            made.append(tf.Variable(tf.fill([3], 2.0)))
        made[0].assign_add(tf.ones([3]))
        return made[0] * x

    assert f(tf.ones([3])).numpy().tolist() == [3.0] * 3
    assert f(tf.ones([3])).numpy().tolist() == [4.0] * 3
    assert f.trace_count == 1
    assert len(f.variables) == 1
    assert f.variables[0].numpy().tolist() == [4.0] * 3


def test_c11_a_variable_of_a_later_trace_is_refused_with_its_line(line_of):
    @tf.function(on_retrace="allow")
    def f(x):
        return tf.Variable(tf.ones([2])) * x  # here

    f(tf.ones([2]))
    with pytest.raises(tf.errors.OpError, match="variable") as caught:
        f(tf.ones([1]))
    line = line_of(test_c11_a_variable_of_a_later_trace_is_refused_with_its_line, "# here")
    assert f"test_c8.py:{line}" in str(caught.value)


def test_c11_python_runs_once_per_trace(capsys):
    seen = []

    @tf.function
    def f(x):
        seen.append(x)
        print("tracing")
        return x + 1.0

    for _ in range(3):
        f(tf.ones([2]))
    assert capsys.readouterr().out == "tracing\n"
    assert len(seen) == 1
    with pytest.raises(tf.errors.OpError, match="trace"):
        seen[0] + 1.0
    with pytest.raises((tf.errors.OpError, TypeError), match="trac"):
        seen[0].numpy()
