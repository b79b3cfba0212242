"""Checkpoints of attributes, folders and functions that programs rarely have; the values are TensorFlow 2.21's."""

import os
import pathlib
import tempfile
import threading

import numpy as np
import pytest

import taut as tf

op_by_op = pytest.mark.filterwarnings("ignore:.*runs op by op")


def test_private_attributes_are_saved(tmp_path):
    checkpoint = tf.train.Checkpoint()
    checkpoint._weight, checkpoint._note = tf.Variable(1.0), "not saved"
    path = checkpoint.save(tmp_path / "private")
    again = tf.train.Checkpoint()
    again._weight = tf.Variable(0.0)
    again.restore(path).assert_consumed()
    assert float(again._weight) == 1.0


def test_variables_of_a_layer_of_keras_are_saved_whatever_their_names(tmp_path):
    keras = pytest.importorskip("taut.keras")

    class Layer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale, self._shift, self._parts = tf.Variable(1.0), tf.Variable(4.0), [tf.Variable(2.0)]

    path = tf.train.Checkpoint(layer=Layer()).save(tmp_path / "layer")
    layer = Layer()
    own = (layer.scale, layer._shift, layer._parts[0])
    for variable in own:
        variable.assign(0.0)
    tf.train.Checkpoint(layer=layer).restore(path).assert_consumed()
    assert [float(variable) for variable in own] == [1.0, 4.0, 2.0]


def test_an_argument_does_not_take_the_name_of_a_part_of_root():
    module = tf.Module()
    module.w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="w must not be the name of another object in root"):
        tf.train.Checkpoint(module, w=tf.Variable(2.0))
    assert tf.train.Checkpoint(module, w=module.w).w is module.w


def test_a_value_that_fits_no_variable_does_not_disturb_later_programs(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Variable(3.0)).save(tmp_path / "a")
    checkpoint = tf.train.Checkpoint()
    checkpoint.restore(path).expect_partial()
    with pytest.raises(ValueError, match="type and shape of its variable"):
        checkpoint.a = tf.Variable([0.0])
    other = tf.train.Checkpoint(v=tf.Variable(7.0))
    module = tf.Module()
    module.w = tf.Variable(8.0)
    assert (float(other.v), float(module.w)) == (7.0, 8.0)
    del checkpoint, other


def test_two_values_for_what_is_one_object_now(tmp_path):
    a, b = tf.Module(), tf.Module()
    a.w, b.w = tf.Variable(3.0), tf.Variable(4.0)
    path = tf.train.Checkpoint(a=a, b=b).save(tmp_path / "two")
    one = tf.Module()
    one.w = tf.Variable(0.0)
    tf.train.Checkpoint(a=one, b=one).restore(path).assert_consumed()
    assert float(one.w) == 3.0


def test_what_a_nontrivial_match_is(tmp_path):
    module = tf.Module()
    module.w = tf.Variable(1.0)
    path = tf.train.Checkpoint(m=module).save(tmp_path / "m")
    tf.train.Checkpoint(m=tf.Module()).restore(path).assert_nontrivial_match().expect_partial()
    with pytest.raises(AssertionError, match="nothing is restored"):
        tf.train.Checkpoint(m=module).restore(None).assert_nontrivial_match()


@op_by_op
def test_a_function_saves_and_restores_in_each_call(tmp_path):
    v = tf.Variable(1.0)
    checkpoint, path = tf.train.Checkpoint(v=v), str(tmp_path / "w")

    @tf.function
    def write():
        v.assign_add(1.0)
        checkpoint.write(path)

    @tf.function
    def read():
        checkpoint.read(path)
        return v + 0.0

    for _ in range(3):
        write()
    v.assign(0.0)
    assert [float(read()), float(v)] == [4.0, 4.0]
    v.assign(6.0)
    assert [float(read()), float(v)] == [4.0, 4.0]
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "managed", 5)
    save = tf.function(lambda: manager.save())
    save(), save()
    assert len(manager.checkpoints) == 2


@pytest.mark.parametrize("name", ["sub/ck", "a b", "ünï", "quote'\"", "back\\slash", "new\nline", "colon: x", "[1]*"])
def test_a_manager_finds_its_files_again(tmp_path, name):
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(2.0)), tmp_path / name, 1, checkpoint_name=name
    )
    manager.save()
    path = manager.save()
    again = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(0.0)), tmp_path / name, 1, checkpoint_name=name
    )
    assert again.checkpoints == [path] and again.restore_or_initialize() == path
    assert float(again.checkpoint.v) == 2.0
    assert tf.train.latest_checkpoint(tmp_path / name) == path
    assert os.listdir(pathlib.Path(path).parent).count(pathlib.Path(path).name) == 1


def test_a_run_whose_last_file_is_gone_does_not_start_from_the_beginning(tmp_path):
    called = []
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), tmp_path, 3)
    manager.save()
    os.remove(manager.save())
    again = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(0.0)), tmp_path, 3, init_fn=lambda: called.append(1)
    )
    with pytest.raises(tf.errors.NotFoundError):
        again.restore_or_initialize()
    assert not called


def test_keeping_one_every_0_hours_keeps_none(tmp_path):
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(1.0)), tmp_path, 1, keep_checkpoint_every_n_hours=0.0
    )
    for _ in range(4):
        manager.save()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-4"]


def test_a_folder_without_checkpoints(tmp_path):
    for read in (tf.train.load_checkpoint, tf.train.list_variables):
        with pytest.raises(ValueError, match="no checkpoint found"):
            read(tmp_path)


