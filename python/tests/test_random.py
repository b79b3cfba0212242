"""Random numbers: distributions and reproducibility."""

import numpy as np
import pytest
import scipy.stats as stats
from checks import fails

import taut as tf

COUNT = 20_000
# A law that holds is refused by chance once in a million runs; and the seeds are fixed.
CHANCE = 1e-6


def follows(values, law):
    assert stats.kstest(np.asarray(values, "float64").ravel(), law.cdf).pvalue > CHANCE


def test_laws():
    seed = [5, 9]
    follows(tf.random.stateless_normal([COUNT], seed, 2.0, 3.0), stats.norm(2, 3))
    follows(tf.random.stateless_truncated_normal([COUNT], seed, 1.0, 2.0), stats.truncnorm(-2, 2, 1, 2))
    follows(tf.random.stateless_uniform([COUNT], seed, -1.0, 4.0), stats.uniform(-1, 5))
    follows(tf.random.stateless_gamma([COUNT], seed, 2.5, 0.5), stats.gamma(2.5, scale=2))
    follows(tf.random.stateless_exponential([COUNT], seed, 2.0), stats.expon(scale=0.5))
    each = tf.random.stateless_gamma([COUNT, 2], seed, [0.5, 4.0], 2.0).numpy()
    follows(each[:, 0], stats.gamma(0.5, scale=0.5))
    follows(each[:, 1], stats.gamma(4.0, scale=0.5))


@pytest.mark.parametrize("lam", [0.3, 4.0, 200.0, 5000.0, 1e8])
def test_poisson(lam):
    drawn = tf.random.stateless_poisson([COUNT], [1, 2], lam).numpy()
    assert drawn.dtype == np.int32
    law = stats.poisson(lam)
    for low in law.ppf([0.1, 0.5, 0.9]):
        p = law.cdf(low)
        assert abs((drawn <= low).mean() - p) < 6 * np.sqrt(p * (1 - p) / COUNT) + 1e-9
    assert drawn.min() >= 0
    both = tf.random.stateless_poisson([COUNT, 2], [1, 2], [lam, 3.0]).numpy()
    assert abs(both[:, 1].mean() - 3) < 6 * np.sqrt(3 / COUNT)
    assert abs(both[:, 0].mean() - lam) < 6 * np.sqrt(lam / COUNT)


def test_integers_and_classes():
    drawn = tf.random.stateless_uniform([COUNT], [1, 2], minval=-2, maxval=3, dtype=tf.int32).numpy()
    assert stats.chisquare(np.bincount(drawn + 2, minlength=5)).pvalue > CHANCE
    bounds = tf.random.stateless_uniform([COUNT], [1, 2], tf.constant(0), tf.constant(4), tf.int64).numpy()
    assert stats.chisquare(np.bincount(bounds, minlength=4)).pvalue > CHANCE
    probabilities = np.array([0.2, 0.5, 0.3])
    classes = tf.random.stateless_categorical(np.log(probabilities)[None], COUNT, [3, 4])
    assert classes.dtype == tf.int64
    counts = np.bincount(classes.numpy()[0], minlength=3)
    assert stats.chisquare(counts, COUNT * probabilities).pvalue > CHANCE
    flips = tf.random.stateless_bernoulli([COUNT], [1, 2], 0.3).numpy()
    assert abs(flips.mean() - 0.3) < 6 * np.sqrt(0.21 / COUNT)
    assert tf.random.stateless_bernoulli([2], [1, 2], [0.0, 1.0]).numpy().tolist() == [False, True]


def test_orders():
    x = np.arange(50)
    got = tf.random.shuffle(x).numpy()
    assert sorted(got) == x.tolist()
    assert got.tolist() != x.tolist()
    rows = tf.random.stateless_shuffle(np.stack([x, x], 1), [1, 2]).numpy()
    assert np.all(rows[:, 0] == rows[:, 1])
    assert sorted(tf.random.stateless_permutation(20, [1, 2]).numpy()) == list(range(20))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: tf.random.normal([5]),
        lambda: tf.random.uniform([5]),
        lambda: tf.random.uniform([5], maxval=100, dtype=tf.int32),
        lambda: tf.random.truncated_normal([5]),
        lambda: tf.random.gamma([5], [1.0, 2.0]),
        lambda: tf.random.poisson([5], 50.0),
        lambda: tf.random.categorical(np.zeros((1, 100), "float32"), 5),
        lambda: tf.random.shuffle(tf.range(100)),
        lambda: tf.random.normal([5], seed=3),
    ],
)
def test_seeds(draw):
    tf.random.set_seed(11)
    first, second = draw().numpy(), draw().numpy()
    assert np.any(first != second)
    tf.random.set_seed(11)
    np.testing.assert_array_equal(first, draw())
    np.testing.assert_array_equal(second, draw())


