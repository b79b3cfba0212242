"""Functions, tapes and loops take what TensorFlow's take. Values and counts are those of TensorFlow 2.21."""

import ast
import gc
import weakref

import numpy as np
import pytest

import taut as tf


def test_a_concrete_function_needs_its_tensors_only():
    f = tf.function(lambda x, n: x * n)
    bound = f.get_concrete_function(tf.TensorSpec([2]), 3.0)
    assert bound(tf.ones([2])).numpy().tolist() == [3, 3]
    assert bound(tf.ones([2]), 3.0).numpy().tolist() == [3, 3]
    assert bound is f.get_concrete_function(tf.TensorSpec([2]), 3.0)
    with pytest.raises(TypeError):
        bound()
    with pytest.raises(TypeError):
        bound(tf.ones([2]), 3.0, tf.ones([2]))


def test_a_concrete_function_takes_its_tensors_by_the_names_of_their_specs():
    f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None], name="given")])
    bound = f.get_concrete_function()
    for found in (bound(tf.ones([1])), bound(given=tf.ones([1])), bound(x=tf.ones([1]))):
        assert found.numpy().tolist() == [2]
    with pytest.raises(TypeError):
        bound(other=tf.ones([1]))

    g = tf.function(lambda d: d["a"] - d["b"])
    bound = g.get_concrete_function({"a": tf.TensorSpec([]), "b": tf.TensorSpec([], name="second")})
    one, two = tf.constant(1.0), tf.constant(2.0)
    assert bound({"a": one, "b": two}).numpy() == -1
    assert bound(one, two).numpy() == -1
    assert bound(one, second=two).numpy() == -1
    for args in ((one,), (one, two, two)):
        with pytest.raises(TypeError):
            bound(*args)


def test_a_concrete_function_with_open_sizes_is_traced_once():
    calls = []

    @tf.function
    def f(x, scale):
        calls.append(x.shape.as_list())
        return tf.reduce_sum(x, 1) * scale

    concrete = f.get_concrete_function(tf.TensorSpec([None, 3]), 2.0)
    assert calls == [[None, 3]] and f.experimental_get_tracing_count() == 1
    assert concrete.structured_outputs == tf.TensorSpec([None], tf.float32)
    for rows in (2, 5, 1):
        assert concrete(tf.ones([rows, 3])).numpy().tolist() == [6.0] * rows
    assert calls == [[None, 3]] and f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        concrete(tf.ones([2, 4]))


@pytest.mark.parametrize("size", [2, None])
def test_a_concrete_function_takes_the_bound_values_only(size):
    @tf.function
    def f(x, scale, a=None):
        return x * scale + (0.0 if a is None else 1.0)

    concrete = f.get_concrete_function(tf.TensorSpec([size]), 2.0, a="one")
    for made in (concrete(tf.ones([2])), concrete(tf.ones([2]), 2.0, "one"), concrete(x=tf.ones([2]), a="one")):
        assert made.numpy().tolist() == [3.0, 3.0]
    for arguments in ((3.0, "one"), (2.0, None), (tf.constant(2.0), "one")):
        with pytest.raises(TypeError, match="f: expected .*, which is part of the signature"):
            concrete(tf.ones([2]), *arguments)
    with pytest.raises(TypeError, match="f: expected 2.0"):
        concrete(scale=4.0, x=tf.ones([2]))


def test_a_trial_trace_that_fails_keeps_the_traces_of_the_function():
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def f(x):
        return tf.reshape(x, [-1]) + tf.ones([2])

    f(tf.ones([2]))
    assert f.trace_count == 1
    concrete = f.get_concrete_function()
    assert f.trace_count == 1
    assert concrete(tf.ones([2])).numpy().tolist() == [2.0, 2.0]


def test_numpy_scalars_are_tensors_in_arguments():
    @tf.function
    def f(x, factor):
        return x * factor

    x = tf.constant([1.0, 2.0])
    for kind in (np.float32, np.float16, np.int64, np.bool_):
        before = f.experimental_get_tracing_count()
        for value in (0, 1):
            assert f(x, kind(value)).numpy().tolist() == [value, 2 * value]
        assert f.experimental_get_tracing_count() == before + 1, kind

    @tf.function
    def total(n):
        result = tf.constant(0, tf.int64)
        for i in range(n):
            result += i
        return result

    assert [int(total(np.int64(n))) for n in (4, 5)] == [6, 10] and total.experimental_get_tracing_count() == 1
    # A number of Python stays one, and so does a class.
    assert f(x, np.float64(3.0)).dtype == tf.float32
    assert tf.function(lambda dtype: tf.zeros([2], dtype))(np.float32).dtype == tf.float32


