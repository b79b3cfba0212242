"""A function is traced once for all datasets and iterators whose elements have the same types and shapes.

Trace counts and values are those of TensorFlow 2.21, unless a comment says how it differs.
"""

import gc
import weakref

import numpy as np
import pytest

import taut as tf


def counts(function, *calls):
    found = []
    for args in calls:
        value = function(*args)
        found.append((int(value), function.experimental_get_tracing_count()))
    return found


def ranged(*args):
    return tf.data.Dataset.range(*args)


def total(dataset):
    s = tf.constant(0, tf.int64)
    for x in dataset:
        s += x
    return s


def test_loops_over_datasets():
    calls = [(ranged(3),), (ranged(5, 9),), (ranged(5).map(lambda x: x * 2),)]
    assert counts(tf.function(total), *calls) == [(3, 1), (26, 1), (20, 1)]


def test_iterators():
    one, other = iter(ranged(3)), iter(ranged(5, 9))
    f = tf.function(lambda it: next(it))
    assert counts(f, (one,), (other,), (one,)) == [(0, 1), (5, 1), (1, 1)]
    assert int(f(iter(ranged(7, 9)))) == 7


def test_reductions():
    f = tf.function(lambda d: d.reduce(tf.constant(0, tf.int64), lambda s, x: s + x))
    assert counts(f, (ranged(3),), (ranged(5, 9),)) == [(3, 1), (26, 1)]


def test_every_call_iterates_from_the_start():
    f, data = tf.function(total), ranged(4)
    assert counts(f, (data,), (ranged(3),), (data,), (data,)) == [(6, 1), (3, 1), (6, 1), (6, 1)]


def test_cardinality_is_that_of_the_dataset():
    f = tf.function(lambda d: d.cardinality())
    assert counts(f, (ranged(3),), (ranged(5, 9),)) == [(3, 1), (4, 1)]


def test_none_one_unknown_and_infinite_are_traces_of_their_own():
    def until_ten(dataset):
        s = tf.constant(0, tf.int64)
        for x in dataset:
            s += x
            if s > 10:
                break
        return s

    f = tf.function(until_ten)
    even = [(ranged(n).filter(lambda x: x % 2 == 0),) for n in (4, 8)]
    found = [int(f(*args)) for args in [(ranged(0),), (ranged(1),), (ranged(9),), (ranged(1, 9).repeat(),), *even]]
    assert found == [0, 0, 15, 15, 2, 12]
    # The empty ones, single ones, several ones, infinite ones and unknown ones.
    assert f.experimental_get_tracing_count() == 5


def test_a_smaller_last_batch():
    def sizes(dataset):
        s = tf.constant(0)
        for x in dataset:
            s = s * 10 + tf.shape(x)[0]
        return s

    f = tf.function(sizes)
    assert counts(f, (ranged(5).batch(2),), (ranged(7).batch(2),)) == [(221, 1), (2221, 1)]
    # All batches are whole, and there is only one: other specs.
    assert counts(f, (ranged(4).batch(2),), (ranged(1).batch(2),)) == [(22, 2), (1, 3)]


def test_functions_that_make_stages_are_traced_for_each_dataset():
    def twofold(dataset):
        return dataset.map(lambda x: x * 2).reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

    f = tf.function(twofold)
    one, other = ranged(3), ranged(5, 9)
    # TensorFlow needs one trace.
    assert [int(f(d)) for d in (one, other, one)] == [6, 52, 6]
    f = tf.function(lambda d: tf.constant(len(d)))
    assert [int(f(d)) for d in (one, other, one)] == [3, 4, 3]


def test_functions_that_pass_datasets_on():
    inner = tf.function(total)
    outer = tf.function(lambda d: inner(d) * 10)
    assert counts(outer, (ranged(3),), (ranged(5, 9),)) == [(30, 1), (260, 1)]
    makes_stages = tf.function(lambda d: d.take(2).reduce(tf.constant(0, tf.int64), lambda s, x: s + x))
    outer = tf.function(lambda d: makes_stages(d) * 10)
    assert [int(outer(d)) for d in (ranged(3), ranged(5, 9))] == [10, 110]


def test_elements_of_another_spec_are_another_trace():
    f = tf.function(lambda d: d.reduce(tf.constant(0, tf.int64), lambda s, x: s + tf.cast(tf.reduce_sum(x), tf.int64)))
    pairs = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
    assert counts(f, (ranged(3),), (pairs,), (pairs.take(2),)) == [(3, 1), (6, 2), (4, 2)]


def test_datasets_whose_specs_are_not_known_are_compared_by_identity():
    def lengths(dataset):
        s = tf.constant(0)
        for x in dataset:
            s += tf.shape(x)[0]
        return s

    def rows():
        yield np.ones(2, np.float32)
        yield np.ones(3, np.float32)

    f = tf.function(lengths)
    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([None], tf.float32))
    assert [int(f(data)) for _ in range(2)] == [5, 5]


def test_a_trace_keeps_no_dataset_alive():
    f = tf.function(total)
    data = ranged(3)
    reference = weakref.ref(data)
    f(data)
    del data
    # The iterator of a run is kept until the next run on this thread.
    assert int(f(ranged(4))) == 6
    gc.collect()
    assert reference() is None


def test_what_stands_in_for_a_dataset_is_a_dataset():
    f = tf.function(lambda d: tf.constant(1 if isinstance(d, tf.data.Dataset) else 0))
    assert int(f(ranged(3))) == 1
    with pytest.raises(AttributeError, match="nothing"):
        tf.function(lambda d: d.nothing)(ranged(3))
