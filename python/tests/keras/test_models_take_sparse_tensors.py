"""`fit`, `evaluate` and `predict` of sparse tensors. The numbers are those of Keras on TensorFlow 2.21."""

import keras
import numpy as np
import pytest

import taut as tf

DENSE = np.array([[1, 0, 2], [0, 0, 3], [4, 0, 0], [0, 5, 0]], "float32")
TARGETS = np.array([[1], [2], [3], [4]], "float32")


def sparse(array=DENSE):
    return tf.sparse.from_dense(array)


def model(is_sparse=False):
    made = keras.Sequential(
        [keras.layers.Input((3,), sparse=is_sparse), keras.layers.Dense(1, kernel_initializer="ones")]
    )
    made.compile("sgd", "mse")
    return made


@pytest.mark.parametrize("is_sparse", [False, True])
def test_training_is_that_on_dense_arrays(is_sparse):
    np.testing.assert_array_equal(model(is_sparse)(sparse()).numpy().ravel(), [3, 3, 4, 5])
    history = model(is_sparse).fit(sparse(), TARGETS, batch_size=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], [1.6832499504089355], rtol=1e-6)
    np.testing.assert_array_equal(model(is_sparse).predict(sparse(), verbose=0).ravel(), [3, 3, 4, 5])
    assert model(is_sparse).evaluate(sparse(), TARGETS, verbose=0) == 1.75
    assert model(is_sparse).train_on_batch(sparse(), TARGETS) == 1.75
    assert model(is_sparse).test_on_batch(sparse(), TARGETS) == 1.75
    np.testing.assert_array_equal(model(is_sparse).predict_on_batch(sparse()).ravel(), [3, 3, 4, 5])
    dataset = tf.data.Dataset.from_tensor_slices((sparse(), TARGETS)).batch(2)
    np.testing.assert_allclose(
        model(is_sparse).fit(dataset, verbose=0).history["loss"], [1.6832499504089355], rtol=1e-6
    )


@pytest.mark.parametrize("shape", [[7, 3], [5, 2, 3]])
def test_batches_have_their_rows(shape):
    numbers = np.random.default_rng(1)
    array = (numbers.normal(size=shape) * (numbers.uniform(size=shape) < 0.4)).astype("float64")
    array[2] = 0.0
    identity = keras.Sequential([keras.layers.Input(shape[1:]), keras.layers.Activation("linear")])
    # The values of a sparse tensor may come in any order.
    order = numbers.permutation(np.count_nonzero(array))
    given = sparse(array)
    given = tf.SparseTensor(given.indices.numpy()[order], given.values.numpy()[order], given.dense_shape)
    found = identity.predict(given, batch_size=3, verbose=0)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, array.astype("float32"))


def test_shuffling_keeps_rows_and_targets_together():
    seen = []

    class Note(keras.Model):
        def train_step(self, data):
            x, y = data
            seen.append((tf.sparse.to_dense(x).numpy(), y.numpy()))
            return {}

        def call(self, x):
            return x

    made = Note()
    made.compile("sgd", "mse", run_eagerly=True)
    keras.utils.set_random_seed(3)
    array = np.diag(np.arange(1.0, 9.0)).astype("float32")
    made.fit(sparse(array), np.arange(1.0, 9.0, dtype="float32"), batch_size=3, epochs=2, verbose=0)
    rows = [(row.sum(), target) for x, y in seen for row, target in zip(x, y)]
    assert all(row == target for row, target in rows)
    assert len(rows) == 16 and sorted(rows[:8]) == sorted(rows[8:]) and rows[:8] != rows[8:]


def test_weights_and_validation():
    array = np.repeat(DENSE, 3, axis=0)
    targets = np.repeat(TARGETS, 3, axis=0)
    weights = np.linspace(0, 1, 12, dtype="float32")
    options = {"batch_size": 5, "shuffle": False, "epochs": 2, "verbose": 0, "sample_weight": weights}
    one = model().fit(sparse(array), targets, validation_split=0.25, **options).history
    other = model().fit(array, targets, validation_split=0.25, **options).history
    assert one.keys() == other.keys() == {"loss", "val_loss"}
    for name, values in one.items():
        np.testing.assert_allclose(values, other[name], rtol=1e-6)
    with pytest.raises(ValueError, match="rows must be equal"):
        model().fit(sparse(), TARGETS[:3], verbose=0)


def test_a_model_with_a_call_of_its_own_gets_sparse_tensors():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.w = self.add_weight(shape=(3, 1), initializer="ones")

        def call(self, x):
            return tf.sparse.sparse_dense_matmul(x, self.w)

    made = Own()
    made.compile(keras.optimizers.SGD(0.01), "mse")
    loss = made.fit(sparse(), TARGETS, batch_size=2, shuffle=False, verbose=0).history["loss"]
    dense = keras.Sequential([keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    dense.compile(keras.optimizers.SGD(0.01), "mse")
    np.testing.assert_allclose(loss, dense.fit(DENSE, TARGETS, batch_size=2, shuffle=False, verbose=0).history["loss"])


def test_ragged_tensors_and_ops_of_sparse_ones_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match="to_tensor"):
        model().fit(tf.ragged.constant([[1.0], [2.0, 3.0]]), TARGETS[:2], verbose=0)
    with pytest.raises(ValueError, match="to_dense"):
        keras.ops.matmul(sparse(), np.ones([3, 2], "float32"))


def test_a_model_with_sparse_inputs_is_saved(tmp_path):
    inputs = keras.Input((3,), sparse=True)
    made = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    made.save(tmp_path / "sparse.keras")
    again = keras.models.load_model(tmp_path / "sparse.keras")
    assert again.inputs[0].sparse
    np.testing.assert_array_equal(again(sparse()).numpy().ravel(), [3, 3, 4, 5])
    np.testing.assert_array_equal(again.predict(DENSE, verbose=0).ravel(), [3, 3, 4, 5])
