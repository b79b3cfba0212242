"""Checkpoints hold all states by path, restore variables that are created later, and refuse what they cannot save."""

import os
import time

import numpy as np
import pytest

import taut as tf


class Scale(tf.Module):
    """Creates its variable in its first call."""

    def __init__(self):
        super().__init__()
        self.w = None

    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.ones([2]) * 5.0)
        return x * self.w


def test_variables_that_are_created_later_take_their_values(tmp_path):
    module = Scale()
    module(1.0)
    module.w.assign([7.0, 8.0])
    path = tf.train.Checkpoint(m=module).write(tmp_path / "model")
    assert tf.train.list_variables(path) == [("m/w", [2])]

    other = Scale()
    with pytest.warns(UserWarning, match="m/w"):
        tf.train.Checkpoint(m=other).read(path)
    np.testing.assert_array_equal(other(1.0), [7, 8])

    traced = Scale()
    status = tf.train.Checkpoint(m=traced).read(path)
    with pytest.raises(AssertionError, match="m/w"):
        status.assert_consumed()
    np.testing.assert_array_equal(tf.function(traced)(tf.constant(1.0)), [7, 8])
    status.assert_consumed()


def test_objects_that_a_checkpoint_gets_later(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "both")
    checkpoint = tf.train.Checkpoint(a=tf.Variable(0.0))
    status = checkpoint.read(path).expect_partial()
    checkpoint.b = tf.Variable(0.0)
    assert float(checkpoint.b) == 2.0
    status.assert_consumed()


def small(keras):
    return keras.Sequential([keras.layers.Dense(2, activation="tanh"), keras.layers.Dense(1)])


class Net:
    """A model of Keras with layers in attributes and lists."""

    @staticmethod
    def make(keras):
        class Model(keras.Model):
            def __init__(self):
                super().__init__()
                self.first = keras.layers.Dense(4)
                self._hidden = keras.layers.Dense(3)
                self.blocks = [keras.layers.Dense(3), keras.layers.BatchNormalization()]

            def call(self, x):
                x = self._hidden(self.first(x))
                for block in self.blocks:
                    x = block(x)
                return x

        return Model()


@pytest.mark.parametrize("make", [small, Net.make], ids=["sequential", "subclass"])
@pytest.mark.parametrize("traced", [False, True])
def test_models_that_are_built_later_take_their_weights(tmp_path, make, traced):
    keras = pytest.importorskip("taut.keras")
    x = tf.constant(np.linspace(-1, 1, 6).reshape(2, 3).astype("f4"))
    model = make(keras)
    want = model(x).numpy()
    path = tf.train.Checkpoint(model=model).write(tmp_path / "model")
    names = [name for name, _ in tf.train.list_variables(path)]
    assert len(names) == len(model.variables)
    if make is small:
        assert names == [f"model/layers/{i}/{name}" for i in range(2) for name in ("bias", "kernel")]
    else:
        assert {"model/first/kernel", "model/blocks/1/moving_mean", "model/layers/1/kernel"} <= set(names)

    other = make(keras)
    status = tf.train.Checkpoint(model=other).read(path)
    run = tf.function(other) if traced else other
    np.testing.assert_array_equal(run(x), want)
    status.assert_consumed()

    root = make(keras)
    tf.train.Checkpoint(root).read(tf.train.Checkpoint(model).write(tmp_path / "root"))
    np.testing.assert_array_equal(root(x), want)


def test_a_whole_training_run_goes_on(tmp_path):
    keras = pytest.importorskip("taut.keras")
    x = np.random.default_rng(0).normal(size=(8, 3)).astype("f4")

    def run():
        model, optimizer = small(keras), keras.optimizers.Adam(0.1)
        iterator = iter(tf.data.Dataset.from_tensor_slices(x).shuffle(8, seed=3).batch(2).repeat())
        generator = tf.random.Generator.from_seed(7)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, data=iterator, noise=generator)

        def step():
            batch = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(batch) - generator.normal([2, 1])) ** 2)
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return float(loss)

        return checkpoint, step

    checkpoint, step = run()
    for _ in range(3):
        step()
    path = checkpoint.save(tmp_path / "run")
    want = [step() for _ in range(4)]
    again, step = run()
    again.restore(path)
    assert [step() for _ in range(4)] == want


