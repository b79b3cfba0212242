"""`tf.compat.v1`: what TensorFlow 2 programs use of it, with TensorFlow's results."""

import numpy as np
import pytest

import taut as tf

v1 = tf.compat.v1.nn
RNG = np.random.default_rng(7)
X = RNG.normal(1.0, 2.0, (3, 4, 5, 6)).astype("f4")
SCALE, OFFSET = (RNG.normal(size=6).astype("f4") for _ in range(2))
MEAN, VARIANCE = RNG.normal(size=6).astype("f4"), RNG.uniform(0.5, 2.0, 6).astype("f4")
COUNT = X.size // 6


def normalized(x, mean, variance, epsilon):
    return (x - mean) / np.sqrt(variance + epsilon) * SCALE + OFFSET


def close(found, wanted, rtol=2e-5):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=rtol)


def test_training_normalizes_with_the_biased_and_returns_the_unbiased_variance():
    y, mean, variance = v1.fused_batch_norm(X, SCALE, OFFSET, epsilon=0.01)
    own = X.mean((0, 1, 2)), X.var((0, 1, 2))
    close(y, normalized(X, *own, 0.01))
    close(mean, own[0])
    close(variance, own[1] * COUNT / (COUNT - 1))


@pytest.mark.parametrize(("data_format", "order"), [("NCHW", (0, 3, 1, 2)), ("NCDHW", None), ("NDHWC", None)])
def test_data_formats(data_format, order):
    if order is None:
        given = X.reshape(3, 2, 2, 5, 6)
        order = (0, 4, 1, 2, 3) if data_format == "NCDHW" else (0, 1, 2, 3, 4)
    else:
        given = X
    wanted = v1.fused_batch_norm(X, SCALE, OFFSET)
    found = v1.fused_batch_norm(given.transpose(order), SCALE, OFFSET, data_format=data_format)
    close(found[0], np.asarray(wanted[0]).reshape(given.shape).transpose(order))
    for one, other in zip(found[1:], wanted[1:]):
        close(one, np.asarray(other))


def test_inference_uses_and_returns_the_given_statistics():
    y, mean, variance = v1.fused_batch_norm(X, SCALE, OFFSET, MEAN, VARIANCE, is_training=False)
    close(y, normalized(X, MEAN, VARIANCE, 0.001))
    assert np.asarray(mean).tolist() == MEAN.tolist()
    assert np.asarray(variance).tolist() == VARIANCE.tolist()


def test_running_statistics_move_by_the_factor():
    _, mean, variance = v1.fused_batch_norm(X, SCALE, OFFSET, MEAN, VARIANCE, exponential_avg_factor=0.25)
    close(mean, 0.75 * MEAN + 0.25 * X.mean((0, 1, 2)))
    close(variance, 0.75 * VARIANCE + 0.25 * X.var((0, 1, 2)) * COUNT / (COUNT - 1))


def test_epsilon_has_a_smallest_value():
    x = np.zeros((1, 1, 2, 1), "f4")
    x[0, 0, 1] = 1e-4
    y, _, _ = v1.fused_batch_norm(x, [1.0], [0.0], epsilon=0.0)
    close(y, (x - x.mean()) / np.sqrt(x.var() + 1.001e-5))


def test_one_element_has_its_biased_variance():
    _, mean, variance = v1.fused_batch_norm(np.full((1, 1, 1, 2), 3.0, "f4"), [1.0, 1.0], [0.0, 0.0])
    assert np.asarray(mean).tolist() == [3.0, 3.0]
    assert np.asarray(variance).tolist() == [0.0, 0.0]


def test_half_precision_has_statistics_in_float32():
    y, mean, variance = v1.fused_batch_norm(tf.constant(X, tf.float16), SCALE, OFFSET)
    assert (y.dtype, mean.dtype, variance.dtype) == (tf.float16, tf.float32, tf.float32)
    close(y, normalized(X, X.mean((0, 1, 2)), X.var((0, 1, 2)), 0.001), rtol=2e-2)


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_pass_through_the_normalized_batch_only(traced):
    x = tf.constant(X.astype("f8"))
    scale, offset = (tf.constant(one.astype("f8")) for one in (SCALE, OFFSET))
    weights = RNG.normal(size=X.shape)

    def loss(x, scale, offset, factor):
        y, mean, variance = v1.fused_batch_norm(x, scale, offset)
        return tf.reduce_sum(y * weights) + factor * tf.reduce_sum(mean * mean + variance)

    def gradients(factor):
        with tf.GradientTape() as tape:
            tape.watch([x, scale, offset])
            found = loss(x, scale, offset, factor)
        return tape.gradient(found, [x, scale, offset])

    found = (tf.function(gradients) if traced else gradients)(0.0)
    for one, other in zip(found, gradients(5.0)):
        close(one, np.asarray(other), rtol=1e-9)
    step, at = 1e-6, (1, 2, 3, 4)
    moved = [X.astype("f8"), X.astype("f8")]
    moved[0][at] += step
    moved[1][at] -= step
    slope = np.subtract(*(float(loss(tf.constant(one), scale, offset, 0.0)) for one in moved)) / (2 * step)
    assert float(found[0][at]) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    close(found[1], ((X - X.mean((0, 1, 2))) / np.sqrt(X.var((0, 1, 2)) + 0.001) * weights).sum((0, 1, 2)), rtol=1e-4)
    close(found[2], weights.sum((0, 1, 2)), rtol=1e-9)


