"""AutoGraph: traced loops iterate over datasets when the function runs."""

import pytest

import taut as tf


def numbers(count):
    return tf.data.Dataset.range(count)


@pytest.mark.parametrize("count", [8, 10, 3, 1])
def test_all_elements_come_in_every_run(count):
    traced = []

    @tf.function
    def f(batches):
        traced.append(1)
        total, steps = tf.constant(0, tf.int64), 0
        for batch in batches:
            total += tf.reduce_sum(batch)
            steps += 1
        return total, steps

    batches = numbers(count).batch(4)
    for _ in range(3):
        total, steps = f(batches)
        assert (int(total), int(steps)) == (count * (count - 1) // 2, -(-count // 4))
    assert f.trace_count == 1 and len(traced) == 1


def test_a_shuffle_is_another_one_in_every_run():
    shuffled = numbers(20).shuffle(20, seed=1)

    @tf.function
    def order():
        made = tf.TensorArray(tf.int64, size=20)
        for i, number in enumerate(shuffled):
            made = made.write(i, number)
        return made.stack()

    runs = [order().numpy().tolist() for _ in range(3)]
    assert all(sorted(run) == list(range(20)) for run in runs)
    assert runs[0] != runs[1] != runs[2]


def test_generators_are_asked_in_every_run():
    rows = [1.0, 2.0]
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([], tf.float32))

    @tf.function
    def total():
        found = 0.0
        for x in dataset:
            found += x
        return found

    assert float(total()) == 3.0
    rows.append(10.0)
    assert float(total()) == 13.0


def test_loops_that_end_early_begin_again():
    @tf.function
    def first_above(bound):
        found = tf.constant(-1, tf.int64)
        for number in numbers(10).repeat():
            if number * number > bound:
                found = number
                break
        return found

    assert [int(first_above(tf.constant(b, tf.int64))) for b in (10, 50, 0)] == [4, 8, 1]

    @tf.function
    def up_to(bound):
        total = tf.constant(0, tf.int64)
        for batch in numbers(10).batch(4):
            if batch[0] >= bound:
                break
            total += tf.reduce_sum(batch)
        return total

    assert [int(up_to(tf.constant(b, tf.int64))) for b in (8, 9, 4)] == [28, 45, 6]


def test_datasets_side_by_side_and_in_one_another():
    @tf.function
    def f():
        total = tf.constant(0, tf.int64)
        for a, b in zip(numbers(3), numbers(3).map(lambda x: x * 10)):
            for c in numbers(2):
                total += (a + b) * c
        return total

    assert [int(f()) for _ in range(2)] == [33, 33]


def test_nothing_is_gone_through():
    @tf.function
    def f():
        total = tf.constant(5, tf.int64)
        for x in numbers(0):
            total += x
        return total

    assert int(f()) == 5


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_elements_of_different_shapes_are_computed_op_by_op():
    uneven = numbers(5).batch(2).repeat(2)

    @tf.function
    def f():
        total = tf.constant(0, tf.int64)
        for batch in uneven:
            total += tf.reduce_sum(batch)
        return total

    assert int(f()) == 20
    with pytest.raises(tf.errors.DynamicShapeError, match="dataset's elements"):
        f.plan()


def test_a_distributed_dataset_is_iterated_over_in_every_run():
    strategy = tf.distribute.MirroredStrategy()

    def weighted(x):
        return tf.cast(tf.reduce_sum(x), tf.float32) * tf.cast(tf.shape(x)[0], tf.float32)

    @tf.function
    def epoch(data):
        total, count = 0.0, 0
        for x in data:
            total += strategy.reduce("SUM", strategy.run(weighted, args=(x,)), axis=None)
            count += 1
        return total, count

    @tf.function
    def numbered(data):
        total = tf.constant(0, tf.int64)
        for i, x in enumerate(data):
            total += i * x
        return total

    for size, batch, expected in ((640, 64, (13086720.0, 10)), (10, 4, (146.0, 3)), (3, 5, (9.0, 1))):
        data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(size).batch(batch))
        for _ in range(2):
            assert tuple(float(one) for one in epoch(data)) == expected
    made = strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(4))
    assert int(numbered(made)) == 14
