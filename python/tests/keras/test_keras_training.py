"""Keras: training against another backend, optimizers against formulas, and options of `fit`."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import trainings

import taut as tf
from taut import keras

LOSSES = json.loads((Path(__file__).parent / "data" / "losses.json").read_text())


@pytest.mark.parametrize("training", trainings.TRAININGS, ids=lambda training: training.__name__)
def test_losses_are_those_of_the_jax_backend(training):
    np.testing.assert_allclose(trainings.losses(keras, training), LOSSES[training.__name__], rtol=2e-3)


def test_a_convnet_learns_the_digits():
    images, labels = trainings.digits()
    model, _, _ = trainings.convnet(keras)
    history = model.fit(
        images[:1400],
        labels[:1400],
        batch_size=64,
        epochs=6,
        validation_data=(images[1400:], labels[1400:]),
        verbose=0,
    )
    assert history.history["val_accuracy"][-1] > 0.9
    assert history.history["loss"][-1] < 0.2 * history.history["loss"][0]


def linear(optimizer="sgd", **options):
    """A model y = x w from w = 1, with loss mean((y - t)^2)."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(optimizer, "mse", **options)
    return model


def weight(model) -> float:
    return float(model.layers[0].kernel.numpy()[0, 0])


X = np.array([[1.0], [2.0]], dtype="float32")
T = np.array([[0.0], [0.0]], dtype="float32")
# The loss is mean((w x)^2) = 2.5 w^2, its gradient 5 w.


def test_sgd_is_a_step_along_the_gradient():
    model = linear(keras.optimizers.SGD(0.1))
    loss = model.train_on_batch(X, T)
    np.testing.assert_allclose(loss, 2.5)
    np.testing.assert_allclose(weight(model), 1 - 0.1 * 5, rtol=1e-6)


def test_adam_is_its_formula():
    model = linear(keras.optimizers.Adam(0.1, beta_1=0.9, beta_2=0.99, epsilon=1e-7))
    w, m, v = 1.0, 0.0, 0.0
    for step in range(1, 4):
        gradient = 5 * w
        m, v = 0.9 * m + 0.1 * gradient, 0.99 * v + 0.01 * gradient**2
        w -= 0.1 * np.sqrt(1 - 0.99**step) / (1 - 0.9**step) * m / (np.sqrt(v) + 1e-7)
        model.train_on_batch(X, T)
        np.testing.assert_allclose(weight(model), w, rtol=1e-5)


def test_adamw_decays_weights_first():
    model = linear(keras.optimizers.AdamW(0.1, weight_decay=0.5))
    model.train_on_batch(X, T)
    # The first step of Adam is the learning rate, whatever the gradient.
    np.testing.assert_allclose(weight(model), 1 - 1 * 0.5 * 0.1 - 0.1, rtol=1e-4)


def test_rmsprop_is_its_formula():
    model = linear(keras.optimizers.RMSprop(0.1, rho=0.5, epsilon=1e-7))
    w, v = 1.0, 0.0
    for _ in range(2):
        v = 0.5 * v + 0.5 * (5 * w) ** 2
        w -= 0.1 * 5 * w / np.sqrt(v + 1e-7)
        model.train_on_batch(X, T)
    np.testing.assert_allclose(weight(model), w, rtol=1e-5)


def test_gradients_are_accumulated_over_steps():
    model = linear(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))
    seen = []
    for _ in range(4):
        model.train_on_batch(X, T)
        seen.append(weight(model))
    # Each update is by the mean of two equal gradients.
    np.testing.assert_allclose(seen, [1.0, 0.5, 0.5, 0.25], rtol=1e-6)


def test_averages_overwrite_the_weights_when_due():
    model = linear(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2))
    model.train_on_batch(X, T)
    np.testing.assert_allclose(weight(model), 0.5, rtol=1e-6)
    model.train_on_batch(X, T)
    # The average is 0.5 after the first step, then 0.5 * 0.5 + 0.5 * 0.25.
    np.testing.assert_allclose(weight(model), 0.375, rtol=1e-6)


