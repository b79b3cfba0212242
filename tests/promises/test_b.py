"""Loops (B1 to B8). The steps that a budget makes a loop compute again (part of B4) are counted in Rust."""

from __future__ import annotations

import re

import numpy as np
import pytest
import taut as tf

STATE = 64  # bytes of eight float64


def vector(rng):
    return tf.constant(rng.uniform(-0.4, 0.6, size=8))


def test_b1_a_python_loop_holds_two_states(peak_of, rng):
    a = tf.constant(rng.normal(size=(16, 16), scale=0.2))

    def loop(steps):
        state = a
        for _ in range(steps):
            state = tf.matmul(state, a)
        return state

    peaks = [peak_of(lambda: loop(steps))[0] for steps in [10, 10_000]]
    # The old state and the new one.
    assert peaks == [2 * a.nbytes] * 2


def counted(steps, x, w, calls=None, **options):
    """`x = sin(x * w)`, as often as a counter says."""

    def body(i, x):
        if calls is not None:
            calls.append(1)
        return i + 1, tf.sin(x * w)

    start = (tf.constant(0, tf.int64), x)
    return tf.while_loop(lambda i, _: i < steps, body, start, parallel_iterations=1, **options)[1]


@pytest.mark.parametrize("traced", [False, True])
def test_b2_a_while_loop_of_any_length_holds_its_states(traced, peak_of, rng):
    x, w = vector(rng), vector(rng)
    shapes = (tf.TensorShape([]), tf.TensorShape([8]))
    peaks = []
    for steps in [10, 1000, 100_000]:
        calls = []

        def run(x, w):
            return counted(steps, x, w, calls, shape_invariants=shapes, maximum_iterations=200_000)

        f = tf.function(run, autograph=False) if traced else run
        if traced:
            planned = f.plan(x, w).peak_bytes
        peak, y = peak_of(lambda: f(x, w))
        if traced:
            assert peak == planned
        assert len(calls) == 1, "the body is traced once"
        want = x.numpy()
        for _ in range(min(steps, 1000)):
            want = np.sin(want * w.numpy())
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-9, atol=1e-300)
        peaks.append(peak)
        del y
    assert peaks == [peaks[0]] * 3
    # The state, and places for the count, the limit, the answer of the test and what is compared.
    assert peaks[0] <= STATE + 5 * 64


def test_b2_states_are_updated_in_place(peak_of, rng):
    start = rng.uniform(size=1000)
    v = tf.Variable(start)

    @tf.function(autograph=False)
    def step():
        def body(i, x):
            return i + 1, tf.sin(x)

        _, x = tf.while_loop(lambda i, _: i < 50, body, (tf.constant(0), v.read_value()))
        v.assign(x)

    address = v.address
    peak, _ = peak_of(step)
    assert peak < 512, "the counter, and no second state"
    assert v.address == address
    want = start
    for _ in range(50):
        want = np.sin(want)
    np.testing.assert_allclose(v.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_b2_maximum_iterations_end_the_loop(limit):
    i = tf.while_loop(lambda i: i < 100, lambda i: i + 1, tf.constant(0), maximum_iterations=limit)
    assert int(i) == limit


def test_b2_states_may_grow_where_an_invariant_says_so():
    start = (tf.constant(0), tf.constant([1.0]))
    _, grown = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, x: (i + 1, tf.concat([x, x + 1.0], 0)),
        start,
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert grown.numpy().tolist() == [1, 2, 2, 3, 2, 3, 3, 4]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_b3_a_power_loop_keeps_one_state_per_step(traced, steps, rng):
    x, w = (tf.constant(rng.normal(size=(16, 16), scale=0.2)) for _ in range(2))

    def power(x, w):
        def body(i, x):
            return i + 1, tf.matmul(x, w)

        return tf.while_loop(
            lambda i, _: i < steps, body, (tf.constant(0), x), maximum_iterations=steps
        )[1]

    f = tf.function(power, autograph=False) if traced else power
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x, w)
    counts = 128  # what the loop notes of its own length
    assert (steps + 1) * x.nbytes <= tape.bytes_held() <= (steps + 1) * x.nbytes + counts + 16 * steps
    found = tape.gradient(y, [x, w])
    # d/dx of the sum of x w^n, and d/dw by the sum over the places of w.
    n, ones = steps, np.ones((16, 16))
    powers = [np.linalg.matrix_power(w.numpy(), k) for k in range(n + 1)]
    np.testing.assert_allclose(found[0].numpy(), ones @ powers[n].T, rtol=1e-9, atol=1e-12)
    want = sum((x.numpy() @ powers[k]).T @ ones @ powers[n - 1 - k].T for k in range(n))
    np.testing.assert_allclose(found[1].numpy(), want, rtol=1e-9, atol=1e-12)


def test_b3_what_stays_the_same_is_kept_once(rng):
    x, w, b = (tf.constant(rng.uniform(size=1000)) for _ in range(3))

    def held(watched):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = tf.scan(lambda s, _: s * w + b, tf.zeros([100]), initializer=x)[-1]
        assert tape.gradient(y, watched) is not None
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = tf.foldl(lambda s, _: s * w + b, tf.zeros([100]), initializer=x)
        return tape.bytes_held()

    # The way to x and b goes by w, however long it is; the way to w by every state before a step.
    assert held(x) == x.nbytes
    assert held(b) == x.nbytes
    assert held(w) == 101 * x.nbytes