def test_stateless_is_stateless():
    a = tf.random.stateless_normal([4], seed=[1, 2]).numpy()
    tf.random.normal([3])
    np.testing.assert_array_equal(a, tf.random.stateless_normal([4], seed=tf.constant([1, 2])))
    assert np.any(a != tf.random.stateless_normal([4], seed=[1, 3]).numpy())
    traced = tf.function(lambda s: tf.random.stateless_normal([4], s), autograph=False)
    np.testing.assert_array_equal(a, traced(tf.constant([1, 2])))


def test_seeds_of_seeds():
    many = tf.random.split([1, 2], 3)
    assert many.shape == (3, 2)
    assert len({tuple(row) for row in many.numpy().tolist()}) == 3
    assert tf.random.fold_in([1, 2], 7).numpy().tolist() != tf.random.fold_in([1, 2], 8).numpy().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_types(dtype):
    for draw in (tf.random.normal, tf.random.uniform, tf.random.truncated_normal):
        made = draw([2, 3], dtype=dtype)
        assert made.dtype.name == dtype
        assert made.shape == (2, 3)
    assert tf.random.normal([0, 2]).shape == (0, 2)
    assert tf.random.normal([]).shape == ()
    assert tf.random.normal(shape=[2], mean=[0.0, 100.0], stddev=1.0).numpy()[1] > 50
    assert tf.random.poisson([3], [1.0, 2.0]).dtype == tf.float32
    assert tf.random.gamma([3], [1.0, 2.0]).shape == (3, 2)


def test_generator():
    a, b = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    first = a.normal([4]).numpy()
    np.testing.assert_array_equal(first, b.normal([4]))
    again = tf.random.Generator.from_state(a.state)
    np.testing.assert_array_equal(a.uniform([4]), again.uniform([4]))
    b.reset_from_seed(1)
    np.testing.assert_array_equal(first, b.normal([4]))
    assert a.make_seeds(3).shape == (2, 3)
    children = a.split(2)
    assert np.any(children[0].normal([4]).numpy() != children[1].normal([4]).numpy())
    draw = tf.function(lambda: b.normal([4]), autograph=False)
    assert np.any(draw().numpy() != draw().numpy())


def test_refuses():
    fails(ValueError, "uniform", lambda: tf.random.uniform([2], dtype=tf.int32))
    fails(ValueError, "stateless_normal", lambda: tf.random.stateless_normal([2], 3))
    fails(ValueError, "stateless_normal", lambda: tf.random.stateless_normal([2], [0.5, 1.0]))
    fails(ValueError, "poisson", lambda: tf.random.poisson([2], -1.0))
    fails(tf.errors.InvalidArgumentError, "poisson", lambda: tf.random.poisson([2], 1e11))
    fails(ValueError, "stateless_gamma", lambda: tf.random.stateless_gamma([3], [1, 2], [1.0, 2.0]))
    fails(ValueError, "stateless_normal", lambda: tf.random.normal([-2]))


def test_a_generator_for_the_whole_program():
    old = tf.random.get_global_generator()
    try:
        tf.random.set_global_generator(tf.random.Generator.from_seed(5))
        made = tf.random.get_global_generator().normal([3])
        np.testing.assert_array_equal(made, tf.random.Generator.from_seed(5).normal([3]))
    finally:
        tf.random.set_global_generator(old)


def test_generators_are_made_of_others():
    one = tf.random.Generator.from_seed(1)
    one.normal([2])
    other = tf.random.Generator(copy_from=one)
    np.testing.assert_array_equal(one.uniform_full_int([3]), other.uniform_full_int([3]))
    assert one.uniform_full_int([3]).dtype == tf.uint64
    for wrong in ({}, {"copy_from": one, "state": [1, 2]}):
        with pytest.raises(ValueError):
            tf.random.Generator(**wrong)


def test_seeds_under_their_older_names():
    np.testing.assert_array_equal(tf.random.experimental.stateless_split([1, 2], 3), tf.random.split([1, 2], 3))
    np.testing.assert_array_equal(tf.random.experimental.stateless_fold_in([1, 2], 3), tf.random.fold_in([1, 2], 3))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_of_a_whole_type(dtype):
    made = tf.random.stateless_uniform([COUNT], [1, 2], None, None, dtype)
    assert made.dtype.name == dtype
    limits = np.iinfo(dtype)
    parts = (made.numpy().astype(float) - limits.min) / (float(limits.max) - limits.min)
    if dtype.endswith("8"):
        assert made.numpy().min() == limits.min and made.numpy().max() == limits.max
    else:
        assert stats.kstest(parts, "uniform").pvalue > CHANCE


def test_a_generator_is_made_from_the_state_and_the_algorithm_of_another():
    one = tf.random.Generator.from_seed(3)
    other = tf.random.Generator.from_state(one.state, one.algorithm)
    assert one.algorithm == 1
    assert one.normal([3]).numpy().tolist() == other.normal([3]).numpy().tolist()
