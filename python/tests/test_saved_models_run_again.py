"""What `tf.saved_model.save` has written runs again without its Python code, with the same bits, or is refused when it is saved.

The expected answers are those of TensorFlow 2.21. The format is this package's own.
"""

import gc
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from checks import fails

import taut as tf

X = np.random.RandomState(0).randn(2, 3).astype(np.float32)
Y = np.random.RandomState(1).randn(5, 3).astype(np.float32)
ROWS = tf.TensorSpec([None, 3])


@pytest.fixture
def again(tmp_path):
    """Saves an object and loads it."""
    count = 0

    def work(thing, **options):
        nonlocal count
        count += 1
        folder = tmp_path / f"model_{count}"
        tf.saved_model.save(thing, folder, **options)
        return tf.saved_model.load(folder)

    return work


def model(body, spec=ROWS, value=None):
    """A module with a variable `v` and a function of it and a tensor."""
    made = tf.Module()
    made.v = tf.Variable(np.eye(3, dtype=np.float32) * 2 if value is None else value, name="v")
    made.f = tf.function(lambda x: body(made.v, x), input_signature=[spec])
    return made


def same(one, other):
    """Whether two results have the same structure, types and bits."""
    # The classes of named tuples are made anew, as in TensorFlow.
    tf.nest.assert_same_structure(one, other, check_types=False)
    for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other)):
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


class Layered(tf.Module):
    """A model as in TensorFlow's guides: layers that create variables in their first call, and several signatures."""

    class Dense(tf.Module):
        def __init__(self, units, name=None):
            super().__init__(name)
            self.units, self.is_built = units, False

        @tf.function
        def __call__(self, x):
            if not self.is_built:
                self.w = tf.Variable(tf.random.normal([x.shape[-1], self.units]), name="w")
                self.b = tf.Variable(tf.zeros([self.units]), name="b", trainable=False)
                self.is_built = True
            return tf.nn.relu(x @ self.w + self.b)

    def __init__(self):
        super().__init__("layered")
        self.layers = [self.Dense(4, "first"), self.Dense(2, "second")]
        self.options = {"step": tf.Variable(1), "count": 3}
        self.number, self.constant, self.text = 5, tf.constant([1.0]), "x"

    @tf.function
    def __call__(self, x, training=False, *, scale=1.0):
        for layer in self.layers:
            x = layer(x)
        return (x * 2.0 if training else x) * scale

    @tf.function(input_signature=[ROWS])
    def predict(self, x):
        return {"y": self(x), "x": x}

    @tf.function
    def never_called(self, x):
        return x

    def plain(self, x):
        return x


def test_models_of_modules_have_their_variables_functions_and_signatures(again):
    saved = Layered()
    plain, training, scaled = saved(X), saved(X, training=True), saved(X, scale=3.0)
    loaded = again(saved)
    same(loaded(X), plain)
    same(loaded(X, True), training)
    same(loaded(x=X, training=True), training)
    same(loaded(X, scale=3.0), scaled)
    same(loaded.layers[0](X), saved.layers[0](X))
    same(loaded.predict(Y), saved.predict(Y))
    assert loaded.layers[0].w.name == saved.layers[0].w.name
    assert (loaded.layers[0].w.trainable, loaded.layers[0].b.trainable) == (True, False)
    assert int(loaded.options["step"]) == 1 and loaded.options["count"] == 3
    # TensorFlow drops these, too.
    for name in ("number", "constant", "text", "plain", "variables", "name"):
        assert not hasattr(loaded, name)
    assert list(loaded.signatures) == ["serving_default"]
    assert sorted(loaded.signatures["serving_default"](x=Y)) == ["x", "y"]


def test_other_arguments_find_no_function(again):
    saved = Layered()
    saved(X)
    loaded = again(saved)
    for work in (
        lambda: loaded(X, scale=2.0),
        lambda: loaded(Y),
        lambda: loaded(X.astype(np.float64)),
        lambda: loaded(tf.ones([2, 3], tf.int32)),
        lambda: loaded(X, None),
    ):
        # TensorFlow: ValueError: Could not find matching concrete function to call loaded from the SavedModel.
        fails(ValueError, "Could not find matching concrete function to call loaded from the SavedModel", work)
    # TensorFlow: ValueError: Found zero restored functions for caller function.
    fails(ValueError, "found zero restored functions", lambda: loaded.never_called(X))
    same(loaded(X.tolist()), saved(X))


