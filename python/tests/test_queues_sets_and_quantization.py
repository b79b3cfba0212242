"""Queues, sets, critical sections, names of devices, simulated quantisation, samplers, messages. Answers are TensorFlow's."""

import sqlite3
import threading

import numpy as np
import pytest

import taut as tf


def test_queue_returns_elements_in_order():
    queue = tf.queue.FIFOQueue(4, tf.float32, shapes=[[]])
    queue.enqueue_many([[1.0, 2.0, 3.0]])
    assert float(queue.dequeue()) == 1.0 and queue.dequeue_many(2).numpy().tolist() == [2.0, 3.0]
    assert int(queue.size()) == 0 and not bool(queue.is_closed())
    with pytest.raises(TypeError, match="float32, got int32"):
        queue.enqueue(tf.constant(1))
    with pytest.raises(ValueError, match="shape"):
        queue.enqueue([[1.0, 2.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="known shapes"):
        tf.queue.FIFOQueue(4, tf.float32).dequeue_many(2)


def test_queue_of_several_components_and_names():
    pairs = tf.queue.FIFOQueue(4, [tf.int32, tf.string])
    pairs.enqueue([1, "a"])
    number, text = pairs.dequeue()
    assert int(number) == 1 and text.numpy() == b"a"
    named = tf.queue.FIFOQueue(4, [tf.int32, tf.float32], names=["a", "b"])
    named.enqueue({"a": 1, "b": 2.0})
    assert {key: float(value) for key, value in named.dequeue().items()} == {"a": 1.0, "b": 2.0}
    with pytest.raises(ValueError, match="expected components named"):
        named.enqueue({"a": 1})


def test_closed_queues():
    queue = tf.queue.FIFOQueue(4, tf.int32, shapes=[[]])
    queue.enqueue_many([[1, 2, 3]])
    queue.close()
    with pytest.raises(tf.errors.CancelledError, match="closed"):
        queue.enqueue(4)
    with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
        queue.dequeue_many(5)
    assert queue.dequeue_up_to(5).numpy().tolist() == [1, 2, 3]
    with pytest.raises(tf.errors.OutOfRangeError):
        queue.dequeue()


def test_queues_wait_for_other_threads():
    queue, taken = tf.queue.FIFOQueue(2, tf.int64, shapes=[[]]), []

    def take():
        for _ in range(100):
            taken.append(int(queue.dequeue()))

    thread = threading.Thread(target=take)
    thread.start()
    for i in range(100):
        queue.enqueue(tf.constant(i, tf.int64))
    thread.join(20)
    assert taken == list(range(100))
    full = tf.queue.FIFOQueue(1, tf.int32)
    full.enqueue(1)
    errors = []

    def add():
        try:
            full.enqueue(2)
        except tf.errors.CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    full.close(cancel_pending_enqueues=True)
    thread.join(20)
    assert len(errors) == 1 and int(full.dequeue()) == 1


def test_other_queues():
    padded = tf.queue.PaddingFIFOQueue(4, tf.int32, shapes=[[None]])
    padded.enqueue([[1, 2]])
    padded.enqueue([[3]])
    assert padded.dequeue_many(2).numpy().tolist() == [[1, 2], [3, 0]]
    first = tf.queue.PriorityQueue(4, tf.string, shapes=[[]])
    first.enqueue_many([[3, 1, 2], ["c", "a", "b"]])
    priorities, values = first.dequeue_many(3)
    assert priorities.numpy().tolist() == [1, 2, 3] and values.numpy().tolist() == [b"a", b"b", b"c"]
    mixed = tf.queue.RandomShuffleQueue(200, 0, tf.int32, shapes=[[]], seed=1)
    mixed.enqueue_many([list(range(100))])
    found = mixed.dequeue_many(100).numpy().tolist()
    assert sorted(found) == list(range(100)) and found != list(range(100))


def test_a_traced_function_cannot_use_a_queue():
    queue = tf.queue.FIFOQueue(4, tf.float32)
    with pytest.raises(ValueError, match="op by op"):
        tf.function(lambda x: queue.enqueue(x))(tf.constant(1.0))


def test_sets():
    union = tf.sets.union([[1, 2], [3, 3]], [[2, 5], [7, 7]])
    assert tf.sparse.to_dense(union).numpy().tolist() == [[1, 2, 5], [3, 7, 0]]
    assert tf.sets.intersection([[1, 2, 9], [3, 3, 4]], [[2, 9], [7, 3]]).values.numpy().tolist() == [2, 9, 3]
    a, b = [[5, 1, 2], [3, 3, 4]], [[2, 5], [7, 3]]
    assert tf.sets.difference(a, b).values.numpy().tolist() == [1, 4]
    assert tf.sets.difference(a, b, aminusb=False).dense_shape.numpy().tolist() == [2, 1]
    sparse = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [4, 4, 5], [3, 2])
    assert tf.sets.size(sparse).numpy().tolist() == [1, 0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="ascending order"):
        tf.sets.size(tf.SparseTensor([[2, 0], [0, 1]], [4, 5], [3, 2]))
    with pytest.raises(TypeError, match="integers or strings"):
        tf.sets.union([[1.0]], [[2.0]])


def test_critical_sections_run_one_function_at_a_time():
    section, count, most = tf.CriticalSection(), [0], [0]

    def work():
        count[0] += 1
        most[0] = max(most[0], count[0])
        total = sum(range(10_000))
        count[0] -= 1
        return total

    threads = [threading.Thread(target=lambda: section.execute(work)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most == [1] and section.execute(lambda: 3) == 3
    with pytest.raises(ValueError, match="already executing"):
        section.execute(lambda: section.execute(lambda: 1))
    one, other = tf.CriticalSection(shared_name="shared"), tf.CriticalSection(shared_name="shared")
    with pytest.raises(ValueError, match="already executing"):
        one.execute(lambda: other.execute(lambda: 1))


def test_names_of_devices():
    spec = tf.DeviceSpec.from_string("/job:w/replica:0/task:1/device:GPU:2")
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("w", 0, 1, "GPU", 2)
    assert spec.to_string() == "/job:w/replica:0/task:1/device:GPU:2"
    assert tf.DeviceSpec.from_string("/cpu:0").to_string() == "/device:CPU:0"
    merged = tf.DeviceSpec(job="w", task=1).make_merged_spec(tf.DeviceSpec(task=2, device_type="cpu"))
    assert merged.to_string() == "/job:w/task:2/device:CPU:*"
    assert tf.DeviceSpec(job="w").replace(job="v") == tf.DeviceSpec(job="v") and hash(merged)
    with pytest.raises(ValueError, match="unknown attribute"):
        tf.DeviceSpec.from_string("/nothing:1")


def test_simulated_quantisation():
    x = tf.constant([-7.0, -0.51, 0.0, 0.26, 5.0])
    quantized = tf.quantization.fake_quant_with_min_max_args(x, -1.0, 1.0, num_bits=2)
    np.testing.assert_allclose(quantized, [-4 / 3, -2 / 3, 0.0, 0.0, 2 / 3], atol=1e-6)
    low, high = tf.constant(-1.0), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, low, high])
        y = tf.quantization.fake_quant_with_min_max_vars(x, low, high)
    gradients = [one.numpy().tolist() for one in tape.gradient(y, [x, low, high])]
    assert gradients == [[0.0, 1.0, 1.0, 1.0, 0.0], 1.0, 1.0]
    channels = tf.quantization.fake_quant_with_min_max_vars_per_channel(
        [[2.0, 2.0], [0.3, 0.3]], [-1.0, -10.0], [1.0, 10.0]
    )
    np.testing.assert_allclose(channels, [[1.003922, 2.039216], [0.298039, 0.313725]], atol=1e-5)
    rounded = tf.quantization.quantize_and_dequantize_v2([0.8, 1.4, 2.7], 0.0, 2.0, range_given=True, num_bits=3)
    np.testing.assert_allclose(rounded, [2 / 3, 4 / 3, 2.0], atol=1e-6)
    for call in (
        lambda: tf.quantization.fake_quant_with_min_max_args(x, 3.0, 1.0),
        lambda: tf.quantization.fake_quant_with_min_max_args(x, num_bits=1),
        lambda: tf.quantization.fake_quant_with_min_max_vars(x, [0.0, 1.0], 1.0),
        lambda: tf.quantization.quantize_and_dequantize_v2(x, 0.0, 1.0, num_bits=63),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            call()


def test_unigram_samplers():
    weights = [1.0, 2.0, 3.0, 0.0, 4.0]
    drawn = tf.nn.fixed_unigram_candidate_sampler([[1], [2]], 1, 4000, False, 5, unigrams=weights, seed=1)
    shares = np.bincount(drawn.sampled_candidates.numpy(), minlength=5) / 4000
    np.testing.assert_allclose(shares, np.array(weights) / 10, atol=0.03)
    assert shares[3] == 0 and drawn.true_expected_count.numpy().tolist() == [[800.0], [1200.0]]
    unique = tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 3, True, 5, unigrams=weights[:4], num_reserved_ids=1)
    assert sorted(unique.sampled_candidates.numpy()) == [1, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="exactly one of"):
        tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 4, False, 5)
    with pytest.raises(TypeError, match="vocab_file must be a path, got 2"):
        tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 4, False, 5, 2)
    counts = [
        tf.nn.learned_unigram_candidate_sampler([[1], [1]], 1, 7, False, 5).true_expected_count.numpy().ravel()[0]
        for _ in range(2)
    ]
    np.testing.assert_allclose(counts, [7 / 5, 7 * 3 / 7], rtol=1e-6)


