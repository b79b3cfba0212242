"""Keras: activations, convolutions, pooling, losses and attention against NumPy."""

import itertools
import math
import threading

import numpy as np
import pytest

import taut as tf
from taut import horovod, keras
from taut.keras.backend import distributed
from taut.keras.backend.ops.nn.attention import dot_product_attention

ops = keras.ops

X = np.array([-7.0, -2.0, -0.75, -0.1, 0.0, 0.3, 1.0, 2.5, 7.0], dtype="float32")
sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
erf = np.vectorize(math.erf)

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "sparse_sigmoid": lambda x: np.clip(x / 2 + 0.5, 0, 1),
    "tanh": np.tanh,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "tanh_shrink": lambda x: x - np.tanh(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * sigmoid(x),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    made = getattr(ops, name)(X).numpy()
    np.testing.assert_allclose(made, ACTIVATIONS[name](X.astype("float64")), rtol=2e-5, atol=1e-6)


def test_activations_with_parameters():
    np.testing.assert_allclose(ops.elu(X, alpha=0.5).numpy(), np.where(X > 0, X, 0.5 * np.expm1(X)), rtol=1e-5)
    np.testing.assert_allclose(ops.celu(X, alpha=2.0).numpy(), np.where(X > 0, X, 2 * np.expm1(X / 2)), rtol=1e-5)
    np.testing.assert_allclose(ops.threshold(X, 0.2, -1.0).numpy(), np.where(X > 0.2, X, -1))
    np.testing.assert_allclose(
        ops.gelu(X, approximate=False).numpy(), X * (1 + erf(X / 2**0.5)) / 2, rtol=2e-5, atol=1e-6
    )
    inner = np.tanh((2 / np.pi) ** 0.5 * (X + 0.044715 * X**3))
    np.testing.assert_allclose(ops.gelu(X).numpy(), X * (1 + inner) / 2, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ops.glu(X[:8]).numpy(), X[:4] * sigmoid(X[4:8]), rtol=1e-5)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, -1, (0, 2), None])
def test_softmax(axis, rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    np.testing.assert_allclose(ops.softmax(x, axis).numpy(), softmax(x, axis), rtol=1e-5)
    np.testing.assert_allclose(ops.log_softmax(x, axis).numpy(), np.log(softmax(x, axis)), rtol=1e-4, atol=1e-5)


def test_sparsemax_is_that_of_keras():
    # Keras 3.15 on TensorFlow 2.21; every backend of Keras sums cumulative sums for the threshold.
    logits = np.array([[3.0, 1.0, 0.2], [0.5, 0.3, 0.0], [0.4, 0.3, -0.9]])
    expected = [[1.0, 0.0, 0.0], [0.133333, 0.0, 0.0], [0.35, 0.25, 0.0]]
    np.testing.assert_allclose(ops.sparsemax(logits).numpy(), expected, atol=1e-6)


# Convolutions and pooling, by loops over all windows.


def surrounded(x, kernel, strides, dilations, padding, value=0.0):
    """`x`, (batch, *space, channels), with what "same" adds around it."""
    if padding == "valid":
        return x
    around = [(0, 0)]
    for n, k, s, d in zip(x.shape[1:-1], kernel, strides, dilations):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        around.append((total // 2, total - total // 2))
    return np.pad(x, [*around, (0, 0)], constant_values=value)


def windows(x, kernel, strides, dilations):
    """All windows: places in the output, and the window's elements (batch, *kernel, channels)."""
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], kernel, strides, dilations)]
    for place in itertools.product(*map(range, counts)):
        index = [slice(i * s, i * s + (k - 1) * d + 1, d) for i, k, s, d in zip(place, kernel, strides, dilations)]
        yield place, x[(slice(None), *index, slice(None))]