def loops(v, x):
    for i in tf.range(3):
        if tf.reduce_sum(x) > 1:
            x = x + tf.cast(i, tf.float32)
        else:
            x = x - v[0]
    while tf.reduce_sum(x) < 100.0:
        x = tf.abs(x) * 2 + 1
    return x


def assignments(v, x):
    v.assign_add(tf.ones([3, 3]))
    v.assign(v * 2)
    return x @ v


def trained(v, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ v) ** 2)
    v.assign_sub(0.1 * tape.gradient(loss, v))
    return loss


def second_derivative(v, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum((x @ v) ** 3)
        slope = inner.gradient(y, x)
    return outer.gradient(slope, x)


def sparse_update(v, x):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(v, [0, 2]) * 2)
    v.scatter_sub(tape.gradient(y, v))
    return v.read_value()


def structures(v, x):
    return {"a": [x, (x + 1, None)], "b": tf.math.top_k(x, 2), "c": tf.nn.moments(x, [0])}


def types(v, x):
    return (
        tf.cast(x, tf.bfloat16) + tf.constant(1.5, tf.bfloat16),
        tf.cast(x, tf.int8) + np.int8(3),
        tf.cast(x, tf.complex128) * tf.constant(1 + 2j, tf.complex128),
        x * float("nan"),
        x * np.float32(2.5) + np.arange(3, dtype=np.float32),
        tf.constant([True, False]),
        tf.zeros([0, 2]),
        3,
        2.5,
    )


def array(v, x):
    parts = tf.TensorArray(tf.float32, size=4)
    for i in tf.range(4):
        parts = parts.write(i, x[0] * tf.cast(i, tf.float32))
    return parts.stack()


BODIES = {
    "loops": loops,
    "assignments": assignments,
    "training": trained,
    "second derivative": second_derivative,
    "sparse update": sparse_update,
    "structures": structures,
    "types": types,
    "tensor array": array,
    "sizes": lambda v, x: tf.reshape(x, [tf.shape(x)[0] * 3]) + tf.zeros([tf.shape(x)[0] * 3]),
    "slices": lambda v, x: (x[:, :2], x[..., 0], x[::-1], x[1:, tf.newaxis]),
    "map_fn": lambda v, x: tf.map_fn(lambda row: tf.linalg.matvec(v, row), x),
    "vectorized_map": lambda v, x: tf.vectorized_map(lambda row: tf.reduce_sum(row) * v, x),
    "while_loop": lambda v, x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + v[0]), [0, x]),
    "cond": lambda v, x: tf.cond(tf.reduce_sum(x) > 0, lambda: x @ v, lambda: x * 2),
    "case": lambda v, x: tf.case([(tf.reduce_sum(x) > 100.0, lambda: x)], default=lambda: x @ v),
    "switch_case": lambda v, x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x @ v]),
    "scan": lambda v, x: tf.scan(lambda a, row: a + row, x),
    "einsum": lambda v, x: tf.einsum("ij,jk->ik", x, v),
    "keyword arguments": lambda v, x: tf.reshape(tensor=x, shape=[-1]) + tf.squeeze(input=tf.ones([1])),
    "activations": lambda v, x: (tf.nn.softmax(x), tf.keras.activations.gelu(x)),
}


@pytest.mark.parametrize("name", BODIES)
def test_loaded_functions_give_the_same_bits_and_have_the_same_plan(name, again):
    saved = model(BODIES[name])
    loaded = again(saved)
    third = again(loaded)
    for value in (X, Y):
        assert loaded.f.plan(value).peak_bytes == saved.f.plan(value).peak_bytes
        for other in (loaded, third):
            saved.v.assign(np.eye(3) * 2)
            other.v.assign(np.eye(3) * 2)
            same(other.f(value), saved.f(value))
            same(other.v, saved.v)


