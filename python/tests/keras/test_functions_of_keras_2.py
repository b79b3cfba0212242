"""`tf.keras.backend` has the functions of Keras 2, and `tf.keras.layers` its layers: the values are TensorFlow's."""

import numpy as np
import pytest

import taut as tf

K = tf.keras.backend
X = tf.constant([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])
Y = tf.constant([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_values_are_set_and_read():
    v = tf.Variable([1.0, 2.0])
    K.set_value(v, [3.0, 4.0])
    assert K.get_value(v).tolist() == [3.0, 4.0] and K.int_shape(v) == (2,) and K.dtype(v) == "float32"
    assert K.count_params(v) == 2 and K.epsilon() == 1e-7 and K.floatx() == "float32"
    optimizer = tf.keras.optimizers.SGD(0.25)
    assert K.get_value(optimizer.learning_rate) == 0.25


def test_a_metric_of_keras_2():
    def f1(labels, predicted):
        hits = K.sum(K.round(K.clip(labels * predicted, 0, 1)))
        precision = hits / (K.sum(K.round(K.clip(predicted, 0, 1))) + K.epsilon())
        recall = hits / (K.sum(K.round(K.clip(labels, 0, 1))) + K.epsilon())
        return 2 * precision * recall / (precision + recall + K.epsilon())

    assert float(f1(Y, X)) == pytest.approx(0.6666665)  # 0.5 rounds to 0


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda: K.mean(X, axis=1), [1 / 3, 1 / 3]),
        (lambda: K.std(X), 0.20548046),
        (lambda: K.argmax(X), [1, 0]),
        (lambda: K.dot(X, K.transpose(Y)), [[0.7, 0.2], [0.3, 0.2]]),
        (lambda: K.categorical_crossentropy(Y, X), [0.35667497, 1.609438]),
        (lambda: K.categorical_crossentropy(Y, K.softmax(1000.0 * Y[::-1])), [16.118095, 16.118095]),
        (lambda: K.sparse_categorical_crossentropy(tf.constant([1, 2]), X), [0.35667497, 1.609438]),
        (lambda: K.relu(X - 0.3, alpha=0.1, max_value=0.3, threshold=0.1), [[-0.03, 0.3, -0.02], [0.2, -0.01, -0.02]]),
        (lambda: K.l2_normalize(X, 1)[0], [0.13608277, 0.95257934, 0.27216554]),
        (lambda: K.switch(X > 0.4, X, Y), [[0.0, 0.7, 0.0], [0.5, 0.0, 1.0]]),
        (lambda: K.foldl(lambda a, b: a + b, X), [0.6, 1.0, 0.4]),
        (lambda: K.in_top_k(X, tf.constant([0, 0]), 1), [False, True]),
        (lambda: K.repeat_elements(X[:1, :2], 2, 1), [[0.1, 0.1, 0.7, 0.7]]),
        (lambda: K.conv1d(X[:, :, None], tf.ones([2, 1, 1]))[:, :, 0], [[0.8, 0.9], [0.8, 0.5]]),
        (lambda: K.hard_sigmoid(X), [[0.52, 0.64, 0.54], [0.6, 0.56, 0.54]]),
        (lambda: tf.keras.layers.ThresholdedReLU(0.4)(X), [[0.0, 0.7, 0.0], [0.5, 0.0, 0.0]]),
    ],
)
def test_results_are_tensorflows(function, wanted):
    np.testing.assert_allclose(function(), wanted, rtol=1e-5, atol=1e-6)


def test_functions_of_keras_2_in_a_model():
    total = tf.keras.layers.Lambda(lambda x: K.sum(K.square(x), axis=-1, keepdims=True), output_shape=(1,))
    model = tf.keras.Sequential([tf.keras.Input((3,)), total])
    model.compile("sgd", lambda y, p: K.mean(K.abs(y - p)))
    assert model.evaluate(X, tf.zeros([2, 1]), verbose=0) == pytest.approx(0.46)


def test_words_of_unequal_lines():
    vectorize = tf.keras.layers.TextVectorization(ragged=True)
    vectorize.adapt(["the cat sat", "the dog"])
    assert vectorize.get_vocabulary() == ["", "[UNK]", "the", "sat", "dog", "cat"]
    assert vectorize(tf.constant(["the cat sat", "a dog"])).to_list() == [[2, 5, 3], [1, 4]]
    rows = tf.data.Dataset.from_tensor_slices(["the cat", "dog"]).batch(2).map(vectorize)
    assert next(iter(rows)).to_list() == [[2, 5], [4]]


def test_a_training_step_of_keras_2_uses_compiled_loss():
    """As in Keras 3 on TensorFlow 2.21, with a warning."""

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compiled_loss(y, self(x, training=True), regularization_losses=self.losses)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"own": loss}

    model = Model()
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="compute_loss"):
        history = model.fit(np.ones((4, 2)), np.zeros((4, 1)), batch_size=4, verbose=0).history
    assert history["own"] == [4.0]


@pytest.mark.filterwarnings("ignore:`model.compiled")
def test_a_training_step_of_keras_2_uses_compiled_metrics():
    """As in Keras 3 on TensorFlow 2.21, where the mean of the loss becomes that of predictions."""

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compiled_loss(y, predicted)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.compiled_metrics.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    model = Model()
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(np.ones((4, 2)), np.zeros((4, 1)), batch_size=4, verbose=0).history
    assert history == {"mae": [2.0], "loss": [2.0]}
