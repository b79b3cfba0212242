"""Which draws of datasets are equal, as in TensorFlow 2.21: orders, samples and the random numbers of functions."""

import subprocess
import sys

import pytest

import taut as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [float(x) for x in dataset]


def pairs(dataset):
    return [tuple(float(part) for part in pair) for pair in dataset]


@pytest.fixture(autouse=True)
def _without_a_seed():
    tf.random.set_seed(None)
    yield
    tf.random.set_seed(None)


def shuffled(**options):
    return Dataset.range(20).shuffle(20, seed=1, **options)


def halves(dataset):
    all_of_it = values(dataset)
    return all_of_it[: len(all_of_it) // 2], all_of_it[len(all_of_it) // 2 :]


SEVERAL = {
    "concatenate": lambda d: d.concatenate(d),
    "flat_map": lambda d: Dataset.range(2).flat_map(lambda _: d),
    "zip": lambda d: (
        Dataset.zip((d, d)).map(lambda one, two: one).concatenate(Dataset.zip((d, d)).map(lambda one, two: two))
    ),
    "mapped": lambda d: d.map(lambda x: x + 0).concatenate(d.batch(4).unbatch()),
    "in the background": lambda d: d.prefetch(1).concatenate(d.map(lambda x: x, num_parallel_calls=2)),
}


@pytest.mark.parametrize("join", SEVERAL.values(), ids=SEVERAL)
def test_a_shuffled_dataset_that_occurs_twice_has_two_orders(join):
    one, two = halves(join(shuffled()))
    assert one != two
    assert sorted(one) == sorted(two) == list(range(20))
    # TensorFlow: the same order everywhere.
    one, two = halves(join(shuffled(reshuffle_each_iteration=False)))
    assert one == two


def test_two_shuffles_with_a_seed_have_one_order():
    assert all(one == two for one, two in pairs(Dataset.zip((shuffled(), shuffled()))))
    one, two = halves(Dataset.range(2).flat_map(lambda _: shuffled()))
    assert one == two


def test_orders_of_a_dataset_that_occurs_twice_are_those_of_its_seed():
    for join in SEVERAL.values():
        assert values(join(shuffled())) == values(join(shuffled()))


def test_three_occurrences_in_nested_datasets_have_three_orders():
    d = shuffled()
    columns = list(zip(*((float(a), float(b), float(c)) for (a, b), c in Dataset.zip((Dataset.zip((d, d)), d)))))
    assert len(set(columns)) == 3 and all(sorted(column) == list(range(20)) for column in columns)


def test_a_cached_order_is_the_same_wherever_it_occurs():
    # TensorFlow: in the first iteration, each occurrence that fills the cache has an order of its own.
    cached = shuffled().cache()
    first = pairs(Dataset.zip((cached, cached)))
    assert all(one == two for one, two in first) and pairs(Dataset.zip((cached, cached))) == first


@pytest.mark.parametrize("join", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("taken", [0, 7, 20, 33])
def test_a_checkpoint_goes_on_in_the_orders_of_each_occurrence(tmp_path, join, taken):
    def made():
        return iter(join(shuffled()).repeat(2))

    iterator = made()
    for _ in range(taken):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "run"))
    rest = values(iterator)
    again = made()
    tf.train.Checkpoint(iterator=again).restore(path).expect_partial()
    assert values(again) == rest and len(rest) == 80 - taken


def sampled(seed=42, **options):
    return Dataset.sample_from_datasets([Dataset.range(10), Dataset.range(100, 110)], [0.5, 0.5], seed=seed, **options)


@pytest.mark.parametrize("stop", [False, True])
def test_samples_with_a_seed_are_the_same_in_each_iteration(stop):
    # TensorFlow: rerandomize_each_iteration=None is False.
    dataset = sampled(stop_on_empty_dataset=stop)
    assert values(dataset) == values(dataset) == values(sampled(stop_on_empty_dataset=stop))
    one, two = halves(dataset.repeat(2))
    assert one == two
    anew = sampled(stop_on_empty_dataset=stop, rerandomize_each_iteration=True)
    assert values(anew) != values(anew)
    # TensorFlow: so for `unseeded.take(20)`; of `unseeded` itself, all iterations are the same.
    unseeded = sampled(None, stop_on_empty_dataset=stop)
    assert len({tuple(values(unseeded.take(20))) for _ in range(5)}) > 1
    tf.random.set_seed(3)
    seeded = sampled(None, stop_on_empty_dataset=stop)
    assert values(seeded) == values(seeded)