def test_host_functions_are_decorators():
    @tf.py_function(Tout=tf.float32)
    def twice(x):
        return x * 2

    @tf.numpy_function(Tout=tf.TensorSpec([2], tf.float32))
    def thrice(x):
        return np.float32(3) * x

    x = tf.constant([1.0, 2.0])
    assert twice(x).numpy().tolist() == [2, 4]
    assert tf.function(thrice)(x).numpy().tolist() == [3, 6]
    assert twice.__name__ == "twice"


def test_output_gradients_have_the_structure_of_the_target():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = {"a": x * 2, "b": [x * 3]}
    assert float(tape.gradient(y, x, output_gradients={"a": tf.constant(1.0), "b": [tf.constant(10.0)]})) == 32.0


def test_the_code_that_autograph_makes():
    def f(x):
        if x > 0:
            x = x * 2
        return x

    code = tf.autograph.to_code(f)
    assert "ag__.if_stmt" in code and ast.parse(code)
    assert tf.autograph.to_code(tf.function(f)) == code


def test_options_for_other_compilers_are_accepted():
    features = tf.autograph.experimental.Feature
    f = tf.function(
        lambda x: x + 1.0,
        experimental_implements="plus_one",
        experimental_autograph_options=(features.EQUALITY_OPERATORS, features.LISTS),
    )
    assert float(f(1.0)) == 2.0


def test_derivatives_through_loops_of_unknown_length():
    @tf.function
    def second(x, n):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.constant(1.0)
                for _ in tf.range(n):
                    y = y * x
            gradient = inner.gradient(y, x)
        return outer.gradient(gradient, x)

    with pytest.warns(RuntimeWarning, match="runs op by op"):
        assert float(second(tf.constant(2.0), tf.constant(4))) == 48.0
    assert float(second(tf.constant(3.0), tf.constant(3))) == 18.0


def test_gradients_of_a_loop_in_a_function():
    def power(x):
        loop = [0, tf.constant(1.0)]
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), loop, maximum_iterations=5)[1]

    @tf.function
    def f(x):
        return tf.gradients(power(x), x)[0]

    assert float(f(tf.constant(2.0))) == 12.0


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.ones([1000]))

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def scaled(self, x):
        return x * tf.reduce_sum(self.w)


def test_recordings_keep_nothing_alive():
    gc.collect()
    before = tf.memory.live_bytes()
    model = Model()
    assert [float(model.scaled(tf.ones([n]))[0]) for n in (1, 3)] == [1000.0, 1000.0]
    assert model.scaled.experimental_get_tracing_count() == 1
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert tf.memory.live_bytes() == before


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_input_signatures_of_strings():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None])])
    def f(text, x):
        return tf.strings.length(text), 2.0 * x

    lengths, doubled = f(["a", "bcd"], [1.0, 2.0, 3.0])
    assert lengths.numpy().tolist() == [1, 3] and doubled.numpy().tolist() == [2.0, 4.0, 6.0]
    # TensorFlow: "Binding inputs to tf.function failed", a TypeError.
    for bad in [([1, 2], [1.0]), (tf.constant("a"), [1.0]), (["a"], tf.constant(["b"])), (["a"], [[1.0]])]:
        with pytest.raises(TypeError):
            f(*bad)
    with pytest.raises(TypeError, match="dtype=tf.float32"):
        tf.function(lambda x: x, input_signature=[tf.TensorSpec([2])])(tf.constant(["a", "b"]))


