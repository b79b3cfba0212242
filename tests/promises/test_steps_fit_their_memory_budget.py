"""`memory_budget`: a step is compiled to fit the bytes it is allowed, and computes the same."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf


def mlp(depth=32, width=32, batch=64):
    """A deep network with gradient descent: the body of a step, its arguments, its variables."""
    rng = np.random.default_rng(1)
    scale = 1.1 / width**0.5
    weights = [tf.Variable(rng.normal(size=(width, width)).astype("f4") * scale) for _ in range(depth)]

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(h @ w)
            loss = tf.reduce_mean(tf.square(h))
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.05 * gradient)
        return loss

    return step, [tf.constant(rng.normal(size=(batch, width)).astype("f4"))], weights


def transformer():
    """Two blocks of attention with dropout, and Adam."""
    rng = np.random.default_rng(2)
    tf.random.set_seed(3)
    batch, length, width, heads, words = 4, 16, 32, 4, 40

    def variable(*shape):
        return tf.Variable(rng.normal(size=shape).astype("f4") * 0.2)

    table, head = variable(words, width), variable(width, words)
    blocks = [[variable(width, 3 * width), variable(width, 4 * width), variable(4 * width, width)] for _ in range(2)]
    variables = [table, head, *[w for block in blocks for w in block]]
    optimizer = tf.optimizers.Adam(1e-2)
    optimizer.build(variables)

    def step(ids, labels):
        with tf.GradientTape() as tape:
            h = tf.gather(table, ids)
            for qkv, up, down in blocks:
                q, k, v = tf.split(tf.reshape(h @ qkv, [batch, length, heads, -1]), 3, axis=-1)
                scores = tf.nn.softmax(tf.einsum("bnhd,bmhd->bhnm", q, k) / (width / heads) ** 0.5)
                seen = tf.reshape(tf.einsum("bhnm,bmhd->bnhd", scores, v), [batch, length, width])
                h = h + tf.nn.dropout(seen, 0.1)
                h = h + tf.nn.gelu(h @ up) @ down
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, h @ head)
            loss = tf.reduce_mean(losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    ids = tf.constant(rng.integers(0, words, (batch, length)))
    labels = tf.constant(rng.integers(0, words, (batch, length)))
    return step, [ids, labels], variables


def run(build, budget):
    """The planned and the measured peak of a first call, and what two calls compute."""
    body, arguments, variables = build()
    step = tf.function(body, memory_budget=budget, name="step")
    planned = step.plan(*arguments).peak_bytes
    gc.collect()
    with tf.memory.measure() as measured:
        first = step(*arguments)
    second = step(*arguments)
    return planned, measured.peak_bytes, [first.numpy(), second.numpy(), *[v.numpy() for v in variables]]


@pytest.mark.parametrize("build", [mlp, transformer])
def test_every_budget_is_kept_with_the_same_bits(build):
    plain, measured, expected = run(build, None)
    assert measured == plain
    body, arguments, _ = build()
    rows = tf.function(body).frontier(*arguments).rows
    assert [row.bytes for row in rows] == sorted(row.bytes for row in rows)
    assert [row.time for row in rows] == sorted((row.time for row in rows), reverse=True)
    smallest = tf.function(body).frontier(*arguments).bit_equal_rows[0].bytes
    assert smallest < 0.6 * plain
    last = None
    for i in range(20):
        allowed = max(int(plain * (smallest / plain) ** (i / 19)), smallest)
        planned, measured, got = run(build, tf.memory.MemoryBudget(allowed, bit_equal=True))
        assert planned == measured <= allowed
        assert last is None or planned <= last
        last = planned
        for one, other in zip(got, expected):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"must be at least {smallest} bytes"):
        run(build, tf.memory.MemoryBudget(smallest - 1, bit_equal=True))


def test_a_step_that_cannot_fit_changes_nothing():
    body, arguments, variables = mlp()
    before = [v.numpy() for v in variables]
    step = tf.function(body, memory_budget=1000, name="train")
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        step(*arguments)
    text = str(caught.value)
    assert "the memory budget of train must be at least" in text and "got 1000 bytes" in text
    assert "no order needs less than" in text and __file__.rsplit("/", 1)[-1] in text
    for v, value in zip(variables, before):
        np.testing.assert_array_equal(v.numpy(), value)


def test_budgets_as_text_and_of_a_block():
    body, arguments, _ = mlp()
    plain = tf.function(body).plan(*arguments)
    assert not plain.fits("100 kB") and plain.fits("1MiB") and plain.fits(plain.peak_bytes)
    assert tf.function(body, memory_budget="100 kB").plan(*arguments).fits(100_000)
    with tf.memory.budget("0.1 MB"):
        within = tf.function(body)
        own = tf.function(body, memory_budget="80kB")
    assert within.plan(*arguments).peak_bytes <= 100_000
    assert own.plan(*arguments).peak_bytes <= 80_000
    assert tf.function(body).plan(*arguments).peak_bytes == plain.peak_bytes
    assert len(within.plan(*arguments).repeated_steps) > 0 and not plain.repeated_steps


@pytest.mark.parametrize("bad", [-1, "much", "12 parsecs", "", 1.5, True, [1]])
def test_what_is_no_budget_is_refused(bad):
    with pytest.raises((ValueError, TypeError), match="memory"):
        tf.function(lambda x: x, memory_budget=bad)


def test_a_budget_counts_arguments_and_variables_if_asked():
    body, arguments, _ = mlp()
    plan = tf.function(body).plan(*arguments)
    total = tf.memory.MemoryBudget(plan.total_bytes - 50_000, total=True)
    assert tf.function(body, memory_budget=total).plan(*arguments).total_bytes <= plan.total_bytes - 50_000
    assert plan.fits(tf.memory.MemoryBudget(plan.total_bytes, total=True))


def test_values_go_to_a_file_if_a_folder_is_named(tmp_path):
    def wide():
        # A product takes longer than to read its result from a disk.
        return mlp(8, 1024, 128)

    _, _, expected = run(wide, None)
    body, arguments, _ = wide()
    asked = tf.memory.MemoryBudget("1TB", bit_equal=True, spill_to=tmp_path)
    assert asked.spill_to == tmp_path
    rows = [
        row for row in tf.function(body, memory_budget=asked).frontier(*arguments).bit_equal_rows if row.spilled_bytes
    ]
    assert rows
    for row in rows:
        budget = tf.memory.MemoryBudget(row.bytes, bit_equal=True, spill_to=str(tmp_path))
        planned, measured, got = run(wide, budget)
        assert measured == planned <= row.bytes
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(a, b)
    assert list(tmp_path.iterdir()) == []  # the file has no name
    missing = tf.memory.MemoryBudget(rows[0].bytes, spill_to=tmp_path / "missing")
    with pytest.raises(ValueError, match="must be writable"):
        run(wide, missing)


def test_a_function_under_a_tape_keeps_its_budget():
    rng = np.random.default_rng(5)
    weights = [tf.Variable(rng.normal(size=(16, 16)).astype("f4") * 0.3) for _ in range(24)]
    x = tf.constant(rng.normal(size=(64, 16)).astype("f4"))

    def forward(x):
        for w in weights:
            x = tf.tanh(x @ w)
        return tf.reduce_sum(x)

    def peak_and_gradients(budget):
        f = tf.function(forward, memory_budget=budget)
        f.plan_gradient(x)
        gc.collect()
        with tf.memory.measure() as measured:
            with tf.GradientTape() as tape:
                loss = f(x)
            gradients = tape.gradient(loss, weights)
        return measured.peak_bytes, [g.numpy() for g in gradients]

    plain, expected = peak_and_gradients(None)
    allowed = int(0.6 * plain)
    peak, got = peak_and_gradients(allowed)
    assert peak <= allowed
    for one, other in zip(got, expected):
        np.testing.assert_array_equal(one, other)


def test_side_effects_happen_once():
    seen = []
    weights = [tf.Variable(np.full((16, 16), 0.1 * i, "f4")) for i in range(1, 17)]

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(h @ w)
            tf.numpy_function(lambda value: seen.append(float(value.sum())), [h], [])
            loss = tf.reduce_sum(h)
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.01 * gradient)
        return loss

    x = tf.ones([64, 16])
    plain = tf.function(step).plan(x).peak_bytes
    f = tf.function(step, memory_budget=plain // 2)
    assert f.plan(x).repeated_steps
    f(x), f(x)
    assert len(seen) == 2


def test_an_eager_tape_says_that_the_step_must_be_traced():
    with pytest.raises(ValueError, match="trace the step"):
        tf.GradientTape(memory_budget="1MB")
