"""CTC and sampled losses against sums over all paths and all classes."""

import itertools

import numpy as np
import pytest
import scipy.special as special
from checks import fails

import taut as tf

RNG = np.random.default_rng(9)


def all_paths(labels, logits, blank=0):
    """Minus the log-probability of all paths that give the labels."""
    chances = special.log_softmax(logits, -1)
    total = -np.inf
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if [one for one, _ in itertools.groupby(path) if one != blank] == list(labels):
            total = np.logaddexp(total, sum(chances[i, one] for i, one in enumerate(path)))
    return -total


LOGITS = RNG.normal(size=(5, 3, 3)).astype("float32")
LABELS, LENGTHS, TIMES = np.array([[1, 1], [2, 0], [1, 2]]), [2, 1, 2], [5, 3, 4]


def test_ctc_is_the_sum_over_paths():
    want = [all_paths(LABELS[i, : LENGTHS[i]], LOGITS[: TIMES[i], i]) for i in range(3)]
    np.testing.assert_allclose(tf.nn.ctc_loss(LABELS, LOGITS, LENGTHS, TIMES), want, rtol=1e-5)
    turned = tf.nn.ctc_loss(LABELS, LOGITS.swapaxes(0, 1), LENGTHS, TIMES, logits_time_major=False)
    np.testing.assert_allclose(turned, want, rtol=1e-5)
    other = tf.nn.ctc_loss(LABELS - 1, np.roll(LOGITS, -1, -1), LENGTHS, TIMES, blank_index=-1)
    np.testing.assert_allclose(other, want, rtol=1e-5)


def test_ctc_of_nothing_and_of_too_little():
    none = tf.nn.ctc_loss(LABELS, LOGITS, [0, 0, 0], TIMES)
    np.testing.assert_allclose(none, [all_paths([], LOGITS[: TIMES[i], i]) for i in range(3)], rtol=1e-5)
    assert np.isinf(tf.nn.ctc_loss([[1, 1]], LOGITS[:, :1], [2], [2]).numpy()).all()
    fails(ValueError, "ctc_loss", lambda: tf.nn.ctc_loss(LABELS, LOGITS, LENGTHS[1:], TIMES))
    fails(ValueError, "ctc_loss", lambda: tf.nn.ctc_loss(LABELS, LOGITS, LENGTHS, TIMES, unique=([0], [0])))


def test_ctc_has_a_gradient_in_functions_too():
    logits = tf.constant(LOGITS)

    def gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.nn.ctc_loss(LABELS, logits, LENGTHS, TIMES)
        return tape.gradient(loss, logits)

    made = gradient(logits).numpy()
    np.testing.assert_allclose(tf.function(gradient)(logits), made, rtol=1e-4, atol=1e-6)
    assert np.isfinite(made).all() and not made[3:, 1].any()
    moved = LOGITS.astype("float64")
    for place in ((0, 0, 1), (2, 1, 2), (3, 2, 0)):
        up, down = moved.copy(), moved.copy()
        up[place] += 1e-5
        down[place] -= 1e-5
        i = place[1]
        want = (
            all_paths(LABELS[i, : LENGTHS[i]], up[: TIMES[i], i])
            - all_paths(LABELS[i, : LENGTHS[i]], down[: TIMES[i], i])
        ) / 2e-5
        np.testing.assert_allclose(made[place], want, rtol=1e-3)


WEIGHTS, BIASES = RNG.normal(size=(12, 4)).astype("float32"), RNG.normal(size=12).astype("float32")
INPUTS, CLASSES = RNG.normal(size=(3, 4)).astype("float32"), np.array([[5], [0], [7]])


def test_sampled_softmax_of_all_classes_is_the_softmax():
    everything = (np.arange(12), np.ones((3, 1), "float32"), np.ones(12, "float32"))
    got = tf.nn.sampled_softmax_loss(WEIGHTS, BIASES, CLASSES, INPUTS, 12, 12, sampled_values=everything)
    logits = INPUTS @ WEIGHTS.T + BIASES
    want = special.logsumexp(logits, -1) - np.take_along_axis(logits, CLASSES, 1)[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_nce_tells_true_classes_from_drawn_ones():
    drawn = np.array([1, 2, 9])
    expected = (RNG.random((3, 1)).astype("float32") + 0.1, RNG.random(3).astype("float32") + 0.1)
    got = tf.nn.nce_loss(WEIGHTS, BIASES, CLASSES, INPUTS, 3, 12, sampled_values=(drawn, *expected))
    logits = INPUTS @ WEIGHTS.T + BIASES
    true = np.take_along_axis(logits, CLASSES, 1) - np.log(expected[0])
    others = logits[:, drawn] - np.log(expected[1])
    want = (np.log1p(np.exp(-true)) + np.log1p(np.exp(others)).sum(1, keepdims=True))[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_losses_over_drawn_classes_train_only_their_rows():
    weights = tf.Variable(WEIGHTS)
    with tf.GradientTape() as tape:
        loss = tf.nn.sampled_softmax_loss(weights, BIASES, CLASSES, INPUTS, 4, 12, seed=3)
    gradient = tf.convert_to_tensor(tape.gradient(loss, weights)).numpy()
    assert loss.shape == [3] and gradient[[5, 0, 7]].all()
    assert (np.abs(gradient).sum(1) > 0).sum() <= 7


@pytest.mark.parametrize("name", ["uniform_candidate_sampler", "log_uniform_candidate_sampler"])
@pytest.mark.parametrize("unique", [True, False])
def test_drawn_classes(name, unique):
    tf.random.set_seed(4)
    counts, expected = np.zeros(10), np.zeros(2)
    for _ in range(600):
        drawn, true, sampled = getattr(tf.random, name)([[0, 6]], 2, 4, unique, 10)
        assert drawn.dtype == tf.int64 and drawn.shape == sampled.shape == [4] and true.shape == [1, 2]
        assert not unique or len(set(drawn.numpy().tolist())) == 4
        np.add.at(counts, drawn.numpy(), 1 / 600)
        expected += true.numpy()[0] / 600
    np.testing.assert_allclose(counts[[0, 6]], expected, rtol=0.15)
    if name.startswith("uniform"):
        np.testing.assert_allclose(counts, 0.4, rtol=0.2)
    else:
        assert counts[0] > counts[3] > counts[9]
    fails(ValueError, name, lambda: getattr(tf.random, name)([[0]], 1, 11, True, 10))
    fails(ValueError, name, lambda: getattr(tf.random, name)([[0]], 2, 1, True, 10))


def test_dropout_by_a_seed():
    x = tf.ones([100])
    one, same, other = (tf.nn.experimental.stateless_dropout(x, 0.5, seed).numpy() for seed in ([1, 2], [1, 2], [1, 3]))
    assert (one == same).all() and (one != other).any() and set(one.tolist()) == {0.0, 2.0}