def test_gradients_reach_loaded_variables(again):
    saved = model(loops)
    loaded = again(saved)

    def slopes(one):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(one.f(x) ** 2)
        return tape.gradient(y, [one.v, x])

    same(slopes(loaded), slopes(saved))
    peaks = [[plan.peak_bytes for plan in one.f.plan_gradient(X)] for one in (saved, loaded)]
    assert peaks[0] == peaks[1]


def test_loaded_models_can_be_trained(again):
    loaded = again(model(lambda v, x: x @ v))
    optimizer = tf.optimizers.SGD(0.1)
    losses = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((loaded.f(X) - 1.0) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, loaded.v), loaded.v)])
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_random_numbers_are_drawn_anew(again):
    saved = model(lambda v, x: x + tf.random.uniform([3]))
    loaded = again(saved)
    assert not np.array_equal(loaded.f(X), loaded.f(X))
    tf.random.set_seed(3)
    wanted = saved.f(X)
    tf.random.set_seed(3)
    same(loaded.f(X), wanted)


def test_generators_continue_where_they_were_saved(again):
    saved = tf.Module()
    saved.generator = tf.random.Generator.from_seed(5)
    saved.draw = tf.function(lambda: saved.generator.normal([3]), input_signature=[])
    saved.draw()
    loaded = again(saved)
    same([loaded.draw(), loaded.generator.normal([2])], [saved.draw(), saved.generator.normal([2])])


def test_a_function_is_saved_with_what_its_code_reads_when_it_is_saved(again):
    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.calls = 2.0, 0

        @tf.function
        def f(self, x):
            self.calls += 1
            return x * self.scale

    saved = Scaled()
    saved.f(tf.constant(1.0))
    saved.scale = 5.0
    # TensorFlow traces it once more, too: 5.0, and two calls of the code.
    assert float(again(saved).f(tf.constant(1.0))) == 5.0
    assert saved.calls == 2


def test_functions_that_create_variables_are_saved_before_their_first_call(again):
    class Lazy(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function(input_signature=[ROWS])
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([3, 2]))
            return x @ self.w

    saved = Lazy()
    loaded = again(saved)
    assert loaded.w.shape == [3, 2]
    same(loaded(X), saved(X))


def test_signatures_take_and_return_names(again):
    saved = model(lambda v, x: (x, x * 2))
    saved.g = tf.function(lambda data, k=2.0: {"y": data * k})
    saved.g(tf.constant(X))
    one = again(saved, signatures=saved.f).signatures
    assert list(one) == [tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY] == ["serving_default"]
    same(one["serving_default"](x=Y), {"output_0": tf.constant(Y), "output_1": tf.constant(Y) * 2})
    same(one["serving_default"](tf.constant(Y)), {"output_0": tf.constant(Y), "output_1": tf.constant(Y) * 2})
    assert sorted(one["serving_default"].structured_outputs) == ["output_0", "output_1"]
    named = {"a": saved.f, "b": saved.g.get_concrete_function(tf.TensorSpec([2, 3]), k=4.0)}
    loaded = again(saved, signatures=named)
    same(loaded.signatures["b"](data=X), {"y": tf.constant(X) * 4.0})
    same(again(loaded, signatures=loaded.signatures).signatures["b"](data=X), {"y": tf.constant(X) * 4.0})
    with pytest.raises(TypeError):
        one["serving_default"](other=Y)
    with pytest.raises(TypeError):
        one["serving_default"]()
    # TensorFlow: ValueError: Only `tf.functions` with an input signature or concrete functions can be used as a signature.
    only = "only `tf.functions` with an input signature or concrete functions can be used as a signature"
    fails(ValueError, only, lambda: again(saved, signatures=saved.g))
    fails(ValueError, only, lambda: again(saved, signatures=lambda x: x))
    fails(ValueError, only, lambda: again(saved, signatures={"a": 3}))


