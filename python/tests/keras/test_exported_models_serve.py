"""Exported Keras models are loaded without their classes, and compute the same bits as the models for every batch size.

The names of endpoints, signatures and attributes are those of Keras 3.15 on TensorFlow 2.21. The files are this package's own.
"""

import gc
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers

import taut as tf
from taut import recording


def values(spec, size):
    """Random values for a TensorSpec, with this size in place of open ones."""
    shape = [size if dim is None else dim for dim in spec.shape]
    random = np.random.RandomState(size)
    return tf.constant(random.randint(0, 4, shape) if spec.dtype.is_integer else random.randn(*shape), spec.dtype)


def assert_same(one, other):
    """Two results have the same structure, types and bits."""
    tf.nest.assert_same_structure(one, other)
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other)):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def chain(*parts, shape=(8,), dtype="float32"):
    return keras.Sequential([layers.Input(shape, dtype=dtype), *parts])


def two_inputs(layer, *shapes):
    given = [layers.Input(shape) for shape in shapes]
    return keras.Model(given, layer(*given))


def named():
    a, b = layers.Input((3,), name="a"), layers.Input((5,), name="b")
    return keras.Model({"a": a, "b": b}, {"sum": layers.Dense(2)(a) + layers.Dense(2)(b), "b": layers.Dense(1)(b)})


class Encoder(keras.Model):
    """A transformer as users write it: sizes by `ops.shape`, dropout, a mask, a weight of its own."""

    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(10, 8, mask_zero=True)
        self.attend = layers.MultiHeadAttention(2, 4, dropout=0.5)
        self.drop, self.norm = layers.Dropout(0.5), layers.LayerNormalization()
        self.blocks = [layers.Dense(8, activation="gelu") for _ in range(2)]
        self.head = self.add_weight(shape=(8, 3), name="head")

    def call(self, tokens, training=None):
        places = keras.ops.arange(keras.ops.shape(tokens)[1])
        x = self.embed(tokens) + keras.ops.expand_dims(keras.ops.cast(places, "float32"), -1)
        x = self.norm(x + self.attend(x, x, training=training))
        for block in self.blocks:
            x = self.drop(block(x), training=training)
        batch, steps = keras.ops.shape(x)[:2]
        return tf.reshape(keras.ops.reshape(x, (batch * steps, 8)) @ self.head, [batch, steps, 3])


def encoder():
    made = Encoder()
    made(tf.ones([2, 6], tf.int32))
    return made