def test_iterators_and_generators(tmp_path):
    iterator, generator = iter(tf.data.Dataset.range(5)), tf.random.Generator.from_seed(1)
    next(iterator)
    generator.normal([2])
    checkpoint = tf.train.Checkpoint(it=iterator, g=generator)
    path = checkpoint.write(tmp_path / "state")
    want = generator.normal([2]).numpy(), int(next(iterator))
    next(iterator)
    checkpoint.read(path).assert_consumed()
    assert int(next(iterator)) == want[1] == 1
    np.testing.assert_array_equal(generator.normal([2]), want[0])
    # In a function that was traced before.
    f = tf.function(lambda it: next(it))
    assert int(f(iterator)) == 2
    checkpoint.read(path).assert_consumed()
    assert int(f(iterator)) == 1


def test_an_iterator_of_another_order_is_refused(tmp_path):
    def shuffled(seed):
        return tf.train.Checkpoint(it=iter(tf.data.Dataset.range(20).shuffle(20, seed=seed)))

    path = shuffled(1).write(tmp_path / "order")
    shuffled(1).read(path).assert_consumed()
    with pytest.raises(tf.errors.InvalidArgumentError, match="random numbers"):
        shuffled(2).read(path)


@pytest.mark.parametrize("thing", [3, "text", None, tf.constant(1.0), np.ones(2), object(), [tf.Variable(1.0), 3]])
def test_what_would_be_left_out_is_refused(thing):
    with pytest.raises(ValueError, match="must be a variable"):
        tf.train.Checkpoint(thing=thing)


def test_a_partial_restore(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(tmp_path / "new" / "folder" / "m")
    assert path == str(tmp_path / "new" / "folder" / "m-1")
    assert tf.train.latest_checkpoint(tmp_path / "new" / "folder") == path
    a, c = tf.Variable(0.0), tf.Variable(5.0)
    status = tf.train.Checkpoint(a=a, c=c).restore(path)
    assert (float(a), float(c)) == (1.0, 5.0)
    for check in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=r"without a value in the checkpoint: c"):
            check()
    status.assert_nontrivial_match().expect_partial()
    with pytest.raises(AssertionError, match="no object matches"):
        tf.train.Checkpoint(x=tf.Variable(0.0)).read(path).assert_nontrivial_match()


def test_types_and_shapes_must_match(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Variable(1.0)).write(tmp_path / "m")
    b = tf.Variable(0.0)
    for bad in (tf.Variable([1.0]), tf.Variable([1, 2])):
        with pytest.raises(ValueError, match="type and shape of its variable"):
            tf.train.Checkpoint(b=b, a=bad).read(path)
    assert float(b) == 0.0


def test_the_latest_checkpoint_is_the_last_saved(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(0))
    for _ in range(3):
        checkpoint.save(tmp_path / "a")
    last = tf.train.Checkpoint(v=tf.Variable(9)).save(tmp_path / "b")
    assert tf.train.latest_checkpoint(tmp_path) == last == str(tmp_path / "b-1")


def names(manager):
    return [os.path.basename(path) for path in manager.checkpoints]


def test_a_manager_saves_at_intervals_and_keeps_the_latest(tmp_path):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(v=step)
    options = {"checkpoint_name": "w", "step_counter": step, "checkpoint_interval": 2}
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, 2, **options)
    saved = []
    for _ in range(6):
        saved.append(manager.save())
        step.assign_add(1)
    assert saved == [str(tmp_path / "w-1"), None, str(tmp_path / "w-2"), None, str(tmp_path / "w-3"), None]
    assert names(manager) == ["w-2", "w-3"] and sorted(os.listdir(tmp_path)) == ["checkpoint", "w-2", "w-3"]
    assert int(checkpoint.save_counter) == 3 and manager.latest_checkpoint == saved[4]
    assert manager.save(check_interval=False) == str(tmp_path / "w-4")

    again = tf.train.Checkpoint(v=tf.Variable(0, dtype=tf.int64))
    manager = tf.train.CheckpointManager(again, tmp_path, 2, checkpoint_name="w")
    assert names(manager) == ["w-3", "w-4"] and int(again.save_counter) == 0
    assert manager.restore_or_initialize() == str(tmp_path / "w-4")
    assert (int(again.v), int(again.save_counter)) == (6, 4)
    assert manager.save(checkpoint_number=40) == str(tmp_path / "w-40")
    assert names(manager) == ["w-4", "w-40"] and manager.save() == str(tmp_path / "w-6")


