"""Iterators in traced functions deliver an element per run, as in TensorFlow, and tracing computes none in vain."""

import warnings

import numpy as np
import pytest

import taut as tf


def numbers(count):
    return tf.data.Dataset.range(count)


def take_next(iterator):
    return next(iterator)


def test_an_argument_delivers_its_next_element_in_every_call():
    f, iterator = tf.function(take_next), iter(numbers(3))
    assert [int(f(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        f(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert int(f(iterator=iter(numbers(9)))) == 0
    assert f.trace_count == 1


def test_eager_and_traced_calls_share_one_position():
    f, iterator = tf.function(take_next), iter(numbers(6))
    assert [int(next(iterator)), int(f(iterator)), int(iterator.get_next()), int(f(iterator))] == [0, 1, 2, 3]
    assert iterator.position == (0, 4)


def test_iterators_that_a_function_captures():
    iterator = iter(numbers(3))
    f = tf.function(lambda: next(iterator) + 10)
    assert [int(f()) for _ in range(3)] == [10, 11, 12]
    with pytest.raises(tf.errors.OutOfRangeError):
        f()


def test_batches_of_pairs_and_of_another_size_at_the_end():
    x, y = np.arange(10, dtype="f4").reshape(5, 2), np.arange(5)
    f = tf.function(lambda it: next(it))
    iterator = iter(tf.data.Dataset.from_tensor_slices((x, y)).batch(2))
    for rows in (slice(0, 2), slice(2, 4), slice(4, 5)):
        found = f(iterator)
        np.testing.assert_array_equal(found[0], x[rows])
        np.testing.assert_array_equal(found[1], y[rows])
    assert f.trace_count == 2


def test_every_step_of_a_loop_takes_an_element():
    iterator = iter(numbers(10))

    @tf.function
    def f(n):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            total += next(iterator)
        return total

    assert [int(f(3)), int(f(2)), int(f(tf.constant(4)))] == [3, 7, 26]


def test_an_iterator_that_is_made_in_the_function_begins_anew():
    data = numbers(3)

    @tf.function
    def f():
        iterator = iter(data)
        return next(iterator) + next(iterator) * 10

    assert [int(f()), int(f())] == [10, 10]


def test_a_loop_over_an_iterator_takes_the_rest():
    @tf.function
    def f(iterator):
        total = tf.constant(0, tf.int64)
        for x in iterator:
            total += x
        return total

    iterator = iter(numbers(5))
    next(iterator)
    assert [int(f(iterator)), int(f(iterator))] == [10, 0]


def test_optionals_tell_the_end():
    iterator = iter(numbers(1))
    first, last = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    assert bool(first.has_value()) and int(first.get_value()) == 0 and not bool(last.has_value())
    with pytest.raises(tf.errors.InvalidArgumentError):
        last.get_value()

    @tf.function
    def f(iterator):
        total, steps = tf.constant(0, tf.int64), 0
        element = iterator.get_next_as_optional()
        while element.has_value():
            total += element.get_value()
            steps += 1
            element = iterator.get_next_as_optional()
        return total, steps

    assert [int(part) for part in f(iter(numbers(3)))] == [3, 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lambda it: it.get_next_as_optional().get_value())(iter(numbers(0)))


def test_elements_in_a_branch_are_taken_only_there():
    iterator = iter(numbers(9))

    @tf.function
    def f(go):
        found = tf.constant(-1, tf.int64)
        if go:
            found = next(iterator)
        return found

    assert [int(f(tf.constant(go))) for go in (True, False, True)] == [0, -1, 1]


def test_a_mapped_function_takes_an_element_per_element():
    iterator = iter(numbers(5))
    assert [int(x) for x in numbers(3).map(lambda x: x * 10 + next(iterator))] == [0, 11, 22]


def counted(dataset):
    calls = []

    def count(x):
        calls.append(int(x))
        return x

    spec = tf.TensorSpec([], tf.int64)
    return dataset.map(lambda x: tf.py_function(count, [x], spec)), calls


def test_tracing_computes_no_element_in_vain():
    data, calls = counted(numbers(10))
    batches = data.batch(4)

    @tf.function
    def f():
        total = tf.constant(0, tf.int64)
        for batch in batches:
            total += tf.reduce_sum(batch)
        return total

    assert int(f()) == 45
    assert calls == list(range(10))
    assert int(f()) == 45 and len(calls) == 20

    data, calls = counted(numbers(3))
    iterator = iter(data)
    assert int(tf.function(take_next)(iterator)) == 0 and calls == [0]


@pytest.mark.parametrize("signed", [True, False])
def test_generators_start_once_per_run(signed):
    starts = []

    def rows():
        starts.append(1)
        yield from range(10 * len(starts), 10 * len(starts) + 3)

    spec = tf.TensorSpec([], tf.int32) if signed else None
    data = tf.data.Dataset.from_generator(rows, output_signature=spec)

    @tf.function
    def f():
        total = 0
        for x in data:
            total += x
        return total

    assert [int(f()), int(f())] == [33, 63] and len(starts) == 2
    assert int(tf.function(take_next)(iter(data))) == 30 and len(starts) == 3


def test_datasets_are_reduced_when_the_function_runs():
    rows = [1, 2]
    data = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([], tf.int32))
    f = tf.function(lambda: data.reduce(0, lambda state, x: state + x))
    assert int(f()) == 3
    rows.append(10)
    assert int(f()) == 13
    single = tf.function(lambda: tf.data.Dataset.from_tensors(7).get_single_element())
    assert int(single()) == 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="exactly one"):
        tf.function(lambda: numbers(2).get_single_element())()


def test_python_does_not_iterate_in_a_trace():
    def unroll(iterator):
        return [x for x in iterator]

    plain = tf.function(unroll, autograph=False)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="when the function runs"):
        plain(iter(numbers(3)))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="when the function runs"):
        plain(numbers(3))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="as_numpy_iterator"):
        tf.function(lambda: list(numbers(3).as_numpy_iterator()))()