MODELS = {
    "dense": lambda: chain(layers.Dense(4, "relu"), layers.Dropout(0.5), layers.BatchNormalization(), layers.Dense(2)),
    "images": lambda: chain(
        layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.SeparableConv2D(3, 2),
        layers.Conv2DTranspose(2, 3, strides=2),
        layers.GlobalAveragePooling2D(),
        layers.Dense(2, "softmax"),
        shape=(8, 8, 3),
    ),
    "images of any size": lambda: chain(
        layers.Conv2D(2, 3, strides=2, padding="same"), layers.GlobalMaxPooling2D(), shape=(None, None, 3)
    ),
    "recurrent": lambda: chain(
        layers.Embedding(10, 4),
        layers.LSTM(5, return_sequences=True),
        layers.Bidirectional(layers.GRU(3)),
        layers.Dense(1),
        shape=(6,),
        dtype="int32",
    ),
    "masked": lambda: chain(
        layers.Embedding(10, 4, mask_zero=True),
        layers.LSTM(5, return_sequences=True, go_backwards=True),
        layers.SimpleRNN(3),
        shape=(6,),
        dtype="int32",
    ),
    "any number of steps": lambda: chain(layers.Masking(), layers.LSTM(3), shape=(None, 4)),
    "convolution over time": lambda: chain(layers.ConvLSTM2D(2, 3), layers.Flatten(), shape=(4, 6, 6, 1)),
    "numbers": lambda: chain(layers.Rescaling(2.0), layers.Normalization(mean=1.0, variance=4.0), layers.Dense(2)),
    "buckets": lambda: chain(layers.Discretization([0.0, 1.0]), layers.CategoryEncoding(3, "multi_hot"), shape=(4,)),
    "table of integers": lambda: chain(
        layers.IntegerLookup(vocabulary=[1, 2]), layers.Embedding(4, 2), shape=(4,), dtype="int64"
    ),
    "norms": lambda: chain(layers.LayerNormalization(), layers.GroupNormalization(2), layers.UnitNormalization()),
    "half precision": lambda: chain(layers.Dense(3, dtype="mixed_float16"), layers.Dense(2, dtype="mixed_bfloat16")),
    "shapes": lambda: chain(layers.Reshape((4, 2)), layers.Permute((2, 1)), layers.TimeDistributed(layers.Dense(3))),
    "lambda": lambda: chain(layers.Lambda(lambda x: x[:, ::-1] * keras.ops.ones_like(x))),
    "attention": lambda: two_inputs(layers.MultiHeadAttention(2, 3), (6, 4), (5, 4)),
    "additive attention": lambda: two_inputs(lambda a, b: layers.AdditiveAttention()([a, b]), (6, 4), (5, 4)),
    "several results": lambda: two_inputs(
        lambda a, b: [layers.Concatenate()([a, b]), layers.Dot(2)([a, b])], (6, 4), (6, 4)
    ),
    "dicts": named,
    "subclass": encoder,
}


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_computes_the_bits_of_the_model(name, tmp_path):
    model = MODELS[name]()
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    (spec,) = loaded.serve.input_signature
    assert all(one.shape[0] is None for one in tf.nest.flatten(spec))
    own = tf.function(lambda given: model(given, training=False))
    for size in (5, 1, 2, 3, 8):
        given = tf.nest.map_structure(lambda one, size=size: values(one, size), spec)
        assert_same(loaded.serve(given), own(given))
    # The plan is that of the model.
    sized = tf.nest.map_structure(
        lambda one: tf.TensorSpec([9 if dim is None else dim for dim in one.shape], one.dtype), spec
    )
    assert loaded.serve.plan(sized).peak_bytes == own.plan(sized).peak_bytes
    # Gradients of the loaded variables are those of the model's.
    assert [one.name for one in loaded.trainable_variables] == [f"{one.path}:0" for one in model.trainable_variables]
    gradients = []
    for function, variables in (
        (loaded.serve, loaded.trainable_variables),
        (own, [v.value for v in model.trainable_variables]),
    ):
        with tf.GradientTape() as tape:
            loss = tf.add_n(
                [tf.reduce_sum(tf.cast(part, tf.float32) ** 2) for part in tf.nest.flatten(function(given))]
            )
        gradients.append(tape.gradient(loss, variables))
    for one, other in zip(*gradients):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(tf.convert_to_tensor(one), tf.convert_to_tensor(other))


def test_names_and_attributes_are_those_of_keras(tmp_path, capsys):
    model = MODELS["dense"]()
    model.export(tmp_path / "model")
    printed = capsys.readouterr().out
    assert f"Saved artifact at '{tmp_path / 'model'}'. The following endpoints are available:" in printed
    assert "* Endpoint 'serve'\n  args_0" in printed and "Output Type:\n  TensorSpec(shape=(None, 2)" in printed
    model.export(tmp_path / "model", verbose=False, format="tf_saved_model")
    assert not capsys.readouterr().out
    loaded = tf.saved_model.load(tmp_path / "model")
    assert sorted(loaded.signatures) == ["serve", "serving_default"]
    counts = [len(getattr(loaded, name)) for name in ("variables", "trainable_variables", "non_trainable_variables")]
    assert counts == [9, 6, 3]
    x = np.ones([2, 8], np.float32)
    served = loaded.signatures["serving_default"](tf.constant(x))
    assert list(served) == ["output_0"]
    assert_same(served["output_0"], loaded.serve(x))
    named().export(tmp_path / "named", verbose=False)
    serve = tf.saved_model.load(tmp_path / "named").signatures["serving_default"]
    assert sorted(serve(a=tf.ones([1, 3]), b=tf.ones([1, 5]))) == ["b", "sum"]
    with pytest.raises(ValueError, match="must be float32"):
        loaded.serve(np.ones([2, 5], np.float32))


def test_weights_are_stored_once_and_models_are_trained_on(tmp_path):
    model = chain(layers.Dense(100), layers.Dense(100), shape=(100,))
    model.export(tmp_path / "model", verbose=False)
    (file,) = (tmp_path / "model").glob("*.safetensors")
    assert 4 * 20200 < file.stat().st_size < 4 * 20200 + 5000
    # Signatures share the calls of the endpoint.
    assert len(json.loads((tmp_path / "model" / "saved_model.json").read_text())["calls"]) == 1
    loaded = tf.saved_model.load(tmp_path / "model")
    x = tf.ones([4, 100])
    before = model(x)
    optimizer = tf.keras.optimizers.SGD(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.serve(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, loaded.trainable_variables), loaded.trainable_variables))
    assert float(tf.reduce_sum(loaded.serve(x) ** 2)) != float(loss)
    assert_same(model(x), before)
    # And saved again.
    tf.saved_model.save(loaded, tmp_path / "again")
    assert_same(tf.saved_model.load(tmp_path / "again").serve(x), loaded.serve(x))