def test_optimizers_take_variables_of_taut():
    w = tf.Variable([1.0, 2.0])
    optimizer = keras.optimizers.SGD(0.5, momentum=0.5)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w) / 2.0
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    # Momentum -w/2, then half of that less half of what is left: w/2, and w/2 - w/4 - w/4.
    np.testing.assert_allclose(w.numpy(), [0.0, 0.0], atol=1e-7)


def test_sparse_gradients_update_the_rows_they_name():
    model = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Embedding(4, 1, "ones")])
    model.compile(keras.optimizers.SGD(1.0), lambda y, p: keras.ops.mean(p))
    model.train_on_batch(np.array([[1], [1]]), np.zeros((2, 1)))
    np.testing.assert_allclose(model.layers[0].embeddings.numpy()[:, 0], [1, 0, 1, 1], atol=1e-6)


def test_rules_that_need_all_rows_get_them():
    model = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Embedding(4, 1, "ones")])
    model.compile(keras.optimizers.Adam(0.1), lambda y, p: keras.ops.mean(p))
    model.train_on_batch(np.array([[1], [1]]), np.zeros((2, 1)))
    model.train_on_batch(np.array([[2], [2]]), np.zeros((2, 1)))
    # Row 1 still moves at the second step, by its momentum: 0.1 * sqrt(1 - 0.999^2) / (1 - 0.9^2) * 0.09 /
    # sqrt(v).
    second = 0.1 * np.sqrt(1 - 0.999**2) / (1 - 0.9**2) * 0.09 / np.sqrt(0.001 * 0.999)
    table = model.layers[0].embeddings.numpy()[:, 0]
    np.testing.assert_allclose(table[[0, 1, 3]], [1.0, 0.9 - second, 1.0], rtol=1e-4)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": False}, {"jit_compile": True}])
def test_ways_to_run_agree(options):
    model = linear(keras.optimizers.SGD(0.1), **options)
    history = model.fit(X, T, batch_size=2, epochs=3, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [2.5, 2.5 * 0.25, 2.5 * 0.0625], rtol=1e-5)


def test_several_steps_per_execution_are_several_steps():
    seen = []
    model = linear(keras.optimizers.SGD(0.1), steps_per_execution=2)
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    model.fit(np.tile(X, (3, 1)), np.tile(T, (3, 1)), batch_size=2, shuffle=False, verbose=0, callbacks=[callback])
    np.testing.assert_allclose(weight(model), 0.125, rtol=1e-6)
    assert seen == [1, 3]


def test_sample_and_class_weights_scale_the_loss():
    model = linear()
    np.testing.assert_allclose(model.test_on_batch(X, T, sample_weight=np.array([1.0, 0.0])), 0.5)
    history = model.fit(X, np.array([0, 0]), class_weight={0: 2.0}, batch_size=2, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [5.0], rtol=1e-6)


def test_validation_is_run_and_logged():
    history = linear(keras.optimizers.SGD(0.1)).fit(X, T, validation_data=(2 * X, T), epochs=2, verbose=0)
    np.testing.assert_allclose(history.history["val_loss"], [2.5, 0.625], rtol=1e-5)
    split = linear().fit(np.tile(X, (4, 1)), np.tile(T, (4, 1)), validation_split=0.25, verbose=0)
    assert set(split.history) == {"loss", "val_loss"}


class Threads(keras.callbacks.Callback):
    """The threads on which the callback was called; Keras may hand it to another one."""

    async_safe = True

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append((batch, threading.get_ident(), logs["loss"]))