def test_given_statistics_have_no_gradient():
    mean, variance = tf.Variable(MEAN), tf.Variable(VARIANCE)
    with tf.GradientTape() as tape:
        y, _, _ = v1.fused_batch_norm(X, SCALE, OFFSET, mean, variance, is_training=False)
    assert tape.gradient(y, [mean, variance]) == [None, None]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: v1.fused_batch_norm(X, SCALE, OFFSET, is_training=False), "mean and variance must be given"),
        (lambda: v1.fused_batch_norm(X, SCALE, OFFSET, exponential_avg_factor=0.5), "mean and variance must be given"),
        (lambda: v1.fused_batch_norm(X, SCALE, OFFSET, data_format="HWCN"), "data_format must be one of"),
        (lambda: v1.fused_batch_norm(X[0], SCALE, OFFSET), "expected rank 4"),
        (lambda: v1.moments(X, [0], keep_dims=True, keepdims=True), "give one of them"),
        (lambda: v1.softmax_cross_entropy_with_logits_v2(X, X, axis=1, dim=1), "give one of them"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_names_of_options():
    for found, wanted in zip(v1.moments(X, [0, 2], keep_dims=True), tf.nn.moments(X, [0, 2], keepdims=True)):
        close(found, np.asarray(wanted), rtol=0)
    weights = RNG.uniform(1.0, 2.0, X.shape).astype("f4")
    found = v1.weighted_moments(X, [0], weights, keep_dims=True)
    for one, other in zip(found, tf.nn.weighted_moments(X, [0], weights, keepdims=True)):
        close(one, np.asarray(other), rtol=0)
    found = v1.sufficient_statistics(X, [0], None, True)
    for one, other in zip(found[:3], tf.nn.sufficient_statistics(X, [0], keepdims=True)):
        close(one, np.asarray(other), rtol=0)
    labels = np.eye(6, dtype="f4")[:5]
    for options, axis in (({}, -1), ({"dim": 0}, 0), ({"axis": 1}, 1)):
        found = v1.softmax_cross_entropy_with_logits_v2(labels=labels, logits=X[0, 0], **options)
        close(found, np.asarray(tf.nn.softmax_cross_entropy_with_logits(labels, X[0, 0], axis)), rtol=0)
    assert v1.relu is tf.nn.relu
    assert v1.batch_normalization is tf.nn.batch_normalization


def test_every_name_of_the_namespace_resolves():
    # `python/tools/differential/expressions/compat.txt` compares them with TensorFlow.
    for name in dir(tf.compat.v1):
        if not name.startswith("_"):
            getattr(tf.compat.v1, name)
    assert tf.compat.v2 is tf and tf.compat.v1.keras is tf.keras


@pytest.mark.parametrize(
    "name", ["Session", "placeholder", "get_variable", "boolean_mask", "train", "image.extract_glimpse"]
)
def test_what_belongs_to_tensorflow_1_is_missing_with_a_remedy(name):
    thing = tf.compat.v1
    with pytest.raises(AttributeError, match=r"tf.compat.v1.* is missing here"):
        for part in name.split("."):
            thing = getattr(thing, part)


def test_options_with_two_names_and_those_that_cannot_take_effect():
    v1 = tf.compat.v1
    with pytest.raises(ValueError, match="axis and dim are one option"):
        v1.nn.softmax([1.0], axis=0, dim=0)
    with pytest.raises(ValueError, match="exactly one"):
        v1.nn.dropout([1.0])
    with pytest.raises(ValueError, match="keyword"):
        v1.nn.sparse_softmax_cross_entropy_with_logits([0], [[1.0]])
    with pytest.raises(ValueError, match="one device"):
        v1.nn.embedding_lookup([tf.ones([1, 2]), tf.ones([1, 2])], [0])
    with pytest.raises(ValueError, match="config"):
        v1.enable_eager_execution(config=object())
    for disable in (v1.disable_eager_execution, v1.disable_v2_behavior):
        with pytest.raises(RuntimeError, match="no TensorFlow 1 behavior"):
            disable()


def test_logging(caplog):
    log = tf.compat.v1.logging
    before = log.get_verbosity()
    tf.get_logger().propagate, propagates = True, tf.get_logger().propagate
    try:
        log.set_verbosity(log.WARN)
        log.info("hidden")
        log.warning("shown %d", 3)
        for _ in range(5):
            log.log_first_n(log.ERROR, "first", 2)
            log.log_every_n(log.ERROR, "every", 3)
    finally:
        log.set_verbosity(before)
        tf.get_logger().propagate = propagates
    assert [record.message for record in caplog.records if record.message != "first"] == ["shown 3", "every", "every"]
    assert sum(record.message == "first" for record in caplog.records) == 2


def test_files(tmp_path):
    gfile = tf.compat.v1.gfile
    gfile.MakeDirs(str(tmp_path / "a" / "b"))
    with gfile.GFile(str(tmp_path / "a" / "f.txt"), "w") as file:
        file.write("text")
    assert gfile.Exists(str(tmp_path / "a" / "f.txt")) and gfile.IsDirectory(str(tmp_path / "a"))
    assert gfile.Glob(str(tmp_path / "a" / "*.txt")) == [str(tmp_path / "a" / "f.txt")]
    gfile.DeleteRecursively(str(tmp_path / "a"))
    assert not gfile.Exists(str(tmp_path / "a"))