def test_specs_are_known_without_elements():
    def never(x):
        raise AssertionError("computed")

    spec = tf.TensorSpec([2], tf.float32)
    data = numbers(10).map(lambda x: tf.py_function(never, [x], spec))
    assert data.batch(4).element_spec == tf.TensorSpec([None, 2], tf.float32)
    assert data.batch(4, drop_remainder=True).element_spec == tf.TensorSpec([4, 2], tf.float32)
    assert data.batch(5).shuffle(3).repeat().prefetch(1).element_spec == tf.TensorSpec([None, 2], tf.float32)
    index = tf.TensorSpec([], tf.int64)
    assert data.enumerate().element_spec == (index, spec)
    assert tf.data.Dataset.zip((data, numbers(3))).element_spec == (spec, index)
    assert data.batch(2).unbatch().take(3).element_spec == spec
    empty = tf.data.Dataset.from_generator(lambda: iter(()))
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_signature"):
        empty.element_spec


def test_training_steps_take_batches_from_an_iterator():
    x = np.arange(12, dtype="f4").reshape(6, 2)
    iterator = iter(tf.data.Dataset.from_tensor_slices(x).batch(2).repeat())
    w = tf.Variable([[1.0], [2.0]])

    @tf.function
    def step(iterator):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(next(iterator), w) ** 2)
        w.assign_sub(0.001 * tape.gradient(loss, w))
        return loss

    want = np.array([[1.0], [2.0]], "f8")
    for i in range(5):
        rows = x[2 * (i % 3) : 2 * (i % 3) + 2].astype("f8")
        np.testing.assert_allclose(step(iterator), np.mean((rows @ want) ** 2), rtol=1e-4)
        want -= 0.001 * (2 / 2 * rows.T @ (rows @ want))
    np.testing.assert_allclose(w, want, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*runs op by op")
@pytest.mark.parametrize("takes", ["captured", "made inside"])
def test_a_last_batch_may_be_smaller(takes):
    # TensorFlow 2.21 gives these batches; the dataset's element_spec has None for their size.
    batches = tf.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0], [1, 2, 3])).batch(2)
    if takes == "captured":
        iterator = iter(batches)

        @tf.function
        def step():
            x, y = next(iterator)
            return x * 2, y + 1

        found = [step(), step()]
        with pytest.raises(tf.errors.OutOfRangeError):
            step()
    else:

        @tf.function
        def both():
            inside = iter(batches)
            (x, y), (z, w) = next(inside), next(inside)
            return (x * 2, y + 1), (z * 2, w + 1)

        found = both()
    assert [(x.numpy().tolist(), y.numpy().tolist()) for x, y in found] == [([2.0, 4.0], [2, 3]), ([6.0], [4])]