def test_a_manager_keeps_one_every_few_hours(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(0)), tmp_path, 1, keep_checkpoint_every_n_hours=1.0
    )
    for minutes in (0, 30, 61, 90, 130):
        now[0] = 1000.0 + 60 * minutes
        manager.save()
    # At 61 minutes more than an hour has passed since the start; at 130 minutes an hour since then.
    assert names(manager) == ["ckpt-5"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-3", "ckpt-5"]


def test_a_manager_without_checkpoints_initializes(tmp_path):
    called = []
    checkpoint = tf.train.Checkpoint(v=tf.Variable(0))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "new", None, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None and called == [1]
    for options, text in (
        ({"max_to_keep": 0}, "max_to_keep"),
        ({"max_to_keep": 1, "checkpoint_interval": 2}, "step_counter"),
    ):
        with pytest.raises(ValueError, match=text):
            tf.train.CheckpointManager(checkpoint, tmp_path, **options)


def test_files_are_read_by_name(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0])).write(tmp_path / "m")
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_shape_map() == {"a": [2]}
    assert reader.get_variable_to_dtype_map() == {"a": tf.float32}
    assert reader.has_tensor("a") and not reader.has_tensor("b")
    for name in ("a", "a/.ATTRIBUTES/VARIABLE_VALUE"):
        np.testing.assert_array_equal(reader.get_tensor(name), [1, 2])


def test_moving_averages_are_saved(tmp_path):
    def make():
        v, averages = tf.Variable(1.0), tf.train.ExponentialMovingAverage(0.5)
        return v, averages, tf.train.Checkpoint(v=v, averages=averages)

    v, averages, checkpoint = make()
    averages.apply([v])
    v.assign(3.0)
    averages.apply([v])
    path = checkpoint.write(tmp_path / "ema")
    v, averages, checkpoint = make()
    checkpoint.read(path).expect_partial()
    averages.apply([v])
    # The average, 2, was restored before the update with 3.
    assert float(averages.average(v)) == 2.5


def test_objects_with_several_paths(tmp_path):
    shared = tf.Module()
    shared.w = tf.Variable(7.0)
    path = tf.train.Checkpoint(a=shared, b=shared).save(tmp_path / "shared")
    # Saved under one path and restored under the other.
    alone = tf.Module()
    alone.w = tf.Variable(0.0)
    tf.train.Checkpoint(b=alone).restore(path).assert_existing_objects_matched()
    assert alone.w.numpy() == 7.0
    # Two objects in place of one: both have its value.
    one, other = tf.Module(), tf.Module()
    one.w, other.w = tf.Variable(0.0), tf.Variable(0.0)
    tf.train.Checkpoint(a=one, b=other).restore(path).assert_consumed()
    assert (one.w.numpy(), other.w.numpy()) == (7.0, 7.0)
    # One path in the file, two in the object.
    path = tf.train.Checkpoint(inner=tf.train.Checkpoint(k=tf.Variable(5.0))).save(tmp_path / "one")
    found = tf.Variable(0.0)
    inner = tf.train.Checkpoint(k=found)
    tf.train.Checkpoint(first=inner, inner=inner).restore(path).assert_consumed()
    assert found.numpy() == 5.0
    assert [name for name, _ in tf.train.list_variables(path)] == ["inner/k", "save_counter"]


def test_lists_and_dicts_restore_the_variables_that_they_receive(tmp_path):
    save = tf.train.Checkpoint()
    save.listed = [tf.Variable(1.0), tf.Variable(2.0)]
    save.mapped = {"three": tf.Variable(3.0)}
    path = save.save(str(tmp_path / "x"))
    restore = tf.train.Checkpoint()
    restore.restore(path)
    restore.listed, restore.mapped = [], {}
    first, second, third = tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0.0)
    restore.listed.append(first)
    assert first.numpy() == 1.0
    restore.listed += [second]
    restore.mapped["three"] = third
    assert (second.numpy(), third.numpy()) == (2.0, 3.0)

    class Late(tf.Module):
        def build(self):
            self.listed = []
            for _ in range(2):
                self.listed.append(tf.Variable(0.0))
            self.mapped = {"three": tf.Variable(0.0)}

    late = Late()
    tf.train.Checkpoint(late).restore(path)
    late.build()
    assert [one.numpy() for one in (*late.listed, late.mapped["three"])] == [1.0, 2.0, 3.0]


