"""Initializers of variables."""

import numpy as np

import taut as tf


def test_values():
    assert tf.zeros_initializer()([2, 3]).numpy().tolist() == [[0.0] * 3] * 2
    assert tf.ones_initializer()([2], dtype=tf.int32).dtype == tf.int32
    assert tf.constant_initializer(3.0)([2]).numpy().tolist() == [3.0, 3.0]
    assert tf.constant_initializer([1, 2, 3, 4])([2, 2]).numpy().tolist() == [[1, 2], [3, 4]]


def test_laws():
    normal = tf.random_normal_initializer(mean=1.0, stddev=0.1, seed=1)([5000])
    assert abs(normal.numpy().mean() - 1.0) < 0.01 and abs(normal.numpy().std() - 0.1) < 0.01
    even = tf.random_uniform_initializer(2.0, 3.0)([5000], tf.float64)
    assert even.dtype == tf.float64 and 2.0 <= even.numpy().min() < even.numpy().max() < 3.0
    assert np.abs(tf.random_normal_initializer()([5000]).numpy().std() - 0.05) < 0.005


def test_settings():
    one = tf.random_uniform_initializer(-1.0, 1.0)
    assert type(one).from_config(one.get_config()).get_config() == {"minval": -1.0, "maxval": 1.0, "seed": None}
    v = tf.Variable(tf.zeros_initializer()(shape=[2], dtype=tf.float32))
    assert v.shape == [2]