def test_concrete_functions_with_open_dimensions_are_saved(again):
    saved = tf.Module()
    saved.f = tf.function(lambda x: x * 2)
    saved.concrete = saved.f.get_concrete_function(tf.TensorSpec([None, 3]))
    saved.relaxed = tf.function(lambda x: x + 1, reduce_retracing=True)
    for size in (2, 3, 4):
        saved.relaxed(tf.ones(size))
    loaded = again(saved)
    same([loaded.f(Y), loaded.concrete(Y)], [tf.constant(Y) * 2] * 2)
    same(loaded.relaxed(tf.ones(9)), tf.ones(9) + 1)


def test_functions_that_call_others_are_saved_whole(again):
    class Outer(tf.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        @tf.function(input_signature=[ROWS])
        def g(self, x):
            y = self.inner.f(x)
            return y + 1.0 if tf.reduce_sum(y) > 0 else y

    first = Outer(model(loops))
    second = Outer(again(first.inner))
    for saved in (first, second):
        loaded = again(saved)
        same([loaded.g(X), loaded.g(Y), loaded.inner.f(X)], [first.g(X), first.g(Y), first.inner.f(X)])


def test_attributes_that_are_one_object_stay_one(again):
    saved = model(lambda v, x: x @ v)
    saved.also, saved.pair, saved.part = saved.v, (saved.v, [saved.f]), tf.Module()
    saved.part.v = saved.v
    loaded = again(saved)
    assert loaded.also is loaded.v is loaded.pair[0] is loaded.part.v and loaded.pair[1][0] is loaded.f
    loaded.v.assign(tf.zeros([3, 3]))
    assert not loaded.f(X).numpy().any()


def test_another_process_loads_it(tmp_path):
    saved = model(loops)
    tf.saved_model.save(saved, tmp_path / "model")
    np.save(tmp_path / "x.npy", Y)
    program = "import sys, numpy, taut; numpy.save(sys.argv[3], taut.saved_model.load(sys.argv[1]).f(numpy.load(sys.argv[2])))"
    files = [str(tmp_path / name) for name in ("model", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", program, *files], check=True, env={**os.environ})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), saved.f(Y))


def test_checkpoints_are_saved_and_restore_loaded_models(again, tmp_path):
    saved = tf.train.Checkpoint(v=tf.Variable(2.0))
    saved.f = tf.function(lambda x: saved.v * x, input_signature=[tf.TensorSpec([])])
    loaded = again(saved)
    path = tf.train.Checkpoint(model=loaded).save(tmp_path / "state")
    assert sorted(name for name, _ in tf.train.list_variables(path)) == ["model/v", "save_counter"]
    loaded.v.assign(7.0)
    tf.train.Checkpoint(model=loaded).restore(path).assert_consumed()
    assert float(loaded.f(3.0)) == 6.0


OUTSIDE = tf.Variable(1.0)
TEXT = tf.constant(["a", "b"])
STATE = tf.lookup.experimental.MutableHashTable(tf.float32, tf.float32, -1.0)


@tf.custom_gradient
def custom(x):
    return x * x, lambda upstream: upstream * 3 * x


def dropped_layer(v, x):
    made = tf.keras.layers.Activation("relu", name="own")(x)
    gc.collect()
    return made


REFUSED = {
    "untracked variable": (AssertionError, "untracked", lambda v, x: x * OUTSIDE),
    "custom gradient": (ValueError, "cannot be recorded", lambda v, x: custom(x)),
    "Python function": (ValueError, "op by op", lambda v, x: tf.numpy_function(lambda a: a, [x], tf.float32)),
    "mutable table": (ValueError, "op by op", lambda v, x: STATE.lookup(x)),
    "branch on a size": (
        ValueError,
        "depends on the size of an open dimension",
        lambda v, x: x * 2 if tf.shape(x)[0] == 2 else x * 3,
    ),
    "length in Python": (ValueError, "depends on the size of an open dimension", lambda v, x: x * float(len(x))),
    "Keras layer": (
        ValueError,
        "in the layer 'own' of class Lambda",
        lambda v, x: tf.keras.layers.Lambda(custom, name="own")(x),
    ),
    "constant of strings": (ValueError, "strings", lambda v, x: (x, TEXT)),
    "dataset": (ValueError, "cannot be recorded", lambda v, x: next(iter(tf.data.Dataset.range(3)))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_cannot_be_saved_are_named(name, tmp_path):
    kind, text, body = REFUSED[name]
    saved = model(body)
    with pytest.raises(kind, match=text) as caught:
        tf.saved_model.save(saved, tmp_path / "model")
    assert "(obj.f) cannot be saved" in str(caught.value) and "test_saved_models_run_again.py:" in str(caught.value)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("argument", [["a"], OUTSIDE, object(), tf.ragged.constant([[1], [2, 3]])])
def test_functions_of_other_arguments_are_named(argument, again):
    saved = tf.Module()
    saved.f = tf.function(lambda x: None if isinstance(x, object) else x)
    saved.f(tf.constant(argument) if isinstance(argument, list) else argument)
    fails(ValueError, "(obj.f) cannot be saved", lambda: again(saved))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), -1),
        lambda: tf.data.Dataset.range(3),
        lambda: tf.Variable([1.0], shape=[None]),
        lambda: [tf.Variable(1.0), object()],
    ],
)
def test_attributes_that_cannot_be_saved_are_named(make, again):
    saved = tf.Module()
    saved.thing = make()
    fails(ValueError, "obj.thing", lambda: again(saved))


def test_only_modules_are_saved(again):
    # TensorFlow: ValueError: Expected an object of type `Trackable`, such as `tf.Module`.
    for thing in (3, [tf.Variable(1.0)], {"a": tf.Variable(1.0)}):
        fails(ValueError, "obj must be a tf.Module", lambda thing=thing: again(thing))
    # TensorFlow: AssertionError: `tf.saved_model.save` is not supported inside a traced @tf.function.
    fails(AssertionError, "inside of a traced function", lambda: tf.function(lambda: again(tf.Module()))())


def test_a_traced_call_that_failed_is_not_saved(again):
    saved = tf.Module()
    saved.f = tf.function(lambda x: x @ x)
    saved.f(tf.ones([2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        saved.f(tf.ones([2, 3]))
    assert len(again(saved).f.concrete_functions) == 1


def test_a_folder_has_the_old_or_the_new_model(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    saved = model(lambda v, x: x @ v)
    (folder / "other").mkdir(parents=True)
    tf.saved_model.save(saved, folder)
    assert len(os.listdir(folder)) == 3 and tf.saved_model.contains_saved_model(folder)
    before = sorted(os.listdir(folder))
    saved.v.assign(tf.zeros([3, 3]))
    with monkeypatch.context() as patch:

        def fail(*_):
            raise OSError("no space left")

        patch.setattr(tf._native, "write_text", fail)
        with pytest.raises(OSError, match="no space left"):
            tf.saved_model.save(saved, folder)
    assert sorted(os.listdir(folder)) == before
    assert tf.saved_model.load(folder).f(X).numpy().any()
    tf.saved_model.save(saved, folder)
    assert len(os.listdir(folder)) == 3 and not tf.saved_model.load(folder).f(X).numpy().any()


def test_what_is_no_saved_model_is_refused(tmp_path):
    # TensorFlow: OSError: SavedModel file does not exist at: ...
    fails(OSError, "SavedModel file does not exist at", lambda: tf.saved_model.load(tmp_path / "nothing"))
    assert not tf.saved_model.contains_saved_model(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    assert tf.saved_model.contains_saved_model(tmp_path)
    fails(ValueError, "SavedModel of TensorFlow", lambda: tf.saved_model.load(tmp_path))
    folder = tmp_path / "own"
    tf.saved_model.save(model(lambda v, x: x), folder)
    own = json.loads((folder / "saved_model.json").read_text())
    fails(ValueError, "tags must be ['serve']", lambda: tf.saved_model.load(folder, tags="train"))
    assert tf.saved_model.load(folder, tags=[tf.saved_model.SERVING]).v.shape == [3, 3]
    for changed in ("{", "[]", {**own, "version": 2}, {**own, "objects": own["objects"][:1]}):
        (folder / "saved_model.json").write_text(changed if isinstance(changed, str) else json.dumps(changed))
        fails(ValueError, "saved_model.json", lambda: tf.saved_model.load(folder))
    (folder / "saved_model.json").write_text(json.dumps(own))
    os.remove(folder / own["tensors"])
    fails(OSError, "a part of the saved model is missing", lambda: tf.saved_model.load(folder))


def changed_call(folder, **changes):
    """Changes the first call of a saved model."""
    path = folder / "saved_model.json"
    document = json.loads(path.read_text())
    document["calls"][0][0].update(changes)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "callee",
    [
        {"function": ["os", "system"]},
        {"function": ["taut.recording", "np.save"]},
        {"function": ["taut.saved_model._load", "os.remove"]},
        {"function": ["taut.train", "make_folder"]},
        {"function": ["keras.src.activations", "get"]},
        {"native": "write_text"},
        {"native": "set_allocator"},
        {"native": "__loader__"},
        {"op": "__loader__"},
        {"name": ["taut.io", "write_file"]},
        {"name": ["taut.io", "TFRecordWriter"]},
        {"name": ["os", "system"]},
        {"type": ["taut._native", "RecordWriter"]},
        {"type": ["taut.train", "CheckpointManager"]},
        {"type": ["taut._fingerprints", "Path"]},
        {"type": ["numpy", "void"]},
        {"type": ["builtins", "bytes"]},
        {"method": ["taut._native", "RecordWriter", "__new__"]},
        {"method": ["taut._native", "Tensor", "__getattribute__"]},
        {"enum": ["taut.variable", "Variable", "numpy"]},
    ],
    ids=str,
)
def test_files_call_what_computes_tensors_and_nothing_else(callee, tmp_path):
    tf.saved_model.save(model(lambda v, x: tf.nn.relu(x)), tmp_path)
    changed_call(tmp_path, call=callee, args=[str(tmp_path / "new"), "text"])
    loaded = tf.saved_model.load(tmp_path)
    with pytest.raises(ValueError, match="a file may name|it uses the class|it calls|there is no op"):
        loaded.f(X)
    assert not (tmp_path / "new").exists()


def test_files_print_to_no_file(tmp_path):
    def printed(stream):
        def body(v, x):
            tf.print("text", output_stream=stream)
            return x

        return model(body)

    target = tmp_path / "out"
    stream = f"file://{target}"
    fails(ValueError, "prints to a file", lambda: tf.saved_model.save(printed(stream), tmp_path / "model"))
    tf.saved_model.save(printed(None), tmp_path / "model")
    changed_call(tmp_path / "model", kwargs=[["output_stream", stream]])
    with pytest.raises(ValueError, match="prints to a file"):
        tf.saved_model.load(tmp_path / "model").f(X)
    assert not target.exists()


def test_damaged_files_are_an_error(tmp_path):
    tf.saved_model.save(model(lambda v, x: tf.nn.relu(x)), tmp_path)
    path = tmp_path / "saved_model.json"
    document = json.loads(path.read_text())
    (function,) = (one for one in document["objects"] if one["kind"] == "function")
    numbers = {"range": [0, 10**12, 1]}
    signature = {**function["signatures"][0], "arguments": {"tuple": [numbers, {"dict": []}]}}
    damaged = [
        {**document, "objects": [{**function, "signatures": [signature]}]},
        {**document, "objects": [{**function, "input_signature": numbers}]},
        {**document, "tensors": 3},
        {**document, "variables": [{}]},
        {**document, "objects": [{"kind": "tuple", "parts": [[0, "object", 0]]}]},
        {**document, "objects": [{"kind": "list", "parts": [[0, "value", {"result": 1}]]}]},
        {**document, "objects": [{"kind": "list", "parts": [[0, "value", {"float": "x"}]]}]},
        {**document, "objects": [{"kind": "list", "parts": [[0, "value", {}]]}]},
        {**document, "objects": [{"kind": "list", "parts": [[0, "value", {"range": [0, 1, 0]}]]}]},
        {**document, "signatures": 3},
    ]
    for text in ["[" * 100_000, '{"format": "taut.saved_model", "version": 1}', *map(json.dumps, damaged)]:
        path.write_text(text)
        fails(ValueError, "saved_model.json is damaged", lambda: tf.saved_model.load(tmp_path))
    # What was damaged is replaced.
    path.write_text(json.dumps(damaged[0]))
    tf.saved_model.save(model(lambda v, x: x), tmp_path)
    assert tf.saved_model.load(tmp_path).v.shape == [3, 3]


def test_constants_that_a_call_returns_are_those_of_other_calls(again):
    constant = tf.constant([1.0, 2.0, 3.0])
    saved = model(lambda v, x: tf.convert_to_tensor(constant) * x)
    saved.other = tf.function(lambda x: constant * x, input_signature=[ROWS])
    branch = lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.convert_to_tensor(constant) * x, lambda: x)  # noqa: E731
    saved.branch = tf.function(lambda x: branch(x) + constant, input_signature=[ROWS])
    loaded = again(saved)
    for name in ("f", "other", "branch"):
        same(getattr(loaded, name)(X), getattr(saved, name)(X))


def test_options_take_effect_or_are_refused(again):
    options = tf.saved_model.SaveOptions(save_debug_info=True, experimental_custom_gradients=False)
    again(model(lambda v, x: x), options=options)
    fails(ValueError, "function_aliases", lambda: tf.saved_model.SaveOptions(function_aliases={"a": None}))
    fails(
        ValueError,
        "experimental_skip_checkpoint",
        lambda: tf.saved_model.LoadOptions(experimental_skip_checkpoint=True),
    )
    fails(TypeError, "SaveOptions", lambda: again(tf.Module(), options=3))


def test_saving_and_loading_keeps_no_memory(tmp_path):
    saved = model(lambda v, x: x @ v + np.ones([3], np.float32))
    saved.f(X)
    gc.collect()
    before = tf.memory.live_bytes()
    tf.saved_model.save(saved, tmp_path)
    gc.collect()
    assert tf.memory.live_bytes() == before
    loaded = tf.saved_model.load(tmp_path)
    loaded.f(X)
    del loaded
    gc.collect()
    assert tf.memory.live_bytes() == before


# Whether TensorFlow 2.21 serves the only function of an object, by what the function returns.
SERVED = {
    "nothing": (lambda x: None, False),
    "an empty list": (lambda x: [], False),
    "a nested dict": (lambda x: {"a": {"b": x}}, False),
    "a nested list": (lambda x: (x, [x]), False),
    "a tensor": (lambda x: x, True),
    "a list": (lambda x: [x, x], True),
    "a dict": (lambda x: {"a": x}, True),
    "a number": (lambda x: 3, True),
}


@pytest.mark.parametrize("function, is_served", SERVED.values(), ids=SERVED)
def test_the_only_function_that_returns_tensors_is_served(function, is_served, tmp_path):
    module = tf.Module()
    module.function = tf.function(function, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, str(tmp_path / "model"))
    assert list(tf.saved_model.load(str(tmp_path / "model")).signatures) == (["serving_default"] if is_served else [])


def test_functions_of_unknown_ranks_are_saved_without_a_call(again):
    # As in TensorFlow's guide to saved models.
    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def __call__(self, x):
            return {"scaled": x * self.v}

    loaded = again(Scaled())
    for x in (3.0, [1.0, 2.0], [[1.0], [2.0]]):
        same(loaded(x)["scaled"], tf.constant(x) * 2)
    outputs = loaded.signatures["serving_default"].structured_outputs
    assert list(outputs) == ["scaled"] and outputs["scaled"].shape.rank is None
    saved = model(lambda v, x: tf.reduce_sum(x, 1), tf.TensorSpec(None))
    loaded = again(saved)
    for x in (tf.ones([2, 3]), tf.ones([2, 3, 4])):
        same(loaded.f(x), saved.f(x))
    # Code that depends on the rank serves that for which it was recorded.
    loaded = again(model(lambda v, x: x * x.ndim, tf.TensorSpec(None)))
    same(loaded.f(tf.ones([3])), tf.ones([3]))
    fails(ValueError, "cannot take these arguments", lambda: loaded.f(tf.ones([3, 3])))


def test_empty_lists_and_dicts_are_attributes(again):
    saved = model(lambda v, x: x)
    saved.empty, saved.none = [], {}
    loaded = again(saved)
    assert loaded.empty == [] and loaded.none == {}