def test_another_process_serves_a_model_without_its_class(tmp_path):
    model = encoder()
    model.export(tmp_path / "model", verbose=False)
    tokens = np.random.RandomState(0).randint(0, 10, [5, 6]).astype(np.int32)
    np.save(tmp_path / "x.npy", tokens)
    program = "import sys, numpy, taut; numpy.save(sys.argv[3], taut.saved_model.load(sys.argv[1]).serve(numpy.load(sys.argv[2])))"
    files = [str(tmp_path / name) for name in ("model", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", program, *files], check=True, env={**os.environ})
    own = tf.function(lambda x: model(x, training=False))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), own(tf.constant(tokens)))


def test_states_and_random_numbers_of_layers_advance(tmp_path):
    class Counted(layers.Layer):
        def __init__(self):
            super().__init__()
            self.counter = self.add_variable((), "zeros", "int32", trainable=False)
            self.seed = keras.random.SeedGenerator(1)

        def call(self, x):
            self.counter.assign_add(1)
            return x + keras.random.uniform(keras.ops.shape(x), seed=self.seed), keras.ops.array(self.counter.value)

    x = layers.Input((4,))
    keras.Model(x, Counted()(x)).export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    (first, one), (second, two) = loaded.serve(tf.ones([3, 4])), loaded.serve(tf.ones([3, 4]))
    assert (int(one), int(two)) == (1, 2) and not np.array_equal(first, second)
    assert loaded.serve(tf.ones([6, 4]))[0].shape == (6, 4)


# ExportArchive and TFSMLayer.


