"""Names of TensorFlow that programs rarely use. `python/tools/differential/expressions/names.txt` compares them with TensorFlow."""

import threading

import numpy as np
import pytest

import taut as tf


def test_threads_stop_together_and_the_first_exception_is_raised():
    coordinator = tf.train.Coordinator()

    def work(fails):
        with coordinator.stop_on_exception():
            if fails:
                raise ValueError("first")
            assert coordinator.wait_for_stop(10)

    threads = [threading.Thread(target=work, args=[fails]) for fails in (False, True, False)]
    for thread in threads:
        coordinator.register_thread(thread)
        thread.start()
    with pytest.raises(ValueError, match="first"):
        coordinator.join(stop_grace_period_secs=10)
    assert coordinator.should_stop() and coordinator.joined
    with pytest.raises(ValueError, match="first"):
        coordinator.raise_requested_exception()
    coordinator.clear_stop()
    assert not coordinator.should_stop() and not coordinator.joined


def test_the_end_of_a_dataset_is_no_error_and_threads_that_run_on_are():
    coordinator, release = tf.train.Coordinator(), threading.Event()
    coordinator.request_stop(tf.errors.OutOfRangeError("end"))
    thread = threading.Thread(target=release.wait)
    thread.start()
    with pytest.raises(RuntimeError, match="still running"):
        coordinator.join([thread], stop_grace_period_secs=0.1)
    coordinator.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True)
    release.set()
    thread.join()
    own = tf.train.Coordinator(clean_stop_exception_types=[ValueError])
    own.request_stop(ValueError())
    own.join()
    own.clear_stop()
    own.request_stop(KeyError("other"))
    with pytest.raises(KeyError, match="other"):
        own.join()


def test_states_of_python_objects_are_saved(tmp_path):
    class Counter(tf.train.experimental.PythonState):
        def __init__(self):
            self.count = 0

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.count = int(string_value)

    counter, v = Counter(), tf.Variable(1.0)
    counter.count = 17
    path = tf.train.Checkpoint(counter=counter, v=v).save(str(tmp_path / "state"))
    other = Counter()
    tf.train.Checkpoint(counter=other, v=v).restore(path).assert_consumed()
    assert other.count == 17
    with pytest.raises(TypeError, match="abstract"):
        tf.train.experimental.PythonState()
    with pytest.raises(tf.errors.InvalidArgumentError, match="PythonState"):
        tf.train.Checkpoint(v=Counter()).restore(path)


def test_the_sobol_sequence_fills_every_dimension_evenly():
    points = tf.math.sobol_sample(128, 255, dtype=tf.float64).numpy()
    # The first 2^k points, with zero, are a permutation of the multiples of 2^-k in each dimension.
    for column in points.T:
        np.testing.assert_array_equal(np.sort(column), np.arange(1, 256) / 256)
    np.testing.assert_array_equal(tf.math.sobol_sample(7, 5, skip=250, dtype=tf.float64), points[250:255, :7])
    # Of TensorFlow 2.21.
    np.testing.assert_array_equal(
        tf.math.sobol_sample(3, 2, 7, tf.float64), [[0.1875, 0.3125, 0.9375], [0.6875, 0.8125, 0.4375]]
    )
    for arguments in ((0, 1), (129, 1), (2, 0), (2, 1, -1), (2, 1, 2**31)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="sobol_sample"):
            tf.math.sobol_sample(*arguments)
    with pytest.raises(TypeError, match="int32"):
        tf.math.sobol_sample(2, 1, dtype=tf.int32)


def test_products_at_coordinates_and_their_gradient():
    a, b = tf.constant(np.arange(12.0).reshape(3, 4)), tf.constant(np.arange(8.0).reshape(4, 2))
    at = tf.constant([[0, 1], [2, 0]])
    with tf.GradientTape() as tape:
        tape.watch(a)
        found = tf.sparse.sampled_addmm(at, tf.constant([1.0, 2.0], tf.float64), [3, 2], a, b, 2.0, 0.5, tf.float64)
    product = a.numpy() @ b.numpy()
    np.testing.assert_array_equal(found[1], [0.5 * product[0, 1] + 2.0, 0.5 * product[2, 0] + 4.0])
    expected = np.zeros([3, 4])
    expected[0], expected[2] = 0.5 * b.numpy()[:, 1], 0.5 * b.numpy()[:, 0]
    np.testing.assert_array_equal(tape.gradient(found[1], a), expected)


def test_options_of_profiles_and_tests_that_are_skipped(tmp_path):
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    with tf.profiler.experimental.Profile(str(tmp_path), options=options):
        tf.ones([2]) + 1.0
    assert (tmp_path / "trace.json").exists()
    with pytest.raises(ValueError, match="delay_ms"):
        tf.profiler.experimental.start(str(tmp_path), options=tf.profiler.experimental.ProfilerOptions(delay_ms=5))

    class Case(tf.test.TestCase):
        @tf.test.disable_with_predicate(lambda: True, "not today")
        def test(self):
            raise AssertionError

    result = Case("test").run()
    assert [reason for _, reason in result.skipped] == ["not today"]


def test_a_table_of_a_dataset():
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [1, 2]))
    table = tf.lookup.StaticHashTable(tf.data.experimental.DatasetInitializer(pairs), -1)
    np.testing.assert_array_equal(table.lookup(tf.constant(["b", "?"])), [2, -1])
    with pytest.raises(ValueError, match="pairs"):
        tf.data.experimental.DatasetInitializer(tf.data.Dataset.range(2))


def test_a_setting_without_effect_is_kept():
    config = tf.config.experimental
    assert config.tensor_float_32_execution_enabled()
    config.enable_tensor_float_32_execution(False)
    assert not config.tensor_float_32_execution_enabled()
    config.enable_tensor_float_32_execution(True)


@pytest.mark.parametrize("most", [0, 1, 9, 255, 256, 1000])
def test_indices_are_permuted(most):
    found = tf.random.experimental.index_shuffle(tf.range(most + 1), [3, most], most).numpy()
    np.testing.assert_array_equal(np.sort(found), np.arange(most + 1))
    assert most < 9 or (found != np.arange(most + 1)).any()


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_indices_are_permuted_in_a_dataset_as_by_tensorflow():
    dataset = tf.data.Dataset.range(10).map(lambda k: tf.random.experimental.index_shuffle(k, [5, 8], 9))
    assert list(dataset.as_numpy_iterator()) == [3, 8, 0, 1, 2, 7, 6, 9, 4, 5]
    each = tf.random.experimental.index_shuffle(4, [[5, 8], [5, 9]], 9).numpy()
    assert each.shape == (2,) and each[0] == 2
    for arguments in ((10, [1, 2], 9), (-1, [1, 2], 9), (1, [1, 2, 3], 9), ([1, 2, 3], [1, 2], [9, 9])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="index_shuffle"):
            tf.random.experimental.index_shuffle(*arguments)