def test_reprs_say_what_an_object_is(tmp_path):
    f = tf.function(lambda x: x + 1)
    f(1.0)
    assert repr(f) == "<tf.function <lambda>: 1 trace>"
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert repr(checkpoint) == "<tf.train.Checkpoint of v>"
    path = checkpoint.save(str(tmp_path / "a"))
    status = tf.train.Checkpoint(v=tf.Variable(0.0), w=tf.Variable(0.0)).restore(path)
    assert repr(status) == "<tf.train status: 1 restored, 0 without a variable, 1 not in the file>"
    assert repr(tf.train.CheckpointManager(checkpoint, str(tmp_path / "b"), 1)).endswith("the latest None>")
    spec = "element_spec=TensorSpec(shape=(), dtype=tf.int64, name=None)"
    assert repr(tf.data.Dataset.range(1)) == f"<tf.data.Dataset of 1 element, {spec}>"
    assert repr(tf.data.Dataset.from_generator(lambda: iter([1]))) == "<tf.data.Dataset of unknown length>"
    iterator = iter(tf.data.Dataset.range(2))
    next(iterator)
    assert repr(iterator) == f"<tf.data iterator at element 1 of epoch 0 of <tf.data.Dataset of 2 elements, {spec}>>"
    assert repr(tf.random.Generator.from_seed(3)) == "<tf.random.Generator with state [3, 0]>"


def test_functions_that_take_certain_sizes_alone_have_specs_and_are_saved_uncalled(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.mean = tf.Variable(tf.ones([784, 3])), tf.constant(np.arange(9.0, dtype=np.float32))

        @tf.function(input_signature=[tf.TensorSpec([None] * 4, tf.uint8)])
        def flat(self, x):
            return tf.matmul(tf.reshape(tf.cast(x, tf.float32), [-1, 784]), self.w)

        @tf.function(input_signature=[tf.TensorSpec([None, None])])
        def centred(self, x):
            return x - self.mean

        @tf.function(input_signature=[tf.TensorSpec([None, None])])
        def longer(self, x):
            return tf.concat([x[:, :-1], tf.one_hot(tf.cast(x[:, -1], tf.int32), 3)], 1) * self.mean

        @tf.function(input_signature=[tf.TensorSpec(None)])
        def product(self, x):
            return tf.matmul(x, self.w[:3, :2])

        @tf.function
        def double(self, x):
            return x + x

    model = Model()
    of_any_rank = model.double.get_concrete_function(tf.TensorSpec(None, tf.float32))
    assert of_any_rank.structured_outputs.shape.rank is None
    for name, shape in (("flat", [None, 3]), ("centred", [None, 9]), ("longer", [None, 9]), ("product", None)):
        found = getattr(model, name).get_concrete_function()
        assert found.structured_outputs.shape == tf.TensorShape(shape), name
        assert len(found.variables) == (name in ("flat", "product"))
    tf.saved_model.save(model, tmp_path / "model", signatures=of_any_rank)
    again = tf.saved_model.load(tmp_path / "model")
    assert again.flat(np.ones([2, 28, 28, 1], np.uint8)).numpy().tolist() == [[784.0] * 3] * 2
    assert again.centred(np.ones([1, 9], np.float32)).numpy()[0, :3].tolist() == [1.0, 0.0, -1.0]
    assert again.longer(tf.ones([2, 7])).numpy()[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 7.0, 0.0]
    assert again.product(tf.ones([1, 2, 3])).numpy().tolist() == [[[3.0, 3.0], [3.0, 3.0]]]
    assert again.double(tf.constant(3.0)).numpy() == 6.0
    assert again.signatures["serving_default"](tf.ones([1, 2]))["output_0"].numpy().tolist() == [[2.0, 2.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"8 and 9"):
        again.centred(np.ones([1, 8], np.float32))


def test_concrete_functions_say_what_there_is_in_place_of_graphs():
    bound = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([2]))
    with pytest.raises(AttributeError, match=r"no attribute 'graph': there is no graph of TensorFlow\n  help: plan"):
        bound.graph
    with pytest.raises(AttributeError, match=r"no attribute 'grap'$"):
        bound.grap
    assert not hasattr(bound, "inference_fn") and bound.plan.table()


def test_functions_of_ragged_specs_are_one_object_and_are_not_lost_when_saved(tmp_path):
    model = tf.Module()
    model.f = tf.function(lambda x: x * 2.0)
    specs = [tf.RaggedTensorSpec([None, None], tf.float32), tf.SparseTensorSpec([None, 3], tf.float32)]
    for spec in specs:
        assert model.f.get_concrete_function(spec) is model.f.get_concrete_function(spec)
    assert model.f.get_concrete_function(specs[0]) is not model.f.get_concrete_function(specs[1])
    with pytest.raises(ValueError, match=r"\(obj.f\) cannot be saved: it takes an argument of class RaggedTensorSpec"):
        tf.saved_model.save(model, tmp_path / "model")
