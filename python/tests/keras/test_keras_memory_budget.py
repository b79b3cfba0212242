"""Keras models that train within a memory budget."""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf
from taut import keras


def model(layers=24, width=32):
    keras.utils.set_random_seed(1)
    stack = [keras.layers.Dense(width, activation="tanh") for _ in range(layers)]
    return keras.Sequential([keras.Input([width]), *stack, keras.layers.Dense(1)])


def data():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(256, 32)).astype("f4")
    return x, x.sum(1, keepdims=True)


def peak_and_losses(**options):
    made = model()
    made.compile(optimizer="sgd", loss="mse", **options)
    x, y = data()
    tf.memory.reset_peak()
    before = tf.memory.live_bytes()
    losses = [made.train_on_batch(x, y) for _ in range(3)]
    return tf.memory.peak_bytes() - before, losses


def test_a_model_trains_within_its_budget_with_the_same_losses():
    plain, expected = peak_and_losses()
    within, got = peak_and_losses(memory_budget=tf.memory.MemoryBudget("300kB", bit_equal=True))
    # 24 activations of 256 x 32 floats are 786 kB.
    assert plain - within > 400_000
    assert got == expected


def test_a_budget_that_cannot_be_kept_names_the_smallest():
    made = model()
    made.compile(optimizer="sgd", loss="mse", memory_budget=5000)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="must be at least"):
        made.fit(*data(), verbose=0)


def test_a_budget_needs_traced_steps():
    with pytest.raises(ValueError, match="run_eagerly"):
        model().compile(optimizer="sgd", loss="mse", run_eagerly=True, memory_budget="1MB")


def test_text_that_is_no_size_is_refused():
    with pytest.raises(ValueError, match="memory budget must be a number with a unit"):
        model().compile(optimizer="sgd", loss="mse", memory_budget="little")


def test_a_saved_model_is_compiled_when_it_is_loaded(tmp_path):
    made = model(2)
    made.compile(optimizer="adam", loss="mse", memory_budget="100MB")
    made.fit(*data(), verbose=0)
    made.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.compiled and loaded.optimizer.name == made.optimizer.name
    np.testing.assert_allclose(loaded.predict(data()[0], verbose=0), made.predict(data()[0], verbose=0))
    loaded.fit(*data(), verbose=0)


def test_a_model_with_its_own_compile_warns_when_it_is_loaded(tmp_path):
    @keras.saving.register_keras_serializable("budget")
    class Own(keras.Sequential):
        def compile(self, *args, **kwargs):
            super().compile(*args, **kwargs)

    made = Own([keras.Input([32]), keras.layers.Dense(1)])
    made.compile(optimizer="sgd", loss="mse")
    made.fit(*data(), verbose=0)
    made.save(tmp_path / "own.keras")
    with pytest.warns(UserWarning, match="custom"):
        keras.models.load_model(tmp_path / "own.keras")
