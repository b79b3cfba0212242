"""Mapping and data. How a browser shows the profiler's page (D6) is tested in Rust."""

from __future__ import annotations

import collections
import ctypes
import itertools
import json
import sys

import numpy as np
import pytest
import taut as tf

DOUBLE = 8
WIDE = 1000  # elements of what a body makes on its way


def body(x):
    """Makes much out of a number, and a number of that again, in steps that cannot be one."""
    wide = tf.cumsum(tf.fill([WIDE], x) * tf.range(WIDE, dtype=tf.float64))
    return tf.reduce_sum(tf.sort(tf.sin(wide)))


def by_hand(values):
    return np.array([np.sin(np.cumsum(np.full(WIDE, x) * np.arange(WIDE))).sum() for x in values])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_d1_a_map_holds_so_many_bodies_and_the_outputs(at_once, traced, peak_of, rng):
    def mapped(x):
        return tf.map_fn(body, x, parallel_iterations=at_once)

    beside = []
    for count in [32, 256, 2048]:
        x = tf.constant(rng.normal(size=count))
        f = tf.function(mapped, autograph=False) if traced else mapped
        peak, y = peak_of(lambda: f(x))
        np.testing.assert_allclose(y.numpy(), by_hand(x.numpy()), rtol=1e-7)
        beside.append(peak - y.nbytes)
    assert beside == [beside[0]] * 3, "whatever the number of elements is"
    # A body has two such values at a time, what a step reads and what it makes; some are there once for all.
    assert (at_once - 1) * WIDE * DOUBLE <= beside[0] <= (2 * at_once + 4) * WIDE * DOUBLE + 4096


def test_d1_structures_go_in_and_come_out(rng):
    Pair = collections.namedtuple("Pair", "low high")
    elements = {"a": tf.constant(rng.normal(size=(5, 3))), "b": (tf.constant([1, 2, 3, 4, 5]),)}

    def split(element):
        a, (b,) = element["a"], element["b"]
        return Pair(tf.reduce_min(a), [tf.reduce_max(a), b * 2])

    signature = Pair(tf.float64, [tf.float64, tf.int32])
    made = tf.map_fn(split, elements, fn_output_signature=signature)
    assert isinstance(made, Pair)
    a = elements["a"].numpy()
    assert made.low.numpy().tolist() == a.min(1).tolist()
    assert made.high[0].numpy().tolist() == a.max(1).tolist()
    assert made.high[1].numpy().tolist() == [2, 4, 6, 8, 10]


def test_d1_a_signature_that_is_wrong_is_told():
    with pytest.raises(TypeError, match="int64"):
        tf.map_fn(lambda x: x * 2.0, tf.ones([3]), fn_output_signature=tf.int64)


@pytest.mark.parametrize("budget", [200_000, 1_000_000])
def test_d2_a_budget_is_kept_forward_and_back(budget, peak_of, rng):
    w = tf.constant(0.5, tf.float64)
    peaks, backs = [], []
    for count in [64, 512, 2048]:
        x = tf.constant(rng.normal(size=count))
        peak, y = peak_of(lambda: tf.map_fn(lambda v: body(v * w), x, memory_budget=budget))
        peaks.append(peak - y.nbytes)
        np.testing.assert_allclose(y.numpy(), by_hand(x.numpy() * 0.5), rtol=1e-7)

        def gradient():
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = tf.reduce_sum(tf.map_fn(lambda v: body(v * w), x, memory_budget=budget))
            return tape.gradient(y, [x, w])

        back, (of_x, of_w) = peak_of(gradient)
        # Beside a chunk, there are the gradients that come in and go out, as long as the elements.
        backs.append(back - 2 * x.nbytes)
        ramp = np.cumsum(np.arange(WIDE))
        slopes = np.array([(np.cos(v * 0.5 * ramp) * ramp).sum() for v in x.numpy()])
        np.testing.assert_allclose(of_x.numpy(), slopes * 0.5, rtol=1e-6, atol=1e-3)
        np.testing.assert_allclose(of_w.numpy(), (slopes * x.numpy()).sum(), rtol=1e-6)
    assert peaks == [peaks[0]] * 3 and backs == [backs[0]] * 3, "whatever the number of elements is"
    assert peaks[0] <= budget
    assert backs[0] <= budget