def test_managers_in_one_folder_save_at_the_same_time(tmp_path):
    failed = []

    def save(number):
        variables = [tf.Variable(np.full(size, number, "f4")) for size in (1, 1000)]
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(v=variables), tmp_path, 2, checkpoint_name=f"c{number}"
        )
        for _ in range(25):
            try:
                manager.save()
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert tf.train.latest_checkpoint(tmp_path)
    assert set(os.listdir(tmp_path)) == {"checkpoint", *(f"c{n}-{k}" for n in range(4) for k in (24, 25))}


def test_a_value_that_does_not_fit_a_model_that_is_built_later(tmp_path):
    keras = pytest.importorskip("taut.keras")

    class Net(keras.Model):
        def __init__(self, outputs):
            super().__init__()
            self.base, self.head = keras.layers.Dense(4), keras.layers.Dense(outputs)

        def call(self, x):
            return self.head(self.base(x))

    def row(outputs):
        return keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(outputs)])

    x = np.ones((2, 3), "f4")
    for make in (Net, row):
        model = make(5)
        want = model(x)
        path = tf.train.Checkpoint(model=model).write(tmp_path / "model")
        other = make(2)
        tf.train.Checkpoint(model=other).read(path).expect_partial()
        with pytest.raises(ValueError, match="type and shape of its variable"):
            other(x)
        # Models that are built after it take their values.
        again = make(5)
        tf.train.Checkpoint(model=again).read(path)
        np.testing.assert_array_equal(again(x), want)


def names(paths):
    return [os.path.basename(path) for path in paths]


@pytest.mark.parametrize("prefix", ["unusual", "ckpt"])
def test_a_manager_does_not_delete_what_it_has_not_saved(tmp_path, prefix):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    unmanaged = [checkpoint.save(str(tmp_path / prefix)) for _ in range(2)]
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert names([manager.latest_checkpoint]) == [f"{prefix}-2"] and manager.checkpoints == []
    checkpoint.restore(manager.latest_checkpoint)
    kept = []
    for _ in range(3):
        manager.save()
        kept.append(names(manager.checkpoints))
    assert kept == [["ckpt-3"], ["ckpt-3", "ckpt-4"], ["ckpt-4", "ckpt-5"]]
    assert all(os.path.exists(path) for path in unmanaged)
    # What a manager has saved, the next one goes on with.
    again = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert names(again.checkpoints) == ["ckpt-4", "ckpt-5"]


def test_checkpoints_without_variables_yet_are_parts_of_others(tmp_path):
    first, second = tf.train.Checkpoint(), tf.train.Checkpoint()
    first.second, second.first = second, first
    first.v, second.v = tf.Variable(1.0), tf.Variable(3.0)
    path = first.save(str(tmp_path / "loop"))
    first.v.assign(9.0)
    second.v.assign(9.0)
    first.restore(path).assert_consumed()
    assert (float(first.v), float(second.v)) == (1.0, 3.0)
    later = tf.train.Checkpoint()
    status = later.restore(path)
    later.second = tf.train.Checkpoint()
    later.v, later.second.v = tf.Variable(0.0), tf.Variable(0.0)
    status.assert_consumed()
    assert (float(later.v), float(later.second.v)) == (1.0, 3.0)


def test_the_state_of_a_folder_may_be_indented(tmp_path):
    (tmp_path / "checkpoint").write_text('\n  model_checkpoint_path: "./m-2"\n  all_model_checkpoint_paths: "./m-2" \n')
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == os.path.join(str(tmp_path), "./m-2")
    assert len(state.all_model_checkpoint_paths) == 1


def restored(saved, other, taken=3):
    """The rest of another dataset, from the position of an iterator over a dataset."""
    iterator = iter(saved)
    for _ in range(taken):
        next(iterator)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(iterator=iterator).save(os.path.join(folder, "run"))
        again = iter(other)
        tf.train.Checkpoint(iterator=again).restore(path)
    return [x.numpy().tolist() for x in again]


def test_iterators_are_not_restored_from_those_of_other_pipelines():
    numbers = tf.data.Dataset.range(10)
    for saved, other in [
        (numbers, tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5])),
        (numbers.batch(2), numbers.filter(lambda x: x > 1)),
        (numbers.take(9), numbers.take(9).map(lambda x: x + 1)),
        (tf.data.Dataset.zip((numbers, numbers.skip(1))).map(lambda x, y: x), numbers.map(lambda x: x)),
    ]:
        with pytest.raises(tf.errors.NotFoundError, match="the stages that it had"):
            restored(saved, other)


def test_iterators_are_restored_where_only_sizes_and_buffers_differ():
    # TensorFlow restores these, too.
    numbers = tf.data.Dataset.range(10)
    assert restored(numbers, tf.data.Dataset.range(12)) == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert restored(numbers.batch(2), numbers.batch(2).prefetch(1)) == [[6, 7], [8, 9]]
    assert restored(numbers.prefetch(2).batch(2), numbers.batch(2).with_options(tf.data.Options())) == [[6, 7], [8, 9]]


def test_a_damaged_list_of_checkpoints_is_an_error(tmp_path):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "run-1\n')
    # TensorFlow warns and returns None, as if there were no checkpoint.
    for work in (
        tf.train.latest_checkpoint,
        lambda folder: tf.train.CheckpointManager(tf.train.Checkpoint(), folder, 1),
    ):
        with pytest.raises(ValueError, match="is damaged"):
            work(str(tmp_path))