def test_an_archive_has_several_endpoints_and_collections(tmp_path):
    model = MODELS["dense"]()
    model.compile("adam", "mse")
    model.fit(np.ones([4, 8]), np.ones([4, 2]), verbose=0)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = [keras.InputSpec(shape=(None, 8), dtype="float32")]
    added = archive.add_endpoint("infer", lambda x: model(x, training=False), spec)
    archive.add_endpoint("train", lambda x: model(x, training=True), [tf.TensorSpec([None, 8])])
    archive.track_and_add_endpoint("call", model, spec)
    traced = tf.function(lambda x: model(x) * 2)
    traced(tf.ones([3, 8]))
    archive.add_endpoint("twice", traced)
    archive.add_variable_collection("optimizer", model.optimizer.variables)
    counts = [len(one) for one in (archive.variables, archive.trainable_variables, archive.non_trainable_variables)]
    assert counts == [18, 12, 6]
    archive.write_out(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    assert sorted(loaded.signatures) == ["call", "infer", "serving_default", "train", "twice"]
    x = tf.constant(np.random.RandomState(0).randn(3, 8), tf.float32)
    assert_same(loaded.infer(x), added(x))
    assert_same(loaded.signatures["serving_default"](x=x)["output_0"], added(x))
    assert_same(loaded.twice(x), traced(x))
    assert len(loaded.optimizer) == len(model.optimizer.variables) and int(loaded.optimizer[0]) == 1
    # In training mode, moving averages are updated: those that the other endpoints use.
    before = loaded.infer(x).numpy()
    loaded.train(x)
    assert not np.array_equal(loaded.infer(x), before)
    layer = layers.TFSMLayer(tmp_path / "model", call_endpoint="infer", call_training_endpoint="train")
    assert_same(layer(x), added(x))
    assert not np.array_equal(layer(x, training=True), layer(x))
    assert (len(layer.trainable_weights), layer.trainable_weights[0].shape) == (6, (8, 4))


def test_layers_with_several_arguments_are_endpoints(tmp_path):
    layer = layers.MultiHeadAttention(2, 2)
    a, b = (tf.random.normal([3, 2, 2]) for _ in range(2))
    expected = tf.function(lambda a, b: layer(a, b))(a, b)
    archive = keras.export.ExportArchive()
    archive.track(layer)
    archive.add_endpoint("call", layer.call, [tf.TensorSpec([None, 2, 2])] * 2)
    archive.write_out(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    assert_same(loaded.call(a, b), expected)
    assert_same(loaded.call(query=a, value=b), expected)


def test_a_layer_of_a_saved_model_is_trained_and_frozen(tmp_path):
    model = chain(layers.Dense(3))
    model.export(tmp_path / "model", verbose=False)
    layer = layers.TFSMLayer(tmp_path / "model")
    assert_same(layer(tf.ones([2, 8])), model(tf.ones([2, 8])))
    top = keras.Sequential([layers.Input((8,)), layer, layers.Dense(1)])
    top.compile(keras.optimizers.SGD(0.01), "mse")
    before = [one.numpy() for one in layer.weights]
    top.fit(np.ones([4, 8]), np.ones([4, 1]), verbose=0)
    assert all(not np.array_equal(one.numpy(), old) for one, old in zip(layer.weights, before))
    with pytest.raises(ValueError, match="The endpoint 'wrong'"):
        layers.TFSMLayer(tmp_path / "model", call_endpoint="wrong")


# tf.saved_model.save of objects with layers.


def test_saved_models_hold_models_layers_and_optimizers(tmp_path):
    class Trained(tf.Module):
        def __init__(self):
            super().__init__()
            self.model, self.optimizer = MODELS["dense"](), tf.keras.optimizers.Adam(0.1)
            self.mean = tf.keras.metrics.Mean()
            self.weight = tf.keras.Variable(2.0, name="weight")

        @tf.function(input_signature=[tf.TensorSpec([None, 8])])
        def __call__(self, x):
            return self.model(x) * self.weight

    saved = Trained()
    x = tf.constant(np.random.RandomState(0).randn(5, 8), tf.float32)
    tf.saved_model.save(saved, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    assert_same(loaded(x), saved(x))
    assert_same(loaded.signatures["serving_default"](x)["output_0"], saved(x))
    assert float(loaded.weight) == 2.0 and len(loaded.optimizer.variables) == 2


def test_a_saved_keras_model_serves_its_call(tmp_path):
    model = MODELS["dense"]()
    model.compile("adam", "mse")
    model.fit(np.ones([4, 8]), np.ones([4, 2]), verbose=0)
    tf.saved_model.save(model, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    serve = loaded.signatures["serving_default"]
    assert list(serve.structured_input_signature[1]) == ["inputs"] and not callable(loaded)
    assert_same(serve(inputs=tf.ones([3, 8]))["output_0"], tf.function(lambda x: model(x))(tf.ones([3, 8])))
    assert layers.TFSMLayer(tmp_path / "model", call_endpoint="serving_default")(tf.ones([3, 8]))["output_0"].shape == (
        3,
        2,
    )
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables)


def test_a_training_step_of_a_keras_optimizer_is_saved(tmp_path):
    class Trained(tf.Module):
        def __init__(self):
            super().__init__()
            self.model, self.optimizer = MODELS["dense"](), tf.keras.optimizers.Adam(0.1)
            self.optimizer.build(self.model.trainable_variables)

        @tf.function(input_signature=[tf.TensorSpec([None, 8]), tf.TensorSpec([None, 2])])
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            return loss

    saved = Trained()
    tf.saved_model.save(saved, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    for size in (4, 7, 4):
        x, y = tf.random.normal([size, 8]), tf.random.normal([size, 2])
        assert_same(loaded.step(x, y), saved.step(x, y))
    # The integer table of a layer is a constant of its calls.
    table = MODELS["table of integers"]()
    tf.saved_model.save(table, tmp_path / "table")
    keys = tf.constant([[1, 2, 3, 0]], tf.int64)
    serve = tf.saved_model.load(tmp_path / "table").signatures["serving_default"]
    assert_same(serve(keys)["output_0"], tf.function(lambda x: table(x))(keys))


# What cannot be saved is an error that names the layer, and nothing is written.


class Own(keras.Model):
    def __init__(self, body):
        super().__init__()
        self.inner, self.own = layers.Dense(4), layers.Lambda(body, name="own")

    def call(self, x):
        return self.own(self.inner(x))


@tf.custom_gradient
def custom(x):
    return x * x, lambda upstream: upstream * 3 * x


REFUSED = {
    "size in Python": (lambda x: x * float(x.shape[0]), "use keras.ops.shape"),
    "length": (lambda x: x * float(len(x)), "depends on the size of an open dimension"),
    "value of a size": (lambda x: x * float(tf.shape(x)[0]), "depends on the size of an open dimension"),
    "custom gradient": (custom, "cannot be recorded"),
    "Python function": (lambda x: tf.numpy_function(lambda a: a, [x], tf.TensorSpec([2, 4])), "cannot be recorded"),
    "shape of values": (lambda x: tf.boolean_mask(x, x[:, 0] > 0), "op by op"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_that_cannot_be_saved_is_named(name, tmp_path):
    body, text = REFUSED[name]
    model = Own(body)
    model(tf.ones([2, 4]))
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.__call__, [tf.TensorSpec([None, 4])])
    with pytest.raises(ValueError, match=text) as caught:
        archive.write_out(tmp_path / "model")
    assert "in the layer 'own' of class Lambda" in str(caught.value) and "help: " in str(caught.value)
    assert not (tmp_path / "model").exists() and not recording.is_saving()


def test_strings_and_other_formats_are_refused_by_name(tmp_path):
    words = chain(
        layers.StringLookup(vocabulary=["a", "b"], name="words"), layers.Embedding(3, 2), shape=(2,), dtype="string"
    )
    with pytest.raises(ValueError, match=r"'serve' takes strings.*'words'"):
        words.export(tmp_path / "model")
    model = chain(layers.Dense(1))
    for format in ("onnx", "openvino", "litert", "torch"):
        with pytest.raises(tf.errors.UnimplementedError, match=format):
            model.export(tmp_path / "model", format=format)
    with pytest.raises(ValueError, match="Unrecognized format=pickle"):
        model.export(tmp_path / "model", format="pickle")
    with pytest.raises(ValueError, match="only supported with the jax backend"):
        model.export(tmp_path / "model", is_static=True)
    with pytest.raises(ValueError, match="Arguments not recognized: .*'steps'"):
        model.export(tmp_path / "model", steps=3)
    assert not (tmp_path / "model").exists()


def test_archives_refuse_what_keras_refuses(tmp_path):
    archive = keras.export.ExportArchive()
    with pytest.raises(ValueError, match="It must be built"):
        archive.track(layers.Dense(2))
    with pytest.raises(ValueError, match="Invalid resource type"):
        archive.track("model")
    with pytest.raises(ValueError, match="No endpoints have been set"):
        archive.write_out(tmp_path / "model")
    model = chain(layers.Dense(1))
    with pytest.raises(ValueError, match="you must provide an `input_signature`"):
        archive.add_endpoint("call", model.__call__)
    with pytest.raises(ValueError, match="you must either provide a function"):
        archive.add_endpoint("call", tf.function(lambda x: model(x)))
    archive.add_endpoint("call", model.__call__, [tf.TensorSpec([None, 8])])
    for fn, spec in ((model.__call__, [tf.TensorSpec([None, 8])]), (tf.function(lambda x: x), None)):
        with pytest.raises(ValueError, match="already taken"):
            archive.add_endpoint("call", fn, spec)
    with pytest.raises(ValueError, match="attribute of the archive"):
        archive.add_endpoint("variables", model.__call__, [tf.TensorSpec([None, 8])])


# Recordings.


def test_keras_ops_leave_dimensions_open():
    traced = []

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def f(x):
        traced.append(x)
        batch = keras.ops.shape(x)[0]
        return keras.ops.scan(lambda c, row: (c + row, c), keras.ops.zeros((4,)), keras.ops.reshape(x, (batch, 4)))[1]

    for size in (2, 5, 7):
        assert f(tf.ones([size, 4])).numpy()[-1].tolist() == [size - 1.0] * 4
    assert len(traced) == 1


def test_layers_in_a_stateless_scope_use_its_values_for_every_size():
    model = chain(layers.Dense(2), layers.BatchNormalization())

    @tf.function(input_signature=[tf.TensorSpec([None, 8])], on_retrace="allow")
    def scaled(x):
        values = [(one, keras.ops.convert_to_tensor(one) * 2.0) for one in model.trainable_variables]
        with keras.StatelessScope(state_mapping=values):
            return model(x)

    for size in (2, 3, 5):
        x = tf.random.normal([size, 8])
        np.testing.assert_allclose(scaled(x), 4 * model(x), rtol=1e-5)


def test_bodies_of_loops_see_open_sizes_as_none():
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def f(x):
        def body(i, y):
            seen.append(y.shape.as_list())
            return i + 1, y * 2.0

        return tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]

    for size in (2, 5):
        assert f(tf.ones([size, 4])).shape == (size, 4)
    assert seen and all(shape == [None, 4] for shape in seen)


def test_an_export_keeps_no_model_alive(tmp_path):
    model = MODELS["recurrent"]()
    gc.collect()
    before = tf.memory.live_bytes()
    model.export(tmp_path / "model", verbose=False)
    gc.collect()
    assert tf.memory.live_bytes() == before