@pytest.mark.parametrize("options", [{}, {"parallel_iterations": 3}, {"memory_budget": 40_000}])
def test_d2_a_map_gives_what_its_vectorised_form_gives(options, rng):
    x = tf.constant(rng.normal(size=50))
    mapped, vectorised = tf.map_fn(body, x, **options), tf.vectorized_map(body, x)
    np.testing.assert_allclose(mapped.numpy(), vectorised.numpy(), rtol=1e-12)


def test_d2_the_body_is_traced_and_not_called_per_element():
    calls = []

    def counted(x):
        calls.append(1)
        return x * 2

    assert tf.map_fn(counted, tf.range(1000)).numpy().tolist() == list(range(0, 2000, 2))
    assert len(calls) <= 2


Dataset = tf.data.Dataset


def numbers(dataset):
    """The elements as Python has them."""
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), element) for element in dataset]


def test_d3_sources():
    a, b = np.arange(6).reshape(3, 2), np.array([7.0, 8.0, 9.0])
    assert numbers(Dataset.from_tensor_slices((a, {"b": b}))) == [
        ([0, 1], {"b": 7.0}), ([2, 3], {"b": 8.0}), ([4, 5], {"b": 9.0})
    ]
    assert numbers(Dataset.from_tensors([1, 2])) == [[1, 2]]
    assert numbers(Dataset.range(2, 11, 3)) == [2, 5, 8]

    def count(n):
        yield from range(n)

    generated = Dataset.from_generator(count, output_signature=tf.TensorSpec([], tf.int32), args=(4,))
    assert numbers(generated) == [0, 1, 2, 3] == numbers(generated), "called anew for each run"


def test_d3_zip_enumerate_concatenate():
    pair = Dataset.zip((Dataset.range(3), Dataset.range(10, 20)))
    assert numbers(pair) == [(0, 10), (1, 11), (2, 12)]
    assert numbers(Dataset.range(5, 7).enumerate(start=1)) == [(1, 5), (2, 6)]
    assert numbers(Dataset.range(2).concatenate(Dataset.range(7, 9))) == [0, 1, 7, 8]


def test_d3_map_and_filter_are_traced():
    calls = []

    def double(x):
        calls.append(tf.inside_function())
        return x * 2

    def even(x):
        if x % 4 == 0:
            kept = True
        else:
            kept = False
        return kept

    dataset = Dataset.range(1000).map(double, num_parallel_calls=2).filter(even)
    assert numbers(dataset) == [x * 2 for x in range(1000) if x * 2 % 4 == 0]
    assert calls == [True], "Python ran once, to trace"


