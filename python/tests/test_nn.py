"""tf.nn against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.special as special
from checks import fails

import taut as tf

RNG = np.random.default_rng(6)
X = RNG.normal(size=(2, 5, 6, 3)).astype("float32")
W = RNG.normal(size=(3, 3, 3, 4)).astype("float32")


def close(got, want, tolerance=1e-4):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


def windows(x, size, strides, padding, dilations, fill=0.0):
    """Per tap of a window, what lies under it for every window: `[taps, batch, rows, columns, channels]`."""
    spans = [(s - 1) * d + 1 for s, d in zip(size, dilations)]
    if padding == "SAME":
        totals = [max((-(-n // s) - 1) * s + span - n, 0) for n, s, span in zip(x.shape[1:3], strides, spans)]
        padding = [(total // 2, total - total // 2) for total in totals]
    elif padding == "VALID":
        padding = [(0, 0), (0, 0)]
    x = np.pad(x, [(0, 0), *padding, (0, 0)], constant_values=fill)
    counts = [(n - span) // s + 1 for n, span, s in zip(x.shape[1:3], spans, strides)]
    taps = []
    for i in range(size[0]):
        for j in range(size[1]):
            top, left = i * dilations[0], j * dilations[1]
            rows = slice(top, top + (counts[0] - 1) * strides[0] + 1, strides[0])
            columns = slice(left, left + (counts[1] - 1) * strides[1] + 1, strides[1])
            taps.append(x[:, rows, columns])
    return np.stack(taps)


def convolved(x, w, strides=(1, 1), padding="VALID", dilations=(1, 1)):
    taps = windows(x, w.shape[:2], strides, padding, dilations)
    return np.einsum("tbijc,tco->bijo", taps, w.reshape(-1, *w.shape[2:]))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 2)])
def test_conv2d(padding, strides):
    want = convolved(X, W, strides, padding)
    close(tf.nn.conv2d(X, W, strides, padding), want)
    close(tf.nn.conv2d(input=X, filters=W, strides=[1, *strides, 1], padding=padding, name="a_name"), want)
    first = tf.nn.conv2d(X.transpose(0, 3, 1, 2).copy(), W, [1, 1, *strides], padding, data_format="NCHW")
    close(first, want.transpose(0, 3, 1, 2))
    close(tf.nn.conv2d(tf.constant(np.repeat(X, 2, 2))[:, :, ::2], W, strides, padding), want)


def test_conv2d_ways():
    close(tf.nn.conv2d(X, W, 1, "SAME", dilations=2), convolved(X, W, padding="SAME", dilations=(2, 2)))
    close(tf.nn.atrous_conv2d(X, W, 2, "VALID"), convolved(X, W, dilations=(2, 2)))
    margins = [(1, 0), (0, 2)]
    close(tf.nn.conv2d(X, W, 1, [[0, 0], *margins, [0, 0]]), convolved(X, W, padding=margins))
    close(tf.nn.convolution(X, W, padding="SAME"), convolved(X, W, padding="SAME"))
    twice = np.concatenate([X, 2 * X], -1)
    halves = [convolved(X, W[..., :2]), convolved(2 * X, W[..., 2:])]
    close(tf.nn.conv2d(twice, W, 1, "VALID"), np.concatenate(halves, -1))
    assert tf.nn.conv2d(X[:0], W, 1, "SAME").shape == (0, 5, 6, 4)
    half = tf.nn.conv2d(X.astype("float64"), W.astype("float64"), 1, "SAME")
    assert half.dtype == tf.float64


def test_conv_of_other_ranks():
    line, w = X[:, :, 0], W[:, 0]
    want = convolved(X[:, :, :1], W[:, :1])[:, :, 0]
    close(tf.nn.conv1d(line, w, 1, "VALID"), want)
    close(tf.nn.conv1d(line, w, stride=2, padding="VALID"), want[:, ::2])
    volume = np.stack([X, 2 * X], 1)
    want = np.stack([convolved(X, W), 2 * convolved(X, W)], 1)
    close(tf.nn.conv3d(volume, W[None], 1, "VALID"), want)
    close(tf.nn.conv3d(volume, W[None], [1, 1, 1, 1, 1], "VALID"), want)


def test_conv_transpose_is_the_way_back():
    """`<conv(x), y> = <x, conv_transpose(y)>`, for all x."""
    y = RNG.normal(size=(2, 3, 3, 4)).astype("float32")
    back = tf.nn.conv2d_transpose(y, W, [2, 5, 6, 3], 2, padding="SAME").numpy()
    np.testing.assert_allclose((convolved(X, W, (2, 2), "SAME") * y).sum(), (X * back).sum(), rtol=1e-4)
    same = tf.nn.conv_transpose(y, W, [2, 5, 6, 3], strides=[1, 2, 2, 1])
    close(same, back)
    assert tf.nn.conv1d_transpose(y[:, :, 0], W[:, 0], [2, 6, 3], 2).shape == (2, 6, 3)
    fails(ValueError, "conv", lambda: tf.nn.conv2d_transpose(y, W, [2, 50, 6, 3], 2))


def test_depthwise():
    w = W[..., :2]
    taps = windows(X, (3, 3), (1, 1), "SAME", (1, 1))
    want = np.einsum("tbijc,tcm->bijcm", taps, w.reshape(9, 3, 2)).reshape(2, 5, 6, 6)
    close(tf.nn.depthwise_conv2d(X, w, [1, 1, 1, 1], "SAME"), want)
    point = RNG.normal(size=(1, 1, 6, 2)).astype("float32")
    close(tf.nn.separable_conv2d(X, w, point, [1, 1, 1, 1], "SAME"), want @ point[0, 0])
    margins = [[0, 0], [1, 1], [1, 1], [0, 0]]
    close(tf.nn.depthwise_conv2d(X, w, [1, 1, 1, 1], margins), want)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "strides"), [((2, 2), (2, 2)), ((3, 2), (1, 2))])
def test_pooling(padding, size, strides):
    largest = windows(X, size, strides, padding, (1, 1), -np.inf).max(0)
    close(tf.nn.max_pool2d(X, size, strides, padding), largest)
    close(tf.nn.max_pool(X, [1, *size, 1], [1, *strides, 1], padding), largest)
    close(tf.nn.pool(X, size, "MAX", strides, padding), largest)
    inside = windows(np.ones_like(X), size, strides, padding, (1, 1))
    mean = windows(X, size, strides, padding, (1, 1)).sum(0) / inside.sum(0)
    close(tf.nn.avg_pool2d(X, size, strides, padding), mean)
    close(tf.nn.pool(X, size, "AVG", strides=strides, padding=padding), mean)
    first = tf.nn.avg_pool2d(X.transpose(0, 3, 1, 2).copy(), size, strides, padding, data_format="NCHW")
    close(first, mean.transpose(0, 3, 1, 2))


def test_pooling_of_other_ranks():
    close(tf.nn.max_pool1d(X[:, :, 0], 2, 1, "VALID"), np.maximum(X[:, :-1, 0], X[:, 1:, 0]))
    close(tf.nn.avg_pool1d(X[:, :, 0], 2, 1, "VALID"), (X[:, :-1, 0] + X[:, 1:, 0]) / 2)
    volume = X[..., None]
    close(tf.nn.max_pool3d(volume, [2, 1, 1], 1, "VALID"), np.maximum(volume[:, :-1], volume[:, 1:]))
    close(tf.nn.avg_pool3d(volume, [2, 1, 1], 1, "VALID"), (volume[:, :-1] + volume[:, 1:]) / 2)


def test_windows_refuse():
    fails(ValueError, "conv2d", lambda: tf.nn.conv2d(X, W[:, :, :2], 1, "SAME"))
    fails(ValueError, "conv2d", lambda: tf.nn.conv2d(X[0, 0], W, 1, "SAME"))
    fails(ValueError, "conv2d", lambda: tf.nn.conv2d(X, W, [1, 1, 1], "SAME"))
    fails(tf.errors.InvalidArgumentError, "conv2d", lambda: tf.nn.conv2d(X, W, [2, 1, 1, 1], "SAME"))
    fails(ValueError, "conv2d", lambda: tf.nn.conv2d(X, W, 1, "ROUND"))
    fails(ValueError, "max_pool", lambda: tf.nn.max_pool2d(X[0], 2, 2, "SAME"))
    fails(ValueError, "pool", lambda: tf.nn.pool(X, [2, 2], "MEDIAN"))


F = RNG.normal(size=(3, 4))
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "gelu": lambda x: 0.5 * x * (1 + special.erf(x / np.sqrt(2))),
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "crelu": lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations(name, dtype):
    for x in (F.astype(dtype), F.astype(dtype).T, F.astype(dtype)[:0]):
        got = getattr(tf.nn, name)(tf.constant(x))
        assert got.dtype.name == dtype
        close(got, ACTIVATIONS[name](x), 1e-6)


def test_normalisation():
    mean, variance = tf.nn.moments(X, [0, 1, 2])
    close(mean, X.mean((0, 1, 2)))
    close(variance, X.var((0, 1, 2)))
    assert tf.nn.moments(X, axes=[0, 1, 2], keepdims=True)[0].shape == (1, 1, 1, 3)
    offset, scale = np.float32([1, 2, 3]), np.float32([2, 1, 4])
    want = (X - X.mean((0, 1, 2))) / np.sqrt(X.var((0, 1, 2)) + 1e-3) * scale + offset
    close(tf.nn.batch_normalization(X, mean, variance, offset, scale, 1e-3), want)
    kept = tf.nn.moments(X, [0, 1, 2], keepdims=True)
    close(tf.nn.batch_normalization(X, *kept, offset, scale, 1e-3), want)
    close(tf.nn.batch_normalization(X, *kept, None, None, 1e-3), (want - offset) / scale)
    count, total, squares, shift = tf.nn.sufficient_statistics(F, [0])
    close(total, F.sum(0))
    assert shift is None
    close(tf.nn.normalize_moments(count, total, squares, shift)[1], F.var(0))
    weights = np.array([1.0, 2.0, 3.0])
    mean, variance = tf.nn.weighted_moments(F, [0], weights[:, None])
    centre = np.average(F, axis=0, weights=weights)
    close(mean, centre)
    close(variance, np.average((F - centre) ** 2, axis=0, weights=weights))
    padded = np.pad(X, [(0, 0)] * 3 + [(1, 1)]) ** 2
    total = padded[..., :3] + padded[..., 1:4] + padded[..., 2:]
    close(tf.nn.lrn(X, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75), X / (2 + 0.5 * total) ** 0.75)
    close(tf.nn.bias_add(X, offset), X + offset)
    close(tf.nn.bias_add(X.transpose(0, 3, 1, 2), offset, "NCHW"), (X + offset).transpose(0, 3, 1, 2))
    fails(ValueError, "bias_add", lambda: tf.nn.bias_add(X, [1.0]))


def test_losses():
    labels = special.softmax(F[::-1], -1)
    want = -(labels * special.log_softmax(F, -1)).sum(-1)
    close(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=F), want)
    close(tf.nn.softmax_cross_entropy_with_logits(labels.T.copy(), F.T.copy(), axis=0), want)
    classes = np.array([0, 3, 1])
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=F)
    close(sparse, -special.log_softmax(F, -1)[np.arange(3), classes])
    p = special.expit(F)
    want = -(labels * np.log(p) + (1 - labels) * np.log(1 - p))
    close(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=F), want)
    want = -(2.5 * labels * np.log(p) + (1 - labels) * np.log(1 - p))
    close(tf.nn.weighted_cross_entropy_with_logits(labels, F, 2.5), want)
    close(tf.nn.l2_loss(F), (F**2).sum() / 2)
    counts = np.array([0.0, 1.0, 5.0])
    close(tf.nn.log_poisson_loss(counts, F[:, 0]), np.exp(F[:, 0]) - counts * F[:, 0])
    full = tf.nn.log_poisson_loss(counts, F[:, 0], compute_full_loss=True).numpy()
    stirling = 5 * np.log(5) - 5 + 0.5 * np.log(2 * np.pi * 5)
    close(full, np.exp(F[:, 0]) - counts * F[:, 0] + [0, 0, stirling])
    close(tf.nn.compute_average_loss([1.0, 2.0, 3.0], [1.0, 0.0, 2.0], 6), 7 / 6)
    fails(IndexError, "sparse_softmax", lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([9, 0, 0], F))
    fails(ValueError, "sigmoid_cross", lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=labels))


def test_blocks():
    got = tf.nn.space_to_depth(X[:, :4], 2)
    want = X[:, :4].reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 2, 3, 12)
    close(got, want)
    close(tf.nn.depth_to_space(got, 2), X[:, :4])
    first = tf.nn.space_to_depth(X[:, :4].transpose(0, 3, 1, 2).copy(), 2, data_format="NCHW")
    close(tf.nn.depth_to_space(first, 2, "NCHW"), X[:, :4].transpose(0, 3, 1, 2))
    fails(ValueError, "space_to_depth", lambda: tf.nn.space_to_depth(X, 2))


def test_dropout():
    x = tf.ones([1000])
    kept = tf.nn.dropout(x, rate=0.25, seed=1).numpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert abs((kept > 0).mean() - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 1000)
    np.testing.assert_array_equal(tf.nn.dropout(x, 0.0), x)
    together = tf.nn.dropout(tf.ones([50, 8]), 0.5, noise_shape=[50, 1]).numpy()
    assert np.all(together == together[:, :1])
    tf.random.set_seed(3)
    first = tf.nn.dropout(x, 0.5).numpy()
    assert np.any(first != tf.nn.dropout(x, 0.5).numpy())
    tf.random.set_seed(3)
    np.testing.assert_array_equal(first, tf.nn.dropout(x, 0.5))
    fails(ValueError, "dropout", lambda: tf.nn.dropout(x, 1.5))


def test_embeddings():
    table = F.astype("float32")
    ids = np.array([[0, 2], [1, 1]])
    close(tf.nn.embedding_lookup(table, ids), table[ids])
    close(tf.nn.embedding_lookup([table[:2], table[2:]], ids), table[ids])
    rows = table[[0, 2]]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    close(tf.nn.embedding_lookup(table, [0, 2], max_norm=0.5), rows * 0.5 / np.maximum(norms, 0.5))
    fails(IndexError, "embedding_lookup", lambda: tf.nn.embedding_lookup(table, [3]))


def test_what_layers_add():
    x = F.astype("float32")
    centred = x - x.mean(-1, keepdims=True)
    close(tf.nn.layer_norm(x, epsilon=1e-5), centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    close(tf.nn.rms_norm(x, epsilon=1e-6), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))
    q, k, v = (RNG.normal(size=(1, 2, 3, 4)).astype("float32") for _ in range(3))
    scores = special.softmax(q @ k.transpose(0, 1, 3, 2) / 2, -1)
    close(tf.nn.attention(q, k, v), scores @ v)


def test_labels_broadcast_and_take_the_type_of_the_logits():
    logits = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    want = tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0], [1.0, 0.0]], logits)
    for labels in ([[1.0, 0.0]], tf.constant([[1, 0], [1, 0]]), tf.constant([1, 0])):
        got = tf.nn.softmax_cross_entropy_with_logits(labels, logits)
        assert got.dtype == tf.float32
        np.testing.assert_allclose(got, want, rtol=1e-6)
    fails(ValueError, "broadcast", lambda: tf.nn.softmax_cross_entropy_with_logits(tf.ones([2, 3]), logits))