def test_callbacks_of_a_batch_run_before_the_next_one():
    threads = Threads()
    linear(keras.optimizers.SGD(0.0)).fit(
        np.array([[1.0], [2.0], [3.0]], "float32"),
        np.zeros((3, 1), "float32"),
        batch_size=1,
        shuffle=False,
        verbose=0,
        callbacks=[threads],
    )
    own = threading.get_ident()
    # The loss so far: the mean of the squares.
    assert [(batch, thread) for batch, thread, _ in threads.seen] == [(0, own), (1, own), (2, own)]
    np.testing.assert_allclose([loss for *_, loss in threads.seen], [1.0, 2.5, 14 / 3], rtol=1e-6)


def test_callbacks_can_stop_and_change_the_rate():
    model = linear(keras.optimizers.SGD(0.1))
    stop = keras.callbacks.EarlyStopping(monitor="loss", baseline=0.0, patience=1)
    rate = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.0)
    history = model.fit(X, T, epochs=10, verbose=0, callbacks=[stop, rate])
    assert len(history.history["loss"]) < 10
    assert weight(model) == 1.0


def test_the_progress_bar_shows_the_loss(capsys):
    linear(keras.optimizers.SGD(0.0)).fit(X, T, batch_size=1, verbose=1)
    shown = capsys.readouterr().out
    assert "2/2" in shown and "loss: 2.5000" in shown


def test_frozen_layers_stay_as_they_are():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2), keras.layers.Dense(1)])
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    frozen, trained = model.layers[0].kernel.numpy(), model.layers[1].kernel.numpy()
    model.fit(X, T + 1, verbose=0)
    np.testing.assert_array_equal(model.layers[0].kernel.numpy(), frozen)
    assert np.any(model.layers[1].kernel.numpy() != trained)


def test_a_schedule_moves_with_the_steps():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.1, 0.0])
    model = linear(keras.optimizers.SGD(schedule))
    for _ in range(4):
        model.train_on_batch(X, T)
    # Boundaries are inclusive: steps 0 and 1 are taken, the others have rate 0.
    np.testing.assert_allclose(weight(model), 0.25, rtol=1e-6)


def test_custom_train_steps_run():
    class Doubling(keras.Model):
        def __init__(self):
            super().__init__()
            self.w = self.add_weight(shape=(), initializer="ones")

        def call(self, x):
            return x * self.w

        def train_step(self, data):
            self.w.assign(self.w * 2.0)
            return {"w": self.w.value}

    model = Doubling()
    model.compile("sgd", "mse")
    history = model.fit(X, T, batch_size=1, epochs=2, verbose=0)
    assert history.history["w"] == [4.0, 16.0]


def test_generators_and_datasets_are_data():
    def batches():
        while True:
            yield X, T

    model = linear(keras.optimizers.SGD(0.1))
    model.fit(batches(), steps_per_epoch=2, verbose=0)
    np.testing.assert_allclose(weight(model), 0.25, rtol=1e-6)
    dataset = tf.data.Dataset.from_tensor_slices((X, T)).batch(2)
    np.testing.assert_allclose(model.evaluate(dataset, verbose=0), 2.5 * 0.0625, rtol=1e-5)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), X * 0.25, rtol=1e-6)


def test_predict_joins_batches_of_different_sizes():
    x = np.arange(5, dtype="float32")[:, None]
    np.testing.assert_allclose(linear().predict(x, batch_size=2, verbose=0), x)


def test_scaled_losses_skip_steps_that_overflow():
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0)
    model = linear(optimizer)
    model.train_on_batch(X, T)
    np.testing.assert_allclose(weight(model), 0.5, rtol=1e-6)
    model.train_on_batch(X, np.full_like(T, np.inf))
    np.testing.assert_allclose(weight(model), 0.5, rtol=1e-6)
    assert float(optimizer.dynamic_scale) == 2.0


def test_metrics_of_a_batch_are_of_that_batch_alone():
    model = linear(keras.optimizers.SGD(0.1))
    np.testing.assert_allclose([model.train_on_batch(X, T) for _ in range(3)], [2.5, 0.625, 0.15625], rtol=1e-5)