def test_d3_traced_functions_run_while_the_interpreter_lock_is_held():
    elements, size = 5, 400_000
    dataset = Dataset.range(elements).map(lambda x: tf.range(size // 8, dtype=tf.int64) * x)
    dataset = dataset.prefetch(elements)
    before = tf.memory.live_bytes()
    interval = sys.getswitchinterval()
    running = iter(dataset)
    next(running)
    sys.setswitchinterval(1e6)  # nobody else gets the lock while this thread does not wait
    try:
        for _ in range(20_000_000):
            if tf.memory.live_bytes() - before >= (elements - 1) * size:
                break
        else:
            pytest.fail("nothing was made ready")
    finally:
        sys.setswitchinterval(interval)
    assert [int(x[1]) for x in running] == [1, 2, 3, 4]


def test_d3_batches():
    assert numbers(Dataset.range(7).batch(3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(Dataset.range(7).batch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert numbers(Dataset.range(7).batch(3).unbatch()) == list(range(7))
    ragged = Dataset.from_generator(lambda: (np.arange(n) for n in [1, 3, 2]))
    assert numbers(ragged.padded_batch(2, padding_values=-1)) == [[[0, -1, -1], [0, 1, 2]], [[0, 1]]]
    assert numbers(ragged.padded_batch(3, padded_shapes=[4])) == [[[0, 0, 0, 0], [0, 1, 2, 0], [0, 1, 0, 0]]]
    windows = [numbers(window) for window in Dataset.range(5).window(3, shift=2)]
    assert windows == [[0, 1, 2], [2, 3, 4], [4]]


def test_d3_order_and_number():
    dataset = Dataset.range(10)
    assert numbers(dataset.take(3)) == [0, 1, 2]
    assert numbers(dataset.skip(7)) == [7, 8, 9]
    assert numbers(dataset.take(2).repeat(3)) == [0, 1] * 3
    assert numbers(dataset.shard(3, 1)) == [1, 4, 7]
    assert sorted(numbers(dataset.shuffle(4, seed=1))) == list(range(10))
    assert numbers(dataset.shuffle(10, seed=1)) == numbers(Dataset.range(10).shuffle(10, seed=1))
    both = dataset.shuffle(10, seed=1)
    assert numbers(both) != numbers(both), "another order in each epoch"
    fixed = dataset.shuffle(10, seed=1, reshuffle_each_iteration=False)
    assert numbers(fixed) == numbers(fixed)
    for place, x in enumerate(numbers(dataset.shuffle(4, seed=3))):
        assert x <= place + 3, "nothing comes before it is in the buffer"
    assert (len(dataset), len(dataset.batch(3)), int(dataset.repeat().cardinality())) == (10, 4, -1)


def test_d3_interleave_and_flat_map():
    def three(x):
        return Dataset.from_tensors(x).repeat(3)

    assert numbers(Dataset.range(2).flat_map(three)) == [0, 0, 0, 1, 1, 1]
    assert numbers(Dataset.range(4).interleave(three, cycle_length=2, block_length=2)) == (
        [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]
    )


def test_d3_reduce():
    total = Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda state, x: state + x)
    assert int(total) == 10


@pytest.mark.parametrize("where", ["memory", "file"])
def test_d3_a_cache_is_filled_once(where, tmp_path):
    runs = []

    def source():
        runs.append(1)
        yield from range(3)

    dataset = Dataset.from_generator(source).cache(str(tmp_path / "kept") if where == "file" else "")
    assert [numbers(dataset) for _ in range(3)] == [[0, 1, 2]] * 3
    assert len(runs) == 1


def test_d3_prefetch_changes_nothing():
    for size in [1, 2, tf.data.AUTOTUNE]:
        assert numbers(Dataset.range(100).prefetch(size)) == list(range(100))


@pytest.mark.parametrize("stage", ["shuffle", "prefetch"])
def test_d4_buffers_stay_under_their_bytes(stage, rng):
    rows = rng.normal(size=(1000, 100)).astype("f4")  # 400 bytes each
    room = 10_000
    dataset = getattr(Dataset.from_tensor_slices(rows), stage)(buffer_bytes=room)
    running = iter(dataset)
    seen = np.array([row.numpy() for row in running])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, rows))
    [(_, most)] = [row for row in running.report().stages if row[0] == stage]
    assert 0 < most <= room
    if stage == "shuffle":
        assert most == room // 400 * 400, "and they are used"


def test_d4_a_cache_spills_to_disk(tmp_path, rng):
    rows = rng.normal(size=(100, 100)).astype("f4")
    room = 8_000
    dataset = Dataset.from_tensor_slices(rows).map(lambda row: row * 2.0)
    dataset = dataset.cache(str(tmp_path), memory_bytes=room)
    for _ in range(2):
        running = iter(dataset)
        np.testing.assert_array_equal([row.numpy() for row in running], rows * 2)
        [(_, most)] = [row for row in running.report().stages if row[0] == "cache"]
        assert most <= room
    assert any(path.stat().st_size >= 30_000 for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("stop", [0, 1, 17, 70])
def test_d4_an_iterator_goes_on_where_another_was(stop):
    def pipeline():
        return Dataset.range(100).shuffle(30, seed=5).map(lambda x: x * 3).repeat().batch(8).prefetch(2)

    running = iter(pipeline())
    for _ in range(stop):
        next(running)
    position = running.position
    expected = numbers(itertools.islice(running, 20))
    assert numbers(itertools.islice(pipeline().iterate(position), 20)) == expected


@pytest.fixture
def checking():
    """Every op is checked for what is no number."""
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@pytest.mark.parametrize("kind", ["eager", "traced", "jit"])
def test_d5_the_first_op_that_makes_no_number_is_found(kind, checking, line_of):
    def f(x):
        y = x * 2.0
        z = tf.math.log(y - 2.0)  # the one
        return tf.exp(z) + z * 0.0

    g = f if kind == "eager" else tf.function(f, jit_compile=kind == "jit")
    assert np.isfinite(g(tf.constant([2.0, 3.0])).numpy()).all()
    with pytest.raises(ValueError) as caught:
        g(tf.constant([2.0, 0.5]))
    text = str(caught.value)
    assert "log" in text and "NaN" in text
    line = line_of(test_d5_the_first_op_that_makes_no_number_is_found, "# the one")
    assert f"test_d.py:{line}" in text, text


@pytest.mark.parametrize("kind", ["eager", "traced", "jit"])
def test_d5_infinity_in_the_way_back_is_found(kind, checking, line_of):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)  # the one
            z = tf.reduce_sum(y * 2.0)
        return tape.gradient(z, x)

    g = f if kind == "eager" else tf.function(f, jit_compile=kind == "jit")
    np.testing.assert_allclose(g(tf.constant([4.0, 1.0])).numpy(), [0.5, 1.0])
    with pytest.raises(ValueError) as caught:
        g(tf.constant([4.0, 0.0]))
    text = str(caught.value)
    assert "inf" in text.lower()
    line = line_of(test_d5_infinity_in_the_way_back_is_found, "# the one")
    assert f"test_d.py:{line}" in text, text


@pytest.mark.parametrize("traced", [False, True])
def test_d5_one_tensor_can_be_checked(traced, line_of):
    def f(x):
        return tf.debugging.check_numerics(x / 2.0, "halved") + 1.0  # the one

    g = tf.function(f) if traced else f
    assert g(tf.constant([2.0])).numpy().tolist() == [2.0]
    for bad in [np.nan, np.inf]:
        with pytest.raises(ValueError, match="halved") as caught:
            g(tf.constant([1.0, bad]))
        line = line_of(test_d5_one_tensor_can_be_checked, "# the one")
        assert f"test_d.py:{line}" in str(caught.value)


def test_d5_nothing_is_checked_unless_asked():
    assert np.isnan(tf.math.log(tf.constant(-1.0)).numpy())


def test_d6_a_profile_knows_every_byte_and_its_line(line_of):
    x = tf.ones([1000])
    with tf.profiler.Profile("exp") as profile:
        tf.profiler.mark("before")
        y = tf.exp(x)  # the one
        tf.profiler.mark("after")
        live = tf.memory.live_bytes()
        z = tf.reduce_sum(y)
        del y
    assert profile.live_at_end - profile.live_at_start == 4
    assert [(mark.name, mark.live_bytes - profile.live_at_start) for mark in profile.marks()] == [("before", 0), ("after", 4000)]
    after = profile.marks()[1]
    assert after.live_bytes == live
    alive = profile.alive(after.at)
    assert sum(row.bytes for row in alive) == live
    made = next(row for row in alive if row.op == "exp")
    assert made.bytes == 4000
    assert f"test_d.py:{line_of(test_d6_a_profile_knows_every_byte_and_its_line, '# the one')}" in made.line
    assert sum(row.bytes for row in profile.alive()) == profile.peak_bytes == profile.live_at_start + 4004
    assert max(sample.live_bytes for sample in profile.memory()) == profile.peak_bytes
    calls = {row.op: row.calls for row in profile.by_op()}
    assert calls == {"exp": 1, "sum": 1}
    assert profile.dropped == (0, 0, 0)
    assert 0 <= profile.peak_at <= profile.seconds
    assert float(z) == pytest.approx(1000 * np.e, rel=1e-6)


def test_d6_planned_against_real(rng):
    @tf.function
    def f(x):
        return tf.matmul(tf.sort(x), x)

    x = tf.constant(rng.normal(size=(64, 64)))
    with tf.profiler.Profile() as profile:
        for _ in range(3):
            f(x)
    (row,) = profile.planned()
    assert row.is_exact and row.runs == 3
    assert row.planned == f.plan(x).peak_bytes


def test_d6_pages_and_traces_are_written(tmp_path):
    @tf.function
    def step(x):
        return tf.tanh(tf.matmul(x, x))

    x = tf.ones([32, 32])
    with tf.profiler.Profile("<a title>") as profile:
        step(x)
    page = tmp_path / "pages" / "page.html"
    profile.save_html(page, plans={"my step": step.plan(x)})
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "&lt;a title&gt;" in text and "my step" in text
    assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), "the page needs nothing from outside"

    tf.profiler.experimental.start(tmp_path / "log")
    with tf.profiler.experimental.Trace("train", step_num=3):
        step(x)
    tf.profiler.experimental.stop()
    assert (tmp_path / "log" / "profile.html").read_text().startswith("<!doctype html>")
    trace = json.loads((tmp_path / "log" / "trace.json").read_text())
    names = {event.get("name") for event in trace["traceEvents"]}
    assert {"train step_num=3", "matmul"} <= names, names


def test_d6_one_profile_at_a_time():
    with tf.profiler.Profile() as outer:
        with pytest.raises(RuntimeError, match="over"):
            outer.peak_bytes  # noqa: B018
        with pytest.raises(ValueError, match="one at a time"):
            tf.profiler.Profile().start()
    assert outer.peak_bytes >= 0
    with pytest.raises(RuntimeError, match="start"):
        tf.profiler.Profile().stop()
    with pytest.raises(RuntimeError, match="start"):
        tf.profiler.experimental.stop()


def test_d7_an_allocator_of_ones_own():
    """Every byte of a piece of work comes from two functions, and goes back to them."""
    c = ctypes.CDLL(None)
    c.aligned_alloc.restype = ctypes.c_void_p
    c.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    c.free.argtypes = [ctypes.c_void_p]
    held = {}

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
    def allocate(count):
        block = c.aligned_alloc(64, -(-count // 64) * 64)
        held[block] = count
        return block

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
    def release(block, count):
        assert held.pop(block) == count
        c.free(block)

    tf.memory.set_allocator((allocate, release), name="counting")
    try:
        assert tf.memory.allocator() == "counting"
        before = tf.memory.live_bytes()
        x = tf.ones([1000])
        y = tf.function(lambda x: tf.sort(x * 2.0))(x)
        assert x.data_ptr() in held and y.data_ptr() in held
        assert sum(held.values()) == tf.memory.live_bytes() - before
    finally:
        tf.memory.set_allocator("pool")
    assert tf.memory.allocator() == "pool"
    assert y.numpy().tolist() == [2.0] * 1000
    del x, y  # they go back to where they came from, though the pool is at work now
    assert sum(held.values()) == tf.memory.live_bytes() - before == 0


def test_d7_an_allocator_that_has_nothing_to_give():
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(lambda count: None)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(lambda block, count: None)
    tf.memory.set_allocator((nothing, release), name="empty")
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="cannot be had from the empty allocator"):
            tf.ones([1000])
    finally:
        tf.memory.set_allocator("pool")


def test_d7_allocators_by_name():
    tf.memory.set_allocator("system")
    try:
        x = tf.ones([1000])
        assert tf.memory.allocator() == "system"
        del x
    finally:
        tf.memory.set_allocator("pool")
    with pytest.raises(ValueError, match="pool"):
        tf.memory.set_allocator("arena of mine")
    with pytest.raises(ValueError, match="address"):
        tf.memory.set_allocator((0, 0))
