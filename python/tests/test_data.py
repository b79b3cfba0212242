"""Datasets: sources."""

import numpy as np
import pytest

import taut as tf


@pytest.mark.parametrize("types", [np.float32, "float32", tf.float32])
def test_a_generator_with_types(types):
    made = list(tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_types=types))
    assert [one.dtype for one in made] == [tf.float32] * 2
    assert [float(one) for one in made] == [1.0, 2.0]


def test_a_generator_with_types_and_shapes():
    def elements():
        yield [1, 2], 3
        yield [4], 5

    source = tf.data.Dataset.from_generator(elements, (tf.int64, tf.float32), ([None], []))
    (first, number), second = list(source)
    assert first.dtype == tf.int64 and first.numpy().tolist() == [1, 2]
    assert number.dtype == tf.float32
    assert second[0].numpy().tolist() == [4]
    narrow = tf.data.Dataset.from_generator(elements, (tf.int64, tf.float32), ([2], []))
    with pytest.raises(ValueError, match="the generator must yield"):
        list(narrow)


def test_samples_go_on_until_all_have_ended():
    short, long = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 150)
    made = [int(one) for one in tf.data.Dataset.sample_from_datasets([short, long], seed=5)]
    assert sorted(made) == [*range(3), *range(100, 150)]
    assert [one for one in made if one >= 100] == list(range(100, 150))


def test_one_element_and_no_more():
    assert int(tf.data.Dataset.from_tensors(7).get_single_element()) == 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="it has more"):
        tf.data.Dataset.range(2).get_single_element()
    running = iter(tf.data.Dataset.range(1))
    assert int(running.get_next()) == 0
    with pytest.raises(tf.errors.OutOfRangeError):
        running.get_next()


def test_a_reduction_has_a_state():
    first = np.int64(0), np.int64(1)
    total = tf.data.Dataset.range(1, 6).reduce(first, lambda state, x: (state[0] + x, state[1] * x))
    assert [int(one) for one in total] == [15, 120]