def test_mixed_precision_keeps_weights_in_32_bits():
    layer = keras.layers.Dense(3, dtype="mixed_bfloat16")
    result = layer(np.ones((2, 4), dtype="float32"))
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"
    assert layer.kernel.dtype == "float32"


def test_loss_scaling_prevents_underflow():
    layers = [
        keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", activation="sigmoid", dtype="mixed_float16")
        for _ in range(15)
    ]
    model = keras.Sequential([keras.Input([1]), *layers])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e9))
    model.compile(optimizer, "mse")
    model.fit(np.ones((1, 1)), np.ones((1, 1)), verbose=0)
    # Keras on JAX: 1.1091, 1.4020, 2.6935, 8.4433. The first gradients are a few of the least float16 numbers.
    made = [float(layer.kernel.numpy()[0, 0]) for layer in layers[:4]]
    np.testing.assert_allclose(np.array(made) - 1, [0.1091, 0.4020, 1.6935, 7.4433], rtol=0.1)


def test_class_weights_need_one_output():
    x, y = np.ones((4, 2), "float32"), {"a": np.zeros(4), "b": np.zeros(4)}
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="`class_weight` needs a model with one output"):
        model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(2), class_weight={0: 1.0}, verbose=0)


def test_a_distributed_dataset_of_one_process():
    strategy = tf.distribute.MirroredStrategy()
    rows = tf.data.Dataset.from_tensor_slices((np.ones((6, 2), "float32"), np.ones((6, 1), "float32"))).batch(4)
    parts = strategy.experimental_distribute_dataset(rows)
    assert parts.cardinality == 2
    assert iter(parts).get_next_as_optional().has_value()
    histories = []
    for data in (rows, parts):
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
        histories.append(model.fit(data, epochs=2, verbose=0).history["loss"])
    assert histories[0] == histories[1]
    with pytest.raises(ValueError, match="`y` should not be passed"):
        model.fit(rows, np.ones(6))


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_an_empty_dataset_trains_nothing_and_builds_the_model():
    """As in Keras 3 on TensorFlow 2.21: there are no logs, and the weights have their initial values."""
    rows = tf.data.Dataset.from_tensor_slices((np.ones((3, 2), "float32"), np.ones((3, 1), "float32")))
    empty = rows.batch(8, drop_remainder=True)

    def compiled():
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse", metrics=["mae"])
        return model

    model = compiled()
    assert model.fit(empty, epochs=2, verbose=0).history == {}
    assert [weight.shape for weight in model.get_weights()] == [(2, 1), (1,)]
    assert set(model.fit(rows.batch(2), verbose=0).history) == {"loss", "mae"}
    assert model.fit(empty, verbose=0).history == {}
    assert compiled().evaluate(empty, verbose=0) == [] and compiled().evaluate(empty, verbose=0, return_dict=True) == {}


def test_fit_builds_a_sequential_model_for_batches_of_any_size():
    """As in Keras 3 on TensorFlow 2.21, where summaries and saved models have None for the size of a batch."""

    def fitted(*data, **options):
        model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(*data, verbose=0, **options)
        return model

    x, y = np.ones((6, 3), "float32"), np.ones((6, 1), "float32")
    rows = tf.data.Dataset.from_tensor_slices((x, y))
    for model in (fitted(x, y, batch_size=4), fitted(tf.constant(x), tf.constant(y)), fitted(rows.batch(4))):
        assert model.input_shape == (None, 3) and model.output_shape == (None, 1)
        assert model.predict(np.ones((5, 3)), verbose=0).shape == (5, 1)
    assert fitted(rows.batch(3, drop_remainder=True)).input_shape == (3, 3)
    # Of batches of an unknown rank, the first one tells.
    unknown = (tf.TensorSpec(None), tf.TensorSpec(None))
    assert fitted(tf.data.Dataset.from_generator(lambda: iter([(x, y)]), output_signature=unknown)).built
    model = keras.Sequential([keras.layers.Conv2D(2, 3)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="min_ndim=4"):
        model.fit(x, y, verbose=0)