def conv(x, w, strides, padding, dilations, groups=1):
    rank = x.ndim - 2
    x = surrounded(x, w.shape[:rank], strides, dilations, padding).astype("float64")
    found = {}
    for place, window in windows(x, w.shape[:rank], strides, dilations):
        parts = zip(np.split(window, groups, -1), np.split(w, groups, -1))
        found[place] = np.concatenate([np.tensordot(a, b, rank + 1) for a, b in parts], -1)
    shape = np.max(list(found), axis=0) + 1
    return np.stack([found[place] for place in np.ndindex(*shape)], 1).reshape(len(x), *shape, -1)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "padding", "dilation"),
    [
        ((2, 7, 3), (3, 3, 4), 1, "same", 1),
        ((2, 9, 3), (3, 3, 4), 2, "valid", 1),
        ((2, 9, 2), (2, 2, 3), 1, "valid", 3),
        ((2, 6, 7, 3), (3, 2, 3, 4), 1, "same", 1),
        ((2, 6, 7, 3), (3, 2, 3, 4), (2, 3), "valid", 1),
        ((2, 8, 9, 2), (3, 3, 2, 2), 2, "same", 1),
        ((1, 8, 9, 2), (3, 3, 2, 2), 1, "same", 2),
        ((1, 6, 6, 4), (3, 3, 2, 6), 1, "same", 1),
        ((1, 4, 5, 4, 2), (2, 3, 2, 2, 3), (1, 2, 1), "same", 1),
    ],
)
def test_convolutions(shape, kernel, strides, padding, dilation, data_format, rng):
    x, w = rng.normal(size=shape).astype("float32"), rng.normal(size=kernel).astype("float32")
    rank = len(shape) - 2
    steps = (strides,) * rank if isinstance(strides, int) else strides
    expected = conv(x, w, steps, padding, (dilation,) * rank, groups=shape[-1] // kernel[-2])
    if data_format == "channels_first":
        x, expected = np.moveaxis(x, -1, 1), np.moveaxis(expected, -1, 1)
    made = ops.conv(x, w, strides, padding, data_format, dilation)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("strides", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("rank", [1, 2])
def test_depthwise_and_separable_convolutions(rank, padding, strides, dilation, rng):
    x = rng.normal(size=(2, *(9, 8)[:rank], 3)).astype("float32")
    w = rng.normal(size=(*(3, 2)[:rank], 3, 2)).astype("float32")
    mixing = rng.normal(size=(*(1, 1)[:rank], 6, 5)).astype("float32")
    # Every channel by itself is a group.
    grouped = w.reshape(*w.shape[:rank], 1, 6)
    apart = conv(x, grouped, (strides,) * rank, padding, (dilation,) * rank, groups=3)
    made = ops.depthwise_conv(x, w, strides, padding, "channels_last", dilation)
    np.testing.assert_allclose(made.numpy(), apart, rtol=1e-4, atol=1e-5)
    mixed = np.tensordot(apart, mixing.reshape(6, 5), 1)
    made = ops.separable_conv(x, w, mixing, strides, padding, "channels_last", dilation)
    np.testing.assert_allclose(made.numpy(), mixed, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("strides", [1, 2])
def test_a_transposed_convolution_is_the_gradient_of_a_convolution(strides, padding, rng):
    image = rng.normal(size=(2, 8, 8, 3)).astype("float32")
    w = rng.normal(size=(3, 3, 3, 4)).astype("float32")
    small = ops.conv(image, w, strides, padding)
    upstream = rng.normal(size=small.shape).astype("float32")
    made = ops.conv_transpose(upstream, w, strides, padding).numpy()
    # <conv(x), u> = <x, conv_transpose(u)> for every x, where both have a place.
    inside = image[:, : made.shape[1], : made.shape[2]]
    left = np.sum(ops.conv(inside, w, strides, padding).numpy() * upstream)
    np.testing.assert_allclose(left, np.sum(inside * made[:, : inside.shape[1], : inside.shape[2]]), rtol=1e-3)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("size", "strides"), [(2, None), (3, 2), (2, 1)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling(rank, size, strides, padding, rng):
    x = rng.normal(size=(2, *(7, 6, 5)[:rank], 3)).astype("float32")
    steps, ones = (strides or size,) * rank, (1,) * rank
    kernel = (size,) * rank
    for function, value, reduce in ((ops.max_pool, -np.inf, np.max), (ops.average_pool, np.nan, np.nanmean)):
        around = surrounded(x, kernel, steps, ones, padding, value)
        found = {p: reduce(w, axis=tuple(range(1, rank + 1))) for p, w in windows(around, kernel, steps, ones)}
        shape = np.max(list(found), axis=0) + 1
        expected = np.stack([found[place] for place in np.ndindex(*shape)], 1).reshape(2, *shape, 3)
        made = function(x, size, strides, padding)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_adaptive_pooling(rng):
    x = rng.normal(size=(1, 7, 5, 2)).astype("float32")
    rows, columns = [(0, 3), (2, 5), (4, 7)], [(0, 3), (2, 5)]
    for function, reduce in ((ops.adaptive_max_pool, np.max), (ops.adaptive_average_pool, np.mean)):
        expected = [[reduce(x[0, a:b, c:d], axis=(0, 1)) for c, d in columns] for a, b in rows]
        np.testing.assert_allclose(function(x, (3, 2)).numpy()[0], expected, rtol=1e-5)


def test_patches_and_back(rng):
    x = rng.normal(size=(2, 3, 6, 7)).astype("float32")
    columns = ops.unfold(x, (2, 3), stride=(2, 2), padding=1)
    assert columns.shape == (2, 3 * 6, 4 * 4)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    np.testing.assert_array_equal(columns.numpy()[:, :, 0], padded[:, :, 0:2, 0:3].reshape(2, -1))
    np.testing.assert_array_equal(columns.numpy()[:, :, 5], padded[:, :, 2:4, 2:5].reshape(2, -1))
    # Folding adds up what unfolding took: each place as often as it was taken.
    taken = ops.fold(ops.unfold(np.ones_like(x), (2, 2)), (6, 7), (2, 2)).numpy()
    np.testing.assert_allclose(ops.fold(ops.unfold(x, (2, 2)), (6, 7), (2, 2)).numpy(), x * taken, rtol=1e-5)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_depth_and_space_are_exchanged(data_format):
    x = np.arange(2 * 4 * 6 * 8, dtype="float32").reshape(2, 4, 6, 8)
    small = ops.space_to_depth(x, 2, data_format)
    np.testing.assert_array_equal(ops.depth_to_space(small, 2, data_format).numpy(), x)
    last = data_format == "channels_last"
    corner, place = (x[0, :2, :2], (0, 0, 0)) if last else (x[0, :, :2, :2], (0, slice(None), 0, 0))
    np.testing.assert_array_equal(small.numpy()[place], corner.ravel())


# Losses.


def test_cross_entropies(rng):
    logits = rng.normal(size=(4, 5)).astype("float32")
    classes = np.array([0, 3, 4, 1])
    codes = np.eye(5, dtype="float32")[classes]
    p = softmax(logits, -1)
    expected = -np.log(p[np.arange(4), classes])
    for target, output, from_logits in ((codes, logits, True), (codes, p, False)):
        made = ops.categorical_crossentropy(target, output, from_logits)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)
    for output, from_logits in ((logits, True), (p, False)):
        made = ops.sparse_categorical_crossentropy(classes, output, from_logits)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)
    q = sigmoid(logits)
    expected = -(codes * np.log(q) + (1 - codes) * np.log(1 - q))
    np.testing.assert_allclose(ops.binary_crossentropy(codes, logits, True).numpy(), expected, rtol=1e-4)
    np.testing.assert_allclose(ops.binary_crossentropy(codes, q, False).numpy(), expected, rtol=1e-4)


def test_shapes_of_targets_are_checked():
    with pytest.raises(ValueError, match="same shape"):
        ops.binary_crossentropy(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="same shape"):
        ops.sparse_categorical_crossentropy(np.ones((3,)), np.ones((2, 4)))


def test_one_hot_and_multi_hot():
    np.testing.assert_array_equal(ops.one_hot([2, 0, -1], 3).numpy(), [[0, 0, 1], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(ops.multi_hot([[0, 2], [1, 1]], 3).numpy(), [[1, 0, 1], [0, 1, 0]])


def test_moments_and_normalization(rng):
    x = rng.normal(size=(4, 3, 5)).astype("float32")
    mean, variance = ops.moments(x, axes=[0, 2])
    np.testing.assert_allclose(mean.numpy(), x.mean((0, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance.numpy(), x.var((0, 2)), rtol=1e-5)
    scale, offset = rng.normal(size=3).astype("float32"), rng.normal(size=3).astype("float32")
    made = ops.batch_normalization(x, mean, variance, axis=1, offset=offset, scale=scale, epsilon=0.1)
    away = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 0.1)
    np.testing.assert_allclose(made.numpy(), away * scale[:, None] + offset[:, None], rtol=1e-4, atol=1e-5)


class Pair:
    """Two threads that add tensors as two processes do."""

    size = 2

    def __init__(self):
        self.barrier, self.parts = threading.Barrier(2, timeout=60), [None, None]
        self.rank = threading.local()

    def all_reduce(self, x, how):
        assert how == "SUM"

        def add(part):
            self.parts[self.rank.number] = part.numpy()
            self.barrier.wait()
            total = self.parts[0] + self.parts[1]
            self.barrier.wait()
            return tf.constant(total)

        return tf.custom_gradient(lambda part: (add(part), add))(x)

    def run(self, function):
        results = [None, None]

        def start(number):
            self.rank.number = number
            try:
                results[number] = function(number)
            except BaseException:
                self.barrier.abort()
                raise

        threads = [threading.Thread(target=start, args=(number,)) for number in (0, 1)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return results


def normalized_loss(x, rows):
    """The sum of losses of rows whose normalization is that of all processes, and the statistics."""
    mean, variance = ops.moments(x, axes=[0, 2], synchronized=True)
    away = (x - mean[:, None]) / tf.sqrt(variance[:, None] + 0.1)
    return tf.reduce_sum(tf.sin(away) * tf.cast(rows, "float64")), mean.numpy(), variance.numpy()


@pytest.mark.parametrize("split", [4, 3, 8])
def test_synchronized_moments_are_those_of_all_rows(split, monkeypatch, rng):
    x, rows = rng.normal(size=(8, 3, 2)), np.arange(1.0, 9.0)[:, None, None]

    def gradient(own, rows, share):
        own = tf.constant(own)
        with tf.GradientTape() as tape:
            tape.watch(own)
            loss, mean, variance = normalized_loss(own, rows)
            loss = loss / share
        return tape.gradient(loss, own).numpy(), mean, variance

    # One process.
    expected, mean, variance = gradient(x, rows, 8.0)
    np.testing.assert_allclose(mean, x.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(variance, x.var((0, 2)), rtol=1e-12)

    pair, weights = Pair(), [split / 4, (8 - split) / 4]

    def step(rank):
        # As in `fit`: losses are means over the rows of a process, and a process without rows takes part with the first.
        own = slice(split) if rank == 0 else slice(split, 8) if split < 8 else slice(1)
        return gradient(x[own], rows[own], max(len(x[own]), 1))

    def in_fit(part):
        return distributed.summed(part, pair, tf.constant(weights[pair.rank.number], part.dtype))

    monkeypatch.setattr(distributed, "sum_over_processes", in_fit)
    found = pair.run(step)
    for rank, (own_gradient, own_mean, own_variance) in enumerate(found):
        np.testing.assert_allclose(own_mean, mean, rtol=1e-12)
        np.testing.assert_allclose(own_variance, variance, rtol=1e-12)
        if weights[rank]:
            own = slice(split) if rank == 0 else slice(split, 8)
            np.testing.assert_allclose(own_gradient * weights[rank] / 2, expected[own], rtol=1e-9, atol=1e-12)


def test_processes_of_horovod_and_strategies_are_synchronized(monkeypatch):
    x = np.arange(12, dtype="float32").reshape(4, 3)

    def means(rank):
        return ops.moments(x[rank::2], axes=[0], synchronized=True)[0].numpy().tolist()

    pair = Pair()
    monkeypatch.setattr(horovod, "_group", pair)
    assert pair.run(means) == [x.mean(0).tolist()] * 2
    monkeypatch.setattr(horovod, "_group", tf._native.Group.paper(1))
    assert means(0) == x[::2].mean(0).tolist()
    monkeypatch.setattr(horovod, "_group", None)
    monkeypatch.setattr(distributed, "current_group", lambda: pair)
    assert pair.run(means) == [x.mean(0).tolist()] * 2


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal, rng):
    q, k, v = (rng.normal(size=(2, 5, 4, 3)).astype("float32") for _ in range(3))
    k, v = k[:, :, :2], v[:, :, :2]
    mask = rng.random((2, 1, 5, 5)) < 0.8
    mask[..., 0] = True
    made = ops.dot_product_attention(q, k, v, mask=mask, is_causal=causal)
    whole_k, whole_v = np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2)
    logits = np.einsum("bqhd,bkhd->bhqk", q, whole_k) / np.sqrt(3)
    allowed = mask & np.tril(np.ones((5, 5), bool)) if causal else mask
    weights = softmax(np.where(allowed, logits, -1e30), -1)
    np.testing.assert_allclose(made.numpy(), np.einsum("bhqk,bkhd->bqhd", weights, whole_v), rtol=1e-4, atol=1e-5)


def test_attention_of_queries_without_keys_is_the_mean_of_the_values(rng):
    q, k, v = (rng.normal(size=(1, 3, 4, 2)).astype("float32") for _ in range(3))
    k, v = k[:, :, :2], v[:, :, :2]
    mask = np.ones((1, 1, 3, 3), bool)
    mask[..., 1, :] = False
    made = ops.dot_product_attention(q, k, v, mask=mask).numpy()
    np.testing.assert_allclose(made[0, 1], np.repeat(v[0].mean(0), 2, axis=0), rtol=1e-6, atol=1e-7)


def test_attention_by_tiles_is_attention_by_scores(rng):
    """A cap no logit reaches takes the other path: values and gradients agree."""
    q, k, v = (tf.Variable(rng.normal(size=(2, 5, 2, 3))) for _ in range(3))
    bias = tf.Variable(rng.normal(size=(1, 2, 5, 5)))
    for options in ({}, {"is_causal": True}, {"bias": bias}, {"bias": bias, "is_causal": True}):
        found = []
        for cap in (None, 1e9):
            with tf.GradientTape() as tape:
                made = dot_product_attention(q, k, v, attn_logits_soft_cap=cap, **options)
                loss = ops.sum(ops.square(made))
            sources = [q, k, v] + ([bias] if "bias" in options else [])
            found.append([made, *tape.gradient(loss, sources)])
        for tiles, scores in zip(*found):
            np.testing.assert_allclose(tiles.numpy(), scores.numpy(), rtol=1e-6, atol=1e-8)


def test_flash_attention_is_an_error_where_scores_are_needed(rng):
    q, k, v = (rng.normal(size=(1, 3, 1, 2)).astype("float32") for _ in range(3))
    plain = ops.dot_product_attention(q, k, v).numpy()
    np.testing.assert_array_equal(ops.dot_product_attention(q, k, v, flash_attention=True).numpy(), plain)
    mask, bias = np.ones((1, 1, 3, 3), bool), np.zeros((1, 1, 3, 3), "float32")
    with pytest.raises(ValueError, match="either a mask or a bias"):
        ops.dot_product_attention(q, k, v, bias, mask, flash_attention=True)


@pytest.mark.parametrize("flash_attention", [None, False, True])
def test_attention_with_a_soft_cap(rng, flash_attention):
    cap = 1.5
    q, k, v = (rng.normal(size=(2, 5, 2, 3)) for _ in range(3))
    mask = rng.random((2, 1, 5, 5)) < 0.7
    mask |= np.eye(5, dtype=bool)

    def attention(q, k, v, is_causal=False, mask=None):
        """By its definition, in NumPy."""
        logits = cap * np.tanh(np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(3) / cap)
        allowed = np.ones_like(logits, bool) if mask is None else np.broadcast_to(mask, logits.shape)
        if is_causal:
            allowed = allowed & np.tril(np.ones((5, 5), bool))
        weights = np.where(allowed, np.exp(logits), 0.0)
        return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)

    for options in ({}, {"is_causal": True}, {"mask": mask}):
        given = {"flash_attention": flash_attention, "attn_logits_soft_cap": cap, **options}
        made = ops.dot_product_attention(q, k, v, **given)
        np.testing.assert_allclose(made.numpy(), attention(q, k, v, **options), rtol=1e-6)
        # The gradient is the slope.
        variables = [tf.Variable(x) for x in (q, k, v)]
        with tf.GradientTape() as tape:
            loss = ops.sum(ops.square(ops.dot_product_attention(*variables, **given)))
        for i, gradient in enumerate(tape.gradient(loss, variables)):
            near = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() for x in (q, k, v)]
                moved[i][1, 2, 1, 0] += step
                near.append(np.square(attention(*moved, **options)).sum())
            np.testing.assert_allclose(gradient.numpy()[1, 2, 1, 0], (near[0] - near[1]) / 2e-6, rtol=1e-4, atol=1e-8)
    # In a model, too.
    inputs = [keras.Input((5, 2, 3), dtype="float64") for _ in range(3)]
    model = keras.Model(inputs, ops.dot_product_attention(*inputs, attn_logits_soft_cap=cap))
    np.testing.assert_allclose(model([q, k, v]).numpy(), attention(q, k, v), rtol=1e-6)
    with pytest.raises(ValueError, match="must be positive"):
        ops.dot_product_attention(q, k, v, attn_logits_soft_cap=0.0)


@pytest.fixture
def wide():
    """Layers that compute in 64 bits."""
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy("float32")


def test_gradients_pass_through_layers(wide, rng):
    """By central differences in 64 bits, for a model of convolution, normalization, pooling and attention."""
    inputs = keras.Input((6, 6, 2))
    x = keras.layers.Conv2D(4, 3, padding="same", activation="tanh")(inputs)
    x = keras.layers.LayerNormalization()(keras.layers.AveragePooling2D(2)(x))
    x = keras.layers.Reshape((9, 4))(x)
    x = keras.layers.MultiHeadAttention(2, 3)(x, x)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(x)))
    data = rng.normal(size=(2, 6, 6, 2))

    def loss():
        return ops.mean(ops.square(model(data)))

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients):
        direction = rng.normal(size=variable.shape)
        start, step = variable.numpy(), 1e-5
        variable.assign(start + step * direction)
        above = float(loss())
        variable.assign(start - step * direction)
        below = float(loss())
        variable.assign(start)
        slope = float(np.sum(ops.convert_to_numpy(gradient) * direction))
        np.testing.assert_allclose((above - below) / (2 * step), slope, rtol=1e-5, atol=1e-8)
