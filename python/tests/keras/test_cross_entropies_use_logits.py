"""Cross-entropies of probabilities are computed from the logits of which they were made, as in Keras on TensorFlow (its numbers).

A model that is wrong and sure has probabilities that were rounded to 0, whose logarithm has no gradient.
"""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

import taut as tf

SURE = [[100.0, 0.0, 3.0]]
LEARNED = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-0.03, 0.03, 1.0]]


def trained(activation, loss, y, x, **options):
    dense = keras.layers.Dense(len(x[0]), activation=activation, kernel_initializer="identity")
    model = keras.Sequential([keras.Input((len(x[0]),)), dense])
    model.compile("sgd", loss, **options)
    losses = model.fit(np.float32(x), np.array(y), epochs=2, verbose=0).history["loss"]
    return losses, model.get_weights()[0]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", tf.nn.softmax])
@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", "categorical_crossentropy"])
def test_a_model_that_is_wrong_and_sure_learns(activation, loss, eager):
    if eager and activation is tf.nn.softmax:
        pytest.skip("eager results of TensorFlow's own ops are taken as they are")
    y = [1] if loss.startswith("sparse") else [[0.0, 1.0, 0.0]]
    losses, kernel = trained(activation, loss, y, SURE, run_eagerly=eager)
    assert losses == [100.0, 0.0]
    np.testing.assert_allclose(kernel, LEARNED, atol=1e-6)


@pytest.mark.parametrize("activation", ["sigmoid", "softmax", tf.nn.sigmoid, tf.sigmoid])
def test_two_classes(activation):
    losses, kernel = trained(activation, "binary_crossentropy", [[0.0, 1.0]], [[100.0, -50.0]])
    np.testing.assert_allclose(losses, [75.0, 18.7475], atol=1e-3)
    np.testing.assert_allclose(kernel, [[0.0, 0.5], [0.5, 0.75]], atol=1e-5)


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", "categorical_crossentropy"])
def test_an_op_has_its_own_cross_entropy(loss):
    y = [1] if loss.startswith("sparse") else [[0.0, 1.0, 0.0]]
    losses, kernel = trained(tf.nn.sigmoid, loss, y, SURE)
    np.testing.assert_allclose(losses, [1.5903, 1.0155], atol=1e-4)
    np.testing.assert_allclose(kernel, [[1, 0.3981, -0.0844], [0, 1, 0], [0, 0.0119, 0.9975]], atol=1e-4)


def test_losses_by_hand():
    x, label, ones, second = tf.constant([[100.0, 0.0]]), tf.constant([1]), tf.ones([1, 2]), tf.constant([[0.0, 1.0]])
    losses, made = keras.losses, keras.activations
    assert losses.sparse_categorical_crossentropy(label, made.softmax(x)).numpy().tolist() == [100.0]
    assert float(losses.CategoricalCrossentropy()(second, keras.ops.softmax(x))) == 100.0
    assert float(losses.binary_crossentropy(ones, made.sigmoid(-x))[0]) == pytest.approx(50.346573)
    # Eager results of TensorFlow's own ops are taken as they are.
    assert float(losses.sparse_categorical_crossentropy(label, tf.nn.softmax(x))[0]) == pytest.approx(16.118095)
    assert float(losses.binary_crossentropy(ones, tf.nn.sigmoid(-x))[0]) == pytest.approx(8.405622)

    @tf.function
    def traced(x):
        probabilities = tf.nn.softmax(x)
        return (
            losses.sparse_categorical_crossentropy(label, probabilities),
            losses.binary_crossentropy(ones, tf.sigmoid(-x)),
            losses.categorical_crossentropy(second, tf.identity(probabilities)),
        )

    assert [float(value[0]) for value in traced(x)] == pytest.approx([100.0, 50.346573, 16.118095])


def test_logits_that_are_probabilities_are_noticed():
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    with pytest.warns(UserWarning, match="from_logits must be False"):
        assert float(loss(tf.constant([[0.0, 1.0]]), keras.ops.softmax(tf.constant([[100.0, 0.0]])))) == 100.0


def test_functions_of_open_sizes_use_logits():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, "softmax", kernel_initializer="identity")])

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32)])
    def loss(x, y):
        return tf.reduce_sum(keras.losses.sparse_categorical_crossentropy(y, model(x)))

    for rows in (1, 2, 3):
        assert float(loss(tf.constant(SURE * rows), tf.ones([rows], tf.int32))) == 100.0 * rows


def test_probabilities_free_their_logits():
    before = tf.memory.live_bytes()
    probabilities = keras.ops.softmax(tf.zeros([1000]))
    del probabilities
    assert tf.memory.live_bytes() == before


def test_probabilities_of_other_threads_free_their_logits():
    before = tf.memory.live_bytes()
    with ThreadPoolExecutor(1) as pool:
        probabilities = pool.submit(lambda: keras.ops.softmax(tf.zeros([1000]))).result()
        # They are dropped by this thread, while the one that made them goes on.
        del probabilities
        assert tf.memory.live_bytes() == before
