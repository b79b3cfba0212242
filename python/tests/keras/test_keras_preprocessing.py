"""Keras's preprocessing layers and utilities, without TensorFlow: every result equals that with TensorFlow."""

import json
import os
import pathlib
import sys

import keras
import numpy as np
import preprocessing_cases
import pytest
import tutorial_cases

import taut as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
from answers import plain

L = keras.layers
ANSWERS = json.loads((pathlib.Path(__file__).parent / "preprocessing_answers.json").read_text())
TUTORIALS = json.loads((pathlib.Path(__file__).parent / "tutorial_answers.json").read_text())
TEXTS = np.array(["good movie", "bad film", "great good", "awful bad"] * 4, object)
LABELS = np.array([1, 0, 1, 0] * 4, "f4")


def close(found, wanted):
    """Equality, with the rounding of float32 in texts of floats."""
    if isinstance(wanted, dict):
        return set(found) == set(wanted) and all(close(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, str) and found != wanted:
        try:
            return float(found) == pytest.approx(float(wanted), rel=1e-5, abs=1e-5)
        except ValueError:
            return False
    return found == wanted


@pytest.mark.parametrize("name", preprocessing_cases.CASES)
def test_the_result_is_tensorflows(name, tmp_path):
    assert "tensorflow" not in sys.modules
    found = plain(preprocessing_cases.CASES[name](keras, tf, str(tmp_path)))
    assert close(found, ANSWERS[name]), (found, ANSWERS[name])


@pytest.mark.parametrize("name", tutorial_cases.CASES)
def test_the_steps_of_a_tutorial_have_tensorflows_results(name, tmp_path):
    if name.startswith("pandas"):
        pytest.importorskip("pandas")
    found = plain(tutorial_cases.CASES[name](keras, tf, str(tmp_path)))
    assert close(found, TUTORIALS[name]), (found, TUTORIALS[name])
    assert set(TUTORIALS) == set(tutorial_cases.CASES)


def classifier():
    return keras.Sequential([L.Embedding(50, 8), L.GlobalAveragePooling1D(), L.Dense(1)])


def test_a_model_learns_from_vectorized_texts():
    vectorize = L.TextVectorization(max_tokens=50, output_sequence_length=4)
    vectorize.adapt(TEXTS)
    batches = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(4).map(lambda x, y: (vectorize(x), y))
    keras.utils.set_random_seed(1)
    model = classifier()
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    losses = model.fit(batches, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    whole = keras.Sequential([vectorize, model, L.Activation("sigmoid")])
    good, bad = whole.predict(tf.constant(["good great", "bad awful"]), verbose=0)
    assert good > bad


def test_a_model_takes_strings():
    inputs = keras.Input(shape=(1,), dtype="string")
    vectorize = L.TextVectorization(max_tokens=50, output_sequence_length=4)
    vectorize.adapt(TEXTS)
    model = keras.Model(inputs, classifier()(vectorize(inputs)))
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    column = tf.constant(TEXTS[:, None])
    losses = model.fit(column, LABELS, epochs=3, batch_size=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.predict(column, verbose=0).shape == (16, 1)
    assert model.evaluate(column, LABELS, verbose=0) < losses[0]


def test_lookups_of_integers_are_part_of_the_compiled_step():
    inputs = keras.Input(shape=(3,), dtype="int64")
    encoded = L.IntegerLookup(vocabulary=[1, 2, 3], output_mode="multi_hot")(inputs)
    model = keras.Model(inputs, encoded)
    found = model.predict(np.array([[1, 2, 9], [3, 3, 3]]), verbose=0)
    np.testing.assert_array_equal(found, [[1, 1, 1, 0], [0, 0, 0, 1]])


def test_a_model_with_a_vocabulary_comes_back_from_a_file(tmp_path):
    model = keras.Sequential([keras.Input(shape=(1,), dtype="string"), L.TextVectorization(vocabulary=["x", "y"])])
    path = str(tmp_path / "model.keras")
    model.save(path)
    found = keras.models.load_model(path).predict(tf.constant([["x y z"]]), verbose=0)
    assert found.tolist() == [[2, 3, 1]]


def test_tensorboard_files_are_written(tmp_path):
    model = keras.Sequential([keras.Input((3,)), L.Dense(2), L.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    callback = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1)
    x, y = np.ones((8, 3), "f4"), np.ones((8, 1), "f4")
    model.fit(x, y, epochs=2, verbose=0, callbacks=[callback], validation_split=0.5)
    assert sorted(os.listdir(tmp_path)) == ["train", "validation"]
    (name,) = os.listdir(tmp_path / "train")
    events = [record.numpy() for record in tf.data.TFRecordDataset(str(tmp_path / "train" / name))]
    assert b"brain.Event:2" in events[0]
    assert sum(b"epoch_loss" in event for event in events) == 2
    assert any(b"graph_keras_model" in event for event in events)
    assert any(b"kernel/histogram" in event for event in events)


def test_a_row_without_tokens_is_encoded_as_zeros():
    encode = keras.layers.CategoryEncoding(num_tokens=3, output_mode="multi_hot")
    assert np.asarray(encode(np.zeros([0], np.int32))).tolist() == [0, 0, 0]
    assert np.asarray(encode(np.zeros([2, 0], np.int32))).tolist() == [[0, 0, 0]] * 2


def test_boundaries_must_be_ascending():
    with pytest.raises(ValueError, match=r"bins must be ascending, got \[1.0, 0.0\]"):
        keras.layers.Discretization(bin_boundaries=[1.0, 0.0])(np.array([0.5], np.float32))


def test_layers_without_a_vocabulary_are_refused():
    for layer in (keras.layers.TextVectorization(), keras.layers.StringLookup()):
        with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
            layer(tf.constant(["a", "b"]))