def by_hand(steps, x, w):
    """The gradients of the sum of the last state of `counted`."""
    states = [x.numpy()]
    for _ in range(steps):
        states.append(np.sin(states[-1] * w.numpy()))
    of_x, of_w = np.ones(8), np.zeros(8)
    for state in states[-2::-1]:
        inner = of_x * np.cos(state * w.numpy())
        of_w += inner * state
        of_x = inner * w.numpy()
    return of_x, of_w


@pytest.mark.parametrize("traced", [False, True])
def test_b4_one_budget_is_one_peak_for_any_length(traced, peak_of, rng):
    x, w = vector(rng), vector(rng)
    budget = 20 * 2 * STATE  # twenty states: the vector, and the count that tells the loop's length

    def gradients(steps):
        def run(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                loss = tf.reduce_sum(counted(steps, x, w, grad_budget=budget))
            return tape.gradient(loss, [x, w])

        f = tf.function(run, autograph=False) if traced else run
        planned = f.plan(x, w).peak_bytes if traced else None
        peak, found = peak_of(lambda: f(x, w))
        assert planned in (None, peak)
        for one, other in zip(found, by_hand(steps, x, w)):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-300)
        return peak

    peaks = [gradients(steps) for steps in [100, 1000, 10_000, 100_000]]
    assert peaks == [peaks[0]] * 4
    assert peaks[0] <= budget + 16 * STATE


def test_b4_a_larger_budget_is_a_larger_peak_and_the_same_gradient(peak_of, rng):
    x, w = vector(rng), vector(rng)

    def gradients(slots):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            loss = tf.reduce_sum(counted(60, x, w, grad_budget=slots * 2 * STATE))
        return [g.numpy().tobytes() for g in tape.gradient(loss, [x, w])]

    measured = [peak_of(lambda: gradients(slots)) for slots in [1, 2, 5, 10, 20, 40]]
    assert all(found == measured[0][1] for _, found in measured)
    peaks = [peak for peak, _ in measured]
    assert peaks == sorted(peaks) and peaks[0] < peaks[-1]


def test_b4_a_scan_under_a_budget(rng):
    x, w = vector(rng), vector(rng)
    rows = tf.constant(rng.normal(size=(100, 8)))

    def scanned(grad_budget):
        with tf.GradientTape() as tape:
            tape.watch([x, w, rows])
            states = tf.scan(lambda s, r: tf.sin(s * w + r), rows, initializer=x, grad_budget=grad_budget)
            loss = tf.reduce_sum(states * states)
            held = tape.bytes_held() - states.nbytes
        return held, [g.numpy() for g in tape.gradient(loss, [x, w, rows])]

    held, found = scanned(10 * STATE)
    assert held <= 10 * STATE + rows.nbytes + x.nbytes + w.nbytes + 256
    for one, other in zip(found, scanned(None)[1]):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_b5_what_is_stopped_or_not_watched_leaves_no_trace(rng):
    x, other = (tf.constant(rng.normal(size=(4, 5))) for _ in range(2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        before = tape.bytes_held(), tape.num_entries()
        z = tf.exp(tf.matmul(other, tf.transpose(other)))
        a = tf.tanh(tf.stop_gradient(x) * other)
        b = tf.while_loop(lambda i, _: i < 9, lambda i, s: (i + 1, tf.sin(s)), (tf.constant(0), other))[1]
        assert (tape.bytes_held(), tape.num_entries()) == before
    assert before == (x.nbytes, 1)
    assert tape.gradient([y, z, a, b], x).numpy().tobytes() == (2 * x.numpy()).tobytes()


def test_b5_dead_branches_are_forgotten(rng):
    x = tf.constant(rng.normal(size=(4, 5)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
        before = tape.bytes_held(), tape.num_entries()
        unused = tf.tanh(tf.sin(x))
        assert tape.num_entries() == before[1] + 2
        del unused
        assert (tape.bytes_held(), tape.num_entries()) == before
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(x.numpy()), rtol=1e-12)


def in_while(f, x):
    start = (tf.constant(0), x)
    return tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, f(s)), start, maximum_iterations=5)[1]


def in_scan(f, x):
    return tf.scan(lambda s, r: f(s) * r, tf.constant([0.5, 1.5], tf.float64), initializer=x)[-1]


def in_foldr(f, x):
    return tf.foldr(lambda s, r: f(s) + r, tf.constant([0.5, 1.5], tf.float64), initializer=x)


def in_cond(f, x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: f(x), lambda: f(x * 0.5) * 2.0)


def in_switch(f, x):
    index = tf.cast(tf.reduce_sum(x) > 0.0, tf.int32)
    return tf.switch_case(index, [lambda: f(x) * x, lambda: f(x) * 3.0])


def in_map(f, x):
    return tf.map_fn(f, x)


AROUND = {f.__name__: f for f in [in_while, in_scan, in_foldr, in_cond, in_switch, in_map]}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("inner", AROUND)
@pytest.mark.parametrize("outer", AROUND)
def test_b6_control_flow_nests_and_has_two_orders_of_gradients(outer, inner, traced, numeric, slope):
    def wave(x):
        return tf.sin(x * 1.3)

    def nested(x):
        return AROUND[outer](lambda x: AROUND[inner](wave, x), x)

    if "in_map" == inner and outer == "in_map":
        x = np.array([[0.3, -0.2], [0.8, 0.4]])
    else:
        x = np.array([0.3, -0.2, 0.8])
    if outer == "in_map" and inner != "in_map":
        x = x[:, None] * np.array([1.0, 0.7])
    f = tf.function(nested, autograph=False) if traced else nested
    np.testing.assert_allclose(slope(f, x), numeric(nested, x), rtol=1e-6, atol=1e-9)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nested(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(f, x, order=2), numeric(first, x), rtol=1e-5, atol=1e-8)


def unknown(x):
    """A loop of which nobody knows how many steps it makes."""
    return tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, tf.sin(s)), (tf.constant(0), x))[1]


