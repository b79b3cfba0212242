"""A program with types, which `mypy --strict` checks and `test_stubs.py` runs."""

from __future__ import annotations

import taut as tf


def dense(x: tf.Tensor, weights: tf.Variable, bias: tf.Variable) -> tf.Tensor:
    """A linear layer with a rectifier."""
    return tf.nn.relu(tf.matmul(x, weights) + bias)


def loss_of(x: tf.Tensor, labels: tf.Tensor, weights: tf.Variable, bias: tf.Variable) -> tf.Tensor:
    """The mean cross-entropy of a batch."""
    logits: tf.Tensor = dense(x, weights, bias)
    losses: tf.Tensor = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses)


def train(steps: int) -> float:
    """A few steps of gradient descent; returns the last loss."""
    tf.random.set_seed(1)
    x: tf.Tensor = tf.random.normal([8, 4])
    labels: tf.Tensor = tf.cast(tf.range(8) % 3, tf.int64)
    weights = tf.Variable(tf.random.normal([4, 3], stddev=0.1))
    bias = tf.Variable(tf.zeros([3]))
    last = 0.0
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(x, labels, weights, bias)
        first, second = tape.gradient(loss, [weights, bias])
        weights.assign_sub(0.1 * first)
        bias.assign_sub(0.1 * second)
        last = float(loss)
    return last


def shapes() -> tuple[list[int | None], int, str]:
    """Structures of results have types, too."""
    x: tf.Tensor = tf.ones([2, 3])
    values, indices = tf.math.top_k(x, 2)
    parts: list[tf.Tensor] = tf.split(x, 3, axis=1)
    q, r = tf.linalg.qr(tf.transpose(x))
    total: tf.Tensor = values + tf.cast(indices, tf.float32) + parts[0] + tf.reduce_sum(q) + tf.reduce_sum(r)
    size: int = total.ndim
    return total.shape.as_list(), size, total.dtype.name


if __name__ == "__main__":
    assert train(3) > 0.0
    assert shapes() == ([2, 2], 2, "float32")