def test_a_list_that_is_changed_elsewhere_is_not_saved_without_the_change(tmp_path):
    save = tf.train.Checkpoint(listed=[tf.Variable(1.0), tf.Variable(2.0)])
    path = save.save(str(tmp_path / "x"))
    restore = tf.train.Checkpoint()
    restore.restore(path)
    own = [tf.Variable(0.0), tf.Variable(0.0)]
    restore.listed = own
    own.append(tf.Variable(0.0))
    with pytest.raises(ValueError, match="changed later"):
        restore.save(str(tmp_path / "y"))


def test_values_wait_for_variables_that_are_added_to_lists_and_dicts(tmp_path):
    def filled(start):
        module = tf.Module()
        module.rows, module.named, module.nested = [], {}, []
        module.rows.append(tf.Variable(start + 1.0))
        module.named["k"] = tf.Variable(start + 2.0)
        module.rows.append(tf.Variable(start + 3.0))
        module.nested.append({"a": []})
        module.nested[0]["a"].append(tf.Variable(start + 4.0))
        return module

    path = tf.train.Checkpoint(module=filled(0.0)).save(str(tmp_path / "ck"))
    empty = tf.Module()
    status = tf.train.Checkpoint(module=empty).restore(path)
    other = filled(100.0)
    empty.rows, empty.named, empty.nested = [], {}, []
    empty.rows.append(other.rows[0])
    empty.named["k"] = other.named["k"]
    empty.rows.append(other.rows[1])
    empty.nested.append({"a": []})
    empty.nested[0]["a"].append(other.nested[0]["a"][0])
    # TensorFlow 2.21 gives these values.
    assert [float(v) for v in (*empty.rows, empty.named["k"], empty.nested[0]["a"][0])] == [1.0, 3.0, 2.0, 4.0]
    status.assert_consumed()


def test_values_wait_for_layers_that_a_call_makes(tmp_path):
    class Lazy(tf.Module):
        def __init__(self):
            super().__init__()
            self.parts = []

        def __call__(self, x):
            if not self.parts:
                self.parts.append(tf.Variable(7.0))
            return x * self.parts[0]

    saved = Lazy()
    saved(1.0)
    saved.parts[0].assign(5.0)
    path = tf.train.Checkpoint(saved).save(str(tmp_path / "ck"))
    for call in (lambda module: module, lambda module: tf.function(lambda x: module(x))):
        restored = Lazy()
        status = tf.train.Checkpoint(restored).restore(path)
        assert float(call(restored)(tf.constant(2.0))) == 10.0
        status.assert_consumed()


def test_the_first_save_after_an_initialization_is_due(tmp_path):
    step, value = tf.Variable(0), tf.Variable(0.0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(value=value, step=step),
        str(tmp_path),
        max_to_keep=3,
        step_counter=step,
        checkpoint_interval=2,
        init_fn=lambda: value.assign(7.0),
    )
    assert manager.restore_or_initialize() is None and float(value) == 7.0
    saved = []
    for i in range(6):
        step.assign(i)
        saved.append(manager.save() is not None)
    # As TensorFlow 2.21.
    assert saved == [True, False, True, False, True, False]


@pytest.mark.parametrize("shape", [(), (2,), (2, 0)])
def test_complex128_variables_are_saved(shape, tmp_path):
    value = np.full(shape, 1.5 - 2.5j)
    saved = tf.Variable(value)
    path = tf.train.Checkpoint(v=saved, w=tf.Variable(1.0)).write(str(tmp_path / "c"))
    assert tf.train.list_variables(path) == [("v", list(shape)), ("w", [])]
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), value)
    other = tf.train.Checkpoint(v=tf.Variable(np.zeros(shape, complex)), w=tf.Variable(0.0))
    other.read(path).assert_consumed()
    assert other.v.dtype == tf.complex128
    np.testing.assert_array_equal(other.v, value)
    assert other.w.numpy() == 1