def test_tensors_as_messages():
    made = tf.make_tensor_proto([[1.5, 2.0]])
    assert tf.make_ndarray(made).tolist() == [[1.5, 2.0]] and made.dtype == 1
    assert made.SerializeToString() == tf.io.serialize_tensor(tf.constant([[1.5, 2.0]])).numpy()
    assert type(made).FromString(made.SerializeToString()) == made
    assert tf.make_ndarray(tf.make_tensor_proto(3, shape=[2, 2], allow_broadcast=True)).tolist() == [[3, 3], [3, 3]]
    assert tf.make_ndarray(tf.make_tensor_proto(["a", "b"])).tolist() == [b"a", b"b"]
    with pytest.raises(TypeError, match="expected shape"):
        tf.make_tensor_proto([1, 2], shape=[1], verify_shape=True)
    with pytest.raises(ValueError, match="expected 3 values"):
        tf.make_tensor_proto([1, 2], shape=[3])


def test_rows_of_a_database_and_records_of_a_dataset(tmp_path):
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a integer, b text, c real)")
        connection.executemany("insert into t values (?, ?, ?)", [(1, "x", 1.5), (2, None, 2.5)])
    types = (tf.int32, tf.string, tf.float64)
    rows = tf.data.experimental.SqlDataset("sqlite", str(path), "select a, b, c from t order by a", types)
    assert [tuple(part.numpy() for part in row) for row in rows] == [(1, b"x", 1.5), (2, b"", 2.5)]
    assert rows.element_spec == tuple(tf.TensorSpec([], dtype) for dtype in types)
    with pytest.raises(ValueError, match="driver_name must be 'sqlite'"):
        tf.data.experimental.SqlDataset("other", str(path), "select a from t", (tf.int32,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_types must have 3 entries, got 1"):
        list(tf.data.experimental.SqlDataset("sqlite", str(path), "select * from t", (tf.int32,)))
    file = str(tmp_path / "records")
    tf.data.experimental.TFRecordWriter(file, "GZIP").write(tf.data.Dataset.from_tensor_slices(["a", "b"]))
    assert [one.numpy() for one in tf.data.TFRecordDataset(file, "GZIP")] == [b"a", b"b"]
    with pytest.raises(TypeError, match="scalars of strings"):
        tf.data.experimental.TFRecordWriter(file).write(tf.data.Dataset.range(2))


def test_checkpoints_of_a_folder(tmp_path):
    folder = str(tmp_path / "saved")
    assert tf.train.get_checkpoint_state(folder) is None
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(a=tf.Variable(1)), folder, 3)
    paths = [manager.save(), manager.save()]
    state = tf.train.get_checkpoint_state(folder)
    assert state.model_checkpoint_path == paths[-1] and state.all_model_checkpoint_paths == paths
    assert len(state.all_model_checkpoint_timestamps) == 2
    assert list(tf.train.checkpoints_iterator(folder, timeout=0.1)) == [paths[-1]]


def test_dropout_with_given_numbers_and_prints_of_traces(capsys):
    numbers = tf.constant([0.1, 0.6, 0.5, 0.4])
    found = tf.nn.experimental.general_dropout(tf.ones([4]), 0.5, lambda shape, dtype: numbers)
    assert found.numpy().tolist() == [0.0, 2.0, 2.0, 0.0]

    @tf.function
    def f(x):
        tf.autograph.trace("tracing")
        return x + 1

    f(tf.constant(1))
    f(tf.constant(2))
    assert capsys.readouterr().out == "tracing\n"
    assert f.pretty_printed_concrete_signatures(verbose=False) == "f(int32[])"
    assert "reason: first call" in f.pretty_printed_concrete_signatures()