def test_resampling_with_a_seed_keeps_the_same_elements():
    dataset = Dataset.range(40).rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5], [0.2, 0.8], seed=3)
    assert pairs(dataset) == pairs(dataset)


def drawn(_):
    return tf.random.uniform((), seed=11)


def plain(_):
    return tf.random.uniform(())


FUNCTIONS = {
    "map": lambda draw: Dataset.range(6).map(draw),
    "parallel": lambda draw: Dataset.range(6).map(draw, num_parallel_calls=2),
    "filter": lambda draw: Dataset.range(60).filter(lambda x: draw(x) > 0.5),
    "flat_map": lambda draw: Dataset.range(6).flat_map(lambda x: Dataset.from_tensors(draw(x))),
    "inner map": lambda draw: Dataset.range(3).flat_map(lambda x: Dataset.range(2).map(draw)),
    "interleave": lambda draw: Dataset.range(3).interleave(lambda x: Dataset.range(2).map(draw), 2),
}


@pytest.mark.parametrize("stage", FUNCTIONS.values(), ids=FUNCTIONS)
def test_seeded_random_numbers_of_functions_are_the_same_in_each_iteration(stage):
    dataset = stage(drawn)
    first = values(dataset)
    assert values(dataset) == first == values(stage(drawn))
    # TensorFlow: each element, and each repetition, has its own.
    assert len(set(first)) == len(first) > 1
    repeated = values(dataset.repeat(2))
    assert repeated[: len(first)] == first != repeated[len(first) :]
    assert values(stage(plain)) != values(stage(plain))


@pytest.mark.parametrize("stage", FUNCTIONS.values(), ids=FUNCTIONS)
def test_with_a_global_seed_all_random_numbers_are_the_same_in_each_iteration(stage):
    tf.random.set_seed(5)
    dataset = stage(plain)
    assert values(dataset) == values(dataset)


def test_places_of_a_mapped_dataset_share_its_random_numbers():
    # TensorFlow: zip and concatenate start the function anew, flat_map goes on with it.
    dataset = Dataset.range(3).map(drawn)
    assert all(one == two for one, two in pairs(Dataset.zip((dataset, dataset))))
    one, two = halves(dataset.concatenate(dataset))
    assert one == two
    one, two = halves(Dataset.range(2).flat_map(lambda _: dataset))
    assert one != two


def test_calls_with_a_seed_are_the_same_in_every_run_of_a_program():
    # TensorFlow: where no global seed is set, a default one is used together with that of the call.
    code = (
        "import taut as tf\n"
        "f = tf.function(lambda: tf.random.normal((), seed=5))\n"
        "print(*(float(tf.random.uniform((), seed=11)) for _ in range(3)), float(f()), float(f()))\n"
        "print(*(float(x) for x in tf.data.Dataset.range(3).map(lambda x: tf.random.uniform((), seed=2))))\n"
    )
    runs = {
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1
    first, second = (line.split() for line in runs.pop().splitlines())
    assert len(set(first)) == 5 and len(set(second)) == 3


def test_the_seed_can_be_removed():
    def three():
        return [float(tf.random.uniform(())) for _ in range(3)]

    tf.random.set_seed(3)
    seeded = three()
    tf.random.set_seed(None)
    free = three()
    tf.random.set_seed(3)
    assert three() == seeded
    tf.random.set_seed(None)
    assert free != seeded and three() not in (seeded, free)


def test_a_global_seed_starts_the_random_numbers_of_seeds_anew():
    def two():
        return [float(tf.random.uniform((), seed=1)) for _ in range(2)]

    first = two()
    assert first != two()
    tf.random.set_seed(None)
    assert two() == first