def test_batches_of_one_size_keep_the_plan():
    iterator = iter(tf.data.Dataset.range(6).batch(3))
    step = tf.function(lambda: next(iterator))
    assert [step().numpy().tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    assert step.plan().peak_bytes >= 0


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_variables_that_functions_of_datasets_assign_have_their_values():
    # TensorFlow 2.21: (10, 20), ((66, 6), (165, 15)) and ((3, 3), (6, 6)).
    v = tf.Variable(0)

    def counted(x):
        return x + tf.cast(v.assign_add(1), tf.int64)

    @tf.function
    def after_a_loop():
        for _ in tf.data.Dataset.range(10).map(counted):
            pass
        return v

    assert (int(after_a_loop()), int(after_a_loop())) == (10, 20)
    v.assign(0)
    stages = {
        "map": lambda: tf.data.Dataset.range(3).map(counted),
        "captured": lambda data=tf.data.Dataset.range(3).map(counted): data,
        "filter": lambda: tf.data.Dataset.range(3).filter(lambda x: counted(x) >= 0),
        "scan": lambda: tf.data.Dataset.range(3).scan(np.int64(0), lambda state, x: (state, counted(x))),
        "behind": lambda: tf.data.Dataset.range(3).map(counted).batch(1).prefetch(1).unbatch(),
    }
    for name, made in stages.items():
        total = tf.function(lambda made=made: (made().reduce(np.int64(0), lambda s, x: s + 1), v.read_value())[1])
        v.assign(0)
        assert (int(total()), int(total())) == (3, 6), name

    data = tf.data.Dataset.range(3).map(lambda x: tf.cast(v.assign_add(1), tf.int64))

    @tf.function
    def in_a_loop(data):
        both, own = tf.constant(0, tf.int64), tf.constant(0, tf.int64)
        for x in data:
            both, own = both + tf.cast(v, tf.int64) * 10 + x, own + x
        return both, own

    v.assign(0)
    assert [tuple(map(int, in_a_loop(data))) for _ in range(2)] == [(66, 6), (165, 15)]


def test_functions_of_datasets_that_read_variables_keep_the_plan():
    v = tf.Variable(2, dtype=tf.int64)

    @tf.function
    def total():
        return tf.data.Dataset.range(3).map(lambda x: x * v).reduce(np.int64(0), lambda s, x: s + x) + v

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (int(total()), int(v.assign(3)), int(total())) == (8, 3, 12)


def batches():
    return iter(tf.data.Dataset.range(9).batch(4))


def test_an_argument_whose_last_batch_is_smaller_is_taken_several_times():
    def weighted(x):
        return tf.reduce_sum(x) * tf.cast(tf.shape(x)[0], tf.int64)

    @tf.function
    def optionals(it):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(5):
            found = it.get_next_as_optional()
            if not found.has_value():
                break
            total += weighted(found.get_value())
        return total

    @tf.function
    def steps(it, n):
        total = tf.constant(0, tf.int64)
        for _ in tf.range(n):
            total += weighted(next(it))
        return total

    @tf.function
    def twice(it):
        return weighted(next(it)) * 1000 + weighted(next(it))

    @tf.function
    def every(it):
        total = tf.constant(0, tf.int64)
        for x in it:
            total = total * 2 + tf.reduce_sum(x)
        return total

    rest = batches()
    next(rest)
    with pytest.warns(RuntimeWarning, match=r"shapes of a dataset's elements vary.*test_iterators_in_traces.py:\d+"):
        assert optionals(batches()).numpy() == 120
    with pytest.warns(RuntimeWarning, match="op by op"):
        assert steps(batches(), tf.constant(3)).numpy() == 120
    with pytest.warns(RuntimeWarning, match="op by op"):
        assert twice(rest).numpy() == 88008
    with pytest.warns(RuntimeWarning, match="op by op"):
        assert every(batches()).numpy() == 76


def test_an_argument_that_is_taken_once_in_a_call_keeps_its_plan():
    total = tf.function(lambda it: tf.reduce_sum(next(it)))
    data = batches()
    assert [int(total(data)) for _ in range(3)] == [6, 22, 8]
    assert len(total.traces) == 2