@pytest.mark.parametrize("traced", [False, True])
def test_b6_a_loop_of_unknown_length_has_two_orders_of_gradients(traced, slope):
    f = tf.function(unknown, autograph=False) if traced else unknown
    x = 0.3
    sine, cosine = np.sin(x), np.cos(x)
    np.testing.assert_allclose(slope(f, [x]), [cosine * np.cos(sine)], rtol=1e-12)
    want = -(cosine**2) * np.sin(sine) - sine * np.cos(sine)
    np.testing.assert_allclose(slope(f, [x], order=2), [want], rtol=1e-12)


def test_b6_a_second_order_that_would_need_a_length_says_so(slope):
    def inside(x):
        return in_scan(unknown, x)

    assert np.isfinite(slope(inside, [0.3])).all()
    with pytest.raises(tf.errors.OpError, match="maximum_iterations"):
        slope(inside, [0.3], order=2)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("change", ["shape", "dtype"])
def test_b7_a_state_that_changes_is_refused(change, traced, line_of):
    def grow(x):
        return tf.concat([x, x], 0) if change == "shape" else tf.cast(x, tf.float32)

    def run():
        start = (tf.constant(0), tf.constant([1.0, 2.0], tf.float64))
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, grow(x)), start)  # here

    error = ValueError if change == "shape" else TypeError
    with pytest.raises(error) as caught:
        (tf.function(run, autograph=False) if traced else run)()
    text = str(caught.value)
    assert re.search(r"loop variable 1\b", text), text
    assert "float64[2]" in text
    assert ("float64[4]" if change == "shape" else "float32[2]") in text
    line = line_of(test_b7_a_state_that_changes_is_refused, "# here")
    assert f"test_b.py:{line}" in text, text


def test_b7_names_on_the_way_to_a_state_are_told():
    start = {"place": tf.constant([1.0]), "speed": (tf.constant(0), tf.constant([1.0, 2.0]))}

    def body(state):
        number, speed = state["speed"]
        return {"place": state["place"], "speed": (number + 1, tf.concat([speed, speed], 0))}

    with pytest.raises(ValueError, match=r"speed\.1\b"):
        tf.while_loop(lambda state: state["speed"][0] < 3, body, [start])


def test_b7_an_invariant_is_checked_too():
    start = (tf.constant(0), tf.constant([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="float32") as caught:
        tf.while_loop(
            lambda i, _: i < 3,
            lambda i, x: (i + 1, tf.concat([x, x], 1)),
            start,
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
        )
    assert "test_b.py" in str(caught.value)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_b8_arrays_enter_and_leave_without_a_copy(dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)
    before = tf.memory.live_bytes()
    for view in [array, array.T, array[::2, 1:4]]:
        tensor = tf.convert_to_tensor(view)
        aligned = view.ctypes.data % 8 == 0
        assert (tensor.data_ptr() == view.ctypes.data) is aligned
        assert tensor.numpy().tolist() == view.tolist()
        if aligned:
            assert tf.memory.live_bytes() == before, "the array's own memory"
            assert np.from_dlpack(tensor).ctypes.data == view.ctypes.data
            assert tf.from_dlpack(view).data_ptr() == view.ctypes.data
    made = tf.cast(tf.ones([3, 5]), dtype)
    for array in [made.numpy(), np.asarray(made), np.from_dlpack(made)]:
        assert array.ctypes.data == made.data_ptr()


def test_b8_arrays_and_tensors_mix(rng):
    a = rng.normal(size=(3, 4))
    t = tf.constant(a)
    for got, want in [
        (t + a, a + a),
        (a + t, a + a),
        (a @ t.T, a @ a.T),
        (tf.matmul(a, a.T), a @ a.T),
        (tf.reduce_sum(a, axis=1), a.sum(1)),
        (np.float64(2) * t, 2 * a),
    ]:
        assert isinstance(got, tf.Tensor)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.abs(t)), np.sqrt(np.abs(a)), rtol=1e-12)
